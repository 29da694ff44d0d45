"""``audit --model FILE``: the user's own model from skops, and what is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakscope import data
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.settings import ModelSettings
from tests.audits import estimator_audit, model_audit

TIGHT = {"tol": 1e-8, "max_iter": 10_000}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(model, name="mine.skops"):
    skops.io.dump(model, name)
    return name


def people():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.normal(40.0, 12.0, 300).round(1),
            "region": rng.choice(["north", "south", "west"], 300),
            "dose": rng.normal(size=300).round(3),
        }
    )
    odds = 0.05 * (table["age"] - 40.0) + table["dose"] + (table["region"] == "west")
    table["sick"] = np.where(rng.logistic(size=300) < odds, "yes", "no")
    table.to_csv("people.csv", index=False)
    return table


def test_a_pipeline_on_a_tables_own_columns_is_audited_as_in_memory(capsys):
    table = people()
    X, y = table[["age", "region", "dose"]], table["sick"]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "dose"]), (OneHotEncoder(), ["region"])),
        LogisticRegression(C=0.5, **TIGHT),
    ).fit(X, y)
    name = saved(model)
    assert main(["audit", "people.csv", "--target", "sick", "--model", name, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"]["name"] == "ColumnTransformer → LogisticRegression(C=0.5)"
    assert found["model"]["type"] == "Pipeline"
    assert found["model"]["file"] == name
    with open(name, "rb") as stream:
        assert found["model"]["file_sha256"] == hashlib.file_digest(stream, "sha256").hexdigest()
    own = estimator_audit(model, X, y.to_numpy())
    told = {record["record_id"]: record["advantage"] for record in found["records"]}
    np.testing.assert_allclose([told[i] for i in range(300)], own.advantage, rtol=1e-12)


@pytest.mark.parametrize("width", [0, 4])
def test_dropped_records_are_dropped_from_the_tables_own_columns(capsys, width):
    """With an id column this was refused; ids such as 0007 are as they are written."""
    table = people()
    table.insert(0, "who", [f"{7 * i:0{width}d}" if width else 7 * i for i in range(300)])
    table.loc[[3, 50], "dose"] = np.nan
    table.to_csv("people.csv", index=False)
    kept = table.dropna()
    X, y = kept[["age", "region", "dose"]], kept["sick"]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "dose"]), (OneHotEncoder(), ["region"])),
        LogisticRegression(C=0.5, **TIGHT),
    ).fit(X, y)
    words = ["--target", "sick", "--id", "who", "--read", "missing=drop", "--model", saved(model)]
    assert main(["audit", "people.csv", *words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {record["record_id"]: record["advantage"] for record in found["records"]}
    own = estimator_audit(model, X, y.to_numpy())
    np.testing.assert_allclose([told[who] for who in kept["who"]], own.advantage, rtol=1e-9)


def test_standardised_features_are_found_out_by_the_optimum_and_verify_takes_the_run(capsys):
    X, y = load_wine(return_X_y=True)
    model = LogisticRegression(C=0.3, **TIGHT).fit(StandardScaler().fit_transform(X), y)
    arguments = ["audit", "--example", "wine", "--model", saved(model), "--run-dir", "run"]
    assert main(arguments) == 0
    assert "LogisticRegression(C=0.3), as fitted by you (mine.skops)" in " ".join(
        capsys.readouterr().out.split()
    )
    with open("run/result.json", encoding="utf-8") as stream:
        assert any("standardised" in step for step in json.load(stream)["dataset"]["steps"])
    assert main(["verify", "run", "--models", "100", "--records", "3"]) in (0, 3)
    assert "100 shadow models" in " ".join(capsys.readouterr().out.split())
    skops.io.dump(model.set_params(tol=1e-7), "mine.skops")
    assert main(["verify", "run", "--models", "100"]) == 2
    assert "is not the model that was audited" in capsys.readouterr().err


def test_other_data_are_said_with_the_gradient():
    X, y = load_breast_cancer(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    half = saved(LogisticRegression(**TIGHT).fit(scaled[:280], y[:280]))
    with pytest.raises(InputError, match=r"mine.skops: The coefficients .* gradient there is"):
        model_audit(data.read_example("breast_cancer"), ModelSettings(model=half))


def test_an_imputer_is_plain(capsys):
    """skops does not trust the dtype that an imputer keeps, which runs nothing."""
    table = people()
    table["sick"] = (table["sick"] == "yes").astype(float) + 0.5 * table["dose"]
    table.loc[3, "age"] = np.nan
    table.to_csv("people.csv", index=False)
    model = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "dose"]),
            (OneHotEncoder(), ["region"]),
        ),
        Ridge(2.0),
    ).fit(table[["age", "region", "dose"]], table["sick"])
    assert "numpy.dtype" in skops.io.get_untrusted_types(file=saved(model))
    line = "audit people.csv --target sick --model mine.skops --read missing=impute --json -"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"]["origin"] == "as fitted by you (mine.skops)"
    assert found["kind"] == "audit_model"


def test_a_file_is_a_training_too(capsys):
    """As the warning about what a model learns beside its coefficients says."""
    people()
    table = pd.read_csv("people.csv")
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3))
    saved(model.fit(table[["age", "dose"]], table["sick"]))
    line = (
        "audit people.csv --target sick --ignore region --model mine.skops --models 4 --run-dir run"
    )
    assert main(line.split()) == 0
    out = " ".join(capsys.readouterr().out.split())
    # By its steps, the last with its settings.
    assert "Examined: StandardScaler → DecisionTreeClassifier(max_depth=3), 4 models of" in out


class Own(Ridge):
    """Not scikit-learn's."""


def doubled(X):
    return 2.0 * X


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Own(), r"needs .*Own, not among the types"),
        (
            lambda: make_pipeline(FunctionTransformer(doubled), Ridge()),
            r"needs .*doubled, not among",
        ),
        (lambda: {"a": 1}, "holds a dict, not a model"),
    ],
)
def test_what_a_skops_file_may_not_hold(make, sentence):
    X, y = load_wine(return_X_y=True)
    model = make()
    name = saved(model.fit(X, y) if hasattr(model, "fit") else model)
    with pytest.raises(InputError, match=sentence):
        model_audit(data.read_example("wine"), ModelSettings(model=name))


def test_bad_files_end_with_one_sentence(here, capsys):
    (here / "text.skops").write_text("no zip")
    with zipfile.ZipFile("empty.skops", "w") as archive:
        archive.writestr("other.json", "{}")
    (here / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    for name, words in (
        ("text.skops", "is not a skops file"),
        ("empty.skops", "is not a skops file"),
        ("gone.skops", "There is no file"),
        ("model.pkl", "reading a pickle can run any program"),
        ("forest", "input should be one of ridge"),
    ):
        assert main(["audit", "--example", "wine", "--model", name]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == [
        "empty.skops", "model.pkl", "text.skops"
    ]  # fmt: skip


def test_a_file_has_its_own_penalty():
    X, y = load_diabetes(return_X_y=True)
    name = saved(Ridge().fit(X, y))
    with pytest.raises(InputError, match="has its own penalty"):
        model_audit(data.read_example("diabetes"), ModelSettings(model=name, alpha=1.0))
