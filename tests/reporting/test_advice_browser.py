"""The page of an advice in a real browser, where there is one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from leakscope.cli import main

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("advice-page")
    before = os.getcwd()
    os.chdir(folder)
    try:
        audit = ["audit", "--example", "iris", "--model", "rbf", "--set", "noise_variance=0.1"]
        assert main([*audit, "--run-dir", "run", "--top", "0"]) == 0
        asked = ["--target-advantage", "0.2", "--html", "advice.html"]
        assert main(["advise", "run", *asked]) == 0
    finally:
        os.chdir(before)
    return folder / "advice.html"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_chart_is_drawn_and_nothing_is_asked_of_a_network(page_file: Path, width: int) -> None:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=600_000
        )
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(600_000)
        troubles: list[str] = []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else troubles.append(request.url)
            ),
        )
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-drawn=yes]")
        lines = page.locator("#chart-error_against_leakage svg.marks .mark-line path")
        assert lines.count() == 3
        assert page.locator("#option-table tbody tr").count() >= 4
        assert "privacy cost of its own" in page.inner_text("main")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert troubles == []
        browser.close()
