"""What an audit is: one class, in memory and on disk.

Its table has one row per unit (a record or a group) and the columns of
:mod:`leakscope.results.columns`; JSON, CSV, arrays and frames are views of it.  What only one kind
of model has to say is in ``details``; how a kind words its audits is asked of the kind itself
(:mod:`leakscope.results.kinds`), so that no verb has to know which kind it holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from leakscope.errors import InputError
from leakscope.results.columns import Record, Table, shown_columns, text_with_ends, trust_of
from leakscope.results.document import DatasetEntry, Entry, Fraction, Number, ResultDocument
from leakscope.results.kinds import kind_named
from leakscope.results.shown import Short, are
from leakscope.results.trust import Trust

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from leakscope.data.datasets import Dataset, RecordId

# An attacker whose best test gains at least this much over guessing (TPR - FPR) on some record is
# called exposure; the number is shown beside the word.
EXPOSED_ABOVE = 0.1

# So many of the most exposed are in a result in short.
SHOWN = 10

SHORT_COLUMNS = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc")

FPRS = {0.01: "tpr_at_fpr_0_01", 0.001: "tpr_at_fpr_0_001"}

# What :meth:`Audit.plot` draws.
Picture = Literal["ranks", "advantage", "kl", "roc"]

# How the numbers stand to the model that is released: worked out from it, measured with models of
# its training, or those of a stand-in whose level is assumed.
Basis = Literal["computed", "measured", "assumed"]


# Neighbours, support vectors and kernels: their fitted models keep rows of the training data.
HOLDERS = re.compile(r"KNeighbors|RadiusNeighbors|NearestNeighbors|\b(Nu)?SV[CR]\b|OneClassSVM|"
                     r"KernelRidge|GaussianProcess|KernelDensity|LocalOutlierFactor")  # fmt: skip


class ExaminedModel(Entry):
    """Which model was examined, and where it came from: a file with its digest, or a stand-in."""

    type: str
    name: str
    origin: str
    parameters: dict[str, Any]
    file: str | None = None
    file_sha256: str | None = None
    stand_in: bool = False

    @property
    def holds_records(self) -> bool:
        """Whether the fitted model stores training records as they are."""
        return bool(HOLDERS.search(f"{self.type} {self.name}"))


class AgainstAttacker(Entry):
    """The exposure against one attacker: who draws the other records, and how many are in."""

    attacker: str
    question: str
    fraction: float
    largest_advantage: Fraction
    median_advantage: Fraction
    largest_tpr_at_fpr_0_01: Fraction
    largest_tpr_at_fpr_0_001: Fraction
    exposed: int
    unconfirmed: int


class SecretValue(Entry):
    """How often one value of a secret column is named, of the records that have it."""

    value: str
    count: int
    named_prior: Fraction
    named_without: Fraction
    named_with: Fraction


class SecretAttribute(Entry):
    """What a model gives away of one column of the records that it was trained on.

    ``named_*`` are shares of records whose own value is named, over training sets: without a model,
    with one that was not trained on the record, with this one.  ``chance_*`` are the same by the
    attackers' own beliefs, and ``*_leak`` the last less the second of these; ``by_shares`` and
    ``by_other_model`` are what the first two name with no more than the column's shares.
    ``error`` is of a record's leak, by the points that stand for a normal law.
    """

    column: str
    values: int
    prior: Literal["imputed", "shares"]
    within: Number
    by_shares: Fraction
    by_other_model: Fraction
    named_prior: Fraction
    named_without: Fraction
    named_with: Fraction
    chance_prior: Fraction
    chance_without: Fraction
    chance_with: Fraction
    mean_leak: Fraction
    largest_leak: Fraction
    largest_leak_of: int | str
    leaking: int
    median_advantage: Fraction
    largest_advantage: Fraction
    unconfirmed: int
    error: Number
    by_value: list[SecretValue]


class Subgroup(Entry):
    """The exposure of the records with one value of a column."""

    column: str
    value: str
    count: int
    median_advantage: Fraction
    largest_advantage: Fraction
    share_exposed: Fraction
    small: bool


class Explanation(Entry):
    """Why one of the most exposed is; a kind adds its own numbers."""

    record_id: int | str
    rank: int
    neighbours: list[int | str] = Field(default_factory=list)
    sentence: str

    @property
    def others(self) -> str:
        """The other records that matter to this one, in a sentence."""
        return f"Nearest: {', '.join(map(str, self.neighbours))}." if self.neighbours else ""


class FitFacts(Entry):
    """How large the model is beside its data, and how much better it does on them than on others.

    ``score`` names what ``training`` and ``left_out`` are: the score on records that were used in
    training, and on each record by models without it.
    """

    parameters: int | None
    score: str
    training: Number
    left_out: Number

    @property
    def gap(self) -> float | None:
        """The score on the training records minus that of each record in a fit without it."""
        if self.training is None or self.left_out is None:
            return None
        return self.training - self.left_out


class Totals(Entry):
    """What is known over all units, where the table holds the most exposed only."""

    units: int
    unconfirmed: int
    exposed: int | None = None
    median_advantage: Fraction
    largest: dict[str, Number]


class Details(Entry):
    """What only one kind of model has to say; the fields stand beside the others in the file."""

    explanations: list[Explanation] = Field(default_factory=list)

    def totals(self, dataset: DatasetEntry) -> Totals | None:
        """Over all units; None where the table holds them all."""
        return None

    def size(self) -> FitFacts | None:
        """How large the model is beside its data, and how it does on them; None if not known."""
        return None

    def against(self) -> Sequence[AgainstAttacker]:
        """The exposure against several attackers, where that was worked out."""
        return ()

    def secret_attribute(self) -> SecretAttribute | None:
        """What is given away of a column that was asked about; None where none was."""
        return None

    def for_everybody(self) -> Mapping[str, float | None]:
        """What one threshold on the scores of everybody would achieve, where that is known."""
        return {}


class Audit(ResultDocument):
    """The leakage of every unit of a dataset under one model.

    Arrays are in the order of the data; ``order`` ranks them.  ``Audit.open(path)`` reads a run.

    Examples
    --------
    >>> import leakscope
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=0.1).fit(X, y))
    >>> audit.ranking()[:3], audit.trust.why(0)
    ((123, 102, 92), 'refits of the recipe agree with its law')
    >>> audit.to_frame().columns[:3].tolist()
    ['record_id', 'advantage', 'tpr_at_fpr_0_01']
    """

    kind: str = "audit"
    subject: str
    dataset: DatasetEntry
    model: ExaminedModel
    unit: Literal["record", "group"] = "record"
    question: str
    fraction: float | None = None
    observes: str
    median_advantage: Fraction
    exposed_above: float = EXPOSED_ABOVE
    exposed: int | None = None
    sentences: list[str]
    sentences_without_ids: list[str] | None = None
    subgroups: list[Subgroup] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    table: Annotated[Table, Field(alias="records")]
    # The Details of the kind, which only the kind itself reads by name.
    details: Any

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    # Of an audit in memory: the laws of every unit, and what was examined.
    _laws: Any = PrivateAttr(None)
    _subject: Any = PrivateAttr(None)
    # Of a stored one: the run directory that it was read from.
    _directory: Path | None = PrivateAttr(None)

    @field_validator("subject")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            kind_named(value)
        except InputError as error:
            raise PydanticCustomError("subject", str(error).rstrip(".")) from None
        return value

    @field_validator("details", mode="plain")
    @classmethod
    def _details_of_kind(cls, value: Any, info: Any) -> Details:
        if isinstance(value, Details):
            return value
        kind = kind_named(str(info.data.get("subject")))
        return kind.Details.model_validate(value, strict=True)  # type: ignore[no-any-return]

    @model_validator(mode="after")
    def _evident(self) -> Audit:
        """Trust must name its checks."""
        try:
            _ = self.trust
        except ValueError as error:
            raise PydanticCustomError("checks", str(error)) from None
        if self.kind != self.about.file_kind:
            raise PydanticCustomError("kind", "another kind than that of its subject")
        return self

    def __eq__(self, other: object) -> bool:
        """Whether all that is stored is the same; what is in memory beside it does not count."""
        if not isinstance(other, Audit):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Audit.model_fields)

    __hash__ = None  # type: ignore[assignment]

    # What it is about, and in which words; asked of the kind.

    @property
    def about(self) -> Any:
        """The kind of model that was examined, which words its audits."""
        return kind_named(self.subject)

    @property
    def basis(self) -> Basis:
        """How the numbers stand to the model that is released."""
        return self.about.basis  # type: ignore[no-any-return]

    def answer(self, *, threshold: float = EXPOSED_ABOVE, ids: bool = True) -> tuple[str, ...]:
        """What was examined, then the answer in a few sentences; without ids no unit is named."""
        stored = self.sentences if ids else self.sentences_without_ids
        if threshold == self.exposed_above and self._laws is None and stored is not None:
            return tuple(stored)
        return (*self.about.answer(self, threshold=threshold, ids=ids), self.attacker)

    @property
    def attacker(self) -> str:
        """What the attacker sees and knows, in plain words."""
        return str(self.about.attacker(self))

    @property
    def verdict(self) -> str:
        """The answer in plain words, and for which attacker."""
        return " ".join(self.sentences)

    @property
    def doubt(self) -> str | None:
        """What every verb says where some units are not confirmed, and what to do; else None."""
        return f"{self.doubted}: {self.about.doubt(self)[1]}." if self.unconfirmed else None

    @property
    def doubted(self) -> str:
        """How many units are not confirmed, and why, without what to do."""
        verb = are(self.unconfirmed)
        return f"{self.unconfirmed} of {self.units} {self.unit}s {verb} {self.about.doubt(self)[0]}"

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Why the most exposed are."""
        return tuple(self.details.explanations)

    def in_short(self) -> Short:
        """The answer, and the most exposed."""
        columns = shown_columns((*SHORT_COLUMNS, "confirmed"), self.table)
        rows = [
            [str(row["record_id"]), *(text_with_ends(column, row) for column in columns)]
            for row in self.table.rows(SHOWN)
        ]
        headings = (self.unit, *(column.heading for column in columns))
        title = f"Audit of {self.dataset.name}: the most exposed"
        return Short(title, tuple(self.sentences), headings, rows, tuple(self.warnings))

    # Its numbers.

    @property
    def totals(self) -> Totals:
        """Over all units, whether the table holds them all or not."""
        stored: Totals | None = self.details.totals(self.dataset)
        if stored is not None:
            return stored
        exposed = int(np.count_nonzero(self.advantage >= self.exposed_above))
        names = ("advantage", "auc", "kl", *FPRS.values())
        return Totals(
            units=len(self.table),
            unconfirmed=int(np.count_nonzero(~self.confirmed)),
            exposed=exposed if self.exposed is None else self.exposed,
            median_advantage=self.median_advantage,
            largest={
                name: float(np.nanmax(self.table.of(name), initial=-np.inf))
                for name in names
                if name in self.table
            },
        )

    @property
    def complete(self) -> bool:
        """Whether the table holds every unit."""
        return self.details.totals(self.dataset) is None

    @property
    def units(self) -> int:
        """How many records, or groups, can leave."""
        return self.totals.units

    @property
    def unconfirmed(self) -> int:
        """How many of them have numbers that no check bears out."""
        return self.totals.unconfirmed

    @property
    def records(self) -> list[Record]:
        """Every unit of the table, the most exposed first."""
        return self.table.records()

    @property
    def record_ids(self) -> tuple[RecordId, ...]:
        """The ids of the units, in the order of the data."""
        return tuple(self.table.columns["record_id"].tolist())

    @property
    def order(self) -> NDArray[np.intp]:
        """Row numbers, the most exposed first."""
        return self.table.order

    def ranking(self) -> tuple[RecordId, ...]:
        """The ids of the units, the most exposed first."""
        return tuple(self.table.columns["record_id"][self.order].tolist())

    @property
    def kl(self) -> NDArray[np.float64]:
        """KL(without || with), in nats."""
        return self.table.of("kl")

    @property
    def kl_reverse(self) -> NDArray[np.float64]:
        """KL(with || without)."""
        return self.table.of("kl_reverse")

    @property
    def advantage(self) -> NDArray[np.float64]:
        """The best test's TPR - FPR."""
        return self.table.of("advantage")

    @property
    def auc(self) -> NDArray[np.float64]:
        """The area under the best test's ROC."""
        return self.table.of("auc")

    @property
    def tpr_at_fpr(self) -> dict[float, NDArray[np.float64]]:
        """The best test's TPR, by FPR."""
        return {fpr: self.table.of(name) for fpr, name in FPRS.items() if name in self.table}

    @property
    def trust(self) -> Trust:
        """The check that each unit of the table passed."""
        return trust_of(self.table, self.checks)

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """Whether a check was made for the unit and passed."""
        return self.trust.confirmed

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the unit is confirmed, or its intervals hold."""
        return self.trust.known

    # Its laws, in memory or from the file.

    @property
    def laws(self) -> Any:
        """The laws of every unit (:class:`leakscope.subjects.UnitLaws`)."""
        if self._laws is None:
            self._laws = self.about.stored_laws(self)
        return self._laws

    @property
    def examined(self) -> Any:
        """What was examined, with its records, where the audit was made in this process."""
        return self._subject

    @property
    def directory(self) -> Path | None:
        """The run directory that it was read from; None of one in memory or in a file alone."""
        return self._directory

    def law_pair(self) -> Any:
        """The pairs of laws, one per unit in the order of the data, for any other measure."""
        return self.laws.pair()

    def with_memory(self, laws: Any, subject: Any) -> Audit:
        """The same with what only this process has of it."""
        self._laws, self._subject = laws, subject
        return self

    def read_from(self, directory: Path) -> Audit:
        """The same, of a run directory."""
        self._directory = directory
        return self

    # Its views.

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values, ready for JSON."""
        return self.model_dump(mode="json")

    def to_frame(self) -> pd.DataFrame:
        """A table, the most exposed first; several outputs have a column of means each."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for name, values in self.table.columns.items():
            if values.ndim == 2:
                columns |= {f"{name}_{c}": values[:, c] for c in range(values.shape[1])}
            else:
                columns[name] = values
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, what: Picture = "ranks") -> alt.LayerChart:
        """A chart of the audit as an Altair chart, to change, to show or to save.

        Parameters
        ----------
        what
            ``"ranks"``, every unit's advantage by its rank, with intervals where there are any;
            ``"advantage"`` or ``"kl"``, how many units have how much; ``"roc"``, the best test's
            ROC of the most exposed, of one a tenth of the way down and of the middle one.

        Examples
        --------
        >>> import leakscope
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> result = leakscope.audit(X, y, model=Ridge(alpha=0.1))
        >>> chart = result.plot()  # in a notebook: shown; else chart.save("audit.html")
        >>> sorted({row["rank"] for row in chart.to_dict()["layer"][-1]["data"]["values"]})[:3]
        [1, 2, 3]
        """
        # Pictures are made in a room above this one, which is imported when it is needed.
        charts = import_module("leakscope.reporting.charts")
        return charts.audit_chart(self, what)  # type: ignore[no-any-return]

    def write(self, directory: str | Path, *, dataset: Dataset | None = None) -> Path:
        """Write a run directory, as complete as that of ``leakscope audit``; where it was written.

        Parameters
        ----------
        directory
            It must not be there yet, or be empty.
        dataset
            What was audited, as read, for the pictures of a report, where records are pictures.
        """
        from leakscope.results.audit_run import write_run

        return write_run(self, directory, dataset=dataset)

    @classmethod
    def open(cls, path: str | Path) -> Audit:
        """The audit of a run directory or a result file."""
        from leakscope.results.reader import result_of

        result = result_of(Path(path))
        if not isinstance(result, cls):
            raise InputError(f"{path} holds a result of kind {result.kind}, and no audit.")
        return result


def explained(entries: Sequence[Explanation], most: int) -> list[str]:
    """Why the most exposed are, one numbered sentence each."""
    return [f"{entry.rank}. {entry.sentence} {entry.others}".strip() for entry in entries[:most]]
