"""A share of runs or records with its interval, and whether it lies above a bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Share:
    """A share of ``total`` with the exact 95% interval of Clopper and Pearson.

    Examples
    --------
    >>> from papers.binomial_share import Share
    >>> print(Share(61, 100))
    61% [51%, 71%]
    """

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends."""
        from scipy.stats import beta

        k, n = self.count, self.total
        low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
        high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
        return low, high

    @property
    def every(self) -> bool:
        """Whether it is all of them: what a claim about every record, run or trial says."""
        return self.count == self.total

    def above(self, bound: float) -> bool | None:
        """Whether the interval lies above the bound; None where it holds the bound inside."""
        low, high = self.interval
        if low > bound:
            return True
        return False if high < bound else None

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.0%} [{low:.0%}, {high:.0%}]"


def share_of(which: ArrayLike) -> Share:
    """The share of true entries."""
    flags = np.asarray(which, dtype=bool)
    return Share(int(flags.sum()), flags.size)


def side_of(low: float, high: float, bound: float) -> bool | None:
    """Whether an interval lies above a bound; None where it holds the bound inside."""
    if low > bound:
        return True
    return False if high < bound else None


def all_of(sides: Iterable[bool | None]) -> bool | None:
    """False where one is; else None where one is; else True."""
    found = list(sides)
    if any(side is False for side in found):
        return False
    return None if any(side is None for side in found) else True
