"""scikit-learn's own checks, all of them, on every estimator and every path through it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import leakscope
from leakscope import kernels
from leakscope.errors import InputError
from leakscope.estimators import AuditedClassifier, AuditedRegressor

ALL = [AuditedRegressor, AuditedClassifier]


@parametrize_with_checks(
    [
        AuditedRegressor(),
        AuditedRegressor(kernel="linear", noise_variance=0.1),
        AuditedClassifier(),
        AuditedClassifier(kernel=kernels.rbf(2.0)),
    ]
)
def test_check_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def people(n: int = 30) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        rng.standard_normal((n, 3)),
        columns=["age", "height", "dose"],
        index=[f"person {i}" for i in range(n)],
    )
    return frame, frame["age"].to_numpy() + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("kind", ALL)
def test_a_frame_brings_names_and_ids(kind: Any) -> None:
    X, y = people()
    y = y > 0 if kind is AuditedClassifier else y
    model = kind().fit(X, y)
    assert model.feature_names_in_.tolist() == ["age", "height", "dose"]
    assert model.record_ids_[3] == "person 3"
    assert set(model.ranking_) == set(X.index)
    assert model.to_frame()["record_id"].tolist() == list(model.ranking_)
    np.testing.assert_array_equal(
        model.leakage_, model.to_frame().set_index("record_id")["advantage"][X.index]
    )
    # A fold of a frame keeps the rows' own ids, also where these count.
    plain = X.reset_index(drop=True)
    assert kind().fit(plain.iloc[5:], y[5:]).record_ids_[0] == 5
    assert kind().fit(plain, y).record_ids_[0] == 0
    # An index that repeats is no id; ids that are given win.
    twice = X.set_axis(["same"] * len(X))
    assert kind().fit(twice, y).record_ids_ == tuple(range(len(X)))
    assert kind().fit(X, y, record_ids=range(100, 130)).record_ids_[0] == 100


@pytest.mark.parametrize("kind", ALL)
def test_clone_and_pickle(kind: Any) -> None:
    X, y = people()
    y = y > 0 if kind is AuditedClassifier else y
    model = kind(
        kernel=kernels.matern(nu=2.5, length_scale=1.5), noise_variance=np.float64(0.1)
    ).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.leakage_, model.leakage_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_in_a_pipeline() -> None:
    X, y = people()
    X["dose"] *= 1000.0
    pipeline = make_pipeline(StandardScaler(), AuditedRegressor(noise_variance=0.1)).fit(X, y)
    expected = leakscope.audit(StandardScaler().fit_transform(X), y, noise_variance=0.1)
    np.testing.assert_allclose(pipeline[-1].leakage_, expected.advantage, rtol=1e-12)


def test_import_is_lazy_and_names_are_the_same() -> None:
    assert leakscope.AuditedRegressor is AuditedRegressor
    assert leakscope.estimators.AuditedClassifier is AuditedClassifier


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kernel": "cubic"}, "kernel"),
        ({"kernel": 3}, "kernel"),
        ({"noise_variance": 0.0}, "noise_variance: input should be greater than 0"),
        ({"noise_variance": "guess"}, "noise_variance: input should be a number or one of"),
    ],
)
@pytest.mark.parametrize("kind", ALL)
def test_wrong_settings_are_one_sentence(kind: Any, settings: Any, sentence: str) -> None:
    X, y = people()
    y = y > 0 if kind is AuditedClassifier else y
    with pytest.raises(InputError, match=sentence):
        kind(**settings).fit(X, y)


def test_other_wrong_input_is_one_sentence() -> None:
    X, _ = people()
    with pytest.raises(InputError, match="one class only"):
        AuditedClassifier().fit(X, np.ones(len(X), dtype=int))
    with pytest.raises(InputError, match="all equal"):
        AuditedRegressor().fit(np.ones((5, 2)), np.arange(5.0))


def test_warnings_are_kept_and_not_shown() -> None:
    """The suite turns a warning into an error: fitting on odd data must not show one."""
    X = np.column_stack([np.ones(6), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
    y = np.array([1.0, 2.0, 0.5, 0.4, 0.3, 0.2])
    found = AuditedRegressor().fit(X, y).result_.warnings
    assert "1 of 2 columns of X is constant" in found[0]
    assert "repeats another record's features with a different target" in found[1]
