"""A training of the user's own with its records: their exposure from a few models of it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.arrays import read_arrays
from leakscope.data.datasets import Dataset, RecordId, Task
from leakscope.data.doubts import doubts
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.results.advice import Target
from leakscope.results.audit import Audit, ExaminedModel, FitFacts
from leakscope.results.document import DatasetEntry
from leakscope.results.run_directory import default_run_directory
from leakscope.results.trust import Trust
from leakscope.running.cell_store import open_cells
from leakscope.running.cells import OnProgress, cluster_client
from leakscope.settings.audit import AuditSettings, TrainingSettings
from leakscope.settings.setting import validated
from leakscope.subjects.arrays import checked_ids
from leakscope.subjects.fit.details import FitDetails
from leakscope.subjects.laws import PosteriorLaws, Rows, UnitLaws
from leakscope.subjects.pricing import Folds, HeldOutScores, Terms
from leakscope.subjects.recipe import data_again, taken_from_result
from leakscope.subjects.subject import (
    Answers,
    Asked,
    Change,
    LawsNotStoredError,
    Stages,
    Subject,
    Wanted,
    shared_answers,
    task_of,
)
from leakscope.subjects.training import changes
from leakscope.subjects.training.half_models import HalfModels, digest_of, train_halves
from leakscope.subjects.training.own_training import (
    OwnTraining,
    named_training,
    predicts_classes,
    require_own_rows,
    training_of,
)
from leakscope.subjects.words import (
    examined_sentence,
    most_exposed_sentence,
    shifted_score_sentence,
)

# How far the advantages and TPRs of a few models, which are tabulated, lie from exact ones.
TABULATED = 1e-3

# With fewer models, a standard deviation is not known to a fifth.
LEAST_MODELS = 20

# Between the seeds of an audit and those of its check: none of its models is trained again.
AFRESH = 1_000_003

# Whole numbers are classes where there are no more different ones than this.
MOST_WHOLE_CLASSES = 20


class Training(Subject):
    """A training with the records that it is given, and the models of it that were trained."""

    name = "training"
    file_kind = "audit_model"
    words = "a training"
    basis = "measured"
    screen = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "shift_in_sd", "trusted")
    page = (
        "advantage", "advantage_low", "advantage_high", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001",
        "auc", "kl", "shift_in_sd", "trusted",
    )  # fmt: skip
    stages = ("check", "train", "measure")
    interval_words: ClassVar[str] = "95%"
    Details = FitDetails
    advice_options = ("tries",)

    def __init__(
        self,
        training: OwnTraining,
        X: Any,
        y: NDArray[Any],
        how: TrainingSettings,
        *,
        seed: int,
        ids: tuple[RecordId, ...],
        dataset: DatasetEntry,
        scaling: str = "none",
        warnings: tuple[str, ...] = (),
        by: Mapping[str, Sequence[str]] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        _require_fit_target(training, y)
        self.training, self.X, self.y, self.how, self.seed = training, X, y, how, seed
        self.ids, self.dataset, self.warnings, self.by = ids, dataset, warnings, by or {}
        self.on_progress = on_progress
        self.settings = {
            **how.model_dump(),
            "train": how.train or training.name,
            "task": training.task,
            "scaling": scaling,
            "seed": seed,
        }
        self.half_models: HalfModels | None = None
        self.few: fitted.FewModels | None = None
        self.found: PosteriorLaws | None = None

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """A training that is given or named."""
        return asked.trains

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Training:
        """The training on arrays as they are, or on a dataset, scaled and coded first."""
        if asked.groups is not None or (asked.dataset is not None and asked.dataset.group):
            raise InputError(
                "With --train single records leave, and what a whole group changes is not known; "
                "leave out --group."
            )
        with stage("check"):
            if asked.dataset is None:
                return cls._of_arrays(asked)
            return cls._of_dataset(asked.dataset, asked.training, asked.settings, asked.on_progress)

    @classmethod
    def _of_arrays(cls, asked: Asked) -> Training:
        X, how = asked.X, asked.training
        shape = tuple(getattr(X, "shape", None) or np.shape(X))
        labels = np.ravel(np.asarray(asked.y))
        if not shape or shape[0] != len(labels):
            raise InputError(
                f"X has {shape[0] if shape else 0} records and y has {len(labels)}; they must "
                "agree."
            )
        task = _task(asked.train, labels)
        return cls(
            training_of(asked.train, task, how.time_limit),
            X if hasattr(X, "shape") else np.asarray(X),
            labels,
            how,
            seed=asked.settings.seed,
            ids=checked_ids(asked.record_ids, len(labels), X),
            dataset=DatasetEntry(
                name="arrays",
                records=len(labels),
                features=int(np.prod(shape[1:])),
                outputs=1,
                target_name="y",
                steps=[],
            ),
            on_progress=asked.on_progress,
        )

    @classmethod
    def _of_dataset(
        cls,
        dataset: Dataset,
        how: TrainingSettings,
        settings: AuditSettings,
        on_progress: OnProgress | None = None,
    ) -> Training:
        prepared = prepare(dataset, scaling=settings.scaling)
        if how.train is None:
            raise InputError("name a training: --train module:function.")
        training = named_training(how.train, dataset.task, how.time_limit)
        if predicts_classes(training.subject) not in (None, dataset.task == "classification"):
            raise InputError(
                f"{training.name} does not suit the target {dataset.target_name!r}, which is taken "
                f"for {dataset.task}; give --task, or another estimator."
            )
        y: NDArray[Any] = np.asarray(prepared.target, dtype=np.float64)
        steps = list(prepared.steps)
        if dataset.task == "classification":
            classes, y = np.unique(dataset.target.astype(str), return_inverse=True)
            steps = [text for text in steps if not text.startswith("target ")]
            steps.append(f"target taken as {len(classes)} classes, 0 to {len(classes) - 1}")
        elif y.ndim > 1:
            raise InputError("With --train the target must be one column.")
        entry = DatasetEntry.of(prepared)
        return cls(
            training,
            prepared.features,
            y,
            how,
            seed=settings.seed,
            ids=prepared.record_ids,
            dataset=entry.model_copy(update={"steps": steps, "outputs": 1}),
            scaling=settings.scaling,
            warnings=tuple(doubts(dataset)),
            by=prepared.by,
            on_progress=on_progress,
        )

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Training:
        """The training by its name, on its data; models that were kept are not trained again."""
        told = audit.settings
        if audit.dataset.source is None:
            raise InputError(
                f"the training of this audit ({audit.model.name}) was in memory, and no file "
                "holds it; take the result that leakscope.audit returned."
            )
        with taken_from_result():
            fields = TrainingSettings.model_fields
            how = validated(TrainingSettings, **{name: told[name] for name in fields})
            usual = validated(AuditSettings, scaling=told["scaling"], seed=told["seed"])
            task_of(told["task"])
        return cls._of_dataset(data_again(audit.dataset, data), how, usual)

    def with_training(self, training: OwnTraining, keep: str | None) -> Training:
        """The same halves and seeds with another training."""
        return Training(
            training,
            self.X,
            self.y,
            self.how.model_copy(update={"keep": keep}),
            seed=self.seed,
            ids=self.ids,
            dataset=self.dataset,
            scaling=self.settings["scaling"],
            on_progress=self.on_progress,
        )

    # What can be changed of it, and what that costs (:mod:`leakscope.subjects.training.changes`).

    def for_advice(self, wanted: Wanted) -> Training:
        """As it is; of a few models some targets are not known."""
        super().for_advice(wanted)
        changes.require_measured(wanted.target)
        return self

    def changes(self, wanted: Wanted) -> Sequence[Change]:
        """The options that are to be tried, each really trained."""
        return changes.tried_options(self, wanted.tries)

    def folds(self, wanted: Wanted) -> Folds:
        """The halves, which are folds: a record is held out by the model without it."""
        return changes.halves(self)

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> HeldOutScores:
        """The scores of every record by the models of the other half."""
        return changes.unseen_scores(self)

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """The loss on the half that a model has not seen."""
        return changes.terms(self, wanted)

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """Too few models."""
        return f"Cannot tell whether {target.words} is met: {changes.NOT_SEEN}."

    # What it is and what it says.

    @property
    def model(self) -> ExaminedModel:
        """The training by its name, and how many models there are of it."""
        return ExaminedModel(
            type=type(self.training.subject).__name__,
            name=self.training.name,
            origin=f"{self.how.models} models of halves of the records",
            parameters={},
        )

    @property
    def observes(self) -> Literal["log_odds", "residual"]:
        """What an attacker looks at."""
        return "log_odds" if self.training.task == "classification" else "residual"

    def laws(self, stage: Stages) -> PosteriorLaws:
        """Train the models that are not kept yet, and the posterior of every record's two laws."""
        if self.found is not None:
            return self.found
        with stage("train"):
            odd = require_own_rows(self.training, self.X, self.y, self.seed)
            self.half_models = self._trained()
        stage.timing["train_all_models"] = self.half_models.seconds
        scores = self.half_models.scores
        if float(np.ptp(scores)) == 0.0:
            raise InputError(
                f"every model of {self.training.name} has the same score for every record, so "
                "there is nothing to tell records apart by."
            )
        sign = _sign(scores, self.observes)
        self.few = fitted.few_models(
            sign * scores, self.half_models.trained_on, random_state=self.seed
        )
        self.found = posterior_laws(
            self.few,
            sign,
            self.observes,
            arrays={self.observes: scores, "trained_on": self.half_models.trained_on},
            warnings=(*odd, *self.half_models.warnings),
        )
        return self.found

    def _trained(self) -> HalfModels:
        about = {"data": digest_of(self.X, self.y), "training": self.training.describe()}
        how = self.how
        with ExitStack() as stack:
            place = how.keep
            if place is None and self.dataset.source is None:
                place = stack.enter_context(tempfile.TemporaryDirectory()) + "/models"
            elif place is None:
                digest = hashlib.sha256(repr((about, self.seed)).encode()).hexdigest()[:12]
                proposed = default_run_directory("models", self.dataset.name)
                place = str(proposed.with_name(f"{proposed.name.partition('-')[2]}-{digest}"))
            client = stack.enter_context(
                cluster_client(scheduler=how.scheduler, workers=how.workers)
            )
            store = stack.enter_context(open_cells(place, settings=about, seed=self.seed))
            return train_halves(
                self.X,
                self.y,
                self.training,
                how.models,
                store,
                seed=self.seed,
                client=client,
                on_progress=self.on_progress,
            )

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[FitDetails, dict[str, NDArray[Any]]]:
        """How many models, and how they do on records that they have and have not seen."""
        assert self.half_models is not None
        threshold: dict[str, float | None] = {}
        if self.observes == "log_odds":
            threshold = dict(measures.one_threshold(laws.pair()))
        details = FitDetails(
            models=self.how.models,
            fit=_measured_fit(self.half_models, self.y, self.training.task),
            one_threshold=threshold,
        )
        return details, {}

    # Models with and without units.

    counted_in = "models"
    doubted_first = True

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Many more models of other halves and other seeds."""
        if count < LEAST_MODELS:
            raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {count}.")
        about = {"training": self.training.describe()}
        afresh = seed + AFRESH
        with (
            tempfile.TemporaryDirectory() as folder,
            open_cells(f"{folder}/models", settings=about, seed=afresh) as store,
        ):
            found = train_halves(
                self.X, self.y, self.training, count - count % 2, store, seed=afresh
            )
        how = (
            f"{len(found.scores)} shadow models of the same training, each fitted on a random 0.5 "
            "of the records"
        )
        return shared_answers(found.scores, found.trained_on, units, how, count)

    # How its stored audits are worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """Which training, how exposed the most exposed are, and how many surely pass."""
        return (
            examined_sentence(audit),
            most_exposed_sentence(audit, ids=ids),
            _passing(audit, threshold),
        )

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows, and what the shift is."""
        return shifted_score_sentence(audit)

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """Too few models on one side of a record."""
        models = audit.details.models or 2
        return (
            "not trusted: with one model on each side of a record the noise between models cannot "
            "be seen",
            f"train more, --models {2 * models}",
        )

    @classmethod
    def stored_laws(cls, audit: Audit) -> PosteriorLaws:
        """The same posterior again, from the scores that the run directory holds."""
        if audit.directory is None:
            raise LawsNotStoredError(
                "the laws of a few models are a posterior, which is made from the scores in the "
                "run directory; name that directory."
            )
        observes: Literal["log_odds", "residual"] = (
            "residual" if audit.observes == "residual" else "log_odds"
        )
        names = (observes, "trained_on", "order")
        held = read_arrays(audit.directory / "arrays.npz", names)
        if any(name not in held for name in names):
            raise LawsNotStoredError(f"{audit.directory} does not hold the scores of its models.")
        order = np.asarray(held["order"], dtype=np.intp)
        scores = np.asarray(held[observes], dtype=np.float64)
        trained_on = np.asarray(held["trained_on"], dtype=np.bool_)
        sign = _sign(scores, observes)
        few = fitted.few_models(
            sign * scores, trained_on, random_state=int(audit.settings.get("seed", 0))
        )
        whole = posterior_laws(few, sign, observes, arrays={})
        # A table that was read is in the order of its ranks.
        return whole.some(order) if np.array_equal(audit.order, np.arange(len(order))) else whole

    @classmethod
    def refused_attacks(cls, audit: Audit) -> Mapping[str, str]:
        """What needs a convex fit, a network or a process."""
        fit = "needs a linear, logistic, Poisson or kernel ridge model"
        process = "needs a Gaussian process"
        found = {"answers": fit, "pool": fit, "retrained": process, "query": process}
        # Of a function of one's own nobody knows what it trains.
        name = audit.model.type
        if name != "function" and not name.startswith("MLP"):
            network = "needs a two-layer network"
            found |= {"weights": network, "reconstruct": network}
        return found


def posterior_laws(
    few: fitted.FewModels,
    sign: FloatArray,
    observes: Literal["log_odds", "residual"],
    *,
    arrays: Mapping[str, NDArray[Any]],
    warnings: tuple[str, ...] = (),
) -> PosteriorLaws:
    """The posterior of every record's two laws, given the scores of a few models."""
    member, nonmember = few.pair.member, few.pair.nonmember
    assert isinstance(member, Normal)
    assert isinstance(nonmember, Normal)
    seen = all(entry.holds is not False for entry in few.pair.provenance.assumptions)
    provenance = replace(few.pair.provenance, question="pool", observes=observes)
    with_mean, without_mean = sign * member.mean, sign * nonmember.mean
    with_sd, without_sd = np.asarray(member.sigma), np.asarray(nonmember.sigma)
    values = {"advantage": few.advantage.value}
    columns: dict[str, NDArray[Any]] = {
        "shift_in_sd": (with_mean - without_mean) / without_sd,
        "mean_without": without_mean,
        "sd_without": without_sd,
        "mean_with": with_mean,
        "sd_with": with_sd,
        "advantage_low": few.advantage.low,
        "advantage_high": few.advantage.high,
    }
    for level, each in few.tpr_at_fpr.items():
        name = f"tpr_at_fpr_{level:g}".replace(".", "_")
        values[name] = each.value
        columns |= {f"{name}_low": each.low, f"{name}_high": each.high}
    return PosteriorLaws(
        tolerance=TABULATED,
        trust=Trust.checked(
            "two or more models were trained with it and two or more without it",
            np.full(few.records, seen),
        ),
        provenance=provenance,
        warnings=warnings,
        columns={**columns, "surely_exposed": few.exposed},
        arrays={
            "member_mean": with_mean,
            "member_sd": with_sd,
            "nonmember_mean": without_mean,
            "nonmember_sd": without_sd,
            **arrays,
        },
        draws=few.draws.pairs,
        values=values,
        centre=LawPair(Normal(with_mean, with_sd), Normal(without_mean, without_sd), provenance),
        sd_without=without_sd,
    )


def _sign(scores: FloatArray, observes: str) -> FloatArray:
    """By which each record's scores are turned, so that training on it raises them."""
    if observes != "residual":
        return np.ones(scores.shape[1])
    return np.where(scores.mean(axis=0) > 0.0, -1.0, 1.0)


def _passing(audit: Audit, threshold: float) -> str:
    """How many pass the threshold by a few models of one training, and what can be done."""
    models = audit.details.models or 2
    more = f"--models {2 * models} narrows the intervals."
    if audit.untrusted:
        return (
            "Trust the ranks, not the levels: with one model on each side of a record the noise "
            f"between models cannot be seen. {more}"
        )
    exposed = int(np.count_nonzero(audit.advantage >= threshold))
    surely = int(np.count_nonzero(audit.table.of("advantage_low") >= threshold))
    passing = (
        f"{exposed or 'None'} of {audit.units} records {'have' if exposed != 1 else 'has'} an "
        f"estimated advantage of {threshold:g} or more"
    )
    if not exposed:
        return f"{passing}; {more}"
    return (
        f"{passing}; for {surely or 'none'} of them the whole 95% interval is that high. What "
        f"helps: shorter training, more penalty or more records (leakscope advise tries them); "
        f"{more}"
    )


def _measured_fit(models: HalfModels, y: NDArray[Any], task: str) -> FitFacts:
    """Scores where a record was used in training, and where it was not."""
    scores, trained_on = models.scores, models.trained_on
    if task == "classification":
        good = (scores > 0.0).astype(np.float64)
        values = [float(good[trained_on].mean()), float(good[~trained_on].mean())]
        score = "accuracy"
    else:
        spread = float(np.var(np.asarray(y, dtype=np.float64)))
        squares = scores**2
        errors = [float(squares[trained_on].mean()), float(squares[~trained_on].mean())]
        values = [1.0 - error / spread for error in errors] if spread > 0.0 else []
        score = "R²"
    training, left_out = values or (None, None)
    return FitFacts(parameters=None, score=score, training=training, left_out=left_out)


def _require_fit_target(training: OwnTraining, y: NDArray[Any]) -> None:
    values = np.unique(y)
    if len(values) < 2:
        raise InputError("the target is the same for every record.")
    if training.task == "regression":
        if y.dtype.kind not in "fiub" or not np.isfinite(y.astype(np.float64)).all():
            raise InputError("a quantity to predict must be a finite number for every record.")
        return
    rare = values[[int(np.count_nonzero(y == value)) < 2 for value in values]]
    if rare.size:
        raise InputError(
            f"the class {rare[0]} has one record only, and no model of the half without it would "
            "know the class; leave the record out."
        )


def _task(train: Any, y: NDArray[Any]) -> Task:
    says = predicts_classes(train)
    if says is not None:
        return "classification" if says else "regression"
    if y.dtype.kind in "fc":
        return "regression"
    many = y.dtype.kind in "iu" and len(np.unique(y)) > MOST_WHOLE_CLASSES
    return "regression" if many else "classification"
