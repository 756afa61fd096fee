"""Two fingers on the networks of the report and of the explorer, as a phone reports them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from edgegraft.datasets import make_scale_free
from edgegraft.report import write_report
from edgegraft.report.explorer import Explorer
from edgegraft.report.explorer_app import make_explorer_server

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def model():
    return make_scale_free(30, n_states=3, n_rows=10, random_state=0).model


@pytest.fixture
def touch(browser):
    """A screen that is touched; the window of the session is left as it was."""
    window = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    yield browser
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    browser.close()
    browser.switch_to.window(window)


@pytest.fixture
def explorer(touch, model):
    server, url = make_explorer_server(Explorer(model, title="thirty"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    touch.get(url)
    yield touch, "#network", "#network .dot"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def report(touch, model, tmp_path):
    write_report(tmp_path / "page.html", model)
    touch.get((tmp_path / "page.html").as_uri())
    return touch, "#picture svg", "#picture svg path.dot"


def fingers(browser, kind, points):
    touches = [{"x": float(x), "y": float(y), "id": k} for k, (x, y) in enumerate(points)]
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


def middles(browser, dots):
    """Return where the dots are on the screen, once they have come to rest."""
    script = (
        "const done = arguments[1];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done("
        "  [...document.querySelectorAll(arguments[0])].map((dot) => {"
        "    const box = dot.getBoundingClientRect();"
        "    return [box.x + box.width / 2, box.y + box.height / 2];"
        "  }))));"
    )
    return np.array(browser.execute_async_script(script, dots))


@pytest.mark.parametrize("page", ["explorer", "report"])
def test_what_lies_between_two_fingers_stays_between_them(page, request):
    browser, network, dots = request.getfixturevalue(page)
    WebDriverWait(browser, 30).until(lambda b: len(b.find_elements(By.CSS_SELECTOR, dots)) == 30)
    area = browser.find_element(By.CSS_SELECTOR, network)
    shown = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
    browser.execute_script(shown, area)
    before = middles(browser, dots)
    box = area.rect
    scrolled = browser.execute_script("return window.scrollY")
    centre = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - scrolled])
    half, way = np.array([40.0, 30.0]), np.array([15.0, 25.0])
    fingers(browser, "touchStart", [centre - half])
    fingers(browser, "touchStart", [centre - half, centre + half])
    for part in np.linspace(0, 1, 11)[1:]:
        # Apart to twice the distance, while both go the same way.
        at, reach = centre + part * way, (1 + part) * half
        fingers(browser, "touchMove", [at - reach, at + reach])
    fingers(browser, "touchEnd", [])
    after = middles(browser, dots)
    assert browser.execute_script("return window.scrollY") == scrolled
    np.testing.assert_allclose(after, centre + way + 2 * (before - centre), atol=1.5)
