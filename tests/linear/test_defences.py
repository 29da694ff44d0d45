"""Other ways to train: weights against the algorithms themselves, laws against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from leakscope._numerics.keys import Key
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal
from leakscope.linear import GaussianDesign, RecordNorms
from leakscope.linear.defences import (
    Defence,
    _bagged,
    _Spectrum,
    defended_moments,
    descent_rate,
)
from leakscope.linear.law_pair import population_provenance
from leakscope.measures.drawn_designs import scored_tpr
from leakscope.planning import linear_advantage
from leakscope.planning.linear_defences import compared_defences


def descend(
    features: np.ndarray, labels: np.ndarray, steps: int, rate: float, noise: np.ndarray
) -> np.ndarray:
    """Gradient descent, step by step; ``noise`` is (steps, p)."""
    beta = np.zeros(features.shape[1])
    for step in range(steps):
        gradient = features.T @ (features @ beta - labels) / labels.size
        beta = beta - rate * (gradient + noise[step])
    return beta


@pytest.mark.parametrize("p", [6, 10, 25])
def test_filters_are_what_the_algorithms_do(p: int) -> None:
    rng = np.random.default_rng(0)
    features, record = rng.standard_normal((10, p)), rng.standard_normal((p, 1))
    spectrum, rate, steps = _Spectrum.of(features, record), 0.15, 7
    quiet = np.zeros((steps, p))
    weights = [record[:, 0] @ descend(features, unit, steps, rate, quiet) for unit in np.eye(10)]
    np.testing.assert_allclose(spectrum.descended(steps, rate)[:, 0], weights, atol=1e-12)
    # the noise's covariance, step by step
    turn, spread = np.eye(p) - rate * features.T @ features / 10, np.zeros((p, p))
    for _ in range(steps):
        spread = turn @ spread @ turn + rate**2 * np.eye(p)
    assert spectrum.shaken(steps, rate)[0] == pytest.approx((record.T @ spread @ record).item())
    inverse = np.linalg.solve(features.T @ features + 2.0 * np.eye(p), features.T)
    np.testing.assert_allclose(spectrum.ridge(2.0)[:, 0], record[:, 0] @ inverse, atol=1e-12)
    bags = np.stack([rng.permutation(10)[:8] for _ in range(5)])
    fits = [
        np.mean([np.linalg.lstsq(features[bag], unit[bag], rcond=None)[0] for bag in bags], axis=0)
        for unit in np.eye(10)
    ]
    np.testing.assert_allclose(
        _bagged(features, record, 0.0, bags)[:, 0], np.array(fits) @ record[:, 0], atol=1e-10
    )


@pytest.mark.parametrize("ridge", [0.5, 2.0])
def test_ridge_is_the_exact_law(ridge: float) -> None:
    design = GaussianDesign(30, 45, 60, 1.0)
    (found,) = compared_defences(design, [Defence("ridge", ridge)], draws=150, key=Key(2))
    exact = GaussianDesign(30, 45, 60, 1.0, ridge=ridge)
    for who, value, stderr in (
        ("label_hidden", found.advantage, found.advantage_stderr),
        ("label_known", found.advantage_label_known, found.advantage_label_known_stderr),
    ):
        law = linear_advantage(exact, attacker=who, random_state=3)  # type: ignore[arg-type]
        # three records stand for all of them, and 150 designs
        assert value == pytest.approx(law.value, abs=4.0 * np.hypot(law.stderr, stderr) + 0.003)


@pytest.mark.parametrize(
    "defence",
    [
        Defence("early stopping", 4),
        Defence("noisy descent", 0.5, steps=4),
        Defence("bagging", 0.5, bags=3),
    ],
)
def test_laws_against_refits(defence: Defence) -> None:
    """Everything drawn anew, the algorithm run, the prediction at the record asked for."""
    design = GaussianDesign(12, 20, 24, 0.7)
    n, p, dim, sigma = 12, 20, 24, 0.7
    norms = RecordNorms.of(float(p), float(dim - p))
    ((member, fresh),) = defended_moments(design, [defence], norms, draws=300, key=Key(4))
    rng, trials, rate = np.random.default_rng(6), 3000, descent_rate(design)
    seen = np.empty((2, 2, trials))
    for trial in range(trials):
        for side in (0, 1):
            record = rng.standard_normal(dim)
            record[:p] *= np.sqrt(p) / np.linalg.norm(record[:p])
            record[p:] *= np.sqrt(dim - p) / np.linalg.norm(record[p:])
            beta = rng.standard_normal(dim) / np.sqrt(dim)
            rows = rng.standard_normal((n, dim))
            labels = rows @ beta + sigma * rng.standard_normal(n)
            own = record @ beta + sigma * rng.standard_normal()
            if side == 0:
                rows[3], labels[3] = record, own
            used = rows[:, :p]
            if defence.name == "bagging":
                picked = [rng.permutation(n)[: n // 2] for _ in range(defence.bags)]
                fit = np.mean(
                    [np.linalg.lstsq(used[b], labels[b], rcond=None)[0] for b in picked], axis=0
                )
            else:
                loud = defence.setting if defence.name == "noisy descent" else 0.0
                noise = loud * rng.standard_normal((4, p))
                fit = descend(used, labels, 4, rate, noise)
            predicted = record[:p] @ fit
            seen[side, :, trial] = predicted**2, predicted * own
    for side, law in enumerate((member, fresh)):
        for found, drawn in zip(seen[side], (law.prediction[0], law.covariance[0]), strict=True):
            stderr = np.hypot(found.std() / np.sqrt(trials), drawn.std() / np.sqrt(drawn.size))
            assert abs(found.mean() - drawn.mean()) < 4.0 * stderr


def test_a_defence_is_what_it_says() -> None:
    for name, setting, words in (
        ("bagging", 0.0, "share lies in"),
        ("early stopping", 1.5, "steps must be whole"),
        ("ridge", -1.0, "zero or above"),
    ):
        with pytest.raises(InputError, match=words):
            Defence(name, setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [1e-3, 0.01, 0.2])
def test_the_tpr_of_two_normals_in_closed_form(level: float) -> None:
    told = population_provenance("label_hidden", None, method="exact", source="", assumptions=())
    shifted = LawPair(Normal([1.0], [1.0]), Normal([0.0], [1.0]), told)
    found = scored_tpr(shifted, fpr=[level])[level]
    assert found == pytest.approx(stats.norm.sf(stats.norm.isf(level) - 1.0), rel=1e-3)
    wider = LawPair(Normal([0.0], [30.0]), Normal([0.0], [1.0]), told)
    found = scored_tpr(wider, fpr=[level])[level]
    assert found == pytest.approx(2.0 * stats.norm.sf(stats.norm.isf(level / 2) / 30.0), rel=1e-3)


def test_a_long_comparison_says_so_beforehand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise InputError("the plan begins.")

    monkeypatch.setattr("leakscope.planning.plan_linear", stopped)
    sizes = ["--n", "600", "--p", "1000", "--dim", "2000"]
    assert main(["plan", "linear", *sizes, "--defences"]) == 2
    assert "note: the defences take about" in capsys.readouterr().err
    assert main(["plan", "linear", "--n", "10", "--p", "20", "--dim", "40", "--defences"]) == 2
    assert "note" not in capsys.readouterr().err
