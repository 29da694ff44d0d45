"""Runs and records that somebody edited: refused, or told, by every verb that reads them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.results.decision import NO_HASH, sealed_text

PICTURE = "![a](https://example.org/a.png)"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and the run of its audit."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=X @ [1.0, 2.0] + rng.normal(size=80))
    table["where"] = ["north" if i % 2 else PICTURE for i in range(80)]
    table.to_csv(folder / "d.csv", index=False)
    line = ["audit", str(folder / "d.csv"), "--target", "y", "--model", "ridge", "--set", "alpha=1"]
    line += ["--ignore", "where", "--by", "where"]
    assert main([*line, "--run-dir", str(folder / "run")]) == 0
    return folder


def unsealed(made: Path, place: Path) -> Path:
    """The run without its digests, every advantage set to 0.01."""
    shutil.copytree(made / "run", place)
    (place / "digests.json").unlink()
    file = place / "result.json"
    file.write_text(re.sub(r'("advantage": )[0-9.e-]+', r"\g<1>0.01", file.read_text()))
    return place


def test_decide_does_not_approve_a_run_without_digests(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unsealed(made, tmp_path / "run")
    line = ["decide", "--threshold-advantage", "0.5", "--output"]
    assert main([*line, str(tmp_path / "one"), str(run)]) == 4
    told = " ".join(capsys.readouterr().out.split())
    assert "Cannot be approved: run has no checksum" in told
    assert main([*line, str(tmp_path / "two"), str(run), "--decision", "approved"]) == 2
    assert "no checksum" in capsys.readouterr().err
    # The result alone, without the run that seals it, is no better.
    copy = tmp_path / "copy.json"
    shutil.copy(made / "run" / "result.json", copy)
    for given, obstacle in ((copy, True), (made / "run", False), (made / "run/result.json", False)):
        found = leakscope.decide(given, threshold_advantage=0.99)
        assert any("no checksum" in one for one in found.obstacles) is obstacle


def test_compare_and_advise_say_so(made: Path, tmp_path: Path) -> None:
    run = unsealed(made, tmp_path / "run")
    found = leakscope.compare(made / "run", run)
    assert found.warnings[0].startswith(f"{run}/result.json has no checksum")
    assert "digest" not in str(leakscope.compare(made / "run", made / "run").warnings)
    target = leakscope.AuditTarget("advantage", 0.9)
    assert "no checksum" in leakscope.advise(run, target).warnings[0]


def test_a_page_that_was_replaced_is_seen(made: Path, tmp_path: Path) -> None:
    decided = leakscope.decide(made / "run", threshold_advantage=0.99)
    folder = leakscope.reporting.write_decision(decided, tmp_path / "signed")
    assert leakscope.deciding.check_record(folder) == decided.record_hash
    for name in ("decision.html", "decision.md"):
        whole = (folder / name).read_text(encoding="utf-8")
        own = re.findall(r"file_hash: ([0-9a-f]{64})", whole)[-1]
        other = whole.replace(own, NO_HASH).replace("Thresholds", "Nothing to see")
        assert other != whole.replace(own, NO_HASH)
        (folder / name).write_text(sealed_text(other), encoding="utf-8")
        for given in (folder, folder / name):
            with pytest.raises(InputError, match="does not show the record"):
                leakscope.deciding.check_record(given)
        (folder / name).write_text(whole, encoding="utf-8")
    assert leakscope.deciding.check_record(folder / "decision.html")


def test_markdown_of_a_decision_fetches_nothing(made: Path) -> None:
    from leakscope.reporting.decision_page import decision_markdown

    text = decision_markdown(leakscope.decide(made / "run", threshold_advantage=0.99))
    assert "example.org" in text
    assert re.search(r"(?<!\\)\]\(", text) is None


CHANGES = {
    "nan": lambda array: np.full(array.shape, np.nan),
    "one number": lambda array: array.ravel()[:1],
    "text": lambda array: np.full(array.shape, "a"),
    "none": lambda array: np.zeros(0),
    "one more dimension": lambda array: np.zeros((2, *array.shape)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_arrays_that_were_changed_and_sealed_again(
    change: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made / "run", run)
    with np.load(run / "arrays.npz") as arrays:
        changed: dict[str, Any] = {name: CHANGES[change](array) for name, array in arrays.items()}
    np.savez(run / "arrays.npz", **changed)
    sealed = json.loads((run / "digests.json").read_text())
    sealed["arrays.npz"] = hashlib.sha256((run / "arrays.npz").read_bytes()).hexdigest()
    (run / "digests.json").write_text(json.dumps(sealed))
    assert main(["report", str(run)]) == 2
    told = capsys.readouterr().err
    assert "again" in told
    assert told.count("\n") == 1
    assert not (run / "report.html").exists()
