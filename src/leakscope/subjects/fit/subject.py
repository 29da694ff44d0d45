"""A fitted model with its records: the laws of each record's score, from that one fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope import fitted, measures
from leakscope._numerics.keys import as_key
from leakscope._numerics.memory import require_memory
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.doubts import array_doubts, doubts, two_classes
from leakscope.data.files import told_as
from leakscope.data.models import read_model
from leakscope.data.preparation import prepare, target_unit
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import is_read, no_laws
from leakscope.fitted.people import neighbours_of
from leakscope.fitted.problem import FittedModel, NoLawsError
from leakscope.fitted.refits import WholeFit
from leakscope.fitted.shadow import ProblemFits, shadows_of
from leakscope.laws.distributions import Normal
from leakscope.results.audit import EXPOSED_ABOVE, AgainstAttacker, Audit, ExaminedModel, FitFacts
from leakscope.results.document import DatasetEntry
from leakscope.results.sections import Section
from leakscope.results.shown import certain
from leakscope.results.trust import Trust
from leakscope.settings.audit import (
    MODEL_DEFAULTS,
    STAND_IN_COEFFICIENTS,
    STAND_IN_RECORDS,
    AuditSettings,
    ModelSettings,
    TrainingSettings,
)
from leakscope.settings.decide import ATTACKERS
from leakscope.settings.setting import described as option_named
from leakscope.settings.setting import validated
from leakscope.subjects.arrays import (
    checked_features,
    checked_ids,
    checked_targets,
    leaving_units,
    oddities,
)
from leakscope.subjects.fit.details import FitDetails, FitExplanation
from leakscope.subjects.fit.models import (
    ModelWithRecords,
    is_fitted,
    is_problem,
    model_of_dataset,
    named_model,
    own_model,
)
from leakscope.subjects.fit.secret import (
    secret_column,
    secret_of,
    secret_sections,
    secret_sentence,
    secret_warnings,
)
from leakscope.subjects.laws import MEASURES, PairLaws, Rows, UnitLaws, noise_for, summed_up
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

# What a record is confirmed by.
CHECK = "refits of the recipe agree with its law"
# Reasons are found unasked up to so many records: they solve for the laws once more.
EXPLAINED_UP_TO = 5000
# Features or label are said to be the reason where one is so much larger than the other.
MOSTLY = 1.5
# What an attacker sees that is above zero where the model prefers the record's own label.
SCORES_OF_LABEL = ("log_odds", "scores")
# What is asked of an estimator, of the settings of a model.
ASKED_OF_FIT = (
    "question", "fraction", "observes", "answer_noise", "secret", "secret_prior", "secret_within",
    "secret_values",
)  # fmt: skip
# With fewer shadow models, a standard deviation is not known to a fifth.
LEAST_MODELS = 20
# Of an audit with its run directory, for each record beside its features, and for each number.
BYTES_PER_RECORD, BYTES_PER_NUMBER = 6500, 48
# The laws against other attackers are worked out up to so many products of floats: a second.
MOST_PRODUCTS = 2e9


class Fit(Subject):
    """A fitted model with its records, and what is asked of it."""

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
    counted_in = "models"

    def __init__(
        self,
        examined: ModelWithRecords,
        *,
        ids: tuple[RecordId, ...],
        dataset: DatasetEntry,
        settings: dict[str, Any],
        sample_weight: Any = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self.estimator, self.X, self.y = examined.estimator, examined.X, examined.y
        self.described, self._examined = examined.described, examined.examined
        self.sample_weight, self.feature_names = sample_weight, feature_names
        self.unit = self.described.unit
        self.ids, self.dataset, self.settings = ids, dataset, settings
        self.whole: Any = self.described.whole
        if self.estimator is None:
            self.whole = ProblemFits(self.described)
        elif self.whole is None:
            self.whole = WholeFit.of(self.estimator, self.X, self.y, sample_weight)
        # With the noise that was asked for; without it, where they were looked at before.
        self.fitted_laws: fitted.FittedLaws | None = None
        self._plain_laws: fitted.FittedLaws | None = None
        # Of a dataset: as it was read.
        self.read: Dataset | None = None

    # How it comes about.

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """A model whose laws follow from one fit, or where a stand-in can be fitted."""
        if asked.trains:
            return False
        if asked.own is not None:
            return is_problem(asked.own) or (hasattr(asked.own, "fit") and is_read(asked.own))
        if asked.has_model:
            return True
        return not asked.of_process and none_fitted(arrays_as_dataset(asked)) is None

    @classmethod
    def stages_for(cls, asked: Asked) -> tuple[str, ...]:
        """One more where a column is secret."""
        return cls.stages if asked.chosen.secret is None else (*cls.stages, "secret")

    @classmethod
    def cost(cls, asked: Asked) -> str | None:
        """Nothing that is worth a sentence; more than the memory holds is refused."""
        if asked.dataset is not None:
            records, features = asked.dataset.features.shape
            require_memory(
                records * (BYTES_PER_RECORD + BYTES_PER_NUMBER * features),
                f"the audit of {records:,} records",
                "audit a part (--read sample)",
            )
        return None

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> Fit:
        """The user's own model as it is, or fitted on the records; or the named one fitted."""
        why = None if asked.own is None or is_problem(asked.own) else no_laws(asked.own)
        if why is not None:
            raise PassedOnError(f"no laws follow from one fit: {why}")
        _require_no_decay(asked)
        try:
            if asked.own is not None and asked.dataset is None:
                subject = cls._of_arrays(asked, stage)
            else:
                subject = cls._of_dataset(asked, stage)
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
            # What is wrong with the column is said before anything is worked out.
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
            try:
                laws = self._laws_of_fit()
            except NoLawsError as error:
                raise PassedOnError(f"no laws follow from this one fit: {error}.") from error
        if laws.check is not None and not laws.check.law_holds:
            raise PassedOnError(f"the laws of one fit do not hold: {laws.check.sentence}")
        self._plain_laws = laws

    @classmethod
    def _of_arrays(cls, asked: Asked, stage: Stages) -> Fit:
        """A model on arrays as they are; one that is not fitted is fitted on them."""
        from sklearn.base import is_classifier

        own, X, y = asked.own, asked.X, asked.y
        problem, shape = is_problem(own), getattr(X, "shape", None) or np.shape(X)
        if problem and (asked.sample_weight is not None or asked.chosen.secret is not None):
            raise InputError(
                "a described problem has its own weights, and does not say what its columns are; "
                "leave out sample_weight and --secret, or give the estimator."
            )
        if not problem and len(shape) != 2:
            raise InputError(
                f"X must have two dimensions, records by features, but its shape is {tuple(shape)}."
            )
        count = len(np.asarray(y)) if problem else int(shape[0])
        ids, codes = leaving_units(checked_ids(asked.record_ids, count, X), asked.groups)
        classes = None if asked.task is None else asked.task == "classification"
        with stage("check" if problem or is_fitted(own) else "fit"):
            model = own_model(
                own,
                X,
                y,
                sample_weight=asked.sample_weight,
                weight_decay=asked.chosen.weight_decay,
                classes=classes,
            )
        _require_same_size(model.described, count)
        subject = cls(
            replace(model, described=model.described.in_groups(codes)),
            ids=ids,
            dataset=DatasetEntry(
                name="arrays",
                records=count,
                features=int(np.prod(shape[1:])),
                outputs=1,
                target_name="y",
                steps=[],
            ),
            settings={name: getattr(asked.chosen, name) for name in ASKED_OF_FIT},
            sample_weight=asked.sample_weight,
        )
        if not problem:
            subject.warnings = array_doubts(X, y, classes=is_classifier(own), groups=asked.groups)
        return subject

    @classmethod
    def _of_dataset(cls, asked: Asked, stage: Stages) -> Fit:
        """The named model, or the user's own, on a dataset's records."""
        with stage("check"):
            dataset = arrays_as_dataset(asked)
            prepared = prepare(dataset, scaling=asked.settings.scaling)
            odd = oddities(
                dataset.features, prepared.target, dataset.record_ids, dataset.feature_names
            )
        with stage("fit"):
            subject = cls._fitted_on(dataset, prepared, asked.chosen, asked.settings, asked.own)
        subject.warnings = (*doubts(dataset), *odd, *subject.warnings)
        subject.by = prepared.by
        return subject

    @classmethod
    def _fitted_on(
        cls,
        dataset: Dataset,
        prepared: Dataset,
        chosen: ModelSettings,
        settings: AuditSettings,
        own: Any,
    ) -> Fit:
        ids, codes = leaving_units(prepared.record_ids, prepared.group)
        scaling, place = settings.scaling, chosen.model
        if own is None and chosen.file is None:
            model = named_model(dataset, prepared, chosen, codes)
            place = chosen.named or (
                "logistic" if model.described.task != "regression" else "ridge"
            )
        else:
            if chosen.file is not None:
                place = os.path.realpath(chosen.file)
            if "scaling" not in settings.model_fields_set and own is not None:
                # A model of the user's own scales what it wants scaled.
                scaling = "none" if not (is_problem(own) or is_fitted(own)) else scaling
            # A file may say anything of a model.
            with nullcontext() if chosen.file is None else told_as(f"{place} cannot be used"):
                model = model_of_dataset(own, dataset, prepared, chosen, scaling)
                _require_same_size(model.described, len(prepared.record_ids))
                model = replace(model, described=model.described.in_groups(codes))
        entry = DatasetEntry.of(prepared)
        subject = cls(
            model,
            ids=ids,
            dataset=entry.model_copy(update={"steps": list(model.steps), "outputs": 1}),
            settings={
                **chosen.model_dump(),
                "scaling": scaling,
                "seed": settings.seed,
                "model": place,
                **(model.parameters or {}),
            },
            feature_names=prepared.feature_names,
        )
        subject.read = dataset
        return subject

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> Fit:
        """The model fitted again from its data as it was, or read from its file."""
        stored = audit.settings
        if stored.get("model") is None:
            raise InputError(
                f"the estimator of this audit ({audit.model.name}) was in memory, and no file "
                "holds it; take the result that leakscope.audit returned."
            )
        with taken_from_result():
            chosen = validated(
                ModelSettings, **{k: stored[k] for k in ModelSettings.model_fields if k in stored}
            )
            usual = validated(AuditSettings, scaling=stored["scaling"], seed=stored["seed"])
        read = data_again(audit.dataset, data)
        prepared = prepare(read, scaling=usual.scaling)
        digest = audit.model.file_sha256
        if chosen.file is not None and read_model(chosen.file).sha256 != digest:
            raise InputError(f"{chosen.file} is not the model that was audited; it has changed.")
        subject = cls._fitted_on(read, prepared, chosen, usual, Asked(chosen=chosen).own)
        # What was asked is stored as it was resolved.
        subject.settings |= {
            "question": audit.question, "fraction": audit.fraction, "observes": audit.observes,
        }  # fmt: skip
        return subject

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
        parameters = {**self._examined.parameters, "answer_noise": self.noise}
        return self._examined.model_copy(update={"name": name, "parameters": parameters})

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on its answers; zero where there is none."""
        return float(self.settings.get("answer_noise") or 0.0)

    def laws(self, stage: Stages) -> PairLaws:
        """Both laws of every record's score, from the one fit."""
        with stage("laws"):
            self.fitted_laws = (self._plain_laws or self._laws_of_fit()).noised(self.noise)
        return laws_of_fit(self.fitted_laws)

    def _laws_of_fit(self) -> fitted.FittedLaws:
        laws = fitted.laws_of(
            self.described,
            question=self.settings["question"],
            fraction=self.settings["fraction"],
            observes=self.settings["observes"],
        )
        moments = [laws.member_mean, laws.nonmember_mean, laws.member_sd, laws.nonmember_sd]
        # Of a spread below 1e-160 the square is none.
        good = np.isfinite(moments).all(axis=0) & (np.square(moments[2:]) > 0.0).all(axis=0)
        if laws.question != "known_others" and not good.all():
            raise InputError(
                f"the scores of {np.count_nonzero(~good)} of {len(self.ids)} {self.unit}s have no "
                f"spread that float64 resolves, first {self.ids[int(np.argmin(good))]!r}: "
                "drop constant or repeated columns, or use a larger penalty."
            )
        return fitted.counted(laws, self.described, self.whole)

    def details(
        self, laws: UnitLaws, columns: Mapping[str, NDArray[Any]], stage: Stages, explain_first: int
    ) -> tuple[FitDetails, dict[str, NDArray[Any]]]:
        """Noise that would help, other attackers, facts about the fit, and reasons."""
        own = self.fitted_laws
        assert own is not None
        with stage("option"):
            needed = noise_for(laws, MEASURES["advantage"], EXPOSED_ABOVE)
            attackers = self._against_attackers(own, columns)
        order = np.lexsort((-columns["kl"], -columns["advantage"]))
        details = FitDetails(
            answer_noise=float(np.hypot(self.noise, needed)) if needed else None,
            attackers=attackers,
            explanations=self._explained(own, order[:explain_first].tolist()),
            fit=fit_facts(self.described, own),
            one_threshold=_one_threshold(own),
        )
        if self.settings.get("secret") is None:
            return details, {}
        with stage("secret"):
            secret, more = secret_of(self, own)
        self.warnings = (*self.warnings, *secret_warnings(secret, len(self.ids)))
        return details.model_copy(update={"secret": secret}), more

    def _against_attackers(
        self, own: fitted.FittedLaws, columns: Mapping[str, NDArray[Any]]
    ) -> list[AgainstAttacker]:
        """An outsider, LiRA's attacker and an insider; the one that was asked about alone where
        the others take long.

        The more of the other records an attacker knows, the less hides a record.
        """
        if own.question == "known_others":
            return []
        asked = (own.question, own.fraction)
        names = {(question, fraction): name for name, (question, fraction, _) in ATTACKERS.items()}
        size = min(self.described.parameters or np.inf, self.described.records)
        quick = self.described.records * size**2 <= MOST_PRODUCTS
        rows = []
        for question, fraction in dict.fromkeys((*(names if quick else ()), asked)):
            laws, measured = own, columns
            if (question, fraction) != asked:
                try:
                    laws = fitted.laws_of(
                        self.described,
                        question=cast(Any, question),
                        fraction=fraction,
                        observes=own.observes,
                    ).noised(self.noise)
                except InputError:
                    # Such a training set determines no fit; the others say enough.
                    continue
                laws = laws if own.check is None else laws.checked_as(own.check)
                measured = {}
            rows.append(
                AgainstAttacker(
                    attacker=names.get((question, fraction), "as asked"),
                    question=question,
                    fraction=fraction,
                    **summed_up(laws.law_pair(), laws.confirmed, measured),
                )
            )
        return rows

    @property
    def explained_unasked(self) -> bool:
        """Whether reasons are found without being asked for: where that is quick."""
        return len(self.ids) <= EXPLAINED_UP_TO

    def units_of(self, labels: Sequence[str]) -> Sequence[str]:
        """Of a group, its records' value where they all have the same."""
        codes = self.described.codes
        return labels if codes is None else of_groups(labels, codes, len(self.ids))

    def _explained(self, laws: fitted.FittedLaws, rows: Sequence[int]) -> list[FitExplanation]:
        """Why the units in these rows are exposed, given in the order of their rank."""
        if not rows:
            return []
        near = neighbours_of(self.described, rows, fraction=laws.fraction)
        explanations = []
        for place, row in enumerate(rows):
            weight, surprise = float(near.weight[place]), float(near.surprise[place])
            name = f"{self.unit.capitalize()} {self.ids[row]}"
            explanations.append(
                FitExplanation(
                    record_id=self.ids[row],
                    rank=place + 1,
                    weight=weight,
                    surprise=surprise,
                    neighbours=[self.ids[other] for other in near.others[place].tolist()],
                    shares=near.shares[place].tolist(),
                    sentence=_reason(name, float(laws.shift_in_sd[row]), weight, surprise),
                )
            )
        return explanations

    # Models with and without units.

    def answers(self, units: Rows, count: int, seed: int) -> Answers:
        """The same estimator fitted on random parts of the records."""
        if self.settings["question"] != "pool" or self.settings["observes"] == "residual":
            raise InputError(
                "shadow models draw the others from the records at hand, and are asked for "
                "predictions; audit the pool question, and no residuals, to verify it."
            )
        if count < LEAST_MODELS:
            raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {count}.")
        fraction = self.settings["fraction"] or 0.5
        people = None
        if self.described.codes is not None:
            # The sums of answers that the laws are of.
            people = (self.fitted_laws or self._laws_of_fit().noised(self.noise)).people
        shadows = shadows_of(
            self.whole, models=count, fraction=fraction, random_state=seed, people=people
        )
        learned = ", ".join(self.whole.learned)
        how = (
            f"{count} shadow models of the same estimator, each fitted on a random {fraction:g} of "
            f"the {self.unit}s{f', with all that it learns ({learned})' if learned else ''}"
        )
        drawn = as_key(seed).child(count).generator().standard_normal(shadows.scores.shape)
        added = self.noise if people is None else self.noise * people.lengths
        return shared_answers(shadows.scores + added * drawn, shadows.trained_on, units, how, count)

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
        passing, noise = passing_sentence(audit, threshold), audit.details.answer_noise
        if audit.unconfirmed == audit.units:
            passing += " A larger penalty may help; leakscope verify RUN measures them as they are."
        elif (audit.advantage >= threshold).any():
            ways = "a larger penalty, fewer features, more records (leakscope advise)"
            if threshold == EXPOSED_ABOVE and noise is not None:
                unit = target_unit(audit.dataset.steps)
                ways = f"noise of sd {noise:.2g}{unit} on each answer (leaves none), or {ways}"
            passing += f" What helps: {ways}."
        secret = audit.details.secret
        return (
            examined_sentence(audit, method="laws of one fit"),
            most_exposed_sentence(audit, ids=ids),
            passing,
            *(() if secret is None else (secret_sentence(secret, ids=ids),)),
        )

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows, and what the shift is."""
        return shifted_score_sentence(audit, "weighted mean of its records' scores that tells most")

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """Refits contradict the laws, a few others carry them, or nobody looked."""
        return (
            "not confirmed: refits contradict its law, a few other records cause most of its "
            "variation, or it was not checked",
            "use a larger penalty, or verify them with shadow models (leakscope verify)",
        )

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """Other attackers, and a secret column."""
        secret, rows = audit.details.secret, audit.details.against()
        sections = [] if secret is None else secret_sections(audit, secret)
        if len(rows) > 1:
            sections.append(_other_attackers(audit, rows))
        return sections

    @classmethod
    def stored_laws(cls, audit: Audit) -> PairLaws:
        """Normal laws of the score; other answers have laws that the table does not hold."""
        if audit.observes in ("label", "probabilities"):
            raise LawsNotStoredError("the laws of such answers are not in the result; audit again.")
        laws = normal_laws(audit)
        # With noise on each answer another sum of a group's answers is best.
        return replace(laws, with_noise=None) if audit.unit == "group" else laws

    @classmethod
    def remedies(cls, audit: Audit) -> list[dict[str, str]]:
        """Noise on the answers."""
        noise = audit.details.answer_noise
        if noise is None:
            return []
        return [
            {
                "change": f"normal noise of sd {noise:.2g} on each answer, each record answered "
                "once",
                "effect": f"every advantage below {audit.exposed_above:g}",
                "price": "the noise itself",
            }
        ]

    @classmethod
    def refused_attacks(cls, audit: Audit) -> Mapping[str, str]:
        """What needs a network, a process or noise."""
        network, process = "needs a two-layer network", "needs a Gaussian process"
        refused = {"weights": network, "retrained": process, "query": process}
        refused["canaries"] = "a fit without noise has no epsilon"
        if audit.model.holds_records:
            refused["secret"] = "needs a linear, ridge, logistic or Poisson model"
        return refused


def laws_of_fit(laws: fitted.FittedLaws) -> PairLaws:
    """The laws of one fit, with the check that each unit passed."""
    pair = laws.law_pair()
    looked = np.full(laws.records, laws.check is not None)
    moments = {
        "mean_without": laws.nonmember_mean,
        "sd_without": laws.nonmember_sd,
        "mean_with": laws.member_mean,
        "sd_with": laws.member_sd,
    }
    size: dict[str, NDArray[Any]] = {}
    arrays: dict[str, NDArray[Any]] = {
        "member_mean": laws.member_mean,
        "member_sd": laws.member_sd,
        "nonmember_mean": laws.nonmember_mean,
        "nonmember_sd": laws.nonmember_sd,
    }
    if laws.people is not None:
        size = {"size": np.bincount(laws.people.codes), "joint_advantage": laws.people.joint}
        arrays |= {"groups": laws.people.codes, "row_weights": laws.people.weights}
    takes_noise = laws.observes != "label"
    return PairLaws(
        trust=Trust.checked(CHECK, laws.confirmed, looked=looked),
        provenance=laws.provenance,
        warnings=laws.warnings,
        columns={
            **size,
            "shift_in_sd": laws.shift_in_sd,
            **moments,
            "largest_share": laws.shares.largest,
        },
        arrays=arrays,
        member=pair.member,
        nonmember=pair.nonmember,
        with_noise=(lambda sd: laws.law_pair(answer_noise=sd)) if takes_noise else None,
        sd_without=laws.nonmember_sd if takes_noise else None,
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


def _require_no_decay(asked: Asked) -> None:
    """Refuse a weight decay where the model has its own penalty."""
    head = asked.chosen.file is not None and asked.chosen.file.suffix.lower() == ".safetensors"
    if asked.chosen.weight_decay is not None and not (head or is_problem(asked.own)):
        raise InputError(
            "--set weight_decay belongs to a linear head (a .safetensors file, or torch's Linear); "
            "leave it out."
        )


def _require_same_size(described: FittedModel, records: int) -> None:
    if described.records != records:
        raise InputError(
            f"the problem is of {described.records} records, and {records} were given; pass the "
            "records that it describes, in the same order."
        )


def _not_needed(training: TrainingSettings) -> tuple[str, ...]:
    """What is said where options of a training are given, and one fit is enough."""
    given = [name for name in sorted(training.model_fields_set) if getattr(training, name)]
    if not given:
        return ()
    option = option_named(TrainingSettings, given[0]).option
    return (f"{option} is not used: the laws of this model are known without it.",)


def fit_facts(model: FittedModel, laws: fitted.FittedLaws) -> FitFacts:
    """The number of parameters, and the score of a record in the training set and out of it."""
    moments = [laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd]
    if laws.people is not None:
        moments = laws.people.of_rows()
    sides = moments[:2], moments[2:]
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


def _one_threshold(laws: fitted.FittedLaws) -> dict[str, float | None]:
    """What one threshold on the score of the own label achieves; empty for other answers."""
    if laws.people is not None or laws.observes not in SCORES_OF_LABEL:
        return {}
    pair = laws.law_pair()
    if not (isinstance(pair.member, Normal) and isinstance(pair.nonmember, Normal)):
        return {}
    return cast(dict[str, float | None], measures.one_threshold(pair))


def _reason(name: str, moved: float, weight: float, surprise: float) -> str:
    """Whether features or label are why a unit moves its own score."""
    if weight > MOSTLY * surprise:
        why = "mostly by its features"
    elif surprise > MOSTLY * weight:
        why = "mostly by its label"
    else:
        why = "by its features and its label alike"
    far = f"by {abs(moved):.2g} standard deviations" if np.isfinite(moved) else "as no other does"
    heavy, off = (f"{x:.0f}" if x >= 10.0 else f"{x:.2g}" for x in (weight, surprise))
    return (
        f"{name} moves its own score {far}, {why}: its features weigh {heavy} times as much as "
        f"usual, and its label lies {off} times as far from what the others predict."
    )


def _other_attackers(audit: Audit, rows: Sequence[AgainstAttacker]) -> Section:
    """Other attackers beside the one that was asked about."""
    asked = (audit.question, audit.fraction)
    cells = [
        [
            f"{row.attacker}{' (asked)' * ((row.question, row.fraction) == asked)}",
            ATTACKERS[row.attacker][2] if row.attacker in ATTACKERS else "as asked",
            certain(row.largest_advantage),
            certain(row.median_advantage),
            certain(row.largest_tpr_at_fpr_0_01),
            certain(row.largest_tpr_at_fpr_0_001),
            str(row.exposed),
            str(row.unconfirmed),
        ]
        for row in rows
    ]
    headings = (
        "attacker", "who", "largest advantage", "median", "TPR at 1%", "at 0.1%",
        f"{EXPOSED_ABOVE:g} or more", "not confirmed",
    )  # fmt: skip
    return Section(
        "Against other attackers",
        [
            "Each number is about one attacker: the more of the other records the attacker knows, "
            "the less a record is hidden. An attacker who knows all others can be certain, because "
            "the fit is deterministic. --attacker outsider or insider asks for another."
        ],
        tables=[(headings, cells)],
    )
