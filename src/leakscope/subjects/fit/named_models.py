"""Models by name, as scikit-learn fits them; penalties by leave-one-out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted, kernels
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.errors import InputError
from leakscope.fitted.problem import FittedModel
from leakscope.kernels.formulas import median_length_scale
from leakscope.results.audit import ExaminedModel
from leakscope.settings.audit import PENALTIES, ModelName, ModelSettings
from leakscope.single_fit.leave_one_out import one_step_out
from leakscope.subjects.pricing import Folds, HeldOutScores, ReleasedError

SCORES = {"logistic": "accuracy", "poisson": "D²"}
TYPES = {
    "ridge": "Ridge",
    "linear": "LinearRegression",
    "logistic": "LogisticRegression",
    "poisson": "PoissonRegressor",
    "kernel_ridge": "KernelRidge",
}

# Newton's steps settle at every penalty, but invert a Hessian; above so many coefficients L-BFGS.
NEWTON_COEFFICIENTS = 2500


@dataclass(frozen=True, eq=False)
class NamedFit:
    """A named model, fitted: the estimator, its records, its penalty and how that was chosen."""

    name: ModelName
    estimator: Any
    X: FloatArray
    y: NDArray[Any]
    steps: tuple[str, ...]
    parameters: dict[str, float]
    chosen: str
    stand_in: bool = False
    # The number of each record's group, where whole groups leave.
    codes: NDArray[np.intp] | None = None

    @property
    def setting(self) -> str | None:
        """The name of the penalty; None where the model has none."""
        return {"logistic": "C", "linear": None}.get(self.name, "alpha")

    @property
    def examined(self) -> ExaminedModel:
        """Which model this is, in words."""
        inside = ", ".join(f"{name}={value:.4g}" for name, value in self.parameters.items())
        origin = self.chosen
        if self.stand_in:
            origin = (
                "a stand-in that leakscope fitted because no model was given "
                f"({self.chosen}, held-out {self.score_name} {self.score:.3f})"
            )
        return ExaminedModel(
            type=TYPES[self.name],
            name=f"{TYPES[self.name]}({inside})",
            origin=origin,
            parameters=dict(self.parameters),
            stand_in=self.stand_in,
        )

    @cached_property
    def described(self) -> FittedModel:
        """The convex problem that it solved."""
        return fitted.from_sklearn(self.estimator, self.X, self.y).in_groups(self.codes)

    @property
    def score_name(self) -> str:
        """What the held-out score is."""
        return SCORES.get(self.name, "R²")

    @cached_property
    def score(self) -> float:
        """The score about records, or groups, left out one at a time."""
        found = held_out(self.described)
        if found.accuracy is not None:
            return found.accuracy
        y = np.asarray(self.y, dtype=np.float64)
        guess = np.full((1, len(y)), y.mean())
        if self.name == "poisson":
            guess = np.log(guess)
        return 1.0 - found.error / _priced(self.described, guess).error


def held_out(model: FittedModel) -> ReleasedError:
    """The loss, and the share of right classes, of answers about records that were left out.

    By leave-one-out from the one fit (`single_fit.leave_one_out.one_step_out`), so that a penalty
    is priced by one factorisation instead of a fit for each fold.  Where groups leave, all of a
    group's records are left out at once: its other records would tell of each.
    """
    if model.codes is not None:
        return _priced(model, one_step_out(model.joint, model.codes)[None])
    return _priced(model, one_step_out(model.problems[0])[None])


def _priced(model: FittedModel, scores: FloatArray) -> ReleasedError:
    whole = Folds(np.zeros(scores.shape[:2], dtype=np.intp), 1)
    return HeldOutScores(scores, model.targets, model.loss, model.task, whole).released()


def named_fit(
    dataset: Dataset,
    prepared: Dataset,
    settings: ModelSettings,
    codes: NDArray[np.intp] | None = None,
) -> NamedFit:
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
    given = {"logistic": settings.C, "linear": None}.get(name, settings.alpha)
    chosen = "no penalty"
    if name != "linear":
        key = "C" if name == "logistic" else "alpha"
        chosen = f"{key} as given"
        if given is None:
            given = _by_leave_one_out(name, key, X, y, parameters, codes)
            chosen = f"{key} by leave-one-{'out' if codes is None else 'group-out'}"
        parameters = {key: float(given), **parameters}
    return NamedFit(
        name=name,
        estimator=_fitted(name, parameters, X, y),
        X=X,
        y=y,
        steps=steps,
        parameters=parameters,
        chosen=chosen,
        stand_in=settings.model is None,
        codes=codes,
    )


def with_penalty(fit: NamedFit, factor: float) -> NamedFit:
    """The same with so many times the penalty; the model must have one."""
    assert fit.setting is not None
    factor = 1.0 / factor if fit.setting == "C" else factor
    parameters = {**fit.parameters, fit.setting: factor * fit.parameters[fit.setting]}
    return replace(
        fit, parameters=parameters, estimator=_fitted(fit.name, parameters, fit.X, fit.y)
    )


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
    if name == "logistic":
        if dataset.task != "classification":
            raise InputError(
                f"--model logistic predicts classes, and the target {dataset.target_name!r} is "
                "taken as a quantity; give --task classification, or --model ridge."
            )
        classes, codes = np.unique(dataset.target.astype(str), return_inverse=True)
        shown = ", ".join(classes[:10].tolist()) + (" …" if len(classes) > 10 else "")
        return codes, (f"target taken as {len(classes)} classes: {shown}",)
    if dataset.task == "classification":
        raise InputError(
            f"--model {name} predicts a quantity, and the target {dataset.target_name!r} is a "
            "class; take --model logistic."
        )
    if name == "poisson":
        y = np.asarray(dataset.target, dtype=np.float64)
        if float(y.min()) < 0.0:
            raise InputError(
                f"--model poisson predicts counts, and the target {dataset.target_name!r} has "
                f"{float(y.min()):g}; take --model ridge."
            )
        if float(y.max()) == 0.0:
            raise InputError(f"the target {dataset.target_name!r} is zero for every record.")
        return y, ()
    y = np.asarray(prepared.target, dtype=np.float64)
    if float(np.ptp(y)) == 0.0:
        raise InputError(f"the target {dataset.target_name!r} is the same for every record.")
    return y, tuple(text for text in prepared.steps if text.startswith("target "))


def _estimator(name: ModelName, parameters: dict[str, float], coefficients: int) -> Any:
    """Not fitted yet; settled well beyond the solvers' defaults."""
    if name == "ridge":
        from sklearn.linear_model import Ridge

        return Ridge(**parameters)
    if name == "linear":
        from sklearn.linear_model import LinearRegression

        return LinearRegression()
    if name == "kernel_ridge":
        from sklearn.kernel_ridge import KernelRidge

        # scikit-learn and leakscope call this kernel by the same name.
        return KernelRidge(kernel=kernels.rbf().describe()["name"], **parameters)
    if name == "poisson":
        from sklearn.linear_model import PoissonRegressor

        return PoissonRegressor(**parameters, solver="newton-cholesky", tol=1e-8, max_iter=1000)
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if coefficients <= NEWTON_COEFFICIENTS else "lbfgs"
    return LogisticRegression(**parameters, solver=solver, tol=1e-7, max_iter=10_000)


def _coefficients(name: ModelName, X: FloatArray, y: NDArray[Any]) -> int:
    classes = len(np.unique(y)) if name == "logistic" else 2
    return int(X.shape[1]) * (classes if classes > 2 else 1)


def _settled(estimator: Any, X: FloatArray, y: NDArray[Any]) -> Any:
    with warnings.catch_warnings():
        # A fit that has not settled is refused with its gradient when its laws are asked for.
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def _fitted(name: ModelName, parameters: dict[str, float], X: FloatArray, y: NDArray[Any]) -> Any:
    return _settled(_estimator(name, parameters, _coefficients(name, X, y)), X, y)


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
            found = fitted.from_sklearn(_settled(search.set_params(**{key: penalty}), X, y), X, y)
            return held_out(found.in_groups(codes)).error
        except InputError:
            # With a penalty as small as this no fit settles.
            return np.inf

    # From much penalty to little.
    grid = PENALTIES[name] if key == "C" else PENALTIES[name][::-1]
    return least_loss(grid, loss)


def least_loss(grid: tuple[float, ...], loss: Callable[[float], float]) -> float:
    """Where the loss is least, going from the middle downhill: first to the left."""
    middle = len(grid) // 2
    best, least = middle, loss(grid[middle])
    for step in (-1, 1):
        while 0 <= best + step < len(grid) and (found := loss(grid[best + step])) < least:
            best, least = best + step, found
        if best != middle:
            break
    return grid[best]
