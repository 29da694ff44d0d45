"""What every measure is made of: the law of the log likelihood ratio under both hypotheses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Tails(NamedTuple):
    """Log probabilities of the test "member if l > threshold", each of shape (B, m)."""

    log_tpr: FloatArray
    log_fpr: FloatArray
    log_fnr: FloatArray
    log_tnr: FloatArray


class Ratio(ABC):
    """The log likelihood ratio l = log p1/p0 of B pairs (p1 the member law, p0 the nonmember).

    Queries of shape (B, m) ask m questions of each pair.  Everything is in logs, so that
    probabilities of 1e-300 and differences of 1e-12 both keep their digits.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """B, the number of pairs."""

    @abstractmethod
    def tails(self, threshold: FloatArray) -> Tails:
        """Size and power of the likelihood-ratio test at each threshold."""

    @abstractmethod
    def log_excess(self, epsilon: FloatArray) -> FloatArray:
        """Log of the hockey stick P1(l > epsilon) - exp(epsilon) P0(l > epsilon)."""

    @abstractmethod
    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""

    @abstractmethod
    def log_overlap(self) -> FloatArray:
        """Log of one minus the total variation distance, shape (B,)."""

    @abstractmethod
    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""

    @abstractmethod
    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""

    @abstractmethod
    def tpr_at(self, log_fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log TPR and log FNR of the best test of each size, randomised where it must be."""

    @abstractmethod
    def epsilon_at(self, log_delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most delta."""

    @abstractmethod
    def log_certain(self) -> FloatArray:
        """log P1(l = inf): what a member shows that a nonmember never does, shape (B,)."""

    def jeffreys(self) -> FloatArray:
        """KL(P1 || P0) + KL(P0 || P1), shape (B,)."""
        return self.renyi(1.0) + self.reversed().renyi(1.0)

    def size_of_test(self, threshold: FloatArray) -> FloatArray:
        """P0(l > threshold) to absolute precision, shape (B, m)."""
        return np.asarray(np.exp(self.tails(threshold).log_fpr))

    def kinks(self) -> FloatArray:
        """Levels at which the size of the test is not smooth, (B, K); others do no harm."""
        return np.stack([self.renyi(np.inf), -self.reversed().renyi(np.inf)], axis=-1)

    @abstractmethod
    def reversed(self) -> Self:
        """The same pairs with the roles of member and nonmember exchanged."""
