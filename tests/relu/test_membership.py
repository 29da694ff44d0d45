"""The three attackers, on trained networks and at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leakscope import measures
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.relu import (
    BoundedMargin,
    KnownMargin,
    LeakedPoints,
    SphereData,
    TrainingPlan,
    scores_law_pair,
    train,
)
from leakscope.relu.membership import membership_attack


def test_members_are_told_from_fresh_points() -> None:
    x, y = SphereData(400).training_sets(4, 10, random_state=0)
    trained = train(x, y, TrainingPlan(width=60, steps=4000, flow_steps=1000), random_state=0)
    own = trained.margins * y
    new = trained.outputs(SphereData(400).sample(200, random_state=1))
    for knowledge in (
        KnownMargin(trained.margin),
        LeakedPoints(own[:, :1]),
        BoundedMargin(0.6 * float(trained.margin.min())),
    ):
        inside, outside = knowledge.attack(own), knowledge.attack(new)
        assert inside.member.all()
        assert outside.member.mean() < 0.02
        pair = scores_law_pair(inside.scores, outside.scores)
        assert pair.batch_shape == (4,)
        assert (measures.auc(pair).value > 0.999).all()


def test_a_fresh_point_above_the_margin_is_no_member() -> None:
    assert KnownMargin(1.0).attack([1.2, 2.0, -0.9, 0.4]).member.tolist() == [
        True,
        False,
        True,
        False,
    ]


def test_the_queries_may_be_the_leaked_points() -> None:
    found = LeakedPoints().attack([[0.1, -2.0, 1.99], [1.0, 0.2, 0.3]])
    assert found.margin is not None
    assert found.margin.tolist() == [2.0, 1.0]
    assert found.member.tolist() == [[False, True, True], [True, False, False]]


def test_bad_knowledge_is_refused() -> None:
    for make in (
        lambda: KnownMargin(0.0),
        lambda: KnownMargin(1.0, tolerance=2.0),
        lambda: BoundedMargin(-1.0),
        lambda: LeakedPoints([0.0]).attack([1.0]),
        lambda: KnownMargin(1.0).attack([np.nan]),
        lambda: membership_attack(lambda q: q, [np.inf], KnownMargin(1.0)),
    ):
        with pytest.raises(InputError):
            make()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("membership")
    x, y = SphereData(150).training_sets(1, 5, random_state=0)
    network = train(x, y, TrainingPlan(width=30, steps=3000, flow_steps=1000)).network(0)
    network = network.normalised(x[0], y[0])
    np.savez(folder / "network.npz", w=network.w, b=network.b, v=network.v)
    np.save(folder / "queries.npy", np.r_[x[0][:2], SphereData(150).sample(3, 7)])
    np.save(folder / "leaked.npy", x[0][4:])
    np.savez(folder / "data.npz", X=x[0], y=y[0])
    np.save(folder / "narrow.npy", np.ones((2, 3)))
    np.save(folder / "missing.npy", np.where(np.arange(300).reshape(2, 150) == 151, np.nan, 1.0))
    (folder / "text.npz").write_text("not a model", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--margin", "1.0"],
        ["--knowledge", "margin", "--margin", "1.0"],
        ["--knowledge", "leaked"],
        ["--leaked", "leaked.npy"],
        ["--knowledge", "bounded", "--lower-bound", "0.6"],
    ],
)
def test_command(
    options: list[str],
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    words = ["attack", "membership", "network.npz", "--queries", "queries.npy", *options]
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["member"] == [True, True, False, False, False]
    assert len(found["scores"]) == 5
    assert found["applicability"]["covered"] is None
    assert main([*words, "--data", "data.npz", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["applicability"]["covered"] is True
    assert found["applicability"]["kkt_residual"] < 0.05
    assert max(found["query_bounds"][2:]) < 1.0 <= min(found["query_bounds"][:2])
    assert main(words) == 0
    assert "2 of 5 queries are called members" in capsys.readouterr().out


def test_no_margin_is_assumed_where_none_is_known(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network 627 times as large has the same members; a margin of 1 called none of them one."""
    monkeypatch.chdir(files)
    with np.load("network.npz") as kept:
        np.savez("large.npz", w=627.0 * kept["w"], b=627.0 * kept["b"], v=kept["v"])
    words = ["attack", "membership", "large.npz", "--queries", "queries.npy"]
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["member"] == [True, True, False, False, False]
    assert min(found["scores"][:2]) > max(found["scores"][2:])
    assert found["margin"] == pytest.approx(627.0, rel=0.02)
    assert found["knowledge"] == "leaked"
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "(the largest answer of the queries)" in text
    assert "at least one of them was trained on" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["network.npz", "--queries", "narrow.npy"], "3 columns, but the network has 150 inputs"),
        (["network.npz", "--queries", "missing.npy"], "row 1"),
        (["text.npz", "--queries", "queries.npy"], "text.npz"),
        (["nothing.npz", "--queries", "queries.npy"], "There is no file nothing.npz"),
        (["network.npz", "--queries", "queries.npy", "--knowledge", "all"], "--knowledge"),
        (["network.npz", "--queries", "queries.npy", "--margin", "1", "--lower-bound", "1"], "--m"),
        (["network.npz", "--queries", "queries.npy", "--knowledge", "margin"], "needs the margin"),
        (["network.npz", "--queries", "queries.npy", "--data", "queries.npy"], "151"),
    ],
)
def test_command_refuses_in_a_sentence(
    words: list[str],
    sentence: str,
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    assert main(["attack", "membership", *words]) == 2
    assert sentence in capsys.readouterr().err
