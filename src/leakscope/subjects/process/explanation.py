"""Why a record is exposed: where it stands among the others, and what its label adds.

In the kernel's own distance, d(x, z)^2 = k(x, x) + k(z, z) - 2 k(x, z), a record is isolated where
its nearest neighbour is far compared with the median over records.  Its label disagrees by
(y_i - mean without)/sqrt(variance without + s2), the leave-one-out residual in predictive standard
deviations: a_i/sqrt(m_i) in the symbols of :mod:`leakscope.lood.dense`.  The record moves the
mean at another record j by -s2 [M^{-1}]_ji a_i/m_i (:mod:`leakscope.lood.influence`).

A label is named among those that the others contradict where it disagrees more than chance has some
label do.  A disagreement is counted in predictive standard deviations, and those rest on the noise
variance that was assumed.  Where it is too small, as a default may be, every label lies many
deviations off: of 400 labels that are pure noise the farthest lies 30 off at a noise variance of
0.01, and 3 at 1.  So a disagreement is divided by what is usual among these records (by the median,
which a few wrong labels do not move), where that is more than the assumed noise says; and a label
is named only where the farthest of as many normal labels would lie nearer in nineteen cases of
twenty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.kernels.kernel import Kernel
from leakscope.lood.device import device_columns
from leakscope.lood.noise import ranks_of
from leakscope.lood.process import ProcessOnRecords
from leakscope.lood.separation import Separation
from leakscope.subjects.process.details import DisagreeingLabel, ProcessExplanation

NEIGHBOURS = 3
MOVED = 3

# The usual distance to a nearest neighbour is the median over at most this many records, and over
# fewer, but no fewer than the second number, where there are more pairs than the third.
USUAL_FROM = 1000
USUAL_LEAST = 50
USUAL_PAIRS = 20_000_000

# Distances that are held at once.
PAIRS_AT_ONCE = 4_000_000

# What a record moves elsewhere needs one more factorisation; it is left out above this.
MOVED_UP_TO = 10_000

# From here on a record is called isolated, a label surprising, a neighbour a twin.
ISOLATED_FROM = 1.5
SURPRISING_FROM = 2.0
TWIN_BELOW = 0.1

EPS = float(np.finfo(np.float64).eps)


def explain(
    process: ProcessOnRecords,
    laws: Separation,
    *,
    rows: Sequence[int],
    record_ids: Sequence[RecordId],
) -> list[ProcessExplanation]:
    """Explain the records in these rows, which are given in the order of their rank.

    Parameters
    ----------
    process, laws
        What was audited, and what was found.
    rows, record_ids
        Row numbers, the most exposed first; all n ids.
    """
    features, kernel = process.features, process.kernel
    chosen = np.asarray(rows, dtype=np.intp)
    if not chosen.size:
        return []
    near, distances = _nearest(features, kernel, chosen, min(NEIGHBOURS, len(features) - 1))
    usual = _usual_distance(features, kernel)
    residual = laws.residual[chosen]
    disagreement = laws.disagreement[chosen]
    moves = _moves(process, laws, chosen, residual)
    found, kls, leverage = [], laws.kl, laws.leverage
    for place, row in enumerate(chosen.tolist()):
        far: list[int] = []
        if moves is not None:
            most = min(MOVED, len(features) - 1)
            far = np.argsort(-np.abs(moves[place]), kind="stable")[:most].tolist()
        kl = float(kls[row])
        values: dict[str, Any] = {
            "neighbours": [record_ids[other] for other in near[place]],
            "isolation": float(distances[place, 0]) / usual if usual > 0.0 else None,
            "disagreement": float(disagreement[place]),
            "share_from_label": float(laws.kl_label[row]) / kl if kl > 0.0 else 0.0,
        }
        found.append(
            ProcessExplanation(
                record_id=record_ids[row],
                rank=place + 1,
                distances=(distances[place] * np.sqrt(process.kernel_scale)).tolist(),
                leverage=float(leverage[row]),
                moved=[record_ids[other] for other in far],
                shifts=[] if moves is None else [float(moves[place, other]) for other in far],
                sentence=_sentence(record_ids[row], **values),
                **values,
            )
        )
    return found


def _nearest(
    features: FloatArray, kernel: Kernel, chosen: NDArray[np.intp], count: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """(t, count) row numbers of each chosen record's nearest others, and the distances."""
    step = max(1, PAIRS_AT_ONCE // len(features))
    rows, found = [], []
    for start in range(0, len(chosen), step):
        distances = _distances(features, kernel, chosen[start : start + step])
        if count == 1:
            nearest = np.argmin(distances, axis=1)[:, None]
        else:
            nearest = np.argsort(distances, axis=1, kind="stable")[:, :count]
        rows.append(nearest)
        found.append(np.take_along_axis(distances, nearest, axis=1))
    return np.concatenate(rows), np.concatenate(found)


def _distances(features: FloatArray, kernel: Kernel, chosen: NDArray[np.intp]) -> FloatArray:
    """(t, n) distances in the kernel from the chosen records to all; infinite to themselves."""
    prior = kernel.diagonal(features)
    sums = prior[chosen, None] + prior
    squared = sums - 2.0 * kernel(features[chosen], features)
    # Copies come out at the rounding of the three terms; they are at distance zero.
    squared[squared < 64.0 * EPS * sums] = 0.0
    squared[np.arange(len(chosen)), chosen] = np.inf
    return np.sqrt(squared)


def _usual_distance(features: FloatArray, kernel: Kernel) -> float:
    """The median distance to a nearest neighbour, over some records, always the same ones."""
    count = len(features)
    wanted = max(USUAL_LEAST, min(USUAL_FROM, USUAL_PAIRS // count))
    some = np.sort(np.random.default_rng(0).permutation(count)[:wanted])
    return float(np.median(_nearest(features, kernel, some, 1)[1]))


def _moves(
    process: ProcessOnRecords, laws: Separation, chosen: NDArray[np.intp], residual: FloatArray
) -> FloatArray | None:
    """(t, n) the shift of every other record's prediction; of one output signed, else its length.

    None where there are too many records for another factorisation, or the route has none.
    """
    if laws.route == "device":
        columns = device_columns(
            process.features, chosen, kernel=process.kernel, noise_variance=laws.noise_variance
        ).T
    elif laws.route == "dense" and process.records <= MOVED_UP_TO:
        units = np.zeros((process.records, len(chosen)))
        units[chosen, np.arange(len(chosen))] = 1.0
        columns = cholesky.solve(process.factor(), units).T
    else:
        return None
    length = residual[:, 0] if residual.shape[1] == 1 else np.sqrt(np.sum(residual**2, axis=1))
    moves = -laws.noise_variance * columns * length[:, None]
    moves[np.arange(len(chosen)), chosen] = 0.0
    return moves if residual.shape[1] == 1 else np.abs(moves)


def _sentence(
    record_id: RecordId,
    *,
    neighbours: Sequence[RecordId],
    isolation: float | None,
    disagreement: float,
    share_from_label: float,
) -> str:
    if isolation is None:
        place = (
            "has a neighbour as near as most records do: at least half of all records have an "
            "exact copy"
        )
    elif isolation >= ISOLATED_FROM:
        place = f"stands alone: its nearest neighbour is {isolation:.1f} times as far as usual"
    elif isolation < TWIN_BELOW:
        place = f"has a twin, record {neighbours[0]}"
    else:
        place = f"has a neighbour at {isolation:.1f} times the usual distance"
    deviations = f"{disagreement:.1f} standard deviations"
    if disagreement >= SURPRISING_FROM:
        label = f"its label is {deviations} from what the other records say"
    else:
        label = f"its label is within {deviations} of what the other records say"
    alone = isolation is not None and isolation >= ISOLATED_FROM
    joint = "and" if alone == (disagreement >= SURPRISING_FROM) else "but"
    shift, drop = f"{share_from_label:.0%}", f"{1.0 - share_from_label:.0%}"
    if drop == "0%":
        source = "All of its KL comes from the shift of the mean"
    elif shift == "0%":
        source = "All of its KL comes from the drop in variance"
    else:
        source = f"{shift} of its KL comes from the shift of the mean, the rest from the variance"
    return f"Record {record_id} {place}, {joint} {label}. {source}."


# How often a label is named among records whose labels are all as they should be.
FALSE_ALARM = 0.05


def calibrated(disagreement: FloatArray, outputs: int) -> FloatArray:
    """Disagreements in standard deviations of how far labels lie off among these records.

    With C outputs a disagreement is a root mean square, of which the square times C is
    chi-squared with C degrees of freedom where labels are normal.

    """
    if not disagreement.size:
        return disagreement
    usual = float(np.median(disagreement) / np.sqrt(stats.chi2.median(outputs) / outputs))
    return np.asarray(disagreement / max(1.0, usual))


def surprising_from(records: int, outputs: int) -> float:
    """From which disagreement on a label is named."""
    return float(np.sqrt(stats.chi2.isf(FALSE_ALARM / max(records, 1), outputs) / outputs))


# How many records whose labels disagree with the others are named beside the most exposed.
DISAGREEING = 5


def disagreeing_labels(
    laws: Separation, record_ids: Sequence[RecordId], advantage: FloatArray
) -> list[DisagreeingLabel]:
    """The few records whose label the others contradict most, the worst first; none of groups."""
    if laws.unit == "group":
        return []
    ranks, outputs = ranks_of(laws.kl), laws.outputs
    found = calibrated(laws.disagreement, outputs)
    least = surprising_from(len(found), outputs)
    worst = np.argsort(-found, kind="stable")[:DISAGREEING].tolist()
    return [
        DisagreeingLabel(
            record_id=record_ids[row],
            disagreement=float(found[row]),
            rank=int(ranks[row]),
            advantage=float(advantage[row]),
        )
        for row in worst
        if found[row] >= least
    ]
