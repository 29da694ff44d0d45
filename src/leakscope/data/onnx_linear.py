"""A linear, logistic, softmax or Poisson regression out of an ONNX graph, as skl2onnx writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.data.onnx_models import Affine, follow, held_by, opened_graph
from leakscope.errors import InputError

Link = Literal["identity", "logistic", "softmax", "exp"]

# The operators of scikit-learn's models, and what stands for a link among the standard ones.
_MODELS = ("LinearRegressor", "LinearClassifier")
_LINKS: dict[str, Link] = {"Sigmoid": "logistic", "Softmax": "softmax", "Exp": "exp"}
_TRANSFORMS: dict[bytes, Link] = {b"LOGISTIC": "logistic", b"SOFTMAX": "softmax"}
_NAMING = ("ArgMax", "ArrayFeatureExtractor")
_KEPT = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze")
_CAN = "linear, logistic, softmax and Poisson regressions, with a scaler before them, can be read"


@dataclass(frozen=True, eq=False)
class LinearArrays:
    """What an ONNX file holds of a linear model: link(((x - offset) * scale) @ matrix + intercept).

    ``matrix`` is d x outputs, one column for two classes; ``classes`` are the labels of a
    classifier, None where a number is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.data import LinearArrays
    >>> LinearArrays(np.eye(2), np.zeros(2), "identity", None).offset is None
    True
    """

    matrix: FloatArray
    intercept: FloatArray
    link: Link
    classes: tuple[int | str, ...] | None
    offset: FloatArray | None = None
    scale: FloatArray | None = None


def read_onnx_linear(path: Path, content: bytes) -> LinearArrays:
    """The coefficients of the linear model that a graph computes; anything else is refused."""
    graph, constants, inputs = opened_graph(path, content)
    if len(inputs) != 1:
        raise InputError(
            f"{path} has {len(inputs)} inputs; export the model with one, all features together."
        )
    before, layer, current = _Before(), Affine(), inputs[0]
    link: Link = "identity"
    for node in graph.node:
        where = f"{path}: the node {node.op_type} {node.name}".rstrip()
        told = _told(node)
        if node.op_type == "Constant":
            constants[node.output[0]] = held_by(node, where)
            continue
        if current not in node.input:
            continue  # a branch that names the class, or sorts the probabilities
        if node.op_type in _LINKS:
            link = _LINKS[node.op_type]
            break
        if node.op_type in _MODELS:
            _take(layer, told, where)
            if node.op_type == "LinearClassifier":
                after = told["post_transform"].s if "post_transform" in told else b"NONE"
                link = _TRANSFORMS.get(after, link)
                break
        elif layer.matrix is None and node.op_type in ("Scaler", "Sub", "Div", "Mul", "Add"):
            before.follow(node, told, current, constants, where)
        elif node.op_type in ("Gemm", "MatMul", "Add"):
            follow(layer, node, current, constants, where)
        elif node.op_type not in _KEPT:
            if layer.matrix is not None and node.op_type in _NAMING:
                continue
            raise InputError(f"{where} cannot be read; {_CAN}.")
        current = node.output[0]
    if layer.matrix is None:
        raise InputError(f"{path} has no linear layer; {_CAN}.")
    named = (_labels(_told(node)) for node in graph.node)
    return _checked(path, layer, before, link, next(filter(None, named), None))


class _Before:
    """(x - offset) * scale, while the graph is followed to its first layer."""

    def __init__(self) -> None:
        self.offset: FloatArray | None = None
        self.scale: FloatArray | None = None

    def follow(
        self,
        node: Any,
        told: dict[str, Any],
        current: str,
        constants: dict[str, FloatArray],
        where: str,
    ) -> None:
        if node.op_type == "Scaler":
            self._shift(_floats(told, "offset", where))
            self._stretch(_floats(told, "scale", where))
            return
        other = [name for name in node.input if name != current]
        if len(other) != 1 or other[0] not in constants:
            raise InputError(f"{where} takes what is not a constant; {_CAN}.")
        if node.op_type in ("Sub", "Div") and node.input[0] != current:
            raise InputError(f"{where} turns the features around; {_CAN}.")
        amount = constants[other[0]].reshape(-1)
        if node.op_type == "Div" and not amount.all():
            raise InputError(f"{where} divides by zero; {_CAN}.")
        if node.op_type in ("Sub", "Add"):
            self._shift(amount if node.op_type == "Sub" else -amount)
        else:
            self._stretch(amount if node.op_type == "Mul" else 1.0 / amount)

    def _shift(self, amount: FloatArray) -> None:
        amount = amount if self.scale is None else amount / self.scale
        self.offset = amount if self.offset is None else self.offset + amount

    def _stretch(self, factor: FloatArray) -> None:
        self.scale = factor if self.scale is None else self.scale * factor


def _take(layer: Affine, told: dict[str, Any], where: str) -> None:
    """The coefficients of a node of the ai.onnx.ml domain: outputs x d, one after another."""
    intercept = _floats(told, "intercepts", where) if "intercepts" in told else np.zeros(1)
    flat = _floats(told, "coefficients", where)
    if flat.size % intercept.size:
        raise InputError(f"{where} has {flat.size} coefficients for {intercept.size} outputs.")
    layer.multiply(flat.reshape(intercept.size, -1).T, where)
    layer.add(intercept, where)


def _floats(told: dict[str, Any], name: str, where: str) -> FloatArray:
    if name not in told or not len(told[name].floats):
        raise InputError(f"{where} has no {name}; {_CAN}.")
    return np.array(told[name].floats, dtype=np.float64)


def _told(node: Any) -> dict[str, Any]:
    return {entry.name: entry for entry in node.attribute}


def _labels(told: dict[str, Any]) -> tuple[int | str, ...] | None:
    for name in ("classlabels_ints", "classlabels_int64s"):
        if name in told and told[name].ints:
            return tuple(int(value) for value in told[name].ints)
    if "classlabels_strings" in told and told["classlabels_strings"].strings:
        return tuple(v.decode(errors="replace") for v in told["classlabels_strings"].strings)
    return None


def _checked(
    path: Path,
    layer: Affine,
    before: _Before,
    link: Link,
    labels: tuple[int | str, ...] | None,
) -> LinearArrays:
    matrix = layer.matrix
    assert matrix is not None
    intercept = np.zeros(matrix.shape[1]) if layer.offset is None else layer.offset
    if link in ("logistic", "softmax"):
        labels = labels or tuple(range(max(2, matrix.shape[1])))
        if matrix.shape[1] == 2 and link == "softmax":
            matrix, intercept = np.diff(matrix, axis=1), np.diff(intercept)
        elif matrix.shape[1] == 2 and np.allclose(matrix[:, 0], -matrix[:, 1]):
            matrix, intercept = matrix[:, 1:], intercept[1:]  # both signs of one score
        outputs = matrix.shape[1]
        if outputs != (1 if len(labels) == 2 else len(labels)) or (
            outputs > 1 and link == "logistic"
        ):
            raise InputError(
                f"{path} scores {len(labels)} classes by {outputs} outputs, each by itself; fit "
                "and export one softmax regression."
            )
    elif labels is not None:
        raise InputError(
            f"{path} holds a classifier without probabilities; export a logistic regression, or "
            "save the model with skops."
        )
    elif matrix.shape[1] != 1:
        raise InputError(f"{path} has {matrix.shape[1]} outputs; audit the outputs one at a time.")
    parts = [matrix, intercept, before.offset, before.scale]
    if not all(part is None or np.isfinite(part).all() for part in parts):
        raise InputError(f"{path} holds numbers that are not finite.")
    features = len(matrix)
    offset, scale = (
        None if part is None else np.array(np.broadcast_to(part, (features,)))
        for part in (before.offset, before.scale)
    )
    return LinearArrays(matrix, intercept, link, labels, offset, scale)
