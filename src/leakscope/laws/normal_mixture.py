"""Finite mixtures of normals, and scale mixtures: the law of a prediction over random designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws._parameters import as_parameter, broadcast, not_negative, positive, require
from leakscope.laws.law import ScalarLaw
from leakscope.laws.normal import Normal


@dataclass(frozen=True, eq=False, init=False)
class NormalMixture(ScalarLaw):
    """Mixtures of normals; the last axis of each parameter runs over the components.

    ``weights`` need not sum to one: they are normalised when used (`raw_weights` keeps what was
    given, because normalising would round the difference of two nearly equal laws).
    `NormalMixture.scale` makes the scale mixtures of the paper **linear** at finite n: one
    centre, many variances.

    Examples
    --------
    >>> from leakscope.laws import NormalMixture
    >>> law = NormalMixture(weights=[0.5, 0.5], means=[-1.0, 1.0], sigmas=[1.0, 1.0])
    >>> law.batch_shape, law.components
    ((), 2)
    >>> float(law.cdf(0.0))
    0.5
    """

    raw_weights: FloatArray
    means: FloatArray
    sigmas: FloatArray

    def __init__(self, weights: npt.ArrayLike, means: npt.ArrayLike, sigmas: npt.ArrayLike) -> None:
        kind = "NormalMixture"
        weights = as_parameter(weights, kind, "weights")
        means = as_parameter(means, kind, "means")
        sigmas = as_parameter(sigmas, kind, "sigmas")
        require(weights, not_negative, kind, "weights", "zero or above")
        require(sigmas, positive, kind, "sigmas", "positive and finite")
        weights, means, sigmas = broadcast(kind, weights=weights, means=means, sigmas=sigmas)
        if weights.ndim == 0:
            raise InputError(
                "NormalMixture: the last axis of the parameters runs over the components, "
                "but they are single numbers; use Normal for one component."
            )
        total = weights.sum(axis=-1, keepdims=True)
        if np.any(total <= 0.0):
            raise InputError("NormalMixture: the weights of a law must not all be zero.")
        object.__setattr__(self, "raw_weights", weights)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "sigmas", sigmas)

    @classmethod
    def scale(
        cls, sigmas: npt.ArrayLike, weights: npt.ArrayLike = 1.0, mean: npt.ArrayLike = 0.0
    ) -> Self:
        """A scale mixture: components with the common centre ``mean`` and the given ``sigmas``."""
        centre = np.asarray(mean, dtype=np.float64)
        return cls(weights, centre[..., None] if centre.ndim else centre, sigmas)

    @classmethod
    def of(cls, law: Normal) -> NormalMixture:
        """The normal law as a mixture of one component."""
        return cls(1.0, law.mean[..., None], law.sigma[..., None])

    @property
    def weights(self) -> FloatArray:
        """The components' probabilities, which sum to one."""
        return np.asarray(self.raw_weights / self.raw_weights.sum(axis=-1, keepdims=True))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.raw_weights.shape[:-1]

    @property
    def components(self) -> int:
        """How many components each law has."""
        return int(self.raw_weights.shape[-1])

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        generator = key.generator()
        uniform = generator.random((*self.batch_shape, size))
        steps = np.cumsum(self.weights, axis=-1)[..., :-1]
        chosen = np.zeros(uniform.shape, dtype=np.intp)
        for j in range(self.components - 1):
            chosen += uniform > steps[..., j, None]
        mean = np.take_along_axis(self.means, chosen, axis=-1)
        sigma = np.take_along_axis(self.sigmas, chosen, axis=-1)
        return np.asarray(mean + sigma * generator.standard_normal(uniform.shape))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        z = (np.asarray(x, dtype=np.float64)[..., None] - self.means) / self.sigmas
        with np.errstate(divide="ignore"):
            log_scale = np.log(self.weights) - np.log(self.sigmas)
        terms = log_scale - 0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
        return np.asarray(special.logsumexp(terms, axis=-1))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        z = (np.asarray(x, dtype=np.float64)[..., None] - self.means) / self.sigmas
        return np.asarray((self.weights * special.ndtr(z)).sum(axis=-1))

    def padded(self, components: int) -> Self:
        """The same laws with components of no weight added, up to ``components`` of them."""
        width = [(0, 0)] * len(self.batch_shape) + [(0, components - self.components)]
        return type(self)(
            np.pad(self.raw_weights, width),
            np.pad(self.means, width, mode="edge"),
            np.pad(self.sigmas, width, mode="edge"),
        )

    def _map(self, change: Any) -> Self:
        return type(self)(change(self.raw_weights), change(self.means), change(self.sigmas))

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return self._map(lambda a: a.reshape((*shape, self.components)))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return self._map(lambda a: a[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return self._map(lambda a: np.broadcast_to(a, (*shape, self.components)))
