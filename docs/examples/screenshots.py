"""Screenshots of the report and the explorer for the README: the second part of `make examples`.

Both show the survey model that docs/examples/make.py writes to build/examples.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import NoBrowserError, start_chromium  # noqa: E402

LEARNED = ROOT / "build" / "examples"
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1200, 780


def main() -> int:
    """Update both pictures."""
    if not (LEARNED / "survey.edgegraft").is_file():
        sys.stderr.write(
            "No screenshots: build/examples has no survey model; run docs/examples/make.py first.\n"
        )
        return 0
    try:
        browser = start_chromium()
    except NoBrowserError as error:
        sys.stderr.write(f"No screenshots: {error}\n")
        return 0
    try:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
        )
        photograph_report(browser, LEARNED / "survey.html", IMAGES / "report.png")
        photograph_explorer(browser, LEARNED / "survey.edgegraft", IMAGES / "explorer.png")
    finally:
        browser.quit()
    return 0


def photograph_report(browser, page: Path, picture: Path) -> None:
    """Photograph the network with one variable selected."""
    from selenium.webdriver.common.by import By
    from tests.browser.pages import wait_for

    browser.get(page.as_uri() + "#network")
    wait_for(browser, "#picture .dot")
    browser.find_element(By.CSS_SELECTOR, "#find").send_keys("N4")
    wait_for(browser, "#panel li button")
    browser.find_element(By.CSS_SELECTOR, "#whole").click()
    save(browser, picture)


def photograph_explorer(browser, model: Path, picture: Path) -> None:
    """Photograph the marginals given one answer."""
    from selenium.webdriver.common.by import By
    from tests.browser.pages import wait_until

    from edgegraft import load
    from edgegraft.report.explorer import Explorer
    from edgegraft.report.explorer_app import make_explorer_server

    server, url = make_explorer_server(Explorer(load(model), title=model.name))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        browser.get(url + '#given={"N1":6}')
        link = "return document.body.dataset.link"
        wait_until(browser, lambda: browser.execute_script(link) == '{"N1":6}', "no answer came")
        browser.find_element(By.CSS_SELECTOR, "#fit").click()
        save(browser, picture)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def save(browser, picture: Path) -> None:
    """Save the view once the labels have been placed."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    picture.write_bytes(browser.get_screenshot_as_png())


if __name__ == "__main__":
    sys.exit(main())
