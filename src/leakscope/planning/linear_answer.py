"""What a planned linear model would give away, and what it would be worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakscope import linear, measures
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import LawPair, Provenance
from leakscope.linear import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.law_pair import Attacker, Method, moments
from leakscope.planning.scored_tests import ScoredAdvantage, scored_advantage
from leakscope.settings import MEASURE_DEFAULTS

DRAWS: dict[Method, int] = {"exact": 4000, "asymptotic": 1, "simulated": 200}


@dataclass(frozen=True)
class LinearAnswer:
    """Leakage and error of one design, averaged over records x0 ~ N(0, I).

    ``advantage`` is the label-hidden attacker's, ``advantage_label_known`` that of one who knows
    y0 too; standard errors are those of the random designs (0 where there are none).
    ``sigma_member`` and ``sigma_nonmember`` are root mean squares of the prediction.

    Examples
    --------
    >>> from leakscope.planning import plan_linear
    >>> from leakscope.linear import GaussianDesign
    >>> answer = plan_linear(GaussianDesign(100, 400, 3000, 1.0), method="asymptotic")
    >>> round(answer.advantage, 4), answer.advantage_label_known
    (0.2629, 1.0)
    """

    design: GaussianDesign
    noise: OutputNoise | None
    advantage: float
    advantage_stderr: float
    advantage_label_known: float
    advantage_label_known_stderr: float
    measures: measures.PopulationMeasures
    generalization_error: float
    generalization_error_stderr: float
    sigma_member: float
    sigma_nonmember: float
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite becomes ``None``."""
        found = self.provenance.to_dict()
        values = {
            "advantage": self.advantage,
            "advantage_stderr": self.advantage_stderr,
            "advantage_label_known": self.advantage_label_known,
            "advantage_label_known_stderr": self.advantage_label_known_stderr,
            "kl": self.measures.kl,
            "kl_reverse": self.measures.kl_reverse,
            "auc": self.measures.auc,
            "tpr_at_fpr": {f"{k:g}": v for k, v in self.measures.tpr_at_fpr.items()},
            "generalization_error": self.generalization_error,
            "generalization_error_stderr": self.generalization_error_stderr,
            "sigma_member": self.sigma_member,
            "sigma_nonmember": self.sigma_nonmember,
            "method": found["method"],
            "assumptions": found.pop("assumptions"),
            "provenance": found,
        }
        return {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in values.items()
        }


def plan_linear(
    design: GaussianDesign,
    *,
    method: Method = "exact",
    noise: OutputNoise | None = None,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
    draws: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> LinearAnswer:
    """How much a linear model of this design gives away about a typical record.

    Examples
    --------
    >>> from leakscope.planning import plan_linear
    >>> from leakscope.linear import GaussianDesign
    >>> answer = plan_linear(GaussianDesign(100, 400, 3000, 1.0, ridge=5.0), draws=2000)
    >>> round(answer.advantage, 2), round(answer.advantage_label_known, 1)
    (0.33, 0.6)
    """
    count = DRAWS[method] if draws is None else draws
    if method != "asymptotic" and count < 8:
        raise InputError(f"At least 8 designs are needed for a standard error, not {count}.")
    key = as_key(random_state)
    norms = _records(design, method)
    pair = linear.law_pair(
        design, norms, method=method, noise=noise, draws=count, random_state=key.child(0)
    )
    hidden = _advantage(pair, norms.weight)
    known = label_known_advantage(
        design, method=method, noise=noise, draws=count, random_state=key.child(0)
    )
    error = linear.generalization_error(
        design, method=method, noise=noise, draws=count, random_state=key.child(1)
    )
    extra = (0.0, 0.0) if noise is None else noise.variances()
    sides = moments(design, norms, method, count, key.child(0))
    sigma = [
        math.sqrt(float(norms.weight @ side.prediction.mean(axis=-1)) + more)
        for side, more in zip(sides, extra, strict=True)
    ]
    found = measures.population_measures(pair, norms.weight, fpr=fpr)
    if not math.isfinite(error.value):
        # the prediction's second moment is infinite, and KL(nonmember || member) with it
        found = replace(found, kl=math.inf)
    return LinearAnswer(
        design=design,
        noise=noise,
        advantage=hidden.value,
        advantage_stderr=hidden.stderr,
        advantage_label_known=known.value,
        advantage_label_known_stderr=known.stderr,
        measures=found,
        generalization_error=error.value,
        generalization_error_stderr=error.stderr,
        sigma_member=sigma[0],
        sigma_nonmember=sigma[1] if math.isfinite(error.value) else math.inf,
        provenance=pair.provenance,
    )


def linear_advantage(
    design: GaussianDesign,
    *,
    attacker: Attacker,
    method: Method = "exact",
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
    norms = _records(design, method)
    pair = linear.law_pair(
        design, norms, method=method, noise=noise, draws=count, random_state=random_state
    )
    return _advantage(pair, norms.weight)


def label_known_advantage(
    design: GaussianDesign,
    *,
    method: Method,
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
    norms = _records(design, method, few=True)
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
        return _advantage(pair, norms.weight)
    return scored_advantage(pair, np.outer(norms.weight, share), choosing=200)


def _advantage(pair: LawPair, weight: Any) -> ScoredAdvantage:
    if pair.provenance.method == "asymptotic":
        found = measures.advantage(pair)
        assert isinstance(found, np.ndarray)
        return ScoredAdvantage(float(weight @ found), 0.0)
    return scored_advantage(pair, weight)


def _records(design: GaussianDesign, method: Method, *, few: bool = False) -> RecordNorms:
    """Quadrature nodes for x0; whole matrices are dear, so they are asked at three records."""
    if method == "simulated":
        return RecordNorms.nodes(design, 3, 1)
    return RecordNorms.nodes(design, 4, 1) if few else RecordNorms.nodes(design)
