"""Reconstruction with many inputs: points and multipliers that explain the weights.

At a KKT point the weights are a sum over the records that hold the network, so records can be
looked for by making the KKT residual small (Haim et al. 2022).  This is an attack without a
theorem: other points may explain the same weights.  Near a KKT point a network has few distinct
neurons; with K of them and n records that hold it, stationarity has K (d + 1) equations and
complementarity n, for n (d + 1) unknowns.  Where that is too few, whole families of points give
exactly these weights, and no attack on the KKT conditions can tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.relu.distinct_neurons import (
    Differences,
    DistinctNeurons,
    difference_candidates,
    distinct_neurons,
)
from leakscope.relu.kkt import kkt_residual
from leakscope.relu.kkt_descent import Descended, descend
from leakscope.relu.network import TwoLayerNetwork

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["both", "descent", "smoothed", "differences"]

# Starts whose residual is at most so many times the best one's count as solutions.
SOLUTIONS = 2.0
# So do all below this residual: the descent does not resolve less from every start.
SOLVED = 1e-3
# A multiplier below this share of its start's largest holds nothing.
NO_MULTIPLIER = 1e-2


@dataclass(frozen=True, eq=False)
class PointCandidate:
    """A point that may be a training record.

    Attributes
    ----------
    x
        (d,).
    label
        1 or -1.
    multiplier
        lambda of a record there.
    margin_gap
        |f(x)| / margin - 1: zero for a record that holds the network.
    agreement
        Share of the solutions found, one for each start that ended near the best, that have a
        point here with this label.  Low: the weights are explained as well without it.  ``None``
        for a candidate of the differences alone.
    pairs
        Pairs of distinct neurons whose difference is a multiple of (x, 1); 0 for none.
    method
        ``"descent"``, ``"smoothed"``, ``"differences"``, or ``"both"``, which found it.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.TwoLayerNetwork([[0.6, 0.0]], [0.8], [1.0])
    >>> found = relu.reconstruct_points(network, points=1, method="differences")
    >>> found.candidates[0].x.round(6).tolist(), found.candidates[0].label
    ([0.75, 0.0], 1)
    """

    x: FloatArray
    label: int
    multiplier: float
    margin_gap: float
    agreement: float | None
    pairs: int
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "x": self.x.tolist()}


@dataclass(frozen=True, eq=False)
class PointReconstruction:
    """Candidates for the records of a network with many inputs.

    Attributes
    ----------
    candidates
        Those that most solutions agree on first.
    margin
        As given, or as the best solution says; nan for differences without a candidate.
    margin_known
        Whether it was given.
    residual
        The KKT residual of the network on the best start's points, by :func:`kkt_residual` at
        this margin: comparable with that of the training set.  ``None`` for the differences alone.
    distinct
        K, the number of distinct neurons.
    solutions
        How many starts ended near the best.
    determined
        Whether K (d + 1) + p equations suffice for p (d + 1) unknowns, p the points of the best
        start with a multiplier.  Where they do not, the points are not determined by the weights;
        where they do, they still need not be.
    guarantee
        Always ``None``: there is no theorem.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.TwoLayerNetwork([[0.6, 0.0]], [0.8], [1.0])
    >>> found = relu.reconstruct_points(network, points=1, method="differences")
    >>> found.x.round(6).tolist(), found.distinct, found.guarantee
    ([[0.75, 0.0]], 1, None)
    """

    candidates: tuple[PointCandidate, ...]
    margin: float
    margin_known: bool
    residual: float | None
    distinct: int
    solutions: int
    determined: bool | None
    guarantee: None = None

    @property
    def x(self) -> FloatArray:
        """The candidates' points alone, (m, d)."""
        return np.array([candidate.x for candidate in self.candidates])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **vars(self),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate, a column for each coordinate: x0, x1, ..."""
        import pandas as pd

        rows = []
        for candidate in self.candidates:
            values = vars(candidate).copy()
            x = values.pop("x")
            rows.append({**{f"x{i}": float(v) for i, v in enumerate(x)}, **values})
        return pd.DataFrame(rows)


def reconstruct_points(
    network: TwoLayerNetwork,
    *,
    points: int | None = None,
    method: Method = "both",
    margin: float | None = None,
    scale: float = 1.0,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    starts: int = 32,
    steps: int = 2000,
    tolerance: float = 1e-2,
    random_state: int | np.random.Generator | Key | None = None,
) -> PointReconstruction:
    """Candidates for training records of a network with any number of inputs, from its weights.

    Parameters
    ----------
    network
        Trained until it is near a KKT point.
    points
        How many are looked for at once: the number of records, where it is known.  Where left
        out, as many as the equations can determine: K (d + 1) / d for K distinct neurons.
    method
        ``"descent"``: the KKT residual over points, multipliers and the slopes at kinks, with
        complementarity.  ``"smoothed"``: the objective of Haim et al. alone, with a smoothed
        derivative.  ``"differences"``: ratios of the differences of distinct neurons, no descent.
        ``"both"``: descent, one start of it from the differences.  See `kkt_descent` and
        `distinct_neurons`.
    margin
        The least y f(x) of training, if it is known.
    scale
        Typical size of a feature; starts are normal with this deviation.
    box
        Least and largest value, one for all features or one each: starts are uniform in it, and
        leaving it costs.
    starts, steps
        Starts of the descent, all at once, and steps of each.
    tolerance
        Neurons whose unit vectors lie this near are one.
    random_state
        For the starts.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import relu
    >>> x = np.array([[1.0, 0.5], [-1.0, 0.5]])
    >>> trained = relu.train(
    ...     x, [1.0, -1.0], relu.TrainingPlan(width=20, steps=4000), random_state=0
    ... )
    >>> found = relu.reconstruct_points(trained.network(0), points=2, random_state=0)
    >>> sorted((one.label, one.x.round(2).tolist()) for one in found.candidates)
    [(-1, [-1.0, 0.5]), (1, [1.0, 0.5])]
    """
    limits = _require(points, method, margin, scale, box, starts, steps, network.features)
    if limits is not None:
        scale = float(np.mean(limits[1] - limits[0]) / 2.0)
    neurons = distinct_neurons(network, tolerance=tolerance)
    if points is None:
        points = len(neurons) * (network.features + 1) // network.features
    radius = 0.05 * scale * np.sqrt(network.features)
    differences = difference_candidates(network, neurons, radius=radius)
    if method == "differences":
        known = _margin_of(network, differences) if margin is None else margin
        found = _from_differences(network, differences, known, points)
        return PointReconstruction(
            tuple(found), known, margin is not None, None, len(neurons), 0, None
        )
    require_memory(
        8 * starts * len(neurons) * points * 12,
        f"{starts} starts of {points} points for {len(neurons)} distinct neurons",
        "ask for fewer starts",
    )
    first = _first(neurons, points, starts, scale, limits, as_key(random_state))
    if method == "both":
        _seed(*first, differences)
    ended = descend(
        neurons,
        *first,
        steps=steps,
        smoothed=method == "smoothed",
        scale=scale,
        margin=margin,
        box=limits,
    )
    return _assembled(network, neurons, ended, differences, method, margin, points, radius)


def _require(
    points: int | None,
    method: str,
    margin: float | None,
    scale: float,
    box: tuple[ArrayLike, ArrayLike] | None,
    starts: int,
    steps: int,
    features: int,
) -> tuple[FloatArray, FloatArray] | None:
    if method not in get_args(Method):
        raise InputError(f"method must be one of {', '.join(get_args(Method))}, not {method!r}.")
    for name, value in (("points", points), ("starts", starts), ("steps", steps)):
        if value is not None and value < 1:
            raise InputError(f"{name} must be 1 or more, but it is {value}.")
    for name, number in (("margin", margin), ("scale", scale)):
        if number is not None and not 0.0 < number < np.inf:
            raise InputError(f"The {name} must be a positive number, but it is {number}.")
    if box is None:
        return None
    try:
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), (features,)).copy() for end in box
        )
    except (TypeError, ValueError):
        raise InputError(
            f"box must be two ends, each a number or one for each of the {features} features."
        ) from None
    if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        raise InputError("box must have finite ends, the lower one below the upper one.")
    return low, high


def _first(
    neurons: DistinctNeurons,
    points: int,
    starts: int,
    scale: float,
    limits: tuple[FloatArray, FloatArray] | None,
    key: Key,
) -> tuple[FloatArray, FloatArray]:
    """Random points, and masses of the size that one record alone would have."""
    generator = key.generator()
    features = neurons.vectors.shape[1] - 1
    shape = (starts, points, features)
    if limits is None:
        x = scale * generator.standard_normal(shape)
    else:
        x = generator.uniform(*limits, shape)
    masses = generator.choice([-1.0, 1.0], (starts, points))
    return x, masses / np.sqrt((x**2).sum(axis=2) + 1.0)


def _seed(x: FloatArray, masses: FloatArray, differences: Differences) -> None:
    """Put the differences' candidates into the first start alone, so that agreement counts."""
    order = np.argsort(-differences.pairs, kind="stable")[: x.shape[1]]
    x[0, : len(order)] = differences.points[order]
    masses[0, : len(order)] = differences.masses[order]


def _margin_of(network: TwoLayerNetwork, differences: Differences) -> float:
    """The height that most candidates share within 1%; the least of them where several do."""
    heights = np.abs(network(differences.points)) if len(differences.points) else np.zeros(0)
    if not len(heights):
        return float("nan")
    alike = np.abs(heights[:, None] / heights[None] - 1.0) <= 0.01
    votes = (alike * differences.pairs[:, None]).sum(axis=0)
    return float(heights[votes == votes.max()].min())


def _from_differences(
    network: TwoLayerNetwork, differences: Differences, margin: float, points: int
) -> list[PointCandidate]:
    answers = network(differences.points) if len(differences.points) else np.zeros(0)
    gaps = np.abs(answers) / margin - 1.0
    order = np.lexsort((np.abs(gaps), -differences.pairs))
    order = order[np.argsort(np.abs(gaps[order]) > 0.05, kind="stable")][:points]
    return [
        PointCandidate(
            differences.points[i],
            int(np.sign(differences.masses[i])),
            float(np.abs(differences.masses[i])),
            float(gaps[i]),
            None,
            int(differences.pairs[i]),
            "differences",
        )
        for i in order
    ]


def _assembled(
    network: TwoLayerNetwork,
    neurons: DistinctNeurons,
    ended: Descended,
    differences: Differences,
    method: Method,
    margin: float | None,
    points: int,
    radius: float,
) -> PointReconstruction:
    """The points that most solutions have, greedily, each with its neighbours taken out."""
    best = int(np.argmin(ended.total))
    rows = np.flatnonzero(ended.total <= max(SOLUTIONS**2 * ended.total[best], SOLVED**2))
    rows = rows[np.argsort(ended.total[rows], kind="stable")]
    size = np.abs(ended.masses)
    held = size >= NO_MULTIPLIER * size.max(axis=1, keepdims=True)
    known = margin if margin is not None else float(neurons.mass.sum() / size[best].sum())
    start, place = np.nonzero(held[rows])
    x, m = ended.points[rows][start, place], ended.masses[rows][start, place]
    near = np.linalg.norm(x[:, None] - x[None], axis=2) <= radius
    near &= np.sign(m)[:, None] == np.sign(m)
    member = np.zeros((len(rows), len(x)))
    member[start, np.arange(len(x))] = 1.0
    agreement = ((member @ near) > 0.0).mean(axis=0)
    left = np.ones(len(x), dtype=bool)
    candidates: list[PointCandidate] = []
    while left.any() and len(candidates) < points:
        centre = int(np.argmax(np.where(left, agreement, -1.0)))
        # of the points there, the one from the best start
        i = int(np.argmax(left & near[centre]))
        left &= ~near[centre]
        pairs = 0
        if len(differences.points):
            same = np.sign(differences.masses) == np.sign(m[i])
            close = np.linalg.norm(differences.points - x[i], axis=1) <= radius
            pairs = int(differences.pairs[same & close].sum())
        candidates.append(
            PointCandidate(
                x[i],
                1 if m[i] > 0.0 else -1,
                float(np.abs(m[i])),
                float(np.abs(network(x[i : i + 1])[0]) / known - 1.0),
                float(agreement[centre]),
                pairs,
                "both" if method == "both" and pairs else method.replace("both", "descent"),
            )
        )
    p = int(held[best].sum())
    labels = np.where(ended.masses[best][held[best]] > 0.0, 1.0, -1.0)
    kkt = kkt_residual(network, ended.points[best][held[best]], labels, margin=known)
    return PointReconstruction(
        tuple(candidates),
        known,
        margin is not None,
        kkt.residual,
        len(neurons),
        len(rows),
        len(neurons) * (network.features + 1) + p >= p * (network.features + 1),
    )
