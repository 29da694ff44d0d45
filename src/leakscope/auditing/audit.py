"""From data and a model to every record's leakage: what the command line and the web page call."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from leakscope.data.datasets import MIXED, Dataset, Task, names_of, require_distinct_ids
from leakscope.data.doubts import copied_records
from leakscope.data.files import REMEDY
from leakscope.data.person_columns import person_columns_of, require_no_person
from leakscope.data.table_datasets import from_frame
from leakscope.errors import IN_PYTHON, OF_TABLES, InputError, in_python, told_in_python
from leakscope.results.audit import EXPOSED_ABOVE, Audit
from leakscope.results.columns import Table, trust_columns
from leakscope.settings.audit import (
    AUDIT_DEFAULTS,
    MODEL_DEFAULTS,
    TRAINING_DEFAULTS,
    AuditSettings,
    ModelSettings,
    SecretPrior,
    TrainingSettings,
)
from leakscope.settings.data import DATA_DEFAULTS, Missing
from leakscope.settings.setting import described, validated
from leakscope.subjects.arrays import ids_given, mixed_names, require_whole
from leakscope.subjects.fit.file_models import classifies
from leakscope.subjects.fit.subject import arrays_as_dataset, none_fitted
from leakscope.subjects.subgroups import exposure_by
from leakscope.subjects.subject import (
    Asked,
    OnStage,
    Stages,
    Subject,
    kind_for,
    subject_for,
)
from leakscope.subjects.training.own_training import predicts_classes, trains_classes

Model = TypeVar("Model", bound=BaseModel)

# What a Gaussian process has, of the parameters of :func:`audit`.
PROCESS_OPTIONS = (
    "noise_variance",
    "fit_kernel_scale",
    "sensitivity",
    "route",
    "inducing",
    "error",
)


def audit(
    X: Any,
    y: Any = None,
    *,
    model: Any = None,
    train: Any = None,
    task: Task | None = None,
    models: int | None = None,
    minutes: float | None = None,
    keep: str | Path | None = None,
    kernel: Any = None,
    noise_variance: float | str | None = None,
    fit_kernel_scale: bool | None = None,
    sensitivity: bool | None = None,
    route: str | None = None,
    inducing: int | None = None,
    error: float | None = None,
    question: str = MODEL_DEFAULTS.question,
    fraction: float | None = None,
    observes: str | None = None,
    weight_decay: float | None = None,
    secret: str | int | None = None,
    secret_prior: str = MODEL_DEFAULTS.secret_prior,
    secret_within: float | None = None,
    secret_values: Sequence[float] | None = None,
    sample_weight: Any = None,
    record_ids: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
    seed: int | None = None,
    explain: int = 0,
    settings: AuditSettings | None = None,
    chosen: ModelSettings | None = None,
    training: TrainingSettings | None = None,
    on_stage: OnStage | None = None,
    on_progress: Any = None,
) -> Audit:
    """How much a model trained on some records gives away about each of them.

    With ``model`` that model is examined, by the best method there is for it, and the first line of
    the answer says which: the laws of one fit where they are known, of ridge, logistic, Poisson
    regression and others (:func:`leakscope.fitted.laws_of`), which need no other model; else a few
    models trained on halves of the records (docs/few_models.md).  No kernel and no noise variance
    is assumed.

    With ``train`` a few models are trained, whatever is known of them.

    Without either a stand-in is fitted, as a person would: ridge regression, or logistic regression
    where y is text, booleans or two whole numbers; features standardised, the penalty by
    leave-one-out.  Where none can be fitted a Gaussian process stands in, and a warning says
    why.

    With ``kernel``, or any other parameter of a Gaussian process, that process is audited.  For
    each record the law of its latent value at that record is computed with the record in the
    training set and without it, all from one factorisation (:func:`leakscope.lood.all_records`),
    and the two are compared.  X and y are then used as they are: nothing is scaled, centred or
    encoded, and the prior mean is zero.  ``noise_variance`` is in squared units of y, and sets the
    level of every number.

    Parameters
    ----------
    X
        Records by features, numbers; or a :class:`leakscope.data.Dataset` as read, which is scaled
        and coded as ``settings`` say, and has its own target, ids and groups: others beside it are
        refused.
    y
        One target per record, numbers or classes; a Gaussian process also takes a table of C
        outputs.
    model
        Any scikit-learn estimator, fitted on X and y or not; its class; a function
        ``train(X, y, seed)`` that returns a predictor; a linear head (torch's ``Linear``, or its
        weight and bias) or a result of statsmodels; a :class:`leakscope.fitted.ConvexProblem`; a
        name (``"ridge"``), a .skops or .safetensors file, or ``"module:Name"``.
    weight_decay
        Of a linear head: what its optimiser was given (docs/howto/heads.md); found from the
        coefficients where left out.
    train
        An estimator or a function, to be examined by a few models.
    task
        Of a training: ``"classification"`` or ``"regression"``, where neither the estimator nor
        y says so.
    models, minutes, keep
        Of a training: how many models, an even number; for how many minutes to add more while
        they help, ``models`` being the least; and a directory that keeps each one's answers, so
        that none is trained twice.  Without any of them: four models, and more for one minute.
    kernel
        From :mod:`leakscope.kernels`, or a kernel's name, such as ``"rbf"``: its length scale is
        then the median distance between records.
    noise_variance
        The variance of the noise on y, 0.01 where left out; or ``"marginal_likelihood"`` or
        ``"leave_one_out"`` (the predictive score), to have the data choose it.
    fit_kernel_scale
        Have the same criterion choose a factor of the kernel too.
    sensitivity
        Whether to sweep the noise variance over two decades (four more audits) and, up to 5,000
        records, to audit under other kernels and at the noise the data would choose (six more);
        each record's range of ranks over either is in the result.
    route
        ``"dense"``, ``"features"`` or ``"nystrom"``; ``"auto"`` chooses by kernel and size, and the
        result says which and why.
    inducing, error
        Of the approximate route, nystrom: the most records that may stand for all, and the
        relative error of a record's KL up to which it is trusted.
    question, fraction, observes, sample_weight
        Of laws of one fit, as in :func:`leakscope.fitted.laws_of`, and refused elsewhere;
        ``sample_weight`` with ``model`` only.
    secret, secret_prior, secret_within, secret_values
        Of a fitted model: a column (its name, or its position in an array) of which it is asked how
        much the model gives away (docs/secret.md); ``"imputed"`` or ``"shares"``, what is known
        without the model; and of a column of numbers how near a guess must come, or the values
        among which it is guessed.
    record_ids
        Distinct ids, one per record; a data frame's index, or row numbers from 0, where left out.
        Where numbers and text are mixed, in these or in groups, all are taken by their text, and a
        warning says so: 1, 1.0 and "1" are one name.
    groups
        Who each record belongs to, such as a person: all records with the same value leave
        together, and the result has one entry per group, under that value.
    seed
        Of the halves and seeds of a training, and of the folds that choose a penalty.
    explain
        How many of the most exposed records to explain (``explanations`` of the result).
    settings, chosen, training
        The same as settings, passed whole: of the process and the scaling, of the model, of the
        training.  Parameters beside them are added; one that they hold too is refused.
    on_stage, on_progress
        Called with the name of each stage as it begins, and after each model of a training.

    Returns
    -------
    Audit
        ``.to_frame()`` has the most exposed record first, ``.write(directory)`` keeps it.

    Raises
    ------
    InputError
        One sentence that names the row, the column or the size.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
    >>> y = np.array([1.0, 1.1, 0.9, -1.0])
    >>> result = leakscope.audit(X, y, kernel=leakscope.kernels.rbf(1.0), noise_variance=0.1)
    >>> frame = result.to_frame()
    >>> frame[["record_id", "kl", "advantage"]].round(3).values.tolist()
    [[3.0, 8.441, 0.657], [1.0, 0.104, 0.148], [2.0, 0.097, 0.136], [0.0, 0.083, 0.127]]
    >>> frame[["rank_low", "rank_high"]].values.tolist()
    [[1, 1], [2, 4], [2, 4], [3, 4]]

    Any estimator, by four models of halves of the records:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = leakscope.audit(X, y, model=DecisionTreeClassifier(min_samples_leaf=5), models=4)
    >>> found.details.models, found.to_frame().columns[:2].tolist()
    (4, ['record_id', 'advantage'])
    """
    given: dict[str, Any] = {
        "kernel": kernel if isinstance(kernel, str) else None,
        "noise_variance": noise_variance,
        "fit_kernel_scale": fit_kernel_scale,
        "sensitivity": sensitivity,
        "route": route,
        "inducing": inducing,
        "error": error,
        "seed": seed,
    }
    process = {name: value for name, value in given.items() if value is not None}
    validated(AuditSettings, seed=seed)
    told: dict[str, Any] = {
        "question": question,
        "fraction": fraction,
        "observes": observes,
        "weight_decay": weight_decay,
        "secret": None if secret is None else str(secret),
        "secret_prior": secret_prior,
        "secret_within": secret_within,
        "secret_values": None if secret_values is None else tuple(secret_values),
    }
    asked_of_model = {k: value for k, value in told.items() if value != getattr(MODEL_DEFAULTS, k)}
    how = {"models": models, "minutes": minutes, "keep": None if keep is None else str(keep)}
    is_dataset = isinstance(X, Dataset)
    if isinstance(model, (str, Path)):
        asked_of_model["model"], model = str(model), None
    arrays = not is_dataset and settings is None
    of_objects = model is not None or train is not None
    asked = Asked(
        dataset=X if is_dataset else None,
        X=None if is_dataset else X,
        y=y,
        record_ids=record_ids,
        groups=groups,
        sample_weight=sample_weight,
        model=model,
        train=train,
        kernel=None if isinstance(kernel, str) else kernel,
        task=task,
        settings=as_given(AuditSettings, process)
        if arrays
        else beside(
            "settings",
            settings or AUDIT_DEFAULTS,
            process | ({"explain": explain} if settings and explain else {}),
        ),
        chosen=as_given(ModelSettings, asked_of_model)
        if of_objects and chosen is None
        else beside("chosen", chosen or MODEL_DEFAULTS, asked_of_model),
        training=beside("training", training or TRAINING_DEFAULTS, how),
        on_progress=on_progress,
    )
    if settings is not None:
        return examined(asked, on_stage=on_stage)
    names = OF_TABLES if is_dataset else IN_PYTHON
    with told_in_python(names):
        found = examined(asked, explain=explain, on_stage=on_stage)
    for sentence in found.warnings:
        python_warnings.warn(in_python(sentence, names), stacklevel=2)
    return found


def as_given(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Settings from Python's parameters, which the computation itself checks and words."""
    return model.model_construct(_fields_set=set(given), **given)


def beside(name: str, whole: Model, given: Mapping[str, Any]) -> Model:
    """Settings that were passed whole with what stands beside them; refused where both say it."""
    some = {key: value for key, value in given.items() if value is not None}
    if not some:
        return whole
    twice = sorted(whole.model_fields_set & set(some))
    if twice:
        raise InputError(f"{twice[0]} stands in {name} and beside it; leave out one of the two.")
    return validated(type(whole), **whole.model_dump(exclude_unset=True), **some)


def audit_frame(
    frame: Any,
    *,
    target: str,
    id_column: str | None = None,
    task: Task | None = None,
    missing: Missing = DATA_DEFAULTS.missing,
    ignore: Sequence[str] = (),
    group_column: str | None = None,
    by: str | Sequence[str] = (),
    na_values: Sequence[str] = DATA_DEFAULTS.na_values,
    settings: AuditSettings = AUDIT_DEFAULTS,
    model: Any = MODEL_DEFAULTS,
    secret: str | None = None,
    secret_prior: str = MODEL_DEFAULTS.secret_prior,
    secret_within: float | None = None,
    secret_values: Sequence[float] | None = None,
    train: Any = None,
    training: TrainingSettings = TRAINING_DEFAULTS,
    on_stage: OnStage | None = None,
) -> Audit:
    """Audit a pandas, polars or Arrow table in memory: encoded and scaled, as a file would be.

    Parameters
    ----------
    frame
        One row per record.
    target, id_column, task, missing, ignore, group_column, by, na_values
        As the options of ``leakscope audit`` (:class:`leakscope.settings.DataSettings`).
    settings, secret, secret_prior, secret_within, secret_values, train, training, on_stage
        As in :func:`leakscope.audit`; a training gets the columns as they stand.
    model
        Settings of a model (``chosen`` there), its name, such as ``"ridge"``, or any model of your
        own, as there; it is given the columns as they stand.

    Examples
    --------
    >>> import leakscope
    >>> from sklearn.datasets import load_wine
    >>> table = load_wine(as_frame=True).frame
    >>> result = leakscope.audit_frame(table, target="alcohol")
    >>> result.dataset.records, result.model.type
    (178, 'Ridge')
    """

    def read(wanted: Task | None, two_values_are_classes: bool) -> Dataset:
        return from_frame(
            frame,
            target=target,
            id_column=id_column,
            task=wanted,
            missing=missing,
            ignore=ignore,
            group_column=group_column,
            by=by,
            na_values=na_values,
            two_values_are_classes=two_values_are_classes,
        )

    own = None if isinstance(model, (str, ModelSettings)) else model
    if isinstance(model, str):
        model = validated(ModelSettings, model=model)
    told = {
        "secret": secret,
        "secret_prior": secret_prior,
        "secret_within": secret_within,
        "secret_values": None if secret_values is None else tuple(secret_values),
    }
    chosen = beside(
        "model",
        MODEL_DEFAULTS if own is not None else model,
        {k: value for k, value in told.items() if value != getattr(MODEL_DEFAULTS, k)},
    )
    asked = Asked(settings=settings, chosen=chosen, model=own, train=train, training=training)
    with told_in_python(OF_TABLES):
        asked = replace(asked, dataset=dataset_for(read, task, asked))
        found = examined(asked, on_stage=on_stage)
    for sentence in found.warnings:
        python_warnings.warn(in_python(sentence, OF_TABLES), stacklevel=2)
    return found


def asked_by_settings(
    settings: AuditSettings, chosen: ModelSettings, training: TrainingSettings
) -> Asked:
    """What settings ask for, before the data are read; refused where they do not go together."""
    asked = Asked(settings=settings, chosen=chosen, training=training)
    require_one_subject(asked)
    return asked


def expected(asked: Asked, dataset: Dataset) -> tuple[tuple[str, ...], str | None]:
    """The stages that the audit will go through, and what a long one will take, in words."""
    whole = replace(asked, dataset=dataset)
    kind = kind_for(whole)
    return kind.stages_for(whole), kind.cost(whole)


def dataset_for(read: Any, task: Task | None, asked: Asked) -> Dataset:
    """The dataset as the model takes it: its target is classes where the model predicts them.

    ``read`` is called once, with the task (None where the data are to say) and whether two values
    are classes, as they are to a stand-in.
    """

    said = task is not None
    if task is None and (
        classifies(asked.chosen)
        or trains_classes(asked.training)
        or predicts_classes(asked.train) is True
        or predicts_classes(asked.own) is True
    ):
        task = "classification"
    found: Dataset = read(task, not (asked.has_model or asked.of_process))
    return replace(found, task_said=said or task is None)


def examined(asked: Asked, *, explain: int | None = None, on_stage: OnStage | None = None) -> Audit:
    """The audit of what is asked for; ``explain`` None is what the settings say."""
    require_one_subject(asked)
    require_whole(asked.X, asked.y)
    stage = Stages(on_stage)
    with _room():
        return _examined(asked, stage, explain)


@contextmanager
def _room() -> Iterator[None]:
    """Say in a sentence that the memory ran out where no estimate had foreseen it."""
    try:
        yield
    except MemoryError as error:
        raise InputError("the memory ran out", remedy=REMEDY) from error
    except RuntimeError as error:
        # JAX has an error of its own for that.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise InputError("the memory ran out", remedy=REMEDY) from error


def _examined(asked: Asked, stage: Stages, explain: int | None) -> Audit:
    asked, mixed = _named(asked)
    X, y, groups = asked.X, asked.y, asked.groups
    if asked.dataset is not None:
        X, y, groups = asked.dataset.features, asked.dataset.target, asked.dataset.group
        require_no_person(asked.dataset)
        person = asked.dataset.person_columns
    else:
        person = person_columns_of(X, groups)
    subject = subject_for(asked, stage)
    subject.warnings = (*subject.warnings, *mixed)
    subject.dataset = subject.dataset.model_copy(
        update={"copies": copied_records(X, y, groups), "person_columns": person}
    )
    fallen = _fallen_back(asked, subject)
    if fallen is not None:
        subject.warnings = (fallen, *subject.warnings)
    if explain is None:
        told = "explain" in asked.settings.model_fields_set
        explain = asked.settings.explain if told or subject.explained_unasked else 0
    return audit_subject(subject, stage, explain=explain)


def _named(asked: Asked) -> tuple[Asked, tuple[str, ...]]:
    """The same with all names of records and groups of one type, and a warning where they were not.

    What is missing among them is refused where records are counted.
    """
    X, dataset = asked.X, asked.dataset
    if dataset is not None:
        ids, group = names_of(dataset.record_ids).names, dataset.group
        require_distinct_ids(list(ids), "record_ids")
        told = (
            *(f"{step}; give all as text to be sure." for step in dataset.steps if MIXED in step),
            *mixed_names(record_ids=dataset.record_ids, groups=group),
        )
        group = None if group is None else names_of(group).names
        return replace(asked, dataset=replace(dataset, record_ids=ids, group=group)), told
    told = mixed_names(record_ids=ids_given(asked.record_ids, X), groups=asked.groups)
    if asked.groups is None or isinstance(asked.groups, str):
        return asked, told
    return replace(asked, groups=names_of(asked.groups).names), told


def audit_subject(
    subject: Subject,
    stage: Stages | None = None,
    *,
    explain: int = 0,
) -> Audit:
    """Every unit's laws, measured, ranked and told."""
    from leakscope import __version__

    stage = stage or Stages()
    laws = subject.laws(stage)
    with stage("measure"):
        measured = laws.measures()
    if laws.provenance.question == "unspecified":
        raise InputError(
            f"{subject.words} does not say which attacker its numbers are about (their question)."
        )
    details, more = subject.details(laws, measured, stage, explain)
    ids = _ids(subject)
    known = {
        **measured,
        **laws.columns,
        **trust_columns(laws.trust),
        **more,
        "record_id": ids,
    }
    columns = _usual_columns(known, subject)
    advantage = measured["advantage"]
    # Of laws that are known this is 0 or 1.
    exposed = laws.chance_above(EXPOSED_ABOVE, advantage)
    told = laws.provenance.to_dict()
    by = {name: subject.units_of(values) for name, values in subject.by.items()}
    audit = Audit(
        kind=subject.file_kind,
        subject=subject.name,
        leakscope_version=__version__,
        settings=subject.settings,
        assumptions=[*told.pop("assumptions"), *subject.dataset.assumptions()],
        provenance=told,
        timing=stage.timing,
        warnings=[*subject.warnings, *laws.warnings],
        dataset=subject.dataset,
        model=subject.model,
        unit=subject.unit,
        question=laws.provenance.question,
        fraction=_fraction(subject, laws.provenance.question),
        observes=laws.provenance.observes,
        median_advantage=float(np.median(advantage)),
        exposed=round(float(exposed.sum())),
        sentences=[],
        subgroups=exposure_by(by, advantage, exposed),
        checks=list(laws.trust.checks),
        table=Table(columns, _order(measured, subject.ranked_by)),
        details=details,
    ).with_memory(laws, subject)
    return audit.model_copy(
        update={
            "sentences": list(_told(audit, ids=True)),
            "sentences_without_ids": list(_told(audit, ids=False)),
        }
    ).with_memory(laws, subject)


def _usual_columns(known: Mapping[str, NDArray[Any]], subject: Subject) -> dict[str, NDArray[Any]]:
    """In the usual order of the kind; what is usual and not known this time is empty."""
    first = ("kl", "kl_reverse", "advantage") if subject.ranked_by == "kl" else ("advantage",)
    head = ["record_id", "size", *first, "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc"]
    names = dict.fromkeys([*(name for name in head if name in known), *subject.usual, *known])
    empty = np.full(len(subject.ids), None, dtype=object)
    return {name: known.get(name, empty) for name in names}


def _told(audit: Audit, *, ids: bool) -> tuple[str, ...]:
    return (*audit.about.answer(audit, threshold=EXPOSED_ABOVE, ids=ids), audit.attacker)


def _order(measured: Mapping[str, NDArray[np.float64]], by: str) -> NDArray[np.intp]:
    """Row numbers, the most exposed first; equal ones by the KL, and then as they stand."""
    if by == "kl":
        return np.argsort(-measured["kl"], kind="stable")
    return np.lexsort((-measured["kl"], -measured["advantage"]))


def _fraction(subject: Subject, question: str) -> float | None:
    """The share of the records that a training set holds, where others are not known."""
    if question == "leave_one_out":
        return None
    told = subject.settings.get("fraction")
    return float(told) if told is not None else (0.5 if question == "pool" else 1.0)


def _ids(subject: Subject) -> NDArray[Any]:
    """The ids as a column: numbers where all are."""
    ids = np.empty(len(subject.ids), dtype=object)
    ids[:] = subject.ids
    if all(isinstance(value, int) for value in subject.ids):
        return ids.astype(np.int64)
    return ids


def _fallen_back(asked: Asked, subject: Subject) -> str | None:
    """What is said where a Gaussian process stands in for want of a fitted model."""
    if asked.has_model or asked.trains or asked.of_process or not subject.model.stand_in:
        return None
    why = none_fitted(arrays_as_dataset(asked))
    if why is None:
        return None
    if asked.chosen.model_fields_set and asked.X is not None:
        raise InputError(f"{min(asked.chosen.model_fields_set)} needs a fitted model, but {why}.")
    if asked.chosen.model_fields_set:
        option = described(ModelSettings, min(asked.chosen.model_fields_set)).option
        raise InputError(f"{option} needs a fitted model, and none was fitted, because {why}.")
    return (
        f"no model was given, and none was fitted, because {why}: a Gaussian process stands in, "
        "and its noise is assumed."
    )


def require_one_subject(asked: Asked) -> None:
    """Refuse what belongs to one kind of model beside another."""
    if asked.model is not None and asked.train is not None:
        raise InputError("give model or train, not both: model takes a training too.")
    if asked.sample_weight is not None and asked.model is None:
        raise InputError("sample_weight belongs to model; pass one.")
    for given, named, name in (
        (asked.model, asked.chosen.model, "model stands in chosen"),
        (asked.train, asked.training.train, "train stands in training"),
    ):
        if given is not None and named is not None:
            raise InputError(f"{name} and beside it; leave out one of the two.")
    own = tuple(name for name in asked.of_process if name != "model")
    if (asked.model is not None or asked.train is not None) and own:
        raise InputError(
            f"{own[0]} is an option of the Gaussian process and does not apply to your own model; "
            f"leave out {own[0]}, or the model."
        )
    _require_one_source(asked)
    _require_secret(asked)
    if asked.train is not None and asked.chosen.model_fields_set:
        name = min(asked.chosen.model_fields_set)
        raise InputError(
            f"{name} belongs to a fitted model, and does not go with train: there the attacker "
            "sees the log-odds, or the residual, and each other record is in with probability one "
            f"half; leave out {name}."
        )
    if asked.task not in (None, "classification", "regression"):
        raise InputError(
            f'task must be "classification" or "regression", but it is {asked.task!r}.'
        )
    if asked.task is not None and (not (asked.has_model or asked.trains) or asked.dataset):
        raise InputError(
            "task belongs to a training with arrays; a dataset has its own; leave out task."
        )
    _require_own_options(asked)


# What belongs to arrays, and what a dataset has instead.
OF_ARRAYS = {
    "y": "has its own target",
    "record_ids": "has its own ids (id_column, where it is read)",
    "groups": "has its own groups (group_column, where it is read)",
    "sample_weight": "has no weights",
    "kernel": "takes a kernel by its name, with options in settings",
}


def _require_one_source(asked: Asked) -> None:
    """Refuse what a dataset has itself, and what is not done to arrays."""
    for name, what in OF_ARRAYS.items():
        if asked.dataset is not None and getattr(asked, name) is not None:
            raise InputError(
                f"{name} stands beside a Dataset, which {what}; leave it out, or give arrays."
            )
    settings, options = asked.settings, asked.settings.kernel_options()
    if asked.kernel is not None and ("kernel" in settings.model_fields_set or options):
        name = next(iter(options), "kernel")
        raise InputError(f"{name} stands in settings beside a kernel; leave out one of the two.")
    if asked.kernel is not None and (asked.has_model or asked.trains):
        raise InputError("kernel belongs to the Gaussian process; leave out kernel, or the model.")
    scaled = "scaling" in settings.model_fields_set and settings.scaling != "none"
    if (
        scaled
        and asked.X is not None
        and (asked.of_process or asked.trains or asked.own is not None)
    ):
        raise InputError(
            "scaling stands in settings, and arrays are taken as they are; scale X, or give a "
            "Dataset."
        )


def _require_secret(asked: Asked) -> None:
    """Refuse what belongs to a secret column where none is named, or where none can be examined."""
    chosen = asked.chosen
    if chosen.secret is None:
        for name in ("secret_prior", "secret_within", "secret_values"):
            if name in chosen.model_fields_set and getattr(chosen, name) is not None:
                raise InputError(f"{described(ModelSettings, name).option} belongs to --secret.")
        return
    if chosen.secret_prior not in get_args(SecretPrior):
        raise InputError(
            f"--secret-prior must be one of {', '.join(get_args(SecretPrior))}, but it is "
            f"{chosen.secret_prior!r}."
        )
    if chosen.secret_within is not None and not 0.0 < chosen.secret_within < np.inf:
        raise InputError(f"--secret-within must be above 0, but it is {chosen.secret_within!r}.")
    if chosen.secret_within is not None and chosen.secret_values is not None:
        raise InputError("give --secret-within or --secret-values, not both.")
    if asked.trains or asked.of_process:
        raise InputError(
            "--secret is worked out for fitted models with coefficients (linear, ridge, logistic, "
            "Poisson): other models would have to be trained anew for every record and each of "
            "its values; name one of these with --model."
        )


def _require_own_options(asked: Asked) -> None:
    process, chosen, training = asked.settings.of_process(), asked.chosen, asked.training
    if training.train is not None:
        for model, given in (
            (ModelSettings, sorted(chosen.model_fields_set)),
            (AuditSettings, list(process)),
        ):
            for name in given:
                raise InputError(
                    f"{described(model, name).option} does not go with --train; leave out one of "
                    "them."
                )
    elif asked.train is None and asked.own is None:
        for name in sorted(training.model_fields_set):
            if getattr(training, name) is not None:
                option = described(TrainingSettings, name).option
                raise InputError(
                    f"{option} belongs to a training; name what is trained with --model or --train."
                )
    if asked.model is not None and asked.process is None:
        return
    if chosen.model is None:
        for name in ModelSettings.model_fields:
            if name not in chosen.model_fields_set or getattr(chosen, name) is None:
                continue
            option = described(ModelSettings, name).option
            if name in ("C", "alpha", "gamma"):
                raise InputError(
                    f"{option} belongs to --model; name one, such as --model logistic."
                )
            if asked.of_process and asked.X is not None:
                raise InputError(
                    f"{name} needs a fitted model, and {asked.of_process[0]} asks for a Gaussian "
                    "process."
                )
            if asked.of_process:
                first = asked.of_process[0]
                raise InputError(
                    f"{option} belongs to a fitted model; leave out "
                    f"{described(AuditSettings, first).option}."
                )
    elif process:
        option = described(AuditSettings, process[0]).typed
        raise InputError(f"{option} belongs to the Gaussian process; leave it out with --model.")
