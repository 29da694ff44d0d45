"""Every predictor of a record's exposure but ours, by its name: models' answers in, one number out.

From log-odds alone: the loss of one model, ensemble loss, RMIA, LiRA in its forms, all from
``leakscope.fitted``.  From the losses over training: LT-IQR (arXiv 2411.05743).  From the records
themselves: quantile regression (QMIA, arXiv 2307.03694), and, with no model at all, the
leave-one-out KL of Gaussian processes.  A predictor that a truth has no material for is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm
from truth_files import Truth, distance

from leakscope.attacking import lira, rmia
from leakscope.attacking.score_attacks import ensemble_loss
from leakscope.halves.estimate import tabulated

# QMIA's false-positive rate, and how many principal components of the records it sees.
QUANTILE, COMPONENTS = 0.99, 32
# The noise variance of a Gaussian process whose prior variance is one on average.
KERNEL_NOISE = 0.1


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a truth as its models saw them, and their labels."""

    X: np.ndarray
    y: np.ndarray


def log_odds_predictors(scores: np.ndarray, mask: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Those that need nothing but what the models say."""
    if len(scores) == 1:
        yield "loss of one model", -scores[0]
        return
    yield "ensemble loss", ensemble_loss(scores, mask)
    yield "RMIA", rmia(scores, mask)
    variances = ("own", "bayes", "shared") if len(scores) >= 4 else ("shared",)
    for variance in variances:
        pair = lira(scores, mask, variance=variance)  # type: ignore[arg-type]
        u, s = pair.nonmember.mean, pair.nonmember.sigma  # type: ignore[union-attr]
        m, r = pair.member.mean, pair.member.sigma  # type: ignore[union-attr]
        yield f"LiRA, {variance} variance", distance(u, s, m, r)
        if variance == variances[0]:
            # Its statistic for the models with the record, which play the attacked one in turn.
            yield "LiRA, offline", (m - u) / s


def lira_levels(
    scores: np.ndarray, mask: np.ndarray, u: np.ndarray, s: np.ndarray, fprs: tuple[float, ...]
) -> dict[str, Any]:
    """Each record's true FPR at LiRA's threshold for 1%, and the mean TPRs of LiRA's laws."""
    pair = lira(scores, mask, variance="own")
    mean, sigma = pair.nonmember.mean, pair.nonmember.sigma  # type: ignore[union-attr]
    shift, spread = pair.member.mean - mean, pair.member.sigma  # type: ignore[union-attr]
    fpr = norm.sf((mean + norm.isf(0.01) * sigma - u) / s)
    return {
        "fpr_lira": np.quantile(fpr, [0.1, 0.5, 0.9]).tolist(),
        "tpr_lira": [float(tabulated(shift, sigma, spread, level).mean()) for level in fprs],
    }


def trace_range(truth: Truth, models: slice) -> np.ndarray | None:
    """LT-IQR: the mean interquartile range of a record's loss over epochs, of models with it."""
    if truth.trace_iqr is None or models.stop > len(truth.trace_iqr):
        return None
    mask = truth.trained_on[models]
    return np.where(mask, truth.trace_iqr[models], 0.0).sum(0) / mask.sum(0)


def quantile_margins(truth: Truth, seen: np.ndarray, model: int) -> np.ndarray:
    """QMIA's margin under one model: the score over the 99% quantile of nonmembers like it."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    out = ~truth.trained_on[model]
    regression = HistGradientBoostingRegressor(
        loss="quantile", quantile=QUANTILE, categorical_features=[seen.shape[1] - 1], random_state=0
    )
    scores = truth.log_odds[model]
    return np.asarray(scores - regression.fit(seen[out], scores[out]).predict(seen))


def components(records: Records) -> np.ndarray:
    """The leading principal components of the records, and the label as the last column."""
    X = records.X.reshape(len(records.X), -1).astype(np.float64)
    X = X - X.mean(0)
    if X.shape[1] > COMPONENTS:
        values, vectors = np.linalg.eigh(X.T @ X if X.shape[1] <= len(X) else X @ X.T)
        kept = vectors[:, ::-1][:, :COMPONENTS]
        X = X @ kept if X.shape[1] <= len(X) else kept * np.sqrt(values[::-1][:COMPONENTS])
    return np.column_stack([X, records.y])


@lru_cache(maxsize=16)
def kernel_leakage(records: Records) -> tuple[tuple[str, np.ndarray, float], ...]:
    """The leave-one-out KL of every record under Gaussian processes, with a tenth as much noise.

    By kernel, with the seconds that it took: truths of the same records share it.
    """
    from leakscope import kernels, lood
    from leakscope.kernels.formulas import median_length_scale

    X = records.X.reshape(len(records.X), -1).astype(np.float64)
    X = X[:, X.std(0) > 0]
    X = (X - X.mean(0)) / X.std(0)
    y = np.eye(int(records.y.max()) + 1)[records.y]
    y = y - y.mean(0)
    matrices = {
        "rbf": kernels.rbf(median_length_scale(X)),
        "linear": kernels.linear(),
    }
    found = []
    for name, kernel in matrices.items():
        began = time.process_time()
        matrix = kernel(X)
        matrix /= np.diagonal(matrix).mean()
        kl = lood.all_records(matrix, y, noise_variance=KERNEL_NOISE).kl
        found.append((f"kernel, {name}", kl, time.process_time() - began))
    return tuple(found)


@lru_cache(maxsize=8)
def _archive(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def records_of(truth: Truth, data: str | None, archives: tuple[Path, ...]) -> Records | None:
    """The rows of a truth, from an archive of ``datasets.py``; None where they are not there."""
    return _records(data, truth.index.tobytes(), archives)


@lru_cache(maxsize=16)
def _records(data: str | None, index: bytes, archives: tuple[Path, ...]) -> Records | None:
    rows = np.frombuffer(index, np.intp)
    for path in archives:
        arrays = _archive(path)
        if f"{data}_X" in arrays:
            return Records(arrays[f"{data}_X"][rows], arrays[f"{data}_y"][rows])
    return None
