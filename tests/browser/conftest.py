"""A headless Chromium for the tests of pages; without one they are skipped, and say so."""

from __future__ import annotations

import shutil

import pytest

WIDTH, HEIGHT = 1440, 900


def _chromium():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    return None


@pytest.fixture(scope="session")
def browser():
    """A driver whose console and network logs can be read."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary, driver = _chromium(), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no browser here: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = binary
    # Containers have no user namespaces for the sandbox; the pages opened are the tests' own.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--window-size={WIDTH},{HEIGHT}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    running = selenium.Chrome(options=options, service=service)
    yield running
    running.quit()
