"""Training in the span of the data: at most n + 1 numbers a neuron, whatever the dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


@dataclass(frozen=True, eq=False)
class DataSpan:
    """Orthonormal coordinates of training points, one set of points a network.

    The gradient of y_i f(x_i) in w_j is a multiple of x_i.  So w_j(t) - w_j(0) stays in the span
    of the points, and what is orthogonal to it stays as it was initialised; the network's values
    at the training points do not see it.

    Attributes
    ----------
    basis
        (B, r, d), orthonormal rows that span each set of points; r = min(n, d).
    coordinates
        (B, n, r), the points in that basis: ``coordinates @ basis`` gives them back.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import DataSpan
    >>> points = np.random.default_rng(0).standard_normal((2, 5, 100))
    >>> span = DataSpan.of(points)
    >>> span.coordinates.shape
    (2, 5, 5)
    >>> bool(np.allclose(span.coordinates @ span.basis, points))
    True
    """

    basis: FloatArray
    coordinates: FloatArray

    @classmethod
    def of(cls, points: ArrayLike) -> DataSpan:
        """The span of ``points`` (B, n, d), by a QR factorisation of each set."""
        x = np.asarray(points, dtype=np.float64)
        if x.ndim != 3:
            raise InputError(
                f"Sets of points must be an array of three axes (sets, points, features), but its "
                f"shape is {x.shape}."
            )
        sets, count, features = x.shape
        if features <= count:
            basis = np.broadcast_to(np.eye(features), (sets, features, features))
            return cls(basis, x)
        q, r = np.linalg.qr(np.swapaxes(x, 1, 2))
        return cls(np.swapaxes(q, 1, 2), np.swapaxes(r, 1, 2))

    @property
    def rank(self) -> int:
        """r, the number of coordinates."""
        return int(self.coordinates.shape[2])

    @property
    def whole(self) -> bool:
        """Whether the basis is the identity, so that nothing lies outside the span."""
        return self.rank == int(self.basis.shape[2])
