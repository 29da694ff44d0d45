"""``attack reconstruct`` on a fitted model: files, a pipeline, what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leakscope
from leakscope import InputError
from leakscope.cli import main
from leakscope.results import FitReconstructAttack
from leakscope.settings.attack import FitReconstructSettings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fit")
    frame = load_breast_cancer(as_frame=True).frame.iloc[:, -9:]
    frame["target"] = np.where(frame["target"] == 1, "benign", "malignant")
    X, y = frame.drop(columns="target"), frame["target"]
    tight = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    skops.io.dump(make_pipeline(StandardScaler(), tight).fit(X, y), place / "m.skops")
    frame.iloc[1:].to_csv(place / "others.csv", index=False)
    frame.iloc[:1].to_csv(place / "one.csv", index=False)
    frame.to_csv(place / "all.csv", index=False)
    return place


def test_the_record_comes_back_in_the_files_own_units(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    line = "attack reconstruct m.skops --known others.csv --target target --data one.csv --json -"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    truth = pd.read_csv("one.csv").iloc[0]
    assert found["label"] == "malignant"
    assert found["label_right"] is True
    assert found["error"] < 0.001
    for name, value in found["features"].items():
        assert value == pytest.approx(truth[name], rel=0.01)
    assert (
        main(["attack", "reconstruct", "m.skops", "--data", "all.csv", "--target", "target"]) == 0
    )
    out = capsys.readouterr().out
    assert "finds 9" in out
    assert "the attack; noise on the coefficients stops it" in " ".join(out.split())


def test_from_python_with_noise_and_in_the_decision(folder: Path) -> None:
    frame = pd.read_csv(folder / "all.csv")
    X, y = frame.drop(columns="target"), frame["target"]
    model = skops.io.load(folder / "m.skops")
    noisy = leakscope.attack_reconstruct(
        model, data=(X, y), settings=FitReconstructSettings(noise=1.0, kappa=0.01)
    )
    assert isinstance(noisy, FitReconstructAttack)
    assert 0.01 < noisy.rero_bound < 0.1
    every = leakscope.attack_reconstruct(model, data=(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(X, y, model=model)
    one = leakscope.attack_reconstruct(model, known=(X[1:], y[1:]))
    record = leakscope.decide(audit, one, every, threshold_advantage=0.5)
    row = next(row for row in record.coverage if row.attack.startswith("reconstruction"))
    assert row.state == "run"
    # Both are told, in the table and to whoever reads the first page alone.
    for verdict in (one.verdict, every.verdict):
        assert verdict in row.found
        assert f"Reconstruction: {verdict}" in record.summary


def test_a_record_of_mixed_columns_comes_back_as_it_was() -> None:
    """Scaled numbers, filled gaps and categories are undone part by part."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.normal(50.0, 9.0, 60).round(1),
            "sex": rng.choice(["f", "m"], 60),
            "chol": rng.normal(240.0, 40.0, 60).round(),
            "smokes": rng.integers(0, 2, 60),
        }
    )
    X.loc[5, "chol"] = np.nan
    y = np.where(X["age"] + 10.0 * rng.normal(size=60) > 50.0, "ill", "well")
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["chol", "age"]), (OneHotEncoder(), ["sex"]), ("passthrough", ["smokes"])
    )
    tight = LogisticRegression(solver="newton-cholesky", tol=1e-12)
    model = make_pipeline(columns, tight).fit(X, y)
    for row in (0, 5):
        rest = np.delete(np.arange(60), row)
        found = leakscope.attack_reconstruct(model, known=(X.iloc[rest], y[rest]))
        truth = X.fillna(X["chol"].median()).iloc[row].to_dict()
        assert found.label == y[row]
        assert list(found.features) == list(truth)
        assert found.features["sex"] == truth["sex"]
        for name in ("age", "chol", "smokes"):
            assert found.features[name] == pytest.approx(truth[name], abs=1e-4)
    # With noise a category has no standard deviation: features as they reach the model, by name.
    settings = FitReconstructSettings(noise=1e-3)
    noisy = leakscope.attack_reconstruct(model, known=(X[1:], y[1:]), settings=settings)
    assert list(noisy.features) == list(noisy.sds) == columns.get_feature_names_out().tolist()


def test_what_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="records that the attacker knows"):
        leakscope.attack_reconstruct(folder / "m.skops")
    frame = pd.read_csv(folder / "all.csv")
    X, y = frame.drop(columns="target"), frame["target"]
    with pytest.raises(InputError, match="RandomForestClassifier"):
        leakscope.attack_reconstruct(RandomForestClassifier(3).fit(X, y), data=(X, y))
    three = RidgeClassifier().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(InputError, match="each class on its own"):
        leakscope.attack_reconstruct(three, data=(X, np.arange(len(y)) % 3))
    with pytest.raises(InputError, match="arrays go with"):
        leakscope.attack_reconstruct(folder / "m.skops", known=(X, y))
