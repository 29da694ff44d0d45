"""Every unit's laws at any noise variance, from one eigendecomposition.

Symbols as in :mod:`leakscope.lood.identities`.  With K = U diag(d) U^T and s2 the noise variance,

    h_i = sum_k U_ik^2 d_k/(d_k + s2)      m_i = sum_k U_ik^2/(d_k + s2)
    a   = U diag(1/(d + s2)) U^T y,

so that a further level costs O(n^2) where the dense route costs a factorisation.  All terms of h_i
and m_i are positive: neither loses digits where the other is near 1.  For groups the blocks
U_G diag(1/(d + s2)) U_G^T take the place of m_i.

One eigendecomposition costs more than ten factorisations (docs/lood.md): for a few levels
:func:`leakscope.lood.sweep_noise` is quicker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope.lood.identities import EPS, Leverages, laws_from_leverages
from leakscope.lood.inverse_blocks import InverseBlocks, separation_of_blocks
from leakscope.lood.separation import Separation

# How many eps ||M|| an eigendecomposition's backward error is taken to be.  Over 470 records
# refitted at 40 digits the largest error was 0.6 of the estimate that follows, the median 0.02.
ERROR_SHARE = 2.0


def spectrum_bytes(records: int) -> int:
    """What the decomposition needs: the matrix, its eigenvectors and LAPACK's workspace."""
    return 8 * 5 * records**2


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a kernel matrix, and its diagonal.

    Attributes
    ----------
    values
        (n,) rising, not below zero: a kernel matrix has no negative eigenvalue, and those that
        rounding makes are zeros.
    vectors
        (n, n), column after column.
    prior
        (n,) k(x, x).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> spectrum = lood.Spectrum.of(np.diag([1.0, 3.0]))
    >>> spectrum.values.tolist()
    [1.0, 3.0]
    >>> spectrum.separation(np.array([0.0, 2.0]), 1.0).leverage.round(12).tolist()
    [0.5, 0.75]
    """

    values: FloatArray
    vectors: FloatArray
    prior: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, driver: Literal["evd", "evr"] = "evd") -> Spectrum:
        """Decompose a symmetric matrix, by LAPACK's quickest driver or, evr, in less memory."""
        found, vectors = symmetric_eigen(matrix, driver)
        return cls(np.maximum(found, 0.0), vectors, np.diagonal(matrix).copy())

    @cached_property
    def squares(self) -> FloatArray:
        """(n, n) U_ik^2."""
        return np.asarray(self.vectors**2)

    def separation(
        self,
        targets: FloatArray,
        noise_variance: float,
        *,
        groups: NDArray[np.intp] | None = None,
    ) -> Separation:
        """What each unit's leaving changes at one noise variance."""
        if groups is None:
            return next(self.path(targets, np.array([noise_variance])))
        shrunk = 1.0 / (self.values + noise_variance)
        turned = self.vectors.T @ targets.reshape(len(targets), -1)
        norm = float(self.values[-1]) + noise_variance
        return separation_of_blocks(
            _Blocks(
                a=self.vectors @ (turned * shrunk[:, None]),
                error_matrix=ERROR_SHARE * EPS * norm,
                noise_variance=float(noise_variance),
                condition_number=norm / (float(self.values[0]) + noise_variance),
                spectrum=self,
                shrunk=shrunk,
            ),
            targets,
            groups,
        )

    def path(self, targets: FloatArray, levels: FloatArray) -> Iterator[Separation]:
        """What each record's leaving changes, at each noise variance in turn."""
        outputs = targets.reshape(len(targets), -1)
        values, turned = self.values, self.vectors.T @ outputs
        shrunk = 1.0 / (values[:, None] + levels)
        m = self.squares @ shrunk
        leverage = self.squares @ (values[:, None] * shrunk)
        reach = self.squares @ shrunk**2
        for place, level in enumerate(levels.tolist()):
            norm = float(values[-1]) + level
            # The same bounds as in the dense route: rounding must not make a variance negative.
            h = np.clip(leverage[:, place], self.prior / norm, self.prior / (self.prior + level))
            a = self.vectors @ (shrunk[:, place, None] * turned)
            error_matrix = ERROR_SHARE * EPS * norm
            relative_m = error_matrix * reach[:, place] / m[:, place]
            yield laws_from_leverages(
                Leverages(
                    leverage=h,
                    m=m[:, place],
                    a=a,
                    relative_error_h=EPS + relative_m * level * m[:, place] / h,
                    relative_error_m=relative_m,
                    error_a=error_matrix * np.sqrt(reach[:, place]) * np.linalg.norm(a),
                ),
                targets,
                noise_variance=level,
                condition_number=norm / (float(values[0]) + level),
                route="dense",
            )


@dataclass(frozen=True, eq=False)
class _Blocks(InverseBlocks):
    """Blocks of M^{-1} at one level; ``shrunk`` is 1/(d + s2)."""

    spectrum: Spectrum
    shrunk: FloatArray

    def block(self, rows: NDArray[np.intp]) -> FloatArray:
        own = self.spectrum.vectors[rows]
        return np.asarray((own * self.shrunk) @ np.swapaxes(own, 1, 2))

    def reach(self, rows: NDArray[np.intp], vectors: FloatArray) -> FloatArray:
        turned = np.swapaxes(vectors, 1, 2) @ (self.spectrum.vectors[rows] * self.shrunk)
        return np.asarray(np.sum(turned**2, axis=2))

    def leverage(
        self, rows: NDArray[np.intp], vectors: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        weights = (vectors.T @ self.spectrum.vectors[rows]) ** 2
        found = weights @ (self.spectrum.values * self.shrunk)
        return found, EPS * found
