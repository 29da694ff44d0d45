"""What the Nyström route claims of each record, against the dense answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope import kernels, lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood import nystrom
from leakscope.lood.nystrom import certified_records
from leakscope.lood.process import ProcessOnRecords
from leakscope.reporting.audit_page import record_columns, table_columns

# No interval is asked to hold beyond what the dense answer itself is known to.
ROUNDING = 1e-6


def made(kind: str, records: int = 800, seed: int = 0, features: int = 5) -> ProcessOnRecords:
    """Records of several shapes, whose spectra fall quickly, with labels of a smooth function."""
    rng = np.random.default_rng(seed)
    spread = 0.6 ** np.arange(features)
    X = rng.normal(size=(records, features)) * spread
    if kind == "clusters":
        X += 4.0 * rng.normal(size=(6, features))[rng.integers(0, 6, records)]
    if kind == "outliers":
        X[:: records // 8] *= 12.0
    if kind == "duplicates":
        X[1::4] = X[0::4]
    if kind == "hidden cluster":
        # Far from all others and from each other's copies only by little: nothing else sees them.
        X[-6:] = 9.0 + 1e-3 * rng.normal(size=(6, features))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=records)
    kernel: Any = kernels.matern(2.5, 3.0) if kind == "matern" else kernels.rbf(2.0)
    targets = np.column_stack([y, np.cos(X[:, 0])]) if kind == "outputs" else y
    return ProcessOnRecords(X, targets, kernel, noise_variance=0.1)


def within(found: lood.Separation, exact: FloatArray) -> Any:
    interval = found.interval
    assert interval is not None
    low, high = interval
    return (low <= exact * (1.0 + ROUNDING)) & (exact <= high * (1.0 + ROUNDING))


KINDS = ["plain", "clusters", "outliers", "duplicates", "hidden cluster", "matern", "outputs"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("inducing", [40, 200])
def test_the_dense_answer_lies_within_what_is_claimed(
    kind: str, noise: float, inducing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nystrom, "SOLVED_UP_TO", 0)
    process = replace(made(kind), noise_variance=noise)
    exact = process.separation()
    found = certified_records(process, inducing=inducing).laws
    covered = within(found, exact.kl)
    assert covered.mean() >= 0.99
    assert covered[np.argsort(-exact.kl)[:40]].mean() >= 0.95
    sure = found.trusted & (exact.kl > nystrom.UNSEEN_BELOW)
    away = np.abs(found.kl / exact.kl - 1.0)
    assert np.mean(away[sure] <= 0.1) >= 0.99 if sure.any() else True
    low, high = found.ends
    advantage = exact.measured(measures.advantage)
    between = (low.measured(measures.advantage) <= advantage + ROUNDING) & (
        advantage <= high.measured(measures.advantage) + ROUNDING
    )
    assert between[covered].mean() >= 0.99


def test_the_claims_cover_over_many_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystrom, "SOLVED_UP_TO", 0)
    shares, first = [], []
    for seed in range(20):
        process = made(KINDS[seed % 4], records=600, seed=100 + seed)
        exact = process.separation().kl
        covered = within(certified_records(process, inducing=90).laws, exact)
        shares.append(covered.mean())
        first.append(covered[np.argsort(-exact)[:30]].mean())
    assert np.mean(shares) >= 0.99
    assert np.mean(first) >= 0.99


def test_the_claims_cover_where_nearly_everything_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two columns: errors are a ten thousandth and less, and the claims as small."""
    monkeypatch.setattr(nystrom, "SOLVED_UP_TO", 0)
    shares, inducing = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(500, 2)), rng.normal(size=500)
        for noise in (0.1, 1e-3):
            process = ProcessOnRecords(X, y, kernels.rbf(2.0), noise_variance=noise)
            found = certified_records(process, inducing=100)
            low, high = found.laws.interval or (np.nan, np.nan)
            exact = process.separation().kl
            held = (low <= exact * (1.0 + 1e-9)) & (exact <= high * (1.0 + 1e-9))
            shares.append(held.mean())
            inducing.append(held[found.certificate.rows].mean())
            assert np.median(found.laws.error_estimate) < 1e-3
    assert np.mean(shares) >= 0.995
    assert np.mean(inducing) >= 0.99


def test_both_ends_of_a_leverage_hold_exactly() -> None:
    """The inequalities of the module, with E, H and z as matrices."""
    for kind in KINDS[:5]:
        process = made(kind, records=300)
        K, s2 = process.fresh_matrix(), process.noise_variance
        inducing = nystrom.Inducing.of(process, np.arange(0, 300, 12))
        phi = inducing.features(process.features)
        Q, identity = phi @ phi.T, np.eye(300)
        E, H = K - Q, Q @ np.linalg.inv(Q + s2 * identity)
        assert np.linalg.eigvalsh(E)[0] > -1e-9
        z = (identity - H) / s2
        tau = s2**2 * np.einsum("ij,ij->j", z, E @ z)
        reach = s2**2 * np.sum((E @ z) ** 2, axis=0) / tau
        h, h_q = process.separation().leverage, np.diagonal(H)
        assert (h_q + tau / (s2 + reach) <= h + 1e-7).all()
        assert (h <= h_q + tau / (s2 + tau / (1.0 - h_q)) + 1e-7).all()
        whole = nystrom.Nystrom.of(inducing, np.arange(300))
        (seen,) = whole.seen([s2])
        np.testing.assert_allclose(seen.leverage, h_q, rtol=1e-6)
        np.testing.assert_allclose(whole.left, np.diagonal(E), atol=1e-8)
        np.testing.assert_allclose(whole.exact.squares, np.sum(E**2, axis=1), atol=1e-8)
        np.testing.assert_allclose(seen.others, np.sum(H**2, axis=1) - h_q**2, rtol=1e-4, atol=1e-9)


def test_the_labels_error_is_that_of_the_others_to_first_order() -> None:
    """What a sampled record knows of its residual's error, against the two dense answers."""
    process = made("plain", records=400)
    s2, y = process.noise_variance, process.targets
    whole = nystrom.Nystrom.of(nystrom.Inducing.of(process, np.arange(0, 400, 2)), np.arange(400))
    (seen,) = whole.seen([s2])
    phi = whole.inducing.features(process.features)
    near = lood.all_records(phi @ phi.T + 1e-12 * np.eye(400), y, noise_variance=s2)
    np.testing.assert_allclose(seen.residual, near.residual, rtol=1e-5, atol=1e-7)


def test_a_hidden_cluster_is_found_and_right() -> None:
    process = made("hidden cluster", records=2000)
    found = certified_records(process, inducing=150)
    exact = process.separation().kl
    assert set(found.certificate.rows.tolist()) & set(range(1994, 2000))
    assert found.laws.trusted[1994:].all()
    np.testing.assert_allclose(found.laws.kl[1994:], exact[1994:], rtol=0.1)


def test_an_outlier_is_seen() -> None:
    rng = np.random.default_rng(7)
    X = np.vstack([rng.normal(size=(1000, 3)), [[9.0, 9.0, 9.0]]])
    process = ProcessOnRecords(
        X, np.append(np.sin(X[:1000, 0]), 4.0), kernels.rbf(2.0), noise_variance=0.1
    )
    found, exact = certified_records(process, inducing=160), process.separation()
    assert 1000 in found.certificate.rows
    assert np.argmax(found.laws.kl) == 1000
    assert found.laws.trusted[1000]
    assert found.laws.kl[1000] == pytest.approx(exact.kl[1000], rel=1e-3)


def test_all_records_inducing_is_the_dense_answer() -> None:
    process = made("outputs", records=80)
    found, dense = certified_records(process, inducing=80), process.separation()
    np.testing.assert_allclose(found.laws.kl, dense.kl, rtol=1e-4)
    np.testing.assert_allclose(found.laws.mean_without, dense.mean_without, atol=1e-5)
    assert found.laws.trusted.all()
    assert found.laws.provenance().method == "approximate"


def test_what_cannot_be_resolved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystrom, "SOLVED_UP_TO", 0)
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(900, 20)), rng.normal(size=900)
    found = certified_records(ProcessOnRecords(X, y, kernels.rbf(3.0), 0.01), inducing=60)
    assert not found.laws.trusted.any()
    told = found.certificate
    assert told.unresolved == 900
    assert told.needed is not None
    assert told.needed > 300
    assert "900 are not known to 10%" in told.sentence()
    with pytest.warns(UserWarning, match="lie between kl_low and kl_high"):
        result = leakscope.audit(
            X, y, kernel=kernels.rbf(3.0), route="nystrom", inducing=60, sensitivity=False
        )
    assert "Cannot tell: the approximation knows 900 of 900 records" in result.verdict
    headings = [column.heading for column in table_columns(result)]
    assert headings[2:5] == ["kl", "between", "to"]
    assert "check" in headings
    columns = record_columns(result)
    assert columns["kl_low"] == pytest.approx([r.kl_low for r in result.records], rel=1e-3)
    assert columns["check"] == ["failed"] * 900
    frame = result.to_frame()
    assert (frame["kl_low"] <= frame["kl"]).all()
    assert (frame["kl"] <= frame["kl_high"]).all()
    assert (frame["advantage_low"] <= frame["advantage_high"]).all()


def test_conjugate_gradients_solve_what_is_left() -> None:
    process = made("clusters", records=900)
    exact = process.separation()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nystrom, "SOLVED_UP_TO", 0)
        before = certified_records(process, inducing=60).laws
    found = certified_records(process, inducing=60)
    assert found.certificate.solved > 0
    assert found.laws.trusted.mean() > before.trusted.mean()
    assert within(found.laws, exact.kl).mean() >= 0.99
    assert found.certificate.solved <= nystrom.SOLVED_AT_ONCE
    assert f"{found.certificate.solved} were solved exactly" in found.certificate.sentence()


def test_the_bounds_of_conjugate_gradients_hold_before_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = made("outputs", records=300)
    s2 = process.noise_variance
    M = process.fresh_matrix() + s2 * np.eye(300)
    whole = nystrom.Nystrom.of(nystrom.Inducing.of(process, np.arange(0, 300, 10)))
    columns = np.column_stack([process.outputs, np.eye(300)[:, 7]])
    exact = np.linalg.solve(M, columns)
    m = np.diagonal(np.linalg.inv(M))
    for steps in (0, 1, 3, 50):
        monkeypatch.setattr(nystrom, "MOST_STEPS", steps)
        found, rest = nystrom.solve_columns(whole, columns, np.full(3, 1e-9))
        lengths = np.linalg.norm(rest, axis=0)
        bound = np.sqrt(m / s2)[:, None] * lengths
        assert (np.abs(found - exact) <= bound + 1e-9).all()
        least = columns[:, 2] @ found[:, 2] + rest[:, 2] @ found[:, 2]
        assert -1e-9 <= m[7] - least <= lengths[2] ** 2 / s2 + 1e-9
    assert lengths.max() <= 1e-7


def test_the_same_draw_every_time_and_more_rows_keep_the_first() -> None:
    process = made("plain", records=300)
    one, two = (certified_records(process, inducing=60) for _ in range(2))
    np.testing.assert_array_equal(one.certificate.rows, two.certificate.rows)
    np.testing.assert_array_equal(one.laws.kl, two.laws.kl)
    first = nystrom.first_rows(process, 20)
    leverage = np.full(300, 0.01)
    leverage[[5, 77]] = 1.0
    more = nystrom.more_rows(first, leverage, 60)
    assert len(more) == 60
    assert {5, 77, *first.tolist()} <= set(more.tolist())
    assert len(nystrom.more_rows(first, leverage, 1000)) == 300
    sure = nystrom.more_rows(first, leverage, 60, first=np.array([2, 3]))
    assert len(sure) == 60
    assert {2, 3, 5, 77, *first.tolist()} <= set(sure.tolist())


def test_the_most_exposed_are_seen_in_full() -> None:
    process = made("outliers", records=900)
    found = certified_records(process, inducing=100)
    top = np.argsort(-process.separation().kl)[:5]
    assert set(top.tolist()) <= set(found.certificate.rows.tolist())


def test_quantiles_are_of_each_record_s_own_kind() -> None:
    sample = nystrom.Sample.of(np.arange(1000.0))
    assert sample.exposed.sum() == 500
    np.testing.assert_allclose(sample.weights.sum(), 1000)
    scores = np.where(sample.exposed[sample.rows], 3.0, 1.0)
    found = sample.quantile(scores)
    np.testing.assert_array_equal(found, np.where(sample.exposed, 3.0, 1.0))


def test_intervals_follow_what_is_released_and_chosen() -> None:
    process = made("outliers", records=300)
    found, exact = certified_records(process, inducing=60).laws, process.separation()
    noised = found.noised(0.5)
    assert within(noised, exact.noised(0.5).kl).mean() >= 0.99
    some = found.some([3, 5])
    assert some.interval is not None
    np.testing.assert_array_equal(some.interval[0], found.interval[0][[3, 5]])
    assert exact.interval is None


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"inducing": 1}, "at least 2 inducing records"),
        ({"error": 0.0}, "error must be between 0 and 1"),
        ({"error": 1.0}, "error must be between 0 and 1"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        certified_records(made("plain", records=60), **changed)


def test_a_record_without_variance_and_groups_are_refused() -> None:
    X = np.random.default_rng(9).normal(size=(30, 2))
    X[4] = 0.0
    with pytest.raises(InputError, match=r"row 4 with itself is 0\.0"):
        certified_records(ProcessOnRecords(X, X[:, 0], kernels.linear(), 0.1), inducing=4)
    grouped = replace(made("plain", records=60), groups=np.arange(60) // 2)
    with pytest.raises(InputError, match="not for groups"):
        certified_records(grouped, inducing=10)


def test_too_little_memory_is_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakscope._numerics.memory.available_memory", lambda: 300 * 2**20)
    with pytest.raises(InputError, match=r"approximate audit of 60 records .* use fewer inducing"):
        certified_records(made("plain", records=60), inducing=10)
