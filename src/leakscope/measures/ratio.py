"""What every engine answers about the log likelihood ratio l = log p1/p0 of pairs of laws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from leakscope._numerics.arrays import FloatArray


class Ratio(ABC):
    """B pairs, p1 the member's law and p0 the nonmember's; m questions are asked of each."""

    @property
    @abstractmethod
    def size(self) -> int:
        """B, the number of pairs."""

    @abstractmethod
    def advantage(self) -> FloatArray:
        """Total variation distance, shape (B,)."""

    @abstractmethod
    def overlap(self) -> FloatArray:
        """One minus the total variation distance, with digits of its own near zero, shape (B,)."""

    @abstractmethod
    def auc(self) -> FloatArray:
        """P(l(X1) > l(X0)), ties counting one half, shape (B,)."""

    @abstractmethod
    def renyi(self, order: float) -> FloatArray:
        """Rényi divergence D_order(P1 || P0), KL at order 1 and sup l at infinity, shape (B,)."""

    @abstractmethod
    def tpr_at(self, fpr: FloatArray) -> tuple[FloatArray, FloatArray]:
        """TPR and FNR, (B, m), of the best tests of the sizes ``fpr``, (m,), randomised at ties."""

    @abstractmethod
    def delta_at(self, epsilon: FloatArray) -> FloatArray:
        """The hockey sticks P1(l > epsilon) - exp(epsilon) P0(l > epsilon), (B, m)."""

    @abstractmethod
    def epsilon_at(self, delta: FloatArray) -> FloatArray:
        """The least epsilon >= 0 whose hockey stick is at most ``delta``, (m,); (B, m)."""

    @abstractmethod
    def reversed(self) -> Self:
        """The same pairs with the roles of member and nonmember exchanged."""

    def jeffreys(self) -> FloatArray:
        """KL(P1 || P0) + KL(P0 || P1), shape (B,)."""
        return self.renyi(1.0) + self.reversed().renyi(1.0)
