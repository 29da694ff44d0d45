"""Every group from one inverse, against refitting without it and against ``distinguish``."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import cholesky as plain_cholesky

from leakscope import kernels, lood, measures
from leakscope.errors import InputError


def problem(outputs: int, seed: int = 0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(40, 3))
    y = generator.normal(size=(40, outputs) if outputs > 1 else 40)
    groups = np.concatenate([np.arange(12), generator.integers(0, 12, 28)])
    return X, y, groups


def refitted_kl(K, y, noise, rows):
    """KL of the joint posteriors at the group's points, by refitting in long double."""
    K, y = K.astype(np.longdouble), y.reshape(len(y), -1).astype(np.longdouble)

    def posterior(train):
        M = K[np.ix_(train, train)] + noise * np.eye(len(train), dtype=np.longdouble)
        lower = plain_cholesky(M)
        half = forward(lower, np.column_stack([K[np.ix_(train, rows)], y[train]]))
        cross, target = half[:, : len(rows)], half[:, len(rows) :]
        return cross.T @ target, K[np.ix_(rows, rows)] - cross.T @ cross

    def forward(lower, right):
        x = right.copy()
        for i in range(len(x)):
            x[i] = (x[i] - lower[i, :i] @ x[:i]) / lower[i, i]
        return x

    everyone = np.arange(len(K))
    with_mean, with_cov = posterior(everyone)
    mean, cov = posterior(np.setdiff1d(everyone, rows))
    L1, L0 = plain_cholesky(with_cov), plain_cholesky(cov)
    ratio = forward(L1, L0)
    shift = forward(L1, with_mean - mean)
    logs = 2 * (np.log(np.diagonal(L1)).sum() - np.log(np.diagonal(L0)).sum())
    return float(y.shape[1] * ((ratio**2).sum() - len(rows) + logs) / 2 + (shift**2).sum() / 2)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("noise", [1e-2, 1.0, 1e3])
def test_every_group_is_what_refitting_without_it_says(outputs, noise):
    X, y, groups = problem(outputs)
    K = kernels.rbf(1.5)(X)
    found = lood.all_groups(K, y, groups, noise_variance=noise)
    assert found.trusted.all()
    for group in range(12):
        rows = np.flatnonzero(groups == group)
        assert found.kl[group] == pytest.approx(refitted_kl(K, y, noise, rows), rel=1e-7)


def test_it_agrees_with_distinguish_in_every_number():
    X, y, groups = problem(2)
    kernel = kernels.matern(1.5, 1.2)
    found = lood.all_groups(kernel(X), y, groups, noise_variance=0.05)
    for group in range(12):
        one = lood.distinguish(
            X,
            y,
            leave_out=np.flatnonzero(groups == group).tolist(),
            kernel=kernel,
            noise_variance=0.05,
        )
        assert found.kl_label_free[group] == pytest.approx(one.kl_label_free, rel=1e-9)
        assert found.kl_label[group] == pytest.approx(one.kl_label, rel=1e-9)
        assert found.mean_distance[group] == pytest.approx(one.mean_distance, rel=1e-9)
    for some, pair in found.law_pairs():
        np.testing.assert_allclose(measures.kl(pair), found.kl[some], rtol=1e-9)


def test_groups_of_one_are_the_records_themselves():
    X, y, _ = problem(1)
    K = kernels.rbf(1.0)(X)
    singly = lood.all_records(K, y, noise_variance=0.1)
    found = lood.all_groups(K, y, np.arange(40), noise_variance=0.1)
    np.testing.assert_allclose(found.kl, singly.kl, rtol=1e-12)
    np.testing.assert_allclose(found.leverage, singly.leverage, rtol=1e-12)
    ((some, pair),) = found.law_pairs()
    assert len(some) == 40
    np.testing.assert_allclose(
        measures.advantage(pair), measures.advantage(singly.law_pair()), rtol=1e-9
    )


def test_copies_of_a_record_leave_together_without_losing_digits():
    """Two copies are one record with half the noise: the group's KL has a closed form."""
    X, y, _ = problem(1)
    X[1], y[1] = X[0], y[0]
    K = kernels.rbf(1.0)(X)
    groups = np.concatenate([[0, 0], np.arange(1, 39)])
    found = lood.all_groups(K, y, groups, noise_variance=0.2)
    M = K[2:, 2:] + 0.2 * np.eye(38)
    mean, v0 = K[0, 2:] @ np.linalg.solve(M, y[2:]), 1 - K[0, 2:] @ np.linalg.solve(M, K[2:, 0])
    v1 = 1 / (1 / v0 + 2 / 0.2)
    shift = v1 * 2 / 0.2 * (y[0] - mean)
    kl = 0.5 * (v0 / v1 - 1 - np.log(v0 / v1) + shift**2 / v1)
    assert found.kl[0] == pytest.approx(kl, rel=1e-10)
    assert found.trusted[0]
    assert found.kl[0] > 3 * lood.all_records(K, y, noise_variance=0.2).kl[:2].max()


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([0, 1], "one whole number per record"),
        ([0.0] * 40, "one whole number per record"),
        ([1] * 40, "numbered from 0 to 0"),
        ([0] * 39 + [2], "numbered from 0 to 1"),
    ],
)
def test_refusals(groups, sentence):
    X, y, _ = problem(1)
    with pytest.raises(InputError, match=sentence):
        lood.all_groups(kernels.rbf(1.0)(X), y, groups, noise_variance=0.1)
