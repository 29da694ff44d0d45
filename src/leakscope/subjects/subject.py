"""What is examined: a model of one kind together with its records, behind one small interface.

Every verb works on subjects and on audits and never asks which kind it holds.  A new kind is one
file with one class, and one line that registers it
(:func:`leakscope.results.kinds.register`; docs/howto/new_kind.md has a whole one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.data.datasets import Dataset, RecordId, Task
from leakscope.errors import InputError
from leakscope.laws.pair import LawPair, Provenance
from leakscope.results.advice import AdviceCheck, Target
from leakscope.results.audit import Audit, Basis, ExaminedModel
from leakscope.results.audit import Details as AuditDetails
from leakscope.results.document import DatasetEntry
from leakscope.results.erasure import Found
from leakscope.results.sections import Section
from leakscope.settings.advise import ADVISE_DEFAULTS, AdviseSettings
from leakscope.settings.audit import (
    AUDIT_DEFAULTS,
    MODEL_DEFAULTS,
    TRAINING_DEFAULTS,
    AuditSettings,
    ModelSettings,
    TrainingSettings,
)
from leakscope.subjects.laws import Measure, PairLaws, Rows, UnitLaws
from leakscope.subjects.pricing import Folds, HeldOut, Terms, Unavailable, folds_of

if TYPE_CHECKING:
    from leakscope.lood.process import Process

OnStage = Callable[[str], None]


class Stages:
    """The stages of an audit: said as they begin, timed as they end."""

    def __init__(self, on_stage: OnStage | None = None) -> None:
        self.on_stage = on_stage
        self.timing: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """One of them; after a colon stands how far it is."""
        if self.on_stage is not None:
            self.on_stage(name)
        start = perf_counter()
        yield
        short = name.partition(":")[0]
        self.timing[short] = self.timing.get(short, 0.0) + perf_counter() - start


@dataclass(frozen=True, eq=False)
class Asked:
    """What an audit was asked for: the data, and what is said about the model.

    Of arrays ``X`` and ``y`` are as they were given; of a dataset they are None.
    """

    dataset: Dataset | None = None
    X: Any = None
    y: Any = None
    record_ids: Sequence[Any] | None = None
    groups: Sequence[Any] | None = None
    sample_weight: Any = None
    model: Any = None
    train: Any = None
    kernel: Any = None
    task: Task | None = None
    settings: AuditSettings = AUDIT_DEFAULTS
    chosen: ModelSettings = MODEL_DEFAULTS
    training: TrainingSettings = TRAINING_DEFAULTS
    on_progress: Any = None
    # Measures of the user's own, by column.
    measures: Mapping[str, Measure] = field(default_factory=dict)

    @cached_property
    def own(self) -> Any:
        """The user's own model: the object, or what a name or a file leads to; else None.

        An estimator, fitted or not, a training function, or a described problem.
        """
        from leakscope.data.models import read_model
        from leakscope.recipes.code import load_by_name, made

        if self.model is not None:
            return None if self.process is not None else made(self.model, option="model")
        if self.chosen.file is not None:
            return read_model(self.chosen.file).estimator
        if self.chosen.code is not None:
            return made(load_by_name(self.chosen.code, option="--model"), option="--model")
        return None

    @property
    def trains(self) -> bool:
        """Whether a training is named as such."""
        return self.train is not None or self.training.train is not None

    @property
    def has_model(self) -> bool:
        """Whether a model is given or named."""
        own = self.model is not None and self.process is None
        return own or self.chosen.model is not None

    @property
    def process(self) -> Process | None:
        """The Gaussian process that is given as the model."""
        from leakscope.lood.process import Process

        return self.model if isinstance(self.model, Process) else None

    @property
    def process_model(self) -> Process:
        """The process that is given or named, or the usual one."""
        from leakscope import kernels
        from leakscope.lood.process import Process

        told = self.settings
        if self.process is not None:
            return self.process
        kernel = self.kernel or kernels.by_name(told.kernel, **told.kernel_options())
        return Process(kernel, told.noise_variance, told.route, told.inducing)

    @property
    def of_process(self) -> tuple[str, ...]:
        """What was given that only a Gaussian process has."""
        own = ("kernel",) if self.kernel is not None else ()
        model = () if self.process is None else ("model",)
        return (*model, *own, *self.settings.of_process())


@dataclass(frozen=True)
class Wanted:
    """What advice is asked for: the target, and how changes are tried and priced."""

    target: Target
    settings: AdviseSettings = ADVISE_DEFAULTS
    tries: Mapping[str, Sequence[float]] = field(default_factory=dict)
    random_state: Any = None


@dataclass(frozen=True)
class Scan:
    """Levels of a change that were tried, in their order, and the worst unit's measure at each.

    ``found`` is the least level that meets the target, None where none did; ``rises`` is whether
    one beyond it does not; ``refined`` are levels between.  What is not known counts as infinite.
    """

    levels: Sequence[float]
    worst: Sequence[float]
    found: float | None = None
    rises: bool = False
    refined: Sequence[float] = ()


@dataclass(frozen=True)
class Change:
    """A setting of a subject that can be moved towards less leakage.

    Attributes
    ----------
    name, setting
        Of the option, and of its number.
    levels
        Towards less leakage; the first may be the present one.
    at
        The subject changed so: the subject itself at its present level.
    words
        What to do, in an imperative.
    between
        A level between two, None where they are near enough; left out where every level stands for
        itself, and the cheapest that meets the target is taken.
    beyond
        How many levels are tried beyond the first that meets the target; None for all.
    along
        Levels to price, of those tried or others, given how many a large model can afford; all that
        were tried where left out.
    told, always
        Notes on what was tried, and notes in any case.
    unmet
        The verdict where no level meets the target.
    numbers
        The numbers that a level stands for, by name; left out where it is one number itself.
    """

    name: str
    setting: str
    levels: Sequence[float]
    at: Callable[[float], Subject]
    words: Callable[[float], str]
    between: Callable[[float, float], float | None] | None = None
    beyond: int | None = None
    along: Callable[[Scan, int], Sequence[float]] | None = None
    told: Callable[[Scan], tuple[str, ...]] = lambda scan: ()
    always: tuple[str, ...] = ()
    unmet: str = "Does not meet"
    numbers: Callable[[float], Mapping[str, float]] | None = None

    def of(self, level: float) -> dict[str, float]:
        """The setting that a level stands for."""
        return {self.setting: float(level)} if self.numbers is None else dict(self.numbers(level))


@dataclass(frozen=True, eq=False)
class Answers:
    """What models answer about units, trained with them and without them: for ``verify``.

    ``inside[k]`` and ``outside[k]`` are the answers about the k-th unit asked for, (models,) or
    (models, outputs).
    """

    inside: Sequence[NDArray[np.float64]]
    outside: Sequence[NDArray[np.float64]]
    how: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Of models that are shared by all units: their scores of every unit, and who was trained on.
    scores: NDArray[np.float64] | None = None
    trained_on: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ErasedModel:
    """What a model is, beside the one trained without some records: for ``erase``.

    ``made`` where none was given and this is that model; ``lacking`` are the rows that it was
    trained without, where they could be found; ``told`` are fields of the result.
    """

    estimator: Any
    found: Found
    lacking: Rows | None = None
    made: bool = False
    notes: tuple[str, ...] = ()
    told: Mapping[str, Any] = field(default_factory=dict)


# Options of advise that a kind takes only where it says so, and what is said where it does not.
NOT_ITS_OPTION = {
    "tries": "--try changes options of a training, and this audit is not one of a training "
    "(audit --model).",
    "questions": "questions anywhere are bounded for Gaussian processes with an rbf or matern "
    "kernel only; leave out --questions any.",
}


def shared_answers(
    scores: NDArray[np.float64], trained_on: NDArray[np.bool_], units: Rows, how: str, models: int
) -> Answers:
    """Those of models that all units share: scores (models, U), and who was trained on."""
    return Answers(
        [scores[trained_on[:, unit], unit] for unit in units.tolist()],
        [scores[~trained_on[:, unit], unit] for unit in units.tolist()],
        how,
        {"models": models},
        scores,
        trained_on,
    )


class PassedOnError(InputError):
    """A kind that took what is asked for finds, looking closer, that another must."""


class LawsNotStoredError(InputError):
    """The laws of an audit are not in its result."""


class Subject(ABC):
    """A model of one kind together with its records.

    ``ids`` are those of the units that can leave; ``by`` are columns of subgroups.
    """

    name: ClassVar[str]
    file_kind: ClassVar[str] = "audit_other"
    words: ClassVar[str]
    basis: Basis = "computed"
    ranked_by: ClassVar[Literal["kl", "advantage"]] = "advantage"
    # Columns, in order, of a screen's table and of a page's.
    screen: ClassVar[tuple[str, ...]] = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "confirmed",
    )  # fmt: skip
    page: ClassVar[tuple[str, ...]] = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "confirmed",
    )  # fmt: skip
    # Columns that every table of this kind has, in order, known or not.
    usual: ClassVar[tuple[str, ...]] = ()
    stages: ClassVar[tuple[str, ...]] = ("check", "laws", "measure")
    # How the doubt about numbers of some units is worded.
    not_confirmed: ClassVar[str] = "the laws of {} are not confirmed"
    # What the ends of an interval are, in a heading.
    interval_words: ClassVar[str] = "95%"
    Details: ClassVar[type[AuditDetails]] = AuditDetails
    # Those of ``NOT_ITS_OPTION`` that it takes.
    advice_options: ClassVar[tuple[str, ...]] = ()
    # Models of this kind that can be named, with a few words for a form.
    models: ClassVar[Mapping[str, str]] = {}

    ids: tuple[RecordId, ...]
    unit: Literal["record", "group"] = "record"
    dataset: DatasetEntry
    settings: dict[str, Any]
    warnings: tuple[str, ...] = ()
    by: Mapping[str, Sequence[str]] = {}
    # Names of the features that are left, where a change left some out.
    features_left: tuple[str, ...] = ()

    # How it comes about.

    @classmethod
    @abstractmethod
    def takes(cls, asked: Asked) -> bool:
        """Whether what is asked for is of this kind."""

    @classmethod
    def stages_for(cls, asked: Asked) -> tuple[str, ...]:
        """The stages that the audit will go through."""
        return cls.stages

    @classmethod
    def cost(cls, asked: Asked) -> str | None:
        """What a long audit will take, in words; None of others."""
        return None

    @classmethod
    @abstractmethod
    def of(cls, asked: Asked, stage: Stages) -> Subject:
        """The subject that is asked for."""

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Subject:
        """The subject of a finished audit again: data checked by digest, the model as it was."""
        raise InputError(
            f"{audit.model.name} was in memory, and no file holds it; take the audit that "
            "leakscope.audit returned."
        )

    @classmethod
    def around(cls, thing: Any) -> Subject | None:
        """The subject of an object of one's own, where this kind knows such; else None."""
        return None

    # What it is and what it says.

    @property
    @abstractmethod
    def model(self) -> ExaminedModel:
        """Which model is examined."""

    @abstractmethod
    def laws(self, stage: Stages) -> UnitLaws:
        """For every unit the pair of laws, with the check that it passed."""

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[AuditDetails, Mapping[str, NDArray[Any]]]:
        """What only this kind has to say, and columns that come with it.

        From the laws and the columns of the table; ``explain_first`` is how many of the most
        exposed are to be explained.
        """
        return self.Details(), {}

    @property
    def explained_unasked(self) -> bool:
        """Whether reasons are found without being asked for: where that is quick."""
        return True

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """The subgroup of each unit, from that of each record."""
        return labels

    def pictures(self, audit: Audit, dataset: Dataset) -> dict[str, bytes]:
        """Files for the report, by name, where records are pictures."""
        from leakscope.subjects.pictures import report_pictures

        return report_pictures(audit, dataset)

    # What can be changed of it, and what that costs.

    def for_advice(self, wanted: Wanted) -> Subject:
        """What advice changes, by its laws and nothing else; options that it lacks are refused."""
        settings = wanted.settings
        given = {
            "tries": bool(wanted.tries),
            "questions": settings.questions != "own",
        }
        for name, sentence in NOT_ITS_OPTION.items():
            if given[name] and name not in self.advice_options:
                raise InputError(sentence)
        return self

    def changes(self, wanted: Wanted) -> Iterable[Change]:
        """Settings that can be moved towards less leakage."""
        return ()

    def keep(self, units: Rows) -> Subject:
        """The same on some of its units."""
        raise Unavailable(f"{self.words} cannot be examined again on fewer records.")

    def folds(self, wanted: Wanted) -> Folds | None:
        """How the records are split for the price; None where it needs no parts of them."""
        return folds_of(np.arange(len(self.ids)), wanted.settings, wanted.random_state)

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> HeldOut:
        """Answers about every record by models without its fold, trained on ``kept`` units only."""
        raise Unavailable(f"{self.words} cannot be trained on parts of its data")

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """How advice is worded and priced."""
        return Terms()

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """What is said where it is not known whether the target is met as things are."""
        return (
            f"Cannot tell whether the model as it is meets {target.words}: the numbers of "
            f"{laws.unconfirmed} of {laws.units} {self.unit}s are not confirmed."
        )

    def noise_notes(self, laws: UnitLaws, target: Target) -> tuple[str, ...]:
        """What to know of noise on the answers."""
        return ()

    def holds_at(self, noise: float) -> Literal["own", "any"]:
        """Against which questions numbers hold: those at the record's own point, or any."""
        return "own"

    def checked(self, noise: float, wanted: Wanted) -> AdviceCheck | None:
        """The target's measure by models of this changed one, where that is asked for."""
        return None

    # Models with and without units.

    def laws_again(self) -> UnitLaws | None:
        """The laws from the data, where a result does not hold them; None where that is a training.

        ``verify`` compares the numbers of a result with them before it asks any model.
        """
        return None

    def erased(
        self, units: Rows, audit: Audit, after: Any = None, before: Any = None
    ) -> ErasedModel:
        """Whether ``after`` is the model without these units; without it, that model itself."""
        raise InputError(
            f"erase does not work on {self.words}; it works on fitted models and trainings."
        )

    # What ``verify`` counts for this kind: draws of each law, or models that all units share.
    counted_in: ClassVar[Literal["draws", "models"]] = "draws"

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Answers of models trained with and without some units."""
        raise InputError(f"{self.words} cannot be trained again with and without its records.")

    # How a stored audit of this kind is worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """What was examined, and how exposed the units are."""
        from leakscope.subjects.words import exposure_sentences

        return exposure_sentences(audit, threshold=threshold, ids=ids)

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows."""
        from leakscope.subjects.words import question_sentence

        return question_sentence(audit)

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """Why some units are not confirmed, and what to do."""
        return "not confirmed", "check them with leakscope verify"

    @classmethod
    def facts(cls, audit: Audit) -> dict[str, Any]:
        """What tells two audits of this kind apart, in words."""
        digest = audit.model.file_sha256
        return {
            "model": audit.model.name,
            "model from": audit.model.origin,
            "model file": None if digest is None else digest[:12],
            "question as used": audit.question,
            "fraction as used": audit.fraction,
            "observes as used": audit.observes,
        }

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """What a page shows of this kind beside what every audit has."""
        return []

    @classmethod
    def notes(cls, audit: Audit) -> list[str]:
        """Sentences for the screen, beside the answer."""
        return []

    @classmethod
    def remedies(cls, audit: Audit) -> list[dict[str, str]]:
        """Changes that the audit itself worked out: ``change``, ``effect`` and ``price`` each."""
        return []

    @classmethod
    def refused_attacks(cls, audit: Audit) -> Mapping[str, str]:
        """Attacks that do not apply to this kind, by their key in ``deciding``, and why."""
        return {"erase": "needs a fitted model or a training of yours"}

    @classmethod
    def stored_laws(cls, audit: Audit) -> UnitLaws:
        """The laws of a stored audit, from its table."""
        return normal_laws(audit)


def stored_provenance(audit: Audit) -> Provenance:
    """The provenance that a stored audit states."""
    names = ("question", "adjacency", "observes", "attacker_knows_label", "method", "source")
    return Provenance(**{k: v for k, v in audit.provenance.items() if k in names})


# What is not confirmed and has no spread left counts as given away: laws this narrow, one apart.
LOST_SPREAD = 1e-100


def lost(audit: Audit, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Units whose stored means and spreads are no numbers; of a confirmed one that is refused."""
    bad = np.flatnonzero(~good & audit.confirmed)
    if bad.size:
        raise InputError(
            f"the result's {audit.unit} {audit.record_ids[bad[0]]!r} cannot be measured: a mean or "
            "a variance is missing or not above 0."
        )
    return ~good


def normal_laws(audit: Audit) -> PairLaws:
    """Normal laws from a table's means and standard deviations."""
    from leakscope.laws.distributions import Normal
    from leakscope.laws.pair import LawPair

    table = audit.table
    if "sd_with" not in table:
        raise LawsNotStoredError("the laws of this audit are not in its result; audit again.")
    provenance = stored_provenance(audit)
    with_mean, without_mean = table.of("mean_with"), table.of("mean_without")
    with_sd, without_sd = table.of("sd_with"), table.of("sd_without")
    good = (with_sd > 0.0) & (without_sd > 0.0) & np.isfinite(with_mean + without_mean)
    gone = lost(audit, good & np.isfinite(with_sd + without_sd))
    with_mean, without_mean = np.where(gone, 1.0, with_mean), np.where(gone, 0.0, without_mean)
    with_sd, without_sd = (np.where(gone, LOST_SPREAD, sd) for sd in (with_sd, without_sd))

    def pair(sd: float) -> LawPair:
        return LawPair(
            Normal(with_mean, np.hypot(with_sd, sd)),
            Normal(without_mean, np.hypot(without_sd, sd)),
            provenance,
        )

    plain = pair(0.0)
    return PairLaws(
        trust=audit.trust,
        provenance=provenance,
        member=plain.member,
        nonmember=plain.nonmember,
        with_noise=pair,
        sd_without=without_sd,
    )


def kind_for(asked: Asked) -> type[Subject]:
    """The first kind in the table that takes what is asked for."""
    from leakscope.results.kinds import all_kinds

    for kind in all_kinds():
        if kind.takes(asked):
            found: type[Subject] = kind
            return found
    raise InputError("leakscope knows no kind of model that takes these arguments.")


def subject_for(asked: Asked, stage: Stages) -> Subject:
    """The subject, of the first kind in the table that takes what is asked for and can."""
    from leakscope.results.kinds import all_kinds

    why: list[str] = []
    for kind in all_kinds():
        if kind.takes(asked):
            try:
                found: Subject = kind.of(asked, stage)
            except PassedOnError as error:
                why.append(str(error))
                continue
            found.warnings = (*why, *found.warnings)
            return found
    raise InputError(
        why[-1] if why else "leakscope knows no kind of model that takes these arguments."
    )


def opened(audit: Audit, data: str | Path | Dataset | None = None) -> Subject:
    """The subject of an audit: as it is in memory, or opened again from its recipe."""
    if audit.examined is not None and data is None:
        found: Subject = audit.examined
        return found
    again: Subject = audit.about.opened(audit, data)
    return again


def places(audit: Audit, subject: Subject) -> NDArray[np.intp]:
    """Where each unit of the subject stands in the audit's table.

    A table that was read from a file is in the order of its ranks, not of the data.
    """
    there = {name: row for row, name in enumerate(audit.record_ids)}
    strange = sorted({str(name) for name in there} ^ {str(name) for name in subject.ids})
    if len(there) != len(subject.ids) or set(there) != set(subject.ids):
        which = f", such as {strange[0]!r}" if strange else ""
        raise InputError(
            f"the result has {len(there)} {audit.unit}s and its data {len(subject.ids)}, and they "
            f"are not the same{which}."
        )
    return np.array([there[name] for name in subject.ids], dtype=np.intp)


def subject_of(thing: Any) -> Subject:
    """A subject as it is, or that of an object which some kind knows, such as a process."""
    from leakscope.results.kinds import all_kinds

    if isinstance(thing, Subject):
        return thing
    for kind in all_kinds():
        found: Subject | None = kind.around(thing)
        if found is not None:
            return found
    raise InputError(f"this is neither an audit nor a model to examine: {type(thing).__name__}.")


def task_of(text: Any) -> Task:
    """A task that a file names."""
    return "classification" if text == "classification" else "regression"
