"""The laws of what an attacker sees: batches of normals, their mixtures, and others.

One object describes the laws of one record or of fifty thousand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope._numerics.special_functions import log_interval
from leakscope.errors import InputError

_COMPONENTS_AT_ONCE = 32
LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Law(ABC):
    """A batch of probability laws of what an attacker sees.

    Parameters are arrays: one object describes one law or fifty thousand, and ``batch_shape``
    tells how many.  ``event_shape`` is the shape of one observation: ``()`` for a scalar,
    ``(d,)`` for a vector.

    Examples
    --------
    >>> from leakscope.laws import Law, Normal
    >>> law = Normal(mean=[0.0, 1.0, 2.0], sigma=1.0)
    >>> isinstance(law, Law), law.batch_shape, law.event_shape
    (True, (3,), ())
    """

    # The parameters' names as the law takes them, and the axes that the first has for each law;
    # which of them are above zero, and which not below.
    parameters: ClassVar[tuple[str, ...]]
    own_axes: ClassVar[int] = 0
    positive: ClassVar[tuple[str, ...]] = ()
    not_negative: ClassVar[tuple[str, ...]] = ()

    def _keep(self, *values: npt.ArrayLike) -> None:
        """Check the parameters, broadcast them together, and set them, once, in ``__init__``."""
        kind = type(self).__name__
        arrays = [
            _parameter(value, kind, name)
            for name, value in zip(self.parameters, values, strict=True)
        ]
        for name, array in zip(self.parameters, arrays, strict=True):
            if name in self.positive:
                _require(array, array > 0.0, f"{kind}: {name} must be positive and finite")
            if name in self.not_negative:
                _require(array, array >= 0.0, f"{kind}: {name} must be zero or above")
        try:
            together = np.broadcast_arrays(*arrays)
        except ValueError:
            shapes = [array.shape for array in arrays]
            raise InputError(
                f"{kind}: the parameters' shapes do not fit together: {shapes}."
            ) from None
        if together[0].ndim < self.own_axes:
            raise InputError(
                f"{kind}: the last axis of the parameters runs over the parts of one law, but they "
                "are single numbers."
            )
        for name, array in zip(self.parameters, together, strict=True):
            object.__setattr__(self, name, array)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of laws; ``()`` for one law."""
        shape: tuple[int, ...] = getattr(self, self.parameters[0]).shape
        return shape[: len(shape) - self.own_axes]

    @property
    @abstractmethod
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one observation."""

    @abstractmethod
    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,) + event_shape``."""

    @abstractmethod
    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x`` (shape ``batch_shape + event_shape``, or broadcast to it).

        At an atom this is the log of the atom's mass.
        """

    def reshape(self, *shape: int) -> Self:
        """The same laws with the batch laid out as ``shape``."""
        return self._changed(lambda a, own: a.reshape((*shape, *own)))

    def take(self, index: int | slice | npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Self:
        """The laws at ``index`` along the first axis of the batch."""
        return self._changed(lambda a, own: a[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same laws repeated to the batch ``shape``."""
        return self._changed(lambda a, own: np.broadcast_to(a, (*shape, *own)))

    def _changed(self, change: Callable[[FloatArray, tuple[int, ...]], FloatArray]) -> Self:
        """The law of changed parameters; each comes with the axes that one law of the batch has."""
        arrays = [getattr(self, name) for name in self.parameters]
        depth = len(self.batch_shape)
        return type(self)(*(change(array, array.shape[depth:]) for array in arrays))


class ScalarLaw(Law):
    """A law on the real line, which therefore has a distribution function."""

    @property
    def event_shape(self) -> tuple[int, ...]:
        """One observation is a number."""
        return ()

    @abstractmethod
    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""


@dataclass(frozen=True, eq=False, init=False)
class Normal(ScalarLaw):
    """Normal laws N(mean, sigma^2), one for each entry of the broadcast parameters.

    ``sigma`` is a standard deviation.

    Examples
    --------
    >>> from leakscope.laws import Normal
    >>> law = Normal(mean=[0.0, 1.0], sigma=2.0)
    >>> law.batch_shape
    (2,)
    >>> law.cdf([0.0, 1.0])
    array([0.5, 0.5])
    """

    parameters, positive = ("mean", "sigma"), ("sigma",)

    mean: FloatArray
    sigma: FloatArray

    def __init__(self, mean: npt.ArrayLike, sigma: npt.ArrayLike) -> None:
        self._keep(mean, sigma)

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        noise = key.generator().standard_normal((*self.batch_shape, size))
        return np.asarray(self.mean[..., None] + self.sigma[..., None] * noise)

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        z = (np.asarray(x, dtype=np.float64) - self.mean) / self.sigma
        return np.asarray(-0.5 * z * z - np.log(self.sigma) - LOG_SQRT_2PI)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        return np.asarray(special.ndtr((np.asarray(x, dtype=np.float64) - self.mean) / self.sigma))


@dataclass(frozen=True, eq=False, init=False)
class NormalMixture(ScalarLaw):
    """Mixtures of normals; the last axis of each parameter runs over the components.

    ``weights`` need not sum to one: they are normalised when used (`raw_weights` keeps what was
    given, because normalising would round the difference of two nearly equal laws).
    `NormalMixture.scale` makes the scale mixtures of the paper **linear** at finite n: one
    centre, many variances.

    Examples
    --------
    >>> from leakscope.laws import NormalMixture
    >>> law = NormalMixture(weights=[0.5, 0.5], means=[-1.0, 1.0], sigmas=[1.0, 1.0])
    >>> law.batch_shape, law.components
    ((), 2)
    >>> float(law.cdf(0.0))
    0.5
    """

    parameters = ("raw_weights", "means", "sigmas")
    own_axes, positive, not_negative = 1, ("sigmas",), ("raw_weights",)

    raw_weights: FloatArray
    means: FloatArray
    sigmas: FloatArray

    def __init__(self, weights: npt.ArrayLike, means: npt.ArrayLike, sigmas: npt.ArrayLike) -> None:
        self._keep(weights, means, sigmas)
        if np.any(self.raw_weights.sum(axis=-1) <= 0.0):
            raise InputError("NormalMixture: the weights of a law must not all be zero.")

    @classmethod
    def scale(
        cls, sigmas: npt.ArrayLike, weights: npt.ArrayLike = 1.0, mean: npt.ArrayLike = 0.0
    ) -> Self:
        """A scale mixture: components with the common centre ``mean`` and the given ``sigmas``."""
        centre = np.asarray(mean, dtype=np.float64)
        return cls(weights, centre[..., None] if centre.ndim else centre, sigmas)

    @classmethod
    def of(cls, law: Normal) -> NormalMixture:
        """The normal law as a mixture of one component."""
        return cls(1.0, law.mean[..., None], law.sigma[..., None])

    @property
    def weights(self) -> FloatArray:
        """The components' probabilities, which sum to one."""
        return np.asarray(self.raw_weights / self.raw_weights.sum(axis=-1, keepdims=True))

    @property
    def components(self) -> int:
        """How many components each law has."""
        return int(self.raw_weights.shape[-1])

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        generator = key.generator()
        chosen = _chosen(self.weights, generator.random((*self.batch_shape, size)))
        mean = np.take_along_axis(self.means, chosen, axis=-1)
        sigma = np.take_along_axis(self.sigmas, chosen, axis=-1)
        return np.asarray(mean + sigma * generator.standard_normal(chosen.shape))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(divide="ignore"):
            peaks = np.log(self.weights) - np.log(self.sigmas) - LOG_SQRT_2PI
        # components first, some at a time: long rows are computed faster
        shape = (self.components, *(1,) * (x.ndim - len(self.batch_shape)), *self.batch_shape)
        mean, sigma, peak = (
            np.moveaxis(each, -1, 0).reshape(shape) for each in (self.means, self.sigmas, peaks)
        )
        total = np.full(np.broadcast_shapes(x.shape, self.batch_shape), -np.inf)
        for start in range(0, self.components, _COMPONENTS_AT_ONCE):
            some = slice(start, start + _COMPONENTS_AT_ONCE)
            terms = x - mean[some]
            terms /= sigma[some]
            terms *= terms
            terms *= -0.5
            terms += peak[some]
            highest = np.maximum(terms.max(axis=0), -1e300)
            terms -= highest
            with np.errstate(divide="ignore"):
                part = np.log(np.exp(terms, out=terms).sum(axis=0)) + highest
            total = part if start == 0 else np.logaddexp(total, part)
        return np.asarray(total)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        z = (np.asarray(x, dtype=np.float64)[..., None] - self.means) / self.sigmas
        return np.asarray((self.weights * special.ndtr(z)).sum(axis=-1))

    def padded(self, components: int) -> Self:
        """The same laws with components of no weight added, up to ``components`` of them."""
        width = [(0, 0)] * len(self.batch_shape) + [(0, components - self.components)]
        return type(self)(
            np.pad(self.raw_weights, width),
            np.pad(self.means, width, mode="edge"),
            np.pad(self.sigmas, width, mode="edge"),
        )


@dataclass(frozen=True, eq=False, init=False)
class MultivariateNormal(Law):
    """Multivariate normal laws N(mean, covariance) of vectors of d numbers.

    The last axis of ``mean`` and the last two of ``covariance`` run over the coordinates.
    ``cholesky`` is the lower triangular factor of the covariance.

    Examples
    --------
    >>> from leakscope.laws import MultivariateNormal
    >>> law = MultivariateNormal([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> law.batch_shape, law.event_shape
    ((), (2,))
    """

    parameters = ("mean", "covariance")
    own_axes = 1

    mean: FloatArray
    covariance: FloatArray
    cholesky: FloatArray

    def __init__(self, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
        kind = "MultivariateNormal"
        centre = _parameter(mean, kind, "mean")
        matrix = _parameter(covariance, kind, "covariance")
        if centre.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != 2 * centre.shape[-1:]:
            raise InputError(
                f"{kind}: a mean of d numbers needs a d x d covariance, but the shapes are "
                f"{centre.shape} and {matrix.shape}."
            )
        turned = np.swapaxes(matrix, -1, -2)
        if np.abs(matrix - turned).max(initial=0.0) > 1e-8 * np.abs(matrix).max(initial=0.0):
            raise InputError(f"{kind}: the covariance must be symmetric.")
        matrix = 0.5 * (matrix + turned)
        try:
            batch = np.broadcast_shapes(centre.shape[:-1], matrix.shape[:-2])
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise InputError(
                f"{kind}: the covariance must be positive definite; a direction without any "
                "randomness must be left out."
            ) from None
        except ValueError:
            raise InputError(
                f"{kind}: the batches of mean {centre.shape[:-1]} and covariance "
                f"{matrix.shape[:-2]} do not fit together."
            ) from None
        for name, array in (("mean", centre), ("covariance", matrix), ("cholesky", factor)):
            own = array.shape[-1 if name == "mean" else -2 :]
            object.__setattr__(self, name, np.broadcast_to(array, (*batch, *own)))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """One observation is a vector of d numbers."""
        return self.mean.shape[-1:]

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size, d)``."""
        noise = key.generator().standard_normal((*self.batch_shape, size, *self.event_shape))
        return np.asarray(self.mean[..., None, :] + noise @ np.swapaxes(self.cholesky, -1, -2))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``."""
        centred = np.asarray(x, dtype=np.float64) - self.mean
        z = np.linalg.solve(self.cholesky, centred[..., None])[..., 0]
        log_scale = np.log(np.diagonal(self.cholesky, axis1=-2, axis2=-1)).sum(axis=-1)
        squares = (z * z).sum(axis=-1)
        return np.asarray(-0.5 * squares - log_scale - self.event_shape[0] * LOG_SQRT_2PI)


@dataclass(frozen=True, eq=False, init=False)
class SpikeAndSlab(ScalarLaw):
    """The law of ``soft(Z, threshold)`` with Z ~ N(location, sigma^2).

    ``soft(z, t) = sign(z) max(|z| - t, 0)``, so there is an atom at zero of mass
    P(|Z| <= threshold) and one truncated normal branch on each side.  This is Eq. (53) of the
    paper **lasso** with location = beta0 + sigma_z z, sigma = Sigma sigma_eta and
    threshold = lambda Sigma.

    Examples
    --------
    >>> from leakscope.laws import SpikeAndSlab
    >>> law = SpikeAndSlab(location=0.0, sigma=1.0, threshold=1.0)
    >>> round(float(law.atom), 4)
    0.6827
    >>> round(float(law.cdf(0.0)), 4)
    0.8413
    """

    parameters = ("location", "sigma", "threshold")
    positive, not_negative = ("sigma",), ("threshold",)

    location: FloatArray
    sigma: FloatArray
    threshold: FloatArray

    def __init__(
        self, location: npt.ArrayLike, sigma: npt.ArrayLike, threshold: npt.ArrayLike
    ) -> None:
        self._keep(location, sigma, threshold)

    @property
    def log_atom(self) -> FloatArray:
        """Log mass of the atom at zero."""
        return log_interval(-self.location / self.sigma, self.threshold / self.sigma)

    @property
    def atom(self) -> FloatArray:
        """Mass of the atom at zero."""
        return np.asarray(np.exp(self.log_atom))

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        z = Normal(self.location, self.sigma).sample(key, size)
        return np.asarray(np.sign(z) * np.maximum(np.abs(z) - self.threshold[..., None], 0.0))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log density at ``x``, and the log mass of the atom at ``x = 0``."""
        x = np.asarray(x, dtype=np.float64)
        branch = Normal(self.location, self.sigma).log_density(x + np.sign(x) * self.threshold)
        # without a threshold there is no atom, and zero is a point like any other
        return np.asarray(np.where((x == 0.0) & (self.threshold > 0.0), self.log_atom, branch))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        x = np.asarray(x, dtype=np.float64)
        edge = np.where(x >= 0.0, x + self.threshold, x - self.threshold)
        return Normal(self.location, self.sigma).cdf(edge)


@dataclass(frozen=True, eq=False, init=False)
class Discrete(ScalarLaw):
    """Laws on few numbers; the last axis of both parameters runs over them.

    ``probabilities`` sum to one; a number may stand there more than once, or with probability 0.

    Examples
    --------
    >>> from leakscope.laws import Discrete
    >>> law = Discrete(values=[0.0, 0.5, 1.0], probabilities=[[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    >>> law.batch_shape
    (2,)
    >>> law.cdf(0.5)
    array([0.5, 0. ])
    """

    parameters = ("values", "probabilities")
    own_axes, not_negative = 1, ("probabilities",)

    values: FloatArray
    probabilities: FloatArray

    def __init__(self, values: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
        self._keep(values, probabilities)
        if np.any(np.abs(self.probabilities.sum(axis=-1) - 1.0) > 1e-9):
            raise InputError("Discrete: the probabilities of a law must sum to one.")

    @classmethod
    def of_label(cls, chance: npt.ArrayLike) -> Self:
        """The laws of a label that is 1 with ``chance`` and 0 otherwise."""
        one = np.asarray(chance, dtype=np.float64)
        return cls([1.0, 0.0], np.stack([one, 1.0 - one], axis=-1))

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` observations of each law: shape ``batch_shape + (size,)``."""
        drawn = key.generator().random((*self.batch_shape, size))
        return np.asarray(
            np.take_along_axis(self.values, _chosen(self.probabilities, drawn), axis=-1)
        )

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log mass at ``x``."""
        same = self.values == np.asarray(x, dtype=np.float64)[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(same, self.probabilities, 0.0).sum(axis=-1)))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Probability of an observation at or below ``x``."""
        below = self.values <= np.asarray(x, dtype=np.float64)[..., None]
        return np.asarray(np.where(below, self.probabilities, 0.0).sum(axis=-1))


@dataclass(frozen=True, eq=False, init=False)
class Empirical(ScalarLaw):
    """The empirical law of samples or scores; the last axis of ``samples`` runs over them.

    Measures of a pair of empirical laws are estimates with intervals, for the attacker who
    compares the score with a threshold; a higher score means "more likely a member".

    Examples
    --------
    >>> from leakscope.laws import Empirical
    >>> law = Empirical([0.1, 0.4, 0.4, 0.9])
    >>> law.batch_shape, law.size
    ((), 4)
    >>> float(law.cdf(0.4))
    0.75
    """

    parameters = ("samples",)
    own_axes = 1

    samples: FloatArray

    def __init__(self, samples: npt.ArrayLike) -> None:
        self._keep(np.sort(_parameter(samples, "Empirical", "samples"), axis=-1))
        if self.size < 2:
            raise InputError("Empirical: an empirical law needs at least two samples.")

    @property
    def size(self) -> int:
        """How many samples each law has."""
        return int(self.samples.shape[-1])

    def sample(self, key: Key, size: int) -> FloatArray:
        """Draw ``size`` of the samples of each law with replacement."""
        index = key.generator().integers(0, self.size, (*self.batch_shape, size))
        return np.asarray(np.take_along_axis(self.samples, index, axis=-1))

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Log mass at ``x``: the log share of samples equal to it."""
        equal = self.samples == np.asarray(x, dtype=np.float64)[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(equal.mean(axis=-1)))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Share of samples at or below ``x``."""
        below = self.samples <= np.asarray(x, dtype=np.float64)[..., None]
        return np.asarray(below.mean(axis=-1))


def _chosen(chances: FloatArray, uniform: FloatArray) -> npt.NDArray[np.intp]:
    """Which part of each law (..., K) uniform draws (..., size) fall into."""
    steps = np.cumsum(chances, axis=-1)
    # What rounding leaves above the last step belongs to the last part that has a chance.
    steps = np.where(steps >= steps[..., -1:], 1.0, steps)
    chosen = np.zeros(uniform.shape, dtype=np.intp)
    for part in range(steps.shape[-1]):
        chosen += uniform >= steps[..., part, None]
    return chosen


def _parameter(value: Any, law: str, name: str) -> FloatArray:
    """Return ``value`` as a read-only float64 array, or say which entry is not a finite number."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{law}: {name} must be a number or an array of numbers.") from None
    _require(array, np.isfinite(array), f"{law}: {name} must be finite")
    array.setflags(write=False)
    return array


def _require(array: FloatArray, good: npt.NDArray[np.bool_], wanted: str) -> None:
    """Raise an `InputError` that names the first entry of ``array`` that is not ``good``."""
    if np.all(good):
        return
    position = tuple(int(i) for i in np.argwhere(~good)[0])
    where = f" at position {position if len(position) > 1 else position[0]}" if position else ""
    raise InputError(f"{wanted}, but it is {float(array[position])!r}{where}.")
