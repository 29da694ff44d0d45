"""Linear heads: which convex problem they solve on these records.

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
from leakscope.single_fit.optimum import distance_to_optimum, predictions_on
from leakscope.single_fit.problem import ConvexProblem, LossName
from leakscope.single_fit.responses import DENSE

# The bias is taken as not decayed where that brings the head so much nearer to its optimum.
SPARED = 0.5


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


def described_by(
    layer: Any, X: Any, y: Any, *, weight_decay: float | None = None, classes: bool | None = None
) -> FittedModel:
    """The problem that a head solves on these records.

    Parameters
    ----------
    layer
        With ``weight`` and ``bias``, or a mapping of these.
    X, y
        The records that it was trained on: its inputs, the embeddings.
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
    head = as_head(layer)
    if head is None:
        raise InputError(f"a head has a weight and a bias, and {type(layer).__name__} has none.")
    features = np.asarray(X, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != head.weight.shape[1]:
        raise InputError(
            f"{head.name} takes {head.weight.shape[1]} features, but X has "
            f"{features.shape[1] if features.ndim == 2 else 'not two dimensions'}."
        )
    loss, labels = _labels(head, np.asarray(y), classes)
    # PyTorch's mean squared error has no half in front, and ours has.
    share = 0.5 if loss == "square" else 1.0
    problems = []
    for free_bias in (False, True) if head.bias is not None else (False,):
        problem = _problem(head, features, loss, labels, 0.0, free_bias)
        decay = _decay(problem, free_bias) if weight_decay is None else share * weight_decay
        problems.append(_problem(head, features, loss, labels, decay, free_bias))
    # Some trainings spare the bias; the optimum says so.
    spares = len(problems) > 1 and _distance(problems[1]) < SPARED * _distance(problems[0])
    nearest = problems[int(spares)]
    shown = float(nearest.penalty_at(1.0)[0]) / (share * len(labels))
    spared = " (not of the bias)" if spares else ""
    how = ", found from its coefficients" if weight_decay is None else ""
    named = replace(nearest, name=f"{head.name}, weight decay {shown:.3g}{spared}{how}")
    return measured(FittedModel.of(named), weight_decay is None)


def measured(model: FittedModel, penalty_found: bool = False) -> FittedModel:
    """The model with how far each record's answer is from that of the optimum; as it is where the
    coefficients are not known."""
    released, best, gradients = [], [], []
    for problem in model.problems:
        if problem.coefficients is None or problem.X is None:
            return model
        released.append(problem.X @ problem.coefficients)
        best.append(_at_best(problem))
        starts = problem.coefficients, np.zeros_like(problem.coefficients)
        sizes = [float(np.linalg.norm(gradient(problem, theta))) for theta in starts]
        gradients.append(sizes[0] / max(sizes[1], 1e-300))
    apart = model.scores(released) - model.scores(best)
    return replace(model, away=Away(apart, max(gradients), penalty_found))


def _labels(head: Head, y: npt.NDArray[Any], classes: bool | None) -> tuple[LossName, FloatArray]:
    """The loss that a head with so many outputs has, and the labels as it wants them."""
    outputs = len(head.weight)
    values, codes = np.unique(y, return_inverse=True)
    numbers: FloatArray = codes.reshape(-1).astype(np.float64)
    if outputs == 1 and (classes is False or (classes is None and len(values) != 2)):
        try:
            return "square", np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            classes = True
    if outputs == 1 and len(values) == 2:
        return "logistic", numbers
    whole = values.dtype.kind in "iufb" and np.all(values == np.round(values.astype(float)))
    if outputs > 1 and whole and float(values[0]) >= 0.0 and float(values[-1]) < outputs:
        # Class numbers, of which some may not occur.
        return "softmax", y.astype(np.float64)
    if len(values) != outputs:
        raise InputError(
            f"{head.name} has {outputs} output{'s' * (outputs > 1)}, and the labels are "
            f"{len(values)} classes; pass class numbers from 0, or as many classes."
        )
    return "softmax", numbers


def _problem(
    head: Head, X: FloatArray, loss: LossName, y: FloatArray, decay: float, free_bias: bool
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
        classes=len(head.weight),
        coefficients=theta if loss == "softmax" else theta[:, 0],
        name=head.name,
    )


def _decay(problem: ConvexProblem, free_bias: bool) -> float:
    """The decay whose gradient cancels that of the loss, along the coefficients; zero at least."""
    theta = problem.coefficients
    assert theta is not None
    parts = slice(None, -1) if free_bias else slice(None)
    slope = gradient(problem, theta)[parts] / float(problem.sample_weights.sum())
    size = max(float(np.sum(theta[parts] ** 2)), 1e-300)
    return max(0.0, -float(np.sum(slope * theta[parts])) / size)


def _distance(problem: ConvexProblem) -> float:
    away = distance_to_optimum(problem)
    assert away is not None
    return away.relative


def _at_best(problem: ConvexProblem) -> FloatArray:
    """The predictions of the optimum: N, or N x classes; of many coefficients by L-BFGS."""
    X, theta = problem.X, problem.coefficients
    assert X is not None
    assert theta is not None
    if problem.loss != "softmax" or problem.classes * X.shape[1] <= DENSE:
        return predictions_on(problem, np.arange(problem.records))
    penalty = problem.penalty_at(1.0)[:, None]

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        at = flat.reshape(theta.shape)
        z = X @ at
        own = np.take_along_axis(z, problem.y.astype(np.intp)[:, None], axis=1)[:, 0]
        top = z.max(axis=1)
        losses = top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - own
        value = float(problem.sample_weights @ losses) + 0.5 * float(np.sum(penalty * at**2))
        return value, gradient(problem, at).ravel()

    best = optimize.minimize(
        objective,
        theta.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-6, "ftol": 1e-15},
    )
    return np.asarray(X @ best.x.reshape(theta.shape))
