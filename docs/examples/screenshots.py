"""Pictures of the report and of the explorer for the README: the second half of `make examples`.

Both show the survey that docs/examples/make.py learned into build/examples.
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
    """Renew both pictures."""
    if not (LEARNED / "survey.edgegraft").is_file():
        sys.stderr.write("No screenshots: docs/examples/make.py has not learned the survey here.\n")
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
    """Show the network with a variable chosen."""
    from selenium.webdriver.common.by import By
    from tests.browser.pages import wait_for

    browser.get(page.as_uri() + "#network")
    wait_for(browser, "#picture .dot")
    browser.find_element(By.CSS_SELECTOR, "#find").send_keys("N4")
    wait_for(browser, "#panel li button")
    browser.find_element(By.CSS_SELECTOR, "#whole").click()
    save(browser, picture)


def photograph_explorer(browser, model: Path, picture: Path) -> None:
    """Show what an answer changes."""
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
    """Save what is in view once the names have found their places."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    picture.write_bytes(browser.get_screenshot_as_png())


if __name__ == "__main__":
    sys.exit(main())
