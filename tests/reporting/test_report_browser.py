"""The report in a real browser; skipped, with a message, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runs import SHOWN, example_run, hostile_run

from leakscope.cli import main
from leakscope.reporting import report
from leakscope.results.reader import read_run

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=600_000
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    runs = {"digits": example_run(folder, "digits"), "hostile": hostile_run(folder)}
    return {name: report(read_run(run)) for name, run in runs.items()}


def opened(browser: Any, path: Path, width: int = 1280) -> tuple[Any, list[str]]:
    """The page, drawn, and everything that should not have happened."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(600_000)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))

    def asked(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            troubles.append(f"request: {request.url}")

    page.on("request", asked)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    return page, troubles


@pytest.mark.parametrize("width", [1280, 400])
def test_charts_are_drawn_and_the_page_fits(browser, reports, width):
    page, troubles = opened(browser, reports["digits"], width)
    assert page.locator(".chart svg.marks").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".shown img").count() == 12 * 6
    widths = page.eval_on_selector_all(".shown img", "all => all.map(one => one.naturalWidth)")
    assert set(widths) == {8}
    assert troubles == []
    page.close()


def test_the_table_of_attackers_stays_on_the_page(browser, tmp_path):
    """Its sentences did not wrap: at 1,100 px the numbers were cut."""
    assert main(["audit", "--example", "diabetes", "--run-dir", str(tmp_path / "run")]) == 0
    written = report(read_run(tmp_path / "run"))
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    for width in (1280, 1100):
        page, _ = opened(browser, written, width)
        assert "knows all other records" in page.locator("main").inner_text()
        assert page.eval_on_selector_all(".scroll", wide) == 0
        page.close()
    # On a telephone a wide table scrolls by itself, and the page does not.
    page, _ = opened(browser, written, 400)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.close()


def test_a_chart_answers_the_pointer_and_zooms(browser, reports):
    page, troubles = opened(browser, reports["digits"])
    chart = page.locator("#chart-histogram_advantage svg.marks")
    chart.scroll_into_view_if_needed()
    bars = page.locator("#chart-histogram_advantage svg.marks .mark-rect.role-mark path")
    bars.nth(30).hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "records" in page.locator("#vg-tooltip-element").inner_text()
    before, place = chart.text_content(), page.evaluate("scrollY")
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Shift")
    page.wait_for_function(
        "before => document.querySelector("
        "'#chart-histogram_advantage svg.marks').textContent !== before",
        arg=before,
    )
    assert page.evaluate("scrollY") == place
    assert troubles == []
    page.close()


def test_the_table_is_searched_sorted_and_paged(browser, reports):
    page, troubles = opened(browser, reports["digits"])

    def column(number: int) -> list[str]:
        return page.locator(f"#records-body td:nth-child({number})").all_inner_texts()

    assert column(1) == [str(rank) for rank in range(1, 26)]
    first = column(2)
    page.click("#records-next")
    assert column(1)[0] == "26"
    page.fill("#records-search", "1264")
    assert column(2) == ["1264"]
    assert page.inner_text("#records-status") == "1 of 1797, page 1 of 1"
    page.fill("#records-search", "")
    page.click('#records th[data-key="id"] button')
    assert column(2) == [str(record) for record in range(25)]
    assert page.get_attribute('#records th[data-key="id"]', "aria-sort") == "ascending"
    page.click('#records th[data-key="kl_label"] button')
    place = page.eval_on_selector(
        '#records th[data-key="kl_label"]', "heading => heading.cellIndex + 1"
    )
    values = [float(text) for text in column(place)]
    assert values == sorted(values, reverse=True)
    page.click('#records th[data-key="rank"] button')
    assert column(2) == first
    assert troubles == []
    page.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_names_do_nothing(browser, reports, width):
    page, troubles = opened(browser, reports["hostile"], width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    shown = page.eval_on_selector_all(
        "#records-body td.id", "all => all.map(one => one.textContent)"
    )
    assert set(SHOWN) <= set(shown)
    assert page.evaluate("window.hacked") is None
    assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0
    assert troubles == []
    page.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_a_comparison_in_the_browser(browser, reports, width, tmp_path):
    from leakscope.comparing import compare
    from leakscope.reporting import write_comparison

    run = reports["hostile"].parent
    other = hostile_run(tmp_path, noise="1")
    page, troubles = opened(
        browser, write_comparison(compare(run, other), tmp_path / "c.html"), width
    )
    assert page.locator(".chart svg.marks").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") == width
    points = page.locator("#chart-before_after_advantage svg.marks .mark-symbol.role-mark path")
    assert points.count() == 40
    points.first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "ranks" in page.locator("#vg-tooltip-element").inner_text()
    assert page.locator("#fallen tbody tr").count() == 10
    assert page.evaluate("window.hacked") is None
    assert troubles == []
    page.close()
