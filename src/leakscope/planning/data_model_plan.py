"""A plan in the paper's other worlds: a latent space, a Fourier series, random ReLU features."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from leakscope import __version__, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.distributions import NormalMixture
from leakscope.laws.pair import LawPair
from leakscope.linear.data_models import (
    Convention,
    DataModel,
    DrawnDesigns,
    FourierSeries,
    LatentSpace,
    Query,
    RandomRelu,
    design_moments,
    design_provenance,
)
from leakscope.linear.design import OutputNoise
from leakscope.measures.drawn import ScoredAdvantage
from leakscope.planning.linear_advantages import drawn_advantage
from leakscope.planning.linear_plan import (
    KNOB_RANGES,
    CurveName,
    check_target,
    least_root,
    require_knob,
    target_met,
)
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LinearCurve, LinearPlan, LinearTarget
from leakscope.settings.plan import LinearAttacker, LinearMethod, LinearModel

# Designs drawn for each record.
DESIGNS = 200


def data_model(
    name: LinearModel,
    *,
    n: int,
    p: int,
    dim: int,
    sigma: float,
    convention: Convention,
) -> DataModel:
    """The paper's world of this name; ``dim`` is its latent features, its times, or D.

    Examples
    --------
    >>> from leakscope.planning.data_model_plan import data_model
    >>> data_model("latent", n=20, p=12, dim=4, sigma=1.0, convention="text")
    LatentSpace(n=20, p=12, latent=4, sigma=1.0, convention='text')
    """
    if name == "latent":
        if n < 2 or p < 1 or dim < 1:
            raise InputError("a latent space needs n of 2 or more, p and dim of 1 or more.")
        return LatentSpace(n, p, dim, sigma, convention)
    if name == "fourier":
        return FourierSeries(n, p, dim, convention)
    if name == "relu":
        return RandomRelu(n, p, dim, sigma, convention)
    raise InputError(f"there is no data model {name!r}; there are latent, fourier and relu.")


@dataclass(frozen=True)
class _World:
    """Records of a data model, each with the designs that were drawn for it."""

    model: DataModel
    records: int
    designs: int
    key: Key

    @cached_property
    def drawn(self) -> list[tuple[Query, DrawnDesigns]]:
        """A record is the same for every p and noise: it follows from its number."""
        found = []
        for record in range(self.records):
            query = self.model.query(self.key.child(record, 0))
            child = self.key.child(record, 1)
            found.append(
                (query, design_moments(self.model, query, designs=self.designs, random_state=child))
            )
        return found

    def advantage(self, attacker: LinearAttacker, noise: OutputNoise | None) -> ScoredAdvantage:
        """Averaged over the records; the standard error is theirs and has the designs' in it."""
        return _mean(
            [
                drawn_advantage(
                    self.model, query, one, attacker=attacker, noise=noise, designs=self.designs
                ).value
                for query, one in self.drawn
            ]
        )

    def error(self, noise: OutputNoise | None) -> ScoredAdvantage:
        """E (y0 - yhat0)^2 at a fresh record; a settled design predicts the label itself."""
        each = []
        for query, ((_, fresh), settled) in self.drawn:
            off = self.model.label_variance(query) + fresh[0] - 2.0 * fresh[1]
            each.append((1.0 - settled) * float(off.mean()))
        found = _mean(each)
        return replace(found, value=found.value + (0.0 if noise is None else noise.sigma**2))

    def sigma(self, side: int, noise: OutputNoise | None) -> tuple[float, float]:
        """Root mean square of the prediction (0: member's), and its standard error."""
        each = []
        for query, (sides, settled) in self.drawn:
            share = settled if side else 0.0
            drawn = float(sides[side][0].mean())
            each.append(share * self.model.label_variance(query) + (1.0 - share) * drawn)
        found = _mean(each)
        value = math.sqrt(found.value + (0.0 if noise is None else noise.variances()[side]))
        return value, found.stderr / (2.0 * value or 1.0)

    def pair(self, noise: OutputNoise | None) -> LawPair:
        """Both laws of the prediction, one row for each record."""
        extra = (0.0, 0.0) if noise is None else noise.variances()
        laws = []
        for side in (0, 1):
            rows = [self._row(query, one, side, extra[side]) for query, one in self.drawn]
            width = max(sigmas.size for sigmas, _ in rows)
            # an undrawn component first, of no weight where nothing is settled
            sigmas = np.stack([np.pad(s, (0, width - s.size), mode="edge") for s, _ in rows])
            weights = np.stack([np.pad(w, (0, width - w.size)) for _, w in rows])
            laws.append(NormalMixture(weights, np.zeros_like(sigmas), sigmas))
        told = design_provenance(self.model, "label_hidden", noise, self.designs)
        return LawPair(laws[0], laws[1], told)

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


def plan_data_model(
    model: DataModel,
    *,
    records: int,
    method: LinearMethod,
    noise: OutputNoise | None,
    fpr: Sequence[float],
    draws: int | None,
    target_advantage: float | None,
    attacker: LinearAttacker,
    knob: CurveName | None,
    settings: tuple[float, ...] | None,
    random_state: int | np.random.Generator | Key | None,
) -> LinearPlan:
    """`leakscope.plan_linear` of a data model: means over drawn records, each with its designs."""
    start = time.perf_counter()
    if method == "asymptotic":
        raise InputError("only the Gaussian design has an asymptotic law; leave method out.")
    if records < 2:
        raise InputError(f"records must be 2 or more for a standard error, but it is {records}.")
    count = DESIGNS if draws is None else draws
    if count < 8:
        raise InputError(f"At least 8 designs are needed for a standard error, not {count}.")
    require_reachable({"target_advantage": target_advantage, "records": records, "draws": count})
    world = _World(model, records, count, as_key(random_state))
    hidden, known = (world.advantage(who, noise) for who in ("label_hidden", "label_known"))
    error, pair = world.error(noise), world.pair(noise)
    found = measures.population_measures(pair, fpr=fpr)
    sigma = [world.sigma(side, noise) for side in (0, 1)]
    told = pair.provenance.to_dict()
    noised = OutputNoise(0.0) if noise is None else noise
    along = [_along(world, name, settings, noised) for name in _names(knob, noised)]
    return LinearPlan(
        leakscope_version=__version__,
        settings={
            "model": _NAMES[type(model)],
            **asdict(cast(Any, model)),
            "records": records,
            "designs": count,
            "noise": asdict(noised),
            "seed": random_state if isinstance(random_state, int) else None,
        },
        timing={"plan": time.perf_counter() - start},
        warnings=[],
        method="simulated",
        assumptions=told.pop("assumptions"),
        provenance=told,
        advantage=hidden.value,
        advantage_stderr=hidden.stderr,
        advantage_label_known=known.value,
        advantage_label_known_stderr=known.stderr,
        kl=found.kl,
        kl_reverse=found.kl_reverse,
        auc=found.auc,
        tpr_at_fpr={f"{level:g}": value for level, value in found.tpr_at_fpr.items()},
        generalization_error=error.value,
        generalization_error_stderr=error.stderr,
        sigma_member=sigma[0][0],
        sigma_nonmember=sigma[1][0],
        sigma_member_stderr=sigma[0][1],
        sigma_nonmember_stderr=sigma[1][1],
        targets=()
        if target_advantage is None
        else (_least_noise(world, target_advantage, attacker, noised),),
        curve=None if knob in (None, "all") else along[0],
        curves=tuple(along) if knob == "all" else (),
    )


_NAMES: dict[type[DataModel], str] = {
    LatentSpace: "latent",
    FourierSeries: "fourier",
    RandomRelu: "relu",
}


def _least_noise(
    world: _World, target: float, attacker: LinearAttacker, noise: OutputNoise
) -> LinearTarget:
    """The least noise on every answer that meets the target, on the designs of the plan."""
    check_target(target)

    def noise_of(sigma: float) -> OutputNoise | None:
        return replace(noise, sigma=sigma) if sigma > 0.0 else None

    sigma = least_root(lambda sigma: world.advantage(attacker, noise_of(sigma)).value - target)
    found, error = world.advantage(attacker, noise_of(sigma)), world.error(noise_of(sigma)).value
    return target_met("noise on every answer", target, attacker, sigma, found, error)


def _names(knob: CurveName | None, noise: OutputNoise) -> tuple[str, ...]:
    if knob is None:
        return ()
    if knob == "all":
        many = noise.sigma > 0.0 and not noise.memoised
        return ("p", "noise", "answers") if many else ("p", "noise")
    if knob == "ridge":
        raise InputError("the other data models are least squares; a curve over ridge has none.")
    return (knob,)


def _along(
    world: _World, name: str, settings: tuple[float, ...] | None, noise: OutputNoise
) -> LinearCurve:
    """Leakage and error over a knob; noise and answers are turned on the plan's own designs."""
    require_knob(name, settings, noise)
    own = _features(world.model) if name == "p" else KNOB_RANGES[name]
    rows, chosen = [], settings or own
    for setting in chosen:
        at, told = world, noise
        if name == "p":
            at = replace(world, model=replace(cast(Any, world.model), p=int(setting)))
        elif name == "answers":
            told = replace(noise, answers=int(setting))
        elif name == "noise_nonmembers":
            told = OutputNoise(setting, to="nonmembers")
        else:
            told = replace(noise, sigma=setting)
        added = told if told.sigma > 0.0 else None
        both = [at.advantage(who, added).value for who in ("label_hidden", "label_known")]
        rows.append([*both, at.error(added).value])
    columns = np.array(rows).T.tolist()
    return LinearCurve(
        knob="features" if name == "p" else name,
        method="simulated",
        settings=[float(setting) for setting in chosen],
        advantage=columns[0],
        advantage_label_known=columns[1],
        generalization_error=columns[2],
    )


def _features(model: DataModel) -> tuple[float, ...]:
    """Numbers of features on both sides of n."""
    n = int(cast(Any, model).n)
    most = model.times if isinstance(model, FourierSeries) else math.inf
    sizes = {round(n * share) for share in (0.25, 0.5, 0.8, 1.25, 2, 3, 5)}
    return tuple(float(p) for p in sorted(sizes) if 1 <= p <= most)
