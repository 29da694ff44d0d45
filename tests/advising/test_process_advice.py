"""Advice on a process against scikit-learn's Gaussian process, refitted every time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from leakscope import kernels, lood
from leakscope.advising import AuditTarget, advise
from leakscope.errors import InputError
from leakscope.laws import LawPair, MultivariateNormal, Normal
from leakscope.results import Advice
from leakscope.subjects.laws import measure_of
from leakscope.subjects.pricing import Folds
from leakscope.subjects.process.changes import enough_noise, held_out

LENGTH, TARGET = 1.3, AuditTarget("advantage", 0.3)


def small_model(
    records: int = 24, outputs: int = 1, *, noise: float = 0.05, **more: Any
) -> lood.ProcessOnRecords:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(records, 2))
    X[0] *= 3.0
    y = np.sin(X @ rng.normal(size=(2, outputs))) + 0.3 * rng.normal(size=(records, outputs))
    targets = y[:, 0] if outputs == 1 else y
    return lood.ProcessOnRecords(X, targets, kernels.rbf(LENGTH), noise, **more)


def posterior(X: Any, y: Any, queries: Any, noise: float) -> tuple[Any, Any]:
    """Mean (q, C) and covariance (q, q) of the latent function; the outputs share it."""
    process = GaussianProcessRegressor(RBF(LENGTH), alpha=noise, optimizer=None).fit(X, y)
    mean, covariance = process.predict(queries, return_cov=True)
    if covariance.ndim == 3:
        covariance = covariance[:, :, 0]
    return mean.reshape(len(queries), -1), covariance


def refitted(
    model: lood.ProcessOnRecords,
    leave: Sequence[int],
    *,
    noise: float,
    output_variance: float = 0.0,
    kept: Sequence[int] | None = None,
) -> float:
    """The advantage on some records, from fits with and without them."""
    X, rows = model.features, list(leave)
    everyone = np.arange(len(X)) if kept is None else np.asarray(kept)
    laws = []
    for train in (everyone, np.setdiff1d(everyone, leave)):
        mean, covariance = posterior(X[train], model.targets[train], X[rows], noise)
        whole = covariance + output_variance * np.eye(len(rows))
        if mean.size == 1:
            laws.append(Normal(mean[0, 0], np.sqrt(whole[0, 0])))
        else:
            laws.append(MultivariateNormal(mean.ravel(), np.kron(whole, np.eye(mean.shape[1]))))
    return float(measure_of(TARGET)(LawPair(*laws)))


@pytest.fixture(scope="module", params=[1, 2])
def model(request: pytest.FixtureRequest) -> lood.ProcessOnRecords:
    return small_model(outputs=request.param)


@pytest.fixture(scope="module")
def advice(model: lood.ProcessOnRecords) -> Advice:
    return advise(model, TARGET, random_state=0)


def test_every_option_does_what_it_says(model: lood.ProcessOnRecords, advice: Advice) -> None:
    seen = set()
    for option in advice.options:
        told = {name: value for name, value in option.setting.items() if value is not None}
        kept = np.setdiff1d(np.arange(model.records), [int(one) for one in option.dropped])
        worst = max(
            refitted(
                model,
                [int(row)],
                noise=told.get("noise_variance", model.noise_variance),
                output_variance=told.get("output_sd", 0.0) ** 2,
                kept=kept,
            )
            for row in kept
        )
        assert worst == pytest.approx(option.worst, rel=1e-5)
        assert option.meets == (worst <= TARGET.value * (1 + 1e-9))
        seen.add(option.name)
    assert {"kernel noise", "dropping"} <= seen


def test_groups_leave_as_a_whole() -> None:
    groups = np.repeat(np.arange(8), 3)
    model = small_model(groups=groups)
    found = advise(model, TARGET, random_state=0)
    option = next(one for one in found.options if one.name == "kernel noise")
    level = float(option.setting["noise_variance"])
    worst = max(refitted(model, np.flatnonzero(groups == g), noise=level) for g in range(8))
    assert worst == pytest.approx(option.worst, rel=1e-5)


def test_noise_that_is_enough_by_a_bound_is_enough() -> None:
    model = small_model()
    level = enough_noise(model, 0.05)
    assert max(refitted(model, [row], noise=level) for row in range(24)) < 0.05


def test_the_price_is_the_error_of_refits(model: lood.ProcessOnRecords) -> None:
    folds = Folds.of(np.arange(24), count=3, repeats=2, random_state=0)
    kept = np.arange(2, 24)
    found = held_out(model, folds, kept)
    for repeat, number in enumerate(folds.number):
        for fold in range(3):
            asked = np.flatnonzero(number == fold)
            train = kept[number[kept] != fold]
            mean, covariance = posterior(
                model.features[train], model.targets[train], model.features[asked], 0.05
            )
            np.testing.assert_allclose(found.mean[repeat, asked], mean, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(found.variance[repeat, asked], np.diagonal(covariance))
    squared = np.mean((found.mean - found.targets) ** 2, axis=2) + found.variance
    assert found.released(0.5).error == pytest.approx(float(np.mean(squared)) + 0.25, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_is_that_of_drawn_answers(classes: int) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, classes, 24)
    y = labels - 0.5 if classes == 2 else np.eye(classes)[labels] - 1.0 / classes
    base = small_model()
    model = lood.ProcessOnRecords(base.features, y, base.kernel, 0.1, task="classification")
    folds = Folds.of(np.arange(24), count=4, repeats=1, random_state=0)
    found = held_out(model, folds, np.arange(24))
    noise = rng.normal(size=(4000, *found.mean[0].shape))
    drawn = found.mean[0] + np.sqrt(found.variance[0])[:, None] * noise
    right = drawn[..., 0] > 0 if classes == 2 else drawn.argmax(axis=2)
    share = float(np.mean(right == labels))
    assert found.released().accuracy == pytest.approx(share, abs=0.01)


def test_linear_features_give_what_the_kernel_matrix_gives() -> None:
    base = small_model()
    by_features = lood.ProcessOnRecords(base.features, base.targets, kernels.linear(), 0.5)
    by_matrix = lood.ProcessOnRecords(
        base.features, base.targets, kernels.linear(), 0.5, route="dense"
    )
    options = [advise(one, TARGET, random_state=0).options for one in (by_features, by_matrix)]
    for one, other in zip(*options, strict=True):
        assert one.name == other.name
        assert one.worst == pytest.approx(other.worst, rel=1e-6)
        assert one.error == pytest.approx(other.error, rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [{"noise_variance": 0.0}, {"task": "ranking"}, {"groups": [0, 1]}, {"features": np.zeros(3)}],
)
def test_what_cannot_be_audited_is_refused(change: dict[str, Any]) -> None:
    base = small_model()
    whole = {
        "features": base.features,
        "targets": base.targets,
        "kernel": base.kernel,
        "noise_variance": 0.1,
    }
    with pytest.raises(InputError):
        lood.ProcessOnRecords(**(whole | change))


def test_folds_hold_whole_groups_and_every_record_once() -> None:
    groups = np.repeat(np.arange(10), 3)
    folds = Folds.of(groups, count=5, repeats=3, random_state=1)
    for number in folds.number:
        assert np.bincount(number).tolist() == [6] * 5
        assert all(len(set(number[groups == group])) == 1 for group in range(10))
    with pytest.raises(InputError, match="4 units"):
        Folds.of(np.arange(4), count=5)
