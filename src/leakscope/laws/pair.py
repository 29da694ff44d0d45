"""Two laws of what an attacker sees, with the record and without it, and what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from leakscope.errors import InputError
from leakscope.laws.distributions import Empirical, Law, Normal, NormalMixture

Question = Literal["leave_one_out", "pool", "population", "unspecified"]
Adjacency = Literal["removed", "replaced", "unspecified"]
Observes = Literal[
    "latent",
    "prediction",
    "residual",
    "log_odds",
    "probabilities",
    "label",
    "coefficients",
    "scores",
    "label_and_prediction",
    "unspecified",
]
Randomness = Literal["training", "privacy_noise", "labels", "data", "output_noise"]
Method = Literal["exact", "approximate", "asymptotic", "simulated", "empirical", "unspecified"]

_CHOICES: dict[str, Any] = {
    "question": Question,
    "adjacency": Adjacency,
    "observes": Observes,
    "method": Method,
}


@dataclass(frozen=True)
class Assumption:
    """One assumption of a law, and whether it holds for the data at hand.

    ``holds`` is ``None`` where this cannot be told; ``evidence`` says what was looked at.
    """

    statement: str
    holds: bool | None = None
    evidence: str = ""


@dataclass(frozen=True)
class Provenance:
    """What a pair of laws is about; it travels with every number made from the pair.

    Parameters
    ----------
    question
        ``"leave_one_out"``: this record, this dataset; ``"pool"``: the other records are drawn
        from those at hand; ``"population"``: they are fresh, or the record is a typical one of
        this data model.
    adjacency
        Whether the record is ``"removed"`` or ``"replaced"`` in the nonmember law.
    observes
        What the attacker sees.
    random
        What is random in the laws, in any order.
    attacker_knows_label
        Whether the attacker knows the record's label; ``None`` if the question does not arise.
    method
        How the laws were got.
    source
        Equation and paper, for example ``"lood Def. C.3"``.
    assumptions
        What the laws assume, and whether it holds here.

    Examples
    --------
    >>> from leakscope.laws import Provenance
    >>> p = Provenance(question="leave_one_out", adjacency="removed", observes="latent",
    ...                random=("training",), method="exact", source="lood Def. C.3")
    >>> p.differences(Provenance(question="population"))[0]
    'question: leave_one_out against population'
    """

    question: Question = "unspecified"
    adjacency: Adjacency = "unspecified"
    observes: Observes = "unspecified"
    random: tuple[Randomness, ...] = ()
    attacker_knows_label: bool | None = None
    method: Method = "unspecified"
    source: str = ""
    assumptions: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in get_args(choices):
                raise InputError(
                    f"Provenance: {name} must be one of {', '.join(get_args(choices))}, "
                    f"but it is {value!r}."
                )
        unknown = [r for r in self.random if r not in get_args(Randomness)]
        if unknown:
            raise InputError(
                f"Provenance: random must be drawn from {', '.join(get_args(Randomness))}, "
                f"but it holds {unknown[0]!r}."
            )

    def differences(self, other: Provenance) -> list[str]:
        """In which respects the two answer different questions; empty if they are comparable.

        ``method``, ``source`` and ``assumptions`` do not count: an exact and a simulated answer
        to one question may be compared.
        """
        mine, theirs = self._compared(), other._compared()
        return [f"{k}: {mine[k]} against {theirs[k]}" for k in mine if mine[k] != theirs[k]]

    def _compared(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "adjacency": self.adjacency,
            "observes": self.observes,
            "random": ", ".join(sorted(self.random)) or "nothing",
            "attacker knows the label": self.attacker_knows_label,
        }

    def to_dict(self) -> dict[str, Any]:
        """The provenance as a dictionary of plain values, for JSON."""
        told = asdict(self)
        return told | {"random": list(self.random), "assumptions": list(told["assumptions"])}


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
                "These pairs answer different questions and cannot be compared "
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
    leakscope.errors.InputError: These pairs answer different questions and cannot be \
compared (question: unspecified against population).
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
        provenance = replace(
            provenance,
            method=provenance.method if len(methods) == 1 else "unspecified",
            source="; ".join(s for s in sources if s),
            assumptions=tuple(seen),
        )
    member = _concatenate_laws([pair.member for pair in flat])
    nonmember = _concatenate_laws([pair.nonmember for pair in flat])
    return LawPair(member, nonmember, provenance)


def _concatenate_laws(laws: Sequence[Law]) -> Law:
    if any(isinstance(law, NormalMixture) for law in laws):
        mixtures = [_as_mixture(law) for law in laws if isinstance(law, _MIXABLE)]
        if len(mixtures) == len(laws):
            most = max(law.components for law in mixtures)
            laws = [law.padded(most) for law in mixtures]
    kind, shape = type(laws[0]), laws[0].event_shape
    if any(type(law) is not kind for law in laws):
        raise InputError("concatenate: the pairs' laws must be of one kind.")
    if any(law.event_shape != shape for law in laws):
        raise InputError("concatenate: the pairs' laws must be of vectors of one length.")
    if len({law.size for law in laws if isinstance(law, Empirical)}) > 1:
        raise InputError("concatenate: the empirical laws must have as many samples each.")
    columns = ([getattr(law, name) for law in laws] for name in kind.parameters)
    return kind(*(np.concatenate(arrays, axis=0) for arrays in columns))


def _as_mixture(law: Normal | NormalMixture) -> NormalMixture:
    return NormalMixture.of(law) if isinstance(law, Normal) else law
