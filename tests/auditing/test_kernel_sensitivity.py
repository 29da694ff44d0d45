"""Other kernels and the data's own noise beside the audit: the same as auditing with those."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import leakscope
from leakscope import kernels, lood, measures
from leakscope.data import read_example
from leakscope.kernels.formulas import RBF, median_length_scale
from leakscope.lood.noise import ranks_of
from leakscope.settings import AuditSettings
from leakscope.subjects.process import choices as sensitivity
from leakscope.subjects.process.explanation import calibrated
from tests.audits import process_audit


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=150)
    X[17], y[17] = 5.0, 4.0
    return X, y


@pytest.fixture(scope="module")
def result(data):
    return leakscope.audit(*data, kernel=kernels.rbf(2.0), noise_variance=0.05)


def scaled(kernel, X, prior):
    """The kernel matrix with the mean prior variance of the kernel in use."""
    K = kernel(X)
    return K * prior / np.mean(np.diagonal(K))


OTHERS = (
    kernels.rbf(1.0),
    kernels.rbf(4.0),
    kernels.matern(1.5, 2.0),
    kernels.linear(bias_variance=1.0, divide_by_features=True),
    kernels.nngp(depth=2, bias_variance=0.1),
)


def test_each_kernel_is_an_audit_of_its_own(data, result):
    X, y = data
    compared = result.details.kernels
    assert compared.refused == []
    assert [entry.kernel for entry in compared.others] == [k.describe() for k in OTHERS]
    ranks = [ranks_of(result.kl)]
    for kernel, entry in zip(OTHERS, compared.others, strict=True):
        alone = lood.all_records(scaled(kernel, X, 1.0), y, noise_variance=0.05)
        advantage = measures.advantage(alone.law_pair())
        ranks.append(ranks_of(alone.kl))
        assert entry.rank_correlation == pytest.approx(spearmanr(result.kl, alone.kl)[0])
        assert entry.largest_advantage == pytest.approx(advantage.max(), rel=1e-6)
        assert entry.median_advantage == pytest.approx(np.median(advantage), rel=1e-6)
        first, second = result.ranking(), np.argsort(-alone.kl).tolist()
        assert entry.top_ten_kept == len(set(first[:10]) & set(second[:10]))
        assert entry.top_hundredth_kept == len(set(first[:2]) & set(second[:2]))
        assert entry.rank_of_first == second.index(first[0]) + 1
    frame = result.to_frame()
    order = result.order
    np.testing.assert_array_equal(frame["kernel_rank_low"], np.min(ranks, axis=0)[order])
    np.testing.assert_array_equal(frame["kernel_rank_high"], np.max(ranks, axis=0)[order])
    own = compared.in_use
    assert (own.rank_correlation, own.top_ten_kept, own.rank_of_first) == (pytest.approx(1), 10, 1)


def test_the_prediction_error_is_that_of_refitting(data):
    """Each label against a fit to the others, written out."""
    X, y = data
    K = kernels.rbf(2.0)(X)
    groups = np.arange(150) // 3
    for count, laws in (
        (150, lood.all_records(K, y, noise_variance=0.05)),
        (50, lood.all_groups(K, y, groups, noise_variance=0.05)),
    ):
        unit = np.arange(150) if count == 150 else groups
        residuals = np.empty(150)
        for left in range(count):
            out, rest = unit == left, unit != left
            M = K[np.ix_(rest, rest)] + 0.05 * np.eye(rest.sum())
            residuals[out] = y[out] - K[np.ix_(out, rest)] @ np.linalg.solve(M, y[rest])
        assert laws.prediction_error == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-9)


def test_a_networks_matrix_over_whole_blocks_is_the_same(data):
    network = kernels.nngp(depth=2, bias_variance=0.1)
    np.testing.assert_allclose(
        sensitivity._matrix(network, data[0]), network(data[0]), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (kernels.linear(), ["rbf", "matern", "nngp"]),
        (kernels.matern(1.5, 2.0), ["matern", "matern", "rbf", "linear", "nngp"]),
        (kernels.matern(0.5, 2.0), ["matern", "matern", "rbf", "matern", "linear", "nngp"]),
        (kernels.nngp(depth=2), ["rbf", "matern", "linear"]),
        (kernels.nngp(depth=4), ["rbf", "matern", "linear", "nngp"]),
    ],
)
def test_the_kernel_in_use_is_not_among_the_others(data, kernel, names):
    found = sensitivity.alternatives(kernel, data[0])
    assert [other.describe()["name"] for other in found] == names


def test_groups_are_compared_as_groups(data):
    X, y = data
    result = leakscope.audit(X, y, noise_variance=0.05, groups=np.arange(150) // 3)
    compared = result.details.kernels
    assert result.to_frame()["kernel_rank_low"].between(1, 50).all()
    assert len(result.table) == 50
    matern = kernels.matern(1.5, result.details.kernel["length_scale"])
    alone = leakscope.audit(
        X, y, kernel=matern, noise_variance=0.05, groups=np.arange(150) // 3, sensitivity=False
    )
    entry = next(entry for entry in compared.others if entry.kernel["name"] == "matern")
    assert entry.median_advantage == pytest.approx(np.median(alone.advantage), rel=1e-6)
    assert result.details.choices.noise_of_data.criterion == "marginal_likelihood"


def test_the_noise_of_the_data_is_that_of_the_criterion(data, result):
    X, y = data
    own = result.details.choices.noise_of_data
    chosen = leakscope.audit(X, y, kernel=kernels.rbf(2.0), noise_variance="leave_one_out")
    assert own.noise_variance == chosen.laws.separation.noise_variance
    assert own.largest_advantage == pytest.approx(chosen.advantage.max(), rel=1e-9)
    assert own.top_ten_kept == len(set(result.ranking()[:10]) & set(chosen.ranking()[:10]))
    assert own.records == 150
    # One that the data chose is not asked for again.
    assert chosen.details.choices.noise_of_data is None
    assert "maximises the leave-one-out predictive score" in chosen.details.choices.noise_reason


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.1, "is a pessimistic setting"),
        (1.0, "is about what the data"),
        (10.0, "is an optimistic setting"),
    ],
)
def test_the_noise_is_explained(data, result, factor, words):
    level = factor * result.details.choices.noise_of_data.noise_variance
    told = leakscope.audit(*data, kernel=kernels.rbf(2.0), noise_variance=level).details.choices
    assert words in told.noise_reason
    assert "of the target's variance" in told.noise_reason


def test_the_kernel_is_explained(data):
    X, y = data
    assert (
        "the median distance between records; the usual"
        in leakscope.audit(X, y, kernel="rbf").details.choices.kernel_reason
    )
    given = leakscope.audit(X, y, kernel=kernels.rbf(2.0), sensitivity=False).details.choices
    assert "as given" in given.kernel_reason
    assert f"{median_length_scale(X):.4g}" in given.kernel_reason
    digits = process_audit(read_example("digits"), AuditSettings(sensitivity=False)).details.choices
    assert "pictures of 8 x 8 pixels" in digits.kernel_reason
    assert "kernels.conv" in digits.kernel_reason
    for kernel, words in ((kernels.linear(), "linear regression"), (kernels.nngp(), "very wide")):
        told = leakscope.audit(X, y, kernel=kernel, sensitivity=False).details.choices
        assert words in told.kernel_reason


def test_what_is_not_compared_says_why(data, monkeypatch):
    skipped = leakscope.audit(*data, sensitivity=False)
    assert "as asked" in skipped.details.choices.not_compared
    assert skipped.to_frame()["kernel_rank_low"].isna().all()
    monkeypatch.setattr("leakscope.subjects.process.choices.COMPARED_UP_TO", 100)
    large = leakscope.audit(*data, kernel="rbf")
    assert "more than 100 records" in large.details.choices.not_compared
    assert large.details.kernels is None
    assert large.examined.computed.sweep is not None
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="approximate"):
        rough = leakscope.audit(*data, route="nystrom", inducing=40)
    assert "this audit is approximate" in rough.details.choices.not_compared


def test_the_noise_of_the_data_for_any_number_of_records_in_few_features(data, monkeypatch):
    monkeypatch.setattr("leakscope.subjects.process.choices.COMPARED_UP_TO", 100)
    asked = {"kernel": kernels.linear(bias_variance=1.0), "noise_variance": 0.01}
    found = leakscope.audit(*data, **asked)
    assert "Other kernels were not tried" in found.details.choices.not_compared
    own = found.details.choices.noise_of_data
    known = leakscope.audit(*data, **{**asked, "noise_variance": "marginal_likelihood"})
    assert own.criterion == "marginal_likelihood"
    assert own.records == len(data[0])
    assert own.noise_variance == pytest.approx(known.laws.separation.noise_variance, rel=1e-4)
    assert own.largest_advantage == pytest.approx(known.advantage.max(), rel=1e-3)
    assert own.median_advantage == pytest.approx(np.median(known.advantage), rel=1e-3)
    assert "which the data would choose" in " ".join(found.answer())


def test_a_kernel_that_fails_is_told_and_left_out(data, monkeypatch):
    class Constant(RBF):
        def __call__(self, X, Z=None):
            return np.ones((len(X), len(X)))

    monkeypatch.setattr(
        sensitivity, "alternatives", lambda kernel, X: (Constant(1.0), kernels.rbf(1.0))
    )
    compared = leakscope.audit(*data, kernel=kernels.rbf(2.0)).details.kernels
    assert len(compared.others) == 1
    assert "the kernel cannot tell" in compared.refused[0]


def test_the_verdict_says_where_the_first_is_not_first():
    diabetes = process_audit(read_example("diabetes"), AuditSettings())
    linear = next(e for e in diabetes.details.kernels.others if e.kernel["name"] == "linear")
    assert linear.rank_of_first > 10
    sentence = f"the first is outside the top 10 ({linear.rank_of_first} under {linear.name})"
    assert sentence in diabetes.verdict
    assert sentence in " ".join(diabetes.sentences_without_ids)
    assert diabetes.details.choices.kernels.in_use.name == "rbf, length scale 4.146"
    # Where all agree on the first, nothing is added.
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X[:, 0].copy()
    X[5], y[5] = 9.0, -30.0
    assert "The kernel matters" not in leakscope.audit(X, y, noise_variance=0.1).verdict


def test_flipped_labels_are_named_whatever_their_rank():
    from dataclasses import replace

    data = read_example("breast_cancer")
    leverage = process_audit(data, AuditSettings(sensitivity=False)).laws.separation.leverage
    row = int(np.argsort(leverage)[len(leverage) // 2])
    target = data.target.copy()
    target[row] = 1 - target[row]
    settings = AuditSettings(sensitivity=False, noise_variance="marginal_likelihood")
    result = process_audit(replace(data, target=target, source=None), settings)
    named = {entry.record_id: entry for entry in result.details.disagreeing}
    assert row in named
    assert named[row].rank == result.ranking().index(row) + 1 > 6
    own = calibrated(result.laws.separation.disagreement, 1)
    assert named[row].disagreement == pytest.approx(own[row])
    quiet = leakscope.audit(np.eye(4), np.arange(4.0), sensitivity=False, noise_variance=99.0)
    assert quiet.details.disagreeing == []
