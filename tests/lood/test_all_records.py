"""The one-factorisation identities against refitting each record."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from brute_force import refit, refit_mpmath

from leakscope import InputError, kernels, lood


def problem(seed, n, outputs=1, *, near_duplicates=False, dimension=3, length_scale=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension))
    if near_duplicates:
        X[1] = X[0] + 1e-6 * rng.normal(size=dimension)
        X[3] = X[2]
    y = rng.normal(size=n if outputs == 1 else (n, outputs))
    return kernels.rbf(length_scale)(X), y


def kl(result):
    return result.kl_label_free + result.kl_label


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("noise", [1e-3, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("near_duplicates", [False, True])
def test_against_refitting_every_record(outputs, noise, near_duplicates):
    kernel, y = problem(0, 25, outputs, near_duplicates=near_duplicates)
    result = lood.all_records(kernel, y, noise_variance=noise)
    reference = refit(kernel, y, noise, np.longdouble, list(range(len(y))))
    for name in ("mean_with", "variance_with", "mean_without", "variance_without"):
        np.testing.assert_allclose(
            getattr(result, name), getattr(reference, name).astype(float), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(kl(result), reference.kl().astype(float), rtol=1e-10)
    shift = reference.mean_with - reference.mean_without
    np.testing.assert_allclose(result.mean_shift, shift.astype(float), rtol=1e-9)
    half_squared = 0.5 * (shift.reshape(len(y), -1) ** 2).sum(1)
    np.testing.assert_allclose(result.mean_distance, half_squared.astype(float), rtol=1e-9)
    assert result.trusted.all()


def test_against_numpy_solve():
    kernel, y = problem(1, 60)
    noise = 0.01
    result = lood.all_records(kernel, y, noise_variance=noise)
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        matrix = kernel[np.ix_(rest, rest)] + noise * np.eye(len(rest))
        mean = kernel[i, rest] @ np.linalg.solve(matrix, y[rest])
        variance = kernel[i, i] - kernel[i, rest] @ np.linalg.solve(matrix, kernel[rest, i])
        assert result.mean_without[i] == pytest.approx(mean, rel=1e-9)
        assert result.variance_without[i] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("noise", [1e-12, 1e-9, 1e-6, 1e4])
def test_against_forty_digits_at_extreme_noise(noise):
    kernel, y = problem(2, 14, near_duplicates=True)
    result = lood.all_records(kernel, y, noise_variance=noise)
    for i in (0, 2, 7):
        exact = refit_mpmath(kernel, y, noise, i)
        error = float(abs(mp.mpf(kl(result)[i]) - exact) / exact)
        assert error < 1e-4 or not result.trusted[i]


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 1.0])
@pytest.mark.parametrize("length_scale", [0.5, 2.0, 5.0])
def test_no_flag_at_moderate_noise(noise, length_scale):
    kernel, y = problem(4, 300, length_scale=length_scale)
    assert lood.all_records(kernel, y, noise_variance=noise).trusted.all()


def test_one_output_as_a_column_agrees_with_a_vector():
    kernel, y = problem(5, 20)
    vector = lood.all_records(kernel, y, noise_variance=0.1)
    column = lood.all_records(kernel, y[:, None], noise_variance=0.1)
    np.testing.assert_array_equal(kl(vector), kl(column))
    assert column.mean_with.shape == (20, 1)


def test_a_label_that_agrees_exactly_has_no_label_part():
    """a_i = 0: nothing is divided by it."""
    result = lood.all_records(np.eye(3), np.array([0.0, 2.0, 0.0]), noise_variance=1.0)
    assert result.kl_label.tolist() == [0.0, 1.0, 0.0]
    assert result.trusted.all()
    silent = lood.all_records(np.eye(3), np.zeros(3), noise_variance=1.0)
    assert silent.trusted.all()


def test_a_duplicate_hides_a_record():
    rng = np.random.default_rng(7)
    X = np.vstack([rng.normal(size=(40, 2)), [[8.0, 8.0]]])
    y = np.append(rng.normal(size=40), 3.0)
    alone = lood.all_records(kernels.rbf(1.0)(X), y, noise_variance=0.05)
    twice = lood.all_records(
        kernels.rbf(1.0)(np.vstack([X, X[-1]])), np.append(y, y[-1]), noise_variance=0.05
    )
    assert np.argmax(kl(alone)) == 40
    assert kl(twice)[40] < 0.1 * kl(alone)[40]


def test_the_matrix_is_kept_unless_it_may_be_overwritten():
    kernel, y = problem(8, 20)
    before = kernel.copy()
    kept = lood.all_records(kernel, y, noise_variance=0.1)
    np.testing.assert_array_equal(kernel, before)
    lost = lood.all_records(kernel, y, noise_variance=0.1, overwrite=True)
    np.testing.assert_array_equal(kl(kept), kl(lost))


@pytest.mark.parametrize("outputs", [1, 3])
def test_law_pair_holds_the_same_laws(outputs):
    kernel, y = problem(10, 15, outputs)
    result = lood.all_records(kernel, y, noise_variance=0.1)
    pair = result.law_pair()
    assert pair.batch_shape == (15,)
    np.testing.assert_allclose(pair.member.mean, result.mean_shift, rtol=1e-14)
    np.testing.assert_array_equal(pair.nonmember.mean, np.zeros_like(result.mean_shift))
    if outputs == 1:
        np.testing.assert_allclose(pair.member.sigma**2, result.variance_with, rtol=1e-15)
    else:
        diagonal = np.diagonal(pair.nonmember.covariance, axis1=1, axis2=2)
        np.testing.assert_allclose(diagonal, np.tile(result.variance_without[:, None], 3))
    provenance = pair.provenance
    assert (provenance.question, provenance.adjacency) == ("leave_one_out", "removed")
    assert provenance.observes == "latent"
    assert provenance.attacker_knows_label is True
    assert provenance.method == "exact"
    assert "Def. C.3" in provenance.source
    assert {a.holds for a in provenance.assumptions} == {None, True}


@pytest.mark.parametrize(
    ("kernel", "y", "noise", "sentence"),
    [
        (np.eye(3)[:2], np.zeros(2), 0.1, "must be square"),
        (np.eye(3), np.zeros(2), 0.1, "3 records, but the targets' shape is"),
        (np.eye(3), np.zeros(3), -0.1, "noise_variance must be positive and finite"),
        (np.eye(3), np.zeros(3), float("nan"), "noise_variance must be positive"),
        (np.diag([1.0, 0.0, 1.0]), np.zeros(3), 0.1, "row 1 with itself is 0.0"),
        (np.ones((3, 3)), np.zeros(3), 1e-30, "not positive definite in float64"),
    ],
)
def test_refusals(kernel, y, noise, sentence):
    with pytest.raises(InputError, match=sentence):
        lood.all_records(kernel, y, noise_variance=noise)
