"""What happens to leakage and to accuracy as the noise variance moves.

At each level: every record's advantage, summed up, and the error of the released answer at each
record by a model trained without it.  The released answer is a draw of the latent function, as in
the audit; with mean mu_i and variance v_i without record i its squared error is (y_i - mu_i)^2 +
v_i on average, and the chance of a wrong class follows from the same normals.  Nothing is refitted
(:func:`leakscope.lood.noise_path`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import chance_of_largest
from leakscope.data.datasets import RecordId, Task
from leakscope.errors import InputError
from leakscope.results.audit import EXPOSED_ABOVE
from leakscope.subjects.process.choices import advantages

# A tenth of a decade apart, from a hundredth to a thousand times the audit's own level.
FACTORS: tuple[float, ...] = tuple(10.0 ** (step / 10.0) for step in range(-20, 31))

# An eigendecomposition of this many records takes some ten seconds on one core.
MOST_RECORDS = 4000

TOP = 10
BINS = 40


@dataclass(frozen=True)
class NoiseLevel:
    """Leakage and accuracy at one noise variance.

    Attributes
    ----------
    noise_variance
        In squared units of the target as used.
    largest_advantage, median_advantage, exposed
        Over all records; how many have an advantage of 0.1 or more.
    histogram
        Records by advantage, in equal bins from 0 to 1.
    top
        The most exposed, by KL: id, KL and advantage.
    root_mean_squared_error
        Of the released answer, by leave-one-out, in units of the target as used.
    root_mean_squared_error_of_mean
        The same of the mean of all answers, which nobody releases.
    wrong_class
        Of a classification: how often the released answer names a wrong class; None otherwise.
    untrusted
        How many records float64 does not resolve to 1e-8 at this level.
    """

    noise_variance: float
    largest_advantage: float
    median_advantage: float
    exposed: int
    histogram: tuple[int, ...]
    top: tuple[tuple[RecordId, float, float], ...]
    root_mean_squared_error: float
    root_mean_squared_error_of_mean: float
    wrong_class: float | None
    untrusted: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**vars(self), "histogram": list(self.histogram), "top": [list(t) for t in self.top]}


@dataclass(frozen=True)
class NoisePath:
    """Leakage and accuracy over many noise variances.

    Attributes
    ----------
    levels
        With rising noise variance.
    audited
        Which of them is the audit's own.
    task
        Whether ``wrong_class`` is there.
    target_scale
        Standard deviation of the target as read, of a regression; 1 otherwise.
    error_of_guessing
        The error without any model: the target's own deviation, or the share that is not of the
        most frequent class.
    records
        How many.
    """

    levels: tuple[NoiseLevel, ...]
    audited: int
    task: Task
    target_scale: float
    error_of_guessing: float
    records: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**vars(self), "levels": [level.to_dict() for level in self.levels]}


def path_unavailable(process: lood.Process, laws: lood.Separation) -> str | None:
    """Why there is no path for this audit, as a sentence; None where there is one."""
    if process.groups is not None:
        return "The noise slider is for single records; here groups leave as a whole."
    if laws.route == "nystrom":
        return "This audit is approximate; the noise slider needs an exact one."
    if process.records > MOST_RECORDS:
        return (
            f"The noise slider takes at most {MOST_RECORDS} records, and there are "
            f"{process.records}: it needs all eigenvalues of the kernel matrix.  The report's "
            "section on sensitivity has five levels."
        )
    return None


def noise_path(
    process: lood.Process,
    laws: lood.Separation,
    ids: tuple[RecordId, ...],
    *,
    target_scale: float = 1.0,
    factors: tuple[float, ...] = FACTORS,
    on_level: Callable[[int], None] | None = None,
) -> NoisePath:
    """Leakage and leave-one-out error at each level, from one eigendecomposition.

    ``target_scale`` is what one unit of the target as used is in units of the target as read;
    ``on_level`` is called with the number of each level as it begins.
    """
    reason = path_unavailable(process, laws)
    if reason is not None:
        raise InputError(reason)
    targets = process.targets
    levels = [laws.noise_variance * factor for factor in factors]
    path = lood.noise_path(process.fresh_matrix(), targets, noise_variances=levels)
    found: list[NoiseLevel] = []
    for place in range(len(factors)):
        if on_level is not None:
            on_level(place)
        found.append(_level(next(path), targets, process.task, ids))
    return NoisePath(
        levels=tuple(found),
        audited=factors.index(1.0),
        task=process.task,
        target_scale=target_scale,
        error_of_guessing=_error_of_guessing(process.task, targets),
        records=len(targets),
    )


def _level(
    laws: lood.Separation, targets: FloatArray, task: Task, ids: tuple[RecordId, ...]
) -> NoiseLevel:
    advantage, kl = advantages(laws), laws.kl
    residual = (targets - laws.mean_without).reshape(len(targets), -1)
    # Where there are several outputs, the error of an output: each has the same variance.
    of_mean = np.mean(residual**2)
    released = of_mean + np.mean(laws.variance_without)
    wrong = None
    if task == "classification":
        wrong = float(np.mean(wrong_class(laws.mean_without, laws.variance_without, targets)))
    first = np.argsort(-kl, kind="stable")[:TOP]
    counts, _ = np.histogram(advantage, bins=BINS, range=(0.0, 1.0))
    return NoiseLevel(
        noise_variance=laws.noise_variance,
        largest_advantage=float(np.max(advantage)),
        median_advantage=float(np.median(advantage)),
        exposed=int(np.count_nonzero(advantage >= EXPOSED_ABOVE)),
        histogram=tuple(counts.tolist()),
        top=tuple((ids[row], float(kl[row]), float(advantage[row])) for row in first.tolist()),
        root_mean_squared_error=float(np.sqrt(released)),
        root_mean_squared_error_of_mean=float(np.sqrt(of_mean)),
        wrong_class=wrong,
        untrusted=int(np.count_nonzero(~laws.trusted)),
    )


def wrong_class(mean: FloatArray, variance: FloatArray, targets: FloatArray) -> FloatArray:
    """The chance, (n,), that a draw of the outputs names a class that is not the record's.

    One output, (n,), names a class by its sign; C outputs, (n, C), by the largest, where
    P(right) = E_z prod_{c != t} Phi((mu_t - mu_c)/s + z) over a standard normal z.

    """
    deviation = np.sqrt(variance)
    if targets.ndim == 1:
        return np.asarray(ndtr(-np.sign(targets) * mean / deviation))
    chance = chance_of_largest(mean / deviation[:, None], np.argmax(targets, axis=1))
    return np.asarray(np.clip(1.0 - chance, 0.0, 1.0))


def _error_of_guessing(task: Task, targets: FloatArray) -> float:
    if task == "regression":
        return float(np.std(targets))
    labels = np.sign(targets) if targets.ndim == 1 else np.argmax(targets, axis=1)
    _, counts = np.unique(labels, return_counts=True)
    return float(1.0 - counts.max() / len(labels))
