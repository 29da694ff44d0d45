"""A Gaussian process with its records: what one draw of it gives away about each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope import lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import usable_cores
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.doubts import array_doubts, doubts
from leakscope.data.files import reason
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.kernels.named import from_description
from leakscope.laws.distributions import MultivariateNormal
from leakscope.laws.pair import LawPair
from leakscope.lood.noise import NoiseChoice, NoiseSweep, choose_noise
from leakscope.lood.process import ProcessOnRecords
from leakscope.results.advice import Target
from leakscope.results.audit import Audit, ExaminedModel
from leakscope.results.document import DatasetEntry
from leakscope.results.sections import LineChart, Section
from leakscope.results.shown import digits
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
from leakscope.subjects.laws import PairLaws, Rows, UnitLaws, exact
from leakscope.subjects.pictures import report_pictures
from leakscope.subjects.pricing import Folds, Terms, folds_of
from leakscope.subjects.process.changes import (
    OWN_POINTS,
    HeldOutDraws,
    held_out,
    more_noise,
    terms,
)
from leakscope.subjects.process.details import (
    NoiseLevel,
    NoiseOfData,
    ProcessDetails,
    explained,
)
from leakscope.subjects.process.draws import process_answers
from leakscope.subjects.recipe import data_again, taken_from_result
from leakscope.subjects.subgroups import of_groups
from leakscope.subjects.subject import (
    LOST_SPREAD,
    Answers,
    Asked,
    Change,
    LawsNotStoredError,
    Stages,
    Subject,
    Wanted,
    lost,
    normal_laws,
    stored_provenance,
)

# Other noises are tried up to so many records: by the dense route they are four more factorisations
# and an eigendecomposition, half a minute here.
SWEPT_UP_TO = 5000

# The data are asked for their noise on at most this many records, and on no fewer than the least.
ASKED_RECORDS, LEAST_ASKED = 1000, 20

# Of one core: factor and inverse diagonal, for each cubed record (docs/benchmarks/size.md).  Of
# shorter audits nothing is said.
SECONDS_PER_CUBE, SAID_FROM = 1.75e-11, 60.0

CRITERIA = {
    "leave_one_out": "the leave-one-out predictive score",
    "marginal_likelihood": "the marginal likelihood",
}
RESOLVED = "float64 resolves its laws: their spread and the noise are more than 1e4 roundings"
APPROXIMATED = "the route nystrom approximates the kernel, and nothing says how well"


@dataclass(frozen=True, eq=False, kw_only=True)
class ProcessLaws(UnitLaws):
    """The laws of a process, unit by unit: what :class:`leakscope.lood.Separation` holds."""

    separation: lood.Separation

    @classmethod
    def of(cls, separation: lood.Separation, **more: Any) -> ProcessLaws:
        """The laws with the check that each unit passed."""
        check = APPROXIMATED if separation.route == "nystrom" else RESOLVED
        return cls(
            trust=Trust.checked(check, separation.trusted),
            provenance=separation.provenance(),
            separation=separation,
            **more,
        )

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
        return self if sd == 0.0 else replace(self, separation=self.separation.noised(sd**2))

    @property
    def first_noise(self) -> float:
        """The training noise, of which noise on the answers is of the order."""
        return self.separation.noise_variance

    @property
    def spread(self) -> FloatArray:
        """(U,) the largest standard deviation among a unit's answers without it."""
        sds = np.sqrt(self.separation.variance_without)
        return np.asarray(np.maximum.reduceat(sds, self.separation.starts))


class GaussianProcess(Subject):
    """A process and its records.

    ``choice`` is how the data chose the noise, where they did; ``level`` another noise than the
    process's own, whose laws come from the spectrum that all levels share.
    """

    name = "process"
    file_kind = "audit"
    words = "a Gaussian process"
    basis = "assumed"
    ranked_by = "kl"
    screen = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "kl", "rank_low", "kl_label",
        "confirmed",
    )  # fmt: skip
    page = (
        "kl", "advantage", "confirmed", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl_label",
        "kl_label_free", "rank_low", "disagreement",
    )  # fmt: skip
    usual = (
        "kl", "kl_reverse", "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc",
        "mean_distance", "kl_label_free", "kl_label", "disagreement", "mean_without",
        "sd_without", "mean_with", "sd_with", "confirmed", "check", "rank_low", "rank_high",
    )  # fmt: skip
    stages = ("check", "laws", "noises", "measure", "explain")
    not_confirmed = "float64 does not resolve {}"
    Details = ProcessDetails

    def __init__(
        self,
        process: ProcessOnRecords,
        *,
        ids: tuple[RecordId, ...],
        dataset: DatasetEntry,
        settings: dict[str, Any],
        choice: NoiseChoice | None = None,
        warnings: tuple[str, ...] = (),
        by: Mapping[str, Sequence[str]] | None = None,
        level: float | None = None,
    ) -> None:
        self.process, self.choice, self.level = process, choice, level
        self.ids, self.dataset, self.settings = ids, dataset, settings
        self.unit = process.unit
        self.warnings, self.by = warnings, by or {}
        self.sweep: NoiseSweep | None = None

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """Where a process is the model, or where nothing else can be fitted."""
        given = asked.dataset is not None or asked.X is not None
        return given and not (asked.has_model or asked.trains)

    @classmethod
    def cost(cls, asked: Asked) -> str | None:
        """What a long audit will take, in words; None of others."""
        if asked.dataset is None:
            return None
        records, cores = len(asked.dataset.features), usable_cores()
        seconds = SECONDS_PER_CUBE * float(records) ** 3 / cores
        model = asked.process_model
        if seconds < SAID_FROM or model.route not in ("auto", "dense"):
            return None
        return (
            f"exact, by factorising a {records:,} x {records:,} matrix: about "
            f"{seconds / 60.0:.0f} minutes on {cores} cores like those it was measured on; the "
            "route nystrom is quicker, and ranks only."
        )

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> GaussianProcess:
        """The process on arrays as they are, or on a dataset, scaled and coded first."""
        with stage("check"):
            if asked.dataset is None:
                return cls._of_arrays(asked, asked.process_model)
            return cls._of_dataset(asked.dataset, asked.settings, asked.process_model)

    @classmethod
    def _of_dataset(
        cls, dataset: Dataset, settings: AuditSettings, model: lood.Process
    ) -> GaussianProcess:
        prepared = prepare(dataset, scaling=settings.scaling)
        ids, labels = leaving_units(prepared.record_ids, prepared.group)
        process, choice = model.on(
            prepared.features, prepared.target, groups=labels, task=prepared.task
        )
        return cls(
            process,
            ids=ids,
            dataset=DatasetEntry.of(prepared),
            settings=settings.model_dump() | parameters_of(model),
            choice=choice,
            warnings=(
                *oddities(
                    dataset.features, prepared.target, dataset.record_ids, dataset.feature_names
                ),
                *doubts(dataset),
            ),
            by=prepared.by,
        )

    @classmethod
    def _of_arrays(cls, asked: Asked, model: lood.Process) -> GaussianProcess:
        features = checked_features(asked.X)
        ids = checked_ids(asked.record_ids, len(features), asked.X)
        targets = checked_targets(asked.y, len(features))
        units, labels = leaving_units(ids, asked.groups)
        process, choice = model.on(features, targets, groups=labels)
        # Two numbers, such as -1 and 1, are how a process is given two classes.
        two = len(np.unique(targets)) == 2
        names = ids if labels is None else tuple(range(process.records))
        return cls(
            process,
            ids=units,
            dataset=arrays_entry(process),
            settings={"scaling": "none"} | parameters_of(model),
            choice=choice,
            warnings=(
                *array_doubts(features, targets, classes=two, groups=asked.groups),
                *oddities(features, targets, names),
            ),
        )

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> GaussianProcess:
        """The process that a stored audit is about, from its kernel as resolved and its data."""
        with taken_from_result():
            scaling = validated(AuditSettings, scaling=audit.settings["scaling"]).scaling
        prepared = prepare(data_again(audit.dataset, data), scaling=scaling)
        told = audit.details
        process, ids = stored_process(told.kernel, told.noise_variance, prepared, audit.unit)
        entry = DatasetEntry.of(prepared)
        return cls(
            replace(process, route=told.route),
            ids=ids,
            dataset=entry,
            settings=dict(audit.settings),
        )

    @classmethod
    def around(cls, thing: Any) -> GaussianProcess | None:
        """The subject of a process in memory."""
        if not isinstance(thing, ProcessOnRecords):
            return None
        return cls(thing, ids=tuple(range(thing.units)), dataset=arrays_entry(thing), settings={})

    # What it is and what it says.

    @property
    def model(self) -> ExaminedModel:
        """The kernel and the noise, in words."""
        process = self.process
        return ExaminedModel(
            type="GaussianProcess",
            name=f"a Gaussian process ({kernel_in_words(process.kernel.describe())})",
            origin=f"a stand-in, noise variance {process.noise_variance:.4g}",
            parameters={},
            stand_in=True,
        )

    def laws(self, stage: Stages) -> ProcessLaws:
        """What each unit's leaving changes; of an audit also how the ranks move with the noise."""
        process = self.process
        if self.level is not None:
            return ProcessLaws.of(process.at_noise(self.level))
        with stage("laws"):
            found = process.separation()
        if process.records <= SWEPT_UP_TO:
            with stage("noises"):
                self.sweep = lood.sweep_noise(process.laws_at, process.noise_variance, found)
        columns: dict[str, NDArray[Any]] = {} if found.groups is None else {"size": found.sizes}
        columns |= {
            "mean_distance": found.mean_distance,
            "kl_label_free": found.kl_label_free,
            "kl_label": found.kl_label,
        }
        if found.groups is None:
            columns["disagreement"] = found.disagreement
            columns |= {
                "mean_without": found.mean_without,
                "sd_without": np.sqrt(found.variance_without),
                "mean_with": found.mean_with,
                "sd_with": np.sqrt(found.variance_with),
            }
        if self.sweep is not None:
            ranks = self.sweep.ranks
            columns |= {"rank_low": ranks.min(axis=0), "rank_high": ranks.max(axis=0)}
        return ProcessLaws.of(
            found,
            warnings=(
                *without_intercept(process.features, process.kernel.describe()),
                *self._cautions(found),
            ),
            columns=columns,
            arrays={
                "excess": found.excess,
                "residual": found.residual,
                "members": found.members,
                "sizes": found.sizes,
            },
        )

    def _cautions(self, found: lood.Separation) -> tuple[str, ...]:
        """What a user must know about how the numbers were got."""
        told = []
        if found.route == "nystrom":
            told.append(
                f"this audit is approximate, by {self.process.inducing} of "
                f"{self.process.records} records: it ranks, and confirms nothing."
            )
        if self.choice is not None and self.choice.at_bound:
            told.append(
                f"noise_variance {self.choice.noise_variance:.4g}, which the data chose, lies at "
                "the end of the range that was searched: give a number instead."
            )
        return tuple(told)

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[ProcessDetails, dict[str, NDArray[Any]]]:
        """Other noises, and why the most exposed are."""
        assert isinstance(laws, ProcessLaws)
        separation, process, sweep = laws.separation, self.process, self.sweep
        explanations = []
        if explain_first and process.groups is None:
            with stage("explain"):
                first = np.argsort(-columns["kl"], kind="stable")[:explain_first]
                explanations = explained(process, separation, first, self.ids)
        details = ProcessDetails(
            kernel=process.kernel.describe(),
            noise_variance=process.noise_variance,
            noise_chosen_by="user" if self.choice is None else self.choice.criterion,
            route=separation.route,
            sweep=[]
            if sweep is None
            else [
                NoiseLevel(noise_variance=level, median_kl=float(np.median(kl)))
                for level, kl in zip(sweep.noise_variances.tolist(), sweep.kl, strict=True)
            ],
            noise_of_data=None if sweep is None or self.choice is not None else self._of_data(),
            explanations=explanations,
        )
        return details, {}

    def _of_data(self) -> NoiseOfData | None:
        """None where there are too few records to tell, or float64 fails at what they choose."""
        process = self.process
        if process.records < LEAST_ASKED:
            return None
        some = np.sort(np.random.default_rng(0).permutation(process.records)[:ASKED_RECORDS])
        try:
            choice = choose_noise(
                process.kernel(process.features[some]),
                process.targets[some],
                criterion="leave_one_out" if process.groups is None else "marginal_likelihood",
            )
            there = process.laws_at(choice.noise_variance)
        except InputError:
            return None
        advantage = there.measured(lambda pair: exact(measures.advantage(pair)))
        return NoiseOfData(
            noise_variance=choice.noise_variance,
            criterion=choice.criterion,
            at_bound=choice.at_bound,
            largest_advantage=float(np.max(advantage)),
            median_advantage=float(np.median(advantage)),
        )

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        groups = self.process.groups
        return labels if groups is None else of_groups(labels, self.process.labels, len(self.ids))

    def pictures(self, audit: Audit, dataset: Dataset) -> dict[str, bytes]:
        """Pictures of the most exposed, where records are pictures."""
        features, kernel = self.process.features, self.process.kernel

        def products(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
            return kernel(features[rows], features), kernel.diagonal(features)

        return report_pictures(audit, dataset, (), products)

    # What can be changed of it, and what that costs.

    def at(self, level: float) -> GaussianProcess:
        """The same at another training noise."""
        return GaussianProcess(
            self.process.with_noise(level),
            ids=self.ids,
            dataset=self.dataset,
            settings=self.settings,
            level=level,
        )

    def keep(self, units: Rows) -> GaussianProcess:
        """Without some units."""
        return GaussianProcess(
            self.process.only(np.flatnonzero(np.isin(self.process.labels, units))),
            ids=tuple(self.ids[unit] for unit in units),
            dataset=self.dataset,
            settings=self.settings,
            level=self.process.noise_variance,
        )

    def changes(self, wanted: Wanted) -> Iterator[Change]:
        """More training noise."""
        own = self.process.noise_variance
        yield more_noise(
            self.process, lambda level: self if level == own else self.at(level), wanted
        )

    def folds(self, wanted: Wanted) -> Folds:
        """Of whole units."""
        return folds_of(self.process.labels, wanted.settings, wanted.random_state)

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> HeldOutDraws:
        """What one draw answers about every record, of a process trained without its fold."""
        assert folds is not None
        labels = self.process.labels
        return held_out(
            self.process, folds, np.flatnonzero(np.isin(labels, labels if kept is None else kept))
        )

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """Squared error of draws, and the process's own words."""
        assert folds is not None
        return terms(self.process, folds)

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """What float64 does not resolve."""
        return (
            f"Cannot tell whether the audit's own setting meets {target.words}: "
            f"{laws.unconfirmed} of {laws.units} {self.unit}s are not resolved by float64 at "
            f"noise_variance {self.process.noise_variance:g}; audit with a larger one."
        )

    def noise_notes(self, laws: UnitLaws, target: Target) -> tuple[str, ...]:
        """What noise takes against a question that is not at the record's own point."""
        return (OWN_POINTS,)

    def holds_at(self, noise: float) -> Literal["own", "any"]:
        """Without noise on the answers no question tells more."""
        return "own" if noise > 0.0 else "any"

    # How its stored audits are worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """What was examined, who ranks first, and at which noise.

        No units are counted above a threshold, since the noise that sets the level is assumed.
        """
        told, unit, count = audit.details, audit.unit, audit.units
        examined = (
            f"A Gaussian process ({kernel_in_words(told.kernel)}) on {audit.dataset.name}; your "
            "model was not examined."
        )
        first = audit.table.records(1)[0]
        ranked = f"{count} {unit}s were ranked."
        if ids:
            ranked = f"{unit.capitalize()} {first.record_id} ranks first of {count}."
        if told.approximate:
            return (examined, f"{ranked} How exposed each is, the approximation cannot tell.")
        if not first.confirmed:
            return (
                examined,
                f"Cannot tell: float64 does not resolve {audit.unconfirmed} of {count} {unit}s, "
                f"the first in rank among them, at noise_variance {told.noise_variance:g}: "
                "raise it.",
            )
        whose = "which is assumed"
        if told.noise_chosen_by != "user":
            whose = f"which the data chose by {CRITERIA[told.noise_chosen_by]}"
        levels = level_sentence(
            told.noise_variance,
            float(np.max(audit.advantage)),
            float(np.median(audit.advantage)),
            told.noise_of_data,
        )
        return (examined, f"{ranked} How exposed it is depends on the noise, {whose}: {levels}")

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
        if audit.details.approximate:
            return APPROXIMATED, "take the route dense, or fewer records"
        return (
            f"not resolved by float64 at noise_variance {audit.details.noise_variance:g}",
            "raise noise_variance",
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
    def sections(cls, audit: Audit) -> list[Section]:
        """How the level moves with the noise."""
        told = audit.details
        if not told.sweep:
            return []
        levels = [one.noise_variance for one in told.sweep]
        medians = [one.median_kl for one in told.sweep]
        words = (
            f"The noise variance ({told.noise_variance:.4g}) was swept from {levels[0]:.4g} to "
            f"{levels[-1]:.4g}. The level depends on it; a {audit.unit} with a short range of "
            "ranks is exposed whatever the noise is."
        )
        table = [
            [f"{one:.4g}", digits(median)] for one, median in zip(levels, medians, strict=True)
        ]
        chart = LineChart(
            "median_by_noise",
            "noise variance",
            "median KL (nats)",
            [("median KL", levels, medians)],
            used=told.noise_variance,
        )
        tables = [(("noise variance", "median KL"), table)]
        return [Section("If the noise were another", [words], tables=tables, charts=[chart])]

    @classmethod
    def stored_laws(cls, audit: Audit) -> UnitLaws:
        """From means and spreads; those of groups are in the run's arrays only."""
        table = audit.table
        if "sd_with" not in table:
            raise LawsNotStoredError("these laws are not in the result; audit again.")
        means = [np.asarray(table.columns[f"mean_{side}"]) for side in ("with", "without")]
        return normal_laws(audit) if means[0].ndim == 1 else _several_outputs(audit, *means)

    # Models with and without units.

    def laws_again(self) -> ProcessLaws | None:
        """Those of groups, which no result holds."""
        if self.process.groups is None:
            return None
        return ProcessLaws.of(self.process.separation())

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Functions drawn from the process, trained with and without each unit."""
        return process_answers(self.process, units, count, seed)


def _several_outputs(audit: Audit, inside: FloatArray, outside: FloatArray) -> PairLaws:
    """The laws of a table whose records have several means, (n, C), and one spread for all."""
    sds = [audit.table.of(f"sd_{side}") for side in ("with", "without")]
    shift = inside - outside
    good = (sds[0] > 0.0) & (sds[1] > 0.0) & np.isfinite(shift).all(axis=1)
    gone = lost(audit, good & np.isfinite(sds[0] + sds[1]))
    shift = np.where(gone[:, None], 1.0, shift)
    sds = [np.where(gone, LOST_SPREAD, sd) for sd in sds]
    provenance, identity = stored_provenance(audit), np.eye(shift.shape[1])

    def pair(noise: float) -> LawPair:
        spread = [np.hypot(sd, noise)[:, None, None] ** 2 * identity for sd in sds]
        return LawPair(
            MultivariateNormal(shift, spread[0]),
            MultivariateNormal(np.zeros_like(shift), spread[1]),
            provenance,
        )

    plain = pair(0.0)
    return PairLaws(
        trust=audit.trust,
        provenance=provenance,
        member=plain.member,
        nonmember=plain.nonmember,
        with_noise=pair,
        sd_without=sds[1],
    )


def parameters_of(model: lood.Process) -> dict[str, Any]:
    """What a result says of a process, beside its kernel as resolved."""
    return {
        "noise_variance": model.noise_variance,
        "route": model.route,
        "inducing": model.inducing,
    }


def arrays_entry(process: ProcessOnRecords) -> DatasetEntry:
    """What a result says of arrays."""
    return DatasetEntry(
        name="arrays",
        records=process.records,
        features=int(np.prod(process.features.shape[1:])),
        outputs=process.outputs.shape[1],
        target_name="y",
        steps=[],
    )


def kernel_in_words(kernel: Mapping[str, Any]) -> str:
    """A kernel's name and what matters most of its parameters, from its description."""
    words = [str(kernel.get("name", "kernel"))]
    for name in ("length_scale", "nu", "depth", "activation"):
        value = kernel.get(name)
        if isinstance(value, (int, float, str)):
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)


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
    return f"{advantage:.2g}" if advantage < 0.995 else "above 0.99"


def stored_process(
    description: Mapping[str, Any], noise_variance: float, prepared: Dataset, unit: str = "record"
) -> tuple[ProcessOnRecords, tuple[RecordId, ...]]:
    """The process that a result is about, from its resolved kernel, and the ids of its units."""
    if unit == "group" and prepared.group is None:
        raise InputError("the audit was of groups, but its data name no group column.")
    names, groups = leaving_units(prepared.record_ids, prepared.group if unit == "group" else None)
    try:
        if not LEAST <= noise_variance <= LARGEST:
            raise ValueError(f"noise_variance is {noise_variance:g}")
        kernel = from_description(dict(description))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        words = str(error).rstrip(".") if isinstance(error, InputError) else reason(error)
        raise InputError(f"the result's kernel cannot be used: {words}.") from error
    process = ProcessOnRecords(
        prepared.features,
        prepared.target,
        kernel,
        noise_variance,
        groups=groups,
        task=prepared.task,
    )
    return process, names
