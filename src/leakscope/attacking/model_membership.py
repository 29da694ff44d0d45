"""Which queries was a fitted model trained on?  The likelihood ratio of its own laws.

The attacker has a pool of records, of which the model was trained on a part that he does not know.
He fits a model of the same kind to the whole pool, which gives both laws of every record's score
without shadow models (`leakscope.fitted`), and compares what the attacked model answers with them.
A query that the pool does not hold joins it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakscope import __version__, fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data import (
    Dataset,
    ModelFile,
    RecordId,
    prepare,
    raw_features,
    read_dataset,
    read_model,
)
from leakscope.errors import InputError
from leakscope.results import ExaminedModel, MembershipTest, ModelMembershipAttack
from leakscope.settings import ModelSettings, PoolAttackSettings, validated
from leakscope.subjects.fit.file_models import classifies, labels_for, plain_parameters, rebuilt
from leakscope.subjects.fit.named_models import named_fit

FPRS = (0.01, 0.001)

Records = tuple[ArrayLike, ArrayLike] | str | Path


@dataclass(frozen=True, eq=False)
class Attacked:
    """The attacked model, pool and queries as it takes them, and what it answered."""

    inner: Any
    design: FloatArray
    labels: NDArray[Any]
    asked: NDArray[np.intp]
    answers: FloatArray
    record_ids: tuple[RecordId, ...]
    examined: ExaminedModel
    pool: int


def attack_model(
    model: Any, queries: Records, pool: Records, settings: PoolAttackSettings
) -> ModelMembershipAttack:
    """Score the queries by the likelihood ratio of the model's own laws."""
    begin = time.perf_counter()
    found = _from_files(model, queries, pool, settings)
    again = fitted.fit_again(
        fitted.fresh_copy(found.inner), found.inner, found.design, found.labels, None
    )
    laws = fitted.laws_of(again, found.design, found.labels, fraction=settings.fraction)
    pair = laws.law_pair().take(found.asked)
    scores = pair.member.log_density(found.answers) - pair.nonmember.log_density(found.answers)
    tests = []
    over_all = measures.population_measures(pair, fpr=FPRS)
    for fpr in FPRS:
        threshold = measures.population_threshold(pair, fpr)
        tests.append(
            MembershipTest(
                fpr=fpr,
                threshold=threshold,
                tpr=over_all.tpr_at_fpr[fpr],
                called=int(np.count_nonzero(scores > threshold)),
            )
        )
    provenance = laws.provenance.to_dict()
    assumptions = provenance.pop("assumptions")
    trusted = laws.trusted[found.asked]
    untrusted = int(np.count_nonzero(~trusted))
    doubt = f"the laws of {untrusted} queries are not trusted." if untrusted else None
    return ModelMembershipAttack(
        leakscope_version=__version__,
        settings=settings.model_dump(),
        provenance=provenance,
        assumptions=assumptions,
        timing={"attack": time.perf_counter() - begin},
        warnings=[
            *laws.warnings,
            *([f"the laws of {doubt} queries are not trusted."] * bool(doubt)),
        ],
        model=found.examined,
        pool=found.pool,
        queries=len(found.asked),
        in_pool=int(np.count_nonzero(found.asked < found.pool)),
        fraction=laws.fraction,
        prior=settings.prior,
        observes=laws.observes,
        record_ids=list(found.record_ids),
        answers=found.answers.tolist(),
        scores=scores.tolist(),
        posteriors=special.expit(scores + special.logit(settings.prior)).tolist(),
        trusted=trusted.tolist(),
        auc=over_all.auc,
        tests=tests,
        verdict=_verdict(tests, len(scores), over_all.auc),
    )


def _verdict(tests: list[MembershipTest], count: int, auc: float) -> str:
    told = [
        f"{test.called} at {test.fpr:.1%} FPR (of nonmembers alone {test.fpr * count:.2g} would "
        f"be; {test.tpr or 0.0:.2%} of members are found)"
        for test in tests
    ]
    return (
        f"Called members, of {count} queries: {', and '.join(told)}. The laws promise an AUC of "
        f"{auc:.3f} over these queries."
    )


def _from_files(
    model: Any, queries: Records, pool: Records, settings: PoolAttackSettings
) -> Attacked:
    """Everything as numbers: from arrays and an estimator, or from files."""
    if isinstance(queries, tuple) and isinstance(pool, tuple):
        if isinstance(model, (str, Path)):
            raise InputError("arrays go with a fitted estimator; for a file name files of records.")
        return _from_arrays(model, queries, pool)
    if isinstance(queries, tuple) or isinstance(pool, tuple):
        raise InputError("give queries and pool alike: two files, or two pairs of arrays.")
    file = read_model(model) if str(model).lower().endswith((".skops", ".onnx")) else None
    if file is None and not isinstance(model, str):
        raise InputError("records in files go with a model's file or name.")
    chosen = validated(
        ModelSettings,
        model=str(model),
        C=settings.C,
        alpha=settings.alpha,
        fraction=settings.fraction,
    )
    task: Any = "classification" if classifies(chosen) else "regression"
    ignored = () if settings.answers is None else (settings.answers,)
    first = read_dataset(pool, target=settings.target, id_column=settings.id_column, task=task)
    second = read_dataset(
        queries, target=settings.target, id_column=settings.id_column, task=task, ignore=ignored
    )
    both = _stacked(first, second)
    if file is not None:
        records = _for_file(file, chosen, both, first, second)
    else:
        records = _for_name(chosen, both)
    inner, design, labels, examined = records
    size = len(first.record_ids)
    if settings.answers is not None:
        answers = _given(second, settings.answers, task)
        answers = np.log(answers) if type(inner).__name__ == "PoissonRegressor" else answers
    elif file is None:
        raise InputError(
            "answers: a named model has none; name the column of the queries that holds what the "
            "attacked model answered."
        )
    else:
        answers = fitted.score_records(
            inner, design[len(first.features) :], labels[len(first.features) :]
        )
    size = len(first.record_ids)
    kept, asked = _joined(design, labels, size)
    return Attacked(
        inner, design[kept], labels[kept], asked, answers, second.record_ids, examined, size
    )


def _from_arrays(
    model: Any, queries: tuple[ArrayLike, ArrayLike], pool: tuple[ArrayLike, ArrayLike]
) -> Attacked:
    inner, first = fitted.inner_model(model, pool[0])
    _, second = fitted.inner_model(model, queries[0])
    labels = [np.ravel(np.asarray(part[1])) for part in (pool, queries)]
    for name, design, own in zip(("pool", "queries"), (first, second), labels, strict=True):
        if len(design) != len(own):
            raise InputError(f"{name}: {len(design)} records have {len(own)} labels.")
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"queries: they have {second.shape[1]} features, and the pool {first.shape[1]}."
        )
    design, both = np.vstack([first, second]).astype(np.float64), np.concatenate(labels)
    kept, asked = _joined(design, both, len(first))
    examined = ExaminedModel(
        type=type(model).__name__,
        name=type(inner).__name__,
        origin="as fitted by you",
        parameters=plain_parameters(inner),
    )
    return Attacked(
        inner,
        design[kept],
        both[kept],
        asked,
        fitted.score_records(inner, second, labels[1]),
        tuple(range(len(second))),
        examined,
        len(first),
    )


def _joined(
    design: FloatArray, labels: NDArray[Any], pool: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of the pool with the queries that it does not hold, and where each query is."""
    place: dict[tuple[bytes, str], int] = {}
    keys = [(row.tobytes(), str(label)) for row, label in zip(design, labels.tolist(), strict=True)]
    for row in range(pool):
        place.setdefault(keys[row], row)
    kept, asked = list(range(pool)), []
    for row in range(pool, len(design)):
        if keys[row] not in place:
            place[keys[row]] = len(kept)
            kept.append(row)
        asked.append(place[keys[row]])
    return np.array(kept, dtype=np.intp), np.array(asked, dtype=np.intp)


def _stacked(pool: Dataset, queries: Dataset) -> Dataset:
    """Both as one dataset, by the names of their columns; a category that one lacks is 0 there."""
    names = [
        *pool.feature_names,
        *(n for n in queries.feature_names if n not in pool.feature_names),
    ]
    parts = []
    for dataset, where in ((pool, "pool"), (queries, "queries")):
        place = {name: column for column, name in enumerate(dataset.feature_names)}
        missing = [name for name in names if name not in place and "=" not in name]
        if missing:
            raise InputError(
                f"{where}: there is no column {missing[0]!r}, which the other file has."
            )
        parts.append(
            np.column_stack(
                [
                    dataset.features[:, place[name]]
                    if name in place
                    else np.zeros(len(dataset.features))
                    for name in names
                ]
            )
        )
    indicators = {pool.feature_names[k] for k in pool.indicators}
    indicators |= {queries.feature_names[k] for k in queries.indicators}
    return replace(
        pool,
        features=np.vstack(parts),
        target=np.concatenate([pool.target, queries.target]),
        record_ids=tuple(range(sum(map(len, parts)))),
        feature_names=tuple(names),
        indicators=tuple(k for k, name in enumerate(names) if name in indicators),
        source=None,
    )


def _for_file(
    file: ModelFile, chosen: ModelSettings, both: Dataset, pool: Dataset, queries: Dataset
) -> tuple[Any, FloatArray, NDArray[Any], ExaminedModel]:
    labels = labels_for(file, both)
    if file.linear is not None:
        if chosen.C is None and chosen.alpha is None:
            raise InputError(
                f"{file.path.name} holds no penalty, and its records are not known; give --C or "
                "--alpha."
            )
        estimator = rebuilt(file.linear, both.features, labels, chosen, file.path.name)
        X: Any = both.features
    else:
        estimator = file.estimator
        names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
        X = both.features
        if names:
            X = pd.concat([raw_features(part, names) for part in (pool, queries)])
    inner, design = fitted.inner_model(estimator, X)
    examined = ExaminedModel(
        type=type(estimator).__name__,
        name=type(inner).__name__,
        origin=f"from {file.path.name}",
        parameters=plain_parameters(inner),
        file=file.path.name,
        file_sha256=file.sha256,
    )
    return inner, np.asarray(design, dtype=np.float64), labels, examined


def _for_name(
    chosen: ModelSettings, both: Dataset
) -> tuple[Any, FloatArray, NDArray[Any], ExaminedModel]:
    if chosen.C is None and chosen.alpha is None and chosen.model != "linear":
        raise InputError(
            f"{chosen.model} needs the penalty of the attacked model; give --C or --alpha."
        )
    fit = named_fit(both, replace(prepare(both), target=both.target), chosen, seed=0)
    return fit.estimator, fit.X, fit.y, fit.examined


def _given(queries: Dataset, column: str, task: str) -> FloatArray:
    """The answers that a column holds, as the laws take them: log-odds of a probability."""
    found = raw_features(queries, [column])[column]
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"answers: the column {column!r} does not hold numbers.") from None
    bad = ~np.isfinite(values)
    if task == "classification":
        bad |= (values <= 0.0) | (values >= 1.0)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"answers: row {row} (rows count from 0) of {column!r} has {values[row]:g}, which is "
            f"no {'probability between 0 and 1' if task == 'classification' else 'finite number'}."
        )
    return np.asarray(special.logit(values)) if task == "classification" else values
