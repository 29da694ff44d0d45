"""Checks of an audit's laws against models that were trained with and without its units.

The subject says which models those are (draws of a process, shadow fits, models of a training);
here their answers are set beside what the audit's table says, without knowing whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.fitted.shadow import ShadowScores
from leakscope.results.audit import Audit
from leakscope.results.reconciliation import fpr_reached
from leakscope.subjects.subject import Answers, Subject
from leakscope.verifying.checks import Check, leaning, rows_to_check
from leakscope.verifying.plan_checks import Outcome
from leakscope.verifying.stored_numbers import require_computed_numbers

# A check of models that all units share agrees where its standard error is within this share of the
# score's own sd.
RESOLUTION = 0.25

# So many of the units that an audit does not trust are checked beside those asked for.
MOST_DOUBTED = 20


@dataclass(frozen=True, eq=False)
class Scores:
    """What an audit says of every unit's score, in the order of the data: means and spreads."""

    member_mean: FloatArray
    member_sd: FloatArray
    nonmember_mean: FloatArray
    nonmember_sd: FloatArray

    @property
    def records(self) -> int:
        """How many units there are."""
        return len(self.member_mean)

    @property
    def shift(self) -> FloatArray:
        """How far a unit's presence moves its score."""
        return self.member_mean - self.nonmember_mean


def check_audit(
    audit: Audit,
    subject: Subject,
    *,
    records: int,
    record_ids: Sequence[RecordId],
    count: int,
    seed: int,
) -> Outcome:
    """The laws of some units against answers of models with and without them."""
    place = places(audit, subject)
    require_computed_numbers(audit, subject)
    exposure = _exposure(audit, place)
    rows = rows_to_check(subject.ids, exposure, records, record_ids, random_state=seed)
    if not record_ids and subject.doubted_first:
        # What the audit itself does not trust is what a check is for.
        trusted = audit.trusted[place]
        rows = list(dict.fromkeys([*rows, *np.flatnonzero(~trusted)[:MOST_DOUBTED].tolist()]))
    answers = subject.answers(np.asarray(rows, dtype=np.intp), count, seed)
    if answers.scores is not None:
        return _shared(audit, subject, place, rows, answers, seed)
    table = audit.table
    names = [f"{audit.unit} {subject.ids[row]}" for row in rows]
    if "mean_with" not in table:
        checks = _divergences(audit, place[rows], names, answers)
    else:
        checks = _moments(audit, place[rows], names, answers)
    return Outcome(checks, answers.how, dict(answers.settings))


def places(audit: Audit, subject: Subject) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Where each unit of the subject stands in the audit's table."""
    there = {name: row for row, name in enumerate(audit.record_ids)}
    strange = sorted({str(name) for name in there} ^ {str(name) for name in subject.ids})
    if len(there) != len(subject.ids) or set(there) != set(subject.ids):
        which = f", such as {strange[0]!r}" if strange else ""
        raise InputError(
            f"the result has {len(there)} {audit.unit}s and its data {len(subject.ids)}, and they "
            f"are not the same{which}."
        )
    return np.array([there[name] for name in subject.ids], dtype=np.intp)


def _exposure(audit: Audit, place: np.ndarray[Any, np.dtype[np.intp]]) -> FloatArray:
    """By which units are drawn from the whole range; what is infinite counts as the largest."""
    found = audit.table.of(audit.about.ranked_by)[place]
    finite = np.isfinite(found)
    return np.asarray(np.where(finite, found, np.max(found[finite], initial=0.0)))


def _sd(audit: Audit, side: str) -> FloatArray | None:
    """The standard deviation of an answer; None of answers that are yes or no."""
    table = audit.table
    if f"sd_{side}" in table:
        return table.of(f"sd_{side}")
    if f"variance_{side}" in table:
        return np.sqrt(table.of(f"variance_{side}"))
    return None


def _means(audit: Audit, side: str) -> FloatArray:
    """(U, C) the mean of an answer."""
    found = np.asarray(audit.table.columns[f"mean_{side}"], dtype=np.float64)
    return found.reshape(len(found), -1)


def _moments(
    audit: Audit,
    places: np.ndarray[Any, np.dtype[np.intp]],
    names: Sequence[str],
    answers: Answers,
) -> list[Check]:
    """Mean and standard deviation of both laws of some units."""
    checks: list[Check] = []
    for k, (place, name) in enumerate(zip(places.tolist(), names, strict=True)):
        for side, found in (("with", answers.inside[k]), ("without", answers.outside[k])):
            drawn = np.asarray(found).reshape(len(found), -1)
            mean, spread = _means(audit, side)[place], _sd(audit, side)
            if drawn.shape[1] != len(mean):
                raise InputError(
                    f"the result's {name} has not one mean for each of {drawn.shape[1]} outputs."
                )
            law = f"{name}, {side} it"
            if spread is None:
                checks.append(_of_chance(law, drawn[:, 0], float(mean[0])))
                continue
            sd = float(spread[place])
            if not sd > 0.0 or not np.isfinite(mean).all():
                raise InputError(
                    f"a variance of the result's {name} must be above 0 to be verified, but it is "
                    f"{sd**2:g}."
                )
            checks += _of_side(law, drawn, mean, sd)
    return checks


def _of_chance(law: str, found: FloatArray, chance: float) -> Check:
    """How often the answer is yes; where it always or never is, one more answer may differ."""
    stderr = np.hypot(found.std(ddof=1) / np.sqrt(len(found)), 1.0 / len(found))
    return Check(law, "chance", chance, float(found.mean()), float(stderr), resolution=0.1)


def _of_side(law: str, found: FloatArray, mean: FloatArray, sd: float) -> list[Check]:
    """The mean of each output, in units of the data, and the spread, pooled over outputs."""
    draws, outputs = found.shape
    checks = [
        Check(
            law,
            "mean" if outputs == 1 else f"mean of output {c}",
            predicted=float(mean[c]),
            measured=float(found[:, c].mean()),
            stderr=float(found[:, c].std(ddof=1) / np.sqrt(draws)),
            resolution=0.25 * sd,
        )
        for c in range(outputs)
    ]
    pooled = float(np.sqrt(np.mean(found.var(axis=0, ddof=1))))
    checks.append(
        Check(
            law,
            "standard deviation",
            predicted=sd,
            measured=pooled,
            stderr=pooled / np.sqrt(2.0 * outputs * (draws - 1)),
            resolution=0.1 * sd,
        )
    )
    return checks


def _divergences(
    audit: Audit,
    places: np.ndarray[Any, np.dtype[np.intp]],
    names: Sequence[str],
    answers: Answers,
) -> list[Check]:
    """KL(without || with) and mean distance of units whose answers are many numbers."""
    checks = []
    for k, (place, name) in enumerate(zip(places.tolist(), names, strict=True)):
        inside, outside = answers.inside[k], answers.outside[k]
        for quantity, column, (measured, stderr) in (
            ("KL", "kl", measures.normal_kl_of_draws(outside, inside)),
            ("mean distance", "mean_distance", _mean_distance(outside, inside)),
        ):
            told = float(audit.table.of(column)[place])
            checks.append(Check(name, quantity, told, measured, stderr, 0.1 * abs(told)))
    return checks


def _mean_distance(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Half the squared length of the difference of means, and its standard error."""
    outputs, draws, _ = first.shape
    S = (_covariance(first) + _covariance(second)) / draws
    delta = first.mean(axis=1) - second.mean(axis=1)
    value = 0.5 * float(np.sum(delta**2)) - 0.5 * outputs * float(np.trace(S))
    variance = float(np.einsum("ci,ij,cj->", delta, S, delta))
    variance += 0.5 * outputs * float(np.sum(S**2))
    return value, float(np.sqrt(variance))


def _covariance(found: FloatArray) -> FloatArray:
    """(g, g) pooled over outputs."""
    centred = found - found.mean(axis=1, keepdims=True)
    outputs, draws, _ = found.shape
    return np.asarray(np.einsum("cdi,cdj->ij", centred, centred) / (outputs * (draws - 1)))


def _shared(
    audit: Audit,
    subject: Subject,
    place: np.ndarray[Any, np.dtype[np.intp]],
    rows: Sequence[int],
    answers: Answers,
    seed: int,
) -> Outcome:
    """Shift and spread of some units' scores, and the ranks of all, against shared models."""
    scores, trained_on = answers.scores, answers.trained_on
    assert scores is not None
    assert trained_on is not None
    spreads = [_sd(audit, side) for side in ("with", "without")]
    if spreads[0] is None or spreads[1] is None:
        raise InputError("the result does not say how far the scores of its records spread.")
    told = Scores(
        _means(audit, "with")[place, 0],
        spreads[0][place],
        _means(audit, "without")[place, 0],
        spreads[1][place],
    )
    for row in rows:
        if not (np.isfinite(told.shift[row]) and told.nonmember_sd[row] >= 0.0):
            name = f"{audit.unit} {subject.ids[row]}"
            raise InputError(f"the result's {name} has no mean and spread to check.")
    checks = [
        check
        for row in rows
        for check in _of_unit(
            f"{audit.unit} {subject.ids[row]}",
            float(told.shift[row]),
            float(told.nonmember_sd[row]),
            scores[trained_on[:, row], row],
            scores[~trained_on[:, row], row],
        )
    ]
    lean = leaning(checks)
    warnings = () if lean is None else (lean,)
    settings = {**answers.settings, "records": len(rows)}
    varied = np.std(scores, axis=0, where=trained_on) * np.std(scores, axis=0, where=~trained_on)
    if not np.count_nonzero(varied) > 0.5 * len(varied):
        few = (
            "the scores of most records take one value only, with the record or without it, so "
            "that nothing is said over all records, and normal laws do not describe them."
        )
        return Outcome(checks, answers.how, settings, None, (*warnings, few))
    found: Any = fitted.check_against_shadows(
        told,  # type: ignore[arg-type]
        ShadowScores(scores, trained_on),
        random_state=seed,
    )
    how = (
        f"{answers.how}. Over all records the predicted shift is {found.shift_ratio:.2f} times the "
        f"observed one and the sd {found.sd_ratio:.2f} times; the rank correlation of the "
        f"advantages is {found.rank_correlation:.2f}, where exactly right numbers would reach "
        f"{found.ceiling:.2f} with this many models; the mean TPR at "
        f"{fpr_reached(found.tpr_at)} is {found.tpr_predicted:.3f} predicted and "
        f"{found.tpr_observed:.3f} counted (standard error {found.tpr_stderr:.3f})"
    )
    return Outcome(checks, how, settings, asdict(found), warnings)


def _of_unit(
    law: str, shift: float, sd: float, inside: FloatArray, outside: FloatArray
) -> list[Check]:
    """The shift of the mean, and the sd without the unit."""
    spread = outside.std(ddof=1)
    error = np.hypot(inside.std(ddof=1) / len(inside) ** 0.5, spread / len(outside) ** 0.5)
    # A law that is not normal has a fourth moment of its own.
    fourth = np.mean((outside - outside.mean()) ** 4) / max(float(spread), 1e-300) ** 4
    spread_error = spread * np.sqrt(max(float(fourth) - 1.0, 0.0) / (4.0 * len(outside)))
    measured = float(inside.mean() - outside.mean())
    return [
        Check(law, "shift", shift, measured, float(error), resolution=RESOLUTION * sd),
        Check(law, "sd without", sd, float(spread), float(spread_error), RESOLUTION * sd),
    ]
