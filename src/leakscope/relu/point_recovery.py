"""How many training records a set of candidate points holds, beside as many random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError

# Sets of random candidates that the baseline averages over.
BASELINE_DRAWS = 200


@dataclass(frozen=True, eq=False)
class PointRecovery:
    """Records found among candidates.

    Attributes
    ----------
    distances
        (n,): from each record to the nearest candidate, in units of the distance from the record
        to the nearest other record; infinite without candidates.
    recovered
        (n,): whether that is at most ``tolerance``.
    right
        (m,): whether a candidate is that near a record.
    recall
        Share of the records recovered; 0 without candidates.
    precision
        Share of the candidates that are right; ``None`` without any.
    baseline_recall, baseline_precision
        The same, on average, for as many candidates drawn from the normal law with the records' own
        mean and covariance: what knowing the population gives.
    tolerance
        As given.

    Examples
    --------
    >>> from leakscope.relu import point_recovery
    >>> found = point_recovery([[0.0, 0.01], [5.0, 5.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(found.recall, 3), found.precision
    (0.333, 0.5)
    """

    distances: FloatArray
    recovered: NDArray[np.bool_]
    right: NDArray[np.bool_]
    recall: float
    precision: float | None
    baseline_recall: float
    baseline_precision: float | None
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **vars(self),
            "distances": plain(self.distances),
            "recovered": self.recovered.tolist(),
            "right": self.right.tolist(),
        }


def point_recovery(
    candidates: ArrayLike,
    x: ArrayLike,
    *,
    tolerance: float = 0.1,
    random_state: int | np.random.Generator | Key | None = None,
) -> PointRecovery:
    """Which of the records ``x`` (n, d) lie near one of the ``candidates`` (m, d).

    Parameters
    ----------
    candidates
        As many as there are, also none.
    x
        The training records; two at least, no two alike.
    tolerance
        How near counts, as a share of the distance to the nearest other record.
    random_state
        For the baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import point_recovery
    >>> x = np.random.default_rng(0).standard_normal((20, 5))
    >>> found = point_recovery(x[:10], x)
    >>> found.recall, found.precision, found.baseline_recall
    (0.5, 1.0, 0.0)
    """
    records = np.asarray(x, dtype=np.float64)
    if records.ndim != 2 or len(records) < 2 or not np.isfinite(records).all():
        raise InputError(
            "The records must be two rows or more of finite numbers, but their shape is "
            f"{records.shape}."
        )
    places = np.asarray(candidates, dtype=np.float64)
    if not places.size:
        places = places.reshape(0, records.shape[1])
    if places.ndim != 2 or places.shape[1] != records.shape[1]:
        raise InputError(
            f"The records have {records.shape[1]} columns, but the candidates' shape is "
            f"{places.shape}."
        )
    if not 0.0 < tolerance < 0.5:
        raise InputError(f"tolerance must be between 0 and 0.5, but it is {tolerance}.")
    between = np.linalg.norm(records[:, None] - records[None], axis=2)
    np.fill_diagonal(between, np.inf)
    nearest = between.min(axis=1)
    if not nearest.min() > 0.0:
        row = int(np.argmin(nearest))
        raise InputError(f"The records must differ, but row {row} is there twice.")
    distances = _shares(places, records, nearest)
    recovered = distances.min(axis=0, initial=np.inf) <= tolerance
    right = np.asarray((distances <= tolerance).any(axis=1))
    generator = as_key(random_state).generator()
    spread = records - records.mean(axis=0)
    recalls, precisions = [], []
    for _ in range(BASELINE_DRAWS if len(places) else 0):
        # a combination of the rows with normal weights has their covariance, also where n < d
        weights = generator.standard_normal((len(places), len(records)))
        drawn = records.mean(axis=0) + weights @ spread / np.sqrt(len(records))
        hits = _shares(drawn, records, nearest) <= tolerance
        recalls.append(hits.any(axis=0).mean())
        precisions.append(hits.any(axis=1).mean())
    return PointRecovery(
        distances.min(axis=0, initial=np.inf),
        recovered,
        right,
        float(recovered.mean()),
        float(right.mean()) if len(places) else None,
        float(np.mean(recalls)) if recalls else 0.0,
        float(np.mean(precisions)) if precisions else None,
        tolerance,
    )


def _shares(places: FloatArray, records: FloatArray, nearest: FloatArray) -> FloatArray:
    """Distances (m, n) in units of each record's distance to the nearest other one."""
    gaps = np.linalg.norm(places[:, None] - records[None], axis=2)
    return np.asarray(gaps / nearest)
