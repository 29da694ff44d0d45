"""The result file of ``leakscope attack membership``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from leakscope.results.audit import ExaminedModel
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


class MembershipTest(BaseModel):
    """One threshold for all queries, at a false-positive rate.

    Attributes
    ----------
    fpr, threshold
        The share of nonmembers whose score exceeds the threshold, by their laws.
    tpr
        The share of members whose score does, by theirs.
    called
        How many queries are called members.

    Examples
    --------
    >>> from leakscope.results import MembershipTest
    >>> MembershipTest(fpr=0.01, threshold=2.1, tpr=0.2, called=7).called
    7
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    fpr: float
    threshold: float
    tpr: Number
    called: int


class ModelMembershipAttack(ResultDocument):
    """The result of ``leakscope attack membership --pool``: a fitted model and its records.

    Attributes
    ----------
    model
        Which model was attacked.
    pool, queries, in_pool
        How many records the pool has, how many were asked about, and how many of those it holds.
    record_ids, answers, scores, posteriors
        For each query: its id, what was seen, the log likelihood ratio of the two laws there, and
        the probability that it was a member.
    trusted
        Whether the query's laws are.
    auc, tests
        What the laws promise over these queries, and the thresholds.

    Examples
    --------
    >>> from leakscope.results import ModelMembershipAttack
    >>> ModelMembershipAttack.model_fields["kind"].default
    'attack_membership_model'
    """

    kind: Literal["attack_membership_model"] = "attack_membership_model"
    model: ExaminedModel
    pool: int
    queries: int
    in_pool: int
    fraction: float
    prior: float
    observes: str
    record_ids: list[int | str]
    answers: list[Number]
    scores: list[Number]
    posteriors: list[Number]
    trusted: list[bool]
    auc: Number
    tests: list[MembershipTest]
    verdict: str
