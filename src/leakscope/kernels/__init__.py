"""Covariance functions: what one record's label says about another's.

A kernel is called as ``k(X, Z)`` and returns the matrix of k(x, z).  ``rbf``, ``matern`` and
``linear`` are formulas of the records; ``nngp`` and ``sequential`` are the covariances of
infinitely wide networks, described by their layers.
"""

from leakscope.kernels.formulas import linear, matern, rbf
from leakscope.kernels.kernel import Kernel
from leakscope.kernels.layers import (
    activation,
    average_pool,
    conv,
    dense,
    flatten,
    global_average_pool,
    layer_norm,
    residual,
)
from leakscope.kernels.named import by_name
from leakscope.kernels.network import nngp, sequential

__all__ = [
    "Kernel",
    "activation",
    "average_pool",
    "by_name",
    "conv",
    "dense",
    "flatten",
    "global_average_pool",
    "layer_norm",
    "linear",
    "matern",
    "nngp",
    "rbf",
    "residual",
    "sequential",
]
