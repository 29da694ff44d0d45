"""The page in a real browser, from a table to its report; skipped where there is none."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from visits import write_visits

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

# An audit imports much, on machines that do other things too.
PATIENCE = 300_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    write_visits(tmp_path)
    command = [sys.executable, "-m", "leakscope", "serve"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        match = re.search(r"http://\S+", process.stdout.readline())
        assert match
        yield match[0]
        process.send_signal(signal.SIGINT)


def test_from_a_table_of_visits_to_the_report_of_its_patients(address: str) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_default_timeout(PATIENCE)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        page.select_option("#f-file", "visits.csv")
        page.wait_for_selector("#f-target option[value=cost]", state="attached")
        page.select_option("#f-target", "cost")
        page.select_option("#f-model", "ridge")
        # Whose the rows are is asked, and nothing is run before it is answered.
        page.wait_for_selector("#problem:not([hidden])")
        assert page.is_disabled("#run")
        assert page.input_value("#f-group_column") == "?"
        page.select_option("#f-group_column", "patient")
        page.wait_for_selector("#run:enabled")
        command = page.inner_text("#command").splitlines()[0].split()
        assert command[:2] == ["leakscope", "audit"]
        assert command[command.index("--group") + 1] == "patient"
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        page.click("#run")
        with page.expect_popup() as opened:
            page.click("#links a")
        report = opened.value
        report.wait_for_selector("h1")
        assert "40" in report.inner_text("body")
        assert page.inner_text("#runs").startswith("leakscope-runs/visits-1")
        assert errors == []
        browser.close()
