"""The result file of ``leakscope measure``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from leakscope.results.document import Entry, Fraction, Number, ResultDocument
from leakscope.results.shown import Short, digits, ends_text


class MeasureInterval(Entry):
    """The interval of a number that was estimated from scores; an infinite end is null."""

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
        KL(nonmember || member), and the other direction; null for scores.
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

    def in_short(self) -> Short:
        """The advantage and the AUC in words, every number in the table."""
        entries: list[tuple[str, str, float | None]] = [
            ("advantage", "advantage (best TPR - FPR)", self.advantage),
            ("auc", "AUC", self.auc),
            ("kl", "KL(nonmember || member)", self.kl),
            ("kl_reverse", "KL(member || nonmember)", self.kl_reverse),
        ]
        for name, label, values in (
            ("tpr_at_fpr", "TPR at FPR", self.tpr_at_fpr),
            ("epsilon_at_delta", "epsilon at delta", self.epsilon_at_delta),
        ):
            entries += [(f"{name}_{at}", f"{label} {at}", value) for at, value in values.items()]

        # of scores there is no KL; an infinite one is told
        entries = [row for row in entries if row[2] is not None or row[0] in self.infinite]

        def told(name: str, value: float | None) -> str:
            return digits(value, infinite=name in self.infinite, most=6)

        headings: tuple[str, ...] = ("measure", "value")
        rows = [[label, told(name, value)] for name, label, value in entries]
        if self.intervals:
            headings += (f"{self.settings['confidence']:.0%} interval",)
            for row, (name, _, _) in zip(rows, entries, strict=True):
                ends = self.intervals.get(name)
                row.append(
                    ""
                    if ends is None
                    else f"[{told(f'{name}_low', ends.low)}, {told(f'{name}_high', ends.high)}]"
                )
        sentence = (
            f"An attacker's advantage is {digits(self.advantage, most=3)} (best TPR - FPR) and the "
            f"AUC {digits(self.auc, most=3)}."
        )
        given = f"{self.settings.get('member')} against {self.settings.get('nonmember')}"
        title = f"Members and non-members: {given}"
        return Short(title, (sentence,), headings, rows, tuple(self.warnings))


class MeasuredRecord(Entry):
    """One record: posterior means and the ends of their intervals, TPRs by the FPR as text.

    ``known`` is whether its intervals hold, though its numbers may not be confirmed; None in files
    from when what was not confirmed was not known.
    """

    record: int | str
    advantage: Fraction
    advantage_low: Fraction
    advantage_high: Fraction
    tpr_at_fpr: dict[str, Fraction]
    tpr_low: dict[str, Fraction]
    tpr_high: dict[str, Fraction]
    exposed: bool
    confirmed: bool = True
    known: bool | None = None

    @property
    def bounded(self) -> bool:
        """Whether its intervals hold."""
        return self.confirmed if self.known is None else self.known


def measured_records(
    found: Any, names: Sequence[int | str], rows: Iterable[int]
) -> list[MeasuredRecord]:
    """Some records of what models showed (:class:`leakscope.halves.estimate.FewModels`)."""
    tprs = {f"{level:g}": each for level, each in found.tpr_at_fpr.items()}
    return [
        MeasuredRecord(
            record=names[i],
            advantage=float(found.advantage.value[i]),
            advantage_low=float(found.advantage.low[i]),
            advantage_high=float(found.advantage.high[i]),
            tpr_at_fpr={level: float(each.value[i]) for level, each in tprs.items()},
            tpr_low={level: float(each.low[i]) for level, each in tprs.items()},
            tpr_high={level: float(each.high[i]) for level, each in tprs.items()},
            exposed=bool(found.exposed[i]),
            confirmed=bool(found.trusted[i]),
            known=bool(found.noise_seen),
        )
        for i in rows
    ]


def _ends(record: MeasuredRecord, level: str) -> str:
    low, high = record.tpr_low[level], record.tpr_high[level]
    return "-" if low is None or high is None else ends_text(low, high)


class ModelsMeasurement(ResultDocument):
    """What a few models show: ``records`` has one entry per record, in the file's order."""

    kind: Literal["measure_models"] = "measure_models"
    models: int
    mean_advantage: Fraction
    mean_tpr_at_fpr: dict[str, Fraction]
    records: list[MeasuredRecord]

    def in_short(self, most: int = 10) -> Short:
        """How many records are exposed for certain, the mean TPRs, and the most exposed."""
        ranked = sorted(self.records, key=lambda record: -(record.advantage or 0.0))[:most]
        levels = list(self.mean_tpr_at_fpr)
        rows = [
            [
                str(record.record),
                f"{record.advantage:.3f}",
                f"[{record.advantage_low:.3f}, {record.advantage_high:.3f}]",
                *(_ends(record, level) for level in levels),
            ]
            for record in ranked
        ]
        exposed = sum(record.exposed for record in self.records)
        means = ", ".join(f"{v:.3g} at FPR {k}" for k, v in self.mean_tpr_at_fpr.items())
        interval = f"{self.settings['confidence']:.0%} interval"
        return Short(
            f"{len(self.records):,} records, {self.models} models",
            (
                f"{exposed:,} of {len(self.records):,} records can be named as exposed, with at "
                "most a 5% chance that any one of them is not.",
                f"Mean advantage {self.mean_advantage:.3f}; mean TPR {means}.",
            ),
            ("record", "advantage", interval, *(f"TPR at {level}" for level in levels)),
            rows,
            tuple(self.warnings),
        )


class CanaryBound(Entry):
    """One lower bound on epsilon, and what it was got from.

    Attributes
    ----------
    form
        ``any`` holds for every mechanism, ``gaussian`` where the trade-off function is Gaussian.
    mu
        Of the Gaussian mechanism with this epsilon; null for any mechanism.
    named_included, named_left_out, right
        Guesses of both kinds, and how many of them were right.
    largest
        The bound if all of them had been right, with as many canaries.
    """

    form: Literal["any", "gaussian"]
    delta: float
    epsilon: float
    mu: Number = None
    named_included: int
    named_left_out: int
    right: int
    largest: float


class CanaryMeasurement(ResultDocument):
    """What one training with canaries shows of its epsilon: lower bounds, beside a claim.

    Attributes
    ----------
    canaries, included
        All of them, and those that the coins put into the training set.
    choices
        How many numbers of guesses shared the confidence; 1 where they were fixed in advance.
    """

    kind: Literal["measure_canaries"] = "measure_canaries"
    canaries: int
    included: int
    choices: int
    bounds: list[CanaryBound]
    claimed_epsilon: Number = None

    def bound(self, form: Literal["any", "gaussian"] = "any") -> CanaryBound:
        """That of a form at the first delta, which is the one a claim is about."""
        return next(bound for bound in self.bounds if bound.form == form)

    def contradictions(self) -> tuple[list[str], list[str]]:
        """Sentences: what contradicts the claim for certain, and what does if noise is Gaussian."""
        claim, first, second = self.claimed_epsilon, self.bound(), self.bound("gaussian")
        if claim is None or max(first.epsilon, second.epsilon) <= claim:
            return [], []
        if first.epsilon > claim:
            return [
                f"the claimed epsilon of {digits(claim)} is contradicted: at delta "
                f"{first.delta:g} it is at least {digits(first.epsilon, most=3)}."
            ], []
        return [], [
            f"either the claimed epsilon of {digits(claim)} is wrong or the mechanism is not a "
            f"Gaussian one: if it is, epsilon is at least {digits(second.epsilon, most=3)}."
        ]

    def in_short(self) -> Short:
        """The bounds in words, what they do not say, and the claim beside them."""
        headings: tuple[str, ...] = (
            "mechanism",
            "delta",
            "epsilon at least",
            "guesses",
            "right",
            "could show",
        )
        rows = [
            [
                "any" if bound.form == "any" else "Gaussian",
                f"{bound.delta:g}",
                digits(bound.epsilon, most=3),
                f"{bound.named_included:,} + {bound.named_left_out:,}",
                f"{bound.right:,}",
                digits(bound.largest, most=3),
            ]
            for bound in self.bounds
        ]
        return Short(
            f"{self.canaries:,} canaries, of which {self.included:,} were included",
            tuple(self._sentences()),
            headings,
            rows,
            tuple(self.warnings),
        )

    def _sentences(self) -> Iterator[str]:
        first, second = self.bound(), self.bound("gaussian")
        sure = f"With {self.settings['confidence']:.0%} confidence"
        if first.epsilon or second.epsilon:
            yield (
                f"{sure} this training's epsilon is at least {digits(first.epsilon, most=3)} at "
                f"delta {first.delta:g} whatever the mechanism, and at least "
                f"{digits(second.epsilon, most=3)} if it is a Gaussian one."
            )
            yield "It may be far larger: another attack or other canaries may show more."
        else:
            yield (
                f"{sure} nothing was seen: the lower bound on epsilon is 0. That does not prove "
                "privacy: a better attack or more canaries may show more."
            )
        if self.claimed_epsilon is None:
            return
        claim = digits(self.claimed_epsilon)
        certain, if_gaussian = self.contradictions()
        for sentence in (*certain, *if_gaussian):
            yield f"{sentence[:1].upper()}{sentence[1:]}"
        if not certain and not if_gaussian:
            yield f"That does not contradict the claimed epsilon of {claim}."
        if first.largest < (self.claimed_epsilon or 0.0):
            yield (
                f"So few canaries show {digits(first.largest, most=3)} at most, were every guess "
                f"right; to see {claim} whatever the mechanism takes more."
            )
