"""Flags against long double, on a few problems; benchmarks/lood_accuracy.py has a few hundred."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import kl_multivariate, refit, refit_features, refit_group

from leakscope import kernels, lood
from leakscope.lood.separation import UNSEEN_BELOW, resolved

LIMIT = 1e-8


def problems():
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(8, 90)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d))
        duplicates = seed % 2 == 1
        if duplicates:
            X[1] = X[0] + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=d)
            X[3] = X[2]
        y = rng.normal(size=(n, 10) if seed % 4 >= 2 else n)
        noise = float(10.0 ** (-6 + 0.25 * seed))
        yield rng, X, y, noise, kernels.rbf(float(rng.uniform(0.5, 5.0))), duplicates


def test_records_groups_and_features():
    errors, trusted, allowed = [], [], []

    def note(value, exact, trust, no_flag):
        errors.append(float(abs(value - exact) / exact))
        trusted.append(bool(trust))
        allowed.append(no_flag)

    for rng, X, y, noise, kernel, duplicates in problems():
        no_flag = noise >= 1e-3 and not duplicates
        K = kernel(X)
        found = lood.all_records(K, y, noise_variance=noise)
        some = [0, 2, len(X) - 1]
        for i, exact in zip(some, refit(K, y, noise, np.longdouble, some).kl(), strict=True):
            note(found.kl[i], exact, found.trusted[i], no_flag)
        quick = lood.audit_features(X, y, noise)
        reference = refit_features(X, y, noise, np.longdouble, some).kl()
        for i, exact in zip(some, reference, strict=True):
            note(quick.kl[i], exact, quick.trusted[i], no_flag)
        group = sorted(rng.choice(len(X), size=2, replace=False).tolist())
        pair = lood.distinguish(X, y, leave_out=group, kernel=kernel, noise_variance=noise)
        laws = refit_group(K, y, noise, K[:, group], K[np.ix_(group, group)], group, np.longdouble)
        note(pair.kl, kl_multivariate(laws[1], laws[0]), pair.trusted, no_flag)
    wrong, flagged = np.array(errors) > LIMIT, ~np.array(trusted)
    assert np.count_nonzero(wrong & ~flagged) == 0
    assert np.count_nonzero(flagged & np.array(allowed)) == 0
    assert np.count_nonzero(flagged & ~wrong) < 0.1 * len(errors)
    assert np.median(errors) < 1e-12


@pytest.mark.parametrize("noise", [1e9, 1e10, 1e13])
def test_what_no_test_can_see_needs_no_digits(noise):
    """At such a noise the KLs are 1e-18 and less: lost digits there say nothing about exposure."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    K = kernels.rbf(1.5)(X)
    for found in (
        lood.all_records(K, y, noise_variance=noise),
        lood.all_groups(K, y, np.arange(40), noise_variance=noise),
    ):
        assert found.trusted.all()
        assert (found.kl < UNSEEN_BELOW).all()
    exact = refit(K, y, noise, np.longdouble, list(range(40))).kl()
    assert float(max(exact)) < UNSEEN_BELOW


def test_a_small_number_with_an_error_as_large_is_not_trusted():
    kl = np.array([1e-14, 1e-14, 1e-14, 9e-13, 1e-3, 1e-3])
    error = np.array([1e-9, 0.5, 1.0, 0.5, 1e-7, 1e-9])
    assert resolved(kl, error).tolist() == [True, True, False, False, False, True]
