"""Why a record is exposed, against plain distances, refitting and ``lood.influence``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leakscope
from leakscope import kernels, lood
from leakscope.errors import InputError
from leakscope.subjects.process.explanation import explain
from leakscope.subjects.subgroups import exposure_by, of_groups


def problem(outputs=1):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 3))
    X[7] += 5.0
    y = np.sin(X[:, 0]) + 0.1 * generator.normal(size=60)
    y[20] += 3.0
    return X, y if outputs == 1 else np.column_stack([y, generator.normal(size=60)])


@pytest.mark.parametrize("outputs", [1, 2])
def test_each_number_is_what_plain_computation_says(outputs):
    X, y = problem(outputs)
    kernel = kernels.rbf(1.5)
    result = leakscope.audit(
        X, y, kernel=kernel, noise_variance=0.05, explain=60, sensitivity=False
    )
    # For an RBF kernel the distance grows with the Euclidean one: the same neighbours.
    euclid = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(euclid, np.inf)
    in_kernel = np.sqrt(2.0 - 2.0 * np.exp(-(euclid**2) / (2 * 1.5**2)))
    usual = np.median(in_kernel.min(axis=1))
    influence = lood.influence(X, y, None, kernel, 0.05)
    moved = influence.mean_distance.copy()
    np.fill_diagonal(moved, 0.0)
    rows = y.reshape(60, -1)
    for rank, entry in enumerate(result.explanations, start=1):
        row = entry.record_id
        assert (entry.rank, row) == (rank, result.ranking()[rank - 1])
        np.testing.assert_array_equal(entry.neighbours, np.argsort(euclid[row])[:3])
        np.testing.assert_allclose(entry.distances, np.sort(in_kernel[row])[:3], rtol=1e-9)
        assert entry.isolation == pytest.approx(in_kernel[row].min() / usual, rel=1e-9)
        others = np.delete(np.arange(60), row)
        M = kernel(X[others]) + 0.05 * np.eye(59)
        cross = kernel(X[others], X[[row]])
        mean = (cross.T @ np.linalg.solve(M, rows[others]))[0]
        spread = np.sqrt(1.0 - (cross.T @ np.linalg.solve(M, cross))[0, 0] + 0.05)
        expected = np.sqrt(np.mean((rows[row] - mean) ** 2)) / spread
        assert entry.disagreement == pytest.approx(expected, rel=1e-8)
        assert entry.moved[0] == np.argmax(moved[row])
        shift = np.sqrt(2.0 * moved[row][list(entry.moved)])
        np.testing.assert_allclose(np.abs(entry.shifts), shift, rtol=1e-7)
        share = result.laws.separation.kl_label[row] / result.kl[row]
        assert entry.share_from_label == pytest.approx(share)


def test_the_sentences_name_what_is_odd():
    X, y = problem()
    result = leakscope.audit(X, y, kernel=kernels.rbf(1.5), noise_variance=0.05, explain=60)
    sentences = {entry.record_id: entry.sentence for entry in result.explanations}
    assert "Record 7 stands alone: its nearest neighbour is" in sentences[7]
    assert "standard deviations from what the other records say" in sentences[20]
    content = json.loads(json.dumps(result.to_dict()))
    assert content["explanations"][0]["sentence"] == result.explanations[0].sentence
    assert leakscope.audit(X, y, kernel=kernels.rbf(1.5)).explanations == ()


def test_copies_are_twins_at_distance_zero():
    X, y = problem()
    X[3] = X[7]
    process = lood.ProcessOnRecords(X, y, kernels.rbf(1.5), 0.05)
    (entry,) = explain(process, process.separation(), rows=[7], record_ids=range(60))
    assert entry.neighbours[0] == 3
    assert entry.distances[0] == entry.isolation == 0.0
    assert "has a twin, record 3" in entry.sentence
    doubled = np.vstack([X, X])
    process = lood.ProcessOnRecords(doubled, np.tile(y, 2), kernels.rbf(1.5), 0.05)
    (entry,) = explain(process, process.separation(), rows=[7], record_ids=range(120))
    assert entry.isolation is None
    assert "exact copy" in entry.sentence


def test_groups_are_audited_as_one():
    X, y = problem()
    owner = [f"p{row // 3}" for row in range(60)]
    result = leakscope.audit(
        X, y, kernel=kernels.rbf(1.5), noise_variance=0.05, groups=owner, explain=5
    )
    assert result.unit == "group"
    assert len(result.record_ids) == 20
    assert result.explanations == ()
    one = lood.distinguish(X, y, leave_out=[6, 7, 8], kernel=kernels.rbf(1.5), noise_variance=0.05)
    place = result.record_ids.index("p2")
    assert result.kl[place] == pytest.approx(one.kl, rel=1e-9)
    assert result.advantage[place] == pytest.approx(
        leakscope.measures.advantage(one.sufficient_pair()), rel=1e-7
    )
    frame = result.to_frame()
    assert frame["size"].tolist() == [3] * 20
    assert frame["mean_with"].isna().all()
    record = result.records[0]
    assert (record.size, record.mean_with, result.unit) == (3, None, "group")
    assert "Group p2 ranks first of 20" in result.verdict or "Group p6" in result.verdict
    with pytest.raises(InputError, match="60 records and 2 groups"):
        leakscope.audit(X, y, groups=[1, 2])
    with pytest.raises(InputError, match="all records belong to one group"):
        leakscope.audit(X, y, groups=[1] * 60)
    with pytest.raises(InputError, match="route dense only"):
        leakscope.audit(X, y, groups=owner, route="nystrom")


def test_subgroups_are_summed_up():
    advantage = np.array([0.0, 0.2, 0.4, 0.05, 0.06])
    low, high = exposure_by({"c": ("b", "a", "a", "b", "b")}, advantage, advantage >= 0.1)[::-1]
    assert (high.value, high.count, high.small) == ("a", 2, True)
    assert high.median_advantage == pytest.approx(0.3)
    assert high.share_exposed == 1.0
    assert (low.value, low.largest_advantage, low.share_exposed) == ("b", 0.06, 0.0)
    assert of_groups(["x", "x", "y"], np.array([0, 0, 1]), 2) == ("x", "y")
    assert of_groups(["x", "y", "y"], np.array([0, 0, 1]), 2) == ("(several)", "y")
    with pytest.raises(InputError, match="60 different values"):
        exposure_by({"c": tuple(str(i) for i in range(60))}, np.zeros(60), np.zeros(60))
