"""The result file of ``leakscope measure``."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from leakscope.results.document import Number, ResultDocument


class MeasureDocument(ResultDocument):
    """The result of ``leakscope measure``: one pair of laws, or of samples of scores.

    Examples
    --------
    >>> from leakscope.results import MeasureDocument
    >>> MeasureDocument.model_fields["kind"].default
    'measure'
    """

    # The summary's own fields are the measures room's to choose; the ones below are promised.
    model_config = ConfigDict(extra="allow", frozen=True)

    kind: Literal["measure"] = "measure"
    advantage: Number
    kl: Number
    kl_reverse: Number
    auc: Number
    tpr_at_fpr: dict[str, Number]
    epsilon_at_delta: dict[str, Number]
