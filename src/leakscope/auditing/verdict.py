"""The verdict in plain words; it never says more than was examined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.data import RecordId
from leakscope.lood import Separation

if TYPE_CHECKING:
    from leakscope.auditing.choice_reasons import NoiseOfData

# An attacker whose best test gains at least this much over guessing (TPR - FPR) on some record is
# called exposure; the number is shown beside the word, and the noise variance sets its level.
EXPOSED_ABOVE = 0.1


CRITERIA = {
    "leave_one_out": "the leave-one-out predictive score",
    "marginal_likelihood": "the marginal likelihood",
}


def process_answer(
    laws: Separation,
    advantage: FloatArray,
    record_ids: tuple[RecordId, ...] | None,
    *,
    kernel: str,
    name: str,
    approximation: str | None = None,
    caution: str | None = None,
    other: NoiseOfData | None = None,
    chosen_by: str | None = None,
) -> tuple[str, ...]:
    """A few sentences: what was examined, who ranks first, and over what range the level goes.

    No level stands alone, since an assumed noise sets it: it is given at that noise and, where it
    was tried, at the noise that the data would choose (``other``); or at the noise that they did
    choose, by the criterion ``chosen_by``.

    Without ``record_ids`` no record is named.  ``caution`` is what other kernels say
    of the first, where they disagree.
    """
    trusted, unit, noise_variance = laws.trusted, laws.unit, laws.noise_variance
    count, top = laws.units, int(np.argmax(laws.kl))
    how = "" if approximation is None else f", {approximation}"
    examined = f"A Gaussian process ({kernel}) on {name}{how}; your model was not examined."
    untrusted = int(np.count_nonzero(~trusted))
    first = ", the first in rank among them," if not trusted[top] else ""
    unseen = untrusted and float(np.max(advantage)) < EXPOSED_ABOVE
    if (not trusted[top] or unseen) and approximation is not None:
        finding = (
            f"Cannot tell: the approximation knows {untrusted} of {count} {unit}s{first or ','} no "
            f"better than to {laws.error_asked:.0%}: use more inducing records or another route."
        )
    elif not trusted[top] or unseen:
        finding = (
            f"Cannot tell: float64 does not resolve {untrusted} of {count} "
            f"{unit}s{first or ','} at noise_variance {noise_variance:g}: raise it."
        )
    else:
        ranked = f"{count} {unit}s were ranked."
        if record_ids is not None:
            ranked = f"{unit.capitalize()} {record_ids[top]} ranks first of {count}."
        finding = (
            f"{ranked} How exposed it is rests on the noise, {whose_noise(chosen_by)}: "
            f"{ends(noise_variance, float(np.max(advantage)), float(np.median(advantage)), other)}"
        )
    return (examined, finding, *([] if caution is None else [caution]))


def process_question(unit: str) -> str:
    """What the attacker of a Gaussian process sees and knows, and what other fits give away."""
    return (
        f"The attacker knows all other {unit}s and sees one answer drawn from the process; a "
        f"deterministic fit, such as kernel ridge, gives each {unit} away with certainty."
    )


def whose_noise(chosen_by: str | None) -> str:
    """Who chose the noise: nobody, or the data by a criterion."""
    return (
        "which is assumed"
        if chosen_by is None
        else f"which the data chose by {CRITERIA[chosen_by]}"
    )


def ends(
    noise_variance: float,
    largest: float,
    median: float,
    other: NoiseOfData | None,
) -> str:
    """The largest and the median advantage at both noises, and which of them is which."""
    own = f"the largest advantage is {two_digits(largest)} and the median {median:.2g}"
    if other is None:
        return f"at noise_variance {noise_variance:g} {own}; the smaller the noise, the larger."
    theirs = f"{two_digits(other.largest_advantage)} and {other.median_advantage:.2g}"
    end = "pessimistic" if noise_variance < other.noise_variance else "optimistic"
    return (
        f"at noise_variance {noise_variance:g}, the {end} end, {own}; at "
        f"{other.noise_variance:.2g}, which the data would choose, {theirs}."
    )


def two_digits(advantage: float) -> str:
    """Two digits; what would round to 1 is not certainty."""
    if advantage < 0.995:
        return f"{advantage:.2g}"
    return "above 0.99" if advantage < 0.9999 else "above 0.9999"
