"""What an audit returns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.explanation import Explanation
from leakscope.auditing.subgroups import Subgroup
from leakscope.auditing.verdict import verdict
from leakscope.io.audit_results import (
    AuditDocument,
    AuditRecord,
    ExplanationEntry,
    SensitivityEntry,
    SubgroupEntry,
)
from leakscope.io.datasets import RecordId
from leakscope.io.results import DatasetEntry
from leakscope.laws import LawPair
from leakscope.lood import (
    ApproximationError,
    LeaveGroupsOut,
    LeaveOneOut,
    NoiseChoice,
    NoiseSweep,
)

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

COLUMNS = (
    "record_id",
    "kl",
    "kl_reverse",
    "advantage",
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
)


@dataclass(frozen=True)
class AuditResult:
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
    laws
        The posteriors behind these numbers, the two parts of the KL and the trust flags; of
        records, or of groups where those leave as a whole.
    sweep
        Ranks over two decades of noise variance; None where it was skipped.
    route_reason
        Which route was taken, and why, in words.
    noise_choice, approximation
        How the noise variance was chosen, where the data chose it; FITC's measured error.
    kernel
        Name and parameters, with what was chosen from the data filled in.
    dataset
        What was audited and what was done to it.
    settings, created, timing, warnings
        As given; when (UTC); seconds by stage; sentences.
    by, subgroups
        The column of subgroups, and their exposure, where it was asked for.
    explanations
        Why the most exposed records are, where it was asked for; of records, not of groups.

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

    record_ids: tuple[RecordId, ...]
    kl: FloatArray
    kl_reverse: FloatArray
    advantage: FloatArray
    auc: FloatArray
    laws: LeaveOneOut | LeaveGroupsOut
    sweep: NoiseSweep | None
    route_reason: str
    noise_choice: NoiseChoice | None
    approximation: ApproximationError | None
    kernel: dict[str, Any]
    dataset: DatasetEntry
    settings: dict[str, Any]
    created: datetime
    timing: dict[str, float]
    warnings: tuple[str, ...]
    by: str | None = None
    subgroups: tuple[Subgroup, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    @property
    def order(self) -> NDArray[np.intp]:
        """Row numbers, most exposed first; equal records keep their order."""
        return np.argsort(-self.kl, kind="stable")

    @property
    def verdict(self) -> str:
        """What can be said, in plain words."""
        return self._verdict(self.record_ids)

    def _verdict(self, record_ids: tuple[RecordId, ...] | None) -> str:
        return verdict(
            kernel=_in_words(self.kernel),
            approximation=None if self.approximation is None else self.route_reason,
            noise_variance=self.laws.noise_variance,
            kl=self.kl,
            advantage=self.advantage,
            trusted=self.laws.trusted,
            record_ids=record_ids,
            unit=self.unit,
        )

    @property
    def unit(self) -> Literal["record", "group"]:
        """What leaves: ``record``, or ``group`` where groups leave as a whole."""
        return "group" if isinstance(self.laws, LeaveGroupsOut) else "record"

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many records leave together, one number an entry."""
        if isinstance(self.laws, LeaveGroupsOut):
            return self.laws.sizes
        return np.ones(len(self.kl), dtype=np.intp)

    def ranking(self) -> tuple[RecordId, ...]:
        """Record ids, most exposed first."""
        return tuple(self.record_ids[row] for row in self.order)

    def law_pair(self) -> LawPair:
        """The pairs of laws, one a record, for any other measure."""
        return self.laws.law_pair()

    def to_frame(self) -> pd.DataFrame:
        """A table, most exposed first.

        With several outputs ``mean_with`` and ``mean_without`` become a column for each output,
        ``mean_with_0`` and so on.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        for name, values in self._columns().items():
            if values.ndim == 2:
                columns |= {f"{name}_{c}": values[:, c] for c in range(values.shape[1])}
            else:
                columns[name] = values
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

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
        if isinstance(laws, LeaveGroupsOut):
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
        from leakscope import __version__

        provenance = self.laws.provenance().to_dict()
        assumptions = provenance.pop("assumptions")
        arrays = {name: values[self.order].tolist() for name, values in self._columns().items()}
        rows = zip(*arrays.values(), strict=True)
        return AuditDocument(
            leakscope_version=__version__,
            created=self.created,
            settings=self.settings,
            provenance=provenance,
            assumptions=assumptions,
            timing=self.timing,
            warnings=list(self.warnings),
            dataset=self.dataset,
            kernel=self.kernel,
            noise_variance=self.laws.noise_variance,
            noise_chosen_by="user" if self.noise_choice is None else self.noise_choice.criterion,
            route=self.laws.route,
            route_reason=self.route_reason,
            sensitivity=self._sensitivity(),
            condition_number=self.laws.condition_number,
            verdict=self.verdict,
            verdict_without_ids=self._verdict(None),
            median_advantage=float(np.median(self.advantage)),
            records=[AuditRecord(**dict(zip(arrays, row, strict=True))) for row in rows],
            unit=self.unit,
            by=self.by,
            subgroups=[SubgroupEntry(**entry.to_dict()) for entry in self.subgroups],
            explanations=[ExplanationEntry(**entry.to_dict()) for entry in self.explanations],
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, ready for JSON."""
        return self.to_document().model_dump(mode="json")

    def _sensitivity(self) -> SensitivityEntry | None:
        if self.sweep is None:
            return None
        return SensitivityEntry(
            noise_variances=self.sweep.noise_variances.tolist(),
            median_kl=np.median(self.sweep.kl, axis=1).tolist(),
            refused=list(self.sweep.refused),
        )

    def _columns(self) -> dict[str, NDArray[Any]]:
        laws = self.laws
        ids = np.empty(len(self.record_ids), dtype=object)
        ids[:] = self.record_ids
        if all(isinstance(value, int) for value in self.record_ids):
            ids = ids.astype(np.int64)
        values = (
            ids,
            self.kl,
            self.kl_reverse,
            self.advantage,
            self.auc,
            laws.mean_distance,
            laws.kl_label_free,
            laws.kl_label,
            self._disagreement(),
            *self._means_and_variances(),
            laws.trusted,
            *self._rank_range(),
        )
        columns = dict(zip(COLUMNS, values, strict=True))
        if isinstance(laws, LeaveGroupsOut):
            columns = {"record_id": ids, "size": laws.sizes, **columns}
        return columns

    def _disagreement(self) -> NDArray[Any]:
        if isinstance(self.laws, LeaveGroupsOut):
            return np.full(len(self.kl), None, dtype=object)
        return self.laws.disagreement

    def _means_and_variances(self) -> tuple[NDArray[Any], ...]:
        """Without and with the record; of a group there is no single number."""
        laws = self.laws
        if isinstance(laws, LeaveGroupsOut):
            return (np.full(len(self.kl), None, dtype=object),) * 4
        return laws.mean_without, laws.variance_without, laws.mean_with, laws.variance_with

    def _rank_range(self) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.sweep is not None:
            return self.sweep.rank_low, self.sweep.rank_high
        unknown = np.full(len(self.kl), None, dtype=object)
        return unknown, unknown


def _in_words(kernel: dict[str, Any]) -> str:
    """The kernel's name and what matters most of its parameters."""
    words = [str(kernel["name"])]
    for name in ("length_scale", "nu", "depth", "activation"):
        value = kernel.get(name)
        if isinstance(value, (int, float, str)):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)
