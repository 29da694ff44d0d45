"""Both answers of one fit, against fits without the record and with it; laws and trust of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope import InputError, fitted
from leakscope.fitted import paired
from leakscope.fitted.paired import FAMILIES, PairedModel, family_of
from leakscope.fitted.paired_laws import moments_of, squeezed
from leakscope.fitted.refits import score_records

EXACT = {"tol": 1e-14, "max_iter": 100_000}


def quantity(size: int = 40, features: int = 8, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, features))
    return X, X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=size)


def refitted_pairs(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Turned answers of one fit on half of the records, the refits', and the refitted models."""
    inside = np.random.default_rng(1).permutation(len(y)) < len(y) // 2
    first = clone(model).fit(X[inside], y[inside])
    family = family_of(first)
    assert family is not None
    found = family.turned(first, X, y, inside)
    truth, models = np.empty(len(y)), [first]
    for row in range(len(y)):
        turned = inside.copy()
        turned[row] = not turned[row]
        again = clone(model).fit(X[turned], y[turned])
        truth[row] = score_records(again, X, y)[row]
        models.append(again)
    return found, truth, models


@pytest.mark.parametrize(
    "model",
    [
        Lasso(alpha=0.2, **EXACT),
        Lasso(alpha=0.2, fit_intercept=False, positive=True, **EXACT),
        ElasticNet(alpha=0.3, l1_ratio=0.4, **EXACT),
    ],
)
def test_lasso_is_exact_where_the_active_set_stays(model: Any) -> None:
    X, y = quantity()
    found, truth, models = refitted_pairs(model, X, y)
    signs = [np.sign(one.coef_) for one in models]
    same = np.array([np.array_equal(one, signs[0]) for one in signs[1:]])
    assert same.sum() > 20
    np.testing.assert_allclose(found[same], truth[same], atol=1e-9)


def test_shifts_are_those_of_refits_where_it_does_not() -> None:
    X, y = quantity(60, 12)
    model = PairedModel.of(
        fitted.refits.WholeFit.of(Lasso(alpha=0.1).fit(X, y), X, y), FAMILIES["Lasso"]
    )
    pairs = model.pairs(0.5)
    found = moments_of(pairs)
    shift = np.zeros(60)
    for fit, inside in enumerate(pairs.inside[:16]):
        for row in range(60):
            turned = inside.copy()
            turned[row] = not turned[row]
            answer = Lasso(alpha=0.1).fit(X[turned], y[turned]).predict(X[[row]])[0]
            own = pairs.within if inside[row] else pairs.without
            shift[row] += abs(answer - own[fit, row]) / 16
    assert np.corrcoef(shift / found.sd_out, np.abs(found.shift) / found.sd_out)[0, 1] > 0.95


def test_variances_are_weighed_as_far_as_records_are_alike() -> None:
    rng = np.random.default_rng(0)
    true = 1.0 / rng.gamma(4.0, 1.0 / 4.0, 20_000)
    drawn = true * rng.chisquare(7, len(true)) / 7
    found, prior = squeezed(drawn, 7)
    # The prior was an inverse chi-squared law of eight degrees of freedom.
    assert prior == pytest.approx(8.0, rel=0.1)
    errors = [np.mean(np.log(some / true) ** 2) for some in (found, drawn)]
    assert errors[0] < 0.6 * errors[1]


def test_a_family_that_errs_is_trusted_only_where_refits_mend_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = quantity(120, 6)
    model = Lasso(alpha=0.05).fit(X, y)
    honest = fitted.laws_of(model, X, y)
    assert honest.trusted.mean() > 0.9

    def twice(inner: Any, X: Any, y: Any, inside: Any) -> Any:
        own = score_records(inner, X, y)
        return own + 2.0 * (FAMILIES["ElasticNet"].turned(inner, X, y, inside) - own)

    monkeypatch.setitem(FAMILIES, "Lasso", replace(FAMILIES["Lasso"], turned=twice))
    wrong = fitted.laws_of(model, X, y)
    large = np.abs(honest.shift) > 0.5 * honest.nonmember_sd
    # Those that are still trusted were refitted themselves, at many parts.
    assert wrong.trusted[large].sum() < 0.5 * large.sum()
    refitted = large & wrong.trusted
    gap = (wrong.shift - honest.shift) / honest.nonmember_sd
    assert np.abs(gap[refitted]).max() < 0.3
    assert np.abs(gap[large & ~refitted]).max() > 0.5


def test_a_pipeline_is_fitted_again_on_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "FITS", ())
    X, y = quantity(60)
    model = make_pipeline(StandardScaler(), Lasso(alpha=0.1, **EXACT)).fit(X, y)
    described = fitted.from_sklearn(model, X, y)
    assert isinstance(described, PairedModel)
    pairs = described.pairs(0.5)
    inside = pairs.inside[3]
    again = clone(model).fit(X[inside], y[inside]).predict(X)
    np.testing.assert_allclose(
        np.where(inside, pairs.within[3], pairs.without[3]), again, atol=1e-9
    )
    laws = fitted.laws_of(described)
    assert any("StandardScaler" in one.statement for one in laws.provenance.assumptions)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda X, y: (Lasso(0.1).fit(X[:30], y[:30]), X, y), "not what a fit on these records"),
        (lambda X, y: (Lasso(0.1), X, y), "is not fitted"),
        (lambda X, y: (Lasso(0.1).fit(X, np.c_[y, y]), X, y), "one at a time"),
    ],
)
def test_what_cannot_be_taken(given: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fitted.laws_of(*given(*quantity()))
    X, y = quantity()
    with pytest.raises(InputError, match="without sample weights"):
        fitted.from_sklearn(Lasso(0.1).fit(X, y), X, y, sample_weight=np.ones(40))


def test_a_chosen_penalty_is_named() -> None:
    X, y = quantity(60, 4)
    model = LassoCV(cv=3, alphas=5).fit(X, y)
    described = fitted.from_sklearn(model, X, y)
    assert described.name == f"LassoCV(alphas=5, cv=3, alpha={model.alpha_:.4g})"
    assert described.whole is not None
    assert described.whole.chosen
