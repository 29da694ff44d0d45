"""A number that was estimated from samples, with the interval that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Estimate"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A measure estimated from two samples of scores, its interval, and what is known of its bias.

    Parameters
    ----------
    value : ndarray
        The point estimate, in the shape of the batch; it always lies in ``[low, high]``, unless it
        is NaN because the measure cannot be estimated from these samples.
    low, high : ndarray
        Ends of the confidence interval.  An end at the limit of what the measure can be (0 or 1
        for a probability, ``inf`` for an epsilon) says that the samples cannot bound that side.
    confidence : float
        The share of repetitions in which the interval contains the true measure.
    method : str
        How value and interval were got, in a few words.
    bias : str
        What is known of the bias of ``value`` and what was done about it; empty when it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measures import Estimate
    >>> found = Estimate(
    ...     value=np.array([0.1, 0.4]), low=np.array([0.0, 0.2]), high=np.array([0.3, 0.6]),
    ...     confidence=0.95, method="DeLong", bias="",
    ... )
    >>> found.contains(0.0)
    array([ True, False])
    """

    value: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    confidence: float
    method: str
    bias: str

    def reshape(self, shape: tuple[int, ...]) -> Estimate:
        """The same estimates with the batch laid out as ``shape``."""
        value, low, high = (a.reshape(shape) for a in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.confidence, self.method, self.bias)

    def contains(self, truth: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say for every member of the batch whether the interval contains ``truth``."""
        target = np.asarray(truth, dtype=np.float64)
        return np.asarray((self.low <= target) & (target <= self.high), dtype=np.bool_)
