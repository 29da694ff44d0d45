"""Pairs beside two plain normals: a posterior draw, noised coefficients, labels, vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from leakscope.errors import InputError
from leakscope.laws import Bernoulli, LawPair, MultivariateNormal, Normal

if TYPE_CHECKING:
    from leakscope.fitted.fitted_laws import FittedLaws


def posterior_pair(laws: FittedLaws, variance: float, answer_noise: float) -> LawPair:
    """The laws of a score whose coefficients are a draw from a posterior."""
    if laws.yields is None or laws.observes in ("label", "probabilities"):
        raise InputError(
            "The law of a posterior draw is known for models with one output whose answer is a "
            "number; observe log_odds, scores, prediction or residual."
        )
    member, nonmember = (
        Normal(mean, np.sqrt(sd**2 + variance * spread + answer_noise**2))
        for mean, sd, spread in (
            (laws.member_mean, laws.member_sd, laws.yields[0]),
            (laws.nonmember_mean, laws.nonmember_sd, laws.yields[1]),
        )
    )
    return LawPair(member, nonmember, laws.provenance)


def coefficient_pair(laws: FittedLaws, noise: float, other: float) -> LawPair:
    """Equal normals around two points: only the distance along the line between them tells."""
    if other > 0.0:
        raise InputError("Noise is on the coefficients or on the answers; pass one of them.")
    if laws.moved is None:
        raise InputError(
            "The law of coefficients with noise is known for models with coefficients under the "
            "question of known others; ask for known_others."
        )
    seen = replace(laws.provenance, observes="coefficients")
    return LawPair(Normal(laws.moved, noise), Normal(0.0 * laws.moved, noise), seen)


def label_pair(laws: FittedLaws) -> LawPair:
    """Whether the own label comes out on top."""
    if laws.several is not None:
        right = laws.several.right_in, laws.several.right_out
    else:
        right = (
            special.ndtr(laws.member_mean / laws.member_sd),
            special.ndtr(laws.nonmember_mean / laws.nonmember_sd),
        )
    return LawPair(Bernoulli(right[0]), Bernoulli(right[1]), laws.provenance)


def vector_pair(laws: FittedLaws, answer_noise: float) -> LawPair:
    """All probabilities, as the other classes' logits less the own one."""
    assert laws.several is not None
    found = [
        MultivariateNormal(mean, covariance + answer_noise**2 * np.eye(mean.shape[-1]))
        for mean, covariance in laws.several.logit_laws()
    ]
    return LawPair(found[0], found[1], laws.provenance)
