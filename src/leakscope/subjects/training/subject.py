"""A training of the user's own with its records: their exposure from models of halves of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.arrays import read_arrays
from leakscope.data.datasets import Dataset, RecordId, Task
from leakscope.data.doubts import array_doubts, doubts
from leakscope.data.preparation import prepare
from leakscope.errors import InputError, required
from leakscope.halves.draw import kinds_of, summed_by
from leakscope.halves.estimate import (
    COUNTED,
    FACTOR,
    NEAR,
    FewModels,
    answer_doubts,
    few_models,
    model_effects,
    require_units,
)
from leakscope.halves.train import HalfModels, Halving
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.recipes.answers import MOST_CHANCE
from leakscope.recipes.recipe import Recipe, named_subject, predicts_classes, recipe_of
from leakscope.results.advice import Target
from leakscope.results.audit import Audit, ExaminedModel, Explanation, FitFacts
from leakscope.results.document import DatasetEntry
from leakscope.results.run_directory import RUNS_FOLDER
from leakscope.results.trust import Trust
from leakscope.running.parts import OnProgress, duration
from leakscope.settings.audit import AuditSettings, ModelSettings, Scaling, TrainingSettings
from leakscope.settings.setting import described, validated
from leakscope.subjects.arrays import checked_ids, leaving_units
from leakscope.subjects.fit.details import FitDetails
from leakscope.subjects.fit.models import is_fitted, plain_parameters
from leakscope.subjects.handed import HANDED, Handed, first_taken, forms_of
from leakscope.subjects.laws import PosteriorLaws, Rows, UnitLaws
from leakscope.subjects.pricing import Folds, HeldOutScores, Terms
from leakscope.subjects.recipe import data_again, taken_from_result
from leakscope.subjects.subgroups import of_groups
from leakscope.subjects.subject import (
    Answers,
    Asked,
    Change,
    ErasedModel,
    LawsNotStoredError,
    Stages,
    Subject,
    Wanted,
    places,
    shared_answers,
    task_of,
)
from leakscope.subjects.training import changes
from leakscope.subjects.training.erasure import fell
from leakscope.subjects.words import (
    examined_sentence,
    most_exposed_sentence,
    percent,
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
# How many models are enough is seen from so many records at most, evenly chosen.
LOOKED_AT = 2000
# Log-odds of labels are all alike, up to this.
ONE_LABEL = 1e-9
# The digest of code that cannot be read.
NO_CODE = "unknown"

# What is asked of a record's answers before its numbers are confirmed.
CHECK = (
    f"its advantage is within {NEAR:g} of both ends of its interval, its TPR at 1% within a factor "
    f"of {FACTOR:g}, and its answers look normal with it and without it"
)
# What a model that answers at random is said to do; a person who asks often sees through it.
UNSTEADY = "the models answer otherwise when they are asked about the same records again"
STEADY = "let them repeat their answers, in any order and batch (PyTorch: net.eval() first)"

# What belongs to laws of one fit; of a few models it is always the same.
OF_ONE_FIT = (
    "question", "fraction", "observes", "secret", "answer_noise", "C", "alpha", "gamma",
    "weight_decay",
)  # fmt: skip

Observed = Literal["log_odds", "residual"]


@dataclass(frozen=True)
class Origin:
    """Where a recipe comes from that was given as a model.

    ``model`` is the name or the file by which it is found again; ``of`` what was fitted already and
    is not what is examined, in words.
    """

    model: str | None = None
    file: str | None = None
    of: str | None = None

    @classmethod
    def asked(cls, asked: Asked) -> Origin:
        """That of what is asked for; of a training nothing is said."""
        if asked.trains or asked.own is None:
            return cls()
        file, of = asked.chosen.file, None
        if file is not None:
            of = f"{file.name} itself"
        elif hasattr(asked.own, "get_params") and is_fitted(asked.own):
            of = "the model as you fitted it"
        model = os.path.realpath(file) if file is not None else asked.chosen.code
        return cls(model, None if file is None else file.name, of)


class TrainingDetails(FitDetails):
    """What models of halves have to say beside their numbers.

    ``models`` is how many there are, ``reused`` how many of them were there already and ``made``
    when the first of those was trained; ``repeating`` how many records' answers have no normal law
    and were counted; ``labels`` whether every answer is a label and no probability; ``unsteady``
    how many models answer otherwise when they are asked again.
    """

    explanations: list[Explanation] = Field(default_factory=list)  # type: ignore[assignment]
    reused: int | None = None
    made: str | None = None
    repeating: int | None = None
    labels: bool | None = None
    unsteady: int | None = None


class Training(Subject):
    """A recipe with its records, and the models of halves that were trained of it."""

    name = "training"
    file_kind = "audit_model"
    words = "a training"
    basis = "measured"
    screen = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "shift_in_sd", "confirmed")
    page = (
        "advantage", "advantage_low", "advantage_high", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001",
        "auc", "kl", "shift_in_sd", "confirmed",
    )  # fmt: skip
    stages = ("check", "train", "measure")
    interval_words: ClassVar[str] = "95%"
    Details = TrainingDetails
    advice_options = ("tries",)
    counted_in = "models"

    def __init__(
        self,
        recipe: Recipe,
        how: TrainingSettings,
        *,
        seed: int,
        units: tuple[tuple[RecordId, ...], NDArray[np.intp] | None],
        dataset: DatasetEntry,
        settings: Mapping[str, Any],
        origin: Origin,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.ids, self.codes = units
        _require_target(recipe, self.codes)
        self.row_weights: FloatArray | None = None
        self.unit = "record" if self.codes is None else "group"
        self.recipe, self.y, self.how, self.seed = recipe, recipe.y, how, seed
        self.dataset, self.origin, self.on_progress = dataset, origin, on_progress
        self.settings = {
            **how.model_dump(),
            "train": how.train or recipe.name,
            "task": recipe.task,
            "code": recipe.describe()["digest"],
            "seed": seed,
            "model": origin.model,
            "recipe_of": origin.of,
            **settings,
        }
        self.half_models: HalfModels | None = None
        self.few: FewModels | None = None
        self.posterior: PosteriorLaws | None = None

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """A training that is given or named, or a model of which nothing better is known."""
        return asked.trains or asked.own is not None

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Training:
        """The training on arrays as they are, or on a dataset's columns as they stand."""
        if not asked.trains:
            _require_usual(asked)
        with stage("check"):
            if asked.dataset is None:
                training = cls._of_arrays(asked)
            else:
                scaled = "scaling" in asked.settings.model_fields_set
                training = cls._of_dataset(asked, asked.settings.scaling if scaled else "none")
        return training

    @classmethod
    def _of_arrays(cls, asked: Asked) -> Training:
        X, how, seed = asked.X, asked.training, asked.settings.seed
        subject = asked.train if asked.trains else asked.own
        shape = tuple(getattr(X, "shape", None) or np.shape(X))
        y = np.ravel(np.asarray(asked.y))
        if not shape or shape[0] != len(y):
            raise InputError(
                f"X has {shape[0] if shape else 0} records and y has {len(y)}; they must agree."
            )
        task = asked.task or _task(subject, y)
        X = X if hasattr(X, "shape") else np.asarray(X)
        recipe = recipe_of(subject, X, y, task, time_limit=how.time_limit)
        _require_target(recipe)
        _, odd = first_taken(lambda _: recipe, [Handed("arrays", X, y)], seed)
        entry = DatasetEntry(
            name="arrays", records=len(y), features=int(np.prod(shape[1:])), outputs=1,
            target_name="y", steps=[],
        )  # fmt: skip
        made = cls(
            recipe,
            how,
            seed=seed,
            units=leaving_units(checked_ids(asked.record_ids, len(y), X), asked.groups),
            dataset=entry,
            settings={"scaling": "none", "handed": "arrays"},
            origin=Origin.asked(asked),
            on_progress=asked.on_progress,
        )
        classes = task == "classification"
        made.warnings = (*array_doubts(X, y, classes=classes, groups=asked.groups), *odd)
        return made

    @classmethod
    def _of_dataset(cls, asked: Asked, scaling: Scaling, form: str | None = None) -> Training:
        """The training of a dataset; ``form`` is how it took the records before, if it did."""
        dataset, how, seed = asked.dataset, asked.training, asked.settings.seed
        assert dataset is not None
        subject, name = (asked.train if asked.trains else asked.own), ""
        if subject is None:
            if how.train is None:
                raise InputError("name a training: --train module:function.")
            subject, name = named_subject(how.train), how.train
        columns = [str(column) for column in getattr(subject, "feature_names_in_", ())]
        forms = forms_of(dataset, scaling, columns)
        if form is not None:
            forms = [each for each in forms if each.form == form]
            if not forms:
                raise InputError(f"the data are not there as {form}, as the training took them.")

        def recipe_with(given: Handed) -> Recipe:
            return recipe_of(
                subject, given.X, given.y, dataset.task, time_limit=how.time_limit, name=name
            )

        _require_target(recipe_with(forms[-1]))
        given, odd = (forms[0], ()) if form else first_taken(recipe_with, forms, seed)
        prepared = prepare(dataset, scaling=scaling)
        steps = [text for text in prepared.steps if not text.startswith("target coded")]
        if given.form == "table":
            steps = [text for text in steps if not text.startswith("categories one-hot")]
        steps.append(given.words(dataset, scaling))
        made = cls(
            recipe_with(given),
            how,
            seed=seed,
            units=leaving_units(prepared.record_ids, prepared.group),
            dataset=DatasetEntry.of(prepared).model_copy(update={"steps": steps, "outputs": 1}),
            settings={"scaling": scaling, "handed": given.form},
            origin=Origin.asked(asked),
            on_progress=asked.on_progress,
        )
        made.by, made.warnings = prepared.by, (*doubts(dataset), *odd)
        return made

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Training:
        """The training by its name, on its data; models that were kept are not trained again."""
        stored = audit.settings
        if audit.dataset.source is None:
            raise InputError(
                f"the training of this audit ({audit.model.name}) was in memory, and no file "
                "holds it; take the result that leakscope.audit returned."
            )
        with taken_from_result():
            # As many models as there are: none is added.
            names = [name for name in TrainingSettings.model_fields if name != "minutes"]
            how = validated(TrainingSettings, **{name: stored[name] for name in names})
            usual = validated(AuditSettings, scaling=stored["scaling"], seed=stored["seed"])
            task_of(stored["task"])
            form = str(stored["handed"])
            chosen = validated(ModelSettings, model=stored.get("model"))
        if chosen.model is not None:
            how = how.model_copy(update={"train": None})
        again = Asked(
            dataset=data_again(audit.dataset, data), settings=usual, chosen=chosen, training=how
        )
        training = cls._of_dataset(again, usual.scaling, form)
        if stored.get("code", NO_CODE) not in (NO_CODE, training.settings["code"]):
            raise InputError(
                f"{training.recipe.name} is no longer what was audited: its code, what that "
                "imports, or the version of a library has changed; audit again."
            )
        if training.codes is not None and audit.directory is not None:
            # Other models must be asked for the same sums of answers.
            held = read_arrays(audit.directory / "arrays.npz", ("row_weights",))
            if "row_weights" in held:
                training.row_weights = np.asarray(held["row_weights"], dtype=np.float64)
        return training

    def with_recipe(self, recipe: Recipe) -> Training:
        """The same halves and seeds with another recipe."""
        same = {name: self.settings[name] for name in ("scaling", "handed")}
        return Training(
            recipe,
            self.how,
            seed=self.seed,
            units=(self.ids, self.codes),
            dataset=self.dataset,
            settings=same,
            origin=self.origin,
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
        """Why it is open whether the target is met."""
        low, high = laws.ends_for(target) or (np.zeros(0), np.zeros(0))
        wide = int(np.count_nonzero((low <= target.value) & (high > target.value)))
        why = f"the intervals of {wide} of {laws.units} {self.unit}s reach above it"
        if laws.unknown:
            why = f"of {laws.unknown} of {laws.units} {self.unit}s nothing is known"
        return (
            f"Cannot tell whether {target.words} is met: {why}; more models narrow the intervals "
            f"(audit again with --models {4 * self.count})."
        )

    # What it is and what it says.

    @property
    def count(self) -> int:
        """How many models there are, or are asked for."""
        return self.how.models or 0

    @property
    def model(self) -> ExaminedModel:
        """The recipe by its name, and how many models there are of it."""
        not_it = "" if self.origin.of is None else f", its recipe and not {self.origin.of}"
        given = self.origin.model is not None or self.origin.of is not None
        return ExaminedModel(
            type=type(self.recipe.subject).__name__,
            name=self.recipe.name,
            origin=f"{self.count} models of halves of the {self.unit}s{not_it}",
            parameters=plain_parameters(self.recipe.subject) if given else {},
            # No digest: the file itself was not examined.
            file=self.origin.file,
        )

    @property
    def observes(self) -> Observed:
        """What an attacker looks at."""
        return "log_odds" if self.recipe.task == "classification" else "residual"

    def laws(self, stage: Stages) -> PosteriorLaws:
        """Train the models that are not kept yet, and the posterior of every record's two laws."""
        if self.posterior is not None:
            return self.posterior
        require_units(len(self.ids), self.unit)
        with stage("train"):
            models = self._trained()
        stage.timing["train_all_models"] = models.seconds
        if float(np.ptp(models.scores)) == 0.0:
            same = (
                f"every model of {self.recipe.name} has the same score for every record, so there "
                "is nothing to tell records apart by."
            )
            # Why it was passed on, where it was, may be why.
            raise InputError(" ".join((same, *self.warnings[:1])))
        self.half_models = models
        self.few, sign = self._few(models)
        scores, trained_on = self._of_units(models)
        groups: dict[str, NDArray[Any]] = {}
        if self.codes is not None and self.row_weights is not None:
            groups = {"groups": self.codes, "row_weights": self.row_weights}
        steady = not models.unsteady
        warned = f"Of {self.recipe.name} {UNSTEADY}: no number is confirmed; {STEADY}."
        self.posterior = posterior_laws(
            self.few,
            sign,
            self.observes,
            trust=Trust.checked(
                CHECK, self.few.trusted & steady, bounded=self.few.noise_seen and steady
            ),
            # By which the posterior can be had again.
            arrays={
                self.observes: scores,
                "trained_on": trained_on,
                "doubt": self.few.given_doubt,
                **groups,
            },
            more={"size": np.bincount(self.codes)} if self.codes is not None else {},
            warnings=(*([] if steady else [warned]), *models.warnings),
        )
        return self.posterior

    def _halving(self, seed: int, on_progress: OnProgress | None = None) -> Halving:
        return Halving(self.recipe, seed, self.codes, on_progress)

    def _trained(self) -> HalfModels:
        """The models; an error says where those are kept that are finished."""
        if self.how.scheduler is not None:
            required("distributed", "A cluster")
        keep = self.how.keep
        if keep is None and self.dataset.source is not None:
            keep = f"{RUNS_FOLDER}/models"
        place = None if keep is None else Path(keep)
        try:
            models = self._halving(self.seed, self.on_progress).enough_models(
                self.how, place, self._narrow
            )
        except InputError as error:
            if place is None:
                raise
            raise InputError(
                f"{error} Finished models are kept in {place}; the same command goes on from there."
            ) from error
        self.settings["models"] = len(models.scores)
        self.how = self.how.model_copy(update={"models": len(models.scores), "minutes": None})
        return models

    def _narrow(self, models: HalfModels) -> float:
        """The share of some of the units whose intervals these models make narrow."""
        weights = self.row_weights
        few, _ = self._few(models, LOOKED_AT)
        # More models weigh a group's records anew.
        self.row_weights = weights
        return float(np.mean(few.narrow))

    def _few(self, models: HalfModels, most: int | None = None) -> tuple[FewModels, FloatArray]:
        """What models show of the units, or of ``most`` of them, and by which sign scores turn."""
        # What a model answers; a residual has the record's own target in it.
        target = np.asarray(self.y, dtype=np.float64) if self.observes == "residual" else 0.0
        kinds = kinds_of(self.recipe.X)
        doubt = answer_doubts(models.scores + target, models.trained_on, kinds)
        if self.codes is not None:
            records, doubt = doubt, np.zeros(len(self.ids), dtype=np.int8)
            np.maximum.at(doubt, self.codes, records)
        scores, trained_on = self._of_units(models)
        sign, some = _sign(scores, self.observes), slice(None)
        if most is not None:
            some = slice(None, None, -(-len(self.ids) // most))
        few = few_models(
            (sign * scores)[:, some],
            trained_on[:, some],
            random_state=self.seed,
            doubt=doubt[some],
            refuse_mistakes=False,
        )
        return few, sign

    def _of_units(self, models: HalfModels) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Of every unit, models x units: a group's score is a weighted mean of its records'."""
        if self.codes is None:
            return models.scores, models.trained_on
        if self.row_weights is None:
            self.row_weights = _row_weights(models.scores, self.observes, self.codes)
        first = np.unique(self.codes, return_index=True)[1]
        weighed = summed_by(self.codes, self.row_weights * models.scores)
        return weighed, models.trained_on[:, first]

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        return labels if self.codes is None else of_groups(labels, self.codes, len(self.ids))

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[TrainingDetails, dict[str, NDArray[Any]]]:
        """How many models, how they do on records, and how they answer about the most exposed."""
        models = self.half_models
        assert models is not None
        assert self.few is not None
        classes = self.observes == "log_odds"
        away = np.abs(np.abs(models.scores) + np.log(MOST_CHANCE))
        details = TrainingDetails(
            models=len(models.scores),
            fit=_measured_fit(models, self.y, self.recipe.task),
            one_threshold=dict(measures.one_threshold(laws.pair())) if classes else {},
            reused=models.reused,
            made=None
            if models.made is None
            else f"{datetime.fromtimestamp(models.made, UTC):%Y-%m-%d}",
            repeating=int(np.count_nonzero(self.few.doubt >= COUNTED)),
            labels=classes and bool((away < ONE_LABEL).all()),
            unsteady=models.unsteady or None,
            explanations=self._explained(models, columns["advantage"], explain_first),
        )
        return details, {}

    def _explained(self, models: HalfModels, advantage: FloatArray, most: int) -> list[Explanation]:
        """How models with and without the most exposed answer about them."""
        scores, trained_on = self._of_units(models)
        explanations = []
        for rank, row in enumerate(np.argsort(-advantage, kind="stable")[:most].tolist(), start=1):
            sides = ~trained_on[:, row], trained_on[:, row]
            without, inside = (float(scores[side, row].mean()) for side in sides)
            words = (
                f"models without it miss its target by {without:+.3g} on average, models with it "
                f"by {inside:+.3g}"
            )
            if self.observes == "log_odds":
                chances = (percent(float(expit(score))) for score in (without, inside))
                words = "models without it give its label a chance of {}, models with it {}"
                words = words.format(*chances)
            if self.codes is not None:
                words = (
                    f"without it the score of its records is {without:+.3g} on average, with it "
                    f"{inside:+.3g}"
                )
            sentence = f"{self.unit.capitalize()} {self.ids[row]}: {words}."
            explanations.append(Explanation(record_id=self.ids[row], rank=rank, sentence=sentence))
        return explanations

    # Models with and without units.

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Many more models of other halves and other seeds."""
        if count < LEAST_MODELS:
            raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {count}.")
        with tempfile.TemporaryDirectory() as folder:
            halving = self._halving(seed + AFRESH)
            models = halving.models(count - count % 2, folder=Path(folder))
        if models.unsteady:
            raise InputError(f"{UNSTEADY}; {STEADY}.")
        how = (
            f"{len(models.scores)} shadow models of the same training, each fitted on a random 0.5 "
            f"of the {self.unit}s"
        )
        scores, trained_on = self._of_units(models)
        # As in the audit, each model's own level and scale are taken off.
        sign = _sign(scores, self.observes)
        scores = sign * model_effects(sign * scores).level(sign * scores)
        return shared_answers(scores, trained_on, units, how, count)

    def erased(
        self, units: Rows, audit: Audit, after: Any = None, before: Any = None
    ) -> ErasedModel:
        """By how far the answers about the units fell, beside those about everybody else."""
        if after is None or before is None:
            raise InputError(
                "to check an erasure from a training, give two models of it: the one before and "
                "the one after."
            )
        old, new = (self.recipe.scores_of(model) for model in (before, after))
        names = ("mean_with", "mean_without", "sd_without")
        inside, outside, sd = (audit.table.of(name)[places(audit, self)] for name in names)
        return fell(old - new, units, (inside - outside) / sd, sd, self.seed)

    # How its stored audits are worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """Which training, how exposed the most exposed are, and how many surely pass."""
        return (
            examined_sentence(audit, _made(audit)),
            most_exposed_sentence(audit, ids=ids),
            _passing(audit, threshold),
        )

    @classmethod
    def notes(cls, audit: Audit) -> list[str]:
        """What the training was handed."""
        steps = [text for text in audit.dataset.steps if text.startswith(HANDED)]
        return [f"{text[0].upper()}{text[1:]}." for text in steps]

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows, and what the shift is."""
        return shifted_score_sentence(
            audit,
            "mean of its records' scores, each weighted by its error",
            "label" if audit.details.labels else "",
        )

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """Why some units are not confirmed, and what more models would buy: two clauses."""
        details, models = audit.details, audit.details.models or 2
        if details.unsteady:
            return f"not confirmed, because {UNSTEADY}", STEADY
        if models <= 2:
            why = "with one model on each side of a record the noise between models is not seen"
            return f"not confirmed, because {why}", f"take --models {2 * models}"
        rows = ~audit.confirmed
        low, high = (audit.table.of(f"advantage_{end}")[rows] for end in ("low", "high"))
        # Widths fall with the root of the number of models.
        half = float(np.median(0.5 * (high - low))) if rows.any() else NEAR
        more = int(2 ** np.ceil(np.log2(models * max((half / NEAR) ** 2, 2.0))))
        why = f"known by intervals only, because these are wide (over {NEAR:g})"
        return why, f"--models {more} narrows half of them enough"

    @classmethod
    def stored_laws(cls, audit: Audit) -> PosteriorLaws:
        """The same posterior again, from the scores that the run directory holds."""
        if audit.directory is None:
            raise LawsNotStoredError(
                "the numbers of an audit by a few models are computed from the scores in its run "
                "directory; name that directory."
            )
        observes: Observed = "residual" if audit.observes == "residual" else "log_odds"
        names = (observes, "trained_on", "order", "doubt")
        held = read_arrays(audit.directory / "arrays.npz", names)
        if any(name not in held for name in names):
            raise LawsNotStoredError(f"{audit.directory} does not hold the scores of its models.")
        order = np.asarray(held["order"], dtype=np.intp)
        scores = np.asarray(held[observes], dtype=np.float64)
        sign = _sign(scores, observes)
        few = few_models(
            sign * scores,
            np.asarray(held["trained_on"], dtype=np.bool_),
            random_state=int(audit.settings.get("seed", 0)),
            doubt=np.asarray(held["doubt"], dtype=np.int8),
            refuse_mistakes=False,
        )
        whole = posterior_laws(few, sign, observes, trust=Trust.nobody(scores.shape[1]), arrays={})
        # A table that was read is in the order of its ranks.
        ranked = np.array_equal(audit.order, np.arange(len(order)))
        return replace(whole.some(order) if ranked else whole, trust=audit.trust)

    @classmethod
    def refused_attacks(cls, audit: Audit) -> Mapping[str, str]:
        """What needs a convex fit, a network or a process."""
        fit = "needs a linear, logistic, Poisson or kernel ridge model"
        process, network = "needs a Gaussian process", "needs a two-layer network"
        refused = {"pool": fit, "secret": fit, "retrained": process, "query": process}
        # Of a function of one's own nobody knows what it trains.
        name = audit.model.type
        if name != "function" and not name.startswith("MLP"):
            refused |= {"weights": network, "reconstruct": network}
        return refused


def posterior_laws(
    few: FewModels,
    sign: FloatArray,
    observes: Observed,
    *,
    trust: Trust,
    arrays: Mapping[str, NDArray[Any]],
    warnings: tuple[str, ...] = (),
    more: Mapping[str, NDArray[Any]] | None = None,
) -> PosteriorLaws:
    """The posterior of every unit's two laws; ``more`` are columns beside the usual ones."""
    member, nonmember = few.pair.member, few.pair.nonmember
    assert isinstance(member, Normal)
    assert isinstance(nonmember, Normal)
    provenance = replace(few.pair.provenance, question="pool", observes=observes)
    with_mean, without_mean = sign * member.mean, sign * nonmember.mean
    with_sd, without_sd = np.asarray(member.sigma), np.asarray(nonmember.sigma)
    values, counted = {"advantage": few.advantage.value}, few.doubt >= COUNTED
    columns: dict[str, NDArray[Any]] = {
        **(more or {}),
        # The law of what was counted is not known: its pair stands for the advantage alone.
        "shift_in_sd": np.where(counted, np.nan, (with_mean - without_mean) / without_sd),
        "mean_without": without_mean,
        "sd_without": without_sd,
        "mean_with": with_mean,
        "sd_with": with_sd,
        "advantage_low": few.advantage.low,
        "advantage_high": few.advantage.high,
    }
    for level, tpr in few.tpr_at_fpr.items():
        name = f"tpr_at_fpr_{level:g}".replace(".", "_")
        values[name] = tpr.value
        columns |= {f"{name}_low": tpr.low, f"{name}_high": tpr.high}
    means = {
        "member_mean": with_mean,
        "member_sd": with_sd,
        "nonmember_mean": without_mean,
        "nonmember_sd": without_sd,
    }
    return PosteriorLaws(
        tolerance=TABULATED,
        trust=trust,
        provenance=provenance,
        warnings=warnings,
        columns={**columns, "surely_exposed": few.exposed},
        arrays={**means, **arrays},
        draws=few.draws.pairs,
        values=values,
        centre=LawPair(Normal(with_mean, with_sd), Normal(without_mean, without_sd), provenance),
        sd_without=without_sd,
        counted=counted,
    )


def _require_usual(asked: Asked) -> None:
    """Refuse what is asked of a model that only the laws of one fit can answer."""
    why = "no laws follow from one fit of this model, and a few models of it are trained"
    if asked.sample_weight is not None:
        raise InputError(
            f"{why}, without weights; leave out sample_weight, or give a function that trains with "
            "them."
        )
    for name in OF_ONE_FIT:
        if name in asked.chosen.model_fields_set and getattr(asked.chosen, name) is not None:
            raise InputError(
                f"{described(ModelSettings, name).option} belongs to laws of one fit: {why}, where "
                "the attacker sees the log-odds, or the residual, and each other record is in with "
                "probability one half; leave it out."
            )


def _row_weights(scores: FloatArray, observes: str, codes: NDArray[np.intp]) -> FloatArray:
    """(N,) what each record's score counts for in its group's; sizes add up to one.

    Training on a record moves its score in proportion to the slope of its loss: the residual, or
    the chance that its label is not given.  Weighed so, a few models tell groups better than a
    regression on 80 models did (docs/few_models.md).
    """
    mean = scores.mean(axis=0)
    force = -mean if observes == "residual" else expit(-mean)
    size = np.maximum(np.abs(force), np.finfo(np.float64).tiny)
    return np.asarray(np.copysign(size, force) / summed_by(codes, size)[codes])


def _sign(scores: FloatArray, observes: str) -> FloatArray:
    """By which each record's scores are turned, so that training on it raises them."""
    if observes != "residual":
        return np.ones(scores.shape[1])
    return np.where(scores.mean(axis=0) > 0.0, -1.0, 1.0)


def _made(audit: Audit) -> str:
    """How many models were trained for this audit, and how many were there already."""
    details = audit.details
    models, reused = details.models, details.reused
    took = duration(audit.timing.get("train_all_models") or 0.0)
    halves = "halves of groups" if audit.unit == "group" else "halves"
    words = f"{models} models of {halves}, trained in {took}"
    if reused:
        made = f", made on {details.made}" if details.made else ""
        words = f"{models} models of {halves} ({models - reused} trained, {reused} reused{made})"
    of = audit.settings.get("recipe_of")
    return words if of is None else f"{words}, its recipe and not {of}"


def _passing(audit: Audit, threshold: float) -> str:
    """How many pass the threshold by a few models of one training, and what can be done."""
    more = f"--models {2 * (audit.details.models or 2)} narrows the intervals."
    doubt = f" {audit.doubt}" if audit.unconfirmed else ""
    known = audit.known
    if not known.any():
        return f"Trust the ranks, not the levels:{doubt}"
    among = f"{audit.units} {audit.unit}s" if known.all() else f"the {np.sum(known)} known"
    surely = int(np.count_nonzero(audit.table.of("advantage_low")[known] >= threshold))
    try:
        chance = audit.laws.chance_above(threshold, audit.advantage)[known]
        expected = f"{chance.sum():.0f}" if chance.sum() >= 9.5 else f"{chance.sum():.2g}"
        passing = f"Expected with an advantage of {threshold:g} or more: {expected} of {among}"
        passing += f", {surely or 'none'} surely (95%)."
    except LawsNotStoredError:
        passing = (
            f"{surely or 'None'} of {among} surely have an advantage of {threshold:g} or more."
        )
    return f"{passing}{doubt or f' {more}'}"


def _measured_fit(models: HalfModels, y: NDArray[Any], task: str) -> FitFacts:
    """How models do on records that they were trained on, and on the others."""
    scores, trained_on = models.scores, models.trained_on
    sides = trained_on, ~trained_on
    if task == "classification":
        inside, outside = (float((scores[side] > 0.0).mean()) for side in sides)
        return FitFacts(parameters=None, score="accuracy", training=inside, left_out=outside)
    spread = float(np.var(np.asarray(y, dtype=np.float64)))
    inside, outside = (1.0 - float((scores[side] ** 2).mean()) / spread for side in sides)
    return FitFacts(parameters=None, score="R²", training=inside, left_out=outside)


def _require_target(recipe: Recipe, codes: NDArray[np.intp] | None = None) -> None:
    """Refuse targets that halves cannot be trained on."""
    y = recipe.y
    values = np.unique(y)
    if len(values) < 2:
        raise InputError("the target is the same for every record.")
    if recipe.task == "regression":
        if y.dtype.kind not in "fiub" or not np.isfinite(y.astype(np.float64)).all():
            raise InputError("a quantity to predict must be a finite number for every record.")
        return
    unit, whose = ("record", np.arange(len(y))) if codes is None else ("group", codes)
    rare = values[[len(np.unique(whose[y == value])) < 2 for value in values]]
    if rare.size:
        raise InputError(
            f"the class {rare[0]} has one {unit} only, and no model of the half without it would "
            f"know the class; leave the {unit} out."
        )


def _task(subject: Any, y: NDArray[Any]) -> Task:
    """The task of arrays: as the estimator says, or as the targets look."""
    says = predicts_classes(subject)
    if says is not None:
        return "classification" if says else "regression"
    if y.dtype.kind in "fc":
        return "regression"
    count = len(np.unique(y))
    if y.dtype.kind in "iu" and count > MOST_WHOLE_CLASSES:
        raise InputError(
            f"y holds {count} different whole numbers, which may be classes or a quantity, and a "
            'function does not say: give task="classification" or task="regression".',
            option="task",
        )
    return "classification"
