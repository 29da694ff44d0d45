"""Nearest neighbours by counting against all training sets that there are, and against refits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope import fitted, measures
from leakscope.errors import InputError
from leakscope.fitted.neighbours import Nearest, _by_distance, _uniform, count_law
from leakscope.fitted.problem import NoLawsError
from leakscope.fitted.refits import score_records
from leakscope.laws import Discrete, NormalMixture


def every_training_set(
    model: KNeighborsClassifier, X: Any, y: Any, fraction: float, values: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Both laws of every record by a fit on each training set of k records or more."""
    size, rows = len(y), np.arange(len(y))
    laws = np.zeros((2, size, len(values)))
    for inside in product((False, True), repeat=size):
        chosen = np.array(inside)
        if chosen.sum() < model.n_neighbors:
            continue
        again = model.fit(X[chosen], y[chosen])
        known = np.isin(y, again.classes_)
        scores = np.full(size, -1.0)
        scores[known] = score_records(again, X[known], y[known])
        weight = fraction ** chosen.sum() * (1.0 - fraction) ** (~chosen).sum()
        places = np.argmin(np.abs(values - scores[:, None]), axis=1)
        laws[np.where(chosen, 0, 1), rows, places] += weight
    return laws[0] / laws[0].sum(1, keepdims=True), laws[1] / laws[1].sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("neighbours", "fraction"), [(1, 0.5), (3, 0.5), (4, 0.3), (3, 0.9), (1, 0.9)]
)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_equals_the_sum_over_every_training_set(
    neighbours: int, weights: str, fraction: float
) -> None:
    generator = np.random.default_rng(neighbours)
    X, y = generator.standard_normal((9, 2)), generator.integers(0, 3, 9)
    # Copies of one label leave nothing to chance.
    X[4], y[4] = X[2], y[2]
    model = KNeighborsClassifier(neighbours, weights=weights)
    near = Nearest.of(model, X, y, 8)
    count = _uniform if weights == "uniform" else _by_distance
    within, without, changed = count(near, neighbours, fraction)
    k = neighbours if weights == "uniform" else 1
    values = 2.0 * np.arange(k + 1) / k - 1.0
    inside, outside = every_training_set(model, X, y, fraction, values)
    assert not changed.any()
    np.testing.assert_allclose(within, inside, atol=1e-12)
    exact = np.ones(9, dtype=bool)
    if weights == "distance":
        # What fewer than k would say is left out beyond the copies only; an audit refuses so few.
        exact[[2, 4]] = False
        few = 10.0 * stats.binom.cdf(neighbours - 1, 7, fraction)
        np.testing.assert_allclose(without[[2, 4]], outside[[2, 4]], atol=few)
    np.testing.assert_allclose(without[exact], outside[exact], atol=1e-12)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "euclidean"])
def test_several_metrics_and_searches(metric: str) -> None:
    """The order is the estimator's own; the refits that check it agree everywhere."""
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).standard_normal(X.shape)
    for search in ("brute", "auto"):
        model = KNeighborsClassifier(5, metric=metric, algorithm=search).fit(X, y)
        assert fitted.laws_of(model, X, y).trusted.all()


@pytest.mark.parametrize(
    ("weights", "fraction", "neighbours"),
    [("uniform", 0.5, 5), ("uniform", 0.3, 8), ("distance", 0.5, 5)],
)
def test_means_and_advantages_are_those_of_refits(
    weights: str, fraction: float, neighbours: int
) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200, :10] / X[:200, :10].std(axis=0), y[:200].copy()
    y[:20] = 1 - y[:20]
    model = KNeighborsClassifier(neighbours, weights=weights).fit(X, y)
    laws = fitted.laws_of(model, X, y, fraction=fraction)
    shadows = fitted.shadow_models(model, X, y, models=1500, fraction=fraction, random_state=3)
    pair = laws.law_pair()
    assert laws.trusted.all()
    assert isinstance(pair.member, Discrete)
    yes = pair.member.log_density(shadows.scores) > pair.nonmember.log_density(shadows.scores)
    rates = []
    for law, mask, mean, sd in (
        (pair.member, shadows.trained_on, laws.member_mean, laws.member_sd),
        (pair.nonmember, ~shadows.trained_on, laws.nonmember_mean, laws.nonmember_sd),
    ):
        count = mask.sum(axis=0)
        observed = np.where(mask, shadows.scores, 0.0).sum(axis=0) / count
        # A law that is nearly a point may show its other values once by chance.
        error = 4.0 * np.hypot(sd / np.sqrt(count), 0.5 / count)
        assert np.all(np.abs(observed - mean) <= error)
        rates.append((yes & mask).sum(axis=0) / count)
        # No answer is seen that the law does not know.
        assert np.isfinite(np.where(mask, law.log_density(shadows.scores), 0.0)).all()
    said = np.asarray(measures.advantage(pair))
    counted = rates[0] - rates[1]
    spread = np.sqrt(sum(r * (1.0 - r) / (1500 * min(fraction, 1 - fraction)) for r in rates))
    assert np.all(np.abs(said - counted) <= 4.0 * spread + 0.01)
    assert abs(np.mean(said - counted)) < 4.0 * np.sqrt(np.mean(spread**2)) / np.sqrt(20)


def test_copies_and_ties() -> None:
    """A copy stands for the record; equally far ones of different labels are not trusted."""
    generator = np.random.default_rng(1)
    X, y = generator.standard_normal((60, 2)), generator.integers(0, 2, 60)
    X[1], y[1] = X[0], y[0]
    X[3], y[3] = X[2], 1 - y[2]
    laws = fitted.laws_of(KNeighborsClassifier(1).fit(X, y), X, y)
    # In half of the training sets without it its copy is in.
    others = measures.advantage(laws.law_pair())[0]
    assert others <= 0.5 + 1e-12
    assert not laws.trusted[2]
    assert not laws.trusted[3]
    assert laws.trusted[[0, 1]].all()
    grid = np.array(list(product(range(8), repeat=2)), dtype=float)
    labels = generator.integers(0, 2, 64)
    tied = fitted.laws_of(KNeighborsClassifier(5).fit(grid, labels), grid, labels)
    assert tied.trusted.mean() < 0.2
    assert "equally near" in tied.warnings[0]


def test_a_label_is_the_yes_or_no_of_the_share() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :4], y[:150]
    for neighbours in (4, 5):
        model = KNeighborsClassifier(neighbours).fit(X, y)
        laws = fitted.laws_of(model, X, y, observes="label")
        right = np.zeros((2, 150))
        counts = np.zeros((2, 150))
        generator = np.random.default_rng(0)
        for _ in range(600):
            inside = generator.random(150) < 0.5
            again = KNeighborsClassifier(neighbours).fit(X[inside], y[inside])
            hit = again.predict(X) == y
            for side, mask in enumerate((inside, ~inside)):
                right[side, mask] += hit[mask]
                counts[side, mask] += 1
        for side, mean in enumerate((laws.member_mean, laws.nonmember_mean)):
            error = np.sqrt(mean * (1.0 - mean) / counts[side]) + 1.0 / counts[side]
            assert np.all(np.abs(right[side] / counts[side] - mean) <= 4.0 * error)
        whole = measures.advantage(fitted.laws_of(model, X, y).law_pair())
        assert np.all(measures.advantage(laws.law_pair()) <= whole + 1e-12)


def test_a_pipeline_is_checked_by_refits_of_the_whole() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::2], y[::2]
    model = make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, y)
    laws = fitted.laws_of(model, X, y)
    assert laws.trusted.mean() > 0.9
    assert "StandardScaler" in laws.provenance.assumptions[-1].statement
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 15]}).fit(X, y)
    chosen = fitted.laws_of(search, X, y)
    assert 0.3 < chosen.trusted.mean() < 1.0


def test_noise_makes_a_mixture() -> None:
    X, y = load_iris(return_X_y=True)
    laws = fitted.laws_of(KNeighborsClassifier().fit(X, y), X, y)
    plain = np.asarray(measures.advantage(laws.law_pair()))
    pair = laws.law_pair(answer_noise=0.5)
    assert isinstance(pair.member, NormalMixture)
    noised = np.asarray(measures.advantage(pair))
    assert np.all(noised <= plain + 1e-9)
    np.testing.assert_allclose(measures.advantage(laws.noised(0.5).law_pair()), noised)
    tiny = measures.advantage(laws.law_pair(answer_noise=1e-3))
    np.testing.assert_allclose(tiny, plain, atol=1e-6)


def test_what_is_not_known_is_refused_in_a_sentence() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NoLawsError, match="weights of its own"):
        fitted.laws_of(KNeighborsClassifier(weights=lambda d: 1.0 + d).fit(X, y), X, y)
    with pytest.raises(InputError, match="pool question"):
        fitted.laws_of(KNeighborsClassifier().fit(X, y), X, y, question="population")
    with pytest.raises(InputError, match="observes must be one of scores for"):
        fitted.laws_of(KNeighborsClassifier().fit(X, y), X, y, observes="label")
    with pytest.raises(InputError, match="fewer than the 70 neighbours"):
        fitted.laws_of(KNeighborsClassifier(70).fit(X, y), X, y)


def test_a_list_of_all_others_and_a_long_one_are_one_law() -> None:
    """What the list leaves out has no mass that could be seen."""
    X, y = load_digits(return_X_y=True)
    near = Nearest.of(KNeighborsClassifier(), X[:300], y[:300], 299)
    short, whole = (count_law(near.alike[:, :length], 5, 0.5) for length in (75, 299))
    np.testing.assert_allclose(short, whole, atol=1e-12)
