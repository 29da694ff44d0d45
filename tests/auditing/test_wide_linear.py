"""A linear audit of more columns than records: what centring tells, and the intercept."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import InputError, data, kernels, settings
from tests.audits import process_audit


def wide() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 50)), rng.normal(size=12)


def settled(X, y, **options):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]).assign(y=y)
    dataset = data.from_frame(frame, target="y")
    return process_audit(
        dataset, settings.AuditSettings(kernel="linear", sensitivity=False, **options)
    )


def test_centring_does_not_give_the_left_out_record_away():
    """Compared with the audit of features that were never centred, whose law is a refit's."""
    X, y = wide()
    found = settled(X, y)
    assert not found.warnings
    plain = settled(X, y, scaling="none")
    assert np.median(found.advantage) > 0.9
    np.testing.assert_allclose(found.advantage, plain.advantage, atol=0.1)


def test_without_an_intercept_it_is_said():
    X, y = wide()
    found = settled(X, y, bias_variance=0.0)
    assert np.median(found.advantage) < 0.8
    assert "each record is minus the sum of the others" in found.warnings[0]
    with pytest.warns(UserWarning, match="minus the sum"):
        leakscope.audit(X - X.mean(axis=0), y, kernel=kernels.linear())


@pytest.mark.parametrize("rows", [slice(None), slice(0, 30)])
def test_where_it_does_no_harm_nothing_is_said(rows):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leakscope.audit((X - X.mean(axis=0))[rows], y[rows], kernel=kernels.linear())


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.ma.masked_array(np.arange(3.0), [False, True, False]), "masked entry in row 1"),
        (np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[D]"), "dates or times"),
    ],
)
def test_targets_that_are_no_numbers(y, sentence):
    with pytest.raises(InputError, match=sentence):
        leakscope.audit(np.eye(3), y, kernel="rbf")
