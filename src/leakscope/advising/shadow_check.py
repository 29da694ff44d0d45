"""A changed model's worst record, as shadow models of that changed model see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import as_key
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.own_model import OwnModel
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal
from leakscope.results import AdviceCheck

# What so many shadow models would show of the record if its laws were exactly right.
REDRAWN = 400

# Observed and expected may differ by so many standard errors.
AGREES = 3.0


def checked_by_shadows(
    model: OwnModel, noise: float, target: AuditTarget, *, models: int, seed: int
) -> AdviceCheck:
    """Fit the changed model on random parts of the records, and measure its worst record there."""
    if model.question != "pool" or model.observes in ("label", "probabilities"):
        raise InputError(
            "shadow models check what is said of one score and the pool of records at hand; ask "
            "without --check, or audit that question."
        )
    # The score itself: a residual is told apart as its prediction is.
    laws = replace(model, observes=None).laws()
    shadows = fitted.shadow_models(
        model.estimator,
        model.design,
        model.labels,
        models=models,
        fraction=model.fraction,
        sample_weight=model.weights,
        random_state=seed,
    )
    over_all = fitted.check_against_shadows(laws, shadows, random_state=seed)
    values = target.measured(laws.law_pair(answer_noise=noise))
    worst = int(np.argmax(values))
    inside = shadows.trained_on[:, worst]
    scores = shadows.scores[:, worst]
    counts = int(inside.sum()), int((~inside).sum())
    observed = _measured(
        target,
        noise,
        *(np.array([value]) for part in (inside, ~inside) for value in _moments(scores[part])),
    )
    generator = as_key(seed).child(11).generator()
    drawn: list[FloatArray] = []
    for mean, sd, count in (
        (laws.member_mean[worst], laws.member_sd[worst], counts[0]),
        (laws.nonmember_mean[worst], laws.nonmember_sd[worst], counts[1]),
    ):
        drawn.append(mean + sd * generator.standard_normal(REDRAWN) / np.sqrt(count))
        drawn.append(sd * np.sqrt(generator.chisquare(count - 1, REDRAWN) / (count - 1)))
    expected = _measured(target, noise, *drawn)
    centre, error = float(np.mean(expected)), float(np.std(expected, ddof=1))
    agrees = abs(float(observed[0]) - centre) <= AGREES * error
    return AdviceCheck(
        models=models,
        promised=float(values[worst]),
        expected=centre,
        observed=float(observed[0]),
        stderr=error,
        shift_ratio=over_all.shift_ratio,
        sd_ratio=over_all.sd_ratio,
        agrees=agrees,
    )


def _moments(scores: FloatArray) -> tuple[float, float]:
    return float(scores.mean()), float(scores.std(ddof=1))


def _measured(
    target: AuditTarget,
    noise: float,
    mean_in: FloatArray,
    sd_in: FloatArray,
    mean_out: FloatArray,
    sd_out: FloatArray,
) -> FloatArray:
    """The target's measure of normal laws with these moments, and noise on the answers."""
    pair = LawPair(
        Normal(mean_in, np.hypot(sd_in, noise)), Normal(mean_out, np.hypot(sd_out, noise))
    )
    return target.measured(pair)
