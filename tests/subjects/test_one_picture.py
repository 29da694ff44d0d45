"""Of one run the table, the ROC, the AUC and the KL are of the same laws, whatever the kind."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from nearest_neighbours import NearestNeighbours
from scipy import integrate
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import results
from leakscope.results import Audit, Trust
from leakscope.results.kinds import KINDS
from leakscope.results.reader import read_run
from leakscope.results.trust import UNCHECKED
from leakscope.settings.audit import REGISTERED
from leakscope.subjects import PosteriorLaws
from leakscope.subjects.laws import MEASURES

X, Y = load_diabetes(return_X_y=True)
W, V = load_wine(return_X_y=True)


def audits() -> dict[str, Audit]:
    few, labels = X[:80], Y[:80] / 100.0
    wine = StandardScaler().fit_transform(W)
    before = dict(KINDS)
    results.register("knn", NearestNeighbours)
    cells, kind = (part[:80] for part in load_breast_cancer(return_X_y=True))
    neighbours = leakscope.audit(cells, kind, model=KNeighborsClassifier(3).fit(cells, kind))
    _ = neighbours.answer(), neighbours.laws
    KINDS.clear()
    KINDS.update(before)
    REGISTERED.discard("knn")
    return {
        "ridge": leakscope.audit(X, Y, model=Ridge(alpha=0.1).fit(X, Y)),
        "label": leakscope.audit(
            wine, V > 0, model=LogisticRegression(C=0.1).fit(wine, V > 0), observes="label"
        ),
        "training": leakscope.audit(
            W, V, train=GradientBoostingClassifier(n_estimators=5, random_state=0)
        ),
        "process": leakscope.audit(few, labels, kernel="rbf", noise_variance=0.1),
        "neighbours": neighbours,
    }


@pytest.fixture(scope="module")
def found() -> dict[str, Audit]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audits()


@pytest.mark.parametrize("name", ["ridge", "label", "training", "process", "neighbours"])
def test_table_roc_auc_and_kl_agree(found: dict[str, Audit], name: str) -> None:
    audit = found[name]
    laws, first = audit.laws, int(np.argsort(-audit.advantage)[0])
    middle = int(audit.order[len(audit.order) // 2])
    for row in (first, middle):
        curve = laws.roc(row)
        area = float(integrate.trapezoid(curve.tpr, curve.fpr))
        assert area == pytest.approx(audit.auc[row], abs=2e-3)
        for fpr, values in audit.tpr_at_fpr.items():
            assert np.interp(fpr, curve.fpr, curve.tpr) == pytest.approx(values[row], abs=5e-3)
        highest = float(np.max(curve.tpr - curve.fpr))
        if isinstance(laws, PosteriorLaws):
            # The mean of the best tests' gains is at least the gain of the mean of their ROCs.
            assert highest <= audit.advantage[row] + 1e-3
        else:
            # A corner of the ROC, as of a yes or no, may lie between two points of the curve.
            assert highest == pytest.approx(audit.advantage[row], abs=1e-2)
    for column, measure in MEASURES.items():
        again = laws.measured(measure)
        np.testing.assert_allclose(again, audit.table.of(column), atol=1e-9 + laws.tolerance)


def test_a_report_draws_the_roc_of_its_own_table(found: dict[str, Audit], tmp_path: Path) -> None:
    audit = found["training"]
    run = read_run(audit.write(tmp_path / "run"))
    arrays = run.arrays(("roc_ranks", "roc_fpr", "roc_tpr"))
    for rank, tpr in zip(arrays["roc_ranks"].tolist(), arrays["roc_tpr"], strict=True):
        row = int(audit.order[rank - 1])
        for fpr, values in audit.tpr_at_fpr.items():
            drawn = np.interp(fpr, arrays["roc_fpr"], tpr)
            assert drawn == pytest.approx(values[row], abs=5e-3)


def test_the_posterior_is_that_of_the_run_when_it_is_opened_again(
    found: dict[str, Audit], tmp_path: Path
) -> None:
    audit = found["training"]
    again = Audit.open(audit.write(tmp_path / "run"))
    assert isinstance(again.laws, PosteriorLaws)
    np.testing.assert_allclose(again.laws.measured(MEASURES["auc"]), again.auc, atol=1e-12)


class TestTrustIsEarned:
    def test_there_is_no_trust_without_a_check(self) -> None:
        with pytest.raises(ValueError, match="not named"):
            Trust((), np.zeros(3, dtype=int))
        with pytest.raises(ValueError, match="must say what"):
            Trust.checked(" ", np.ones(3, dtype=bool))
        assert not Trust.nobody(3).confirmed.any()

    def test_what_nobody_looked_at_is_not_trusted(self) -> None:
        found = Trust.checked("seen", np.ones(3, bool), looked=np.array([True, False, True]))
        assert found.confirmed.tolist() == [True, False, True]
        assert found.passed[1] == UNCHECKED
        assert found.why(1) == "not checked"

    def test_a_file_cannot_state_trust_without_a_check(
        self, found: dict[str, Audit], tmp_path: Path
    ) -> None:
        path = tmp_path / "result.json"
        results.write_result(found["ridge"], path)
        content = json.loads(path.read_text())
        content["records"][0]["check"] = None
        path.write_text(json.dumps(content))
        with pytest.raises(leakscope.InputError, match="name a check"):
            Audit.open(path)
        content["records"][0]["confirmed"] = False
        path.write_text(json.dumps(content))
        again = Audit.open(path)
        assert not again.confirmed[0]
        assert again.confirmed[1]
        content["records"][0] |= {"confirmed": True, "check": 7}
        path.write_text(json.dumps(content))
        with pytest.raises(leakscope.InputError, match="not named"):
            Audit.open(path)

    @pytest.mark.parametrize("name", ["ridge", "label", "training", "process", "neighbours"])
    def test_every_kind_names_its_checks(self, found: dict[str, Audit], name: str) -> None:
        audit = found[name]
        assert audit.checks
        assert all(audit.trust.why(row) in audit.checks for row in np.flatnonzero(audit.confirmed))
