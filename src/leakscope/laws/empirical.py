"""Samples instead of a formula: the scores that a real model or attack gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws._parameters import as_parameter
from leakscope.laws.law import ScalarLaw


@dataclass(frozen=True, eq=False, init=False)
class Empirical(ScalarLaw):
    """The empirical law of samples or scores; the last axis of ``samples`` runs over them.

    Measures of a pair of empirical laws are estimates with intervals, for the attacker who
    compares the score with a threshold; a higher score means "more likely a member".

    Examples
    --------
    >>> from leakscope.laws import Empirical
    >>> law = Empirical([0.1, 0.4, 0.4, 0.9])
    >>> law.batch_shape, law.size
    ((), 4)
    >>> float(law.cdf(0.4))
    0.75
    """

    samples: FloatArray

    def __init__(self, samples: npt.ArrayLike) -> None:
        samples = as_parameter(samples, "Empirical", "samples")
        if samples.ndim == 0 or samples.shape[-1] < 2:
            raise InputError("Empirical: an empirical law needs at least two samples.")
        object.__setattr__(self, "samples", np.sort(samples, axis=-1))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws."""
        return self.samples.shape[:-1]

    @property
    def size(self) -> int:
        """How many samples each law has."""
        return int(self.samples.shape[-1])

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` of the samples of each law with replacement."""
        index = key.generator().integers(0, self.size, (*self.batch_shape, size))
        return np.asarray(np.take_along_axis(self.samples, index, axis=-1))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log mass at ``x``: the log share of samples equal to it."""
        equal = self.samples == np.asarray(x, dtype=np.float64)[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(equal.mean(axis=-1)))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Share of samples at or below ``x``."""
        below = self.samples <= np.asarray(x, dtype=np.float64)[..., None]
        return np.asarray(below.mean(axis=-1))

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return type(self)(self.samples.reshape((*shape, self.size)))

    def take(self, index: Any) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return type(self)(self.samples[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return type(self)(np.broadcast_to(self.samples, (*shape, self.size)))
