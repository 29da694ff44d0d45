"""The three attackers of Section 4.1, who see a network's answers and nothing else.

Theorem 4.2: where points are nearly orthogonal, |f(x)| is the margin m at every training point and
far below it at fresh points.  An attacker needs to know something about m: its value (Cor. 4.3),
a set of points one of which was trained on (Cor. 4.4), or a lower bound (Cor. 4.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.settings.attack import MEMBERSHIP_DEFAULTS

# Remark B.5: a network whose loss is below 1/(2e), half of its points on the margin, has m > 1/e.
LEAST_MARGIN = float(np.exp(-1.0))


@dataclass(frozen=True, eq=False)
class MembershipAnswer:
    """What an attacker concludes about each query."""

    answers: FloatArray  # f at the queries, any shape (..., N)
    scores: FloatArray  # higher is more likely a member; the same shape
    member: NDArray[np.bool_]  # the attacker's decision
    threshold: float  # a query is called a member where its score is at or above this
    # The margin the attacker works with, (...,); None for the one who only has a bound.
    margin: FloatArray | None
    source: str  # the corollary

    def provenance(self) -> Provenance:
        """A typical training point against a fresh one in its place, by the network's answer."""
        return _provenance(self.source)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "scores": self.scores.tolist(),
            "member": self.member.tolist(),
            "answers": self.answers.tolist(),
            "threshold": self.threshold,
            "margin": None if self.margin is None else self.margin.tolist(),
            "source": self.source,
        }


@dataclass(frozen=True, eq=False, init=False)
class KnownMargin:
    """Cor. 4.3: the attacker knows m, and calls a member what answers about m in size.

    The score is -| |f(x)|/m - 1 |.  The corollary has fresh points below m/2, so a query is a
    member where |f(x)| is within m/2 of m; a smaller ``tolerance`` is surer of its members.

    Parameters
    ----------
    margin
        m, one for all or one for each network of a batch.
    tolerance
        How far from m, as a share of m, still counts.
    """

    margin: FloatArray
    tolerance: float

    def __init__(
        self,
        margin: ArrayLike,
        tolerance: float = MEMBERSHIP_DEFAULTS.tolerance,
    ) -> None:
        value = np.asarray(margin, dtype=np.float64)
        if not (np.isfinite(value).all() and (value > 0.0).all()):
            raise InputError("The margin must be positive and finite.")
        if not 0.0 < tolerance < 1.0:
            raise InputError(f"tolerance must be between 0 and 1, but it is {tolerance}.")
        object.__setattr__(self, "margin", value)
        object.__setattr__(self, "tolerance", float(tolerance))

    def attack(self, answers: ArrayLike) -> MembershipAnswer:
        """Scores and decisions for the network's ``answers``, (..., N)."""
        return _near_margin(_answers(answers), self.margin, self.tolerance, "relu Cor. 4.3")


@dataclass(frozen=True, eq=False, init=False)
class LeakedPoints:
    """Cor. 4.4: among some points at least one was trained on; the largest answer is m.

    Parameters
    ----------
    answers
        f at the leaked points, (..., k).  None: the queries themselves are those points.
    tolerance
        As for `KnownMargin`.
    """

    answers: FloatArray | None
    tolerance: float

    def __init__(
        self, answers: ArrayLike | None = None, tolerance: float = MEMBERSHIP_DEFAULTS.tolerance
    ) -> None:
        object.__setattr__(self, "answers", None if answers is None else _answers(answers))
        object.__setattr__(self, "tolerance", float(KnownMargin(1.0, tolerance).tolerance))

    def attack(self, answers: ArrayLike) -> MembershipAnswer:
        """Scores and decisions for the network's ``answers``, (..., N)."""
        asked = _answers(answers)
        margin = np.abs(asked if self.answers is None else self.answers).max(axis=-1)
        if not (margin > 0.0).all():
            raise InputError(
                "The network answers 0 at every leaked point, so none of them can be on a margin."
            )
        return _near_margin(asked, margin, self.tolerance, "relu Cor. 4.4")


@dataclass(frozen=True)
class BoundedMargin:
    """Cor. 4.5: the attacker knows only that m > C; a member answers above C.

    The score is |f(x)|, and fresh points answer o(1) where the corollary applies.

    Parameters
    ----------
    lower
        C; by default 1/e, which Remark B.5 has for a network whose loss is below 1/(2e).
    """

    lower: float = LEAST_MARGIN

    def __post_init__(self) -> None:
        if not 0.0 < self.lower < np.inf:
            raise InputError(f"The lower bound must be positive, but it is {self.lower}.")

    def attack(self, answers: ArrayLike) -> MembershipAnswer:
        """Scores and decisions for the network's ``answers``, (..., N)."""
        asked = _answers(answers)
        scores = np.abs(asked)
        return MembershipAnswer(
            asked, scores, scores > self.lower, self.lower, None, "relu Cor. 4.5"
        )


Knowledge = KnownMargin | LeakedPoints | BoundedMargin


def membership_attack(
    model: Callable[[FloatArray], ArrayLike], queries: ArrayLike, knowledge: Knowledge
) -> MembershipAnswer:
    """Ask a black box at the queries, and decide for each whether it was trained on.

    Parameters
    ----------
    model
        Anything that answers: a `TwoLayerNetwork`, ``TrainedNetworks.outputs``, or a function of
        the user's.
    queries
        (N, d).
    knowledge
        What the attacker knows: `KnownMargin`, `LeakedPoints` or `BoundedMargin`.

    Examples
    --------
    >>> from leakscope.relu import KnownMargin, TwoLayerNetwork
    >>> from leakscope.relu.membership import membership_attack
    >>> network = TwoLayerNetwork([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [1.0, -1.0])
    >>> membership_attack(network, [[1.0, 0.0], [0.1, 0.0]], KnownMargin(1.0)).member.tolist()
    [True, False]
    """
    asked = np.asarray(queries, dtype=np.float64)
    if asked.ndim != 2 or not np.isfinite(asked).all():
        raise InputError(
            f"Queries must be finite numbers, one row per query, but their shape is {asked.shape}."
        )
    return knowledge.attack(model(asked))


def scores_law_pair(
    members: ArrayLike, nonmembers: ArrayLike, source: str = "relu Thm 4.2"
) -> LawPair:
    """Scores of members and of fresh points as a pair of empirical laws, for the measures.

    Batches are on the leading axes: (..., N) scores each.
    """
    told = replace(_provenance(source), method="empirical")
    return LawPair(Empirical(members), Empirical(nonmembers), told)


def _provenance(source: str) -> Provenance:
    return Provenance(
        question="population",
        adjacency="replaced",
        observes="prediction",
        random=("data", "training"),
        attacker_knows_label=False,
        method="exact",
        source=source,
        assumptions=(
            Assumption("fresh points come from the law of the training points"),
            Assumption("the network is a KKT point of the maximum-margin problem"),
        ),
    )


def _near_margin(
    answers: FloatArray, margin: FloatArray, tolerance: float, source: str
) -> MembershipAnswer:
    scores = -np.abs(np.abs(answers) / np.asarray(margin)[..., None] - 1.0)
    return MembershipAnswer(answers, scores, scores >= -tolerance, -tolerance, margin, source)


def _answers(answers: ArrayLike) -> FloatArray:
    value = np.asarray(answers, dtype=np.float64)
    if value.ndim == 0 or value.size == 0:
        raise InputError("The model must give one answer for each query.")
    if not np.isfinite(value).all():
        place = [int(i) for i in np.argwhere(~np.isfinite(value))[0]]
        raise InputError(f"The model's answer at query {place[-1]} is not a finite number.")
    return value
