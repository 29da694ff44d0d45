"""Several noised releases about the same records, as the pair of laws of whoever sees them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakscope.errors import InputError
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import LawPair


def compose(*releases: LawPair) -> LawPair:
    """Both laws of several releases together, whose noises are independent given the records.

    Noise on coefficients and draws of a posterior are such.  What varies with the other records is
    not: releases share it.

    Parameters
    ----------
    releases
        Two or more pairs of normal laws of the same records, in the same order.

    Returns
    -------
    LawPair
        Normal laws in as many dimensions as there are releases, in units of each release's law
        without the record.

    Raises
    ------
    InputError
        Where laws are not normal, vary with the other records, or answer different questions.

    Examples
    --------
    Equal normals at distances mu add in squares, as Gaussian differential privacy has it:

    >>> import leakscope
    >>> from leakscope import laws, measures
    >>> pairs = [laws.LawPair(laws.Normal(mu, 1.0), laws.Normal(0.0, 1.0)) for mu in (0.3, 0.4)]
    >>> alone = laws.LawPair(laws.Normal(0.5, 1.0), laws.Normal(0.0, 1.0))
    >>> round(float(measures.kl(leakscope.compose(*pairs)) / measures.kl(alone)), 9)
    1.0
    """
    if len(releases) < 2:
        raise InputError("compose takes two or more pairs of laws; the laws of one are known.")
    shifts, ratios = [], []
    first = releases[0].provenance
    for place, pair in enumerate(releases, start=1):
        member, nonmember, about = pair.member, pair.nonmember, pair.provenance
        if not isinstance(member, Normal) or not isinstance(nonmember, Normal):
            raise InputError(f"release {place}: its laws are not normal laws of one number.")
        if {"data", "labels"} & set(about.random):
            raise InputError(
                f"release {place}: its laws vary with the records, which releases share; compose "
                "takes laws given the records, of noised coefficients or of posterior draws."
            )
        if (about.question, about.adjacency) != (first.question, first.adjacency):
            raise InputError(f"release {place} answers another question than release 1.")
        shifts.append((member.mean - nonmember.mean) / nonmember.sigma)
        ratios.append(member.sigma / nonmember.sigma)
    if len({np.shape(shift) for shift in shifts}) > 1:
        raise InputError("the releases are not about the same records: their numbers differ.")
    shift, ratio = np.stack(shifts, axis=-1), np.stack(ratios, axis=-1)
    eye = np.eye(len(releases))
    without = np.broadcast_to(eye, (*ratio.shape, len(releases)))
    return LawPair(
        MultivariateNormal(shift, eye * (ratio**2)[..., None]),
        MultivariateNormal(np.zeros_like(shift), without),
        replace(first, observes="unspecified"),
    )
