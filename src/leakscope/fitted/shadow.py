"""Shadow models of the user's own estimator, and what others do with them.

Each model is fitted on its own random part of the records.  The scores are the ones that the laws
are about, so that the two can be laid side by side (`check_against_shadows`): z-scores,
calibration, and ranks beside their ceiling.

LiRA in its forms, RMIA and the loss of an ensemble are for comparison only; `few_models` uses none
of them.  Each gives one number for every record that ranks it, and LiRA gives laws too.  BASE
(Lassila et al. 2025) was shown to be RMIA in other words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from leakscope.halves.population import means_and_squares
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import advantage, tpr_at_fpr
from leakscope.single_fit.losses import label_log_odds
from leakscope.single_fit.optimum import predictions_on
from leakscope.single_fit.problem import require_fraction

Mask = npt.NDArray[np.bool_]
Variance = Literal["own", "bayes", "shared"]

FPR = 0.01

# Parts of the models that are left out in turn, and points that stand for a beta law.
BLOCKS = 10
# Of shadow models with a record, and of those without it.
LEAST_OF_EACH = 4
NODES = 12

# What the prior of BaVarIA counts for, in models.
PRIOR_MODELS = 4.0


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
        n_in, mean_in, squares_in = means_and_squares(self.scores, self.trained_on)
        n_out, mean_out, squares_out = means_and_squares(self.scores, ~self.trained_on)
        sd_in = np.sqrt(squares_in / np.maximum(n_in - 1, 1))
        return mean_in, sd_in, mean_out, np.sqrt(squares_out / np.maximum(n_out - 1, 1))


@dataclass(frozen=True, eq=False)
class ProblemFits:
    """A described model solved again on parts of its records, as `WholeFit` fits an estimator."""

    model: FittedModel
    learned: tuple[str, ...] = ()

    @property
    def y(self) -> FloatArray:
        """One label for each record."""
        return self.model.problems[0].y

    def lacks_a_class(self, rows: npt.NDArray[np.intp]) -> bool:
        """Whether a class is missing among these records."""
        classes = self.model.task == "classification"
        return classes and len(np.unique(self.y[rows])) < len(np.unique(self.y))

    def scores(self, rows: npt.NDArray[np.intp], observes: Observed | None = None) -> FloatArray:
        """The scores of all records where the problem has these rows only."""
        model = self.model
        found = [predictions_on(problem, rows) for problem in model.problems]
        if model.loss == "softmax":
            if observes == "probabilities":
                return other_logits(found[0], self.y.astype(np.intp))
            scores = label_log_odds(found[0], self.y)
        else:
            scores = np.asarray(model.sign * np.choose(model.own, found))
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
    models
        How many shadow models there were.
    shift_ratio, sd_ratio
        Fitted over observed: the shift by regression weighted with its noise, the sd without the
        record in the median, the median's own bias at this number of models taken out.
    shift_z, mean_z
        Root mean square of the z-scores of the shift and of the mean without the record; 1 where
        the laws are right.
    rank_correlation, ceiling
        Of the advantage with the observed one, and what exactly right laws would reach.
    top_in_common, top_ceiling
        The share of the observed top 1% among the predicted top 1%, and its ceiling.
    advantage_predicted, advantage_observed
        Mean advantage of normals: redrawn from the fitted laws, as this many models would show it,
        and with the shadow models' moments.
    tpr_predicted, tpr_observed, tpr_stderr
        Mean TPR at FPR ``tpr_at``: what the fitted laws say that this many models would show, what
        the likelihood ratio of the laws really reached on the shadow models, counted, and the
        count's standard error.  No law is fitted to the shadow models: normals with their
        moments gave means 6% too high and 10% too low, because the true laws are skewed.
    tpr_at
        1%, or the smallest FPR that this many models can show.
    """

    models: int
    shift_ratio: float
    sd_ratio: float
    shift_z: float
    mean_z: float
    rank_correlation: float
    ceiling: float
    top_in_common: float
    top_ceiling: float
    advantage_predicted: float
    advantage_observed: float
    tpr_predicted: float
    tpr_observed: float
    tpr_stderr: float
    tpr_at: float


def check_against_shadows(
    laws: FittedLaws,
    shadows: ShadowScores,
    *,
    random_state: int | np.random.Generator | Key | None = None,
) -> ShadowCheck:
    """Compare the laws of every record with what shadow models showed."""
    if shadows.scores.shape[1] != laws.records:
        raise InputError(
            f"The shadow models scored {shadows.scores.shape[1]} records, but the laws are of "
            f"{laws.records}."
        )
    count_in = shadows.trained_on.sum(axis=0)
    count_out = shadows.models - count_in
    enough = np.minimum(count_in, count_out) >= LEAST_OF_EACH
    # Among thousands of records a few are in nearly all of twenty models, by chance.
    if np.count_nonzero(enough) < 0.9 * laws.records:
        raise InputError("Most records must be in and out of at least four shadow models.")
    count_in, count_out = np.maximum(count_in, 2), np.maximum(count_out, 2)
    mean_in, sd_in, mean_out, sd_out = shadows.moments()
    observed = mean_in - mean_out
    variance = laws.member_sd**2 / count_in + laws.nonmember_sd**2 / count_out
    usable = enough & (variance > 0.0) & (sd_out > 0.0) & (sd_in > 0.0)
    if not usable.any():
        raise InputError(
            "No record's score varies both with it and without it, so there are no normal laws to "
            "lay beside those of the shadow models; count what the laws' own test is worth on them."
        )
    weight = np.where(usable, laws.shift / np.where(usable, variance, 1.0), 0.0)
    slope = float((weight * laws.shift).sum() / (weight * observed).sum())
    bias = np.sqrt(stats.chi2.median(count_out - 1) / (count_out - 1))
    said = laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd
    redrawn = _redrawn(said, count_in, count_out, as_key(random_state))
    ours, truth, again = (_pair(each, usable) for each in (said, shadows.moments(), redrawn))
    exposure = [np.asarray(advantage(pair)) for pair in (ours, truth, again)]
    level = max(FPR, 1.0 / (float(np.min(count_out[usable])) + 1.0))
    counted, error = _counted_with_error(_ratios(laws, shadows, usable), shadows, usable, level)
    return ShadowCheck(
        models=shadows.models,
        shift_ratio=slope,
        sd_ratio=float(np.median((laws.nonmember_sd * bias / np.where(usable, sd_out, 1))[usable])),
        shift_z=_rms((laws.shift - observed)[usable] / np.sqrt(variance[usable])),
        mean_z=_rms(
            ((laws.nonmember_mean - mean_out) * np.sqrt(count_out))[usable]
            / laws.nonmember_sd[usable]
        ),
        rank_correlation=_rank(exposure[0], exposure[1]),
        ceiling=_rank(exposure[0], exposure[2]),
        top_in_common=_common(exposure[0], exposure[1]),
        top_ceiling=_common(exposure[0], exposure[2]),
        advantage_predicted=float(exposure[2].mean()),
        advantage_observed=float(exposure[1].mean()),
        tpr_predicted=_expected_count(ours, int(np.median(count_out)), level),
        tpr_observed=counted,
        tpr_stderr=error,
        tpr_at=level,
    )


def _pair(moments: Sequence[FloatArray], usable: Mask) -> LawPair:
    """Normals with these means and standard deviations, in and out."""
    mean_in, sd_in, mean_out, sd_out = (values[usable] for values in moments)
    return LawPair(Normal(mean_in, sd_in), Normal(mean_out, sd_out))


def _redrawn(
    moments: Sequence[FloatArray], count_in: FloatArray, count_out: FloatArray, key: Key
) -> list[FloatArray]:
    """The moments that this many shadow models would show if the laws were exactly right."""
    generator = key.child(5).generator()
    found: list[FloatArray] = []
    for mean, sd, count in ((*moments[:2], count_in), (*moments[2:], count_out)):
        found.append(mean + sd * generator.standard_normal(len(mean)) / np.sqrt(count))
        found.append(sd * np.sqrt(generator.chisquare(count - 1) / (count - 1)))
    return found


def _ratios(laws: FittedLaws, shadows: ShadowScores, usable: Mask) -> FloatArray:
    """The log-likelihood ratio of the laws at every shadow model's score, models x records."""
    scores = shadows.scores[:, usable]
    inside = (scores - laws.member_mean[usable]) / laws.member_sd[usable]
    outside = (scores - laws.nonmember_mean[usable]) / laws.nonmember_sd[usable]
    return np.asarray(
        0.5 * (outside**2 - inside**2) - np.log(laws.member_sd / laws.nonmember_sd)[usable]
    )


def _counted(ratios: FloatArray, trained_on: Mask, level: float) -> float:
    """The share of members above the nonmembers' quantile, record by record, in the mean.

    Above the k-th largest of n nonmembers lies a share of k / (n + 1) in expectation, whatever the
    law; between two k the counts are interpolated.
    """
    total = 0.0
    for ratio, inside in zip(ratios.T, trained_on.T, strict=True):
        members, others = ratio[inside], np.sort(ratio[~inside])[::-1]
        place = max(level * (len(others) + 1.0), 1.0)
        low = int(place)
        high = min(low + 1, len(others))
        first, second = (float(np.mean(members > others[k - 1])) for k in (low, high))
        total += first + (place - low) * (second - first)
    return float(total / ratios.shape[1])


def _counted_with_error(
    ratios: FloatArray, shadows: ShadowScores, usable: Mask, level: float
) -> tuple[float, float]:
    """The count, and its standard error by leaving out a tenth of the models at a time."""
    trained_on = shadows.trained_on[:, usable]
    blocks = np.arange(len(ratios)) % BLOCKS
    parts = [_counted(ratios[blocks != b], trained_on[blocks != b], level) for b in range(BLOCKS)]
    error = np.sqrt((BLOCKS - 1.0) / BLOCKS * np.sum((np.array(parts) - np.mean(parts)) ** 2))
    return _counted(ratios, trained_on, level), float(error)


def _expected_count(pair: LawPair, others: int, level: float) -> float:
    """The mean TPR that `_counted` would show: its FPR has a beta law around the level."""
    place = level * (others + 1.0)
    steps = (np.arange(NODES) + 0.5) / NODES
    levels = stats.beta.ppf(steps, place, others + 1.0 - place)
    return float(np.mean([np.mean(np.asarray(tpr_at_fpr(pair, u))) for u in levels]))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _rank(first: FloatArray, second: FloatArray) -> float:
    return float(stats.spearmanr(first, second).statistic)


def _common(first: FloatArray, second: FloatArray) -> float:
    count = max(1, round(0.01 * len(first)))
    top = [set(np.argsort(-values)[:count].tolist()) for values in (first, second)]
    return len(top[0] & top[1]) / count
