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

With C classes an answer is C - 1 contrasts of the logits, F and z are vectors, K has blocks, and
the Jacobian is det(I + K h); one output is the case of one contrast.

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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws.distributions import MultivariateNormal
from leakscope.laws.pair import LawPair, Provenance
from leakscope.settings.audit import MODEL_DEFAULTS, SecretPrior
from leakscope.single_fit.cavity import solve_cavity
from leakscope.single_fit.problem import ConvexProblem, Question
from leakscope.single_fit.responses import DENSE, Features, gram, stacks_of
from leakscope.single_fit.shares import Shares
from leakscope.single_fit.units import Joined, Stack, State, normal_points, square_root

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
# Records whose neighbours are looked at together.
AT_ONCE = 256

# Parts of the records that the imputation leaves out in turn, and the penalties that it tries.
FOLDS = 5
IMPUTATION_PENALTY = (1.0, 0.1, 0.01, 0.001)


def _fallen(stack: Stack, before: FloatArray, K: FloatArray) -> Joined:
    """Where answers (B, S, O) fall when their record joins, K (B, O, O), and the force there."""
    start = stack.force(before.mean(axis=1, keepdims=True))[:, 0]
    if stack.quadratic or stack.size == 1:
        return stack.joined(before, K, start, start)
    return stack.joined_exactly(before, K, start)


def _points(stack: Stack) -> tuple[FloatArray, FloatArray]:
    """(S, O) points of a standard normal law, and their weights."""
    return normal_points(stack.size, 3 if stack.quadratic else NODES)


@dataclass(frozen=True, eq=False)
class SecretLaws:
    """What the attacker sees of n records, for V values of the secret, in white coordinates.

    Each value has O answers: one, or the contrasts of the logits of O + 1 classes.

    Attributes
    ----------
    mean, covariance
        (n, V, O) and (n, VO, VO): A m and S, of the answers without the record.
    response
        (n, VO, VO): K.
    whitening
        (n, r, VO): what takes the answers, less their mean, to c.
    spread, pull
        (n, V, O, r): s_v and q_v.
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

    @cached_property
    def stack(self) -> Stack:
        """The records as units that join one by one."""
        (stack,) = stacks_of(self.problem, None)
        return stack

    def block(self, value: Codes) -> FloatArray:
        """(n, O, O): K of each record's own row with a value."""
        size, values, outputs = self.mean.shape
        blocks = self.response.reshape(size, values, outputs, values, outputs)
        return np.asarray(blocks[np.arange(size), value, :, value])

    def _around(self, value: Codes) -> tuple[FloatArray, FloatArray]:
        """(n, S, O) answers at the points of their law, with a value, and (n, O, O) its root."""
        rows = np.arange(len(value))
        s = self.spread[rows, value]
        covariance = s @ np.swapaxes(s, 1, 2)
        floor = 1e-14 * np.einsum("ioo->i", covariance) + 1e-300
        root = np.linalg.cholesky(covariance + floor[:, None, None] * np.eye(s.shape[1]))
        points = _points(self.stack)[0]
        return self.mean[rows, value][:, None] + points @ np.swapaxes(root, 1, 2), root

    def _forces(self, value: Codes) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E[F], Cov[F] and Cov[c, F], (n, r, O), where each record joins with a value."""
        at, root = self._around(value)
        points, weights = _points(self.stack)
        force = _fallen(self.stack, at, self.block(value)).force
        first = np.einsum("iso,s->io", force, weights)
        away = force - first[:, None]
        variance = np.einsum("iso,isp,s->iop", away, away, weights, optimize=True)
        along = np.einsum("sq,iso,s->iqo", points, away, weights, optimize=True)
        s = self.spread[np.arange(len(value)), value]
        towards = np.linalg.solve(root, s)
        return first, variance, np.asarray(np.swapaxes(towards, 1, 2) @ along)

    def answers(self, value: Codes) -> tuple[FloatArray, FloatArray]:
        """Mean (n, V, O) and covariance (n, VO, VO) of the answers where records have a value."""
        law = self._white(value)
        size, values, outputs = self.mean.shape
        spread = self.spread.reshape(size, values * outputs, -1)
        moved = (spread @ law.mean[:, :, None]).reshape(self.mean.shape)
        return (
            np.asarray(self.mean + moved),
            np.asarray(spread @ law.covariance @ np.swapaxes(spread, 1, 2)),
        )

    def _white(self, value: Codes) -> MultivariateNormal:
        first, variance, along = self._forces(value)
        q = self.pull[np.arange(len(value)), value]
        crossed = along @ q
        covariance = (
            np.eye(q.shape[2])
            - crossed
            - np.swapaxes(crossed, 1, 2)
            + np.swapaxes(q, 1, 2) @ variance @ q
        )
        return MultivariateNormal(-np.einsum("io,ior->ir", first, q), covariance)

    def law_pair(self, other: Codes) -> LawPair:
        """The laws of all answers, by the record's own value and by another, for any measure.

        In coordinates in which the answers without the record are N(0, I).  They are exact for the
        square loss; else normal laws with the mean and the covariance of the answers.
        """
        return LawPair(self._white(self.own), self._white(other), self.provenance)

    def log_density(self, answers: FloatArray) -> FloatArray:
        """(n, M, V): of M answers about every record, (n, M, V, O), by each value.

        Up to a constant.  Added to the logarithm of a belief they are what the attacker goes by.
        """
        away = (answers - self.mean[:, None]).reshape(*answers.shape[:2], -1)
        return _log_densities(self, slice(None), away @ np.swapaxes(self.whitening, 1, 2))

    def label_likelihood(self) -> FloatArray:
        """(n, V): E[p(y | a_v)] over models that were not trained on the record, up to a factor.

        A quantity's noise is what models without a record leave of its own label.
        """
        y, rows = self.problem.y, np.arange(len(self.own))
        if self.stack.quadratic:
            noise = float(np.mean((y - self.mean[rows, self.own, 0]) ** 2))
            logs = -0.5 * (y[:, None] - self.mean[:, :, 0]) ** 2 / max(noise, 1e-300)
            return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
        weights = _points(self.stack)[1]
        alone = replace(self.stack, weights=np.ones_like(self.stack.weights))
        around = [self._around(np.full(len(y), value))[0] for value in range(self.values)]
        logs = np.stack([-alone.value(at) for at in around], axis=1)
        return np.asarray(np.exp(logs - logs.max(axis=(1, 2), keepdims=True)) @ weights)

    def updated(self, before_label: FloatArray) -> FloatArray:
        """(n, V): the belief with a model that was not trained on the record, from the one before.

        Such a model tells how labels go with the column, and nothing else of the record.
        """
        belief = before_label * self.label_likelihood()
        return np.asarray(belief / belief.sum(axis=1, keepdims=True))


def _mean_model(problem: ConvexProblem, fraction: float) -> State:
    """What the cavity says of every record."""
    assert problem.X is not None
    coefficients = problem.classes * problem.X.shape[1]
    if problem.loss == "softmax" and coefficients > DENSE:
        raise InputError(
            f"what {problem.name} gives away of a secret column is worked out for up to "
            f"{DENSE} coefficients, and it has {coefficients}; use fewer features or classes."
        )
    return solve_cavity(problem, fraction).states[0]


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
        The model with its records, and with a design.
    rows
        (V, n, d): the design of every record with each value.
    own
        (n,): the value that each record has.
    question, fraction
        What the training sets are, as in :func:`leakscope.fitted.laws_of`.
    """
    if problem.X is None:
        raise InputError(
            f"what {problem.name} gives away of a secret column is not known: it is worked out for "
            "models on the columns themselves (linear, ridge, logistic, Poisson)."
        )
    if question == "known_others":
        raise InputError(
            "An attacker who knows all other records can fit the model with each value in turn and "
            "see which it was; ask the pool or population question."
        )
    X, size, values = problem.X, problem.records, len(rows)
    outputs = problem.classes - 1 if problem.loss == "softmax" else 1
    answers, width = values * outputs, outputs * X.shape[1]
    require_memory(
        8 * size * answers * (3 * width + 6 * answers) + 4 * 8 * width**2,
        f"The answers about {size} records with {values} values each",
        "audit a part of them with --read sample, or allow a wider tolerance",
    )
    model = _mean_model(problem, fraction)
    c, force = model.c, fraction * model.force
    at_mean = Features.of(problem, fraction, stacks_of(problem, None), columns=True).respond([c])
    inverse = at_mean.inverse
    # one Newton step from the mean model's predictions to its coefficients, and one to refine it
    bent = [np.einsum("iop,ip->io", c, model.z)]
    theta = at_mean.solve(at_mean.route.pulled([bent[0] - force]))
    bent = [bent[0] - np.einsum("iop,ip->io", c, X @ theta)]
    penalty = problem.penalty_at(fraction)
    theta = theta + at_mean.solve(
        at_mean.route.pulled([bent[0] - force]) - penalty[:, None] * theta
    )
    # Hbar without the record's own curvature: Woodbury, with g = X_i'Hbar^{-1}X_i, O x O
    own_moved = _through(X[:, None], inverse, outputs)
    g = _at(own_moved, X[:, None])
    without = c @ np.linalg.inv(np.eye(outputs) - g @ c)
    A = np.swapaxes(rows, 0, 1)
    moved = _through(A, inverse, outputs)
    crossed = _at(moved, X[:, None])
    response = _at(moved, A) + crossed @ without @ np.swapaxes(crossed, 1, 2)
    moved = moved + crossed @ without @ own_moved
    own_part = _at(moved, X[:, None])
    mean = A @ theta + np.einsum("ixo,io->ix", own_part, force).reshape(size, values, outputs)
    # t' = (I - c g)^{-1} t (I - g c)^{-1}
    amplified = np.linalg.inv(np.eye(outputs) - c @ g)
    t = (
        amplified
        @ model.source(fraction, fresh=question == "population")
        @ np.swapaxes(amplified, 1, 2)
    )
    covariance = moved @ gram(X[:, None], t) @ np.swapaxes(moved, 1, 2)
    covariance -= own_part @ t @ np.swapaxes(own_part, 1, 2)
    basis, scale = _spanned(response, covariance)
    whitening = np.asarray(np.linalg.solve(scale, np.swapaxes(basis, 1, 2)), dtype=np.float64)
    laws = SecretLaws(
        mean=mean,
        covariance=covariance,
        response=response,
        whitening=whitening,
        spread=(basis @ scale).reshape(size, values, outputs, -1),
        pull=np.swapaxes(whitening @ response, 1, 2).reshape(size, values, outputs, -1),
        problem=problem,
        own=own,
        shares=Shares.unknown(size),
        provenance=Provenance(
            question=question,
            adjacency="replaced",
            observes={"logistic": "log_odds", "softmax": "probabilities"}.get(
                problem.loss, "prediction"
            ),  # type: ignore[arg-type]
            random=("data",),
            attacker_knows_label=True,
            method="asymptotic",
            source="docs/secret.md",
        ),
    )
    return replace(laws, shares=_shares(laws, moved, t))


def _through(rows: FloatArray, inverse: FloatArray, outputs: int) -> FloatArray:
    """(n, VO, Od): the rows of every output, (n, V, d), times Hbar^{-1}."""
    size, values, d = rows.shape
    sorted_by_column = np.swapaxes(inverse.reshape(outputs, d, -1), 0, 1).reshape(d, -1)
    return np.asarray((rows @ sorted_by_column).reshape(size, values * outputs, outputs * d))


def _at(moved: FloatArray, rows: FloatArray) -> FloatArray:
    """(n, x, VO): what moves of the coefficients, (n, x, Od), do at the rows of every output."""
    size, values, d = rows.shape
    each = moved.reshape(size, -1, d) @ np.swapaxes(rows, 1, 2)
    by_output = np.swapaxes(each.reshape(size, moved.shape[1], -1, values), 2, 3)
    return np.asarray(by_output.reshape(size, moved.shape[1], -1))


def _spanned(response: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, VO, r) orthonormal Q that spans the answers, and (n, r, r) a root of Q'SQ."""
    values, vectors = np.linalg.eigh(response)
    kept = int(np.max(np.count_nonzero(values > _SPANNED * values[:, -1:], axis=1)))
    basis = vectors[:, :, values.shape[1] - max(kept, 1) :]
    inside = np.swapaxes(basis, 1, 2) @ covariance @ basis
    floor = _FLOOR * np.einsum("irr->i", inside) + 1e-300
    inside = inside + floor[:, None, None] * np.eye(basis.shape[2])
    roots, axes = np.linalg.eigh(0.5 * (inside + np.swapaxes(inside, 1, 2)))
    roots = np.sqrt(np.maximum(roots, floor[:, None]))
    return np.asarray(basis), np.asarray(axes * roots[:, None, :])


def _shares(laws: SecretLaws, moved: FloatArray, t: FloatArray) -> Shares:
    """Who else moves the answers along the way from the own value's law to the nearest other's."""
    X = laws.problem.X
    assert X is not None
    size, outputs = len(moved), t.shape[1]
    rows = np.arange(size)
    forces = [laws._forces(np.full(size, value))[0] for value in range(laws.values)]
    shift = -np.einsum("vio,ivor->ivr", np.stack(forces), laws.pull)
    way = shift - shift[rows, laws.own][:, None]
    length = np.linalg.norm(way, axis=2)
    length[rows, laws.own] = np.inf
    way = way[rows, np.argmin(length, axis=1)]
    # way'c as a combination of the records' pulls, through the answers
    coefficients = np.einsum("ir,irx,ixd->id", way, laws.whitening, moved, optimize=True)
    # record j pulls along O rows, R_j' (x) x_j with t_j = R_j R_j'
    root = square_root(t)
    pulls = (np.swapaxes(root, 1, 2)[:, :, :, None] * X[:, None, None, :]).reshape(
        size * outputs, -1
    )
    found = np.empty((3, size))
    for start in range(0, size, AT_ONCE):
        part = rows[start : start + AT_ONCE]
        move = np.linalg.norm((coefficients[part] @ pulls.T).reshape(len(part), size, -1), axis=2)
        move[np.arange(len(part)), part] = 0.0
        share = move**2 / np.maximum(np.sum(move**2, axis=1, keepdims=True), 1e-300)
        some = Shares.none(len(part)).more(share.T)
        found[:, part] = some.largest, some.squares, some.heavy
    return Shares(*found)


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
    size, values, outputs = laws.mean.shape
    rows = np.arange(size)
    belief = laws.updated(before_label)
    best = belief.argmax(axis=1)
    work = size * values**2 * outputs**2 * (_STEPS + laws.pull.shape[3])
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
    sobol = qmc.Sobol(laws.pull.shape[3], seed=Key(_SEED, (half,)).generator())
    return np.asarray(special.ndtri(np.clip(sobol.random_base2(power), 1e-12, 1.0 - 1e-12)))


def _gained(
    laws: SecretLaws, belief: FloatArray, best: Codes, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the answers add to the chance, and how often the own value is named, over the points."""
    size, values = belief.shape
    gained, named = np.zeros(size), np.zeros(size)
    block = max(1, int(2e6 / (len(points) * values * laws.mean.shape[2] * laws.pull.shape[3])))
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
    K = laws.block(np.full(len(laws.mean), value))[part]
    before = laws.mean[part, None, value] + points @ np.swapaxes(laws.spread[part, value], 1, 2)
    force = _fallen(laws.stack.some(part), before, K).force
    return np.asarray(points[None] - force @ laws.pull[part, value])


def _log_densities(laws: SecretLaws, part: slice, seen: FloatArray) -> FloatArray:
    """(k, M, V): the log density of what is seen, by every value, up to a constant."""
    stack, spread, pull = laws.stack.some(part), laws.spread[part], laws.pull[part]
    size, values, outputs, width = pull.shape
    shape = (*seen.shape[:2], values, outputs)
    z = (seen @ np.swapaxes(spread.reshape(size, -1, width), 1, 2)).reshape(shape)
    z = (laws.mean[part, None] + z).reshape(size, -1, outputs)
    force = stack.force(z).reshape(shape)
    blocks = laws.response[part].reshape(size, values, outputs, values, outputs)
    own = np.einsum("ivovp->ivop", blocks)[:, None]
    bent = own @ stack.curvature(z).reshape(*shape, outputs)
    jacobian = np.linalg.slogdet(np.eye(outputs) + bent)[1]
    if outputs == 1:
        jacobian = np.log1p(bent[..., 0, 0])
    # |seen + force q|^2 in three products, so that no array of k M V r numbers is made
    along = (seen @ np.swapaxes(pull.reshape(size, -1, width), 1, 2)).reshape(shape)
    length = np.einsum("imr,imr->im", seen, seen)[:, :, None]
    gram = pull @ np.swapaxes(pull, 2, 3)
    pulled = np.einsum("imvo,ivop->imvp", force, gram, optimize=True)
    moved = np.einsum("imvo,imvo->imv", force, 2.0 * along + pulled)
    return np.asarray(jacobian - 0.5 * (length + moved))


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
    label = (laws.problem.y[:, None] == np.unique(laws.problem.y)).astype(np.float64)
    if laws.problem.loss not in ("logistic", "softmax"):
        label = laws.problem.y[:, None]
    return (
        imputed(own, others, label, values=values, numbers=numbers),
        imputed(own, others, None, values=values, numbers=numbers),
    )
