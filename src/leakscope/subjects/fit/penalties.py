"""The same model with other penalties: what each would give away, and its price."""

from __future__ import annotations

import numpy as np

from leakscope import fitted
from leakscope.errors import InputError
from leakscope.subjects.fit.details import PenaltyOption
from leakscope.subjects.fit.named_models import NamedFit, with_penalty
from leakscope.subjects.laws import summed_up

# How many times the penalty in use; the first is the one that the answer speaks of.
FACTORS = (10.0, 0.01, 0.1, 1.0, 100.0)

# All of them are tried where one is quick: records times squared coefficients of one output,
# records times coefficients of several classes.
MOST_WORK, MOST_WORK_OF_CLASSES = 2e8, 2e5


def penalty_sweep(fit: NamedFit, laws: fitted.FittedLaws) -> list[PenaltyOption]:
    """Ten times the penalty first, then the others in order; none where the model has none."""
    if fit.setting is None:
        return []
    classes = len(np.unique(fit.y)) if fit.name == "logistic" else 2
    records, features = fit.X.shape
    work = records * features * (classes if classes > 2 else features)
    quick = work <= (MOST_WORK_OF_CLASSES if classes > 2 else MOST_WORK)
    found = [_option(fit, laws, factor) for factor in (FACTORS if quick else FACTORS[:1])]
    return [option for option in found if option is not None]


def _option(fit: NamedFit, laws: fitted.FittedLaws, factor: float) -> PenaltyOption | None:
    other = fit if factor == 1.0 else with_penalty(fit, factor)
    assert fit.setting is not None
    check = laws.check
    if factor != 1.0:
        try:
            other_laws = fitted.laws_of(
                other.described,
                question=laws.question,
                fraction=laws.fraction,
                observes=laws.observes,
            )
            laws = other_laws if check is None else other_laws.checked_as(check)
        except InputError:
            # With a penalty as small as this no fit settles; the others say enough.
            return None
    if not laws.confirmed.any():
        return None
    return PenaltyOption(
        setting=fit.setting,
        value=float(other.parameters[fit.setting]),
        factor=factor,
        **summed_up(laws.law_pair(), laws.confirmed),
        score=fit.score_name,
        score_now=fit.score,
        score_then=other.score,
    )
