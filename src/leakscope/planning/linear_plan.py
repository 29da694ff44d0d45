"""What a planned linear model would give away, what it would be worth, and what meets a target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy import optimize

from leakscope import __version__, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.linear.data_models import DataModel
from leakscope.linear.design import GaussianDesign, OutputNoise
from leakscope.linear.law_pair import generalization_error, law_pair, mean_predictions
from leakscope.linear.moments import moments
from leakscope.measures.drawn import ScoredAdvantage
from leakscope.planning.linear_advantages import (
    DRAWS,
    linear_advantage,
    mean_advantage,
    record_nodes,
)
from leakscope.planning.reachable import LARGEST, MOST_RIDGE, require_reachable
from leakscope.results.plan import LinearCurve, LinearPlan, LinearTarget
from leakscope.settings.plan import (
    LINEAR_PLAN_DEFAULTS,
    LinearAttacker,
    LinearDesignSettings,
    LinearKnob,
    LinearMethod,
)
from leakscope.settings.setting import default_of

if TYPE_CHECKING:
    import pandas as pd

Knob = Literal["features", "noise", "noise_nonmembers", "ridge", "answers"]
CurveName = LinearKnob
RandomState = int | np.random.Generator | Key | None

# What a knob of a plan's curve is called where it is turned.
_KNOBS: dict[str, Knob] = {
    "p": "features",
    "ridge": "ridge",
    "noise": "noise",
    "noise_nonmembers": "noise_nonmembers",
    "answers": "answers",
}

ANSWERS: int = default_of(LinearDesignSettings, "answers")

# The squares of larger standard deviations, and theirs, leave float64.
_MOST_NOISE = 1e75


def plan_linear(
    design: GaussianDesign | DataModel,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    fpr: Sequence[float] = LINEAR_PLAN_DEFAULTS.fpr,
    draws: int | None = None,
    target_advantage: float | None = None,
    attacker: LinearAttacker = LINEAR_PLAN_DEFAULTS.attacker,
    curve: CurveName | Mapping[CurveName, Sequence[float]] | None = None,
    records: int = LINEAR_PLAN_DEFAULTS.records,
    random_state: int | np.random.Generator | Key | None = None,
) -> LinearPlan:
    """How much a linear model of this design gives away about a typical record, and its error.

    Records and coefficients are Gaussian.  Two attackers: one sees x0 and the prediction, one the
    record's label too.

    Parameters
    ----------
    design
        The training set and the model: Gaussian records, or one of the paper's other worlds
        (:class:`leakscope.linear.LatentSpace`, ``FourierSeries``, ``RandomRelu``).
    method
        ``exact`` (finite n), ``asymptotic`` (Thm 3.2 and corrected Thm 4.1) or ``simulated``
        (whole matrices).
    noise
        On every answer; none where left out.
    fpr
        False-positive rates at which the true-positive rate is given.
    draws
        Random designs: 4,000 exact and 200 simulated where left out; of another world, for each
        record.
    target_advantage, attacker
        Find the largest p, and the least noise on every answer, that keep to it, and against whom:
        ``label_known`` or ``label_hidden``.
    curve
        Leakage and error along a knob, ``p``, ``ridge``, ``noise``, ``noise_nonmembers`` (Lemma
        4.4) or ``answers``, over a range of its own, or along ``all``; or a mapping of the knob to
        the settings wanted.
    records
        Of another world: records drawn, over which everything is averaged.
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
    if not isinstance(design, GaussianDesign):
        # It builds on this file.
        from leakscope.planning.data_model_plan import plan_data_model

        return plan_data_model(
            design,
            records=records,
            method=method,
            noise=noise,
            fpr=fpr,
            draws=draws,
            target_advantage=target_advantage,
            attacker=attacker,
            knob=knob,
            settings=settings,
            random_state=random_state,
        )
    _require(design, noise, target_advantage, knob, settings)
    count = DRAWS[method] if draws is None else draws
    if method != "asymptotic" and count < 8:
        raise InputError(f"At least 8 designs are needed for a standard error, not {count}.")
    key = as_key(random_state)
    found = _measured(design, method, noise, fpr, count, key)
    # The draws of whole matrices are not how many designs the exact law, which stands in, needs.
    designs = None if method == "simulated" else draws
    told = OutputNoise(0.0) if noise is None else noise
    targets: tuple[LinearTarget, ...] = ()
    if target_advantage is not None:
        targets = (
            largest_p(
                design,
                target_advantage,
                attacker=attacker,
                method=method,
                noise=told if told.sigma > 0.0 else None,
                draws=designs,
                random_state=key,
            ),
            least_noise(
                design,
                target_advantage,
                attacker=attacker,
                method=method,
                answers=told.answers,
                memoised=told.memoised,
                draws=designs,
                random_state=key,
            ),
        )
    along, every = None, []
    if knob == "all":
        names = ["p", "ridge", "noise"]
        names += ["answers"] if told.sigma > 0.0 and not told.memoised else []
        every = [_curve(design, told, name, None, method, designs, key) for name in names]
    elif knob is not None:
        along = _curve(design, told, knob, settings, method, designs, key)
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
        curves=tuple(every),
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
    pair = law_pair(
        design, norms, method=method, noise=noise, draws=count, random_state=key.child(0)
    )
    hidden = mean_advantage(pair, norms.weight)
    known = linear_advantage(
        design,
        attacker="label_known",
        method=method,
        noise=noise,
        draws=count,
        random_state=key.child(0),
    )
    error = generalization_error(
        design, method=method, noise=noise, draws=count, random_state=key.child(1)
    )
    extra = (0.0, 0.0) if noise is None else noise.variances()
    sides = moments(design, norms, method, count, key.child(0))
    settled = mean_predictions(design) if method == "exact" else None
    sigma = [
        _root_mean_square(norms.weight @ side.prediction, exact, more)
        for side, exact, more in zip(sides, settled or (None, None), extra, strict=True)
    ]
    found = measures.population_measures(pair, norms.weight, fpr=fpr)
    if not math.isfinite(error.value):
        # the prediction's second moment is infinite, and KL(nonmember || member) with it
        found = replace(found, kl=math.inf)
    elif settled is not None and 1 < design.p - design.n <= 3:
        # Over designs the variance 1/chi2(p - n + 1) has no variance of its own, and a mean of 4000
        # is far off.  It enters the KL through its mean alone, which is known.
        share = norms.used / design.p * settled[1] - sides[1].prediction.mean(axis=-1)
        against = 2.0 * (sides[0].label[:, 0] + extra[0])
        found = replace(found, kl=found.kl + float(norms.weight @ (share / against)))
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
        "sigma_member": sigma[0][0],
        "sigma_nonmember": sigma[1][0] if math.isfinite(error.value) else math.inf,
        "sigma_member_stderr": sigma[0][1],
        "sigma_nonmember_stderr": sigma[1][1] if math.isfinite(error.value) else 0.0,
    }


def _root_mean_square(drawn: FloatArray, exact: float | None, added: float) -> tuple[float, float]:
    """The root of a mean over designs, (K,), and its standard error; none where it is known."""
    if exact is not None:
        return math.sqrt(exact + added), 0.0
    value = math.sqrt(float(drawn.mean()) + added)
    if drawn.size < 2:
        return value, 0.0
    return value, float(drawn.std(ddof=1)) / math.sqrt(drawn.size) / (2.0 * value or 1.0)


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
    if name == "all" and settings is not None:
        raise InputError("settings belong to one knob; all of them have ranges of their own.")
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


# Privacy against utility: advantage and error along each knob, and how far two knobs differ.


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Advantage of both attackers and generalisation error at each setting of one knob."""

    knob: Knob
    settings: FloatArray
    advantage: FloatArray
    advantage_label_known: FloatArray
    generalization_error: FloatArray
    method: LinearMethod

    def to_frame(self) -> pd.DataFrame:
        """One row per setting."""
        import pandas as pd

        return pd.DataFrame(
            {
                self.knob: self.settings,
                "advantage": self.advantage,
                "advantage_label_known": self.advantage_label_known,
                "generalization_error": self.generalization_error,
            }
        )


def trade_off_curve(
    design: GaussianDesign,
    knob: Knob,
    settings: Sequence[float],
    *,
    method: LinearMethod = "asymptotic",
    sigma_output: float = 1.0,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> TradeOff:
    """Leakage and error over a knob of ``design``.

    The designs are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.

    Parameters
    ----------
    knob
        ``"features"``: p.  ``"noise"``: standard deviation of noise on every answer.
        ``"noise_nonmembers"``: the same for non-members only (Lemma 4.4, which nobody can
        deploy).  ``"ridge"``: lambda, which can raise the advantage.  ``"answers"``: how many
        fresh answers with noise ``sigma_output`` the attacker gets; a memoised answer is
        ``answers`` = 1.
    noise
        Noise that stays while features or ridge are turned; the knob ``"noise"`` keeps its
        ``answers`` and ``memoised``.

    Examples
    --------
    >>> from leakscope.planning import trade_off_curve
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> trade_off_curve(design, "answers", [1, 10, 100]).advantage.round(3).tolist()
    [0.143, 0.242, 0.261]
    """
    rows, key = [], as_key(random_state)
    for setting in settings:
        trial, added = _turn(design, knob, float(setting), sigma_output, noise)
        found = [
            linear_advantage(
                trial,
                attacker=who,
                method=method,
                noise=added,
                draws=draws,
                random_state=key.child(0),
            ).value
            for who in ("label_hidden", "label_known")
        ]
        rows.append([*found, _error(trial, method, added, draws, key)])
    hidden, known, errors = np.array(rows).T
    levels = np.asarray(settings, dtype=np.float64)
    return TradeOff(knob, levels, hidden, known, errors, method)


def equivalence_gap(
    design: GaussianDesign, *, points: int = 25, method: LinearMethod = "asymptotic"
) -> float:
    """How far Fig. 4's two curves are apart: the largest difference in advantage at equal error.

    Fewer features on one side, on the other all features and noise for non-members (Lemma 4.4),
    matched in error for p from 2.2 n to D.
    """
    if design.ridge > 0.0:
        raise InputError("Fig. 4 compares models without ridge; set ridge to 0.")
    sizes = np.unique(np.geomspace(2.2 * design.n, design.dim, points).astype(int))
    fewer = trade_off_curve(design, "features", [float(p) for p in sizes], method=method)
    everything = replace(design, p=design.dim)
    floor = generalization_error(everything).value
    sigmas = np.sqrt(np.maximum(fewer.generalization_error - floor, 0.0))
    noisy = trade_off_curve(everything, "noise_nonmembers", sigmas.tolist(), method=method)
    return float(np.abs(fewer.advantage - noisy.advantage).max())


def _turn(
    design: GaussianDesign,
    knob: Knob,
    setting: float,
    sigma_output: float,
    noise: OutputNoise | None,
) -> tuple[GaussianDesign, OutputNoise | None]:
    if knob == "features":
        return replace(design, p=int(setting)), noise
    if knob == "ridge":
        return replace(design, ridge=setting), noise
    if knob == "noise":
        return design, OutputNoise(setting) if noise is None else replace(noise, sigma=setting)
    if knob == "noise_nonmembers":
        return design, OutputNoise(setting, to="nonmembers")
    if knob == "answers":
        return design, OutputNoise(sigma_output, answers=int(setting))
    raise InputError(f"There is no knob {knob!r}.")


def _curve(
    design: GaussianDesign,
    noise: OutputNoise,
    name: str,
    settings: tuple[float, ...] | None,
    method: LinearMethod,
    draws: int | None,
    key: Key,
) -> LinearCurve:
    """The curve of a plan, as the plan stores it."""
    require_knob(name, settings, noise)
    found = trade_off_curve(
        design,
        _KNOBS[name],
        settings or (feature_range(design) if name == "p" else KNOB_RANGES[name]),
        # whole matrices are dear: the exact law stands in for them
        method="asymptotic" if method == "asymptotic" else "exact",
        sigma_output=noise.sigma,
        noise=noise if noise.sigma > 0.0 or name == "noise" else None,
        draws=draws,
        random_state=key,
    )
    return LinearCurve(
        knob=found.knob,
        method=found.method,
        settings=found.settings.tolist(),
        advantage=found.advantage.tolist(),
        advantage_label_known=found.advantage_label_known.tolist(),
        generalization_error=found.generalization_error.tolist(),
    )


def require_knob(name: str, settings: tuple[float, ...] | None, noise: OutputNoise) -> None:
    """Refuse settings that a knob does not have."""
    if name == "answers" and noise.sigma == 0.0:
        raise InputError("A curve over answers needs noise on every answer above 0.")
    if name == "answers" and noise.memoised:
        raise InputError(
            "With memoised answers, asking again gives the same answer, so there is no curve over "
            "answers."
        )
    if name in ("p", "answers") and any(entry != int(entry) for entry in settings or ()):
        raise InputError(f"the settings of {name} must be whole numbers.")


# Where a curve is drawn if nobody says where.
KNOB_RANGES: dict[str, tuple[float, ...]] = {
    "ridge": (0.0, 0.01, 0.1, 1.0, 10.0),
    "noise": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0),
    "noise_nonmembers": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0),
    "answers": (1.0, 3.0, 10.0, 30.0, 100.0),
}


def feature_range(design: GaussianDesign) -> tuple[float, ...]:
    """Numbers of features, clear of n, where least squares has no second moment."""
    sizes = {round(design.n * share) for share in (0.1, 0.25, 0.5, 0.8, 1.25, 2, 3, 5, 10, 20)}
    sizes.add(design.dim)
    return tuple(float(p) for p in sorted(sizes) if 1 <= p <= design.dim and abs(p - design.n) > 1)


# The most features, or the least noise, with which a linear model keeps to a target advantage.


def largest_p(
    design: GaussianDesign,
    target: float,
    *,
    attacker: LinearAttacker = LINEAR_PLAN_DEFAULTS.attacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: RandomState = None,
) -> LinearTarget:
    """The largest number of features, up to dim, whose advantage is at most ``target``.

    The designs are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.

    The advantage is not monotone in p (it falls up to p = 2n and rises beyond), so the asymptotic
    law is scanned from the top, and the place it points to settled with ``method``; whole matrices
    being dear, the exact law stands in for ``"simulated"``.
    """
    check_target(target)
    settled: LinearMethod = "asymptotic" if method == "asymptotic" else "exact"
    key = as_key(random_state)

    def at(p: int, route: LinearMethod) -> ScoredAdvantage:
        if route == "asymptotic" and design.ridge == 0.0 and abs(p - design.n) <= 1:
            return ScoredAdvantage(1.0, 0.0)
        return linear_advantage(
            replace(design, p=p),
            attacker=attacker,
            method=route,
            noise=noise,
            draws=draws,
            random_state=key.child(0),
        )

    grid = _grid(design)
    rough = np.array([at(int(p), "asymptotic").value for p in grid])
    for index in np.flatnonzero(rough <= target + 0.02)[::-1]:
        if at(int(grid[index]), settled).value > target:
            continue
        low = int(grid[index])
        high = int(grid[index + 1]) if index + 1 < grid.size else low
        while high - low > 1:
            middle = (low + high) // 2
            if at(middle, settled).value <= target:
                low = middle
            else:
                high = middle
        found = at(low, settled)
        error = _error(replace(design, p=low), settled, noise, draws, key)
        return target_met("features", target, attacker, float(low), found, error)
    return target_met("features", target, attacker)


def least_noise(
    design: GaussianDesign,
    target: float,
    *,
    attacker: LinearAttacker = LINEAR_PLAN_DEFAULTS.attacker,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    answers: int = ANSWERS,
    memoised: bool = False,
    draws: int | None = None,
    random_state: RandomState = None,
) -> LinearTarget:
    """The least standard deviation of noise on every answer whose advantage is at most ``target``.

    More noise never helps the attacker (data processing), so this is one root.  The setting is
    the noise of one answer; with k fresh answers it grows with the square root of k.  The designs
    are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.
    """
    check_target(target)
    settled: LinearMethod = "asymptotic" if method == "asymptotic" else "exact"
    key = as_key(random_state)

    def noise_of(sigma: float) -> OutputNoise | None:
        return OutputNoise(sigma, answers=answers, memoised=memoised) if sigma > 0.0 else None

    def at(sigma: float) -> ScoredAdvantage:
        return linear_advantage(
            design,
            attacker=attacker,
            method=settled,
            noise=noise_of(sigma),
            draws=draws,
            random_state=key.child(0),
        )

    def excess(sigma: float) -> float:
        return at(sigma).value - target

    sigma = least_root(excess)
    error = _error(design, settled, noise_of(sigma), draws, key)
    return target_met("noise on every answer", target, attacker, sigma, at(sigma), error)


def target_met(
    knob: str,
    target: float,
    attacker: LinearAttacker,
    setting: float | None = None,
    found: ScoredAdvantage | None = None,
    error: float | None = None,
) -> LinearTarget:
    """The setting that was found, what it gives away and what it costs; none where none is."""
    return LinearTarget(
        knob=knob,
        target=target,
        attacker=attacker,
        setting=setting,
        advantage=None if found is None else found.value,
        advantage_stderr=None if found is None else found.stderr,
        generalization_error=error,
    )


def _error(
    design: GaussianDesign,
    method: LinearMethod,
    noise: OutputNoise | None,
    draws: int | None,
    key: Key,
) -> float:
    """The generalisation error; an answer's own noise counts, however many are averaged."""
    count = DRAWS[method] if draws is None else draws
    return generalization_error(
        design, method=method, noise=noise, draws=count, random_state=key.child(1)
    ).value


def least_root(excess: Callable[[float], float]) -> float:
    """The least noise whose excess over a target is not above zero."""
    if excess(0.0) <= 0.0:
        return 0.0
    sigma = _root(excess)
    while excess(sigma) > 0.0:
        sigma *= 1.0005
    return sigma


def _root(excess: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > _MOST_NOISE:
            raise InputError(
                f"Noise of standard deviation {low:.3g} does not meet this target, and more noise "
                "would overflow float64; choose a larger target."
            )
    if low == 0.0:
        low = high / 2.0
        while excess(low) <= 0.0:
            low, high = low / 2.0, low
    return float(optimize.brentq(excess, low, high, xtol=1e-9, rtol=1e-4))


def _grid(design: GaussianDesign) -> np.ndarray[Any, np.dtype[np.intp]]:
    spread = np.geomspace(1, design.dim, 40).round().astype(int)
    near = design.n + np.array([-1, 0, 1, 2])
    around = (design.n * np.array([0.5, 0.9, 1.1, 1.5, 2.0, 2.5])).astype(int)
    points = np.concatenate([spread, near, around])
    return np.unique(points[(points >= 1) & (points <= design.dim)])


def check_target(target: float) -> None:
    """Refuse what is no advantage."""
    if not 0.0 < target < 1.0:
        raise InputError(
            f"A target advantage must lie between 0 and 1, both excluded, but it is {target!r}."
        )
