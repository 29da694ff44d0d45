"""Both laws of a person's score, where all of their rows leave together.

The attacker sees the answers about all of a person's rows, whose laws come from the one cavity
(`single_fit.units`).  The person's score is the weighted mean of the rows' scores that tells most
(`best_weights`); `joint_advantage` is what any test of all the answers gets, and whoever would lose
much by the mean is not trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.problem import FittedModel, NoLawsError
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import LawPair
from leakscope.measures.pair_measures import advantage, tpr_at_fpr
from leakscope.single_fit.cavity import Cavity, solve_cavity
from leakscope.single_fit.laws import (
    RowScores,
    Score,
    ScoreMoments,
    laws_along,
    scores_of,
    settled_cavity,
)
from leakscope.single_fit.leave_one_out import leave_one_out, still_laws
from leakscope.single_fit.losses import Codes
from leakscope.single_fit.problem import Question
from leakscope.single_fit.responses import DENSE
from leakscope.single_fit.shares import Carriers, Neighbours
from leakscope.single_fit.units import sizes_of, symmetric

# Directions whose variance is below this share of the largest are rounding: copies of a row.
RANK = 1e-9
# Between the two covariances, for the direction of a score.
MIXTURES = (0.0, 0.25, 0.5, 0.75, 1.0)


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


def score_of(model: FittedModel, offset: FloatArray | None) -> Score:
    """What is observed: ``offset`` (N,) less the prediction where it is given, else the score."""
    if offset is None:
        return Score(model.own, model.sign, np.zeros(model.records))
    return Score(model.own, -np.ones(model.records), offset)


def people_laws(
    model: FittedModel, codes: Codes, question: Question, fraction: float, offset: FloatArray | None
) -> tuple[ScoreMoments, People]:
    """The laws of the persons' scores under the pool or the population question."""
    fresh, score = question == "population", score_of(model, offset)
    cavity = _cavity(model, codes, fraction)
    scores, _ = scores_of(cavity, score, fresh=fresh)
    people = People.of(codes, scores)
    return laws_along(cavity, scores, people.weights, score, fresh=fresh), people


def _cavity(model: FittedModel, codes: Codes, fraction: float) -> Cavity:
    problem = model.joint
    if problem.X is not None:
        coefficients = problem.outputs * problem.X.shape[1]
        if coefficients > max(DENSE, problem.records):
            raise NoLawsError(
                f"{problem.name} has {coefficients} coefficients in {problem.outputs} outputs, and "
                f"the laws of groups are known up to {DENSE}; take train= (--model), or leave out "
                "the groups."
            )
    return settled_cavity(problem, fraction, codes)


def neighbours_of(
    model: FittedModel, rows: Sequence[int], *, fraction: float, most: int = 3
) -> Neighbours:
    """What makes the laws of these records, or groups.

    ``fraction`` is that of the laws, ``most`` how many others of each are named.
    """
    fresh, score = fraction == 1.0, score_of(model, None)
    units = np.asarray(rows, dtype=np.intp)
    if model.codes is None and len(model.problems) > 1:
        # each record's laws are those of the problem that scores its label
        found = {}
        for number in np.unique(model.own[units]).tolist():
            alone = replace(model, problems=(model.problems[number],), own=0 * model.own)
            here = np.flatnonzero(model.own[units] == number)
            near = neighbours_of(alone, units[here].tolist(), fraction=fraction, most=most)
            found.update({place: (near, k) for k, place in enumerate(here.tolist())})
        picked = [found[place] for place in range(len(units))]
        return Neighbours(
            *(
                np.array([getattr(near, name)[k] for near, k in picked])
                for name in ("weight", "surprise", "others", "shares")
            )
        )
    if model.codes is None:
        cavity, weights = solve_cavity(model.problems[0], fraction), np.ones(model.records)
    else:
        cavity = _cavity(model, model.codes, fraction)
        weights = People.of(model.codes, scores_of(cavity, score, fresh=fresh)[0]).weights
    gradients = [
        (weights[stack.rows][..., None] * score.gradients(stack, state.m)).reshape(state.m.shape)
        for stack, state in zip(cavity.stacks, cavity.states, strict=True)
    ]
    return Carriers.of(cavity, gradients, fresh=fresh).neighbours(units, most)


def known_others_of_people(
    model: FittedModel, codes: Codes, offset: FloatArray | None
) -> tuple[ScoreMoments, People]:
    """Both scores of every person; nothing is random, so the standard deviations are zero."""
    if model.loss == "softmax":
        raise InputError(
            "With several classes, fits without a whole group are not computed; ask the pool "
            "question instead."
        )
    found = [leave_one_out(problem, groups=codes) for problem in model.problems]
    rows, score = np.arange(len(codes)), score_of(model, offset)
    both = [
        score.sign * np.stack(values)[model.own, rows] + score.offset
        for values in ([each.prediction for each in found], [each.without for each in found])
    ]
    scores = [
        RowScores(units, own, both[0][own], still, both[1][own], still)
        for units, own in sizes_of(codes)
        for still in [np.zeros((*own.shape, own.shape[1]))]
    ]
    people = People.of(codes, scores)
    mean_in, _, mean_out, _ = people.moments()
    moves = [each.moved for each in found if each.moved is not None]
    moved = np.linalg.norm(moves, axis=0) if moves and model.problems[0].X is not None else None
    return still_laws(mean_in, mean_out, max(e.last_step for e in found), moved=moved), people
