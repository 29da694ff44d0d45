"""What can be changed of a process: its training noise and its records; and what that costs.

More training noise need not expose less: a record's mean shifts less, but the answers of the others
change too.  One eigendecomposition gives every level (:mod:`leakscope.lood.noise`), where the
kernel has no finite features that give it at once.

A released answer is one draw from the posterior, with noise of variance v added where that is the
change.  Its expected squared error at a record held out is (mean - y)^2 + posterior variance + v,
averaged over outputs; the draw and the noise are averaged over exactly, not simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Task
from leakscope.lood.dense import factorise
from leakscope.lood.features import FeatureRegression
from leakscope.lood.posterior import predicted
from leakscope.lood.process import ProcessOnRecords
from leakscope.lood.separation import chance_of_right
from leakscope.results.document import AssumptionEntry
from leakscope.subjects.laws import LARGEST_VARIANCE, Rows
from leakscope.subjects.pricing import CONSTANT_TARGET, Folds, ReleasedError, Terms, like_these
from leakscope.subjects.subject import Change, Scan, Subject, Wanted

PER_DECADE = 6

# Relative width to which the training noise is found.
WIDTH = 1e-5

# On random halves of diabetes kernel ridge gave 0.6 to 0.8 at the penalty that promises a draw 0.2.
ONLY_A_DRAW = (
    "This holds where each answer is a draw from the process's posterior; a deterministic fit, "
    "such as kernel ridge, with the same number as its penalty gives more away."
)
MODEL_FAMILY = (
    "The advice is about a Gaussian process with the audit's kernel, of which one draw is "
    "released; your model was not examined. leakscope verify compares the audit with models that "
    "are actually trained."
)
OWN_POINTS = (
    "The noise is for questions about the records themselves; another question may tell more."
)


def more_noise(process: ProcessOnRecords, at: Callable[[float], Subject], wanted: Wanted) -> Change:
    """More training noise; ``at`` gives the subject at a level."""
    own = process.noise_variance
    enough = min(enough_noise(process, wanted.target.enough_advantage), LARGEST_VARIANCE)
    levels = [own]
    while levels[-1] < enough:
        levels.append(float(own * 10.0 ** (len(levels) / PER_DECADE)))

    def along(scan: Scan, points: int) -> Sequence[float]:
        top = scan.levels[-1] if scan.found is None else scan.found
        beyond = [] if scan.found is None else [2.0 * top]
        return [*np.geomspace(own, top, points).tolist(), *beyond]

    return Change(
        name="kernel noise",
        setting="noise_variance",
        levels=levels,
        at=at,
        words=lambda level: f"Train with noise_variance {level:.4g} instead of {own:.4g}",
        between=lambda low, high: float(np.sqrt(low * high)) if high > low * (1 + WIDTH) else None,
        beyond=PER_DECADE,
        along=along,
        always=(ONLY_A_DRAW,),
        unmet="Was not shown to meet",
    )


def enough_noise(process: ProcessOnRecords, advantage: float) -> float:
    """A training noise above which no unit's advantage is above this one, in closed form.

    With l above the largest eigenvalue (the trace) and g the records of the largest unit,
    x <= l/s2 and |a| <= |y|/s2.  Where s2 >= l the divergence KL(with || without) of a unit is then
    at most (l/s2^2)(g C l/4 + |y|^2), and the advantage at most sqrt(KL/2) (Pinsker).
    """
    top = float(np.sum(process.kernel.diagonal(process.features)))
    largest_unit = int(np.bincount(process.labels).max())
    with np.errstate(over="ignore", divide="ignore"):
        share = 0.25 * largest_unit * process.outputs.shape[1] * top + np.sum(process.outputs**2)
        level = max(top, float(np.sqrt(0.5 * top * share) / np.float64(advantage)))
    return level if np.isfinite(level) else float("inf")


@dataclass(frozen=True)
class HeldOutDraws:
    """Posterior mean (R, n, C) and variance (R, n) at every record, trained without its fold."""

    mean: FloatArray
    variance: FloatArray
    targets: FloatArray
    folds: Folds
    task: Task

    def released(self, noise: float = 0.0) -> ReleasedError:
        """The error of a draw with noise of this standard deviation added."""
        spread = self.variance + noise**2
        squared = np.mean((self.mean - self.targets) ** 2, axis=2) + spread
        right = None
        if self.task == "classification":
            right = chance_of_right(self.mean, spread, self.targets)
        return self.folds.released(squared, right)


def held_out(process: ProcessOnRecords, folds: Folds, kept: Rows) -> HeldOutDraws:
    """Train on what is kept of each fold's training part, and predict the fold."""
    repeats, count = folds.number.shape
    outputs, prior = process.outputs, process.kernel.diagonal(process.features)
    mean = np.zeros((repeats, count, outputs.shape[1]))
    variance = np.broadcast_to(prior, (repeats, count)).copy()
    for repeat, number in enumerate(folds.number):
        for fold in range(folds.count):
            asked, records = np.flatnonzero(number == fold), kept[number[kept] != fold]
            if len(records):
                place = (repeat, asked)
                mean[place], variance[place] = _trained(process, records, asked, prior[asked])
    return HeldOutDraws(mean, variance, outputs, folds, process.task)


def _trained(
    process: ProcessOnRecords, records: Rows, asked: Rows, prior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior means (q, C) and variances (q,) at some records, trained on others."""
    level, outputs = process.noise_variance, process.outputs[records]
    if process.way == "features" and process.phi is not None:
        phi = process.phi[records]
        return FeatureRegression.of(lambda: iter([(0, phi, outputs)]), level).predictions(
            process.phi[asked]
        )
    matrix = process.matrix
    factor = factorise(matrix[np.ix_(records, records)], level, overwrite=True)
    return predicted(factor, matrix[np.ix_(records, asked)], prior, outputs)


def terms(process: ProcessOnRecords, folds: Folds) -> Terms:
    """Squared error of draws, and the process's own words."""
    variance = process.total_variance
    return Terms(
        priced="the released answers' squared error",
        whose="their",
        variance=variance,
        unconfirmed="float64 does not resolve every {unit} there",
        noise="Add fresh noise of standard deviation {sd:.4g}, in units of the target as used, to "
        "every released answer",
        noise_digits=None,
        # Measures of many outputs take longer.
        batches=200 if process.outputs.shape[1] == 1 else 40,
        notes=(CONSTANT_TARGET,) if variance == 0.0 else (),
        warnings=(MODEL_FAMILY,),
        assumptions=(
            AssumptionEntry(
                statement="where answers carry noise, the attacker asks one question, at the "
                "record's own point",
                holds=None,
                evidence="more answers average the noise away; without noise on the answers no "
                "question or set of questions to one trained model tells more than the record's "
                "own point",
            ),
            AssumptionEntry(
                statement="scales and kernel parameters stay fixed when a record leaves",
                holds=None,
                evidence="as in the audit",
            ),
            like_these(
                f"{folds.count}-fold cross-validation, repetitions: {len(folds.number)}; what to "
                "drop was chosen once, on all records"
            ),
        ),
    )
