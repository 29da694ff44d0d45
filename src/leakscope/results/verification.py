"""The result file of ``leakscope verify``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument


class CheckEntry(BaseModel):
    """One number of a law, predicted and measured, with the z-score and the verdict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    law: str
    quantity: str
    predicted: Number
    measured: Number
    stderr: Number
    z: Number
    verdict: Literal["agrees", "differs", "could not be told"]


class VerifyDocument(ResultDocument):
    """The result of ``leakscope verify``.

    Examples
    --------
    >>> from leakscope.results.verification import VerifyDocument
    >>> VerifyDocument.model_fields["kind"].default
    'verify'
    """

    kind: Literal["verify"] = "verify"
    verified_kind: str
    how: str
    threshold: float
    agrees: int
    differs: int
    could_not_be_told: int
    checks: list[CheckEntry]
    agreement: dict[str, Any] | None = None
    verdict: str
