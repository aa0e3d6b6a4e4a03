"""Makes the pictures of README and guide from the made-up history.

UNFLAKE_BINARY=target/release/unflake python screenshots.py ../../../../docs/screenshots
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from conftest import FLAGS, Server
from playwright.sync_api import sync_playwright

PAGES = {
    "triage": "/",
    "stable": "/?since=stable",
    "tests": "/tests",
    "test": "/tests?only=unstable",
    "suite": "/suite",
    "next": "/next",
    "quarantine": "/quarantine",
}


def main() -> None:
    """Takes each picture."""
    folder = Path(sys.argv[1])
    server = Server("--demo")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
        for name, path in PAGES.items():
            page.goto(server.url + path)
            if name == "test":
                page.locator("a.test").first.click()
                page.wait_for_selector("h1.name")
            whole = page.evaluate("document.documentElement.scrollHeight")
            # Long lists go on in the same way.
            height = min(max(whole, 500), 1100)
            page.screenshot(
                path=folder / f"{name}.png",
                full_page=True,
                clip={"x": 0, "y": 0, "width": 1280, "height": height},
            )
        browser.close()
    server.stop()


if __name__ == "__main__":
    main()
