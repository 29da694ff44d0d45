"""The normal law: a Gaussian-process posterior at one query, or a regression's prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.laws._parameters import as_parameter, broadcast, positive, require
from leakscope.laws.law import ScalarLaw


@dataclass(frozen=True, eq=False, init=False)
class Normal(ScalarLaw):
    """Normal laws N(mean, sigma^2), one for each entry of the broadcast parameters.

    ``sigma`` is a standard deviation.

    Examples
    --------
    >>> from leakscope.laws import Normal
    >>> law = Normal(mean=[0.0, 1.0], sigma=2.0)
    >>> law.batch_shape
    (2,)
    >>> law.cdf([0.0, 1.0])
    array([0.5, 0.5])
    """

    mean: FloatArray
    sigma: FloatArray

    def __init__(self, mean: npt.ArrayLike, sigma: npt.ArrayLike) -> None:
        mean = as_parameter(mean, "Normal", "mean")
        sigma = as_parameter(sigma, "Normal", "sigma")
        require(sigma, positive, "Normal", "sigma", "positive and finite")
        mean, sigma = broadcast("Normal", mean=mean, sigma=sigma)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "sigma", sigma)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.mean.shape

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        noise = key.generator().standard_normal((*self.batch_shape, size))
        return np.asarray(self.mean[..., None] + self.sigma[..., None] * noise)

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        z = (np.asarray(x, dtype=np.float64) - self.mean) / self.sigma
        return np.asarray(-0.5 * z * z - np.log(self.sigma) - 0.5 * np.log(2.0 * np.pi))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        return np.asarray(special.ndtr((np.asarray(x, dtype=np.float64) - self.mean) / self.sigma))

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return type(self)(self.mean.reshape(shape), self.sigma.reshape(shape))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return type(self)(self.mean[index], self.sigma[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return type(self)(np.broadcast_to(self.mean, shape), np.broadcast_to(self.sigma, shape))
