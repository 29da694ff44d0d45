"""The result file of ``leakscope verify``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from leakscope.results.document import Entry, Number, ResultDocument
from leakscope.results.shown import Short, digits


class VerifiedNumber(Entry):
    """One number of a law, predicted and measured, with the z-score and the verdict."""

    law: str
    quantity: str
    predicted: Number
    measured: Number
    stderr: Number
    z: Number
    verdict: Literal["agrees", "differs", "inconclusive"]


_VERIFIED = {
    "audit": "the audit of a Gaussian process",
    "audit_model": "the audit of a fitted model",
    "plan_linear": "a plan of a linear model",
    "plan_lasso": "a plan of a LASSO",
    "attack_query": "an attack by a query",
}


class Verification(ResultDocument):
    """The result of ``leakscope verify``: its checks, and how many of them differ.

    One that differs contradicts the result that was verified (:attr:`contradicts`).  ``borne_out``
    are units that an audit does not know, and whose numbers shadow models show all the same.
    """

    kind: Literal["verify"] = "verify"
    verified_kind: str
    verified_digest: str | None = None
    how: str
    threshold: float
    agrees: int
    differs: int
    inconclusive: int
    checks: list[VerifiedNumber]
    agreement: dict[str, Any] | None = None
    borne_out: list[int | str] = Field(default_factory=list)
    verdict: str

    @property
    def contradicts(self) -> bool:
        """The verdict: whether a number differs from what was measured, whatever kind it is of."""
        return self.differs > 0

    @property
    def by_shadows(self) -> bool:
        """Whether an audit was compared with shadow models of its own model."""
        return "models" in self.settings

    def in_short(self) -> Short:
        """The verdict, and every check."""
        rows = [
            [
                check.law,
                check.quantity,
                digits(check.predicted, most=5),
                digits(check.measured, most=5),
                digits(check.stderr, most=2),
                "-" if check.z is None else f"{check.z:+.2f}",
                check.verdict,
            ]
            for check in self.checks
        ]
        headings = ("what", "quantity", "predicted", "measured", "std. error", "z", "verdict")
        title = f"Verification of {_VERIFIED.get(self.verified_kind, self.verified_kind)}"
        return Short(title, (self.verdict,), headings, rows, tuple(self.warnings))
