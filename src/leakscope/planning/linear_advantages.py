"""What one attacker gains on a planned linear model, averaged over records, or at one record."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope import measures
from leakscope._numerics.keys import Key
from leakscope.laws.pair import LawPair
from leakscope.linear.data_models import (
    DataModel,
    DrawnDesigns,
    Query,
    design_moments,
    pair_of_designs,
)
from leakscope.linear.design import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.law_pair import label_nodes, law_pair
from leakscope.measures.drawn import ScoredAdvantage, scored_advantage
from leakscope.settings.plan import LINEAR_PLAN_DEFAULTS, LinearAttacker, LinearMethod

DRAWS: dict[LinearMethod, int] = {"exact": 4000, "asymptotic": 1, "simulated": 200}

# a prediction whose variance given the label is less, in label variances, is the label
_EXACT = 1e-9


def linear_advantage(
    design: GaussianDesign,
    *,
    attacker: LinearAttacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> ScoredAdvantage:
    """The advantage of one attacker, averaged over records x0.

    For one who knows the label it is the total variation given (x0, y0), averaged over y0 too.
    """
    known = attacker == "label_known"
    if known and (noise is None or noise.variances()[0] == 0.0):
        if design.interpolates:
            return ScoredAdvantage(1.0, 0.0)
        if design.sigma == 0.0 and design.p == design.dim < design.n and design.ridge == 0.0:
            # the model is the truth: it says y0 whether or not it was trained on it
            return ScoredAdvantage(0.0, 0.0)
    norms = record_nodes(design, method, few=known)
    pair = law_pair(
        design,
        norms,
        method=method,
        attacker=attacker,
        noise=noise,
        draws=DRAWS[method] if draws is None else draws,
        random_state=random_state,
    )
    if known and method != "asymptotic":
        return scored_advantage(pair, np.outer(norms.weight, label_nodes()[1]), choosing=200)
    return mean_advantage(pair, norms.weight)


def mean_advantage(pair: LawPair, weight: Any) -> ScoredAdvantage:
    """The advantage over records of these weights: exact of a limit, scored of designs."""
    if pair.provenance.method == "asymptotic":
        found = measures.advantage(pair)
        assert isinstance(found, np.ndarray)
        return ScoredAdvantage(float(weight @ found), 0.0)
    return scored_advantage(pair, weight)


def record_nodes(design: GaussianDesign, method: LinearMethod, *, few: bool = False) -> RecordNorms:
    """Quadrature nodes for x0; whole matrices are dear, so they are asked at three records."""
    if method == "simulated":
        return RecordNorms.nodes(design, 3, 1)
    return RecordNorms.nodes(design, 4, 1) if few else RecordNorms.nodes(design)


def data_model_advantage(
    model: DataModel,
    query: Query,
    *,
    attacker: LinearAttacker = "label_hidden",
    noise: OutputNoise | None = None,
    designs: int = 2000,
    random_state: int | np.random.Generator | Key | None = None,
) -> ScoredAdvantage:
    """The advantage at one record of a latent space, a Fourier series or random ReLU features.

    Half of the designs choose the test and the others score it.  Member and non-member share their
    designs, and what is known without drawing is not drawn, so the standard error is that of
    differences (`leakscope.linear.data_model_law_pair`).  An attacker who knows the label of a
    model that repeats labels gains all but the probability that it predicts the label unseen.

    Examples
    --------
    >>> from leakscope.planning import data_model_advantage
    >>> from leakscope.linear import LatentSpace
    >>> model = LatentSpace(n=20, p=100, latent=4)
    >>> data_model_advantage(
    ...     model, model.query(11), attacker="label_known", designs=50, random_state=1
    ... )
    ScoredAdvantage(value=1.0, stderr=0.0)
    """
    drawn = design_moments(model, query, designs=designs, random_state=random_state)
    return drawn_advantage(model, query, drawn, attacker=attacker, noise=noise, designs=designs)


def drawn_advantage(
    model: DataModel,
    query: Query,
    drawn: DrawnDesigns,
    *,
    attacker: LinearAttacker,
    noise: OutputNoise | None,
    designs: int,
) -> ScoredAdvantage:
    """`data_model_advantage` of designs that were drawn before."""
    if attacker == "label_known" and (noise is None or noise.variances()[0] == 0.0):
        sides, settled = drawn
        label = model.label_variance(query)
        # A prediction that is one number given the label: the label, or zero (no ReLU is active).
        silent = [side[0] <= _EXACT * label for side in sides]
        repeated = [
            (side[0] - side[1] ** 2 / label <= _EXACT * label) & ~zero
            for side, zero in zip(sides, silent, strict=True)
        ]
        if (repeated[0] | silent[0]).all():
            # both are silent in the same designs, where he learns nothing
            gained = repeated[0] & ~repeated[1] & ~silent[1]
            missed = gained.reshape(min(designs, gained.size), -1).mean(axis=1)
            spread = float(missed.std(ddof=1) / np.sqrt(missed.size))
            share = 1.0 - settled
            return ScoredAdvantage(share * float(missed.mean()), share * spread)
    pair = pair_of_designs(model, query, drawn, attacker=attacker, noise=noise, designs=designs)
    if attacker == "label_hidden":
        return scored_advantage(pair, designs=designs)
    return scored_advantage(pair, label_nodes()[1], choosing=200, designs=designs)
