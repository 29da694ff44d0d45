"""Groups and queries against refitting, and the record itself as the most revealing query."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import kl_multivariate, refit_group

from leakscope import InputError, kernels, lood, measures

KERNEL = kernels.rbf(1.2)


def data(seed, n=40, d=2, outputs=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n if outputs == 1 else (n, outputs)), rng


def refitted(X, y, noise, queries, group):
    return refit_group(
        KERNEL(X), y, noise, KERNEL(X, queries), KERNEL(queries), group, np.longdouble
    )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("group", [[4], [4, 9, 30]])
@pytest.mark.parametrize("which", ["own", "one", "several", "own and others"])
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_against_refitting(outputs, group, which, noise):
    X, y, rng = data(0, outputs=outputs)
    queries = {
        "own": None,
        "one": rng.normal(size=(1, 2)),
        "several": rng.normal(size=(5, 2)),
        "own and others": np.vstack([rng.normal(size=(2, 2)), X[group]]),
    }[which]
    at = X[group] if queries is None else queries
    found = lood.distinguish(
        X, y, leave_out=group, queries=queries, kernel=KERNEL, noise_variance=noise
    )
    with_, without = refitted(X, y, noise, at, group)
    shape = found.mean_with.shape
    for mine, theirs in (
        (found.mean_with, with_[0].reshape(shape)),
        (found.mean_without, without[0].reshape(shape)),
        (found.covariance_with, with_[1]),
        (found.covariance_without, without[1]),
        (found.mean_shift, (with_[0] - without[0]).reshape(shape)),
    ):
        np.testing.assert_allclose(mine, theirs.astype(float), rtol=1e-7, atol=1e-10)
    assert found.kl == pytest.approx(float(kl_multivariate(without, with_)), rel=1e-8)
    assert found.kl_reverse == pytest.approx(float(kl_multivariate(with_, without)), rel=1e-8)
    half = 0.5 * float(((with_[0] - without[0]) ** 2).sum())
    assert found.mean_distance == pytest.approx(half, rel=1e-8)
    assert found.trusted
    assert found.sufficient == (which in ("own", "own and others"))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("group", [[4], [4, 9]])
def test_the_sufficient_pair_has_every_measure_of_the_queries(outputs, group):
    X, y, rng = data(1, outputs=outputs)
    found = lood.distinguish(
        X,
        y,
        leave_out=group,
        queries=rng.normal(size=(4, 2)),
        kernel=KERNEL,
        noise_variance=0.1,
    )
    reduced, whole = found.sufficient_pair(), found.law_pair()
    assert int(np.prod(reduced.member.event_shape)) == len(group) * outputs
    assert int(np.prod(whole.member.event_shape)) == 4 * outputs
    for measure in (
        measures.kl,
        lambda p: measures.kl(p, "member_to_nonmember"),
        measures.advantage,
        measures.auc,
        lambda p: measures.tpr_at_fpr(p, 1e-3),
        lambda p: measures.renyi(p, 2.0),
    ):
        assert float(measure(reduced)) == pytest.approx(float(measure(whole)), rel=1e-9)
    assert float(measures.kl(reduced)) == pytest.approx(found.kl, rel=1e-11)


def test_one_record_at_its_own_point_is_what_all_records_says():
    X, y, _ = data(3, outputs=2)
    everyone = lood.all_records(KERNEL(X), y, noise_variance=0.05)
    for i in (0, 17):
        one = lood.distinguish(X, y, leave_out=[i], kernel=KERNEL, noise_variance=0.05)
        assert one.kl == pytest.approx(everyone.kl[i], rel=1e-12)
        assert one.kl_label == pytest.approx(everyone.kl_label[i], rel=1e-12)
        assert one.mean_distance == pytest.approx(everyone.mean_distance[i], rel=1e-12)
        np.testing.assert_allclose(one.mean_without[0], everyone.mean_without[i], rtol=1e-11)


def test_where_noise_dominates_groups_keep_their_digits():
    X, y, _ = data(4, n=12)
    noise = 1e7
    found = lood.distinguish(X, y, leave_out=[1, 2], kernel=KERNEL, noise_variance=noise)
    K = KERNEL(X)
    (mean1, cov1), (mean0, cov0) = refit_group(
        K, y, noise, K[:, [1, 2]], K[np.ix_([1, 2], [1, 2])], [1, 2], np.longdouble
    )
    # The KL itself is below what long double resolves by the textbook formula; its series is not.
    whitened = np.linalg.solve(cov1.astype(float), (cov0 - cov1).astype(float))
    shift = (mean0 - mean1).astype(float)[:, 0]
    quadratic = np.trace(whitened @ whitened) / 4
    label = shift @ np.linalg.solve(cov1.astype(float), shift) / 2
    assert found.kl == pytest.approx(quadratic + label, rel=1e-5)


def test_no_query_reveals_more_than_the_record_itself():
    """f(x_i) is sufficient: 2,000 random query sets, near the record and far from it."""
    ratios = []
    trusted = 0
    for seed in range(20):
        X, y, rng = data(100 + seed, n=25, d=1 + seed % 3)
        kernel = kernels.rbf(float(rng.uniform(0.3, 2.0)))
        noise = float(10.0 ** rng.uniform(-3, 0))
        for _ in range(10):
            group = rng.choice(25, size=int(rng.integers(1, 3)), replace=False).tolist()
            own = lood.distinguish(X, y, leave_out=group, kernel=kernel, noise_variance=noise)
            for _ in range(10):
                size = (int(rng.integers(1, 6)), X.shape[1])
                near = X[rng.choice(group, size=size[0])] + 10.0 ** rng.uniform(-4, 1) * rng.normal(
                    size=size
                )
                other = lood.distinguish(
                    X, y, leave_out=group, queries=near, kernel=kernel, noise_variance=noise
                )
                slack = 1e-6 if other.trusted and own.trusted else 1e-3
                ratios.append(other.kl / own.kl)
                assert other.kl <= own.kl * (1 + slack)
                assert other.kl_reverse <= own.kl_reverse * (1 + slack)
                trusted += other.trusted
    assert len(ratios) == 2000
    assert trusted > 1400
    assert np.max(ratios) > 0.99


def test_queries_that_contain_the_group_reveal_exactly_as_much():
    X, y, rng = data(5)
    own = lood.distinguish(X, y, leave_out=[2, 8], kernel=KERNEL, noise_variance=0.01)
    more = lood.distinguish(
        X,
        y,
        leave_out=[2, 8],
        queries=np.vstack([X[[8, 2]], rng.normal(size=(3, 2))]),
        kernel=KERNEL,
        noise_variance=0.01,
    )
    assert more.kl == own.kl
    assert float(measures.kl(more.law_pair())) == pytest.approx(own.kl, rel=1e-8)


def test_repeated_queries_are_told_apart_no_more_than_once():
    X, y, rng = data(6)
    q = rng.normal(size=(3, 2))
    options = {"leave_out": [1], "kernel": KERNEL, "noise_variance": 0.1}
    once = lood.distinguish(X, y, queries=q, **options)
    twice = lood.distinguish(X, y, queries=np.vstack([q, q]), **options)
    assert (once.queries_used, twice.queries_used) == (3, 3)
    assert twice.kl == pytest.approx(once.kl, rel=1e-9)
    with pytest.raises(InputError, match="positive definite"):
        twice.law_pair()


def test_leaving_out_everything_compares_with_the_prior():
    X, y, _ = data(7, n=4)
    found = lood.distinguish(X, y, leave_out=[0, 1, 2, 3], kernel=KERNEL, noise_variance=0.1)
    np.testing.assert_allclose(found.mean_without, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.covariance_without, KERNEL(X), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"leave_out": []}, "list of row numbers"),
        ({"leave_out": [1.5]}, "list of row numbers"),
        ({"leave_out": [40]}, "names row 40, but rows run from 0 to 39"),
        ({"leave_out": [-1]}, "names row -1"),
        ({"leave_out": [1, 1]}, "twice"),
        ({"queries": np.zeros((0, 2))}, "queries must be rows of features"),
        ({"queries": np.zeros(2)}, "queries must be rows of features"),
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
    ],
)
def test_refusals(change, sentence):
    X, y, _ = data(8)
    options = {"leave_out": [1], "kernel": KERNEL, "noise_variance": 0.1} | change
    with pytest.raises(InputError, match=sentence):
        lood.distinguish(X, y, **options)


def test_too_large_is_refused(monkeypatch):
    X, y, rng = data(8)
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 0)
    with pytest.raises(InputError, match="40 records at 3 queries needs"):
        lood.distinguish(
            X, y, leave_out=[1], queries=rng.normal(size=(3, 2)), kernel=KERNEL, noise_variance=0.1
        )


def test_provenance_says_what_was_left_out():
    X, y, rng = data(9)
    found = lood.distinguish(
        X, y, leave_out=[1, 2], queries=rng.normal(size=(3, 2)), kernel=KERNEL, noise_variance=0.1
    )
    provenance = found.law_pair().provenance
    assert (provenance.question, provenance.method) == ("leave_one_out", "exact")
    assert "2 left out, 3 queries" in provenance.source
    assert "3 of 3 queries told apart" in provenance.assumptions[-1].evidence
