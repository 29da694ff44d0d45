"""TPR at a given FPR, the whole ROC curve and the trade-off curve, from two samples of scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakscope.measures.empirical_ranks import (
    Floats,
    Integers,
    Ranks,
    beta_quantile,
    binomial_lower,
    binomial_upper,
    by_blocks,
    check_confidence,
    check_probability,
    count_above,
    dkw,
)
from leakscope.measures.estimate import Estimate
from leakscope.settings import MEASURE_DEFAULTS

__all__ = ["roc", "tpr_at_fpr", "trade_off"]

# floor(0.29 * 100) is 28 in floating point; a product this close to an integer is that integer.
_SLACK = 1e-9


def tpr_at_fpr(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
    *,
    randomised: bool = False,
) -> Estimate:
    """Estimate the true positive rate of the best threshold test with a given false positive rate.

    The attacker is a threshold test on the score (score high -> member).  By default the value
    is conservative: the threshold is the lowest whose empirical FPR does not exceed ``fpr``; it
    is a deterministic test, which cannot split ties.  With ``randomised=True`` it is the height
    of the empirical ROC curve, straight through ties, which an attacker reaches by tossing a coin
    at the tied score.

    The interval holds for every sample size and any law, ties included, and covers the true TPR
    of both kinds of test at the *true* FPR ``fpr``: it allows for the threshold being estimated.
    The true FPR of a test that cuts at the j-th largest nonmember score is Beta(j, n - j + 1)
    distributed [1]_, or beyond that on the safe side under ties; the interval takes the cuts
    whose FPR is below and above ``fpr`` with chance 1 - alpha/4 each, and Clopper-Pearson bounds
    at alpha/4 for the TPR of these cuts, with alpha = 1 - confidence.

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    fpr : float or array_like, shape (m,)
        False positive rates, fractions in [0, 1].
    confidence : float
        Confidence of each interval on its own; see `roc` for a simultaneous band.
    randomised : bool
        Whether the value may split ties by a coin.

    Returns
    -------
    Estimate
        Arrays of the batch shape, followed by (m,) when ``fpr`` is an array.  Where ``fpr`` is
        below about ``log(4 / alpha) / n_nonmember`` the lower end is 0: so few nonmembers cannot
        show that a test has so small an FPR.

    References
    ----------
    .. [1] H. David, H. Nagaraja, "Order Statistics", 2003, section 7.2 (tolerance limits).

    Examples
    --------
    >>> found = tpr_at_fpr([3.0, 2.0, 1.0, 0.5], [2.5, 1.5, 0.0, -1.0], [0.0, 0.25, 1.0])
    >>> found.value.tolist()
    [0.25, 0.5, 1.0]
    >>> found.low.tolist()
    [0.0, 0.0, 1.0]
    """
    level = check_confidence(confidence)
    target = check_probability("fpr", fpr)
    cuts = np.atleast_1d(target)

    def compute(ranks: Ranks) -> tuple[Floats, Floats, Floats]:
        n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
        cut = _Cuts(ranks)
        value = cut.curve(cuts) if randomised else cut.strict(cuts)
        below, above = _sure_cuts(n_nonmember, cuts, level / 4.0)
        hits = cut.exceeding(below)
        low = np.where(below > 0, binomial_lower(hits, n_member, level / 4.0), 0.0)
        hits = cut.reaching(above)
        high = np.where(above <= n_nonmember, binomial_upper(hits, n_member, level / 4.0), 1.0)
        low = np.where(cuts == 1.0, 1.0, low)
        return value, np.minimum(low, value), np.maximum(high, value)

    value, low, high = by_blocks(member, nonmember, compute)
    n_nonmember = np.shape(nonmember)[-1]
    needed = 1.0 - (level / 4.0) ** (1.0 / n_nonmember)
    bias = (
        "The value is the height of the empirical ROC curve; its bias is of order 1/n_nonmember."
        if randomised
        else "The value takes the threshold whose empirical FPR does not exceed the target, which "
        "is low by up to the slope of the ROC curve over n_nonmember; under ties it does not split "
        "the tied score."
    )
    if (cuts < needed).any():
        bias += (
            f" Below an FPR of {needed:.2g}, {n_nonmember} nonmember scores cannot show that a "
            "test has so small an FPR: there the lower end is 0 and the value is only what this "
            "sample's strictest test gives."
        )
    shape = value.shape[:-1] if target.ndim == 0 else value.shape
    return Estimate(
        value.reshape(shape),
        low.reshape(shape),
        high.reshape(shape),
        confidence,
        "order statistic and Clopper-Pearson",
        bias,
    )


def roc(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the ROC curve at the given false positive rates, with a simultaneous band.

    The attacker is a threshold test on the score (score high -> member), randomised at ties: the
    value is the empirical staircase with straight segments through ties.  It is not made concave,
    since that takes a test that is no threshold.  The band contains the whole true ROC curve, at
    all FPRs at once, with the given confidence, for every sample size and any law: it shifts the
    empirical curve along both axes by the Dvoretzky-Kiefer-Wolfowitz bound with Massart's
    constant [1]_, at confidence sqrt(confidence) for each of the two independent samples.  See
    `tpr_at_fpr` for a tighter interval at one FPR fixed in advance.

    Parameters
    ----------
    member, nonmember : array_like, shapes (..., n_member) and (..., n_nonmember)
        Finite scores, at least 2 of each; leading axes are a batch and broadcast.
    fpr : float or array_like, shape (m,)
        False positive rates, fractions in [0, 1].
    confidence : float
        Confidence of the whole band.

    Returns
    -------
    Estimate
        Arrays of the batch shape, followed by (m,) when ``fpr`` is an array.  The value is biased
        by order 1/n_nonmember only; the band is wide at small FPRs.

    References
    ----------
    .. [1] P. Massart, Annals of Probability 18, 1990; for ROC bands: S. Macskassy, F. Provost,
       ICML 2005.

    Examples
    --------
    >>> roc([1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.125, 0.25, 1.0]).value.tolist()
    [0.0, 0.375, 0.75, 1.0]
    """
    level = check_confidence(confidence)
    target = check_probability("fpr", fpr)
    cuts = np.atleast_1d(target)
    single = 1.0 - np.sqrt(1.0 - level)

    def compute(ranks: Ranks) -> tuple[Floats, Floats, Floats]:
        n_member, n_nonmember = ranks.member.shape[-1], ranks.nonmember.shape[-1]
        cut = _Cuts(ranks)
        value = cut.curve(cuts)
        up, along = dkw(n_member, single), dkw(n_nonmember, single)
        low = np.where(cuts >= along, cut.strict(np.maximum(cuts - along, 0.0)) - up, 0.0)
        above = np.ceil((cuts + along) * n_nonmember - _SLACK).astype(np.int64)
        high = np.where(above <= n_nonmember, cut.reaching(above) / n_member + up, 1.0)
        low = np.where(cuts == 1.0, 1.0, np.maximum(low, 0.0))
        return value, np.minimum(low, value), np.minimum(np.maximum(high, value), 1.0)

    value, low, high = by_blocks(member, nonmember, compute)
    shape = value.shape[:-1] if target.ndim == 0 else value.shape
    return Estimate(
        value.reshape(shape),
        low.reshape(shape),
        high.reshape(shape),
        confidence,
        "empirical ROC, simultaneous DKW band",
        "The value is the empirical ROC curve; its bias is of order 1/n_nonmember.",
    )


def trade_off(
    member: npt.ArrayLike,
    nonmember: npt.ArrayLike,
    fpr: npt.ArrayLike,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> Estimate:
    """Estimate the trade-off curve of f-DP, 1 - TPR at each FPR, with a simultaneous band.

    Everything said for `roc` holds; the attacker is a threshold test on the score, so the true
    trade-off between the two laws can lie below this curve (see J. Dong, A. Roth, W. Su,
    "Gaussian differential privacy", JRSS B 84, 2022).

    Examples
    --------
    >>> trade_off([1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.25, 1.0]).value.tolist()
    [1.0, 0.25, 0.0]
    """
    curve = roc(member, nonmember, fpr, confidence)
    return Estimate(
        1.0 - curve.value,
        1.0 - curve.high,
        1.0 - curve.low,
        confidence,
        "one minus the " + curve.method,
        "The value is one minus the empirical ROC curve; its bias is of order 1/n_nonmember.",
    )


class _Cuts:
    """Threshold tests that cut at order statistics of the nonmember scores of each row."""

    def __init__(self, ranks: Ranks) -> None:
        self.size = ranks.size
        self.member = np.sort(ranks.member, axis=-1)
        self.nonmember = np.sort(ranks.nonmember, axis=-1)
        self.n_member = self.member.shape[-1]
        self.n_nonmember = self.nonmember.shape[-1]

    def _largest(self, order: Integers) -> Integers:
        """Return the order-th largest nonmember rank; -1 for order n_nonmember + 1."""
        index = np.clip(self.n_nonmember - order, -1, self.n_nonmember - 1)
        chosen = self.nonmember[:, np.maximum(index, 0)]
        return np.asarray(np.where(index < 0, -1, chosen), dtype=np.int64)

    def exceeding(self, order: Integers) -> Integers:
        """Count the members strictly above the order-th largest nonmember."""
        return count_above(self.member, self._largest(order), size=self.size)

    def reaching(self, order: Integers) -> Integers:
        """Count the members at or above the order-th largest nonmember."""
        lower = np.maximum(self._largest(order) - 1, -1)
        return count_above(self.member, lower, size=self.size)

    def strict(self, fpr: Floats) -> Floats:
        """Return the TPR of the lowest threshold whose empirical FPR is at most ``fpr``."""
        allowed = np.floor(fpr * self.n_nonmember + _SLACK).astype(np.int64)
        return np.asarray(self.exceeding(allowed + 1) / self.n_member)

    def curve(self, fpr: Floats) -> Floats:
        """Return the height of the empirical ROC curve, straight through ties."""
        allowed = np.floor(fpr * self.n_nonmember + _SLACK).astype(np.int64)
        order = allowed + 1
        tied = self._largest(order)
        above, reach = self.exceeding(order), self.reaching(order)
        false = count_above(self.nonmember, tied, size=self.size)
        width = count_above(self.nonmember, np.maximum(tied - 1, -1), size=self.size) - false
        share = (fpr * self.n_nonmember - false) / np.maximum(width, 1)
        # A lone nonmember is no tie unless a member shares its score.
        return np.asarray((above + np.clip(share, 0.0, 1.0) * (reach - above)) / self.n_member)


def _sure_cuts(n_nonmember: int, fpr: Floats, level: float) -> tuple[Integers, Integers]:
    """Return, for each FPR, the orders of the cuts that are surely below and surely above it.

    The first is the largest j with P(Beta(j, n - j + 1) > fpr) <= level, 0 if there is none; the
    second the smallest j with P(Beta(j, n - j + 1) < fpr) <= level, n + 1 if there is none.
    """
    order = np.arange(1, n_nonmember + 1, dtype=np.int64)
    upper = beta_quantile(1.0 - level, order, n_nonmember - order + 1)
    lower = beta_quantile(level, order, n_nonmember - order + 1)
    below = np.searchsorted(upper, fpr, side="right").astype(np.int64)
    above = np.searchsorted(lower, fpr, side="left").astype(np.int64) + 1
    return below, above
