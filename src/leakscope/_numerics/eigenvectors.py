"""Eigenvalues and eigenvectors of a symmetric matrix, checked."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import numpy as np
import scipy.linalg

from leakscope._numerics import probes
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cholesky import ONE_PIECE
from leakscope._numerics.cores import side_by_side


def symmetric_eigen(
    matrix: FloatArray, driver: Literal["evd", "evr"] = "evd"
) -> tuple[FloatArray, FloatArray]:
    """Rising eigenvalues w and the columns V of M = V diag(w) V^T, by one of LAPACK's drivers.

    evd is the quickest, evr needs less memory.  Beyond `ONE_PIECE` rows the library has one thread,
    since with several its symmetric routines err there (docs/linear_algebra.md).

    Raises
    ------
    WrongProductError
        Where V diag(w) V^T is not M, or V^T V not the identity.
    """
    if len(matrix) == 1 and driver == "evd":
        driver = "evr"  # SciPy 1.13 hands evd too little memory for one number, and refuses
    with side_by_side() if len(matrix) > ONE_PIECE else nullcontext():
        values, vectors = scipy.linalg.eigh(matrix, driver=driver, check_finite=True)
    if len(matrix) >= probes.PROBED_FROM:
        signs = probes.signs(len(matrix))
        turned, even = vectors.T @ signs, np.ones(len(matrix))
        largest = float(np.abs(values[[0, -1]]).max())
        got = vectors @ (values[:, None] * turned)
        probes.require_close(got, matrix @ signs, largest * even, "eigendecomposition")
        # evr leaves vectors of close eigenvalues at right angles to some n eps only.
        loose = len(matrix) * even if driver == "evr" else even
        probes.require_close(vectors @ turned, signs, loose, "matrix of eigenvectors")
    return values, vectors
