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
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, Normal, NormalMixture, Provenance
from leakscope.linear.law_pair import Attacker, label_nodes
from leakscope.linear.output_noise import OutputNoise

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
    def label_variance(self, query: Query) -> float:
        """Variance of the record's label y0 over coefficients and label noise."""

    @abstractmethod
    def moments(
        self, query: Query, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw one design: (2, K) for the member and for the non-member.

        Rows: variance of the prediction given the design, and its covariance with y0.  K > 1 where
        a symmetry lets one design answer for K equally likely positions of the record.
        """

    def draw(self, query: Query, designs: int, key: Key) -> tuple[FloatArray, FloatArray]:
        """`moments` of many designs, side by side: (2, designs K) for each side.

        Each design follows the model's law.  They are independent unless a model spreads them more
        evenly than chance would.
        """
        drawn = [self.moments(query, key.child(k).generator()) for k in range(designs)]
        member, nonmember = (np.concatenate(side, axis=1) for side in zip(*drawn, strict=True))
        return member, nonmember

    def settled(self, query: Query) -> float:
        """Probability that a design without the record still holds its features, row for row.

        Such a design predicts as if the record were in it, so it is not drawn: `moments` draws
        from the others.
        """
        return 0.0

    @abstractmethod
    def assumptions(self) -> tuple[Assumption, ...]:
        """What this model and convention assume, and who knows what."""


def data_model_law_pair(
    model: DataModel,
    query: Query,
    *,
    attacker: Attacker = "label_hidden",
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    designs: int = 500,
    random_state: int | np.random.Generator | Key | None = None,
) -> LawPair:
    """The laws of the prediction at ``query``: mixtures over ``designs`` random designs.

    Member and non-member share their designs, all but the member's own row: their difference then
    varies less than with designs of their own.  Drawn components have equal weights and those of
    one design stand together; a first component with another weight is the probability that is
    known without drawing (`DataModel.settled`).

    Parameters
    ----------
    attacker, noise, labels
        As for `law_pair`: for the label-known attacker a batch of L pairs, the laws given the
        labels, in standard deviations of y0 (`label_nodes` by default).

    Examples
    --------
    >>> from leakscope.linear import LatentSpace, data_model_law_pair
    >>> model = LatentSpace(n=20, p=60, latent=4)
    >>> pair = data_model_law_pair(model, model.query(1), designs=50, random_state=2)
    >>> pair.nonmember.components  # eight of each design
    400
    """
    sides, settled = design_moments(model, query, designs=designs, random_state=random_state)
    extra = (0.0, 0.0) if noise is None else noise.variances()
    scores = None
    if attacker == "label_known":
        scores = label_nodes()[0] if labels is None else np.atleast_1d(np.asarray(labels, float))
    laws = [
        design_law(side, model.label_variance(query), share, more, scores)
        for side, share, more in zip(sides, (0.0, settled), extra, strict=True)
    ]
    provenance = Provenance(
        question="population",
        adjacency="replaced",
        observes="prediction" if attacker == "label_hidden" else "label_and_prediction",
        random=("data", "labels") if noise is None else ("data", "labels", "output_noise"),
        attacker_knows_label=attacker == "label_known",
        method="simulated",
        source=f"linear Section 5, {type(model).__name__}, mixture over {designs} designs",
        assumptions=model.assumptions(),
    )
    return LawPair(laws[0], laws[1], provenance)


def design_moments(
    model: DataModel,
    query: Query,
    *,
    designs: int,
    random_state: int | np.random.Generator | Key | None = None,
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """`DataModel.moments` of many designs, (2, designs K) a side, and the settled share.

    Examples
    --------
    >>> from leakscope.linear import LatentSpace, design_moments
    >>> model = LatentSpace(n=20, p=60, latent=4)
    >>> (member, nonmember), settled = design_moments(model, model.query(1), designs=5,
    ...                                               random_state=2)
    >>> member.shape, settled
    ((2, 40), 0.0)
    """
    if designs < 2:
        raise InputError(f"designs must be 2 or more, but it is {designs}.")
    key = as_key(random_state)
    settled = model.settled(query)
    if settled == 1.0:
        label = np.full((2, 2), model.label_variance(query))
        return (label, label), 0.0
    return model.draw(query, designs, key), settled


def design_law(
    side: FloatArray,
    label: float,
    settled: float,
    noise: float = 0.0,
    scores: FloatArray | None = None,
) -> Normal | NormalMixture:
    """A mixture with the settled component first; its prediction is the label itself.

    A prediction that is zero whatever the labels (no ReLU is active) is given a spread of 1e-9.

    Examples
    --------
    >>> from leakscope.linear import LatentSpace, design_law, design_moments
    >>> model = LatentSpace(n=20, p=60, latent=4)
    >>> (_, nonmember), settled = design_moments(model, model.query(1), designs=5, random_state=2)
    >>> design_law(nonmember, 1.0, settled).components
    40
    """
    weights: FloatArray | float = 1.0
    if settled > 0.0:
        drawn = side.shape[1]
        weights = np.concatenate([[settled], np.full(drawn, (1.0 - settled) / drawn)])
        side = np.column_stack([[label, label], side])
    variance, covariance = side
    if scores is None:
        total = np.maximum(variance, 1e-18 * label) + noise
        if np.ptp(total) <= 1e-9 * total.max():
            return Normal(0.0, float(np.sqrt(total[0])))
        return NormalMixture.scale(np.sqrt(total), weights)
    slope = covariance / label
    rest = np.maximum(variance - slope * covariance, 0.0) + noise
    if np.any(rest <= 1e-12 * label):
        raise InputError(
            "The prediction is the label itself, so an attacker who knows the label knows the "
            "prediction and no law is needed; leakscope.planning.data_model_advantage says what "
            "he gains."
        )
    means = slope * scores[:, None] * np.sqrt(label)
    return NormalMixture(weights, means, np.broadcast_to(np.sqrt(rest), means.shape))


def prediction_weights(features: FloatArray, query: FloatArray) -> FloatArray:
    """w with yhat0 = w'y for minimum-norm least squares: the pseudo-inverse transposed times x0.

    ``query`` is (p,) or, for K records, (p, K).
    """
    n, p = features.shape
    try:
        if p >= n:
            return np.asarray(np.linalg.solve(features @ features.T, features @ query))
        return np.asarray(features @ np.linalg.solve(features.T @ features, query))
    except np.linalg.LinAlgError:
        # a unit that no record activates leaves a column of zeros
        return np.asarray(np.linalg.lstsq(features.T, query, rcond=None)[0])


def gaussian_moments(
    rows: FloatArray, records: FloatArray, weights: FloatArray, variance: float, noise: float
) -> FloatArray:
    """(2, K): variance of w'y and its covariance with y0, for y = Z beta + noise given Z.

    ``rows`` is Z, (n, d); ``records`` are the K records' own (d, K); ``weights`` are (n, K); the
    coefficients have ``variance`` each.  Label noise of the record itself is the caller's.
    """
    through = rows.T @ weights
    spread = variance * (through**2).sum(axis=0) + noise * (weights**2).sum(axis=0)
    return np.stack([spread, variance * (through * records).sum(axis=0)])
