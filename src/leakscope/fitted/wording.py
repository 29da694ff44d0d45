"""What a person must know about fitted laws: the assumptions, and the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.fitted.model import FittedModel
from leakscope.fitted.scalar_laws import Question
from leakscope.laws import Assumption

if TYPE_CHECKING:
    from leakscope.fitted.fitted_laws import Diagnostics

# Beyond this gap between smoothed and plain sd the laws were up to a fifth off.
GAP_WARNED = 0.1

# Beyond this share of records that one other record leads, the data as a whole is warned of.
LED_WARNED = 0.01


def warnings_of(
    model: FittedModel, diagnostics: Diagnostics, question: Question
) -> tuple[str, ...]:
    """Sentences for people; empty where there is nothing to say."""
    said: list[str] = []
    if question == "known_others":
        return (
            "Whoever knows all the other records tells a deterministic fit with and without the "
            "record apart with certainty.",
        )
    if not diagnostics.converged:
        said.append(
            f"The mean model did not settle in {diagnostics.rounds} rounds (last change "
            f"{diagnostics.change:.1g}), so no record's numbers are trusted; use a larger penalty."
        )
    if diagnostics.smoothing_gap > GAP_WARNED:
        said.append(
            f"The predictions vary over the curved part of the loss (smoothed sd "
            f"{100 * diagnostics.smoothing_gap:.0f}% above plain sd), as with separable data and a "
            "small penalty: the spread may be up to a fifth too low."
        )
    if diagnostics.led > LED_WARNED:
        said.append(
            f"For {100 * diagnostics.led:.0f}% of the records one other record carries more than "
            "40% of what varies, as with rare categories: the normal approximation is poor there, "
            "and their numbers are not trusted."
        )
    return tuple(said)


def assumptions_of(
    model: FittedModel, diagnostics: Diagnostics, question: Question, fraction: float
) -> tuple[Assumption, ...]:
    """What the laws assume, with what was looked at."""
    own = model.problems[0].assumptions
    if question == "known_others":
        return own
    drawn = {
        "pool": f"each other record is in the training set with probability {fraction:g}",
        "population": f"the other records are {fraction:g} times as many fresh draws from where "
        "these came from",
    }[question]
    found = [
        Assumption(drawn, holds=None, evidence="the question that is asked"),
        Assumption(
            "penalty and other settings are the same for every training set",
            holds=None,
            evidence=f"{model.name}, as fitted",
        ),
        Assumption(
            "the mean model has settled",
            holds=diagnostics.converged,
            evidence=f"{diagnostics.rounds} rounds, last change {diagnostics.change:.1g}",
        ),
        Assumption(
            "the score is normal over training sets without the record",
            holds=diagnostics.led <= LED_WARNED and diagnostics.smoothing_gap <= GAP_WARNED,
            evidence=f"one other record carries more than a fifth of the variance for "
            f"{100 * diagnostics.lumpy:.1f}% of the records, more than 40% for "
            f"{100 * diagnostics.led:.1f}%; "
            f"smoothed sd {100 * diagnostics.smoothing_gap:.1f}% above plain sd",
        ),
    ]
    if question == "population":
        found.append(
            Assumption(
                "the mean score without the record is known",
                holds=False,
                evidence=f"one sample of the population gives it to within about "
                f"{fraction**0.5:.2g} standard deviations of the score",
            )
        )
    return (*own, *found)
