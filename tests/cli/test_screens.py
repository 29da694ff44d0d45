"""One golden screen for each verb; with RENEW_SCREENS=1 they are written anew."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

from leakscope.cli import main

FOLDER = Path(__file__).parent / "screens"

SCREENS = {
    "audit": "audit --example diabetes --model ridge --set alpha=1 --top 3 --run-dir before",
    "audit_after": "audit --example diabetes --model ridge --set alpha=10 --top 3 --explain "
    "--run-dir after",
    "audit_process": "audit --example wine --model rbf --set noise_variance=0.1 --top 3 "
    "--run-dir process",
    "verify": "verify process --records 2 --draws 200",
    "compare": "compare before after",
    "advise": "advise before --target-advantage 0.3",
    "report": "report before",
    "erase": "erase before --record 169",
    "decide": "decide before --threshold-advantage 0.5 --prior 0.01 --output signed",
    "measure": "measure --member normal:0,1.4 --nonmember normal:0,0.7",
    "plan_linear": "plan linear --n 100 --p 400 --dim 3000 --sigma 1",
    "plan_lasso": "plan lasso --alpha 0.5 --rho 0.1 --sigma-xi 0.1 --lam 1 --sigma-eta 0.2",
}


AUDITS = ("audit", "audit_after", "audit_process")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the runs that other verbs read."""
    folder = tmp_path_factory.mktemp("screens")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for name in AUDITS:
            assert main(SCREENS[name].split()) == 0
    return folder


def masked(text: str) -> str:
    """Without what differs between two runs or machines: hashes, sizes, the last digits."""
    text = re.sub(r"[0-9a-f]{64}", "HASH", text)
    text = re.sub(r"\(\d\.\d MB", "(SIZE", text)
    text = re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.2g}", text)
    return re.sub(" {2,}", "  ", text)


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name, place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path if name in AUDITS else place)
    monkeypatch.setenv("COLUMNS", "80")
    status = main(SCREENS[name].split())
    screen = f"{masked(capsys.readouterr().out)}status {status}\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("RENEW_SCREENS"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")
