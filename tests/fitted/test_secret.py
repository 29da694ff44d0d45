"""A secret column: laws against refits, densities against one, chances against measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from leakscope import measures
from leakscope.fitted import secret
from leakscope.laws import LawPair, MultivariateNormal
from leakscope.single_fit.losses import contrasts
from leakscope.single_fit.problem import ConvexProblem

HALVES = 2000


def small_problem(loss: str, *, size: int = 150, seed: int = 0) -> tuple[ConvexProblem, Any, Any]:
    """Three numbers, a secret 0 or 1, an intercept; rows with either value; who has which."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 2, size)
    X = np.column_stack([rng.normal(size=(size, 3)), own, np.ones(size)])
    X[:, 0] += 0.8 * own
    z = X @ np.array([0.8, -0.5, 0.2, 0.9, -0.3])
    if loss == "square":
        y = z + rng.normal(size=size)
    elif loss == "logistic":
        y = (rng.random(size) < special.expit(z)).astype(float)
    elif loss == "poisson":
        y = rng.poisson(np.exp(0.5 * z)).astype(float)
    else:
        logits = np.column_stack([np.zeros(size), z, 0.5 * X[:, 1]])
        y = (logits + rng.gumbel(size=(size, 3))).argmax(axis=1).astype(float)
    penalty = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    rows = np.stack([X, X])
    rows[0, :, 3], rows[1, :, 3] = 0.0, 1.0
    classes = 3 if loss == "softmax" else 1
    problem = ConvexProblem(y=y, loss=loss, X=X, penalty=penalty, classes=classes)  # type: ignore[arg-type]
    return problem, rows, own


def refitted(problem: ConvexProblem, row: Any, label: float, inside: Any) -> Any:
    """Newton's method for many training sets at once, each with one more record; (M, d, C)."""
    assert problem.X is not None
    X, y = np.vstack([problem.X, row]), np.append(problem.y, label)
    take = np.column_stack([inside, np.ones(len(inside))])[:, :, None]
    classes, d = problem.classes, X.shape[1]
    target = np.eye(classes)[y.astype(int)] if classes > 1 else y[:, None]
    theta = np.zeros((len(take), d, classes))
    penalty = np.tile(problem.penalty_at(1.0), classes)
    # the intercepts of all classes are free but for a constant
    floor = penalty + 1e-6 * (classes > 1)
    for _ in range(15):
        z = X @ theta
        one = {"square": lambda z: z, "logistic": special.expit, "poisson": np.exp}
        mean = special.softmax(z, axis=2) if classes > 1 else one[problem.loss](z)
        same = np.ones_like(z) if problem.loss == "square" else mean
        h = same[..., None] * np.eye(classes)
        if problem.loss in ("logistic", "softmax"):
            h = h - mean[..., :, None] * mean[..., None, :]
        hessian = np.einsum("mncp,na,nb->mcapb", take[..., None] * h, X, X, optimize=True)
        hessian = hessian.reshape(len(take), classes * d, classes * d) + np.diag(floor)
        gradient = np.swapaxes(X.T @ (take * (mean - target)), 1, 2).reshape(len(take), -1)
        gradient += np.swapaxes(theta, 1, 2).reshape(len(take), -1) * penalty
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        theta = theta - np.swapaxes(step.reshape(len(take), classes, d), 1, 2)
    return theta


@pytest.mark.parametrize("loss", ["square", "logistic", "poisson", "softmax"])
def test_the_laws_are_those_of_refits_with_either_value(loss: str) -> None:
    # The laws are off by some one over the records: correlations of contrasts by 0.07 at 150.
    problem, rows, own = small_problem(loss, size=400 if loss == "softmax" else 150)
    found = secret.secret_laws(problem, rows, own)
    record = int(np.argmax(np.abs(problem.y - problem.y.mean())))
    rng = np.random.default_rng(1)
    inside = rng.random((HALVES, problem.records)) < 0.5
    inside[:, record] = False
    for value in (0, 1):
        theta = refitted(problem, rows[value, record], problem.y[record], inside)
        seen = rows[:, record] @ theta
        if loss == "softmax":
            seen = seen @ contrasts(3)
        seen = seen.reshape(HALVES, -1)
        mean, covariance = found.answers(np.full(problem.records, value))
        true_sd = seen.std(axis=0)
        assert (
            np.abs(seen.mean(axis=0) - mean[record].ravel()).max() < 4 * true_sd.max() / HALVES**0.5
        )
        ratio = np.sqrt(np.diagonal(covariance[record])) / true_sd
        # the laws themselves are good to some per cent where the loss is curved
        allowed = 4 / (2 * HALVES) ** 0.5 + (0.0 if loss == "square" else 0.04)
        assert np.abs(ratio - 1.0).max() < allowed
        true = np.corrcoef(seen.T)
        sd = np.sqrt(np.diagonal(covariance[record]))
        said = covariance[record] / sd / sd[:, None]
        assert np.all(np.abs(said - true) < 4 * (1 - true**2) / HALVES**0.5 + 0.01)


@pytest.mark.parametrize("loss", ["square", "logistic", "poisson", "softmax"])
def test_every_density_is_one(loss: str) -> None:
    # The mean of p_u / p_v over what is seen given v is one, whatever the two laws are.
    problem, rows, own = small_problem(loss)
    found = secret.secret_laws(problem, rows, own)
    points = np.random.default_rng(2).normal(size=(20_000, found.pull.shape[3]))
    part = slice(0, 20)
    seen = secret._joined(found, part, 0, points)
    logs = secret._log_densities(found, part, seen)
    ratio = np.exp(logs[:, :, 1] - logs[:, :, 0])
    error = ratio.std(axis=1) / len(points) ** 0.5
    assert np.all(np.abs(ratio.mean(axis=1) - 1.0) < 4.5 * error)
    assert float(error.max()) < 0.02


def test_the_chance_of_two_values_is_a_hockey_stick() -> None:
    # By Neyman and Pearson: with beliefs b >= c the best guess is right b + c delta(log(b/c)).
    problem, rows, own = small_problem("square")
    found = secret.secret_laws(problem, rows, own)
    prior, before = secret.beliefs("shares", found, rows)
    chances = secret.secret_chances(found, prior, before)
    belief = before * found.label_likelihood()
    belief /= belief.sum(axis=1, keepdims=True)
    leak = []
    for i in range(30):
        most = int(belief[i].argmax())
        laws = []
        for value in (1 - most, most):
            law = found._white(np.full(problem.records, value))
            laws.append(MultivariateNormal(law.mean[i], law.covariance[i]))
        ratio = float(np.log(belief[i, most] / belief[i, 1 - most]))
        delta = measures.delta_at_epsilon(LawPair(*laws), ratio, "member_to_nonmember")
        leak.append(belief[i, 1 - most] * float(delta))
    assert np.abs(chances.leak[:30] - leak).max() < 5e-4
    assert np.allclose(chances.without, belief.max(axis=1))
    assert chances.error < 5e-4
    assert chances.leak.max() > 0.01


def test_what_the_model_does_not_look_at_leaks_nothing() -> None:
    problem, _, own = small_problem("logistic")
    assert problem.X is not None
    rows = np.stack([problem.X] * 2)
    found = secret.secret_laws(problem, rows, own)
    chances = secret.secret_chances(found, *secret.beliefs("shares", found, rows))
    assert chances.leak.max() == 0.0
    assert measures.advantage(found.law_pair(1 - own)).max() < 1e-9
    assert np.allclose(chances.without, chances.prior)


def test_a_value_that_nobody_else_has_is_certain() -> None:
    rng = np.random.default_rng(3)
    size = 80
    own = np.zeros(size, dtype=np.intp)
    own[7] = 1
    X = np.column_stack([rng.normal(size=(size, 2)), own == 1, np.ones(size)])
    y = X[:, 0] + rng.normal(size=size)
    rows = np.stack([X, X])
    rows[0, :, 2], rows[1, :, 2] = 0.0, 1.0
    problem = ConvexProblem(y=y, loss="square", X=X, penalty=np.array([1.0, 1.0, 1.0, 0.0]))
    found = secret.secret_laws(problem, rows, own)
    # Nobody else moves its coefficient, so that the answers say whether this record did.
    assert measures.advantage(found.law_pair(1 - own))[7] > 0.999
    even = np.full((size, 2), 0.5)
    assert secret.secret_chances(found, even, even).within[7] > 0.999


def test_many_values_of_a_number_have_two_dimensions() -> None:
    problem, _, _ = small_problem("square")
    assert problem.X is not None
    values = np.linspace(-2.0, 2.0, 9)
    rows = np.stack([problem.X] * 9)
    rows[:, :, 0] = values[:, None]
    own = np.abs(problem.X[:, :1] - values).argmin(axis=1)
    found = secret.secret_laws(problem, rows, own)
    assert found.pull.shape == (problem.records, 9, 1, 2)
    prior, before = secret.beliefs("imputed", found, rows, values)
    assert np.allclose(prior.sum(axis=1), 1.0)
    assert np.allclose(before.sum(axis=1), 1.0)
    chances = secret.secret_chances(found, prior, before)
    assert np.all(chances.leak >= 0.0)
    assert chances.leak.max() < 1.0


def test_beliefs_do_not_look_at_the_record_itself() -> None:
    problem, rows, own = small_problem("logistic")
    found = secret.secret_laws(problem, rows, own)
    other = own.copy()
    other[5] = 1 - other[5]
    others, label = rows[0][:, :3], problem.y[:, None]
    one = secret.imputed(own, others, label, values=2)
    two = secret.imputed(other, others, label, values=2)
    assert np.allclose(one[5], two[5])
    assert not np.allclose(one, two)
    shares, before = secret.beliefs("shares", found, rows)
    assert np.allclose(shares, before)
    assert np.allclose(shares[0, 1], own.mean(), atol=0.01)
    # The imputation knows that the first column goes with the secret.
    assert np.mean(one.argmax(axis=1) == own) > max(own.mean(), 1 - own.mean())
