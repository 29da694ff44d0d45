"""Regression on p noisy covariates of d latent features (Section 5 of **linear**, Fig. 5a)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.keys import Key, as_key
from leakscope.laws import Assumption
from leakscope.linear.data_model import Convention, DataModel, FloatArray, Query, prediction_weights


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

    def variances(self, query: Query, generator: np.random.Generator) -> tuple[float, float]:
        """Var of x0'X^+ y given Z and U: ||Z'w||^2/d + sigma^2 ||w||^2."""
        loadings, x0 = query.fixed[:, :-1], query.fixed[:, -1]
        latent = generator.standard_normal((self.n, self.latent))
        rows = latent @ loadings.T + generator.standard_normal((self.n, self.p))
        nonmember = self._variance(latent, prediction_weights(rows, x0))
        rows[0] = x0
        if self.convention == "text":
            latent[0] = query.features
        return self._variance(latent, prediction_weights(rows, x0)), nonmember

    def _variance(self, latent: FloatArray, weights: FloatArray) -> float:
        through = latent.T @ weights
        return float(through @ through / self.latent + self.sigma**2 * (weights @ weights))

    def assumptions(self) -> tuple[Assumption, ...]:
        """W and x0 are fixed and known to the attacker; z0 is known only through x0 and W."""
        return (
            Assumption("latent features, covariate noise, coefficients and label noise are normal"),
            Assumption("the attacker knows the loadings W and the record's latent vector"),
            Assumption(f"convention: {self.convention}"),
        )
