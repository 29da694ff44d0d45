"""Worst-case epsilon of output perturbation, where there is one: clipped records, an l2 term."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from leakscope import measures
from leakscope.errors import InputError
from leakscope.lasso import replacement_sensitivity
from leakscope.laws import LawPair, Normal, Provenance
from leakscope.settings import TARGET_DELTA


@dataclass(frozen=True)
class WorstCase:
    """A differential-privacy guarantee for one release, for every dataset within the bounds.

    ``epsilon`` and ``sensitivity`` are ``None`` where there is none, and ``reason`` says why.

    Examples
    --------
    >>> from leakscope.planning import worst_case_epsilon
    >>> worst_case_epsilon(500, lam=1.0, sigma_eta=0.5).epsilon is None
    True
    """

    epsilon: float | None
    delta: float
    sensitivity: float | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "sensitivity": self.sensitivity,
            "reason": self.reason,
        }


def worst_case_epsilon(
    records: int,
    *,
    lam: float,
    sigma_eta: float,
    l2: float = 0.0,
    clip_norm: float | None = None,
    clip_label: float | None = None,
    delta: float = TARGET_DELTA,
) -> WorstCase:
    """(epsilon, delta) of output perturbation of the LASSO with an l2 term, one record replaced.

    Rows are clipped to norm ``clip_norm`` and labels to ``clip_label``, and the objective is
    ``l2``-strongly convex: the estimate's sensitivity is then bounded, and the Gaussian mechanism
    does the rest, by its exact curve.  Without either no epsilon is finite for every dataset, and
    the result says so.  Objective perturbation of an l1 problem is left out.

    Examples
    --------
    >>> from leakscope.planning import worst_case_epsilon
    >>> found = worst_case_epsilon(100, lam=1.0, sigma_eta=0.5, l2=50.0, clip_norm=1.0,
    ...                            clip_label=1.0)
    >>> round(found.sensitivity, 4), round(found.epsilon, 3)
    (0.0683, 0.478)
    """
    if not (math.isfinite(sigma_eta) and sigma_eta > 0.0):
        raise InputError(f"sigma_eta must be above zero and finite, but it is {sigma_eta!r}.")
    found = replacement_sensitivity(records, lam, l2, clip_norm, clip_label)
    if found.value is None:
        return WorstCase(None, delta, None, found.reason)
    pair = LawPair(
        Normal(found.value / sigma_eta, 1.0),
        Normal(0.0, 1.0),
        Provenance(adjacency="replaced", observes="coefficients", random=("output_noise",)),
    )
    return WorstCase(float(measures.epsilon_at_delta(pair, delta)), delta, found.value, "")  # type: ignore[arg-type]
