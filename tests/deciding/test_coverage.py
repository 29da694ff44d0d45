"""Which attacks a record counts, the groups it shows, and what the number of questions changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPClassifier

import leakscope
from conftest import audit_run, write_table
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.measuring import measure_canaries
from leakscope.reporting.decision_page import decision_html, decision_markdown
from leakscope.results import Decision

LIMIT = {"threshold_advantage": 0.9}


def states(record: Decision) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in record.coverage:
        found.setdefault(row.state, []).append(row.attack)
    return found


def test_every_attack_has_a_row_and_says_whether_it_was_run(filed: Path) -> None:
    record = leakscope.decide(filed / "run", **LIMIT)
    found = states(record)
    assert found["run"] == [
        "membership, from answers about the record",
        "membership, against refits of the same recipe",
    ]
    # A logistic regression is no two-layer network, and no Gaussian process.
    assert found["not applicable"] == [
        "membership of canaries, against the epsilon of a private training",
        "membership, from the weights of a two-layer network",
        "membership, at a query that was searched for",
    ]
    assert len(found["not run"]) == 6
    assert "attribute inference, of a secret column" in found["not run"]
    assert "model inversion" in found["not available"]
    assert sum(map(len, found.values())) == len(record.coverage) == 19
    assert record.summary[-1].startswith("Attacks: 2 run; 6 that")


@pytest.mark.parametrize(
    ("estimator", "network"), [(RandomForestClassifier, False), (MLPClassifier, True)]
)
def test_a_training_of_trees_is_no_network(estimator: type, network: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    few = {"n_estimators": 5} if estimator is RandomForestClassifier else {"tol": 10.0}
    found = states(
        leakscope.decide(leakscope.audit(X, y, train=estimator(**few), models=4), **LIMIT)
    )
    assert found["run"] == [
        "membership, from answers about the record",
        "membership, from a few models of the same training",
    ]
    place = "not run" if network else "not applicable"
    assert "reconstruction of records from weights" in found[place]


def test_without_an_audit_of_the_model_every_attack_could_be_run() -> None:
    scores = leakscope.measure([1.0, 2.0, 3.0], [0.0, 0.5, 1.0])
    found = states(leakscope.decide(scores, threshold_tpr=0.1))
    assert "not applicable" not in found
    assert len(found["not run"]) == 10


def test_canaries_have_their_row_and_the_claim_beside_it() -> None:
    rng = np.random.default_rng(0)
    coins = rng.random(300) < 0.5
    seen = measure_canaries(rng.normal(size=300) + 3.0 * coins, coins, claimed_epsilon=1.0)
    scores = leakscope.measure([1.0, 2.0, 3.0], [0.0, 0.5, 1.0])
    record = leakscope.decide(scores, seen, threshold_tpr=0.1)
    row = next(row for row in record.coverage if "canaries" in row.attack)
    assert row.ran
    assert row.found.startswith("epsilon at least")
    assert row.found.endswith("the claim is contradicted")
    # Whoever reads the first page alone sees it.
    assert any(text.startswith("Canaries: the claimed epsilon of 1 is") for text in record.summary)


def test_somebody_who_was_not_erased_stands_on_the_first_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    model, other = (Ridge(alpha=alpha).fit(X, y) for alpha in (1.0, 2.0))
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, y]), "%.17g", ",", header="a,b,c,y", comments="")
    runs = []
    for name, one in (("mine", model), ("other", other)):
        skops.io.dump(one, tmp_path / f"{name}.skops")
        runs.append(tmp_path / name)
        line = ["audit", str(table), "--target", "y", "--model", str(tmp_path / f"{name}.skops")]
        assert main([*line, "--run-dir", str(runs[-1])]) == 0
    kept = leakscope.erase(runs[0], records=[3], after=model)
    record = leakscope.decide(runs[0], kept, **LIMIT)
    assert f"Erasure: {kept.verdict}" in record.summary
    made = leakscope.decide(runs[0], leakscope.erase(runs[0], records=[3]), **LIMIT)
    assert not any(text.startswith("Erasure") for text in made.summary)
    with pytest.raises(InputError, match="a decision is about one model"):
        leakscope.decide(runs[1], kept, **LIMIT)


def test_groups_are_in_the_record(filed: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv")
    lines = table.read_text().splitlines()
    kinds = ["site", *(["north"] * 50 + ["south"] * 25 + ["islands"] * 5)]
    table.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, kinds, strict=True)) + "\n")
    run = audit_run(table, tmp_path / "run", "--set", "C=0.1", "--by", "site")
    record = leakscope.decide(run, **LIMIT)
    assert {entry.value: entry.count for entry in record.subgroups} == {
        "north": 50,
        "south": 25,
        "islands": 5,
    }
    sentence = next(text for text in record.summary if text.startswith("By site"))
    # Five records are too few to compare, and nearly name their people.
    assert "north" in sentence
    assert "islands" not in sentence
    assert "islands" in decision_html(record)
    for redacted in (
        decision_markdown(record),
        decision_html(leakscope.decide(run, redact=True, **LIMIT)),
    ):
        assert "south" in redacted
        assert "islands" not in redacted
    assert leakscope.decide(filed / "run", **LIMIT).subgroups == []
