"""Linear heads: which problem they solve, and how far from its optimum they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge

import leakscope
from leakscope import fitted
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.fitted.heads import described_by


def embeddings(classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (part[::3] for part in load_digits(n_class=classes, return_X_y=True))
    layer = np.random.default_rng(0).normal(size=(64, 8)) / 4
    return np.tanh(images / 16 @ layer), labels


def head_of(model: Any) -> dict[str, np.ndarray]:
    return {"weight": np.atleast_2d(model.coef_), "bias": np.ravel(model.intercept_)}


def same_laws(first: fitted.FittedLaws, second: fitted.FittedLaws) -> None:
    for name in ("member_mean", "member_sd", "nonmember_mean", "nonmember_sd"):
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_a_head_at_the_optimum_has_the_laws_of_that_estimator(classes: int) -> None:
    E, y = embeddings(classes)
    estimator = LogisticRegression(C=0.5, tol=1e-11, max_iter=10_000).fit(E, y)
    # scikit-learn does not penalise the bias, and its penalty belongs to the sum.
    model = described_by(head_of(estimator), E, y, weight_decay=1 / (0.5 * len(y)))
    assert "not of the bias" in model.name
    assert model.away is not None
    assert float(np.max(np.abs(model.away.scores))) < 1e-5
    same_laws(fitted.laws_of(_summed(model)), fitted.laws_of(estimator, E, y))


def _summed(model: Any) -> Any:
    """The same with the penalty of the sum: what scikit-learn's shadow models have."""
    from dataclasses import replace

    problem = model.problems[0]
    penalty = problem.penalty_at(1.0)
    return replace(
        model, away=None, problems=(replace(problem, penalty=penalty, penalty_per_record=False),)
    )


def test_a_head_of_squares_counts_pytorchs_decay_twice() -> None:
    E, _ = embeddings(10)
    target = E @ np.arange(8.0) + np.random.default_rng(1).normal(size=len(E))
    estimator = Ridge(alpha=3.0).fit(E, target)
    model = described_by(head_of(estimator), E, target, weight_decay=2 * 3.0 / len(E))
    same_laws(fitted.laws_of(_summed(model)), fitted.laws_of(estimator, E, target))


def test_a_decay_that_is_not_given_is_found() -> None:
    E, y = embeddings()
    estimator = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(E, y)
    model = described_by(head_of(estimator), E, y)
    assert model.name.endswith("found from its coefficients")
    penalty = model.problems[0].penalty_at(1.0)
    np.testing.assert_allclose(penalty, [10.0] * 8 + [0.0], rtol=1e-4)


def trained(E: np.ndarray, y: np.ndarray, epochs: int, decay: float) -> Any:
    import torch

    torch.manual_seed(0)
    head = torch.nn.Linear(E.shape[1], len(np.unique(y)))
    optimiser = torch.optim.Adam(head.parameters(), lr=0.02, weight_decay=decay)
    inputs, labels = torch.tensor(E, dtype=torch.float32), torch.tensor(y)
    for _ in range(epochs):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(head(inputs), labels).backward()
        optimiser.step()
    return head


def test_a_head_by_adam_is_answered_and_its_distance_named() -> None:
    pytest.importorskip("torch")
    E, y = embeddings()
    with pytest.warns(UserWarning, match="not confirmed"):
        early = leakscope.audit(E, y, model=trained(E, y, 10, 0.05), weight_decay=0.05)
    late = leakscope.audit(E, y, model=trained(E, y, 600, 0.05), weight_decay=0.05)
    held = [
        next(one for one in found.assumptions if "is the optimum" in one.statement)
        for found in (early, late)
    ]
    assert [one.holds for one in held] == [False, True]
    assert early.unconfirmed == len(y)
    assert late.unconfirmed < len(y) / 2
    # The laws are those of the optimum, wherever the head is.
    np.testing.assert_allclose(early.advantage, late.advantage, rtol=1e-3, atol=1e-5)


def test_the_distance_is_that_to_the_least_objective() -> None:
    pytest.importorskip("torch")
    E, y = embeddings()
    head, decay = trained(E, y, 30, 0.05), 0.05
    model = described_by(head, E, y, weight_decay=decay)

    def scores(flat: np.ndarray) -> np.ndarray:
        theta = flat.reshape(9, 3)
        return E @ theta[:-1] + theta[-1]

    def objective(flat: np.ndarray) -> float:
        z = scores(flat)
        loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
        return float(loss.mean() + 0.5 * decay * np.sum(flat**2))

    best = optimize.minimize(objective, np.zeros(27), method="BFGS", options={"gtol": 1e-7}).x

    def odds(z: np.ndarray) -> np.ndarray:
        chance = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))[np.arange(len(y)), y]
        return np.log(chance / (1 - chance))

    weight, bias = (part.detach().numpy().astype(float) for part in (head.weight, head.bias))
    away = odds(E @ weight.T + bias) - odds(scores(best))
    assert model.away is not None
    np.testing.assert_allclose(model.away.scores, away, atol=1e-4)


def test_a_head_of_many_coefficients() -> None:
    """Above the limit of a dense Hessian the optimum is found without one."""
    rng = np.random.default_rng(3)
    E, y = rng.normal(size=(120, 260)), rng.integers(0, 10, 120)
    estimator = LogisticRegression(C=0.01, tol=1e-9, max_iter=10_000).fit(E, y)
    model = described_by(head_of(estimator), E, y, weight_decay=100 / len(y))
    assert model.away is not None
    assert float(np.max(np.abs(model.away.scores))) < 1e-4


def test_a_safetensors_file_on_the_command_line(tmp_path, monkeypatch, capsys) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    monkeypatch.chdir(tmp_path)
    E, y = embeddings()
    estimator = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(E, y)
    arrays = {f"head.{name}": np.ascontiguousarray(a) for name, a in head_of(estimator).items()}
    safetensors.save_file(arrays, "head.safetensors")
    np.savez("e.npz", X=E, y=y)
    decay = str(1 / (0.1 * len(y)))
    told = ["audit", "e.npz", "--model", "head.safetensors", "--set", f"weight_decay={decay}"]
    assert main([*told, "--run-dir", "run", "--json", "a.json"]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    python = leakscope.audit(E, y, model=head_of(estimator), weight_decay=float(decay))
    advantage = {row["record_id"]: row["advantage"] for row in found["records"]}
    np.testing.assert_allclose(
        [advantage[row] for row in range(len(y))], python.advantage, rtol=1e-9
    )
    assert main(["verify", "run", "--models", "40", "--json", "v.json"]) in (0, 3)
    assert main(["audit", "e.npz", "--model", "ridge", "--set", "weight_decay=1"]) == 2
    assert "weight_decay" in capsys.readouterr().err
    safetensors.save_file({**arrays, "body.weight": E}, "two.safetensors")
    assert main(["audit", "e.npz", "--model", "two.safetensors"]) == 2
    assert "one weight and one bias" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ({"weight": np.ones((3, 4)), "bias": np.ones(3)}, "takes 4 features, but X has 8"),
        ({"weight": np.ones((3, 8)), "bias": np.ones(2)}, "one bias for each"),
        ({"weight": np.full((3, 8), np.nan), "bias": np.ones(3)}, "not a finite number"),
        ({"weight": np.ones((2, 8)), "bias": np.ones(2)}, "2 outputs, and the labels are 3"),
        ({"kernel": np.ones((2, 8))}, "it holds kernel"),
    ],
)
def test_what_is_wrong_with_a_head_is_one_sentence(head: Any, words: str) -> None:
    E, y = embeddings()
    with pytest.raises(InputError, match=words):
        leakscope.audit(E, y, model=head)
