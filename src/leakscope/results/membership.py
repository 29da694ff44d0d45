"""The result file of ``leakscope attack membership``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.document import Number, ResultDocument
from leakscope.results.reconstruction import AttackedNetwork


class Applicability(BaseModel):
    """Whether Theorem 4.2 covers the network and its training set; null where it cannot be told.

    Attributes
    ----------
    covered
        Whether every record of the training set is proven to lie on the margin of any KKT network
        trained on it.
    kkt_residual
        How far this network is from such a point: the largest part, relative.
    bounds
        What the proof used, and whether the paper's own constants would do.
    statement
        The same in words.

    Examples
    --------
    >>> from leakscope.results import Applicability
    >>> Applicability(covered=None, kkt_residual=None, bounds=None, statement="not known").covered
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    covered: bool | None
    kkt_residual: Number
    bounds: dict[str, Any] | None
    statement: str


class MembershipAttack(ResultDocument):
    """The result of ``leakscope attack membership``.

    Examples
    --------
    >>> from leakscope.results import MembershipAttack
    >>> MembershipAttack.model_fields["kind"].default
    'attack_membership'
    """

    kind: Literal["attack_membership"] = "attack_membership"
    network: AttackedNetwork
    knowledge: str
    margin: Number
    margin_from: str
    threshold: Number
    scores: list[Number]
    member: list[bool]
    answers: list[Number]
    query_bounds: list[Number] | None
    applicability: Applicability
    verdict: str
