"""The device route of an audit: the same answer as the dense one (on a CPU here)."""

from __future__ import annotations

import numpy as np
import pytest

import leakscope
from leakscope import InputError, kernels


def test_equals_the_dense_route() -> None:
    generator = np.random.default_rng(3)
    X, y = generator.standard_normal((60, 5)), generator.standard_normal(60)
    dense, device = (
        leakscope.audit(X, y, kernel=kernels.nngp(depth=2), noise_variance=0.05, route=route)
        for route in ("dense", "device")
    )
    np.testing.assert_allclose(device.to_frame()["kl"], dense.to_frame()["kl"], rtol=1e-9)
    np.testing.assert_array_equal(
        device.to_frame()[["record_id", "rank_low", "rank_high"]],
        dense.to_frame()[["record_id", "rank_low", "rank_high"]],
    )


def test_a_kernel_without_jax_code_is_refused() -> None:
    with pytest.raises(InputError, match="needs a kernel with JAX code"):
        leakscope.audit(
            np.eye(4), np.arange(4.0), kernel=kernels.rbf(1.0), noise_variance=0.1, route="device"
        )
