"""Which of these queries was a fitted model trained on, of a pool that the attacker holds?

He audits a model of the same kind on the whole pool, which gives both laws of every record's score
without shadow models, and compares what the attacked model answers with them.  A query that the
pool does not hold joins it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import clone

from leakscope import __version__, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.audit import examined
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.models import ModelFile, read_model
from leakscope.data.sources import raw_features, read_dataset
from leakscope.errors import InputError
from leakscope.fitted.refits import answers_of, inner_model
from leakscope.measures.population import population_threshold
from leakscope.results.attacks import MembershipTest, ModelMembershipAttack
from leakscope.settings.attack import PoolAttackSettings
from leakscope.settings.audit import ModelSettings
from leakscope.settings.setting import validated
from leakscope.subjects.fit.models import classifies, is_fitted, labels_for
from leakscope.subjects.subject import Asked

# At which queries are called members.
FPRS = (0.01, 0.001)

Records = tuple[ArrayLike, ArrayLike] | str | Path


def attack_model(
    model: Any, queries: Records, pool: Records, settings: PoolAttackSettings
) -> ModelMembershipAttack:
    """Score the queries by the likelihood ratio of the model's own laws."""
    begin = time.perf_counter()
    if isinstance(queries, tuple) and isinstance(pool, tuple):
        asked, answers, record_ids, size = _of_arrays(model, queries, pool, settings)
        file = None
    elif isinstance(queries, tuple) or isinstance(pool, tuple):
        raise InputError("give queries and pool alike: two files, or two pairs of arrays.")
    else:
        asked, answers, record_ids, size, file = _of_files(model, queries, pool, settings)
    asked, place = _without_twins(asked, size)
    audit = examined(asked, explain=0)
    if audit.basis == "measured":
        raise InputError(
            f"the laws of {audit.model.name} do not follow from one fit; give the scores of models "
            "of halves to leakscope measure."
        )
    pair = audit.laws.pair().take(place)
    scores = pair.member.log_density(answers) - pair.nonmember.log_density(answers)
    promised = measures.population_measures(pair, fpr=FPRS)
    tests = []
    for fpr in FPRS:
        threshold = population_threshold(pair, fpr)
        called = int(np.count_nonzero(scores > threshold))
        tpr = promised.tpr_at_fpr[fpr]
        tests.append(MembershipTest(fpr=fpr, threshold=threshold, tpr=tpr, called=called))
    confirmed = audit.confirmed[place]
    doubt = int(np.count_nonzero(~confirmed))
    found = [
        f"{test.called} at {test.fpr:.1%} FPR (of nonmembers alone {test.fpr * len(scores):.2g} "
        f"would be; {test.tpr or 0.0:.2%} of members are found)"
        for test in tests
    ]
    origin = {} if file is None else {"file": file.path.name, "file_sha256": file.sha256}
    return ModelMembershipAttack(
        leakscope_version=__version__,
        settings=settings.model_dump(),
        provenance=audit.provenance,
        assumptions=audit.assumptions,
        timing={"attack": time.perf_counter() - begin},
        warnings=[f"the laws of {doubt} of {len(scores)} queries are not confirmed."]
        if doubt
        else [],
        model=audit.model.model_copy(update=origin),
        pool=size,
        queries=len(place),
        in_pool=int(np.count_nonzero(place < size)),
        fraction=audit.fraction or 0.5,
        prior=settings.prior,
        observes=str(audit.provenance["observes"]),
        record_ids=list(record_ids),
        answers=answers.tolist(),
        scores=scores.tolist(),
        posteriors=special.expit(scores + special.logit(settings.prior)).tolist(),
        confirmed=confirmed.tolist(),
        auc=promised.auc,
        tests=tests,
        verdict=f"Called members, of {len(scores)} queries: {', and '.join(found)}. The laws "
        f"promise an AUC of {promised.auc:.3f} over these queries.",
    )


def _of_arrays(
    model: Any,
    queries: tuple[ArrayLike, ArrayLike],
    pool: tuple[ArrayLike, ArrayLike],
    settings: PoolAttackSettings,
) -> tuple[Asked, FloatArray, tuple[RecordId, ...], int]:
    """The pool with the queries below it, what the model answers to these, and the pool's size."""
    if isinstance(model, (str, Path)):
        raise InputError(
            "arrays go with a fitted estimator; with a model's file, give files of records."
        )
    labels = [np.ravel(np.asarray(part[1])) for part in (pool, queries)]
    parts: list[Any] = [X.toarray() if hasattr(X, "toarray") else X for X in (pool[0], queries[0])]
    parts = [part if hasattr(part, "iloc") else np.asarray(part) for part in parts]
    for name, part, own in zip(("pool", "queries"), parts, labels, strict=True):
        if len(part) != len(own):
            raise InputError(f"{name}: {len(part)} records have {len(own)} labels.")
    if parts[0].shape[1] != parts[1].shape[1]:
        raise InputError(
            f"queries: they have {parts[1].shape[1]} features, and the pool {parts[0].shape[1]}."
        )
    frames = all(hasattr(part, "iloc") for part in parts)
    both = pd.concat(parts, ignore_index=True) if frames else np.vstack(parts)
    asked = _asked(model, both, np.concatenate(labels), settings)
    return asked, _scores(model, parts[1], labels[1]), tuple(range(len(labels[1]))), len(labels[0])


def _asked(model: Any, X: Any, y: NDArray[Any], settings: PoolAttackSettings) -> Asked:
    chosen = validated(ModelSettings, fraction=settings.fraction)
    return Asked(X=X, y=y, model=clone(model), chosen=chosen)


def _scores(model: Any, X: Any, y: NDArray[Any]) -> FloatArray:
    """What the attacked model answers, as the laws take it."""
    inner, design = inner_model(model, X)
    names = getattr(inner, "feature_names_in_", None)
    rows = design if names is None else pd.DataFrame(design, columns=names)
    return answers_of(inner, rows, y)


def _of_files(
    model: Any, queries: str | Path, pool: str | Path, settings: PoolAttackSettings
) -> tuple[Asked, FloatArray, tuple[RecordId, ...], int, ModelFile | None]:
    """The same of records in files, with a model's file or its name."""
    file = read_model(model) if str(model).lower().endswith(".skops") else None
    if file is None and not isinstance(model, str):
        raise InputError("records in files go with a model's file or name.")
    chosen = validated(
        ModelSettings,
        model=str(model),
        C=settings.C,
        alpha=settings.alpha,
        fraction=settings.fraction,
    )
    how: dict[str, Any] = {"target": settings.target, "id_column": settings.id_column}
    how["task"] = "classification" if classifies(chosen) else "regression"
    first = read_dataset(pool, **how)
    ignored = () if settings.answers is None else (settings.answers,)
    second = read_dataset(queries, ignore=ignored, **how)
    both, size = _stacked(first, second), len(first.record_ids)
    if file is None:
        if settings.answers is None:
            raise InputError(
                "answers: a model given by its name answers nothing; name the column of the "
                "queries that holds what the attacked model answered."
            )
        if chosen.C is None and chosen.alpha is None and chosen.model != "linear":
            raise InputError(
                f"{chosen.model} needs the penalty of the attacked model; give --C or --alpha."
            )
        answers = _given(second, settings.answers, how["task"])
        if chosen.named == "poisson":
            answers = np.log(answers)
        return Asked(dataset=both, chosen=chosen), answers, second.record_ids, size, None
    estimator, labels = file.estimator, labels_for(file, both)
    if not is_fitted(estimator):
        raise InputError(
            f"{file.path.name} holds no fitted model that can be read without running code (trees "
            "are compiled); give the fitted model's scores to leakscope measure."
        )
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    X: Any = both.features
    if names:
        X = pd.concat([raw_features(part, names) for part in (first, second)], ignore_index=True)
    if settings.answers is None:
        answers = _scores(estimator, X[size:], labels[size:])
    else:
        answers = _given(second, settings.answers, how["task"])
    asked = _asked(estimator, X, labels, settings)
    return asked, answers, second.record_ids, size, file


def _without_twins(asked: Asked, pool: int) -> tuple[Asked, NDArray[np.intp]]:
    """The pool with the queries that it does not hold, and where each query is in it."""
    dataset = asked.dataset
    X, y = (asked.X, asked.y) if dataset is None else (dataset.features, dataset.target)
    rows = pd.DataFrame(X).itertuples(index=False, name=None)
    keys = [(*row, str(label)) for row, label in zip(rows, y.tolist(), strict=True)]
    first: dict[Any, int] = {}
    kept = list(range(pool))
    for row, key in enumerate(keys[:pool]):
        first.setdefault(key, row)
    for row, key in enumerate(keys[pool:], start=pool):
        if key not in first:
            first[key] = len(kept)
            kept.append(row)
    place = np.array([first[key] for key in keys[pool:]], dtype=np.intp)
    if dataset is None:
        some = X.iloc[kept] if hasattr(X, "iloc") else X[kept]
        return replace(asked, X=some, y=y[kept]), place
    some = replace(
        dataset, features=X[kept], target=y[kept], record_ids=tuple(range(len(kept))), source=None
    )
    return replace(asked, dataset=some), place


def _stacked(pool: Dataset, queries: Dataset) -> Dataset:
    """Both as one dataset, by the names of their columns; a category that one lacks is 0 there."""
    frames = []
    for dataset, where, other in ((pool, "pool", queries), (queries, "queries", pool)):
        missing = set(other.feature_names) - set(dataset.feature_names)
        plain = sorted(name for name in missing if "=" not in name)
        if plain:
            raise InputError(f"{where}: there is no column {plain[0]!r}, which the other file has.")
        frames.append(pd.DataFrame(dataset.features, columns=list(dataset.feature_names)))
    both = pd.concat(frames).fillna(0.0)
    indicators = {part.feature_names[k] for part in (pool, queries) for k in part.indicators}
    return replace(
        pool,
        features=both.to_numpy(),
        target=np.concatenate([pool.target, queries.target]),
        record_ids=tuple(range(len(both))),
        feature_names=tuple(both.columns),
        columns=(),
        indicators=tuple(k for k, name in enumerate(both.columns) if name in indicators),
        source=None,
    )


def _given(queries: Dataset, column: str, task: str) -> FloatArray:
    """The answers that a column holds, as the laws take them: log-odds of a probability."""
    values = pd.to_numeric(raw_features(queries, [column])[column], errors="coerce").to_numpy()
    bad = ~np.isfinite(values)
    if task == "classification":
        bad |= (values <= 0.0) | (values >= 1.0)
    if bad.any():
        kind = "probability between 0 and 1" if task == "classification" else "finite number"
        raise InputError(
            f"answers: row {int(np.argmax(bad))} (rows count from 0) of {column!r} holds no {kind}."
        )
    return np.asarray(special.logit(values) if task == "classification" else values, np.float64)
