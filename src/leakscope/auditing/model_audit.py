"""From a fitted model and its records to every record's leakage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.checks import checked_ids, oddities
from leakscope.auditing.file_models import FileFit, file_fit, plain_parameters
from leakscope.auditing.measured import exact, measured_pair
from leakscope.auditing.model_explanation import explain_by_model
from leakscope.auditing.model_facts import fit_entry, one_threshold_of
from leakscope.auditing.model_result import Examined, ModelAuditResult
from leakscope.auditing.named_models import NamedFit, named_fit
from leakscope.auditing.penalty_sweep import penalty_sweep
from leakscope.auditing.subgroups import exposure_by
from leakscope.auditing.verdict import EXPOSED_ABOVE
from leakscope.data import Dataset, RecordId, array_doubts, doubts, prepare, read_model
from leakscope.errors import InputError
from leakscope.laws import LawPair
from leakscope.results import DatasetEntry, ExaminedModel
from leakscope.settings import AUDIT_DEFAULTS, MODEL_DEFAULTS, AuditSettings, ModelSettings

# Reasons are found unasked up to so many records: they solve for the laws once more.
EXPLAINED_UP_TO = 5000

MODEL_STAGES = ("check", "fit", "laws", "measure", "option")


def audit_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    question: str = MODEL_DEFAULTS.question,
    fraction: float | None = None,
    observes: str | None = None,
    sample_weight: ArrayLike | None = None,
    record_ids: Sequence[Any] | None = None,
    explain: int = 0,
    on_stage: Callable[[str], None] | None = None,
) -> ModelAuditResult:
    """How much a fitted model gives away about each of the records it was fitted on.

    It is what :func:`leakscope.audit` does with ``model``; see there for the parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from leakscope import auditing
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X, y)
    >>> result = auditing.audit_model(model, X, y)
    >>> result.model.name, result.tpr_at_fpr[0.001].shape
    ('LogisticRegression(C=0.1)', (569,))
    """
    from sklearn.base import is_classifier

    start = time.perf_counter()
    if on_stage is not None:
        on_stage("check")
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2:
        raise InputError(
            f"X must have two dimensions, records by features, but its shape is {tuple(shape)}."
        )
    ids = checked_ids(record_ids, int(shape[0]), X)
    dataset = DatasetEntry(
        name="arrays",
        records=int(shape[0]),
        features=int(shape[1]),
        outputs=1,
        target_name="y",
        steps=[],
    )
    described = fitted.from_sklearn(model, X, y, sample_weight=sample_weight)
    examined = ExaminedModel(
        type=type(model).__name__,
        name=described.name,
        origin="as fitted by you",
        parameters=plain_parameters(model),
    )
    settings = {"question": question, "fraction": fraction, "observes": observes}
    return _audited(
        described,
        Examined(model, X, y, sample_weight),
        examined,
        settings,
        ids=ids,
        dataset=dataset,
        warnings=(*_constant(X), *array_doubts(X, y, classes=is_classifier(model))),
        timing={"check": time.perf_counter() - start},
        explained=explain,
        on_stage=on_stage,
    )


def audit_named_model(
    dataset: Dataset,
    chosen: ModelSettings,
    settings: AuditSettings = AUDIT_DEFAULTS,
    *,
    on_stage: Callable[[str], None] | None = None,
) -> ModelAuditResult:
    """Fit the named model on a dataset as read, scaled and coded as for any audit, and audit it.

    Or read it from a file: then its coefficients must be the optimum on these records.  Where no
    model is named a stand-in is fitted, as a person would fit it: ridge for a quantity, logistic
    for classes.  The penalty is chosen by cross-validation where it is left out.  Warnings are in
    the result, for the caller to show.

    Examples
    --------
    >>> from leakscope import auditing, data
    >>> from leakscope.settings import ModelSettings
    >>> wine = data.read_example("wine")
    >>> result = auditing.audit_named_model(wine, ModelSettings(model="logistic", C=0.1))
    >>> result.model.name, result.ranking()[0]
    ('LogisticRegression(C=0.1)', 73)
    """
    start = time.perf_counter()
    say = on_stage or (lambda name: None)
    say("check")
    if dataset.group is not None:
        raise InputError(
            "With a model single records leave, and what a whole group changes is not known; leave "
            "out --group, or audit a Gaussian process (--kernel rbf)."
        )
    prepared = prepare(dataset, scaling=settings.scaling)
    found = (
        *doubts(dataset),
        *oddities(dataset.features, prepared.target, dataset.record_ids, dataset.feature_names),
    )
    timing = {"check": time.perf_counter() - start}
    say("fit")
    start = time.perf_counter()
    fit: NamedFit | FileFit
    found_here: dict[str, Any]
    if chosen.file is None:
        fit = named_fit(dataset, prepared, chosen, seed=settings.seed)
        described = fitted.from_sklearn(fit.estimator, fit.X, fit.y)
        found_here = {"model": fit.name, **fit.parameters}
    else:
        fit = file_fit(dataset, prepared, read_model(chosen.file), chosen)
        described, found_here = fit.described, {"model": os.path.realpath(chosen.file)}
    timing["fit"] = time.perf_counter() - start
    result = _audited(
        described,
        Examined(fit.estimator, fit.X, fit.y, feature_names=prepared.feature_names),
        fit.examined,
        {
            **chosen.model_dump(),
            "scaling": settings.scaling,
            "seed": settings.seed,
            **found_here,
        },
        ids=prepared.record_ids,
        dataset=DatasetEntry.of(prepared).model_copy(
            update={"steps": list(fit.steps), "outputs": 1}
        ),
        warnings=found,
        timing=timing,
        explained=_explained(settings, len(dataset.record_ids)),
        on_stage=on_stage,
    )
    start = time.perf_counter()
    say("option")
    penalties = penalty_sweep(fit, result.laws) if isinstance(fit, NamedFit) else ()
    result = replace(
        result,
        penalties=penalties,
        timing={**result.timing, "option": time.perf_counter() - start},
    )
    return replace(result, subgroups=exposure_by(prepared.by, result.advantage))


def _audited(
    described: fitted.FittedModel,
    given: Examined,
    examined: ExaminedModel,
    settings: dict[str, Any],
    *,
    ids: tuple[RecordId, ...],
    dataset: DatasetEntry,
    warnings: tuple[str, ...],
    timing: dict[str, float],
    explained: int,
    on_stage: Callable[[str], None] | None,
) -> ModelAuditResult:
    start = time.perf_counter()
    if on_stage is not None:
        on_stage("laws")
    laws = fitted.laws_of(
        described,
        question=settings["question"],
        fraction=settings["fraction"],
        observes=settings["observes"],
    )
    _require_numbers(laws, ids)
    timing = {**timing, "laws": time.perf_counter() - start}
    start = time.perf_counter()
    if on_stage is not None:
        on_stage("measure")
    pair = laws.law_pair()
    numbers = measured_pair(pair)
    found = ModelAuditResult(
        record_ids=ids,
        **numbers,
        laws=laws,
        model=examined,
        examined=given,
        dataset=dataset,
        settings=settings,
        created=datetime.now(UTC),
        timing={**timing, "measure": time.perf_counter() - start},
        warnings=(*warnings, *laws.warnings),
        answer_noise=noise_for(laws, _advantage, EXPOSED_ABOVE) or None,
        fit=fit_entry(described, laws),
        one_threshold=one_threshold_of(laws),
    )
    if not explained:
        return found
    start = time.perf_counter()
    rows = found.order[:explained].tolist()
    reasons = explain_by_model(described, laws, rows=rows, record_ids=ids)
    spent = {**found.timing, "explain": time.perf_counter() - start}
    return replace(found, explanations=reasons, timing=spent)


def _explained(settings: AuditSettings, records: int) -> int:
    """How many records are explained: those asked for, or the usual ones where that is quick."""
    asked = "explain" in settings.model_fields_set
    return settings.explain if asked or records <= EXPLAINED_UP_TO else 0


def noise_for(
    laws: fitted.FittedLaws, measured: Callable[[LawPair], FloatArray], limit: float
) -> float | None:
    """The least sd of normal noise on each answer that brings a measure of every record to a limit.

    Upwards to two digits, so that the number that is shown suffices; 0 where no record passes it,
    None where the answer is a label, or where more noise than float64 resolves would be needed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope import auditing, fitted, measures
    >>> X, y = load_diabetes(return_X_y=True)
    >>> laws = fitted.laws_of(Ridge(alpha=0.1).fit(X, y), X, y)
    >>> auditing.noise_for(laws, measures.advantage, 0.1)
    41.0
    """
    pair = laws.law_pair()
    # Noise cannot help the attacker: who is within the limit stays there.
    rows = np.flatnonzero(measured(pair) > limit)
    if not rows.size:
        return 0.0
    if laws.observes == "label":
        return None

    def above(noise: float) -> NDArray[np.intp]:
        return rows[measured(laws.law_pair(answer_noise=noise).take(rows)) > limit]

    low = high = float(np.median(laws.nonmember_sd[rows]))
    while (left := above(high)).size:
        low, rows, high = high, left, 2.0 * high
        if high > 1e100:
            return None
    if low == high:
        low = 0.5 * high
        while not above(low).size:
            low, high = 0.5 * low, low
    while high > low * 1.001:
        middle = float(np.sqrt(low * high))
        left = above(middle)
        low, high, rows = (middle, high, left) if left.size else (low, middle, rows)
    unit = 10.0 ** (np.floor(np.log10(high)) - 1.0)
    return float(f"{np.ceil(high / unit) * unit:.2g}")


def _require_numbers(laws: fitted.FittedLaws, ids: tuple[RecordId, ...]) -> None:
    """Refuse laws that are not numbers: a fit at the edge of float64."""
    good = np.isfinite(laws.member_mean) & np.isfinite(laws.nonmember_mean)
    good &= np.isfinite(laws.member_sd) & np.isfinite(laws.nonmember_sd)
    good &= (laws.member_sd > 0.0) & (laws.nonmember_sd > 0.0)
    if laws.question != "known_others" and not good.all():
        raise InputError(
            f"the scores of {np.count_nonzero(~good)} of {len(ids)} records have no spread that "
            f"float64 resolves, first record {ids[int(np.argmin(good))]!r}: drop constant or "
            "repeated columns, or use a larger penalty."
        )


def _advantage(pair: LawPair) -> FloatArray:
    return exact(measures.advantage(pair))


def _constant(X: Any) -> tuple[str, ...]:
    """A warning where columns of X say nothing; of numbers in an array only."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub":
        return ()
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if not constant.size:
        return ()
    named = ", ".join(str(column) for column in constant[:5])
    more = f" and {constant.size - 5} more" if constant.size > 5 else ""
    return (
        f"{constant.size} of {X.shape[1]} columns of X are constant and say nothing: "
        f"{named}{more}.",
    )
