"""The interface that every law of what an attacker sees has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.keys import Key

FloatArray = npt.NDArray[np.float64]


class Law(ABC):
    """A batch of probability laws of what an attacker sees.

    Parameters are arrays: one object describes one law or fifty thousand, and ``batch_shape``
    tells how many.  ``event_shape`` is the shape of one observation: ``()`` for a scalar,
    ``(d,)`` for a vector.

    Examples
    --------
    >>> from leakscope.laws import Law, Normal
    >>> law = Normal(mean=[0.0, 1.0, 2.0], sigma=1.0)
    >>> isinstance(law, Law), law.batch_shape, law.event_shape
    (True, (3,), ())
    """

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws; ``()`` for one law."""

    @property
    @abstractmethod
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one observation."""

    @abstractmethod
    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,) + event_shape``."""

    @abstractmethod
    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x`` (shape ``batch_shape + event_shape``, or broadcast to it).

        At an atom this is the log of the atom's mass.
        """

    @abstractmethod
    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""

    @abstractmethod
    def take(self, index: int | slice | npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Self:
        """The laws at ``index`` along the first axis of the batch."""

    @abstractmethod
    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""


class ScalarLaw(Law):
    """A law on the real line, which therefore has a distribution function.

    Examples
    --------
    >>> from leakscope.laws import Normal
    >>> float(Normal(0.0, 1.0).cdf(0.0))
    0.5
    """

    @property
    def event_shape(self) -> tuple[int, ...]:
        """One observation is a number."""
        return ()

    @abstractmethod
    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
