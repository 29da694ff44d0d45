"""A process and what its records' leaving changes: nothing is lost on the way."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from brute_force import refit_mpmath
from scipy.stats import spearmanr

from leakscope import kernels, lood, measures
from leakscope.errors import InputError
from leakscope.kernels.named import from_description

GROUPS = np.repeat(np.arange(10), [1, 2, 3, 1, 2, 3, 4, 1, 2, 1])


def process(outputs=1, groups=None, noise=0.05):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.sin(X @ rng.normal(size=(2, outputs))) + 0.3 * rng.normal(size=(20, outputs))
    y = y[:, 0] if outputs == 1 else y
    return lood.ProcessOnRecords(X, y, kernels.rbf(1.3), noise, groups=groups)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_way_to_a_separation_is_the_same(groups, outputs):
    model = process(outputs, groups)
    laws = model.separation()
    other = model.at_noise(0.05)
    np.testing.assert_allclose(other.kl, laws.kl, rtol=1e-9)
    np.testing.assert_allclose(other.leverage, laws.leverage, rtol=1e-9)
    assert other.trusted.all()
    np.testing.assert_allclose(laws.measured(measures.kl), laws.kl, rtol=1e-9)
    noised = laws.noised(0.1).noised(0.2)
    np.testing.assert_allclose(noised.measured(measures.kl), noised.kl, rtol=1e-9)
    np.testing.assert_allclose(noised.kl, laws.noised(0.3).kl, rtol=1e-12)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["records", "groups"])
def test_trust_stays_with_its_unit(groups):
    laws = process(groups=groups).separation()
    doubtful = np.arange(laws.units) == 3
    noised = replace(laws, trusted=~doubtful).noised(0.1)
    assert noised.some(np.array([3, 1])).trusted.tolist() == [False, True]
    assert noised.provenance().observes == "prediction"
    assert any(assumption.holds is False for assumption in noised.provenance().assumptions)


def test_only_some_of_the_units():
    model = process(groups=GROUPS)
    _ = model.matrix
    rows = np.flatnonzero(~np.isin(GROUPS, [2, 6]))
    part = model.only(rows)
    alone = lood.ProcessOnRecords(
        model.features[rows], model.targets[rows], model.kernel, 0.05, groups=part.labels
    )
    np.testing.assert_allclose(part.separation().kl, alone.separation().kl, rtol=1e-9)


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
    for asked in (model.separation, lambda: model.matrix, lambda: model.spectrum):
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


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("rbf", {"noise_variance": "0.1"}, {"name": "rbf"}),
        ("matern", {"nu": "2.5", "length_scale": 2}, {"nu": 2.5, "length_scale": 2.0}),
        ("linear_kernel", {}, {"bias_variance": 1.0}),
        ("nngp", {"depth": "2", "activation": "erf"}, {"depth": 2}),
    ],
)
def test_a_process_by_name(name, given, told):
    model = lood.Process.named(name, **given)
    assert told.items() <= model.kernel.describe().items()
    assert model.noise_variance == float(given.get("noise_variance", 0.01))


@pytest.mark.parametrize(
    ("name", "given", "token"),
    [
        ("magic", {}, "magic"),
        ("rbf", {"depth": 2}, "depth"),
        ("rbf", {"noise_variance": 0}, "noise_variance"),
        ("rbf", {"noise_variance": "best"}, "marginal_likelihood"),
        ("nngp", {"depth": 2.5}, "depth"),
        ("rbf", {"route": "sparse"}, "route"),
        ("rbf", {"inducing": 1}, "inducing"),
    ],
)
def test_bad_parameters(name, given, token):
    with pytest.raises(InputError, match=token):
        lood.Process.named(name, **given)


def test_the_data_choose_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(300, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=300)
    found, choice = lood.Process(kernels.rbf(1.0), "leave_one_out").on(X, y)
    assert choice is not None
    assert found.noise_variance == choice.noise_variance == pytest.approx(0.09, rel=0.3)


@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-11, 1e-14])
def test_what_is_trusted_near_rounding_is_right(noise):
    """Twins, and labels far from zero, against 40 digits."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(14, 1))
    X = np.vstack([X, X[:3] + 1e-7])
    y = np.append(rng.normal(size=14), rng.normal(size=3)) + 1e3
    K = kernels.rbf(1.0)(X)
    found = lood.all_records(K, y, noise_variance=noise)
    for record in (0, 5, 15):
        exact = float(refit_mpmath(K, y, noise, record))
        assert found.kl[record] == pytest.approx(exact, rel=1e-3) or not found.trusted[record]
    assert found.trusted.all() == (noise > 1e-10)


def test_an_approximation_ranks_and_confirms_nobody():
    """FITC keeps an outlier's own variance, which the plain Nyström form hides."""
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(400, 2)), [[6.0, 6.0]]])
    y = np.append(np.sin(X[:400, 0]) + 0.3 * rng.normal(size=400), 3.0)
    model = lood.ProcessOnRecords(X, y, kernels.rbf(1.5), 0.1, route="nystrom", inducing=100)
    exact = replace(model, route="dense").separation()
    near = model.separation()
    assert near.route == "nystrom"
    assert not near.trusted.any()
    assert spearmanr(near.kl, exact.kl)[0] > 0.999
    assert np.argmax(near.kl) == np.argmax(exact.kl) == 400
    assert near.kl[400] == pytest.approx(exact.kl[400], rel=0.02)
