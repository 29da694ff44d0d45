"""The result of ``leakscope advise``: options ranked by what they cost, each with its curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from leakscope.errors import InputError
from leakscope.results.audit import ExaminedModel
from leakscope.results.document import DatasetEntry, Entry, Number, ResultDocument
from leakscope.results.shown import Short, digits
from leakscope.settings.advise import TARGET_DELTA, TARGET_FPR

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["advantage", "tpr", "epsilon"]


class Target(BaseModel):
    """A measure of how exposed a record, or a group, is, and the value that none may exceed.

    Every measure here falls, or stays, when noise is added to what the attacker sees.

    Parameters
    ----------
    measure
        ``advantage``; ``tpr``, the true-positive rate at the false-positive rate ``fpr``; or
        ``epsilon``, the pair's at ``delta``, the larger of both directions.
    value
        The most that the worst record may have.
    fpr, delta
        Of ``tpr`` (0.001 where left out) and of ``epsilon`` (1e-5); None of other measures.

    Examples
    --------
    >>> from leakscope import AuditTarget
    >>> AuditTarget("tpr", 0.01, fpr=0.001).words
    'TPR at FPR 0.001 <= 0.01'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    measure: Measure
    value: float
    fpr: float | None = None
    delta: float | None = None

    def __init__(
        self, measure: Measure, value: float, fpr: float | None = None, delta: float | None = None
    ) -> None:
        if measure not in get_args(Measure):
            raise InputError(
                f"the target's measure must be one of {', '.join(get_args(Measure))}, but it is "
                f"{measure!r}."
            )
        fpr = (TARGET_FPR if fpr is None else fpr) if measure == "tpr" else None
        delta = (TARGET_DELTA if delta is None else delta) if measure == "epsilon" else None
        for name, share in (("fpr", fpr), ("delta", delta)):
            if share is not None and not 0.0 < share < 1.0:
                raise InputError(
                    f"a target's {name} must lie between 0 and 1, both excluded, but it is "
                    f"{share:g}."
                )
        if measure == "epsilon":
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"a target epsilon must be above 0, but it is {value:g}.")
        elif not (fpr or 0.0) < value < 1.0:
            why = ", which guessing reaches," if measure == "tpr" else ""
            raise InputError(
                f"a target {measure} must lie between {fpr or 0.0:g}{why} and 1, both excluded, "
                f"but it is {value:g}."
            )
        super().__init__(measure=measure, value=value, fpr=fpr, delta=delta)

    @property
    def label(self) -> str:
        """What is measured, in words."""
        if self.measure == "advantage":
            return "advantage"
        if self.measure == "tpr":
            return f"TPR at FPR {self.fpr:g}"
        return f"epsilon at delta {self.delta:g}"

    @property
    def words(self) -> str:
        """The target in words."""
        return f"{self.label} <= {self.value:g}"

    @property
    def enough_advantage(self) -> float:
        """An advantage with which the target is met, whatever the pair.

        No test's true-positive rate exceeds its false-positive rate by more than the advantage, and
        the advantage is delta at epsilon = 0.
        """
        return self.value - (self.fpr or 0.0) if self.delta is None else self.delta

    def shown(self, value: float) -> str:
        """A value of the measure in words: what would round to certainty is not called that."""
        if self.measure == "epsilon":
            return "infinite" if math.isinf(value) else f"{value:.4g}"
        return ">0.9999" if value >= 0.99995 else f"{value:.4g}"

    def met(self, worst: float) -> bool:
        """Whether a worst record with this measure meets the target."""
        return bool(worst <= self.value)


class AdvicePoint(Entry):
    """One setting on the way: the worst and the median unit's measure, and the error there."""

    setting: dict[str, Number]
    worst: Number
    median: Number
    error: Number


class AdviceCheck(Entry):
    """What refits of the changed recipe say of its laws.

    Attributes
    ----------
    refits
        How many there were.
    agrees
        Whether the laws' own test is worth on them what the laws say.
    sentence
        Both, with the mean advantage said and counted.
    """

    refits: int
    agrees: bool
    sentence: str


class AdviceOption(Entry):
    """One way to meet the target, or the best that this way can do.

    Attributes
    ----------
    name, setting, sentence, notes
        Which way, its numbers by name, and what it is in words.
    meets, confirmed
        Whether the worst unit meets the target, and whether that is known.
    worst, median, worst_low, worst_high
        The target's measure of the worst and the median unit, and the worst one's interval.
    error, stderr, cost, cost_stderr, split_stderr
        Cross-validated error of a released answer (``Advice.loss``), and what it is above that of
        the audit's own setting on the same folds; standard errors over folds and over repetitions.
        None where there is no price.
    r_squared, accuracy
        One minus the error over the target's variance; the share of right classes.
    questions
        ``any``: the target is met wherever the model is asked; ``own``: against one question at the
        record's own point.
    curve
        Leakage and error along the way.
    dropped, features
        The ids of the units to drop, which are as sensitive as the data; the features kept.
    check
        What shadow models showed, where they were asked for.
    worthless
        Whether the changed model predicts no better than the mean, or the commonest class.
    """

    name: str
    setting: dict[str, Number]
    meets: bool
    confirmed: bool = True
    worst: Number
    median: Number
    error: Number
    stderr: Number
    cost: Number
    cost_stderr: Number
    split_stderr: Number
    r_squared: Number
    accuracy: Number
    questions: Literal["own", "any"]
    sentence: str
    notes: list[str]
    curve: list[AdvicePoint]
    dropped: list[int | str] = Field(default_factory=list)
    features: list[str] = Field(default_factory=list)
    check: AdviceCheck | None = None
    worst_low: Number = None
    worst_high: Number = None
    worthless: bool = False

    @property
    def setting_words(self) -> str:
        """The setting on one line."""
        return setting_text(self.setting)

    @property
    def met_words(self) -> str:
        """Whether it meets the target; what is not confirmed is not known."""
        if not self.confirmed:
            return "not known"
        return "yes" if self.meets else "no"


class Advice(ResultDocument):
    """The result of ``leakscope advise``: options, the cheapest that meets the target first.

    Attributes
    ----------
    target, target_label
        What was asked for, and what is measured, in words.
    unit
        ``record`` or ``group``.
    sentence
        The answer in words.
    own
        The audit's own setting, priced the same way.
    options
        Ranked; those that cannot meet the target last.
    notes
        What was not searched, and why.
    model, loss
        The fitted model that it is about, where it is about one; and what its error is.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import kernels, lood
    >>> X = np.linspace(0.0, 3.0, 40)[:, None]
    >>> result = lood.ProcessOnRecords(X, np.sin(X[:, 0]), kernels.rbf(1.0), noise_variance=0.001)
    >>> advice = leakscope.advise(result, leakscope.AuditTarget("advantage", 0.1))
    >>> sorted(advice.to_frame()["option"])[:3]
    ['as audited', 'dropping', 'kernel noise']
    >>> "privacy cost of its own" in advice.warnings[0]
    True
    """

    kind: Literal["advice"] = "advice"
    dataset: DatasetEntry
    target: Target
    target_label: str
    unit: Literal["record", "group"]
    sentence: str
    own: AdviceOption
    options: list[AdviceOption]
    notes: list[str]
    model: ExaminedModel | None = None
    loss: str = "squared error"

    @property
    def best(self) -> AdviceOption | None:
        """The cheapest option that meets the target."""
        first = self.options[0] if self.options else None
        return first if first is not None and first.meets else None

    def in_short(self) -> Short:
        """The answer, and every option with what it costs."""
        rows = [
            [
                option.name,
                option.setting_words,
                option.met_words,
                digits(option.worst, infinite=True),
                digits(option.error),
                digits(option.cost),
            ]
            for option in (self.own, *self.options)
        ]
        headings = ("option", "setting", "meets the target", "worst record", "error", "cost")
        title = (
            f"Defences for {self.dataset.name}: {self.target_label} at most {self.target.value:g}"
        )
        return Short(title, (self.sentence,), headings, rows, tuple(self.warnings))

    def to_frame(self) -> pd.DataFrame:
        """A table, the audit's own setting first, then the options as ranked."""
        import pandas as pd

        names = (
            "meets",
            "confirmed",
            "questions",
            "worst",
            "median",
            "error",
            "cost",
            "cost_stderr",
        )
        rows = [
            {
                "option": option.name,
                "setting": option.setting_words,
                **{
                    name: getattr(option, name)
                    for name in (*names, "cost_stderr", "r_squared", "accuracy")
                },
            }
            for option in (self.own, *self.options)
        ]
        return pd.DataFrame(rows)


def setting_text(setting: dict[str, float | None]) -> str:
    """A setting on one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}"
        for name, value in setting.items()
        if value is not None
    )
