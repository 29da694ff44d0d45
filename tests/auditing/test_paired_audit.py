"""A model that is not smooth through the verbs, as any other fitted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

import leakscope
from leakscope import subjects
from leakscope.cli import main
from leakscope.fitted import paired, paired_laws

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = X[:, 0] + rng.normal(size=90)


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "FITS", ((1e5, 16),))
    monkeypatch.setattr(paired_laws, "SPREAD_OVER", 4)
    monkeypatch.setattr(paired_laws, "MOST_EXPOSED", 2)


@pytest.mark.filterwarnings("ignore:The numbers of")
def test_python_takes_it_through_every_verb(tmp_path: Path) -> None:
    audit = leakscope.audit(X, Y, model=Lasso(alpha=0.05), explain=2)
    assert audit.model.name == "Lasso(alpha=0.05)"
    assert audit.details.models == 16
    assert len(audit.details.explanations) == 2
    run = audit.write(tmp_path / "run")
    stored = leakscope.Audit.open(run)
    assert "fitted on all records; 16 fits of parts" in stored.about.answer(
        stored, threshold=0.1, ids=True
    )[0]  # fmt: skip
    np.testing.assert_allclose(stored.laws.measures()["advantage"], stored.advantage, atol=1e-9)
    assert stored.laws.own_errors(np.arange(3))[1][0] == pytest.approx(30**-0.5)
    assert "refits with and without" in leakscope.report(run).read_text(encoding="utf-8")
    more = leakscope.audit(X, Y, model=Lasso(alpha=0.2))
    assert leakscope.compare(audit, more).shared == 90
    limit = 0.8 * float(audit.advantage.max())
    advice = leakscope.advise(audit, leakscope.AuditTarget(measure="advantage", value=limit))
    assert {"penalty (alpha)", "fewer features"} <= {one.name for one in advice.options}
    assert leakscope.verify(audit, models=40).differs == 0
    obstacles = leakscope.decide(run, threshold_advantage=0.99, prior=0.01).obstacles
    assert bool(obstacles) == (audit.untrusted > 0)


def test_a_file_is_read_and_opened_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    io = pytest.importorskip("skops.io")
    io.dump(Lasso(alpha=0.05).fit(X, Y), tmp_path / "lasso.skops")
    table, run = tmp_path / "table.csv", str(tmp_path / "run")
    np.savetxt(table, np.c_[X, Y], delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    told = [str(table), "--target", "y", "--model", str(tmp_path / "lasso.skops")]
    assert main(["audit", *told, "--run-dir", run, "--top", "3"]) == 0
    assert "Lasso(alpha=0.05)" in capsys.readouterr().out
    assert main(["verify", run, "--models", "40"]) == 0


@pytest.mark.filterwarnings("ignore:.* a member is answered", "ignore:The numbers of")
def test_a_corner_is_told_and_kept(tmp_path: Path) -> None:
    labels = np.where(X[:, 0] + rng.normal(size=90) > 0.0, "yes", "no")
    audit = leakscope.audit(X[:60], labels[:60], model=SVC(C=1.0, gamma=0.3))
    assert audit.details.corner == "margin"
    assert audit.observes == "scores"
    assert any("exactly a margin of 1" in one for one in audit.warnings)
    stored = leakscope.Audit.open(audit.write(tmp_path / "run"))
    np.testing.assert_allclose(stored.laws.measures()["advantage"], stored.advantage, atol=1e-9)
    assert stored.laws.noised(1.0).measures()["advantage"].max() < stored.advantage.max()


def test_the_lasso_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, run = tmp_path / "table.csv", str(tmp_path / "run")
    np.savetxt(table, np.c_[X, Y], delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    assert main(["audit", str(table), "--target", "y", "--model", "lasso", "--run-dir", run]) == 0
    assert "alpha by five folds; 16 fits of parts" in " ".join(capsys.readouterr().out.split())
    # Opened from the run alone, with the penalty that was chosen.
    audit = leakscope.Audit.open(Path(run))
    again = subjects.opened(audit)
    assert again.model.name == audit.model.name
    told = ["--model", "lasso", "--C", "1"]
    assert main(["audit", str(table), "--target", "y", *told]) == 2
    assert "--C does not belong to --model lasso" in capsys.readouterr().err
