"""From data and a model to every record's leakage: what the command line and Python call."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.data.datasets import MIXED, Dataset, Task, names_of, require_distinct_ids
from leakscope.data.doubts import copied_records
from leakscope.data.files import REMEDY
from leakscope.data.person_columns import person_columns_of, require_no_person
from leakscope.data.table_datasets import from_frame
from leakscope.errors import InputError
from leakscope.lood.process import Process
from leakscope.recipes.recipe import named_subject, predicts_classes
from leakscope.results.audit import EXPOSED_ABOVE, Audit
from leakscope.results.columns import Table, trust_columns
from leakscope.settings.audit import ModelSettings, settings_by_name
from leakscope.settings.data import DataSettings
from leakscope.settings.decide import ATTACKERS
from leakscope.settings.process import PROCESSES
from leakscope.subjects.arrays import ids_given, mixed_names, require_whole
from leakscope.subjects.fit.models import classifies
from leakscope.subjects.fit.subject import arrays_as_dataset, none_fitted
from leakscope.subjects.subgroups import exposure_by
from leakscope.subjects.subject import Asked, OnStage, Stages, Subject, kind_for, subject_for


def audit(
    X: Any,
    y: Any = None,
    *,
    model: Any = None,
    groups: Sequence[Any] | None = None,
    record_ids: Sequence[Any] | None = None,
    sample_weight: Any = None,
    task: Task | None = None,
    models: int | None = None,
    minutes: float | None = None,
    attacker: str | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Audit:
    """How much a model trained on some records gives away about each of them.

    The best method there is for the model is taken, and the first line of the answer says which:
    the laws of one fit where they are known, of ridge, logistic, Poisson regression and others
    (:func:`leakscope.fitted.laws_of`), which need no other model; else models trained on halves of
    the records (docs/few_models.md); of a Gaussian process the laws with each record and without
    it (:func:`leakscope.lood.all_records`).

    Without a model a stand-in is fitted, as a person would: ridge regression, or logistic
    regression where y is text, booleans or two whole numbers; features standardised, the penalty by
    leave-one-out.

    Parameters
    ----------
    X
        Records by features, numbers; or a :class:`leakscope.data.Dataset` as read, which has its
        own target, ids and groups.
    y
        One target per record, numbers or classes; a Gaussian process also takes a table of C
        outputs.
    model
        Any scikit-learn estimator, fitted on X and y or not; its class; a function
        ``train(X, y, seed)`` that returns a predictor; a linear head (torch's ``Linear``, or its
        weight and bias); a :class:`leakscope.fitted.ConvexProblem`; a
        :class:`leakscope.lood.Process`, with X and y used as they are; a name (``"ridge"``,
        ``"rbf"``), a .skops or .safetensors file, or ``"module:Name"``.
    groups
        Who each record belongs to, such as a person: all records with the same value leave
        together, and the result has one entry per group, under that value.
    record_ids
        Distinct ids, one per record; a data frame's index, or row numbers from 0, where left out.
        Where numbers and text are mixed, in these or in groups, all are taken by their text, and a
        warning says so: 1, 1.0 and "1" are one name.
    sample_weight
        Of a fitted model: the weights that it was fitted with.
    task
        Of a training: ``"classification"`` or ``"regression"``, where neither the model nor y says.
    models, minutes
        Of models of halves: how many, an even number; for how many minutes to add more while they
        help, ``models`` being the least.  Without either: four, and more for one minute.
    attacker
        ``"pool"`` (each other record is in with probability one half, as LiRA asks), ``"outsider"``
        (the others are fresh) or ``"insider"`` (knows nearly all); pool where left out.
    seed
        Of the halves and seeds of a training, and of the folds that choose a penalty.
    settings
        Others by their names: what ``--set`` takes of a named model, such as ``C=0.1`` or
        ``noise_variance=0.1``; ``observes``, ``fraction``, ``question``, ``answer_noise``,
        ``weight_decay`` (of a head); ``secret``, a column of which it is asked how much the model
        gives away (docs/secret.md); ``keep``, a directory that keeps the answers of each model of
        halves; ``explain``, how many of the most exposed to explain.

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
    >>> from sklearn.datasets import load_breast_cancer, load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = leakscope.audit(X, y, model=Ridge(alpha=0.1))
    >>> result.to_frame()[["record_id", "advantage"]].round(2).values[:2].tolist()
    [[123.0, 0.36], [102.0, 0.35]]

    Any estimator, by four models of halves of the records:

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = leakscope.audit(X, y, model=DecisionTreeClassifier(min_samples_leaf=5), models=4)
    >>> found.details.models
    4
    """
    train, kernel = settings.pop("train", None), settings.pop("kernel", None)
    given = {"models": models, "minutes": minutes, "seed": seed, **settings}
    if isinstance(model, Path) or (isinstance(model, str) and model not in PROCESSES):
        given["model"], model = str(model), None
    if isinstance(kernel, str):
        given["kernel"], kernel = kernel, None
    asked = asked_for(given, attacker=attacker, process=model if isinstance(model, str) else None)
    if not isinstance(model, str):
        asked = replace(asked, model=model)
    is_dataset = isinstance(X, Dataset)
    asked = replace(
        asked, dataset=X if is_dataset else None, X=None if is_dataset else X, y=y,
        record_ids=record_ids, groups=groups, sample_weight=sample_weight, train=train,
        kernel=kernel, task=task,
    )  # fmt: skip
    return _warned(examined(asked, explain=asked.settings.explain if "explain" in given else 0))


def audit_frame(frame: Any, *, model: Any = None, **settings: Any) -> Audit:
    """Audit a pandas, polars or Arrow table in memory: encoded and scaled, as a file would be.

    Parameters
    ----------
    frame
        One row per record.
    model
        As in :func:`leakscope.audit`; a model of your own is given the columns as they stand.
    settings
        ``target``, which must be there, ``id_column``, ``task``, ``missing``, ``ignore``,
        ``group_column``, ``by`` and ``na_values``, as the options of ``leakscope audit``; and what
        :func:`leakscope.audit` takes besides arrays.

    Examples
    --------
    >>> import leakscope
    >>> from sklearn.datasets import load_wine
    >>> table = load_wine(as_frame=True).frame
    >>> result = leakscope.audit_frame(table, target="alcohol")
    >>> result.dataset.records, result.model.type
    (178, 'Ridge')
    """
    if "target" not in settings:
        raise InputError("target is missing: name the column that the model predicts.")
    of_data = {k: settings.pop(k) for k in DataSettings.model_fields if k in settings}
    task, train = of_data.pop("task", None), settings.pop("train", None)
    attacker = settings.pop("attacker", None)
    if isinstance(model, Path) or (isinstance(model, str) and model not in PROCESSES):
        settings["model"], model = str(model), None
    process = model if isinstance(model, str) else None
    asked = asked_for(settings, attacker=attacker, process=process)
    if process is None:
        asked = replace(asked, model=model, train=train)

    def read(wanted: Task | None, two_values_are_classes: bool) -> Dataset:
        return from_frame(
            frame, task=wanted, two_values_are_classes=two_values_are_classes, **of_data
        )

    return _warned(examined(replace(asked, dataset=dataset_for(read, task, asked))))


def _warned(found: Audit) -> Audit:
    for sentence in found.warnings:
        python_warnings.warn(sentence, stacklevel=3)
    return found


def asked_for(
    given: Mapping[str, Any], *, attacker: str | None = None, process: str | None = None
) -> Asked:
    """What settings by their names ask for; ``process`` is the name of a Gaussian process."""
    values = {name: value for name, value in given.items() if value is not None}
    if attacker is not None:
        if attacker not in ATTACKERS or {"question", "fraction"} & set(values):
            raise InputError(
                f"attacker must be one of {', '.join(ATTACKERS)}, without question and fraction, "
                f"but it is {attacker!r}."
            )
        if attacker != "pool":
            values["question"], values["fraction"] = ATTACKERS[attacker][:2]
    if process is None:
        settings, chosen, training = settings_by_name(values)
        return Asked(settings=settings, chosen=chosen, training=training)
    of_process = set(PROCESSES[process].model_fields)
    own = {name: values.pop(name) for name in list(values) if name in of_process}
    settings, chosen, training = settings_by_name(values)
    model = Process.named(process, **own)
    return Asked(model=model, settings=settings, chosen=chosen, training=training)


def expected(asked: Asked, dataset: Dataset) -> str | None:
    """What a long audit will take, in words."""
    whole = replace(asked, dataset=dataset)
    return kind_for(whole).cost(whole)


def dataset_for(read: Any, task: Task | None, asked: Asked) -> Dataset:
    """The dataset as the model takes it: its target is classes where the model predicts them.

    ``read`` is called once, with the task (None where the data are to say) and whether two values
    are classes, as they are to a stand-in.
    """
    said = task is not None
    named = asked.training.train and named_subject(asked.training.train)
    models = (asked.train, asked.own, named)
    own_classes = (predicts_classes(model) is True for model in models)
    if task is None and (classifies(asked.chosen) or any(own_classes)):
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
    if asked.chosen.model_fields_set:
        raise InputError(f"{min(asked.chosen.model_fields_set)} needs a fitted model, but {why}.")
    return (
        f"no model was given, and none was fitted, because {why}: a Gaussian process stands in, "
        "and its noise is assumed."
    )


# What belongs to arrays, and what a dataset has instead.
OF_ARRAYS = {
    "y": "has its own target",
    "record_ids": "has its own ids (id_column, where it is read)",
    "groups": "has its own groups (group_column, where it is read)",
    "sample_weight": "has no weights",
}


def require_one_subject(asked: Asked) -> None:
    """Refuse what belongs to one kind of model, or to arrays, beside another."""
    if asked.dataset is not None:
        for name, what in OF_ARRAYS.items():
            if getattr(asked, name) is not None:
                raise InputError(f"{name} stands beside a Dataset, which {what}; leave it out.")
    named = asked.chosen.model is not None or asked.training.train is not None
    if (asked.model is not None) + (asked.train is not None) + named > 1:
        raise InputError("give one model, as an object or by its name.")
    if asked.sample_weight is not None and asked.model is None:
        raise InputError("sample_weight belongs to model; pass one.")
    process = [name for name in asked.of_process if name != "model"]
    fit = [name for name in _given(asked.chosen) if name != "model"]
    training = [name for name in _given(asked.training) if name != "train"]
    if process and (asked.has_model or asked.trains):
        raise InputError(f"{process[0]} belongs to a Gaussian process; leave it out, or the model.")
    if fit and (asked.trains or asked.of_process):
        raise InputError(f"{fit[0]} belongs to a fitted model; leave it out, or name one.")
    if training and not (asked.trains or asked.own is not None):
        raise InputError(f"{training[0]} belongs to models of halves; name what is trained.")
    if asked.chosen.model is None and asked.model is None:
        for name in ("C", "alpha", "gamma"):
            if name in fit:
                raise InputError(f"{name} belongs to a model that is named, such as logistic.")
    _require_secret(asked.chosen)
    if asked.task not in (None, "classification", "regression"):
        raise InputError(f'task must be "classification" or "regression", not {asked.task!r}.')


def _given(settings: ModelSettings | Any) -> list[str]:
    """The settings that were given a value."""
    names = sorted(settings.model_fields_set)
    return [name for name in names if getattr(settings, name) is not None]


def _require_secret(chosen: ModelSettings) -> None:
    """Refuse what belongs to a secret column where none is named."""
    given = [name for name in _given(chosen) if name.startswith("secret_")]
    if chosen.secret is None and given:
        raise InputError(f"{given[0]} belongs to secret; name the column.")
    if chosen.secret_within is not None and chosen.secret_values is not None:
        raise InputError("give secret_within or secret_values, not both.")
