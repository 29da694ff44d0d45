"""Two audits side by side: which records are matched, what differs, what is worse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import leakscope
from leakscope import InputError, kernels, lood
from leakscope.auditing import write_run
from leakscope.comparing import compare
from leakscope.data import read_dataset, read_example
from leakscope.results import read_result, write_result
from leakscope.results.columns import Table
from leakscope.settings import AuditSettings
from tests.audits import process_audit

RBF = lood.Process(kernels.rbf())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(130, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=130)


@pytest.fixture(scope="module")
def two(data):
    return (
        leakscope.audit(*data, model=lood.Process(kernels.rbf(2.0), 0.05)),
        leakscope.audit(*data, model=lood.Process(kernels.rbf(1.0), 0.05)),
    )


def test_numbers_are_those_of_the_two(two):
    first, second = two
    found = compare(first, second)
    assert found.shared == 130
    assert found.rank_correlation == pytest.approx(spearmanr(first.kl, second.kl)[0])
    one, other = first.ranking(), second.ranking()
    assert found.top_ten_kept == len(set(one[:10]) & set(other[:10]))
    assert (found.top_hundredth, found.top_hundredth_kept) == (
        2,
        len(set(one[:2]) & set(other[:2])),
    )
    for side, result in ((found.first, first), (found.second, second)):
        assert side.largest_advantage == result.advantage.max()
        assert side.median_advantage == np.median(result.advantage)
        assert side.exposed == np.count_nonzero(result.advantage >= 0.1)
        assert side.median_kl == np.median(result.kl)
        assert sum(side.advantage_counts) == sum(side.log10_kl_counts) == 130
        counts, _ = np.histogram(result.advantage, bins=found.advantage_edges)
        assert side.advantage_counts == counts.tolist()
    assert [record.record_id for record in found.records] == list(one)
    for record in found.records[:5]:
        row = int(record.record_id)
        assert record.second_rank == other.index(row) + 1
        assert (record.first_kl, record.second_kl) == (first.kl[row], second.kl[row])
    change = second.advantage - first.advantage
    assert [r.record_id for r in found.risen] == np.argsort(-change)[:10].tolist()
    fallen = [row for row in np.argsort(change)[:10].tolist() if change[row] < 0]
    assert [r.record_id for r in found.fallen] == fallen
    assert {(d.what, d.first, d.second) for d in found.differences} == {
        ("kernel length_scale", "2", "1")
    }


def test_a_run_is_not_worse_than_itself_and_noise_makes_less(two, data):
    first, _ = two
    same = compare(first, first)
    assert (same.worse, same.differences, same.rank_correlation) == ([], [], pytest.approx(1.0))
    assert (same.risen, same.fallen, same.appeared, same.vanished) == ([], [], 0, 0)
    quiet = leakscope.audit(*data, model=lood.Process(kernels.rbf(2.0), 1.0))
    better = compare(first, quiet)
    assert better.worse == []
    assert "No improvement can be claimed" in better.verdict
    assert "different models" in better.verdict
    worse = compare(quiet, first)
    assert len(worse.worse) == 3
    assert "the largest advantage rises from" in worse.worse[0]
    assert compare(quiet, first, tolerance=1.0).worse == []
    for found in (same, better, worse):
        assert "safe" not in found.verdict
        assert "no trained model was examined" in found.verdict


def people(path, rows, seed=0):
    rng = np.random.default_rng(seed)
    lines = [f"p{i},{a},{b},{a - b}" for i, (a, b) in enumerate(rng.normal(size=(40, 2)))]
    path.write_text("who,a,b,y\n" + "\n".join(lines[i] for i in rows) + "\n")
    return path


def test_records_are_matched_by_their_own_ids_where_the_data_differ(tmp_path):
    settings = AuditSettings()
    every = people(tmp_path / "every.csv", range(40))
    fewer = people(tmp_path / "fewer.csv", range(3, 40))
    results = [
        process_audit(read_dataset(path, target="y", id_column="who"), settings)
        for path in (every, fewer)
    ]
    found = compare(*results)
    assert (found.same_data, found.shared, found.vanished, found.appeared) == (False, 37, 3, 0)
    assert set(found.vanished_ids) == {"p0", "p1", "p2"}
    assert "data digest" in {d.what for d in found.differences}
    # Row numbers of different data are not ids.
    numbered = [
        process_audit(read_dataset(path, target="y", ignore=("who",)), settings)
        for path in (every, fewer)
    ]
    apart = compare(*numbered)
    assert (apart.shared, apart.records, apart.rank_correlation) == (0, [], None)
    assert "have no id column in common" in apart.not_aligned
    # One with its ids and one without are the same data, but no id is in both.
    mixed = compare(results[0], numbered[0])
    assert mixed.same_data is True
    assert "No id is in both runs" in mixed.not_aligned


def test_other_datasets_are_compared_by_distribution_only():
    settings = AuditSettings()
    found = compare(*(process_audit(read_example(name), settings) for name in ("diabetes", "wine")))
    assert (found.same_data, found.shared) == (False, 0)
    assert found.first.units == 442
    assert found.second.units == 178
    assert any("KL sums over outputs" in sentence for sentence in found.warnings)


def test_arrays_of_one_size_are_taken_for_the_same_rows(two, data):
    assert compare(*two).same_data is None
    assert "arrays in memory" in compare(*two).warnings[0]
    X, y = data
    fewer = leakscope.audit(X[:100], y[:100], model=RBF)
    assert "cannot be seen from row numbers" in compare(two[0], fewer).not_aligned
    named = [
        leakscope.audit(X[:count], y[:count], record_ids=[f"r{i}" for i in range(count)], model=RBF)
        for count in (130, 100)
    ]
    assert compare(*named).shared == 100


def test_different_questions_are_refused(two, data):
    first, _ = two
    grouped = leakscope.audit(*data, groups=np.arange(130) // 2, model=RBF)
    with pytest.raises(InputError, match="what leaves: a record against a group"):
        compare(first, grouped)
    other = first.model_copy(update={"provenance": {**first.provenance, "question": "population"}})
    with pytest.raises(
        InputError, match=r"question: leave_one_out against population.*cannot be compared"
    ):
        compare(first, other)
    with pytest.raises(InputError, match="tolerance must be zero or more"):
        compare(first, first, tolerance=-1.0)
    assert compare(grouped, grouped).unit == "group"


def test_runs_files_and_results_alike(two, tmp_path):
    first, second = two
    run = write_run(first, tmp_path / "run")
    file = write_result(second, tmp_path / "second.json")
    by_path = compare(run, file)
    assert by_path.records == compare(first, second).records
    assert by_path.first.run == str(run)
    written = write_result(by_path, tmp_path / "compared.json")
    assert read_result(written) == by_path
    with pytest.raises(InputError, match="kind compare; compare takes two runs of leakscope audit"):
        compare(run, written)


def test_aggregates_only(two):
    found = compare(*two).aggregates_only()
    assert (found.records, found.risen, found.fallen, found.warnings) == ([], [], [], [])
    assert found.shared == 130
    assert found.redacted


def test_what_is_not_resolved_is_worse(two):
    first, _ = two
    rows = first.table.rows()
    rows[0] |= {"confirmed": False, "check": -1}
    doubted = first.model_copy(update={"table": Table.of_rows(rows)})
    found = compare(first, doubted)
    assert found.worse == ["float64 does not resolve 1 records (0 in the first run)"]
