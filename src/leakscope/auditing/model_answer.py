"""The answer of an audit of a fitted model, in sentences: what, how exposed, what to do."""

from __future__ import annotations

from leakscope.results import ExaminedModel, PenaltyOption

# What the attacker is given, in words.
SEEN = {
    "log_odds": "the log-odds of its label",
    "scores": "the score of its label",
    "prediction": "its prediction",
    "residual": "its residual",
    "label": "the predicted label only",
    "probabilities": "the probabilities of all classes",
}

# More penalty is said to help where at most this share of the exposed records stays exposed.
MUCH_FEWER = 0.8


def examined_sentence(model: ExaminedModel, *, name: str, records: int) -> str:
    """Which model was examined."""
    return f"Examined: {model.name}, {model.origin}; {name}, {records} records."


def exposed_sentence(
    *,
    record_id: int | str | None,
    advantage: float,
    tpr_at_fpr_0_01: float,
    tpr_at_fpr_0_001: float,
    median: float,
    trusted: bool,
    interval: tuple[float, float] | None = None,
    by_tpr: tuple[int | str | None, float] | None = None,
) -> str:
    """How exposed the most exposed record is; it is not named without its id.

    ``by_tpr`` is the record with the largest TPR at 0.1% FPR, where that is another one.
    """
    who = "a record" if record_id is None else f"record {record_id}"
    doubt = "" if trusted else " (not trusted)"
    between = "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
    by, other = "", ""
    if by_tpr is not None:
        name = "another record" if by_tpr[0] is None else f"record {by_tpr[0]}"
        by, other = " by advantage", f" Largest TPR at 0.1%: {name}, {percent(by_tpr[1])}."
    return (
        f"Most exposed{by}: {who}{doubt}, advantage {two_digits(advantage)}{between}, TPR "
        f"{percent(tpr_at_fpr_0_001)} at 0.1% FPR and {percent(tpr_at_fpr_0_01)} at 1%; median "
        f"{median:.2g}.{other}"
    )


def remedy_sentence(
    *,
    exposed: int,
    count: int,
    threshold: float,
    answer_noise: float | None,
    option: PenaltyOption | None,
    untrusted: int,
) -> str:
    """How many pass the threshold, and what can be done."""
    if untrusted == count:
        return (
            "Cannot tell how many are exposed: no record's numbers are trusted; use a larger "
            "penalty."
        )
    doubt = f" ({untrusted} not trusted)" if untrusted else ""
    if not exposed:
        return f"None of {count} records{doubt} has an advantage of {threshold:g} or more."
    passing = f"{exposed} of {count} records{doubt} have an advantage of {threshold:g} or more."
    ways = []
    if answer_noise is not None:
        ways.append(f"noise of sd {answer_noise:.2g} on each answer (leaves none)")
    helps = option is not None and option.exposed <= MUCH_FEWER * exposed
    if option is not None and helps:
        ways.append(
            f"{option.setting}={option.value:.3g} (leaves {option.exposed or 'none'}; "
            f"{option.score} {option.score_then:.3f} instead of {option.score_now:.3f})"
        )
    if not ways:
        return f"{passing} What helps: fewer features, more records, or fewer digits in an answer."
    more = ""
    if option is not None and not helps:
        more = (
            f" {option.setting}={option.value:.3g} alone would leave {option.exposed}; leakscope "
            "advise searches further."
        )
    return f"{passing} What helps: {' or '.join(ways)}.{more}"


def trained_sentence(
    *, exposed: int, surely: int, count: int, threshold: float, models: int, trusted: bool
) -> str:
    """How many pass the threshold by a few models of one training, and what can be done."""
    more = f"--models {2 * models} narrows the intervals."
    if not trusted:
        return (
            "Trust the ranks, not the levels: with one model on each side of a record the noise "
            f"between models cannot be seen. {more}"
        )
    passing = (
        f"{exposed or 'None'} of {count} records {'have' if exposed != 1 else 'has'} an estimated "
        f"advantage of {threshold:g} or more"
    )
    if not exposed:
        return f"{passing}; {more}"
    return (
        f"{passing}; for {surely or 'none'} of them the whole 95% interval is that high. What "
        f"helps: shorter training, more penalty or more records (leakscope advise tries them); "
        f"{more}"
    )


def question_sentence(*, question: str, fraction: float, observes: str) -> str:
    """What the attacker sees and knows."""
    drawn = {
        "pool": f"each other record is in the training set with probability {fraction:g}",
        "population": f"the others are fresh draws, {fraction:g} times as many as here",
    }[question]
    seen = SEEN.get(observes, observes)
    return (
        f"The attacker knows the record and its label, and sees {seen}; {drawn}. Shift: how far "
        "the record moves its own score, in standard deviations."
    )


def percent(value: float) -> str:
    """Two digits of a share; what would round to all is not certainty."""
    if value >= 0.9995:
        return ">99.9%"
    return f"{100.0 * value:.2g}%" if value < 0.995 else f"{100.0 * value:.1f}%"


def two_digits(value: float) -> str:
    """Two digits of a fraction; what would round to 1 is not certainty."""
    return ">0.99" if value >= 0.995 else f"{value:.2f}"
