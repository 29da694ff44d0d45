"""The covariance function of an infinitely wide network (NNGP)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import require_jax
from leakscope.errors import InputError
from leakscope.kernels.kernel import numbers, require_same_columns
from leakscope.kernels.layers import (
    Activation,
    Apply,
    Dense,
    Flatten,
    Layer,
    Residual,
    as_activation,
    require_network,
    takes_images,
)

if TYPE_CHECKING:
    import jax

# What needs JAX: to describe a network does not.
WHAT = "The kernel of a network"


@dataclass(frozen=True)
class Network:
    """The Gaussian process that a random network becomes as its layers get wide.

    ``k(X, Z)`` is the covariance of the network's output at two records over the draw of its
    weights (lood, Section 2.2: K_NNGP).  Records are rows, or images (records, height, width,
    channels) where a layer looks at pixels.

    Parameters
    ----------
    layers
        What the network is made of, in order; see :func:`sequential`.
    input_shape
        Height, width and channels of images that come as rows.
    """

    layers: tuple[Layer, ...]
    input_shape: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        require_network(self.layers)

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> FloatArray:
        """The matrix of covariances; with Z left out it is exactly symmetric."""
        require_jax(WHAT)
        from leakscope.kernels import network_matrix

        layers, rows = self._read(X, "X")
        columns = None
        if Z is not None:
            columns = self._read(Z, "Z")[1]
            require_same_columns("network", rows, columns)
        return network_matrix.matrix(layers, rows, columns)

    def diagonal(self, X: ArrayLike) -> FloatArray:
        """k(x, x) for every record, without the matrix."""
        require_jax(WHAT)
        from leakscope.kernels import network_matrix

        layers, rows = self._read(X, "X")
        return network_matrix.diagonal(layers, rows)

    def jax(self, x: jax.Array, z: jax.Array) -> jax.Array:
        """k(x, z) as JAX code, for derivatives: one record or many on either side.

        Computed in the precision that JAX is set to by the caller.  First derivatives with
        respect to x and z are right everywhere, x = z included.

        Examples
        --------
        >>> import jax, numpy as np
        >>> from leakscope import kernels
        >>> k = kernels.nngp(depth=2)
        >>> x = np.array([1.0, 2.0, 3.0], dtype=np.float32)
        >>> [f"{slope:.4f}" for slope in jax.grad(k.jax)(x, x)]
        ['0.6667', '1.3333', '2.0000']
        """
        require_jax(WHAT)
        import jax.numpy as jnp

        from leakscope.kernels import network_matrix

        layers = self._layers()
        one, other = jnp.asarray(x), jnp.asarray(z)
        single = 3 if takes_images(layers) and self.input_shape is None else 1
        alone = (one.ndim == single, other.ndim == single)
        one, other = (
            a[None] if is_one else a for a, is_one in zip((one, other), alone, strict=True)
        )
        result = network_matrix.evaluate(layers, self._arranged(one), self._arranged(other))
        result = result[0] if alone[0] else result
        return result[..., 0] if alone[1] else result

    def resolved(self, X: ArrayLike) -> Network:
        """This kernel: it has no parameter to choose from the data."""
        return self

    def describe(self) -> dict[str, Any]:
        """Name and parameters, ready for JSON."""
        uniform = _uniform(self.layers)
        if uniform is not None:
            return {"name": "nngp", **uniform}
        return {"name": "network", "layers": [_describe(layer) for layer in self.layers]}

    def _layers(self) -> tuple[Layer, ...]:
        """Without a leading flatten: rows need only their inner products, not those of pixels."""
        return self.layers[1:] if isinstance(self.layers[0], Flatten) else self.layers

    def _read(self, values: ArrayLike, name: str) -> tuple[tuple[Layer, ...], FloatArray]:
        array = numbers(values, name)
        flat = not takes_images(self._layers())
        wanted = 2 if flat or self.input_shape is not None else 4
        # Where the network flattens images at once, rows are as good.
        if array.ndim != wanted and not (flat and takes_images(self.layers)):
            form = "records by features" if wanted == 2 else "records, height, width, channels"
            raise InputError(
                f"network: {name} must have {wanted} dimensions ({form}; input_shape lets images "
                f"come as rows), but its shape is {array.shape}."
            )
        return self._layers(), np.ascontiguousarray(self._arranged(array))

    def _arranged(self, array: Any) -> Any:
        """Images from rows; rows from images that are flattened at once."""
        if self.input_shape is not None and array.ndim == 2:
            features = int(np.prod(self.input_shape))
            if array.shape[1] != features:
                raise InputError(
                    f"network: input_shape {self.input_shape} makes {features} features, but "
                    f"there are {array.shape[1]}."
                )
            array = array.reshape(-1, *self.input_shape)
        return array if takes_images(self._layers()) else array.reshape(len(array), -1)


def nngp(
    depth: int = 3,
    activation: str | Activation | Callable[[Any], Any] = "relu",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
) -> Network:
    """A dense network of ``depth`` hidden layers and a linear read-out, infinitely wide.

    K_0(x, z) = weight_variance x.z/d + bias_variance, then ``depth`` times
    K_l = weight_variance E[phi(u) phi(v)] + bias_variance with (u, v) normal of covariance K_{l-1}
    (lood, Section 2.2).  The lood paper's networks have weight variance 2 and no bias.

    Parameters
    ----------
    depth
        Hidden layers.
    activation
        ``relu``, ``gelu``, ``erf``, ``sin``, ``identity``, ``tanh``, ``elu``, or a function
        written with ``jax.numpy``.
    weight_variance, bias_variance
        Of every layer, the read-out too; weights are drawn with weight_variance / fan-in.

    Examples
    --------
    >>> from leakscope import kernels
    >>> kernels.nngp(depth=2, activation="erf")([[1.0, 0.0], [0.0, 1.0]]).round(4).tolist()
    [[0.9011, 0.0], [0.0, 0.9011]]
    """
    if not isinstance(depth, (int, np.integer)) or isinstance(depth, bool) or depth < 1:
        raise InputError(f"nngp: depth must be a whole number of at least 1, but it is {depth}.")
    weights = Dense(float(weight_variance), float(bias_variance))
    hidden = (Apply(as_activation(activation)), weights)
    return Network((weights, *(hidden * int(depth))))


def sequential(*layers: Layer, input_shape: tuple[int, int, int] | None = None) -> Network:
    """A network from its layers, in order.

    The layers are ``dense``, ``conv``, ``activation``, ``flatten``, ``global_average_pool``,
    ``average_pool``, ``layer_norm`` and ``residual`` of :mod:`leakscope.kernels`.  The last one
    with weights makes the output; the classifier's soft-max is no layer.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> k = kernels.sequential(
    ...     kernels.conv(3, weight_variance=2.0),
    ...     kernels.activation("relu"),
    ...     kernels.flatten(),
    ...     kernels.dense(),
    ... )
    >>> k(np.ones((2, 4, 4, 3))).shape
    (2, 2)
    """
    return Network(layers, input_shape=input_shape)


def _uniform(layers: tuple[Layer, ...]) -> dict[str, Any] | None:
    """The arguments of :func:`nngp`, where these layers are what it makes."""
    match layers[:2]:
        case (Dense() as weights, Apply() as phi):
            depth = len(layers) // 2
            if layers != (weights, *((phi, weights) * depth)):
                return None
            return {"depth": depth, "activation": phi.activation.describe(), **asdict(weights)}
    return None


def _describe(layer: Layer) -> dict[str, Any]:
    name = type(layer).__name__
    if isinstance(layer, Apply):
        return {"layer": "Activation", "activation": layer.activation.describe()}
    if isinstance(layer, Residual):
        return {
            "layer": name,
            "branch": [_describe(inner) for inner in layer.branch],
            "skip": [_describe(inner) for inner in layer.skip],
        }
    return {"layer": name, **asdict(layer)}
