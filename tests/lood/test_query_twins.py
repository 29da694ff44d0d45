"""A query search for a record that has a twin: no number may speak of a neighbour at zero."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope import kernels, lood
from leakscope.cli import main
from leakscope.lood.query_search import nearness, recovered_records, twins


def records(seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(16, 2)).round(3)
    X[15] = X[4]
    return X, rng.normal(size=16)


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_the_next_distinct_neighbour_decides(name):
    kernel = {"rbf": kernels.rbf(1.0), "linear": kernels.linear(bias_variance=1.0)}[name]
    X, _ = records()
    group = np.array([4, 2])
    away = np.array([[0.0, 0.0], [1e-7, 0.0], [2.0, 2.0]])
    found = recovered_records(kernel, X, group, (X[4] + away)[:, None, :])
    assert found[:, 0].tolist() == [True, True, False]
    assert not found[:, 1].any()


def test_without_any_distinct_neighbour_only_the_record_itself_is_it():
    X = np.tile([1.0, 2.0], (3, 1))
    queries = np.array([[[1.0, 2.0]], [[1.0, 2.1]]])
    found = recovered_records(kernels.rbf(1.0), X, np.array([0]), queries)
    assert found[:, 0].tolist() == [True, False]


def test_the_relative_distance_of_a_twin_is_none():
    X, _ = records()
    near = nearness(X, np.array([4, 3]), np.stack([X[4], X[3]]) + 1e-3)
    assert np.isnan(near.relative_distance[0])
    apart = np.sort(np.linalg.norm(X - X[3], axis=1))[1]
    assert near.relative_distance[1] == pytest.approx(np.sqrt(2.0) * 1e-3 / apart, rel=1e-9)
    assert twins(X, 4).tolist() == [15]
    assert twins(X, 15).tolist() == [4]
    assert twins(X, 3).tolist() == []
    assert twins(np.zeros((3, 2)), 0).tolist() == [1, 2]


def test_searches_of_one_and_of_each_agree():
    X, y = records()
    options = {"kernel": kernels.rbf(1.0), "noise_variance": 0.1, "random_state": 0}
    one = lood.search_query(X, y, leave_out=[4], **options)
    each = lood.search_each(X, y, records=[4], starts=8, **options)[0]
    for found in (one, each):
        assert found.ratio > 1.0 - 1e-6
        assert found.starts_recovered > 0
        assert np.isnan(found.relative_distance[0])


def test_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = records()
    lines = [f"p{i},{a},{b},{t:.3f}" for i, ((a, b), t) in enumerate(zip(X, y, strict=True))]
    (tmp_path / "dup.csv").write_text("\n".join(["id,a,b,y", *lines]) + "\n")
    command = ["attack", "query", "dup.csv", "--target", "y", "--id", "id", "--run-dir", "run"]
    assert main([*command, "--record", "p4", "--json", "found.json"]) == 0
    document = json.loads((tmp_path / "found.json").read_text())
    assert document["queries"][0]["relative_distance"] is None
    assert document["ratio"] > 1.0 - 1e-6
    assert document["starts_recovered"] > 0
    recovered = [start["recovered"] for start in document["starts"]]
    assert recovered.count(["p4"]) == document["starts_recovered"]
    assert "the same features as p4" in document["verdict"]
    shown = " ".join(capsys.readouterr().out.split())
    assert "e+300" not in shown
    assert "the same features as p4" in shown


def test_the_help_of_membership_names_every_kind_of_file(capsys):
    assert main(["attack", "membership", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for ending in (".safetensors", ".npz", ".json"):
        assert ending in shown
