"""The cavity over records that are read some at a time: only sums over them are ever held.

In memory (`cavity`) every record's kappa, m and v stay between rounds.  Here they are worked out
anew in each pass, as functions of what all records share: the mean model's theta, Hbar^{-1} and
B = Hbar^{-1} (sum_j t'_j x_j x_j') Hbar^{-1}.  With g = x' Hbar^{-1} x and q = x' B x a record's
own equations

    kappa = g / (1 - c g),   v = (q - g^2 t') / (1 - c g)^2,   m - f kappa E[F(m + eps)] = x'theta

hold for it alone and are solved to rounding; the sums of c x x', t' x x' and f E[F] x over all
records then renew what is shared.  The fixed point is that of the rounds in memory.

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
from leakscope.fitted.cavity import (
    HEAVY,
    NEIGHBOUR_BUDGET,
    ROWS_PER_COLUMN,
    PredictionLaws,
    Shares,
    force_variance,
    largest_change,
    pushed,
    without,
)
from leakscope.fitted.losses import LOSSES, NODES, Moments
from leakscope.fitted.optimum import quadratic_forms, spd_inverse, weighted_gram

# What comes of a block: arrays by name.  Of two blocks they are added, those that begin with
# "largest" are compared, and those that begin with "list" are joined.
Sums = Mapping[str, npt.NDArray[Any]]
# One block: rows of the design (with the column of ones), labels, and the first row's number.
Work = Callable[[FloatArray, FloatArray, int], Sums]
# A pass over all records, under a name of its own.
Pass = Callable[[str, Work], Sums]
FreshQuestion = Literal["pool", "population"]

# A record's own equations are solved to this relative change, in at most so many steps; those that
# all share to the second, in at most so many passes.
LOCAL, LOCAL_STEPS = 1e-12, 500
SHARED, MOST_PASSES = 1e-9, 80
# A fit has settled where a Newton step is this share of the coefficients' own size.
FITTED, MOST_NEWTON = 1e-10, 60
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


def _newton(fit: LinearFit, X: FloatArray, y: FloatArray, first: int) -> Sums:
    loss, z = LOSSES[fit.loss], X @ fit.theta
    force = loss.force(z, y)
    return {
        "curved": weighted_gram(X, loss.curvature(z, y)),
        "noisy": weighted_gram(X, force**2),
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
        g = quadratic_forms(X, inverse)
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
    """Some records' own numbers under a mean model; the names are those of `cavity.Cavity`."""

    m: FloatArray
    v: FloatArray
    kappa: FloatArray
    leverage: FloatArray
    c: FloatArray
    slack: FloatArray
    found: Moments


def _own(model: MeanModel, X: FloatArray, y: FloatArray, nodes: int = NODES) -> _Records:
    loss, f, one = LOSSES[model.loss], model.fraction, np.ones(len(y))
    z = X @ model.theta
    g, q = quadratic_forms(X, model.inverse), quadratic_forms(X, model.carried)
    kappa, v = g, np.maximum(q, 0.0)
    m, found = without(loss, y, one, z, z, kappa, v, f, nodes)
    for _ in range(LOCAL_STEPS):
        c = f * found.slope / (1.0 - f * kappa * found.slope)
        slack = np.maximum(1.0 - c * g, 1e-12)
        own = force_variance(found, v, f) / slack**2
        new_kappa, new_v = g / slack, np.maximum(q - g**2 * own, 0.0) / slack**2
        change = max(largest_change(new_kappa, kappa), largest_change(new_v, v))
        kappa, v = new_kappa, new_v
        m, found = without(loss, y, one, z, m, kappa, v, f, nodes)
        if change <= LOCAL:
            break
    c = f * found.slope / (1.0 - f * kappa * found.slope)
    return _Records(m, v, kappa, g, c, np.maximum(1.0 - c * g, 1e-12), found)


def _round(model: MeanModel, nodes: int, X: FloatArray, y: FloatArray, first: int) -> Sums:
    own, f = _own(model, X, y, nodes), model.fraction
    t = force_variance(own.found, own.v, f)
    return {
        "curved": weighted_gram(X, own.c),
        "spread": weighted_gram(X, t / own.slack**2),
        "fresh": weighted_gram(X, f * own.found.square / own.slack**2),
        "pull": X.T @ (f * own.found.force),
        "taken": np.array(np.sum(1.0 - own.slack)),
        "records": np.array(len(y)),
        "largest_variance": np.array(np.max(own.v, initial=0.0)),
    }


@dataclass(frozen=True, eq=False)
class SharedCavity:
    """The mean model where the passes ended, and how well it has settled."""

    model: MeanModel
    rounds: int
    change: float
    records: int
    largest_variance: float
    taken: float

    @property
    def converged(self) -> bool:
        """Whether the last pass changed nothing that matters."""
        return self.change <= SHARED


def solve_by_passes(
    fit: LinearFit, fraction: float, over: Pass, name: str, *, nodes: int = NODES
) -> SharedCavity:
    """Renew what all records share until it stands still, one pass a round."""
    size = len(fit.theta)
    _, inverse, _ = hessian_of(fit, over, f"{name} start")
    model = MeanModel(fit.loss, fraction, fit.theta, inverse / fraction, np.zeros((size, size)))
    change, rounds = np.inf, 0
    while True:
        sums = over(f"{name} round {rounds:02d}", partial(_round, model, nodes))
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
            return SharedCavity(
                model,
                rounds,
                change,
                int(sums["records"]),
                float(sums["largest_variance"]),
                float(sums["taken"]),
            )


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


def looked_at(records: int, columns: int) -> int:
    """How many rows of G may be looked at."""
    return int(max(NEIGHBOUR_BUDGET / records, ROWS_PER_COLUMN * columns))


def _source(model: MeanModel, question: FreshQuestion, own: _Records) -> FloatArray:
    """t_j of the question, over slack squared."""
    if question == "population":
        return np.asarray(model.fraction * own.found.square / own.slack**2)
    return np.asarray(force_variance(own.found, own.v, model.fraction) / own.slack**2)


def _loads(
    model: MeanModel, question: FreshQuestion, most: int, X: FloatArray, y: FloatArray, first: int
) -> Sums:
    own = _own(model, X, y)
    t = _source(model, question, own)
    loads = own.leverage * t
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


def _bounds(
    model: MeanModel,
    question: FreshQuestion,
    heavy: Heavy,
    own: _Records,
    X: FloatArray,
    first: int,
) -> tuple[FloatArray, FloatArray]:
    """An upper bound of each record's largest share, and its variance before slack."""
    g, t = own.leverage, _source(model, question, own)
    form = model.carried if question == "pool" else model.fresh
    assert form is not None
    total = np.maximum(quadratic_forms(X, form) - g**2 * t, 0.0)
    largest = g * heavy.rest
    solved = X @ model.inverse
    here = {int(number) - first: place for place, number in enumerate(heavy.number)}
    for start in range(0, len(heavy.t), 64):
        part = slice(start, start + 64)
        block = (solved @ heavy.rows[part].T) ** 2 * heavy.t[part]
        for row, place in here.items():
            if 0 <= row < len(X) and start <= place < start + 64:
                block[row, place - start] = 0.0
        largest = np.maximum(largest, block.max(axis=1, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0.0, largest / total, np.inf)), total


def _doubtful(
    model: MeanModel,
    question: FreshQuestion,
    heavy: Heavy,
    most: int,
    X: FloatArray,
    y: FloatArray,
    first: int,
) -> Sums:
    own = _own(model, X, y)
    upper, total = _bounds(model, question, heavy, own, X, first)
    rows = np.flatnonzero(upper > HEAVY)[:most]
    return {"list_rows": X[rows], "list_total": total[rows], "list_number": rows + first}


@dataclass(frozen=True, eq=False)
class Looked:
    """The shares of the records that bounds do not settle: their numbers, sorted, and shares."""

    number: npt.NDArray[np.intp]
    shares: Shares

    @classmethod
    def nobody(cls) -> Looked:
        """No record needs it."""
        return cls(np.zeros(0, dtype=np.intp), Shares.unknown(0))


def _moves(
    model: MeanModel,
    question: FreshQuestion,
    rows: FloatArray,
    total: FloatArray,
    number: npt.NDArray[np.intp],
    X: FloatArray,
    y: FloatArray,
    first: int,
) -> Sums:
    own = _own(model, X, y)
    pull = np.copysign(np.sqrt(_source(model, question, own)), own.found.force)
    found = {name: np.zeros(len(rows)) for name in ("largest_share", "squares", "cubes", "heavy")}
    solved = model.inverse @ rows.T
    for start in range(0, len(X), 4096):
        part = slice(start, start + 4096)
        moves = (X[part] @ solved) * pull[part, None]
        own_row = number - first - start
        inside = np.flatnonzero((own_row >= 0) & (own_row < len(moves)))
        moves[own_row[inside], inside] = 0.0
        share = moves**2 / total
        found["largest_share"] = np.maximum(found["largest_share"], share.max(axis=0))
        found["squares"] += np.einsum("ji,ji->i", share, share)
        found["cubes"] += np.einsum("ji,ji->i", share, moves / np.sqrt(total))
        found["heavy"] += np.where(share > HEAVY, share, 0.0).sum(axis=0)
    return found


def looked_into(
    model: MeanModel, question: FreshQuestion, heavy: Heavy, most: int, over: Pass, name: str
) -> Looked:
    """The first ``most`` records that bounds do not settle, each beside all others."""
    doubtful = over(f"{name} bounds", partial(_doubtful, model, question, heavy, most))
    order = np.argsort(doubtful["list_number"])[:most]
    if not len(order):
        return Looked.nobody()
    rows, number = doubtful["list_rows"][order], doubtful["list_number"][order].astype(np.intp)
    total = np.maximum(doubtful["list_total"][order], np.finfo(np.float64).tiny)
    found = over(f"{name} shares", partial(_moves, model, question, rows, total, number))
    shares = Shares(
        found["largest_share"], found["squares"], np.abs(found["cubes"]), found["heavy"]
    )
    return Looked(number, shares)


def laws_of_block(
    cavity: SharedCavity,
    question: FreshQuestion,
    heavy: Heavy,
    looked: Looked,
    smoothing_gap: float,
    X: FloatArray,
    y: FloatArray,
    first: int,
) -> PredictionLaws:
    """The laws of some records, as `cavity.scalar_laws` has them."""
    model, loss, one = cavity.model, LOSSES[cavity.model.loss], np.ones(len(y))
    own = _own(model, X, y)
    upper, total = _bounds(model, question, heavy, own, X, first)
    variance = own.v if question == "pool" else total / own.slack**2
    variance = np.maximum(variance, max(1e-14 * float(np.median(variance)), 1e-300))
    mean_in, sd_in = pushed(loss, y, one, own.m, variance, own.kappa)
    shares = Shares.unknown(len(y))
    shares.bound(upper)
    place = looked.number - first
    inside = (place >= 0) & (place < len(y))
    for name in ("largest", "squares", "cubes", "heavy"):
        getattr(shares, name)[place[inside]] = getattr(looked.shares, name)[inside]
    return PredictionLaws(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=own.m,
        sd_out=np.sqrt(variance),
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=smoothing_gap,
        shares=shares,
        by_size=one,
    )


def _spreads(
    smooth: MeanModel, plain: MeanModel, each: int, X: FloatArray, y: FloatArray, first: int
) -> Sums:
    part = slice(None, None, each)
    wide, narrow = _own(smooth, X[part], y[part]).v, _own(plain, X[part], y[part], 1).v
    return {"list_ratio": np.sqrt(wide / np.maximum(narrow, 1e-300))}


def smoothing_gap_by_passes(
    fit: LinearFit, cavity: SharedCavity, over: Pass, name: str, *, narrow: float, sample: int
) -> float:
    """Median of smoothed sd over plain sd, less one, over about ``sample`` records."""
    if LOSSES[fit.loss].quadratic or cavity.largest_variance < narrow**2:
        return 0.0
    start = replace(fit, theta=cavity.model.theta)
    plain = solve_by_passes(start, cavity.model.fraction, over, f"{name} plain", nodes=1)
    each = max(1, cavity.records // sample)
    found = over(f"{name} spreads", partial(_spreads, cavity.model, plain.model, each))
    return float(np.median(found["list_ratio"]) - 1.0)
