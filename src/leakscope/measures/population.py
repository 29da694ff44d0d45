"""Measures of a population of records: one threshold on the likelihood ratio for all of them.

The attacker knows x0, and so which pair of laws applies; what he sees is (x0, yhat0).  His
likelihood ratio is that of the record's own pair, and his best test compares it with one threshold
for all: the mean of the records' TPRs at a fixed FPR is a different, worse test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Discrete, Normal, NormalMixture, ScalarLaw
from leakscope.laws.pair import LawPair
from leakscope.measures.atoms import Atoms
from leakscope.measures.densities import DensityAtoms
from leakscope.measures.engines import as_normal, ratio_of
from leakscope.measures.normals import NormalRatio
from leakscope.measures.pair_measures import (
    as_fractions,
    is_empirical,
    table_measures,
)
from leakscope.settings.measure import MEASURE_DEFAULTS

# Ends of cells of all members together, and of one member at least and at most.
_ENDS, _FEWEST_ENDS, _MOST_ENDS = 200_000, 60, 3000


@dataclass(frozen=True)
class PopulationMeasures:
    """What an attacker gets from a population of records."""

    advantage: float
    kl: float
    kl_reverse: float
    auc: float
    tpr_at_fpr: dict[float, float]


def population_measures(
    pair: LawPair,
    weights: npt.ArrayLike | None = None,
    *,
    fpr: Sequence[float] = MEASURE_DEFAULTS.fpr,
) -> PopulationMeasures:
    """All measures of (record, observation) over the batch of ``pair``, laws on the line.

    ``weights`` are the records' shares, equal where left out.  Advantage and KL are means of those
    of the records; the AUC, and the TPR where laws are not normal, are those of all their atoms.

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
    levels = as_fractions(fpr, "fpr")[0]
    share = _shares(pair, weights)
    pair = _gathered_pair(pair.reshape(share.size))
    means = table_measures(pair, ())[0]
    advantage, kl, kl_reverse = (
        float(share @ means[name]) for name in ("advantage", "kl", "kl_reverse")
    )
    atoms = _atoms(pair, share)
    if isinstance(pair.member, Normal):
        tpr = [_normal_test(pair, share, level)[1] for level in levels.tolist()]
    else:
        tpr = atoms.tpr_at(levels)[0][0].tolist()
    return PopulationMeasures(
        advantage=advantage,
        kl=kl,
        kl_reverse=kl_reverse,
        auc=float(atoms.auc()[0]),
        tpr_at_fpr=dict(zip(levels.tolist(), tpr, strict=True)),
    )


def population_threshold(pair: LawPair, fpr: float) -> float:
    """The log likelihood ratio that a share ``fpr`` of nonmembers exceeds, over a batch.

    It is one threshold for all records, as in `population_measures`.
    """
    as_fractions(fpr, "fpr")
    share = _shares(pair, None)
    pair = _gathered_pair(pair.reshape(share.size))
    if isinstance(pair.member, Normal):
        return _normal_test(pair, share, fpr)[0]
    atoms = _atoms(pair, share)
    mass = atoms.nonmember[0]
    # half of an atom lies beyond its loss
    return float(np.interp(fpr, np.cumsum(mass) - 0.5 * mass, atoms.loss[0]))


def _normal_test(pair: LawPair, share: FloatArray, fpr: float) -> tuple[float, float]:
    """Threshold and TPR of the best test of this size of a flat batch of normals."""
    ratio = cast(NormalRatio, ratio_of(pair))
    if fpr in (0.0, 1.0) or not ratio.advantage().any():
        return (np.inf if fpr == 0.0 else -np.inf if fpr == 1.0 else 0.0), fpr

    def rates(threshold: float) -> tuple[float, float]:
        found = ratio.rates(np.full(ratio.size, threshold))
        return float(share @ np.exp(found.log_tpr)), float(share @ np.exp(found.log_fpr))

    reach = 1.0
    while rates(reach)[1] > fpr or rates(-reach)[1] < fpr:
        reach *= 2.0
    threshold = float(
        optimize.brentq(lambda t: rates(t)[1] - fpr, -reach, reach, xtol=1e-14, rtol=1e-14)
    )
    # next to a jump, along the ROC's tangent
    tpr, passed = rates(threshold)
    return threshold, min(tpr + (fpr - passed) * np.exp(threshold), 1.0)


def _atoms(pair: LawPair, share: FloatArray) -> Atoms:
    """The atoms of all pairs of a batch, with their shares, as one pair's."""
    kept = np.flatnonzero(share > 0.0)
    flat = pair.reshape(share.size).take(kept)
    member, nonmember = flat.member, flat.nonmember
    if isinstance(member, Discrete) and isinstance(nonmember, Discrete):
        atoms = Atoms.of_values(member, nonmember)
    elif isinstance(member, ScalarLaw) and isinstance(nonmember, ScalarLaw):
        ends = min(max(_ENDS // kept.size, _FEWEST_ENDS), _MOST_ENDS)
        atoms = DensityAtoms.of_laws(member, nonmember, ends=ends)
    else:
        raise InputError("Population measures are for laws on the real line that are known.")
    log_share = np.log(share[kept])[:, None]
    return Atoms.of(
        (atoms.log_member + log_share).reshape(1, -1),
        (atoms.log_nonmember + log_share).reshape(1, -1),
    )


def _gathered_pair(pair: LawPair) -> LawPair:
    member, nonmember = (
        gathered(law) if isinstance(law, NormalMixture) else law
        for law in (pair.member, pair.nonmember)
    )
    return LawPair(as_normal(member), as_normal(nonmember), pair.provenance)


def _shares(pair: LawPair, weights: npt.ArrayLike | None) -> FloatArray:
    if is_empirical(pair):
        raise InputError("Population measures are for laws that are known, not for samples.")
    batch = int(np.prod(pair.batch_shape, dtype=int))
    share = np.ones(batch) if weights is None else np.ravel(np.asarray(weights, dtype=np.float64))
    if share.size != batch or batch == 0:
        raise InputError(f"Weights must be one for each pair: {batch}, not {share.size}.")
    if not (np.all(share >= 0.0) and np.isfinite(share).all() and share.sum() > 0.0):
        raise InputError("Weights must be finite, zero or above, and not all zero.")
    return np.asarray(share / share.sum())


# Groups of components of one centre, evenly spaced in the log-odds of their rank.
_GROUPS = 150


def gathered(law: NormalMixture) -> NormalMixture:
    """A mixture of thousands of normals of one centre as one of some, group by group of like width.

    A group has the mean variance of its components; the narrowest and the widest are alone, so that
    tails keep theirs.  A flat batch; as it is where centres differ or components are few.
    """
    count = law.components
    if count <= _GROUPS or np.any(law.means != law.means[..., :1]):
        return law
    order = np.argsort(law.sigmas, axis=-1)
    sigma, weight = (np.take_along_axis(a, order, axis=-1) for a in (law.sigmas, law.weights))
    odds = np.linspace(-np.log(count), np.log(count), _GROUPS)
    first = np.unique(np.append(0, (count * special.expit(odds)).astype(np.intp)))
    share = np.add.reduceat(weight, first, axis=-1)
    total = np.add.reduceat(weight * sigma**2, first, axis=-1)
    variance = np.divide(total, share, out=sigma[:, first] ** 2, where=share > 0.0)
    return NormalMixture(share, law.means[..., :1], np.sqrt(variance))
