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

# Units in the last place by which a stored mean or variance may be off.
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)

WORDS = {
    "kl": "a KL",
    "kl_reverse": "a reverse KL",
    "advantage": "an advantage",
    "auc": "an AUC",
    "tpr_at_fpr_0_01": "a TPR at 1% FPR",
    "tpr_at_fpr_0_001": "a TPR at 0.1% FPR",
}


def require_stored_numbers(audit: Audit) -> None:
    """Refuse an audit whose KL, AUC, advantage or TPRs are not those of its units' own laws."""
    _require_summary(audit)
    try:
        laws = audit.about.stored_laws(audit)
    except LawsNotStoredError:
        # Groups (:func:`require_computed_numbers`), labels, and posteriors without their scores.
        pass
    else:
        _require_close(audit, laws)
    _require_count(audit)


def require_computed_numbers(audit: Audit, subject: Subject) -> None:
    """The same where the result does not hold the laws, and they follow from its data."""
    laws = subject.laws_again()
    if laws is None:
        return
    there = {name: row for row, name in enumerate(subject.ids)}
    _require_close(audit, laws.some(np.array([there[name] for name in audit.record_ids])))


def _require_close(audit: Audit, laws: UnitLaws) -> None:
    rows = np.flatnonzero(audit.trusted & laws.trusted)
    if not rows.size:
        return
    found = laws.some(rows).measures()
    # What is read off means that are nearly equal loses their last digits.
    slack = _slack(audit, rows)
    for name, values in found.items():
        if name not in audit.table:
            continue
        told = audit.table.of(name)[rows]
        if np.isnan(told).all():
            continue
        allowed = RELATIVE * np.abs(values) + ABSOLUTE + laws.tolerance + slack * (1.0 + values)
        allowed = np.where(np.isfinite(values), allowed, 0.0)
        with np.errstate(invalid="ignore"):
            near = (np.abs(told - values) <= allowed) | (told == values)
        if not near.all():
            place = int(np.argmin(near))
            raise InputError(
                f"the result says that record {audit.record_ids[rows[place]]!r} has {WORDS[name]} "
                f"of {told[place]:.4g}, but its means and variances give {values[place]:.4g}; the "
                "file was changed after it was written."
            )


def _slack(audit: Audit, rows: np.ndarray) -> FloatArray:
    """How much rounding of the stored means and spreads can move a measure."""
    table = audit.table
    if "mean_with" not in table:
        return np.zeros(len(rows))
    means = [
        np.abs(np.asarray(table.columns[name], dtype=np.float64).reshape(len(table), -1)[rows])
        for name in ("mean_with", "mean_without")
    ]
    if "sd_with" in table:
        spread = np.minimum(table.of("sd_with"), table.of("sd_without"))[rows]
    else:
        spread = np.sqrt(np.minimum(table.of("variance_with"), table.of("variance_without"))[rows])
    size = (means[0] + means[1]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = ROUNDING * size / spread
    parts = np.nan_to_num(relative * (1.0 + relative), posinf=1.0)
    return np.asarray(8.0 * parts + 64.0 * ROUNDING)


def _require_count(audit: Audit) -> None:
    """How many are exposed."""
    if audit.exposed is not None and audit.complete:
        passing = int(np.count_nonzero(audit.advantage >= audit.exposed_above))
        if passing != audit.exposed and "advantage_low" in audit.table:
            # Where advantages have intervals, it is the number that is expected.
            chances = audit.laws.chance_above(audit.exposed_above, audit.advantage)
            passing = round(float(chances.sum()))
        if passing != audit.exposed:
            raise InputError(
                f"the result says that {audit.exposed} records are exposed, but its records say "
                f"{passing}; the file was changed after it was written."
            )


def _require_summary(audit: Audit) -> None:
    """The order of the units and the median, which the verdict and the page are made from."""
    by = audit.about.ranked_by
    words = WORDS[by].split(" ", 1)[1]
    ranked = audit.table.of(by)[audit.order]
    wrong = np.flatnonzero(np.diff(np.where(np.isnan(ranked), np.inf, ranked)) > 0.0)
    if wrong.size:
        name = audit.ranking()[int(wrong[0]) + 1]
        raise InputError(
            f"the result's record {name!r} stands after one of a smaller {words}; the file was "
            "changed after it was written."
        )
    if audit.median_advantage is None or not audit.complete or np.isnan(audit.advantage).any():
        return
    median = float(np.median(audit.advantage))
    if abs(median - audit.median_advantage) > RELATIVE:
        raise InputError(
            f"the result says that the median advantage is {audit.median_advantage:.4g}, but its "
            f"records' is {median:.4g}; the file was changed after it was written."
        )
