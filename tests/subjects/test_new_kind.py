"""A kind of model that leakscope does not know, in one file and one line, through every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nearest_neighbours import NearestNeighbours, majority_chances
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier

import leakscope
from leakscope import results
from leakscope.results.kinds import KINDS
from leakscope.settings.audit import REGISTERED

FILE = Path(__file__).with_name("nearest_neighbours.py")


@pytest.fixture(autouse=True)
def registered() -> Any:
    before = dict(KINDS)
    results.register("knn", NearestNeighbours)
    yield
    KINDS.clear()
    KINDS.update(before)
    REGISTERED.discard("knn")


@pytest.fixture(scope="module")
def records() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:120], y[:120]


def table(records: tuple[np.ndarray, np.ndarray], folder: Path) -> Path:
    X, y = records
    lines = [",".join([*(f"x{c}" for c in range(4)), "y"])]
    lines += [
        ",".join([*(f"{v:.6g}" for v in row[:4]), f"c{label}"])
        for row, label in zip(X, y, strict=True)
    ]
    path = folder / "cells.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_it_is_one_file_of_150_lines() -> None:
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 150


def test_the_page_shows_that_file() -> None:
    page = FILE.parents[2] / "docs" / "howto" / "new_kind.md"
    assert FILE.read_text(encoding="utf-8") in page.read_text(encoding="utf-8")


def test_its_chances_are_those_of_many_training_sets() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(14, 2)), rng.integers(0, 2, 14)
    inside, outside = majority_chances(X, y, 3)
    # Every training set of the other 13 records, each as likely as any other.
    for record in (0, 5):
        others = np.delete(np.arange(14), record)
        found: dict[bool, list[float]] = {True: [], False: []}
        for mask in range(2**13):
            chosen = others[[(mask >> place) & 1 == 1 for place in range(13)]]
            for own in (True, False):
                rows = np.append(chosen, record) if own else chosen
                if len(rows) < 3:
                    continue
                near = rows[np.argsort(((X[rows] - X[record]) ** 2).sum(axis=1), kind="stable")[:3]]
                found[own].append(float((y[near] == y[record]).sum() > 1.5))
        assert np.mean(found[True]) == pytest.approx(inside[record], abs=2e-3)
        assert np.mean(found[False]) == pytest.approx(outside[record], abs=2e-3)


def test_python_takes_it_through_every_verb(
    records: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = records
    audit = leakscope.audit(X, y, model=KNeighborsClassifier(5).fit(X, y))
    assert audit.subject == "knn"
    assert audit.confirmed.all()
    assert "without an approximation" in audit.trust.why(0)
    run = audit.write(tmp_path / "run")
    again = leakscope.Audit.open(run)
    np.testing.assert_allclose(again.laws.measures()["advantage"], again.advantage, atol=1e-12)
    page = leakscope.report(run).read_text(encoding="utf-8")
    assert "KNeighborsClassifier(n_neighbors=5)" in page
    assert "without an approximation" in page
    more = leakscope.audit(X, y, model=KNeighborsClassifier(15).fit(X, y))
    compared = leakscope.compare(audit, more)
    assert compared.shared == len(y)
    assert any(entry.what == "model" for entry in compared.differences)
    limit = 0.8 * float(audit.advantage.max())
    advice = leakscope.advise(audit, leakscope.AuditTarget(measure="advantage", value=limit))
    best = advice.best
    assert best is not None
    assert best.name == "more neighbours"
    assert best.setting["k"] > 5
    assert best.cost is None
    checked = leakscope.verify(audit, records=2, draws=150)
    assert checked.differs == 0
    assert checked.agrees > 0
    decision = leakscope.decide(run, threshold_advantage=0.99, prior=0.01)
    assert not decision.obstacles


def test_the_command_line_takes_it_by_name(
    records: tuple[np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from leakscope.cli import main

    file, run = str(table(records, tmp_path)), str(tmp_path / "run")
    asked = ["audit", file, "--target", "y", "--model", "knn", "--run-dir", run, "--top", "3"]
    assert main(asked) == 0
    assert "KNeighborsClassifier(n_neighbors=5)" in capsys.readouterr().out
    # From the run alone: the model is opened again, its data checked by digest.
    assert main(["verify", run, "--records", "1", "--draws", "120"]) in (0, 3)
    assert main(["advise", run, "--target-advantage", "0.05"]) == 0
    assert main(["report", run]) == 0
    Path(file).write_text(Path(file).read_text().replace("c0", "c1", 1))
    assert main(["verify", run]) == 2
    assert "have changed since" in capsys.readouterr().err


def test_a_run_of_a_kind_that_is_not_there_is_refused(
    records: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = records
    run = leakscope.audit(X, y, model=KNeighborsClassifier(5).fit(X, y)).write(tmp_path / "run")
    del KINDS["knn"]
    with pytest.raises(leakscope.InputError, match="no kind of model called 'knn'"):
        leakscope.Audit.open(run)
