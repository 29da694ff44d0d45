"""What queries of the user's own give away about each record, against refits without it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import InputError, data, kernels, lood, measures
from leakscope.cli import main
from leakscope.laws import LawPair, Normal
from leakscope.settings import AuditSettings

RBF = AuditSettings(sensitivity=False, kernel="rbf", length_scale=1.5, noise_variance=0.1)


def people(count: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 60, count),
            "member": rng.uniform(size=count) < 0.5,
            "region": rng.choice(["north", "south", "west"], count),
            "cost": rng.normal(100.0, 30.0, count),
        }
    )


def asked(count: int = 4) -> pd.DataFrame:
    # Other columns, another order, no target.
    return people(60)[["region", "age", "member"]].iloc[-count:].assign(note="n")


def refitted(frame: pd.DataFrame, queries: pd.DataFrame, leave: int | None) -> tuple:
    """Mean and covariance at the queries, in the file's units, by a plain solve."""
    both = pd.concat([frame, queries], ignore_index=True)
    ages = (both["age"] - frame["age"].mean()) / frame["age"].std(ddof=0)
    member = both["member"].astype(float)
    member = (member - member[: len(frame)].mean()) / member[: len(frame)].std(ddof=0)
    ones = pd.get_dummies(both["region"]).astype(float)
    X = np.column_stack([ages, member, ones])
    deviation = frame["cost"].std(ddof=0)
    y = (frame["cost"].to_numpy() - frame["cost"].mean()) / deviation
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2) / 1.5**2)
    n = len(frame)
    kept = np.array([i for i in range(n) if i != leave])
    inverse = np.linalg.inv(K[np.ix_(kept, kept)] + 0.1 * np.eye(len(kept)))
    cross = K[np.ix_(kept, range(n, len(X)))]
    mean = cross.T @ inverse @ y[kept] * deviation
    return mean, (K[n:, n:] - cross.T @ inverse @ cross) * deviation**2


def kl(one: tuple, other: tuple) -> float:
    (mean, cov), (to, spread) = one, other
    mean, to, cov, spread = map(np.atleast_1d, (mean, to, cov, spread))
    inverse = np.linalg.inv(np.atleast_2d(spread))
    cov = np.atleast_2d(cov)
    sign = np.linalg.slogdet(np.atleast_2d(spread))[1] - np.linalg.slogdet(cov)[1]
    return 0.5 * float(
        np.trace(inverse @ cov) + (to - mean) @ inverse @ (to - mean) - len(mean) + sign
    )


def test_every_number_is_that_of_refits():
    frame, queries = people(), asked()
    found = leakscope.attack_influence(data.from_frame(frame, target="cost"), queries, RBF)
    with_all = refitted(frame, queries, None)
    tables = {}
    for one in found.records:
        i = int(one.record_id)
        without = refitted(frame, queries, i)
        each = [
            kl((without[0][j], without[1][j, j]), (with_all[0][j], with_all[1][j, j]))
            for j in range(4)
        ]
        tables[i] = (each, with_all[0] - without[0])
        assert one.query == int(np.argmax(each))
        assert one.kl == pytest.approx(max(each), rel=1e-7)
        assert one.shift == pytest.approx((with_all[0] - without[0])[one.query], rel=1e-7)
        assert one.kl_together == pytest.approx(kl(without, with_all), rel=1e-7)
        j = one.query
        pair = LawPair(
            Normal(with_all[0][j], np.sqrt(with_all[1][j, j])),
            Normal(without[0][j], np.sqrt(without[1][j, j])),
            found_provenance(),
        )
        assert one.advantage == pytest.approx(float(measures.advantage(pair)), rel=1e-6)
        assert one.trusted
    for query in found.queries:
        j = query.query
        most = max(tables, key=lambda i: tables[i][0][j])
        assert query.record_id == most
        assert query.shift == pytest.approx(tables[most][1][j], rel=1e-7)
    values = [one.kl_together for one in found.records]
    assert values == sorted(values, reverse=True)


def found_provenance():
    from leakscope.lood.separation import leaving_out

    return leaving_out("a test", 0.1)


def test_the_advantage_of_all_queries_is_that_of_draws():
    """Answers of refits, told apart by their own likelihood ratio, within 4 standard errors."""
    frame, queries = people(), asked()
    found = leakscope.attack_influence(data.from_frame(frame, target="cost"), queries, RBF)
    first = found.records[0]
    laws = refitted(frame, queries, None), refitted(frame, queries, int(first.record_id))
    rng, count = np.random.default_rng(0), 40_000
    shares = []
    for mean, cov in laws:
        drawn = rng.multivariate_normal(mean, cov, size=count)
        scores = []
        for to, spread in laws:
            centred = drawn - to
            quadratic = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(spread), centred)
            scores.append(-0.5 * (quadratic + np.linalg.slogdet(spread)[1]))
        shares.append(float(np.mean(scores[0] > scores[1])))
    error = np.sqrt(sum(s * (1 - s) for s in shares) / count)
    assert abs(shares[0] - shares[1] - first.advantage_together) < 4 * error


def test_classes_and_arrays():
    iris = data.read_example("iris")
    found = leakscope.attack_influence(iris, iris.features[[41, 100, 3]])
    # What a query says may owe most to a record other than the one asked about.
    assert [one.record_id for one in found.queries] == [41, 100, 24]
    by_id = {one.record_id: one for one in found.records}
    # Asking about a record gives away what an audit says.
    prepared = data.prepare(iris)
    process = lood.Process(prepared.features, prepared.target, kernels.rbf(), 0.01)
    advantage = process.separation().measured(lambda pair: measures.advantage(pair))
    for name in (41, 100, 3):
        assert by_id[name].advantage_together == pytest.approx(advantage[name], rel=1e-6)
        assert by_id[name].kl_together == pytest.approx(by_id[name].kl_own, rel=1e-12)


def test_the_command_and_its_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    asked().to_csv("asked.csv", index=False)
    words = ["attack", "influence", "people.csv", "--target", "cost", "--queries", "asked.csv"]
    words += ["--length-scale", "1.5", "--noise-variance", "0.1"]
    assert main([*words, "--run-dir", "run", "--json", "found.json", "--top", "3"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("people: 30 records, 4 queries\n")
    assert "These 4 queries together give record" in " ".join(page.split())
    told = json.loads(Path("found.json").read_text())
    expected = leakscope.attack_influence(
        data.read_dataset("people.csv", target="cost"), "asked.csv", RBF
    )
    assert [one["kl"] for one in told["records"]] == [one.kl for one in expected.records]
    with np.load("run/arrays.npz") as arrays:
        assert arrays["kl"].shape == arrays["shift"].shape == (30, 4)
        for one in told["records"]:
            assert arrays["kl"][one["record_id"], one["query"]] == one["kl"]
    assert main(["report", "run"]) == 0
    assert "people: 30 records, 4 queries" in Path("run/report.html").read_text()
    assert main(["report", "run", "--redact"]) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns="age"), "asked.csv has no column 'age', which people has"),
        (
            lambda f: f.assign(region=["north", "east", "north", "north"]),
            "column 'region' holds 'east' in row 1 (rows count from 0), which no record of people",
        ),
        (lambda f: f.assign(age=[1.0, None, 2.0, 3.0]), "column 'age' is empty in row 1"),
        (lambda f: f.assign(age=[1, 2, 3, "old"]), "column 'age' holds 'old' in row 3"),
        (lambda f: f.iloc[:0], "asked.csv holds no records"),
    ],
)
def test_what_queries_must_hold(change, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    change(asked()).to_csv("asked.csv", index=False)
    command = ["attack", "influence", "people.csv", "--target", "cost", "--queries", "asked.csv"]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert words in told
    assert not Path("leakscope-runs").exists()


def test_other_refusals(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["attack", "influence", "--example", "iris"]) == 2
    assert "Which queries?" in capsys.readouterr().err
    iris = data.read_example("iris")
    with pytest.raises(InputError, match="rows of 4 features, as iris has them"):
        leakscope.attack_influence(iris, [[1.0, 2.0]])
    with pytest.raises(InputError, match=r"row 1 .* no finite number"):
        leakscope.attack_influence(iris, [[1.0] * 4, [np.nan] * 4])
    with pytest.raises(InputError, match="noise_variance must be a number"):
        leakscope.attack_influence(
            iris, iris.features[:1], AuditSettings(noise_variance="leave_one_out")
        )
