"""The fitted model that is examined, and its records: by name, from a file, or the user's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted, kernels
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.data.files import reason
from leakscope.data.models import ModelFile, read_model
from leakscope.data.sources import raw_features
from leakscope.errors import InputError
from leakscope.fitted.heads import as_head, described_by, head_of_arrays, measured
from leakscope.fitted.problem import FittedModel, NoLawsError, NotOptimalError
from leakscope.fitted.refits import class_names, innermost
from leakscope.kernels.formulas import median_length_scale
from leakscope.results.audit import ExaminedModel
from leakscope.settings.audit import PENALTIES, ModelName, ModelSettings, Scaling
from leakscope.single_fit.leave_one_out import one_step_out
from leakscope.single_fit.problem import ConvexProblem
from leakscope.subjects.handed import forms_of
from leakscope.subjects.pricing import Folds, HeldOutScores

TYPES = {
    "ridge": "Ridge",
    "linear": "LinearRegression",
    "logistic": "LogisticRegression",
    "poisson": "PoissonRegressor",
    "kernel_ridge": "KernelRidge",
}
SCALED = "the model's features are standardised: its coefficients are the optimum so"
# A head nearer to the optimum than this, by its gradient, was trained on the features as they are.
SETTLED = 1e-3
# Newton's steps settle at every penalty, but invert a Hessian; above so many coefficients L-BFGS.
NEWTON_COEFFICIENTS = 2500


@dataclass(frozen=True, eq=False)
class ModelWithRecords:
    """A fitted model with its records.

    Attributes
    ----------
    estimator
        None of a described problem.
    X, y
        The records as ``fit`` was given them.
    described
        The problem whose optimum it is.
    examined
        Which model this is, in words.
    steps
        What was done to the records, in words.
    parameters
        Penalties of a named model, given or chosen.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    described: FittedModel
    examined: ExaminedModel
    steps: tuple[str, ...] = ()
    parameters: dict[str, float] | None = None


# The user's own.


def is_problem(own: Any) -> bool:
    """Whether it says itself which problem it solves: a problem, or a linear head."""
    return isinstance(own, (ConvexProblem, FittedModel)) or as_head(own) is not None


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


def plain_parameters(model: Any) -> dict[str, Any]:
    """The estimator's own parameters, those that are plain values that JSON can hold."""
    if not hasattr(model, "get_params"):
        return {}
    plain = (bool, int, str, type(None))
    return {
        str(name): value
        for name, value in model.get_params(deep=True).items()
        if isinstance(value, plain) or (isinstance(value, float) and np.isfinite(value))
    }


def own_model(
    own: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    weight_decay: float | None = None,
    classes: bool | None = None,
    file: ModelFile | None = None,
    steps: tuple[str, ...] = (),
) -> ModelWithRecords:
    """A problem, a head, or an estimator on these records; one that is not fitted is fitted here.

    Raises
    ------
    NoLawsError
        Where no laws follow from its fit.
    InputError
        Where it is not the optimum on these records.
    """
    estimator: Any = None
    origin = "as trained by you"
    parameters: dict[str, Any] = {"weight_decay": weight_decay}
    if isinstance(own, (ConvexProblem, FittedModel)):
        described = measured(own if isinstance(own, FittedModel) else FittedModel.of(own))
        origin, parameters = "as described by you", {}
    elif is_problem(own):
        described = described_by(own, X, y, weight_decay=weight_decay, classes=classes)
    else:
        fitted_before = is_fitted(own)
        origin = "as fitted by you" if fitted_before else "fitted on all records"
        estimator = own if fitted_before else _fitted_here(own, X, y, sample_weight)
        parameters = plain_parameters(estimator)
        try:
            described = fitted.from_sklearn(estimator, X, y, sample_weight=sample_weight)
        except NotOptimalError as error:
            if fitted_before:
                raise
            raise NoLawsError(
                f"the solver of {type(innermost(own)).__name__} stopped short of the optimum; "
                "scale the features, lower tol or raise max_iter."
            ) from error
    if estimator is None:
        parameters = {"loss": described.loss, **parameters}
    examined = ExaminedModel(
        type=type(own).__name__,
        name=described.name,
        origin=origin if file is None else f"{origin} ({file.path.name})",
        parameters=parameters,
        file=None if file is None else file.path.name,
        file_sha256=None if file is None else file.sha256,
    )
    return ModelWithRecords(estimator, X, y, described, examined, steps)


def _fitted_here(estimator: Any, X: Any, y: Any, weights: Any) -> Any:
    """A copy, fitted on these records; what it raises is one sentence."""
    from sklearn.base import clone

    extra = {} if weights is None else {"sample_weight": weights}
    try:
        return _settled(clone(estimator), X, y, **extra)
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


def model_of_dataset(
    own: Any, dataset: Dataset, prepared: Dataset, settings: ModelSettings, scaling: Scaling
) -> ModelWithRecords:
    """The user's own model, or that of a file, with a dataset's records as it was fitted on them.

    They are tried as they were read and standardised; one that is not fitted takes the columns as
    they stand where it can.

    Raises
    ------
    InputError
        Where it is the optimum on neither, with the gradient; or does not fit the table.
    """
    file = None if settings.file is None else read_model(settings.file)
    name = "the model" if file is None else file.path.name
    given = [k for k in ("C", "alpha", "gamma") if getattr(settings, k) is not None]
    if given:
        raise InputError(f"{name} has its own penalty and kernel; leave out --set {given[0]}.")
    if file is not None and file.head is not None:
        own = replace(head_of_arrays(file.head, name), name=f"the head {name}")
    classes = True if dataset.task == "classification" else None
    reading = [text for text in prepared.steps if text in dataset.steps]
    first: InputError | None = None
    models: list[ModelWithRecords] = []
    for X, y, step in _records(own, dataset, prepared, scaling, name):
        try:
            model = own_model(
                own,
                X,
                y,
                weight_decay=settings.weight_decay,
                classes=classes,
                file=file,
                steps=(*reading, *step),
            )
        except NoLawsError:
            raise
        except InputError as error:
            # What is said of the records as they were read is what a person can act on.
            first = first or error
            continue
        models.append(model)
        if _gradient(model) <= SETTLED:
            break
    if not models:
        assert first is not None
        raise InputError(f"{name}: {first}") from first
    return min(models, key=_gradient)


def _gradient(model: ModelWithRecords) -> float:
    return 0.0 if model.described.away is None else model.described.away.gradient


def _records(
    own: Any, dataset: Dataset, prepared: Dataset, scaling: Scaling, name: str
) -> Iterator[tuple[Any, NDArray[Any], tuple[str, ...]]]:
    """The records as the model may take them, one way after the other, and the step in words."""
    if is_problem(own):
        y = _as_numbers(dataset.target)
    elif not is_fitted(own):
        for form in forms_of(dataset, scaling):
            yield form.X, form.y, (form.words(dataset, scaling),)
        return
    else:
        y = labels_for(ModelFile(Path(name), estimator=own), dataset)
    columns = [str(column) for column in getattr(own, "feature_names_in_", ())]
    if columns:
        yield raw_features(dataset, columns), y, ()
        return
    yield dataset.features, y, ()
    if not np.array_equal(dataset.features, prepared.features):
        yield prepared.features, y, (SCALED,)


def _as_numbers(target: NDArray[Any]) -> NDArray[Any]:
    """Numbers where all are, else the classes as text: those of digits are their numbers."""
    try:
        return np.asarray(target, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([str(value) for value in target.tolist()])


def classifies(chosen: ModelSettings) -> bool:
    """Whether the model that is named, or in a file, predicts classes."""
    if chosen.file is None:
        return chosen.named == "logistic"
    return read_model(chosen.file).classifies


def labels_for(file: ModelFile, dataset: Dataset) -> NDArray[Any]:
    """The target as a model takes it: its own classes, or numbers."""
    predicts, taken = ("classes", "a class") if file.classifies else ("a number", "a quantity")
    if file.classifies != (dataset.task == "classification"):
        raise InputError(
            f"{file.path.name} predicts {predicts}, and the target {dataset.target_name!r} is no "
            f"{taken.removeprefix('a ')}; give --task, or another target."
        )
    if not file.classifies:
        return np.asarray(dataset.target, dtype=np.float64)
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


# By name.


def named_model(
    dataset: Dataset,
    prepared: Dataset,
    settings: ModelSettings,
    codes: NDArray[np.intp] | None = None,
) -> ModelWithRecords:
    """Fit the named model; ``dataset`` is as read, ``prepared`` is scaled and coded.

    Where none is named: what a person would fit, ridge for a quantity and logistic for classes.
    ``codes`` has the number of each record's group where whole groups leave.
    """
    name = settings.named or ("logistic" if dataset.task == "classification" else "ridge")
    _require_own_options(name, settings)
    y, step = _target(name, dataset, prepared)
    steps = (*(text for text in prepared.steps if not text.startswith("target ")), *step)
    parameters: dict[str, float] = {}
    X = prepared.features
    if name == "kernel_ridge":
        scale = None if settings.gamma is not None else median_length_scale(X)
        parameters["gamma"] = settings.gamma or 0.5 / float(scale or 1.0) ** 2
    origin = "no penalty"
    if name != "linear":
        key = "C" if name == "logistic" else "alpha"
        given, origin = getattr(settings, key), f"{key} as given"
        if given is None:
            given = _by_leave_one_out(name, key, X, y, parameters, codes)
            origin = f"{key} by leave-one-{'out' if codes is None else 'group-out'}"
        parameters = {key: float(given), **parameters}
    inside = ", ".join(f"{key}={value:.4g}" for key, value in parameters.items())
    stand_in = settings.model is None
    if stand_in:
        origin = f"a stand-in that leakscope fitted because no model was given ({origin})"
    estimator = _settled(_estimator(name, parameters, _coefficients(name, X, y)), X, y)
    examined = ExaminedModel(
        type=TYPES[name],
        name=f"{TYPES[name]}({inside})",
        origin=origin,
        parameters=dict(parameters),
        stand_in=stand_in,
    )
    described = fitted.from_sklearn(estimator, X, y).in_groups(codes)
    return ModelWithRecords(estimator, X, y, described, examined, steps, parameters)


def _require_own_options(name: ModelName, settings: ModelSettings) -> None:
    own = {"logistic": ("C",), "linear": (), "kernel_ridge": ("alpha", "gamma")}.get(
        name, ("alpha",)
    )
    for option in ("C", "alpha", "gamma"):
        if getattr(settings, option) is not None and option not in own:
            has = " and ".join(f"--{each}" for each in own) or "no penalty"
            raise InputError(f"--{option} does not belong to --model {name}, which has {has}.")


def _target(
    name: ModelName, dataset: Dataset, prepared: Dataset
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The target as the model takes it, and what was done to it in words."""
    target = f"the target {dataset.target_name!r}"
    if name == "logistic":
        if dataset.task != "classification":
            raise InputError(
                f"--model logistic predicts classes, and {target} is taken as a quantity; give "
                "--task classification, or --model ridge."
            )
        classes, codes = np.unique(dataset.target.astype(str), return_inverse=True)
        shown = ", ".join(classes[:10].tolist()) + (" …" if len(classes) > 10 else "")
        return codes, (f"target taken as {len(classes)} classes: {shown}",)
    if dataset.task == "classification":
        raise InputError(
            f"--model {name} predicts a quantity, and {target} is a class; take --model logistic."
        )
    counts = name == "poisson"
    y = np.asarray(dataset.target if counts else prepared.target, dtype=np.float64)
    if counts and float(y.min()) < 0.0:
        raise InputError(
            f"--model poisson predicts counts, and {target} has {float(y.min()):g}; take --model "
            "ridge."
        )
    if float(np.ptp(y)) == 0.0:
        raise InputError(f"{target} is the same for every record.")
    steps = () if counts else prepared.steps
    return y, tuple(text for text in steps if text.startswith("target "))


def _estimator(name: ModelName, parameters: dict[str, float], coefficients: int) -> Any:
    """Not fitted yet; settled well beyond the solvers' defaults."""
    from sklearn import linear_model
    from sklearn.kernel_ridge import KernelRidge

    if name == "kernel_ridge":
        # scikit-learn and leakscope call this kernel by the same name.
        return KernelRidge(kernel=kernels.rbf().describe()["name"], **parameters)
    settled: dict[str, Any] = {}
    if name == "poisson":
        settled = {"solver": "newton-cholesky", "tol": 1e-8, "max_iter": 1000}
    elif name == "logistic":
        solver = "newton-cholesky" if coefficients <= NEWTON_COEFFICIENTS else "lbfgs"
        settled = {"solver": solver, "tol": 1e-7, "max_iter": 10_000}
    return getattr(linear_model, TYPES[name])(**parameters, **settled)


def _coefficients(name: ModelName, X: FloatArray, y: NDArray[Any]) -> int:
    classes = len(np.unique(y)) if name == "logistic" else 2
    return int(X.shape[1]) * (classes if classes > 2 else 1)


def _settled(estimator: Any, X: Any, y: NDArray[Any], **extra: Any) -> Any:
    with warnings.catch_warnings():
        # A fit that has not settled is refused with its gradient when its laws are asked for.
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, **extra)


def _by_leave_one_out(
    name: ModelName,
    key: str,
    X: FloatArray,
    y: NDArray[Any],
    parameters: dict[str, float],
    codes: NDArray[np.intp] | None,
) -> float:
    """The penalty of the grid whose answers about left-out records have the least loss."""
    if name == "logistic" and int(np.bincount(y).min()) < 2:
        raise InputError(
            "a class has one record only, so leave-one-out cannot choose C; give --model logistic "
            "with --C."
        )
    search = _estimator(name, {key: 1.0, **parameters}, _coefficients(name, X, y))
    if getattr(search, "solver", None) == "lbfgs":
        # Each fit starts from the last one, and the loss of left-out records forgives the rest.
        search.set_params(warm_start=True, tol=1e-5)

    def loss(penalty: float) -> float:
        try:
            model = fitted.from_sklearn(_settled(search.set_params(**{key: penalty}), X, y), X, y)
            return left_out_loss(model.in_groups(codes))
        except InputError:
            # With a penalty as small as this no fit settles.
            return np.inf

    # From much penalty to little.
    grid = PENALTIES[name] if key == "C" else PENALTIES[name][::-1]
    return least_loss(grid, loss)


def left_out_loss(model: FittedModel) -> float:
    """The mean loss of answers about records, or whole groups, that were left out.

    By leave-one-out from the one fit (`single_fit.leave_one_out.one_step_out`), so that a penalty
    is priced by one factorisation instead of a fit for each fold.
    """
    problem = model.problems[0] if model.codes is None else model.joint
    scores = one_step_out(problem, model.codes)[None]
    whole = Folds(np.zeros(scores.shape[:2], dtype=np.intp), 1)
    return HeldOutScores(scores, model.targets, model.loss, model.task, whole).released().error


def least_loss(grid: tuple[float, ...], loss: Callable[[float], float]) -> float:
    """Where the loss is least, going from the middle downhill: first to the left."""
    middle = len(grid) // 2
    best, least = middle, loss(grid[middle])
    for step in (-1, 1):
        while 0 <= best + step < len(grid) and (tried := loss(grid[best + step])) < least:
            best, least = best + step, tried
        if best != middle:
            break
    return grid[best]
