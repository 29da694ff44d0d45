"""An audit as a gate in a pipeline: limits, and a sentence for each that is exceeded.

A gate passes only what is known to be below its limits: where a number has an interval, the upper
end decides.  Above is what is known to be above; the rest cannot be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.results.audit import FPRS, Audit
from leakscope.results.shown import are, named
from leakscope.settings.decide import Thresholds

# The false-positive rate of every threshold on a TPR, and of accusations.
FPR = 0.001

COLUMN = {"tpr": FPRS[FPR]}
WORDS = {"tpr": "TPR at 0.1% FPR"}

# Units that a sentence names.
NAMED = 5


@dataclass(frozen=True)
class Limit:
    """One threshold: the measure in words and by name, and the value that nobody may exceed.

    The name is that of a number of every unit: ``advantage`` or ``tpr``, that at 0.1% FPR.
    """

    words: str
    measure: Literal["advantage", "tpr"]
    value: float


def limits_of(thresholds: Thresholds) -> list[Limit]:
    """The thresholds that were given; how sure an accusation may be limits the TPR.

    Examples
    --------
    >>> from leakscope.auditing.gate import limits_of
    >>> from leakscope.settings.decide import Thresholds
    >>> given = Thresholds(threshold_ppv=0.5, prior=0.01)
    >>> [(limit.measure, round(limit.value, 3)) for limit in limits_of(given)]
    [('tpr', 0.099)]
    """
    found = []
    if thresholds.threshold_advantage is not None:
        found.append(Limit("advantage", "advantage", thresholds.threshold_advantage))
    if thresholds.threshold_tpr is not None:
        found.append(Limit("TPR at 0.1% FPR", "tpr", thresholds.threshold_tpr))
    if thresholds.threshold_ppv is not None:
        if thresholds.prior is None:
            raise InputError(
                "--threshold-ppv needs --prior: how sure an accusation is depends on it."
            )
        words = (
            "TPR at 0.1% FPR, so that no accusation is right more than "
            f"{100 * thresholds.threshold_ppv:g}% of the time"
        )
        value = measures.tolerable_tpr(FPR, thresholds.prior, thresholds.threshold_ppv)
        found.append(Limit(words, "tpr", value))
    return found


def gate_failures(audit: Audit, above: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that is exceeded, or may be; none where the audit passes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> auditing.gate_failures(audit, {"advantage": 0.35})
    ['1 of 442 records is above the limit, advantage 0.35: 123.']
    """
    return [sentence for part in judged(audit, above) for sentence in part]


def judged(audit: Audit, above: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Sentences on limits that are known to be exceeded, and on what cannot be told."""
    exceeded, unknown = list[str](), list[str]()
    known = audit.known
    for name, limit in above.items():
        column, words = COLUMN.get(name, name), WORDS.get(name, name)
        if column not in audit.table:
            unknown.append(f"the audit gives no {words}.")
            continue
        if not audit.complete:
            largest = audit.totals.largest.get(column)
            if largest is None or largest > limit:
                first = audit.order[audit.table.of(column)[audit.order] > limit]
                number = "infinite" if largest is None else f"{largest:.4g}"
                who = _named(audit, first)
                exceeded.append(f"the largest {words} is {number}, above {limit:g}: {who}.")
            continue
        low, high = _ends(audit, column)
        sure = known & (low > limit)
        reaching = known & ~sure & ~(high <= limit)
        doubt = "not known to be within the limit, which their intervals reach above"
        for rows, where, sentences in (
            (sure, "above the limit", exceeded),
            (reaching, doubt, unknown),
        ):
            if rows.any():
                value = audit.table.of(column)
                which = np.flatnonzero(rows)[np.argsort(-value[rows], kind="stable")]
                sentences.append(
                    f"{which.size} of {audit.units} {audit.unit}s {are(which.size)} {where}, "
                    f"{words} {limit:g}: {_named(audit, which)}."
                )
    dark = int(np.count_nonzero(~known)) if audit.complete else audit.unconfirmed
    if above and dark:
        why, remedy = audit.about.doubt(audit)
        unknown.append(
            f"{dark} of {audit.units} {audit.unit}s {are(dark)} {why}, so it is not known whether "
            f"they are within the limit: {remedy}."
        )
    return exceeded, unknown


def _ends(audit: Audit, name: str) -> tuple[FloatArray, FloatArray]:
    """(U,) between which a number lies: its interval, or twice itself where it has none."""
    table, value = audit.table, audit.table.of(name)
    if f"{name}_low" in table:
        low, high = table.of(f"{name}_low"), table.of(f"{name}_high")
        # What the interval leaves out, infinity, is above every limit.
        return np.where(np.isnan(low), value, low), np.where(np.isnan(high), np.inf, high)
    if "advantage_low" in table:
        ends: tuple[FloatArray, FloatArray] = audit.laws.ends(name)
        return ends
    return value, value


def _named(audit: Audit, rows: NDArray[np.intp]) -> str:
    return named([audit.record_ids[row] for row in rows], NAMED)
