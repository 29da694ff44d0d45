"""The paper's three examples of data: a sphere, a normal law, a mixture of normal laws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError


class Population(ABC):
    """A law of points in d dimensions, from which training and test points are drawn."""

    @property
    @abstractmethod
    def features(self) -> int:
        """d."""

    @abstractmethod
    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Independent points, an array of ``shape`` + (d,)."""

    def sample(
        self, count: int, random_state: int | np.random.Generator | Key | None = None
    ) -> FloatArray:
        """``count`` independent points, (count, d)."""
        return self.draw((count,), as_key(random_state).generator())

    def training_sets(
        self, sets: int, n: int, random_state: int | np.random.Generator | Key | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Points (sets, n, d) and fair-coin labels (sets, n); set i draws from child i."""
        key = as_key(random_state)
        generators = [key.child(i).generator() for i in range(sets)]
        points = np.stack([self.draw((n,), g) for g in generators])
        labels = np.stack([2.0 * g.integers(0, 2, n) - 1.0 for g in generators])
        return points, labels


@dataclass(frozen=True)
class SphereData(Population):
    """Uniform on the sphere of radius sqrt(d), the first example of Section 4.

    Examples
    --------
    >>> from leakscope.relu import SphereData
    >>> points = SphereData(9).sample(4, random_state=0)
    >>> (points**2).sum(axis=1).round(12).tolist()
    [9.0, 9.0, 9.0, 9.0]
    """

    dim: int

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise InputError(f"dim must be 1 or more, but it is {self.dim}.")

    @property
    def features(self) -> int:
        """d."""
        return self.dim

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Normal points, scaled to the sphere."""
        points = generator.standard_normal((*shape, self.dim))
        norms = np.linalg.norm(points, axis=-1, keepdims=True)
        return np.asarray(points * (np.sqrt(self.dim) / norms))


@dataclass(frozen=True, eq=False, init=False)
class MixtureData(Population):
    """A mixture of normal laws N(mean_c, I); one component is the normal law itself.

    Parameters
    ----------
    means
        (C, d).
    weights
        (C,), by default equal.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import MixtureData
    >>> data = MixtureData(np.array([[3.0, 0.0], [-3.0, 0.0]]))
    >>> data.sample(5, random_state=0).shape
    (5, 2)
    """

    means: FloatArray
    weights: FloatArray

    def __init__(self, means: ArrayLike, weights: ArrayLike | None = None) -> None:
        centres = np.asarray(means, dtype=np.float64)
        if centres.ndim != 2 or 0 in centres.shape or not np.isfinite(centres).all():
            raise InputError(
                "means must be finite numbers, one row a component, but their shape is "
                f"{centres.shape}."
            )
        shares = np.full(len(centres), 1.0) if weights is None else np.asarray(weights, np.float64)
        if shares.shape != (len(centres),) or not (shares > 0.0).all():
            raise InputError(f"weights must be {len(centres)} positive numbers.")
        object.__setattr__(self, "means", centres)
        object.__setattr__(self, "weights", shares / shares.sum())

    @property
    def features(self) -> int:
        """d."""
        return int(self.means.shape[1])

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """A component for each point, then the point."""
        which = generator.choice(len(self.weights), size=shape, p=self.weights)
        noise = generator.standard_normal((*shape, self.features))
        return np.asarray(self.means[which] + noise)


def normal_data(mean: ArrayLike) -> MixtureData:
    """N(mean, I), the second example of Section 4: a mixture of one component.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import normal_data
    >>> normal_data(np.zeros(30)).features
    30
    """
    return MixtureData(np.atleast_2d(np.asarray(mean, dtype=np.float64)))
