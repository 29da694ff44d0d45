"""Why a record is exposed by a fitted model, in words: its features, its label, its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope import fitted
from leakscope.data import RecordId
from leakscope.results import ModelExplanationEntry

# The one is said to be the reason where it is so much larger than the other.
MOSTLY = 1.5


def explain_by_model(
    model: fitted.FittedModel,
    laws: fitted.FittedLaws,
    *,
    rows: Sequence[int],
    record_ids: Sequence[RecordId],
) -> tuple[ModelExplanationEntry, ...]:
    """Explain the records in these rows, which are given in the order of their rank.

    None of a model with one loss for several classes, where neighbours are not known.
    """
    found = fitted.neighbours_of(model, rows, fraction=laws.fraction) if len(rows) else None
    if found is None:
        return ()
    moved = laws.shift / laws.nonmember_sd
    return tuple(
        ModelExplanationEntry(
            record_id=record_ids[row],
            rank=rank,
            weight=float(found.weight[rank - 1]),
            surprise=float(found.surprise[rank - 1]),
            neighbours=[record_ids[other] for other in found.others[rank - 1].tolist()],
            shares=found.shares[rank - 1].tolist(),
            sentence=_sentence(
                record_ids[row],
                float(moved[row]),
                float(found.weight[rank - 1]),
                float(found.surprise[rank - 1]),
            ),
        )
        for rank, row in enumerate(np.asarray(rows).tolist(), start=1)
    )


def _sentence(name: RecordId, moved: float, weight: float, surprise: float) -> str:
    if weight > MOSTLY * surprise:
        why = "mostly by its features"
    elif surprise > MOSTLY * weight:
        why = "mostly by its label"
    else:
        why = "by its features and its label alike"
    return (
        f"Record {name} moves its own score by {abs(moved):.2g} standard deviations, {why}: its "
        f"features weigh {_times(weight)} times as much as usual, and its label lies "
        f"{_times(surprise)} times as far from what the others predict."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"
