"""The graph of an ONNX file as arrays; anything else is refused with its name.

Two kinds are read: Gemm, Relu, Gemm, which is a two-layer network; and a linear, logistic, softmax
or Poisson regression, as skl2onnx writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.files import printable, told_as
from leakscope.errors import InputError, required

# They leave the numbers of a batch of vectors as they are, where _require_harmless finds it so.
_SHAPES = ("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Dropout")

# The operators of the standard; another domain may call anything Relu.
_STANDARD = ("", "ai.onnx")

# TensorProto's numbers of float32 and float64: a cast to anything else rounds.
_FLOATS = (1, 11)


class Affine:
    """x @ matrix + offset, while the graph is followed; ``matrix`` is None before the first."""

    def __init__(self) -> None:
        self.matrix: FloatArray | None = None
        self.offset: FloatArray | None = None
        # What a Reshape before the first layer says of the inputs.
        self.inputs: int | None = None

    @property
    def width(self) -> int | None:
        """How many numbers a record has here, where that is known."""
        return self.inputs if self.matrix is None else int(self.matrix.shape[1])

    def multiply(self, factor: FloatArray, where: str) -> None:
        """Follow it by a product with a matrix."""
        if factor.ndim == 1:
            factor = factor[:, None]
        if factor.ndim != 2 or self.width not in (None, len(factor)):
            raise InputError(f"{where} does not fit the layer before it.")
        if self.offset is not None:
            self.offset = self.offset @ factor
        self.matrix = factor if self.matrix is None else self.matrix @ factor

    def add(self, term: FloatArray, where: str) -> None:
        """Follow it by a sum with a constant."""
        if self.matrix is None:
            raise InputError(f"{where} shifts the inputs before the first layer.")
        try:
            shift = np.broadcast_to(term.reshape(-1), (self.matrix.shape[1],))
        except ValueError:
            raise InputError(f"{where} does not fit the layer before it.") from None
        self.offset = shift.copy() if self.offset is None else self.offset + shift


def opened_graph(
    path: Path, content: bytes | None = None
) -> tuple[Any, dict[str, FloatArray], list[str]]:
    """The graph of an ONNX file, its numeric constants, and the names of what is put in.

    ``content`` is what the file holds, where it was read already.
    """
    onnx = required("onnx", "Reading an .onnx file")
    with told_as(f"{path} is not an ONNX file"):
        read = path.read_bytes() if content is None else content
        graph = onnx.load_model_from_string(read).graph
        constants = {}
        for tensor in graph.initializer:
            if tensor.data_type != onnx.TensorProto.STRING:
                constants[tensor.name] = _array(tensor, str(path))
    return graph, constants, [value.name for value in graph.input if value.name not in constants]


def _array(tensor: Any, where: str) -> FloatArray:
    """The numbers of a tensor that is in the file itself, of which the digest is."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL or len(tensor.external_data):
        raise InputError(f"{where} keeps its weights in another file; save them inside.")
    found = numpy_helper.to_array(tensor)
    if not found.size:
        raise InputError(f"{where} has an array without numbers.")
    return _numbers(found)


def held_by(node: Any, where: str) -> FloatArray:
    """The array of a node that is a constant."""
    told = _told(node)
    with told_as(f"{where} holds no array"):
        if "value" in told:
            return _array(told["value"].t, where)
        for name in ("value_float", "value_int", "value_floats", "value_ints"):
            if name in told:
                found = told[name]
                kept = {"value_float": [found.f], "value_int": [found.i]}
                return _numbers(np.asarray(kept.get(name, [*found.floats, *found.ints])))
    raise InputError(f"{where} holds no array of numbers.")


def _require_outputs(node: Any, where: str) -> None:
    if not node.output or not node.output[0]:
        raise InputError(f"{where} has no output.")


def read_onnx(path: Path) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """w (k x d), b (k), v (outputs x k) and the output bias of a Gemm, Relu, Gemm graph."""
    graph, constants, inputs = opened_graph(path)
    if not graph.node or len(inputs) != 1 or len(graph.output) != 1:
        raise InputError(
            f"{path} must have one input, one output and some layers, but it has {len(inputs)}, "
            f"{len(graph.output)} and {len(graph.node)}."
        )
    layers = [Affine()]
    current = inputs[0]
    squeezed = ""
    for node in graph.node:
        where = f"{path}: the node {node.op_type} {node.name}".rstrip()
        _require_outputs(node, where)
        if node.domain not in _STANDARD:
            raise InputError(
                f"{where} is of the domain {printable(node.domain)[:60]}, whose operators are not "
                "the standard's; export the network with standard ones."
            )
        if node.op_type == "Constant":
            constants[node.output[0]] = held_by(node, where)
        elif node.op_type == "Transpose" and node.input and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]].T
        elif list(node.input).count(current) != 1:
            raise InputError(f"{where} is not in one line with the layers before it.")
        elif squeezed and node.op_type not in ("Identity", "Squeeze", "Unsqueeze"):
            raise InputError(f"{where} stands after the shape was changed by {squeezed}.")
        else:
            if node.op_type == "Relu":
                if layers[-1].matrix is None:
                    raise InputError(f"{where} stands where a linear layer is needed.")
                layers.append(Affine())
            elif node.op_type in _SHAPES:
                _require_harmless(layers[-1], node, constants, where)
                squeezed = node.op_type if "squeeze" in node.op_type.lower() else squeezed
            else:
                follow(layers[-1], node, current, constants, where)
            current = node.output[0]
    if current != graph.output[0].name:
        raise InputError(
            f"{path}: the output {graph.output[0].name} is not that of the last layer."
        )
    if len(layers) != 2 or layers[1].matrix is None:
        count = sum(layer.matrix is not None for layer in layers)
        raise InputError(
            f"{path} has {count} linear layers with {len(layers) - 1} ReLU activations; the theory "
            "covers two layers with one ReLU between them."
        )
    hidden, output = layers
    assert hidden.matrix is not None
    assert output.matrix is not None
    if hidden.offset is None:
        raise InputError(f"{path}: the hidden layer has no bias; it must have one.")
    return hidden.matrix.T, hidden.offset, output.matrix.T, output.offset


def _require_harmless(
    layer: Affine, node: Any, constants: dict[str, FloatArray], where: str
) -> None:
    """Refuse what would change a record's numbers, or mix them with another record's."""
    attributes = _told(node)
    if node.op_type == "Cast":
        if "to" not in attributes or attributes["to"].i not in _FLOATS:
            raise InputError(f"{where} rounds the numbers to another type.")
    elif node.op_type == "Flatten":
        if "axis" in attributes and attributes["axis"].i != 1:
            raise InputError(f"{where} flattens the batch into one.")
    elif node.op_type == "Dropout":
        mode = constants.get(node.input[2]) if len(node.input) > 2 else None
        if len(node.input) > 2 and node.input[2] and (mode is None or np.any(mode != 0)):
            raise InputError(f"{where} drops numbers, as in training; export for inference.")
    elif node.op_type == "Reshape":
        shape = constants.get(node.input[1]) if len(node.input) == 2 else None
        told = [] if shape is None else np.ravel(shape).tolist()
        own = layer.width
        if len(told) != 2 or told[0] not in (-1, 0) or (told[0] == -1 and told[1] < 1):
            raise InputError(f"{where} must keep one row for each record: [-1, width] or [0, -1].")
        if told[1] > 0:
            if own not in (None, int(told[1])):
                raise InputError(f"{where} makes {told[1]:g} numbers of each record's {own}.")
            if layer.matrix is None:
                layer.inputs = int(told[1])


def follow(
    layer: Affine, node: Any, current: str, constants: dict[str, FloatArray], where: str
) -> None:
    """Gemm, MatMul, Add or Sub with constants, onto the affine map so far."""
    attributes = _told(node)
    linear = node.op_type in ("Gemm", "MatMul", "Add")
    if linear and (len(node.input) < 2 or not all(node.input[:2])):
        raise InputError(f"{where} needs two inputs: what comes before it, and a constant.")
    missing = [name for name in node.input if name and name != current and name not in constants]
    if missing:
        raise InputError(f"{where} takes {missing[0]}, which is not a constant.")
    if node.op_type == "Gemm" and node.input[0] == current:
        if "transA" in attributes and attributes["transA"].i:
            raise InputError(f"{where} transposes the batch.")
        factor = constants[node.input[1]]
        if "transB" in attributes and attributes["transB"].i:
            factor = factor.T
        layer.multiply(factor * (attributes["alpha"].f if "alpha" in attributes else 1.0), where)
        if len(node.input) == 3 and node.input[2]:
            scale = attributes["beta"].f if "beta" in attributes else 1.0
            layer.add(constants[node.input[2]] * scale, where)
    elif node.op_type == "MatMul" and node.input[0] == current:
        layer.multiply(constants[node.input[1]], where)
    elif node.op_type == "Add":
        other = node.input[1] if node.input[0] == current else node.input[0]
        layer.add(constants[other], where)
    else:
        raise InputError(
            f"{where} cannot be read: Gemm, MatMul, Add and Relu make a two-layer ReLU network."
        )


def _numbers(array: NDArray[Any]) -> FloatArray:
    if array.dtype.kind not in "biuf":
        raise InputError(f"The ONNX file holds constants of type {array.dtype}, not numbers.")
    return np.asarray(array, dtype=np.float64)


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
        _require_outputs(node, where)
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
            shift, factor = (_floats(told, name, where) for name in ("offset", "scale"))
            for amount in (shift, factor):
                self._require_fits(amount, where)
            self._shift(shift)
            self._stretch(factor)
            return
        other = [name for name in node.input if name != current]
        if len(other) != 1 or other[0] not in constants:
            raise InputError(f"{where} takes what is not a constant; {_CAN}.")
        if node.op_type in ("Sub", "Div") and node.input[0] != current:
            raise InputError(f"{where} turns the features around; {_CAN}.")
        amount = constants[other[0]].reshape(-1)
        self._require_fits(amount, where)
        if node.op_type == "Div" and not amount.all():
            raise InputError(f"{where} divides by zero; {_CAN}.")
        if node.op_type in ("Sub", "Add"):
            self._shift(amount if node.op_type == "Sub" else -amount)
        else:
            self._stretch(amount if node.op_type == "Mul" else 1.0 / amount)

    def _require_fits(self, amount: FloatArray, where: str) -> None:
        """Refuse a length that is neither one nor that of what came before."""
        known = [len(part) for part in (self.offset, self.scale) if part is not None]
        if len({*known, len(amount)} - {1}) > 1:
            raise InputError(f"{where} has {len(amount)} numbers, and {max(known)} came before it.")

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
    for part in (before.offset, before.scale):
        if part is not None and len(part) not in (1, features):
            raise InputError(
                f"{path} scales {len(part)} features, and its linear layer takes {features}."
            )
    offset, scale = (
        None if part is None else np.array(np.broadcast_to(part, (features,)))
        for part in (before.offset, before.scale)
    )
    return LinearArrays(matrix, intercept, link, labels, offset, scale)
