"""A server with a made-up history, and a real browser in front of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def binary() -> str:
    """The unflake that is tested."""
    return os.environ["UNFLAKE_BINARY"]


class Server:
    """`unflake serve` on a port of its own."""

    def __init__(self, *options: str) -> None:
        command = [binary(), "serve", "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        self.url = found[0]

    def stop(self) -> int:
        """Asks it to end, and says its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's chromium. Without it the tests are skipped on a laptop and fail in CI."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no chromium: run `make test` as root, or install it")
        pytest.skip("there is no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up history."""
    store = tmp_path_factory.mktemp("demo") / "history.db"
    assert Server("--demo", "--store", str(store)).stop() == 0
    return store


@pytest.fixture
def demo(history: Path, tmp_path: Path) -> Iterator[Server]:
    """A copy of the made-up history for each test."""
    store = tmp_path / "history.db"
    shutil.copy(history, store)
    server = Server("--store", str(store))
    yield server
    assert server.stop() == 0


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page whose scripts may not fail, and which loads nothing of others."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one test that fails."""
    (tmp_path / "test_shop.py").write_text("def test_total() -> None:\n    assert 1 == 2\n")
    return tmp_path
