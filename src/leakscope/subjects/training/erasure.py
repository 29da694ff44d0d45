"""Whether scores of some units fell by more than those of others did: a test of an erasure."""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.results.erasure import Found
from leakscope.subjects.laws import Rows
from leakscope.subjects.subject import ErasedModel

# The test's level, the power from which "not seen" says something, its draws, and the records that
# it needs to compare with.
LEVEL, SURE, DRAWN, LEAST_OTHERS = 0.05, 0.8, 10_000, 20


def fell(
    change: FloatArray, units: Rows, shift: FloatArray, sd: FloatArray, seed: int
) -> ErasedModel:
    """Whether scores of units fell more than those of others did: ``change`` is before less after.

    ``shift`` (in standard deviations) and ``sd`` are the audit's, in the order of the data.
    In units of each record's own deviation, and in the direction that training moves it.  The null
    is "nothing was erased", under which units are like the others; draws of as many others give its
    law, and the same draws with the audit's shift added the chance of seeing an erasure.
    """
    moved = np.where(shift < 0.0, -1.0, 1.0) * change / np.where(sd > 0.0, sd, np.inf)
    others = np.setdiff1d(np.flatnonzero(np.isfinite(moved)), units)
    if len(others) < LEAST_OTHERS:
        raise InputError(
            f"the answers about {len(others)} other records are too few to compare with; "
            f"{LEAST_OTHERS} are needed."
        )
    generator = np.random.default_rng(seed)
    drawn = generator.choice(moved[others], size=(DRAWN, len(units))).sum(axis=1)
    seen, expected = float(moved[units].sum()), float(np.abs(shift[units]).sum())
    p_value = float((1 + np.count_nonzero(drawn >= seen)) / (1 + DRAWN))
    power = float(np.mean(drawn + expected >= np.quantile(drawn, 1.0 - LEVEL)))
    verdict: Found = "erased" if p_value <= LEVEL else "kept" if power >= SURE else "cannot tell"
    notes = (
        "By a test between two models: the answers about these records "
        + ("fell" if p_value <= LEVEL else "did not fall")
        + " by more than those about others did.",
        "The shift that an erasure would cause is the audit's, of models trained on half of the "
        "records; on all of them it is smaller.",
    )
    told = {"p_value": p_value, "power": power}
    return ErasedModel(None, found=verdict, notes=notes, told=told)
