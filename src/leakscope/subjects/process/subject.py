"""A Gaussian process with its records: what one draw of it gives away about each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.doubts import array_doubts, doubts
from leakscope.data.files import reason
from leakscope.data.pictures import pictured
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.kernels.named import from_description
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import LawPair
from leakscope.lood.separation import Release
from leakscope.results.audit import EXPOSED_ABOVE, Audit, ExaminedModel
from leakscope.results.document import DatasetEntry
from leakscope.results.sections import LineChart, RangeChart, Section, SpanChart
from leakscope.results.shown import certain, digits
from leakscope.results.trust import Trust
from leakscope.settings.audit import AuditSettings
from leakscope.settings.setting import LARGEST, LEAST, validated
from leakscope.subjects.arrays import (
    checked_features,
    checked_ids,
    checked_targets,
    leaving_units,
    oddities,
    without_intercept,
)
from leakscope.subjects.laws import Rows, UnitLaws
from leakscope.subjects.pictures import report_pictures
from leakscope.subjects.process.choices import (
    CRITERIA,
    advantages,
    choices,
    kernel_from_settings,
    why_not_compared,
)
from leakscope.subjects.process.details import NoiseOfData, NoiseSensitivity, ProcessDetails
from leakscope.subjects.process.draws import process_answers
from leakscope.subjects.process.explanation import disagreeing_labels, explain
from leakscope.subjects.process.process_words import kernel_in_words, process_model
from leakscope.subjects.process.routes import Computed, RoutePlan, compute, route_cost
from leakscope.subjects.recipe import data_again, taken_from_result
from leakscope.subjects.subgroups import of_groups
from leakscope.subjects.subject import (
    LOST_SPREAD,
    Answers,
    Asked,
    LawsNotStoredError,
    Stages,
    Subject,
    Wanted,
    lost,
    stored_provenance,
)

# Those that --no-sensitivity skips.
SENSITIVITY_STAGES = ("sensitivity", "compare")

# Labels that the screen names among those that the others contradict.
NAMED_LABELS = 3

# Rank ranges are drawn for so many records.
RANGES_SHOWN = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class ProcessLaws(UnitLaws):
    """The laws of a process, unit by unit: what :class:`leakscope.lood.Separation` holds."""

    separation: lood.Separation
    # The largest k(q, q), where noise on the answers must do for one question q anywhere.
    reach: float | None = None

    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """Units of one size at a time."""
        yield from self.separation.law_pairs()

    def pair(self) -> LawPair:
        """All at once; groups must be of one size."""
        return self.separation.law_pair()

    def some(self, units: Rows) -> ProcessLaws:
        """Those of some units."""
        return replace(
            self,
            trust=self.trust.take(units),
            separation=self.separation.some(units),
            columns={name: values[units] for name, values in self.columns.items()},
            arrays={},
        )

    def noised(self, sd: float) -> ProcessLaws:
        """The same with noise on every answer."""
        if sd == 0.0:
            return self
        return replace(self, separation=self.separation.noised(sd**2, self.reach))

    @property
    def first_noise(self) -> float:
        """The training noise, of which noise on the answers is of the order."""
        return self.separation.noise_variance

    def enough_noise(self, advantage: float) -> float:
        """A variance of noise on the answers that is enough, in closed form.

        With x, t and W of :class:`leakscope.lood.separation.Release` and w = W x/(1 + x) the excess
        is at most w/v, and where that is at most 1 a unit's divergence KL(with || without) is at
        most sum_i w_i (C/2 + |t_i|^2)/(2 v).  The advantage is at most sqrt(KL/2) (Pinsker).  What
        float64 does not hold is infinite.
        """
        laws = self.separation
        spread = Release("draw", 0.0, self.reach).spread(laws.variance_without)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            most = spread * laws.shares
            share = 0.5 * laws.outputs + np.sum(laws.score**2, axis=1)
            sums = np.add.reduceat(most * share, laws.starts)
            found = max(float(np.max(most)), float(np.max(sums / advantage / advantage / 4.0)))
        return found if np.isfinite(found) else float("inf")

    @property
    def spread(self) -> FloatArray:
        """(U,) the largest standard deviation among a unit's answers without it."""
        found = np.sqrt(self.separation.variance_without)
        if self.separation.groups is None:
            return found
        return np.asarray(np.maximum.reduceat(found, self.separation.starts))


# A pair of C outputs takes about 350 C^2 bytes while it is measured.
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredLaws(UnitLaws):
    """The laws of records as a result holds them: the shift (U, C) of the mean, and variances."""

    shift: FloatArray
    variance_with: FloatArray
    variance_without: FloatArray

    def batches(self) -> Iterator[tuple[Rows, LawPair]]:
        """As many records at a time as memory takes."""
        step = max(1, BYTES_AT_ONCE // (BYTES_A_PAIR * self.shift.shape[1] ** 2))
        for start in range(0, self.units, step):
            rows = np.arange(start, min(start + step, self.units))
            yield rows, self._pair(rows)

    def _pair(self, rows: Rows) -> LawPair:
        shift, with_it, without = (
            values[rows] for values in (self.shift, self.variance_with, self.variance_without)
        )
        if shift.shape[1] == 1:
            member, nonmember = Normal(shift[:, 0], np.sqrt(with_it)), Normal(0.0, np.sqrt(without))
            return LawPair(member, nonmember, self.provenance)
        identity = np.eye(shift.shape[1])
        return LawPair(
            MultivariateNormal(shift, with_it[:, None, None] * identity),
            MultivariateNormal(np.zeros_like(shift), without[:, None, None] * identity),
            self.provenance,
        )

    def some(self, units: Rows) -> StoredLaws:
        """Those of some records."""
        return replace(
            self,
            trust=self.trust.take(units),
            shift=self.shift[units],
            variance_with=self.variance_with[units],
            variance_without=self.variance_without[units],
        )

    def noised(self, sd: float) -> StoredLaws:
        """The same with noise on every answer."""
        return replace(
            self,
            variance_with=self.variance_with + sd**2,
            variance_without=self.variance_without + sd**2,
        )

    @property
    def spread(self) -> FloatArray:
        """(U,) the standard deviation of an answer without the record."""
        return np.sqrt(self.variance_without)


def laws_of_separation(found: lood.Separation, **more: Any) -> ProcessLaws:
    """The laws with the check that each unit passed."""
    if found.error_asked is not None:
        check = (
            f"its KL is known to a relative {found.error_asked:g}, or to an advantage below 0.001, "
            "by its own interval"
        )
    else:
        check = "its KL's rounding error was estimated, and is below a relative 1e-8"
    return ProcessLaws(
        trust=Trust.checked(check, found.trusted),
        provenance=found.provenance(),
        separation=found,
        **more,
    )


class GaussianProcess(Subject):
    """A process, its records and how its laws are computed."""

    name = "process"
    file_kind = "audit"
    words = "a Gaussian process"
    basis = "assumed"
    ranked_by = "kl"
    screen = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "kl", "rank_low", "kl_label", "trusted",
    )  # fmt: skip
    page = (
        "kl", "kl_low", "kl_high", "advantage", "trusted", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001",
        "auc", "kl_label", "kl_label_free", "rank_low", "kernel_rank_low", "disagreement",
    )  # fmt: skip
    usual = (
        "kl", "kl_reverse", "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc",
        "mean_distance", "kl_label_free", "kl_label", "disagreement", "mean_without",
        "variance_without", "mean_with", "variance_with", "trusted", "check", "rank_low",
        "rank_high", "kernel_rank_low", "kernel_rank_high",
    )  # fmt: skip
    stages = (
        "check", "kernel", "factorise", "sensitivity", "conditions", "measure", "compare",
        "explain",
    )  # fmt: skip
    interval_words: ClassVar[str] = "between"
    not_trusted = "float64 does not resolve {}"
    Details = ProcessDetails
    advice_options = ("questions",)

    def __init__(
        self,
        process: lood.ProcessOnRecords,
        plan: RoutePlan,
        *,
        ids: tuple[RecordId, ...],
        dataset: DatasetEntry,
        settings: dict[str, Any],
        warnings: tuple[str, ...] = (),
        picture: tuple[int, ...] | None = None,
        by: Mapping[str, Sequence[str]] | None = None,
        target_scale: float = 1.0,
    ) -> None:
        self.process, self.plan = process, plan
        self.ids, self.dataset, self.settings = ids, dataset, settings
        self.unit = process.unit
        self.warnings, self.picture, self.by = warnings, picture, by or {}
        self.target_scale = target_scale
        self.computed: Computed | None = None
        self.approximate = False

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """Where an option of a process is given, or where nothing else can be fitted."""
        given = asked.dataset is not None or asked.X is not None
        return given and not (asked.has_model or asked.trains)

    @classmethod
    def stages_for(cls, asked: Asked) -> tuple[str, ...]:
        """The stages that the audit will go through."""
        skipped = () if asked.settings.sensitivity else SENSITIVITY_STAGES
        return tuple(name for name in cls.stages if name not in skipped)

    @classmethod
    def cost(cls, asked: Asked) -> str | None:
        """What a long or an approximate audit will take, in words; None of others."""
        if asked.dataset is None or asked.dataset.group is not None:
            return None
        return route_cost(asked.dataset.features, asked.settings)

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> GaussianProcess:
        """The process on arrays as they are, or on a dataset, scaled and coded first."""
        with stage("check"):
            if asked.dataset is None:
                return cls._of_arrays(asked)
            return cls._of_dataset(asked.dataset, asked.settings, asked.process)

    @classmethod
    def _of_dataset(
        cls, dataset: Dataset, settings: AuditSettings, model: lood.Process | None = None
    ) -> GaussianProcess:
        prepared = prepare(dataset, scaling=settings.scaling)
        found = (
            *oddities(dataset.features, prepared.target, dataset.record_ids, dataset.feature_names),
            *doubts(dataset),
        )
        ids, labels = leaving_units(prepared.record_ids, prepared.group)
        level, plan = RoutePlan.of(settings)
        kernel = kernel_from_settings(settings)
        if model is not None:
            kernel, level, plan = model.kernel, *RoutePlan.of_model(model)
        process = lood.ProcessOnRecords(
            prepared.features,
            prepared.target,
            kernel,
            level,
            groups=labels,
            task=prepared.task,
        )
        scale = 1.0
        if dataset.task == "regression" and settings.scaling != "none":
            scale = float(np.std(dataset.target.astype(np.float64))) or 1.0
        return cls(
            process,
            plan,
            ids=ids,
            dataset=DatasetEntry.of(prepared),
            settings=settings.model_dump(),
            warnings=found,
            picture=dataset.picture or pictured(dataset.features),
            by=prepared.by,
            target_scale=scale,
        )

    @classmethod
    def _of_arrays(cls, asked: Asked) -> GaussianProcess:
        features = checked_features(asked.X)
        ids = checked_ids(asked.record_ids, len(features), asked.X)
        targets = checked_targets(asked.y, len(features))
        units, labels = leaving_units(ids, asked.groups)
        level, plan = RoutePlan.of(asked.settings)
        kernel = asked.kernel
        if asked.process is not None:
            kernel, level, plan = asked.process.kernel, *RoutePlan.of_model(asked.process)
        elif kernel is None:
            kernel = kernel_from_settings(asked.settings)
        process = lood.ProcessOnRecords(features, targets, kernel, level, groups=labels)
        # Two numbers, such as -1 and 1, are how a process is given two classes.
        two = len(np.unique(targets)) == 2
        told = array_doubts(features, targets, classes=two, groups=asked.groups)
        named = ids if labels is None else tuple(range(process.records))
        return cls(
            process,
            plan,
            ids=units,
            dataset=DatasetEntry(
                name="arrays",
                records=features.shape[0],
                features=features.shape[1],
                outputs=1 if targets.ndim == 1 else targets.shape[1],
                target_name="y",
                steps=[],
            ),
            settings={name: getattr(asked.settings, name) for name in ARRAY_SETTINGS}
            | {"scaling": "none"},
            warnings=(*told, *oddities(features, targets, named)),
            picture=pictured(features),
        )

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> GaussianProcess:
        """The process that a stored audit is about, from its kernel as resolved and its data."""
        settings = settings_of(audit.settings, audit.details.noise_variance)
        prepared = prepare(data_again(audit.dataset, data), scaling=settings.scaling)
        process, ids = stored_process(
            audit.details.kernel, audit.details.noise_variance, audit.settings, prepared, audit.unit
        )
        _, plan = RoutePlan.of(settings)
        found = cls(
            process,
            replace(plan, criterion=None, fit_kernel_scale=False),
            ids=ids,
            dataset=DatasetEntry.of(prepared),
            settings=dict(audit.settings),
        )
        found.approximate = audit.details.approximate
        return found

    @classmethod
    def around(cls, thing: Any) -> GaussianProcess | None:
        """The subject of a process in memory."""
        if not isinstance(thing, lood.ProcessOnRecords):
            return None
        _, plan = RoutePlan.of(AuditSettings())
        outputs = thing.outputs.shape[1]
        records, features = thing.records, int(np.prod(thing.features.shape[1:]))
        dataset = DatasetEntry(
            name="arrays in memory",
            records=records,
            features=features,
            outputs=outputs,
            target_name="target",
            steps=[],
        )
        return cls(thing, plan, ids=tuple(range(thing.units)), dataset=dataset, settings={})

    def for_advice(self, wanted: Wanted) -> GaussianProcess:
        """The same by exact laws, which share what is costly."""
        from leakscope.subjects.process.changes import advised

        super().for_advice(wanted)
        return advised(self, wanted)

    # What it is and what it says.

    @property
    def model(self) -> ExaminedModel:
        """The kernel and the noise, in words."""
        process = self.process
        return ExaminedModel(**process_model(self._described(), process.noise_variance))

    def _described(self) -> dict[str, Any]:
        described = self.process.kernel.describe()
        chosen = None if self.computed is None else self.computed.noise_choice
        if chosen is not None and self.plan.fit_kernel_scale:
            described["fitted_scale"] = self.process.kernel_scale
        return described

    def laws(self, stage: Stages) -> ProcessLaws:
        """What each unit's leaving changes, by the route that suits kernel and size."""
        process = self.process
        self.warnings = (
            *self.warnings,
            *without_intercept(process.features, process.kernel.describe()),
        )
        self.computed = compute(process, self.plan, stage)
        self.process = self.computed.process
        self.approximate = self.computed.approximation is not None
        found, sweep = self.computed.laws, self.computed.sweep
        columns: dict[str, NDArray[Any]] = {}
        if found.unit == "group":
            columns["size"] = found.sizes
        columns |= {
            "mean_distance": found.mean_distance,
            "kl_label_free": found.kl_label_free,
            "kl_label": found.kl_label,
        }
        if found.unit == "record":
            columns |= {
                "disagreement": found.disagreement,
                "mean_without": found.mean_without,
                "variance_without": found.variance_without,
                "mean_with": found.mean_with,
                "variance_with": found.variance_with,
            }
        if sweep is not None:
            columns |= {"rank_low": sweep.rank_low, "rank_high": sweep.rank_high}
        if found.ends is not None:
            low, high = found.ends
            columns |= {
                "kl_low": low.kl,
                "kl_high": high.kl,
                "advantage_low": advantages(low),
                "advantage_high": advantages(high),
            }
        return laws_of_separation(
            found, warnings=_cautions(self.computed), columns=columns, arrays=self._arrays(found)
        )

    def _arrays(self, laws: lood.Separation) -> dict[str, NDArray[Any]]:
        """The laws as arrays by name, for a run directory."""
        names = (
            ("groups", "members", "sizes", "excess", "score")
            if laws.unit == "group"
            else ("mean_without", "variance_without", "mean_with", "variance_with", "mean_shift")
        )
        found = {name: np.asarray(getattr(laws, name)) for name in names}
        found |= {"leverage": laws.leverage, "error_estimate": laws.error_estimate}
        if self.computed is not None and self.computed.sweep is not None:
            sweep = self.computed.sweep
            found |= {"sweep_noise_variances": sweep.noise_variances, "ranks": sweep.ranks}
        return found

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[ProcessDetails, dict[str, NDArray[Any]]]:
        """Why this kernel and this noise, other choices, and why the most exposed are."""
        computed = self.computed
        assert computed is not None
        found = computed.laws
        if why_not_compared(computed, self.plan) is None:
            with stage("compare"):
                told, more = choices(
                    computed, self.plan, columns["advantage"], picture=self.picture
                )
        else:
            # Without a comparison the reasons are words only, and no stage of their own.
            told, more = choices(computed, self.plan, columns["advantage"], picture=self.picture)
        explanations = []
        if explain_first and self.process.groups is None:
            with stage("explain"):
                explanations = explain(
                    self.process,
                    found,
                    rows=np.argsort(-columns["kl"], kind="stable")[:explain_first].tolist(),
                    record_ids=self.ids,
                )
        sweep = computed.sweep
        details = ProcessDetails(
            kernel=self._described(),
            noise_variance=found.noise_variance,
            noise_chosen_by="user"
            if computed.noise_choice is None
            else computed.noise_choice.criterion,
            route=found.route,
            route_reason=computed.route_reason,
            error_asked=found.error_asked,
            sensitivity=None
            if sweep is None
            else NoiseSensitivity(
                noise_variances=sweep.noise_variances.tolist(),
                median_kl=np.median(sweep.kl, axis=1).tolist(),
                refused=list(sweep.refused),
            ),
            condition_number=found.condition_number,
            explanations=explanations,
            choices=told,
            disagreeing=disagreeing_labels(found, self.ids, columns["advantage"]),
        )
        return details, dict(more)

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        groups = self.process.groups
        return labels if groups is None else of_groups(labels, self.process.labels, len(self.ids))

    def pictures(self, audit: Audit, dataset: Dataset) -> dict[str, bytes]:
        """Pictures of the most exposed, where records are pictures."""
        if "kernel" not in self.settings:
            raise InputError("only an audit of a dataset is written with its dataset.")
        odd = [entry.record_id for entry in audit.details.disagreeing]
        features, kernel = self.process.features, self.process.kernel

        def products(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
            return kernel(features[rows], features), kernel.diagonal(features)

        return report_pictures(audit, dataset, odd, products)

    # How its stored audits are worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """What was examined, who ranks first and over what range, and what other kernels say.

        No units are counted above a threshold, since the noise that sets the level is assumed.
        """
        told, unit, count = audit.details, audit.unit, audit.units
        how = f", {told.route_reason}" if told.approximate else ""
        examined = (
            f"A Gaussian process ({kernel_in_words(told.kernel)}) on {audit.dataset.name}{how}; "
            "your model was not examined."
        )
        first, untrusted = audit.table.records(1)[0], audit.untrusted
        largest = float(np.max(audit.advantage))
        among = ", the first in rank among them," if not first.trusted else ","
        unseen = untrusted and largest < EXPOSED_ABOVE
        if (not first.trusted or unseen) and told.approximate:
            finding = (
                f"Cannot tell: the approximation knows {untrusted} of {count} {unit}s{among} no "
                f"better than to {told.error_asked or 0.0:.0%}: use more inducing records or "
                "another route."
            )
        elif not first.trusted or unseen:
            finding = (
                f"Cannot tell: float64 does not resolve {untrusted} of {count} {unit}s{among} at "
                f"noise_variance {told.noise_variance:g}: raise it."
            )
        else:
            ranked = f"{count} {unit}s were ranked."
            if ids:
                ranked = f"{unit.capitalize()} {first.record_id} ranks first of {count}."
            chosen_by = None if told.noise_chosen_by == "user" else told.noise_chosen_by
            other = None if told.choices is None else told.choices.noise_of_data
            levels = level_sentence(
                told.noise_variance, largest, float(np.median(audit.advantage)), other
            )
            finding = (
                f"{ranked} How exposed it is depends on the noise, {whose_noise(chosen_by)}: "
                f"{levels}"
            )
        caution = None if told.kernels is None else told.kernels.caution()
        return (examined, finding, *([] if caution is None else [caution]))

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker of a process sees and knows, and what other fits give away."""
        unit = audit.unit
        return (
            f"The attacker knows all other {unit}s and sees one answer drawn from the process; a "
            f"deterministic fit, such as kernel ridge, gives each {unit} away with certainty."
        )

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """What float64 or the approximation does not resolve."""
        told = audit.details
        if told.approximate:
            return (
                f"known no better than to {told.error_asked or 0.1:.0%}",
                "raise --inducing or --error, or take --route dense",
            )
        return (
            f"not resolved by float64 at noise_variance {told.noise_variance:g}",
            "raise --noise-variance",
        )

    @classmethod
    def facts(cls, audit: Audit) -> dict[str, Any]:
        """The kernel as used, the noise, the route."""
        told = audit.details
        return {
            **{f"kernel {name}": value for name, value in told.kernel.items()},
            "noise_variance as used": told.noise_variance,
            "route": told.route,
        }

    @classmethod
    def notes(cls, audit: Audit) -> list[str]:
        """Labels to look at, whatever their rank."""
        few = audit.details.disagreeing[:NAMED_LABELS]
        if not few:
            return []
        told = [f"{one.record_id} by {one.disagreement:.1f} sd" for one in few]
        return [f"Labels that the other records contradict: {', '.join(told)}."]

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """How the ranks move with the noise and the kernel, and labels to look at."""
        told, found = audit.details, []
        names = [str(record.record_id) for record in audit.table.records(RANGES_SHOWN)]
        if told.choices is not None:
            found.append(
                Section(
                    "Why this kernel and this noise",
                    [
                        f"Kernel: {told.choices.kernel_reason}",
                        f"Noise: {told.choices.noise_reason}",
                    ],
                )
            )
        found.append(_noise_section(audit, names))
        found += _kernels_sections(audit, names)
        if told.disagreeing:
            rows = [
                [
                    str(one.record_id),
                    digits(one.disagreement),
                    str(one.rank),
                    certain(one.advantage),
                ]
                for one in told.disagreeing
            ]
            found.append(
                Section(
                    "Labels that the other records contradict most",
                    [
                        "Look here for wrong labels. A wrong label among many similar records "
                        "hardly moves the model, so it may not be among the most exposed; but it "
                        "lies far from what the other records predict. Distances are in standard "
                        "deviations over this dataset; labels that chance explains are not listed."
                    ],
                    tables=[(("record", "label off", "rank by KL", "advantage"), rows)],
                    names=True,
                )
            )
        return found

    @classmethod
    def stored_laws(cls, audit: Audit) -> StoredLaws:
        """From means and variances; those of groups are in the run's arrays only."""
        table = audit.table
        if audit.unit == "group" or "variance_with" not in table:
            raise LawsNotStoredError("the laws of groups are not in the result; audit again.")
        variances = table.of("variance_with"), table.of("variance_without")
        means = [
            np.asarray(table.columns[name], dtype=np.float64).reshape(len(table), -1)
            for name in ("mean_with", "mean_without")
        ]
        if means[0].shape != means[1].shape:
            raise InputError(
                "the result's records have different numbers of means; the file was changed."
            )
        good = (variances[0] > 0.0) & (variances[1] > 0.0) & np.isfinite(sum(variances))
        # Each pair from its own mean without the record, as the audit measured it.
        shift = means[0] - means[1]
        gone = lost(audit, good & np.isfinite(shift).all(axis=1))
        shift = np.where(gone[:, None], 1.0, shift)
        variances = (
            np.where(gone, LOST_SPREAD**2, variances[0]),
            np.where(gone, LOST_SPREAD**2, variances[1]),
        )
        return StoredLaws(
            trust=audit.trust,
            provenance=stored_provenance(audit),
            shift=shift,
            variance_with=variances[0],
            variance_without=variances[1],
        )

    # Models with and without units.

    def laws_again(self) -> ProcessLaws | None:
        """Those of groups, which no result holds."""
        if self.process.groups is None:
            return None
        return laws_of_separation(self.process.separation())

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Functions drawn from the process, trained with and without each unit."""
        return process_answers(self.process, units, count, seed)


# The settings of an audit of arrays: nothing is scaled or coded.
ARRAY_SETTINGS = ("noise_variance", "fit_kernel_scale", "sensitivity", "route", "inducing", "error")


def _ranges(
    audit: Audit, name: str, title: str, column: str, names: Sequence[str]
) -> list[RangeChart]:
    first = audit.table.rows(RANGES_SHOWN)
    rows = [
        (label, int(row[f"{column}_low"]), int(row[f"{column}_high"]))
        for label, row in zip(names, first, strict=True)
        if row.get(f"{column}_low") is not None
    ]
    return [RangeChart(name, title, rows)] if rows else []


def _noise_section(audit: Audit, names: Sequence[str]) -> Section:
    """How far the level and the ranks move with the noise."""
    told, title = audit.details, "If the noise were another"
    swept = told.sensitivity
    if swept is None:
        return Section(
            title,
            [
                "The noise variance was not swept (--no-sensitivity), so how far the ranks depend "
                "on it is not known."
            ],
        )
    levels, medians = swept.noise_variances, swept.median_kl
    chosen = "as given" if told.noise_chosen_by == "user" else f"chosen by {told.noise_chosen_by}"
    words = (
        f"The noise variance ({told.noise_variance:.4g}, {chosen}) was swept from {levels[0]:.4g} "
        f"to {levels[-1]:.4g}. The level depends on it; a {audit.unit} with a short range of ranks "
        "is exposed whatever the noise is."
    )
    if swept.refused:
        refused = ", ".join(f"{level:.4g}" for level in swept.refused)
        words += f" Left out, because float64 is too coarse there: {refused}."
    rows = [[f"{one:.4g}", digits(median)] for one, median in zip(levels, medians, strict=True)]
    return Section(
        title,
        [words],
        tables=[(("noise variance", "median KL"), rows)],
        charts=[
            LineChart(
                "median_by_noise",
                "noise variance",
                "median KL (nats)",
                [("median KL", levels, medians)],
                used=told.noise_variance,
            ),
            *_ranges(audit, "rank_ranges", "rank over the sweep", "rank", names),
        ],
    )


def _kernels_sections(audit: Audit, names: Sequence[str]) -> list[Section]:
    """The same data under other kernels; which were left out may name a record."""
    compared, title = audit.details.kernels, "The same data under other kernels"
    if compared is None:
        choices = audit.details.choices
        words = None if choices is None else choices.not_compared
        return [
            Section(
                title,
                [
                    words
                    or "The kernel was not varied in this run. To see what depends on it, audit "
                    "again with another --kernel, and compare the two (leakscope compare)."
                ],
            )
        ]
    entries = [compared.in_use, *compared.others]
    headings = ("kernel", "ranks", "top kept", "first is", "largest", "median", "label error")
    rows = [
        [
            entry.name,
            "-" if entry.rank_correlation is None else f"{entry.rank_correlation:.2f}",
            f"{entry.top_ten_kept} of {compared.top_ten}",
            str(entry.rank_of_first),
            certain(entry.largest_advantage),
            certain(entry.median_advantage),
            digits(entry.prediction_error),
        ]
        for entry in entries
    ]
    spans = [
        (
            f"{_short_name(entry.kernel)}{' (in use)' if place == 0 else ''}",
            entry.median_advantage or 0.0,
            entry.largest_advantage or 0.0,
        )
        for place, entry in enumerate(entries)
    ]
    found = []
    if compared.others:
        found.append(
            Section(
                title,
                [
                    f"A {audit.unit} whose ranks are all alike is exposed whichever kernel is "
                    "nearest to your model. Ranks: rank correlation with the first, which is in "
                    "use; top kept: of the most exposed; first is: the rank of the first here; "
                    "advantages; label error: leave-one-out, in units of the target as used."
                ],
                tables=[(headings, rows)],
                charts=[
                    SpanChart("kernel_advantages", spans),
                    *_ranges(audit, "kernel_ranges", "rank over the kernels", "kernel_rank", names),
                ],
            )
        )
    if compared.refused:
        found.append(Section("Kernels that were left out", compared.refused, names=True))
    return found


def _short_name(kernel: dict[str, Any]) -> str:
    """A kernel's name and one number: a long label leaves a narrow screen no chart."""
    if isinstance(kernel.get("length_scale"), float):
        return f"{kernel.get('name', 'kernel')} {kernel['length_scale']:.4g}"
    name = str(kernel.get("name", "kernel"))
    return f"{name} depth {kernel['depth']}" if "depth" in kernel else name


def whose_noise(chosen_by: str | None) -> str:
    """Who chose the noise: nobody, or the data by a criterion."""
    if chosen_by is None:
        return "which is assumed"
    return f"which the data chose by {CRITERIA.get(chosen_by, chosen_by)}"


def level_sentence(
    noise_variance: float, largest: float, median: float, other: NoiseOfData | None
) -> str:
    """The largest and the median advantage at both noises, and which of them is which."""
    own = f"the largest advantage is {_two_digits(largest)} and the median {median:.2g}"
    if other is None:
        return f"at noise_variance {noise_variance:g} {own}; the smaller the noise, the larger."
    theirs = f"{_two_digits(other.largest_advantage or 0.0)} and {other.median_advantage:.2g}"
    end = "pessimistic" if noise_variance < other.noise_variance else "optimistic"
    return (
        f"at noise_variance {noise_variance:g}, the {end} end, {own}; at "
        f"{other.noise_variance:.2g}, which the data would choose, {theirs}."
    )


def _two_digits(advantage: float) -> str:
    """Two digits; what would round to 1 is not certainty."""
    if advantage < 0.995:
        return f"{advantage:.2g}"
    return "above 0.99" if advantage < 0.9999 else "above 0.9999"


def _cautions(computed: Computed) -> tuple[str, ...]:
    """What a user must know about how the numbers were got."""
    found: list[str] = []
    if computed.approximation is not None:
        found.append(
            f"this audit is {computed.route_reason}; each record's KL and advantage lie between "
            "kl_low and kl_high, advantage_low and advantage_high."
        )
    if computed.noise_choice is not None and computed.noise_choice.at_bound:
        found.append(f"{computed.noise_choice.sentence()}: give noise_variance a number instead.")
    if computed.sweep is not None and computed.sweep.refused:
        levels = ", ".join(f"{level:.2g}" for level in computed.sweep.refused)
        found.append(
            f"float64 is too coarse at noise_variance {levels}, which the sweep leaves out."
        )
    return tuple(found)


def settings_of(settings: Mapping[str, Any], noise_variance: float) -> AuditSettings:
    """The settings that a result says it was made with, checked again."""
    told = {k: v for k, v in settings.items() if k in AuditSettings.model_fields}
    with taken_from_result():
        if "scaling" not in told:
            raise KeyError("scaling")
        if not LEAST <= noise_variance <= LARGEST:
            raise ValueError(f"noise_variance is {noise_variance:g}")
        return validated(AuditSettings, **told)


def stored_process(
    kernel_told: Mapping[str, Any],
    noise_variance: float,
    settings: Mapping[str, Any],
    prepared: Dataset,
    unit: str = "record",
) -> tuple[lood.ProcessOnRecords, tuple[RecordId, ...]]:
    """The process that a result is about, from its resolved kernel, and the ids of its units."""
    by_group = unit == "group"
    if by_group and prepared.group is None:
        raise InputError("the audit was of groups, but its data name no group column.")
    names, groups = leaving_units(prepared.record_ids, prepared.group if by_group else None)
    try:
        description = dict(kernel_told)
        scale = float(description.pop("fitted_scale", 1.0))
        if not (np.isfinite(scale) and scale > 0.0):
            raise ValueError(f"fitted_scale is {scale:g}")
        kernel = from_description(description)
        given = kernel
        if "kernel" in settings and "length_scale" in description:
            # The median distance between records, where no other number was asked for.
            given = from_description(description | {"length_scale": settings.get("length_scale")})
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        words = str(error).rstrip(".") if isinstance(error, InputError) else reason(error)
        raise InputError(f"the result's kernel cannot be used: {words}.") from error
    process = lood.ProcessOnRecords(
        prepared.features,
        prepared.target,
        kernel,
        noise_variance,
        kernel_scale=scale,
        groups=groups,
        task=prepared.task,
        given=given,
    )
    return process, names
