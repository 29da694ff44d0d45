"""What is measured of two laws, of the scores of members and non-members, or of a few models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import __version__, measures
from leakscope.data.arrays import read_arrays, read_scores
from leakscope.errors import InputError
from leakscope.fitted.few_models import WIDEST, FewModels, few_models, repeating
from leakscope.laws.distributions import Empirical, Law
from leakscope.laws.pair import LawPair, Provenance
from leakscope.laws.text import parse_law
from leakscope.measures.pair_measures import Summary
from leakscope.results.measurement import Measurement, ModelsMeasurement, measured_records
from leakscope.settings.measure import MeasureSettings
from leakscope.settings.setting import validated

Side = Law | ArrayLike | str | Path

# The arrays of a file of models' answers.
NAMES = ("log_odds", "trained_on")


def measure(
    member: Side,
    nonmember: Side,
    *,
    fpr: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> Measurement:
    """How well an attacker can tell a member from a non-member.

    Parameters
    ----------
    member, nonmember
        The law of what the attacker sees when the record was used in training, and when it was
        not: a law, its text (``"normal:0,1.4"``; :func:`leakscope.laws.parse_law` has the forms),
        an array of scores, or the path of a file of them.  A higher score means "more likely a
        member".  Two laws, or two sets of scores.
    fpr, delta
        False-positive rates at which the true-positive rate is given, and deltas at which this
        pair's epsilon is; those of :class:`leakscope.settings.MeasureSettings` where left out.
    confidence, seed
        Of the intervals, and for what is resampled, where there are scores.

    Returns
    -------
    Measurement
        Advantage, AUC, KL, TPR at the false-positive rates, this pair's epsilon, with intervals
        where there are scores.

    Raises
    ------
    InputError
        Where a text is not a law, a law is compared with scores, or there are several pairs.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> round(found.advantage, 4), round(found.tpr_at_fpr["0.001"], 4)
    (0.3227, 0.0999)
    """
    how = validated(
        MeasureSettings,
        fpr=None if fpr is None else tuple(fpr),
        delta=None if delta is None else tuple(delta),
        confidence=confidence,
        seed=seed,
    )
    start = time.perf_counter()
    pair = _pair(member, nonmember)
    summary = measures.summary(
        pair,
        fpr=how.fpr,
        delta=how.delta,
        confidence=how.confidence,
        random_state=how.seed,
    )
    found = summary.to_dict()
    provenance = found.pop("provenance")
    return Measurement(
        leakscope_version=__version__,
        settings={
            "member": _told(member),
            "nonmember": _told(nonmember),
            **how.model_dump(mode="json"),
        },
        assumptions=provenance.pop("assumptions", []),
        provenance=provenance,
        timing={"measure": time.perf_counter() - start},
        warnings=_turned(found),
        infinite=[str(name) for name, value in _only(summary).items() if np.isposinf(value)],
        **found,
    )


def _turned(found: dict[str, Any]) -> list[str]:
    """A question where members surely score lower than non-members."""
    ends, auc = found.get("intervals", {}).get("auc"), found["auc"]
    if ends is None or auc is None or ends["high"] is None or ends["high"] >= 0.5:
        return []
    return [
        f"the AUC is {auc:.3g}, well under one half: is the sign reversed?  A higher score must "
        f"mean more likely a member; with the sign turned the AUC would be {1.0 - auc:.3g}."
    ]


def _only(summary: Summary) -> dict[str, float]:
    """The numbers of the one pair, by the names of a table's columns."""
    return {str(name): float(column.iloc[0]) for name, column in summary.to_frame().items()}


def _pair(member: Side, nonmember: Side) -> LawPair:
    sides = [_law(member, "member"), _law(nonmember, "nonmember")]
    empirical = [isinstance(side, Empirical) for side in sides]
    if any(empirical) and not all(empirical):
        raise InputError("Give two distributions or two sets of scores, not one of each.")
    if empirical[0]:
        told = Provenance(observes="scores", method="empirical", source="scores given")
    else:
        told = Provenance(method="exact", source="laws given by the user")
    pair = LawPair(member=sides[0], nonmember=sides[1], provenance=told)
    if pair.batch_shape != ():
        raise InputError(
            f"measure takes one pair of distributions, and these are {pair.batch_shape}; "
            "leakscope.measures.summary takes many."
        )
    return pair


def _law(side: Side, name: str) -> Law:
    if isinstance(side, Path):
        return Empirical(read_scores(side))
    if isinstance(side, str):
        return parse_law(side, name)
    if isinstance(side, (Law, Empirical)):
        return side
    return Empirical(np.asarray(side, dtype=np.float64))


def _told(side: Side) -> Any:
    """What a result says of a side; never the scores themselves."""
    if isinstance(side, (str, Path)):
        return str(side)
    if isinstance(side, (Law, Empirical)):
        return type(side).__name__
    return f"{np.size(np.asarray(side))} scores"


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
    >>> from leakscope.measuring.measure import measure_logits
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
    repeats = repeating(np.asarray(arrays["log_odds"]), np.asarray(arrays["trained_on"]))
    trusted = found.noise_seen & found.informative & ~repeats
    tprs = {f"{level:g}": each for level, each in found.tpr_at_fpr.items()}
    records = measured_records(
        found, range(found.records), range(found.records), trusted, found.exposed & ~repeats
    )
    return ModelsMeasurement(
        leakscope_version=__version__,
        settings={"logits": str(path), **how.model_dump(mode="json")},
        assumptions=told.pop("assumptions"),
        provenance=told,
        timing={"measure": time.perf_counter() - start},
        warnings=_doubted(found, repeats),
        models=found.models,
        mean_advantage=float(found.advantage.value.mean()),
        mean_tpr_at_fpr={level: float(each.value.mean()) for level, each in tprs.items()},
        records=records,
    )


def _doubted(found: FewModels, repeats: NDArray[np.bool_]) -> list[str]:
    """Which records are not trusted, and why."""
    of = f"of {found.records} records are not trusted"
    if not found.noise_seen:
        return [
            f"{found.records} {of}: with one model on each side of a record the noise between "
            "models cannot be seen; give more models."
        ]
    many, wide = int(repeats.sum()), int((~repeats & ~found.informative).sum())
    told = []
    if many:
        told.append(
            f"{many} {of}: their log-odds take few values, as those of labels, votes, leaves and "
            "neighbours do, and no normal law is theirs."
        )
    if wide:
        told.append(f"{wide} {of}: their interval is wider than {WIDEST:g}; give more models.")
    return told
