"""Starts a headless Chromium, for the tests of pages and for pictures of them."""

from __future__ import annotations

import shutil

WIDTH, HEIGHT = 1440, 900
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoBrowserError(RuntimeError):
    """There is no browser here, or nothing to drive it; the message says how to get one."""


def start_chromium():
    """Return a driver whose console and network logs can be read; the caller quits it."""
    try:
        from selenium import webdriver
    except ImportError as error:
        raise NoBrowserError("selenium is not installed: pip install selenium") from error
    binary = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        raise NoBrowserError("no browser here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # Containers have no user namespaces for the sandbox; the pages opened are our own.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--force-prefers-reduced-motion",  # or clicks would miss what is still scrolling
        f"--window-size={WIDTH},{HEIGHT}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=driver)
    )
