"""Random one-dimensional training sets, and their exact maximum-margin networks, solved once."""

from __future__ import annotations

from functools import cache

import numpy as np

from leakscope import relu


def training_set(seed, low=3, high=16, scale=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(low, high))
    x = rng.standard_normal(n) if scale is None else rng.uniform(-scale, scale, n)
    return x, rng.choice([-1.0, 1.0], n)


@cache
def optimum(seed, scale=None):
    return relu.max_margin_network(*training_set(seed, scale=scale))
