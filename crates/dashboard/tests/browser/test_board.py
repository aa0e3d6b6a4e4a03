"""The walks of people on the board, in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from conftest import Server, binary
from playwright.sync_api import Browser, Page, expect

PAGES = ["/", "/?since=stable", "/tests", "/suite", "/next", "/quarantine"]


def send(server: Server, lines: list[dict[str, object]]) -> None:
    """Adds runs to a server's history."""
    body = "\n".join(json.dumps(line) for line in lines).encode()
    request = urllib.request.Request(
        server.url + "/api/v1/reports", body, {"content-type": "application/x-ndjson"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def test_a_tester_filters_labels_a_fault_and_sees_the_ranking_change(demo: Server, page: Page) -> None:
    page.goto(demo.url)
    expect(page.locator("h1")).to_contain_text("Failures of")
    rows = page.locator("section[aria-labelledby=faults] table.board > tbody > tr:not(.more)")
    assert rows.count() >= 1
    expect(page.locator("#ranking")).to_contain_text("measures its own ranking")

    # The choice is taken at once.
    options = page.locator("select[name=environment] option")
    chosen = options.nth(1).get_attribute("value")
    assert chosen
    page.select_option("select[name=environment]", chosen)
    expect(page).to_have_url(re.compile("environment=" + chosen))
    for cell in page.locator("table.board td[data-name=Where]").all():
        expect(cell).to_contain_text(chosen)
    page.goto(demo.url)

    first = rows.first
    name = first.locator("a.test").inner_text()
    first.locator("input[name=bug]").fill("SHOP-4711")
    first.get_by_role("button", name="Fault").click()
    # In place: the page was not loaded again.
    expect(page.locator("#ranking")).to_contain_text("100 %")
    expect(page).to_have_url(demo.url + "/")
    labelled = page.locator("tr", has=page.get_by_role("link", name=name, exact=True)).first
    expect(labelled).to_contain_text("SHOP-4711")
    labelled.get_by_role("button", name="Take back").click()
    expect(page.locator("#ranking")).to_contain_text("measures its own ranking")


def test_a_fault_of_the_second_list_lowers_the_score(demo: Server, page: Page) -> None:
    page.goto(demo.url)
    page.locator("section[aria-labelledby=faults]").get_by_role("button", name="Fault").first.click()
    expect(page.locator("#ranking")).to_contain_text("100 %")
    page.locator("section[aria-labelledby=flaky]").get_by_role("button", name="Fault").first.click()
    expect(page.locator("#ranking")).to_contain_text("50 %")


def test_a_test_is_found_read_and_quarantined_and_a_run_honours_it(
    chromium: Browser, page: Page, project: Path
) -> None:
    server = Server("--store", str(project / "history.db"))
    try:
        days = [f"2026-06-{day:02}" for day in range(1, 21)]
        lines = [
            {"test": "test_shop.test_total", "time": day, "verdict": "failed" if at % 3 else "passed"}
            for at, day in enumerate(days)
        ]
        send(server, [*lines, {"test": "test_shop.test_other", "time": days[0], "verdict": "ok"}])
        page.goto(server.url)
        page.get_by_role("searchbox", name="Find a test").fill("total")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="test_shop.test_total").click()
        expect(page.locator("h1")).to_have_text("test_shop.test_total")
        bars = page.locator("svg.strip rect")
        assert bars.count() == len(days)
        expect(bars.first.locator("title")).to_have_text(re.compile("2026-06-01 00:00: passed"))
        expect(page.locator("svg.chart").first).to_contain_text("Share of runs that failed")

        command = [binary(), "run", "--python", sys.executable, "--no-record", "--quarantine", server.url]
        before = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert before.returncode == 1, before.stderr
        page.get_by_label("Reason").fill("rounds wrongly <b>on Mondays</b>")
        page.get_by_role("button", name="Quarantine").click()
        expect(page.locator("table.list")).to_contain_text("rounds wrongly <b>on Mondays</b>")
        after = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert after.returncode == 0, after.stdout
        assert "quarantined" in after.stdout and "rounds wrongly" in after.stdout
        page.get_by_role("button", name="Take out").click()
        expect(page.locator("main")).to_contain_text("No test is in quarantine")
    finally:
        assert server.stop() == 0


def test_a_page_that_is_left_open_follows_the_history(page: Page, project: Path) -> None:
    server = Server("--store", str(project / "history.db"))
    try:
        page.goto(server.url)
        expect(page.locator("main")).to_contain_text("No runs yet")
        expect(page.locator("#live")).to_have_text("live")
        send(server, [{"test": "a.py::t", "time": "2026-06-01", "verdict": "failed"}])
        expect(page.locator("h1")).to_have_text("Failures of 2026-06-01", timeout=20_000)
    finally:
        assert server.stop() == 0


def test_everything_can_be_done_without_scripts_and_by_keyboard(demo: Server, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(demo.url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.get_by_role("button", name="Fault").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#ranking")).to_contain_text("100 %")

    environment = page.locator("select[name=environment] option").nth(1).get_attribute("value")
    assert environment
    page.select_option("select[name=environment]", environment)
    page.get_by_role("button", name="Show").press("Enter")
    for cell in page.locator("table.board td[data-name=Where]").all():
        expect(cell).to_contain_text(environment)

    page.get_by_role("searchbox", name="Find a test").fill("retries")
    page.keyboard.press("Enter")
    page.locator("a.test").first.press("Enter")
    name = page.locator("h1").inner_text()
    page.get_by_label("Reason").fill("slow at night")
    page.get_by_role("button", name="Quarantine").press("Enter")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(row).to_contain_text("slow at night")
    row.get_by_role("button", name="Take out").press("Enter")
    expect(page.locator("section[aria-labelledby=left]")).to_contain_text(name)
    context.close()


def test_failures_since_the_last_stable_run_are_labelled_in_their_place(demo: Server, page: Page) -> None:
    page.goto(demo.url)
    page.get_by_role("link", name="Since the last stable run").click()
    expect(page.locator("h1")).to_have_text("Failures since the last stable run")
    expect(page.locator("main")).to_contain_text("The last stable run is revision")
    page.locator("section[aria-labelledby=faults]").get_by_role("button", name="Fault").first.click()
    expect(page.locator("#ranking")).to_contain_text("100 %")
    expect(page.locator("h1")).to_have_text("Failures since the last stable run")
    page.get_by_role("link", name="Last day").click()
    expect(page.locator("h1")).to_contain_text("Failures of")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_are_readable(demo: Server, chromium: Browser, width: int, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(demo.url + "/tests")
    one = page.locator("a.test").first.get_attribute("href")
    assert one
    for path in [*PAGES, one]:
        page.goto(demo.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.locator("h1").count() == 1, path
        assert page.evaluate(UNNAMED) == [], path
        assert page.evaluate(HEADLESS) == [], path
        assert page.evaluate(CONTRAST) == [], (path, scheme)
    context.close()


# Fields and buttons that a screen reader could not name.
UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, button, a")].filter(
    (one) =>
    !(one.textContent || "").trim() && !one.getAttribute("aria-label") && !(one.labels && one.labels.length)
).map((one) => one.outerHTML)"""

# Tables whose columns a screen reader could not name, and pictures without a name.
HEADLESS = """() => [
    ...[...document.querySelectorAll("table")].filter((one) => {
        const cells = one.querySelector(":scope > tbody > tr")?.cells ?? [];
        return one.querySelectorAll(":scope > thead th[scope=col]").length !== cells.length;
    }),
    ...document.querySelectorAll("svg:not([role=img][aria-label])"),
].map((one) => one.outerHTML.slice(0, 200))"""

# Text with less contrast than 4.5 to 1 against what is behind it.
CONTRAST = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((one) => one / 255)
            .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const bad = new Set();
    for (const one of document.querySelectorAll("main *, header *, footer *")) {
        const has = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!has || one.closest("svg") || one.closest("[aria-hidden]") || !one.offsetParent) continue;
        const [first, second] = [light(parse(getComputedStyle(one).color)), light(behind(one))];
        const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
        if (ratio < 4.5) bad.add(`${one.tagName}.${one.className}: ${ratio.toFixed(2)}`);
    }
    return [...bad];
}"""
