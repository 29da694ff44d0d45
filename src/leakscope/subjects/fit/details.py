"""What only the audit of a fitted model, or of a few models of a training, has to say."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.audit import AgainstAttacker, Details, Explanation, FitFacts, SecretAttribute
from leakscope.results.document import Fraction, Number


class PenaltyOption(BaseModel):
    """The same model with another penalty: what it would give away, and its price."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    setting: str
    value: float
    factor: float = 10.0
    largest_advantage: Fraction
    median_advantage: Fraction = None
    largest_tpr_at_fpr_0_01: Fraction = None
    largest_tpr_at_fpr_0_001: Fraction = None
    exposed: int
    unconfirmed: int = 0
    score: str
    score_now: Number
    score_then: Number


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
        told = ", ".join(f"{one} ({share or 0.0:.0%})" for one, share in near)
        return f"Varies most with: {told}." if told else ""


class FitDetails(Details):
    """Remedies that were worked out, facts about the fit, and why the most exposed are.

    ``answer_noise`` is the least sd of noise on each answer that leaves nobody exposed, ``models``
    how many were trained, and ``one_threshold`` what one threshold for everybody achieves.
    """

    answer_noise: Number = None
    option: PenaltyOption | None = None
    penalties: list[PenaltyOption] = Field(default_factory=list)
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
