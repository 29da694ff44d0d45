"""Covariance functions: what one record's label says about another's.

A kernel is called as ``k(X, Z)`` and returns the matrix of k(x, z).
"""

from leakscope.kernels.kernel import Kernel
from leakscope.kernels.rbf import RBF, median_length_scale, rbf

__all__ = ["RBF", "Kernel", "median_length_scale", "rbf"]
