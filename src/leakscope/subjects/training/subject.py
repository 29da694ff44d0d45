"""A training of the user's own with its records: their exposure from a few models of it."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.arrays import read_arrays
from leakscope.data.datasets import Dataset, RecordId, Task
from leakscope.data.doubts import array_doubts, doubts
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.fitted.few_models import (
    COUNTED,
    FACTOR,
    LEAST_HELD,
    NEAR,
    TELLING,
    answer_doubts,
    model_effects,
    require_units,
)
from leakscope.fitted.people import summed_by
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.results.advice import Target
from leakscope.results.audit import Audit, ExaminedModel, Explanation, FitFacts
from leakscope.results.document import DatasetEntry
from leakscope.results.erasure import Found
from leakscope.results.run_directory import default_run_directory
from leakscope.results.shown import are
from leakscope.results.trust import Trust
from leakscope.running.cell_store import CellStore, open_cells
from leakscope.running.cells import OnProgress, cluster_client, duration
from leakscope.running.own_code import one_process
from leakscope.settings.audit import AuditSettings, ModelSettings, Scaling, TrainingSettings
from leakscope.settings.setting import described, validated
from leakscope.subjects.arrays import checked_ids, leaving_units
from leakscope.subjects.fit.details import FitDetails
from leakscope.subjects.fit.file_models import is_fitted, plain_parameters
from leakscope.subjects.handed import HANDED, Handed, forms_of
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
from leakscope.subjects.training.half_models import (
    HalfModels,
    digest_of,
    kept_models,
    model_names,
    train_halves,
)
from leakscope.subjects.training.own_training import (
    MOST_CHANCE,
    OwnTraining,
    kinds_of,
    named_training,
    predicts_classes,
    training_of,
    tried,
)
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

# A test of an erasure: its level, the power from which "not seen" says something, its draws, and
# the records that it needs to compare with.
LEVEL, SURE, DRAWN, LEAST_OTHERS = 0.05, 0.8, 10_000, 20

# Between the seeds of an audit and those of its check: none of its models is trained again.
AFRESH = 1_000_003

# Whole numbers are classes where there are no more different ones than this.
MOST_WHOLE_CLASSES = 20


# What is asked of a record's answers before its numbers are trusted.
CHECK = (
    "four or more models were trained with it and four or more without it, its answers have a "
    "normal law, a count of them agrees with it, its advantage is within "
    f"{NEAR:g} of both ends of its interval, and its TPR at 1% within a factor of {FACTOR:g}"
)
# What a model that answers at random is said to do; a person who asks often sees through it.
UNSTEADY = "the models answer otherwise when they are asked about the same records again"
STEADY = "let them repeat their answers, in any order and batch (PyTorch: net.eval() first)"
# Log-odds of labels are all alike, up to this.
ONE_LABEL = 1e-9

# No more models than these are proposed.
MOST_PROPOSED = 4096
# With minutes: no more models than these are trained, and none where so many records' numbers are
# known well enough, by so many models that a count of their answers has checked it.
MOST_MODELS, ENOUGH, CHECKED_FROM = 1024, 0.95, 2 * LEAST_HELD

# The digest of code that cannot be read.
NO_CODE = "unknown"


@dataclass(frozen=True)
class Recipe:
    """Where a training comes from that was given as a model.

    ``model`` is the name or the file by which it is found again; ``of`` what was fitted already and
    is not what is examined, in words.
    """

    model: str | None = None
    file: str | None = None
    of: str | None = None


def _recipe(asked: Asked) -> Recipe | None:
    if asked.trains or asked.own is None:
        return None
    file = asked.chosen.file
    of = None
    if file is not None:
        of = f"{file.name} itself"
    elif hasattr(asked.own, "get_params") and is_fitted(asked.own):
        of = "the model as you fitted it"
    model = os.path.realpath(file) if file is not None else asked.chosen.code
    return Recipe(model, None if file is None else file.name, of)


# What belongs to laws of one fit; of a few models it is always the same.
OF_ONE_FIT = (
    "question", "fraction", "observes", "secret", "answer_noise", "C", "alpha", "gamma",
    "weight_decay",
)  # fmt: skip


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


class TrainingDetails(FitDetails):
    """What a few models of a training have to say beside their numbers.

    ``models`` is how many there are, ``reused`` how many of them were there already and ``made``
    when the first of those was trained; ``repeating`` how many records' answers have no normal law
    and were counted, ``telling`` of how many of them single values say who was trained on, and
    ``labels`` whether every answer is a label and no probability; ``unsteady`` how many models
    answer otherwise when they are asked again.
    """

    explanations: list[Explanation] = Field(default_factory=list)  # type: ignore[assignment]
    reused: int | None = None
    made: str | None = None
    repeating: int | None = None
    telling: int | None = None
    labels: bool | None = None
    unsteady: int | None = None


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
    Details = TrainingDetails
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
        handed: str = "arrays",
        recipe: Recipe | None = None,
        codes: NDArray[np.intp] | None = None,
        warnings: tuple[str, ...] = (),
        by: Mapping[str, Sequence[str]] | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        _require_fit_target(training, y, codes)
        self.codes, self.row_weights = codes, cast(FloatArray | None, None)
        self.unit = "record" if codes is None else "group"
        self.training, self.X, self.y, self.how, self.seed = training, X, y, how, seed
        self.ids, self.dataset, self.warnings, self.by = ids, dataset, warnings, by or {}
        self.on_progress = on_progress
        self.settings = {
            **how.model_dump(),
            "train": how.train or training.name,
            "task": training.task,
            "scaling": scaling,
            "handed": handed,
            "code": training.describe()["digest"],
            "seed": seed,
            "model": None if recipe is None else recipe.model,
            "recipe_of": None if recipe is None else recipe.of,
        }
        self.recipe = recipe
        self.half_models: HalfModels | None = None
        self.few: fitted.FewModels | None = None
        self.found: PosteriorLaws | None = None

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
        with stage("check"), one_process():
            if asked.dataset is None:
                return cls._of_arrays(asked)
            scaled = "scaling" in asked.settings.model_fields_set
            return cls._of_dataset(
                asked.dataset,
                asked.training,
                seed=asked.settings.seed,
                scaling=asked.settings.scaling if scaled else "none",
                own=asked.train if asked.trains else asked.own,
                recipe=_recipe(asked),
                on_progress=asked.on_progress,
            )

    @classmethod
    def _of_arrays(cls, asked: Asked) -> Training:
        X, how, seed = asked.X, asked.training, asked.settings.seed
        own = asked.train if asked.trains else asked.own
        shape = tuple(getattr(X, "shape", None) or np.shape(X))
        labels = np.ravel(np.asarray(asked.y))
        if not shape or shape[0] != len(labels):
            raise InputError(
                f"X has {shape[0] if shape else 0} records and y has {len(labels)}; they must "
                "agree."
            )
        task = asked.task or _task(own, labels)
        training = training_of(own, task, how.time_limit)
        _require_suits(training, "y")
        given = Handed("arrays", X if hasattr(X, "shape") else np.asarray(X), labels)
        _require_fit_target(training, labels)
        given, odd = tried(training, [given], seed)
        ids, codes = leaving_units(checked_ids(asked.record_ids, len(labels), X), asked.groups)
        return cls(
            training,
            given.X,
            given.y,
            how,
            seed=seed,
            ids=ids,
            codes=codes,
            dataset=DatasetEntry(
                name="arrays",
                records=len(labels),
                features=int(np.prod(shape[1:])),
                outputs=1,
                target_name="y",
                steps=[],
            ),
            recipe=_recipe(asked),
            warnings=(
                *array_doubts(
                    given.X, labels, classes=task == "classification", groups=asked.groups
                ),
                *odd,
            ),
            on_progress=asked.on_progress,
        )

    @classmethod
    def _of_dataset(
        cls,
        dataset: Dataset,
        how: TrainingSettings,
        *,
        seed: int,
        scaling: Scaling = "none",
        own: Any = None,
        recipe: Recipe | None = None,
        form: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Training:
        """The training of a dataset; ``form`` is how it took the records before, if it did."""
        if own is None and how.train is None:
            raise InputError("name a training: --train module:function.")
        training = (
            training_of(own, dataset.task, how.time_limit)
            if own is not None
            else named_training(str(how.train), dataset.task, how.time_limit)
        )
        _require_suits(training, f"the target {dataset.target_name!r}")
        names = [str(name) for name in getattr(own, "feature_names_in_", ())]
        forms = forms_of(dataset, scaling, names)
        if form is not None:
            forms = [each for each in forms if each.form == form]
            if not forms:
                raise InputError(f"the data are not there as {form}, as the training took them.")
        _require_fit_target(training, forms[-1].y)
        given, odd = (forms[0], []) if form else tried(training, forms, seed)
        prepared = prepare(dataset, scaling=scaling)
        steps = [text for text in prepared.steps if not text.startswith("target coded")]
        if given.form == "table":
            steps = [text for text in steps if not text.startswith("categories one-hot")]
        entry = DatasetEntry.of(prepared)
        ids, codes = leaving_units(prepared.record_ids, prepared.group)
        return cls(
            training,
            given.X,
            given.y,
            how,
            seed=seed,
            ids=ids,
            codes=codes,
            dataset=entry.model_copy(
                update={"steps": [*steps, given.words(dataset, scaling)], "outputs": 1}
            ),
            scaling=scaling,
            handed=given.form,
            recipe=recipe,
            warnings=(*doubts(dataset), *odd),
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
            # As many models as there are: none is added.
            names = [name for name in fields if name != "minutes"]
            how = validated(TrainingSettings, **{name: told[name] for name in names})
            usual = validated(AuditSettings, scaling=told["scaling"], seed=told["seed"])
            task_of(told["task"])
            form = str(told["handed"])
            again = Asked(chosen=validated(ModelSettings, model=told.get("model")))
        found = cls._of_dataset(
            data_again(audit.dataset, data),
            how if again.own is None else how.model_copy(update={"train": None}),
            seed=usual.seed,
            scaling=usual.scaling,
            own=again.own,
            recipe=_recipe(again),
            form=form,
        )
        code = told.get("code", NO_CODE)
        if code != NO_CODE and code != found.settings["code"]:
            raise InputError(
                f"{found.training.name} is no longer what was audited: its code, what that "
                "imports, or the version of a library has changed; audit again."
            )
        if found.codes is not None and audit.directory is not None:
            # Other models must be asked for the same sums of answers.
            held = read_arrays(audit.directory / "arrays.npz", ("row_weights",))
            if "row_weights" in held:
                found.row_weights = np.asarray(held["row_weights"], dtype=np.float64)
        return found

    def with_training(self, training: OwnTraining, keep: str | None) -> Training:
        """The same halves and seeds with another training."""
        return Training(
            training,
            self.X,
            self.y,
            self.how.model_copy(update={"keep": keep}),
            seed=self.seed,
            ids=self.ids,
            codes=self.codes,
            dataset=self.dataset,
            scaling=self.settings["scaling"],
            handed=self.settings["handed"],
            recipe=self.recipe,
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
        """Why the numbers of some are not trusted."""
        reasons, models = self._reasons(laws), self.how.least
        if "few" in reasons or "unsteady" in reasons:
            why, remedy = _doubt(reasons, models, None, labels=False, telling=False)
            which = f"{laws.unknown} of {laws.units} {self.unit}s"
            some = f"{which} {are(laws.unknown)} {why}; {remedy}"
        else:
            low, high = laws.ends_for(target) or (np.zeros(0), np.zeros(0))
            open_ = int(np.count_nonzero((low <= target.value) & (high > target.value)))
            some = (
                f"the intervals of {open_} of {laws.units} {self.unit}s reach above it; more "
                f"models narrow them (audit again with --models {4 * models})"
            )
        return f"Cannot tell whether {target.words} is met: {some}."

    # What it is and what it says.

    @property
    def model(self) -> ExaminedModel:
        """The training by its name, and how many models there are of it."""
        recipe = self.recipe
        return ExaminedModel(
            type=type(self.training.subject).__name__,
            name=self.training.name,
            origin=f"{self.how.least} models of halves of the {self.unit}s"
            + ("" if recipe is None or recipe.of is None else f", its recipe and not {recipe.of}"),
            parameters={} if recipe is None else plain_parameters(self.training.subject),
            # No digest: the file itself was not examined.
            file=None if recipe is None else recipe.file,
        )

    @property
    def observes(self) -> Literal["log_odds", "residual"]:
        """What an attacker looks at."""
        return "log_odds" if self.training.task == "classification" else "residual"

    def laws(self, stage: Stages) -> PosteriorLaws:
        """Train the models that are not kept yet, and the posterior of every record's two laws."""
        if self.found is not None:
            return self.found
        require_units(len(self.ids), self.unit)
        with stage("train"):
            self.half_models = self._trained()
        stage.timing["train_all_models"] = self.half_models.seconds
        scores, trained_on = self.half_models.scores, self.half_models.trained_on
        if float(np.ptp(scores)) == 0.0:
            same = (
                f"every model of {self.training.name} has the same score for every record, so "
                "there is nothing to tell records apart by."
            )
            # Why it was passed on, where it was, may be why.
            raise InputError(" ".join((same, *self.warnings[:1])))
        self.few, sign = self._posterior(self.half_models)
        scores, trained_on = self._of_units(scores, trained_on)
        self.found = posterior_laws(
            self.few,
            sign,
            self.observes,
            trust=Trust.checked(
                CHECK,
                self.few.trusted & (not self.half_models.unsteady),
                bounded=self.few.noise_seen and not self.half_models.unsteady,
            ),
            arrays={
                self.observes: scores,
                "trained_on": trained_on,
                # By which the posterior can be had again.
                "doubt": self.few.given_doubt,
                **self._of_groups("groups", "row_weights"),
            },
            more=self._of_groups("size"),
            warnings=(*self._unsteady(self.half_models), *self.half_models.warnings),
        )
        return self.found

    def _unsteady(self, models: HalfModels) -> list[str]:
        """A warning where models answer at random."""
        if not models.unsteady:
            return []
        return [
            f"Of {self.training.name} {UNSTEADY} ({models.unsteady} of {len(models.scores)}): no "
            f"number is trusted; {STEADY}."
        ]

    def _of_units(
        self, scores: FloatArray, trained_on: NDArray[np.bool_]
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Of every unit, models x units: a group's score is a weighted mean of its records'."""
        if self.codes is None:
            return scores, trained_on
        if self.row_weights is None:
            self.row_weights = _row_weights(scores, self.observes, self.codes)
        first = np.unique(self.codes, return_index=True)[1]
        return summed_by(self.codes, self.row_weights * scores), trained_on[:, first]

    def _of_groups(self, *names: str) -> dict[str, NDArray[Any]]:
        """What there is to say of groups, by name; nothing where records leave singly."""
        if self.codes is None or self.row_weights is None:
            return {}
        known = {
            "groups": self.codes, "row_weights": self.row_weights, "size": np.bincount(self.codes),
        }  # fmt: skip
        return {name: known[name] for name in names}

    def _most_of(self, records: NDArray[np.int8]) -> NDArray[np.int8]:
        """Of every unit, the largest of its records'."""
        if self.codes is None:
            return records
        found = np.zeros(len(self.ids), dtype=np.int8)
        np.maximum.at(found, self.codes, records)
        return found

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        return labels if self.codes is None else of_groups(labels, self.codes, len(self.ids))

    @property
    def _labels(self) -> bool:
        """Whether every answer is a label: a chance of none or all."""
        assert self.half_models is not None
        certain = float(-np.log(MOST_CHANCE))
        alike = np.abs(np.abs(self.half_models.scores) - certain) < ONE_LABEL
        return self.observes == "log_odds" and bool(alike.all())

    def _reasons(self, laws: UnitLaws) -> dict[str, int]:
        """Of how many records each reason not to trust them holds, the first that does."""
        assert self.few is not None
        if self.half_models is not None and self.half_models.unsteady:
            return {"unsteady": laws.units}
        if not self.few.noise_seen:
            return {"few": laws.units}
        many = int(np.count_nonzero(self.few.doubt >= COUNTED))
        return {"repeating": many, "wide": laws.untrusted - many}

    def _trained(self) -> HalfModels:
        about = {"data": digest_of(self.X, self.y), "training": self.training.describe()}
        if self.codes is not None:
            about["groups"] = hashlib.sha256(self.codes.tobytes()).hexdigest()
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
            stack.enter_context(self._kept_told(store))
            start, count, found = time.monotonic(), how.least, None
            if how.lasting is not None:
                count = max(count, kept_models(store))
            while found is None or count > len(found.scores):
                more = train_halves(
                    self.X,
                    self.y,
                    self.training,
                    count,
                    store,
                    seed=self.seed,
                    codes=self.codes,
                    client=client,
                    on_progress=self.on_progress,
                )
                first = found or more
                found = replace(more, reused=first.reused, made=first.made)
                if how.lasting is not None:
                    count = self._paying(found, start, start + 60.0 * how.lasting)
        self.how = how.model_copy(update={"models": count, "minutes": None})
        self.settings["models"] = count
        return found

    def _paying(self, found: HalfModels, start: float, end: float) -> int:
        """How many models there are to be: as many again at most, on the ladder of `rungs`.

        No more where nearly all advantages are known to 0.1 by 32 models or more, or there is no
        time.  What more models do not show, because single answers tell, does not count.
        """
        models, weights = len(found.scores), self.row_weights
        if found.unsteady:
            return models
        few, _ = self._posterior(found)
        # More models weigh a group's records anew.
        self.row_weights = weights
        value, low, high = few.advantage.value, few.advantage.low, few.advantage.high
        near = np.maximum(high - value, value - low) <= NEAR
        known = float(np.mean(near | (few.doubt == TELLING)))
        if models >= CHECKED_FROM and known >= ENOUGH:
            return models
        now = time.monotonic()
        # What one model took, with all that is done beside training it.
        each = max((now - start) / max(models - found.reused, 1), found.seconds / models, 1e-9)
        most = models + min(models, int(min(max(end - now, 0.0) / each, MOST_MODELS)))
        return max([models, *(rung for rung in rungs() if rung <= most)])

    def _posterior(self, found: HalfModels) -> tuple[fitted.FewModels, FloatArray]:
        """What the models show of every unit, and by which sign the scores were turned."""
        scores, trained_on = found.scores, found.trained_on
        # What a model answers; a residual has the record's own target in it.
        own = np.asarray(self.y, dtype=np.float64) if self.observes == "residual" else 0.0
        doubt = self._most_of(answer_doubts(scores + own, trained_on, kinds_of(self.X)))
        scores, trained_on = self._of_units(scores, trained_on)
        sign = _sign(scores, self.observes)
        few = fitted.few_models(
            sign * scores,
            trained_on,
            random_state=self.seed,
            doubt=doubt,
            refuse_mistakes=False,
        )
        return few, sign

    @contextmanager
    def _kept_told(self, store: CellStore) -> Iterator[None]:
        """An error says which models are kept, where they are."""
        try:
            yield
        except InputError as error:
            if self.how.keep is None and self.dataset.source is None:
                raise
            kept = sum(name in store.finished() for name in model_names(self.how.least))
            raise InputError(
                f"{error} {kept} of {self.how.least} models are kept in {store.directory}; the "
                "same command goes on from there."
            ) from error

    @property
    def explained_unasked(self) -> bool:
        """Reasons are two means that are there already."""
        return True

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[TrainingDetails, dict[str, NDArray[Any]]]:
        """How many models, how they do on records, and how they answer about the most exposed."""
        assert self.half_models is not None
        assert self.few is not None
        threshold: dict[str, float | None] = {}
        if self.observes == "log_odds":
            threshold = dict(measures.one_threshold(laws.pair()))
        made = self.half_models.made
        details = TrainingDetails(
            models=self.how.least,
            fit=_measured_fit(self.half_models, self.y, self.training.task),
            one_threshold=threshold,
            reused=self.half_models.reused,
            made=None if made is None else f"{datetime.fromtimestamp(made, UTC):%Y-%m-%d}",
            repeating=int(np.count_nonzero(self.few.doubt >= COUNTED)),
            telling=int(np.count_nonzero(self.few.doubt == TELLING)),
            labels=self._labels,
            unsteady=self.half_models.unsteady or None,
            explanations=self._explained(laws, columns["advantage"], explain_first),
        )
        return details, {}

    def _explained(self, laws: UnitLaws, advantage: FloatArray, most: int) -> list[Explanation]:
        assert self.half_models is not None
        scores, trained_on = self._of_units(self.half_models.scores, self.half_models.trained_on)
        found = []
        for rank, row in enumerate(np.argsort(-advantage, kind="stable")[:most].tolist(), start=1):
            without, inside = (
                float(laws.columns[name][row]) for name in ("mean_without", "mean_with")
            )
            if laws.lawless[row]:
                # The pair has the advantage that was counted, and not these means.
                own = trained_on[:, row]
                without, inside = (float(np.mean(scores[side, row])) for side in (~own, own))
            if self.observes == "log_odds":
                told = (
                    f"Models without it give its label a chance of {percent(float(expit(without)))}"
                    f", models with it {percent(float(expit(inside)))}."
                )
            else:
                told = (
                    f"Models without it miss its target by {without:+.3g} on average, models with "
                    f"it by {inside:+.3g}."
                )
            if self.codes is not None:
                told = (
                    f"Without it the score of its records, {laws.columns['size'][row]}, is "
                    f"{without:+.3g} on average, with it {inside:+.3g}."
                )
            sentence = f"{self.unit.capitalize()} {self.ids[row]}: {told[0].lower()}{told[1:]}"
            found.append(Explanation(record_id=self.ids[row], rank=rank, sentence=sentence))
        return found

    # Models with and without units.

    counted_in = "models"

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """Many more models of other halves and other seeds."""
        if count < LEAST_MODELS:
            raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {count}.")
        about = {"training": self.training.describe()}
        afresh = seed + AFRESH
        with (
            tempfile.TemporaryDirectory() as folder,
            open_cells(f"{folder}/models", settings=about, seed=afresh) as store,
            one_process(),
        ):
            found = train_halves(
                self.X,
                self.y,
                self.training,
                count - count % 2,
                store,
                seed=afresh,
                codes=self.codes,
            )
        if found.unsteady:
            raise InputError(f"{UNSTEADY}; {STEADY}.")
        how = (
            f"{len(found.scores)} shadow models of the same training, each fitted on a random 0.5 "
            f"of the {self.unit}s"
        )
        scores, trained_on = self._of_units(found.scores, found.trained_on)
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
        old, new = (self.training.scores_of(model, self.X, self.y) for model in (before, after))
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
        """Too few models, answers of few values, or intervals that tell nothing."""
        details = audit.details
        models = details.models or 2
        repeats = details.repeating or 0
        counts = {"repeating": repeats, "wide": audit.untrusted - repeats}
        if models <= 2:
            counts = {"few": audit.untrusted}
        if details.unsteady:
            counts = {"unsteady": audit.untrusted}
        rows, table = ~audit.trusted, audit.table
        low, high = (table.of(f"advantage_{end}")[rows] for end in ("low", "high"))
        return _doubt(
            counts,
            models,
            _needed(low, audit.advantage[rows], high, models),
            labels=bool(details.labels),
            telling=bool(details.telling),
        )

    @classmethod
    def stored_laws(cls, audit: Audit) -> PosteriorLaws:
        """The same posterior again, from the scores that the run directory holds."""
        if audit.directory is None:
            raise LawsNotStoredError(
                "the numbers of an audit by a few models are computed from the scores in its run "
                "directory; name that directory."
            )
        observes: Literal["log_odds", "residual"] = (
            "residual" if audit.observes == "residual" else "log_odds"
        )
        names = (observes, "trained_on", "order")
        held = read_arrays(audit.directory / "arrays.npz", (*names, "doubt"))
        if any(name not in held for name in names):
            raise LawsNotStoredError(f"{audit.directory} does not hold the scores of its models.")
        order = np.asarray(held["order"], dtype=np.intp)
        scores = np.asarray(held[observes], dtype=np.float64)
        trained_on = np.asarray(held["trained_on"], dtype=np.bool_)
        sign = _sign(scores, observes)
        # A run that holds none was made when every law was taken for normal.
        doubt = held["doubt"] if "doubt" in held else np.zeros(scores.shape[1])
        few = fitted.few_models(
            sign * scores,
            trained_on,
            random_state=int(audit.settings.get("seed", 0)),
            doubt=np.asarray(doubt, dtype=np.int8),
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
        process = "needs a Gaussian process"
        found = {
            "pool": fit,
            "secret": "needs a linear, logistic or Poisson model",
            "retrained": process,
            "query": process,
        }
        # Of a function of one's own nobody knows what it trains.
        name = audit.model.type
        if name != "function" and not name.startswith("MLP"):
            network = "needs a two-layer network"
            found |= {"weights": network, "reconstruct": network}
        return found


def rungs() -> list[int]:
    """The numbers of models at which one stops: 4, 6, 8, 12, 16 and so on to 1,024.

    Few numbers, so that the clock, which differs from run to run, seldom decides which.
    """
    powers = [2**k for k in range(1, MOST_MODELS.bit_length() - 1)]
    return sorted([2 * power for power in powers] + [3 * power for power in powers[:-1]])


def fell(
    change: FloatArray, units: Rows, shift: FloatArray, sd: FloatArray, seed: int
) -> ErasedModel:
    """Whether scores of units fell more than those of others did: ``change`` is before less after.

    ``shift`` (in standard deviations) and ``sd`` are the audit's, in the order of the data.
    In units of each record's own deviation, and in the direction that training moves it.  The null
    is "nothing was erased", under which units are like the others; draws of as many others give its
    law, and the same draws with the audit's shift added the chance of seeing an erasure.
    """
    moved = np.where(shift < 0.0, -1.0, 1.0) * change / np.where(sd > 0.0, sd, np.inf)
    others = np.setdiff1d(np.flatnonzero(np.isfinite(moved)), units)
    if len(others) < LEAST_OTHERS:
        raise InputError(
            f"the answers about {len(others)} other records are too few to compare with; "
            f"{LEAST_OTHERS} are needed."
        )
    generator = np.random.default_rng(seed)
    drawn = generator.choice(moved[others], size=(DRAWN, len(units))).sum(axis=1)
    seen, expected = float(moved[units].sum()), float(np.abs(shift[units]).sum())
    p_value = float((1 + np.count_nonzero(drawn >= seen)) / (1 + DRAWN))
    power = float(np.mean(drawn + expected >= np.quantile(drawn, 1.0 - LEVEL)))
    found: Found = "erased" if p_value <= LEVEL else "kept" if power >= SURE else "cannot tell"
    notes = (
        "By a test between two models: the answers about these records "
        + ("fell" if p_value <= LEVEL else "did not fall")
        + " by more than those about others did.",
        "The shift that an erasure would cause is the audit's, of models trained on half of the "
        "records; on all of them it is smaller.",
    )
    told = {"p_value": p_value, "power": power}
    return ErasedModel(None, found=found, notes=notes, told=told)


def posterior_laws(
    few: fitted.FewModels,
    sign: FloatArray,
    observes: Literal["log_odds", "residual"],
    *,
    trust: Trust,
    arrays: Mapping[str, NDArray[Any]],
    warnings: tuple[str, ...] = (),
    more: Mapping[str, NDArray[Any]] | None = None,
) -> PosteriorLaws:
    """The posterior of every unit's two laws, given the scores of a few models.

    ``more`` are columns beside the usual ones.
    """
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
    for level, each in few.tpr_at_fpr.items():
        name = f"tpr_at_fpr_{level:g}".replace(".", "_")
        values[name] = each.value
        columns |= {f"{name}_low": each.low, f"{name}_high": each.high}
    return PosteriorLaws(
        tolerance=TABULATED,
        trust=trust,
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
        counted=counted,
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


def _made(audit: Audit) -> str | None:
    """How many models were trained for this audit, and how many were there already."""
    models, reused = audit.details.models, audit.details.reused
    if reused is None:
        return None
    made = f", made on {audit.details.made}" if audit.details.made else ""
    took = duration(audit.timing.get("train_all_models") or 0.0)
    halves = "halves of groups" if audit.unit == "group" else "halves"
    told = f"{models} models of {halves}, trained in {took}"
    if reused:
        told = f"{models} models of {halves} ({models - reused} trained, {reused} reused{made})"
    of = audit.settings.get("recipe_of")
    return told if of is None else f"{told}, its recipe and not {of}"


def _doubt(
    counts: Mapping[str, int], models: int, needed: int | None, *, labels: bool, telling: bool
) -> tuple[str, str]:
    """Why records are not trusted, and what to do: a sentence's two halves."""
    if counts.get("unsteady"):
        return f"not trusted, because {UNSTEADY}", STEADY
    if counts.get("few"):
        return (
            "not trusted, because with one model on each side of a record the noise between models "
            "cannot be seen",
            f"take --models {2 * models}",
        )
    reasons, remedies = [], []
    if counts.get("repeating"):
        what = "their answers have no normal law (votes and leaves take few values, others cluster)"
        if labels:
            what = "every answer is a label and no probability"
        elif telling:
            what = (
                "some answers occur only for members, and a few models do not show all such answers"
            )
        reasons.append(f"{what}, so their advantage was counted")
        remedies += ["give probabilities instead of labels, if the model has them"] * labels
    if counts.get("wide"):
        reasons.append(f"these are wide (over {NEAR:g})")
    if telling:
        remedies.append("coarser answers (fewer digits, more neighbours) would tell less")
    else:
        more = f"--models {needed or 4 * models}"
        # A number that is counted is never trusted, however many models there are.
        remedies.append(f"take {more}" if counts.get("wide") else f"{more} narrows the intervals")
    why = ", or ".join(reasons)
    told = "known by intervals only"
    return (f"{told}, because {why}" if why else told), "; ".join(remedies)


def _needed(low: FloatArray, value: FloatArray, high: FloatArray, models: int) -> int | None:
    """How many models narrow half of these intervals enough: widths fall with the square root.

    A power of two; None where more models than anybody trains would be needed.
    """
    if not len(value):
        return None
    wide = float(np.median(np.maximum(high - value, value - low)))
    count = models * max((wide / NEAR) ** 2, 2.0)
    return int(2 ** np.ceil(np.log2(count))) if count <= MOST_PROPOSED else None


def _passing(audit: Audit, threshold: float) -> str:
    """How many pass the threshold by a few models of one training, and what can be done."""
    models = audit.details.models or 2
    more = f"--models {2 * models} narrows the intervals."
    doubt = f" {audit.doubt}" if audit.untrusted else ""
    known = audit.known
    if not known.any():
        return f"Trust the ranks, not the levels:{doubt}"
    among = (
        f"{audit.units} {audit.unit}s" if known.all() else f"the {np.count_nonzero(known)} known"
    )
    surely = int(np.count_nonzero(audit.table.of("advantage_low")[known] >= threshold))
    try:
        chance = audit.laws.chance_above(threshold, audit.advantage)[known]
    except LawsNotStoredError:
        passing = f"{surely or 'None'} of {among} surely"
        return f"{passing} have an advantage of {threshold:g} or more; {more}{doubt}"
    expected = float(chance.sum())
    count = f"{expected:.0f}" if expected >= 9.5 else f"{expected:.2g}"
    passing = f"Expected with an advantage of {threshold:g} or more: {count} of {among}"
    if expected >= 0.5:
        passing += f", {surely or 'none'} surely (95%)"
    if doubt:
        return f"{passing}.{doubt}"
    if expected < 0.5:
        return f"{passing}; {more}"
    return (
        f"{passing}. What helps: shorter training, more penalty or more records (leakscope advise "
        f"tries them); {more}"
    )


def _require_suits(training: OwnTraining, target: str) -> None:
    """Refuse a classifier for a quantity, and a regressor for classes."""
    if predicts_classes(training.subject) not in (None, training.task == "classification"):
        raise InputError(
            f"{training.name} does not suit {target}, which is taken for {training.task}; give "
            "--task, or another estimator.",
            option="task",
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


def _require_fit_target(
    training: OwnTraining, y: NDArray[Any], codes: NDArray[np.intp] | None = None
) -> None:
    values = np.unique(y)
    if len(values) < 2:
        raise InputError("the target is the same for every record.")
    if training.task == "regression":
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


def _task(train: Any, y: NDArray[Any]) -> Task:
    says = predicts_classes(train)
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
