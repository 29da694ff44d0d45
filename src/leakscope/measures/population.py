"""Measures of a population of records: one threshold on the likelihood ratio for all of them.

The attacker knows x0, and so which pair of laws applies; what he sees is (x0, yhat0).  His best
test compares the likelihood ratio at that x0 with one threshold for all: the mean of the records'
TPRs at a fixed FPR is a different, worse test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope.errors import InputError
from leakscope.laws import LawPair, Normal, NormalMixture
from leakscope.settings import MEASURE_DEFAULTS

_STEPS = np.concatenate([np.linspace(0.0, 4.0, 17), 4.0 * 1.12 ** np.arange(1, 13)])
_BINS = 160


@dataclass(frozen=True)
class PopulationMeasures:
    """What an attacker gets from a population of records, by quadrature.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import population_measures
    >>> found = population_measures(LawPair(Normal([0.0], 1.4), Normal([0.0], 0.7)), fpr=(0.001,))
    >>> round(found.advantage, 4), round(found.auc, 4), round(found.tpr_at_fpr[0.001], 4)
    (0.3226, 0.7048, 0.0999)
    """

    advantage: float
    kl: float
    kl_reverse: float
    auc: float
    tpr_at_fpr: dict[float, float]


def population_measures(
    pair: LawPair,
    weights: FloatArray | None = None,
    *,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
) -> PopulationMeasures:
    """All measures of (record, prediction) over the batch of ``pair``, laws centred at zero.

    Components beyond 160 are gathered on a grid of variances that keeps their mean exactly;
    values are good to about 1e-4.

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope.measures import population_measures
    >>> design = linear.GaussianDesign(100, 400, 3000, 1.0)
    >>> norms = linear.RecordNorms.nodes(design)
    >>> pair = linear.law_pair(design, norms, method="asymptotic")
    >>> round(population_measures(pair, norms.weight).auc, 4)
    0.6693
    """
    batch = int(np.prod(pair.batch_shape, dtype=int))
    flat = pair.reshape(batch)
    share = np.full(batch, 1.0 / batch) if weights is None else np.ravel(weights)
    up, down, ratio = [], [], []
    for row in range(batch):
        laws = [_centred(law, row) for law in (flat.member, flat.nonmember)]
        x, weight = _nodes(laws)
        logs = [_log_density(law, x) for law in laws]
        mass = [weight * np.exp(value) for value in logs]
        up.append(share[row] * mass[0] / mass[0].sum())
        down.append(share[row] * mass[1] / mass[1].sum())
        ratio.append(logs[0] - logs[1])
    member, nonmember, llr = (np.concatenate(part) for part in (up, down, ratio))
    order = np.argsort(-llr, kind="stable")
    tpr = np.concatenate([[0.0], np.cumsum(member[order])])
    false = np.concatenate([[0.0], np.cumsum(nonmember[order])])
    return PopulationMeasures(
        advantage=float(np.maximum(member - nonmember, 0.0).sum()),
        kl=float(-(nonmember * llr).sum()),
        kl_reverse=float((member * llr).sum()),
        auc=float((0.5 * (tpr[1:] + tpr[:-1]) * np.diff(false)).sum()),
        tpr_at_fpr={float(level): float(np.interp(level, false, tpr)) for level in fpr},
    )


def _centred(law: object, row: int) -> tuple[FloatArray, FloatArray]:
    """Sigmas and weights of one law, gathered where there are many components."""
    if isinstance(law, Normal) and law.mean[row] == 0.0:
        return law.sigma[row : row + 1], np.ones(1)
    if not isinstance(law, NormalMixture) or np.any(law.means[row] != 0.0):
        raise InputError("Population measures are for laws centred at zero.")
    sigmas, weights = law.sigmas[row], law.weights[row]
    if sigmas.max() <= sigmas.min() * (1.0 + 1e-9):
        return sigmas[:1], np.ones(1)
    if sigmas.size <= _BINS:
        return sigmas, weights
    variance = sigmas**2
    grid = np.geomspace(variance.min(), variance.max(), _BINS)
    cell = np.clip(np.searchsorted(grid, variance, side="right") - 1, 0, _BINS - 2)
    upper = np.clip((variance - grid[cell]) / (grid[cell + 1] - grid[cell]), 0.0, 1.0)
    gathered = np.bincount(cell, weights * (1.0 - upper), _BINS)
    gathered += np.bincount(cell + 1, weights * upper, _BINS)
    kept = gathered > 0.0
    return np.sqrt(grid[kept]), np.asarray(gathered[kept], dtype=np.float64)


def _nodes(laws: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes on the half line, resolving the narrowest and the widest component."""
    sigmas = np.concatenate([sigma for sigma, _ in laws])
    spread = np.unique(np.geomspace(sigmas.min(), sigmas.max(), 6))
    breaks = np.unique((spread[:, None] * _STEPS).ravel())
    wide = np.concatenate([[True], np.diff(breaks) > 1e-9 * breaks[1:]])
    return panels(breaks[wide], 4)


def _log_density(law: tuple[FloatArray, FloatArray], x: FloatArray) -> FloatArray:
    sigma, weight = law
    terms = -0.5 * (x[:, None] / sigma) ** 2
    peak = terms.max(axis=-1)
    total = (np.exp(terms - peak[:, None]) * (weight / sigma)).sum(axis=-1)
    return np.asarray(peak + np.log(total) - 0.5 * np.log(0.5 * np.pi))
