"""Where the perturbed LASSO ceases to have a solution, and where its algorithms cease to find it.

For one dataset and one noise the exact edge is a linear programme, which no label enters
(`lasso.stability_programme`).  Message passing gets a bisection of its own above that edge;
coordinate descent is run on both sides of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope.lasso import LassoSetting, message_passing, stability_programme
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.coordinate_descent import coordinate_descent
from papers.figure import OnStep
from papers.lasso_runs import LassoData, draw

# Bisection of message passing's limit, in multiples of a run's own edge.
LOW, HIGH, HALVINGS = 0.97, 2.2, 5
ITERATIONS = 400

# Coordinate descent beside the edge: it has converged when its conditions are met to this part of
# λ; without a minimiser they are missed by more than a tenth of λ however long it runs.
SIDES = (0.9, 1.1)
TOL, SWEEPS = 1e-3, 300
GRAMS = 2**28  # bytes of Gram matrices at a time


class BoundaryRuns(NamedTuple):
    """Edges of single runs.

    ``edges`` (runs,) is the linear programme's least λ/σ_η; ``amp`` (runs, noises) the least λ at
    which message passing converges; ``below`` and ``above`` (data models, runs) whether coordinate
    descent converges at 0.9 and at 1.1 of the run's edge.
    """

    edges: FloatArray
    amp: FloatArray
    below: NDArray[np.bool_]
    above: NDArray[np.bool_]


def run_boundary(
    data: LassoSetting,
    noises: FloatArray,
    *,
    coefficients: int,
    runs: int,
    key: Key,
    others: tuple[tuple[float, float], ...] = (),
    step: OnStep = lambda words: None,
) -> BoundaryRuns:
    """Edges of ``runs`` datasets of one data model; message passing at each of ``noises``.

    ``others`` are further (rho, sigma_xi) for the labels of the same features; without noises
    neither algorithm is run.
    """
    step("the linear programme for every run")
    drawn = [draw(data, coefficients, key.child(number)) for number in range(runs)]
    edges = np.array([stability_programme(one.X, one.noise).edge for one in drawn])
    if noises.size == 0:
        nothing = np.zeros((0, runs), dtype=bool)
        return BoundaryRuns(edges, np.zeros((runs, 0)), nothing, nothing)
    step("bisections of message passing")
    amp = np.array(
        [
            [_amp_limit(one, edge, float(noise)) for noise in noises]
            for one, edge in zip(drawn, edges, strict=True)
        ]
    )
    step("coordinate descent beside the edge")
    models = [drawn]
    for number, (rho, sigma_xi) in enumerate(others):
        again = data.change(rho=rho, sigma_xi=sigma_xi)
        models.append(
            [_relabelled(again, one, key.child(place, number)) for place, one in enumerate(drawn)]
        )
    middle = float(noises[noises.size // 2])
    problems = [one for model in models for one in model] * len(SIDES)
    ratios = np.concatenate([np.tile(side * edges, len(models)) for side in SIDES])
    below, above = _descends(problems, ratios, middle).reshape(len(SIDES), len(models), runs)
    return BoundaryRuns(edges, amp, below, above)


def _amp_limit(data: LassoData, edge: float, noise: float) -> float:
    low, high = LOW, HIGH
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        lam = middle * edge * noise
        found = message_passing(
            data.X, data.y, lam, noise * data.noise, tol=1e-6, max_iterations=ITERATIONS
        )
        low, high = (low, middle) if found.status[0] == "converged" else (middle, high)
    return float(np.sqrt(low * high) * edge * noise)


def _relabelled(setting: LassoSetting, data: LassoData, key: Key) -> LassoData:
    """The same features and noise, labels of another data model."""
    other = draw(setting, data.truth.size, key)
    generator = key.child(0).generator()
    labels = data.X @ other.truth + generator.normal(0.0, float(setting.sigma_xi), data.y.size)
    return LassoData(data.X, labels, other.truth, data.noise)


def _descends(problems: list[LassoData], ratios: FloatArray, noise: float) -> NDArray[np.bool_]:
    lam = noise * ratios
    p = problems[0].truth.size
    block = max(1, GRAMS // (8 * p * p))
    found = []
    for start in range(0, len(problems), block):
        some = problems[start : start + block]
        found.append(
            coordinate_descent(
                np.array([one.X for one in some]),
                np.array([one.y for one in some]),
                lam[start : start + block],
                noise * np.array([one.noise for one in some]),
                tol=TOL,
                sweeps=SWEEPS,
            ).violation
        )
    return np.asarray(np.concatenate(found) <= TOL * lam)
