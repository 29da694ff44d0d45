"""What a planned linear model would give away, what it would be worth, and what meets a target."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, get_args

import numpy as np

from leakscope import __version__, linear, measures
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.linear import Attacker, GaussianDesign, LinearMethod, OutputNoise, moments
from leakscope.planning.linear_answer import (
    DRAWS,
    label_known_advantage,
    mean_advantage,
    record_nodes,
)
from leakscope.planning.linear_curves import Knob, TradeOff, trade_off_curve
from leakscope.planning.linear_targets import largest_p, least_noise
from leakscope.planning.reachable import LARGEST, MOST_RIDGE, require_reachable
from leakscope.results import LinearCurve, LinearPlan, LinearTarget
from leakscope.settings import LINEAR_PLAN_DEFAULTS

CurveName = Literal["p", "ridge", "noise", "answers"]

KNOBS: dict[CurveName, Knob] = {
    "p": "features",
    "ridge": "ridge",
    "noise": "noise",
    "answers": "answers",
}


def plan_linear(
    design: GaussianDesign,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    fpr: Sequence[float] = LINEAR_PLAN_DEFAULTS.fpr,
    draws: int | None = None,
    target_advantage: float | None = None,
    attacker: Attacker = LINEAR_PLAN_DEFAULTS.attacker,
    curve: CurveName | Mapping[CurveName, Sequence[float]] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> LinearPlan:
    """How much a linear model of this design gives away about a typical record, and its error.

    Records and coefficients are Gaussian.  Two attackers: one sees x0 and the prediction, one the
    record's label too.

    Parameters
    ----------
    design
        The training set and the model.
    method
        ``exact`` (finite n), ``asymptotic`` (Thm 3.2 and corrected Thm 4.1) or ``simulated``
        (whole matrices).
    noise
        On every answer; none where left out.
    fpr
        False-positive rates at which the true-positive rate is given.
    draws
        Random designs: 4,000 exact and 200 simulated where left out.
    target_advantage, attacker
        Find the largest p, and the least noise on every answer, that keep to it, and against whom:
        ``label_known`` or ``label_hidden``.
    curve
        Leakage and error along a knob, ``p``, ``ridge``, ``noise`` or ``answers``, over a range of
        its own; or a mapping of the knob to the settings wanted.
    random_state
        Of the designs.  The plan, its targets and its curve draw the same ones.

    Returns
    -------
    LinearPlan
        What is infinite is ``None``.

    Raises
    ------
    InputError
        Where a number is impossible, or too large or too small to compute with.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0, ridge=5.0)
    >>> plan = leakscope.plan_linear(design, draws=2000, curve={"p": [200, 400]})
    >>> round(plan.advantage, 2), round(plan.advantage_label_known, 1)
    (0.33, 0.6)
    >>> plan.curve.settings
    [200.0, 400.0]
    """
    start = time.perf_counter()
    knob, settings = _knob(curve)
    _require(design, noise, target_advantage, knob, settings)
    count = DRAWS[method] if draws is None else draws
    if method != "asymptotic" and count < 8:
        raise InputError(f"At least 8 designs are needed for a standard error, not {count}.")
    key = as_key(random_state)
    found = _measured(design, method, noise, fpr, count, key)
    # The draws of whole matrices are not how many designs the exact law, which stands in, needs.
    designs = None if method == "simulated" else draws
    targets: tuple[LinearTarget, ...] = ()
    if target_advantage is not None:
        targets = _targets(design, noise, target_advantage, attacker, method, designs, key)
    along = None
    if knob is not None:
        along = _stored(_curve(design, noise, knob, settings, method, designs, key))
    told = OutputNoise(0.0) if noise is None else noise
    return LinearPlan(
        leakscope_version=__version__,
        settings={
            **asdict(design),
            "noise": asdict(told),
            "seed": random_state if isinstance(random_state, int) else None,
        },
        timing={"plan": time.perf_counter() - start},
        warnings=[],
        targets=targets,
        curve=along,
        **found,
    )


def _measured(
    design: GaussianDesign,
    method: LinearMethod,
    noise: OutputNoise | None,
    fpr: Sequence[float],
    count: int,
    key: Key,
) -> dict[str, Any]:
    """The numbers of the plan itself, with where they come from."""
    norms = record_nodes(design, method)
    pair = linear.law_pair(
        design, norms, method=method, noise=noise, draws=count, random_state=key.child(0)
    )
    hidden = mean_advantage(pair, norms.weight)
    known = label_known_advantage(
        design, method=method, noise=noise, draws=count, random_state=key.child(0)
    )
    error = linear.generalization_error(
        design, method=method, noise=noise, draws=count, random_state=key.child(1)
    )
    extra = (0.0, 0.0) if noise is None else noise.variances()
    sides = moments(design, norms, method, count, key.child(0))
    sigma = [
        math.sqrt(float(norms.weight @ side.prediction.mean(axis=-1)) + more)
        for side, more in zip(sides, extra, strict=True)
    ]
    found = measures.population_measures(pair, norms.weight, fpr=fpr)
    if not math.isfinite(error.value):
        # the prediction's second moment is infinite, and KL(nonmember || member) with it
        found = replace(found, kl=math.inf)
    told = pair.provenance.to_dict()
    return {
        "method": told["method"],
        "assumptions": told.pop("assumptions"),
        "provenance": told,
        "advantage": hidden.value,
        "advantage_stderr": hidden.stderr,
        "advantage_label_known": known.value,
        "advantage_label_known_stderr": known.stderr,
        "kl": found.kl,
        "kl_reverse": found.kl_reverse,
        "auc": found.auc,
        "tpr_at_fpr": {f"{level:g}": value for level, value in found.tpr_at_fpr.items()},
        "generalization_error": error.value,
        "generalization_error_stderr": error.stderr,
        "sigma_member": sigma[0],
        "sigma_nonmember": sigma[1] if math.isfinite(error.value) else math.inf,
    }


def _knob(
    curve: CurveName | Mapping[CurveName, Sequence[float]] | None,
) -> tuple[CurveName | None, tuple[float, ...] | None]:
    """The knob to turn and its settings, None for a range of its own."""
    if curve is None:
        return None, None
    if isinstance(curve, str):
        name, settings = curve, None
    elif len(curve) == 1:
        name, given = next(iter(curve.items()))
        settings = tuple(float(entry) for entry in given)
    else:
        raise InputError(f"A curve is over one knob, but {len(curve)} are given.")
    if name not in get_args(CurveName):
        raise InputError(
            f"a curve's knob must be one of {', '.join(get_args(CurveName))}, but it is {name!r}."
        )
    return name, settings


def _require(
    design: GaussianDesign,
    noise: OutputNoise | None,
    target: float | None,
    knob: CurveName | None,
    settings: tuple[float, ...] | None,
) -> None:
    """Refuse what is too large or too small to compute with."""
    require_reachable({name: getattr(design, name) for name in ("n", "p", "dim", "sigma")})
    require_reachable({"ridge": design.ridge}, most=MOST_RIDGE)
    if noise is not None:
        require_reachable({"the noise": noise.sigma, "answers": noise.answers})
    require_reachable({"target_advantage": target})
    for entry in settings or ():
        most = MOST_RIDGE if knob == "ridge" else LARGEST
        require_reachable({f"a setting of {knob}": entry}, most=most)


def _targets(
    design: GaussianDesign,
    noise: OutputNoise | None,
    target: float,
    attacker: Attacker,
    method: LinearMethod,
    draws: int | None,
    key: Key,
) -> tuple[LinearTarget, LinearTarget]:
    given = noise if noise is not None and noise.sigma > 0.0 else None
    return (
        largest_p(
            design,
            target,
            attacker=attacker,
            method=method,
            noise=given,
            draws=draws,
            random_state=key,
        ),
        least_noise(
            design,
            target,
            attacker=attacker,
            method=method,
            answers=1 if noise is None else noise.answers,
            memoised=noise is not None and noise.memoised,
            draws=draws,
            random_state=key,
        ),
    )


def _curve(
    design: GaussianDesign,
    noise: OutputNoise | None,
    name: CurveName,
    settings: tuple[float, ...] | None,
    method: LinearMethod,
    draws: int | None,
    key: Key,
) -> TradeOff:
    added = OutputNoise(0.0) if noise is None else noise
    if name == "answers" and added.sigma == 0.0:
        raise InputError("A curve over answers needs noise on every answer above 0.")
    if name == "answers" and added.memoised:
        raise InputError("A memoised answer is one answer however often it is asked for.")
    if name in ("p", "answers") and any(entry != int(entry) for entry in settings or ()):
        raise InputError(f"the settings of {name} must be whole numbers.")
    return trade_off_curve(
        design,
        KNOBS[name],
        settings or _range(design, name),
        # whole matrices are dear: the exact law stands in for them
        method="asymptotic" if method == "asymptotic" else "exact",
        sigma_output=added.sigma,
        noise=added if added.sigma > 0.0 or name == "noise" else None,
        draws=draws,
        random_state=key,
    )


def _range(design: GaussianDesign, name: CurveName) -> tuple[float, ...]:
    """A range for each knob; p keeps clear of n, where least squares has no second moment."""
    if name == "ridge":
        return (0.0, 0.01, 0.1, 1.0, 10.0)
    if name == "noise":
        return (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
    if name == "answers":
        return (1.0, 3.0, 10.0, 30.0, 100.0)
    sizes = {round(design.n * share) for share in (0.1, 0.25, 0.5, 0.8, 1.25, 2, 3, 5, 10, 20)}
    sizes.add(design.dim)
    return tuple(float(p) for p in sorted(sizes) if 1 <= p <= design.dim and abs(p - design.n) > 1)


def _stored(curve: TradeOff) -> LinearCurve:
    return LinearCurve(
        knob=curve.knob,
        method=curve.method,
        settings=curve.settings.tolist(),
        advantage=curve.advantage.tolist(),
        advantage_label_known=curve.advantage_label_known.tolist(),
        generalization_error=curve.generalization_error.tolist(),
    )
