"""Whether an estimator is the fit without some records, with all that it learns; or that fit."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.erasure import EXPLAINED, erased
from leakscope.fitted.from_sklearn import stops_at
from leakscope.fitted.problem import FittedModel
from leakscope.fitted.refits import (
    SAME,
    Unwrapped,
    penalty_of,
    same_numbers,
    unwrapped,
)
from leakscope.results.audit import EXPOSED_ABOVE
from leakscope.results.erasure import Found, MoreExposed, Trace
from leakscope.single_fit.optimum import optimum
from leakscope.subjects.laws import MEASURES
from leakscope.subjects.subject import ErasedModel

if TYPE_CHECKING:
    from leakscope.subjects.fit.subject import Fit

# Nearer to the fit without the records than this share of their effect, and a solver that stopped
# early is what keeps it away.
NEAR = 0.3
NUMBERS = ("effect", "left", "trace", "distance", "gradient_rest", "gradient_all")
# Records that are told of as more exposed, and by how much they are at least.
TOLD, RISE = 5, 0.005


def erased_fit(fit: Fit, units: NDArray[np.intp], after: Any | None) -> ErasedModel:
    """The exact fit without some records, or groups with all of theirs, or ``after`` beside it."""
    codes = fit.described.codes
    if codes is None:
        return _without_rows(fit, units, after)
    found = _without_rows(fit, np.flatnonzero(np.isin(codes, units)), after)
    if found.lacking is None:
        return found
    # A group of which a record is left is not gone.
    whole = np.bincount(codes[found.lacking], minlength=len(fit.ids)) == np.bincount(codes)
    return replace(found, lacking=np.flatnonzero(whole))


def _without_rows(fit: Fit, rows: NDArray[np.intp], after: Any | None) -> ErasedModel:
    left = np.setdiff1d(np.arange(len(np.ravel(np.asarray(fit.y)))), rows)
    if len(left) < 2:
        raise InputError("Fewer than two records would stay; erase fewer.")
    if fit.whole.lacks_a_class(left):
        raise InputError("A whole class would leave with these records; train another model.")
    exact = _exact(fit, left)
    stay = _who_stays(fit, left, exact)
    if after is None:
        return ErasedModel(exact, made=True, found="erased", lacking=rows, told=stay)
    _require_alike(fit, after)
    traces = (*_traces(fit, left, after, exact), *_held_rows(fit, rows, after))
    if not _has_equation(fit.described):
        found, lacking, notes = _by_answers(fit, rows, after, exact)
        told: dict[str, Any] = {}
    else:
        found, lacking, told, notes = _by_coefficients(fit, rows, after)
    if found == "erased" and any(one.saw for one in traces):
        found = "traces"
    told |= {**stay, "traces": list(traces)}
    return ErasedModel(after, found=found, lacking=lacking, notes=notes, told=told)


# The exact fit.


def _exact(fit: Fit, left: NDArray[np.intp]) -> Any:
    """Everything fitted on the rows that stay, its coefficients at the optimum to rounding."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    whole, X, y = fit.whole, _safe_indexing(fit.X, left), np.ravel(np.asarray(fit.y))[left]
    if whole.learned or not _has_equation(fit.described):
        fresh = clone(fit.estimator)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh.fit(X, y, **whole._weights_by_name(left))
        except Exception as error:  # of the user's own steps: whatever they raise
            raise InputError(
                f"the estimator could not be fitted on the {len(left)} records that stay "
                f"({type(error).__name__}: {str(error).partition(chr(10))[0]})."
            ) from error
    else:
        fresh = copy.deepcopy(fit.estimator)
    weights = None if fit.sample_weight is None else np.asarray(fit.sample_weight)[left]
    if _has_equation(fit.described):
        described = _described(fresh, X, y, weights)
        inner = unwrapped(fresh, X).inner
        _set_coefficients(inner, optimum(described.problems[0]))
    return fresh


def _has_equation(described: FittedModel) -> bool:
    """Whether its coefficients are the optimum of one smooth problem over features."""
    return len(described.problems) == 1 and described.problems[0].X is not None


def _described(estimator: Any, X: Any, y: Any, weights: Any) -> FittedModel:
    """The problem as it is at these coefficients, the optimum or not."""
    return fitted.from_sklearn(estimator, X, y, sample_weight=weights, at_optimum=False)


def _set_coefficients(inner: Any, theta: FloatArray) -> None:
    """Coefficients as scikit-learn keeps them; the design's last column is the intercept."""
    rows = theta[None] if theta.ndim == 1 else theta.T
    if getattr(inner, "fit_intercept", False):
        liblinear = getattr(inner, "solver", "") == "liblinear"
        column = float(inner.intercept_scaling) if liblinear else 1.0
        inner.intercept_ = (rows[:, -1] * column).reshape(np.shape(inner.intercept_))
        rows = rows[:, :-1]
    inner.coef_ = np.ascontiguousarray(rows).reshape(np.shape(inner.coef_))


# What an estimator is.


def _require_alike(fit: Fit, after: Any) -> None:
    before, now = fit.whole.found.inner, unwrapped(after, fit.X).inner
    if type(before).__name__ != type(now).__name__:
        raise InputError(
            f"the model after is a {type(now).__name__}, and the one audited a "
            f"{type(before).__name__}; give the same kind of model."
        )


def _by_coefficients(
    fit: Fit, rows: NDArray[np.intp], after: Any
) -> tuple[Found, NDArray[np.intp] | None, dict[str, Any], tuple[str, ...]]:
    """By the optimum's own equation, on the features as the model's own steps make them."""
    problem = _described(after, fit.X, fit.y, fit.sample_weight).problems[0]
    numbers = erased(problem, rows, np.asarray(problem.coefficients))
    told: dict[str, Any] = {name: getattr(numbers, name) for name in NUMBERS}
    if numbers.lacking is not None:
        # Others may have left with them: erased all the same.
        gone = np.isin(rows, numbers.lacking).all()
        found: Found = "erased" if gone else "other records" if numbers.lacking.size else "kept"
        factor = None if found == "other records" else _penalty_factor(fit, after)
        if factor is not None:
            told |= {"penalty_factor": factor, "penalty_kept": found == "kept"}
            found = "other penalty"
        return found, numbers.lacking, told, ()
    inner = unwrapped(after, fit.X).inner
    stops = stops_at(inner, float(problem.sample_weights.sum()))
    near, tolerance = NEAR * numbers.effect, -1.0 if stops is None else stops
    early = (
        "The solver stopped early: how far the model is from either fit is its tolerance; a "
        "smaller tol leaves less."
    )
    if numbers.gradient_rest <= tolerance < numbers.gradient_all and numbers.left <= near:
        return "erased", rows, told, (early,)
    if numbers.gradient_all <= tolerance < numbers.gradient_rest and numbers.kept <= near:
        return "kept", np.zeros(0, dtype=np.intp), told, (early,)
    note = (
        "This is neither the fit without the records, nor one with them, nor one without others: "
        "either the solver stopped too far from the optimum (newton-cholesky, tol=1e-10, does "
        "not), or it was fitted on other data, with other weights, penalties or steps."
    )
    return "cannot tell", None, told, (note,)


def _penalty_factor(fit: Fit, after: Any) -> float | None:
    """What times the audited penalty the model says that it has; None where it is the same."""
    first, second = (penalty_of(unwrapped(each, fit.X).inner) for each in (fit.estimator, after))
    if first is None or second is None or fit.whole.chosen or first[0] != second[0]:
        return None
    old, new = first[1], second[1]
    if old == new or not 0.0 < min(old, new) < max(old, new) < np.inf:
        return None
    return old / new if first[0] == "C" else new / old


def _by_answers(
    fit: Fit, rows: NDArray[np.intp], after: Any, exact: Any
) -> tuple[Found, NDArray[np.intp] | None, tuple[str, ...]]:
    """Without an equation of its own: its answers beside those of either fit."""

    now, without, whole = map(fit.whole.answers, (after, exact, fit.estimator))
    effect = float(np.abs(whole - without).max())
    if np.abs(now - without).max() <= EXPLAINED * effect:
        return "erased", rows, ()
    if np.abs(now - whole).max() <= EXPLAINED * effect:
        return "kept", np.zeros(0, dtype=np.intp), ()
    return "cannot tell", None, ("Its answers match neither fit.",)


# What else learned from the records.


def _traces(fit: Fit, left: NDArray[np.intp], after: Any, exact: Any) -> list[Trace]:
    now, without = unwrapped(after, fit.X), unwrapped(exact, fit.X)
    found = _steps(fit, left, now)
    if fit.dataset.steps and any("standardised" in step for step in fit.dataset.steps):
        found.append(
            Trace(
                part="standardised features",
                saw=None,
                words="standardised with all, outside the model",
            )
        )
    if now.searched or now.penalty_chosen:
        found.append(_penalty_trace(fit.whole.found, now, without))
    return found


def _steps(fit: Fit, left: NDArray[np.intp], now: Unwrapped) -> list[Trace]:
    """Each step beside the same step fitted again, on what stays and on all."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    found = list[Trace]()
    y, given = np.ravel(np.asarray(fit.y)), fit.X
    for step in now.steps:
        name = type(step).__name__
        made = step.transform(given)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                part = clone(step).fit(_safe_indexing(given, left), y[left]).transform(given)
                every = clone(step).fit(given, y).transform(given)
        except Exception as error:  # of the user's own steps: whatever they raise
            words = f"it could not be fitted again ({type(error).__name__})"
            found.append(Trace(part=name, saw=None, words=words))
            given = made
            continue
        outcomes: tuple[tuple[bool, bool | None, str], ...] = (
            (same_numbers(part, every), False, "it is the same with and without them"),
            (same_numbers(made, part), False, "it is that of the records that stay"),
            (same_numbers(made, every), True, "it was fitted with them"),
            (True, None, "it is neither that of the records that stay nor that of all"),
        )
        saw, words = next((saw, words) for holds, saw, words in outcomes if holds)
        found.append(Trace(part=name, saw=saw, words=words))
        given = made
    return found


def _penalty_trace(before: Unwrapped, now: Unwrapped, without: Unwrapped) -> Trace:
    """A penalty that was searched for: what the search finds without the records."""
    own, fresh, old = (penalty_of(each.inner) for each in (now, without, before))
    if own is None or fresh is None:
        return Trace(part="chosen settings", saw=None, words="they were chosen by a search")
    if np.isclose(own[1], fresh[1], rtol=1e-9):
        words = f"the search finds the same {own[0]} = {own[1]:.4g} without them"
        return Trace(part=f"chosen {own[0]}", saw=False, words=words)
    saw = True if old is not None and np.isclose(own[1], old[1], rtol=1e-9) else None
    words = f"{own[0]} = {own[1]:.4g}, and without them the search finds {fresh[1]:.4g}"
    return Trace(part=f"chosen {own[0]}", saw=saw, words=words)


def _held_rows(fit: Fit, rows: NDArray[np.intp], after: Any) -> list[Trace]:
    """Training rows that the file itself holds, erased ones among them."""
    found = unwrapped(after, fit.X)
    design = found.design
    design = design.toarray() if hasattr(design, "toarray") else np.asarray(design)
    if design.dtype.kind not in "fiub":
        return []
    told = list[Trace]()
    for name, value in vars(found.inner).items():
        array = np.asarray(value) if isinstance(value, np.ndarray) else None
        if array is None or array.ndim != 2 or array.shape[1] != design.shape[1]:
            continue
        if array.dtype.kind not in "fiub" or len(array) < 2:
            continue
        inside = [bool((np.abs(array - design[row]).max(axis=1) <= SAME).any()) for row in rows]
        if any(inside):
            words = f"{sum(inside)} of the erased records stand in {name}, as they were"
            told.append(Trace(part=f"{type(found.inner).__name__}.{name}", saw=True, words=words))
    return told


# Who stays.


def _who_stays(fit: Fit, left: NDArray[np.intp], exact: Any) -> dict[str, Any]:
    """The advantage of those who stay before and after, over the same question."""
    from sklearn.utils import _safe_indexing

    question = {name: fit.settings[name] for name in ("question", "fraction", "observes")}
    if question["question"] == "known_others" or not isinstance(fit.described, FittedModel):
        return {}
    weights = None if fit.sample_weight is None else np.asarray(fit.sample_weight)[left]
    y = np.ravel(np.asarray(fit.y))[left]
    later = _described(exact, _safe_indexing(fit.X, left), y, weights)
    stay = left
    if fit.described.codes is not None:
        stay, codes = np.unique(fit.described.codes[left], return_inverse=True)
        later = later.in_groups(codes.reshape(-1).astype(np.intp))
    pairs = [
        fitted.laws_of(replace(model, whole=None), **question).law_pair()
        for model in (fit.described, later)
    ]
    before, now = MEASURES["advantage"](pairs[0])[stay], MEASURES["advantage"](pairs[1])
    rise = now - before
    first = [row for row in np.argsort(-rise, kind="stable")[:TOLD].tolist() if rise[row] >= RISE]
    return {
        "exposed_before": int(np.count_nonzero(before >= EXPOSED_ABOVE)),
        "exposed_after": int(np.count_nonzero(now >= EXPOSED_ABOVE)),
        "more_exposed": [
            MoreExposed(
                record_id=fit.ids[int(stay[row])], before=float(before[row]), after=float(now[row])
            )
            for row in first
        ],
    }
