"""Fitted laws beside shadow models: z-scores, calibration, and ranks beside their ceiling."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import FittedLaws
from leakscope.fitted.shadow import ShadowScores
from leakscope.laws import LawPair, Normal
from leakscope.measures import advantage, tpr_at_fpr

JACKKNIFE_GROUPS = 10


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
    tpr_predicted, tpr_observed
        Mean TPR at FPR 1%: of the fitted laws with the shadow models' noise added, and observed.
    tpr_stderr
        Standard error of their difference: over shadow models by a jackknife of ten groups, and
        of the noise that was added; None with too few models.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> shadows = fitted.shadow_models(model, X, y, models=64)
    >>> found = fitted.check_against_shadows(fitted.laws_of(model, X, y), shadows)
    >>> bool(abs(found.shift_ratio - 1.0) < 0.3 and abs(found.sd_ratio - 1.0) < 0.1)
    True
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
    tpr_predicted: float
    tpr_observed: float
    tpr_stderr: float | None = None


def check_against_shadows(
    laws: FittedLaws,
    shadows: ShadowScores,
    *,
    random_state: int | np.random.Generator | Key | None = None,
) -> ShadowCheck:
    """Compare the laws of every record with what shadow models showed.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> shadows = fitted.shadow_models(model, X, y, models=32)
    >>> fitted.check_against_shadows(fitted.laws_of(model, X, y), shadows).models
    32
    """
    if shadows.scores.shape[1] != laws.records:
        raise InputError(
            f"The shadow models scored {shadows.scores.shape[1]} records, but the laws are of "
            f"{laws.records}."
        )
    count_in = shadows.trained_on.sum(axis=0)
    count_out = shadows.models - count_in
    if min(int(count_in.min()), int(count_out.min())) < 4:
        raise InputError("Every record must be in and out of at least four shadow models.")
    mean_in, sd_in, mean_out, sd_out = shadows.moments()
    observed = mean_in - mean_out
    variance = laws.member_sd**2 / count_in + laws.nonmember_sd**2 / count_out
    usable = (variance > 0.0) & (sd_out > 0.0) & (sd_in > 0.0)
    weight = np.where(usable, laws.shift / np.where(usable, variance, 1.0), 0.0)
    slope = float((weight * laws.shift).sum() / (weight * observed).sum())
    bias = np.sqrt(stats.chi2.median(count_out - 1) / (count_out - 1))
    truth = _pair(mean_in, sd_in, mean_out, sd_out, usable)
    ours = _pair(laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd, usable)
    key = as_key(random_state)
    redrawn, other = (_redrawn(laws, count_in, count_out, k, usable) for k in (key, key.child(6)))
    exposure = [np.asarray(advantage(pair)) for pair in (ours, truth, redrawn)]
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
        tpr_predicted=_mean_tpr(redrawn),
        tpr_observed=_mean_tpr(truth),
        tpr_stderr=_tpr_stderr(shadows, usable, redrawn, other),
    )


def _mean_tpr(pair: LawPair) -> float:
    return float(np.mean(np.asarray(tpr_at_fpr(pair, 0.01))))


def _tpr_stderr(
    shadows: ShadowScores, usable: FloatArray, redrawn: LawPair, other: LawPair
) -> float | None:
    """As one group of shadow models after the other is left out, and between two redraws."""
    group = np.arange(shadows.models) % JACKKNIFE_GROUPS
    found = []
    for left_out in range(JACKKNIFE_GROUPS):
        kept = group != left_out
        part = replace(shadows, scores=shadows.scores[kept], trained_on=shadows.trained_on[kept])
        mean_in, sd_in, mean_out, sd_out = part.moments()
        if not ((sd_in > 0.0) & (sd_out > 0.0))[usable].all():
            return None
        pair = _pair(mean_in, sd_in, mean_out, sd_out, usable)
        found.append(_mean_tpr(pair))
    apart = np.asarray(tpr_at_fpr(redrawn, 0.01)) - np.asarray(tpr_at_fpr(other, 0.01))
    drawn = float(np.sum(apart**2)) / 2.0 / len(apart) ** 2
    return float(np.sqrt((JACKKNIFE_GROUPS - 1) * np.var(found) + drawn))


def _pair(
    mean_in: FloatArray,
    sd_in: FloatArray,
    mean_out: FloatArray,
    sd_out: FloatArray,
    usable: FloatArray,
) -> LawPair:
    return LawPair(Normal(mean_in[usable], sd_in[usable]), Normal(mean_out[usable], sd_out[usable]))


def _redrawn(
    laws: FittedLaws, count_in: FloatArray, count_out: FloatArray, key: Key, usable: FloatArray
) -> LawPair:
    """What this many shadow models would show if the laws were exactly right."""
    generator = key.child(5).generator()
    parts: list[FloatArray] = []
    for mean, sd, count in (
        (laws.member_mean, laws.member_sd, count_in),
        (laws.nonmember_mean, laws.nonmember_sd, count_out),
    ):
        parts.append(mean + sd * generator.standard_normal(len(mean)) / np.sqrt(count))
        parts.append(sd * np.sqrt(generator.chisquare(count - 1) / (count - 1)))
    return _pair(parts[0], parts[1], parts[2], parts[3], usable)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _rank(first: FloatArray, second: FloatArray) -> float:
    return float(stats.spearmanr(first, second).statistic)


def _common(first: FloatArray, second: FloatArray) -> float:
    count = max(1, round(0.01 * len(first)))
    top = [set(np.argsort(-values)[:count].tolist()) for values in (first, second)]
    return len(top[0] & top[1]) / count
