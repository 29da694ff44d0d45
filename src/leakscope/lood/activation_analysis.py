"""What an activation does to leave-one-out distinguishability (lood Section 6 and App. G).

A kernel matrix that is nearly constant tells records apart badly, and little is then learnt from
any one of them.  Symbols: K the kernel matrix of D' (n + 1 records, the paper's count), s2 the
noise variance, h(alpha) = max |K_ij - alpha|, alpha_min where it is least, zeta a bound on |y|.

**The bound of Prop. 6.1, and a shorter one.**  The paper bounds the mean distance of every query by
C n^{5/2} h(alpha_min) + C'/n.  A linear predictor is never better than the best one, so that
predicting f(S) by the average of the other n labels bounds the variance v of f(S) given D:

    v <= k(S, S) - 2 mean k(S, D) + mean K_DD + s2/n <= 4 h(alpha_min) + s2/n,

that is, x = v/s2 <= 4 h(alpha_min)/s2 + 1/n.  Everything that a record can reveal follows from x
and its leave-one-out residual r (:mod:`leakscope.lood.separation`):

    mean distance = (r x/(1 + x))^2/2,      KL = [x - log(1 + x)]/2 + r^2 x/(2 s2 (1 + x)),

both increasing in x.  What counts is h in units of the noise: a kernel whose overall scale shrinks
is nearly constant by this measure, whatever its shape.

**Depth.**  Prop. G.1 has |k_L - alpha| fall like L^-2 under ReLU and like L^-1 under smooth
activations.  That is so at the edge of chaos (Schoenholz et al. 2017, Hayou et al. 2019): weight
and bias variances for which a variance q repeats from layer to layer and weight_variance
E[phi'(sqrt(q) Z)^2] = 1.  For ReLU that is weight variance 2 without bias, the paper's networks;
for GELU it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope import kernels
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.kernels.layers import Activation
from leakscope.lood.dense import all_records
from leakscope.lood.inputs import real_numbers, require_positive
from leakscope.measures.normal_divergence import kl_parts

Phi = str | Callable[[Any], Any] | Activation


@dataclass(frozen=True)
class ConstantApproximation:
    """How close a kernel matrix is to a constant one, and what that bounds."""

    alpha: float  # alpha_min, the constant
    distance: float  # h(alpha_min), the largest difference from it
    records: int  # how many records D' has, n + 1

    def excess_bound(self, noise_variance: float) -> float:
        """4 h/s2 + 1/n, an upper bound on x = v/s2 for every record."""
        require_positive(noise_variance, "noise_variance")
        return 4.0 * self.distance / noise_variance + 1.0 / (self.records - 1)

    def kl_bound(self, *, noise_variance: float, residual: float, outputs: int = 1) -> float:
        """An upper bound on KL(without || with) at any queries, for a record with this residual.

        ``residual`` is the length of y_i minus the mean without the record, over all outputs.
        """
        x = self.excess_bound(noise_variance)
        score = residual**2 / (noise_variance * (1.0 + x))
        return float(sum(part[0] for part in kl_parts(np.array([x]), np.array([score]), outputs)))

    def mean_distance_bound(self, *, noise_variance: float, residual: float) -> float:
        """An upper bound on the mean distance at the record itself, for this residual."""
        x = self.excess_bound(noise_variance)
        return 0.5 * (residual * x / (1.0 + x)) ** 2

    def printed_bound(self, *, noise_variance: float, label_bound: float) -> float:
        """Prop. 6.1 as printed in App. G, C n^{5/2} h + C'/n; infinite where alpha_min is 0.

        Its proof bounds half the distance of the means, not half its square as Def. C.1 has it,
        and takes the norms of two inverses for one (Lemma G.2 has lost a square), so that it does
        not hold for labels of any size; docs/attack_query.md has a counterexample.
        """
        require_positive(noise_variance, "noise_variance")
        n, alpha, h = self.records - 1, self.alpha, self.distance
        if alpha == 0.0:
            return float("inf")
        with np.errstate(divide="ignore"):
            parts = [
                growth
                * (alpha + h)
                * label_bound
                / np.float64(min(alpha * noise_variance, abs(alpha * noise_variance - count * h)))
                for count, growth in ((n, 1.0), (n + 1, (1.0 + 1.0 / n) ** 2.5))
            ]
        return float(max(parts) * n**2.5 * h + label_bound * (1.0 + 1.0 / alpha) / n)


def constant_approximation(kernel_matrix: ArrayLike) -> ConstantApproximation:
    """The constant nearest to a kernel matrix in the largest entry: half-way between its ends.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> [round(lood.constant_approximation(kernels.nngp(depth=depth)(X)).distance, 2)
    ...  for depth in (1, 10)]
    [2.2, 2.06]
    """
    matrix = real_numbers(kernel_matrix, "the kernel matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError(
            f"the kernel matrix must be square, of two records or more, but its shape is "
            f"{matrix.shape}."
        )
    least, largest = float(matrix.min()), float(matrix.max())
    alpha = max(0.5 * (least + largest), 0.0)
    return ConstantApproximation(alpha, max(largest - alpha, alpha - least), len(matrix))


@dataclass(frozen=True)
class Initialisation:
    """Weight and bias variances, and the variance of the first layer, which they may repeat."""

    weight_variance: float
    bias_variance: float
    variance: float


def edge_of_chaos(activation: Phi, *, variance: float = 1.0) -> Initialisation:
    """Weight and bias variances at the edge of chaos that keep the variance of every layer.

    weight_variance E[phi'(u)^2] = 1 and bias_variance = q - weight_variance E[phi(u)^2], u normal
    with variance q (Hayou et al. 2019, Section 2).

    Examples
    --------
    >>> from leakscope import lood
    >>> lood.edge_of_chaos("relu").weight_variance
    2.0
    >>> gelu = lood.edge_of_chaos("gelu")
    >>> round(gelu.weight_variance, 3), round(gelu.bias_variance, 3)
    (2.194, 0.067)
    """
    require_jax("The edge of chaos")
    import jax.numpy as jnp

    from leakscope.kernels import duals
    from leakscope.kernels.layers import as_activation

    require_positive(variance, "variance")
    phi = as_activation(activation)
    with double_precision():
        q = jnp.array([variance])
        second_moment = float(duals.variance(phi, q)[0])
        slope = float(duals.derivative_variance(phi, q)[0])
    weight = 1.0 / slope
    bias = variance - weight * second_moment
    if bias < -1e-12:
        raise InputError(
            f"{phi.describe()} has no edge of chaos at variance {variance:g}: the bias would need "
            f"the variance {bias:.3g}."
        )
    return Initialisation(weight, max(bias, 0.0), variance)


@dataclass(frozen=True)
class DepthDecay:
    """Two inputs of equal length, layer by layer.

    Attributes
    ----------
    variances
        k_L(x, x) for L = 1, 2, ...
    gaps
        1 - k_L(x, z)/k_L(x, x).
    exponent
        The slope of log gap against log L over the second half of the layers: Prop. G.1's -2 or
        -1; near 0 where the gap stays.
    """

    variances: FloatArray
    gaps: FloatArray
    exponent: float


def depth_decay(
    activation: Phi,
    depth: int,
    *,
    initialisation: Initialisation | None = None,
    cosine: float = 0.5,
) -> DepthDecay:
    """How two inputs with the given cosine grow alike through ``depth`` hidden layers.

    At the edge of chaos where no other initialisation is given.  The first layer's variance is
    the initialisation's.

    Examples
    --------
    GELU forgets more slowly at its edge of chaos; at the paper's variances it does not forget, but
    its output vanishes.

    >>> from leakscope import lood
    >>> round(lood.depth_decay("gelu", 500).exponent, 1)
    -1.0
    >>> paper = lood.depth_decay("gelu", 50, initialisation=lood.Initialisation(2.0, 0.0, 1.0))
    >>> bool(paper.variances[-1] < 1e-12), round(paper.exponent, 1)
    (True, 0.0)
    """
    require_jax("The decay with depth")
    import jax
    import jax.numpy as jnp

    from leakscope.kernels import duals
    from leakscope.kernels.layers import as_activation

    if depth < 2:
        raise InputError(f"depth must be at least 2, but it is {depth}.")
    phi = as_activation(activation)
    start = edge_of_chaos(phi) if initialisation is None else initialisation
    weight, bias = start.weight_variance, start.bias_variance
    variances, gaps = [], []

    @jax.jit
    def layer(k: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        between, own = duals.covariance(phi, k, q, q), duals.variance(phi, q)
        return weight * between + bias, weight * own + bias

    with double_precision():
        q = jnp.array([start.variance])
        k = bias + (q - bias) * cosine
        for _ in range(depth):
            k, q = layer(k, q)
            variances.append(float(q[0]))
            gaps.append(float(1.0 - k[0] / q[0]))
    layers = np.arange(1, depth + 1)
    late = slice(depth // 2 - 1, None)
    positive = np.maximum(np.array(gaps), np.finfo(np.float64).tiny)
    exponent = float(np.polyfit(np.log(layers[late]), np.log(positive[late]), 1)[0])
    return DepthDecay(np.array(variances), np.array(gaps), exponent)


@dataclass(frozen=True)
class ActivationLood:
    """Every record's LOOD under one dense network."""

    activation: str
    depth: int
    kl: FloatArray  # (n,) at each record's own point
    mean_distance: FloatArray
    constant: ConstantApproximation  # how close the kernel matrix is to a constant one
    mean_variance: float  # the average of k(x, x) before any rescaling


def lood_by_activation(
    X: ArrayLike,
    y: ArrayLike,
    *,
    activations: Sequence[str],
    depths: Sequence[int],
    noise_variance: float,
    initialisation: Callable[[str], Initialisation] | None = None,
    unit_scale: bool = False,
) -> tuple[ActivationLood, ...]:
    """Measure LOOD for each activation and depth, activations outermost.

    Parameters
    ----------
    X, y
        Records by features, and targets; used as they are.
    activations, depths
        Of :func:`leakscope.kernels.nngp`.
    noise_variance
        s2, in squared units of the target.
    initialisation
        Weight and bias variances for each activation; the paper's, 2 and 0, where left out.
    unit_scale
        Divide each kernel by its average k(x, x), so that only its shape is compared.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> found = lood.lood_by_activation(X, X[:, 0], activations=("relu",), depths=(1, 3),
    ...                                 noise_variance=0.1, unit_scale=True)
    >>> [(one.depth, round(float(np.median(one.kl)), 1)) for one in found]
    [(1, 0.4), (3, 0.6)]
    """
    rows = real_numbers(X, "X")
    targets = real_numbers(y, "y")
    found = []
    for name in activations:
        start = Initialisation(2.0, 0.0, 1.0) if initialisation is None else initialisation(name)
        for depth in depths:
            kernel = kernels.nngp(
                depth=depth,
                activation=name,
                weight_variance=start.weight_variance,
                bias_variance=start.bias_variance,
            )
            matrix = kernel(rows)
            scale = float(np.mean(np.diagonal(matrix)))
            if unit_scale:
                matrix = matrix / scale
            laws = all_records(matrix, targets, noise_variance=noise_variance)
            found.append(
                ActivationLood(
                    activation=name,
                    depth=depth,
                    kl=laws.kl,
                    mean_distance=laws.mean_distance,
                    constant=constant_approximation(matrix),
                    mean_variance=scale,
                )
            )
    return tuple(found)
