"""The result file of ``leakscope measure``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.results.document import Number, ResultDocument


class MeasureInterval(BaseModel):
    """The interval of a number that was estimated from scores; an infinite end is null.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure([2.0, 3.0, 1.5, 4.0], [0.0, 1.0, 2.5, 0.5])
    >>> found.intervals["auc"].low < found.auc
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Number
    high: Number
    confidence: float
    method: str
    bias: str


class Measurement(ResultDocument):
    """The result of ``leakscope measure``: one pair of laws, or of samples of scores.

    Attributes
    ----------
    kl, kl_reverse
        KL(nonmember || member), and the other direction.
    tpr_at_fpr, epsilon_at_delta, delta_at_epsilon, renyi
        By the false-positive rate, delta, epsilon or order, as text.
    intervals
        Of scores, by the name of the number, such as ``tpr_at_fpr_0.01``.
    infinite
        The names of the numbers that are null because they are infinite; others that are null
        are not known.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:1,1", "normal:0,1")
    >>> found.kl, round(found.auc, 3)
    (0.5, 0.76)
    """

    kind: Literal["measure"] = "measure"
    advantage: Number
    kl: Number
    kl_reverse: Number
    auc: Number
    tpr_at_fpr: dict[str, Number]
    epsilon_at_delta: dict[str, Number]
    delta_at_epsilon: dict[str, Number] = Field(default_factory=dict)
    epsilon_direction: str = "both"
    epsilon_note: str = ""
    overlap: Number = None
    renyi: dict[str, Number] = Field(default_factory=dict)
    intervals: dict[str, MeasureInterval] = Field(default_factory=dict)
    infinite: list[str] = Field(default_factory=list)
