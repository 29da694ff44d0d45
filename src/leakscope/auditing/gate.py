"""An audit as a gate in a pipeline: limits, and a sentence for each that is exceeded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.result import AuditResult
from leakscope.errors import InputError

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


def gate_failures(result: AuditedRecords, above: dict[str, float]) -> list[str]:
    """A sentence for each limit that is exceeded; none where the audit passes.

    A number that is not trusted, because float64 does not resolve it or because the approximation
    is too coarse, is not known to be within a limit, so it does not pass either.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> auditing.gate_failures(result, {"advantage": 0.35})
    ['1 of 442 records is above the limit, advantage 0.35: 123.']
    """
    sentences = []
    order = result.order
    for name, limit in above.items():
        values = getattr(result, name)[order]
        rows = order[values > limit]
        if rows.size:
            ids = ", ".join(str(result.record_ids[row]) for row in rows[:NAMED])
            more = f" and {rows.size - NAMED} more" if rows.size > NAMED else ""
            verb = "is" if rows.size == 1 else "are"
            sentences.append(
                f"{rows.size} of {len(order)} {result.unit}s {verb} above the limit, {name} "
                f"{limit:g}: {ids}{more}."
            )
    doubtful = int((~result.trusted).sum())
    if above and doubtful:
        why, remedy = _doubt(result)
        sentences.append(
            f"{doubtful} of {len(order)} {result.unit}s are {why}, so that nobody knows whether "
            f"they are within the limit: {remedy}."
        )
    return sentences


def _doubt(result: AuditedRecords) -> tuple[str, str]:
    """Why some numbers are not trusted, and what to do."""
    if not isinstance(result, AuditResult):
        return (
            "not trusted, because one other record carries much of what varies there",
            "use a larger penalty, or check them with leakscope verify",
        )
    if result.laws.route == "nystrom":
        return (
            f"known no better than to {result.laws.error_asked:.0%}",
            "raise --inducing or --error, or take --route dense",
        )
    return "not resolved by float64", "raise --noise-variance"
