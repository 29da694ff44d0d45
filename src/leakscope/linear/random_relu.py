"""Random ReLU features (Section 5 of **linear**, Fig. 5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.linear.data_model import (
    Convention,
    DataModel,
    Query,
    gaussian_moments,
    prediction_weights,
)

_POSITIONS = 8


@dataclass(frozen=True)
class RandomRelu(DataModel):
    """y = Z beta + noise with Z of D columns, and the model sees X = max(ZV, 0).

    ``"text"``: rows of V (D x p) have unit norm in R^p and the query is passed through the ReLU
    like every record.  ``"published"``: columns of V have unit norm in R^D and the query is not
    passed through the ReLU, although a member's training row is; for p > n a member's prediction
    is its label all the same (Fig. 5c comes back only so: 0.66 at p = 110 where a fit would give
    0.24).  V is drawn anew for every design in both, so the attacker does not know it.

    Examples
    --------
    >>> from leakscope.linear import RandomRelu
    >>> RandomRelu(n=100, p=400, dim=5000).sigma
    1.0
    """

    n: int
    p: int
    dim: int
    sigma: float = 1.0
    convention: Convention = "text"

    def __post_init__(self) -> None:
        if self.n < 2 or self.p < 1 or self.dim < self.n + 2:
            raise InputError("Random ReLU features need n >= 2, p >= 1 and dim >= n + 2.")

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """z0 ~ N(0, I_D)."""
        z0 = as_key(random_state).generator().standard_normal(self.dim)
        return Query(z0, np.empty(0))

    def label_variance(self, query: Query) -> float:
        """||z0||^2/D + sigma^2."""
        return float(query.features @ query.features) / self.dim + self.sigma**2

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Variance ||Z'w||^2/D + sigma^2 ||w||^2 and covariance with y0, at 8 positions of z0.

        Rotating z0 is as good as rotating Z and V (for unit rows of V: permuting and flipping
        coordinates), so each design answers for several records of the same norm.  Their answers
        are nearly independent: eight do the work of six designs or more.
        """
        if self.convention == "published":
            latent, records, directions = self._reduced(query.features, generator)
        else:
            records = self._permuted(query.features, generator)
            latent = generator.standard_normal((self.n, self.dim))
            directions = generator.standard_normal((self.dim, self.p))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows = np.maximum(latent @ directions, 0.0)
        asked = directions.T @ records
        lifted = np.maximum(asked, 0.0)
        if self.convention == "text":
            asked = lifted
        nonmember = self._moments(latent, records, prediction_weights(rows, asked))
        if self.p > self.n or (self.convention == "text" and self.p == self.n):
            return np.full(nonmember.shape, self.label_variance(query)), nonmember
        member = np.empty_like(nonmember)
        for k in range(records.shape[1]):
            rows[0], latent[0] = lifted[:, k], records[:, k]
            weights = prediction_weights(rows, asked[:, k : k + 1])
            member[:, k : k + 1] = self._moments(latent, records[:, k : k + 1], weights)
            member[1, k] += self.sigma**2 * weights[0, 0]
        return member, nonmember

    def draw(self, query: Query, designs: int, key: Key) -> tuple[FloatArray, FloatArray]:
        """As for every model, once it is clear that V fits into memory."""
        height = self.n + _POSITIONS if self.convention == "published" else self.dim
        require_memory(
            8 * (2 * height * self.p + self.n * (self.p + self.dim)),
            f"A {height} x {self.p} matrix of random directions",
            "use fewer features or a smaller dim",
        )
        return super().draw(query, designs, key)

    def _permuted(self, z0: FloatArray, generator: np.random.Generator) -> FloatArray:
        order = generator.permuted(np.tile(z0, (_POSITIONS, 1)), axis=1)
        return np.asarray((order * generator.choice([-1.0, 1.0], order.shape)).T)

    def _reduced(
        self, z0: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Z, K positions of z0 and V in an orthonormal basis of their span: n + K numbers, not D.

        Bartlett's decomposition of Z with K further normal rows, which are then given the length
        of z0; a column of V is a normal vector over its norm, of which only n + K coordinates and
        the rest's length matter.
        """
        count = min(_POSITIONS, self.dim - self.n - 1)
        size = self.n + count
        rows = np.tril(generator.standard_normal((size, size)), -1)
        rows[np.diag_indices(size)] = np.sqrt(generator.chisquare(self.dim - np.arange(size)))
        records = rows[self.n :].T
        records = records * (np.linalg.norm(z0) / np.linalg.norm(records, axis=0))
        directions = generator.standard_normal((size, self.p))
        rest = generator.chisquare(self.dim - size, self.p)
        return rows[: self.n], records, directions / np.sqrt((directions**2).sum(axis=0) + rest)

    def _moments(self, latent: FloatArray, records: FloatArray, weights: FloatArray) -> FloatArray:
        return gaussian_moments(latent, records, weights, 1.0 / self.dim, self.sigma**2)

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("features, coefficients and label noise are normal"),
            Assumption("the attacker knows the record z0 and not the random directions V"),
            Assumption(f"convention: {self.convention}"),
        )
