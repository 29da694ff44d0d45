"""What a real attacker loses against a planned linear model: k shadow models, a wrong sigma, one
threshold for all.

The best attacker knows the two laws of a prediction at a record (Prop. 3.1 of **linear**).  A real
one trains k shadow models, half of them with the record and half without, and takes normals with
the means and variances of what they predict there (LiRA, Carlini et al. 2022).  With h = k/2 each,
and laws N(m1, v1) and N(m0, v0) in the limit, his beliefs are

    m1_hat ~ N(m1, v1/h),  s1_hat^2 ~ v1 chi2(h - 1)/(h - 1),  and the same with 0,

four independent numbers, over which the closed TPR and FPR of his test are averaged
(:mod:`leakscope.measures.believed_normals`) by scrambled Sobol points.  At finite n the shadow
models are drawn: each has a design of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from scipy.stats import qmc

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.linear.design import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.moments import Moments, moments
from leakscope.measures.believed_normals import BelievedMeasures, believed_measures
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LinearRival
from leakscope.settings.plan import LinearAttacker, LinearMethod

# Beliefs are drawn in groups, which standard errors are over.
_GROUPS, _BELIEFS = 16, 512

_MOST_MODELS = 10_000

# Predictions of shadow models that are held at once.
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class _Spread:
    """Predictions of one side, N(slope y0, sigma^2): J records, K designs; K = 1 in the limit."""

    slope: FloatArray
    sigma: FloatArray

    def total(self, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation over designs too, at labels (J, R)."""
        slope = self.slope.mean(axis=1, keepdims=True)
        within = (self.sigma**2).mean(axis=1, keepdims=True)
        between = self.slope.var(axis=1, keepdims=True)
        return slope * labels, np.sqrt(within + between * labels**2)

    def target(self, labels: FloatArray, generator: np.random.Generator) -> Normal:
        """The law that each belief meets, (J, R): of one design each."""
        at = generator.integers(self.sigma.shape[1], size=labels.shape[1])
        return Normal(self.slope[:, at] * labels, self.sigma[:, at])

    def seen(self, models: int, labels: FloatArray, key: Key) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of what ``models`` shadow models predict, (J, R)."""
        generator = key.generator()
        records, designs = self.sigma.shape
        block = max(1, _BLOCK // (records * models))
        found = []
        for start in range(0, labels.shape[1], block):
            label = labels[:, start : start + block, None]
            at = generator.integers(designs, size=(label.shape[1], models))
            drawn = generator.standard_normal(at.shape)
            seen = self.slope[:, at] * label + self.sigma[:, at] * drawn
            found.append((seen.mean(axis=2), seen.std(axis=2, ddof=1)))
        mean, sigma = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        return mean, sigma


def _estimated(
    truth: Sequence[_Spread], models: int, labels: FloatArray, points: FloatArray, key: Key
) -> list[tuple[FloatArray, FloatArray]]:
    """What the attacker believes of both sides after ``models`` shadow models of each, (J, R)."""
    if any(side.sigma.shape[1] > 1 for side in truth):
        return [side.seen(models, labels, key.child(s)) for s, side in enumerate(truth)]
    found = []
    for side, (first, second) in zip(truth, (points[:, :2].T, points[:, 2:4].T), strict=True):
        shift = special.ndtri(first) / np.sqrt(models)
        scale = np.sqrt(2.0 * special.gammaincinv(0.5 * (models - 1), second) / (models - 1))
        found.append((side.slope * labels + side.sigma * shift, side.sigma * scale))
    return found


def _points(key: Key) -> FloatArray:
    """(R, 5) scrambled Sobol points, group by group: four for the beliefs, one for the label."""
    groups = [
        qmc.Sobol(5, seed=key.child(group).generator()).random(_BELIEFS) for group in range(_GROUPS)
    ]
    return np.clip(np.concatenate(groups), 1e-12, 1.0 - 1e-12)


def real_attackers(
    design: GaussianDesign,
    *,
    models: Sequence[int],
    sigma: float | None = None,
    method: LinearMethod = "asymptotic",
    noise: OutputNoise | None = None,
    fpr: Sequence[float] = (0.01,),
    draws: int = 4000,
    key: Key,
) -> tuple[LinearRival, ...]:
    """What LiRA with so many ``models``, one threshold and a wrong ``sigma`` get of a design.

    Beside them stands who knows the laws, as normals: the best attacker in the limit.  First
    without the label, then with it, where the model does not repeat labels.  ``method``
    says which laws hold, as for `leakscope.linear.law_pair`; whole matrices are not drawn.
    """
    for count in models:
        if count < 4 or count % 2:
            raise InputError(
                f"shadow models come in halves, with the record and without it: an even number of "
                f"4 or more, not {count}."
            )
        if count > _MOST_MODELS:
            raise InputError(
                f"{count} shadow models are more than {_MOST_MODELS:,}, from where on the attacker "
                "loses nothing that shows."
            )
    require_reachable({"the sigma that the attacker believes": sigma})
    if sigma is not None and not (np.isfinite(sigma) and sigma >= 0.0):
        raise InputError(
            f"the sigma that the attacker believes must be zero or above, not {sigma}."
        )
    route: LinearMethod = "asymptotic" if method == "asymptotic" else "exact"
    norms = RecordNorms.nodes(design, 4, 1)
    sides = moments(design, norms, route, draws, key.child(0))
    wrong = None
    if sigma is not None:
        wrong = moments(replace(design, sigma=sigma), norms, route, draws, key.child(0))
    found: list[LinearRival] = []
    for who in ("label_hidden", "label_known"):
        if who == "label_known" and _is_certain(sides, noise):
            continue
        found += _rivals(who, sides, wrong, sigma, norms.weight, models, noise, fpr, key.child(1))
    return tuple(found)


def _is_certain(sides: tuple[Moments, Moments], noise: OutputNoise | None) -> bool:
    """Whether a prediction is one number given the label: no normal law, and none is needed."""
    extra = (0.0, 0.0) if noise is None else noise.variances()
    return any(
        bool(np.any(side.given_label()[1] + more <= 1e-12 * side.label))
        for side, more in zip(sides, extra, strict=True)
    )


def _rivals(
    who: LinearAttacker,
    sides: tuple[Moments, Moments],
    wrong: tuple[Moments, Moments] | None,
    sigma: float | None,
    weight: FloatArray,
    models: Sequence[int],
    noise: OutputNoise | None,
    fpr: Sequence[float],
    key: Key,
) -> list[LinearRival]:
    points, chosen = _points(key.child(0)), key.child(1).generator()
    # one label for each belief, of any sign: the laws are even in it
    labels = np.sqrt(sides[0].label) * special.ndtri(0.5 + 0.5 * points[:, 4])
    if who == "label_hidden":
        labels = np.zeros_like(labels)
    extra = (0.0, 0.0) if noise is None else noise.variances()
    truth = [_spread(who, s, more) for s, more in zip(sides, extra, strict=True)]
    pair = LawPair(truth[0].target(labels, chosen), truth[1].target(labels, chosen))

    def rival(name: str, count: int | None, belief: list[tuple[FloatArray, FloatArray]]) -> None:
        laws = [Normal(*(np.broadcast_to(part, labels.shape) for part in one)) for one in belief]
        scored = believed_measures(pair, LawPair(laws[0], laws[1]), weight, fpr=fpr, groups=_GROUPS)
        found.append(_row(name, who, count, scored))

    found: list[LinearRival] = []
    rival("laws known", None, [side.total(labels) for side in truth])
    pooled = [
        np.sqrt(weight @ (side.total(labels)[1] ** 2).mean(axis=1, keepdims=True)) for side in truth
    ]
    for count in models:
        seen = _estimated(truth, count // 2, labels, points, key.child(2))
        rival("LiRA", count, seen)
        rival("LiRA, one variance", count, [(m, s) for (m, _), s in zip(seen, pooled, strict=True)])
    if wrong is not None:
        believed = [_spread(who, s, more) for s, more in zip(wrong, extra, strict=True)]
        told = f"laws known, sigma taken for {sigma:g}"
        rival(told, None, [side.total(labels) for side in believed])
    # Narrow against wide is a threshold on the distance: members are near, or far.
    near = who == "label_known" or truth[0].sigma.mean() <= truth[1].sigma.mean()
    narrow, wide = (labels, np.ones_like(labels)), (labels, np.full_like(labels, 2.0))
    told = "one threshold on the loss" if who == "label_known" else "one threshold on |prediction|"
    rival(told, None, [narrow, wide] if near else [wide, narrow])
    return found


def _spread(who: LinearAttacker, side: Moments, noise: float) -> _Spread:
    """Of the predictions given what the attacker sees of the record."""
    if who == "label_hidden":
        return _Spread(np.zeros_like(side.prediction), np.sqrt(side.prediction + noise))
    slope, variance = side.given_label()
    return _Spread(slope, np.sqrt(variance + noise))


def _row(
    name: str, who: LinearAttacker, models: int | None, scored: BelievedMeasures
) -> LinearRival:
    return LinearRival(
        name=name,
        attacker=who,
        models=models,
        advantage=scored.advantage,
        advantage_stderr=scored.advantage_stderr,
        threshold=scored.threshold,
        tpr_at_fpr={f"{level:g}": value for level, value in scored.tpr_at_fpr.items()},
        tpr_stderr={f"{level:g}": value for level, value in scored.tpr_stderr.items()},
    )
