"""``attack membership --pool``: scores against real membership on held-out halves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import attacking
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal
from leakscope.measures.population import population_threshold
from leakscope.results import ModelMembershipAttack, read_result
from leakscope.settings.attack import PoolAttackSettings

TIGHT = {"tol": 1e-8, "max_iter": 10_000}


def halves(X, y, make, count, seed):
    """Scores and real membership of every record, for models that were really fitted on halves."""
    rng = np.random.default_rng(seed)
    scores, members, found = [], [], None
    for _ in range(count):
        chosen = rng.random(len(y)) < 0.5
        model = make().fit(X[chosen], y[chosen])
        found = leakscope.attack_membership(model, (X, y), pool=(X, y))
        scores.append(found.scores)
        members.append(chosen)
    return np.array(scores), np.array(members), found


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_auc_fpr_and_tpr_are_those_of_real_membership(kind):
    if kind == "ridge":
        X, y = load_diabetes(return_X_y=True)
        X, models = StandardScaler().fit_transform(X), 40
        scores, members, found = halves(X, y, lambda: Ridge(alpha=1.0), models, 1)
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X, models = StandardScaler().fit_transform(X), 30
        scores, members, found = halves(
            X, y, lambda: LogisticRegression(C=0.01, **TIGHT), models, 2
        )
    # models, not records, are independent: the error is over them
    each = [roc_auc_score(m, s) for m, s in zip(members, scores, strict=True)]
    assert abs(np.mean(each) - found.auc) < 4.0 * np.std(each, ddof=1) / models**0.5 + 0.004
    for test in found.tests:
        called = scores > test.threshold
        false = [c[~m].mean() for c, m in zip(called, members, strict=True)]
        true = [c[m].mean() for c, m in zip(called, members, strict=True)]
        error = np.std(false, ddof=1) / models**0.5
        assert abs(np.mean(false) - test.fpr) < 4.0 * error + 0.1 * test.fpr
        error = np.std(true, ddof=1) / models**0.5
        assert abs(np.mean(true) - test.tpr) < 4.0 * error + 0.1 * test.tpr


def test_posteriors_are_calibrated():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(7)
    chances, members = [], []
    for _ in range(40):
        chosen = rng.random(len(y)) < 0.5
        model = Ridge(alpha=1.0).fit(X[chosen], y[chosen])
        chances += attacking.attack_membership(model, (X, y), pool=(X, y)).posteriors
        members += chosen.tolist()
    chances, members = np.array(chances), np.array(members)
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        inside = (chances >= low) & (chances < high)
        error = 4.0 * (0.25 / inside.sum()) ** 0.5
        assert abs(members[inside].mean() - chances[inside].mean()) < error + 0.01


def test_the_threshold_has_its_size_by_quadrature():
    pair = LawPair(Normal([1.0, 0.2, -3.0], [0.8, 1.0, 2.0]), Normal([0.0, 0.0, 0.5], 1.0))
    grid = np.linspace(-12.0, 12.0, 200_001)
    for fpr in (0.3, 0.01, 1e-3):
        threshold = population_threshold(pair, fpr)
        sizes = []
        for row in range(3):
            own = pair.take([row])
            ratio = own.member.log_density(grid) - own.nonmember.log_density(grid)
            density = np.exp(own.nonmember.log_density(grid))
            sizes.append(np.sum(density[ratio > threshold]) * (grid[1] - grid[0]))
        assert np.mean(sizes) == pytest.approx(fpr, rel=2e-3)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.normal(40.0, 12.0, 240).round(2),
            "region": rng.choice(["north", "south", "west"], 240),
            "sick": rng.choice(["yes", "no"], 240),
        }
    )
    chosen = rng.random(240) < 0.5
    table.iloc[:200].to_csv("pool.csv", index=False)
    table.iloc[150:].to_csv("queries.csv", index=False)
    return table, chosen


def test_files_by_skops_and_by_answers_agree(files, tmp_path, capsys):
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    table, chosen = files
    X, y = table[["age", "region"]], table["sick"]
    transform = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["region"]))
    transform.fit(X)
    model = make_pipeline(transform, LogisticRegression(C=5.0, **TIGHT)).fit(X[chosen], y[chosen])
    skops.io.dump(model, "mine.skops")
    common = ["--queries", "queries.csv", "--pool", "pool.csv", "--target", "sick"]
    arguments = ["attack", "membership", "mine.skops", *common, "--prior", "0.2"]
    assert main([*arguments, "--json", "found.json"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "90 queries, 50 of them in the pool of 200" in out
    assert "more queries are in the --json answer" in out
    found = read_result(tmp_path / "found.json")
    assert isinstance(found, ModelMembershipAttack)
    odds = np.array(found.scores) + np.log(0.2 / 0.8)
    np.testing.assert_allclose(found.posteriors, 1.0 / (1.0 + np.exp(-odds)), rtol=1e-9)
    own = model.decision_function(X.iloc[150:]) * np.where(y.iloc[150:] == "yes", 1.0, -1.0)
    np.testing.assert_allclose(found.answers, own, rtol=1e-9)
    queries = table.iloc[150:].assign(p=1.0 / (1.0 + np.exp(-own)))
    queries.to_csv("queries.csv", index=False)
    named = ["attack", "membership", "logistic", "--C", "5", *common, "--answers", "p"]
    assert main([*named, "--json", "-"]) == 0
    other = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(other["answers"], own, rtol=1e-6)
    # the attacker scales by the pool, the model by its own records
    assert np.corrcoef(other["scores"], found.scores)[0, 1] > 0.95


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["logistic", "--C", "1"], "--answers: a model given by its name"),
        (["logistic", "--answers", "odd"], "needs the penalty"),
        (["logistic", "--C", "1", "--answers", "odd"], "probability between 0 and 1"),
        (["gone.skops"], "There is no file"),
        (["logistic", "--C", "1", "--answers", "p", "--fraction", "1.5"], "--fraction"),
        (["ridge", "--alpha", "1", "--answers", "age", "--margin", "1"], "--pool"),
    ],
)
def test_what_is_refused(files, capsys, arguments, words):
    if "odd" in arguments:
        files[0].iloc[150:].assign(odd=1.5).to_csv("queries.csv", index=False)
    common = ["--queries", "queries.csv", "--pool", "pool.csv", "--target", "sick"]
    assert main(["attack", "membership", *arguments, *common]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_arrays_that_do_not_fit_are_refused():
    X, y = load_diabetes(return_X_y=True)
    model = Ridge().fit(X[:200], y[:200])
    with pytest.raises(InputError, match="queries: 10 records have 9 labels"):
        leakscope.attack_membership(model, (X[:10], y[:9]), pool=(X, y))
    with pytest.raises(InputError, match="alike"):
        leakscope.attack_membership(model, "queries.csv", pool=(X, y))
    settings = PoolAttackSettings(fraction=0.45)
    found = leakscope.attack_membership(model, (X[:50], y[:50]), pool=(X, y), settings=settings)
    assert found.in_pool == 50
    assert found.fraction == 0.45


def test_a_network_s_file_is_no_fitted_model(tmp_path, monkeypatch, capsys):
    """Found by fuzzing: a validation error left the command line with its traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("a,y\n1,2\n2,1\n3,3\n4,2\n")
    assert main(["attack", "membership", "net.json", "--queries", "p.csv", "--pool", "p.csv"]) == 2
    said = capsys.readouterr().err
    assert "input should be one of ridge, linear, logistic" in said
    assert said.count("\n") == 1
