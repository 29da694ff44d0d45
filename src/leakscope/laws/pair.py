"""Two laws of what an attacker sees: with the record and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakscope.errors import InputError
from leakscope.laws.bernoulli import Bernoulli
from leakscope.laws.empirical import Empirical
from leakscope.laws.law import Law
from leakscope.laws.multivariate_normal import MultivariateNormal
from leakscope.laws.normal import Normal
from leakscope.laws.normal_mixture import NormalMixture
from leakscope.laws.provenance import Provenance
from leakscope.laws.spike_and_slab import SpikeAndSlab

_MIXABLE = (Normal, NormalMixture)


@dataclass(frozen=True, eq=False)
class LawPair:
    """What an attacker sees when a record was used in training, and when it was not.

    Both laws must be of one kind (a `Normal` beside a `NormalMixture` counts as one), and their
    batches must broadcast together.  Measures between them are in `leakscope.measures`.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal
    >>> pair = LawPair(member=Normal([0.0, 1.0], 1.4), nonmember=Normal(0.0, 0.7))
    >>> pair.batch_shape
    (2,)
    """

    member: Law
    nonmember: Law
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        member, nonmember = self.member, self.nonmember
        for name, law in (("member", member), ("nonmember", nonmember)):
            if not isinstance(law, Law):
                raise InputError(
                    f"LawPair: {name} must be a law from leakscope.laws, "
                    f"but it is a {type(law).__name__}."
                )
        if type(member) is not type(nonmember):
            if not (isinstance(member, _MIXABLE) and isinstance(nonmember, _MIXABLE)):
                raise InputError(
                    f"LawPair: a {type(member).__name__} and a {type(nonmember).__name__} "
                    "cannot be compared; both laws must be of one kind."
                )
            member, nonmember = _as_mixture(member), _as_mixture(nonmember)
        if member.event_shape != nonmember.event_shape:
            raise InputError(
                f"LawPair: the member law is of vectors of {member.event_shape[0]} numbers and "
                f"the nonmember law of {nonmember.event_shape[0]}."
            )
        try:
            batch = np.broadcast_shapes(member.batch_shape, nonmember.batch_shape)
        except ValueError:
            raise InputError(
                f"LawPair: batches of shape {member.batch_shape} and {nonmember.batch_shape} "
                "do not fit together."
            ) from None
        if member.batch_shape != batch:
            member = member.broadcast_to(batch)
        if nonmember.batch_shape != batch:
            nonmember = nonmember.broadcast_to(batch)
        object.__setattr__(self, "member", member)
        object.__setattr__(self, "nonmember", nonmember)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of pairs."""
        return self.member.batch_shape

    def swapped(self) -> LawPair:
        """The pair with the roles of member and nonmember exchanged."""
        return LawPair(self.nonmember, self.member, self.provenance)

    def reshape(self, *shape: int) -> LawPair:
        """The same pairs with the batch laid out as ``shape``."""
        return LawPair(self.member.reshape(*shape), self.nonmember.reshape(*shape), self.provenance)

    def take(self, index: Any) -> LawPair:
        """The pairs at ``index`` along the first axis of the batch."""
        return LawPair(self.member.take(index), self.nonmember.take(index), self.provenance)

    def require_comparable(self, other: LawPair) -> None:
        """Raise an `InputError` if the two pairs answer different questions."""
        differences = self.provenance.differences(other.provenance)
        if differences:
            raise InputError(
                "These pairs answer different questions and are not ranked together "
                f"({'; '.join(differences)})."
            )


def concatenate(pairs: Sequence[LawPair]) -> LawPair:
    """Put the pairs of several batches into one, so that they can be ranked together.

    Refused when they answer different questions or are laws of different kinds.  The provenance
    of the result is the first pair's, with the assumptions of all.

    Examples
    --------
    >>> from leakscope.laws import LawPair, Normal, Provenance, concatenate
    >>> a = LawPair(Normal([0.0, 1.0], 1.0), Normal(0.0, 1.0))
    >>> concatenate([a, a]).batch_shape
    (4,)
    >>> b = LawPair(Normal(0.0, 1.0), Normal(0.0, 1.0), Provenance(question="population"))
    >>> concatenate([a, b])
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: These pairs answer different questions and are not ranked \
together (question: unspecified against population).
    """
    if not pairs:
        raise InputError("concatenate: there is no pair to put together.")
    for pair in pairs[1:]:
        pairs[0].require_comparable(pair)
    flat = [pair.reshape(int(np.prod(pair.batch_shape, dtype=int))) for pair in pairs]
    provenance = pairs[0].provenance
    if any(pair.provenance != provenance for pair in pairs):
        seen = dict.fromkeys(a for pair in pairs for a in pair.provenance.assumptions)
        methods = dict.fromkeys(pair.provenance.method for pair in pairs)
        sources = dict.fromkeys(pair.provenance.source for pair in pairs)
        provenance = Provenance(
            question=provenance.question,
            adjacency=provenance.adjacency,
            observes=provenance.observes,
            random=provenance.random,
            attacker_knows_label=provenance.attacker_knows_label,
            method=provenance.method if len(methods) == 1 else "unspecified",
            source="; ".join(s for s in sources if s),
            assumptions=tuple(seen),
        )
    member = _concatenate_laws([pair.member for pair in flat])
    nonmember = _concatenate_laws([pair.nonmember for pair in flat])
    return LawPair(member, nonmember, provenance)


def _concatenate_laws(laws: Sequence[Law]) -> Law:
    first = laws[0]
    if all(isinstance(law, Normal) for law in laws):
        return Normal(*(_join(laws, name) for name in ("mean", "sigma")))
    mixtures = [_as_mixture(law) for law in laws if isinstance(law, _MIXABLE)]
    if len(mixtures) == len(laws):
        most = max(law.components for law in mixtures)
        padded = [law.padded(most) for law in mixtures]
        return NormalMixture(*(_join(padded, name) for name in ("raw_weights", "means", "sigmas")))
    if any(type(law) is not type(first) for law in laws):
        raise InputError("concatenate: the pairs' laws must be of one kind.")
    if any(law.event_shape != first.event_shape for law in laws):
        raise InputError("concatenate: the pairs' laws must be of vectors of one length.")
    if isinstance(first, MultivariateNormal):
        return MultivariateNormal(*(_join(laws, name) for name in ("mean", "covariance")))
    if isinstance(first, SpikeAndSlab):
        return SpikeAndSlab(*(_join(laws, name) for name in ("location", "sigma", "threshold")))
    if isinstance(first, Bernoulli):
        return Bernoulli(_join(laws, "probability"))
    if isinstance(first, Empirical):
        if any(law.size != first.size for law in laws if isinstance(law, Empirical)):
            raise InputError("concatenate: the empirical laws must have as many samples each.")
        return Empirical(_join(laws, "samples"))
    raise InputError(f"concatenate: laws of kind {type(first).__name__} cannot be put together.")


def _as_mixture(law: Normal | NormalMixture) -> NormalMixture:
    return NormalMixture.of(law) if isinstance(law, Normal) else law


def _join(laws: Sequence[Law], name: str) -> Any:
    return np.concatenate([getattr(law, name) for law in laws], axis=0)
