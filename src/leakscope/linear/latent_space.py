"""Regression on p noisy covariates of d latent features (Section 5 of **linear**, Fig. 5a)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
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
class LatentSpace(DataModel):
    """y = Z beta + noise, X = Z W' + U, and the model sees X only.

    ``"text"``: loadings w_j ~ N(0, I_d), the record's covariates carry noise like all others, and
    for a member the label is the record's.  ``"published"``: loadings have unit norm, the record
    has no covariate noise, and for a member the row of X is replaced but its label is not.

    Examples
    --------
    >>> from leakscope.linear import LatentSpace
    >>> LatentSpace(n=200, p=500, latent=20).convention
    'text'
    """

    n: int
    p: int
    latent: int
    sigma: float = 1.0
    convention: Convention = "text"

    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """A latent vector z0, and W with the record's covariates x0 as its last column."""
        generator = as_key(random_state).generator()
        z0 = generator.standard_normal(self.latent)
        loadings = generator.standard_normal((self.p, self.latent))
        if self.convention == "published":
            loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
        x0 = loadings @ z0
        if self.convention == "text":
            x0 += generator.standard_normal(self.p)
        return Query(z0, np.column_stack([loadings, x0]))

    def label_variance(self, query: Query) -> float:
        """||z0||^2/d + sigma^2."""
        return float(query.features @ query.features) / self.latent + self.sigma**2

    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Of x0'X^+ y given Z and U: variance ||Z'w||^2/d + sigma^2 ||w||^2.

        What x0 has outside the span of W may be rotated there, since U is as likely rotated: a
        design answers for 8 such records.  Where x0 has nothing there (``"published"``) it
        replaces one row after the other.
        """
        loadings, positions = query.fixed[:, :-1], self._positions(query, generator)
        latent = generator.standard_normal((self.n, self.latent))
        rows = latent @ loadings.T + generator.standard_normal((self.n, self.p))
        nonmember = self._moments(latent, query, prediction_weights(rows, positions))
        if self.convention == "published":
            return self._relabelled(query, latent, rows), nonmember
        if self.p >= self.n:
            return np.full(nonmember.shape, self.label_variance(query)), nonmember
        latent[0] = query.features
        member = np.empty_like(nonmember)
        for k in range(positions.shape[1]):
            rows[0] = positions[:, k]
            weights = prediction_weights(rows, positions[:, k : k + 1])
            member[:, k : k + 1] = self._moments(latent, query, weights)
            member[1, k] += self.sigma**2 * weights[0, 0]
        return member, nonmember

    def _relabelled(self, query: Query, latent: FloatArray, rows: FloatArray) -> FloatArray:
        """A member whose row of X is replaced and whose label is not, for several rows.

        A model that interpolates repeats the label that stands in the replaced row.
        """
        if self.p >= self.n:
            spread = (latent**2).sum(axis=1) / self.latent + self.sigma**2
            return np.stack([spread, latent @ query.features / self.latent])
        x0 = query.fixed[:, -1:]
        found = []
        for k in range(min(_POSITIONS, self.n)):
            replaced = rows.copy()
            replaced[k] = x0[:, 0]
            found.append(self._moments(latent, query, prediction_weights(replaced, x0)))
        return np.concatenate(found, axis=1)

    def _positions(self, query: Query, generator: np.random.Generator) -> FloatArray:
        """(p, K) records as likely as x0."""
        loadings, x0 = query.fixed[:, :-1], query.fixed[:, -1:]
        if self.convention == "published" or self.p <= self.latent + 1:
            return x0
        basis = np.linalg.qr(loadings)[0]
        inside = basis @ (basis.T @ x0)
        turned = generator.standard_normal((self.p, _POSITIONS))
        turned -= basis @ (basis.T @ turned)
        length = np.linalg.norm(x0 - inside) / np.linalg.norm(turned, axis=0)
        return np.asarray(inside + turned * length)

    def _moments(self, latent: FloatArray, query: Query, weights: FloatArray) -> FloatArray:
        record = query.features[:, None]
        return gaussian_moments(latent, record, weights, 1.0 / self.latent, self.sigma**2)

    def assumptions(self) -> tuple[Assumption, ...]:
        """W and x0 are fixed and known to the attacker; z0 is known only through x0 and W."""
        return (
            Assumption("latent features, covariate noise, coefficients and label noise are normal"),
            Assumption("the attacker knows the loadings W and the record's latent vector"),
            Assumption(f"convention: {self.convention}"),
        )
