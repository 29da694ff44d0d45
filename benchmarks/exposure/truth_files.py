"""One truth, one small file: what many models said of every record, and who was trained on it.

``log_odds`` (models x records, float32 rounded to 15 bits, or float16 in older files),
``trained_on`` (packed bits along the records), ``data`` and ``index`` (the array in the archive of
``datasets.py`` and the rows of it), and for networks ``trace_iqr`` (the first models x records:
the interquartile range of a record's loss over the epochs).  Models 2k and 2k + 1 are trained on
complementary halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

# Epochs of so many models are followed, where a network is trained.
TRACED = 32
MOST_RECORDS = 2500


def halves(models: int, records: int, seed: int) -> np.ndarray:
    """Complementary halves: models x records, true where the model is trained on the record."""
    rng = np.random.default_rng(seed)
    trained_on = np.zeros((models, records), bool)
    for pair in range(models // 2):
        chosen = rng.permutation(records)[: records // 2]
        trained_on[2 * pair, chosen] = True
        trained_on[2 * pair + 1] = ~trained_on[2 * pair]
    return trained_on


def rounded(array: np.ndarray) -> np.ndarray:
    """As float32 with 15 bits of mantissa, which is far below any spread and compresses."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x80)) & np.uint32(0xFFFFFF00)).view(np.float32)


def write_truth(
    path: Path,
    log_odds: np.ndarray,
    trained_on: np.ndarray,
    data: str,
    *,
    trace_iqr: np.ndarray | None = None,
) -> None:
    traces = {} if trace_iqr is None else {"trace_iqr": trace_iqr.astype(np.float16)}
    np.savez_compressed(
        path,
        log_odds=rounded(log_odds),
        trained_on=np.packbits(trained_on, axis=1),
        data=np.array(data),
        index=np.arange(log_odds.shape[1], dtype=np.int32),
        **traces,
    )


@dataclass(frozen=True)
class Truth:
    """The records of one truth that are scored, at most ``MOST_RECORDS``, chosen at random."""

    log_odds: np.ndarray
    trained_on: np.ndarray
    index: np.ndarray
    data: str | None
    trace_iqr: np.ndarray | None


@lru_cache(maxsize=1)
def read_truth(path: Path) -> Truth:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    scores = arrays["log_odds"].astype(np.float64)
    mask = np.unpackbits(arrays["trained_on"], axis=1)[:, : scores.shape[1]].astype(bool)
    rows = np.arange(scores.shape[1])
    if len(rows) > MOST_RECORDS:
        rows = np.random.default_rng(0).permutation(rows)[:MOST_RECORDS]
    traces = arrays.get("trace_iqr")
    return Truth(
        scores[:, rows],
        mask[:, rows],
        arrays.get("index", np.arange(scores.shape[1]))[rows].astype(np.intp),
        str(arrays["data"]) if "data" in arrays else None,
        None if traces is None else traces[:, rows].astype(np.float64),
    )


def laws(scores: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, ...]:
    """Means and standard deviations without and with each record, and how many models of each."""
    found = []
    for kept in (~mask, mask):
        count = kept.sum(0)
        mean = np.where(kept, scores, 0.0).sum(0) / count
        variance = np.where(kept, (scores - mean) ** 2, 0.0).sum(0) / (count - 1)
        # A forest's votes can agree in all models; a spread of a hundredth of the usual is zero.
        found += [mean, np.sqrt(variance + 1e-4 * variance.mean()), count]
    return tuple(found)


def distance(u: np.ndarray, s: np.ndarray, m: np.ndarray, r: np.ndarray) -> np.ndarray:
    """How far the law with the record is from that without it, in standard deviations."""
    return (m - u) / np.sqrt(0.5 * (s**2 + r**2))
