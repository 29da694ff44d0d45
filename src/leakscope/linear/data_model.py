"""Section 5 of **linear**: data models beyond Gaussian features, with one interface.

In each of them the prediction given the design is a zero-mean Gaussian, because coefficients and
label noise are, and its variance is computable.  The laws are therefore mixtures over designs
(Rao-Blackwell), and a few hundred designs do what the paper does with 100,000 draws in bins.

Every model comes in two conventions: ``"text"`` is what the paper says, ``"published"`` what the
code behind its figures does; each model says where they differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, NormalMixture, Provenance

FloatArray = NDArray[np.float64]
Convention = Literal["text", "published"]


@dataclass(frozen=True, eq=False)
class Query:
    """A record in question and whatever else stays fixed while designs are drawn anew.

    ``features`` are the record's own (latent vector, time), ``fixed`` the rest (loadings).

    Examples
    --------
    >>> from leakscope.linear import LatentSpace
    >>> LatentSpace(n=20, p=30, latent=4).query(0).features.shape
    (4,)
    """

    features: FloatArray
    fixed: FloatArray


class DataModel(ABC):
    """A world with a linear model in it, from which designs can be drawn around a fixed record.

    Examples
    --------
    >>> from leakscope.linear import DataModel, LatentSpace
    >>> isinstance(LatentSpace(n=20, p=30, latent=4), DataModel)
    True
    """

    @abstractmethod
    def query(self, random_state: int | np.random.Generator | Key | None = None) -> Query:
        """Draw a record in question."""

    @abstractmethod
    def variances(self, query: Query, generator: np.random.Generator) -> tuple[float, float]:
        """Draw one design; the prediction's variance given it, for member and non-member."""

    @abstractmethod
    def assumptions(self) -> tuple[Assumption, ...]:
        """What this model and convention assume, and who knows what."""


def data_model_law_pair(
    model: DataModel,
    query: Query,
    *,
    designs: int = 500,
    random_state: int | np.random.Generator | Key | None = None,
) -> LawPair:
    """The laws of the prediction at ``query``: mixtures over ``designs`` random designs.

    Designs of members and of non-members are drawn independently of each other.

    Examples
    --------
    >>> from leakscope.linear import LatentSpace, data_model_law_pair
    >>> model = LatentSpace(n=20, p=60, latent=4)
    >>> pair = data_model_law_pair(model, model.query(1), designs=50, random_state=2)
    >>> pair.nonmember.components
    50
    """
    if designs < 2:
        raise InputError(f"designs must be 2 or more, but it is {designs}.")
    key = as_key(random_state)
    found = np.empty((2, designs))
    for k in range(designs):
        found[0, k] = model.variances(query, key.child(0, k).generator())[0]
        found[1, k] = model.variances(query, key.child(1, k).generator())[1]
    provenance = Provenance(
        question="population",
        adjacency="replaced",
        observes="prediction",
        random=("data", "labels"),
        attacker_knows_label=False,
        method="simulated",
        source=f"linear Section 5, {type(model).__name__}, mixture over {designs} designs",
        assumptions=model.assumptions(),
    )
    member, nonmember = (NormalMixture.scale(np.sqrt(v)) for v in found)
    return LawPair(member, nonmember, provenance)


def prediction_weights(features: FloatArray, query: FloatArray) -> FloatArray:
    """w with yhat0 = w'y for minimum-norm least squares: the pseudo-inverse transposed times x0."""
    n, p = features.shape
    try:
        if p >= n:
            return np.asarray(np.linalg.solve(features @ features.T, features @ query))
        return np.asarray(features @ np.linalg.solve(features.T @ features, query))
    except np.linalg.LinAlgError:
        # a unit that no record activates leaves a column of zeros
        return np.asarray(np.linalg.lstsq(features.T, query, rcond=None)[0])
