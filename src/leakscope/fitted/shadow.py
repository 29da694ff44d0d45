"""Shadow models of the user's own estimator, each fitted on its own random part of the records.

The scores are the ones that the laws are about, so that the two can be laid side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import FittedLaws
from leakscope.fitted.people import People
from leakscope.fitted.problem import FittedModel
from leakscope.fitted.refits import Observed, WholeFit, other_logits, refits_of
from leakscope.single_fit.optimum import predictions_on
from leakscope.single_fit.problem import require_fraction

Mask = npt.NDArray[np.bool_]

# Of shadow models with a record, and of those without it.
LEAST_OF_EACH = 4


@dataclass(frozen=True, eq=False)
class ShadowScores:
    """What shadow models showed.

    Attributes
    ----------
    scores
        Models x records: each model's score at each record.
    trained_on
        Models x records: whether the model was fitted on the record.
    """

    scores: FloatArray
    trained_on: Mask

    @property
    def models(self) -> int:
        """How many models there are."""
        return len(self.scores)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean in, sd in, mean out and sd out of every record."""
        return (*self._of(self.trained_on), *self._of(~self.trained_on))

    def _of(self, side: Mask) -> tuple[FloatArray, FloatArray]:
        count = np.maximum(side.sum(axis=0), 1)
        mean = (self.scores * side).sum(axis=0) / count
        squares = ((self.scores - mean) ** 2 * side).sum(axis=0)
        return mean, np.sqrt(squares / np.maximum(count - 1, 1))


@dataclass(frozen=True, eq=False)
class ProblemFits:
    """A described model solved again on parts of its records, as `WholeFit` fits an estimator."""

    model: FittedModel
    learned: tuple[str, ...] = ()

    @property
    def y(self) -> FloatArray:
        """One label for each record."""
        return self.model.targets

    def lacks_a_class(self, rows: npt.NDArray[np.intp]) -> bool:
        """Whether a class is missing among these records."""
        classes = self.model.task == "classification"
        return classes and len(np.unique(self.y[rows])) < len(np.unique(self.y))

    def scores(self, rows: npt.NDArray[np.intp], observes: Observed | None = None) -> FloatArray:
        """The scores of all records where the problem has these rows only."""
        model = self.model
        predictions = [predictions_on(problem, rows) for problem in model.problems]
        if observes == "probabilities":
            return other_logits(predictions[0], self.y.astype(np.intp))
        scores = model.scores(predictions)
        if observes == "label":
            return (scores > 0.0).astype(np.float64)
        if observes == "residual":
            return np.asarray((self.y if model.task == "regression" else 0.0) - scores)
        return scores


def shadow_models(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    models: int = 256,
    fraction: float = 0.5,
    sample_weight: npt.ArrayLike | None = None,
    random_state: int | np.random.Generator | Key | None = None,
    people: People | None = None,
) -> ShadowScores:
    """Fit the estimator again on random parts of the records and score all records each time.

    All that ``fit`` does is done again: a pipeline's steps, and a search.  With the ``people`` of
    laws of groups, groups are drawn, and each group's score is the sum that its laws are of.
    """
    whole = WholeFit.of(estimator, X, y, sample_weight)
    return shadows_of(
        whole, models=models, fraction=fraction, random_state=random_state, people=people
    )


def shadows_of(
    whole: WholeFit | ProblemFits,
    *,
    models: int,
    fraction: float,
    random_state: int | np.random.Generator | Key | None = None,
    people: People | None = None,
) -> ShadowScores:
    """The same of an estimator with its records."""
    fraction = require_fraction(fraction, whole=False)
    if models < 2:
        raise InputError(f"At least two shadow models are needed, but {models} were asked for.")
    units = None if people is None else people.codes
    scores, trained_on = refits_of(whole, models, fraction, as_key(random_state), units=units)
    return ShadowScores(scores if people is None else people.summed(scores), trained_on)


@dataclass(frozen=True)
class ShadowCheck:
    """How far fitted laws agree with shadow models.

    Attributes
    ----------
    shift_ratio, sd_ratio
        Fitted over observed: the shift by regression weighted with its noise, the sd without the
        record in the median, the median's own bias at this number of models taken out.
    shift_z, mean_z
        Root mean square of the z-scores of the shift and of the mean without the record; 1 where
        the laws are right.
    """

    shift_ratio: float
    sd_ratio: float
    shift_z: float
    mean_z: float


def check_against_shadows(laws: FittedLaws, shadows: ShadowScores) -> ShadowCheck:
    """Compare the laws of every record with what shadow models showed."""
    if shadows.scores.shape[1] != laws.records:
        raise InputError(
            f"The shadow models scored {shadows.scores.shape[1]} records, but the laws are of "
            f"{laws.records}."
        )
    count_in = shadows.trained_on.sum(axis=0)
    count_out = shadows.models - count_in
    mean_in, sd_in, mean_out, sd_out = shadows.moments()
    usable = (np.minimum(count_in, count_out) >= LEAST_OF_EACH) & (sd_in > 0.0) & (sd_out > 0.0)
    usable &= (laws.nonmember_sd > 0.0) & (laws.member_sd > 0.0)
    # Among thousands of records a few are in nearly all of twenty models, by chance.
    if np.count_nonzero(usable) < 0.9 * laws.records:
        raise InputError(
            "Most records must be in and out of at least four shadow models, and their scores vary."
        )
    moments = [laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd]
    ours = [values[usable] for values in moments]
    theirs = [values[usable] for values in (mean_in, sd_in, mean_out, sd_out)]
    count_in, count_out = count_in[usable], count_out[usable]
    shift, observed = ours[0] - ours[2], theirs[0] - theirs[2]
    variance = ours[1] ** 2 / count_in + ours[3] ** 2 / count_out
    bias = np.sqrt(stats.chi2.median(count_out - 1) / (count_out - 1))
    return ShadowCheck(
        shift_ratio=float((shift**2 / variance).sum() / (shift * observed / variance).sum()),
        sd_ratio=float(np.median(ours[3] * bias / theirs[3])),
        shift_z=_rms((shift - observed) / np.sqrt(variance)),
        mean_z=_rms((ours[2] - theirs[2]) * np.sqrt(count_out) / ours[3]),
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
