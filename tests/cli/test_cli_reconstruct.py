from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope import relu
from leakscope.cli import main
from leakscope.results import read_result

X, Y = [-2.0, -0.5, 0.3, 1.0, 1.8], [1, -1, 1, 1, -1]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = relu.max_margin_network(X, Y).network
    np.savez("net.npz", w=network.w, b=network.b, v=network.v)
    with open("data.csv", "w", encoding="utf-8") as stream:
        stream.write("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(X, Y, strict=True)))
    return tmp_path


def answer(capsys, *words):
    assert main(["attack", "reconstruct", *words, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("more", [[], ["--form", "moments"], ["--black-box"]])
def test_json_holds_the_candidates(capsys, more):
    found = answer(capsys, "net.npz", "--margin", "1.0", *more)
    np.testing.assert_allclose([one["x"] for one in found["candidates"]], X, atol=1e-8)
    assert [one["label"] for one in found["candidates"]] == Y
    assert all(one["theorem"] in ("3.2", "pieces") for one in found["candidates"])
    assert found["guarantee"] is None
    assert found["assumptions"][0]["holds"] is None
    assert (found["queries"] is None) == ("--black-box" not in more)


def test_the_training_set_gives_a_guarantee(capsys):
    found = answer(capsys, "net.npz", "--margin", "1.0", "--data", "data.csv")
    assert found["guarantee"] == found["precision"] == found["recall"] == 1.0
    assert found["assumptions"][0]["holds"] is True
    found = answer(capsys, "net.npz", "--margin", "0.9", "--data", "data.csv")
    assert found["guarantee"] is None
    assert found["assumptions"][0]["holds"] is False


def test_recall_is_over_all_records(capsys, here):
    """A record off the margin is one that was not found."""
    with (here / "data.csv").open("a") as stream:
        stream.write("-9.0,1\n")
    words = ["net.npz", "--margin", "1.0", "--data", "data.csv"]
    found = answer(capsys, *words)
    assert len(found["candidates"]) == 5
    assert found["recall"] == pytest.approx(5 / 6)
    assert found["margin_recall"] == found["precision"] == 1.0
    assert main(["attack", "reconstruct", *words]) == 0
    assert "recall 0.833 (1.000 of those on the margin)" in capsys.readouterr().out


def test_the_margin_is_found_where_it_is_left_out(capsys):
    found = answer(capsys, "net.npz")
    assert found["margin"] == pytest.approx(1.0, abs=1e-9)
    assert found["margin_known"] is False


def test_a_page_for_people_and_a_file(capsys):
    assert main(["attack", "reconstruct", "net.npz", "--margin", "1", "--json", "out.json"]) == 0
    text = capsys.readouterr().out
    assert "5 of 5 candidates are certified" in text
    assert read_result("out.json").kind == "attack_reconstruct"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.npz"], "There is no file nothing.npz"),
        (["data.csv"], "networks are read from"),
        (["net.npz", "--margin", "-1"], "margin must be a positive"),
        (["net.npz", "--form", "all"], "--form must be one of"),
        (["net.npz", "--black-box"], "--black-box needs --margin"),
        (["net.npz", "--tolerance", "2"], "--tolerance must be between"),
        (["net.npz", "--data", "wide.csv"], "has 3 columns"),
        (["net.npz", "--data", "labels.csv"], "labels must be -1 or 1"),
        (["net.npz", "--data", "text.csv"], "does not hold numbers"),
        (["nan.npz"], r"b[0] is nan"),
        (["wide.npz"], "has 2 inputs"),
        (["broken.npz"], "not an .npz archive"),
    ],
)
def test_bad_input_is_a_sentence_and_status_2(capsys, here, words, sentence):
    np.savez("nan.npz", w=[[1.0]], b=[np.nan], v=[1.0])
    np.savez("wide.npz", w=[[1.0, 2.0]], b=[0.0], v=[1.0])
    (here / "broken.npz").write_text("no archive")
    (here / "wide.csv").write_text("x,z,y\n1,2,1\n")
    (here / "labels.csv").write_text("x,y\n1,2\n")
    (here / "text.csv").write_text("x,y\n1,one\n")
    assert main(["attack", "reconstruct", *words]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.out == ""
