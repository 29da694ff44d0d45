"""The web page in a real browser; skipped, with a message, where there is none."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from leakscope.data import read_example

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

HOSTILE = '<img src=x onerror="window.hacked=1">'

# A first audit imports much and compiles a network's kernel, on machines that do other things too.
PATIENCE = 600_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "leakscope", "serve", "--max-upload", "0.5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("served"))},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield found[0]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0
        assert said == ""
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield started
        started.close()


@pytest.fixture(params=[1280, 400])
def opened(request, browser, address) -> Iterator[tuple[Any, list[str]]]:
    """A page that was let in, and everything that should not have happened."""
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.set_default_timeout(PATIENCE)
    home = address.split("/?")[0]
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))

    def asked(wanted: Any) -> None:
        if not wanted.url.startswith((home + "/", "data:", "blob:")):
            troubles.append(f"request: {wanted.url}")

    page.on("request", asked)
    page.goto(address)
    page.wait_for_selector("[data-example]")
    # What is chosen before the page's script listens is lost.
    page.wait_for_load_state("load")
    # The token is gone from the address.
    assert page.url == home + "/"
    yield page, troubles
    assert troubles == []
    assert page.evaluate("window.hacked") is None
    page.close()


def fits(page: Any) -> bool:
    width = page.evaluate("document.documentElement.scrollWidth")
    return bool(width == page.viewport_size["width"])


def offered(page: Any) -> None:
    """Wait for the columns of the file that was sent; a refusal is told at once."""
    page.wait_for_selector("#columns:not([hidden]), #problem:not([hidden])")
    assert page.is_hidden("#problem"), page.inner_text("#problem")


def drawn(page: Any) -> Any:
    """Wait for the result; the report's own frame."""
    page.wait_for_selector("html[data-drawn]", timeout=PATIENCE)
    frame = page.frame_locator("#report-frame")
    frame.locator("html[data-drawn]").wait_for(timeout=PATIENCE)
    return frame


def test_an_example_from_the_choice_to_the_slider(opened):
    page, _ = opened
    assert fits(page)
    if page.locator("#jobs td a").count():
        # Audited already, at the other width.
        page.locator("#jobs td a", has_text="digits").click()
    else:
        page.select_option("#model", "process")
        page.click("[data-example=digits]")
        page.wait_for_selector("#stages li.now", timeout=PATIENCE)
        assert page.locator("#stages li").count() >= 9
        assert page.is_visible("#give-up")
        assert fits(page)
    frame = drawn(page)
    assert page.is_hidden("#progress")
    assert "your model was not examined" in page.inner_text("#result")
    assert fits(page)

    # The report: charts, pictures, a table that is searched and sorted; as tall as what it holds.
    assert frame.locator(".chart svg.marks").count() >= 6
    assert frame.locator(".shown img").count() >= 12 * 6
    natural = frame.locator(".shown img").first.evaluate("one => one.naturalWidth")
    assert natural == 8
    frame.locator("#records-search").fill("1264")
    assert frame.locator("#records-body td.id").all_inner_texts() == ["1264"]
    frame.locator("#records-search").fill("")
    frame.locator('#records th[data-key="id"] button').click()
    assert frame.locator("#records-body td.id").first.inner_text() == "0"
    inside = page.frames[1].evaluate(
        "[document.documentElement.scrollHeight, innerHeight, "
        "document.documentElement.scrollWidth, innerWidth]"
    )
    assert inside[0] <= inside[1] + 4
    assert inside[2] <= inside[3]

    # The slider: numbers, charts and table move at once.
    assert page.locator("#slider-box svg.marks").count() == 3
    facts = ["#fact-largest", "#fact-median", "#fact-exposed", "#fact-error", "#noise-value"]

    def told() -> list[str]:
        return [page.inner_text(fact) for fact in facts]

    def bars() -> str:
        marks = "#chart-histogram .mark-rect.role-mark path"
        return str(page.eval_on_selector_all(marks, "all => all.map(one => one.getAttribute('d'))"))

    def drawn_again(right: Callable[[], bool]) -> None:
        for _ in range(PATIENCE // 100):
            if right():
                return
            page.wait_for_timeout(100)
        raise AssertionError("the chart did not change")

    audited, shapes = told(), bars()
    assert "as audited" in audited[-1]
    assert page.is_disabled("#as-audited")
    page.focus("#slider")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    moved = told()
    assert all(before != after for before, after in zip(audited, moved, strict=True))
    assert moved[-1] == "1"
    drawn_again(lambda: bars() != shapes)
    ranked = page.locator("#top-body td.id").all_inner_texts()
    assert len(ranked) == 10
    page.click("#as-audited")
    assert told() == audited
    drawn_again(lambda: bars() == shapes)
    assert fits(page)

    # A chart answers the pointer.
    path = page.locator("#chart-histogram .mark-rect.role-mark path").nth(20)
    path.scroll_into_view_if_needed()
    path.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "records" in page.inner_text("#vg-tooltip-element")


def test_a_model_is_chosen_and_advice_asked_for(opened):
    page, _ = opened
    assert page.input_value("#model") == "stand_in"
    assert page.is_hidden("#alpha")
    page.select_option("#model", "ridge")
    assert page.is_visible("#alpha")
    page.fill("#alpha", "50")
    assert fits(page)
    page.click("[data-example=diabetes]")
    drawn(page)
    assert "Ridge(alpha=50) was fitted on these data" in page.inner_text("#result")
    assert page.is_hidden("#noise")
    assert fits(page)
    page.fill("#limit", "0.35")
    page.click("#advise-form button")
    page.wait_for_selector("#advice-ready:not([hidden])", timeout=PATIENCE)
    assert page.get_attribute("#advice-open", "href").endswith("/pages/advice")


def hostile_csv(records: int = 40) -> bytes:
    rng = np.random.default_rng(0)
    quoted = HOSTILE.replace('"', '""')
    lines = [f'who,"{quoted}",note,"y</script>"']
    for i, (a, y) in enumerate(rng.normal(size=(records, 2))):
        name = quoted if i == 0 else f"person {i}"
        lines.append(f'"{name}",{a},free text {i},{100.0 if i == 0 else y}')
    return "\n".join(lines).encode()


def given(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def test_a_file_with_hostile_names(opened):
    page, _ = opened
    page.set_input_files("#file", given(f"{HOSTILE}.csv", hostile_csv()))
    offered(page)
    assert fits(page)
    assert page.inner_text("#file-name") == f"{HOSTILE}.csv"
    assert page.input_value("#target") == "y</script>"
    assert page.input_value("#id_column") == "who"
    assert page.inner_text("#ignored-count") == "note"
    page.select_option("#model", "process")
    page.click("#columns button[type=submit]")
    frame = drawn(page)
    assert HOSTILE in page.inner_text("h1")
    assert page.locator("#top-body td.id").first.inner_text() == HOSTILE
    assert frame.locator("#records-body td.id").first.inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert fits(page)


def test_pictures_in_an_archive(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_selector("[data-example]")
    digits, buffer = read_example("digits"), io.BytesIO()
    np.savez(buffer, X=digits.features[:80].reshape(80, 8, 8), y=digits.target[:80])
    page.set_input_files("#file", given("pictures.npz", buffer.getvalue()))
    offered(page)
    assert page.input_value("#target") == "y"
    assert page.input_value("#task") == "classification"
    page.select_option("#model", "process")
    page.click("#columns button[type=submit]")
    frame = drawn(page)
    assert frame.locator(".shown img").count() >= 12
    page.close()


def test_what_is_not_known_is_seen_and_the_file_is_kept_on_the_way_back(opened):
    page, _ = opened
    rows = "".join(f"{i},{'?' if i % 4 == 0 else 'ab'[i % 2]},{i % 7},{i % 5}\n" for i in range(40))
    page.set_input_files("#file", given("visits.csv", f"x,ward,z,y\n{rows}".encode()))
    offered(page)
    assert page.input_value("#na_values") == "?"
    assert page.input_value("#missing") == "impute"
    assert "10 in 1 column" in page.inner_text("#empty-facts")
    page.select_option("#by", "ward")
    page.select_option("#missing", "error")
    page.click("#columns button[type=submit]")
    page.wait_for_selector("#problem:not([hidden])", timeout=PATIENCE)
    page.click("#again a")
    # Nothing is uploaded again: the file and what was said of it are there.
    offered(page)
    assert page.inner_text("#file-name") == "visits.csv"
    assert page.input_value("#by") == "ward"
    assert page.input_value("#na_values") == "?"
    assert page.input_value("#missing") == "error"
    assert fits(page)
    page.select_option("#missing", "impute")
    page.click("#columns button[type=submit]")
    frame = drawn(page)
    assert "Exposure by ward" in frame.locator("body").inner_text()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("big.csv", b"1,2\n" * 200_000, "larger than 0.5 MB"),
        ("broken.parquet", b"PAR1 nothing", "is not a Parquet file"),
    ],
)
def test_a_bad_file_is_told_in_the_page(browser, address, name, content, told):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_selector("[data-example]")
    page.set_input_files("#file", given(name, content))
    page.wait_for_selector("#problem:not([hidden])")
    assert told in page.inner_text("#problem")
    assert name in page.inner_text("#problem")
    assert page.is_hidden("#columns")
    page.close()


def test_an_audit_that_fails_says_why_and_one_can_be_given_up(opened):
    page, _ = opened
    page.set_input_files("#file", given("people.csv", b"a,b,y\n1,2,3\n,5,6\n7,8,9\n1,1,0\n"))
    offered(page)
    assert page.input_value("#missing") == "impute"
    page.select_option("#missing", "error")
    page.click("#columns button[type=submit]")
    page.wait_for_selector("#problem:not([hidden])", timeout=PATIENCE)
    assert "choose what to do with empty values" in page.inner_text("#problem")
    page.click("#again a")
    page.select_option("#model", "process")
    page.click("[data-example=digits]")
    page.wait_for_selector("#stages li.now", timeout=PATIENCE)
    page.click("#give-up")
    page.wait_for_selector("#problem:not([hidden])", timeout=PATIENCE)
    assert "cancelled" in page.inner_text("#problem")
    page.goto(page.url.split("/jobs")[0])
    assert "cancelled" in page.inner_text("#jobs")
