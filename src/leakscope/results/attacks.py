"""The result files of ``leakscope attack``: query, reconstruct and membership."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from leakscope.results.audit import ExaminedModel
from leakscope.results.document import DatasetEntry, Entry, Number, ResultDocument
from leakscope.results.shown import Short, digits
from leakscope.settings.attack import QUERY_DEFAULTS


class Applicability(Entry):
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
    """

    covered: bool | None
    kkt_residual: Number
    bounds: dict[str, Any] | None
    statement: str


class MembershipAttack(ResultDocument):
    """The result of ``leakscope attack membership``."""

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


class MembershipTest(Entry):
    """One threshold for all queries, at a false-positive rate.

    Attributes
    ----------
    fpr, threshold
        The share of nonmembers whose score exceeds the threshold, by their laws.
    tpr
        The share of members whose score does, by theirs.
    called
        How many queries are called members.
    """

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
    confirmed
        Whether the query's laws are.
    auc, tests
        What the laws promise over these queries, and the thresholds.
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
    confirmed: list[bool]
    auc: Number
    tests: list[MembershipTest]
    verdict: str


class FitReconstructAttack(ResultDocument):
    """The result of ``leakscope attack reconstruct`` on a fitted model.

    Attributes
    ----------
    model, known
        Which model was attacked, and how many records the attacker knows.
    determined
        What the equation gives: the record, its direction, a sum of several, or nothing.
    features, units, label, sds
        The reconstruction by the names of the columns, in which units it is, its label, and with
        noise on the coefficients each feature's standard deviation.
    error, cosine, label_right
        Beside the true record, where it was given.
    records, found, labels_right
        Of every record in turn: how many there are, the share that is found to within 1%, and the
        share of the labels that are right.
    gradient, gradient_needed, tolerance_needed
        What the solver left, and what it may leave for half of the records to be found; the same
        as a solver's tolerance (of the mean loss).
    kappa, rero_bound
        With noise: the chance of a guess without the model, and the largest with it.
    """

    kind: Literal["attack_reconstruct_model"] = "attack_reconstruct_model"
    model: ExaminedModel
    known: int
    determined: Literal["record", "direction", "sum", "nothing"]
    features: dict[str, str | Number] = Field(default_factory=dict)
    units: str | None = None
    label: str | Number = None
    sds: dict[str, Number] | None = None
    error: Number = None
    cosine: Number = None
    label_right: bool | None = None
    records: int | None = None
    found: Number = None
    labels_right: Number = None
    gradient: Number = None
    gradient_needed: Number = None
    tolerance_needed: Number = None
    kappa: Number = None
    rero_bound: Number = None
    verdict: str

    def in_short(self) -> Short:
        """The verdict, and the record that was found or how many were."""
        if self.records is not None:
            rows = [
                [what, digits(value, most=3)]
                for what, value in (
                    ("share of the records that is found", self.found),
                    ("share of the labels that are right", self.labels_right),
                    ("largest gradient entry left by the solver", self.gradient),
                    ("at which half would be found", self.gradient_needed),
                    ("which is a tolerance of", self.tolerance_needed),
                    ("largest chance with the noise", self.rero_bound),
                )
                if value is not None
            ]
            return Short(self._title, (self.verdict,), ("what", "value"), rows)
        rows = [["label", str(self.label)]] if self.label is not None else []
        sds = self.sds or {}
        for name, value in self.features.items():
            sd = f" ± {digits(sds[name], most=2)}" if name in sds else ""
            told = value if isinstance(value, str) else digits(value, most=6)
            rows.append([name, told + sd])
        return Short(self._title, (self.verdict,), ("column", "value"), rows)

    @property
    def _title(self) -> str:
        return f"Reconstruction from {self.model.name}"


class FoundQuery(Entry):
    """One of the best queries: how near it is to which record.

    ``features`` is the query itself, in the file's units; null in an older result.
    """

    nearest_record: int | str
    distance: Number
    relative_distance: Number
    cosine: Number
    prediction_kl: Number
    features: list[Number] | None = None


class QueryStart(Entry):
    """Where one start ended: its KL, as a share of that at the record, and what it recovered.

    Of a search for the mean distance ``kl`` is null, and ``mean_distance`` is what was reached.
    """

    kl: Number
    ratio: Number
    recovered: list[int | str]
    mean_distance: Number = None


class QueryAttack(ResultDocument):
    """The result of ``leakscope attack query``.

    ``kl`` and ``kl_at_record`` are of the query that was found, whatever it was to make large
    (``objective``); ``ratio`` is that objective there over that at the record.
    """

    kind: Literal["attack_query"] = "attack_query"
    dataset: DatasetEntry
    kernel: dict[str, Any]
    noise_variance: float
    records: list[int | str]
    climb: str
    objective: str = QUERY_DEFAULTS.objective
    mean_distance: Number = None
    mean_distance_at_record: Number = None
    kl: Number
    kl_at_record: Number
    ratio: Number
    advantage: Number
    advantage_at_record: Number
    starts_recovered: int
    queries: list[FoundQuery]
    starts: list[QueryStart]
    pictures: list[str]
    verdict: str


class ReconstructedRecord(Entry):
    """A place where a training record may be, and which theorem says so."""

    x: float
    label: int
    theorem: str
    piece: int | None
    certified: bool
    multiplier_low: Number
    multiplier_high: Number
    pairs: int | None = None


class ReconstructedFlat(Entry):
    """A constant piece on the margin; an end at infinity is null."""

    low: Number
    high: Number
    label: int
    certified: bool
    mean: Number


class AttackedNetwork(Entry):
    """Which network was attacked."""

    name: str
    width: int
    features: int
    notes: list[str]


class ReconstructAttack(ResultDocument):
    """The result of ``leakscope attack reconstruct``.

    Of a training set given, ``precision`` is the share of candidates that are records, ``recall``
    the share of all records that are candidates, ``margin_recall`` that of the records on the
    margin.  An older result has the latter as ``recall``.  ``function`` has the network's
    breakpoints and a point beyond them on either side, as (x, f(x)): straight lines join them.
    """

    kind: Literal["attack_reconstruct"] = "attack_reconstruct"
    network: AttackedNetwork
    margin: Number
    margin_known: bool
    form: str
    candidates: list[ReconstructedRecord]
    flats: list[ReconstructedFlat]
    residual: Number
    guarantee: Number
    precision: Number
    recall: Number
    margin_recall: Number = None
    queries: int | None
    function: list[tuple[float, float]] | None = None
    verdict: str
