"""The measures of a pair of laws, or of a batch of pairs: one by one, and all at once.

Epsilons and deltas are numbers about the pair at hand, not a differential-privacy guarantee: that
would have to hold for every pair of neighbouring datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical, SpikeAndSlab
from leakscope.laws.pair import LawPair, Provenance
from leakscope.measures import empirical_estimates, empirical_kl
from leakscope.measures.empirical_ranks import AnyDirection, Direction, Estimate, directions_of
from leakscope.measures.engines import over_pairs
from leakscope.measures.normal_divergence import jeffreys_of_spikes
from leakscope.measures.ratio import Ratio
from leakscope.settings.measure import MEASURE_DEFAULTS


def advantage(
    pair: LawPair,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
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
        return empirical_estimates.advantage(*samples(pair), confidence, as_key(random_state))
    return over_pairs(pair, lambda ratio: ratio.advantage())


def overlap(pair: LawPair) -> FloatArray:
    """One minus the advantage, with its own digits when the advantage is nearly one."""
    if is_empirical(pair):
        raise InputError("overlap: samples cannot show an overlap near zero; use advantage.")
    return over_pairs(pair, lambda ratio: ratio.overlap())


def kl(
    pair: LawPair,
    direction: Direction = "nonmember_to_member",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
) -> FloatArray | Estimate:
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
    turned = _oriented(pair, direction)
    if is_empirical(pair):
        return empirical_kl.kl(*samples(pair), direction, confidence, as_key(random_state))
    return over_pairs(turned, lambda ratio: ratio.renyi(1.0))


def jeffreys(pair: LawPair) -> FloatArray:
    """Jeffreys divergence: the sum of the Kullback-Leibler divergences of both directions.

    It keeps its digits where each of the two is a small difference of large terms.
    """
    if is_empirical(pair):
        raise InputError("jeffreys: for scores add the estimates of kl in both directions.")
    member, nonmember = pair.member, pair.nonmember
    if isinstance(member, SpikeAndSlab) and isinstance(nonmember, SpikeAndSlab):
        alike = (member.sigma == nonmember.sigma) & (member.threshold == nonmember.threshold)
        if alike.all():
            return jeffreys_of_spikes(member, nonmember)
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
    if is_empirical(pair):
        raise InputError("renyi: it cannot be estimated from scores; use kl or advantage.")
    return over_pairs(_oriented(pair, direction), lambda ratio: ratio.renyi(float(order)))


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The ROC of the best test: ``tpr`` at each ``fpr``, for one pair or a batch of them.

    ``tpr_low`` and ``tpr_high`` are a simultaneous confidence band for empirical laws, and
    ``None`` for laws that are known.
    """

    fpr: FloatArray
    tpr: FloatArray
    provenance: Provenance
    tpr_low: FloatArray | None = None
    tpr_high: FloatArray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each point of the curve; one pair only."""
        if self.tpr.ndim != 1:
            raise InputError(
                f"RocCurve: a table needs one pair, but this is a batch of {self.tpr.shape[:-1]}."
            )
        columns = {"fpr": self.fpr, "tpr": self.tpr}
        if self.tpr_low is not None and self.tpr_high is not None:
            columns |= {"tpr_low": self.tpr_low, "tpr_high": self.tpr_high}
        return pd.DataFrame(columns)


def auc(pair: LawPair, *, confidence: float = MEASURE_DEFAULTS.confidence) -> FloatArray | Estimate:
    """Area under the ROC of the likelihood-ratio test: 0.5 for equal laws, 1 for disjoint ones.

    For empirical laws, the area under the ROC of the score, with DeLong's interval.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import auc
    >>> round(float(auc(LawPair(Normal(0.0, 1.4), Normal(0.0, 0.7)))), 6)
    0.704833
    """
    if is_empirical(pair):
        return empirical_estimates.auc(*samples(pair), confidence)
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
    levels, shape = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.tpr_at_fpr(*samples(pair), levels, confidence)
        return found.reshape((*pair.batch_shape, *shape))
    return _best_test(pair, levels, shape, 0)


def trade_off(
    pair: LawPair, fpr: npt.ArrayLike, *, confidence: float = MEASURE_DEFAULTS.confidence
) -> FloatArray | Estimate:
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
    levels, shape = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.trade_off(*samples(pair), levels, confidence)
        return found.reshape((*pair.batch_shape, *shape))
    return _best_test(pair, levels, shape, 1)


def _best_test(
    pair: LawPair, fpr: FloatArray, shape: tuple[int, ...], which: Literal[0, 1]
) -> FloatArray:
    """TPR (0) or FNR (1) of the best test at each FPR."""
    flat = over_pairs(pair, lambda ratio: ratio.tpr_at(fpr)[which], (fpr.size,))
    return flat.reshape((*pair.batch_shape, *shape))


def roc(
    pair: LawPair,
    fpr: npt.ArrayLike | None = None,
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
) -> RocCurve:
    """The whole ROC of the best test, on a grid that also shows it on a log-log plot."""
    if fpr is None:
        low = np.logspace(-12.0, -1.5, 64)
        fpr = np.concatenate([[0.0], low, np.linspace(low[-1], 1.0, 65)[1:]])
    levels, _ = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.roc(*samples(pair), levels, confidence)
        return RocCurve(levels, found.value, pair.provenance, found.low, found.high)
    tpr = tpr_at_fpr(pair, levels)
    return RocCurve(levels, np.asarray(tpr), pair.provenance)


def epsilon_at_delta(
    pair: LawPair,
    delta: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
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
    directions = directions_of(direction)
    levels, shape = as_levels(delta, "delta", 0.0, 1.0, "a probability between 0 and 1")
    if is_empirical(pair):
        found = empirical_estimates.epsilon_at_delta(
            *samples(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return found.reshape((*pair.batch_shape, *shape))
    return _larger(pair, lambda ratio: ratio.epsilon_at(levels), directions, levels.size, shape)


def delta_at_epsilon(
    pair: LawPair,
    epsilon: npt.ArrayLike,
    direction: AnyDirection = "both",
    *,
    confidence: float = MEASURE_DEFAULTS.confidence,
    random_state: int | np.random.Generator | Key | None = None,
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
    directions = directions_of(direction)
    levels, shape = as_levels(epsilon, "epsilon", -1e300, 1e300, "a finite number")
    if is_empirical(pair):
        found = empirical_estimates.delta_at_epsilon(
            *samples(pair), levels, confidence, as_key(random_state), direction=direction
        )
        return found.reshape((*pair.batch_shape, *shape))

    return _larger(pair, lambda ratio: ratio.delta_at(levels), directions, levels.size, shape)


def _larger(
    pair: LawPair,
    measure: Callable[[Ratio], FloatArray],
    directions: tuple[Direction, ...],
    columns: int,
    shape: tuple[int, ...],
) -> FloatArray:
    def largest(ratio: Ratio) -> FloatArray:
        values = [
            measure(ratio if one == "member_to_nonmember" else ratio.reversed())
            for one in directions
        ]
        return np.asarray(np.max(values, axis=0))

    flat = over_pairs(pair, largest, (columns,))
    return np.asarray(flat.reshape((*pair.batch_shape, *shape)))


def table_measures(
    pair: LawPair, fpr: Sequence[float]
) -> tuple[dict[str, FloatArray], dict[float, FloatArray]]:
    """What a table of known laws says, in one pass: the TPR at each FPR, and the rest by name.

    The measures of one pair share most of their work; one after the other, each would redo it.
    """
    levels = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0]
    if is_empirical(pair):
        raise InputError("table_measures: of samples every measure is an estimate.")
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


@dataclass(frozen=True, eq=False)
class Summary:
    """Every measure of a batch of pairs; each number is an array of the batch's shape.

    ``kl`` is KL(nonmember || member) and ``kl_reverse`` the other direction, ``renyi`` is of the
    nonmember law from the member law, and epsilons and deltas are the larger of both directions.
    For empirical laws the numbers are estimates, ``estimates`` holds their intervals, and the
    measures that samples cannot give (``overlap``, ``renyi``) are left out.
    """

    advantage: FloatArray
    kl: FloatArray
    kl_reverse: FloatArray
    auc: FloatArray
    tpr_at_fpr: Mapping[float, FloatArray]
    epsilon_at_delta: Mapping[float, FloatArray]
    delta_at_epsilon: Mapping[float, FloatArray]
    provenance: Provenance
    overlap: FloatArray | None = None
    renyi: Mapping[float, FloatArray] = field(default_factory=dict)
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    epsilon_direction: str = "both"

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values for JSON; a number that is not finite becomes ``None``."""
        result: dict[str, Any] = {
            "advantage": plain(self.advantage),
            "kl": plain(self.kl),
            "kl_reverse": plain(self.kl_reverse),
            "auc": plain(self.auc),
            "tpr_at_fpr": {f"{k:g}": plain(v) for k, v in self.tpr_at_fpr.items()},
            "epsilon_at_delta": {f"{k:g}": plain(v) for k, v in self.epsilon_at_delta.items()},
            "delta_at_epsilon": {f"{k:g}": plain(v) for k, v in self.delta_at_epsilon.items()},
            "epsilon_direction": self.epsilon_direction,
            "epsilon_note": EPSILON_NOTE,
        }
        if self.overlap is not None:
            result["overlap"] = plain(self.overlap)
            result["renyi"] = {f"{k:g}": plain(v) for k, v in self.renyi.items()}
        if self.estimates:
            result["intervals"] = {
                name: {
                    "low": plain(found.low),
                    "high": plain(found.high),
                    "confidence": found.confidence,
                    "method": found.method,
                    "bias": found.bias,
                }
                for name, found in self.estimates.items()
            }
        result["provenance"] = self.provenance.to_dict()
        return result

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each pair."""
        columns: dict[str, FloatArray] = {"advantage": self.advantage}
        if self.overlap is not None:
            columns["overlap"] = self.overlap
        columns |= {"kl": self.kl, "kl_reverse": self.kl_reverse, "auc": self.auc}
        columns |= {f"renyi_{k:g}": v for k, v in self.renyi.items()}
        columns |= {f"tpr_at_fpr_{k:g}": v for k, v in self.tpr_at_fpr.items()}
        columns |= {f"epsilon_at_delta_{k:g}": v for k, v in self.epsilon_at_delta.items()}
        columns |= {f"delta_at_epsilon_{k:g}": v for k, v in self.delta_at_epsilon.items()}
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
    random_state: int | np.random.Generator | Key | None = None,
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
    fpr_levels = as_levels(fpr, "fpr", 0.0, 1.0, "a fraction between 0 and 1")[0]
    delta_levels = as_levels(delta, "delta", 0.0, 1.0, "a probability between 0 and 1")[0]
    epsilon_levels = as_levels(epsilon, "epsilon", -1e300, 1e300, "a finite number")[0]
    if is_empirical(pair):
        return _estimated(
            pair, fpr_levels, delta_levels, epsilon_levels, confidence, as_key(random_state)
        )
    orders = [float(a) for a in order]

    def measure(ratio: Ratio) -> FloatArray:
        back = ratio.reversed()
        scalars = [
            ratio.advantage(),
            ratio.overlap(),
            back.renyi(1.0),
            ratio.renyi(1.0),
            ratio.auc(),
            *(back.renyi(a) for a in orders),
        ]
        larger = [
            np.maximum(ratio.epsilon_at(delta_levels), back.epsilon_at(delta_levels)),
            np.maximum(ratio.delta_at(epsilon_levels), back.delta_at(epsilon_levels)),
        ]
        return np.column_stack([*scalars, ratio.tpr_at(fpr_levels)[0], *larger])

    count = 5 + len(orders) + fpr_levels.size + delta_levels.size + epsilon_levels.size
    table = np.moveaxis(over_pairs(pair, measure, (count,)), -1, 0)
    ends = np.cumsum([5, len(orders), fpr_levels.size, delta_levels.size])
    scalars, renyi, tpr, eps, deltas = np.split(table, ends)
    return Summary(
        advantage=scalars[0],
        overlap=scalars[1],
        kl=scalars[2],
        kl_reverse=scalars[3],
        auc=scalars[4],
        renyi=dict(zip(orders, renyi, strict=True)),
        tpr_at_fpr=dict(zip(fpr_levels.tolist(), tpr, strict=True)),
        epsilon_at_delta=dict(zip(delta_levels.tolist(), eps, strict=True)),
        delta_at_epsilon=dict(zip(epsilon_levels.tolist(), deltas, strict=True)),
        provenance=pair.provenance,
    )


def _estimated(
    pair: LawPair,
    fpr: FloatArray,
    delta: FloatArray,
    epsilon: FloatArray,
    confidence: float,
    key: Key,
) -> Summary:
    known: dict[str, Any] = {"confidence": confidence}
    keyed: dict[str, Any] = {"confidence": confidence, "random_state": key}
    found: dict[str, Estimate] = {}

    def note(name: str, estimate: FloatArray | Estimate) -> FloatArray:
        assert isinstance(estimate, Estimate)
        found[name] = estimate
        return estimate.value

    return Summary(
        advantage=note("advantage", advantage(pair, **keyed)),
        kl=note("kl", kl(pair, **keyed)),
        kl_reverse=note("kl_reverse", kl(pair, "member_to_nonmember", **keyed)),
        auc=note("auc", auc(pair, **known)),
        tpr_at_fpr={
            x: note(f"tpr_at_fpr_{x:g}", tpr_at_fpr(pair, x, **known)) for x in fpr.tolist()
        },
        epsilon_at_delta={
            x: note(f"epsilon_at_delta_{x:g}", epsilon_at_delta(pair, x, **keyed))
            for x in delta.tolist()
        },
        delta_at_epsilon={
            x: note(f"delta_at_epsilon_{x:g}", delta_at_epsilon(pair, x, **keyed))
            for x in epsilon.tolist()
        },
        provenance=pair.provenance,
        estimates=found,
    )


def _oriented(pair: LawPair, direction: Direction) -> LawPair:
    """The pair turned so that its member law is the first law of ``direction``."""
    if direction not in get_args(Direction):
        raise InputError(
            "direction must be nonmember_to_member or member_to_nonmember, "
            f"but it is {direction!r}."
        )
    return pair if direction == "member_to_nonmember" else pair.swapped()


def as_levels(
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


def is_empirical(pair: LawPair) -> bool:
    """Whether the pair is of samples, whose measures are estimates."""
    return isinstance(pair.member, Empirical)


def samples(pair: LawPair) -> tuple[FloatArray, FloatArray]:
    """The member and nonmember samples of an empirical pair."""
    member, nonmember = pair.member, pair.nonmember
    if not isinstance(member, Empirical) or not isinstance(nonmember, Empirical):
        raise InputError("This measure needs a pair of Empirical laws.")
    return member.samples, nonmember.samples
