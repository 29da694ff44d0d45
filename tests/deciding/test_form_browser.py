"""The form in a real browser, where there is one: on both widths, and as a printed page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import leakscope
from leakscope.reporting import write_decision

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# An A4 page at 96 dots an inch, less margins of 15 mm above and below.
PRINTED_HEIGHT = 1123 - 2 * 57


@pytest.fixture(scope="module")
def form(filed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    long = "a rather long sentence about who receives it, " * 6
    record = leakscope.decide(
        filed / "run", threshold_advantage=0.3, threshold_ppv=0.4, prior=0.01, recipient=long
    )
    return write_decision(record, tmp_path_factory.mktemp("form") / "form") / "decision.html"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_form_is_read_on_both_widths_and_prints(form: Path) -> None:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=600_000
        )
        troubles: list[str] = []
        for width in (1280, 400):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.set_default_timeout(600_000)
            page.on("console", lambda message: troubles.append(message.text))
            page.on("request", lambda request: _elsewhere(request.url, troubles))
            page.goto(form.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("#coverage-table tbody tr").count() >= 15
            assert page.locator("#reconciliation-table tbody tr").count() == 1
            wide = page.evaluate(
                "document.getElementById('reconciliation-table').getBoundingClientRect().right"
            )
            assert wide <= width
            # No column of who is exposed, or against whom, is cut off.
            for name in ("#exposed", "#against + .scroll table"):
                right = f"document.querySelector('{name}').getBoundingClientRect().right"
                assert page.evaluate(right) <= width
        assert page.locator(".choice").count() >= 2
        page = browser.new_page(viewport={"width": 794 - 2 * 45, "height": PRINTED_HEIGHT})
        page.set_default_timeout(600_000)
        page.emulate_media(media="print")
        page.goto(form.as_uri())
        # What is signed stands on the first sheet, with the findings above it.
        end = "document.getElementById('first-page').getBoundingClientRect().bottom"
        assert page.evaluate(end) <= PRINTED_HEIGHT
        # Room for more than one line of why, and of conditions.
        for row in range(2):
            tall = f"document.querySelectorAll('.form tr.room')[{row}].offsetHeight"
            assert page.evaluate(tall) >= 60
        assert page.pdf(format="A4").startswith(b"%PDF")
        assert troubles == []
        browser.close()


def _elsewhere(address: str, troubles: list[str]) -> None:
    if not address.startswith(("file:", "data:")):
        troubles.append(address)
