"""What a pair of laws answers: question, threat model, method, source and assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from leakscope.errors import InputError

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

    Examples
    --------
    >>> from leakscope.laws import Assumption
    >>> Assumption("the noise is Gaussian", holds=None, evidence="not checked").holds is None
    True
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
        mine: dict[str, Any] = {
            "question": self.question,
            "adjacency": self.adjacency,
            "observes": self.observes,
            "random": ", ".join(sorted(self.random)) or "nothing",
            "attacker knows the label": self.attacker_knows_label,
        }
        theirs: dict[str, Any] = {
            "question": other.question,
            "adjacency": other.adjacency,
            "observes": other.observes,
            "random": ", ".join(sorted(other.random)) or "nothing",
            "attacker knows the label": other.attacker_knows_label,
        }
        return [f"{k}: {mine[k]} against {theirs[k]}" for k in mine if mine[k] != theirs[k]]

    def to_dict(self) -> dict[str, Any]:
        """The provenance as a dictionary of plain values, for JSON."""
        return {
            "question": self.question,
            "adjacency": self.adjacency,
            "observes": self.observes,
            "random": list(self.random),
            "attacker_knows_label": self.attacker_knows_label,
            "method": self.method,
            "source": self.source,
            "assumptions": [
                {"statement": a.statement, "holds": a.holds, "evidence": a.evidence}
                for a in self.assumptions
            ],
        }
