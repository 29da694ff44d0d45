"""A secret attribute: what a model's answers say of one column of a record that it was trained on.

The attacker knows all of record i but one column, and its label y.  The column has candidate values
v; put in, each makes a row x(v) of the design.  He asks the model about all of them and sees
a = A theta, A the rows x(v).

Without the record, theta has mean m and covariance Sigma over training sets (docs/fitted.md), so
that a is normal with mean A m and covariance S = A Sigma A'.  With K = A Hbar^{-1} A', Hbar without
the record's own curvature, a record whose secret is v joins and moves all answers along one column
of K:

    a_in = a - F K[:, v],    F = w l'(z),    z = prox of a_v at K[v, v].

That map has an inverse in closed form, because z is itself an answer: a = a_in + w l'(z) K[:, v]
with z = a_in[v].  So the density of what the attacker sees, given v, is that of a normal law times
the Jacobian 1 + w l''(z) K[v, v]: no moments are matched for a loss that is not quadratic.

Everything below is in white coordinates c, in which a without the record is N(0, I) in as many
dimensions as A has (two for a column of numbers, one for each category): a_v = mean_v + s_v'c, and
joining is c - F q_v.

Three chances of naming the value, for one prior belief b(v) of what the column holds before the
label is looked at:

- *without the model*: the largest belief of whoever has no model;
- *with a model that was not trained on the record*: its answers have the same law whatever the
  secret is, and tell about the population only, namely how labels go with the column.  The belief
  becomes b(v) E[p(y | a_v)] over that law (Fredrikson et al. 2014; Jayaraman and Evans 2022 call
  this imputation);
- *with this model*: that belief times the density of the answers given v, averaged over training
  sets and over the belief.

The last less the second is the leak.  It is the mean of max_v posterior(v) - posterior(v*), v* the
best guess before: never negative, and zero wherever the answers do not change the guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.fitted.cavity import (
    HEAVY,
    NEIGHBOUR_BUDGET,
    ROWS_PER_COLUMN,
    Question,
    Shares,
    force_variance,
    solve_cavity,
)
from leakscope.fitted.losses import LOSSES, hermite
from leakscope.fitted.optimum import inverse_hessian, quadratic_forms, weighted_gram
from leakscope.fitted.problem import ConvexProblem
from leakscope.laws.distributions import MultivariateNormal
from leakscope.laws.pair import LawPair, Provenance
from leakscope.settings.audit import MODEL_DEFAULTS, SecretPrior

Codes = npt.NDArray[np.intp]

# Nodes over the answer about the record's own row; the rest of the law is linear in it.
NODES = 15

# An eigenvalue of K below this share of the largest is rounding: the rows x(v) do not span it.
_SPANNED = 1e-9
# A direction in which nobody else's record moves the answers keeps this share of the variance.
_FLOOR = 1e-10

# Points of a normal law for each value, and how many numbers all of them may take; a density takes
# as many steps as a product of this many numbers.  A value believed less than this adds nothing.
MOST_POINTS, LEAST_POINTS = 1024, 128
_WORK, _STEPS = 4e8, 8
_UNLIKELY = 1e-7
_SEED = 8

# Parts of the records that the imputation leaves out in turn, and the penalties that it tries.
FOLDS = 5
IMPUTATION_PENALTY = (1.0, 0.1, 0.01, 0.001)


@dataclass(frozen=True, eq=False)
class SecretLaws:
    """What the attacker sees of n records, for V values of the secret, in white coordinates.

    Attributes
    ----------
    mean, covariance
        (n, V) and (n, V, V): A m and S, of the answers without the record.
    response
        (n, V, V): K.
    whitening
        (n, r, V): what takes the answers, less their mean, to c.
    spread, pull
        (n, V, r): s_v and q_v.
    problem
        The model, with each record's label and weight.
    own
        (n,): the value that each record has.
    shares
        How unequally the others share in what varies along the way from the own value's law to the
        nearest other's.
    provenance
        Which question the laws answer.
    """

    mean: FloatArray
    covariance: FloatArray
    response: FloatArray
    whitening: FloatArray
    spread: FloatArray
    pull: FloatArray
    problem: ConvexProblem
    own: Codes
    shares: Shares
    provenance: Provenance

    @property
    def values(self) -> int:
        """How many values the secret may have."""
        return int(self.mean.shape[1])

    def _forces(self, value: Codes) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E[F], Var[F] and Cov[a_v, F] / Var[a_v] where each record joins with a value."""
        problem, rows = self.problem, np.arange(len(value))
        loss, w, y = LOSSES[problem.loss], problem.sample_weights, problem.y
        sd = np.linalg.norm(self.spread[rows, value], axis=1)
        kappa = w * self.response[rows, value, value]
        nodes, weights = hermite(3 if loss.quadratic else NODES)
        at = self.mean[rows, value][:, None] + sd[:, None] * nodes
        z = loss.prox(at, kappa[:, None], y[:, None])
        force = w[:, None] * loss.force(z, y[:, None])
        first = force @ weights
        away = force - first[:, None]
        slope = (away * nodes) @ weights / np.maximum(sd, 1e-300)
        return first, (away**2) @ weights, slope

    def answers(self, value: Codes) -> tuple[FloatArray, FloatArray]:
        """Mean (n, V) and covariance (n, V, V) of the answers where each record has a value."""
        first, variance, slope = self._forces(value)
        rows = np.arange(len(value))
        move = self.response[rows, :, value]
        along = self.covariance[rows, :, value] * slope[:, None]
        crossed = along[:, :, None] * move[:, None, :]
        covariance = (
            self.covariance
            - crossed
            - np.swapaxes(crossed, 1, 2)
            + variance[:, None, None] * move[:, :, None] * move[:, None, :]
        )
        return np.asarray(self.mean - first[:, None] * move), np.asarray(covariance)

    def _white(self, value: Codes) -> MultivariateNormal:
        first, variance, slope = self._forces(value)
        rows = np.arange(len(value))
        q, s = self.pull[rows, value], self.spread[rows, value]
        crossed = slope[:, None, None] * s[:, :, None] * q[:, None, :]
        covariance = (
            np.eye(q.shape[1])
            - crossed
            - np.swapaxes(crossed, 1, 2)
            + variance[:, None, None] * q[:, :, None] * q[:, None, :]
        )
        return MultivariateNormal(-first[:, None] * q, covariance)

    def law_pair(self, other: Codes) -> LawPair:
        """The laws of all answers, by the record's own value and by another, for any measure.

        In coordinates in which the answers without the record are N(0, I).  They are exact for the
        square loss; else normal laws with the mean and the covariance of the answers.
        """
        return LawPair(self._white(self.own), self._white(other), self.provenance)

    def log_density(self, answers: FloatArray) -> FloatArray:
        """(n, M, V): of M answers about every record, (n, M, V), by each value; up to a constant.

        Added to the logarithm of a belief they are what the attacker goes by.
        """
        seen = (answers - self.mean[:, None]) @ np.swapaxes(self.whitening, 1, 2)
        return _log_densities(self, slice(None), seen)

    def label_likelihood(self) -> FloatArray:
        """(n, V): E[p(y | a_v)] over models that were not trained on the record, up to a factor.

        A quantity's noise is what models without a record leave of its own label.
        """
        loss, y = LOSSES[self.problem.loss], self.problem.y
        if loss.quadratic:
            rows = np.arange(len(y))
            noise = float(np.mean((y - self.mean[rows, self.own]) ** 2))
            log_likelihood = -0.5 * (y[:, None] - self.mean) ** 2 / max(noise, 1e-300)
            return np.asarray(np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))
        sd = np.linalg.norm(self.spread, axis=2)
        nodes, weights = hermite(NODES)
        at = self.mean[:, :, None] + sd[:, :, None] * nodes
        log_likelihood = -loss.value(at, y[:, None, None])
        log_likelihood = log_likelihood - log_likelihood.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.exp(log_likelihood) @ weights)

    def updated(self, before_label: FloatArray) -> FloatArray:
        """(n, V): the belief with a model that was not trained on the record, from the one before.

        Such a model tells how labels go with the column, and nothing else of the record.
        """
        belief = before_label * self.label_likelihood()
        return np.asarray(belief / belief.sum(axis=1, keepdims=True))


def secret_laws(
    problem: ConvexProblem,
    rows: FloatArray,
    own: Codes,
    *,
    question: Question = MODEL_DEFAULTS.question,
    fraction: float = 0.5,
) -> SecretLaws:
    """The laws of the answers about every record, with every value of the secret put in.

    Parameters
    ----------
    problem
        The model with its records; with a design, one output.
    rows
        (V, n, d): the design of every record with each value.
    own
        (n,): the value that each record has.
    question, fraction
        What the training sets are, as in :func:`leakscope.fitted.laws_of`.
    """
    if problem.X is None or problem.loss == "softmax":
        raise InputError(
            f"what {problem.name} gives away of a secret column is not known: it is worked out for "
            "models with one output on the columns themselves (linear, ridge, logistic with two "
            "classes, Poisson)."
        )
    if question == "known_others":
        raise InputError(
            "Whoever knows all other records fits the model with each value in turn and sees which "
            "of them it was; ask the pool or population question."
        )
    X, size, values = problem.X, problem.records, len(rows)
    require_memory(
        8 * size * values * (2 * X.shape[1] + 6 * values),
        f"The answers about {size} records with {values} values each",
        "audit a part of them with --sample, or allow a wider tolerance",
    )
    cavity = solve_cavity(problem, fraction)
    found = cavity.moments
    t = force_variance(found, cavity.variance, fraction)
    if question == "population":
        t = fraction * found.square
    penalty = problem.penalty_at(fraction)
    c = fraction * found.slope / (1.0 - fraction * cavity.kappa * found.slope)
    inverse = inverse_hessian(X, c, penalty, problem.name)
    z = cavity.mean - fraction * cavity.kappa * found.force
    theta = inverse @ (X.T @ (c * z - fraction * found.force))
    theta = theta + inverse @ (
        X.T @ (c * (z - X @ theta) - fraction * found.force) - penalty * theta
    )
    leverage = quadratic_forms(X, inverse)
    slack = np.maximum(1.0 - c * leverage, 1e-12)
    t = t / slack**2
    A = np.swapaxes(rows, 0, 1)
    moved = A @ inverse
    # Hbar without the record's own curvature, by Sherman and Morrison: x(v)'Hbar^{-1}x_i is g
    g = np.einsum("ivd,id->iv", moved, X)
    response = (
        moved @ np.swapaxes(A, 1, 2) + (c / slack)[:, None, None] * g[:, :, None] * g[:, None, :]
    )
    mean = A @ theta + (fraction * found.force / slack)[:, None] * g
    moved = moved + (c / slack)[:, None, None] * g[:, :, None] * (X @ inverse)[:, None, :]
    own_part = np.einsum("ivd,id->iv", moved, X)
    covariance = (moved @ weighted_gram(X, t)) @ np.swapaxes(moved, 1, 2)
    covariance -= t[:, None, None] * own_part[:, :, None] * own_part[:, None, :]
    basis, scale = _spanned(response, covariance)
    whitening = np.asarray(np.linalg.solve(scale, np.swapaxes(basis, 1, 2)), dtype=np.float64)
    laws = SecretLaws(
        mean=mean,
        covariance=covariance,
        response=response,
        whitening=whitening,
        spread=basis @ scale,
        pull=np.swapaxes(whitening @ response, 1, 2),
        problem=problem,
        own=own,
        shares=Shares.unknown(size),
        provenance=Provenance(
            question=question,
            adjacency="replaced",
            observes="log_odds" if problem.loss == "logistic" else "prediction",
            random=("data",),
            attacker_knows_label=True,
            method="asymptotic",
            source="docs/secret.md",
        ),
    )
    _note_shares(laws, moved, np.sqrt(t)[:, None] * X)
    return laws


def _spanned(response: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, V, r) orthonormal Q that spans the answers, and (n, r, r) a root of Q'SQ."""
    values, vectors = np.linalg.eigh(response)
    kept = int(np.max(np.count_nonzero(values > _SPANNED * values[:, -1:], axis=1)))
    basis = vectors[:, :, values.shape[1] - max(kept, 1) :]
    inside = np.swapaxes(basis, 1, 2) @ covariance @ basis
    floor = _FLOOR * np.einsum("irr->i", inside) + 1e-300
    inside = inside + floor[:, None, None] * np.eye(basis.shape[2])
    roots, axes = np.linalg.eigh(0.5 * (inside + np.swapaxes(inside, 1, 2)))
    roots = np.sqrt(np.maximum(roots, floor[:, None]))
    return np.asarray(basis), np.asarray(axes * roots[:, None, :])


def _note_shares(laws: SecretLaws, moved: FloatArray, pulls: FloatArray) -> None:
    """Who else moves the answers along the way from the own value's law to the nearest other's."""
    size = len(moved)
    rows = np.arange(size)
    shift = np.stack(
        [
            -laws._forces(np.full(size, value))[0][:, None] * laws.pull[:, value]
            for value in range(laws.values)
        ],
        axis=1,
    )
    way = shift - shift[rows, laws.own][:, None]
    length = np.linalg.norm(way, axis=2)
    length[rows, laws.own] = np.inf
    way = way[rows, np.argmin(length, axis=1)]
    # way'c as a combination of the records' pulls, through the answers
    coefficients = np.einsum("ir,irv,ivd->id", way, laws.whitening, moved, optimize=True)
    allowed = int(max(NEIGHBOUR_BUDGET / size, ROWS_PER_COLUMN * moved.shape[2]))
    doubtful = rows
    if allowed < size:
        doubtful = laws.shares.bound(_largest_at_most(coefficients, pulls))[:allowed]
    for start in range(0, len(doubtful), 256):
        part = doubtful[start : start + 256]
        block = coefficients[part] @ pulls.T
        block[np.arange(len(part)), part] = 0.0
        laws.shares.note(part, block)


def _largest_at_most(coefficients: FloatArray, pulls: FloatArray) -> FloatArray:
    """(n,): an upper bound of the largest share of one other record, without n x n products.

    A share (p_j'b)^2 / sum_k (p_k'b)^2 is at most p_j' (sum_k p_k p_k')^+ p_j, whatever b is.  The
    few records for which that is much are looked at one by one.
    """
    gram = pulls.T @ pulls
    inverse = np.asarray(np.linalg.pinv(gram, hermitian=True), dtype=np.float64)
    leverage = quadratic_forms(pulls, inverse)
    heavy = np.flatnonzero(leverage > HEAVY)
    own = np.einsum("id,id->i", coefficients, pulls) ** 2
    total = quadratic_forms(coefficients, gram) - own
    parts = (coefficients @ pulls[heavy].T) ** 2
    parts[heavy, np.arange(len(heavy))] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        looked = np.where(total > 0.0, parts.max(axis=1, initial=0.0) / total, np.inf)
    # the own part is not among the others', which makes each of theirs more
    others = np.delete(leverage, heavy).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(total > 0.0, others * (total + own) / total, np.inf)
    return np.asarray(np.maximum(looked, rest))


@dataclass(frozen=True, eq=False)
class SecretChances:
    """The chances of naming each record's secret, and how often it is named in fact.

    Attributes
    ----------
    prior, without, within
        (n,): by whoever has no model, a model that was not trained on the record, and this one; by
        their own beliefs, over training sets.
    named_prior, named_without, named_within
        (n,): the chance that the value named is the one that the record has.
    error
        Of ``within``: the root mean square over the records of the standard error by points drawn.
    best
        (n,): the likeliest value without the record in the model; ``other``, the likeliest of those
        that it has not.
    """

    prior: FloatArray
    without: FloatArray
    within: FloatArray
    named_prior: FloatArray
    named_without: FloatArray
    named_within: FloatArray
    error: float
    best: Codes
    other: Codes

    @property
    def leak(self) -> FloatArray:
        """What the record's own presence adds to the chance."""
        return np.asarray(self.within - self.without)


def secret_chances(laws: SecretLaws, prior: FloatArray, before_label: FloatArray) -> SecretChances:
    """Three chances of naming each record's value.

    Parameters
    ----------
    laws
        From :func:`secret_laws`.
    prior
        (n, V): the belief of whoever has no model.
    before_label
        (n, V): the belief b(v) before the label is looked at, for whoever has one.
    """
    size, values = laws.mean.shape
    rows = np.arange(size)
    belief = laws.updated(before_label)
    best = belief.argmax(axis=1)
    work = size * values**2 * (_STEPS + laws.pull.shape[2])
    points = int(np.clip(_WORK / work, LEAST_POINTS, MOST_POINTS)) // 2
    halves = [_gained(laws, belief, best, _normal_points(points, laws, half)) for half in (0, 1)]
    gained = 0.5 * (halves[0][0] + halves[1][0])
    error = 0.5 * np.abs(halves[0][0] - halves[1][0])
    others = belief.copy()
    others[rows, laws.own] = -1.0
    without = belief[rows, best]
    return SecretChances(
        prior=prior.max(axis=1),
        without=without,
        within=np.minimum(without + gained, 1.0),
        named_prior=named_by(prior, laws.own),
        named_without=named_by(belief, laws.own),
        named_within=0.5 * (halves[0][1] + halves[1][1]),
        error=float(np.sqrt(np.mean(error**2))),
        best=best,
        other=others.argmax(axis=1),
    )


def named_by(belief: FloatArray, own: Codes) -> FloatArray:
    """Whether the largest belief is in the own value; equal ones share it."""
    largest = belief >= belief.max(axis=1, keepdims=True) * (1.0 - 1e-12)
    return np.asarray(largest[np.arange(len(own)), own] / largest.sum(axis=1))


def _normal_points(count: int, laws: SecretLaws, half: int) -> FloatArray:
    """(count, r) points of N(0, I), evenly spread: a scrambled Sobol sequence."""
    from scipy.stats import qmc

    power = max(int(np.log2(max(count, 2))), 1)
    sobol = qmc.Sobol(laws.pull.shape[2], seed=Key(_SEED, (half,)).generator())
    return np.asarray(special.ndtri(np.clip(sobol.random_base2(power), 1e-12, 1.0 - 1e-12)))


def _gained(
    laws: SecretLaws, belief: FloatArray, best: Codes, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the answers add to the chance, and how often the own value is named, over the points."""
    size, values = belief.shape
    gained, named = np.zeros(size), np.zeros(size)
    block = max(1, int(2e6 / (len(points) * values * max(laws.pull.shape[2], 1))))
    for start in range(0, size, block):
        part = slice(start, min(start + block, size))
        rows = np.arange(len(belief[part]))
        with np.errstate(divide="ignore"):
            log_belief = np.log(belief[part])[:, None, :]
        for value in range(values):
            mine = laws.own[part] == value
            if not mine.any() and float(belief[part, value].max()) < _UNLIKELY:
                continue
            seen = _joined(laws, part, value, points)
            log_posterior = log_belief + _log_densities(laws, part, seen)
            posterior = special.softmax(log_posterior, axis=2)
            gain = posterior.max(axis=2) - posterior[rows, :, best[part]]
            gained[part] += belief[part, value] * gain.mean(axis=1)
            if mine.any():
                guess = log_posterior[mine].argmax(axis=2)
                named[part][mine] = (guess == value).mean(axis=1)
    return gained, named


def _joined(laws: SecretLaws, part: slice, value: int, points: FloatArray) -> FloatArray:
    """(k, M, r): what is seen of models trained on the records with one value."""
    problem = laws.problem
    loss, w = LOSSES[problem.loss], problem.sample_weights[part, None]
    y = problem.y[part, None]
    before = laws.mean[part, value, None] + laws.spread[part, value] @ points.T
    z = loss.prox(before, w * laws.response[part, value, value, None], y)
    force = w * loss.force(z, y)
    return np.asarray(points[None] - force[:, :, None] * laws.pull[part, None, value])


def _log_densities(laws: SecretLaws, part: slice, seen: FloatArray) -> FloatArray:
    """(k, M, V): the log density of what is seen, by every value, up to a constant."""
    problem = laws.problem
    loss, w = LOSSES[problem.loss], problem.sample_weights[part, None, None]
    y = problem.y[part, None, None]
    z = laws.mean[part, None] + seen @ np.swapaxes(laws.spread[part], 1, 2)
    force = w * loss.force(z, y)
    own = np.einsum("ivv->iv", laws.response[part])[:, None]
    jacobian = np.log1p(w * loss.curvature(z, y) * own)
    # |seen + force q|^2 in three products, so that no array of k M V r numbers is made
    along = seen @ np.swapaxes(laws.pull[part], 1, 2)
    size = np.einsum("imr,imr->im", seen, seen)[:, :, None]
    length = np.einsum("ivr,ivr->iv", laws.pull[part], laws.pull[part])[:, None]
    return np.asarray(jacobian - 0.5 * (size + force * (2.0 * along + force * length)))


def imputed(
    own: Codes,
    others: FloatArray,
    label: FloatArray | None,
    *,
    values: int,
    numbers: FloatArray | None = None,
) -> FloatArray:
    """(n, V): the belief in every value by the other columns, fitted without the record's fold.

    One penalty is taken for all folds, that of the least loss over all records.

    Parameters
    ----------
    own, values
        (n,): each record's value, of so many.
    others, label
        (n, d) and (n, k): what is known of a record; None leaves the label out.
    numbers
        (V,): where the values are numbers in order, one for each.  Ridge regression with normal
        residuals predicts them; else multinomial logistic regression predicts the values.
    """
    size = len(own)
    # a column of zeros stands in where nothing else is known
    X = np.column_stack([others, *([] if label is None else [label]), np.zeros(size)])
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    fold = Key(_SEED, (2,)).generator().permutation(size) % min(FOLDS, size)
    tried = [
        smoothed(_imputed(X, own, values, numbers, fold, penalty)) for penalty in IMPUTATION_PENALTY
    ]
    loss = [-float(np.mean(np.log(belief[np.arange(size), own]))) for belief in tried]
    return tried[int(np.argmin(loss))]


def _imputed(
    X: FloatArray,
    own: Codes,
    values: int,
    numbers: FloatArray | None,
    fold: npt.NDArray[np.intp],
    penalty: float,
) -> FloatArray:
    """The same with one penalty, of columns of variance one, for each record of the others."""
    from sklearn.linear_model import LogisticRegression, Ridge

    belief, guess = np.zeros((len(own), values)), np.zeros(len(own))
    for number in range(int(fold.max()) + 1):
        out = fold == number
        known = np.unique(own[~out])
        weight = penalty * float(np.count_nonzero(~out))
        if numbers is not None:
            guess[out] = Ridge(alpha=weight).fit(X[~out], numbers[own[~out]]).predict(X[out])
        elif len(known) == 1:
            belief[np.ix_(out, known)] = 1.0
        else:
            model = LogisticRegression(C=1.0 / weight, max_iter=1000).fit(X[~out], own[~out])
            belief[np.ix_(out, known)] = model.predict_proba(X[out])
    if numbers is None:
        return belief
    spread = max(float(np.mean((numbers[own] - guess) ** 2)), 1e-300)
    return np.asarray(special.softmax(-0.5 * (numbers - guess[:, None]) ** 2 / spread, axis=1))


def smoothed(belief: FloatArray) -> FloatArray:
    """The belief as if one more record were spread over all values: none is impossible."""
    size, values = belief.shape
    return np.asarray((size * belief + 1.0 / values) / (size + 1.0))


def beliefs(
    prior: SecretPrior, laws: SecretLaws, rows: FloatArray, numbers: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(n, V) twice: what is believed without a model, and before the label with one.

    ``"shares"``: the shares of the values in the column, both times.  ``"imputed"``: from the
    columns of the design that the secret does not touch, with the label and without it; ``rows``
    is as in :func:`secret_laws`, ``numbers`` as in :func:`imputed`.
    """
    own, values = laws.own, laws.values
    if prior == "shares":
        counts = np.bincount(own, minlength=values) / len(own)
        shares = smoothed(np.tile(counts, (len(own), 1)))
        return shares, shares
    others = rows[0][:, (rows.max(axis=0) == rows.min(axis=0)).all(axis=0)]
    label = laws.problem.y[:, None]
    return (
        imputed(own, others, label, values=values, numbers=numbers),
        imputed(own, others, None, values=values, numbers=numbers),
    )
