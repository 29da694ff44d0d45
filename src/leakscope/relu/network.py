"""A two-layer ReLU network without an output bias: what every attack of this room looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class TwoLayerNetwork:
    """f(x) = sum over j of v_j relu(w_j . x + b_j), the network Phi(theta; x) of **relu**.

    It is homogeneous of degree two in its parameters: scaling them all by a scales f by a^2, so
    that the margin can be taken to be one.

    Parameters
    ----------
    w
        Hidden weights, k x d; a vector of length k is read as d = 1.
    b
        Hidden biases, length k.
    v
        Output weights, length k.

    Examples
    --------
    >>> from leakscope.relu import TwoLayerNetwork
    >>> network = TwoLayerNetwork(w=[[1.0], [-1.0]], b=[0.0, 0.0], v=[1.0, -1.0])
    >>> network([[-2.0], [3.0]]).tolist()
    [-2.0, 3.0]
    """

    w: FloatArray
    b: FloatArray
    v: FloatArray

    def __init__(self, w: ArrayLike, b: ArrayLike, v: ArrayLike) -> None:
        hidden = _numbers("w", w)
        if hidden.ndim == 1:
            hidden = hidden[:, None]
        if hidden.ndim != 2 or hidden.shape[1] < 1:
            raise InputError(
                "The hidden weights w must be an array of k rows, one a neuron, and d columns, "
                f"but their shape is {hidden.shape}."
            )
        if not len(hidden):
            raise InputError("The network has no neurons: w has no rows.")
        for name, value in (("w", hidden), ("b", _numbers("b", b)), ("v", _numbers("v", v))):
            if name != "w" and value.shape != (len(hidden),):
                raise InputError(
                    f"{name} must hold one number for each of the {len(hidden)} neurons in w, but "
                    f"its shape is {value.shape}."
                )
            bad = ~np.isfinite(value)
            if bad.any():
                place = [int(i) for i in np.argwhere(bad)[0]]
                raise InputError(
                    f"The weights must be finite, but {name}{place} is {value[tuple(place)]}."
                )
            value = value.copy()
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        self._require_squares()

    def _require_squares(self) -> None:
        """Refuse weights whose squared norm, which every theorem here is about, overflows."""
        with np.errstate(over="ignore"):
            size = sum(float(np.sum(value * value)) for value in (self.w, self.b, self.v))
        if not np.isfinite(size):
            raise InputError(
                "The weights are too large for float64, which cannot hold the sum of their "
                "squares; multiply all weights by one small factor."
            )

    def __repr__(self) -> str:
        return f"TwoLayerNetwork(width={self.width}, features={self.features})"

    @property
    def width(self) -> int:
        """k, the number of hidden neurons."""
        return len(self.v)

    @property
    def features(self) -> int:
        """d, the number of inputs."""
        return int(self.w.shape[1])

    def __call__(self, x: ArrayLike) -> FloatArray:
        """The network's answers at the rows of ``x`` (m x d; any shape where d = 1), length m."""
        points = self.inputs(x)
        return np.asarray(np.maximum(points @ self.w.T + self.b, 0.0) @ self.v)

    def inputs(self, x: ArrayLike) -> FloatArray:
        """``x`` as an m x d array of finite numbers."""
        points = np.asarray(x, dtype=np.float64)
        if self.features == 1 and (points.ndim != 2 or points.shape[1] != 1):
            points = points.reshape(-1, 1)
        if points.ndim != 2 or points.shape[1] != self.features:
            raise InputError(
                f"The network has {self.features} inputs, but the points' shape is {points.shape}."
            )
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise InputError(f"Row {int(np.argmax(bad))} of the points holds a NaN or an infinity.")
        return points

    def margins(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """y_i f(x_i) for points and labels -1 or 1, length m."""
        return np.asarray(signs(y, len(self.inputs(x))) * self(x))

    def normalised(self, x: ArrayLike, y: ArrayLike) -> TwoLayerNetwork:
        """The same network scaled so that its least margin on the points is one."""
        least = float(self.margins(x, y).min())
        if not least > 0.0:
            raise InputError(
                "A network that misclassifies a point has no margin to normalise: its least "
                f"y f(x) is {least:g}."
            )
        root = np.sqrt(least)
        return TwoLayerNetwork(self.w / root, self.b / root, self.v / root)


def signs(y: ArrayLike, points: int) -> FloatArray:
    """Labels as an array of -1 and 1, one a point."""
    labels = np.asarray(y, dtype=np.float64)
    if labels.shape != (points,):
        raise InputError(
            f"There must be one label for each of the {points} points, but the labels' shape is "
            f"{labels.shape}."
        )
    bad = np.abs(labels) != 1.0
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"Labels must be -1 or 1, but the label in row {row} is {labels[row]}.")
    return labels


def _numbers(name: str, value: ArrayLike) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers.") from None


def network_from_sklearn(model: Any) -> TwoLayerNetwork:
    """The network of a fitted ``MLPRegressor`` or binary ``MLPClassifier`` (its answer as logit).

    It must have one hidden layer, ReLU, one output and an output bias of zero; scikit-learn fits
    one, so that a network trained there has to be trained without it, or is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neural_network import MLPRegressor
    >>> from leakscope import relu
    >>> model = MLPRegressor(hidden_layer_sizes=(4,))
    >>> model = model.partial_fit([[0.0], [1.0]], [0.0, 1.0])
    >>> model.intercepts_[1][:] = 0.0
    >>> network = relu.network_from_sklearn(model)
    >>> bool(np.allclose(network([[0.5]]), model.predict([[0.5]])))
    True
    """
    kind = type(model).__name__
    weights, biases = getattr(model, "coefs_", None), getattr(model, "intercepts_", None)
    if weights is None or biases is None:
        raise InputError(f"A fitted MLPRegressor or MLPClassifier is needed, not this {kind}.")
    if len(weights) != 2:
        raise InputError(
            f"The {kind} has {len(weights) - 1} hidden layers; the theory covers networks with one."
        )
    if model.activation != "relu":
        raise InputError(f"The {kind}'s activation is {model.activation}; the theory covers relu.")
    if model.out_activation_ not in ("identity", "logistic"):
        raise InputError(f"The {kind}'s output is a {model.out_activation_}, not one number.")
    if weights[1].shape[1] != 1:
        raise InputError(
            f"The {kind} has {weights[1].shape[1]} outputs; the theory covers networks with one."
        )
    if np.any(biases[1] != 0.0):
        raise InputError(
            f"The {kind} has an output bias of {float(biases[1][0]):g}; the theory covers networks "
            "whose output bias is zero."
        )
    return TwoLayerNetwork(weights[0].T, biases[0], weights[1][:, 0])
