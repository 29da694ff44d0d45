"""All measures of a pair, or of a batch of pairs, at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope._numerics.keys import Key, as_key
from leakscope.laws import LawPair, Provenance
from leakscope.measures.advantage import advantage
from leakscope.measures.curves import auc, tpr_at_fpr
from leakscope.measures.dispatch import as_levels, is_empirical, over_pairs
from leakscope.measures.divergence import kl
from leakscope.measures.epsilon import delta_at_epsilon, epsilon_at_delta
from leakscope.measures.estimate import Estimate
from leakscope.measures.ratio import Ratio
from leakscope.settings import MEASURE_DEFAULTS

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

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import summary
    >>> found = summary(LawPair(Normal([0.0, 1.0], 1.0), Normal(0.0, 1.0)), fpr=[0.01])
    >>> found.to_frame()[["advantage", "tpr_at_fpr_0.01"]].round(4)
       advantage  tpr_at_fpr_0.01
    0     0.0000           0.0100
    1     0.3829           0.0924
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
    """All measures but composition (which is of one pair at a time), for the whole batch.

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
    with np.errstate(divide="ignore"):
        log_fpr, log_delta = np.log(fpr_levels)[None, :], np.log(delta_levels)[None, :]

    def measure(ratio: Ratio) -> FloatArray:
        back = ratio.reversed()
        levels = np.broadcast_to(epsilon_levels, (ratio.size, epsilon_levels.size)).copy()
        columns = [
            ratio.advantage()[:, None],
            np.exp(ratio.log_overlap())[:, None],
            back.renyi(1.0)[:, None],
            ratio.renyi(1.0)[:, None],
            ratio.auc()[:, None],
            *(back.renyi(a)[:, None] for a in orders),
            np.exp(ratio.tpr_at(log_fpr)[0]),
            np.maximum(ratio.epsilon_at(log_delta), back.epsilon_at(log_delta)),
            np.exp(np.maximum(ratio.log_excess(levels), back.log_excess(levels))),
        ]
        return np.concatenate(columns, axis=-1)

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
