"""The report in a real browser: drawn, searched, filtered, zoomed, on a phone and on paper."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from edgegraft.datasets import make_scale_free
from edgegraft.model import PairwiseMRF
from edgegraft.report import write_report

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.pages import new_tab, one, requests, shown, wait_for, wait_until

pytestmark = pytest.mark.browser

HOSTILE = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=\"document.title='owned'\">"
LONG = "how_satisfied_are_you_with_the_opening_hours_of_your_library_on_weekdays"
PHONE = 390


@pytest.fixture(scope="module")
def model():
    return make_scale_free(60, n_states=4, n_rows=10, random_state=0).model


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "sixty.html"
    steps = np.arange(5.0)
    write_report(
        path,
        model,
        title="Sixty",
        edge_columns={"q_value": np.linspace(0.0, 0.01, model.n_edges)},
        details={"source": {"file": "sixty.csv", "rows": 10}, "settings": {"penalty": 0.1}},
        trace={"seconds": steps, "objective": 9 - steps, "n_edges": 3 * steps},
    )
    return path


@pytest.fixture
def page(browser, report):
    with _opened(browser, report) as found:
        yield found


@contextmanager
def _opened(browser, path):
    """The report in a tab; the file itself is all that may be asked for."""
    with new_tab(browser, lambda asked: asked.split("#")[0] == path.as_uri()):
        browser.get(path.as_uri())
        wait_for(browser, "#picture .dot")
        yield browser


@contextmanager
def _as_phone(browser):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": PHONE, "height": 844, "deviceScaleFactor": 2, "mobile": True},
    )
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def _on_paper(browser):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def boxes(page, selector):
    """Left, top, width and height of elements, in pixels from the corner of the picture."""
    return np.array(
        page.execute_script(
            "const frame = document.querySelector('#picture').getBoundingClientRect();"
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((e) => e.style.display !== 'none').map((e) => {"
            "const box = e.getBoundingClientRect();"
            "return [box.left - frame.left, box.top - frame.top, box.width, box.height]})",
            selector,
        )
    )


def spread(page):
    return float(np.ptp(boxes(page, "#picture .dot")[:, 0]))


def set_slider(page, value):
    page.execute_script(
        "const slider = document.querySelector('#weakest'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))",
        value,
    )


def test_the_network_is_drawn_inside_its_frame(page, model):
    frame = one(page, "#picture").rect
    dots = boxes(page, "#picture .dot")
    assert len(dots) == len(np.unique(model.edges))
    assert len(boxes(page, "#picture .edge")) == model.n_edges
    assert (dots[:, :2] > 0).all()
    assert (dots[:, :2] + dots[:, 2:] < [frame["width"], frame["height"]]).all()
    assert np.unique(dots[:, :2].round(), axis=0).shape == (len(dots), 2)


def test_nothing_but_the_file_is_asked_for(page, report):
    assert requests(page) == [report.as_uri()]


def test_names_that_are_shown_do_not_collide(page):
    wait_until(page, lambda: len(boxes(page, "#picture text")) > 10, "few names are shown")
    names = boxes(page, "#picture text")
    for k, (left, top, width, height) in enumerate(names):
        others = names[k + 1 :]
        apart_x = (others[:, 0] > left + width) | (others[:, 0] + others[:, 2] < left)
        # Letters are less high than their boxes.
        apart_y = np.abs(others[:, 1] - top) > 0.8 * height
        assert (apart_x | apart_y).all()


def test_search_finds_a_variable_and_lists_its_edges(page, model):
    field = one(page, "#find")
    field.send_keys("X17")
    assert wait_for(page, "#panel h3").text == "x17"
    listed = page.find_elements(By.CSS_SELECTOR, "#panel li button")
    assert len(listed) == int((model.edges == 17).any(axis=1).sum())
    assert len(shown(page, "#picture .dot.chosen")) == 1
    listed[0].click()
    assert "x17" in one(page, "#panel h3").text
    assert len(page.find_elements(By.CSS_SELECTOR, "#panel .heat tbody td")) == 16
    field.send_keys("999")
    assert "unknown" in field.get_attribute("class")
    field.send_keys(Keys.ESCAPE)
    assert "unknown" not in field.get_attribute("class")
    assert "Choose a variable" in one(page, "#panel").text


def test_dots_tell_their_names(page):
    hub = max(page.find_elements(By.CSS_SELECTOR, "#picture .dot"), key=lambda e: e.rect["width"])
    ActionChains(page).move_to_element(hub).perform()
    said = wait_for(page, "#hint").text
    hub.click()
    assert said.startswith(one(page, "#panel h3").text + ": ")
    ActionChains(page).move_to_element(one(page, "h1")).perform()
    assert shown(page, "#hint") == []


def test_the_slider_removes_weak_edges_and_brings_them_back(page, model):
    strengths = np.sort(model.edge_strengths())
    set_slider(page, 50)
    kept = len(boxes(page, "#picture .edge"))
    assert kept == int((strengths >= strengths[model.n_edges // 2]).sum())
    assert one(page, "#count").text == f"{kept} of {model.n_edges} edges"
    set_slider(page, 100)
    assert len(boxes(page, "#picture .edge")) == 1
    assert len(boxes(page, "#picture .dot")) == 2
    set_slider(page, 0)
    assert len(boxes(page, "#picture .edge")) == model.n_edges


def test_zoom_by_button_and_by_wheel(page):
    before = spread(page)
    one(page, "#nearer").click()
    assert spread(page) > 1.4 * before
    one(page, "#whole").click()
    assert abs(spread(page) - before) < 1.0
    page.execute_script(
        "document.querySelector('#picture svg').dispatchEvent("
        "new WheelEvent('wheel', {deltaY: -400, clientX: 300, clientY: 300, cancelable: true}))"
    )
    assert spread(page) > 1.4 * before


def test_tables_are_sorted_by_a_click(page):
    head = one(page, "table.sortable thead th")
    head.click()
    names = [e.text for e in page.find_elements(By.CSS_SELECTOR, "table.sortable tbody th")]
    assert len(names) == 60
    assert names == page.execute_script(
        "return [...arguments[0]].sort((a, b) => a.localeCompare(b))", names
    )
    head.click()
    assert one(page, "table.sortable tbody th").text == names[-1]


def test_the_run_is_charted(page):
    assert "objective" in one(page, '[data-chart="trace"] .legend').text
    assert len(page.find_elements(By.CSS_SELECTOR, '[data-chart="trace"] path')) >= 3


def test_the_legend_names_the_colours_of_edges(browser, tmp_path):
    agree, three = np.eye(2), np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
    model = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": ["x", "y", "z"]},
        edges={("a", "b"): agree, ("b", "c"): -agree, ("a", "d"): three},
    )
    write_report(tmp_path / "signs.html", model)
    with _opened(browser, tmp_path / "signs.html") as page:
        words = [item.text for item in page.find_elements(By.CSS_SELECTOR, ".sample")]
        assert words[-3:] == ["positive", "negative", "no sign"]


def test_hostile_names_are_text(browser, tmp_path):
    hostile = PairwiseMRF.from_potentials(
        {HOSTILE: [IMAGE, "</script>"], IMAGE: [0, 1], "b": [HOSTILE, "no"]},
        edges={(HOSTILE, IMAGE): np.eye(2), (HOSTILE, "b"): 2 * np.eye(2)},
    )
    path = tmp_path / "hostile.html"
    write_report(path, hostile, title=HOSTILE, details={HOSTILE: IMAGE, "source": {"file": IMAGE}})
    with _opened(browser, path) as page:
        assert page.title == HOSTILE
        assert one(page, "h1").text == HOSTILE
        one(page, "#find").send_keys(HOSTILE)
        assert wait_for(page, "#panel h3").text == HOSTILE
        assert IMAGE in one(page, "#panel").text
        one(page, "#panel li button").click()
        assert HOSTILE in one(page, "#panel h3").text
        ActionChains(page).move_to_element(one(page, "#picture .dot")).perform()
        assert wait_for(page, "#hint").text
        assert HOSTILE in one(page, "#edges").text
        assert not page.find_elements(By.CSS_SELECTOR, "img, main script")
        # Two blocks of data and the page's own script.
        assert len(page.find_elements(By.CSS_SELECTOR, "script")) == 3


@pytest.mark.parametrize("hub", ["library", LONG])
def test_readable_on_a_phone(browser, tmp_path, hub):
    rng = np.random.default_rng(0)
    names = [hub, *(f"{LONG}_{k}" for k in range(5))]
    wide = PairwiseMRF.from_potentials(
        {name: [f"{LONG} {k}" for k in range(7)] for name in names},
        edges={(names[0], name): rng.normal(size=(7, 7)) for name in names[1:]},
    )
    path = tmp_path / "wide.html"
    write_report(path, wide, title=LONG, details={"source": {"file": LONG + ".csv", "rows": 9}})
    with _opened(browser, path) as page, _as_phone(page):
        one(page, "#find").send_keys(names[0])
        wait_for(page, "#panel li button").click()
        wait_for(page, "#panel .heat")
        assert page.execute_script("return innerWidth") == PHONE
        assert page.execute_script("return document.documentElement.scrollWidth") <= PHONE
        assert one(page, "#picture").rect["width"] > 0.8 * PHONE
        size = page.execute_script("return getComputedStyle(document.body).fontSize")
        assert float(size.removesuffix("px")) >= 14


def test_paper_has_the_network_and_no_controls(page, model):
    controls = ("nav", ".controls", "#panel", "#hint")
    assert all(shown(page, selector) for selector in controls[:3])
    with _on_paper(page):
        assert [selector for selector in controls if shown(page, selector)] == []
        assert shown(page, "#picture svg")
        assert len(boxes(page, "#picture .edge")) == model.n_edges
    page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    closed = [
        e for e in page.find_elements(By.CSS_SELECTOR, "details") if not e.get_attribute("open")
    ]
    assert closed == []
    assert page.print_page()
