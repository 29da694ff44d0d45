"""A run written from Python is as whole as the command's."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leakscope
from leakscope import InputError
from leakscope.auditing import write_run
from leakscope.cli import main
from leakscope.data import read_example
from leakscope.results.reader import read_run
from leakscope.settings import AuditSettings
from tests.audits import process_audit


def test_the_same_files_with_the_same_contents(tmp_path):
    dataset = read_example("iris")
    result = process_audit(dataset, AuditSettings())
    ours = result.write(tmp_path / "ours", dataset=dataset)
    theirs = tmp_path / "theirs"
    assert (
        main(
            [
                "audit",
                "--example",
                "iris",
                "--model",
                "rbf",
                "--run-dir",
                str(theirs),
                "--top",
                "0",
            ]
        )
        == 0
    )
    assert sorted(p.name for p in ours.iterdir()) == sorted(p.name for p in theirs.iterdir())
    assert (ours / "records.csv").read_text() == (theirs / "records.csv").read_text()
    with np.load(ours / "arrays.npz") as one, np.load(theirs / "arrays.npz") as other:
        assert set(one.files) == set(other.files)
        assert all(np.array_equal(one[name], other[name], equal_nan=True) for name in one.files)
    contents = [json.loads((run / "result.json").read_text()) for run in (ours, theirs)]
    for content in contents:
        del content["created"], content["timing"]
    assert contents[0] == contents[1]
    assert {p.stat().st_mode & 0o777 for p in ours.iterdir()} == {0o600}


def test_arrays_have_a_whole_report(tmp_path):
    from leakscope.reporting.writing import report_html

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    result = leakscope.audit(X, y, kernel="rbf")
    page = report_html(read_run(write_run(result, tmp_path / "run")))
    assert "This run holds no" not in page
    assert "chart-roc_log" in page


def test_a_run_is_not_written_over(tmp_path):
    rng = np.random.default_rng(0)
    result = leakscope.audit(rng.normal(size=(30, 2)), rng.normal(size=30), kernel="rbf")
    result.write(tmp_path / "run")
    with pytest.raises(InputError, match="already there"):
        result.write(tmp_path / "run")


def test_pictures_of_the_most_exposed_are_kept(tmp_path):
    dataset = read_example("digits")
    result = process_audit(dataset, AuditSettings(sensitivity=False))
    run = read_run(result.write(tmp_path / "run", dataset=dataset))
    assert [p.record_id for p in run.gallery.pictures] == list(result.ranking()[:12])
