"""The law of a yes or no: whether a model gives a record its own label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.laws._parameters import as_parameter, require
from leakscope.laws.law import ScalarLaw


@dataclass(frozen=True, eq=False, init=False)
class Bernoulli(ScalarLaw):
    """Laws that give 1 with ``probability`` and 0 otherwise.

    Examples
    --------
    >>> from leakscope.laws import Bernoulli
    >>> law = Bernoulli([0.25, 1.0])
    >>> law.batch_shape
    (2,)
    >>> law.cdf(0.5)
    array([0.75, 0.  ])
    """

    probability: FloatArray

    def __init__(self, probability: npt.ArrayLike) -> None:
        probability = as_parameter(probability, "Bernoulli", "probability")
        require(
            probability,
            lambda p: np.asarray((p >= 0.0) & (p <= 1.0)),
            "Bernoulli",
            "probability",
            "between 0 and 1",
        )
        object.__setattr__(self, "probability", probability)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.probability.shape

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        drawn = key.generator().random((*self.batch_shape, size))
        return np.asarray(drawn < self.probability[..., None], dtype=np.float64)

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log mass at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        mass = np.where(x == 1.0, self.probability, np.where(x == 0.0, 1.0 - self.probability, 0.0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mass))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        x = np.asarray(x, dtype=np.float64)
        below = np.where(x < 1.0, 1.0 - self.probability, 1.0)
        return np.asarray(np.where(x < 0.0, 0.0, below))

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return type(self)(self.probability.reshape(shape))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return type(self)(self.probability[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return type(self)(np.broadcast_to(self.probability, shape))
