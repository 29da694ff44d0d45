"""The accelerator's route gives what the host's gives; on a CPU here, with small blocks."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels, lood
from leakscope._numerics import device_cholesky
from leakscope._numerics.x64 import double_precision
from leakscope.lood.device import device_records


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize(("records", "outputs"), [(40, 1), (131, 1), (200, 3)])
def test_equals_the_host(
    records: int, outputs: int, noise_variance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # blocks that do not divide the number of records
    monkeypatch.setattr(device_cholesky, "FILL_BLOCK", 48)
    monkeypatch.setattr(device_cholesky, "COLUMNS", 17)
    generator = np.random.default_rng(records)
    X = generator.standard_normal((records, 12))
    y = generator.standard_normal((records, outputs) if outputs > 1 else records)
    kernel = kernels.nngp(depth=3)
    here = lood.all_records(kernel(X), y, noise_variance=noise_variance)
    there = device_records(X, y, kernel=kernel, noise_variance=noise_variance)
    for name in ("kl", "leverage", "mean_without", "variance_without", "mean_distance"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(there.trusted, here.trusted)


def test_norm_and_inverse_diagonal_against_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_cholesky, "FILL_BLOCK", 30)
    monkeypatch.setattr(device_cholesky, "COLUMNS", 7)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((100, 5))
    full = x @ x.T
    with double_precision():
        import jax.numpy as jnp

        upper = device_cholesky.upper_triangle(jnp.asarray(x), lambda a, b: a @ b.T)
        np.testing.assert_allclose(device_cholesky.one_norm(upper), np.linalg.norm(full, 1))
        factor = device_cholesky.factorise(upper, jnp.asarray(0.5))
        found = np.asarray(device_cholesky.inverse_diagonal(factor))
    inverse = np.linalg.inv(full + 0.5 * np.eye(100))
    np.testing.assert_allclose(found, np.diagonal(inverse), rtol=1e-12)


def test_a_matrix_that_is_not_positive_definite_gets_a_sentence() -> None:
    X = np.ones((30, 4))
    with pytest.raises(InputError, match="not positive definite"):
        device_records(X, np.zeros(30), kernel=kernels.nngp(depth=1), noise_variance=1e-300)


def test_a_kernel_without_jax_code_is_refused() -> None:
    with pytest.raises(InputError, match="needs a kernel with JAX code"):
        device_records(np.eye(3), np.zeros(3), kernel=kernels.rbf(1.0), noise_variance=0.1)
