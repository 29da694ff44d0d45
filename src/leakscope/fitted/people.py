"""Both laws of a person's score, where all of their rows leave together.

The attacker sees the answers about all of a person's rows, whose laws come from the cavity of
persons (`people_cavity`).  The person's score is the weighted mean of the rows' scores that tells
most (`best_weights`); `joint_advantage` is what any test of all the answers gets, and whoever would
lose much by the mean is not trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.cavity import (
    Neighbours,
    PredictionLaws,
    Question,
    Shares,
    smaller_share,
    too_small,
)
from leakscope.fitted.leave_one_out import leave_one_out
from leakscope.fitted.losses import Codes, own_log_odds, softmax, square_root
from leakscope.fitted.people_cavity import (
    Block,
    PeopleCavity,
    State,
    normal_points,
    of_one_size,
    raised,
    solve_people,
    symmetric,
)
from leakscope.fitted.problem import FittedModel
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import advantage, tpr_at_fpr

# Rows of G are looked at one by one up to so many products, and so many in any case.
SHARE_WORK = 3e10
LEAST_LOOKED = 64

# A person whose leaving raises a variance by more than this leaves rounding behind.
MOST_RAISED = 1e6

# Directions whose variance is below this share of the largest are rounding: copies of a row.
RANK = 1e-9
# Between the two covariances, for the direction of a score.
MIXTURES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class RowScores:
    """Means (U, r) and covariances (U, r, r) of the scores of the rows of persons of one size."""

    units: Codes
    rows: Codes
    mean_in: FloatArray
    cov_in: FloatArray
    mean_out: FloatArray
    cov_out: FloatArray

    def noised(self, sd: float) -> RowScores:
        """The same with noise on every answer."""
        more = sd**2 * np.eye(self.rows.shape[1])
        return replace(self, cov_in=self.cov_in + more, cov_out=self.cov_out + more)

    def along(self, weights: FloatArray) -> list[FloatArray]:
        """Mean and sd in, mean and sd out, of the scores summed with weights (U, r)."""
        found = []
        for mean, cov in ((self.mean_in, self.cov_in), (self.mean_out, self.cov_out)):
            found.append(np.einsum("ur,ur->u", weights, mean))
            variance = np.einsum("ur,urs,us->u", weights, cov, weights)
            found.append(np.sqrt(np.maximum(variance, 0.0)))
        return found


def best_weights(scores: RowScores) -> FloatArray:
    """Weights (U, r) of the rows' scores whose sum tells a person's presence best.

    They add up to one in size.  Of two normal laws the best sums are along
    (s V_in + (1 - s) V_out)^{-1} (m_in - m_out) for some s (Anderson and Bahadur), and where the
    means hardly differ, along what varies less with the person than without.  Of these the best is
    taken; other sums were at most 0.01 better.
    """
    count, size = scores.rows.shape
    if size == 1:
        return np.ones((count, 1))
    delta = scores.mean_in - scores.mean_out
    trace = np.einsum("uii->u", scores.cov_out)
    found = [np.full((count, size), 1.0 / size)]
    if np.all(trace == 0.0):
        # nothing varies: only the distance counts
        return _unit_size(delta, found[0])
    for share in MIXTURES:
        mixed = share * scores.cov_in + (1.0 - share) * scores.cov_out
        found.append(_unit_size(_solved(mixed, delta), found[0]))
    found.append(_unit_size(_least_varied(scores), found[0]))
    told = np.stack([_told(scores, weights) for weights in found])
    return np.asarray(np.stack(found)[np.argmax(told, axis=0), np.arange(count)])


def _told(scores: RowScores, weights: FloatArray) -> FloatArray:
    """The advantage of the summed score; nothing where it does not vary."""
    mean_in, sd_in, mean_out, sd_out = scores.along(weights)
    scale = np.sqrt(np.maximum(np.einsum("uii->u", scores.cov_out), 1e-300))
    good = (sd_in > 1e-6 * scale) & (sd_out > 1e-6 * scale)
    sds = [np.where(good, sd, 1.0) for sd in (sd_in, sd_out)]
    pair = LawPair(Normal(mean_in, sds[0]), Normal(mean_out, sds[1]))
    return np.where(good, np.asarray(advantage(pair)), -1.0)


def _unit_size(weights: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Sizes that add up to one, more of them positive than negative."""
    total = np.abs(weights).sum(axis=1, keepdims=True)
    good = np.isfinite(total) & (total > 0.0)
    found = np.where(good, weights / np.where(good, total, 1.0), otherwise)
    return np.asarray(found * np.where(found.sum(axis=1, keepdims=True) < 0.0, -1.0, 1.0))


def _solved(covariance: FloatArray, delta: FloatArray) -> FloatArray:
    """covariance^{-1} delta in the directions that vary by more than rounding."""
    values, vectors = np.linalg.eigh(symmetric(covariance))
    inside = values > RANK * np.maximum(values[:, -1:], 1e-300)
    turned = np.einsum("uij,ui->uj", vectors, delta)
    kept = np.where(inside, turned / np.where(inside, values, 1.0), 0.0)
    return np.asarray(np.einsum("uij,uj->ui", vectors, kept))


def _least_varied(scores: RowScores) -> FloatArray:
    """The direction in which the variance with the person is least beside that without."""
    values, vectors = np.linalg.eigh(symmetric(scores.cov_out))
    inside = values > 1e-6 * np.maximum(values[:, -1:], 1e-300)
    scale = np.where(inside, 1.0 / np.sqrt(np.where(inside, values, 1.0)), 0.0)
    turned = vectors * scale[:, None, :]
    ratio = np.swapaxes(turned, 1, 2) @ scores.cov_in @ turned
    ratio = ratio + np.where(inside, 0.0, 1e3)[:, None, :] * np.eye(ratio.shape[-1])
    return np.asarray((turned @ np.linalg.eigh(symmetric(ratio))[1][:, :, :1])[:, :, 0])


def joint_advantage(scores: RowScores) -> FloatArray:
    """What the best test of all answers about a person gets, (U,)."""
    if not np.any(scores.cov_out):
        return np.ones(len(scores.units))
    if scores.rows.shape[1] == 1:
        return _told(scores, np.ones((len(scores.units), 1)))
    return np.asarray(advantage(_all_answers(scores)))


def _all_answers(scores: RowScores, some: Codes | slice = slice(None)) -> LawPair:
    """Both laws of all answers about some of the persons."""
    jitter = RANK * np.einsum("uii->u", scores.cov_out) / scores.rows.shape[1]
    more = np.maximum(jitter, 1e-300)[:, None, None] * np.eye(scores.rows.shape[1])
    return LawPair(
        MultivariateNormal(scores.mean_in[some], (scores.cov_in + more)[some]),
        MultivariateNormal(scores.mean_out[some], (scores.cov_out + more)[some]),
    )


@dataclass(frozen=True, eq=False)
class People:
    """What the laws of persons are made of.

    Attributes
    ----------
    codes
        (N,) each record's person.
    weights
        (N,) what its score counts for in its person's.
    scores
        The laws of the rows' scores, of persons of one size each.
    joint
        (P,) the advantage of the best test of all answers about a person.
    """

    codes: Codes
    weights: FloatArray
    scores: tuple[RowScores, ...]
    joint: FloatArray

    @classmethod
    def of(cls, codes: Codes, scores: Sequence[RowScores]) -> People:
        """With the weights that tell most."""
        joint = np.empty(int(codes.max()) + 1)
        for each in scores:
            joint[each.units] = joint_advantage(each)
        return cls(codes, _weighed(codes, scores), tuple(scores), joint)

    @property
    def count(self) -> int:
        """How many persons there are."""
        return len(self.joint)

    def joint_rates(self, asked: npt.NDArray[np.bool_], fpr: float) -> FloatArray:
        """(P,) the TPR of the best test of all answers; only of those who are asked for."""
        found = np.full(self.count, np.nan)
        for each in self.scores:
            some = np.flatnonzero(asked[each.units])
            if some.size:
                found[each.units[some]] = tpr_at_fpr(_all_answers(each, some), fpr)
        return found

    def noised(self, sd: float) -> People:
        """The same with noise on every answer, weighed anew."""
        return People.of(self.codes, [each.noised(sd) for each in self.scores])

    def weighed_for(self, sd: float) -> People:
        """The same with the weights that tell most where noise of this sd is on every answer."""
        noised = [each.noised(sd) for each in self.scores]
        return replace(self, weights=_weighed(self.codes, noised))

    @property
    def lengths(self) -> FloatArray:
        """(P,) by which noise on every answer is multiplied in a person's score."""
        return np.sqrt(summed_by(self.codes, self.weights**2))

    def moments(self) -> list[FloatArray]:
        """Mean and sd in, mean and sd out, of every person's score."""
        found = np.empty((4, self.count))
        for each in self.scores:
            found[:, each.units] = each.along(self.weights[each.rows])
        return list(found)

    def summed(self, scores: FloatArray) -> FloatArray:
        """Persons' scores from those of records, along the last axis."""
        return summed_by(self.codes, self.weights * scores)

    def of_rows(self) -> list[FloatArray]:
        """Mean and sd in, mean and sd out, of every record's own score."""
        found = np.empty((4, len(self.codes)))
        for each in self.scores:
            for place, mean, cov in (
                (0, each.mean_in, each.cov_in),
                (2, each.mean_out, each.cov_out),
            ):
                found[place, each.rows] = mean
                found[place + 1, each.rows] = np.sqrt(np.einsum("uii->ui", cov))
        return list(found)


def _weighed(codes: Codes, scores: Sequence[RowScores]) -> FloatArray:
    """(N,) the weights that tell most."""
    weights = np.empty(len(codes))
    for each in scores:
        weights[each.rows] = best_weights(each)
    return weights


def summed_by(codes: Codes, values: FloatArray) -> FloatArray:
    """Sums over the records of each person, along the last axis."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    return np.asarray(np.add.reduceat(values[..., order], starts, axis=-1))


def people_laws(
    model: FittedModel, codes: Codes, question: Question, fraction: float, offset: FloatArray | None
) -> tuple[PredictionLaws, People]:
    """The laws of the persons' scores under the pool or the population question.

    ``offset`` (N,) less the prediction is observed where it is given, the score otherwise.
    """
    cavity = solve_people(model, codes, fraction)
    sources = cavity.sources(question, fraction)
    spreads = [state.v for state in cavity.states]
    if question == "population":
        spreads = cavity.spread(sources)
    least = max(
        1e-14 * float(np.median([np.median(np.einsum("icc->ic", v)) for v in spreads])), 1e-300
    )
    scores = []
    for block, state, v in zip(cavity.design.blocks, cavity.states, spreads, strict=True):
        scores.append(_row_scores(model, block, state, v + least * np.eye(block.size), offset))
    people = People.of(codes, scores)
    mean_in, sd_in, mean_out, sd_out = people.moments()
    directions = [
        _directions(model, block, state, people, offset)
        for block, state in zip(cavity.design.blocks, cavity.states, strict=True)
    ]
    laws = PredictionLaws(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=mean_out,
        sd_out=sd_out,
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        smoothing_gap=_gap(model, cavity, codes, fraction),
        shares=_shares(cavity, sources, directions, people.count),
        by_size=np.where(
            _undetermined(cavity, people.count), np.inf, _by_size(model, cavity, codes, fraction)
        ),
    )
    return laws, people


def _row_scores(
    model: FittedModel, block: Block, state: State, v: FloatArray, offset: FloatArray | None
) -> RowScores:
    """The rows' scores where the predictions without the person are N(m, v)."""
    if block.plain:
        return _pushed_straight(model, block, state, v, offset)
    widest = float(np.sqrt(np.max(np.einsum("icc->ic", v))))
    points, shares = normal_points(block.size, widest, least=5)
    root, size = square_root(v), block.rows.shape[1]
    means = np.empty((2, len(v), size))
    covariances = np.empty((2, len(v), size, size))
    for part in block.parts(len(points)):
        own = block.some(part)
        without = state.m[part, None] + points @ np.swapaxes(root[part], 1, 2)
        joined = own.prox(without, state.kappa[part], state.force[part])
        for side, z in enumerate((joined, without)):
            score = _scored(model, own, z, offset)
            mean = np.einsum("s,usr->ur", shares, score)
            away = score - mean[:, None]
            means[side, part] = mean
            covariances[side, part] = np.swapaxes(away * shares[:, None], 1, 2) @ away
    found = [(mean, symmetric(cov)) for mean, cov in zip(means, covariances, strict=True)]
    return RowScores(block.units, block.rows, *found[0], *found[1])


def _pushed_straight(
    model: FittedModel, block: Block, state: State, v: FloatArray, offset: FloatArray | None
) -> RowScores:
    """The same where joining moves the predictions as at their mean, which is exact for squares."""
    inside = block.prox(state.m[:, None], state.kappa, state.force)
    push = np.linalg.inv(np.eye(block.size) + state.kappa @ block.curvature(inside)[:, 0])
    found = []
    for z, cov in ((inside, push @ v @ np.swapaxes(push, 1, 2)), (state.m[:, None], v)):
        slope = _slopes(model, block, z[:, 0], offset)
        found += [_scored(model, block, z, offset)[:, 0], _between_rows(block, slope, cov)]
    return RowScores(block.units, block.rows, *found)


def _between_rows(block: Block, slope: FloatArray, cov: FloatArray) -> FloatArray:
    """(U, r, r) covariances of scores with these slopes (U, r, C) in each row's predictions."""
    count, size = block.rows.shape
    split = cov.reshape(count, size, -1, size, slope.shape[2])
    return symmetric(np.einsum("uia,uiajb,ujb->uij", slope, split, slope, optimize=True))


def _scored(
    model: FittedModel, block: Block, z: FloatArray, offset: FloatArray | None
) -> FloatArray:
    """The score of each row, (U, S, r), from the predictions (U, S, q)."""
    rows, outputs = block.rows, block.design.outputs
    split = z.reshape(*z.shape[:2], rows.shape[1], outputs)
    if block.design.loss != "softmax":
        own = model.own[rows][:, None, :, None]
        found = np.take_along_axis(split, np.broadcast_to(own, (*split.shape[:3], 1)), axis=3)
        if offset is not None:
            return np.asarray(offset[rows][:, None] - found[..., 0])
        return np.asarray(model.sign[rows][:, None] * found[..., 0])
    # own_log_odds takes the records as the axis before the classes
    flat = np.swapaxes(split, 0, 1).reshape(z.shape[1], -1, outputs)
    odds = own_log_odds(flat, model.problems[0].y[rows].reshape(-1))
    return np.asarray(np.swapaxes(odds.reshape(z.shape[1], *rows.shape), 0, 1))


def _slopes(
    model: FittedModel, block: Block, z: FloatArray, offset: FloatArray | None
) -> FloatArray:
    """The gradient of each row's score with respect to its predictions, (U, r, C)."""
    count, size = block.rows.shape
    if block.design.loss == "softmax":
        own = block.target[:, 0]
        others = np.where(own > 0.0, -np.inf, z.reshape(count, size, -1))
        return np.where(own > 0.0, 1.0, -softmax(others))
    found = np.zeros((count, size, block.design.outputs))
    sign = model.sign[block.rows] if offset is None else -np.ones((count, size))
    found[np.arange(count)[:, None], np.arange(size), model.own[block.rows]] = sign
    return found


def _directions(
    model: FittedModel, block: Block, state: State, people: People, offset: FloatArray | None
) -> FloatArray:
    """The gradient of each person's score with respect to the predictions, (U, q)."""
    weights = people.weights[block.rows][:, :, None]
    return np.asarray(
        (weights * _slopes(model, block, state.m, offset)).reshape(len(block.units), -1)
    )


def _gap(model: FittedModel, cavity: PeopleCavity, codes: Codes, fraction: float) -> float:
    """Median over the rows of smoothed over plain sd, less one."""
    widest = max(float(np.max(np.einsum("icc->ic", state.v))) for state in cavity.states)
    if cavity.design.quadratic or widest < 0.01 or fraction == 1.0:
        return 0.0
    plain = solve_people(model, codes, fraction, plain=True, start=cavity, tolerance=1e-2)
    ratios = [
        np.sqrt(
            np.einsum("icc->ic", one.v) / np.maximum(np.einsum("icc->ic", other.v), 1e-300)
        ).ravel()
        for one, other in zip(cavity.states, plain.states, strict=True)
    ]
    return float(np.median(np.concatenate(ratios)) - 1.0)


def _undetermined(cavity: PeopleCavity, count: int) -> npt.NDArray[np.bool_]:
    """(P,) whether the fit without the person is not determined: 1 - g c has no digits left."""
    found = np.zeros(count, dtype=np.bool_)
    for block, state in zip(cavity.design.blocks, cavity.states, strict=True):
        reply = np.abs(state.kappa @ state.curvature).max(axis=(1, 2))
        found[block.units] = reply > MOST_RAISED
    return found


def _by_size(model: FittedModel, cavity: PeopleCavity, codes: Codes, fraction: float) -> FloatArray:
    """How many times larger the sd is in small training sets, as `cavity.PredictionLaws` has it.

    Training sets of unequal persons vary in size as those of fewer equal ones would.
    """
    sizes = np.bincount(codes).astype(np.float64)
    alike = int(sizes.sum() ** 2 / (sizes**2).sum())
    found = np.ones(len(sizes))
    if too_small(fraction, alike):
        return np.full(len(sizes), np.inf)
    less = smaller_share(fraction, alike)
    taken = sum(
        float(np.einsum("uij,uji->", block.within(cavity.inverse), state.curvature))
        for block, state in zip(cavity.design.blocks, cavity.states, strict=True)
    )
    size = len(codes)
    free = int(np.count_nonzero(cavity.design.penalty == 0.0)) * cavity.design.outputs
    if fraction - less <= 0.2 * fraction and taken <= 0.5 * fraction * size:
        return found
    if less <= 0.0 or free >= less * size:
        return np.full(len(sizes), np.inf)
    other = solve_people(model, codes, less, start=cavity, tolerance=1e-2)
    spreads = [
        each.spread(each.sources("population", share))
        if fraction == 1.0
        else [state.v for state in each.states]
        for each, share in ((cavity, fraction), (other, less))
    ]
    for block, before, after in zip(cavity.design.blocks, *spreads, strict=True):
        ratio = np.einsum("icc->i", after) / np.maximum(np.einsum("icc->i", before), 1e-300)
        found[block.units] = np.sqrt(np.maximum(ratio, 1e-300))
    return found


def _shares(
    cavity: PeopleCavity,
    sources: Sequence[FloatArray],
    directions: Sequence[FloatArray],
    count: int,
) -> Shares:
    """How unequally the other persons share in each person's variance."""
    reach = np.empty((count, len(cavity.inverse)))
    loads, total, own = np.empty(count), np.empty(count), np.empty(count)
    pulls = []
    for block, state, source, direction in zip(
        cavity.design.blocks, cavity.states, sources, directions, strict=True
    ):
        t = raised(state, source)
        pulls.append(t)
        reply = _reply(state, direction)
        reach[block.units] = _lifted(block, reply)
        g = block.within(cavity.inverse)
        loads[block.units] = np.einsum("uij,uji->u", t, g)
        moved = (reply[:, None] @ g)[:, 0]
        own[block.units] = np.einsum("ui,uij,uj->u", moved, t, moved)
    through = reach @ cavity.inverse
    carried = cavity.design.assembled(pulls)
    total = np.maximum(
        np.einsum("up,pq,uq->u", through, carried, through, optimize=True) - own, 0.0
    )
    size = np.einsum("up,up->u", through, reach)
    found, doubtful = Shares.unknown(count), np.arange(count)
    work = 2.0 * cavity.design.target.size * len(cavity.inverse) / max(cavity.design.outputs, 1)
    allowed = int(max(SHARE_WORK / work, LEAST_LOOKED))
    if allowed < count:
        # A part is at most the person's own reach times the other's load: those with the largest
        # loads are looked at one by one, and the first of the others bounds all of them.
        order = np.argsort(-loads)
        most = _largest_parts(cavity, pulls, through, order[:allowed])
        most = np.maximum(most, size * loads[order[allowed]])
        with np.errstate(divide="ignore", invalid="ignore"):
            doubtful = found.bound(np.where(total > 0.0, most / total, np.inf))[:allowed]
    for start in range(0, len(doubtful), 64):
        some = doubtful[start : start + 64]
        found.note(some, _moves(cavity, pulls, through[some], some, count))
    return found


def _largest_parts(
    cavity: PeopleCavity, pulls: Sequence[FloatArray], through: FloatArray, heavy: Codes
) -> FloatArray:
    """(P,) the largest part that one of the heavy persons has in each person's variance."""
    largest = np.zeros(len(through))
    split = through.reshape(len(through), cavity.design.outputs, -1)
    for block, t in zip(cavity.design.blocks, pulls, strict=True):
        for place in np.flatnonzero(np.isin(block.units, heavy)).tolist():
            met = np.tensordot(split, block.X[place], axes=(2, 1))  # persons, outputs, rows
            met = np.swapaxes(met, 1, 2).reshape(len(through), -1)
            part = ((met @ t[place]) * met).sum(axis=1)
            part[block.units[place]] = 0.0
            largest = np.maximum(largest, part)
    return largest


def neighbours_of_people(
    model: FittedModel, codes: Codes, rows: Sequence[int], *, fraction: float, most: int = 3
) -> Neighbours:
    """What makes the laws of these persons, as `cavity.neighbours_of` has it for records.

    A person's weight is the trace of kappa, their surprise the length of their force.
    """
    cavity = solve_people(model, codes, fraction)
    question: Question = "population" if fraction == 1.0 else "pool"
    sources = cavity.sources(question, fraction)
    spreads = cavity.spread(sources) if fraction == 1.0 else [state.v for state in cavity.states]
    people = People.of(
        codes,
        [
            _row_scores(model, block, state, v, None)
            for block, state, v in zip(cavity.design.blocks, cavity.states, spreads, strict=True)
        ],
    )
    weight, surprise = np.empty(people.count), np.empty(people.count)
    reach = np.empty((people.count, len(cavity.inverse)))
    for block, state in zip(cavity.design.blocks, cavity.states, strict=True):
        weight[block.units] = np.einsum("uii->u", state.kappa)
        surprise[block.units] = np.linalg.norm(state.force, axis=1)
        direction = _directions(model, block, state, people, None)
        reach[block.units] = _lifted(block, _reply(state, direction))
    chosen = np.asarray(rows, dtype=np.intp)
    pulls = [raised(state, t) for state, t in zip(cavity.states, sources, strict=True)]
    parts = _moves(cavity, pulls, reach[chosen] @ cavity.inverse, chosen, people.count) ** 2
    parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
    others = np.argsort(-parts, axis=1, kind="stable")[:, : min(most, people.count - 1)]
    return Neighbours(
        weight[chosen] / max(float(np.median(weight)), 1e-300),
        surprise[chosen] / max(float(np.median(surprise)), 1e-300),
        others,
        np.take_along_axis(parts, others, axis=1),
    )


def _reply(state: State, direction: FloatArray) -> FloatArray:
    """(I + c kappa) direction, (U, q)."""
    return direction + (direction[:, None] @ state.kappa @ state.curvature)[:, 0]


def _lifted(block: Block, reply: FloatArray) -> FloatArray:
    """X_R' reply, (U, p), with coefficient (a, output) at output d + a."""
    split = reply.reshape(*block.rows.shape, block.design.outputs)
    found = np.swapaxes(split, 1, 2) @ block.X
    return np.asarray(found.reshape(len(reply), -1))


def _moves(
    cavity: PeopleCavity,
    pulls: Sequence[FloatArray],
    through: FloatArray,
    some: Codes,
    count: int,
) -> FloatArray:
    """How far every person (columns) moves some persons' scores (rows), with its sign."""
    outputs, d = cavity.design.outputs, cavity.design.X.shape[1]
    spread = through.reshape(len(some), outputs, d)
    found = np.empty((len(some), count))
    for block, state, t in zip(cavity.design.blocks, cavity.states, pulls, strict=True):
        persons, size = block.rows.shape
        # (some, outputs, persons, rows) to (persons, some, q)
        met = np.tensordot(spread, block.X, axes=(2, 2))
        met = np.transpose(met, (2, 0, 3, 1)).reshape(persons, len(some), size * outputs)
        part = np.einsum("umq,umq->mu", met @ t, met)
        along = np.einsum("umq,uq->mu", met, state.force)
        found[:, block.units] = np.copysign(np.sqrt(np.maximum(part, 0.0)), along)
    found[np.arange(len(some)), some] = 0.0
    return found


def known_others_of_people(
    model: FittedModel, codes: Codes, offset: FloatArray | None
) -> tuple[PredictionLaws, People]:
    """Both scores of every person; nothing is random, so the standard deviations are zero."""
    found = [leave_one_out(problem, codes=codes) for problem in model.problems]
    rows = np.arange(len(codes))
    sign = model.sign if offset is None else -np.ones(len(codes))
    both = [
        sign * np.stack(values)[model.own, rows] + (0.0 if offset is None else offset)
        for values in ([each.prediction for each in found], [each.without for each in found])
    ]
    scores = [
        RowScores(units, own, both[0][own], still, both[1][own], still)
        for units, own in of_one_size(codes)
        for still in [np.zeros((*own.shape, own.shape[1]))]
    ]
    people = People.of(codes, scores)
    mean_in, sd_in, mean_out, sd_out = people.moments()
    last = max(each.last_step for each in found)
    moves = [each.moved for each in found if each.moved is not None]
    laws = PredictionLaws(
        mean_in=mean_in,
        sd_in=sd_in,
        mean_out=mean_out,
        sd_out=sd_out,
        rounds=1,
        change=last,
        converged=last <= 1e-6,
        smoothing_gap=0.0,
        shares=Shares.unknown(people.count),
        by_size=np.ones(people.count),
        moved=np.linalg.norm(moves, axis=0) if moves and model.problems[0].X is not None else None,
    )
    return laws, people
