"""Covariance functions: what one record's label says about another's.

A kernel is called as ``k(X, Z)`` and returns the matrix of k(x, z).  ``rbf``, ``matern`` and
``linear`` are formulas of the records; ``nngp`` and ``sequential`` are the covariances of
infinitely wide networks, described by their layers.
"""

from leakscope.kernels.activations import Activation, as_activation
from leakscope.kernels.from_description import from_description
from leakscope.kernels.from_torch import from_torch
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
from leakscope.kernels.linear import Linear, linear
from leakscope.kernels.matern import Matern, matern
from leakscope.kernels.named import by_name
from leakscope.kernels.network import Network, nngp, sequential
from leakscope.kernels.rbf import RBF, median_length_scale, rbf
from leakscope.kernels.trained_ensemble import TrainedEnsemble, trained_ensemble

__all__ = [
    "RBF",
    "Activation",
    "Kernel",
    "Linear",
    "Matern",
    "Network",
    "TrainedEnsemble",
    "activation",
    "as_activation",
    "average_pool",
    "by_name",
    "conv",
    "dense",
    "flatten",
    "from_description",
    "from_torch",
    "global_average_pool",
    "layer_norm",
    "linear",
    "matern",
    "median_length_scale",
    "nngp",
    "rbf",
    "residual",
    "sequential",
    "trained_ensemble",
]
