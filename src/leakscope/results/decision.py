"""The result file of ``leakscope decide``: what a person signs, and on what it rests."""

from __future__ import annotations

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import Field

from leakscope.data.files import require_file
from leakscope.errors import InputError
from leakscope.results.audit import AgainstAttacker, Subgroup
from leakscope.results.document import Entry, Number, ResultDocument, to_json
from leakscope.results.reconciliation import ReconciledRow
from leakscope.results.shown import Short, digits

# What a person could have stated, and what no run says.
NOT_STATED, NOT_KNOWN = "not stated", "not known"

# Before the record's own hash is known; the hash is of the file with these in its place.
NO_HASH = "0" * 64

# The record for machines first: its hash stands in the other two.
DECISION_FILES = ("decision.json", "decision.html", "decision.md")

Basis = Literal["measured", "computed", "declared"]


class StatedField(Entry):
    """One field of the record: its value, how it reads, and whether it was measured or declared."""

    key: str
    label: str
    basis: Basis
    value: bool | int | float | str | None = None
    text: str = NOT_STATED


class ExposedEntry(Entry):
    """One of the most exposed records; what is not known is null.

    ``ppv`` and ``lift`` are of an accusation at a false-positive rate of 0.1%, at the declared
    prior.  Ends of intervals are there where the numbers were measured.
    """

    record_id: int | str | None
    advantage: Number
    advantage_low: Number = None
    advantage_high: Number = None
    tpr_at_fpr_0_001: Number
    tpr_at_fpr_0_001_low: Number = None
    tpr_at_fpr_0_001_high: Number = None
    tpr_at_fpr_0_01: Number
    tpr_at_fpr_0_01_low: Number = None
    tpr_at_fpr_0_01_high: Number = None
    ppv: Number = None
    lift: Number = None
    confirmed: bool


class LevelEntry(Entry):
    """An attack on everybody at one false-positive rate: how many it finds, and how surely."""

    fpr: float
    mean_tpr: Number
    expected_found: Number
    ppv: Number = None
    lift: Number = None


class ThresholdEntry(Entry):
    """One limit, the largest value, and how many are above; ``met`` is null where not known."""

    measure: str
    limit: float
    largest: Number
    above: int | None
    met: bool | None


class AttackerEntry(AgainstAttacker):
    """The exposure against one attacker, and whether the thresholds would be met.

    ``judged`` is whether the thresholds of this record are judged against this one; ``within``
    null: not known.
    """

    who: str
    judged: bool
    within: bool | None


class CoverageRow(Entry):
    """One attack, and whether it was run.

    ``why_not``: it was possible; it takes another kind of model; leakscope has no such attack.
    ``found`` says what came out, or how to run it, or why it could not be.
    """

    attack: str
    ran: bool
    found: str
    run: str | None = None
    why_not: Literal["possible", "not applicable", "not available"] | None = None

    @property
    def state(self) -> str:
        """One word or two: run, not run, not applicable, not available."""
        if self.ran:
            return "run"
        return "not run" if self.why_not in (None, "possible") else self.why_not


class MitigationRow(Entry):
    """One change that was tried or searched, what it does and what it costs."""

    change: str
    effect: str
    price: str
    run: str


class RunEntry(Entry):
    """One of the runs that the decision rests on, with the hash of its result."""

    run: str
    kind: str
    sha256: str
    leakscope_version: str
    created: str


_MET = {True: "yes", False: "no", None: "not known"}


class SignOff(Entry):
    """What the person who decides writes; blank until then."""

    decision: Literal["approved", "approved with conditions", "refused"] | None = None
    because: str | None = None
    conditions: str | None = None
    approver: str | None = None
    expires: date | None = None


class Decision(ResultDocument):
    """The record of a decision to release a model.

    Attributes
    ----------
    model_name
        Which model it is about, in words.
    summary, obstacles
        The first page in sentences; why it cannot be approved, where it cannot.
    identity, context, attacker
        Fields that were computed or declared, each with its basis.
    exposed, exposed_basis, exposed_how, records, levels, subgroups
        The most exposed records; whether measured or computed, and how; of how many; attacks on
        everybody; exposure by the columns of ``audit --by``.
    above
        All records above a threshold, by the measure that is judged.
    against
        The exposure against other attackers than the one that is judged.
    thresholds, reason
        Limits, and why these.
    reconciliation, coverage, mitigations
        Tables; see docs/decide.md.
    runs, versions
        What it rests on.
    sign_off, record_hash
        Blank to be signed; SHA-256 of the file with zeros in place of the hash.
    """

    kind: Literal["decision"] = "decision"
    model_name: str
    summary: list[str]
    obstacles: list[str]
    identity: list[StatedField]
    context: list[StatedField]
    attacker: list[StatedField]
    exposed_basis: Basis
    exposed_how: str
    records: int | None
    exposed: list[ExposedEntry]
    above: list[ExposedEntry] = Field(default_factory=list)
    against: list[AttackerEntry] = Field(default_factory=list)
    levels: list[LevelEntry]
    subgroups: list[Subgroup] = Field(default_factory=list)
    thresholds: list[ThresholdEntry]
    reason: str | None
    reconciliation: list[ReconciledRow]
    coverage: list[CoverageRow]
    mitigations: list[MitigationRow]
    runs: list[RunEntry]
    versions: dict[str, str]
    sign_off: SignOff = Field(default_factory=SignOff)
    redacted: bool = False
    record_hash: str = Field(default=NO_HASH, pattern="^[0-9a-f]{64}$")

    def in_short(self) -> Short:
        """What was decided, or may be, and each threshold."""
        signed = self.sign_off.decision or "blank, to be signed"
        rows = [
            (row.measure, digits(row.limit), digits(row.largest), _MET[row.met])
            for row in self.thresholds
        ]
        obstacles = tuple(f"cannot be approved: {one}" for one in self.obstacles)
        return Short(
            f"Decision on {self.model_name}: {signed}", tuple(self.summary),
            ("threshold", "limit", "largest", "met"), rows, obstacles,
        )  # fmt: skip

    @property
    def may_be_approved(self) -> bool:
        """Whether nothing stands in the way of an approval."""
        return not self.obstacles

    @property
    def within_thresholds(self) -> bool:
        """Whether every threshold is known to be met."""
        return all(limit.met for limit in self.thresholds)

    @property
    def judged(self) -> tuple[list[str], list[str]]:
        """Sentences on thresholds that are not met, and on what cannot be told or approved."""
        exceeded, unknown = (
            [f"threshold {words}: {limit.measure}, {limit.limit:.3g}." for limit in limits]
            for words, limits in (
                ("not met", [limit for limit in self.thresholds if limit.met is False]),
                ("not known to be met", [one for one in self.thresholds if one.met is None]),
            )
        )
        return exceeded, [*unknown, *(["it cannot be approved."] if self.obstacles else [])]

    def stated(self, key: str) -> StatedField:
        """A field of identity, context or attacker by its key."""
        return next(
            field for field in (*self.identity, *self.context, *self.attacker) if field.key == key
        )


# In JSON a field, in other texts a comment.
_SEAL = re.compile(r'(?:"record_hash": "|file_hash: )([0-9a-f]{64})')


def sealed_text(text: str) -> str:
    """The text with its hash in place of the zeros."""
    return text.replace(NO_HASH, _hash(text))


def sealed_record(record: Decision) -> Decision:
    """The record with its own hash in it."""
    blank = record.model_copy(update={"record_hash": NO_HASH})
    return blank.model_copy(update={"record_hash": _hash(f"{to_json(blank)}\n")})


def require_sealed(path: str | Path) -> str:
    """The hash that a file carries, checked against its text.

    Raises
    ------
    InputError
        Where it carries none, or was changed since it was written.
    """
    path = Path(path)
    require_file(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a record of leakscope decide: it is not text.") from None
    found = _SEAL.findall(text)
    if not found:
        raise InputError(
            f"{path} is not a record of leakscope decide: it carries no hash of itself."
        )
    carried: str = found[-1]
    if _hash(text.replace(carried, NO_HASH)) != carried:
        raise InputError(
            f"{path} was changed after it was written: its text does not have the hash that it "
            "carries."
        )
    return carried


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
