"""An audit's run directory: all that a report, a comparison and a verification need.

The report computes nothing, so the ROCs, the histograms and the pictures are put into the run
directory here: small arrays, and small PNG files where records are pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.datasets import Dataset
from leakscope.results.audit import FPRS, Audit
from leakscope.results.run_directory import write_run_directory

# Bars of a histogram.
BINS = 40


def write_run(audit: Audit, directory: str | Path, *, dataset: Dataset | None = None) -> Path:
    """Write what ``leakscope audit`` writes: result, table, laws, ROCs, histograms, pictures."""
    pictures: dict[str, bytes] = {}
    if dataset is not None and audit.examined is not None:
        pictures = audit.examined.pictures(audit, dataset)
    frame = audit.to_frame()
    names = ("kl", "kl_reverse", "advantage", "auc", *FPRS.values())
    return write_run_directory(
        directory,
        audit,
        columns=list(frame.columns),
        rows=frame.itertuples(index=False),
        arrays={
            "order": audit.order,
            "confirmed": audit.confirmed,
            **{name: audit.table.of(name) for name in names},
            **audit.laws.arrays,
            **report_arrays(audit),
        },
        files=pictures,
    )


def report_arrays(audit: Audit) -> dict[str, NDArray[Any]]:
    """ROCs and histograms, as arrays by name.

    ``roc_fpr`` (m,) and ``roc_tpr`` (k, m) are the best test's ROC for the k records whose ranks
    are in ``roc_ranks``: the first, the one a tenth of the way down, the middle one.
    ``histogram_advantage_*`` and ``histogram_log10_kl_*`` are edges and counts over all records;
    ``histogram_log10_kl_left_out`` counts those whose KL is zero or infinite.
    """
    count = len(audit.kl)
    ranks = sorted({1, max(1, round(count / 10)), (count + 1) // 2})
    curves = [audit.laws.roc(int(audit.order[rank - 1])) for rank in ranks]
    # Nine digits, so that equal levels are equal.
    levels = np.log10(audit.kl[np.isfinite(audit.kl) & (audit.kl > 0.0)]).round(9)
    level_counts, level_edges = np.histogram(levels, bins=BINS)
    counts, edges = np.histogram(audit.advantage, bins=BINS, range=(0.0, 1.0))
    return {
        "roc_ranks": np.array(ranks),
        "roc_fpr": curves[0].fpr,
        "roc_tpr": np.stack([curve.tpr for curve in curves]),
        "histogram_advantage_edges": edges,
        "histogram_advantage_counts": counts,
        "histogram_log10_kl_edges": level_edges,
        "histogram_log10_kl_counts": level_counts,
        "histogram_log10_kl_left_out": np.array(count - levels.size),
    }
