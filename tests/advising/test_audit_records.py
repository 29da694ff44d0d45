"""Fewer features, dropping and merging, against refits."""

from __future__ import annotations

import numpy as np
import pytest
from refits import joint, posterior, refitted_pair, small_model
from sklearn.decomposition import PCA

from leakscope import kernels, lood
from leakscope.advising import (
    AuditTarget,
    Defence,
    drop_exposed,
    largest_components,
    least_merging,
    merged_measures,
    principal_directions,
)
from leakscope.errors import InputError
from leakscope.laws import LawPair

ADVANTAGE = AuditTarget("advantage", 0.2)
GROUPS = np.repeat(np.arange(10), [1, 3, 2, 1, 2, 4, 3, 2, 4, 2])


def wide_model(seed: int = 0) -> lood.Process:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2] + 1.0
    return lood.Process(X, np.tanh(X[:, 0]), kernels.rbf(2.0), 0.5)


def test_directions_are_those_of_scikit_learn() -> None:
    model = wide_model()
    expected = PCA().fit(model.features).components_.T
    found = principal_directions(model.features)
    assert np.abs(np.sum(found * expected, axis=0)) == pytest.approx(np.ones(5))


def test_components_are_audited_by_refits() -> None:
    model, target = wide_model(), AuditTarget("advantage", 0.4)
    scan = largest_components(model, target)
    assert scan.counts.tolist() == [1, 2, 3, 4, 5]
    for count, worst in zip(scan.counts, scan.worst, strict=True):
        shown = model.features @ PCA().fit(model.features).components_[:count].T
        expected = lood.all_records(kernels.rbf(2.0)(shown), model.targets, noise_variance=0.5)
        assert worst == pytest.approx(float(target.measured(expected.law_pair()).max()), rel=1e-8)
    meeting = scan.counts[scan.worst <= target.value]
    assert scan.largest == (meeting.max() if len(meeting) else None)
    assert scan.largest is not None


def test_all_components_of_an_open_kernel_give_the_audit_itself() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = lood.Process(X, y, kernels.rbf(), 0.1)
    scan = largest_components(model, ADVANTAGE)
    assert scan.worst[-1] == pytest.approx(
        model.separation().measured(ADVANTAGE.measured).max(), rel=1e-9
    )


def test_many_components_are_searched_on_a_grid() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 30)) * np.geomspace(10.0, 0.1, 30)
    model = lood.Process(X, X[:, 0] / 10.0, kernels.rbf(25.0), 1.0)
    grid = largest_components(model, AuditTarget("advantage", 1e-6))
    assert grid.largest is None
    target = AuditTarget("advantage", float(np.sort(grid.worst)[8]) - 1e-9)
    scan = largest_components(model, target)
    assert len(scan.counts) < 30
    assert scan.largest is not None
    assert scan.largest < 30
    assert scan.worst[scan.counts == scan.largest] <= target.value
    assert scan.worst[scan.counts == scan.largest + 1] > target.value


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_dropping_is_the_greedy_search_by_refits(groups: np.ndarray | None, outputs: int) -> None:
    model = small_model(outputs=outputs, groups=groups)
    target = AuditTarget("advantage", 0.45)
    path = drop_exposed(model, target, batch=1, most=0.6)
    kept = np.arange(len(model.features))
    labels, gone = model.labels, []
    first: dict[int, float] = {}
    while True:
        values = {}
        for unit in np.unique(labels[kept]):
            rows = np.flatnonzero(labels[kept] == unit).tolist()
            left = lood.Process(model.features[kept], model.targets[kept], model.kernel, 0.05)
            values[int(unit)] = float(target.measured(refitted_pair(left, rows)))
        first = first or values
        worst = max(values, key=lambda unit: values[unit])
        assert path.steps[len(gone)].worst == pytest.approx(values[worst], rel=1e-6)
        if values[worst] <= target.value or len(gone) == int(0.6 * model.units):
            break
        gone.append(worst)
        kept = kept[labels[kept] != worst]
    assert path.order.tolist() == gone
    # What dropping exposed: of those left, and among those that had to go.
    assert path.met == (max(values.values()) <= target.value)
    assert path.more_exposed == sum(v > first[unit] * (1 + 1e-6) for unit, v in values.items())
    assert path.newly_exposed == sum(first[unit] <= target.value for unit in gone)
    rows = path.rows(model, len(gone))
    assert np.flatnonzero(rows >= 0).tolist() == kept.tolist()


def test_downdates_agree_with_a_new_factorisation() -> None:
    model = small_model(120, noise=0.001)
    path = drop_exposed(model, AuditTarget("advantage", 0.01), batch=7)
    assert not path.met
    assert len(path.order) == 60
    fresh = model.only(np.flatnonzero(path.rows(model, 60) >= 0)).separation()
    assert path.steps[-1].laws.excess == pytest.approx(fresh.excess, rel=1e-7)
    assert path.steps[-1].laws.score == pytest.approx(fresh.score, rel=1e-6)


def _merged_pair(
    model: lood.Process, rows: np.ndarray, record: int, queries: np.ndarray | None = None
) -> LawPair:
    """With the record in its mean and without it, by refitting, at the two means or elsewhere."""
    s2 = model.noise_variance
    X, y = Defence(s2, rows=rows).training_set(model.features, model.targets)
    row = int(rows[record])
    others = [i for i in np.flatnonzero(rows == row) if i != record]
    X_out, y_out = X.copy(), y.copy()
    X_out[row], y_out[row] = model.features[others].mean(axis=0), model.targets[others].mean(axis=0)
    asked = np.array([X[row], X_out[row]]) if queries is None else queries
    member, nonmember = (joint(*posterior(*side, asked, s2)) for side in ((X, y), (X_out, y_out)))
    return LawPair(member, nonmember)


@pytest.mark.parametrize("outputs", [1, 2])
def test_members_of_a_mean_have_the_laws_of_refits(outputs: int) -> None:
    model = small_model(outputs=outputs)
    rows = np.array([0, 0, 0, 1, 1, *range(2, 21)])
    found = merged_measures(model, rows, ADVANTAGE)
    for record in range(5):
        expected = ADVANTAGE.measured(_merged_pair(model, rows, record))
        assert found[record] == pytest.approx(float(expected), rel=1e-5)
    means, targets = Defence(0.05, rows=rows).training_set(model.features, model.targets)
    small = lood.Process(means, targets, model.kernel, 0.05)
    for record in (5, 23):
        pair = refitted_pair(small, [int(rows[record])])
        assert found[record] == pytest.approx(float(ADVANTAGE.measured(pair)), rel=1e-6)


def test_no_query_tells_more_of_a_merged_record_than_is_said() -> None:
    model = small_model()
    rows = np.array([0, 0, 0, 1, 1, *range(2, 21)])
    found = merged_measures(model, rows, ADVANTAGE)
    rng = np.random.default_rng(3)
    for record in range(5):
        for query in (model.features[record], *rng.normal(size=(4, 2))):
            pair = _merged_pair(model, rows, record, query[None, :])
            assert float(ADVANTAGE.measured(pair)) <= found[record] + 1e-9


def test_merging_ends_where_every_record_meets_the_target() -> None:
    model, target = small_model(60, noise=0.3), AuditTarget("advantage", 0.25)
    assert model.separation().measured(target.measured).max() > target.value
    scan = least_merging(model, target)
    assert scan.found is not None
    values = merged_measures(model, scan.found.rows, target)
    assert values.max() == pytest.approx(scan.found.worst)
    assert values.max() <= target.value
    assert all(entry.worst > target.value for entry in scan.tries[:-1])
    sizes = np.bincount(scan.found.rows)
    assert sizes[sizes > 1].min() >= scan.found.size
    assert scan.found.merged == sizes[sizes > 1].sum()


def test_merging_is_of_records() -> None:
    with pytest.raises(InputError, match="merging is of records"):
        least_merging(small_model(groups=GROUPS), ADVANTAGE)


def test_too_much_dropping_is_refused() -> None:
    with pytest.raises(InputError, match="largest share"):
        drop_exposed(small_model(), ADVANTAGE, most=1.0)


@pytest.mark.parametrize("dropped", [3, 8, 12])
def test_every_step_of_dropping_counts_its_own(dropped: int) -> None:
    """Who is more exposed at a step, by an audit of what is left there."""
    model, target = small_model(seed=4), AuditTarget("advantage", 0.3)
    path = drop_exposed(model, target)
    step = path.steps[dropped]
    assert step.dropped == dropped
    first = model.separation().measured(target.measured)
    gone = path.order[:dropped]
    left = np.setdiff1d(np.arange(model.units), gone)
    again = model.only(left).separation().measured(target.measured)
    assert step.worst == pytest.approx(again.max(), rel=1e-8)
    assert step.more_exposed == np.count_nonzero(again > first[left] * (1.0 + 1e-9))
    assert step.newly_exposed == np.count_nonzero(first[gone] <= target.value)
    assert path.best is path.steps[8]
    assert path.more_exposed == path.steps[-1].more_exposed != path.best.more_exposed
