"""Files that kept a record, dropped another, or let a scaler see it are told apart."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import InputError
from leakscope.cli import main
from leakscope.results import Audit, Erasure, read_result

X, Y = load_breast_cancer(return_X_y=True)
EVERYONE = np.arange(len(Y))


def fitted(rows: np.ndarray, C: float = 1.0, **more: Any) -> Any:
    how = more or {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, **how))
    return model.fit(X[rows], Y[rows])


@pytest.fixture(scope="module")
def audit() -> Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leakscope.audit(X, Y, model=fitted(EVERYONE))


@pytest.fixture(scope="module")
def record(audit: Audit) -> int:
    return int(audit.records[0].record_id)


def test_each_file_is_told_for_what_it_is(audit: Audit, record: int) -> None:
    rest, other = np.delete(EVERYONE, record), int(audit.records[1].record_id)
    scaler = StandardScaler().fit(X)
    inner = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)
    inner.fit(scaler.transform(X[rest]), Y[rest])
    files = {
        "erased": fitted(rest),
        "kept": fitted(EVERYONE),
        "other records": fitted(np.delete(EVERYONE, other)),
        "other penalty": fitted(rest, C=2.0),
        "traces": Pipeline([("scale", scaler), ("fit", inner)]),
    }
    for expected, after in files.items():
        found = leakscope.erase(audit, records=[record], after=after)
        assert found.found == expected, (expected, found.verdict)
        assert found.met is (expected in ("erased", "other penalty"))
    assert leakscope.erase(audit, records=[record], after=files["other records"]).lacking == [other]


def test_a_solver_that_stops_early_is_told(audit: Audit, record: int) -> None:
    """By default lbfgs leaves more than some records move; the answer follows its tolerance."""
    rest = np.delete(EVERYONE, record)
    found = leakscope.erase(audit, records=[record], after=fitted(rest, max_iter=2000))
    assert found.found == "erased"
    assert "stopped early" in found.warnings[0]
    kept = leakscope.erase(audit, records=[record], after=fitted(EVERYONE, max_iter=2000))
    assert kept.found == "kept"
    least = int(audit.records[-1].record_id)
    unknown = leakscope.erase(
        audit, records=[least], after=fitted(np.delete(EVERYONE, least), max_iter=2000)
    )
    assert unknown.met is None
    assert "tol" in unknown.warnings[0]


def test_the_exact_fit_is_made_and_written(audit: Audit, record: int, tmp_path: Path) -> None:
    rows = [record, 3, 200]
    made = leakscope.erase(audit, records=rows, save=tmp_path / "after.skops")
    assert made.made
    assert made.met
    assert made.file == "after.skops"
    after = skops.io.load(tmp_path / "after.skops")
    refit = fitted(np.setdiff1d(EVERYONE, rows))
    assert np.allclose(after.predict_proba(X), refit.predict_proba(X), atol=1e-9)
    checked = leakscope.erase(audit, records=rows, after=tmp_path / "after.skops")
    assert checked.found == "erased"
    assert [one.saw for one in checked.traces] == [False]
    with pytest.raises(InputError, match="leave out the model after"):
        leakscope.erase(audit, records=rows, after=after, save=tmp_path / "b.skops")


@pytest.mark.parametrize("model", [RidgeClassifier(), Ridge(3.0), RidgeCV(alphas=[0.1, 1.0, 10.0])])
def test_other_fits(model: Any) -> None:
    A, b = load_diabetes(return_X_y=True)
    b = np.digitize(b, [100.0, 200.0]) if isinstance(model, RidgeClassifier) else b
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(A, b, model=clone(model).fit(A, b))
    top = [int(audit.records[k].record_id) for k in (0, 1)]
    rest = np.setdiff1d(np.arange(len(b)), top)
    assert leakscope.erase(audit, records=top, after=clone(model).fit(A[rest], b[rest])).met
    assert not leakscope.erase(audit, records=top, after=clone(model).fit(A, b)).met
    assert leakscope.erase(audit, records=top).made


def test_a_file_that_holds_the_rows() -> None:
    A, b = load_diabetes(return_X_y=True)
    A, b = A[:120], b[:120]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(A, b, model=KernelRidge(alpha=1.0).fit(A, b))
    kept = leakscope.erase(audit, records=[5], after=KernelRidge(alpha=1.0).fit(A, b))
    assert kept.found == "kept"
    assert any("X_fit_" in one.part for one in kept.traces)
    rest = np.delete(np.arange(120), 5)
    gone = leakscope.erase(audit, records=[5], after=KernelRidge(alpha=1.0).fit(A[rest], b[rest]))
    assert gone.found == "erased"


def test_who_stays_is_audited_again(audit: Audit, record: int) -> None:
    """The exposure after is that of an audit of the refit."""
    rest = np.delete(EVERYONE, record)
    found = leakscope.erase(audit, records=[record])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = leakscope.audit(X[rest], Y[rest], model=fitted(rest))
    assert found.exposed_after == int((again.advantage >= 0.1).sum())
    assert found.exposed_before == int((np.delete(audit.advantage, record) >= 0.1).sum())


def test_two_models_of_a_training(tmp_path: Path) -> None:
    """Forests: those who left are seen, those who stayed are not called erased."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(160, 5))
    b = (A[:, 0] + 1.5 * rng.normal(size=160) > 0).astype(int)
    forest = RandomForestClassifier(30, random_state=0)
    audit = leakscope.audit(A, b, model=forest, models=8)
    gone = np.arange(20)
    before = clone(forest).set_params(random_state=1).fit(A, b)
    rest = np.arange(20, 160)
    after = clone(forest).set_params(random_state=2).fit(A[rest], b[rest])
    again = clone(forest).set_params(random_state=3).fit(A, b)
    found = leakscope.erase(audit, records=gone.tolist(), before=before, after=after)
    assert found.met is True
    assert found.p_value < 0.01
    assert found.power > 0.8
    kept = leakscope.erase(audit, records=gone.tolist(), before=before, after=again)
    assert kept.met is False
    assert kept.p_value > 0.05
    # As stored, in the order of its ranks, it says the same.
    stored = Audit.open(audit.write(tmp_path / "run"))
    again_found = leakscope.erase(
        stored.with_memory(None, audit.examined), records=gone.tolist(), before=before, after=after
    )
    assert (again_found.p_value, again_found.power) == (found.p_value, found.power)
    with pytest.raises(InputError, match="two models"):
        leakscope.erase(audit, records=[0])


def test_what_is_refused(audit: Audit) -> None:
    with pytest.raises(InputError, match="no record 'nobody'"):
        leakscope.erase(audit, records=["nobody"])
    with pytest.raises(InputError, match="name the records"):
        leakscope.erase(audit, records=[])
    with pytest.raises(InputError, match="the model after is a Ridge"):
        leakscope.erase(audit, records=[1], after=Ridge().fit(X, Y))
    with pytest.raises(InputError, match="whole class"):
        leakscope.erase(audit, records=np.flatnonzero(Y == 0).tolist())
    with pytest.raises(InputError, match="does not work on a Gaussian process"):
        leakscope.erase(leakscope.audit(X[:30, :2], Y[:30] * 1.0, model="rbf"), records=[1])


def test_command_line_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    audited = "audit --example diabetes --model ridge --set alpha=0.1 --run-dir run --top 0"
    assert main(audited.split()) == 0
    assert main(["erase", "run", "--record", "169", "--save", "w.skops"]) == 0
    # A stored table is in the order of its ranks: the row that left is still that of the data.
    features, target = load_diabetes(return_X_y=True, scaled=False)
    rest = np.delete(np.arange(442), 169)
    scaled = StandardScaler().fit(features).transform(features)
    exact = Ridge(alpha=0.1).fit(scaled[rest], target[rest])
    made: Any = skops.io.load(tmp_path / "w.skops")
    np.testing.assert_allclose(made.coef_ * target.std(), exact.coef_, rtol=1e-8)
    capsys.readouterr()
    assert main(["erase", "run", "--record", "170", "--after", "w.skops", "--json", "e.json"]) == 3
    assert capsys.readouterr().out.startswith("Not erased: this model lacks 1 other record")
    found = read_result(tmp_path / "e.json")
    assert isinstance(found, Erasure)
    assert found.lacking == [169]
    assert main(["report", "e.json", "--output", "e.html"]) == 0
    assert main(["report", "e.json", "--output", "r.html", "--redact"]) == 0
    assert "169" in (tmp_path / "e.html").read_text()
    assert "169" not in (tmp_path / "r.html").read_text()
    assert main(["erase", "run", "--record", "170", "--save", "run/result.json"]) == 2
