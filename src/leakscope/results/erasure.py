"""The result file of ``leakscope erase``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from leakscope.results.audit import EXPOSED_ABOVE, ExaminedModel
from leakscope.results.document import DatasetEntry, Entry, Fraction, Number, ResultDocument
from leakscope.results.sections import Section
from leakscope.results.shown import Short, counted, digits, named

# What a model is, beside the fit with the records and the one without them.
Found = Literal["erased", "kept", "other records", "other penalty", "traces", "cannot tell"]


class Trace(Entry):
    """A part of the model that learns from the records beside its coefficients.

    ``saw`` is whether it was made with the erased records; None where that cannot be told.
    """

    part: str
    saw: bool | None
    words: str


class MoreExposed(Entry):
    """A record that stays, and its advantage before and after."""

    record_id: str | int
    before: Fraction
    after: Fraction


class Erasure(ResultDocument):
    """The result of ``leakscope erase``: is a model the fit without some records?

    Attributes
    ----------
    found, met
        What the model is, and whether the records are erased from it; None where that cannot be
        told.
    effect, left, trace
        How far the records' leaving moves the fit, how far the model still is from the exact fit
        without them, both in the Hessian's metric, and what is left along the records' own
        direction as a share of the effect.
    distance
        From the model's coefficients to the exact ones: noise of this standard deviation on every
        coefficient makes what is left mu = 1 (Gaussian certifiability).
    gradient_rest, gradient_all
        The largest entry of the objective's gradient over the records that stay, and over all.
    lacking
        The records that the model was fitted without, where they could be found.
    penalty_factor, penalty_kept
        What times the penalty the model was fitted with, where another one explains it, and
        whether the records are still in it.
    traces
        Scalers, chosen penalties and the like: whether they saw the records.
    exposed_before, exposed_after, more_exposed
        How many of those who stay have an advantage of 0.1 or more, and whose rose most.
    power
        Where no exact check exists: the chance that the test would have seen the erasure.
    """

    kind: Literal["erase"] = "erase"
    dataset: DatasetEntry
    model: ExaminedModel
    records: list[str | int]
    rows: int
    made: bool
    file: str | None = None
    found: Found
    met: bool | None
    effect: Number = None
    left: Number = None
    trace: Number = None
    distance: Number = None
    gradient_rest: Number = None
    gradient_all: Number = None
    lacking: list[str | int] | None = None
    penalty_factor: Number = None
    penalty_kept: bool | None = None
    traces: list[Trace] = Field(default_factory=list)
    exposed_before: int | None = None
    exposed_after: int | None = None
    more_exposed: list[MoreExposed] = Field(default_factory=list)
    p_value: Fraction = None
    power: Fraction = None
    verdict: str

    def in_short(self) -> Short:
        """The verdict, and the numbers behind it with what they mean."""
        rows = [
            [what, digits(value, most=3), meaning]
            for what, value, meaning in (
                ("effect", self.effect, "how far the fit moves when the records leave"),
                ("left", self.left, "how far this model is from the exact fit without them"),
                ("trace", self.trace, "of the effect, along the records' direction; 0 is erased"),
                ("distance", self.distance, "noise per coefficient that hides it to mu = 1"),
                ("gradient over the rest", self.gradient_rest, "0 at the exact fit without them"),
                ("gradient over all", self.gradient_all, "0 where the records are still in"),
                ("p-value", self.p_value, "small: their answers fell more than those of others"),
                ("power", self.power, "the chance that this test sees an erasure"),
            )
            if value is not None
        ]
        title = f"Erasure of {counted(len(self.records), 'record')} from {self.model.name}"
        return Short(
            title, (self.verdict,), ("what", "value", "meaning"), rows, tuple(self.warnings)
        )

    def sections(self) -> tuple[Section, ...]:
        """Traces, and who is more exposed."""
        sections = [Section("Whose", [self.whose_sentence], names=True)]
        if self.traces:
            answers = {True: "yes", False: "no", None: "cannot tell"}
            rows = [[trace.part, answers[trace.saw], trace.words] for trace in self.traces]
            headings = ("part", "saw the records", "why")
            words = ["Scalers, encoders and chosen settings are part of the model."]
            tables = [(headings, rows)]
            sections.append(Section("What else learned from the records", words, tables))
        if self.exposed_before is not None:
            rows = [
                [str(r.record_id), digits(r.before, most=3), digits(r.after, most=3)]
                for r in self.more_exposed
            ]
            tables = [(("record", "advantage before", "after"), rows)] if rows else []
            sections.append(Section("Who stays", [self.stay_sentence], tables, names=True))
        return tuple(sections)

    @property
    def whose_sentence(self) -> str:
        """Who was to leave, and who did."""
        words = f"To leave: {named(self.records)}."
        lacking = None if self.made else self.lacking
        if lacking is None or sorted(map(str, lacking)) == sorted(map(str, self.records)):
            return words
        return f"{words} This model was fitted without: {named(lacking) or 'nobody'}."

    @property
    def stay_sentence(self) -> str:
        """How the exposure of those who stay changes."""
        return (
            f"{self.exposed_before} of those who stay had an advantage of {EXPOSED_ABOVE:g} or "
            f"more before, {self.exposed_after} have it after."
        )
