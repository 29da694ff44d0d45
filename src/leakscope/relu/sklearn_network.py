"""A scikit-learn network in memory as a `TwoLayerNetwork`."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope.errors import InputError
from leakscope.relu.network import TwoLayerNetwork


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
        raise InputError(f"The {kind} has {len(weights) - 1} hidden layers; the theory is of one.")
    if model.activation != "relu":
        raise InputError(f"The {kind}'s activation is {model.activation}; the theory is of relu.")
    if model.out_activation_ not in ("identity", "logistic"):
        raise InputError(f"The {kind}'s output is a {model.out_activation_}, not one number.")
    if weights[1].shape[1] != 1:
        raise InputError(f"The {kind} has {weights[1].shape[1]} outputs; the theory is of one.")
    if np.any(biases[1] != 0.0):
        raise InputError(
            f"The {kind} has an output bias of {float(biases[1][0]):g}; the theory is of "
            "homogeneous networks, whose output bias is zero."
        )
    return TwoLayerNetwork(weights[0].T, biases[0], weights[1][:, 0])
