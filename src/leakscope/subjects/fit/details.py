"""What only the audit of a fitted model, or of a few models of a training, has to say."""

from __future__ import annotations

from pydantic import Field

from leakscope.results.audit import AgainstAttacker, Details, Explanation, FitFacts, SecretAttribute
from leakscope.results.document import Number


class FitExplanation(Explanation):
    """Why a record is exposed by a fitted model: its features, its label, its neighbours.

    ``weight`` and ``surprise`` are how many times as much as usual its features weigh and its label
    lies off; ``shares`` of its score's variance come from the ``neighbours``.
    """

    weight: Number
    surprise: Number
    shares: list[Number]

    @property
    def others(self) -> str:
        """Whose coming and going spreads its score most."""
        near = zip(self.neighbours, self.shares, strict=True)
        names = ", ".join(f"{one} ({share or 0.0:.0%})" for one, share in near)
        return f"Varies most with: {names}." if names else ""


class FitDetails(Details):
    """Noise that would help, other attackers, facts about the fit, and why the most exposed are.

    ``answer_noise`` is the least sd of noise on each answer that leaves nobody exposed, ``models``
    how many were trained, and ``one_threshold`` what one threshold for everybody achieves.
    """

    answer_noise: Number = None
    explanations: list[FitExplanation] = Field(default_factory=list)  # type: ignore[assignment]
    attackers: list[AgainstAttacker] = Field(default_factory=list)
    models: int | None = None
    fit: FitFacts | None = None
    one_threshold: dict[str, Number] = Field(default_factory=dict)
    secret: SecretAttribute | None = None

    def size(self) -> FitFacts | None:
        """How large the model is beside its data, and how it does on them."""
        return self.fit

    def against(self) -> list[AgainstAttacker]:
        """The exposure against an outsider, LiRA's attacker and an insider."""
        return self.attackers

    def secret_attribute(self) -> SecretAttribute | None:
        """What is given away of a column that was asked about."""
        return self.secret

    def for_everybody(self) -> dict[str, float | None]:
        """What one threshold on the scores of everybody would achieve."""
        return self.one_threshold
