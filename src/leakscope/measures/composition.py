"""Several releases with fresh randomness: their epsilon and delta through privacy losses.

Every release (a retrained model, a fresh noise draw) gives the attacker another independent
observation from the same pair of laws.  The discretised privacy loss of one release comes from
this package's hockey-stick curve by the "connect the dots" method (Doroshenko et al., 2022,
Algorithm 1), which never underestimates; composing it is dp-accounting's convolution.

Several queries to *one* model are not a composition: they are one joint law, a
`MultivariateNormal` of as many coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, Provenance
from leakscope.measures.dispatch import AnyDirection, is_empirical, ratio_of
from leakscope.measures.ratio import Ratio

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf


@dataclass(frozen=True, eq=False)
class Composition:
    """The joint leakage of ``releases`` independent releases; made by `compose`.

    Its numbers are upper bounds that come closer as ``discretization``, the width of the
    privacy-loss bins, shrinks.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> from leakscope.measures import compose
    >>> ten = compose(LawPair(Normal(0.1, 1.0), Normal(0.0, 1.0)), releases=10)
    >>> ten.releases, round(ten.epsilon_at_delta(1e-5), 3)
    (10, 1.199)
    """

    releases: int
    discretization: float
    provenance: Provenance
    _member_to_nonmember: PLDPmf
    _nonmember_to_member: PLDPmf

    def epsilon_at_delta(self, delta: float, direction: AnyDirection = "both") -> float:
        """The least epsilon whose hockey stick is at most ``delta`` (an upper bound)."""
        return max(float(p.get_epsilon_for_delta(delta)) for p in self._losses(direction))

    def delta_at_epsilon(self, epsilon: float, direction: AnyDirection = "both") -> float:
        """The hockey stick at ``epsilon`` (an upper bound)."""
        return max(float(p.get_delta_for_epsilon(epsilon)) for p in self._losses(direction))

    def advantage(self) -> float:
        """The membership advantage of an attacker who sees all releases (an upper bound)."""
        return self.delta_at_epsilon(0.0)

    def _losses(self, direction: AnyDirection) -> tuple[PLDPmf, ...]:
        choices = {
            "member_to_nonmember": (self._member_to_nonmember,),
            "nonmember_to_member": (self._nonmember_to_member,),
            "both": (self._member_to_nonmember, self._nonmember_to_member),
        }
        if direction not in choices:
            raise InputError(
                "direction must be member_to_nonmember, nonmember_to_member or both, "
                f"but it is {direction!r}."
            )
        return choices[direction]


def compose(
    pair: LawPair, releases: int, *, bins: int = 40_000, tail_mass: float = 1e-14
) -> Composition:
    """Compose ``releases`` independent observations from one pair of laws.

    Parameters
    ----------
    pair
        One pair (not a batch) of laws that are known.
    releases
        How many models are released, each trained with fresh randomness.
    bins
        How many bins the privacy loss of one release is divided into.
    tail_mass
        Probability of privacy losses beyond the bins, which is counted as a certain leak.

    Examples
    --------
    >>> from leakscope.laws import LawPair, SpikeAndSlab
    >>> from leakscope.measures import compose
    >>> pair = LawPair(SpikeAndSlab(0.1, 1.0, 0.5), SpikeAndSlab(0.0, 1.0, 0.5))
    >>> one, many = (compose(pair, releases=k).advantage() for k in (1, 16))
    >>> one < many
    True
    """
    if int(np.prod(pair.batch_shape, dtype=np.int64)) != 1:
        raise InputError(
            f"compose: one pair at a time, but this is a batch of {pair.batch_shape}; "
            "take one with pair.take."
        )
    if is_empirical(pair):
        raise InputError("compose: scores cannot be composed; give laws that are known.")
    if releases != int(releases) or releases < 1:
        raise InputError(f"compose: releases must be a whole number above 0, not {releases!r}.")
    ratio = ratio_of(pair.reshape(1))
    highest, lowest = _range(ratio, tail_mass), -_range(ratio.reversed(), tail_mass)
    width = (highest - lowest) / bins if highest > lowest else 1.0
    losses = []
    for one, low, high in ((ratio, lowest, highest), (ratio.reversed(), -highest, -lowest)):
        pmf = _one_release(one, width, low, high)
        losses.append(pmf.self_compose(int(releases), tail_mass_truncation=tail_mass))
    return Composition(int(releases), width, pair.provenance, losses[0], losses[1])


def _range(ratio: Ratio, tail_mass: float) -> float:
    """A loss above which the member law has no more than ``tail_mass`` of finite losses."""
    certain = float(np.exp(ratio.log_certain()[0]))
    found = float(ratio.epsilon_at(np.log(np.array([[certain + tail_mass]])))[0, 0])
    return found if np.isfinite(found) else 0.0


def _one_release(ratio: Ratio, width: float, low: float, high: float) -> PLDPmf:
    from dp_accounting.pld import pld_pmf

    first, last = int(np.floor(low / width)), int(np.ceil(high / width))
    epsilon: FloatArray = width * np.arange(first, last + 1, dtype=np.float64)
    delta = np.clip(np.exp(ratio.log_excess(epsilon[None, :])[0]), 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        width, first, last, np.minimum.accumulate(delta)
    )
