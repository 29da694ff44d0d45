"""The advantage of one attacker on a planned linear model, averaged over records."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope import linear, measures
from leakscope._numerics.keys import Key
from leakscope.laws import LawPair
from leakscope.linear import Attacker, GaussianDesign, LinearMethod, OutputNoise, RecordNorms
from leakscope.measures import ScoredAdvantage, scored_advantage
from leakscope.settings import LINEAR_PLAN_DEFAULTS

DRAWS: dict[LinearMethod, int] = {"exact": 4000, "asymptotic": 1, "simulated": 200}


def linear_advantage(
    design: GaussianDesign,
    *,
    attacker: Attacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> ScoredAdvantage:
    """Only the advantage of one attacker, which is what a search for a target asks for.

    Examples
    --------
    >>> from leakscope.planning import linear_advantage
    >>> from leakscope.linear import GaussianDesign
    >>> linear_advantage(GaussianDesign(100, 400, 3000, 1.0), attacker="label_known")
    ScoredAdvantage(value=1.0, stderr=0.0)
    """
    count = DRAWS[method] if draws is None else draws
    if attacker == "label_known":
        return label_known_advantage(
            design, method=method, noise=noise, draws=count, random_state=random_state
        )
    norms = record_nodes(design, method)
    pair = linear.law_pair(
        design, norms, method=method, noise=noise, draws=count, random_state=random_state
    )
    return mean_advantage(pair, norms.weight)


def label_known_advantage(
    design: GaussianDesign,
    *,
    method: LinearMethod,
    noise: OutputNoise | None,
    draws: int,
    random_state: int | np.random.Generator | Key | None,
) -> ScoredAdvantage:
    """The advantage of an attacker who knows y0: the total variation given (x0, y0), averaged."""
    silent = noise is None or noise.variances()[0] == 0.0
    if design.interpolates and silent:
        return ScoredAdvantage(1.0, 0.0)
    if design.sigma == 0.0 and design.p == design.dim < design.n and design.ridge == 0.0 and silent:
        # the model is the truth: it says y0 whether or not it was trained on it
        return ScoredAdvantage(0.0, 0.0)
    norms = record_nodes(design, method, few=True)
    scores, share = linear.label_nodes()
    pair = linear.law_pair(
        design,
        norms,
        method=method,
        attacker="label_known",
        noise=noise,
        labels=scores,
        draws=draws,
        random_state=random_state,
    )
    if method == "asymptotic":
        return mean_advantage(pair, norms.weight)
    return scored_advantage(pair, np.outer(norms.weight, share), choosing=200)


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
