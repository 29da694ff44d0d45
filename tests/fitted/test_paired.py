"""Both answers of one fit, against fits without the record and with it; laws and trust of pairs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ARDRegression,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    QuantileRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR

from leakscope import InputError, fitted, measures
from leakscope.fitted import paired
from leakscope.fitted.from_sklearn import no_laws
from leakscope.fitted.margins import Corner
from leakscope.fitted.paired import FAMILIES, PairedModel, Pairs, family_of
from leakscope.fitted.paired_laws import (
    _as_fitted,
    counted_as_said,
    leads,
    moments_of,
    squeezed,
    tails_of,
)
from leakscope.fitted.problem import NoLawsError
from leakscope.fitted.refits import score_records
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair, Provenance
from tests.audits import l1_logistic

EXACT = {"tol": 1e-14, "max_iter": 100_000}


def quantity(size: int = 40, features: int = 8, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, features))
    return X, X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=size)


def classes(size: int = 80, seed: int = 0, count: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, 5))
    noisy = X[:, 0] + 0.7 * rng.normal(size=size)
    return X, np.array(list("abc"))[np.digitize(noisy, [0.0] if count == 2 else [-0.5, 0.5])]


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


SAGA = {"solver": "saga", **EXACT, "tol": 1e-9}
LINEAR = {"dual": False, "tol": 1e-10, "max_iter": 100_000}


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (l1_logistic(1.0, C=0.5, **SAGA), classes),
        (l1_logistic(1.0, C=0.5, solver="liblinear", tol=1e-9), classes),
        (l1_logistic(0.5, C=0.5, class_weight={"a": 2.0}, **SAGA), classes),
        (l1_logistic(0.5, C=0.5, class_weight="balanced", **SAGA), classes),
        (l1_logistic(0.5, C=0.5, **SAGA), lambda: classes(120, count=3)),
        (LinearSVC(C=0.1, **LINEAR), classes),
        (LinearSVC(C=0.1, class_weight="balanced", **LINEAR), classes),
        (LinearSVC(C=0.1, **LINEAR), lambda: classes(count=3)),
        (LinearSVR(C=0.1, epsilon=0.3, loss="squared_epsilon_insensitive", **LINEAR), quantity),
        (HuberRegressor(tol=1e-9, max_iter=10_000), lambda: quantity(80, 4)),
        (SVC(C=1.0, gamma=0.3, tol=1e-8), lambda: classes(120)),
        (SVR(C=1.0, gamma=1.0, tol=1e-8), lambda: quantity(120, 4)),
        (SVC(C=1.0, gamma=0.3, tol=1e-8), lambda: classes(150, count=3)),
        (NuSVC(nu=0.3, gamma=0.3, tol=1e-8), lambda: classes(150, count=3)),
        (NuSVR(nu=0.5, gamma=1.0, tol=1e-8), lambda: quantity(120, 4)),
        (ARDRegression(), lambda: quantity(200, 4)),
    ],
)
def test_turned_answers_are_near_those_of_refits(model: Any, data: Callable[..., Any]) -> None:
    X, y = data()
    found, truth, models = refitted_pairs(model, X, y)
    own = score_records(models[0], X, y)
    moved = np.abs(truth - own)
    assert np.corrcoef(found - own, truth - own)[0, 1] > 0.9
    assert np.median(np.abs(found - truth)[moved > 1e-9] / moved[moved > 1e-9]) < 0.1


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_squared_hinge_is_exact_where_its_sets_stay(penalty: str) -> None:
    X, y = classes()
    found, truth, models = refitted_pairs(LinearSVC(C=0.1, penalty=penalty, **LINEAR), X, y)
    sets = [
        np.append(score_records(one, X, y) < 1.0, np.sign(one.coef_)).astype(int) for one in models
    ]
    rows = np.arange(len(y))
    # Its own place in the margin may change: the formulas know the loss of the record itself.
    same = [np.array_equal(np.delete(one, k), np.delete(sets[0], k))
            for k, one in zip(rows, sets[1:], strict=True)]  # fmt: skip
    assert sum(same) > 30
    np.testing.assert_allclose(found[same], truth[same], atol=1e-7)


def same_machines(models: Any, inside: Any, codes: Any, classes: int) -> Any:
    """Whether each refit has the same free and bounded records as the first fit but its own."""

    def sets(model: Any, rows: Any) -> Any:
        kinds = np.zeros((len(inside), len(model.dual_coef_)))
        size = np.abs(model.dual_coef_).T
        most = np.ones_like(size) * size.max(axis=0)
        if "Nu" in type(model).__name__ and classes > 1:
            # Each machine of two has a bound of its own.
            own = codes[np.flatnonzero(rows)[model.support_]]
            for a, b in itertools.combinations(range(classes), 2):
                cells = [(own == a, b - 1), (own == b, a)]
                bound = max(size[where, row].max() for where, row in cells)
                for where, row in cells:
                    most[where, row] = bound
        found = np.where(size > 1e-6 * most, np.where(size < (1.0 - 1e-6) * most, 1, 2), 0)
        kinds[np.flatnonzero(rows)[model.support_]] = found
        return kinds

    first, same = sets(models[0], inside), []
    for row, model in enumerate(models[1:]):
        turned = inside.copy()
        turned[row] = not turned[row]
        then, now = (np.delete(one, row, axis=0) for one in (sets(model, turned), first))
        same.append(np.array_equal(then, now))
    return np.array(same)


SHARP = {"gamma": 0.1, "tol": 1e-11}


@pytest.mark.parametrize(
    ("model", "data", "fewest"),
    [
        (SVC(C=1.0, **SHARP), lambda: classes(100), 25),
        (SVC(C=1.0, **SHARP), lambda: classes(100, count=3), 10),
        (NuSVC(nu=0.5, gamma=0.3, tol=1e-11), lambda: classes(120), 20),
        (NuSVC(nu=0.3, gamma=0.3, tol=1e-11), lambda: classes(120, count=3), 5),
        (NuSVR(nu=0.5, gamma=0.2, tol=1e-11), lambda: quantity(120, 4), 20),
    ],
)
def test_support_vectors_are_exact_where_the_free_ones_stay(
    model: Any, data: Callable[..., Any], fewest: int
) -> None:
    X, y = data()
    found, truth, models = refitted_pairs(model, X, y)
    inside = np.random.default_rng(1).permutation(len(y)) < len(y) // 2
    labels = getattr(models[0], "classes_", np.zeros(1))
    codes = np.searchsorted(labels, y) if len(labels) > 1 else np.zeros(len(y))
    same = same_machines(models, inside, codes, len(labels))
    own = score_records(models[0], X, y)
    assert same.sum() >= fewest
    assert (same & (np.abs(truth - own) > 1e-6)).sum() >= 2
    np.testing.assert_allclose(found[same], truth[same], atol=1e-6)


def test_beyond_every_margin_nothing_changes() -> None:
    for count in (2, 3):
        X, y = classes(100, count=count)
        _, truth, models = refitted_pairs(SVC(C=1.0, **SHARP), X, y)
        own = score_records(models[0], X, y)
        assert (own > 1.01).sum() > 5
        np.testing.assert_allclose(truth[own > 1.01], own[own > 1.01], atol=1e-6)


def test_several_classes_are_seen_by_the_nearest_other() -> None:
    X, y = classes(90, count=3)
    model = SVC(C=1.0, decision_function_shape="ovo").fit(X, y)
    scores, values = score_records(model, X, y), model.decision_function(X)
    # Columns are a against b, a against c, b against c.
    seen = {"a": [(0, 1), (1, 1)], "b": [(0, -1), (2, 1)], "c": [(1, -1), (2, -1)]}
    for row, label in enumerate(y):
        margins = [sign * values[row, column] for column, sign in seen[label]]
        assert scores[row] == pytest.approx(min(margins))
    # As it is asked for makes no difference, and a margin above zero is the model's own label.
    np.testing.assert_allclose(score_records(SVC(C=1.0).fit(X, y), X, y), scores)
    assert (model.predict(X)[scores > 0.0] == y[scores > 0.0]).all()


def drawn_at_a_corner(
    rng: Any, fits: int, mean: float, side: float, copies: float = 0.0
) -> tuple[Any, Any, Any]:
    """Who is in, and scores without and with a record whose reach varies, of so many fits."""
    v = side * (rng.normal(mean, 0.4, fits) - 1.0)
    # A copy of the record, where it is in, has put the score on the corner.
    v = np.where(rng.random(fits) < copies, 0.0, v)
    pushed = np.where(v >= 0.0, v, np.minimum(v + rng.gamma(4.0, 0.1, fits), 0.0))
    inside = rng.random(fits) < 0.5
    # The solver leaves what is on the corner near to it, in the fits that it made.
    off = 1e-4 * rng.standard_normal(fits)
    out = np.where((v == 0.0) & ~inside, off, v)
    into = np.where((pushed == 0.0) & inside, off, pushed)
    return inside[:, None], *((1.0 + side * x)[:, None] for x in (out, into))


@pytest.mark.parametrize(
    ("mean", "side", "copies"),
    [(0.6, 1.0, 0.0), (1.3, 1.0, 0.0), (1.4, -1.0, 0.0), (0.6, 1.0, 0.5), (-1.5, 1.0, 0.0)],
)
@pytest.mark.parametrize("turned", [True, False])
def test_the_pair_at_a_corner_is_that_of_its_draws(
    mean: float, side: float, copies: float, turned: bool
) -> None:
    rng, one = np.random.default_rng(0), np.ones(1)
    inside, out, into = drawn_at_a_corner(rng, 4096, mean, side, copies)
    known = (
        (inside, out, into)
        if turned
        else (inside, np.where(inside, np.nan, out), np.where(inside, into, np.nan))
    )
    corner = Corner.of(one, side * one, known, 1e-3)
    _, without, within = drawn_at_a_corner(rng, 200_000, mean, side, copies)
    v = [side * (x[:, 0] - 1.0) for x in (within, without)]
    on = [np.abs(x) < 1e-3 for x in v]
    assert corner.chance[0] == pytest.approx(np.mean(on[0]), abs=0.03)
    pair = corner.pair(0.0, Provenance())
    ratio = [np.ravel(pair.member.log_density(x[:, None]) - pair.nonmember.log_density(x[:, None]))
             for x in v]  # fmt: skip
    # What its own test is worth on fresh draws, and what no test of bins beats by much.
    own = np.mean(ratio[0] > 0.0) - np.mean(ratio[1] > 0.0)
    edges = np.linspace(-4.0, 4.0, 321)
    counts = [np.histogram(x[~near], edges)[0] / len(x) for x, near in zip(v, on, strict=True)]
    most = max(np.mean(on[0]) - np.mean(on[1]), 0.0) + np.maximum(counts[0] - counts[1], 0.0).sum()
    said = measures.advantage(pair)[0]
    assert said == pytest.approx(own, abs=0.04)
    assert said == pytest.approx(most, abs=0.05)
    level = np.quantile(ratio[1], 0.99)
    assert measures.tpr_at_fpr(pair, 0.01)[0] == pytest.approx(
        np.mean(ratio[0] > level), rel=0.3, abs=0.015
    )
    blurred = measures.advantage(corner.pair(0.5, Provenance()))[0]
    assert blurred < said


def test_of_linear_machines_each_law_is_that_of_its_own_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paired, "FITS", ((1e5, 32),))
    X, y = classes(60)
    for machine in (
        LinearSVC(C=0.1, loss="hinge", max_iter=100_000).fit(X, y),
        SVC(kernel="linear", C=0.1).fit(X, y),
        NuSVC(kernel="linear", nu=0.5).fit(X, y),
    ):
        described = fitted.from_sklearn(machine, X, y)
        assert isinstance(described, PairedModel)
        pairs = described.pairs(0.5)
        assert pairs.fits == 64
        assert np.isnan(pairs.within[~pairs.inside]).all()
        laws = fitted.laws_of(described)
        assert laws.corner is not None
        assert "margin of 1" in laws.warnings[0]
        row = int(np.argmin(laws.nonmember_mean))
        own = [pairs.own[mask[:, row], row].mean() for mask in (~pairs.inside, pairs.inside)]
        assert laws.nonmember_mean[row] == pytest.approx(own[0])
        assert laws.member_mean[row] == pytest.approx(own[1])


def test_a_quantile_goes_through_some_of_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "FITS", ((1e5, 64),))
    X, y = quantity(60, 3)
    model = QuantileRegressor(alpha=0.0).fit(X, y)
    laws = fitted.laws_of(model, X, y)
    assert laws.corner is not None
    np.testing.assert_array_equal(laws.corner.place, y)
    # Of 30 records and 4 coefficients four lie on the fit, and it is never through another one.
    assert laws.corner.chance.mean() == pytest.approx(4.0 / 30.0, abs=0.03)
    assert laws.corner.nonmember.weights[:, 1:3].max() == 0.0


def normal_pairs(size: int, fits: int, shift: float, seed: int = 0) -> Pairs:
    """Records with the same shift, whose answers are normal."""
    rng = np.random.default_rng(seed)
    out = rng.standard_normal((fits, size))
    return Pairs(rng.random((fits, size)) < 0.5, out, out + shift)


def test_the_laws_own_test_is_counted_on_the_fits() -> None:
    pairs = normal_pairs(200, 256, 1.0)
    found = moments_of(pairs)
    assert counted_as_said(pairs, found).mean() > 0.95
    # Turned answers that move twice as far as the fits' own.
    wrong = replace(pairs, within=np.where(pairs.inside, pairs.within, pairs.within + 1.0),
                    without=np.where(pairs.inside, pairs.without - 1.0, pairs.without))  # fmt: skip
    assert counted_as_said(wrong, moments_of(wrong)).mean() < 0.5


def test_a_record_that_others_lead_is_found() -> None:
    pairs = normal_pairs(150, 256, 1.0)
    assert leads(pairs.without, pairs.inside).max() < 0.2
    led = pairs.without.copy()
    led[:, 3] += 2.5 * pairs.inside[:, 7]
    found = leads(led, pairs.inside)
    # 2.5 times a coin's deviation of one half beside a deviation of one.
    assert found[3] == pytest.approx(1.25**2 / (1.0 + 1.25**2), abs=0.1)
    assert np.delete(found, 3).max() < 0.2


@pytest.mark.parametrize(("shape", "factor"), [(400.0, 1.0), (10.0, 1.5)])
def test_what_skewness_does_to_the_rate_is_seen(shape: float, factor: float) -> None:
    rng = np.random.default_rng(0)
    out = (rng.gamma(shape, size=(256, 100)) - shape) / np.sqrt(shape)
    pairs = Pairs(rng.random(out.shape) < 0.5, out, out + 1.0)
    found = tails_of(moments_of(pairs), pairs.without, pairs.within)
    long = (rng.gamma(shape, size=400_000) - shape) / np.sqrt(shape)
    counted = np.mean(long + 1.0 > np.quantile(long, 0.99)) / measures.tpr_at_fpr(
        LawPair(Normal([1.0], [1.0]), Normal([0.0], [1.0])), 0.01
    )[0]  # fmt: skip
    assert np.median(found) == pytest.approx(max(counted, 1.0 / counted), rel=0.25)
    assert np.median(found) > 0.8 * factor


def test_near_interpolation_the_fits_own_answers_are_taken() -> None:
    X, y = quantity(60, 80)
    laws = fitted.laws_of(Lasso(alpha=0.02, max_iter=100_000).fit(X, y), X, y)
    shadows = fitted.shadow_models(Lasso(alpha=0.02), X, y, models=200, random_state=1)
    _, _, _, sd = shadows.moments()
    assert np.median(np.abs(np.log(laws.nonmember_sd / sd))) < 0.15
    assert laws.trusted.mean() > 0.5


def test_one_records_scale_is_not_anothers_rounding() -> None:
    pairs = normal_pairs(50, 64, 0.5)
    large = replace(pairs, without=pairs.without.copy(), within=pairs.within.copy())
    large.without[:, 0] *= 1e12
    large.within[:, 0] *= 1e12
    found = moments_of(large)
    assert found.sd_out[1:].max() < 2.0


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


def test_records_that_every_part_has_show_no_shift_of_their_own() -> None:
    rng = np.random.default_rng(0)
    inside = rng.random((64, 300)) < 0.95
    inside[:, :40], inside[:, 40:50] = True, False
    shift, noise = np.linspace(0.5, 2.0, 300), rng.normal(size=(64, 300))
    pairs = Pairs(inside, noise, noise + shift)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _as_fitted(pairs, moments_of(pairs))
        # Another shift than the fits' own answers show.
        other = Pairs(inside, noise + 0.5 * inside * shift, noise + shift)
        assert not _as_fitted(other, moments_of(other))
        nobody = Pairs(np.ones_like(inside), noise, noise + shift)
        assert not _as_fitted(nobody, moments_of(nobody))


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
    # Those that are still trusted have the shift that refits of them, or of the next in rank, give.
    gap = (wrong.shift - honest.shift) / honest.nonmember_sd
    assert np.abs(gap[large & wrong.trusted]).max() < 0.35


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


def test_a_sharp_solver_leaves_the_margin_where_it_is() -> None:
    """With tol=1e-9 half of the answers on the margin were taken for others: 0.60 for 0.69."""
    X, y = classes(60)
    means, shares = [], []
    for tol in (1e-4, 1e-9, 1e-12):
        laws = fitted.laws_of(SVC(tol=tol).fit(X, y), X, y)
        assert laws.corner is not None
        means.append(float(np.mean(measures.advantage(laws.law_pair()))))
        shares.append(float(laws.corner.chance.mean()))
    assert shares == pytest.approx([shares[0]] * 3, abs=0.01)
    assert means == pytest.approx([means[0]] * 3, abs=0.01)


def test_a_chosen_penalty_is_named() -> None:
    X, y = quantity(60, 4)
    model = LassoCV(cv=3).fit(X, y)
    described = fitted.from_sklearn(model, X, y)
    assert described.name == f"LassoCV(cv=3, alpha={model.alpha_:.4g})"
    assert described.whole is not None
    assert described.whole.chosen


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_l1_penalty_that_is_searched_is_turned_and_named() -> None:
    X, y = classes(60)
    same = l1_logistic(1.0, solver="liblinear")
    # scikit-learn before 1.8 has no shares of L1 without an elastic net.
    shares = {"penalty": "l1"} if same.penalty == "l1" else {"l1_ratios": [1.0]}
    search = LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, solver="liblinear", **shares)
    model = search.fit(X, y)
    described = fitted.from_sklearn(model, X, y)
    assert f"C={float(np.ravel(model.C_)[0]):.4g}" in described.name
    family, inside = family_of(model), np.ones(len(y), dtype=np.bool_)
    assert family is FAMILIES["LogisticRegressionCV"]
    # As a fit with that C says.
    same.set_params(C=float(np.ravel(model.C_)[0]))
    known = family.turned(same.fit(X, y), X, y, inside)
    np.testing.assert_allclose(family.turned(model, X, y, inside), known, atol=1e-3)


def test_a_threshold_changes_no_answer() -> None:
    X, y = classes(80)
    for decides in (
        FixedThresholdClassifier(LogisticRegression(), threshold=0.7),
        TunedThresholdClassifierCV(LogisticRegression(), cv=3),
    ):
        laws = fitted.laws_of(decides.fit(X, y), X, y)
        plain = fitted.laws_of(LogisticRegression().fit(X, y), X, y)
        np.testing.assert_allclose(laws.member_mean, plain.member_mean)
        np.testing.assert_allclose(laws.nonmember_sd, plain.nonmember_sd)
    unfitted = TunedThresholdClassifierCV(LogisticRegression(), cv=3, refit=False)
    assert no_laws(unfitted) is not None


def test_a_fit_that_follows_its_half_exactly_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A robust fit of 30 records with 22 columns has the scale 0: a traceback before."""

    def singular(inner: Any, X: Any, y: Any, inside: Any) -> Any:
        return np.linalg.solve(np.zeros((1, 1)), np.zeros(1))

    X, y = quantity()
    model = Lasso(alpha=0.1).fit(X, y)
    monkeypatch.setitem(FAMILIES, "Lasso", replace(FAMILIES["Lasso"], turned=singular))
    with pytest.raises(InputError, match="follows them exactly"):
        fitted.from_sklearn(model, X, y).pairs(0.5)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
def test_a_robust_fit_without_a_scale_is_refused() -> None:
    """33 s of processor went into steps that led nowhere, and the answers were no numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 22)), rng.normal(size=30)
    model = HuberRegressor(max_iter=1000).fit(X, y)
    with pytest.raises(InputError, match="follows them exactly"):
        fitted.from_sklearn(model, X, y).pairs(0.5)


def test_a_frame_of_named_columns_says_nothing_of_names() -> None:
    """Every fit of a half warned four times: 2,049 lines on stderr."""
    X, y = quantity(60, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Lasso(alpha=0.1).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.laws_of(model, frame, y)


def test_a_solver_that_stops_early_by_chance_is_not_refused() -> None:
    # liblinear at its usual tolerance ends up to 4% of the spread from itself
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for seed in range(8):
        np.random.seed(seed)  # noqa: NPY002 - what liblinear draws from without a random_state
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=0.3).fit(X, y)
        assert fitted.from_sklearn(model, X, y).records == len(y)
    model.fit(X[::2], y[::2])
    with pytest.raises(InputError, match="not what a fit on these records gives"):
        fitted.from_sklearn(model, X, y)


def scaled_cancer(records: int = 250) -> tuple[Any, Any]:
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:records], y[:records]


@pytest.mark.parametrize("model", [SVC(tol=0.5), SVC(tol=0.1), SVC(kernel="sigmoid")], ids=str)
def test_who_is_trusted_is_moved_as_said_whatever_the_solver_leaves(model: Any) -> None:
    """A solver that stops early moves records that the law leaves: 0.00 was said for 1.00."""
    X, y = scaled_cancer()
    laws = fitted.laws_of(clone(model).fit(X, y), X, y)
    shadows = fitted.shadow_models(model, X, y, models=600, random_state=5)
    own, inside = shadows.scores, shadows.trained_on
    means, variances = [], np.zeros(len(y))
    for mask in (inside, ~inside):
        count = mask.sum(axis=0)
        mean = np.where(mask, own, 0.0).sum(axis=0) / count
        variances += np.where(mask, (own - mean) ** 2, 0.0).sum(axis=0) / count / (count - 1)
        means.append(mean)
    shift, error = laws.member_mean - laws.nonmember_mean, laws.errors[0]  # type: ignore[index]
    off = np.abs(means[0] - means[1] - shift) / np.sqrt(variances + error**2)
    assert off[laws.trusted].max(initial=0.0) < 6.0
    # Where the solver leaves next to nothing as it was, nobody is.
    assert laws.trusted.mean() < (0.01 if model.tol == 0.5 else 0.99)


@pytest.mark.parametrize("model", [SVC(), SVC(C=10.0), SVR(), NuSVR()], ids=str)
def test_machines_fitted_on_sparse_records_are_those_of_dense_ones(model: Any) -> None:
    X, y = scaled_cancer(120)
    X = X * (X > 1.0)
    y = y.astype(float) if "R" in str(model) else y
    laws = [fitted.laws_of(clone(model).fit(Z, y), Z, y) for Z in (X, sparse.csr_matrix(X))]
    np.testing.assert_allclose(laws[0].member_mean, laws[1].member_mean, rtol=1e-2, atol=1e-2)


def test_a_solver_that_was_stopped_is_no_optimum() -> None:
    X, y = scaled_cancer()
    with pytest.warns(ConvergenceWarning):
        early = SVC(max_iter=20).fit(X, y)
    with pytest.raises(NoLawsError, match="has not converged"):
        fitted.laws_of(early, X, y)


def test_answers_that_are_no_numbers_are_named() -> None:
    X, y = scaled_cancer(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for features, labels in ((np.ones((60, 3)), y), (X, np.zeros(60, dtype=int))):
            with pytest.raises(InputError, match="no finite answer; drop constant columns"):
                fitted.laws_of(GaussianNB().fit(features, labels), features, labels)
