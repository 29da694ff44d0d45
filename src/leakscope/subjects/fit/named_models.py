"""Models by name, as scikit-learn fits them; penalties by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.errors import InputError
from leakscope.kernels.formulas import median_length_scale
from leakscope.results.audit import ExaminedModel
from leakscope.settings.audit import FOLDS, PENALTIES, ModelName, ModelSettings

SCORES = {
    "ridge": ("neg_mean_squared_error", "R²", "r2"),
    "kernel_ridge": ("neg_mean_squared_error", "R²", "r2"),
    "linear": ("neg_mean_squared_error", "R²", "r2"),
    "logistic": ("neg_log_loss", "accuracy", "accuracy"),
    "poisson": ("neg_mean_poisson_deviance", "D²", "d2_tweedie_score"),
}
TYPES = {
    "ridge": "Ridge",
    "linear": "LinearRegression",
    "logistic": "LogisticRegression",
    "poisson": "PoissonRegressor",
    "kernel_ridge": "KernelRidge",
}


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
    seed: int
    stand_in: bool = False

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

    @property
    def score_name(self) -> str:
        """What the cross-validated score is."""
        return SCORES[self.name][1]

    @cached_property
    def score(self) -> float:
        """The cross-validated score of the model as it is."""
        from sklearn.model_selection import cross_val_score

        scorer: Any = SCORES[self.name][2]
        if self.name == "poisson":
            from sklearn.metrics import d2_tweedie_score, make_scorer

            scorer = make_scorer(d2_tweedie_score, power=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cross_val_score(
                _estimator(self.name, self.parameters),
                self.X,
                self.y,
                cv=_folds(self.name, self.y, self.seed),
                scoring=scorer,
            )
        return float(np.mean(found))


def named_fit(
    dataset: Dataset, prepared: Dataset, settings: ModelSettings, *, seed: int
) -> NamedFit:
    """Fit the named model; ``dataset`` is as read, ``prepared`` is scaled and coded.

    Where none is named: what a person would fit, ridge for a quantity and logistic for classes.

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
            given = _by_cross_validation(name, key, X, y, parameters, seed)
            folds = _folds(name, y, seed).get_n_splits()
            chosen = f"{key} by {folds}-fold cross-validation"
        parameters = {key: float(given), **parameters}
    return NamedFit(
        name=name,
        estimator=_fitted(name, parameters, X, y),
        X=X,
        y=y,
        steps=steps,
        parameters=parameters,
        chosen=chosen,
        seed=seed,
        stand_in=settings.model is None,
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


def _estimator(name: ModelName, parameters: dict[str, float]) -> Any:
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

    return LogisticRegression(**parameters, tol=1e-7, max_iter=10_000)


def _fitted(name: ModelName, parameters: dict[str, float], X: FloatArray, y: NDArray[Any]) -> Any:
    with warnings.catch_warnings():
        # A fit that has not settled is refused with its gradient when its laws are asked for.
        warnings.simplefilter("ignore")
        return _estimator(name, parameters).fit(X, y)


def _folds(name: ModelName, y: NDArray[Any], seed: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    if name != "logistic":
        return KFold(min(FOLDS, len(y)), shuffle=True, random_state=seed)
    rarest = int(np.bincount(y).min())
    return StratifiedKFold(max(2, min(FOLDS, rarest)), shuffle=True, random_state=seed)


def _by_cross_validation(
    name: ModelName,
    key: str,
    X: FloatArray,
    y: NDArray[Any],
    parameters: dict[str, float],
    seed: int,
) -> float:
    from sklearn.model_selection import GridSearchCV

    if name == "logistic" and int(np.bincount(y).min()) < 2:
        raise InputError(
            "a class has one record only, so cross-validation cannot choose C; give --model "
            "logistic with --C."
        )
    grid = PENALTIES[name]
    start = {key: grid[0], **parameters}
    search = GridSearchCV(
        _estimator(name, start),
        {key: list(grid)},
        scoring=SCORES[name][0],
        cv=_folds(name, y, seed),
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    return float(search.best_params_[key])
