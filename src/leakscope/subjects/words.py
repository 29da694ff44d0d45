"""Sentences that every kind's answer is made of."""

from __future__ import annotations

import numpy as np

from leakscope.results.audit import Audit
from leakscope.results.columns import Record, between
from leakscope.results.shown import are, ends_text

# What the attacker is given, in words.
SEEN = {
    "log_odds": "the log-odds of its label",
    "scores": "the score of its label",
    "prediction": "its prediction",
    "residual": "its residual",
    "label": "the predicted label only",
    "probabilities": "the probabilities of all classes",
    "latent": "one draw of the predicted value",
}
# The same about all records of a group.
SEEN_OF_GROUP = {
    "log_odds": "the log-odds of every record's label",
    "scores": "the score of every record's label",
    "prediction": "the prediction of every record",
    "residual": "the residual of every record",
    "label": "the predicted labels only",
    "latent": "one draw of the predicted values",
}


def percent(value: float) -> str:
    """Two digits of a share; what would round to all is not certainty."""
    if value >= 0.9995:
        return ">99.9%"
    return f"{100.0 * value:.2g}%" if value < 0.995 else f"{100.0 * value:.1f}%"


def two_digits(value: float) -> str:
    """Two digits of a fraction; what would round to 1 is not certainty."""
    return ">0.99" if value >= 0.995 else f"{value:.2f}"


# Signs of a model's name that are shown; the settings have all of it.
LONGEST_NAME = 120


def examined_sentence(audit: Audit, origin: str | None = None, method: str = "") -> str:
    """Which model was examined, where it comes from, and by which method."""
    name, where = audit.model.name, origin or audit.model.origin
    # Some estimators name all of their forty parameters.
    name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…)"
    by = f"; {method}" if method else ""
    among = "" if audit.unit == "record" else f" in {audit.units} groups"
    data = f"{audit.dataset.name}, {audit.dataset.records} records{among}"
    return f"Examined: {name}, {where}; {data}{by}."


def most_exposed_sentence(audit: Audit, *, ids: bool) -> str:
    """How exposed the most exposed unit is; it is not named without its id.

    Where numbers are known by intervals, it is the one that is most exposed for sure, by the lower
    end; the first in rank where no interval begins above nothing.
    """
    records = audit.table.records()
    first, among = records[0], ""
    if first.advantage_low is not None and not first.confirmed and audit.known.any():
        surest = max(records, key=lambda one: one.advantage_low or 0.0)
        if surest.advantage_low and surest is not first:
            first, among = surest, " for sure"
    who = f"{audit.unit} {first.record_id}" if ids else f"a {audit.unit}"
    ends = ""
    if first.advantage_low is not None:
        ends = f" ({ends_text(first.advantage_low, first.advantage_high, '.2f')})"
    doubt = "" if first.confirmed or (ends and audit.known.any()) else " (not confirmed)"
    by, other = "", ""
    lowest = audit.table.of("tpr_at_fpr_0_001")
    found = int(np.argmax(lowest))
    if not ends and lowest[found] > first.tpr_at_fpr_0_001:
        name = f"{audit.unit} {audit.record_ids[found]}" if ids else f"another {audit.unit}"
        by, other = " by advantage", f" Largest TPR at 0.1%: {name}, {percent(lowest[found])}."
    return (
        f"Most exposed{among}{by}: {who}{doubt}, advantage {two_digits(first.advantage)}{ends}, "
        f"TPR {_rate(first, 'tpr_at_fpr_0_001')} at 0.1% FPR and "
        f"{_rate(first, 'tpr_at_fpr_0_01')} at 1%; median {audit.median_advantage:.2g}.{other}"
    )


def _rate(record: Record, name: str) -> str:
    """A true-positive rate, or the ends of its interval."""
    ends = between(record, name)
    if ends is None:
        return percent(record[name])
    # An upper end of 1 is no certainty: nothing is known from above.
    low, high = percent(ends[0]), "100%" if ends[1] == 1.0 else percent(ends[1])
    return low if low == high or low.startswith(">") else f"{low} to {high}"


def passing_sentence(audit: Audit, threshold: float) -> str:
    """How many have an advantage of the threshold or more."""
    count, unconfirmed = audit.units, audit.unconfirmed
    exposed = int(np.count_nonzero(audit.advantage >= threshold))
    if unconfirmed == count:
        return f"Cannot tell how many are exposed: no {audit.unit}'s numbers are confirmed."
    doubt = f"; {unconfirmed} of all {are(unconfirmed)} not confirmed" if unconfirmed else ""
    verb = "has" if exposed <= 1 else "have"
    who = f"{exposed or 'None'} of {count} {audit.unit}s {verb}"
    return f"{who} an advantage of {threshold:g} or more{doubt}."


def exposure_sentences(audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
    """What was examined, the most exposed, and how many pass the threshold."""
    return (
        examined_sentence(audit),
        most_exposed_sentence(audit, ids=ids),
        passing_sentence(audit, threshold),
    )


def question_sentence(audit: Audit, observes: str = "") -> str:
    """What the attacker sees and knows, where the other records are not known.

    ``observes`` is what is seen where it is not what the audit's laws are of.
    """
    observes = observes or audit.observes
    fraction = 0.5 if audit.fraction is None else audit.fraction
    unit = audit.unit
    drawn = {
        "pool": f"each other {unit} is in the training set with probability {fraction:g}",
        "population": f"the others are fresh draws, {fraction:g} times as many as here",
        "leave_one_out": f"all other {unit}s are known",
    }.get(audit.question, f"nothing is said of the other {unit}s")
    if unit == "group":
        seen = SEEN_OF_GROUP.get(observes, observes)
        knows = "all records of the group and their labels"
    else:
        seen, knows = SEEN.get(observes, observes), "the record and its label"
    return f"The attacker knows {knows}, and sees {seen}; {drawn}."


def shifted_score_sentence(
    audit: Audit, mean: str = "mean of its records' scores", observes: str = ""
) -> str:
    """The question, and the column that says how far a unit moves its own score.

    ``mean`` is what the score of a group is.
    """
    score = "" if audit.unit == "record" else f" (the {mean})"
    question = question_sentence(audit, observes)
    if "shift_in_sd" not in audit.table:
        return question
    return (
        f"{question} Shift: how far the {audit.unit} moves its own score{score}, "
        "in standard deviations."
    )
