"""The cavity over records that are read some at a time: only sums over them are ever held.

In memory (`cavity`) every record's m, c and t' stay between rounds.  Here they are worked out anew
in each pass, by the same function (`units.renewed`) called until they stand still, from what all
records share: the mean model's theta, Hbar^{-1} and B = Hbar^{-1} (sum_j t'_j x_j x_j') Hbar^{-1}.
The sums of c x x', t' x x' and f E[F] x over all records then renew what is shared.  The fixed
point is that of the rounds in memory.

A pass is given as a function (`Pass`) that calls some work with the rows of each block, and adds up
what comes of it: in memory, from files, or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.single_fit.laws import ScoreMoments
from leakscope.single_fit.losses import LOSSES
from leakscope.single_fit.responses import gram, spd_inverse, within
from leakscope.single_fit.shares import MOST_ENTRIES, ROWS_PER_COEFFICIENT, Shares
from leakscope.single_fit.units import LEAST_SLACK, Stack, State, normal_points, renewed

# What comes of a block: arrays by name.  Of two blocks they are added, those that begin with
# "largest" are compared, and those that begin with "list" are joined.
Sums = Mapping[str, npt.NDArray[Any]]
# One block: rows of the design (with the column of ones), labels, and the first row's number.
Work = Callable[[FloatArray, FloatArray, int], Sums]
# A pass over all records, under a name of its own.
Pass = Callable[[str, Work], Sums]
FreshQuestion = Literal["pool", "population"]

# What a record stands for is solved to this relative change, in at most so many steps; what all
# share to the second, in at most so many passes.
LOCAL, LOCAL_STEPS = 1e-11, 500
SHARED, MOST_PASSES = 1e-9, 80
# A fit has settled where a Newton step is this share of the coefficients' own size.
FITTED, MOST_NEWTON = 1e-10, 60
# A refit has settled where a step is this share of its distance from the fit on all records.
REFITTED = 1e-2
# A Newton step may move the predictions by this in the root mean square.
LONGEST = 4.0


def added(one: Sums, other: Sums) -> Sums:
    """Of two blocks."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name, value in one.items():
        if name.startswith("largest"):
            found[name] = np.maximum(value, other[name])
        elif name.startswith("list"):
            found[name] = np.concatenate([value, other[name]])
        else:
            found[name] = value + other[name]
    return found


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model with its loss and penalty: theta (d,), the last entry the intercept."""

    loss: str
    penalty: FloatArray
    theta: FloatArray


def _gram(X: FloatArray, weight: FloatArray) -> FloatArray:
    return gram(X[:, None], weight[:, None, None])


def _forms(X: FloatArray, matrix: FloatArray) -> FloatArray:
    return within(X[:, None], matrix, 1)[:, 0, 0]


def _newton(fit: LinearFit, X: FloatArray, y: FloatArray, first: int) -> Sums:
    loss, z = LOSSES[fit.loss], X @ fit.theta
    force = loss.force(z, y)
    return {
        "curved": _gram(X, loss.curvature(z, y)),
        "noisy": _gram(X, force**2),
        "slope": X.T @ force,
        "records": np.array(len(y)),
        "largest_slope": np.zeros(1),
    }


def hessian_of(fit: LinearFit, over: Pass, name: str) -> tuple[FloatArray, FloatArray, Sums]:
    """Gradient and inverse Hessian of the penalised loss at a fit, by one pass."""
    sums = over(name, partial(_newton, fit))
    inverse = spd_inverse(sums["curved"] + np.diag(fit.penalty), "the model")
    return np.asarray(sums["slope"] + fit.penalty * fit.theta), inverse, sums


def fitted_by_passes(fit: LinearFit, over: Pass, name: str) -> LinearFit:
    """The optimum, by Newton steps from ``fit``, one pass each; the square loss needs one."""
    for number in range(MOST_NEWTON):
        slope, inverse, sums = hessian_of(fit, over, f"{name} step {number:02d}")
        step = inverse @ slope
        moved = float(np.sqrt(step @ sums["curved"] @ step / float(sums["records"])))
        length = 1.0
        if not LOSSES[fit.loss].quadratic:
            # In the root mean square over the curvature, which is at most 1/4.
            length = min(1.0, LONGEST / max(moved, 1e-300))
        fit = replace(fit, theta=fit.theta - length * step)
        size = float(np.linalg.norm(fit.theta))
        if LOSSES[fit.loss].quadratic or float(np.linalg.norm(step)) <= FITTED * max(1.0, size):
            return fit
    raise InputError(
        "The fit has no optimum that Newton steps reach (the classes may be separable without a "
        "penalty); use a larger penalty."
    )


def distance_by_a_pass(fit: LinearFit, over: Pass, name: str) -> tuple[float, float]:
    """The largest entry of the gradient, and the distance in shares of the sampling noise.

    The same as `optimum.distance_to_optimum`.
    """
    slope, inverse, sums = hessian_of(fit, over, name)
    noise = float(np.sum(inverse * sums["noisy"]))
    relative = float(np.sqrt(max(float(slope @ inverse @ slope), 0.0) / max(noise, 1e-300)))
    return float(np.max(np.abs(slope))), relative


def _priced(
    fits: tuple[LinearFit, ...], inverses: FloatArray, X: FloatArray, y: FloatArray, _: int
) -> Sums:
    losses = []
    for fit, inverse in zip(fits, inverses, strict=True):
        loss, z = LOSSES[fit.loss], X @ fit.theta
        h, force = loss.curvature(z, y), loss.force(z, y)
        g = _forms(X, inverse)
        out = z + g / np.maximum(1.0 - h * g, 1e-12) * force
        losses.append(np.sum((out - y) ** 2 if loss.quadratic else loss.value(out, y)))
    return {"losses": np.array(losses), "records": np.array(len(y))}


def left_out_losses(
    fits: tuple[LinearFit, ...], inverses: FloatArray, over: Pass, name: str
) -> FloatArray:
    """The mean loss about each record left out, one Newton step from each fit, by one pass."""
    found = over(name, partial(_priced, fits, inverses))
    return np.asarray(found["losses"] / float(found["records"]))


@dataclass(frozen=True, eq=False)
class MeanModel:
    """What all records share: theta, Hbar^{-1}, B of the pool, and ``fresh``, B of fresh others."""

    loss: str
    fraction: float
    theta: FloatArray
    inverse: FloatArray
    carried: FloatArray
    fresh: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class _Records:
    """Some records under a mean model: their stack, state, leverages and slack 1 - c g."""

    stack: Stack
    state: State
    leverage: FloatArray
    slack: FloatArray

    @property
    def v(self) -> FloatArray:
        """The variance of the prediction without the record."""
        return self.state.v[:, 0, 0]

    def source(self, model: MeanModel, question: FreshQuestion) -> FloatArray:
        """t' of the question."""
        t = self.state.source(model.fraction, fresh=question == "population")
        return self.state.amplified(t)[:, 0, 0]


def _records(model: MeanModel, X: FloatArray, y: FloatArray) -> _Records:
    every = np.arange(len(y))
    stack = Stack(every, every[:, None], y[:, None, None], np.ones((len(y), 1)), model.loss, 1)
    z = (X @ model.theta)[:, None]
    g, q = (_forms(X, form)[:, None, None] for form in (model.inverse, model.carried))
    c = t = square = np.zeros_like(g)
    m, force = z, np.zeros_like(z)
    for _ in range(LOCAL_STEPS):
        slack = np.maximum(1.0 - g * c, LEAST_SLACK)
        v = np.maximum(q - g**2 * t, 0.0) / slack**2
        state = renewed(stack, m, v, g / slack, z, force, model.fraction)
        before, now = (c, t, square), (state.c, state.t, state.square)
        change = max(_largest_change(*pair) for pair in zip(now, before, strict=True))
        (c, t, square), m, force = now, state.m, state.force
        if change <= LOCAL:
            break
    return _Records(stack, state, g[:, 0, 0], slack[:, 0, 0])


def _largest_change(new: FloatArray, old: FloatArray) -> float:
    size = np.abs(new)
    floor = 1e-12 * float(np.max(size, initial=0.0)) + 1e-300
    return float(np.max(np.abs(new - old) / np.maximum(size, floor), initial=0.0))


def _round(model: MeanModel, X: FloatArray, y: FloatArray, first: int) -> Sums:
    records = _records(model, X, y)
    state = records.state
    return {
        "curved": _gram(X, state.c[:, 0, 0]),
        "spread": _gram(X, records.source(model, "pool")),
        "fresh": _gram(X, records.source(model, "population")),
        "pull": X.T @ (model.fraction * state.force[:, 0]),
        "taken": np.array(np.sum(1.0 - records.slack)),
        "records": np.array(len(y)),
    }


@dataclass(frozen=True, eq=False)
class SharedCavity:
    """The mean model where the passes ended, and how well it has settled."""

    model: MeanModel
    rounds: int
    change: float
    records: int
    taken: float

    @property
    def converged(self) -> bool:
        """Whether the last pass changed nothing that matters."""
        return self.change <= SHARED


def solve_by_passes(fit: LinearFit, fraction: float, over: Pass, name: str) -> SharedCavity:
    """Renew what all records share until it stands still, one pass a round."""
    size = len(fit.theta)
    _, inverse, _ = hessian_of(fit, over, f"{name} start")
    model = MeanModel(fit.loss, fraction, fit.theta, inverse / fraction, np.zeros((size, size)))
    change, rounds = np.inf, 0
    while True:
        sums = over(f"{name} round {rounds:02d}", partial(_round, model))
        rounds += 1
        hessian = sums["curved"] + np.diag(fit.penalty)
        inverse = spd_inverse(hessian, "the model")
        step = inverse @ (sums["pull"] + fit.penalty * model.theta)
        carried = inverse @ sums["spread"] @ inverse
        scale = (
            float(np.sum(hessian * carried))
            if fraction < 1.0
            else float(model.theta @ hessian @ model.theta)
        )
        change = max(
            float(np.sqrt(max(step @ hessian @ step, 0.0) / max(scale, 1e-300))),
            _apart(hessian, inverse, model.inverse),
            _apart(hessian, carried, model.carried),
        )
        model = replace(
            model,
            theta=model.theta - step,
            inverse=inverse,
            carried=carried,
            fresh=inverse @ sums["fresh"] @ inverse,
        )
        if change <= SHARED or rounds >= MOST_PASSES:
            return SharedCavity(model, rounds, change, int(sums["records"]), float(sums["taken"]))


def _apart(hessian: FloatArray, new: FloatArray, old: FloatArray) -> float:
    """How far two forms are apart, relative to the new one, in the Hessian's metric."""
    size = float(np.linalg.norm(hessian @ new))
    return float(np.linalg.norm(hessian @ (new - old))) / size if size > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Heavy:
    """The records that can carry most of others' variance, and a bound of what the rest can.

    ``rows`` (k, d) their features, ``t`` (k,) the variance of their force, ``number`` (k,) who they
    are; ``rest`` the largest g_j t_j of all others.
    """

    rows: FloatArray
    t: FloatArray
    number: npt.NDArray[np.intp]
    rest: float

    @classmethod
    def nobody(cls, columns: int) -> Heavy:
        """Where nobody asks who carries the variance."""
        return cls(np.zeros((0, columns)), np.zeros(0), np.zeros(0, dtype=np.intp), np.inf)


def looked_at(records: int, columns: int) -> int:
    """How many rows of G may be looked at."""
    return int(max(MOST_ENTRIES / records, ROWS_PER_COEFFICIENT * columns))


def _loads(
    model: MeanModel, question: FreshQuestion, most: int, X: FloatArray, y: FloatArray, first: int
) -> Sums:
    records = _records(model, X, y)
    t = records.source(model, question)
    loads = records.leverage * t
    # One more than is kept bounds the rest.
    order = np.argsort(-loads, kind="stable")[: most + 1]
    return {
        "list_rows": X[order],
        "list_t": t[order],
        "list_load": loads[order],
        "list_number": order + first,
    }


def heavy_records(
    model: MeanModel, question: FreshQuestion, most: int, over: Pass, name: str
) -> Heavy:
    """The ``most`` records with the largest g_j t_j."""
    found = over(name, partial(_loads, model, question, most))
    order = np.argsort(-found["list_load"], kind="stable")
    kept = order[:most]
    rest = float(found["list_load"][order[most]]) if len(order) > most else 0.0
    return Heavy(found["list_rows"][kept], found["list_t"][kept], found["list_number"][kept], rest)


def _shares(
    model: MeanModel,
    question: FreshQuestion,
    heavy: Heavy,
    records: _Records,
    X: FloatArray,
    first: int,
) -> tuple[Shares, FloatArray]:
    """Who carries the variance of each record, and that variance before slack."""
    g, t = records.leverage, records.source(model, question)
    form = model.carried if question == "pool" else model.fresh
    assert form is not None
    total = np.maximum(_forms(X, form) - g**2 * t, 0.0)
    divisor = np.where(total > 0.0, total, np.finfo(np.float64).tiny)
    solved = X @ model.inverse
    shares, seen = Shares.none(len(X)), np.zeros(len(X))
    for start in range(0, len(heavy.t), 64):
        part = slice(start, start + 64)
        block = (heavy.rows[part] @ solved.T) ** 2 * heavy.t[part, None] / divisor
        row = heavy.number[part] - first
        here = np.flatnonzero((row >= 0) & (row < len(X)))
        block[here, row[here]] = 0.0
        shares, seen = shares.more(np.minimum(block, 1.0)), seen + block.sum(axis=0)
    return shares.bounded(g * heavy.rest / divisor, 1.0 - seen), total


def laws_of_block(
    cavity: SharedCavity,
    question: FreshQuestion,
    heavy: Heavy,
    X: FloatArray,
    y: FloatArray,
    first: int,
) -> ScoreMoments:
    """The laws of some records, as `laws.score_moments` has them."""
    model = cavity.model
    records = _records(model, X, y)
    state = records.state
    shares, total = _shares(model, question, heavy, records, X, first)
    variance = records.v if question == "pool" else total / records.slack**2
    variance = np.maximum(variance, max(1e-14 * float(np.median(variance)), 1e-300))
    points, weights = normal_points(1, 9)
    without = state.m[:, None] + points * np.sqrt(variance)[:, None, None]
    inside = records.stack.joined(without, state.kappa, state.force, state.z).z[..., 0]
    mean_in = inside @ weights
    sd_in = np.sqrt((inside - mean_in[:, None]) ** 2 @ weights)
    return ScoreMoments(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=state.m[:, 0],
        sd_out=np.sqrt(variance),
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        shares=shares,
    )


@dataclass(frozen=True, eq=False)
class Refits:
    """Fits on parts of the records, and what they say of some records.

    Attributes
    ----------
    rows, y, number
        The features (s, d), labels and numbers of a sample of the records.
    scores, inside
        (K, s) the predictions of K fits, and who was in each.
    """

    rows: FloatArray
    y: FloatArray
    number: npt.NDArray[np.intp]
    scores: FloatArray
    inside: npt.NDArray[np.bool_]


def drawn_parts(number: npt.NDArray[np.intp], refits: int, fraction: float) -> npt.NDArray[Any]:
    """(K, n) whether each record is in each part: by its number alone, wherever it is read.

    The finaliser of SplitMix64 (Steele and others, 2014) makes 64 even bits of refit and number.
    """
    with np.errstate(over="ignore"):
        bits = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = bits + np.arange(1, refits + 1, dtype=np.uint64)[:, None] * np.uint64(
            0xD1B54A32D192ED03
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((bits ^ (bits >> np.uint64(31))) < np.uint64(int(fraction * 2.0**64)))


def _pulls(
    loss: str,
    thetas: FloatArray,
    fraction: float,
    each: int,
    X: FloatArray,
    y: FloatArray,
    first: int,
) -> Sums:
    """The forces on K fits (K, d), and a sample of the records, one in ``each``."""
    number = first + np.arange(len(y))
    inside = drawn_parts(number, len(thetas), fraction)
    force = LOSSES[loss].force(thetas @ X.T, y[None])
    kept = number % each == 0
    return {
        "slopes": (force * inside) @ X,
        "list_rows": X[kept],
        "list_y": y[kept],
        "list_number": number[kept],
    }


def refits_by_passes(
    fit: LinearFit, fraction: float, refits: int, over: Pass, name: str, *, each: int
) -> Refits:
    """Fits on random parts of the records, all by the same passes; one record in ``each`` is asked.

    The steps are those of the Hessian of all records times the fraction, which differs from each
    part's own by a share of about sqrt(d / n): each pass takes that share of the distance.
    """
    _, _, sums = hessian_of(fit, over, f"{name} start")
    hessian = fraction * sums["curved"] + np.diag(fit.penalty)
    inverse = spd_inverse(hessian, "the model")
    spread = fraction * (1.0 - fraction) * np.sum(inverse * sums["noisy"])
    thetas = np.repeat(fit.theta[None], refits, axis=0)
    for number in range(MOST_NEWTON):
        found = over(f"{name} pass {number:02d}", partial(_pulls, fit.loss, thetas, fraction, each))
        steps = (found["slopes"] + fit.penalty * thetas) @ inverse
        thetas = thetas - steps
        apart = float(np.einsum("kd,de,ke->k", steps, hessian, steps).max())
        if apart <= REFITTED**2 * spread:
            break
    order = np.argsort(found["list_number"])
    rows, which = found["list_rows"][order], found["list_number"][order].astype(np.intp)
    inside = drawn_parts(which, refits, fraction)
    return Refits(rows, found["list_y"][order], which, thetas @ rows.T, inside)
