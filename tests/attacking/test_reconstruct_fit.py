"""``attack reconstruct`` on a fitted model: files, a pipeline, what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import InputError
from leakscope.cli import main
from leakscope.results import FitReconstructAttack


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
    from leakscope.settings.attack import FitReconstructSettings

    noisy = leakscope.attack_reconstruct(
        model, data=(X, y), settings=FitReconstructSettings(noise=1.0, kappa=0.01)
    )
    assert isinstance(noisy, FitReconstructAttack)
    assert 0.01 < noisy.rero_bound < 0.1
    every = leakscope.attack_reconstruct(model, data=(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = leakscope.audit(X, y, model=model)
    record = leakscope.decide(audit, every, threshold_advantage=0.5)
    row = next(row for row in record.coverage if row.attack.startswith("reconstruction"))
    assert row.state == "run"
    assert "finds" in row.found


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
