"""The answers of a few models, from a file to every record's exposure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from leakscope import __version__
from leakscope.data import read_arrays
from leakscope.errors import InputError
from leakscope.fitted import few_models
from leakscope.results import MeasuredRecord, ModelsMeasurement
from leakscope.settings import MeasureSettings, validated

NAMES = ("log_odds", "trained_on")


def measure_logits(
    path: str | Path,
    *,
    fpr: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> ModelsMeasurement:
    """Every record's advantage and TPR, with intervals, from the log-odds of a few models.

    Parameters
    ----------
    path
        An .npz file with ``log_odds`` and ``trained_on``, both models x records, the latter bool.
    fpr, confidence, seed
        Those of :class:`leakscope.settings.MeasureSettings` where left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from leakscope.measuring import measure_logits
    >>> rng = np.random.default_rng(0)
    >>> mask = np.arange(2)[:, None] == rng.integers(0, 2, 40)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "models.npz")
    ...     np.savez(file, log_odds=rng.normal(size=(2, 40)), trained_on=mask)
    ...     len(measure_logits(file).records)
    40
    """
    how = validated(
        MeasureSettings,
        fpr=None if fpr is None else tuple(fpr),
        confidence=confidence,
        seed=seed,
    )
    start = time.perf_counter()
    arrays = read_arrays(Path(path), NAMES)
    missing = [name for name in NAMES if name not in arrays]
    if missing:
        raise InputError(
            f"{path} has no array {missing[0]}: log_odds and trained_on are needed, both with one "
            "row per model and one column per record."
        )
    found = few_models(
        np.asarray(arrays["log_odds"]),
        np.asarray(arrays["trained_on"]),
        fpr=how.fpr,
        confidence=how.confidence,
        random_state=how.seed,
    )
    told = found.pair.provenance.to_dict()
    tprs = {f"{level:g}": each for level, each in found.tpr_at_fpr.items()}
    records = [
        MeasuredRecord(
            record=i,
            advantage=float(found.advantage.value[i]),
            advantage_low=float(found.advantage.low[i]),
            advantage_high=float(found.advantage.high[i]),
            tpr_at_fpr={level: float(each.value[i]) for level, each in tprs.items()},
            tpr_low={level: float(each.low[i]) for level, each in tprs.items()},
            tpr_high={level: float(each.high[i]) for level, each in tprs.items()},
            exposed=bool(exposed),
        )
        for i, exposed in enumerate(found.exposed)
    ]
    return ModelsMeasurement(
        leakscope_version=__version__,
        settings={"logits": str(path), **how.model_dump(mode="json")},
        assumptions=told.pop("assumptions"),
        provenance=told,
        timing={"measure": time.perf_counter() - start},
        warnings=[],
        models=found.models,
        mean_advantage=float(found.advantage.value.mean()),
        mean_tpr_at_fpr={level: float(each.value.mean()) for level, each in tprs.items()},
        records=records,
    )
