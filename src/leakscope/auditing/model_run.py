"""The run directory of an audit of a fitted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from leakscope import measures, results
from leakscope.auditing.model_result import ModelAuditResult
from leakscope.auditing.report_material import BINS


def write_model_run(result: ModelAuditResult, directory: str | Path) -> Path:
    """Write result, table, laws, and the ROCs and histogram that a report shows."""
    count = len(result.record_ids)
    ranks = sorted({1, max(1, round(count / 10)), (count + 1) // 2})
    pair = result.law_pair()
    curves = [measures.roc(pair.take([int(result.order[rank - 1])])) for rank in ranks]
    counts, edges = np.histogram(result.advantage, bins=BINS, range=(0.0, 1.0))
    frame = result.to_frame()
    laws = result.laws
    models = result.half_models
    return results.write_run_directory(
        directory,
        result.to_document(),
        columns=list(frame.columns),
        rows=frame.itertuples(index=False),
        arrays={
            "order": result.order,
            "advantage": result.advantage,
            "kl": result.kl,
            "kl_reverse": result.kl_reverse,
            "auc": result.auc,
            "tpr_at_fpr_0_01": result.tpr_at_fpr[0.01],
            "tpr_at_fpr_0_001": result.tpr_at_fpr[0.001],
            "member_mean": laws.member_mean,
            "member_sd": laws.member_sd,
            "nonmember_mean": laws.nonmember_mean,
            "nonmember_sd": laws.nonmember_sd,
            "trusted": laws.trusted,
            "roc_ranks": np.array(ranks),
            "roc_fpr": curves[0].fpr,
            "roc_tpr": np.stack([curve.tpr.reshape(-1) for curve in curves]),
            "histogram_advantage_edges": edges,
            "histogram_advantage_counts": counts,
            **({} if models is None else {laws.observes: models.scores}),
            **({} if models is None else {"trained_on": models.trained_on}),
        },
    )
