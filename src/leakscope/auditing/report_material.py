"""What a report shows beside the result itself, worked out when the run is written.

The report computes nothing, so the ROCs, the histograms and the pictures are put into the run
directory here: small arrays, and small PNG files where records are pictures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.result import AuditResult
from leakscope.data import Dataset, pictured, png
from leakscope.lood import ranks_of
from leakscope.results import GALLERY_FILE, ExposedPicture, Gallery, Neighbour

BINS = 40

# How many of the most exposed pictures are kept, and how many similar ones with each.
PICTURES = 12
NEIGHBOURS = 5


def report_arrays(result: AuditedRecords) -> dict[str, NDArray[Any]]:
    """ROCs and histograms, as arrays by name.

    ``roc_fpr`` (m,) and ``roc_tpr`` (k, m) are the best test's ROC for the k records whose ranks
    are in ``roc_ranks``: the first, the one a tenth of the way down, the middle one.
    ``histogram_advantage_*`` and ``histogram_log10_kl_*`` are edges and counts over all records;
    ``histogram_log10_kl_left_out`` counts those whose KL is zero or infinite.
    """
    count = len(result.kl)
    ranks = sorted({1, max(1, round(count / 10)), (count + 1) // 2})
    curves = [_roc(result, int(result.order[rank - 1])) for rank in ranks]
    positive = np.isfinite(result.kl) & (result.kl > 0.0)
    levels = np.log10(result.kl[positive])
    level_counts, level_edges = np.histogram(levels, bins=BINS, range=_span(levels))
    advantage_counts, advantage_edges = np.histogram(result.advantage, bins=BINS, range=(0.0, 1.0))
    return {
        "roc_ranks": np.array(ranks),
        "roc_fpr": curves[0].fpr,
        "roc_tpr": np.stack([curve.tpr for curve in curves]),
        "histogram_advantage_edges": advantage_edges,
        "histogram_advantage_counts": advantage_counts,
        "histogram_log10_kl_edges": level_edges,
        "histogram_log10_kl_counts": level_counts,
        "histogram_log10_kl_left_out": np.array(count - np.count_nonzero(positive)),
    }


def _span(levels: NDArray[np.float64]) -> tuple[float, float]:
    """From least to largest, and a decade where all are the same but for rounding."""
    if not levels.size:
        return 0.0, 1.0
    low, high = float(levels.min()), float(levels.max())
    return (low, high) if high - low > 1e-9 else (low - 0.5, low + 0.5)


def _roc(result: AuditedRecords, row: int) -> measures.RocCurve:
    curve = measures.roc(result.pair_of(row))
    return measures.RocCurve(curve.fpr, curve.tpr.reshape(-1), curve.provenance)


def report_pictures(result: AuditResult, dataset: Dataset) -> dict[str, bytes]:
    """Files by name: ``gallery.json`` and its PNGs; none where the records are not pictures.

    ``dataset`` is as read, before scaling: its features are the pixels.  Which records are most
    similar is asked of the kernel's own distance, on the features as audited.
    """
    shape = dataset.picture or pictured(dataset.features)
    if shape is None or result.unit != "record":
        return {}
    if dataset.record_ids != result.record_ids:
        return {}
    features, kernel = result.process.features, result.process.kernel
    row_of = {name: row for row, name in enumerate(result.record_ids)}
    ranks = ranks_of(result.kl)
    odd = [row_of[entry.record_id] for entry in result.disagreements()]
    top = np.array([*result.order[:PICTURES].tolist(), *odd])
    prior, shared = kernel.diagonal(features), kernel(features[top], features)
    distance = prior[top, None] + prior - 2.0 * shared
    similarity = shared / np.sqrt(prior[top, None] * prior)
    low, high = float(dataset.features.min()), float(dataset.features.max())
    files: dict[str, bytes] = {}

    def shown(row: int) -> dict[str, Any]:
        name = f"record_{row}.png"
        if name not in files:
            files[name] = png(dataset.features[row], shape, low, high, shown_side=1)
        return {
            "record_id": dataset.record_ids[row],
            "target": str(dataset.target[row]),
            "file": name,
        }

    pictures = []
    for place, row in enumerate(top.tolist()):
        others = np.argsort(distance[place], kind="stable")
        near = [int(other) for other in others[: NEIGHBOURS + 1] if other != row][:NEIGHBOURS]
        pictures.append(
            ExposedPicture(
                **shown(row),
                rank=int(ranks[row]),
                neighbours=[
                    Neighbour(**shown(other), similarity=float(similarity[place, other]))
                    for other in near
                ],
            )
        )
    count = len(pictures) - len(odd)
    gallery = Gallery(pictures=pictures[:count], disagreeing=pictures[count:])
    text = gallery.model_dump_json(indent=2)
    return {GALLERY_FILE: text.encode(), **files}
