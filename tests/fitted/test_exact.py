"""Classifiers that are sums over classes: answers with and without a record, against refits."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
)
from sklearn.neighbors import NearestCentroid

import leakscope
from leakscope import fitted
from leakscope.errors import InputError
from leakscope.fitted import exact
from leakscope.fitted.from_sklearn import no_laws
from leakscope.fitted.paired import family_of
from leakscope.fitted.refits import score_records

MODELS = [
    GaussianNB(),
    GaussianNB(var_smoothing=0.1),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr"),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(reg_param=0.2),
    NearestCentroid(),
    NearestCentroid(priors="empirical"),
]


def clouds(classes: int, size: int = 90, features: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, size)
    X = rng.normal(size=(size, features)) * np.array([1.0, 5.0, 0.1, 2.0])[:features]
    return X + 0.8 * rng.normal(size=(classes, features))[y], np.array(list("abcd"))[y]


# Whose features are counts.
OF_COUNTS = [
    MultinomialNB(),
    MultinomialNB(alpha=0.3, fit_prior=False),
    ComplementNB(),
    ComplementNB(norm=True),
    BernoulliNB(binarize=1.0),
    BernoulliNB(binarize=2.0, alpha=0.01, fit_prior=False),
    CategoricalNB(min_categories=9),
    CategoricalNB(alpha=0.1, min_categories=12),
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [*MODELS, *OF_COUNTS], ids=str)
def test_exact_to_the_last_digits(model: Any, classes: int) -> None:
    X, y = clouds(classes)
    if model in OF_COUNTS:
        X = np.clip(np.round(np.abs(X)), 0.0, 8.0)
    require_those_of_refits(model, X, y, within=1e-9, seeds=[1])


def test_given_shares_of_the_classes_stay() -> None:
    X, y = clouds(2)
    model = LinearDiscriminantAnalysis(priors=[0.3, 0.7])
    inside = np.arange(len(y)) % 2 == 0
    found = family_of(model).turned(  # type: ignore[union-attr]
        clone(model).fit(X[inside], y[inside]), X, y, inside
    )
    turned = inside.copy()
    turned[5] = not turned[5]
    again = clone(model).fit(X[turned], y[turned])
    np.testing.assert_allclose(found[5], score_records(again, X[[5]], y[[5]])[0], rtol=1e-9)


def sparse_pixels(records: int = 100) -> tuple[Any, Any]:
    """Digits: some pixels are always black, and some are bright in a single record."""
    pixels, digit = load_digits(return_X_y=True)
    kept = np.flatnonzero(digit < 4)[:records]
    return pixels[kept], digit[kept]


def doubled_features() -> tuple[Any, Any]:
    X, y = clouds(3, 60, 3)
    rng = np.random.default_rng(2)
    X = np.column_stack([X, X[:, 0] - 3.0 * X[:, 1], np.full(60, 2.0), np.zeros(60)])
    X[rng.integers(60, size=2), 5] = 1.0, -2.0  # two records alone have this feature
    return X, y


@pytest.mark.parametrize("data", [sparse_pixels, doubled_features])
@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="lsqr"),
        NearestCentroid(),
    ],
    ids=str,
)
def test_features_without_scatter(model: Any, data: Any) -> None:
    """Whoever brings a feature's only scatter, or takes it, is answered as a refit answers."""
    require_those_of_refits(model, *data())


@pytest.mark.parametrize("noise", [1e-2, 3e-4, 1e-4, 3e-5, 1e-6])
@pytest.mark.parametrize("tol", [1e-4, 1e-3, 0.3])
def test_features_that_nearly_repeat(noise: float, tol: float) -> None:
    """scikit-learn drops directions by its ``tol``, one record more or fewer."""
    X, y = clouds(3, 60, 3)
    rng = np.random.default_rng(3)
    X = np.column_stack([X, X + noise * rng.normal(size=X.shape) * X.std(axis=0)])
    X[7, [0, 3]] += 1e3  # one record is far off in both
    require_those_of_refits(LinearDiscriminantAnalysis(tol=tol), X, y)


def require_those_of_refits(
    model: Any, X: Any, y: Any, within: float = 1e-7, seeds: Iterable[int] = range(3)
) -> None:
    for seed in seeds:
        inside = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = clone(model).fit(X[inside], y[inside])
            found = family_of(first).turned(first, X, y, inside)  # type: ignore[union-attr]
            truth = np.empty(len(y))
            for row in range(len(y)):
                turned = inside.copy()
                turned[row] = not turned[row]
                again = clone(model).fit(X[turned], y[turned])
                truth[row] = score_records(again, X[[row]], y[[row]])[0]
        np.testing.assert_allclose(found, truth, rtol=within, atol=within)


def test_what_is_divided_by_rounding_is_passed_on() -> None:
    """A column of 0.1 has a scatter of 1e-33, by which its own rounding is scaled up."""
    X, y = clouds(3)
    X = np.column_stack([X, np.full(len(X), 0.1)])
    why = "feature 5 of what reaches LinearDiscriminantAnalysis is constant within the classes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leakscope.audit(X, y, model=LinearDiscriminantAnalysis(), models=4)
        assert "4 models of halves" in found.sentences[0]
        assert why in found.warnings[0]
        # Its distances are all rounding.
        with pytest.raises(InputError, match=r"same score for every record.*feature 5"):
            leakscope.audit(X, y, model=NearestCentroid(), models=4)


def test_what_takes_a_refit_of_every_record_is_passed_on_where_they_are_many() -> None:
    X, y = clouds(2, exact.MOST_REFITTED + 2, 2)
    X = np.column_stack([X, X[:, 0] + 1e-4 * np.random.default_rng(4).normal(size=len(X))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leakscope.audit(X, y, model=LinearDiscriminantAnalysis(), models=2)
    assert "2 models of halves" in found.sentences[0]
    assert "takes too long" in found.warnings[0]


def test_a_few_refits_are_enough_where_features_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sparse_pixels(140)
    inside = np.arange(len(y)) % 2 == 0
    model = LinearDiscriminantAnalysis().fit(X[inside], y[inside])
    asked: list[int] = []
    whole = exact._refits

    def counted(*given: Any) -> Any:
        asked.append(len(given[4]))
        return whole(*given)

    monkeypatch.setattr(exact, "_refits", counted)
    exact.linear_discriminant(model, X, y, inside)
    assert sum(asked) < len(y) / 2


def test_pixels_that_are_always_black_are_audited() -> None:
    """A variance of zero ended in a division by zero."""
    X, y = sparse_pixels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leakscope.audit(X, y, model=NearestCentroid())
    assert np.isfinite(found.advantage).all()


@pytest.mark.parametrize("model", [GaussianNB(), LinearDiscriminantAnalysis()], ids=str)
def test_laws_agree_with_shadow_models(model: Any) -> None:
    X, y = clouds(3, 150)
    laws = fitted.laws_of(model.fit(X, y), X, y)
    shadows = fitted.shadow_models(model, X, y, models=300, random_state=0)
    found = fitted.check_against_shadows(laws, shadows)
    # 64 fits that all records share: a spread is known to 1 / sqrt(2 * 63), for all at once.
    assert abs(found.sd_ratio - 1.0) < 3.0 / np.sqrt(2 * 63)
    assert abs(found.shift_ratio - 1.0) < 0.15
    assert found.rank_correlation > found.ceiling - 0.12


def test_the_audit_says_how_and_what_has_no_sums_is_trained() -> None:
    X, y = clouds(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = leakscope.audit(X, y, model=GaussianNB()).sentences[0]
    assert "fits of parts, each asked with and without a record" in told
    shrunk = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    assert "with shrinkage" in str(no_laws(shrunk))
    assert "medians" in str(no_laws(NearestCentroid(metric="manhattan")))
    assert "min_categories" in str(no_laws(CategoricalNB()))
