"""Random ReLU features (Section 5 of **linear**, Fig. 5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.linear.data_model import Convention, DataModel, FloatArray, Query, prediction_weights


@dataclass(frozen=True)
class RandomRelu(DataModel):
    """y = Z beta + noise with Z of D columns, and the model sees X = max(ZV, 0).

    ``"text"``: rows of V (D x p) have unit norm in R^p and the query is passed through the ReLU
    like every record.  ``"published"``: columns of V have unit norm in R^D and the query is not
    passed through the ReLU.  V is drawn anew for every design in both, so the attacker does not
    know it.

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

    def variances(self, query: Query, generator: np.random.Generator) -> tuple[float, float]:
        """||Z'w||^2/D + sigma^2 ||w||^2 for non-member and member."""
        if self.convention == "published":
            latent, z0, directions = self._reduced(query.features, generator)
        else:
            z0 = query.features
            latent = generator.standard_normal((self.n, self.dim))
            directions = generator.standard_normal((self.dim, self.p))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows = np.maximum(latent @ directions, 0.0)
        asked = z0 @ directions
        record = np.maximum(asked, 0.0)
        if self.convention == "text":
            asked = record
        nonmember = self._variance(latent, prediction_weights(rows, asked))
        if self.p > self.n + 1 or (self.convention == "text" and self.p >= self.n):
            return float(z0 @ z0) / self.dim + self.sigma**2, nonmember
        rows[0], latent[0] = record, z0
        return self._variance(latent, prediction_weights(rows, asked)), nonmember

    def _reduced(
        self, z0: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Z, z0 and V in an orthonormal basis of their span, n + 1 numbers instead of D.

        Bartlett's decomposition of Z after rotating z0 along the first axis; a column of V is a
        normal vector over its norm, of which only n + 1 coordinates and the rest's length matter.
        """
        n, dim = self.n, self.dim
        latent = np.zeros((n, n + 1))
        latent[:, 0] = generator.standard_normal(n)
        latent[:, 1:] = np.tril(generator.standard_normal((n, n)), -1)
        latent[np.arange(n), np.arange(1, n + 1)] = np.sqrt(
            generator.chisquare(dim - 1 - np.arange(n))
        )
        record = np.zeros(n + 1)
        record[0] = np.linalg.norm(z0)
        directions = generator.standard_normal((n + 1, self.p))
        rest = generator.chisquare(dim - n - 1, self.p)
        return latent, record, directions / np.sqrt((directions**2).sum(axis=0) + rest)

    def _variance(self, latent: FloatArray, weights: FloatArray) -> float:
        through = latent.T @ weights
        return float(through @ through / self.dim + self.sigma**2 * (weights @ weights))

    def assumptions(self) -> tuple[Assumption, ...]:
        """What is fixed and known."""
        return (
            Assumption("features, coefficients and label noise are normal"),
            Assumption("the attacker knows the record z0 and not the random directions V"),
            Assumption(f"convention: {self.convention}"),
        )
