"""The measures of a pair of laws, or of a batch of pairs: one by one, and all at once.

Epsilons and deltas are numbers about the pair at hand, not a differential-privacy guarantee: that
would have to hold for every pair of neighbouring datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical
from leakscope.laws.pair import LawPair, Provenance
from leakscope.measures import samples
from leakscope.measures.engines import over_pairs
from leakscope.measures.ratio import Ratio
from leakscope.measures.samples import AnyDirection, Direction, Estimate
from leakscope.settings.measure import MEASURE_DEFAULTS

RandomState = int | np.random.Generator | Key | None


def advantage(
    pair: LawPair,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: RandomState = None,
) -> FloatArray | Estimate:
    """The membership advantage: max over tests of TPR - FPR, between 0 and 1.

    It is the total variation distance of the two laws (Prop. 3.1 of the paper **linear**).
    Relative accuracy also for nearly equal laws.  For empirical laws it is the advantage of the
    best threshold on the score, estimated with an interval.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import advantage
    >>> float(advantage(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))).__round__(6)
    0.322675
    """
    if is_empirical(pair):
        key = as_key(random_state)
        found = samples.delta_at_epsilon(*scores_of(pair), np.zeros(1), confidence, key)
        return _shaped(found, pair.batch_shape)
    return over_pairs(pair, lambda ratio: ratio.advantage())


def overlap(pair: LawPair) -> FloatArray:
    """One minus the advantage, with its own digits when the advantage is nearly one."""
    _require_known(pair, "overlap")
    return over_pairs(pair, lambda ratio: ratio.overlap())


def kl(pair: LawPair, direction: Direction = "nonmember_to_member") -> FloatArray:
    """Kullback-Leibler divergence in nats; by default KL(nonmember || member).

    The default is the direction of the paper **lood** (Def. C.3); ``"member_to_nonmember"``
    gives KL(member || nonmember).

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import kl
    >>> pair = LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7))
    >>> round(float(kl(pair)), 6), round(float(kl(pair, "member_to_nonmember")), 6)
    (0.318147, 0.806853)
    """
    return renyi(pair, 1.0, direction)


def jeffreys(pair: LawPair) -> FloatArray:
    """Jeffreys divergence: the sum of the Kullback-Leibler divergences of both directions.

    It keeps its digits where each of the two is a small difference of large terms.
    """
    _require_known(pair, "jeffreys")
    return over_pairs(pair, lambda ratio: ratio.jeffreys())


def renyi(pair: LawPair, order: float, direction: Direction = "nonmember_to_member") -> FloatArray:
    """Rényi divergence of any order > 0, by default D_order(nonmember || member).

    Order 1 is the Kullback-Leibler divergence and order infinity the largest log likelihood
    ratio.  Where the integral diverges the result is infinite.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import renyi
    >>> float(renyi(LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0)), order=2.0))
    1.0
    """
    if not order > 0.0:
        raise InputError(f"renyi: the order must be above zero, but it is {order!r}.")
    _require_known(pair, "a divergence")
    turned = pair if _directions(direction) == ("member_to_nonmember",) else pair.swapped()
    return over_pairs(turned, lambda ratio: ratio.renyi(float(order)))


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The ROC of the best test: ``tpr`` at each ``fpr``, for one pair or a batch of them."""

    fpr: FloatArray
    tpr: FloatArray
    provenance: Provenance

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each point of the curve; one pair only."""
        if self.tpr.ndim != 1:
            raise InputError(
                f"RocCurve: a table needs one pair, but this is a batch of {self.tpr.shape[:-1]}."
            )
        return pd.DataFrame({"fpr": self.fpr, "tpr": self.tpr})


def auc(pair: LawPair, *, confidence: float = MEASURE_DEFAULTS.confidence) -> FloatArray | Estimate:
    """Area under the ROC of the likelihood-ratio test: 0.5 for equal laws, 1 for disjoint ones.

    For empirical laws, the area under the ROC of the score, with its interval.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import auc
    >>> round(float(auc(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))), 6)
    0.704833
    """
    if is_empirical(pair):
        return samples.auc(*scores_of(pair), confidence)
    return over_pairs(pair, lambda ratio: ratio.auc())


def tpr_at_fpr(
    pair: LawPair, fpr: npt.ArrayLike, *, confidence: float = MEASURE_DEFAULTS.confidence
) -> FloatArray | Estimate:
    """True-positive rate of the best test whose false-positive rate is ``fpr``.

    ``fpr`` is a fraction or an array of them, down to 1e-12 and below; the result has the shape
    of the batch followed by the shape of ``fpr``.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import tpr_at_fpr
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> [f"{t:.4e}" for t in tpr_at_fpr(pair, [1e-3, 1e-12])]
    ['1.8298e-02', '7.9736e-10']
    """
    levels, shape = as_fractions(fpr, "fpr")
    if is_empirical(pair):
        found = samples.tpr_at_fpr(*scores_of(pair), levels, confidence)
        return _shaped(found, (*pair.batch_shape, *shape))
    return _at_levels(pair, lambda ratio: ratio.tpr_at(levels)[0], levels, shape)


def trade_off(pair: LawPair, fpr: npt.ArrayLike) -> FloatArray:
    """The f-DP trade-off curve: the least false-negative rate at each false-positive rate.

    It is 1 - TPR, with its own digits where the TPR is nearly one.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import trade_off
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> trade_off(pair, [0.0, 0.5, 1.0]).round(4)
    array([1.    , 0.1587, 0.    ])
    """
    levels, shape = as_fractions(fpr, "fpr")
    _require_known(pair, "trade_off")
    return _at_levels(pair, lambda ratio: ratio.tpr_at(levels)[1], levels, shape)


def roc(pair: LawPair, fpr: npt.ArrayLike | None = None) -> RocCurve:
    """The whole ROC of the best test, on a grid that also shows it on a log-log plot."""
    _require_known(pair, "roc")
    if fpr is None:
        low = np.logspace(-12.0, -1.5, 64)
        fpr = np.concatenate([[0.0], low, np.linspace(low[-1], 1.0, 65)[1:]])
    levels, _ = as_fractions(fpr, "fpr")
    return RocCurve(levels, np.asarray(tpr_at_fpr(pair, levels)), pair.provenance)


def epsilon_at_delta(
    pair: LawPair,
    delta: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: RandomState = None,
) -> FloatArray | Estimate:
    """The least epsilon >= 0 with P(S) <= exp(epsilon) Q(S) + delta for every event S.

    ``"member_to_nonmember"`` takes P the member law and Q the nonmember law,
    ``"nonmember_to_member"`` the other way round, and ``"both"``, the default, the larger of the
    two.  This is the pair's epsilon and no differential-privacy guarantee.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import epsilon_at_delta
    >>> pair = LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7))
    >>> round(float(epsilon_at_delta(pair, 1e-5, "member_to_nonmember")), 5)
    27.7166
    >>> round(float(epsilon_at_delta(pair, 1e-5, "nonmember_to_member")), 5)
    0.69264
    """
    directions = _directions(direction)
    levels, shape = as_fractions(delta, "delta")
    if is_empirical(pair):
        found = samples.epsilon_at_delta(
            *scores_of(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return _shaped(found, (*pair.batch_shape, *shape))
    measure = _larger(lambda ratio: ratio.epsilon_at(levels), directions)
    return _at_levels(pair, measure, levels, shape)


def delta_at_epsilon(
    pair: LawPair,
    epsilon: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: RandomState = None,
) -> FloatArray | Estimate:
    """The hockey-stick divergence: the largest P(S) - exp(epsilon) Q(S) over events S.

    Directions as in `epsilon_at_delta`; at epsilon = 0 it is the advantage.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import delta_at_epsilon
    >>> pair = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> delta_at_epsilon(pair, [0.0, 1.0]).round(6)
    array([0.382925, 0.126937])
    """
    directions = _directions(direction)
    levels, shape = _levels(epsilon, "epsilon", -1e300, 1e300, "a finite number")
    if is_empirical(pair):
        found = samples.delta_at_epsilon(
            *scores_of(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return _shaped(found, (*pair.batch_shape, *shape))
    measure = _larger(lambda ratio: ratio.delta_at(levels), directions)
    return _at_levels(pair, measure, levels, shape)


Measure = Callable[[Ratio], FloatArray]


def _at_levels(
    pair: LawPair, measure: Measure, levels: FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    flat = over_pairs(pair, measure, (levels.size,))
    return flat.reshape((*pair.batch_shape, *shape))


def _larger(measure: Measure, directions: tuple[str, ...]) -> Measure:
    """The largest of a measure over the directions, for each of a batch."""

    def largest(ratio: Ratio) -> FloatArray:
        turned = [ratio if one == "member_to_nonmember" else ratio.reversed() for one in directions]
        return np.asarray(np.max([measure(each) for each in turned], axis=0))

    return largest


def _shaped(found: Estimate, shape: tuple[int, ...]) -> Estimate:
    value, low, high = (part.reshape(shape) for part in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.confidence, found.method, found.bias)


def table_measures(
    pair: LawPair, fpr: Sequence[float]
) -> tuple[dict[str, FloatArray], dict[float, FloatArray]]:
    """What a table of known laws says, in one pass: the TPR at each FPR, and the rest by name.

    The measures of one pair share most of their work; one after the other, each would redo it.
    """
    levels = as_fractions(fpr, "fpr")[0]
    _require_known(pair, "table_measures")
    names = ("advantage", "kl_reverse", "kl", "auc")

    def measure(ratio: Ratio) -> FloatArray:
        found = [ratio.advantage(), ratio.renyi(1.0), ratio.reversed().renyi(1.0), ratio.auc()]
        return np.column_stack([*found, ratio.tpr_at(levels)[0]])

    columns = np.moveaxis(over_pairs(pair, measure, (len(names) + levels.size,)), -1, 0)
    return (
        dict(zip(names, columns, strict=False)),
        dict(zip(levels.tolist(), columns[len(names) :], strict=True)),
    )


EPSILON_NOTE = (
    "epsilon is that of this pair, the larger of the two directions, "
    "and no differential-privacy guarantee"
)

# Measures at levels, in the order of a table.
AT_LEVELS = ("renyi", "tpr_at_fpr", "epsilon_at_delta", "delta_at_epsilon")


@dataclass(frozen=True, eq=False)
class Summary:
    """Every measure of a batch of pairs; each number is an array of the batch's shape.

    ``kl`` is KL(nonmember || member) and ``kl_reverse`` the other direction, ``renyi`` is of the
    nonmember law from the member law, and epsilons and deltas are the larger of both directions.
    For empirical laws the numbers are estimates, ``estimates`` holds their intervals, and the
    measures that samples cannot give (``overlap``, ``kl``, ``renyi``) are left out.
    """

    advantage: FloatArray
    auc: FloatArray
    tpr_at_fpr: Mapping[float, FloatArray]
    epsilon_at_delta: Mapping[float, FloatArray]
    delta_at_epsilon: Mapping[float, FloatArray]
    provenance: Provenance
    overlap: FloatArray | None = None
    kl: FloatArray | None = None
    kl_reverse: FloatArray | None = None
    renyi: Mapping[float, FloatArray] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values for JSON; a number that is not finite becomes ``None``."""
        scalars = {name: getattr(self, name) for name in ("advantage", "kl", "kl_reverse", "auc")}
        if self.overlap is not None:
            scalars["overlap"] = self.overlap
        ends = {
            name: {
                "low": plain(found.low),
                "high": plain(found.high),
                "confidence": found.confidence,
                "method": found.method,
                "bias": found.bias,
            }
            for name, found in self.estimates.items()
        }
        return {
            **{name: None if value is None else plain(value) for name, value in scalars.items()},
            **{
                name: {f"{level:g}": plain(value) for level, value in getattr(self, name).items()}
                for name in AT_LEVELS
            },
            "epsilon_direction": "both",
            "epsilon_note": EPSILON_NOTE,
            **({"intervals": ends} if ends else {}),
            "provenance": self.provenance.to_dict(),
        }

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each pair."""
        columns = {
            name: getattr(self, name)
            for name in ("advantage", "overlap", "kl", "kl_reverse", "auc")
            if getattr(self, name) is not None
        }
        for name in AT_LEVELS:
            columns |= {f"{name}_{k:g}": v for k, v in getattr(self, name).items()}
        for name, found in self.estimates.items():
            columns |= {f"{name}_low": found.low, f"{name}_high": found.high}
        return pd.DataFrame({name: np.atleast_1d(v).ravel() for name, v in columns.items()})


def summary(
    pair: LawPair,
    *,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
    delta: Sequence[float] = MEASURE_DEFAULTS.delta,
    epsilon: Sequence[float] = (1.0,),
    order: Sequence[float] = (2.0,),
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: RandomState = None,
) -> Summary:
    """All measures, for the whole batch.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import summary
    >>> found = summary(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))
    >>> round(float(found.advantage), 4), round(float(found.tpr_at_fpr[0.001]), 4)
    (0.3227, 0.0999)
    """
    fprs, deltas = as_fractions(fpr, "fpr")[0], as_fractions(delta, "delta")[0]
    epsilons = _levels(epsilon, "epsilon", -1e300, 1e300, "a finite number")[0]
    if is_empirical(pair):
        return _estimated(pair, (fprs, deltas, epsilons), confidence, as_key(random_state))
    orders = [float(a) for a in order]

    def measure(ratio: Ratio) -> FloatArray:
        back = ratio.reversed()
        first = [ratio.advantage(), ratio.overlap(), back.renyi(1.0), ratio.renyi(1.0), ratio.auc()]
        return np.column_stack(
            [
                *first,
                *(back.renyi(a) for a in orders),
                ratio.tpr_at(fprs)[0],
                np.maximum(ratio.epsilon_at(deltas), back.epsilon_at(deltas)),
                np.maximum(ratio.delta_at(epsilons), back.delta_at(epsilons)),
            ]
        )

    names = ("advantage", "overlap", "kl", "kl_reverse", "auc")
    levels = dict(zip(AT_LEVELS, (orders, *map(np.ndarray.tolist, (fprs, deltas, epsilons)))))  # noqa: B905
    count = len(names) + sum(map(len, levels.values()))
    columns = iter(np.moveaxis(over_pairs(pair, measure, (count,)), -1, 0))
    scalars: dict[str, Any] = {name: next(columns) for name in names}
    tables: dict[str, Any] = {
        name: {level: next(columns) for level in at} for name, at in levels.items()
    }
    return Summary(provenance=pair.provenance, **scalars, **tables)


def _estimated(
    pair: LawPair, levels: tuple[FloatArray, ...], confidence: float, key: Key
) -> Summary:
    keyed: dict[str, Any] = {"confidence": confidence, "random_state": key}
    asked: dict[str, FloatArray | Estimate] = {
        "advantage": advantage(pair, **keyed),
        "auc": auc(pair, confidence=confidence),
    }
    fprs, deltas, epsilons = (at.tolist() for at in levels)
    asked |= {f"tpr_at_fpr_{x:g}": tpr_at_fpr(pair, x, confidence=confidence) for x in fprs}
    asked |= {f"epsilon_at_delta_{x:g}": epsilon_at_delta(pair, x, **keyed) for x in deltas}
    asked |= {f"delta_at_epsilon_{x:g}": delta_at_epsilon(pair, x, **keyed) for x in epsilons}
    found = {name: each for name, each in asked.items() if isinstance(each, Estimate)}
    return Summary(
        advantage=found["advantage"].value,
        auc=found["auc"].value,
        tpr_at_fpr={x: found[f"tpr_at_fpr_{x:g}"].value for x in fprs},
        epsilon_at_delta={x: found[f"epsilon_at_delta_{x:g}"].value for x in deltas},
        delta_at_epsilon={x: found[f"delta_at_epsilon_{x:g}"].value for x in epsilons},
        provenance=pair.provenance,
        estimates=found,
    )


def _directions(direction: str) -> tuple[str, ...]:
    """The one direction, or both."""
    both = ("member_to_nonmember", "nonmember_to_member")
    if direction not in (*both, "both"):
        raise InputError(
            "direction must be member_to_nonmember, nonmember_to_member or both, "
            f"but it is {direction!r}."
        )
    return both if direction == "both" else (direction,)


def _levels(
    value: npt.ArrayLike, name: str, low: float, high: float, wanted: str
) -> tuple[FloatArray, tuple[int, ...]]:
    """Check a number or an array of levels (an FPR, a delta); return it flat and its shape."""
    try:
        levels = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or an array of numbers.") from None
    bad = ~((levels >= low) & (levels <= high))
    if bad.any():
        raise InputError(f"{name} must be {wanted}, but it is {float(levels[bad][0])!r}.")
    return levels.ravel(), levels.shape


def as_fractions(value: npt.ArrayLike, name: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Check a fraction or an array of them; return it flat and its shape."""
    return _levels(value, name, 0.0, 1.0, "between 0 and 1")


def is_empirical(pair: LawPair) -> bool:
    """Whether the pair is of samples, whose measures are estimates."""
    return isinstance(pair.member, Empirical)


def _require_known(pair: LawPair, measure: str) -> None:
    if is_empirical(pair):
        raise InputError(f"{measure}: samples of scores cannot show it; use advantage or auc.")


def scores_of(pair: LawPair) -> tuple[FloatArray, FloatArray]:
    """The member and nonmember samples of an empirical pair."""
    member, nonmember = pair.member, pair.nonmember
    if not isinstance(member, Empirical) or not isinstance(nonmember, Empirical):
        raise InputError("This measure needs a pair of Empirical laws.")
    return member.samples, nonmember.samples
