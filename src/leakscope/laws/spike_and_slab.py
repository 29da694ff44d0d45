"""An atom at zero and two truncated normal branches: the law of a private LASSO's estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.normal_tails import log_interval
from leakscope.laws._parameters import as_parameter, broadcast, not_negative, positive, require
from leakscope.laws.law import ScalarLaw


@dataclass(frozen=True, eq=False, init=False)
class SpikeAndSlab(ScalarLaw):
    """The law of ``soft(Z, threshold)`` with Z ~ N(location, sigma^2).

    ``soft(z, t) = sign(z) max(|z| - t, 0)``, so there is an atom at zero of mass
    P(|Z| <= threshold) and one truncated normal branch on each side.  This is Eq. (53) of the
    paper **lasso** with location = beta0 + sigma_z z, sigma = Sigma sigma_eta and
    threshold = lambda Sigma.

    Examples
    --------
    >>> from leakscope.laws import SpikeAndSlab
    >>> law = SpikeAndSlab(location=0.0, sigma=1.0, threshold=1.0)
    >>> round(float(law.atom), 4)
    0.6827
    >>> round(float(law.cdf(0.0)), 4)
    0.8413
    """

    location: FloatArray
    sigma: FloatArray
    threshold: FloatArray

    def __init__(
        self, location: npt.ArrayLike, sigma: npt.ArrayLike, threshold: npt.ArrayLike
    ) -> None:
        kind = "SpikeAndSlab"
        location = as_parameter(location, kind, "location")
        sigma = as_parameter(sigma, kind, "sigma")
        threshold = as_parameter(threshold, kind, "threshold")
        require(sigma, positive, kind, "sigma", "positive and finite")
        require(threshold, not_negative, kind, "threshold", "zero or above")
        location, sigma, threshold = broadcast(
            kind, location=location, sigma=sigma, threshold=threshold
        )
        object.__setattr__(self, "location", location)
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "threshold", threshold)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.location.shape

    @property
    def log_atom(self) -> FloatArray:
        """Log mass of the atom at zero."""
        return log_interval(-self.location / self.sigma, self.threshold / self.sigma)

    @property
    def atom(self) -> FloatArray:
        """Mass of the atom at zero."""
        return np.asarray(np.exp(self.log_atom))

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        noise = key.generator().standard_normal((*self.batch_shape, size))
        z = self.location[..., None] + self.sigma[..., None] * noise
        return np.asarray(np.sign(z) * np.maximum(np.abs(z) - self.threshold[..., None], 0.0))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``, and the log mass of the atom at ``x = 0``."""
        x = np.asarray(x, dtype=np.float64)
        z = (x + np.sign(x) * self.threshold - self.location) / self.sigma
        branch = -0.5 * z * z - np.log(self.sigma) - 0.5 * np.log(2.0 * np.pi)
        # without a threshold there is no atom, and zero is a point like any other
        return np.asarray(np.where((x == 0.0) & (self.threshold > 0.0), self.log_atom, branch))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        x = np.asarray(x, dtype=np.float64)
        edge = np.where(x >= 0.0, x + self.threshold, x - self.threshold)
        return np.asarray(special.ndtr((edge - self.location) / self.sigma))

    def _map(self, change: Any) -> Self:
        return type(self)(change(self.location), change(self.sigma), change(self.threshold))

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return self._map(lambda a: a.reshape(shape))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return self._map(lambda a: a[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return self._map(lambda a: np.broadcast_to(a, shape))
