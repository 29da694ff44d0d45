"""What the leave-one-out room refuses, in one sentence each, and what it must not refuse."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import kernels, lood, measures
from leakscope.errors import InputError


def problem(outputs: int | None = None):
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 5))
    return phi, rng.normal(size=40 if outputs is None else (40, outputs))


ROUTES = {
    "features": lambda phi, y, noise: lood.audit_features(phi, y, noise),
    "dense": lambda phi, y, noise: lood.all_records(phi @ phi.T, y, noise_variance=noise),
    "groups": lambda phi, y, noise: lood.all_groups(
        phi @ phi.T, y, np.arange(40) // 2, noise_variance=noise
    ),
    "distinguish": lambda phi, y, noise: lood.distinguish(
        phi, y, leave_out=[1], kernel=kernels.rbf(1.0), noise_variance=noise
    ),
    "posterior": lambda phi, y, noise: lood.posterior(
        phi, y, kernel=kernels.linear(), noise_variance=noise
    ),
}


# ---- how large and how small features may be ------------------------------------------------


@pytest.mark.parametrize("factor", [1e154, 1e160, 1e170])
def test_features_whose_squares_overflow(factor):
    phi, y = problem()
    with pytest.raises(InputError, match="too large for float64"):
        lood.audit_features(phi * factor, y, 0.1)


def test_features_that_are_zero():
    phi, y = problem()
    phi[7] = 0.0
    with pytest.raises(InputError, match="row 7 are all zero"):
        lood.audit_features(phi, y, 0.1)


def test_targets_times_features_that_overflow():
    phi, y = problem()
    with pytest.raises(InputError, match="too large for float64"):
        lood.audit_features(phi * 1e150, y * 1e200, 0.1)


# ---- real numbers, all given ----------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("which", ["phi", "y"])
def test_complex_numbers(route, which):
    phi, y = problem()
    phi, y = (phi + 0.5j, y) if which == "phi" else (phi, y + 0.5j)
    with pytest.raises(InputError, match="must hold real numbers, but the numbers are complex"):
        ROUTES[route](phi, y, 0.1)


@pytest.mark.parametrize("route", ROUTES)
def test_masked_entries(route):
    phi, y = problem()
    masked = np.ma.masked_array(y, mask=np.arange(40) == 3)
    with pytest.raises(InputError, match="y has a masked entry in row 3"):
        ROUTES[route](phi, masked, 0.1)
    nothing_masked = ROUTES[route](phi, np.ma.masked_array(y), 0.1)
    assert type(nothing_masked) is type(ROUTES[route](phi, y, 0.1))


def test_masked_features_and_kernels():
    phi, y = problem()
    mask = np.zeros(phi.shape, dtype=bool)
    mask[5, 2] = True
    with pytest.raises(InputError, match="phi has a masked entry in row 5"):
        lood.audit_features(np.ma.masked_array(phi, mask), y, 0.1)
    kernel = np.ma.masked_array(phi @ phi.T, np.arange(1600).reshape(40, 40) == 81)
    with pytest.raises(InputError, match="kernel matrix has a masked entry in row 2"):
        lood.all_records(kernel, y, noise_variance=0.1)
    groups = np.ma.masked_array(np.arange(40), np.arange(40) == 6)
    with pytest.raises(InputError, match="groups has a masked entry in row 6"):
        lood.all_groups(phi @ phi.T, y, groups, noise_variance=0.1)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("outputs", [None, 2])
def test_targets_that_are_not_finite(route, outputs):
    phi, y = problem(outputs)
    y[4] = np.nan
    with pytest.raises(InputError, match="y is not finite in row 4"):
        ROUTES[route](phi, y, 0.1)


@pytest.mark.parametrize("route", ROUTES)
def test_targets_that_are_no_numbers(route):
    phi, _ = problem()
    with pytest.raises(InputError, match="y must be an array of numbers"):
        ROUTES[route](phi, ["a"] * 40, 0.1)


# ---- the noise variance ---------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("noise", ["0.1", [0.1], np.array([0.1]), None, 0.1 + 0j, True])
def test_a_noise_variance_that_is_no_number(route, noise):
    phi, y = problem()
    with pytest.raises(InputError, match="noise_variance must be one positive number"):
        ROUTES[route](phi, y, noise)


@pytest.mark.parametrize("noise", [1, np.float32(0.5), np.array(0.5), np.int64(2)])
def test_a_noise_variance_of_any_real_type(noise):
    phi, y = problem()
    found = lood.audit_features(phi, y, noise)
    np.testing.assert_array_equal(found.kl, lood.audit_features(phi, y, float(noise)).kl)


# ---- some of the pairs ----------------------------------------------------------------------


def results(outputs: int | None):
    phi, y = problem(outputs)
    kernel = phi @ phi.T + np.eye(40)
    return (
        lood.all_records(kernel, y, noise_variance=0.1),
        lood.all_groups(kernel, y, np.arange(40) // 2, noise_variance=0.1),
    )


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("chosen", [0, -1, np.int64(3), slice(2, 9, 3), [4, 0], np.array([1, -2])])
def test_law_pairs_of_some(outputs, chosen):
    for found in results(outputs):
        pair = found.law_pair(chosen)
        assert pair.batch_shape == np.shape(found.kl[chosen])
        np.testing.assert_allclose(measures.kl(pair), found.kl[chosen], rtol=1e-9)
        mask = found.kl > np.median(found.kl)
        np.testing.assert_allclose(measures.kl(found.law_pair(mask)), found.kl[mask], rtol=1e-9)


def test_law_pairs_of_groups_that_differ_or_are_none():
    phi, y = problem()
    groups = np.concatenate([[0, 0], np.arange(1, 39)])
    found = lood.all_groups(phi @ phi.T + np.eye(40), y, groups, noise_variance=0.1)
    assert found.law_pair(0).member.event_shape == (2,)
    assert found.law_pair(1).member.event_shape == ()
    with pytest.raises(InputError, match="different sizes"):
        found.law_pair([0, 1])
