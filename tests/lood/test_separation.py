"""A process and what its records' leaving changes: nothing is lost on the way."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from leakscope import kernels, lood, measures
from leakscope.errors import InputError
from leakscope.kernels.named import from_description
from leakscope.laws import Assumption
from leakscope.lood.groups import separation_of_blocks
from leakscope.lood.separation import Release

GROUPS = np.repeat(np.arange(10), [1, 2, 3, 1, 2, 3, 4, 1, 2, 1])


def process(outputs=1, groups=None, noise=0.05, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.sin(X @ rng.normal(size=(2, outputs))) + 0.3 * rng.normal(size=(20, outputs))
    y = y[:, 0] if outputs == 1 else y
    return lood.ProcessOnRecords(X, y, kernels.rbf(1.3), noise, groups=groups, **more)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_way_to_a_separation_is_the_same(groups, outputs):
    model = process(outputs, groups)
    laws = model.separation()
    by_inverse = separation_of_blocks(
        model.inverse(), model.targets, None if groups is None else model.labels
    )
    for other in (model.at_noise(0.05), by_inverse, model.separation_of(model.matrix)):
        np.testing.assert_allclose(other.kl, laws.kl, rtol=1e-9)
        np.testing.assert_allclose(other.leverage, laws.leverage, rtol=1e-9)
        np.testing.assert_allclose(other.mean_distance, laws.mean_distance, rtol=1e-8)
        assert other.trusted.all()
    found = laws.measured(measures.kl)
    np.testing.assert_allclose(found, laws.kl, rtol=1e-9)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("release", [Release("draw", 0.3), Release("mean", 0.3)])
def test_the_kl_of_a_release_is_that_of_its_pairs(groups, outputs, release):
    seen = process(outputs, groups).separation().released(release)
    np.testing.assert_allclose(seen.measured(measures.kl), seen.kl, rtol=1e-9)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
def test_trust_and_assumptions_stay(groups):
    laws = process(groups=groups).separation()
    said = Assumption("something", None, "somewhere")
    doubtful = np.zeros(laws.units, dtype=bool)
    doubtful[3] = True
    from dataclasses import replace

    laws = replace(laws, trusted=~doubtful, assumptions=(said,))
    for other in (
        laws.noised(0.1),
        laws.noised(0.1, 1.0),
        laws.released(Release("mean", 0.1)),
    ):
        assert other.trusted.tolist() == laws.trusted.tolist()
        assert other.some([3, 1]).trusted.tolist() == [False, True]
        for _, pair in other.law_pairs():
            assert said in pair.provenance.assumptions
            digits = [a for a in pair.provenance.assumptions if "float64" in a.statement]
            assert [a.holds for a in digits] == [False]
        assert other.provenance().observes == "prediction"


def test_units_can_be_taken_out_one_after_another():
    model = process(groups=GROUPS)
    left = model.inverse()
    for gone in (2, 6):
        left = left.without(np.flatnonzero(gone == GROUPS))
    rows = np.flatnonzero(~np.isin(GROUPS, [2, 6]))
    part = model.only(rows)
    found = separation_of_blocks(left, part.targets, part.labels, rows=rows)
    np.testing.assert_allclose(found.kl, part.separation().kl, rtol=1e-8)
    assert found.trusted.all()


def test_means_are_of_records():
    with pytest.raises(InputError, match="groups leave as a whole"):
        process(groups=GROUPS).separation().mean_with  # noqa: B018


def test_a_process_is_pickled_without_its_matrices():
    model = process()
    size = len(pickle.dumps(model))
    again = pickle.loads(pickle.dumps(model))
    assert model.spectrum.values.shape == (20,)
    assert len(pickle.dumps(model)) == size
    np.testing.assert_array_equal(again.separation().kl, model.separation().kl)


def test_a_process_needs_no_more_memory_than_it_says(monkeypatch):
    from leakscope._numerics import memory

    model = lood.ProcessOnRecords(np.ones((3000, 1)), np.ones(3000), kernels.rbf(1.0), 0.1)
    monkeypatch.setattr(memory, "available_memory", lambda: 70 * 2**20)
    for asked in (model.separation, lambda: model.matrix, lambda: model.spectrum, model.inverse):
        with pytest.raises(InputError, match="3000"):
            asked()


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.rbf(1.0 / 3.0, 2.0),
        kernels.matern(2.5, 0.7),
        kernels.linear(0.3, 1.0, divide_by_features=True),
        kernels.nngp(depth=2, activation="erf", weight_variance=1.7, bias_variance=0.1),
        kernels.nngp(activation="elu"),
    ],
)
def test_a_kernel_is_read_back_from_its_description(kernel):
    again = from_description(kernel.describe())
    assert again.describe() == kernel.describe()
    X = np.random.default_rng(1).normal(size=(4, 3))
    np.testing.assert_array_equal(again(X), kernel(X))


def test_the_device_has_a_route_of_its_own_and_explains_without_the_matrix(monkeypatch):
    import leakscope

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    kernel = kernels.nngp(depth=2)
    arguments = {"kernel": kernel, "noise_variance": 0.1, "sensitivity": False, "explain": 2}
    dense = leakscope.audit(X, y, route="dense", **arguments)
    monkeypatch.setattr(lood.ProcessOnRecords, "fresh_matrix", None)
    device = leakscope.audit(X, y, route="device", **arguments)
    assert device.laws.separation.route == "device"
    for one, other in zip(dense.explanations, device.explanations, strict=True):
        assert one.moved == other.moved
        np.testing.assert_allclose(one.shifts, other.shifts, rtol=1e-8)
