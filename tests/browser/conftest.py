"""A headless Chromium for the tests of pages; without one they are skipped, and say so."""

from __future__ import annotations

import pytest

from tests.browser.chromium import NoBrowserError, start_chromium


@pytest.fixture(scope="session")
def browser():
    try:
        running = start_chromium()
    except NoBrowserError as error:
        pytest.skip(str(error))
    yield running
    running.quit()
