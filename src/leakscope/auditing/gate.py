"""An audit as a gate in a pipeline: limits, and a sentence for each that is exceeded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leakscope.errors import InputError
from leakscope.results.audit import Audit

# Each measure, and the range its limit must come from.
LIMITS = {"advantage": (0.0, 1.0), "auc": (0.5, 1.0), "kl": (0.0, math.inf)}

NAMED = 5


def gate_limits(texts: Sequence[str] | None) -> dict[str, float]:
    """``advantage=0.2`` and the like, one entry a measure.

    Examples
    --------
    >>> from leakscope import auditing
    >>> auditing.gate_limits(["advantage=0.2,auc=0.7"])
    {'advantage': 0.2, 'auc': 0.7}
    """
    found: dict[str, float] = {}
    for text in texts or ():
        for entry in text.split(","):
            name, _, number = entry.partition("=")
            if name not in LIMITS or not number:
                raise InputError(
                    f"--fail-above takes {', '.join(f'{known}=NUMBER' for known in LIMITS)}, but "
                    f"it is {entry!r}."
                )
            found[name] = _limit(name, number)
    return found


def _limit(name: str, text: str) -> float:
    low, high = LIMITS[name]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (low <= number <= high and math.isfinite(number)):
        rest = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        raise InputError(f"--fail-above {name} must be a number {rest}, but it is {text!r}.")
    return number


def gate_failures(audit: Audit, above: dict[str, float]) -> list[str]:
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
    sentences = []
    for name, limit in above.items():
        largest = audit.totals.largest.get(name)
        if largest is not None and largest <= limit:
            continue
        rows = audit.order[audit.table.of(name)[audit.order] > limit]
        ids = ", ".join(str(audit.record_ids[row]) for row in rows[:NAMED])
        if not audit.complete:
            words = "infinite" if largest is None else f"{largest:.4g}"
            sentences.append(f"the largest {name} is {words}, above {limit:g}: {ids}.")
        elif rows.size:
            more = f" and {rows.size - NAMED} more" if rows.size > NAMED else ""
            verb = "is" if rows.size == 1 else "are"
            sentences.append(
                f"{rows.size} of {audit.units} {audit.unit}s {verb} above the limit, {name} "
                f"{limit:g}: {ids}{more}."
            )
    if above and audit.untrusted:
        why, remedy = audit.about.doubt(audit)
        sentences.append(
            f"{audit.untrusted} of {audit.units} {audit.unit}s are {why}, so that nobody knows "
            f"whether they are within the limit: {remedy}."
        )
    return sentences
