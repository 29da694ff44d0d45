"""The cavity against refits on random halves, exact formulas, and itself in other forms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from leakscope.measures import advantage
from leakscope.single_fit import blocks, cavity, score_moments
from leakscope.single_fit.blocks import LinearFit, Pass, Sums, Work
from leakscope.single_fit.cavity import solve_cavity
from leakscope.single_fit.laws import Score, scores_of
from leakscope.single_fit.optimum import newton, optimum
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.shares import Carriers

FloatArray = NDArray[np.floating]
REFITS = 1500


def problem_of(loss: str, *, records: int = 120, penalty: float = 2.0) -> ConvexProblem:
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.normal(size=(records, 5)), np.ones(records)])
    z = X @ np.linspace(-0.8, 0.8, 6)
    classes = 3 if loss == "softmax" else 1
    if loss == "square":
        y = z + generator.normal(size=records)
    elif loss == "logistic":
        y = (generator.random(records) < special.expit(z)).astype(float)
    elif loss == "poisson":
        y = generator.poisson(np.exp(0.5 * z)).astype(float)
    else:
        logits = np.column_stack([z, 0.5 * X[:, 0], 0.0 * z])
        y = (logits + generator.gumbel(size=(records, 3))).argmax(axis=1).astype(float)
    Lambda = np.append(np.full(5, penalty), 0.0)
    problem = ConvexProblem(y=y, loss=loss, X=X, penalty=Lambda, classes=classes)
    return replace(problem, coefficients=optimum(problem))


def groups_of(records: int) -> NDArray[np.intp]:
    """One to four records each, in no order."""
    generator = np.random.default_rng(1)
    owners = np.repeat(np.arange(records), generator.integers(1, 5, size=records))[:records]
    return np.unique(generator.permutation(owners), return_inverse=True)[1].astype(np.intp)


def refits(
    problem: ConvexProblem, fraction: float, groups: NDArray[np.intp] | None = None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Contrasts or predictions of fits on random parts, M x N x O, and who was in, M x N."""
    codes = np.arange(problem.records) if groups is None else groups
    generator = np.random.default_rng(2)
    answers, inside = [], []
    for _ in range(REFITS):
        part = (generator.random(codes.max() + 1) < fraction)[codes]
        fit = newton(replace(problem, weights=part * problem.sample_weights), settled=1e-7)
        answers.append(fit.predictions[0])
        inside.append(part)
    return np.array(answers), np.array(inside)


@pytest.mark.parametrize(
    ("loss", "fraction", "grouped"),
    [
        ("square", 0.5, False),
        ("square", 0.8, True),
        ("logistic", 0.5, False),
        ("logistic", 0.3, False),
        ("logistic", 0.5, True),
        ("poisson", 0.5, False),
        ("softmax", 0.5, False),
        ("softmax", 0.5, True),
    ],
)
def test_the_laws_are_those_of_refits(loss: str, fraction: float, grouped: bool) -> None:
    problem = problem_of(loss)
    groups = groups_of(problem.records) if grouped else None
    answers, inside = refits(problem, fraction, groups)
    found = solve_cavity(problem, fraction, groups)
    assert found.converged
    means = np.empty(answers.shape[1:])
    sds, shifts = means.copy(), means.copy()
    for stack, state in zip(found.stacks, found.states, strict=True):
        shape = (*stack.rows.shape, problem.outputs)
        means[stack.rows] = state.m.reshape(shape)
        sds[stack.rows] = np.sqrt(np.einsum("uii->ui", state.v)).reshape(shape)
        shifts[stack.rows] = -(state.kappa @ state.force[..., None]).reshape(shape)
    out = np.where(inside[..., None], np.nan, answers)
    true_in = np.nanmean(np.where(inside[..., None], answers, np.nan), axis=0)
    true, true_sd = np.nanmean(out, axis=0), np.nanstd(out, axis=0)
    away = (means - true) / true_sd
    count = (~inside).sum(axis=0)[:, None]
    # the records share the refits: their errors are one sum, so that the mean has a whole error
    assert abs(float(away.mean())) < 4.0 / np.sqrt(count.mean())
    # finite numbers of records leave about one over their number of a standard deviation
    assert float(np.sqrt(np.mean(away**2))) < 4.0 / np.sqrt(count.mean())
    assert abs(float(np.median(sds / true_sd)) - 1.0) < 4.0 / np.sqrt(2.0 * count.mean())
    slope = float(np.sum(shifts * (true_in - true)) / np.sum((true_in - true) ** 2))
    assert abs(slope - 1.0) < 0.06


def test_ridge_has_the_closed_form_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """c = f/(1 + (1 - f) kappa) and v by the sum over the others, from the matrices themselves."""
    monkeypatch.setattr(cavity, "TOLERANCE", 1e-11)
    problem, f = problem_of("square"), 0.3
    found = solve_cavity(problem, f)
    X, state = problem.X, found.states[0]
    assert X is not None
    c, kappa, v = (getattr(state, name)[:, 0, 0] for name in ("c", "kappa", "v"))
    H = (X.T * c) @ X + np.diag(problem.penalty_at(f))
    G = X @ np.linalg.solve(H, X.T)
    g = np.diagonal(G)
    np.testing.assert_allclose(c, f / (1.0 + (1.0 - f) * kappa), rtol=1e-9)
    np.testing.assert_allclose(kappa, g / (1.0 - c * g), rtol=1e-9)
    force = (state.m[:, 0] - problem.y) / (1.0 + kappa)
    slope = 1.0 / (1.0 + kappa)
    t = f * (1.0 - f) * (force**2 + slope**2 * v)
    others = G**2 * (t / (1.0 - c * g) ** 2)
    np.fill_diagonal(others, 0.0)
    np.testing.assert_allclose(v, others.sum(axis=1) / (1.0 - c * g) ** 2, rtol=1e-8)
    mean = state.m[:, 0] - f * kappa * force
    theta = np.linalg.solve(X.T @ X, X.T @ mean)
    balance = f * X.T @ force + problem.penalty_at(f) * theta
    np.testing.assert_allclose(balance, 0.0, atol=1e-7)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_function_space_is_feature_space(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(loss)
    assert problem.X is not None
    penalty = np.full(6, 2.0)
    features = replace(problem, penalty=penalty, coefficients=None)
    kernel = ConvexProblem(y=problem.y, loss=loss, kernel=problem.X @ problem.X.T / 2.0)
    one, other = (score_moments(each) for each in (features, kernel))
    np.testing.assert_allclose(one.sd_out, other.sd_out, rtol=1e-3)
    np.testing.assert_allclose(one.shift, other.shift, atol=1e-3 * np.abs(one.shift).max())
    np.testing.assert_allclose(one.shares.largest, other.shares.largest, atol=1e-3)


def over(problem: ConvexProblem, size: int, name: str, work: Work) -> Sums:
    """A pass in memory, so many records at a time."""
    assert problem.X is not None
    starts = range(0, problem.records, size)
    parts = [work(problem.X[s : s + size], problem.y[s : s + size], s) for s in starts]
    total = parts[0]
    for part in parts[1:]:
        total = blocks.added(total, part)
    return total


@pytest.mark.parametrize(("loss", "question"), [("logistic", "pool"), ("square", "population")])
def test_blocks_are_the_whole(loss: str, question: Any) -> None:
    problem = problem_of(loss, records=400)
    assert problem.penalty is not None
    assert problem.coefficients is not None
    fit = LinearFit(loss, problem.penalty, problem.coefficients)
    passes: Pass = partial(over, problem, 60)
    fraction = 0.5 if question == "pool" else 1.0
    shared = blocks.solve_by_passes(fit, fraction, passes, "cavity")
    heavy = blocks.heavy_records(shared.model, question, 50, passes, "loads")
    args = (shared, question, heavy)
    parts = [
        blocks.laws_of_block(*args, problem.X[s : s + 60], problem.y[s : s + 60], s)  # type: ignore[index]
        for s in range(0, 400, 60)
    ]
    found = np.concatenate([np.asarray(advantage(part.pair())) for part in parts])
    whole = score_moments(problem, fraction=fraction, fresh=question == "population")
    assert np.abs(found - np.asarray(advantage(whole.pair()))).max() < 1e-4


def test_shares_of_groups_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cavity, "TOLERANCE", 1e-9)
    problem, groups = problem_of("logistic"), groups_of(120)
    found = solve_cavity(problem, 0.5, groups)
    X = problem.X
    assert X is not None
    score = Score.of(120)
    gradients = [
        score.gradients(stack, state.m).reshape(state.m.shape)
        for stack, state in zip(found.stacks, found.states, strict=True)
    ]
    carriers = Carriers.of(found, gradients, fresh=False)
    G = X @ found.response.inverse @ X.T
    stack, reply = found.stacks[1], carriers.replies[1]
    rows, unit = stack.rows[0], int(stack.units[0])
    parts = np.zeros(found.units)
    for other, t in zip(found.stacks, carriers.pulls, strict=True):
        for place, cells in enumerate(other.rows):
            met = reply[0] @ G[np.ix_(rows, cells)]
            parts[other.units[place]] = met @ t[place] @ met
    parts[unit] = 0.0
    near = carriers.neighbours(np.array([unit]), 5)
    np.testing.assert_allclose(near.shares[0], np.sort(parts)[:-6:-1] / parts.sum(), rtol=1e-3)
    v = gradients[1][0] @ found.states[1].v[0] @ gradients[1][0]
    np.testing.assert_allclose(parts.sum(), v, rtol=1e-4)


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_refits_by_passes_are_fits_of_the_parts(loss: str) -> None:
    problem = problem_of(loss, records=400)
    assert problem.penalty is not None
    assert problem.coefficients is not None
    fit = LinearFit(loss, problem.penalty, problem.coefficients)
    passes: Pass = partial(over, problem, 60)
    refits = blocks.refits_by_passes(fit, 0.5, 6, passes, "refits", each=3)
    assert refits.number.tolist() == list(range(0, 400, 3))
    inside = blocks.drawn_parts(np.arange(400), 6, 0.5)
    assert abs(inside.mean() - 0.5) < 0.05
    for scores, part, seen in zip(refits.scores, inside, refits.inside, strict=True):
        np.testing.assert_array_equal(seen, part[::3])
        weights = np.where(part, problem.sample_weights, 0.0)
        theta = optimum(replace(problem, weights=weights))
        assert problem.X is not None
        np.testing.assert_allclose(scores, (problem.X @ theta)[::3], atol=0.02 * np.std(scores))


def test_all_rows_of_a_group_have_a_joint_law() -> None:
    problem, groups = problem_of("logistic"), groups_of(120)
    found = solve_cavity(problem, 0.5, groups)
    scores, classes = scores_of(found, Score.of(120), fresh=False)
    assert classes is None
    for rows, stack, state in zip(scores, found.stacks, found.states, strict=True):
        np.testing.assert_allclose(rows.mean_out, state.m, atol=1e-8)
        np.testing.assert_allclose(rows.cov_out, state.v, rtol=1e-4, atol=1e-7)
        assert rows.mean_in.shape == stack.rows.shape


def test_rounds_that_run_away_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Location-30 with C = 1,000: four warnings of NumPy's, and laws that are no numbers."""
    from leakscope.errors import InputError
    from leakscope.single_fit import laws

    problem = problem_of("logistic")
    monkeypatch.setattr(cavity, "_change", lambda old, new: np.nan)
    with pytest.raises(InputError, match="no spread"):
        laws.settled_cavity(problem, 0.5)
