"""Brute force for the tests of advice: scikit-learn's Gaussian process, refitted every time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from leakscope import kernels, lood
from leakscope.laws import LawPair, MultivariateNormal, Normal
from leakscope.results.advice import Target
from leakscope.subjects.laws import measure_of
from leakscope.subjects.process.changes import AdvisedProcess
from leakscope.subjects.process.subject import laws_of_separation
from leakscope.subjects.subject import Wanted, subject_of

FloatArray = NDArray[np.float64]

LENGTH = 1.3


def small_model(
    records: int = 24, outputs: int = 1, *, noise: float = 0.05, seed: int = 0, **more: Any
) -> lood.ProcessOnRecords:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records, 2))
    X[0] *= 3.0
    y = np.sin(X @ rng.normal(size=(2, outputs))) + 0.3 * rng.normal(size=(records, outputs))
    targets = y[:, 0] if outputs == 1 else y
    return lood.ProcessOnRecords(X, targets, kernels.rbf(LENGTH), noise, **more)


def posterior(
    X: FloatArray, y: FloatArray, queries: FloatArray, noise: float
) -> tuple[FloatArray, FloatArray]:
    """Mean (q, C) and covariance (q, q) of the latent function; the outputs share it."""
    process = GaussianProcessRegressor(RBF(LENGTH), alpha=noise, optimizer=None)
    process.fit(X, y)
    mean, covariance = process.predict(queries, return_cov=True)
    if covariance.ndim == 3:
        covariance = covariance[:, :, 0]
    return mean.reshape(len(queries), -1), covariance


def refitted_pair(
    model: lood.ProcessOnRecords,
    leave: Sequence[int],
    *,
    noise: float | None = None,
    output_variance: float = 0.0,
    features: FloatArray | None = None,
) -> LawPair:
    """The joint laws of the answers at some records, with and without them."""
    X = model.features if features is None else features
    s2 = model.noise_variance if noise is None else noise
    rows, others = list(leave), np.setdiff1d(np.arange(len(X)), leave)
    sides = [
        posterior(X[train], model.targets[train], X[rows], s2)
        for train in (np.arange(len(X)), others)
    ]
    member, nonmember = (joint(mean, cov, output_variance) for mean, cov in sides)
    return LawPair(member, nonmember)


def joint(
    mean: FloatArray, covariance: FloatArray, added: float = 0.0
) -> MultivariateNormal | Normal:
    """The law of all answers at once, (q C) numbers; a normal law where that is one."""
    queries, outputs = mean.shape
    whole = covariance + added * np.eye(queries)
    if mean.size == 1:
        return Normal(mean[0, 0], np.sqrt(whole[0, 0]))
    return MultivariateNormal(mean.ravel(), np.kron(whole, np.eye(outputs)))


def measured(target: Target, of: LawPair | lood.Separation) -> Any:
    """The target's measure of a pair, or of every unit's."""
    measure = measure_of(target)
    return of.measured(measure) if isinstance(of, lood.Separation) else measure(of)


def advised(model: lood.ProcessOnRecords) -> AdvisedProcess:
    """The process as advice changes it."""
    found = subject_of(model).for_advice(Wanted(Target("advantage", 0.5)))
    assert isinstance(found, AdvisedProcess)
    return found


def least_output_noise(
    laws: lood.Separation, target: Target, reach: float | None = None
) -> float | None:
    """The least variance of noise on the answers."""
    return laws_of_separation(laws, reach=reach).least_noise(target)
