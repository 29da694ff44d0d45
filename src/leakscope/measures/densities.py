"""A density as atoms: the nodes of Gauss's rule in cells that follow both laws.

Cells end at quarters of a standard deviation of every normal piece of either law, and, of a density
that is known as a function only, at quantiles of both laws.  With six nodes a cell a divergence
keeps nine digits, and what depends on the order of single nodes, a TPR or an advantage, three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal, NormalMixture, ScalarLaw, SpikeAndSlab
from leakscope.measures.atoms import Atoms

# Ends of cells in standard deviations.  A component k of them from its mean gives way to another
# one within 1/k of one: six nodes a cell resolve that up to k = 9, beyond which 1e-19 lies.
_NEAR = np.arange(0.0, 9.01, 0.25)
STEPS = np.concatenate([_NEAR, 9.0 * 1.16 ** np.arange(1, 11)])
STEPS = np.concatenate([-STEPS[:0:-1], STEPS])
_NODES = 6
# More ends of cells are thinned to so many: two laws of five components each have fewer.
_MOST_ENDS = 1000
# Of so many of the heaviest components of a law each two may give way to each other.
_BENT = 6
# Quantiles of a law that is a function only, in log-odds, and how they are looked for.
_LOG_ODDS = np.linspace(-30.0, 30.0, 121)
_DOUBLINGS, _HALVINGS = 1000, 80
# With so much more or less mass than one the cells do not show the law.
_MISSING = 1e-3
# A log density that still moves by more beyond the last cell has no bound.
_STILL = 1e-9


@dataclass(frozen=True, eq=False)
class DensityAtoms(Atoms):
    """The atoms of B pairs of densities.

    ``outward``, (2, B, 2), is by how much the log densities of both laws rise beyond both ends.
    """

    laws: tuple[ScalarLaw, ScalarLaw]
    outward: FloatArray

    @classmethod
    def of_laws(
        cls,
        member: ScalarLaw,
        nonmember: ScalarLaw,
        *,
        ends: int | None = None,
        tilt: float | None = None,
    ) -> Self:
        """Take two flat batches, in cells as for `masses_of`."""
        laws = member, nonmember
        edges, _, sides = masses_of(laws, ends=ends, tilt=tilt)
        low, high = edges[:, :1], edges[:, -1:]
        beyond = 1.1 * low - 0.1 * high, 1.1 * high - 0.1 * low
        logs = [_log_density(law, np.concatenate([low, high, *beyond], axis=-1)) for law in laws]
        outward = [found[:, 2:] - found[:, :2] for found in logs]
        atoms = Atoms.of(*sides)
        return cls(atoms.log_member, atoms.log_nonmember, atoms.loss, laws, np.stack(outward))

    def reversed(self) -> Self:
        """Exchange the roles."""
        return replace(super().reversed(), laws=self.laws[::-1], outward=self.outward[::-1])

    def highest(self) -> FloatArray:
        """The supremum of the loss, shape (B,)."""
        rises = (self.outward[0] - self.outward[1] > _STILL).any(axis=-1)
        return np.where(rises, np.inf, super().highest())

    def renyi(self, order: float) -> FloatArray:
        """As of all atoms, in cells of its own; infinite where the integrand never falls."""
        if order == 1.0 or np.isinf(order):
            return super().renyi(order)
        wide = self.of_laws(*self.laws, tilt=order)
        endless = (order * wide.outward[0] + (1.0 - order) * wide.outward[1] > 0.0).any(axis=-1)
        return np.where(endless, np.inf, Atoms.renyi(wide, order))


def masses_of(
    laws: tuple[ScalarLaw, ScalarLaw], *, ends: int | None = None, tilt: float | None = None
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Ends of cells (B, K), nodes in them (B, N), and the nodes' log masses under each law.

    The last node of laws with a mass at zero is that point.  Where ``ends`` are asked for, there
    are so many or, after halving, a few less; with a ``tilt`` they follow p1^tilt p0^(1 - tilt).
    """
    edges = _edges(laws, tilt)
    while ends is not None and 2 * edges.shape[-1] <= ends:
        middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
        edges = np.sort(np.concatenate([edges, middle], axis=-1), axis=-1)
    most = ends or _MOST_ENDS
    if edges.shape[-1] > most:
        edges = edges[:, np.linspace(0, edges.shape[-1] - 1, most).astype(np.intp)]
    x, width = panels(edges, _NODES)
    with np.errstate(divide="ignore"):
        log_width = np.log(width)
    sides = [log_width + _log_density(law, x) for law in laws]
    if isinstance(laws[0], SpikeAndSlab):
        x = np.concatenate([x, np.zeros((len(x), 1))], axis=-1)
    for place, law in enumerate(laws):
        if isinstance(law, SpikeAndSlab):
            sides[place] = np.concatenate([sides[place], law.log_atom[:, None]], axis=-1)
        _require_whole(law, sides[place])
    return edges, x, sides


def _edges(laws: tuple[ScalarLaw, ScalarLaw], tilt: float | None) -> FloatArray:
    """Ends of cells in order, (B, K + 1)."""
    member, nonmember = (_pieces(law) for law in laws)
    if member is None or nonmember is None:
        ends = [_quantiles(law) for law in laws]
    else:
        pieces = [member, nonmember]
        if tilt is not None:
            pieces.append(_tilted(member, nonmember, tilt))
        ends = [mean[..., None] + sigma[..., None] * STEPS for mean, sigma in pieces]
        ends += [_bends(law, ends[0]) for law in laws if isinstance(law, NormalMixture)]
    if isinstance(laws[0], SpikeAndSlab):
        ends.append(np.zeros((len(ends[0]), 1)))
    return np.sort(np.concatenate([each.reshape(len(each), -1) for each in ends], axis=-1))


Pieces = tuple[FloatArray, FloatArray]


def _pieces(law: ScalarLaw) -> Pieces | None:
    """Means and standard deviations, (B, K) each, of the normals that a density is made of."""
    if isinstance(law, Normal):
        return law.mean[:, None], law.sigma[:, None]
    if isinstance(law, SpikeAndSlab):
        means = np.stack([law.location - law.threshold, law.location + law.threshold], axis=-1)
        return means, np.repeat(law.sigma[:, None], 2, axis=-1)
    if isinstance(law, NormalMixture):
        # the first component with weight stands for those without
        heavy = law.raw_weights > 0.0
        first = np.argmax(heavy, axis=-1)[:, None]
        mean, sigma = (
            np.where(heavy, each, np.take_along_axis(each, first, axis=-1))
            for each in (law.means, law.sigmas)
        )
        return mean, sigma
    return None


def _bends(law: NormalMixture, within: FloatArray) -> FloatArray:
    """(B, K) where two components have equal densities: far from both, one gives way at once.

    Log densities are parabolas, and each two are equal at the two roots of another; where there is
    none, or it lies outside all cells, it is an end of cells that there is.
    """
    some = np.argsort(-law.raw_weights, axis=-1, kind="stable")[:, :_BENT]
    weight, mean, sigma = (
        np.take_along_axis(each, some, axis=-1) for each in (law.weights, law.means, law.sigmas)
    )
    one, two = np.triu_indices(some.shape[1], k=1)
    with np.errstate(all="ignore"):
        precision, peak = sigma**-2.0, np.log(weight) - np.log(sigma)
        gap = mean[:, two] - mean[:, one]
        square = 0.5 * (precision[:, two] - precision[:, one])
        linear = -precision[:, two] * gap
        level = 0.5 * precision[:, two] * gap * gap + (peak[:, one] - peak[:, two])
        turn = np.sqrt(linear * linear - 4.0 * square * level)
        half = -0.5 * (linear + np.copysign(turn, linear))
        roots = np.concatenate([half / square, level / half], axis=-1) + np.tile(mean[:, one], 2)
    flat = within.reshape(len(within), -1)
    low, high = flat.min(axis=-1, keepdims=True), flat.max(axis=-1, keepdims=True)
    return np.where((roots > low) & (roots < high), roots, low)


def _tilted(member: Pieces, nonmember: Pieces, order: float) -> Pieces:
    """Those of p1^order p0^(1 - order), one for each two pieces, where it is normal."""
    (m1, s1), (m0, s0) = (
        tuple(a[:, :, None] for a in member),
        tuple(a[:, None, :] for a in nonmember),
    )
    precision = order / s1**2 + (1.0 - order) / s0**2
    normal = precision > 0.0
    precision = np.where(normal, precision, 1.0)
    mean = (order * m1 / s1**2 + (1.0 - order) * m0 / s0**2) / precision
    mean, sigma = np.where(normal, mean, m1), np.where(normal, precision**-0.5, s1)
    return mean.reshape(len(mean), -1), sigma.reshape(len(mean), -1)


def _quantiles(law: ScalarLaw) -> FloatArray:
    """(B, K) quantiles, by bisection of the distribution function."""
    batch, wanted = law.batch_shape[0], _LOG_ODDS
    law = law.reshape(batch, 1)

    def log_odds(x: FloatArray) -> FloatArray:
        return np.asarray(special.logit(_checked(law.cdf(x), x)))

    low, high = np.full((batch, 1), -1.0), np.full((batch, 1), 1.0)
    for _ in range(_DOUBLINGS):
        early, late = log_odds(low) > wanted[0], log_odds(high) < wanted[-1]
        if not (early.any() or late.any()):
            break
        low[early] *= 2.0
        high[late] *= 2.0
    left, right = (np.repeat(end, len(wanted), axis=1) for end in (low, high))
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        above = log_odds(middle) >= wanted
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    return right


def _log_density(law: ScalarLaw, x: FloatArray) -> FloatArray:
    return _checked(law.reshape(len(x), 1).log_density(x), x)


def _checked(found: npt.ArrayLike, x: FloatArray) -> FloatArray:
    values = np.asarray(found, dtype=np.float64)
    if values.shape != x.shape:
        raise InputError(
            f"a law's cdf and log_density must answer an array of shape {x.shape} with one of the "
            f"same shape, but it is {values.shape}: write them with NumPy's functions."
        )
    return values


def _require_whole(law: ScalarLaw, log_mass: FloatArray) -> None:
    """Refuse a law whose cells have not all of its mass."""
    total = np.exp(log_mass).sum(axis=-1)
    wrong = ~(np.abs(total - 1.0) <= _MISSING)
    if wrong.any():
        raise InputError(
            f"{type(law).__name__}: log_density and cdf do not belong together, or the law has a "
            "part far narrower than the rest, or far from zero for its width; the density has a "
            f"mass of {total[np.argmax(wrong)]:.4g}, not 1."
        )
