"""Networks on the user's own records, against refits without each record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import leakscope
from leakscope import InputError, data, kernels, measures
from leakscope.cli import main
from leakscope.laws import LawPair, Normal
from leakscope.lood.separation import leaving_out
from leakscope.planning.network_plan import architecture
from leakscope.settings import AuditSettings
from leakscope.settings.plan import NetworkPlanSettings

NOISE = 0.2


def people(count: int = 25) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(count, 4))
    return pd.DataFrame(X, columns=list("abcd")).assign(y=X[:, 0] ** 2 + rng.normal(size=count))


def by_refits(K: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Every record's advantage at its own point, and the error of each label from the others."""
    n, advantages, errors = len(y), [], []
    for i in range(n):
        laws = []
        for kept in (np.arange(n), np.delete(np.arange(n), i)):
            inverse = np.linalg.inv(K[np.ix_(kept, kept)] + NOISE * np.eye(len(kept)))
            cross = K[i, kept]
            variance = K[i, i] - cross @ inverse @ cross
            laws.append((cross @ inverse @ y[kept], np.sqrt(variance)))
        pair = LawPair(Normal(*laws[0]), Normal(*laws[1]), leaving_out("a test", NOISE))
        advantages.append(float(measures.advantage(pair)))
        errors.append(y[i] - laws[1][0])
    return np.array(advantages), float(np.sqrt(np.mean(np.square(errors))) / np.std(y))


@pytest.mark.parametrize("equal", [True, False])
def test_every_network_is_that_of_refits(equal: bool) -> None:
    frame = people()
    how = NetworkPlanSettings(activations=("relu", "erf"), depths=(1, 3), equal_scale=equal)
    plan = leakscope.plan_network(
        data.from_frame(frame, target="y"), how, AuditSettings(noise_variance=NOISE)
    )
    assert [one.name for one in plan.networks] == [
        "relu, 1 layer", "relu, 3 layers", "erf, 1 layer", "erf, 3 layers",
        "relu, 3 layers, residual", "erf, 3 layers, residual",
    ]  # fmt: skip
    X, y = frame[list("abcd")].to_numpy(), frame["y"].to_numpy()
    X, y = ((values - values.mean(axis=0)) / values.std(axis=0) for values in (X, y))
    for one in plan.networks:
        K = architecture(one.form, one.activation, one.depth)(X)
        assert one.prior_variance == pytest.approx(np.mean(np.diagonal(K)))
        advantages, error = by_refits(K / one.prior_variance if equal else K, y)
        assert one.largest_advantage == pytest.approx(advantages.max(), rel=1e-7)
        assert one.median_advantage == pytest.approx(np.median(advantages), rel=1e-7)
        assert one.error == pytest.approx(error, rel=1e-8)
        assert one.unconfirmed == 0


def arccosine(K: np.ndarray) -> np.ndarray:
    """E[relu(u) relu(v)] for (u, v) normal with this covariance (Cho and Saul 2009)."""
    root = np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    angle = np.arccos(np.clip(K / root, -1.0, 1.0))
    return root * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2.0 * np.pi)


def test_a_residual_network_goes_around_its_hidden_layers() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    first = 2.0 * X @ X.T / 3
    around = first + 2.0 * arccosine(first)
    around = around + 2.0 * arccosine(around)
    expected = 2.0 * arccosine(around)
    np.testing.assert_allclose(architecture("residual", "relu", 3)(X), expected, rtol=1e-7)
    np.testing.assert_allclose(
        architecture("residual", "relu", 1)(X), kernels.nngp(1)(X), rtol=1e-12
    )


def test_of_pictures_there_are_convolutions() -> None:
    digits = data.read_example("digits", sample=20)
    how = NetworkPlanSettings(
        activations=("relu",), depths=(2,), forms=("plain", "convolution", "pooling"),
    )  # fmt: skip
    model = AuditSettings(scaling="none", noise_variance=0.1)
    plan = leakscope.plan_network(digits, how, model)
    assert [one.form for one in plan.networks] == ["plain", "convolution", "pooling"]
    # Pixels that are averaged tell least apart.
    assert plan.networks[2].median_advantage < plan.networks[0].median_advantage
    with pytest.raises(InputError, match="pooling is for pictures, and the records are none"):
        leakscope.plan_network(
            data.read_example("iris"), how.model_copy(update={"forms": ("pooling",)})
        )


def test_the_command_its_page_and_report(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    words = ["plan", "network", "people.csv", "--target", "y", "--activation", "relu"]
    words += ["--depths", "1,2", "--noise-variance", "0.2"]
    assert main([*words, "--html", "plan.html", "--json", "plan.json"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("Networks on people: 25 records, 4 features\n")
    assert "relu, 2 layers, residual" in page
    told = json.loads(Path("plan.json").read_text())
    assert len(told["networks"]) == 3
    assert "relu, 2 layers, residual" in Path("plan.html").read_text()
    assert main(["report", "plan.json", "--output", "again.html"]) == 0
    assert "relu, 2 layers, residual" in Path("again.html").read_text()
    for option, value, sentence in (
        ("--form", "recurrent", "there is no form 'recurrent'"),
        ("--form", "pooling", "pooling is for pictures"),
        ("--depths", "0", "greater than or equal to 1"),
        ("--activation", "step", "step"),
        ("--noise-variance", "0", "greater than"),
        ("--noise-variance", "leave_one_out", "--noise-variance must be a number"),
    ):
        assert main([*words, option, value]) == 2
        assert sentence in capsys.readouterr().err


def test_a_depth_that_takes_minutes_to_compile_is_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 32"):
        NetworkPlanSettings(depths=(1, 64))


def test_what_holds_for_every_network_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAX the sentence began with a network that could not be computed."""

    def missing(*given: object, **more: object) -> None:
        raise InputError("The kernel of a network needs JAX.")

    monkeypatch.setattr("leakscope.planning.network_plan.ProcessOnRecords", missing)
    with pytest.raises(InputError, match=r"^The kernel of a network needs JAX\.$"):
        leakscope.plan_network(data.read_example("wine"))
