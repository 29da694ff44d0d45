"""``attack network``: Theorem C.1's setting, where a network is right and leaks at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import leakscope
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.relu.near_orthogonality import learnable_conditions


def two_gaussians(
    n: int, d: int, squared: float, seed: int, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Labels by a coin, records from N(y mu, spread^2 I) with |mu|^2 = spread^2 squared."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    x = rng.standard_normal((n, d))
    x[:, 0] += y * np.sqrt(squared)
    return spread * x, y


def test_conditions_are_those_of_the_law() -> None:
    """Against |mu|^2 = 400 of the law itself, whatever the unit of the features."""
    for spread in (1.0, 3.0):
        values = [
            learnable_conditions(*two_gaussians(40, 900, 400.0, seed, spread), width=50)
            for seed in range(12)
        ]
        squared = np.array([one.squared_means for one in values]).ravel()
        error = squared.std(ddof=1) / np.sqrt(len(squared))
        assert abs(squared.mean() - 400.0) < 4.0 * error
        assert values[0].mean == pytest.approx(min(values[0].squared_means) / (40**0.51 * 30.0))
        assert values[0].dimension == pytest.approx(900 / (1600 * max(values[0].squared_means)))
        assert values[0].width == pytest.approx(50 / 40**0.02)
        assert not values[0].hold


def test_a_network_that_generalises_leaks_too() -> None:
    found, blind = (
        leakscope.attack_network(
            two_gaussians(16, 800, squared, 1),
            held_out=two_gaussians(200, 800, squared, 2),
            width=50,
            steps=3000,
        )
        for squared in (60.0, 0.0)
    )
    assert found.accuracy is not None
    assert blind.accuracy is not None
    assert found.accuracy > 0.97
    assert abs(blind.accuracy - 0.5) < 4 * 0.5 / np.sqrt(200)
    for one in (found, blind):
        assert one.on_margin == 1.0
        assert one.auc is not None
        assert one.auc > 0.99
        assert one.applicability.covered


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, seed, n in (("trained", 1, 6), ("others", 2, 10)):
        x, y = two_gaussians(n, 150, 20.0, seed)
        table = np.column_stack([x, y])
        header = ",".join([f"x{i}" for i in range(150)] + ["label"])
        np.savetxt(f"{name}.csv", table, delimiter=",", header=header, comments="")
    return tmp_path


def test_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["attack", "network", "trained.csv", "--width", "30", "--steps", "1500"]
    assert main([*words, "--held-out", "others.csv", "--save", "net.npz", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "attack_network"
    assert (found["records"], found["features"], found["held_out"]) == (6, 150, 10)
    # The network that was saved is the one that was measured.
    asked = np.loadtxt("trained.csv", delimiter=",", skiprows=1)[:, :-1]
    np.save("queries.npy", asked)
    words_again = ["attack", "membership", "net.npz", "--queries", "queries.npy"]
    assert main([*words_again, "--data", "trained.csv", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["margin"] == pytest.approx(found["margin"])
    assert all(again["member"])
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "records proven to lie on the margin" in text
    assert "accuracy" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.csv"], "There is no file nothing.csv"),
        (["trained.csv", "--held-out", "narrow.csv"], "has 3 columns"),
        (["narrow.csv"], "labels must be -1 or 1"),
        (["alike.csv"], "both labels"),
        (["trained.csv", "--save", "net.txt"], "must be an .npz file"),
        (["trained.csv", "--save", "nowhere/net.npz"], "There is no folder nowhere"),
    ],
)
def test_refusals(
    files: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "narrow.csv").write_text("a,b,label\n1,2,3\n")
    (files / "alike.csv").write_text("a,b,label\n1,2,1\n2,1,1\n")
    assert main(["attack", "network", *words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""


def test_a_label_with_one_record_is_refused() -> None:
    with pytest.raises(InputError, match="two records of each label"):
        leakscope.attack_network(([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 1, -1]))
