"""What an audit returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.choice_reasons import Choices
from leakscope.auditing.explanation import Explanation
from leakscope.auditing.kernel_choice import kernel_in_words
from leakscope.auditing.kernel_sensitivity import KernelSensitivity
from leakscope.auditing.measured import advantages
from leakscope.auditing.surprising_labels import calibrated, surprising_from
from leakscope.auditing.verdict import EXPOSED_ABOVE, process_answer, process_question
from leakscope.laws import LawPair
from leakscope.lood import (
    Certificate,
    NoiseChoice,
    NoiseSweep,
    Process,
    Separation,
    ranks_of,
)
from leakscope.results import (
    AuditDocument,
    AuditRecord,
    ChoicesEntry,
    DisagreementEntry,
    ExplanationEntry,
    KernelEntry,
    KernelSensitivityEntry,
    NoiseOfDataEntry,
    SensitivityEntry,
)

# How many records whose labels disagree with the others are named beside the most exposed.
DISAGREEING = 5

COLUMNS = (
    "record_id",
    "kl",
    "kl_reverse",
    "advantage",
    "tpr_at_fpr_0_01",
    "tpr_at_fpr_0_001",
    "auc",
    "mean_distance",
    "kl_label_free",
    "kl_label",
    "disagreement",
    "mean_without",
    "variance_without",
    "mean_with",
    "variance_with",
    "trusted",
    "rank_low",
    "rank_high",
    "kernel_rank_low",
    "kernel_rank_high",
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditResult(AuditedRecords):
    """The leakage of every record of a dataset under one Gaussian process.

    Arrays are in the order of the rows of X; ``to_frame``, ``to_dict`` and ``ranking`` put the
    most exposed record first, by ``kl``.

    Attributes
    ----------
    record_ids
        The ids given, or row numbers from 0.
    kl, kl_reverse
        KL(without || with), the paper's, and KL(with || without); natural logarithms.
    advantage
        The best test's TPR - FPR, a fraction between 0 and 1.
    auc
        Of the likelihood-ratio test.
    tpr_at_fpr
        True-positive rates of the same test, by false-positive rate: 0.01 and 0.001.
    laws
        The posteriors behind these numbers, the two parts of the KL and the trust flags; of
        records, or of groups where those leave as a whole.
    process
        What was audited: the records as used, the kernel, the noise and who leaves together.
    sweep
        Ranks over two decades of noise variance; None where it was skipped.
    route_reason
        Which route was taken, and why, in words.
    noise_choice, approximation
        How the noise variance was chosen, where the data chose it; what an approximate
        route claims.
    kernel
        Name and parameters, with what was chosen from the data filled in.
    dataset
        What was audited and what was done to it.
    settings, created, timing, warnings
        As given; when (UTC); seconds by stage; sentences.
    subgroups
        Exposure by the values of each column that it was asked for.
    explanations
        Why the most exposed records are, where it was asked for; of records, not of groups.
    choices
        Why this kernel and this noise, and what others would have given.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> y = np.array([1.0, 1.1, 0.9, -1.0])
    >>> result = leakscope.audit(X, y, noise_variance=0.1, record_ids=["a", "b", "c", "d"])
    >>> result.ranking()[0]
    'd'
    >>> "your model was not examined" in result.verdict
    True
    """

    laws: Separation
    process: Process
    sweep: NoiseSweep | None
    route_reason: str
    noise_choice: NoiseChoice | None
    approximation: Certificate | None
    kernel: dict[str, Any]
    explanations: tuple[Explanation, ...] = ()
    choices: Choices | None = None

    @property
    def order(self) -> NDArray[np.intp]:
        """Row numbers, most exposed first; equal records keep their order."""
        return np.argsort(-self.kl, kind="stable")

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """False for a record, or group, that float64 or the approximation does not resolve."""
        return self.laws.trusted

    @cached_property
    def intervals(self) -> dict[str, NDArray[Any]]:
        """Of an approximate route, between what each KL and advantage lies; empty where exact."""
        if self.laws.ends is None:
            return {}
        low, high = self.laws.ends
        return {
            "kl_low": low.kl,
            "kl_high": high.kl,
            "advantage_low": advantages(low),
            "advantage_high": advantages(high),
        }

    @property
    def verdict(self) -> str:
        """What can be said, in plain words, and for which attacker."""
        return " ".join((*self.answer(), self.question))

    def answer(self, *, threshold: float = EXPOSED_ABOVE, ids: bool = True) -> tuple[str, ...]:
        """What was examined, who ranks first and over what range, and what other kernels say.

        No records are counted above a threshold, since the noise that sets the level is assumed.
        """
        compared = self.kernel_sensitivity
        return process_answer(
            self.laws,
            self.advantage,
            self.record_ids if ids else None,
            kernel=kernel_in_words(self.kernel),
            name=self.dataset.name,
            approximation=None if self.approximation is None else self.route_reason,
            caution=None if compared is None else compared.caution(),
            other=None if self.choices is None else self.choices.noise_of_data,
            chosen_by=None if self.noise_choice is None else self.noise_choice.criterion,
        )

    @property
    def question(self) -> str:
        """What the attacker sees and knows, in plain words."""
        return process_question(self.unit)

    @property
    def unit(self) -> Literal["record", "group"]:
        """What leaves: ``record``, or ``group`` where groups leave as a whole."""
        return self.laws.unit

    @property
    def kernel_sensitivity(self) -> KernelSensitivity | None:
        """The audit under other kernels; None where they were not tried."""
        return None if self.choices is None else self.choices.kernels

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many records leave together, one number per entry."""
        return self.laws.sizes

    def disagreements(self) -> tuple[DisagreementEntry, ...]:
        """The few records whose label the others contradict most, the worst first.

        At most five, in standard deviations of how far labels lie off among these records, and
        none that chance would explain; none of groups.  A wrong label among records that are
        alike is found here, and not always by its KL.
        """
        if self.unit == "group":
            return ()
        shift, ranks = self.laws.mean_shift, ranks_of(self.kl)
        outputs = 1 if shift.ndim == 1 else shift.shape[1]
        found = calibrated(self.laws.disagreement, outputs)
        least = surprising_from(len(found), outputs)
        worst = np.argsort(-found, kind="stable")[:DISAGREEING].tolist()
        return tuple(
            DisagreementEntry(
                record_id=self.record_ids[row],
                disagreement=float(found[row]),
                rank=int(ranks[row]),
                advantage=float(self.advantage[row]),
            )
            for row in worst
            if found[row] >= least
        )

    def law_pair(self) -> LawPair:
        """The pairs of laws, one per record, for any other measure."""
        return self.laws.law_pair()

    def pair_of(self, row: int) -> LawPair:
        """The pair of one record, or group."""
        return self.laws.law_pair(slice(row, row + 1))

    def law_arrays(self) -> dict[str, NDArray[Any]]:
        """The laws as arrays by name, in the order of the rows of X (of the groups, where those
        leave as a whole).
        """
        laws = self.laws
        found: dict[str, NDArray[Any]] = {
            "leverage": laws.leverage,
            "error_estimate": laws.error_estimate,
            "trusted": laws.trusted,
        }
        if laws.unit == "group":
            names = ("groups", "members", "sizes", "excess", "score")
        else:
            names = (
                "mean_without",
                "variance_without",
                "mean_with",
                "variance_with",
                "mean_shift",
            )
        return {name: getattr(laws, name) for name in names} | found

    def to_document(self) -> AuditDocument:
        """The result as it is written to a file; valid JSON and nothing but plain values."""
        return AuditDocument(
            **self._stored(AuditRecord, self.laws.provenance()),
            kernel=self.kernel,
            noise_variance=self.laws.noise_variance,
            noise_chosen_by="user" if self.noise_choice is None else self.noise_choice.criterion,
            route=self.laws.route,
            route_reason=self.route_reason,
            sensitivity=self._sensitivity(),
            condition_number=self.laws.condition_number,
            verdict=self.verdict,
            verdict_without_ids=" ".join((*self.answer(ids=False), self.question)),
            explanations=[ExplanationEntry(**entry.to_dict()) for entry in self.explanations],
            choices=self._choices(),
            disagreeing=list(self.disagreements()),
        )

    def _sensitivity(self) -> SensitivityEntry | None:
        if self.sweep is None:
            return None
        return SensitivityEntry(
            noise_variances=self.sweep.noise_variances.tolist(),
            median_kl=np.median(self.sweep.kl, axis=1).tolist(),
            refused=list(self.sweep.refused),
        )

    def _choices(self) -> ChoicesEntry | None:
        told = self.choices
        if told is None:
            return None
        own, compared = told.noise_of_data, told.kernels
        return ChoicesEntry(
            kernel_reason=told.kernel_reason,
            noise_reason=told.noise_reason,
            not_compared=told.not_compared,
            noise_of_data=None if own is None else NoiseOfDataEntry(**asdict(own)),
            kernels=None
            if compared is None
            else KernelSensitivityEntry(
                in_use=KernelEntry(**asdict(compared.in_use)),
                others=[KernelEntry(**asdict(entry)) for entry in compared.others],
                top_ten=compared.top_ten,
                top_hundredth=compared.top_hundredth,
                refused=list(compared.refused),
            ),
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        laws, ids = self.laws, self._ids()
        values = (
            ids,
            self.kl,
            self.kl_reverse,
            self.advantage,
            *self.tprs().values(),
            self.auc,
            laws.mean_distance,
            laws.kl_label_free,
            laws.kl_label,
            self._disagreement(),
            *self._means_and_variances(),
            laws.trusted,
            *self._rank_range(self.sweep),
            *self._rank_range(self.kernel_sensitivity),
        )
        columns = {**dict(zip(COLUMNS, values, strict=True)), **self.intervals}
        if laws.unit == "group":
            columns = {"record_id": ids, "size": laws.sizes, **columns}
        return columns

    def _disagreement(self) -> NDArray[Any]:
        if self.unit == "group":
            return np.full(len(self.kl), None, dtype=object)
        return self.laws.disagreement

    def _means_and_variances(self) -> tuple[NDArray[Any], ...]:
        """Without and with the record; of a group there is no single number."""
        laws = self.laws
        if laws.unit == "group":
            return (np.full(len(self.kl), None, dtype=object),) * 4
        return laws.mean_without, laws.variance_without, laws.mean_with, laws.variance_with

    def _rank_range(
        self, over: NoiseSweep | KernelSensitivity | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if over is not None:
            return over.rank_low, over.rank_high
        unknown = np.full(len(self.kl), None, dtype=object)
        return unknown, unknown
