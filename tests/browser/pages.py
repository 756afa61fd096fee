"""What the tests of pages share: tabs of their own, and what a page asked for and complained of."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 20  # before a test gives a page up


@contextmanager
def new_tab(browser, allowed, refusal="no request is refused"):
    """A tab with a history of its own; at its end, no errors and no request that is not allowed."""
    home = browser.current_window_handle
    browser.switch_to.new_window("tab")
    for log in ("browser", "performance"):
        browser.get_log(log)  # reading it empties it
    try:
        yield browser
        errors = [row["message"] for row in browser.get_log("browser") if row["level"] == "SEVERE"]
        assert [text for text in errors if refusal not in text] == []
        assert [url for url in requests(browser) if not allowed(url)] == []
    finally:
        browser.close()
        browser.switch_to.window(home)


def requests(browser):
    """Addresses that the page asked for since the log was read last; data: is the page itself."""
    found = []
    for row in browser.get_log("performance"):
        message = json.loads(row["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return [url for url in found if not url.startswith("data:")]


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def shown(browser, selector):
    """Those of the elements that can be seen."""
    return [e for e in browser.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


def wait_for(browser, selector):
    def there(driver):
        return shown(driver, selector)

    return WebDriverWait(browser, SECONDS).until(there, f"{selector} never appeared")[0]


def wait_until(browser, condition, complaint):
    WebDriverWait(browser, SECONDS).until(lambda _: condition(), complaint)
