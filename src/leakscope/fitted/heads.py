"""Linear heads, and fits of other libraries: which convex problem they solve on these records.

A head is a weight and a bias, as PyTorch's ``Linear`` has them, and the weight decay of its
training.  It need not be the optimum: the laws are those of the optimum, and how far the head's
answers are from it is kept for every record (`problem.Away`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.erasure import gradient
from leakscope.fitted.problem import Away, FittedModel
from leakscope.fitted.refits import class_names
from leakscope.single_fit.losses import label_log_odds, tweedie
from leakscope.single_fit.optimum import distance_to_optimum, predictions_on
from leakscope.single_fit.problem import ConvexProblem, LossName
from leakscope.single_fit.responses import DENSE

# The bias is taken as not decayed where that brings the head so much nearer to its optimum.
SPARED = 0.5
# Families of statsmodels by the name of their class, with the link that makes their loss convex.
_FAMILIES: dict[str, tuple[LossName, str]] = {
    "Gaussian": ("square", "Identity"),
    "Binomial": ("logistic", "Logit"),
    "Poisson": ("poisson", "Log"),
    "Gamma": (tweedie(2.0), "Log"),
}
# Models of statsmodels that are no generalised linear model by name.
_MODELS: dict[str, LossName] = {
    "OLS": "square",
    "WLS": "square",
    "Logit": "logistic",
    "Poisson": "poisson",
}


@dataclass(frozen=True, eq=False)
class Head:
    """A linear layer: answers are X weight' + bias.

    ``weight`` is outputs x features; ``bias`` has one number for each output, or is None.
    """

    weight: FloatArray
    bias: FloatArray | None
    name: str = "a linear head"

    def __post_init__(self) -> None:
        weight = np.atleast_2d(np.asarray(self.weight, dtype=np.float64))
        bias = None if self.bias is None else np.ravel(np.asarray(self.bias, dtype=np.float64))
        if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
            raise InputError(
                f"{self.name} must have a weight of outputs x features and one bias for each "
                f"output, but their shapes are {weight.shape} and "
                f"{'none' if bias is None else bias.shape}."
            )
        if not np.isfinite(weight).all() or not (bias is None or np.isfinite(bias).all()):
            raise InputError(f"{self.name} has a weight or a bias that is not a finite number.")
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)


def as_head(thing: Any) -> Head | None:
    """A layer with ``weight`` and ``bias``, or a mapping of these, as a head; else None."""
    if isinstance(thing, Head):
        return thing
    if isinstance(thing, Mapping):
        return head_of_arrays({str(name): _array(value) for name, value in thing.items()}, "a head")
    if "Linear" in class_names(thing) and hasattr(thing, "in_features"):
        bias = getattr(thing, "bias", None)
        return Head(_array(thing.weight), None if bias is None else _array(bias))
    return None


def head_of_arrays(arrays: Mapping[str, npt.NDArray[Any]], where: str) -> Head:
    """The one weight and the one bias of a state_dict or a file, under any names that end so."""
    weights = [name for name in arrays if name.rpartition(".")[2] == "weight"]
    biases = [name for name in arrays if name.rpartition(".")[2] == "bias"]
    if len(weights) != 1 or len(biases) > 1 or len(arrays) != len(weights) + len(biases):
        raise InputError(
            f"{where} must hold one weight and one bias, those of a linear head, but it holds "
            f"{', '.join(sorted(arrays)[:6]) or 'nothing'}; save the head alone."
        )
    for name in (*weights, *biases):
        if arrays[name].dtype.kind not in "fiu":
            raise InputError(f"{where}: {name} holds {arrays[name].dtype} values, not numbers.")
    return Head(arrays[weights[0]], arrays[biases[0]] if biases else None)


def _array(value: Any) -> npt.NDArray[Any]:
    """A tensor, wherever it is, or an array."""
    for step in ("detach", "cpu", "double", "numpy"):
        value = getattr(value, step)() if hasattr(value, step) else value
    return np.asarray(value)


def is_statsmodels(thing: Any) -> bool:
    """Whether this is the result of a fit of statsmodels, by what it holds."""
    held = getattr(thing, "model", None)
    return hasattr(thing, "params") and hasattr(held, "exog") and hasattr(held, "endog")


def solves_convex(thing: Any) -> bool:
    """Whether it is a head, or a fit of statsmodels."""
    return as_head(thing) is not None or is_statsmodels(thing)


def described_by(
    thing: Any, X: Any, y: Any, *, weight_decay: float | None = None, classes: bool | None = None
) -> FittedModel:
    """The problem that a head, or a fit of statsmodels, solves on these records.

    Parameters
    ----------
    thing
        A layer, a mapping of its arrays, or results of statsmodels.
    X, y
        The records that it was trained on: for a head its inputs, the embeddings.
    weight_decay
        Of the training's optimiser: the penalty is ``weight_decay`` times the sum of squares over 2
        beside the mean loss, as PyTorch's SGD and Adam have it.  Left out, the one that fits the
        coefficients best is found.
    classes
        Whether y are classes, of a head with one output; where left out, two values are.

    Returns
    -------
    FittedModel
        With how far each record's answer is from the optimum's.
    """
    if is_statsmodels(thing):
        return measured(_of_results(thing, np.asarray(y), weight_decay), weight_decay is None)
    head = as_head(thing)
    assert head is not None
    features = np.asarray(X, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != head.weight.shape[1]:
        raise InputError(
            f"{head.name} takes {head.weight.shape[1]} features, but X has "
            f"{features.shape[1] if features.ndim == 2 else 'not two dimensions'}."
        )
    loss, labels, outputs = _labels(head, np.asarray(y), classes)
    # PyTorch's mean squared error has no half in front, and ours has.
    share = 0.5 if loss == "square" else 1.0
    found = []
    for free in (False, True) if head.bias is not None else (False,):
        problem = _problem(head, features, loss, labels, outputs, 0.0, free)
        decay = _decay(problem, free) if weight_decay is None else share * weight_decay
        found.append(_problem(head, features, loss, labels, outputs, decay, free))
    # Some trainings spare the bias; the optimum says so.
    nearest = found[0]
    if len(found) > 1 and _distance(found[1]) < SPARED * _distance(found[0]):
        nearest = found[1]
    shown = float(nearest.penalty_at(1.0)[0]) / (share * len(labels))
    spared = " (not of the bias)" if nearest is not found[0] else ""
    how = ", found from its coefficients" if weight_decay is None else ""
    named = replace(nearest, name=f"{head.name}, weight decay {shown:.3g}{spared}{how}")
    return measured(FittedModel.of(named), weight_decay is None)


def measured(model: FittedModel, penalty_found: bool = False) -> FittedModel:
    """The model with how far each record's answer is from that of the optimum; as it is where the
    coefficients are not known."""
    if any(problem.coefficients is None or problem.X is None for problem in model.problems):
        return model
    there, best, gradients = [], [], []
    for problem in model.problems:
        assert problem.X is not None
        assert problem.coefficients is not None
        there.append(problem.X @ problem.coefficients)
        best.append(_at_best(problem))
        starts = problem.coefficients, np.zeros_like(problem.coefficients)
        sizes = [float(np.linalg.norm(gradient(problem, theta))) for theta in starts]
        gradients.append(sizes[0] / max(sizes[1], 1e-300))
    if model.loss == "softmax":
        scores = [label_log_odds(z, model.targets) for z in (there[0], best[0])]
    else:
        scores = [model.sign * np.choose(model.own, z) for z in (there, best)]
    return replace(model, away=Away(scores[0] - scores[1], max(gradients), penalty_found))


def _labels(
    head: Head, y: npt.NDArray[Any], classes: bool | None
) -> tuple[LossName, FloatArray, int]:
    """The loss that a head with so many outputs has, the labels as it wants them, and outputs."""
    outputs = len(head.weight)
    values, codes = np.unique(y, return_inverse=True)
    if outputs == 1 and (classes is False or (classes is None and len(values) != 2)):
        try:
            return "square", np.asarray(y, dtype=np.float64), 1
        except (TypeError, ValueError):
            raise InputError(
                f"{head.name} has one output, and the labels are {len(values)} classes."
            ) from None
    codes = codes.reshape(-1)
    if outputs == 1:
        if len(values) != 2:
            raise InputError(f"{head.name} has one output, and there are {len(values)} classes.")
        return "logistic", codes.astype(np.float64), 1
    whole = values.dtype.kind in "iufb" and np.all(values == np.round(values.astype(float)))
    if whole and float(values[0]) >= 0.0 and float(values[-1]) < outputs:
        # Class numbers, of which some may not occur.
        return "softmax", y.astype(np.float64), outputs
    if len(values) != outputs:
        raise InputError(
            f"{head.name} has {outputs} outputs, and the labels are {len(values)} classes; pass "
            "class numbers from 0, or as many classes."
        )
    return "softmax", codes.astype(np.float64), outputs


def _problem(
    head: Head,
    X: FloatArray,
    loss: LossName,
    y: FloatArray,
    outputs: int,
    decay: float,
    free_bias: bool,
) -> ConvexProblem:
    design, theta = X, head.weight.T
    penalty = np.full(X.shape[1], decay)
    if head.bias is not None:
        design = np.column_stack([X, np.ones(len(X))])
        theta = np.vstack([theta, head.bias])
        penalty = np.append(penalty, 0.0 if free_bias else decay)
    return ConvexProblem(
        y=y,
        loss=loss,
        X=design,
        penalty=penalty,
        penalty_per_record=True,
        classes=outputs,
        coefficients=theta if loss == "softmax" else theta[:, 0],
        name=head.name,
    )


def _decay(problem: ConvexProblem, free_bias: bool) -> float:
    """The decay whose gradient cancels that of the loss, along the coefficients; zero at least."""
    theta = problem.coefficients
    assert theta is not None
    parts = slice(None, -1) if free_bias else slice(None)
    slope = gradient(problem, theta)[parts] / float(problem.sample_weights.sum())
    return max(
        0.0, -float(np.sum(slope * theta[parts])) / max(float(np.sum(theta[parts] ** 2)), 1e-300)
    )


def _distance(problem: ConvexProblem) -> float:
    found = distance_to_optimum(problem)
    assert found is not None
    return found.relative


def _at_best(problem: ConvexProblem) -> FloatArray:
    """The predictions of the optimum: N, or N x classes."""
    X, theta = problem.X, problem.coefficients
    assert X is not None
    assert theta is not None
    if problem.loss != "softmax" or problem.classes * X.shape[1] <= DENSE:
        return predictions_on(problem, np.arange(problem.records))
    codes, penalty = problem.y.astype(np.intp), problem.penalty_at(1.0)[:, None]
    rows, weight = np.arange(problem.records), problem.sample_weights

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        at = flat.reshape(theta.shape)
        z = X @ at
        top = z.max(axis=1)
        total = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
        value = float(weight @ (total - z[rows, codes])) + 0.5 * float(np.sum(penalty * at**2))
        return value, gradient(problem, at).ravel()

    found = optimize.minimize(
        objective,
        theta.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-6, "ftol": 1e-15},
    )
    return np.asarray(X @ found.x.reshape(theta.shape))


def _of_results(results: Any, y: npt.NDArray[Any], weight_decay: float | None) -> FittedModel:
    """The problem of a fit of statsmodels, which holds its own design."""
    model = results.model
    kind = type(model).__name__
    loss = _loss_of(model, kind)
    design = np.asarray(model.exog, dtype=np.float64)
    labels = np.asarray(model.endog, dtype=np.float64)
    theta = np.asarray(results.params, dtype=np.float64)
    if labels.ndim != 1 or design.ndim != 2 or theta.shape != design.shape[1:]:
        raise InputError(f"This {kind} has more than one output; audit them one at a time.")
    if len(y) != len(labels):
        raise InputError(
            f"This {kind} was fitted on {len(labels)} records, and {len(y)} were given; pass the "
            "records that it was fitted on, in the same order."
        )
    _require_same(labels, y, kind)
    if np.any(np.asarray(getattr(model, "offset", 0.0) or 0.0)):
        raise InputError(f"This {kind} has an offset, which is not covered; fit it without.")
    weights = np.ravel(np.asarray(model.weights if kind == "WLS" else 1.0, dtype=np.float64))
    freq = getattr(model, "freq_weights", None)
    weights = np.broadcast_to(weights if freq is None else np.ravel(freq), labels.shape)
    family = f"{type(model.family).__name__}, " if hasattr(model, "family") else ""
    regular = "Regularized" in "".join(class_names(results))
    level = 0.0 if weight_decay is None else float(weight_decay)
    problem = ConvexProblem(
        y=labels,
        loss=loss,
        X=design,
        penalty=np.full(design.shape[1], level),
        weights=np.array(weights),
        penalty_per_record=True,
        coefficients=theta,
        name=kind,
    )
    if regular and weight_decay is None:
        level = _decay(problem, False)
        problem = replace(problem, penalty=np.full(design.shape[1], level))
    said = f"penalty {level:.3g}" if level else "no penalty"
    return FittedModel.of(replace(problem, name=f"{kind} of statsmodels ({family}{said})"))


def _loss_of(model: Any, kind: str) -> LossName:
    family = getattr(model, "family", None)
    if family is None:
        if kind not in _MODELS:
            raise InputError(
                f"{kind} of statsmodels is not covered; {', '.join(_MODELS)} and GLM are. Give the "
                "training as a function train(X, y, seed) to have a few models of it."
            )
        return _MODELS[kind]
    name, link = type(family).__name__, type(getattr(family, "link", None)).__name__
    found = _FAMILIES.get(name)
    if found is None or link.lower() != found[1].lower():
        known = ", ".join(f"{one} with {pair[1]}" for one, pair in _FAMILIES.items())
        raise InputError(
            f"A GLM of the family {name} with the link {link} is not covered; {known} are. Give "
            "the training as a function train(X, y, seed) to have a few models of it."
        )
    return found[0]


def _require_same(own: FloatArray, given: npt.NDArray[Any], kind: str) -> None:
    """Refuse labels that are not those of the fit."""
    try:
        numbers = np.ravel(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        numbers = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.float64)
    wrong = ~np.isclose(own, numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"This {kind} was fitted on other labels than these: row {row} has {given[row]}, and "
            f"the fit {own[row]:g}; pass the records that it was fitted on, in the same order."
        )
