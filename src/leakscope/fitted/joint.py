"""What several fitted models say about a record together: the joint law of their scores.

Models about the same people share most of their training records, so that their scores vary
together.  Whoever sees all of them can take what is common off, and what is left tells more.

The cavity of each model gives its own laws (`leakscope.fitted.cavity`).  Between models k and l,
with eps_k what varies at record j without it, f the fraction and F_k the force there:

- C_i^kl = sum_{j != i} G_ij^k G_ij^l t_j^kl / (s_i^k s_j^k s_i^l s_j^l), s the slack 1 - c g;
- t_j^kl = f E[F_k F_l] - f^2 E[F_k] E[F_l] - f^2 E[F_k'] E[F_l'] C_j^kl: a record is in the
  training sets of both models or of neither; one that was not fitted on it feels no force of it.

These are v_i and t_j of one model where k = l.  Expectations of two functions of correlated normals
are by Mehler's formula: sum over n of rho^n a_n b_n, with a_n and b_n their Hermite coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.cavity import Cavity, Question, force_variance, solve_cavity
from leakscope.fitted.fitted_laws import LED, TRUSTED_SHARE
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.losses import LOSSES, NODES, hermite
from leakscope.fitted.paired import PairedModel
from leakscope.fitted.problem import ConvexProblem, FittedModel, require_fraction
from leakscope.laws.distributions import MultivariateNormal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.settings.audit import MODEL_DEFAULTS

Mask = npt.NDArray[np.bool_]

TOLERANCE, MOST_ROUNDS = 1e-6, 500

# Two releases may be so alike that the laws do not know what varies between them.  Every score is
# given noise of this share of its variance, the same with the record and without it: what is told
# together is then never too much.  Who would be told far more with a tenth of it is not trusted.
RESOLUTION, MOST_HIDDEN = 1e-3, 1.1


@dataclass(frozen=True, eq=False)
class Release:
    """One released model.

    Attributes
    ----------
    estimator
        A fitted scikit-learn estimator, as `from_sklearn` takes it.
    X, y
        The records of everybody whom any release was fitted on, as this estimator takes them.
    trained_on
        (n,) which of them it was fitted on.
    """

    estimator: Any
    X: Any
    y: Any
    trained_on: Mask


@dataclass(frozen=True, eq=False)
class JointLaws:
    """The laws of every record's scores under k releases, in record order.

    Attributes
    ----------
    member_mean, nonmember_mean
        (n, k) with the record in all of the releases that were fitted on it, and in none.
    member_covariance, nonmember_covariance
        (n, k, k).
    trusted, check
        Whether a record passed the check of its laws together, and the check in words; each release
        alone has its own (`laws_of`).
    """

    member_mean: FloatArray
    member_covariance: FloatArray
    nonmember_mean: FloatArray
    nonmember_covariance: FloatArray
    trusted: Mask
    check: str
    provenance: Provenance

    def law_pair(self) -> LawPair:
        """Both joint laws of every record."""
        return LawPair(
            MultivariateNormal(self.member_mean, self.member_covariance),
            MultivariateNormal(self.nonmember_mean, self.nonmember_covariance),
            self.provenance,
        )


def joint_laws(
    releases: Sequence[Release],
    *,
    question: Question = MODEL_DEFAULTS.question,
    fraction: float | None = None,
) -> JointLaws:
    """Both joint laws of every record's scores under several released models.

    Parameters
    ----------
    releases
        Models with one output each (ridge, kernel ridge, logistic with two classes, Poisson), about
        the same records in the same order.
    question, fraction
        As in `laws_of`, the same for all; a record is in every release that was fitted on it, or
        in none.

    Examples
    --------
    The same ridge regression, fitted again after 100 more people joined:

    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import fitted, measures
    >>> from leakscope.fitted.joint import Release, joint_laws
    >>> X, y = load_diabetes(return_X_y=True)
    >>> before, after = np.arange(442) < 342, np.ones(442, dtype=bool)
    >>> releases = [
    ...     Release(Ridge(alpha=0.1).fit(X[some], y[some]), X, y, some) for some in (before, after)
    ... ]
    >>> together = measures.advantage(joint_laws(releases).law_pair())
    >>> alone = measures.advantage(fitted.laws_of(releases[1].estimator, X, y).law_pair())
    >>> bool(np.all(together[342:] > alone[342:]))
    True
    """
    if len(releases) < 2:
        raise InputError("Several releases are needed; for one alone use laws_of.")
    if question == "known_others":
        raise InputError(
            "An attacker who knows all other records is certain after one deterministic fit, so "
            "several add nothing; ask the pool or population question."
        )
    f = 0.5 if question == "pool" and fraction is None else 1.0 if fraction is None else fraction
    f = require_fraction(f, whole=question != "pool")
    models = [_described(release, place) for place, release in enumerate(releases)]
    problems = [model.problems[0] for model in models]
    if len({problem.records for problem in problems}) > 1:
        raise InputError("All releases must be about the same records; give each of them all.")
    cavities = [solve_cavity(problem, f) for problem in problems]
    inside = np.stack([release.trained_on for release in releases])
    covariance, source, settled = _covariances(problems, cavities, question, f)
    return _finished(models, cavities, inside, covariance, source, question, f, settled)


def _described(release: Release, place: int) -> FittedModel:
    trained_on = np.asarray(release.trained_on)
    if trained_on.dtype != np.bool_ or trained_on.ndim != 1 or len(trained_on) != len(release.y):
        raise InputError(
            f"release {place + 1}: trained_on must say true or false for each of the "
            f"{len(release.y)} records."
        )
    weight = trained_on.astype(np.float64)
    found = from_sklearn(release.estimator, release.X, release.y, sample_weight=weight)
    if isinstance(found, PairedModel) or found.loss == "softmax" or len(found.problems) > 1:
        raise InputError(
            f"release {place + 1}, {found.name}: the joint law is known for models with one output "
            "(ridge, kernel ridge, logistic with two classes, Poisson)."
        )
    return found


def _covariances(
    problems: Sequence[ConvexProblem], cavities: Sequence[Cavity], question: Question, f: float
) -> tuple[FloatArray, FloatArray, bool]:
    """(n, k, k) covariances without the record and (n, k, k) sources t_j; whether all settled."""
    size, count = problems[0].records, len(problems)
    covariance, source = np.empty((size, count, count)), np.empty((size, count, count))
    settled = all(cavity.converged for cavity in cavities)
    forces = [_hermite(_force, p, c, c.variance) for p, c in zip(problems, cavities, strict=True)]
    for k, one in enumerate(cavities):
        t = force_variance(one.moments, one.variance, f)
        v = one.variance
        if question == "population":
            t = f * one.moments.square
            v = one.response.spread(t)
        covariance[:, k, k], source[:, k, k] = v, t
        for other in range(k):
            pair = (one, cavities[other])
            found = _between(pair, (forces[k], forces[other]), question, f)
            covariance[:, k, other] = covariance[:, other, k] = found[0]
            source[:, k, other] = source[:, other, k] = found[1]
            settled = settled and found[2]
    return covariance, source, settled


def _between(
    pair: tuple[Cavity, Cavity], forces: tuple[FloatArray, FloatArray], question: Question, f: float
) -> tuple[FloatArray, FloatArray, bool]:
    """C^kl and t^kl of two models: rounds until they stand still."""
    one, two = pair
    scale = np.sqrt(np.maximum(one.variance * two.variance, 1e-300))
    slack = one.response.slack * two.response.slack
    mean = f * f * forces[0][0] * forces[1][0]
    slope = f * f * one.moments.slope * two.moments.slope
    found, change = np.zeros(len(scale)), np.inf
    t = np.zeros(len(scale))
    for _ in range(MOST_ROUNDS):
        if f < 1.0:
            t = f * _mehler(forces, found / scale) - mean - slope * found
        new = one.response.shared(two.response, t / slack) / slack
        change = float(np.max(np.abs(new - found) / scale))
        found = new
        if change <= TOLERANCE:
            break
    if question == "population":
        # As for one model: fresh others, and the force at the pool's spread.
        t = f * _mehler(forces, found / scale)
        found = one.response.shared(two.response, t / slack) / slack
    return found, t, change <= TOLERANCE


def _hermite(function: Any, problem: ConvexProblem, cavity: Cavity, v: FloatArray) -> FloatArray:
    """(NODES, n) Hermite coefficients of a function of m + eps, eps ~ N(0, v).

    The polynomials are orthonormal on the nodes too, so that at rho = 1 Mehler's sum is the
    quadrature of the product itself.
    """
    nodes, weights = hermite(NODES)
    values = np.stack([function(problem, cavity, cavity.mean + x * np.sqrt(v)) for x in nodes])
    basis = np.empty((NODES, NODES))
    basis[0], basis[1] = 1.0, nodes
    for n in range(1, NODES - 1):
        basis[n + 1] = (nodes * basis[n] - np.sqrt(n) * basis[n - 1]) / np.sqrt(n + 1.0)
    return np.asarray((basis * weights) @ values)


def _mehler(coefficients: tuple[FloatArray, FloatArray], correlation: FloatArray) -> FloatArray:
    powers = np.clip(correlation, -1.0, 1.0) ** np.arange(NODES)[:, None]
    return np.asarray(np.einsum("mn,mn,mn->n", powers, *coefficients))


def _joined(problem: ConvexProblem, cavity: Cavity, z: FloatArray) -> FloatArray:
    """The prediction once the record joins."""
    return LOSSES[problem.loss].prox(z, cavity.kappa * problem.sample_weights, problem.y)


def _force(problem: ConvexProblem, cavity: Cavity, z: FloatArray) -> FloatArray:
    inside = _joined(problem, cavity, z)
    return problem.sample_weights * LOSSES[problem.loss].force(inside, problem.y)


def _finished(
    models: Sequence[FittedModel],
    cavities: Sequence[Cavity],
    inside: Mask,
    out: FloatArray,
    source: FloatArray,
    question: Question,
    f: float,
    settled: bool,
) -> JointLaws:
    problems = [model.problems[0] for model in models]
    variances = np.einsum("nkk->nk", out)
    floor = np.maximum(1e-14 * np.median(variances, axis=0), 1e-300)
    variances = np.maximum(variances, floor)
    sd = np.sqrt(variances)
    correlation = np.clip(out / (sd[:, :, None] * sd[:, None, :]), -1.0, 1.0)
    joined = [
        _hermite(_joined, problem, cavity, variances[:, k])
        for k, (problem, cavity) in enumerate(zip(problems, cavities, strict=True))
    ]
    within = np.empty_like(out)
    for k, one in enumerate(joined):
        for other, two in enumerate(joined):
            within[:, k, other] = _mehler((one, two), correlation[:, k, other]) - one[0] * two[0]
    sign = np.stack([model.sign for model in models], axis=1)
    turned = sign[:, :, None] * sign[:, None, :]
    out, within = turned * out, turned * within
    mean_out = sign * np.stack([cavity.mean for cavity in cavities], axis=1)
    mean_in = sign * np.stack([one[0] for one in joined], axis=1)
    shift = mean_in - mean_out
    hidden, told = (
        _told(_definite(out, variances, r), shift) for r in (RESOLUTION / 10, RESOLUTION)
    )
    out, within = (_definite(part, variances, RESOLUTION) for part in (out, within))
    led = _led(cavities, sign * _direction(out, shift), source)
    finite = np.isfinite(mean_in).all(axis=1) & np.isfinite(mean_out).all(axis=1)
    trusted = finite & (led <= TRUSTED_SHARE) & (hidden <= MOST_HIDDEN * told) & settled
    return JointLaws(
        member_mean=mean_in,
        member_covariance=within,
        nonmember_mean=mean_out,
        nonmember_covariance=out,
        trusted=np.asarray(trusted & inside.any(axis=0)),
        check=f"{LED} of what the releases together tell",
        provenance=Provenance(
            question=question if question == "population" else "pool",
            adjacency="removed",
            observes="scores",
            random=("data",),
            attacker_knows_label=True,
            method="asymptotic",
            source="docs/compose.md",
            assumptions=(
                Assumption(
                    "a record is in every release that was fitted on it, or in none",
                    evidence="the question that is asked",
                ),
                Assumption(
                    "the models have settled",
                    holds=settled,
                    evidence=f"{max(cavity.rounds for cavity in cavities)} rounds at most",
                ),
            ),
        ),
    )


def _definite(covariances: FloatArray, variances: FloatArray, noise: float) -> FloatArray:
    """With noise of this share of the variances; what the rounds leave below zero is cut off."""
    sd = np.sqrt(variances)
    scale = sd[:, :, None] * sd[:, None, :]
    values, vectors = np.linalg.eigh(covariances / scale)
    values = np.maximum(values, 0.0) + noise
    return np.asarray(np.einsum("nij,nj,nkj->nik", vectors, values, vectors) * scale)


def _told(covariances: FloatArray, shift: FloatArray) -> FloatArray:
    """(n,) the squared distance of the means, in units of what varies."""
    return np.asarray(np.einsum("nk,nk->n", _direction(covariances, shift), shift))


def _direction(covariances: FloatArray, shift: FloatArray) -> FloatArray:
    """(n, k) Fisher's direction, along which the releases together tell most."""
    return np.asarray(np.linalg.solve(covariances, shift[:, :, None])[:, :, 0])


def _led(cavities: Sequence[Cavity], direction: FloatArray, source: FloatArray) -> FloatArray:
    """(n,) the root of the summed squared shares that the others have along the direction."""
    size, count = direction.shape
    found = np.empty(size)
    for start in range(0, size, 256):
        part = np.arange(start, min(start + 256, size))
        moves = []
        for k, cavity in enumerate(cavities):
            response = cavity.response
            block = response.moves(np.ones(size), part).astype(np.float64)
            moves.append(block * (direction[part, k] / response.slack[part])[:, None])
        shares = sum(
            moves[k] * moves[other] * source[:, k, other]
            for k in range(count)
            for other in range(count)
        )
        total = np.maximum(np.asarray(shares).sum(axis=1), 1e-300)
        found[part] = np.sqrt(np.sum(np.square(shares), axis=1)) / total
    return found
