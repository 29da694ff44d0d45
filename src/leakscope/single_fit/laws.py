"""The laws of every unit's score, with it and without it, and how well they are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import LawPair
from leakscope.single_fit.cavity import Cavity, solve_cavity
from leakscope.single_fit.losses import Codes, label_log_odds, softmax
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import Stacked
from leakscope.single_fit.shares import Carriers, Shares
from leakscope.single_fit.units import (
    MOST_SMOOTHED,
    Stack,
    State,
    normal_points,
    square_root,
    symmetric,
    transposed,
    unit_matrix,
)


@dataclass(frozen=True, eq=False)
class Score:
    """What is observed of every record: sign z_output + offset, of N records.

    Of several classes with a shared loss it is the log-odds of the label.
    """

    output: Codes
    sign: FloatArray
    offset: FloatArray

    @classmethod
    def of(cls, records: int) -> Score:
        """The prediction itself."""
        return cls(np.zeros(records, dtype=np.intp), np.ones(records), np.zeros(records))

    def values(self, stack: Stack, z: FloatArray) -> FloatArray:
        """The score of each row, (B, S, r), of predictions (B, S, q)."""
        rows = stack.by_row(z)
        if stack.loss != "softmax":
            place = np.broadcast_to(self.output[stack.rows][:, None, :, None], (*rows.shape[:3], 1))
            chosen = np.take_along_axis(rows, place, axis=3)[..., 0]
            return np.asarray(
                self.sign[stack.rows][:, None] * chosen + self.offset[stack.rows][:, None]
            )
        logits = np.swapaxes(rows @ stack.basis.T, 0, 1)
        flat = logits.reshape(z.shape[1], -1, stack.classes)
        odds = label_log_odds(flat, stack.labels.reshape(-1))
        return np.asarray(np.swapaxes(odds.reshape(z.shape[1], *stack.rows.shape), 0, 1))

    def gradients(self, stack: Stack, z: FloatArray) -> FloatArray:
        """The gradient of each row's score in its predictions, (B, r, O), of predictions (B, q)."""
        rows = stack.by_row(z)
        found = np.zeros(rows.shape)
        if stack.loss != "softmax":
            place = self.output[stack.rows][..., None]
            np.put_along_axis(found, place, self.sign[stack.rows][..., None], axis=2)
            return found
        label = stack.labels.astype(np.intp)
        others = rows @ stack.basis.T
        np.put_along_axis(others, label, -np.inf, axis=2)
        slopes = -softmax(others)
        np.put_along_axis(slopes, label, 1.0, axis=2)
        return np.asarray(slopes @ stack.basis)


@dataclass(frozen=True, eq=False)
class RowScores:
    """Means (U, r) and covariances (U, r, r) of the scores of the rows of units of one size."""

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
        moments = []
        for mean, cov in ((self.mean_in, self.cov_in), (self.mean_out, self.cov_out)):
            moments.append(np.einsum("ur,ur->u", weights, mean))
            variance = np.einsum("ur,urs,us->u", weights, cov, weights)
            moments.append(np.sqrt(np.maximum(variance, 0.0)))
        return moments


@dataclass(frozen=True, eq=False)
class ClassLaws:
    """What is known of single rows with several classes, beside their log-odds.

    Attributes
    ----------
    right_in, right_out
        (N,) the probability that the label comes out on top.
    logits_in, logits_out
        Means (N, C - 1) and covariances of the other classes' logits less the label's.
    """

    right_in: FloatArray
    right_out: FloatArray
    logits_in: tuple[FloatArray, FloatArray]
    logits_out: tuple[FloatArray, FloatArray]

    def pair(self, noise: float) -> tuple[MultivariateNormal, MultivariateNormal]:
        """The laws of all logits with normal noise of this sd on each difference."""
        more = noise**2 * np.eye(self.logits_in[0].shape[1])
        inside, outside = (
            MultivariateNormal(mean, cov + more) for mean, cov in (self.logits_in, self.logits_out)
        )
        return inside, outside


def scores_of(
    cavity: Cavity, score: Score, *, fresh: bool
) -> tuple[list[RowScores], ClassLaws | None]:
    """The laws of the scores of all rows, of units of one size each."""
    spreads = cavity.fresh_variances if fresh else cavity.pool_variances
    # a floor for records whose prediction does not vary at all (rows of zeros)
    typical = np.median(np.concatenate([np.einsum("uii->ui", v).ravel() for v in spreads]))
    least = max(1e-14 * float(typical), 1e-300)
    scores, classes = [], None
    for stack, state, v in zip(cavity.stacks, cavity.states, spreads, strict=True):
        floor = np.maximum(v, least) if stack.size == 1 else v + least * np.eye(stack.size)
        if stack.quadratic or stack.size > MOST_SMOOTHED:
            scores.append(_straight(stack, state, floor, score))
            continue
        moments, classes = _pushed(stack, state, floor, score)
        scores.append(moments)
    return scores, classes


def _straight(stack: Stack, state: State, v: FloatArray, score: Score) -> RowScores:
    """Where joining moves the predictions as at their mean, which is exact for squares."""
    m = state.m[:, None]
    inside = stack.joined(m, state.kappa, state.force, state.z).z
    h = stack.curvature(inside)[:, 0]
    push = np.asarray(np.linalg.inv(unit_matrix(v) + state.kappa @ h), dtype=np.float64)
    moments = []
    for z, cov in ((inside, push @ v @ transposed(push)), (m, v)):
        slope = score.gradients(stack, z[:, 0])
        split = cov.reshape(*stack.rows.shape, -1, stack.rows.shape[1], stack.outputs)
        between = np.einsum("uia,uiajb,ujb->uij", slope, split, slope, optimize=True)
        moments += [score.values(stack, z)[:, 0], symmetric(between)]
    return RowScores(stack.units, stack.rows, *moments)


def _pushed(
    stack: Stack, state: State, v: FloatArray, score: Score
) -> tuple[RowScores, ClassLaws | None]:
    """Where the predictions without the unit are N(m, v), by points."""
    points, shares = normal_points(stack.size, 9)
    root, parts = square_root(v), []
    for part in stack.parts(len(points)):
        some = stack.some(part)
        without = state.m[part, None] + points @ transposed(root[part])
        inside = some.joined(without, state.kappa[part], state.force[part], state.z[part]).z
        moments = []
        for z in (inside, without):
            moments += _moments(score.values(some, z), shares)
        if stack.class_row:
            for z in (inside, without):
                away = _against_label(some, z)
                margin, spread = _moments(-away.max(axis=2)[..., None], shares)
                sd = np.maximum(np.sqrt(spread[:, 0, 0]), 1e-12)
                moments += [special.ndtr(margin[:, 0] / sd), *_moments(away, shares)]
        parts.append(moments)
    whole = [np.concatenate(found) for found in zip(*parts, strict=True)]
    rows = RowScores(stack.units, stack.rows, *whole[:4])
    if not stack.class_row:
        return rows, None
    laws = []
    for mean, cov in (whole[5:7], whole[8:10]):
        jitter = 1e-9 * np.einsum("icc->i", cov) / cov.shape[1]
        laws.append((mean, cov + jitter[:, None, None] * np.eye(cov.shape[1])))
    return rows, ClassLaws(whole[4], whole[7], laws[0], laws[1])


def _moments(values: FloatArray, shares: FloatArray) -> list[FloatArray]:
    """Mean (B, n) and covariance (B, n, n) of values (B, S, n) at points with these shares."""
    mean = np.einsum("s,usn->un", shares, values)
    away = values - mean[:, None]
    return [mean, symmetric(transposed(away * shares[:, None]) @ away)]


def _against_label(stack: Stack, z: FloatArray) -> FloatArray:
    """The other classes' logits less the label's, (B, S, C - 1)."""
    label = stack.labels[:, 0, 0].astype(np.intp)
    others = np.array([np.delete(np.arange(stack.classes), c) for c in range(stack.classes)])
    basis = stack.basis[others[label]] - stack.basis[label][:, None]
    return np.asarray(z @ transposed(basis))


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreMoments:
    """The moments of each unit's score in and out, and how well they are known.

    Attributes
    ----------
    mean_in, sd_in, mean_out, sd_out
        (U,) of the score: of a record's, or of a sum of the scores of a group's rows.
    rounds, change, converged
        Of the cavity.
    shares
        How unequally the other units share in the variance.
    yields
        x' H^{-1} x of models with and without the record: what a posterior draw of unit variance
        adds to the variance of the prediction; of records with one output.
    moved
        How far the unit moves the coefficients, as a Euclidean norm; known others only.
    classes
        Of records with several classes.
    """

    mean_in: FloatArray
    sd_in: FloatArray
    mean_out: FloatArray
    sd_out: FloatArray
    rounds: int
    change: float
    converged: bool
    shares: Shares
    yields: tuple[FloatArray, FloatArray] | None = None
    moved: FloatArray | None = None
    classes: ClassLaws | None = None

    @property
    def shift(self) -> FloatArray:
        """How far the unit's presence moves its score on average."""
        return np.asarray(self.mean_in - self.mean_out)

    def pair(self) -> LawPair:
        """Both laws of every unit's score."""
        return LawPair(Normal(self.mean_in, self.sd_in), Normal(self.mean_out, self.sd_out))


def score_moments(
    problem: ConvexProblem,
    *,
    fraction: float = 0.5,
    fresh: bool = False,
    score: Score | None = None,
) -> ScoreMoments:
    """The laws of every record's score.

    Parameters
    ----------
    problem
        The model with its records.
    fraction
        The training set's share of the records.
    fresh
        Whether the others are fresh draws from a population, and not drawn from those at hand.
    score
        What is observed; the prediction, or the log-odds of several classes, by default.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.single_fit import ConvexProblem, score_moments
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> laws = score_moments(ConvexProblem(y=X[:, 0] + X[:, 1] ** 2, loss="square", X=X,
    ...                                penalty=np.ones(3)))
    >>> laws.shift.shape, bool(laws.converged)
    ((60,), True)
    """
    score = Score.of(problem.records) if score is None else score
    cavity = settled_cavity(problem, fraction)
    scores, classes = scores_of(cavity, score, fresh=fresh)
    return laws_along(cavity, scores, np.ones((problem.records, 1)), score, classes, fresh=fresh)


def settled_cavity(problem: ConvexProblem, fraction: float, groups: Codes | None = None) -> Cavity:
    """The cavity; a sentence where its rounds run away, as with hardly a penalty."""
    try:
        cavity = solve_cavity(problem, fraction, groups)
    except np.linalg.LinAlgError:
        cavity = None
    if cavity is not None and np.isfinite(cavity.change):
        return cavity
    raise InputError(
        f"{problem.name} follows its {problem.records} records so closely that the laws of its "
        "answers have no spread which can be computed; use a larger penalty, or leave out columns "
        "that are not penalised and that hardly any records have."
    )


@np.errstate(over="ignore", invalid="ignore")
def laws_along(
    cavity: Cavity,
    scores: list[RowScores],
    weights: FloatArray,
    score: Score,
    classes: ClassLaws | None = None,
    *,
    fresh: bool,
) -> ScoreMoments:
    """The laws of the units' scores, their rows' summed with weights (N,) or (N, 1)."""
    weights = weights.reshape(-1)
    moments = np.empty((4, cavity.units))
    gradients: Stacked = []
    variances = np.empty(cavity.units)
    spreads = cavity.fresh_variances if fresh else cavity.pool_variances
    for stack, state, v, rows in zip(cavity.stacks, cavity.states, spreads, scores, strict=True):
        moments[:, stack.units] = rows.along(weights[stack.rows])
        slope = weights[stack.rows][..., None] * score.gradients(stack, state.m)
        gradients.append(slope.reshape(len(stack.units), -1))
        variances[stack.units] = np.einsum("ui,uij,uj->u", gradients[-1], v, gradients[-1])
    return ScoreMoments(
        mean_in=moments[0],
        sd_in=moments[1],
        mean_out=moments[2],
        sd_out=moments[3],
        rounds=cavity.rounds,
        change=cavity.change,
        converged=cavity.converged,
        shares=Carriers.of(cavity, gradients, fresh=fresh).shares(variances),
        yields=_yields(cavity),
        classes=classes,
    )


def _yields(cavity: Cavity) -> tuple[FloatArray, FloatArray] | None:
    """The record's curvature stiffens the model at itself."""
    stack, state = cavity.stacks[0], cavity.states[0]
    if cavity.groups is not None or stack.size > 1:
        return None
    inside = stack.joined(state.m[:, None], state.kappa, state.force, state.z).z
    kappa, h = state.kappa[:, 0, 0], stack.curvature(inside)[:, 0, 0, 0]
    return kappa / (1.0 + kappa * h), kappa
