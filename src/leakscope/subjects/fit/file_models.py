"""A model from a file beside the data that it was fitted on; its optimum is its proof."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.data.files import reason
from leakscope.data.models import ModelFile, read_model
from leakscope.data.sources import raw_features
from leakscope.errors import InputError
from leakscope.fitted.heads import described_by, head_of_arrays
from leakscope.fitted.problem import FittedModel, NoLawsError, NotOptimalError
from leakscope.fitted.refits import class_names, innermost
from leakscope.results.audit import ExaminedModel
from leakscope.settings.audit import ModelSettings, Scaling
from leakscope.subjects.handed import forms_of

FITTED_HERE, FITTED_BY_YOU = "fitted on all records", "as fitted by you"
SCALED = "the model's features are standardised: its coefficients are the optimum so"


def classifies(chosen: ModelSettings) -> bool:
    """Whether the model that is named, or in a file, predicts classes."""
    if chosen.file is None:
        return chosen.named == "logistic"
    return read_model(chosen.file).classifies


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model out of a file with the records that it is the optimum of."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    described: FittedModel
    examined: ExaminedModel
    steps: tuple[str, ...]


def is_fitted(estimator: Any) -> bool:
    """Whether it has learned from records already."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    # A Gaussian process answers without a fit, from its prior.
    inner = innermost(estimator)
    prior = any(name.startswith("GaussianProcess") for name in class_names(inner))
    return not prior or hasattr(inner, "X_train_") or hasattr(inner, "base_estimator_")


def fitted_here(estimator: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """A copy of an estimator, fitted on these records; what it raises is one sentence."""
    from sklearn.base import clone

    extra = {} if weights is None else {"sample_weight": weights}
    try:
        with warnings.catch_warnings():
            # A fit that has not settled is seen by its gradient.
            warnings.simplefilter("ignore")
            return clone(estimator).fit(X, y, **extra)
    except InputError:
        raise
    except Exception as error:  # of the user's own steps: whatever they raise
        what, remedy = reason(error), ""
        if "could not convert string" in what:
            remedy = "; it takes no text: put an encoder before it, in a pipeline"
        raise InputError(
            f"{type(estimator).__name__} could not be fitted on these records "
            f"({type(error).__name__}: {what}){remedy}."
        ) from error


def described_as(origin: str, model: Any, X: Any, y: Any, weights: Any = None) -> FittedModel:
    """The problem that an estimator solved; one that was fitted here and is no optimum has none."""
    try:
        return fitted.from_sklearn(model, X, y, sample_weight=weights)
    except NotOptimalError as error:
        if origin != FITTED_HERE:
            raise
        raise NoLawsError(
            f"the solver of {type(innermost(model)).__name__} stopped short of the optimum; scale "
            "the features, lower tol or raise max_iter."
        ) from error


def file_fit(
    dataset: Dataset,
    prepared: Dataset,
    file: ModelFile,
    settings: ModelSettings,
    *,
    scaling: Scaling = "none",
) -> FileFit:
    """The model with its records, as they were read or standardised, whichever it was fitted on.

    One that is not fitted is fitted here, on the columns as they stand where it takes them.

    Raises
    ------
    InputError
        Where it is the optimum on neither, with the gradient; or the file does not fit the table.
    """
    if settings.gamma is not None:
        raise InputError("--set gamma belongs to --model kernel_ridge; a file has its own.")
    if file.head is not None:
        return _head_fit(dataset, prepared, file, settings)
    if settings.C is not None or settings.alpha is not None:
        raise InputError(f"{file.path.name} has its own penalty; leave out --set C and alpha.")
    first: InputError | None = None
    for X, y, step in _records(dataset, prepared, file, scaling):
        try:
            estimator = file.estimator
            if not is_fitted(estimator):
                estimator = fitted_here(estimator, X, y)
            described = described_as(_origin(file), estimator, X, y)
        except NoLawsError:
            raise
        except InputError as error:
            # What is said of the records as they were read is what a person can act on.
            first = first or error
            continue
        told = [text for text in prepared.steps if text in dataset.steps]
        examined = _examined(file, estimator, described)
        return FileFit(estimator, X, y, described, examined, (*told, *step))
    assert first is not None
    raise InputError(f"{file.path.name}: {first}") from first


# A head nearer to the optimum than this, by its gradient, was trained on the features as they are.
SETTLED = 1e-3


def _head_fit(
    dataset: Dataset, prepared: Dataset, file: ModelFile, settings: ModelSettings
) -> FileFit:
    """A linear head with its records, as they were read or standardised, whichever is nearer."""
    assert file.head is not None
    if settings.C is not None or settings.alpha is not None:
        raise InputError(f"the penalty of {file.path.name} is its --set weight_decay.")
    head = replace(head_of_arrays(file.head, file.path.name), name=f"the head {file.path.name}")
    y = _as_numbers(dataset.target)
    classes = True if dataset.task == "classification" else None
    found: list[tuple[FloatArray, FittedModel, tuple[str, ...]]] = []
    for X, step in _features(dataset, prepared, file):
        described = described_by(head, X, y, weight_decay=settings.weight_decay, classes=classes)
        found.append((X, described, step))
        if described.away is None or described.away.gradient <= SETTLED:
            break
    X, described, step = min(found, key=lambda one: one[1].away.gradient if one[1].away else 0.0)
    told = [text for text in prepared.steps if text in dataset.steps]
    examined = ExaminedModel(
        type="Linear",
        name=described.name,
        origin=f"as trained by you ({file.path.name})",
        parameters={"loss": described.loss, "weight_decay": settings.weight_decay},
        file=file.path.name,
        file_sha256=file.sha256,
    )
    return FileFit(None, X, y, described, examined, (*told, *step))


def _as_numbers(target: NDArray[Any]) -> NDArray[Any]:
    """Numbers where all are, else the classes as text: those of digits are their numbers."""
    try:
        return np.asarray(target, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([str(value) for value in target.tolist()])


def _records(
    dataset: Dataset, prepared: Dataset, file: ModelFile, scaling: Scaling
) -> Iterator[tuple[Any, NDArray[Any], tuple[str, ...]]]:
    """The records as the model may take them, one way after the other, and the step in words."""
    if not is_fitted(file.estimator):
        for form in forms_of(dataset, scaling):
            yield form.X, form.y, (form.words(dataset, scaling),)
        return
    y = labels_for(file, dataset)
    for X, step in _features(dataset, prepared, file):
        yield X, y, step


def _features(
    dataset: Dataset, prepared: Dataset, file: ModelFile
) -> list[tuple[Any, tuple[str, ...]]]:
    names = [str(name) for name in getattr(file.estimator, "feature_names_in_", ())]
    if names:
        return [(raw_features(dataset, names), ())]
    found: list[tuple[Any, tuple[str, ...]]] = [(dataset.features, ())]
    if not np.array_equal(dataset.features, prepared.features):
        found.append((prepared.features, (SCALED,)))
    return found


def labels_for(file: ModelFile, dataset: Dataset) -> NDArray[Any]:
    """The target as the model of a file takes it: its own classes, or numbers."""
    if not file.classifies:
        if dataset.task == "classification":
            raise InputError(
                f"{file.path.name} predicts a number, and the target {dataset.target_name!r} is a "
                "class; leave out --task classification."
            )
        return np.asarray(dataset.target, dtype=np.float64)
    if dataset.task != "classification":
        raise InputError(
            f"{file.path.name} predicts classes, and the target {dataset.target_name!r} is taken "
            "as a quantity; give --task classification."
        )
    classes = np.asarray(getattr(file.estimator, "classes_", ()))
    known = {str(label): label for label in classes.tolist()}
    if classes.dtype.kind in "iuf":
        known.update({f"{float(label):g}": label for label in classes.tolist()})
    texts = [str(value) for value in dataset.target.tolist()]
    for row, text in enumerate(texts):
        if text not in known:
            raise InputError(
                f"{file.path.name} knows the classes {', '.join(map(str, classes.tolist()[:10]))}, "
                f"and record {dataset.record_ids[row]!r} has {text!r}."
            )
    return np.array([known[text] for text in texts], dtype=classes.dtype)


def _origin(file: ModelFile) -> str:
    return FITTED_BY_YOU if is_fitted(file.estimator) else FITTED_HERE


def _examined(file: ModelFile, estimator: Any, described: FittedModel) -> ExaminedModel:
    origin = _origin(file)
    if file.sha256 is not None:
        origin = f"{origin} ({file.path.name})"
    return ExaminedModel(
        type=type(estimator).__name__,
        name=described.name,
        origin=origin,
        parameters=plain_parameters(estimator),
        file=None if file.sha256 is None else file.path.name,
        file_sha256=file.sha256,
    )


def plain_parameters(model: Any) -> dict[str, Any]:
    """The estimator's own parameters, those that are plain values that JSON can hold."""
    if not hasattr(model, "get_params"):
        return {}
    return {
        str(name): value
        for name, value in model.get_params(deep=True).items()
        if value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and bool(np.isfinite(value)))
    }
