"""The numbers people read in the result of an audit, computed again from the laws beside them.

A result file can be edited.  What its table, its verdict and its page are made from must follow
from the laws that it holds; a number that does not is refused, with the unit's name.
"""

from __future__ import annotations

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.subjects.laws import UnitLaws
from leakscope.subjects.subject import LawsNotStoredError, Subject

# How far a stored number may lie from the one computed again.
RELATIVE, ABSOLUTE = 1e-6, 1e-9

# A stored mean or spread may be off by so much of itself: a few units in the last place.
ROUNDING = 64.0 * float(np.finfo(np.float64).eps)

CHANGED = "the file was changed after it was written."


def require_stored_numbers(audit: Audit) -> None:
    """Refuse an audit whose measures, order, median or count are not those of its own laws."""
    ranked = audit.table.of(audit.about.ranked_by)[audit.order]
    wrong = np.flatnonzero(np.diff(np.where(np.isnan(ranked), np.inf, ranked)) > 0.0)
    if wrong.size:
        name = audit.ranking()[int(wrong[0]) + 1]
        raise InputError(
            f"the result's record {name!r} stands after one of a smaller "
            f"{audit.about.ranked_by}; {CHANGED}"
        )
    complete = audit.complete and not np.isnan(audit.advantage).any()
    if complete and audit.median_advantage is not None:
        median = float(np.median(audit.advantage))
        if abs(median - audit.median_advantage) > RELATIVE:
            raise InputError(
                f"the result says that the median advantage is {audit.median_advantage:.4g}, but "
                f"its records' is {median:.4g}; {CHANGED}"
            )
    try:
        laws = audit.about.stored_laws(audit)
    except LawsNotStoredError:
        # Groups (`require_computed_numbers`), labels, and posteriors without their scores.
        pass
    else:
        _require_close(audit, laws)
    if audit.complete and audit.exposed is not None:
        passing = int(np.count_nonzero(audit.advantage >= audit.exposed_above))
        if passing != audit.exposed and "advantage_low" in audit.table:
            # Where advantages have intervals, it is the number that is expected.
            chances = audit.laws.chance_above(audit.exposed_above, audit.advantage)
            passing = round(float(chances.sum()))
        if passing != audit.exposed:
            raise InputError(
                f"the result says that {audit.exposed} records are exposed, but its records say "
                f"{passing}; {CHANGED}"
            )


def require_computed_numbers(audit: Audit, subject: Subject) -> None:
    """The same where the result does not hold the laws, and they follow from its data."""
    laws = subject.laws_again()
    if laws is not None:
        rows = {name: row for row, name in enumerate(subject.ids)}
        _require_close(audit, laws.some(np.array([rows[name] for name in audit.record_ids])))


def _require_close(audit: Audit, laws: UnitLaws) -> None:
    rows = np.flatnonzero(audit.confirmed & laws.confirmed)
    if not rows.size:
        return
    slack = _slack(audit, rows) + laws.tolerance
    for name, values in laws.some(rows).measures().items():
        if name not in audit.table:
            continue
        stored = audit.table.of(name)[rows]
        if np.isnan(stored).all():
            continue
        allowed = RELATIVE * np.abs(values) + ABSOLUTE + slack * (1.0 + np.abs(values))
        with np.errstate(invalid="ignore"):
            near = (stored == values) | (np.abs(stored - values) <= allowed) & np.isfinite(values)
        if not near.all():
            at = int(np.argmin(near))
            raise InputError(
                f"the result says that record {audit.record_ids[rows[at]]!r} has {name} "
                f"{stored[at]:.4g}, but its means and variances give {values[at]:.4g}; {CHANGED}"
            )


def _slack(audit: Audit, rows: np.ndarray) -> FloatArray:
    """By how much rounding of the stored means and spreads can move a measure, relatively."""
    table = audit.table
    if "mean_with" not in table:
        return np.zeros(len(rows))
    size = sum(
        np.abs(np.asarray(table.columns[name], dtype=np.float64).reshape(len(table), -1)[rows])
        for name in ("mean_with", "mean_without")
    )
    spread = np.minimum(table.of("sd_with"), table.of("sd_without"))[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        roundings = ROUNDING * np.asarray(size).sum(axis=1) / spread
    return np.asarray(np.nan_to_num(roundings * (1.0 + roundings), posinf=1.0) + ROUNDING)
