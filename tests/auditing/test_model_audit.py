"""``audit(X, y, model=...)``: the user's own model, its answer, its run, and what is refused."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import data, fitted, measures
from leakscope.errors import InputError
from leakscope.results import Audit
from leakscope.results.reader import read_run
from leakscope.settings import AuditSettings, ModelSettings
from leakscope.subjects.laws import noise_for
from tests.audits import estimator_audit, model_audit

X10, Y10 = load_diabetes(return_X_y=True)
XB, YB = load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X, y, Ridge(alpha=1.0).fit(X, y)


@pytest.fixture(scope="module")
def audited(diabetes):
    X, y, model = diabetes
    return leakscope.audit(X, y, model=model, record_ids=[f"p{row}" for row in range(len(y))])


def test_every_number_is_a_measure_of_the_fitted_laws_in_record_order(diabetes, audited):
    pair = fitted.laws_of(diabetes[2], diabetes[0], diabetes[1]).law_pair()
    np.testing.assert_array_equal(audited.advantage, measures.advantage(pair))
    # Measures that are made in one pass may be rounded otherwise.
    np.testing.assert_allclose(audited.kl, measures.kl(pair), rtol=1e-14)
    np.testing.assert_array_equal(audited.kl_reverse, measures.kl(pair, "member_to_nonmember"))
    np.testing.assert_array_equal(audited.auc, measures.auc(pair))
    for fpr in (0.01, 0.001):
        np.testing.assert_array_equal(audited.tpr_at_fpr[fpr], measures.tpr_at_fpr(pair, fpr))
    np.testing.assert_array_equal(audited.law_pair().member.mean, pair.member.mean)


def test_the_level_agrees_with_refits_of_the_same_estimator(diabetes, audited):
    # 600 ridge regressions on random halves, solved here and not by the library's shadow models.
    X, y, _ = diabetes
    rng = np.random.default_rng(7)
    inside = rng.random((600, len(y))) < 0.5
    scores = np.empty(inside.shape)
    for number, chosen in enumerate(inside):
        design, target = X[chosen], y[chosen]
        centre, level = design.mean(axis=0), target.mean()
        gram = (design - centre).T @ (design - centre) + np.eye(X.shape[1])
        coefficients = np.linalg.solve(gram, (design - centre).T @ (target - level))
        scores[number] = level + (X - centre) @ coefficients
    for row in audited.order[:40]:
        seen = scores[inside[:, row], row], scores[~inside[:, row], row]
        shift = seen[0].mean() - seen[1].mean()
        error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in seen))
        assert abs(shift - audited.examined.fitted_laws.shift[row]) < 4.5 * error
        spread = seen[1].std(ddof=1)
        assert abs(spread / audited.examined.fitted_laws.nonmember_sd[row] - 1.0) < 4.5 / np.sqrt(
            2 * 290
        )


def test_frame_ranking_and_answer(audited):
    frame = audited.to_frame()
    assert tuple(frame["record_id"]) == audited.ranking()
    assert (np.diff(frame["advantage"]) <= 0.0).all()
    first, second, third, attacker = audited.answer()
    assert first == (
        "Examined: Ridge(alpha=1), as fitted by you; arrays, 442 records; laws of one fit."
    )
    assert second.startswith(
        "Most exposed by advantage: record p169, advantage 0.41, TPR 0.59% at 0.1% FPR"
    )
    # Another record has the largest TPR at a low FPR.
    largest = int(np.argmax(audited.tpr_at_fpr[0.001]))
    assert f"Largest TPR at 0.1%: record {audited.record_ids[largest]}, " in second
    assert "Largest TPR at 0.1%: another record, " in audited.answer(ids=False)[1]
    exposed = int((audited.advantage >= 0.1).sum())
    assert third.startswith(f"{exposed} of 442 records have an advantage of 0.1 or more.")
    assert "p169" not in " ".join(audited.answer(ids=False))
    assert attacker == audited.attacker
    assert "not examined" not in audited.verdict


def test_noise_on_the_answers_keeps_every_record_at_the_threshold(audited):
    noised = measures.advantage(audited.laws.noised(audited.details.answer_noise).pair())
    assert 0.09 < float(noised.max()) < 0.1
    assert noise_for(audited.laws, measures.advantage, 0.999) == 0.0


def test_run_directory_is_read_back_whole(audited, tmp_path):
    run = read_run(audited.write(tmp_path / "run"))
    assert isinstance(run.document, Audit)
    assert run.document == audited
    assert run.document.records[0].record_id == "p169"
    assert run.document.model.parameters["alpha"] == 1.0
    with (tmp_path / "run" / "records.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[0]["tpr_at_fpr_0_01"]) == audited.tpr_at_fpr[0.01][169]
    arrays = run.arrays(["member_mean", "nonmember_sd"])
    np.testing.assert_array_equal(arrays["member_mean"], audited.examined.fitted_laws.member_mean)


def test_population_and_what_is_observed(diabetes):
    X, y, model = diabetes
    fresh = leakscope.audit(X, y, model=model, question="population")
    assert (fresh.examined.fitted_laws.question, fresh.examined.fitted_laws.fraction) == (
        "population",
        1.0,
    )
    assert "fresh draws" in fresh.attacker
    few = leakscope.audit(X, y, model=model, fraction=0.2, observes="residual")
    assert few.provenance["observes"] == "residual"
    assert np.median(few.advantage) > np.median(fresh.advantage)


def test_lumpy_records_are_said_and_warned_of():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0)).fit(X, y)
    result = leakscope.audit(X, y, model=model)
    count = int((~result.confirmed).sum())
    assert count > 0
    assert f"{count} of all are not confirmed" in result.answer()[2]
    assert str(count) in result.doubt


def _frame():
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"a": X10[:, 2], "b": X10[:, 3], "c": np.where(X10[:, 1] > 0, "m", "f")})
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["c"]))
    labels = pd.Series(np.where(Y10 > 140, "high", "low"))
    return frame, labels, make_pipeline(columns, LogisticRegression(C=0.3))


def _grid():
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 1.1]})
    return X10, Y10, search


def _sparse():
    from scipy import sparse

    return sparse.csr_matrix(StandardScaler().fit_transform(XB)), YB, LogisticRegression(C=0.01)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (_frame, "ColumnTransformer → LogisticRegression(C=0.3)"),
        (_grid, "StandardScaler → Ridge(alpha=1)"),
        (_sparse, "LogisticRegression(C=0.01)"),
        (lambda: (X10.tolist(), Y10.tolist(), Ridge()), "Ridge(alpha=1)"),
    ],
)
def test_frames_searches_sparse_tables_and_lists(given, name, tmp_path):
    X, y, model = given()
    result = leakscope.audit(X, y, model=model.fit(X, y))
    assert result.model.name == name
    assert read_run(result.write(tmp_path / "run")).document == result


def test_all_probabilities_of_several_classes_say_at_least_as_much_as_the_own_log_odds():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = LogisticRegression(C=0.1, tol=1e-7, max_iter=2000).fit(X, y)
    # The warning about lumpy records has its own test.
    found = {
        seen: estimator_audit(model, X, y, observes=seen) for seen in ("log_odds", "probabilities")
    }
    more, less = found["probabilities"], found["log_odds"]
    assert np.median(more.advantage / less.advantage) > 1.0
    assert "the probabilities of all classes" in more.attacker
    assert more.details.answer_noise is not None


def test_named_model_is_the_estimator_of_the_prepared_data():
    wine = data.read_example("wine")
    result = model_audit(wine, ModelSettings(model="logistic", C=0.1))
    X, y = load_wine(return_X_y=True)
    own = LogisticRegression(C=0.1, tol=1e-9, max_iter=10_000)
    own.fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(result.examined.estimator.coef_, own.coef_, atol=1e-6)
    assert result.model.origin == "C as given"
    assert "target taken as 3 classes: 0, 1, 2" in result.dataset.steps


@pytest.mark.parametrize("name", ["ridge", "linear", "poisson", "kernel_ridge"])
def test_named_models_of_a_quantity(name):
    result = model_audit(data.read_example("diabetes", by="sex"), ModelSettings(model=name))
    chosen = "no penalty" if name == "linear" else "alpha by leave-one-out"
    assert result.model.origin == chosen
    assert 0.2 < result.advantage.max() < 0.95
    assert result.confirmed.mean() > 0.99
    assert {entry.count for entry in result.subgroups} == {207, 235}


def test_same_seed_same_answer():
    found = [
        model_audit(
            data.read_example("iris"), ModelSettings(model="logistic"), AuditSettings(seed=3)
        )
        for _ in range(2)
    ]
    assert found[0].records == found[1].records


def bad(**changes):
    X, y = load_diabetes(return_X_y=True)
    return {"X": X, "y": y, "model": Ridge(alpha=0.1).fit(X, y)} | changes


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: bad(model=Ridge(alpha=0.1).fit(X10[:200], Y10[:200])), "gradient there is"),
        (lambda: bad(sample_weight=np.ones(5)), "5 sample weights for 442 records"),
        (
            lambda: bad(kernel=leakscope.kernels.rbf(1.0)),
            "belongs to a Gaussian process",
        ),
        (lambda: bad(noise_variance=0.1), "belongs to a Gaussian process"),
        (lambda: bad(groups=[0, 1]), "442 records and 2 groups"),
        (lambda: bad(groups=[0] * 442), "all records belong to one group"),
        (lambda: bad(model=Lasso(), question="population"), "belongs to laws of one fit"),
        (lambda: bad(model=Ridge(positive=True), sample_weight=np.ones(442)), "leave out sample"),
        (lambda: bad(model=Ridge(positive=True), fraction=0.8), "fraction belongs to laws of one"),
        (lambda: bad(model=object()), "a model must be a scikit-learn estimator"),
        (lambda: bad(record_ids=["a"]), "442 records and 1 record_ids"),
        (lambda: bad(X=X10[:, 0]), "two dimensions"),
        (lambda: bad(X=X10[:, :4]), "10 features, but X has 4"),
        (lambda: bad(question="everyone"), "question"),
        (lambda: bad(question="known_others"), "question"),
        (lambda: bad(fraction=1.0), "fraction must be below 1"),
        (lambda: bad(observes="log_odds"), "observes must be one of prediction, residual"),
    ],
)
def test_bad_input_is_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        leakscope.audit(**given())
    assert "\n" not in str(caught.value)


def test_one_class_is_refused():
    settled = make_pipeline(StandardScaler(), LogisticRegression()).fit(XB, YB)
    with pytest.raises(InputError):
        leakscope.audit(XB[YB == 1], YB[YB == 1], model=settled)


def test_options_of_a_model_without_one_are_refused():
    with pytest.raises(InputError, match="sample_weight belongs to model"):
        leakscope.audit(X10, Y10, sample_weight=np.ones(10))
    with pytest.raises(InputError, match="fraction belongs to a fitted model"):
        leakscope.audit(X10, Y10, fraction=0.5, kernel="rbf")


def test_advice_needs_the_estimator_that_was_in_memory(audited, tmp_path):
    with pytest.raises(InputError, match="was in memory, and no file holds it"):
        leakscope.advise(audited.write(tmp_path / "run"), leakscope.AuditTarget("advantage", 0.2))
    # The audit itself still has it.
    assert leakscope.advise(audited, leakscope.AuditTarget("advantage", 0.9)).own.worst < 0.9


@pytest.mark.parametrize("how", ["model", "process", "training"])
def test_a_frames_index_names_its_records(how):
    """After rows were dropped, positions named other people."""
    rng = np.random.default_rng(0)
    whole = pd.DataFrame(rng.normal(size=(43, 3)), columns=list("abc"))
    frame = whole.drop(index=[0, 7, 30])
    y = pd.Series(rng.normal(size=43)).drop(index=[0, 7, 30])
    more = {
        "model": {"model": Ridge().fit(frame, y)},
        "process": {"kernel": "rbf", "sensitivity": False},
        "training": {"train": Ridge(), "models": 2},
    }[how]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = leakscope.audit(frame, y, **more)
    assert list(result.record_ids) == frame.index.tolist()
    assert list(
        leakscope.audit(frame.to_numpy(), y.to_numpy(), kernel="rbf", sensitivity=False).record_ids
    ) == list(range(40))
