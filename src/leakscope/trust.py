"""The one rule of trust: a law is counted against refits of the whole recipe.

A unit's number is *confirmed* if four conditions hold: it is finite and its spread is no rounding
(`resolved`); no few others carry its variance, or knowing them changes little (`hardly_led`); in
its stratum by said advantage the law's own test, counted on refits, is worth what the law says
(`Stratum`); and its own refits do not contradict its shift.  Where more than a fifth of the strata
fail, the law is not used at all.  There is no other condition, and no clock.

What the rule cannot see: a better test than the law's own, wrong groups of units smaller than a
stratum, a TPR below 1%, and a mistake in the score that law and refits share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import advantage, tpr_at_fpr

__all__ = [
    "Check",
    "Status",
    "Stratum",
    "best_tests",
    "check_laws",
    "gains_little",
    "hardly_led",
    "not_contradicted",
    "refits_needed",
    "resolved",
    "rounding_status",
    "stratum_size",
]

Mask = npt.NDArray[np.bool_]
Status = Literal["confirmed", "range", "unknown"]

# Condition 1.  A spread of fewer roundings of the largest mean has fewer than four digits.  By this
# alone 1,180 numbers of Gaussian processes are confirmed and none is off; of 900 made near rounding
# 299 are, none off (benchmarks/trust_audit.py).
ROUNDINGS = 1e4
# Condition 2.  With six effective others two records of separable data were off, with seven none of
# 5,068 of 45 settings, and with eight 150 fewer were confirmed (docs/benchmarks/trust.md).  What is
# promised is 0.1 in the advantage and a factor of 2 in the TPR; knowing the heavy others may take
# half of either.
LEAST_EFFECTIVE = 7.0
MOST_GAINED, MOST_GAINED_RATE = 0.05, 1.5
# Condition 3.  Half of what is promised again, beside so many standard errors of the count; right
# laws pass 98 times in 100.
MOST_APART, ERRORS_APART = 0.05, 1.5
MOST_RATE_APART, RATE_ERRORS_APART = 1.5, 2.0
RATE_AT = 0.01
MOST_STRATA_FAILED = 0.2
# Condition 4.  Right laws contradict their own refits so far seven times in a million.
MOST_CONTRADICTED = 4.5
# A stratum holds so many units at least, and a share of all; an error of 0.1 in it is then seen
# nine times in ten with 2,800/m refits (the variance of its mean gap is (0.9/m + 0.003)/K).
LEAST_IN_STRATUM, STRATA = 20, 25
LEAST_REFITS, REFIT_UNITS, MORE_REFITS = 16, 2800, 10
# Draws that stand for laws that are not normal, and numbers held at once.
DRAWS, AT_ONCE = 4000, 4_000_000


def stratum_size(units: int) -> int:
    """How many units of so many are counted together.

    Examples
    --------
    >>> from leakscope.trust import refits_needed, stratum_size
    >>> [(stratum_size(n), refits_needed(n)) for n in (500, 5000, 30_000)]
    [(20, 150), (200, 24), (1200, 16)]
    """
    return max(LEAST_IN_STRATUM, units // STRATA)


def refits_needed(units: int, fraction: float = 0.5) -> int:
    """How many refits count a law of so many units; more where few, or nearly all, are in."""
    usual = REFIT_UNITS // min(stratum_size(units), units) + MORE_REFITS
    return int(np.ceil(max(LEAST_REFITS, usual) / (4.0 * fraction * (1.0 - fraction))))


def resolved(mean: FloatArray, sd: FloatArray) -> Mask:
    """Condition 1, (U,): mean and sd are finite, and the sd exceeds 1e4 roundings.

    A rounding is that of the largest mean (U,) in absolute value.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.trust import resolved
    >>> resolved(np.array([1.0, 2.0, np.nan]), np.array([0.1, 1e-13, 0.1])).tolist()
    [True, False, False]
    """
    finite = np.isfinite(mean) & np.isfinite(sd)
    largest = float(np.max(np.abs(mean[finite]), initial=0.0))
    return np.asarray(finite & (sd > ROUNDINGS * np.finfo(np.float64).eps * largest) & (sd > 0.0))


def rounding_status(mean: FloatArray, sd: FloatArray) -> npt.NDArray[np.str_]:
    """The whole rule of laws that are exact but for rounding: "confirmed" or "unknown", (U,)."""
    return np.where(resolved(mean, sd), "confirmed", "unknown")


def gains_little(pair: LawPair, better: LawPair) -> Mask:
    """Whether a better-informed test gains at most 0.05 and 1.5 times the TPR at 1%, (U,)."""
    more = np.asarray(advantage(better)) - np.asarray(advantage(pair))
    rates = [np.asarray(tpr_at_fpr(each, RATE_AT)) for each in (better, pair)]
    return np.asarray((more <= MOST_GAINED) & (rates[0] <= MOST_GAINED_RATE * rates[1]))


def hardly_led(pair: LawPair, effective: FloatArray, heavy: FloatArray) -> Mask:
    """Condition 2, (U,): many others carry the variance, or knowing the heavy ones changes little.

    Parameters
    ----------
    pair
        Normal laws of U scores; of other laws only the first half of the condition is asked.
    effective
        (U,) how many equal others would carry the variance; NaN where nobody looked.
    heavy
        (U,) the share H of the others with more than 5% each.  Who knows which of them are in sees
        sds sqrt(1 - H) times as large and a shift moved by sqrt(H) (sd_in - sd_out) either way.
    """
    many = np.asarray(effective >= LEAST_EFFECTIVE)
    asked = np.flatnonzero(~many & (heavy < 1.0))
    member, other = pair.member, pair.nonmember
    if not (len(asked) and isinstance(member, Normal) and isinstance(other, Normal)):
        return many
    share = heavy[asked]
    inside, outside = member.take(asked), other.take(asked)
    moved = np.sqrt(share) * (inside.sigma - outside.sigma)
    left = np.sqrt(1.0 - share)
    little = np.ones(len(asked), dtype=np.bool_)
    for sign in (-1.0, 1.0):
        knowing = LawPair(
            Normal(inside.mean + sign * moved, left * inside.sigma),
            Normal(outside.mean, left * outside.sigma),
        )
        little &= gains_little(LawPair(inside, outside), knowing)
    many[asked] = little
    return many


@dataclass(frozen=True)
class Stratum:
    """Units of like said advantage, and what the law's own test got on refits.

    Attributes
    ----------
    units
        How many units there are.
    predicted, counted, error
        Their mean advantage by the laws, counted on the refits, and the count's standard error.
    predicted_tpr, counted_tpr, tpr_error
        The same of the TPR where the laws put the FPR at 1%; where they put it too low, at the
        stratum's own threshold for 1%.
    counted_fpr, fpr_error
        The FPR there.
    """

    units: int
    predicted: float
    counted: float
    error: float
    predicted_tpr: float
    counted_tpr: float
    tpr_error: float
    counted_fpr: float
    fpr_error: float

    @property
    def holds(self) -> bool:
        """Whether the law's test is worth what the law says."""
        margin = RATE_ERRORS_APART * self.tpr_error
        low, high = self.predicted_tpr / MOST_RATE_APART, self.predicted_tpr * MOST_RATE_APART
        false = MOST_RATE_APART * RATE_AT + RATE_ERRORS_APART * self.fpr_error
        return bool(
            abs(self.counted - self.predicted) <= MOST_APART + ERRORS_APART * self.error
            and low - margin <= self.counted_tpr <= high + margin
            and self.counted_fpr <= false
        )

    @property
    def sentence(self) -> str:
        """What was said and what was counted."""
        return (
            f"{self.units} with a like advantage: said {self.predicted:.3f}, counted "
            f"{self.counted:.3f} ± {self.error:.3f}"
        )


@dataclass(frozen=True, eq=False)
class Check:
    """What refits say of a method's laws.

    Attributes
    ----------
    refits
        How many refits of the whole recipe were counted.
    strata
        In order of the said advantage, the smallest first.
    stratum
        (U,) the number of each unit's stratum.
    resolved, hardly_led, agrees
        (U,) whether conditions 1, 2 and 4 hold.
    """

    refits: int
    strata: tuple[Stratum, ...]
    stratum: npt.NDArray[np.intp]
    resolved: Mask
    hardly_led: Mask
    agrees: Mask

    @property
    def law_holds(self) -> bool:
        """Whether at most a fifth of the strata fail, so that the law is used at all."""
        failed = sum(not stratum.holds for stratum in self.strata)
        return failed <= MOST_STRATA_FAILED * len(self.strata)

    @property
    def confirmed(self) -> Mask:
        """(U,) whether all four conditions hold."""
        holds = np.array([stratum.holds for stratum in self.strata], dtype=np.bool_)
        found = self.resolved & self.hardly_led & self.agrees & holds[self.stratum]
        return np.asarray(found & self.law_holds)

    def holds_at(self, advantage: FloatArray) -> Mask:
        """(M,) whether condition 3 holds for units of the same law with these advantages (M,)."""
        said = np.array([stratum.predicted for stratum in self.strata])
        holds = np.array([stratum.holds for stratum in self.strata], dtype=np.bool_)
        nearest = np.searchsorted(0.5 * (said[1:] + said[:-1]), advantage)
        return np.asarray(holds[nearest] & self.law_holds)

    @property
    def status(self) -> npt.NDArray[np.str_]:
        """(U,) "confirmed" or "unknown"; a law that is not confirmed has no range either."""
        return np.where(self.confirmed, "confirmed", "unknown")

    def reason(self, unit: int) -> str:
        """Why a unit is confirmed, or is not."""
        own = self.strata[self.stratum[unit]]
        if not self.resolved[unit]:
            return "only rounding varies there"
        if not self.hardly_led[unit]:
            return "a few others carry its variance, and who knows them sees more"
        if not self.law_holds:
            return f"refits contradict the laws ({own.sentence})"
        if not own.holds:
            return f"refits contradict the laws of {own.sentence}"
        if not self.agrees[unit]:
            return "its own refits contradict its shift"
        return f"refits agree ({own.sentence})"

    @property
    def sentence(self) -> str:
        """The check as a headline."""
        sizes = np.array([stratum.units for stratum in self.strata], dtype=np.float64)
        said, counted, error = (
            np.array([getattr(stratum, name) for stratum in self.strata])
            for name in ("predicted", "counted", "error")
        )
        # Strata share their refits, so that their errors are not independent.
        mean = [float(np.average(values, weights=sizes)) for values in (said, counted, error)]
        return (
            f"Checked against {self.refits} refits of the recipe: mean advantage said "
            f"{mean[0]:.3f}, counted {mean[1]:.3f} ± {mean[2]:.3f}."
        )


def check_laws(
    pair: LawPair,
    scores: FloatArray,
    inside: Mask,
    *,
    effective: FloatArray,
    heavy: FloatArray,
) -> Check:
    """Count laws against refits of the recipe.

    Parameters
    ----------
    pair
        The two laws of U scores.
    scores
        (K, U) the scores by K refits; (K, U, d) of laws of d numbers.
    inside
        (K, U) who was in each refit.
    effective, heavy
        (U,) of the others that carry the variance, as `hardly_led` wants them.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.laws.distributions import Normal
    >>> from leakscope.laws.pair import LawPair
    >>> from leakscope.trust import check_laws
    >>> generator = np.random.default_rng(0)
    >>> inside = generator.random((128, 60)) < 0.5
    >>> scores = generator.normal(size=(128, 60)) + 1.0 * inside
    >>> pair = LawPair(Normal(np.ones(60), np.ones(60)), Normal(np.zeros(60), np.ones(60)))
    >>> many = np.full(60, 50.0)
    >>> check = check_laws(pair, scores, inside, effective=many, heavy=np.zeros(60))
    >>> int(check.confirmed.sum()), check.law_holds
    (60, True)
    """
    units = inside.shape[1]
    said = [np.asarray(advantage(pair)), np.asarray(tpr_at_fpr(pair, RATE_AT))]
    yes, chance = best_tests(pair, scores)
    seen = (inside.sum(axis=0) >= 2) & ((~inside).sum(axis=0) >= 2) & np.isfinite(said[0])
    order = np.argsort(np.where(seen, said[0], np.inf), kind="stable")
    parts = np.array_split(order, max(1, units // stratum_size(units)))
    stratum = np.empty(units, dtype=np.intp)
    strata = []
    for number, part in enumerate(parts):
        stratum[part] = number
        kept = part[seen[part]]
        answers = yes[:, kept], chance[:, kept]
        strata.append(_stratum([array[kept] for array in said], *answers, inside[:, kept]))
    other, sane = pair.nonmember, np.isfinite(said[0])
    if isinstance(other, Normal):
        sane &= resolved(other.mean, other.sigma)
    led, agrees = hardly_led(pair, effective, heavy), not_contradicted(pair, scores, inside)
    return Check(len(scores), tuple(strata), stratum, sane, led, agrees)


def _stratum(
    said: Sequence[FloatArray], yes: FloatArray, chance: FloatArray, inside: Mask
) -> Stratum:
    """Said advantages and TPRs (m,), answers and p-values of the test (K, m), and who was in."""
    if not len(said[0]):
        return Stratum(0, *(np.nan for _ in range(8)))
    outside = np.sort(chance[~inside])
    own = outside[max(round(RATE_AT * len(outside)) - 1, 0)]
    surely = (chance <= max(own, RATE_AT)).astype(np.float64)
    counted, error = _with_error(yes, inside)
    rate, rate_error = _with_error(surely, inside, nonmembers=0.0)
    false, false_error = _with_error(surely, ~inside, nonmembers=0.0)
    if own > RATE_AT:
        # The threshold is counted too: no curve rises faster than in proportion there.
        rate_error = float(np.hypot(rate_error, rate * false_error / max(false, 1e-12)))
    predicted = float(said[0].mean()), float(said[1].mean())
    return Stratum(
        len(said[0]), predicted[0], counted, error, predicted[1], rate, rate_error, false,
        false_error,
    )  # fmt: skip


def _with_error(yes: FloatArray, inside: Mask, nonmembers: float = 1.0) -> tuple[float, float]:
    """The mean share of yes of members less that of nonmembers, with its jackknife error."""
    totals = []
    for side in (inside, ~inside):
        answers, count = yes * side, side.sum(axis=0)
        left = np.maximum(count - side, 1)
        whole = answers.sum(axis=0)
        totals.append((whole / np.maximum(count, 1), (whole - answers) / left))
    (whole_in, less_in), (whole_out, less_out) = totals
    value = float(np.mean(whole_in - nonmembers * whole_out))
    parts = np.mean(less_in - nonmembers * less_out, axis=1)
    size = len(parts)
    return value, float(np.sqrt((size - 1.0) / size * np.sum((parts - parts.mean()) ** 2)))


def not_contradicted(pair: LawPair, scores: FloatArray, inside: Mask) -> Mask:
    """Condition 4, (U,): the shift over the refits is within 4.5 of its standard errors."""
    member, other = pair.member, pair.nonmember
    if not (isinstance(member, Normal) and isinstance(other, Normal)):
        return np.ones(inside.shape[1], dtype=np.bool_)
    count_in = np.maximum(inside.sum(axis=0), 1)
    count_out = np.maximum((~inside).sum(axis=0), 1)
    shift = (scores * inside).sum(axis=0) / count_in - (scores * ~inside).sum(axis=0) / count_out
    error = np.sqrt(member.sigma**2 / count_in + other.sigma**2 / count_out)
    return np.asarray(np.abs(shift - (member.mean - other.mean)) < MOST_CONTRADICTED * error)


def best_tests(pair: LawPair, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What the best tests say of scores (K, U) or (K, U, d).

    The first is 1 where the test with the largest TPR - FPR says yes, else 0; the second how likely
    a nonmember's likelihood ratio is at least as large, by the laws.
    """
    member, other = pair.member, pair.nonmember
    if isinstance(member, Normal) and isinstance(other, Normal):
        curved, slope, constant = _standard(member, other)
        u = (scores - other.mean) / other.sigma
        ratio = (curved * u + slope) * u + constant
        return (ratio > 0.0).astype(np.float64), _chance_above(curved, slope, constant - ratio)
    yes, chance = np.empty(scores.shape[:2]), np.empty(scores.shape[:2])
    step = max(1, AT_ONCE // (DRAWS * int(np.prod(member.event_shape, dtype=int))))
    generator = Key(20270).generator()
    for start in range(0, scores.shape[1], step):
        part = slice(start, start + step)
        some = LawPair(member.take(part), other.take(part))
        drawn = np.moveaxis(some.nonmember.sample(Key(20270).child(start), DRAWS), 1, 0)
        ratio, usual = _log_ratio(some, scores[:, part]), np.sort(_log_ratio(some, drawn), axis=0)
        yes[:, part] = ratio > 0.0
        for unit, (asked, draws) in enumerate(zip(ratio.T, usual.T, strict=True)):
            # Equal ones are ranked by lot.
            low, high = (np.searchsorted(draws, asked, side=side) for side in ("left", "right"))
            rank = low + generator.random(len(asked)) * (high - low)
            chance[:, start + unit] = 1.0 - rank / DRAWS
    return yes, chance


def _log_ratio(pair: LawPair, x: FloatArray) -> FloatArray:
    """The log likelihood ratio of answers; that of two impossible ones is zero."""
    with np.errstate(invalid="ignore"):
        ratio = pair.member.log_density(x) - pair.nonmember.log_density(x)
    return np.asarray(np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf))


def _standard(member: Normal, other: Normal) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients of the log ratio of two normals, in nonmember sds from the nonmember mean."""
    shift, ratio = (member.mean - other.mean) / other.sigma, member.sigma / other.sigma
    square = ratio**2
    return 0.5 * (1.0 - 1.0 / square), shift / square, -0.5 * shift**2 / square - np.log(ratio)


def _chance_above(curved: FloatArray, slope: FloatArray, constant: FloatArray) -> FloatArray:
    """How likely curved u^2 + slope u + constant is above zero for a standard normal u."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(slope**2 - 4.0 * curved * constant, 0.0))
        far = -0.5 * (slope + np.copysign(root, slope))
        ends = np.sort(np.stack([far / curved, constant / far]), axis=0)
        between = special.ndtr(ends[1]) - special.ndtr(ends[0])
        line = special.ndtr(np.copysign(1.0, slope) * constant / np.abs(slope))
    none = slope**2 < 4.0 * curved * constant
    chance = np.where(curved > 0.0, 1.0 - between, between)
    chance = np.where(none, (curved > 0.0).astype(np.float64), chance)
    return np.asarray(np.where(curved == 0.0, line, chance))
