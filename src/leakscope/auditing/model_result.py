"""What an audit of a fitted model returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.half_models import HalfModels
from leakscope.auditing.model_answer import (
    examined_sentence,
    exposed_sentence,
    question_sentence,
    remedy_sentence,
    trained_sentence,
)
from leakscope.auditing.verdict import EXPOSED_ABOVE
from leakscope.fitted import FewModels, FittedLaws
from leakscope.laws import LawPair
from leakscope.results import (
    ExaminedModel,
    FitEntry,
    ModelAuditDocument,
    ModelAuditRecord,
    ModelExplanationEntry,
    PenaltyOption,
)


@dataclass(frozen=True, eq=False)
class Examined:
    """What was given to an audit of a fitted model; kept in memory only, for shadow models.

    ``feature_names`` are those of the numbers that reach the innermost estimator, where known.

    Examples
    --------
    >>> from leakscope.auditing import Examined
    >>> Examined("an estimator", [[0.0]], [1.0]).sample_weight is None
    True
    """

    estimator: Any
    X: Any
    y: Any
    sample_weight: Any = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelAuditResult(AuditedRecords):
    """The leakage of every record under one fitted model.

    Arrays are in the order of the rows of X; ``to_frame``, ``to_document`` and ``ranking`` put the
    most exposed record first, by ``advantage``.

    Attributes
    ----------
    record_ids
        The ids given, or row numbers from 0.
    kl, kl_reverse
        KL(without || with) and KL(with || without); natural logarithms.
    advantage
        The best test's TPR - FPR, a fraction between 0 and 1.
    auc
        Of the likelihood-ratio test.
    tpr_at_fpr
        True-positive rates of the same test, by false-positive rate: 0.01 and 0.001.
    laws
        The laws behind these numbers, over training sets with and without the record.
    model, examined
        Which model was examined, in words; and the estimator and records themselves.
    dataset, settings, created, timing, warnings
        What was audited; as given; when (UTC); seconds by stage; sentences.
    answer_noise
        Standard deviation of normal noise on each answer that keeps every advantage below 0.1;
        None where none is needed, or where only the label is seen.
    penalties
        What other penalties would give, where the model was named: ten times first.
    explanations
        Why the most exposed records are, where it was asked for.
    subgroups
        Exposure by the values of each column that it was asked for.
    few, half_models
        Where models were trained for this audit, what they show, with intervals, and their
        scores: then ``advantage`` and ``tpr_at_fpr`` are posterior means.
    fit, one_threshold
        How large the model is beside its data; what one threshold on the score would achieve.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> result.ranking()[:3], bool(result.trusted.all())
    ((123, 102, 92), True)
    >>> result.verdict.startswith("Examined: Ridge(alpha=0.1), as fitted by you")
    True
    """

    laws: FittedLaws
    model: ExaminedModel
    examined: Examined
    answer_noise: float | None = None
    penalties: tuple[PenaltyOption, ...] = ()
    explanations: tuple[ModelExplanationEntry, ...] = ()
    few: FewModels | None = None
    half_models: HalfModels | None = None
    fit: FitEntry | None = None
    one_threshold: Mapping[str, float] = field(default_factory=dict)

    @property
    def order(self) -> NDArray[np.intp]:
        """Row numbers, most exposed first: by advantage, then by KL."""
        return np.lexsort((-self.kl, -self.advantage))

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """False for a record whose law is doubtful."""
        return self.laws.trusted

    @property
    def models(self) -> int | None:
        """How many models were trained for this audit; None where one fit gave the laws."""
        return None if self.few is None else self.few.models

    @property
    def unit(self) -> Literal["record"]:
        """What leaves: a record."""
        return "record"

    @property
    def option(self) -> PenaltyOption | None:
        """What ten times the penalty would give, where records are exposed; None otherwise."""
        exposed = bool((self.advantage >= EXPOSED_ABOVE).any())
        return next((one for one in self.penalties if exposed and one.factor == 10.0), None)

    def answer(self, *, threshold: float = EXPOSED_ABOVE, ids: bool = True) -> tuple[str, str, str]:
        """Which model, how exposed the most exposed are, and how many pass with what to do."""
        top, count = int(self.order[0]), len(self.record_ids)
        lowest = self.tpr_at_fpr[0.001]
        found = int(np.argmax(lowest))
        usual = threshold == EXPOSED_ABOVE
        return (
            examined_sentence(self.model, name=self.dataset.name, records=count),
            exposed_sentence(
                record_id=self.record_ids[top] if ids else None,
                advantage=float(self.advantage[top]),
                tpr_at_fpr_0_01=float(self.tpr_at_fpr[0.01][top]),
                tpr_at_fpr_0_001=float(self.tpr_at_fpr[0.001][top]),
                median=float(np.median(self.advantage)),
                trusted=bool(self.trusted[top]),
                interval=None if self.few is None else self.few.advantage.at(top),
                by_tpr=None
                if lowest[found] <= lowest[top]
                else (self.record_ids[found] if ids else None, float(lowest[found])),
            ),
            remedy_sentence(
                exposed=int(np.count_nonzero(self.advantage >= threshold)),
                count=count,
                threshold=threshold,
                # Both were worked out for the usual threshold.
                answer_noise=self.answer_noise if usual else None,
                option=self.option if usual else None,
                untrusted=int(np.count_nonzero(~self.trusted)),
            )
            if self.few is None
            else trained_sentence(
                exposed=int(np.count_nonzero(self.advantage >= threshold)),
                surely=int(np.count_nonzero(self.few.advantage.low >= threshold)),
                count=count,
                threshold=threshold,
                models=self.few.models,
                trusted=bool(self.trusted.all()),
            ),
        )

    @property
    def question(self) -> str:
        """What the attacker sees and knows, in plain words."""
        return question_sentence(
            question=self.laws.question, fraction=self.laws.fraction, observes=self.laws.observes
        )

    def law_pair(self) -> LawPair:
        """The pairs of laws, one per record in record order, for any other measure."""
        return self.laws.law_pair()

    def pair_of(self, row: int) -> LawPair:
        """The pair of one record."""
        return self.laws.law_pair().take([row])

    def law_arrays(self) -> dict[str, NDArray[Any]]:
        """The laws as arrays by name, in record order; the scores of models trained for it too."""
        laws, models = self.laws, self.half_models
        return {
            "member_mean": laws.member_mean,
            "member_sd": laws.member_sd,
            "nonmember_mean": laws.nonmember_mean,
            "nonmember_sd": laws.nonmember_sd,
            "trusted": laws.trusted,
            **({} if models is None else {laws.observes: models.scores}),
            **({} if models is None else {"trained_on": models.trained_on}),
        }

    def to_document(self) -> ModelAuditDocument:
        """The result as it is written to a file; valid JSON and nothing but plain values."""
        return ModelAuditDocument(
            **self._stored(ModelAuditRecord, self.laws.provenance),
            model=self.model,
            question=cast(Literal["pool", "population"], self.laws.question),
            fraction=self.laws.fraction,
            observes=self.laws.observes,
            exposed_above=EXPOSED_ABOVE,
            exposed=int(np.count_nonzero(self.advantage >= EXPOSED_ABOVE)),
            answer=[*self.answer(), self.question],
            answer_without_ids=[*self.answer(ids=False), self.question],
            answer_noise=self.answer_noise,
            option=self.option,
            penalties=sorted(self.penalties, key=lambda entry: entry.factor),
            explanations=list(self.explanations),
            models=self.models,
            fit=self.fit,
            one_threshold=dict(self.one_threshold),
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        laws = self.laws
        intervals: dict[str, NDArray[Any]] = {}
        if self.few is not None:
            tprs = self.few.tpr_at_fpr
            intervals = {
                "advantage_low": self.few.advantage.low,
                "advantage_high": self.few.advantage.high,
                "tpr_at_fpr_0_01_low": tprs[0.01].low,
                "tpr_at_fpr_0_01_high": tprs[0.01].high,
                "tpr_at_fpr_0_001_low": tprs[0.001].low,
                "tpr_at_fpr_0_001_high": tprs[0.001].high,
                "surely_exposed": self.few.exposed,
            }
        return {
            "record_id": self._ids(),
            "advantage": self.advantage,
            **self.tprs(),
            "auc": self.auc,
            "kl": self.kl,
            "kl_reverse": self.kl_reverse,
            "shift_in_sd": laws.shift / laws.nonmember_sd,
            "mean_without": laws.nonmember_mean,
            "sd_without": laws.nonmember_sd,
            "mean_with": laws.member_mean,
            "sd_with": laws.member_sd,
            "largest_share": laws.largest_share,
            "trusted": self.trusted,
            **intervals,
        }
