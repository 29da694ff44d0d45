"""Fewer features and dropping, against refits."""

from __future__ import annotations

import numpy as np
import pytest
from refits import advised, measured, refitted_pair, small_model
from sklearn.decomposition import PCA

from leakscope import kernels, lood
from leakscope.advising import AuditTarget, advise
from leakscope.advising.dropping import DropPath, drop_exposed
from leakscope.advising.options import Advising
from leakscope.errors import InputError
from leakscope.subjects.process.defence import principal_directions
from leakscope.subjects.subject import Stages, Wanted

ADVANTAGE = AuditTarget("advantage", 0.2)
GROUPS = np.repeat(np.arange(10), [1, 3, 2, 1, 2, 4, 3, 2, 4, 2])


class Scanned:
    """The numbers of components that advice tries, rising, and what it finds."""

    def __init__(self, model: lood.ProcessOnRecords, target: AuditTarget) -> None:
        wanted = Wanted(target)
        advising = Advising(advised(model), wanted)
        *_, change = advising.subject.changes(wanted)
        assert change.name == "fewer features"
        scan, laws = advising.scanned(change)
        self.counts = np.sort(np.array([*scan.levels, *scan.refined]).astype(int))
        self.worst = np.array([measured(target, laws[c].separation).max() for c in self.counts])
        self.largest = scan.found


def dropped_until_met(
    model: lood.ProcessOnRecords, target: AuditTarget, *, batch: int = 1, most: float = 0.5
) -> DropPath:
    subject = advised(model)
    return drop_exposed(subject, subject.laws(Stages()), target, most=most, batch=batch)


def wide_model(seed: int = 0) -> lood.ProcessOnRecords:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2] + 1.0
    return lood.ProcessOnRecords(X, np.tanh(X[:, 0]), kernels.rbf(2.0), 0.5)


def test_directions_are_those_of_scikit_learn() -> None:
    model = wide_model()
    expected = PCA().fit(model.features).components_.T
    found = principal_directions(model.features)
    assert np.abs(np.sum(found * expected, axis=0)) == pytest.approx(np.ones(5))


def test_components_are_audited_by_refits() -> None:
    model, target = wide_model(), AuditTarget("advantage", 0.4)
    scan = Scanned(model, target)
    assert scan.counts.tolist() == [1, 2, 3, 4, 5]
    for count, worst in zip(scan.counts, scan.worst, strict=True):
        shown = model.features @ PCA().fit(model.features).components_[:count].T
        expected = lood.all_records(kernels.rbf(2.0)(shown), model.targets, noise_variance=0.5)
        assert worst == pytest.approx(float(measured(target, expected.law_pair()).max()), rel=1e-8)
    meeting = scan.counts[scan.worst <= target.value]
    assert scan.largest == (meeting.max() if len(meeting) else None)
    assert scan.largest is not None


def test_all_components_of_an_open_kernel_give_the_audit_itself() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = lood.ProcessOnRecords(X, y, kernels.rbf(), 0.1)
    scan = Scanned(model, ADVANTAGE)
    assert scan.worst[-1] == pytest.approx(measured(ADVANTAGE, model.separation()).max(), rel=1e-9)


def test_many_components_are_searched_on_a_grid() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 30)) * np.geomspace(10.0, 0.1, 30)
    model = lood.ProcessOnRecords(X, X[:, 0] / 10.0, kernels.rbf(25.0), 1.0)
    grid = Scanned(model, AuditTarget("advantage", 1e-6))
    assert grid.largest is None
    target = AuditTarget("advantage", float(np.sort(grid.worst)[8]) - 1e-9)
    scan = Scanned(model, target)
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
    path = dropped_until_met(model, target, batch=1, most=0.6)
    kept = np.arange(len(model.features))
    labels, gone = model.labels, []
    first: dict[int, float] = {}
    while True:
        values = {}
        for unit in np.unique(labels[kept]):
            rows = np.flatnonzero(labels[kept] == unit).tolist()
            left = lood.ProcessOnRecords(
                model.features[kept], model.targets[kept], model.kernel, 0.05
            )
            values[int(unit)] = float(measured(target, refitted_pair(left, rows)))
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
    assert path.steps[-1].more_exposed == sum(
        v > first[unit] * (1 + 1e-6) for unit, v in values.items()
    )
    left = path.kept(model.units, len(gone))
    assert np.flatnonzero(np.isin(labels, left)).tolist() == kept.tolist()


def test_downdates_agree_with_a_new_factorisation() -> None:
    model = small_model(120, noise=0.001)
    path = dropped_until_met(model, AuditTarget("advantage", 0.01), batch=7)
    assert not path.met
    assert len(path.order) == 60
    left = advised(model)
    for start in range(0, 60, 7):
        before = path.kept(120, start)
        left = left.keep(np.flatnonzero(np.isin(before, path.kept(120, start + 7))))
    assert left.blocks is not None
    found = left.laws(Stages()).separation
    fresh = model.only(path.kept(120, 60)).separation()
    assert found.excess == pytest.approx(fresh.excess, rel=1e-7)
    assert found.score == pytest.approx(fresh.score, rel=1e-6)


def test_too_much_dropping_is_refused() -> None:
    with pytest.raises(InputError, match="largest share"):
        advise(small_model(), ADVANTAGE, most_dropped=1.0)


@pytest.mark.parametrize("dropped", [3, 8, 12])
def test_every_step_of_dropping_counts_its_own(dropped: int) -> None:
    """Who is more exposed at a step, by an audit of what is left there."""
    model, target = small_model(seed=4), AuditTarget("advantage", 0.3)
    path = dropped_until_met(model, target)
    step = path.steps[dropped]
    assert step.dropped == dropped
    first = measured(target, model.separation())
    gone = path.order[:dropped]
    left = np.setdiff1d(np.arange(model.units), gone)
    again = measured(target, model.only(left).separation())
    assert step.worst == pytest.approx(again.max(), rel=1e-8)
    assert step.more_exposed == np.count_nonzero(again > first[left] * (1.0 + 1e-9))
    assert path.best is path.steps[8]
    assert path.steps[-1].more_exposed != path.best.more_exposed
