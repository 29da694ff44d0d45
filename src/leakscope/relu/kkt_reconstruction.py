"""Reconstruction with many inputs: points and multipliers that explain the weights.

At a KKT point the weights are a sum over the records that hold the network, so records can be
looked for by making the KKT residual small (Haim et al. 2022).  This is an attack without a
theorem: other points may explain the same weights.  Near a KKT point a network has few distinct
neurons; with K of them and n records that hold it, stationarity has K (d + 1) equations and
complementarity n, for n (d + 1) unknowns.  Where that is too few, whole families of points give
exactly these weights, and no attack on the KKT conditions can tell them apart.

**Distinct neurons.**  Near a KKT point many neurons are copies of a few.  With masses
m_i = lambda_i y_i, z_i = (x_i, 1) and slopes s_ij of the ReLU, stationarity (Eqs. (8) and (9) of
**relu**, in d dimensions) is

    (w_j, b_j) / v_j = sum over i of m_i s_ij z_i,

a vector of length one by Eq. (7).  It depends on the neuron only through its slopes, so that
neurons active on the same records coincide; and where the slopes of two neurons differ on one
record only, their difference is a multiple of that record's z_i, whose ratio is x_i.

**Descent** from many starts at once.  Haim et al. (2022) minimise
|theta - sum_i lambda_i y_i grad f(x_i)|^2 over points and multipliers.  Over the distinct neurons
u_k, with shares c_k of the mass, that is, as a share of |theta|^2,

    1/2 sum over k of c_k (|r_k|^2 + (u_k . r_k)^2),    r_k = u_k - sum over i of m_i s_ki z_i,

where s_ki is the slope of the ReLU; the second part are the output weights.  Two forms:

- smoothed, as theirs: s_ki = sigmoid(sharpness u_k . z_i), sharper as the descent goes on.
- with the slopes as variables in [0, 1], because trained networks rest on many kinks, where any
  slope will do.  A slope that does not fit its pre-activation p costs lambda (relu(p) - s p),
  which is zero exactly on the subdifferential and positive elsewhere.  Complementarity is added:
  all points with a multiplier have one margin, |theta|^2 / (2 sum lambda) by homogeneity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError, required
from leakscope.laws.pair import Assumption, Provenance
from leakscope.relu.kkt import kkt_residual
from leakscope.relu.network import TwoLayerNetwork

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]

Method = Literal["both", "descent", "smoothed", "differences"]

# Starts whose residual is at most so many times the best one's count as solutions.
SOLUTIONS = 2.0
# So do all below this residual: the descent does not resolve less from every start.
SOLVED = 1e-3
# A multiplier below this share of its start's largest holds nothing.
NO_MULTIPLIER = 1e-2
# Sets of random candidates that the baseline averages over.
BASELINE_DRAWS = 200
RATE = 0.02  # of Adam, for the points in units of their scale
SLOPE_RATE = 5.0  # the slopes' logits move so much faster
SHARPNESS = (3.0, 300.0)
PENALTY = (0.1, 1.0)
# Neurons with less than this share of the network's mass are left out: they hold nothing.
NO_MASS = 1e-5
# A difference whose last entry is below this, of vectors of length one, has no ratio to speak of.
NO_RATIO = 1e-3


@dataclass(frozen=True, eq=False)
class PointCandidate:
    """A point that may be a training record."""

    x: FloatArray  # (d,)
    label: int  # 1 or -1
    multiplier: float  # lambda of a record there
    margin_gap: float  # |f(x)| / margin - 1: zero for a record that holds the network
    # Share of the solutions found, one for each start that ended near the best, that have a point
    # here with this label.  Low: the weights are explained as well without it.  ``None`` for a
    # candidate of the differences alone.
    agreement: float | None
    pairs: int  # pairs of distinct neurons whose difference is a multiple of (x, 1); 0 for none
    method: str  # ``"descent"``, ``"smoothed"``, ``"differences"``, or ``"both"``, which found it

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "x": self.x.tolist()}


@dataclass(frozen=True, eq=False)
class PointReconstruction:
    """Candidates for the records of a network with many inputs."""

    candidates: tuple[PointCandidate, ...]  # those that most solutions agree on first
    margin: float  # as given, or as the best solution says; nan for differences without a candidate
    margin_known: bool  # whether it was given
    # The KKT residual of the network on the best start's points, by :func:`kkt_residual` at this
    # margin: comparable with that of the training set.  ``None`` for the differences alone.
    residual: float | None
    distinct: int  # K, the number of distinct neurons
    solutions: int  # how many starts ended near the best
    # Whether K (d + 1) + p equations suffice for p (d + 1) unknowns, p the points of the best start
    # with a multiplier.  Where they do not, the points are not determined by the weights; where
    # they do, they still need not be.
    determined: bool | None
    guarantee: None = None  # always ``None``: there is no theorem

    @property
    def x(self) -> FloatArray:
        """The candidates' points alone, (m, d)."""
        return np.array([candidate.x for candidate in self.candidates])

    def provenance(self) -> Provenance:
        """This training set, by the weights."""
        return Provenance(
            question="leave_one_out",
            observes="coefficients",
            method="simulated",
            source="the KKT residual over points and multipliers, after Haim et al. 2022",
            assumptions=(Assumption("the network is a KKT point of the maximum-margin problem"),),
        )

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
        ``"both"``: descent, one start of it from the differences.
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


def _shared_height(heights: FloatArray, weights: FloatArray) -> float:
    """The weighted median: records that hold a network all answer its margin.

    Stationarity says |theta|^2 / (2 sum lambda) as well, but where the points found do not explain
    the weights that is a height at which none of them lies.
    """
    order = np.argsort(heights)
    share = np.cumsum(weights[order]) / weights.sum()
    return float(heights[order][np.searchsorted(share, 0.5)])


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
    known = margin
    if known is None:
        known = _shared_height(np.abs(network(ended.points[best])), size[best] * held[best])
        # where the network is zero at all of them, what stationarity says
        known = known if known > 0.0 else float(neurons.mass.sum() / size[best].sum())
    start, place = np.nonzero(held[rows])
    x, m = ended.points[rows][start, place], ended.masses[rows][start, place]
    near = _alike(x, np.sign(m), radius)
    member = np.zeros((len(rows), len(x)))
    member[start, np.arange(len(x))] = 1.0
    agreement = ((member @ near) > 0.0).mean(axis=0)
    candidates: list[PointCandidate] = []
    groups = _greedy(x, np.sign(m), radius, np.argsort(-agreement, kind="stable"))
    for centre, group in itertools.islice(groups, points):
        # of the points there, the one from the best start
        i = int(np.argmax(group))
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


@dataclass(frozen=True, eq=False)
class DistinctNeurons:
    """K groups of neurons, as one neuron each."""

    # (K, d+1): sign(v) (w, b) / |(w, b)|, bias last, averaged over the group by mass.
    vectors: FloatArray
    sign: FloatArray  # (K,): of the output weight
    # (K,): sum of |v_j| |(w_j, b_j)| over the group; half of the network's squared norm in all, at
    # a KKT point.
    mass: FloatArray
    tolerance: float  # how far the vectors in a group may lie from its heaviest

    def __len__(self) -> int:
        return len(self.sign)

    def pre_activations(self, points: FloatArray) -> FloatArray:
        """sign_k u_k . (x_i, 1), positive where the neuron is active; (K, m)."""
        z = np.column_stack([points, np.ones(len(points))])
        return np.asarray(self.sign[:, None] * (self.vectors @ z.T))


def distinct_neurons(
    network: TwoLayerNetwork, *, tolerance: float = 1e-2, most: int = 64
) -> DistinctNeurons:
    """Group neurons whose vectors lie within ``tolerance``, doubled until there are ``most``."""
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"tolerance must be between 0 and 1, but it is {tolerance}.")
    w = np.column_stack([network.w, network.b])
    sizes = np.linalg.norm(w, axis=1)
    mass = np.abs(network.v) * sizes
    if not mass.sum() > 0.0:
        raise InputError("The network is zero everywhere: no neuron has any weight.")
    live = np.flatnonzero(mass > NO_MASS * mass.sum())
    live = live[np.argsort(-mass[live], kind="stable")]
    sign = np.sign(network.v[live])
    vectors = sign[:, None] * w[live] / sizes[live, None]
    while True:
        found = _grouped(vectors, sign, mass[live], tolerance)
        if len(found) <= most or tolerance >= 1.0:
            return found
        tolerance *= 2.0


def _grouped(
    vectors: FloatArray, sign: FloatArray, mass: FloatArray, tolerance: float
) -> DistinctNeurons:
    groups = [group for _, group in _greedy(vectors, sign, tolerance, range(len(mass)))]
    totals = np.array([mass[group].sum() for group in groups])
    means = np.stack([mass[group] @ vectors[group] for group in groups])
    means /= np.linalg.norm(means, axis=1)[:, None]
    firsts = np.array([sign[np.argmax(group)] for group in groups])
    return DistinctNeurons(means, firsts, totals, tolerance)


@dataclass(frozen=True, eq=False)
class Differences:
    """Candidates from pairs of neurons: points (c, d), masses (c,) and how many pairs say so."""

    points: FloatArray
    masses: FloatArray
    pairs: NDArray[np.int64]


def difference_candidates(
    network: TwoLayerNetwork, neurons: DistinctNeurons, *, radius: float
) -> Differences:
    """Points that explain the difference of two neurons, or one neuron, on their own.

    Kept are those at which one of the two is active and the other is not, as the difference says,
    with a label that the network agrees with.  Points within ``radius`` with one label are one.
    A slope between 0 and 1 makes the mass too small, but leaves the point where it is.
    """
    vectors = np.vstack([neurons.vectors, np.zeros(neurons.vectors.shape[1])])
    a, b = np.tril_indices(len(vectors), -1)
    gaps = vectors[a] - vectors[b]
    # The zero vector stands for a neuron active on nothing, and is the last: it is always `a`.
    keep = (np.abs(gaps[:, -1]) > NO_RATIO) & (
        np.linalg.norm(gaps, axis=1) > 4.0 * neurons.tolerance
    )
    a, b, gaps = a[keep], b[keep], gaps[keep]
    points = gaps[:, :-1] / gaps[:, -1:]
    active = np.vstack([neurons.pre_activations(points) > 0.0, np.zeros(len(points), bool)])
    at = np.arange(len(points))
    first, second = active[a, at], active[b, at]
    masses = np.where(first, gaps[:, -1], -gaps[:, -1])
    keep = (first != second) & (masses * network(points) > 0.0)
    return _merged(points[keep], masses[keep], radius)


def _merged(points: FloatArray, masses: FloatArray, radius: float) -> Differences:
    sign = np.sign(masses)
    order = np.argsort(-_alike(points, sign, radius).sum(axis=1), kind="stable")
    groups = [group for _, group in _greedy(points, sign, radius, order)]
    return Differences(
        np.array([points[group].mean(axis=0) for group in groups]).reshape(-1, points.shape[1]),
        # the largest mass belongs to whole slopes
        np.array([max(masses[group], key=abs) for group in groups]),
        np.array([group.sum() for group in groups], dtype=np.int64),
    )


def _alike(points: FloatArray, sign: FloatArray, radius: float) -> BoolArray:
    """Which pairs lie within ``radius`` and have one sign."""
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= radius
    return np.asarray(near & (sign[:, None] == sign))


def _greedy(
    points: FloatArray, sign: FloatArray, radius: float, order: Iterable[int]
) -> Iterator[tuple[int, BoolArray]]:
    """In this order each point that is left, with those alike that are left."""
    left = np.ones(len(points), dtype=bool)
    for i in order:
        if left[i]:
            near = np.linalg.norm(points - points[i], axis=1) <= radius
            group = left & near & (sign == sign[i])
            left &= ~group
            yield i, group


class Descended(NamedTuple):
    """Where S starts of p points ended: (S, p, d), masses (S, p), and what was minimised (S,)."""

    points: FloatArray
    masses: FloatArray
    total: FloatArray


class _Problem(NamedTuple):
    vectors: Any
    sign: Any
    mass: Any
    low: Any
    high: Any
    margin: Any
    scale: Any


def descend(
    neurons: DistinctNeurons,
    points: FloatArray,
    masses: FloatArray,
    *,
    steps: int,
    smoothed: bool,
    scale: float,
    margin: float | None,
    box: tuple[FloatArray, FloatArray] | None,
) -> Descended:
    """Adam on all starts together, in float64; ``points`` (S, p, d) and ``masses`` (S, p)."""
    require_jax("The search for training points")
    required("optax", "The search for training points")
    features = points.shape[2]
    low, high = (np.full(features, -np.inf), np.full(features, np.inf)) if box is None else box
    # -1 stands for a margin that is not known
    given = -1.0 if margin is None else margin
    with double_precision():
        import jax.numpy as jnp

        # neurons without mass change nothing, and spare a compilation for every K
        more = 2 ** max(int(np.ceil(np.log2(len(neurons)))), 2) - len(neurons)
        vectors = np.pad(neurons.vectors, ((0, more), (0, 0)))
        sign, mass = np.pad(neurons.sign, (0, more)), np.pad(neurons.mass, (0, more))
        z = np.concatenate([points, np.ones((*points.shape[:2], 1))], axis=2)
        logits = np.einsum("k,kr,spr->skp", sign, vectors, z)
        arrays = (vectors, sign, mass, low, high, given, scale)
        problem = _Problem(*(jnp.asarray(one) for one in arrays))
        run = _compiled(steps, smoothed)
        ended = run(tuple(map(jnp.asarray, (points, masses, logits))), problem)
        return Descended(*(np.asarray(one) for one in ended))


@cache
def _compiled(steps: int, smoothed: bool) -> Callable[[Any, _Problem], Any]:
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.scale_by_adam(b1=0.9, b2=0.99, eps=1e-12)
    cosine = optax.cosine_decay_schedule(1.0, steps)

    def cost(state: Any, problem: _Problem, at: Any) -> Any:
        x, m, logits = state
        z = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)
        share = problem.mass / problem.mass.sum()
        before = problem.sign[:, None] * (problem.vectors @ z.T)
        sharpness = SHARPNESS[0] * (SHARPNESS[1] / SHARPNESS[0]) ** at
        slopes = jax.nn.sigmoid(sharpness * before if smoothed else logits)
        rest = problem.vectors - slopes @ (m[:, None] * z)
        along = jnp.sum(problem.vectors * rest, axis=1)
        stationarity = 0.5 * jnp.sum(share * (jnp.sum(rest**2, axis=1) + along**2))
        outside = jnp.maximum(x - problem.high, 0.0) + jnp.maximum(problem.low - x, 0.0)
        total = stationarity + jnp.sum((outside / problem.scale) ** 2)
        if smoothed:
            return total
        size = jnp.abs(m)
        whole = jnp.sum(size) + 1e-300
        # |theta|^2 is twice the mass at a KKT point
        margin = jnp.where(problem.margin > 0.0, problem.margin, problem.mass.sum() / whole)
        after = jnp.maximum(before, 0.0)
        off = jnp.sign(m) * ((problem.mass * problem.sign) @ after) / margin - 1.0
        complementarity = jnp.sum(size * off**2) / whole
        gap = jnp.sum(share[:, None] * size * (after - slopes * before))
        penalty = PENALTY[0] * (PENALTY[1] / PENALTY[0]) ** at
        return total + complementarity + penalty * gap

    each = (0, None, None)
    slope_of = jax.vmap(jax.grad(cost), in_axes=each)

    @jax.jit
    def run(state: Any, problem: _Problem) -> Any:
        def step(carry: Any, t: Any) -> Any:
            now, memory = carry
            slope = slope_of(now, problem, jnp.minimum(t / (0.6 * steps), 1.0))
            change, memory = adam.update(slope, memory)
            rates = (RATE * problem.scale, RATE, SLOPE_RATE * RATE)
            now = tuple(
                one - rate * cosine(t) * move
                for one, rate, move in zip(now, rates, change, strict=True)
            )
            return (now, memory), None

        (state, _), _ = jax.lax.scan(step, (state, adam.init(state)), jnp.arange(steps))
        return state[0], state[1], jax.vmap(cost, in_axes=each)(state, problem, 1.0)

    return run


@dataclass(frozen=True, eq=False)
class PointRecovery:
    """Records found among candidates."""

    # (n,): from each record to the nearest candidate, in units of the distance from the record to
    # the nearest other record; infinite without candidates.
    distances: FloatArray
    recovered: BoolArray  # (n,): whether that is at most ``tolerance``
    right: BoolArray  # (m,): whether a candidate is that near a record
    recall: float  # share of the records recovered; 0 without candidates
    precision: float | None  # share of the candidates that are right; ``None`` without any
    # The same, on average, for as many candidates drawn from the normal law with the records' own
    # mean and covariance: what knowing the population gives.
    baseline_recall: float
    baseline_precision: float | None
    tolerance: float  # as given


def point_recovery(
    candidates: ArrayLike,
    x: ArrayLike,
    *,
    tolerance: float = 0.1,
    random_state: int | np.random.Generator | Key | None = None,
) -> PointRecovery:
    """Which of the records ``x`` (n, d) lie near one of the ``candidates`` (m, d).

    Parameters
    ----------
    candidates
        As many as there are, also none.
    x
        The training records; two at least, no two alike.
    tolerance
        How near counts, as a share of the distance to the nearest other record.
    random_state
        For the baseline.
    """
    records = np.asarray(x, dtype=np.float64)
    if records.ndim != 2 or len(records) < 2 or not np.isfinite(records).all():
        raise InputError(
            "The records must be two rows or more of finite numbers, but their shape is "
            f"{records.shape}."
        )
    places = np.asarray(candidates, dtype=np.float64)
    if not places.size:
        places = places.reshape(0, records.shape[1])
    if places.ndim != 2 or places.shape[1] != records.shape[1]:
        raise InputError(
            f"The records have {records.shape[1]} columns, but the candidates' shape is "
            f"{places.shape}."
        )
    if not 0.0 < tolerance < 0.5:
        raise InputError(f"tolerance must be between 0 and 0.5, but it is {tolerance}.")
    between = np.linalg.norm(records[:, None] - records[None], axis=2)
    np.fill_diagonal(between, np.inf)
    nearest = between.min(axis=1)
    if not nearest.min() > 0.0:
        row = int(np.argmin(nearest))
        raise InputError(f"The records must differ, but row {row} is there twice.")
    distances = _shares(places, records, nearest)
    recovered = distances.min(axis=0, initial=np.inf) <= tolerance
    right = np.asarray((distances <= tolerance).any(axis=1))
    generator = as_key(random_state).generator()
    spread = records - records.mean(axis=0)
    recalls, precisions = [], []
    for _ in range(BASELINE_DRAWS if len(places) else 0):
        # a combination of the rows with normal weights has their covariance, also where n < d
        weights = generator.standard_normal((len(places), len(records)))
        drawn = records.mean(axis=0) + weights @ spread / np.sqrt(len(records))
        hits = _shares(drawn, records, nearest) <= tolerance
        recalls.append(hits.any(axis=0).mean())
        precisions.append(hits.any(axis=1).mean())
    return PointRecovery(
        distances.min(axis=0, initial=np.inf),
        recovered,
        right,
        float(recovered.mean()),
        float(right.mean()) if len(places) else None,
        float(np.mean(recalls)) if recalls else 0.0,
        float(np.mean(precisions)) if precisions else None,
        tolerance,
    )


def _shares(places: FloatArray, records: FloatArray, nearest: FloatArray) -> FloatArray:
    """Distances (m, n) in units of each record's distance to the nearest other one."""
    gaps = np.linalg.norm(places[:, None] - records[None], axis=2)
    return np.asarray(gaps / nearest)
