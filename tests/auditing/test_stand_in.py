"""What an audit without a model examines: a fitted stand-in, or a Gaussian process and why."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope import data
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, ModelSettings
from leakscope.settings.audit import PENALTIES
from tests.audits import settings_audit

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 4)) * [1.0, 10.0, 0.1, 3.0] + 2.0
SLOPE = np.array([1.0, -0.1, 5.0, 0.0])
Y = X @ SLOPE + RNG.normal(size=120)
LABELS = np.where(X @ SLOPE + RNG.normal(size=120) > np.median(X @ SLOPE), "ill", "well")

# What a lumpy law is warned of is the laws' own matter, tested with them.
LUMPY = pytest.mark.filterwarnings("ignore:For .* of the records a few others")


def csv(path, target, **columns):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=target, **columns)
    frame.to_csv(path, index=False)
    return path


def test_numbers_get_ridge_and_its_penalty_is_scikit_learns():
    result = leakscope.audit(X, Y)
    assert result.subject == "fit"
    Z, z = StandardScaler().fit_transform(X), (Y - Y.mean()) / Y.std()
    chosen = RidgeCV(PENALTIES["ridge"], scoring="neg_mean_squared_error").fit(Z, z)
    own = leakscope.audit(Z, z, model=Ridge(alpha=chosen.alpha_).fit(Z, z))
    np.testing.assert_allclose(result.advantage, own.advantage, rtol=1e-8)
    assert result.examined.fitted_laws.question == "pool"


@LUMPY
def test_the_penalty_has_the_least_left_out_loss():
    chosen = leakscope.audit(X, LABELS).model.parameters["C"]
    # The loss of left-out records, refitted, is least there among its neighbours.
    Z = StandardScaler().fit_transform(X)
    losses = {}
    for C in (0.1 * chosen, chosen, 10.0 * chosen):
        parts = cross_val_predict(
            LogisticRegression(C=C, tol=1e-7), Z, LABELS, cv=LeaveOneOut(), method="predict_proba"
        )
        losses[C] = log_loss(LABELS, parts)
    assert min(losses, key=lambda C: losses[C]) == chosen


@LUMPY
@pytest.mark.parametrize(
    "labels", [LABELS, LABELS == "ill", (LABELS == "ill").astype(int), 1.0 + (LABELS == "ill")]
)
def test_classes_get_logistic_regression(labels):
    result = leakscope.audit(X, labels)
    assert result.subject == "fit"
    assert isinstance(result.examined.estimator, LogisticRegression)
    assert result.examined.fitted_laws.observes == "log_odds"


def test_the_first_line_says_that_it_is_a_stand_in():
    result = leakscope.audit(X, Y)
    assert result.model.stand_in
    for text in (result.verdict, *result.sentences_without_ids):
        assert "your model" not in text
    assert "a stand-in that leakscope fitted because no model was given" in result.answer()[0]
    own = leakscope.audit(X, Y, model=Ridge().fit(X, Y))
    assert not own.model.stand_in
    assert "stand-in" not in own.verdict


def test_any_setting_of_the_process_asks_for_it():
    for given in (
        {"kernel": "rbf"},
        {"kernel": leakscope.kernels.rbf(2.0)},
        {"noise_variance": 0.01},
        {"sensitivity": True},
        {"route": "auto"},
        {"inducing": 1000},
        {"fit_kernel_scale": False},
    ):
        assert leakscope.audit(X, Y, **given).subject == "process", given
    with pytest.raises(InputError, match="none"):
        leakscope.audit(X, Y, kernel="none")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"X": X, "y": np.column_stack([Y, Y[::-1]])}, "there are 2 targets"),
        ({"X": X[:12], "y": Y[:12]}, "there are only 12 records"),
    ],
)
def test_a_process_stands_in_where_no_model_can_be_fitted(given, why):
    with pytest.warns(UserWarning, match=f"no model was given, and none was fitted.*{why}"):
        result = leakscope.audit(**given)
    assert result.subject == "process"


def test_a_stand_in_of_groups_is_priced_without_the_whole_group():
    result = leakscope.audit(X, Y, groups=np.arange(120) // 2)
    assert (result.subject, result.unit, result.units) == ("fit", "group", 60)
    assert "by leave-one-group-out" in result.model.origin


def test_reasons_not_to_fit_of_a_dataset(tmp_path):
    many = data.read_dataset(
        csv(tmp_path / "many.csv", np.arange(120) // 2), target="y", task="classification"
    )
    wide = np.column_stack([many.features] * 90)
    assert settings_audit(many).unit == "record"
    result = settings_audit(replace(many, features=wide), AuditSettings(), ModelSettings())
    assert "make 21600 coefficients" in result.warnings[0]
    lone = replace(many, target=np.array(["a"] * 119 + ["b"]))
    assert "a class has one record only" in settings_audit(lone).warnings[0]
    same = replace(many, target=np.ones(120), task="regression")
    assert "the same for every record" in settings_audit(same).warnings[0]


@LUMPY
def test_the_same_by_the_command_and_from_a_frame(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "d.csv", (LABELS == "ill").astype(int))
    assert main(["audit", "d.csv", "--target", "y", "--run-dir", "run", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "audit_model"
    assert told["model"]["stand_in"]
    assert told["model"]["type"] == "LogisticRegression"
    frame = leakscope.audit_frame(pd.read_csv("d.csv"), target="y")
    array = leakscope.audit(X, (LABELS == "ill").astype(int))
    first = [record["record_id"] for record in told["records"][:5]]
    assert list(frame.ranking()[:5]) == first == list(array.ranking()[:5])
    # The run says which model, so that other verbs fit it again.
    assert main(["verify", "run", "--models", "60"]) in (0, 3)
    assert main(["report", "run"]) == 0
    assert "a stand-in that leakscope fitted" in (tmp_path / "run" / "report.html").read_text()
    with pytest.warns(UserWarning, match="taken as a quantity"):
        as_number = leakscope.audit_frame(pd.read_csv("d.csv"), target="y", task="regression")
    assert isinstance(as_number.examined.estimator, Ridge)


def test_the_screen_is_24_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "d.csv", Y)
    assert main(["audit", "d.csv", "--target", "y", "--run-dir", "run"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 24
    assert shown[0].startswith("Examined: Ridge(alpha=")
