"""A fitted model with its records: the laws of each record's score, from that one fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope import fitted, measures
from leakscope._numerics.keys import as_key
from leakscope._numerics.memory import format_bytes, require_memory
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.doubts import array_doubts, doubts, two_classes
from leakscope.data.files import told_as
from leakscope.data.models import ModelFile, read_model
from leakscope.data.preparation import prepare, target_unit
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import is_read, no_laws
from leakscope.fitted.heads import described_by, measured, solves_convex
from leakscope.fitted.people import neighbours_of
from leakscope.fitted.problem import FittedModel, NoLawsError
from leakscope.fitted.refits import WholeFit
from leakscope.fitted.shadow import ProblemFits, shadows_of
from leakscope.laws.distributions import Normal
from leakscope.results.audit import (
    EXPOSED_ABOVE,
    AgainstAttacker,
    Audit,
    ExaminedModel,
    FitFacts,
)
from leakscope.results.document import DatasetEntry
from leakscope.results.sections import LineChart, Section
from leakscope.results.shown import are, certain, digits
from leakscope.results.trust import Trust
from leakscope.running.parts import duration
from leakscope.settings.audit import (
    MODEL_DEFAULTS,
    STAND_IN_COEFFICIENTS,
    STAND_IN_RECORDS,
    AuditSettings,
    ModelSettings,
    Scaling,
    TrainingSettings,
)
from leakscope.settings.decide import ATTACKERS
from leakscope.settings.setting import described as option_named
from leakscope.settings.setting import validated
from leakscope.single_fit.problem import ConvexProblem
from leakscope.subjects.arrays import (
    checked_features,
    checked_ids,
    checked_targets,
    leaving_units,
    oddities,
)
from leakscope.subjects.fit.attackers import against_attackers
from leakscope.subjects.fit.details import FitDetails, FitExplanation, PenaltyOption
from leakscope.subjects.fit.file_models import (
    FITTED_BY_YOU,
    FITTED_HERE,
    FileFit,
    described_as,
    file_fit,
    fitted_here,
    is_fitted,
    plain_parameters,
)
from leakscope.subjects.fit.named_models import NamedFit, named_fit
from leakscope.subjects.fit.penalties import penalty_sweep
from leakscope.subjects.fit.secret import (
    secret_column,
    secret_of,
    secret_sections,
    secret_sentence,
    secret_warnings,
)
from leakscope.subjects.laws import MEASURES, PairLaws, Rows, UnitLaws, noise_for
from leakscope.subjects.recipe import data_again, taken_from_result
from leakscope.subjects.subgroups import of_groups
from leakscope.subjects.subject import (
    Answers,
    Asked,
    ErasedModel,
    LawsNotStoredError,
    PassedOnError,
    Stages,
    Subject,
    Wanted,
    normal_laws,
    shared_answers,
)
from leakscope.subjects.words import (
    examined_sentence,
    most_exposed_sentence,
    passing_sentence,
    shifted_score_sentence,
)

# Reasons are found unasked up to so many records: they solve for the laws once more.
EXPLAINED_UP_TO = 5000

# More penalty is said to help where at most this share of the exposed records stays exposed.
MUCH_FEWER = 0.8

# What an attacker sees that is above zero where the model prefers the record's own label.
SCORES_OF_LABEL = ("log_odds", "scores")

# Features or label are said to be the reason where one is so much larger than the other.
MOSTLY = 1.5

# What is asked of an estimator, of the settings of a model.
ASKED_OF_FIT = (
    "question", "fraction", "observes", "answer_noise", "secret", "secret_prior", "secret_within",
    "secret_values",
)  # fmt: skip

# With fewer shadow models, a standard deviation is not known to a fifth.
LEAST_MODELS = 20

# What a record is confirmed by.
CHECK = "refits of the recipe agree with its law"

# Of a ridge audit with its run directory, of one core; measured with 20,000 and 60,000 records.
SECONDS_PER_RECORD = 115e-6
SECONDS_PER_NUMBER = 1e-6
BYTES_PER_RECORD = 6500
COPIES = 6
# A shorter audit needs no announcement.
SAID_FROM = 30.0


class Fit(Subject):
    """An estimator with the records that it was fitted on, and what is asked of it."""

    name = "fit"
    file_kind = "audit_model"
    words = "a fitted model"
    screen = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "shift_in_sd", "confirmed",
        "secret_leak",
    )  # fmt: skip
    page = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "shift_in_sd", "confirmed",
        "secret_leak",
    )  # fmt: skip
    stages = ("check", "fit", "laws", "measure", "option")
    Details = FitDetails
    advice_options = ("check",)

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        described: FittedModel,
        examined: ExaminedModel,
        ids: tuple[RecordId, ...],
        dataset: DatasetEntry,
        settings: dict[str, Any],
        sample_weight: Any = None,
        feature_names: tuple[str, ...] | None = None,
        named: NamedFit | None = None,
        warnings: tuple[str, ...] = (),
        by: Mapping[str, Sequence[str]] | None = None,
        read: Dataset | None = None,
    ) -> None:
        self.estimator, self.X, self.y, self.sample_weight = estimator, X, y, sample_weight
        self.described, self._examined, self.named = described, examined, named
        self.unit = described.unit
        self.ids, self.dataset, self.settings = ids, dataset, settings
        self.feature_names, self.warnings, self.by = feature_names, warnings, by or {}
        self.whole: Any = (
            ProblemFits(described)
            if estimator is None
            else described.whole or WholeFit.of(estimator, X, y, sample_weight)
        )
        self.fitted_laws: fitted.FittedLaws | None = None
        # Without noise, where they had to be looked at before they were asked for.
        self._plain_laws: fitted.FittedLaws | None = None
        # Of a file: its features as they were read.
        self.read = read

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """A model whose laws follow from one fit, or where a stand-in can be fitted."""
        if asked.trains:
            return False
        if asked.own is not None:
            return _has_laws(asked.own)
        if asked.has_model:
            return True
        return not asked.of_process and none_fitted(arrays_as_dataset(asked)) is None

    @classmethod
    def stages_for(cls, asked: Asked) -> tuple[str, ...]:
        """One more where a column is secret."""
        return cls.stages if asked.chosen.secret is None else (*cls.stages, "secret")

    @classmethod
    def cost(cls, asked: Asked) -> str | None:
        """What many records take, refused where that is more than there is."""
        if asked.dataset is None:
            return None
        records, features = asked.dataset.features.shape
        needed = records * (BYTES_PER_RECORD + 8 * COPIES * features)
        require_memory(needed, f"the audit of {records:,} records", "audit a part (--read sample)")
        seconds = records * (SECONDS_PER_RECORD + features * SECONDS_PER_NUMBER)
        if seconds < SAID_FROM:
            return None
        return (
            f"{records:,} records, each with its laws: {format_bytes(needed)} and about "
            f"{duration(seconds)} on a core like those measured; --read sample audits a part."
        )

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Fit:
        """The user's own model as it is, or fitted on the records; or the named one fitted."""
        why = None if asked.own is None or _is_described(asked.own) else no_laws(asked.own)
        if why is not None:
            raise PassedOnError(f"no laws follow from one fit: {why}")
        try:
            subject = cls._of(asked, stage)
        except NoLawsError as error:
            if asked.own is None:
                raise
            raise PassedOnError(f"no laws follow from this one fit: {error}") from error
        if asked.own is not None:
            subject._require_laws_that_hold(asked, stage)
        if subject.settings["secret"] is not None:
            if subject.noise:
                raise InputError(
                    "what answers with noise give away of a secret column is not worked out; leave "
                    "out --secret or --set answer_noise."
                )
            # What is wrong with the column is told before anything is worked out.
            secret_column(subject)
        subject.warnings = (*subject.warnings, *_not_needed(asked.training))
        return subject

    def _require_laws_that_hold(self, asked: Asked, stage: Stages) -> None:
        """Pass on a model whose laws of one fit refits contradict: halves take the whole recipe."""
        usual = all(
            getattr(asked.chosen, name) == getattr(MODEL_DEFAULTS, name) for name in ASKED_OF_FIT
        )
        whole = self.described.whole
        frozen = whole is not None and whole.found.frozen
        if not usual or asked.sample_weight is not None or frozen or self.estimator is None:
            return
        with stage("laws"):
            laws = self._laws_of_fit()
        if laws.check is not None and not laws.check.law_holds:
            raise PassedOnError(f"the laws of one fit do not hold: {laws.check.sentence}")
        self._plain_laws = laws

    @classmethod
    def _of(cls, asked: Asked, stage: Stages) -> Fit:
        if _is_described(asked.own):
            with stage("check"):
                return cls._of_problem(asked)
        _require_no_decay(asked)
        if asked.own is not None and asked.dataset is None:
            return cls._of_estimator(asked, stage)
        with stage("check"):
            dataset = arrays_as_dataset(asked)
            prepared = prepare(dataset, scaling=asked.settings.scaling)
            found = (
                *doubts(dataset),
                *oddities(
                    dataset.features, prepared.target, dataset.record_ids, dataset.feature_names
                ),
            )
        with stage("fit"):
            subject = cls._named(dataset, prepared, asked.chosen, asked.settings, asked.own)
        subject.warnings = (*found, *subject.warnings)
        subject.by = prepared.by
        return subject

    @classmethod
    def _of_estimator(cls, asked: Asked, stage: Stages) -> Fit:
        """An estimator on arrays as they are; one that is not fitted is fitted on them."""
        from sklearn.base import is_classifier

        model, X, y, origin = asked.own, asked.X, asked.y, FITTED_BY_YOU
        shape = getattr(X, "shape", None) or np.shape(X)
        if len(shape) != 2:
            raise InputError(
                f"X must have two dimensions, records by features, but its shape is {tuple(shape)}."
            )
        ids = checked_ids(asked.record_ids, int(shape[0]), X)
        ids, codes = leaving_units(ids, asked.groups)
        if not is_fitted(model):
            with stage("fit"):
                model, origin = fitted_here(model, X, y, asked.sample_weight), FITTED_HERE
        with stage("check"):
            described = described_as(origin, model, X, y, asked.sample_weight).in_groups(codes)
        return cls(
            model,
            X,
            y,
            described=described,
            examined=ExaminedModel(
                type=type(model).__name__,
                name=described.name,
                origin=origin,
                parameters=plain_parameters(model),
            ),
            ids=ids,
            dataset=DatasetEntry(
                name="arrays",
                records=int(shape[0]),
                features=int(shape[1]),
                outputs=1,
                target_name="y",
                steps=[],
            ),
            settings={name: getattr(asked.chosen, name) for name in ASKED_OF_FIT},
            sample_weight=asked.sample_weight,
            warnings=(
                *_constant(X),
                *array_doubts(X, y, classes=is_classifier(model), groups=asked.groups),
            ),
        )

    @classmethod
    def _of_problem(cls, asked: Asked) -> Fit:
        """A described problem, which has its own numbers; the records give their ids."""
        if asked.sample_weight is not None:
            raise InputError(
                "a problem described by you has its own weights; leave out sample_weight."
            )
        if asked.chosen.secret is not None:
            raise InputError(
                "a described problem does not say what its columns are; leave out --secret, or "
                "give the estimator."
            )
        if asked.dataset is None:
            X, y = asked.X, asked.y
            ids = checked_ids(asked.record_ids, len(np.asarray(y)), X)
            entry = DatasetEntry(
                name="arrays",
                records=len(ids),
                features=int(np.prod((getattr(X, "shape", None) or np.shape(X))[1:])),
                outputs=1,
                target_name="y",
                steps=[],
            )
        else:
            X, y, ids = asked.dataset.features, asked.dataset.target, asked.dataset.record_ids
            entry = DatasetEntry.of(asked.dataset)
        if isinstance(asked.own, (ConvexProblem, FittedModel)):
            _require_no_decay(asked)
            own = asked.own if isinstance(asked.own, FittedModel) else FittedModel.of(asked.own)
            described, origin = measured(own), "as described by you"
        else:
            classes = None if asked.task is None else asked.task == "classification"
            described = described_by(
                asked.own, X, y, weight_decay=asked.chosen.weight_decay, classes=classes
            )
            origin = "as trained by you"
        if described.records != len(ids):
            raise InputError(
                f"the problem is of {described.records} records, and {len(ids)} were given; pass "
                "the records that it describes, in the same order."
            )
        groups = asked.groups if asked.dataset is None else asked.dataset.group
        ids, codes = leaving_units(ids, groups)
        described = described.in_groups(codes)
        return cls(
            None,
            X,
            y,
            described=described,
            examined=ExaminedModel(
                type=type(asked.own).__name__,
                name=described.name,
                origin=origin,
                parameters={"loss": described.problems[0].loss},
            ),
            ids=ids,
            dataset=entry,
            settings={name: getattr(asked.chosen, name) for name in ASKED_OF_FIT},
        )

    @classmethod
    def _named(
        cls,
        dataset: Dataset,
        prepared: Dataset,
        chosen: ModelSettings,
        settings: AuditSettings,
        own: Any = None,
    ) -> Fit:
        """The named model, or that of a file or of the user's own code, on a dataset."""
        fit: NamedFit | FileFit
        found_here: dict[str, Any]
        ids, codes = leaving_units(prepared.record_ids, prepared.group)
        unfitted = own is not None and not is_fitted(own)
        if own is None and chosen.file is None:
            fit = named_fit(dataset, prepared, chosen, codes)
            described = fit.described
            found_here = {"model": fit.name, **fit.parameters}
        elif chosen.file is not None:
            # A file may say anything of a model.
            with told_as(f"{chosen.file.name} cannot be used"):
                file = read_model(chosen.file)
                fit = file_fit(dataset, prepared, file, chosen, scaling=_own_scaling(settings))
            described, found_here = (
                fit.described.in_groups(codes),
                {"model": os.path.realpath(chosen.file)},
            )
        else:
            file = ModelFile(Path("the model"), estimator=own)
            fit = file_fit(dataset, prepared, file, chosen, scaling=_own_scaling(settings))
            described, found_here = fit.described.in_groups(codes), {"model": chosen.model}
        entry = DatasetEntry.of(prepared)
        return cls(
            fit.estimator,
            fit.X,
            fit.y,
            described=described,
            examined=fit.examined,
            ids=ids,
            dataset=entry.model_copy(update={"steps": list(fit.steps), "outputs": 1}),
            settings={
                **chosen.model_dump(),
                "scaling": _own_scaling(settings) if unfitted else settings.scaling,
                "seed": settings.seed,
                **found_here,
            },
            feature_names=prepared.feature_names,
            named=fit if isinstance(fit, NamedFit) else None,
            read=dataset,
        )

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Fit:
        """The model fitted again from its data as it was, or read from its file."""
        told = audit.settings
        if told.get("model") is None:
            raise InputError(
                f"the estimator of this audit ({audit.model.name}) was in memory, and no file "
                "holds it; take the result that leakscope.audit returned."
            )
        with taken_from_result():
            chosen = validated(
                ModelSettings, **{k: told[k] for k in ModelSettings.model_fields if k in told}
            )
            usual = validated(AuditSettings, scaling=told["scaling"], seed=told["seed"])
        read = data_again(audit.dataset, data)
        prepared = prepare(read, scaling=usual.scaling)
        told_digest = audit.model.file_sha256
        if chosen.file is not None and read_model(chosen.file).sha256 != told_digest:
            raise InputError(f"{chosen.file} is not the model that was audited; it has changed.")
        found = cls._named(read, prepared, chosen, usual, Asked(chosen=chosen).own)
        # What was asked is stored as it was resolved.
        found.settings |= {
            "question": audit.question, "fraction": audit.fraction, "observes": audit.observes,
        }  # fmt: skip
        return found

    def for_advice(self, wanted: Wanted) -> Fit:
        """The innermost estimator, and the numbers that reach it."""
        from leakscope.subjects.fit.changes import advised

        if self.noise:
            raise InputError(
                "this audit has noise on its answers already; advise on the audit without it, "
                "which says how much is needed."
            )
        super().for_advice(wanted)
        if self.estimator is None:
            raise InputError(
                f"{self.described.name} is a described problem, and nothing says how it is fitted "
                "with another penalty; give the estimator."
            )
        return advised(self)

    # What it is and what it says.

    @property
    def model(self) -> ExaminedModel:
        """The estimator with its parameters, and where it comes from."""
        if not self.noise:
            return self._examined
        name = f"{self._examined.name} with noise of sd {self.noise:g} on each answer"
        told = {**self._examined.parameters, "answer_noise": self.noise}
        return self._examined.model_copy(update={"name": name, "parameters": told})

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on its answers; zero where there is none."""
        return float(self.settings.get("answer_noise") or 0.0)

    def laws(self, stage: Stages) -> PairLaws:
        """Both laws of every record's score, from the one fit."""
        with stage("laws"):
            found = (self._plain_laws or self._laws_of_fit()).noised(self.noise)
        self.fitted_laws = found
        return laws_of_fit(found)

    def _laws_of_fit(self) -> fitted.FittedLaws:
        laws = fitted.laws_of(
            self.described,
            question=self.settings["question"],
            fraction=self.settings["fraction"],
            observes=self.settings["observes"],
        )
        self._require_numbers(laws)
        return fitted.counted(laws, self.described, self.whole)

    def _require_numbers(self, laws: fitted.FittedLaws) -> None:
        """Refuse laws that are not numbers: a fit at the edge of float64."""
        good = np.isfinite(laws.member_mean) & np.isfinite(laws.nonmember_mean)
        good &= np.isfinite(laws.member_sd) & np.isfinite(laws.nonmember_sd)
        # Of a spread below 1e-160 the square is none.
        good &= (laws.member_sd**2 > 0.0) & (laws.nonmember_sd**2 > 0.0)
        if laws.question != "known_others" and not good.all():
            raise InputError(
                f"the scores of {np.count_nonzero(~good)} of {len(self.ids)} {self.unit}s have no "
                f"spread that float64 resolves, first {self.ids[int(np.argmin(good))]!r}: "
                "drop constant or repeated columns, or use a larger penalty."
            )

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[FitDetails, dict[str, NDArray[Any]]]:
        """Noise and penalties that would help, facts about the fit, and why records are exposed."""
        found = self.fitted_laws
        assert found is not None
        with stage("option"):
            swept = self.named is not None and not self.noise
            penalties = penalty_sweep(self.named, found) if swept and self.named else []
            needed = noise_for(laws, MEASURES["advantage"], EXPOSED_ABOVE)
            answer_noise = float(np.hypot(self.noise, needed)) if needed else None
            attackers = against_attackers(self.described, found, columns, self.noise)
        order = np.lexsort((-columns["kl"], -columns["advantage"]))
        exposed = bool((columns["advantage"] >= EXPOSED_ABOVE).any())
        details = FitDetails(
            answer_noise=answer_noise,
            option=next((one for one in penalties if exposed and one.factor == 10.0), None),
            penalties=sorted(penalties, key=lambda entry: entry.factor),
            attackers=attackers,
            explanations=self._explained(found, order[:explain_first].tolist()),
            fit=fit_facts(self.described, found),
            one_threshold=one_threshold_of(found),
        )
        if self.settings.get("secret") is None:
            return details, {}
        with stage("secret"):
            secret, more = secret_of(self, found)
        self.warnings = (*self.warnings, *secret_warnings(secret, len(self.ids)))
        return details.model_copy(update={"secret": secret}), more

    @property
    def explained_unasked(self) -> bool:
        """Whether reasons are found without being asked for: where that is quick."""
        return len(self.ids) <= EXPLAINED_UP_TO

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        codes = self.described.codes
        return labels if codes is None else of_groups(labels, codes, len(self.ids))

    def _explained(self, laws: fitted.FittedLaws, rows: Sequence[int]) -> list[FitExplanation]:
        """Why the records in these rows are exposed, given in the order of their rank."""
        if not rows:
            return []
        near = neighbours_of(self.described, rows, fraction=laws.fraction)
        moved = laws.shift_in_sd
        return [
            FitExplanation(
                record_id=self.ids[row],
                rank=place + 1,
                weight=float(near.weight[place]),
                surprise=float(near.surprise[place]),
                neighbours=[self.ids[other] for other in near.others[place].tolist()],
                shares=near.shares[place].tolist(),
                sentence=_reason(
                    f"{self.unit.capitalize()} {self.ids[row]}",
                    float(moved[row]),
                    float(near.weight[place]),
                    float(near.surprise[place]),
                ),
            )
            for place, row in enumerate(rows)
        ]

    # Models with and without units.

    counted_in = "models"

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """The same estimator fitted on random parts of the records."""
        question, observes = self.settings["question"], self.settings["observes"]
        if question != "pool":
            raise InputError(
                "shadow models draw the others from the records at hand; this audit asks about "
                "fresh ones, and the pool question can be verified."
            )
        if observes == "residual":
            raise InputError("shadow models check predictions; audit with observes prediction.")
        if count < LEAST_MODELS:
            raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {count}.")
        fraction = self.settings["fraction"] or 0.5
        people = None
        if self.described.codes is not None:
            # The sums of answers that the laws are of.
            laws = self.fitted_laws or self._laws_of_fit().noised(self.noise)
            people = laws.people
        found = shadows_of(
            self.whole, models=count, fraction=fraction, random_state=seed, people=people
        )
        learned = ", ".join(self.whole.learned)
        more = f", with all that it learns ({learned})" if learned else ""
        how = (
            f"{found.models} shadow models of the same estimator, each fitted on a random "
            f"{fraction:g} of the {self.unit}s{more}"
        )
        drawn = as_key(seed).child(count).generator().standard_normal(found.scores.shape)
        added = self.noise if people is None else self.noise * people.lengths
        scores = found.scores + added * drawn
        return shared_answers(scores, found.trained_on, units, how, count)

    def erased(
        self, units: Rows, audit: Audit, after: Any = None, before: Any = None
    ) -> ErasedModel:
        """By the optimum's own equation; without ``after``, the exact fit without them."""
        from leakscope.subjects.fit.erasure import erased_fit

        if before is not None:
            raise InputError("the model before is the audited one; give the model after alone.")
        return erased_fit(self, units, after)

    # How its stored audits are worded.

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """Which model, how exposed the most exposed are, and how many pass with what to do."""
        secret = audit.details.secret
        return (
            examined_sentence(audit, method="laws of one fit"),
            most_exposed_sentence(audit, ids=ids),
            _remedy(audit, threshold),
            *(() if secret is None else (secret_sentence(secret, ids=ids),)),
        )

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows, and what the shift is."""
        return shifted_score_sentence(audit, "weighted mean of its records' scores that tells most")

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """One neighbour carries too much, what else was learned moves it, or nobody looked."""
        return (
            "not confirmed: a few other records cause much of what varies there, or what the model "
            "learns besides its coefficients depends on it, or it was not checked",
            "use a larger penalty, or verify them with shadow models (leakscope verify)",
        )

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """What would lower the exposure, and the same model with other penalties."""
        told, found = audit.details, [*_against(audit), *_remedies(audit)]
        if told.secret is not None:
            found = [*secret_sections(audit, told.secret), *found]
        swept: Sequence[PenaltyOption] = told.penalties
        if len(swept) > 1:
            values = [entry.value for entry in swept]
            rows = [
                [
                    f"{entry.value:.3g}{' (in use)' if entry.factor == 1.0 else ''}",
                    certain(entry.largest_advantage),
                    certain(entry.median_advantage),
                    certain(entry.largest_tpr_at_fpr_0_01),
                    certain(entry.largest_tpr_at_fpr_0_001),
                    str(entry.exposed),
                    str(entry.unconfirmed),
                    digits(entry.score_then),
                ]
                for entry in swept
            ]
            used = next((entry.value for entry in swept if entry.factor == 1.0), None)
            found.append(
                Section(
                    "With other penalties",
                    [
                        f"The same model fitted with other penalties ({swept[0].setting}), each "
                        "with its own laws; the score is of records left out one at a time."
                    ],
                    tables=[
                        ((swept[0].setting, "largest", "median", "TPR at 1%", "at 0.1%",
                          f"{EXPOSED_ABOVE:g} or more", "not confirmed", swept[0].score), rows)
                    ],
                    charts=[
                        LineChart(
                            "exposure_by_penalty",
                            swept[0].setting,
                            "advantage",
                            [
                                ("largest", values, [e.largest_advantage for e in swept]),
                                ("median", values, [e.median_advantage for e in swept]),
                            ],
                            used=used,
                            fraction=True,
                        )
                    ],
                )
            )  # fmt: skip
        return found

    @classmethod
    def stored_laws(cls, audit: Audit) -> PairLaws:
        """Normal laws of the score; other answers have laws that the table does not hold."""
        if audit.observes in ("label", "probabilities"):
            raise LawsNotStoredError("the laws of such answers are not in the result; audit again.")
        found = normal_laws(audit)
        if audit.unit == "group":
            # With noise on each answer another sum of a group's answers is best.
            return replace(found, with_noise=None)
        return found

    @classmethod
    def remedies(cls, audit: Audit) -> list[dict[str, str]]:
        """Ten times the penalty, and noise on the answers."""
        told: FitDetails = audit.details
        found = []
        if told.option is not None:
            penalty = told.option
            found.append(
                {
                    "change": f"{penalty.setting}={penalty.value:.3g}",
                    "effect": f"largest advantage {digits(penalty.largest_advantage, most=3)}, "
                    f"{penalty.exposed} records at {audit.exposed_above:g} or more",
                    "price": f"{penalty.score} {digits(penalty.score_then, most=3)}, now "
                    f"{digits(penalty.score_now, most=3)} (records left out)",
                }
            )
        if told.answer_noise is not None:
            found.append(
                {
                    "change": f"normal noise of sd {told.answer_noise:.2g} on each answer, each "
                    "record answered once",
                    "effect": f"every advantage below {audit.exposed_above:g}",
                    "price": "the noise itself",
                }
            )
        return found

    @classmethod
    def refused_attacks(cls, audit: Audit) -> Mapping[str, str]:
        """What needs a network, a process or noise."""
        network, process = "needs a two-layer network", "needs a Gaussian process"
        found = {"weights": network, "retrained": process, "query": process}
        found["canaries"] = "a fit without noise has no epsilon"
        if audit.model.holds_records:
            found["secret"] = "needs a linear, ridge, logistic or Poisson model"
        return found


def _has_laws(own: Any) -> bool:
    """Whether laws follow from one fit of it, by what it is and by its parameters."""
    return _is_described(own) or (hasattr(own, "fit") and is_read(own))


def _is_described(own: Any) -> bool:
    """Whether it says itself which problem it solves: a problem, a head, a fit of statsmodels."""
    return isinstance(own, (ConvexProblem, FittedModel)) or (own is not None and solves_convex(own))


def _require_no_decay(asked: Asked) -> None:
    """Refuse a weight decay where the model has its own penalty."""
    head = asked.chosen.file is not None and asked.chosen.file.suffix.lower() == ".safetensors"
    if asked.chosen.weight_decay is not None and not head:
        raise InputError(
            "--set weight_decay belongs to a linear head (a .safetensors file, or torch's Linear); "
            "leave it out."
        )


def _own_scaling(settings: AuditSettings) -> Scaling:
    """A model of the user's own scales what it wants scaled, unless that is asked for."""
    return settings.scaling if "scaling" in settings.model_fields_set else "none"


def _not_needed(training: TrainingSettings) -> tuple[str, ...]:
    """What is said where options of a training are given, and one fit is enough."""
    given = [name for name in sorted(training.model_fields_set) if getattr(training, name)]
    if not given:
        return ()
    option = option_named(TrainingSettings, given[0]).option
    return (f"{option} is not used: the laws of this model are known without it.",)


def _against(audit: Audit) -> list[Section]:
    """Other attackers beside the one that was asked about."""
    rows = [
        [
            f"{row.attacker}{' (asked)' if asked_of(audit, row) else ''}",
            ATTACKERS[row.attacker][2] if row.attacker in ATTACKERS else "as asked",
            certain(row.largest_advantage),
            certain(row.median_advantage),
            certain(row.largest_tpr_at_fpr_0_01),
            certain(row.largest_tpr_at_fpr_0_001),
            str(row.exposed),
            str(row.unconfirmed),
        ]
        for row in audit.details.against()
    ]
    if len(rows) < 2:
        return []
    return [
        Section(
            "Against other attackers",
            [
                "Each number is about one attacker: the more of the other records the attacker "
                "knows, the less a record is hidden. An attacker who knows all others can be "
                "certain, because the fit is deterministic. --question population asks for the "
                "outsider, --fraction 0.95 for the insider."
            ],
            tables=[
                (("attacker", "who", "largest advantage", "median", "TPR at 1%", "at 0.1%",
                  f"{EXPOSED_ABOVE:g} or more", "not confirmed"), rows)
            ],
        )
    ]  # fmt: skip


def asked_of(audit: Audit, row: AgainstAttacker) -> bool:
    """Whether the audit's own numbers are against this attacker."""
    return (audit.question, audit.fraction) == (row.question, row.fraction)


def _remedies(audit: Audit) -> list[Section]:
    """What would lower the exposure, and its price."""
    told = audit.details
    option, noise = told.option, told.answer_noise
    if option is None and noise is None:
        return []
    first = audit.records[0]
    now = "" if option is None else f"{option.score} {digits(option.score_now)}"
    rows = [["none", certain(first.advantage), str(audit.totals.exposed), now]]
    if option is not None:
        rows.append(
            [
                f"ten times the penalty, {option.setting}={option.value:.4g}",
                certain(option.largest_advantage),
                str(option.exposed),
                f"{option.score} {digits(option.score_then)}",
            ]
        )
    if noise is not None:
        rows.append(
            [
                f"noise of sd {noise:.4g} on each answer",
                certain(EXPOSED_ABOVE),
                "0",
                "the noise itself",
            ]
        )
    headings = ("change", "largest advantage", f"{EXPOSED_ABOVE:g} or more", "price")
    words = "Scores are of records left out one at a time; with noise each record is answered once."
    return [Section("What would lower the exposure", [words], tables=[(headings, rows)])]


def laws_of_fit(found: fitted.FittedLaws) -> PairLaws:
    """The laws of one fit, with the check that each record passed."""
    pair = found.law_pair()
    looked = np.full(found.records, found.check is not None)
    trust = Trust.checked(CHECK, found.confirmed, looked=looked)
    size, weights = {}, {}
    if found.people is not None:
        size = {
            "size": np.bincount(found.people.codes),
            "joint_advantage": found.people.joint,
        }
        weights = {"groups": found.people.codes, "row_weights": found.people.weights}
    takes_noise = found.observes != "label"
    return PairLaws(
        trust=trust,
        provenance=found.provenance,
        warnings=found.warnings,
        columns={
            **size,
            "shift_in_sd": found.shift_in_sd,
            "mean_without": found.nonmember_mean,
            "sd_without": found.nonmember_sd,
            "mean_with": found.member_mean,
            "sd_with": found.member_sd,
            "largest_share": found.shares.largest,
        },
        arrays={
            "member_mean": found.member_mean,
            "member_sd": found.member_sd,
            "nonmember_mean": found.nonmember_mean,
            "nonmember_sd": found.nonmember_sd,
            **weights,
        },
        member=pair.member,
        nonmember=pair.nonmember,
        with_noise=(lambda sd: found.law_pair(answer_noise=sd)) if takes_noise else None,
        sd_without=found.nonmember_sd if takes_noise else None,
    )


def arrays_as_dataset(asked: Asked) -> Dataset:
    """The dataset, or arrays as one: numbers are a quantity, or classes where there are two."""
    if asked.dataset is not None:
        return asked.dataset
    features = checked_features(asked.X)
    ids = checked_ids(asked.record_ids, len(features), asked.X)
    leaving_units(ids, asked.groups)
    labels = np.asarray(asked.y)
    named = labels.ndim == 1 and labels.dtype.kind in "OUSb" and not _all_numbers(labels)
    if named and len(labels) != len(features):
        raise InputError(f"X has {len(features)} records and y has {len(labels)}; they must agree.")
    dataset = Dataset(
        name="arrays",
        features=features,
        target=labels if named else checked_targets(asked.y, len(features)),
        record_ids=ids,
        feature_names=tuple(str(column) for column in range(features.shape[1])),
        target_name="y",
        task="classification" if named else "regression",
        group=None if asked.groups is None else tuple(asked.groups),
    )
    return replace(dataset, task="classification") if two_classes(dataset) else dataset


def _all_numbers(labels: NDArray[Any]) -> bool:
    """Whether an array of objects holds nothing but numbers."""
    return labels.dtype.kind == "O" and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in labels
    )


def none_fitted(dataset: Dataset) -> str | None:
    """Why no model is fitted where none is given, in words; None where one is."""
    records, features = dataset.features.shape
    if dataset.picture is not None:
        return "the records are pictures"
    if records < STAND_IN_RECORDS:
        return f"there are only {records} records, too few to choose a penalty by"
    if dataset.target.ndim == 2:
        return f"there are {dataset.target.shape[1]} targets, and ridge regression takes one"
    values, often = np.unique(dataset.target.astype(str), return_counts=True)
    if len(values) == 1:
        return "the target is the same for every record"
    if dataset.task == "regression":
        return None
    if int(often.min()) == 1:
        return "a class has one record only"
    coefficients = features * len(values)
    if len(values) > 2 and coefficients > STAND_IN_COEFFICIENTS:
        return (
            f"{features} features and {len(values)} classes make {coefficients} coefficients "
            "(--model logistic fits them all the same)"
        )
    return None


def fit_facts(model: FittedModel, laws: fitted.FittedLaws) -> FitFacts:
    """The number of parameters, and the score of a record in the training set and out of it."""
    found = [laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd]
    if laws.people is not None:
        found = laws.people.of_rows()
    sides = found[:2], found[2:]
    score, values = "R²", list[float]()
    if laws.observes in SCORES_OF_LABEL:
        score = "accuracy"
        values = [float(special.ndtr(mean / sd).mean()) for mean, sd in sides]
    elif laws.observes == "prediction" and model.loss == "square":
        y = model.targets
        spread = float(np.sum((y - y.mean()) ** 2))
        if spread > 0.0:
            errors = [float(np.sum((y - mean) ** 2 + sd**2)) for mean, sd in sides]
            values = [1.0 - error / spread for error in errors]
    training, left_out = values or (None, None)
    return FitFacts(parameters=model.parameters, score=score, training=training, left_out=left_out)


def one_threshold_of(laws: fitted.FittedLaws) -> dict[str, float | None]:
    """What one threshold on the score of the own label achieves; empty for other answers."""
    if laws.people is not None:
        return {}
    pair = laws.law_pair()
    normal = isinstance(pair.member, Normal) and isinstance(pair.nonmember, Normal)
    if laws.observes not in SCORES_OF_LABEL or not normal:
        return {}
    return cast(dict[str, float | None], measures.one_threshold(pair))


def _remedy(audit: Audit, threshold: float) -> str:
    """How many pass the threshold, and what can be done."""
    told, passing = audit.details, passing_sentence(audit, threshold)
    # Noise and penalty were worked out for the usual threshold.
    usual = threshold == EXPOSED_ABOVE
    option = told.option if usual else None
    exposed = int(np.count_nonzero(audit.advantage >= threshold))
    if audit.unconfirmed == audit.units:
        return (
            f"{passing} A larger penalty may help; leakscope verify RUN measures them as they are."
        )
    if not exposed:
        return passing
    ways = []
    if usual and told.answer_noise is not None:
        unit = target_unit(audit.dataset.steps)
        ways.append(f"noise of sd {told.answer_noise:.2g}{unit} on each answer (leaves none)")
    helps = option is not None and option.exposed <= MUCH_FEWER * exposed
    if option is not None and helps:
        ways.append(
            f"{option.setting}={option.value:.3g} (leaves {option.exposed or 'none'}; "
            f"{option.score} {option.score_then:.3f} instead of {option.score_now:.3f})"
        )
    if not ways:
        digits_too = "" if audit.observes == "label" else ", or fewer digits in an answer"
        join = " or" if audit.observes == "label" else ","
        return f"{passing} What helps: fewer features{join} more records{digits_too}."
    more = ""
    if option is not None and not helps and option.exposed < exposed:
        more = (
            f" {option.setting}={option.value:.3g} alone leaves {option.exposed}; try "
            "leakscope advise."
        )
    return f"{passing} What helps: {' or '.join(ways)}.{more}"


def _reason(name: str, moved: float, weight: float, surprise: float) -> str:
    if weight > MOSTLY * surprise:
        why = "mostly by its features"
    elif surprise > MOSTLY * weight:
        why = "mostly by its label"
    else:
        why = "by its features and its label alike"
    far = f"by {abs(moved):.2g} standard deviations" if np.isfinite(moved) else "as no other does"
    return (
        f"{name} moves its own score {far}, {why}: its "
        f"features weigh {_times(weight)} times as much as usual, and its label lies "
        f"{_times(surprise)} times as far from what the others predict."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10.0 else f"{ratio:.2g}"


def _constant(X: Any) -> tuple[str, ...]:
    """A warning where columns of X say nothing; of numbers in an array only."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return ()
    constant = np.flatnonzero(X.max(axis=0) == X.min(axis=0))
    if not constant.size:
        return ()
    named = ", ".join(str(column) for column in constant[:5])
    more = f" and {constant.size - 5} more" if constant.size > 5 else ""
    return (
        f"{constant.size} of {X.shape[1]} columns of X {are(constant.size)} constant and "
        f"{'says' if constant.size == 1 else 'say'} nothing: "
        f"{named}{more}.",
    )
