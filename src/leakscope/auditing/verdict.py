"""The verdict in plain words; it never says more than was examined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data import RecordId

# An attacker whose best test gains at least this much over guessing (TPR - FPR) on some record is
# called exposure; the number is shown beside the word, and the noise variance sets its level.
EXPOSED_ABOVE = 0.1


def verdict(
    *,
    kernel: str,
    approximation: str | None = None,
    noise_variance: float,
    kl: FloatArray,
    advantage: FloatArray,
    trusted: NDArray[np.bool_],
    record_ids: tuple[RecordId, ...] | None,
    unit: str = "record",
    caution: str | None = None,
) -> str:
    """A few sentences: what was examined, the finding, the ranks, and what sets the level.

    Without ``record_ids`` no record is named.  ``unit`` is what leaves: a record or a group.
    ``caution`` is what other kernels say of the first, where they disagree.
    """
    count = len(kl)
    top = int(np.argmax(kl))
    how = "" if approximation is None else f", {approximation},"
    examined = (
        f"For a Gaussian process with this kernel ({kernel}){how} and squared loss; your model was "
        "not examined."
    )
    untrusted = int(np.count_nonzero(~trusted))
    first = ", the first in rank among them," if not trusted[top] else ""
    unseen = untrusted and float(np.max(advantage)) < EXPOSED_ABOVE
    if (not trusted[top] or unseen) and approximation is not None:
        finding = (
            f"Cannot tell: compared with exact answers the approximation is off by more than a "
            f"tenth, so that {untrusted} of {count} {unit}s{first} are not trusted: use more "
            "inducing records or another route."
        )
    elif not trusted[top] or unseen:
        finding = (
            f"Cannot tell: float64 does not resolve {untrusted} of {count} "
            f"{unit}s{first or ','} at noise_variance {noise_variance:g}: raise it."
        )
    elif float(np.max(advantage)) < EXPOSED_ABOVE:
        finding = (
            f"No exposure found under this model: no {unit} of {count} gives an attacker an "
            f"advantage of {EXPOSED_ABOVE:g}; the largest is {np.max(advantage):.2g}."
        )
    else:
        above = int(np.count_nonzero(advantage >= EXPOSED_ABOVE))
        if record_ids is None:
            named, share = "", f"{above} of {count} {unit}s"
        else:
            named = f"{unit} {record_ids[top]} ranks first of {count}, and "
            share = f"{above} {unit}{'s' if above != 1 else ''}"
        finding = (
            f"Exposed under this model: {named}{share} give an attacker an advantage of "
            f"{EXPOSED_ABOVE:g} or more (median over all: {np.median(advantage):.2f})."
        )
    level = (
        f"Read the ranks: the level of all these numbers is set by noise_variance "
        f"{noise_variance:g} relative to the target's scale."
    )
    return " ".join([examined, finding, level, *([] if caution is None else [caution])])
