from __future__ import annotations

import numpy as np
import pytest
from brute_force import kl_multivariate, refit_group

from leakscope import InputError, kernels, lood, measures

# What a query changes is held against what the record changes at itself.
NEGLIGIBLE = 1e-6

KERNEL = kernels.rbf(1.0)


@pytest.fixture(params=[1, 3])
def data(request):
    rng = np.random.default_rng(request.param)
    y = rng.normal(size=20 if request.param == 1 else (20, request.param))
    return rng.normal(size=(20, 2)), y, rng.normal(size=(4, 2))


def test_against_refitting_every_record_at_every_query(data):
    X, y, queries = data
    found = lood.influence(X, y, queries, KERNEL, 0.05)
    assert found.kl.shape == found.mean_distance.shape == (20, 4)
    for i in range(0, 20, 3):
        for j in range(4):
            q = queries[j : j + 1]
            laws = refit_group(KERNEL(X), y, 0.05, KERNEL(X, q), KERNEL(q), [i], np.longdouble)
            assert found.kl[i, j] == pytest.approx(
                float(kl_multivariate(laws[1], laws[0])), rel=1e-9
            )
            assert found.kl_reverse[i, j] == pytest.approx(
                float(kl_multivariate(laws[0], laws[1])), rel=1e-9
            )
            half = 0.5 * float(((laws[0][0] - laws[1][0]) ** 2).sum())
            assert found.mean_distance[i, j] == pytest.approx(half, rel=1e-9)


def test_at_the_records_themselves_the_diagonal_is_the_audit(data):
    X, y, _ = data
    found = lood.influence(X, y, None, KERNEL, 0.05)
    everyone = lood.all_records(KERNEL(X), y, noise_variance=0.05)
    np.testing.assert_allclose(np.diagonal(found.kl), everyone.kl, rtol=1e-11)
    np.testing.assert_allclose(np.diagonal(found.mean_distance), found.memorisation, rtol=1e-11)
    asked = lood.influence(X, y, X, KERNEL, 0.05)
    np.testing.assert_allclose(found.kl, asked.kl, rtol=1e-8)
    np.testing.assert_allclose(found.mean_distance, asked.mean_distance, rtol=1e-8)
    # The record itself is the most revealing query, in KL; in mean distance it need not be.
    assert (found.kl <= np.diagonal(found.kl)[:, None] * (1 + 1e-9)).all()


def test_the_pairs_are_the_same_laws(data):
    X, y, queries = data
    found = lood.influence(X, y, queries, KERNEL, 0.05)
    pair = found.law_pair()
    assert pair.batch_shape == (20, 4)
    np.testing.assert_allclose(measures.kl(pair), found.kl, rtol=1e-8)


@pytest.mark.parametrize("at_records", [False, True])
def test_no_wrong_influence_goes_unflagged(at_records):
    """Against long double at small noise, with near-duplicates; margins were set on other seeds."""
    flagged = checked = 0
    for seed in range(700, 712):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 2))
        if seed % 2:
            X[1] = X[0] + 1e-5
        y, noise = rng.normal(size=50), 10.0 ** rng.uniform(-6.0, -5.0)
        kernel = kernels.rbf(rng.uniform(1.0, 4.0))
        queries = X[:3] if at_records else rng.normal(size=(3, 2))
        found = lood.influence(X, y, None if at_records else queries, kernel, noise)
        K = kernel(X)
        for i in (0, 9):
            own = refit_group(K, y, noise, K[:, [i]], K[np.ix_([i], [i])], [i], np.longdouble)
            least = NEGLIGIBLE * float(kl_multivariate(own[1], own[0]))
            for j in range(3):
                q = queries[j : j + 1]
                laws = refit_group(K, y, noise, kernel(X, q), kernel(q), [i], np.longdouble)
                exact = float(kl_multivariate(laws[1], laws[0]))
                error = abs(found.kl[i, j] - exact) / max(exact, least)
                checked += 1
                flagged += not found.trusted[i, j]
                assert error <= 1e-3 or not found.trusted[i, j]
    assert flagged < 0.9 * checked


def test_no_flag_where_float64_is_enough(data):
    X, y, queries = data
    for asked in (None, queries):
        found = lood.influence(X, y, asked, KERNEL, 0.05)
        assert found.trusted.all()
        assert found.law_pair().provenance.assumptions[-1].holds


def test_refusals():
    X, y = np.arange(6.0)[:, None], np.zeros(6)
    with pytest.raises(InputError, match="queries must be rows"):
        lood.influence(X, y, [1.0, 2.0], KERNEL, 0.1)
    with pytest.raises(InputError, match="query 1 has no variance left"):
        lood.influence(np.repeat(X, 2, axis=0), np.zeros(12), [[9.0], [1.0]], KERNEL, 2e-15)


def test_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 0)
    with pytest.raises(InputError, match="influence of 6 records on 2 queries needs"):
        lood.influence(np.zeros((6, 1)), np.zeros(6), np.zeros((2, 1)), KERNEL, 0.1)


def test_the_pairs_at_one_query_of_each_record(data):
    X, y, queries = data
    found = lood.influence(X, y, queries, KERNEL, 0.05)
    at = np.arange(20) % 4
    np.testing.assert_allclose(
        measures.kl(found.law_pair(at)), found.kl[np.arange(20), at], rtol=1e-8
    )
