"""The explorer's page in a real browser: drawn, searched, clicked, undone, shared."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF
from edgegraft.datasets import make_scale_free
from edgegraft.model import PairwiseMRF
from edgegraft.report.explorer import Explorer
from edgegraft.report.explorer_app import make_explorer_server

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.pages import new_tab, one, wait_for, wait_until

pytestmark = pytest.mark.browser

HOSTILE = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=\"document.title='owned'\">"


@contextmanager
def served(explorer):
    server, url = make_explorer_server(explorer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def explorer():
    return Explorer(make_scale_free(60, n_states=4, n_rows=10, random_state=0).model, title="sixty")


@pytest.fixture(scope="module")
def address(explorer):
    with served(explorer) as url:
        yield url


@pytest.fixture
def page(browser, address):
    """The page without evidence, in a tab of its own: a history of its own."""
    with _opened(browser, address) as found:
        yield found


@contextmanager
def _opened(browser, url, link="{}", refusal="no request is refused"):
    own = urlsplit(url).netloc
    with new_tab(browser, lambda asked: urlsplit(asked).netloc == own, refusal):
        browser.get(url)
        wait_for_link(browser, link)
        yield browser


def wait_for_link(browser, link):
    def arrived():
        return browser.execute_script("return document.body.dataset.link") == link

    wait_until(browser, arrived, f"the page never showed {link}")


def bars(browser):
    """Probabilities that the list's bars carry, and the widths that they are drawn with."""
    rows = browser.execute_script(
        "return [...document.querySelectorAll('#marginals .state')].map((e) => ["
        "+e.closest('.card').dataset.variable, +e.dataset.category, +e.dataset.probability,"
        "parseFloat(e.querySelector('.bar').style.width) / 100])"
    )
    return {(int(i), int(k)): (p, width) for i, k, p, width in rows}


def check_bars(browser, explorer, given):
    found = bars(browser)
    values = explorer.ask(given).probabilities
    offset = explorer.model.layout.node_offset
    assert len(found) == len(values)
    for (i, k), (p, width) in found.items():
        assert p == values[offset[i] + k]
        assert abs(width - p) < 1e-6


def middles(page):
    """Where the dots are, in pixels from the corner of the network."""
    return page.execute_script(
        "const frame = document.querySelector('#network').getBoundingClientRect();"
        "return [...document.querySelectorAll('#network .dot')].map((e) => {"
        "const box = e.getBoundingClientRect();"
        "return [box.left + box.width / 2 - frame.left, box.top + box.height / 2 - frame.top]})"
    )


def test_the_network_is_drawn_inside_its_frame(page, explorer):
    frame = one(page, "#network").rect
    spots = middles(page)
    assert len(spots) == explorer.model.n_variables
    assert len(page.find_elements(By.CSS_SELECTOR, "#network .edge")) == explorer.model.n_edges
    assert (np.array(spots) > 0).all()
    assert (np.array(spots) < [frame["width"], frame["height"]]).all()
    names = [e for e in page.find_elements(By.CSS_SELECTOR, "#network text") if e.is_displayed()]
    assert len(names) > 10


def test_evidence_moves_every_bar_to_what_the_model_says(page, explorer):
    check_bars(page, explorer, {})
    one(page, '#marginals .card[data-variable="7"] .state[data-category="2"]').click()
    wait_for_link(page, '{"x7":2}')
    check_bars(page, explorer, {7: 2})
    assert explorer.ask({7: 2}).engine in one(page, "#engine").text
    assert "x7 = 2" in one(page, "#evidence").text


def test_undo_goes_back_step_by_step_and_forward_again(page, explorer):
    for i, link in ((7, '{"x7":1}'), (9, '{"x7":1,"x9":1}')):
        one(page, f'#marginals .card[data-variable="{i}"] .state[data-category="1"]').click()
        wait_for_link(page, link)
    one(page, "#undo").click()
    wait_for_link(page, '{"x7":1}')
    check_bars(page, explorer, {7: 1})
    page.forward()
    wait_for_link(page, '{"x7":1,"x9":1}')
    one(page, "#clear").click()
    wait_for_link(page, "{}")
    for link in ('{"x7":1,"x9":1}', '{"x7":1}', "{}"):
        one(page, "#undo").click()
        wait_for_link(page, link)
    check_bars(page, explorer, {})
    assert not one(page, "#undo").is_enabled()


def test_a_link_opens_with_its_evidence(page, browser, address, explorer):
    one(page, '#marginals .card[data-variable="7"] .state[data-category="2"]').click()
    wait_for_link(page, '{"x7":2}')
    with _opened(browser, page.current_url, '{"x7":2}') as second:
        check_bars(second, explorer, {7: 2})
    with _opened(browser, address + '#given={"x7":99}', refusal="status of 422") as wrong:
        assert "no category 99" in one(wrong, "#banner").text
        assert "given" not in wrong.current_url


def test_search_finds_and_selects(page, explorer):
    field = one(page, "#search")
    field.send_keys("X17")
    wait_until(page, lambda: "1 found" in one(page, "#list-title").text, "nothing was found")
    assert "found" in one(page, '.dot[data-variable="17"]').get_attribute("class").split()
    field.send_keys(Keys.ENTER)
    title = wait_for(page, "#details .card .name")
    assert title.text == "x17"
    rows = page.find_elements(By.CSS_SELECTOR, "#details [data-neighbour]")
    assert len(rows) == int((explorer.model.edges == 17).any(axis=1).sum())
    cells = wait_for(page, "#details .heat").find_elements(By.CSS_SELECTOR, "tbody td")
    assert len(cells) == 16


def test_dots_tell_of_themselves_and_can_be_clicked(page):
    dot = one(page, '.dot[data-variable="3"]')
    ActionChains(page).move_to_element(dot).perform()
    assert "x3" in wait_for(page, "#tip").text
    dot.click()
    assert wait_for(page, "#details .card .name").text == "x3"


def test_zoom_moves_dots_apart_and_fit_brings_them_back(page):
    def spread():
        return np.ptp([x for x, _ in middles(page)])

    before = spread()
    one(page, "#zoom-in").click()
    wait_until(page, lambda: spread() > 1.3 * before, "the network did not grow")
    one(page, "#fit").click()
    wait_until(page, lambda: abs(spread() - before) < 1.0, "the network stayed as large")


def test_contradictions_are_told_and_change_nothing(browser):
    table = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    model = PairwiseMRF.from_potentials(
        {"a": ["no", "yes"], "b": ["no", "yes"]}, edges={("a", "b"): table}
    )
    with served(Explorer(model)) as url, _opened(browser, url, refusal="status of 409") as page:
        one(page, '.card[data-variable="0"] .state[data-category="0"]').click()
        wait_for_link(page, '{"a":"no"}')
        one(page, '.card[data-variable="1"] .state[data-category="1"]').click()
        assert "b = yes was not set" in wait_for(page, "#banner").text
        assert bars(page)[1, 0][0] == 1.0
        assert page.current_url.endswith("#given=%7B%22a%22%3A%22no%22%7D")


def test_hostile_names_are_text(browser):
    model = PairwiseMRF.from_potentials(
        {HOSTILE: [IMAGE, ""], IMAGE: [0, 1], "b": [HOSTILE, "no"]},
        edges={(HOSTILE, IMAGE): np.eye(2), (HOSTILE, "b"): np.eye(2)},
    )
    with served(Explorer(model, title=HOSTILE)) as url, _opened(browser, url) as page:
        assert one(page, "h1").text == HOSTILE
        ActionChains(page).move_to_element(one(page, '.dot[data-variable="0"]')).perform()
        assert HOSTILE in wait_for(page, "#tip").text
        one(page, '.dot[data-variable="0"]').click()
        wait_for(page, "#details .heat")
        one(page, '#details .state[data-category="0"]').click()
        wait_for_link(page, json.dumps({HOSTILE: IMAGE}, separators=(",", ":")))
        assert f"{HOSTILE} = {IMAGE}" in one(page, "#evidence").text
        assert page.title == f"{HOSTILE} · edgegraft"
        assert not page.find_elements(By.CSS_SELECTOR, "img, body script")


def test_levels_of_numbers_are_listed_without_gaps_and_with_their_mean(browser):
    rng = np.random.default_rng(0)
    first = rng.normal(size=800)
    frame = pd.DataFrame({"x": first, "y": -first + rng.normal(size=800), "u": np.abs(first)})
    explorer = Explorer(GraftedMRF(random_state=0).fit(frame).model_)
    with served(explorer) as url, _opened(browser, url) as page:
        assert len(bars(page)) == explorer.model.layout.states.sum()
        samples = [e.text for e in page.find_elements(By.CSS_SELECTOR, ".sample")]
        assert samples[-2:] == ["negative", "no sign"]
        before = one(page, '.card[data-variable="1"] .numbers').text
        one(page, '.card[data-variable="0"] .state[data-category="15"]').click()
        wait_for(page, '.card[data-variable="0"] .given')
        shown = one(page, '.card[data-variable="1"] .numbers').text
        assert shown.endswith(f"without evidence {before.split(',')[0]}")
        assert float(shown.split()[1].strip(",")) < -1
