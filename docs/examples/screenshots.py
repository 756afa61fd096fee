"""Pictures of the README and the front page: the second part of `make examples`.

They show the bundled survey: the network that `edgegraft demo` draws, its report and the explorer.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import NoBrowserError, start_chromium  # noqa: E402

LEARNED = ROOT / "build" / "demo"
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1200, 780


def main() -> int:
    """Update the pictures."""
    demo = [sys.executable, "-m", "edgegraft", "demo", str(LEARNED), "--force"]
    subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
    plot = [*demo[:3], "plot", str(LEARNED / "survey.edgegraft"), "--dpi", "100", "--force"]
    subprocess.run([*plot, "-o", str(IMAGES / "demo.png")], check=True)
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
    browser.find_element(By.CSS_SELECTOR, "#find").send_keys("satisfied")
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
        browser.get(url + '#given={"stress":5}')
        shown = "return document.body.dataset.link === '{\"stress\":5}'"
        wait_until(browser, lambda: browser.execute_script(shown), "no answer came")
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
