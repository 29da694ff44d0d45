"""What the model is worth: its mean squared error at a fresh record (Prop. 4.3, ridge too)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakscope._numerics.keys import Key, as_key
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.law_pair import moments
from leakscope.linear.output_noise import OutputNoise
from leakscope.settings import LINEAR_PLAN_DEFAULTS, LinearMethod


@dataclass(frozen=True)
class GeneralizationError:
    """E (y0 - yhat0)^2 at a fresh record; ``stderr`` is 0 for a closed form.

    ``value`` is infinite within one of p = n at ridge 0.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign, generalization_error
    >>> generalization_error(GaussianDesign(100, 400, 3000, 1.0)).stderr
    0.0
    """

    value: float
    stderr: float


def generalization_error(
    design: GaussianDesign,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int = 2000,
    random_state: int | np.random.Generator | Key | None = None,
) -> GeneralizationError:
    """The mean squared error at a fresh record, noise on the answer included.

    Without ridge it is Prop. 4.3 for p > n, exact at every n, and its counterpart for p < n; with
    ridge it comes from the moments of the route ``method``.  At a record of average norms the
    moments are those of the average record, because they are linear in the norms.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign, generalization_error
    >>> round(generalization_error(GaussianDesign(100, 400, 3000, 1.0)).value, 6)
    2.59097
    >>> found = generalization_error(GaussianDesign(100, 400, 3000, 1.0, ridge=5.0))
    >>> abs(found.value - 2.063) < 0.01
    True
    """
    # an answer carries its own noise, however many an attacker may average
    added = 0.0 if noise is None else noise.sigma**2
    if design.ridge == 0.0 and method != "simulated":
        return GeneralizationError(_least_squares(design) + added, 0.0)
    typical = RecordNorms.typical(design)
    _, fresh = moments(design, typical, method, draws, as_key(random_state))
    error = (fresh.label - 2.0 * fresh.covariance + fresh.prediction)[0]
    spread = float(error.std(ddof=1) / math.sqrt(error.size)) if error.size > 1 else 0.0
    return GeneralizationError(float(error.mean()) + added, spread)


def _least_squares(design: GaussianDesign) -> float:
    """Prop. 4.3 for p > n + 1; for p < n - 1 the signal is whole and 1/chi2(n-p+1) averages."""
    n, p = design.n, design.p
    if p > n + 1:
        return float(
            1.0 + design.sigma**2 + n * (design.unseen_variance / (p - n - 1) - 1.0 / design.dim)
        )
    if p < n - 1:
        return float(design.unseen_variance * (1.0 + p / (n - p - 1)))
    return math.inf
