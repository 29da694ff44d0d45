"""What can be changed of the user's own model: its penalty, its answers, its features, its records.

Each option is found by fitting the changed model again and computing its laws again; nothing is
extrapolated from the audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.dropping import SHARE, SHARE_SEVERAL_OUTPUTS, dropped_until
from leakscope.advising.option_pricing import PricedSetting, Terms
from leakscope.advising.own_model import LOSSES, HeldOutScores, OwnModel
from leakscope.advising.released_error import Folds
from leakscope.advising.searched_options import SHARES, drop_notes
from leakscope.advising.shadow_check import checked_by_shadows
from leakscope.auditing import noise_for
from leakscope.data import RecordId
from leakscope.errors import InputError
from leakscope.results import AdviceCheck, AdviceOption

# Levels of the penalty in a decade, and how many decades above its own are tried.
PER_DECADE = 3
DECADES = 8

# The first level where a model has no penalty, as a share of its features' mean square.
FIRST_SHARE = 1e-3

# One step of dropping, or one number of features, may take so many products in all.
MOST_WORK = 4e9

NOT_TRUSTED = (
    "the numbers of a {unit} are not trusted there, because one other record carries most of what "
    "varies"
)


@dataclass(frozen=True)
class PricedModel(PricedSetting):
    """A setting of the user's model, the model itself, its laws, and the noise on its answers."""

    model: OwnModel = field(kw_only=True)
    laws: fitted.FittedLaws = field(kw_only=True)
    noise: float = field(default=0.0, kw_only=True)
    dropped: Sequence[RecordId] = field(default=(), kw_only=True)
    features: Sequence[str] = field(default=(), kw_only=True)


@dataclass(frozen=True, eq=False)
class ModelPricing:
    """What all options share: the model, its records' names, the target, the folds, its own price.

    ``points`` is how many settings of dropping are priced; ``check`` how many shadow models check
    each option that meets the target.
    """

    model: OwnModel
    names: Sequence[RecordId]
    target: AuditTarget
    folds: Folds
    points: int
    check: int | None = None
    seed: int = 0
    own: PricedModel = field(init=False)
    held: HeldOutScores = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", self.model.held_out(self.folds))
        object.__setattr__(self, "own", self.at({}, self.model, self.model.laws(), self.held))

    @property
    def steps(self) -> int:
        """How many models a search may audit, by the work of one."""
        return int(np.clip(MOST_WORK / self.model.work, 8, 200))

    def at(
        self,
        setting: Mapping[str, float],
        model: OwnModel,
        laws: fitted.FittedLaws,
        held: HeldOutScores,
        noise: float = 0.0,
        **told: Any,
    ) -> PricedModel:
        """A setting with its leakage and its price."""
        values = self.target.measured(laws.law_pair(answer_noise=noise))
        # One trusted record above the target settles it; otherwise all must be trusted.
        known = laws.trusted.all() or np.any(values[laws.trusted] > self.target.value)
        return PricedModel(
            setting if noise == 0.0 else {**setting, "output_sd": noise},
            float(np.max(values)),
            float(np.median(values)),
            held.released(noise),
            bool(known),
            model=model,
            laws=laws,
            noise=noise,
            **told,
        )

    def with_noise(self, found: PricedModel, held: HeldOutScores) -> list[PricedModel]:
        """The same with the least noise on the answers that it still needs; none without any."""
        noise = noise_for(found.laws, self.target.measured, self.target.value)
        if not noise:
            return []
        told = {"dropped": found.dropped, "features": found.features}
        return [self.at(found.setting, found.model, found.laws, held, noise, **told)]

    def option(
        self,
        name: str,
        found: PricedModel,
        words: str,
        curve: Sequence[PricedModel],
        notes: tuple[str, ...] = (),
    ) -> AdviceOption:
        """The option, with its sentence."""
        model = self.model
        squared = model.loss == "square" and model.task == "regression"
        terms = Terms(
            self.target,
            self.own,
            "record",
            float(np.var(np.asarray(model.labels, dtype=np.float64))) if squared else None,
            f"the model's {LOSSES[model.loss]} on held-out records",
            "its",
            NOT_TRUSTED,
        )
        return terms.option(
            name,
            found,
            words,
            curve,
            notes,
            questions="own",
            dropped=list(found.dropped),
            features=list(found.features),
            check=self._checked(found),
        )

    def _checked(self, found: PricedModel) -> AdviceCheck | None:
        """The same by shadow models of the changed model, where that is asked for."""
        if self.check is None or not (found.trusted and self.target.met(found.worst)):
            return None
        return checked_by_shadows(
            found.model, found.noise, self.target, models=self.check, seed=self.seed
        )


def _pair(
    pricing: ModelPricing, name: str, together: Sequence[PricedModel], words: str
) -> list[AdviceOption]:
    """The cheapest of an option's settings, each with the least noise on the answers it needs."""
    found = min(together, key=lambda priced: priced.released.error, default=None)
    if found is None:
        return []
    todo = words.format(**found.setting, named=_named(found))
    return [
        pricing.option(
            f"{name} + output noise",
            found,
            f"{todo} and add noise of standard deviation {found.noise:.2g} to "
            f"{_answered(pricing.model)}",
            together,
            (f"The cheapest of {len(together)} settings, each with the least noise it needs.",),
        )
    ]


def answer_noise_options(pricing: ModelPricing) -> list[AdviceOption]:
    """The least noise on every answer; none where only labels are answered."""
    own = pricing.own
    noise = noise_for(own.laws, pricing.target.measured, pricing.target.value)
    if not noise:
        return []

    def at(amount: float) -> PricedModel:
        return pricing.at({}, own.model, own.laws, pricing.held, amount)

    return [
        pricing.option(
            "output noise",
            at(noise),
            f"Add fresh normal noise of standard deviation {noise:.2g} to {_answered(own.model)}",
            [at(share * noise) for share in SHARES],
            ("An attacker who may ask m times averages the noise down to a variance of 1/m.",),
        )
    ]


def _answered(model: OwnModel) -> str:
    """What the noise is added to."""
    if model.task != "classification":
        return "every log-prediction" if model.loss == "poisson" else "every prediction"
    return "every score" if model.loss == "square" else "every log-odds that is answered"


def penalty_options(pricing: ModelPricing) -> list[AdviceOption]:
    """The least penalty that meets the target, and the cheapest pair with noise on the answers."""
    model, target = pricing.model, pricing.target
    named = fitted.penalty_of(model.estimator)
    if named is None:
        return []
    knob, own = named
    inverse = knob == "C"
    seen: dict[float, PricedModel] = {}
    together: list[PricedModel] = []

    def at(level: float) -> PricedModel | None:
        if level not in seen:
            try:
                changed = model.changed(penalty=level)
                laws = changed.laws()
            except InputError:
                return None  # not settled, or at the edge of float64
            held = changed.held_out(pricing.folds)
            seen[level] = pricing.at({knob: level}, changed, laws, held)
            together.extend(pricing.with_noise(seen[level], held))
        return seen[level]

    def met(level: float) -> bool:
        found = at(level)
        return found is not None and found.trusted and target.met(found.worst)

    start = own if 0.0 < own < np.inf else _first_level(model, inverse=inverse)
    factor = 10.0 ** (-1.0 / PER_DECADE if inverse else 1.0 / PER_DECADE)
    levels = [
        _digits(start * factor**step, up=not inverse) for step in range(1, PER_DECADE * DECADES + 1)
    ]
    first = next((place for place, level in enumerate(levels) if met(level)), None)
    if not seen:
        return []
    if first is None:
        best = min(seen.values(), key=lambda priced: (not priced.trusted, priced.worst))
        rises = False
    else:
        low, high = (start if first == 0 else levels[first - 1]), levels[first]
        for _ in range(6 if pricing.steps > 20 else 2):
            middle = _digits(float(np.sqrt(low * high)), up=not inverse)
            if middle in (low, high):
                break
            low, high = (low, middle) if met(middle) else (middle, high)
        best = seen[high]
        # A decade beyond: more penalty need not expose less.
        rises = not all(met(level) for level in levels[first + 1 : first + 1 + PER_DECADE])
    curve = [seen[level] for level in sorted(seen, reverse=inverse)]
    kind = type(model.estimator).__name__
    other = type(best.model.estimator).__name__
    instead = (
        f"instead of {own:.4g}" if other == kind and 0.0 < own < np.inf else f"instead of {kind}"
    )
    words = f"Set {knob}={best.setting[knob]:.4g} {instead}"
    if other != kind:
        words = f"Fit {other}({knob}={best.setting[knob]:.4g}) {instead}"
    notes = (
        f"Found by fitting and auditing again at {len(seen)} levels of {knob}.",
        *(["Further on, more penalty exceeds the target again."] if rises else []),
    )
    name = f"penalty ({knob})"
    together.sort(key=lambda priced: priced.setting[knob], reverse=inverse)
    return [
        pricing.option(name, best, words, curve, notes),
        *_pair(pricing, name, together, f"Set {knob}={{{knob}:.4g}}"),
    ]


def _first_level(model: OwnModel, *, inverse: bool) -> float:
    """Where to begin with a model that has no penalty."""
    size = FIRST_SHARE * float(np.sum(model.design**2)) / model.design.shape[1]
    size = size if size > 0.0 else 1.0
    return 1.0 / size if inverse else size


def _digits(value: float, *, up: bool) -> float:
    """Two digits, towards more penalty."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1.0)
    whole = np.ceil(value / unit - 1e-9) if up else np.floor(value / unit + 1e-9)
    return float(f"{whole * unit:.2g}")


def fewer_features_options(pricing: ModelPricing) -> list[AdviceOption]:
    """The largest number of features, those with the largest coefficients first."""
    model, target = pricing.model, pricing.target
    order = _by_importance(model)
    if order is None or len(order) < 2:
        return []
    total = len(order)
    seen: dict[int, PricedModel] = {}
    together: list[PricedModel] = []

    def met(count: int) -> bool:
        if count not in seen:
            columns = np.sort(order[:count])
            try:
                changed = model.changed(columns=columns)
                laws = changed.laws()
            except InputError:
                return False
            held = changed.held_out(pricing.folds)
            seen[count] = pricing.at(
                {"features": float(count)}, changed, laws, held, features=changed.features
            )
            together.extend(pricing.with_noise(seen[count], held))
        return seen[count].trusted and target.met(seen[count].worst)

    tried = np.unique(np.geomspace(1, total - 1, min(total - 1, pricing.steps, 12)).round())
    largest = max((int(count) for count in tried if met(int(count))), default=None)
    if not seen:
        return []
    if largest is not None:
        above = min((count for count in seen if count > largest), default=largest + 1)
        while above - largest > 1:
            middle = (largest + above) // 2
            largest, above = (middle, above) if met(middle) else (largest, middle)
        best = seen[largest]
    else:
        best = min(seen.values(), key=lambda priced: (not priced.trusted, priced.worst))
    curve = [seen[count] for count in sorted(seen)]
    fixed = "The features with the largest coefficients on all records are kept."
    name, words = "fewer features", f"Fit on {{named}} of {total} features"
    return [
        pricing.option(name, best, words.format(named=_named(best)), curve, (fixed,)),
        *_pair(pricing, name, together, words),
    ]


def _named(found: PricedModel, most: int = 8) -> str:
    kept = list(found.features)
    more = f" and {len(kept) - most} more" if len(kept) > most else ""
    return f"{len(kept)} ({', '.join(kept[:most])}{more})"


def _by_importance(model: OwnModel) -> NDArray[np.intp] | None:
    """Columns by the size of what they add to a score, largest first; None without coefficients."""
    coefficients = getattr(model.estimator, "coef_", None)
    if coefficients is None:
        return None
    size = np.linalg.norm(np.atleast_2d(np.asarray(coefficients, dtype=np.float64)), axis=0)
    return np.argsort(-size * model.design.std(axis=0), kind="stable")


def dropping_options(pricing: ModelPricing, most: float) -> list[AdviceOption]:
    """Dropping the most exposed, audited again after each batch; the cheapest pair with noise."""
    model, target = pricing.model, pricing.target
    share = SHARE if model.loss != "softmax" else SHARE_SEVERAL_OUTPUTS
    batch = max(1, model.records // share, int(most * model.records / pricing.steps))
    fits: dict[int, OwnModel] = {model.records: model}

    def without(
        gone: NDArray[np.intp], alive: NDArray[np.bool_]
    ) -> tuple[FloatArray, fitted.FittedLaws]:
        changed = model.changed(rows=np.flatnonzero(alive))
        laws = changed.laws()
        fits[changed.records] = changed
        return measured(laws), laws

    def measured(laws: fitted.FittedLaws) -> FloatArray:
        # A record whose law is not trusted is not known to meet any target: it goes first.
        return np.where(laws.trusted, target.measured(laws.law_pair()), np.inf)

    first = measured(pricing.own.laws), pricing.own.laws
    path = dropped_until(first, without, target, most=most, batch=batch)
    places = np.linspace(0, len(path.steps) - 1, pricing.points).round().astype(int).tolist()
    along = {path.steps[place].dropped: path.steps[place] for place in places}
    alone: dict[int, PricedModel] = {}
    together: list[PricedModel] = []
    for count, step in sorted({**along, path.best.dropped: path.best}.items()):
        gone = path.order[:count]
        kept = np.setdiff1d(np.arange(model.records), gone)
        try:
            held = pricing.held if not count else model.held_out(pricing.folds, kept)
        except InputError:
            continue  # a fold has lost a class, and no price
        alone[count] = pricing.at(
            {"dropped": float(count)},
            fits[len(kept)],
            step.laws,
            held,
            dropped=[pricing.names[int(row)] for row in gone],
        )
        if count:
            together += pricing.with_noise(alone[count], held)
    words = f"Drop {{dropped:.0f}} of {model.records} records"
    best = alone.get(path.best.dropped) or min(alone.values(), key=lambda priced: priced.worst)
    notes = drop_notes("record", model.records, target, path, most)
    return [
        pricing.option("dropping", best, words.format(**best.setting), [*alone.values()], notes),
        *_pair(pricing, "dropping", together, words),
    ]
