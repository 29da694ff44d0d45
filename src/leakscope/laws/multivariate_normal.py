"""Multivariate normal laws: a Gaussian-process posterior at several queries at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws._parameters import as_parameter
from leakscope.laws.law import Law


@dataclass(frozen=True, eq=False, init=False)
class MultivariateNormal(Law):
    """Multivariate normal laws N(mean, covariance) of vectors of d numbers.

    ``mean`` has shape ``batch + (d,)`` and ``covariance`` ``batch + (d, d)``; the covariances
    must be symmetric and positive definite.

    Examples
    --------
    >>> from leakscope.laws import MultivariateNormal
    >>> law = MultivariateNormal(mean=[0.0, 0.0], covariance=[[2.0, 0.5], [0.5, 1.0]])
    >>> law.batch_shape, law.event_shape
    ((), (2,))
    """

    mean: FloatArray
    covariance: FloatArray
    cholesky: FloatArray

    def __init__(self, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
        kind = "MultivariateNormal"
        mean = as_parameter(mean, kind, "mean")
        covariance = as_parameter(covariance, kind, "covariance")
        if mean.ndim < 1 or covariance.ndim < 2 or covariance.shape[-2:] != 2 * mean.shape[-1:]:
            raise InputError(
                f"{kind}: a mean of d numbers needs a d x d covariance, but the shapes are "
                f"{mean.shape} and {covariance.shape}."
            )
        dimension = mean.shape[-1]
        try:
            batch = np.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
        except ValueError:
            raise InputError(
                f"{kind}: the batches of mean {mean.shape[:-1]} and covariance "
                f"{covariance.shape[:-2]} do not fit together."
            ) from None
        gap = np.abs(covariance - np.swapaxes(covariance, -1, -2)).max(initial=0.0)
        if gap > 1e-8 * np.abs(covariance).max(initial=0.0):
            raise InputError(f"{kind}: the covariance must be symmetric.")
        covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kind}: the covariance must be positive definite; a direction without any "
                "randomness must be left out."
            ) from None
        object.__setattr__(self, "mean", np.broadcast_to(mean, (*batch, dimension)))
        object.__setattr__(
            self, "covariance", np.broadcast_to(covariance, (*batch, dimension, dimension))
        )
        object.__setattr__(
            self, "cholesky", np.broadcast_to(factor, (*batch, dimension, dimension))
        )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.mean.shape[:-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """One observation is a vector of d numbers."""
        return self.mean.shape[-1:]

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size, d)``."""
        noise = key.generator().standard_normal((*self.batch_shape, size, *self.event_shape))
        return np.asarray(self.mean[..., None, :] + noise @ np.swapaxes(self.cholesky, -1, -2))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        centred = np.asarray(x, dtype=np.float64) - self.mean
        z = np.linalg.solve(self.cholesky, centred[..., None])[..., 0]
        log_scale = np.log(np.diagonal(self.cholesky, axis1=-2, axis2=-1)).sum(axis=-1)
        dimension = self.event_shape[0]
        return np.asarray(
            -0.5 * (z * z).sum(axis=-1) - log_scale - 0.5 * dimension * np.log(2.0 * np.pi)
        )

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        (d,) = self.event_shape
        return type(self)(self.mean.reshape((*shape, d)), self.covariance.reshape((*shape, d, d)))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return type(self)(self.mean[index], self.covariance[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        (d,) = self.event_shape
        return type(self)(
            np.broadcast_to(self.mean, (*shape, d)),
            np.broadcast_to(self.covariance, (*shape, d, d)),
        )
