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
from leakscope.linear.law_pair import label_nodes
from leakscope.linear.moments import Moments, moments
from leakscope.measures.believed_normals import BelievedMeasures, believed_measures
from leakscope.planning.reachable import require_reachable
from leakscope.results.plan import LinearRival
from leakscope.settings.plan import LinearAttacker, LinearMethod

# Beliefs are drawn in groups, which standard errors are over.
_GROUPS, _BELIEFS = 16, 128

_MOST_MODELS = 10_000

# Labels, in standard deviations, on one side of zero.
_LABELS = 10

# Predictions of shadow models that are held at once.
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class _Spread:
    """Predictions of one side: N(mean, sigma^2) for J records and K designs; K = 1 in the limit."""

    mean: FloatArray
    sigma: FloatArray

    def total(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation over designs too, (J, 1)."""
        mean = self.mean.mean(axis=1, keepdims=True)
        variance = (self.sigma**2 + (self.mean - mean) ** 2).mean(axis=1, keepdims=True)
        return mean, np.sqrt(variance)

    def target(self, generator: np.random.Generator) -> Normal:
        """The law that each belief meets, (J, R): of one design each."""
        count = _GROUPS * _BELIEFS
        at = generator.integers(self.sigma.shape[1], size=count)
        return Normal(self.mean[:, at], self.sigma[:, at])

    def seen(self, models: int, key: Key) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of what ``models`` shadow models predict, (J, R)."""
        generator, count = key.generator(), _GROUPS * _BELIEFS
        records, designs = self.sigma.shape
        block = max(1, _BLOCK // (records * models))
        found = []
        for start in range(0, count, block):
            size = min(block, count - start)
            at = generator.integers(designs, size=(size, models))
            drawn = generator.standard_normal((size, models))
            seen = self.mean[:, at] + self.sigma[:, at] * drawn
            found.append((seen.mean(axis=2), seen.std(axis=2, ddof=1)))
        mean, sigma = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        return mean, sigma


def _estimated(
    truth: Sequence[_Spread], models: int, key: Key
) -> list[tuple[FloatArray, FloatArray]]:
    """What the attacker believes of both sides after ``models`` shadow models of each, (J, R)."""
    if any(side.sigma.shape[1] > 1 for side in truth):
        return [side.seen(models, key.child(s)) for s, side in enumerate(truth)]
    points = np.concatenate(
        [
            qmc.Sobol(4, seed=key.child(group).generator()).random(_BELIEFS)
            for group in range(_GROUPS)
        ]
    )
    points = np.clip(points, 1e-12, 1.0 - 1e-12)
    found = []
    for side, (first, second) in zip(truth, (points[:, :2].T, points[:, 2:].T), strict=True):
        shift = special.ndtri(first) / np.sqrt(models)
        scale = np.sqrt(2.0 * special.gammaincinv(0.5 * (models - 1), second) / (models - 1))
        found.append((side.mean + side.sigma * shift, side.sigma * scale))
    return found


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
    labels, share = _labels(who, sides[0].label, weight)
    extra = (0.0, 0.0) if noise is None else noise.variances()
    truth = [_spread(s, labels, more) for s, more in zip(sides, extra, strict=True)]
    chosen = key.child(0).generator()
    pair = LawPair(truth[0].target(chosen), truth[1].target(chosen))
    everywhere = pair.batch_shape

    def rival(name: str, count: int | None, belief: list[tuple[FloatArray, FloatArray]]) -> None:
        laws = [Normal(*(np.broadcast_to(part, everywhere) for part in one)) for one in belief]
        scored = believed_measures(pair, LawPair(laws[0], laws[1]), share, fpr=fpr, groups=_GROUPS)
        found.append(_row(name, who, count, scored))

    found: list[LinearRival] = []
    rival("laws known", None, [side.total() for side in truth])
    pooled = [np.sqrt(share @ (side.total()[1] ** 2)) for side in truth]
    for count in models:
        seen = _estimated(truth, count // 2, key.child(1))
        rival("LiRA", count, seen)
        rival("LiRA, one variance", count, [(m, s) for (m, _), s in zip(seen, pooled, strict=True)])
    if wrong is not None:
        believed = [_spread(s, labels, more) for s, more in zip(wrong, extra, strict=True)]
        rival(f"laws known, sigma taken for {sigma:g}", None, [side.total() for side in believed])
    # Narrow against wide is a threshold on the distance: members are near, or far.
    centre = np.zeros_like(labels) if who == "label_hidden" else labels
    near = truth[0].total()[1].mean() <= truth[1].total()[1].mean() or who == "label_known"
    narrow, wide = (centre, np.ones_like(centre)), (centre, np.full_like(centre, 2.0))
    told = "one threshold on the loss" if who == "label_known" else "one threshold on |prediction|"
    rival(told, None, [narrow, wide] if near else [wide, narrow])
    return found


def _labels(
    who: LinearAttacker, variance: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The labels of J L records, a column, and their weights; zero where he does not see them."""
    if who == "label_hidden":
        return np.zeros_like(variance), weight
    scores, shares = label_nodes(_LABELS)
    labels = scores[None, :] * np.sqrt(variance)
    return labels.reshape(-1, 1), np.outer(weight, shares).ravel()


def _spread(side: Moments, labels: FloatArray, noise: float) -> _Spread:
    """Of the predictions given what the attacker sees of the record."""
    if labels.shape[0] == side.prediction.shape[0] and not labels.any():
        return _Spread(np.zeros_like(side.prediction), np.sqrt(side.prediction + noise))
    slope, variance = side.given_label()
    times = labels.shape[0] // slope.shape[0]
    mean = np.repeat(slope, times, axis=0) * labels
    return _Spread(mean, np.repeat(np.sqrt(variance + noise), times, axis=0))


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
