"""What a planned linear model would give away, what it would be worth, and what meets a target.

A world answers two questions, the advantage of an attacker and the error, with noise on the
answers or without: Gaussian records (`GaussianWorld`), or another of the paper's worlds, averaged
over drawn records (`DrawnWorld`).  The plan, its targets and its curves only ask these, on the same
designs.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from scipy import optimize

from leakscope import __version__, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.distributions import NormalMixture
from leakscope.laws.pair import LawPair
from leakscope.linear.data_models import (
    DataModel,
    DrawnDesigns,
    FourierSeries,
    LatentSpace,
    Query,
    RandomRelu,
    design_moments,
    design_provenance,
)
from leakscope.linear.design import GaussianDesign, OutputNoise
from leakscope.linear.law_pair import generalization_error, law_pair, mean_predictions
from leakscope.linear.moments import moments
from leakscope.measures.drawn import ScoredAdvantage
from leakscope.measures.population import PopulationMeasures
from leakscope.planning.linear_advantages import (
    DRAWS,
    drawn_advantage,
    linear_advantage,
    mean_advantage,
    record_nodes,
)
from leakscope.planning.reachable import LARGEST, MOST_RIDGE, require_reachable
from leakscope.results.plan import LinearCurve, LinearPlan, LinearTarget
from leakscope.settings.plan import (
    LINEAR_PLAN_DEFAULTS,
    LinearAttacker,
    LinearKnob,
    LinearMethod,
)

Knob = Literal["features", "noise", "noise_nonmembers", "ridge", "answers"]
RandomState = int | np.random.Generator | Key | None

# Designs drawn for each record of another world.
DESIGNS = 200
# Fewer have no standard error to speak of.
_FEWEST_DESIGNS = 8
# The squares of larger standard deviations, and theirs, leave float64.
_MOST_NOISE = 1e75
# The asymptotic law points to a p whose exact advantage is this near.
_NEAR = 0.02
_SILENT = OutputNoise(0.0)

# Where a curve is drawn if nobody says where, but over p.
_NOISES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
KNOB_RANGES: dict[str, tuple[float, ...]] = {
    "ridge": (0.0, 0.01, 0.1, 1.0, 10.0),
    "noise": _NOISES,
    "noise_nonmembers": _NOISES,
    "answers": (1.0, 3.0, 10.0, 30.0, 100.0),
}
WORLD_NAMES: dict[type[DataModel], str] = {
    LatentSpace: "latent",
    FourierSeries: "fourier",
    RandomRelu: "relu",
}


def plan_linear(
    design: GaussianDesign | DataModel,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    fpr: Sequence[float] = LINEAR_PLAN_DEFAULTS.fpr,
    draws: int | None = None,
    target_advantage: float | None = None,
    attacker: LinearAttacker = LINEAR_PLAN_DEFAULTS.attacker,
    curve: LinearKnob | Mapping[LinearKnob, Sequence[float]] | None = None,
    records: int = LINEAR_PLAN_DEFAULTS.records,
    random_state: RandomState = None,
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
    added = _SILENT if noise is None else noise
    require_reachable({"target_advantage": target_advantage})
    require_reachable({"the noise": added.sigma, "answers": added.answers})
    for entry in settings or ():
        most = MOST_RIDGE if knob == "ridge" else LARGEST
        require_reachable({f"a setting of {knob}": entry}, most=most)
    key = as_key(random_state)
    world: World
    if isinstance(design, GaussianDesign):
        world = GaussianWorld(design, method, draws, key)
    else:
        world = DrawnWorld(design, method, records, DESIGNS if draws is None else draws, key)
    numbers = world.measured(added, fpr)
    settled = world.settled()
    targets: tuple[LinearTarget, ...] = ()
    if target_advantage is not None:
        wanted = (target_advantage, attacker, added)
        targets = (least_noise(settled, *wanted),)
        if isinstance(settled, GaussianWorld):
            targets = (largest_p(settled, *wanted), *targets)
    names = world.knobs(added) if knob == "all" else (() if knob is None else (knob,))
    curves = tuple(_curve(settled, name, settings, added) for name in names)
    return LinearPlan(
        leakscope_version=__version__,
        settings={
            **world.described(),
            "noise": asdict(added),
            "seed": random_state if isinstance(random_state, int) else None,
        },
        timing={"plan": time.perf_counter() - start},
        warnings=[],
        targets=targets,
        curve=None if knob in (None, "all") else curves[0],
        curves=curves if knob == "all" else (),
        **numbers,
    )


class World(ABC):
    """A model in a world of records, of which advantage and error can be asked."""

    @abstractmethod
    def advantage(self, attacker: LinearAttacker, noise: OutputNoise) -> ScoredAdvantage:
        """Of one attacker, averaged over records."""

    @abstractmethod
    def error(self, noise: OutputNoise) -> ScoredAdvantage:
        """E (y0 - yhat0)^2 at a fresh record; an answer's own noise counts."""

    @abstractmethod
    def measured(self, noise: OutputNoise, fpr: Sequence[float]) -> dict[str, Any]:
        """The numbers of the plan itself, with where they come from."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """The plan's settings."""

    @abstractmethod
    def changed(self, knob: Knob, setting: float) -> World:
        """The world with another number of features, or another ridge."""

    @abstractmethod
    def sizes(self) -> tuple[float, ...]:
        """Numbers of features that a curve goes through."""

    def settled(self) -> World:
        """The world that targets and curves ask."""
        return self

    def knobs(self, noise: OutputNoise) -> tuple[LinearKnob, ...]:
        """Over which there are curves."""
        many = noise.sigma > 0.0 and not noise.memoised
        return ("p", "ridge", "noise", "answers") if many else ("p", "ridge", "noise")


def _present(noise: OutputNoise) -> OutputNoise | None:
    return noise if noise.sigma > 0.0 else None


def _numbers(
    pair: LawPair,
    found: PopulationMeasures,
    hidden: ScoredAdvantage,
    known: ScoredAdvantage,
    error: ScoredAdvantage,
    sigma: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    provenance = pair.provenance.to_dict()
    return {
        "method": provenance["method"],
        "assumptions": provenance.pop("assumptions"),
        "provenance": provenance,
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
        "sigma_nonmember": sigma[1][0],
        "sigma_member_stderr": sigma[0][1],
        "sigma_nonmember_stderr": sigma[1][1],
    }


@dataclass(frozen=True)
class GaussianWorld(World):
    """Least squares or ridge on Gaussian records, by one of three routes."""

    design: GaussianDesign
    method: LinearMethod
    draws: int | None
    key: Key

    def __post_init__(self) -> None:
        design = self.design
        require_reachable({name: getattr(design, name) for name in ("n", "p", "dim", "sigma")})
        require_reachable({"ridge": design.ridge}, most=MOST_RIDGE)
        if self.method != "asymptotic":
            _require_designs(self.count)

    @property
    def count(self) -> int:
        """Random designs."""
        return DRAWS[self.method] if self.draws is None else self.draws

    def advantage(self, attacker: LinearAttacker, noise: OutputNoise) -> ScoredAdvantage:
        """See `linear_advantage`."""
        return linear_advantage(
            self.design,
            attacker=attacker,
            method=self.method,
            noise=_present(noise),
            draws=self.count,
            random_state=self.key.child(0),
        )

    def error(self, noise: OutputNoise) -> ScoredAdvantage:
        """See `leakscope.linear.generalization_error`."""
        options = {"method": self.method, "draws": self.count, "random_state": self.key.child(1)}
        found = generalization_error(self.design, noise=_present(noise), **cast(Any, options))
        return ScoredAdvantage(found.value, found.stderr)

    def changed(self, knob: Knob, setting: float) -> GaussianWorld:
        """Another number of features, or another ridge."""
        if knob == "features":
            return replace(self, design=replace(self.design, p=int(setting)))
        return replace(self, design=replace(self.design, ridge=setting))

    def settled(self) -> GaussianWorld:
        """Whole matrices are dear: the exact law, with designs of its own, stands in for them."""
        if self.method != "simulated":
            return self
        return replace(self, method="exact", draws=None)

    def sizes(self) -> tuple[float, ...]:
        """Clear of n, where least squares has no second moment."""
        n, dim = self.design.n, self.design.dim
        shares = (0.1, 0.25, 0.5, 0.8, 1.25, 2, 3, 5, 10, 20)
        sizes = sorted({*(round(n * share) for share in shares), dim})
        return tuple(float(p) for p in sizes if 1 <= p <= dim and abs(p - n) > 1)

    def described(self) -> dict[str, Any]:
        """The design."""
        return asdict(self.design)

    def measured(self, noise: OutputNoise, fpr: Sequence[float]) -> dict[str, Any]:
        """Over quadrature nodes of the record's norms."""
        design, method, added = self.design, self.method, _present(noise)
        norms = record_nodes(design, method)
        pair = law_pair(
            design,
            norms,
            method=method,
            noise=added,
            draws=self.count,
            random_state=self.key.child(0),
        )
        error = self.error(noise)
        sides = moments(design, norms, method, self.count, self.key.child(0))
        exact = mean_predictions(design) if method == "exact" else None
        sigma = [
            _root_mean_square(norms.weight @ side.prediction, known, more)
            for side, known, more in zip(
                sides, exact or (None, None), noise.variances(), strict=True
            )
        ]
        found = measures.population_measures(pair, norms.weight, fpr=fpr)
        if not math.isfinite(error.value):
            # the prediction's second moment is infinite, and KL(nonmember || member) with it
            found = replace(found, kl=math.inf)
            sigma[1] = (math.inf, 0.0)
        elif exact is not None and 1 < design.p - design.n <= 3:
            # Over designs the variance 1/chi2(p - n + 1) has no variance of its own, and a mean of
            # 4000 is far off.  It enters the KL through its mean alone, which is known.
            share = norms.used / design.p * exact[1] - sides[1].prediction.mean(axis=-1)
            against = 2.0 * (sides[0].label[:, 0] + noise.variances()[0])
            found = replace(found, kl=found.kl + float(norms.weight @ (share / against)))
        hidden, known = mean_advantage(pair, norms.weight), self.advantage("label_known", noise)
        return _numbers(pair, found, hidden, known, error, sigma)


def _root_mean_square(drawn: FloatArray, exact: float | None, added: float) -> tuple[float, float]:
    """The root of a mean over designs, (K,), and its standard error; none where it is known."""
    if exact is not None:
        return math.sqrt(exact + added), 0.0
    value = math.sqrt(float(drawn.mean()) + added)
    if drawn.size < 2:
        return value, 0.0
    return value, float(drawn.std(ddof=1)) / math.sqrt(drawn.size) / (2.0 * value or 1.0)


@dataclass(frozen=True)
class DrawnWorld(World):
    """Records of a data model, each with the designs that were drawn for it."""

    model: DataModel
    method: LinearMethod
    records: int
    designs: int
    key: Key

    def __post_init__(self) -> None:
        if self.method == "asymptotic":
            raise InputError("only the Gaussian design has an asymptotic law; leave method out.")
        if self.records < 2:
            raise InputError(
                f"records must be 2 or more for a standard error, but it is {self.records}."
            )
        _require_designs(self.designs)
        require_reachable({"records": self.records, "draws": self.designs})

    @cached_property
    def drawn(self) -> list[tuple[Query, DrawnDesigns]]:
        """A record is the same for every p and noise: it follows from its number."""
        drawn = []
        for record in range(self.records):
            query = self.model.query(self.key.child(record, 0))
            child = self.key.child(record, 1)
            designs = design_moments(self.model, query, designs=self.designs, random_state=child)
            drawn.append((query, designs))
        return drawn

    def advantage(self, attacker: LinearAttacker, noise: OutputNoise) -> ScoredAdvantage:
        """Averaged over the records; the standard error is theirs and has the designs' in it."""
        how = {"attacker": attacker, "noise": _present(noise), "designs": self.designs}
        return _mean(
            [
                drawn_advantage(self.model, query, designs, **cast(Any, how)).value
                for query, designs in self.drawn
            ]
        )

    def error(self, noise: OutputNoise) -> ScoredAdvantage:
        """A settled design predicts the label itself."""
        errors = []
        for query, ((_, fresh), settled) in self.drawn:
            off = self.model.label_variance(query) + fresh[0] - 2.0 * fresh[1]
            errors.append((1.0 - settled) * float(off.mean()))
        found = _mean(errors)
        return replace(found, value=found.value + noise.sigma**2)

    def changed(self, knob: Knob, setting: float) -> DrawnWorld:
        """Another number of features."""
        if knob == "ridge":
            raise InputError("the other data models are least squares, without a ridge.")
        return replace(self, model=replace(cast(Any, self.model), p=int(setting)))

    def sizes(self) -> tuple[float, ...]:
        """On both sides of n."""
        n = int(cast(Any, self.model).n)
        most = self.model.times if isinstance(self.model, FourierSeries) else math.inf
        sizes = {round(n * share) for share in (0.25, 0.5, 0.8, 1.25, 2, 3, 5)}
        return tuple(float(p) for p in sorted(sizes) if 1 <= p <= most)

    def knobs(self, noise: OutputNoise) -> tuple[LinearKnob, ...]:
        """All but the ridge."""
        return tuple(name for name in super().knobs(noise) if name != "ridge")

    def described(self) -> dict[str, Any]:
        """The model, its name, and how much is drawn."""
        return {
            "model": WORLD_NAMES[type(self.model)],
            **asdict(cast(Any, self.model)),
            "records": self.records,
            "designs": self.designs,
        }

    def measured(self, noise: OutputNoise, fpr: Sequence[float]) -> dict[str, Any]:
        """Over the drawn records."""
        pair = self._pair(noise)
        hidden, known = (self.advantage(who, noise) for who in ("label_hidden", "label_known"))
        sigma = []
        for side, more in enumerate(noise.variances()):
            variances = [
                float((weights * sigmas**2).sum()) - more
                for sigmas, weights in (self._row(*one, side, more) for one in self.drawn)
            ]
            mean = _mean(variances)
            value = math.sqrt(mean.value + more)
            sigma.append((value, mean.stderr / (2.0 * value or 1.0)))
        found = measures.population_measures(pair, fpr=fpr)
        return _numbers(pair, found, hidden, known, self.error(noise), sigma)

    def _pair(self, noise: OutputNoise) -> LawPair:
        """Both laws of the prediction, one row for each record."""
        laws = []
        for side, more in enumerate(noise.variances()):
            rows = [self._row(*one, side, more) for one in self.drawn]
            width = max(sigmas.size for sigmas, _ in rows)
            # an undrawn component first, of no weight where nothing is settled
            sigmas = np.stack([np.pad(s, (0, width - s.size), mode="edge") for s, _ in rows])
            weights = np.stack([np.pad(w, (0, width - w.size)) for _, w in rows])
            laws.append(NormalMixture(weights, np.zeros_like(sigmas), sigmas))
        provenance = design_provenance(self.model, "label_hidden", _present(noise), self.designs)
        return LawPair(laws[0], laws[1], provenance)

    def _row(
        self, query: Query, drawn: DrawnDesigns, side: int, noise: float
    ) -> tuple[FloatArray, FloatArray]:
        sides, settled = drawn
        label, share = self.model.label_variance(query), settled if side else 0.0
        variance = np.concatenate([[label], sides[side][0]])
        weights = np.full(variance.size, (1.0 - share) / (variance.size - 1))
        weights[0] = share
        return np.sqrt(np.maximum(variance, 1e-18 * label) + noise), weights


def _mean(values: list[float]) -> ScoredAdvantage:
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return ScoredAdvantage(float(np.mean(values)), spread)


def _require_designs(count: int) -> None:
    if count < _FEWEST_DESIGNS:
        raise InputError(
            f"At least {_FEWEST_DESIGNS} designs are needed for a standard error, not {count}."
        )


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


def trade_off_curve(
    design: GaussianDesign,
    knob: Knob,
    settings: Sequence[float],
    *,
    method: LinearMethod = "asymptotic",
    sigma_output: float = 1.0,
    draws: int | None = None,
    random_state: RandomState = None,
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

    Examples
    --------
    >>> from leakscope.planning import trade_off_curve
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> trade_off_curve(design, "answers", [1, 10, 100]).advantage.round(3).tolist()
    [0.143, 0.242, 0.261]
    """
    world = GaussianWorld(design, method, draws, as_key(random_state))
    noise = OutputNoise(sigma_output) if knob == "answers" else _SILENT
    return _trade_off(world, knob, settings, noise)


def _trade_off(world: World, knob: Knob, settings: Sequence[float], noise: OutputNoise) -> TradeOff:
    """``noise`` stays while features or ridge are turned."""
    rows = []
    for setting in map(float, settings):
        trial, added = world, noise
        if knob == "noise":
            added = replace(noise, sigma=setting)
        elif knob == "noise_nonmembers":
            added = OutputNoise(setting, to="nonmembers")
        elif knob == "answers":
            added = replace(noise, answers=int(setting))
        elif knob in get_args(Knob):
            trial = world.changed(knob, setting)
        else:
            raise InputError(f"There is no knob {knob!r}.")
        both = [trial.advantage(who, added).value for who in ("label_hidden", "label_known")]
        rows.append([*both, trial.error(added).value])
    hidden, known, errors = np.array(rows).T
    levels = np.asarray(settings, dtype=np.float64)
    method = world.method if isinstance(world, GaussianWorld) else "simulated"
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


def _knob(
    curve: LinearKnob | Mapping[LinearKnob, Sequence[float]] | None,
) -> tuple[LinearKnob | None, tuple[float, ...] | None]:
    """The knob to turn and its settings, None for a range of its own."""
    if curve is None:
        return None, None
    name: Any = curve
    settings = None
    if not isinstance(curve, str):
        if len(curve) != 1:
            raise InputError(f"A curve is over one knob, but {len(curve)} are given.")
        name, given = next(iter(curve.items()))
        settings = tuple(float(entry) for entry in given)
    if name not in get_args(LinearKnob):
        raise InputError(
            f"a curve's knob must be one of {', '.join(get_args(LinearKnob))}, but it is {name!r}."
        )
    if name == "all" and settings is not None:
        raise InputError("settings belong to one knob; all of them have ranges of their own.")
    return name, settings


def _curve(
    world: World, name: LinearKnob, settings: tuple[float, ...] | None, noise: OutputNoise
) -> LinearCurve:
    """The curve of a plan, as the plan stores it."""
    if name == "answers" and noise.sigma == 0.0:
        raise InputError("A curve over answers needs noise on every answer above 0.")
    if name == "answers" and noise.memoised:
        raise InputError(
            "With memoised answers, asking again gives the same answer, so there is no curve over "
            "answers."
        )
    if name in ("p", "answers") and any(entry != int(entry) for entry in settings or ()):
        raise InputError(f"the settings of {name} must be whole numbers.")
    range_ = world.sizes() if name == "p" else KNOB_RANGES[name]
    knob: Any = "features" if name == "p" else name
    along = _trade_off(world, knob, settings or range_, noise)
    return LinearCurve(
        knob=along.knob,
        method=along.method,
        settings=along.settings.tolist(),
        advantage=along.advantage.tolist(),
        advantage_label_known=along.advantage_label_known.tolist(),
        generalization_error=along.generalization_error.tolist(),
    )


# The most features, or the least noise, with which a linear model keeps to a target advantage.


def largest_p(
    world: GaussianWorld, target: float, attacker: LinearAttacker, noise: OutputNoise = _SILENT
) -> LinearTarget:
    """The largest number of features, up to dim, whose advantage is at most ``target``.

    The advantage is not monotone in p (it falls up to p = 2n and rises beyond), so the asymptotic
    law is scanned from the top, and the place it points to settled by the world's own.
    """
    _require_target(target)
    limit = replace(world, method="asymptotic", draws=None)
    n, dim = world.design.n, world.design.dim

    def at(p: int, of: GaussianWorld) -> ScoredAdvantage:
        if of.method == "asymptotic" and of.design.ridge == 0.0 and abs(p - n) <= 1:
            return ScoredAdvantage(1.0, 0.0)
        return of.changed("features", p).advantage(attacker, noise)

    around = n * np.array([0.5, 0.9, 1.1, 1.5, 2.0, 2.5])
    near = n + np.array([-1, 0, 1, 2])
    sizes = np.concatenate([np.geomspace(1, dim, 40).round(), near, around]).astype(int)
    grid = np.unique(sizes[(sizes >= 1) & (sizes <= dim)])
    rough = np.array([at(int(p), limit).value for p in grid])
    for index in np.flatnonzero(rough <= target + _NEAR)[::-1]:
        low = int(grid[index])
        if at(low, world).value > target:
            continue
        high = int(grid[index + 1]) if index + 1 < grid.size else low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle, world).value <= target else (low, middle)
        error = world.changed("features", low).error(noise).value
        return _met("features", target, attacker, float(low), at(low, world), error)
    return _met("features", target, attacker)


def least_noise(
    world: World, target: float, attacker: LinearAttacker, noise: OutputNoise = _SILENT
) -> LinearTarget:
    """The least standard deviation of noise on every answer whose advantage is at most ``target``.

    More noise never helps the attacker (data processing), so this is one root.  The setting is
    the noise of one answer; with k fresh answers it grows with the square root of k.
    """
    _require_target(target)
    sigma = _least_root(
        lambda sigma: world.advantage(attacker, replace(noise, sigma=sigma)).value - target
    )
    added = replace(noise, sigma=sigma)
    found, error = world.advantage(attacker, added), world.error(added).value
    return _met("noise on every answer", target, attacker, sigma, found, error)


def _met(
    knob: str,
    target: float,
    attacker: LinearAttacker,
    setting: float | None = None,
    found: ScoredAdvantage | None = None,
    error: float | None = None,
) -> LinearTarget:
    """The setting that meets a target, what it gives away and what it costs; None where none is."""
    return LinearTarget(
        knob=knob,
        target=target,
        attacker=attacker,
        setting=setting,
        advantage=None if found is None else found.value,
        advantage_stderr=None if found is None else found.stderr,
        generalization_error=error,
    )


def _least_root(excess: Callable[[float], float]) -> float:
    """The least noise whose excess over a target is not above zero."""
    if excess(0.0) <= 0.0:
        return 0.0
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
    sigma = float(optimize.brentq(excess, low, high, xtol=1e-9, rtol=1e-4))
    while excess(sigma) > 0.0:
        sigma *= 1.0005
    return sigma


def _require_target(target: float) -> None:
    if not 0.0 < target < 1.0:
        raise InputError(
            f"A target advantage must lie between 0 and 1, both excluded, but it is {target!r}."
        )
