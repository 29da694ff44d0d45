"""Assumption 4.1 as numbers: how probable nearly orthogonal points of full length are.

For the paper's three examples of data: a sphere, a normal law, a mixture of normal laws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.relu.margin_bounds import margin_bounds
from leakscope.relu.network import signs

NODES = 400

# Half-width, in standard deviations, of the range that quadratures cover.
REACH = 14.0


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
    """Uniform on the sphere of radius sqrt(d), the first example of Section 4."""

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
    """N(mean, I), the second example of Section 4: a mixture of one component."""
    return MixtureData(np.atleast_2d(np.asarray(mean, dtype=np.float64)))


@dataclass(frozen=True)
class NearOrthogonality:
    """The two events of Assumption 4.1 with o(d) and Omega(d) made into shares of d."""

    n: int  # n and d
    features: int
    inner_share: float  # a and b: the events are n |x_1.x_2| <= a d, and |x|^2 >= b d
    norm_share: float
    # The probabilities of their complements, for one pair and for one point; exact.
    inner_failure: float
    norm_failure: float

    @property
    def tau(self) -> float:
        """The least tau of Assumption 4.1: max(n^2 inner_failure, n norm_failure)."""
        return max(self.n**2 * self.inner_failure, self.n * self.norm_failure)


def near_orthogonality(
    population: Population, n: int, *, inner_share: float = 0.5, norm_share: float = 0.5
) -> NearOrthogonality:
    """Assumption 4.1 for a sphere, a normal law or a mixture of them, at n and d as they are.

    On the sphere the squared cosine of two points is Beta(1/2, (d - 1)/2).  For x ~ N(mu, I) and
    y ~ N(nu, I), x.y given y is normal, and y enters by its component along mu and the length of
    the rest, a normal and a noncentral chi: a quadrature in two variables.  |x|^2 is a noncentral
    chi-square.

    Parameters
    ----------
    population
        Where the points come from.
    n
        Size of the training set.
    inner_share, norm_share
        What share of d stands for o(d) and for Omega(d).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import near_orthogonality, normal_data
    >>> 0.0 < near_orthogonality(normal_data(np.zeros(5000)), 20).inner_failure < 0.1
    True
    """
    if n < 2:
        raise InputError(f"n must be 2 or more, but it is {n}.")
    d = population.features
    bound = inner_share * d / n
    if isinstance(population, SphereData):
        inner = _sphere_tail(d, bound)
        norm = 0.0 if norm_share <= 1.0 else 1.0
    elif isinstance(population, MixtureData):
        shares = np.outer(population.weights, population.weights)
        tails = [
            [_normal_inner_tail(first, second, bound) for second in population.means]
            for first in population.means
        ]
        inner = float((shares * np.array(tails)).sum())
        norm = float(
            sum(
                share * _short(d, float(mean @ mean), norm_share * d)
                for share, mean in zip(population.weights, population.means, strict=True)
            )
        )
    else:
        raise InputError("near_orthogonality knows SphereData, normal_data and MixtureData.")
    return NearOrthogonality(n, d, inner_share, norm_share, min(inner, 1.0), norm)


@dataclass(frozen=True)
class Coverage:
    """Share of random training sets that a theorem covers, by simulation."""

    trials: int  # training sets drawn, with fair-coin labels
    # Share in which every point is proven to be on the margin: by the whole Gram matrix
    # (`margin_bounds`), by the paper's constants with the bias put back, and as printed.
    gram: float
    corrected: float
    printed: float
    points: float  # mean share of points proven to be on the margin, by the Gram matrix

    def stderr(self, share: float) -> float:
        """Standard error of one of the shares, after adding one success and one failure."""
        smooth = (share * self.trials + 1.0) / (self.trials + 2.0)
        return float(np.sqrt(smooth * (1.0 - smooth) / self.trials))


def coverage(
    population: Population,
    n: int,
    *,
    trials: int = 200,
    random_state: int | np.random.Generator | Key | None = None,
) -> Coverage:
    """How often Theorem 4.2, with constants, covers a training set of n points."""
    if trials < 1:
        raise InputError(f"trials must be 1 or more, but it is {trials}.")
    key = as_key(random_state)
    rows = []
    for trial in range(trials):
        x, y = population.training_sets(1, n, key.child(trial))
        found = margin_bounds(x[0], y[0])
        rows.append(
            (
                found.covered,
                found.corrected.covered,
                found.printed.covered,
                found.on_margin.mean(),
            )
        )
    means = np.array(rows, dtype=np.float64).mean(axis=0)
    return Coverage(trials, *(float(value) for value in means))


def orthogonality_of(x: ArrayLike) -> dict[str, float]:
    """Assumption 4.1 looked at in a dataset: n delta / d, Delta / d and n delta / Delta."""
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2:
        raise InputError("A dataset of two points or more is needed, one row per point.")
    n, d = points.shape
    gram = points @ points.T
    least = float(np.diag(gram).min())
    delta = float(np.abs(gram - np.diag(np.diag(gram))).max())
    return {
        "inner": n * delta / d,
        "norm": least / d,
        "ratio": n * delta / least if least > 0.0 else float("inf"),
    }


@dataclass(frozen=True)
class LearnableConditions:
    """Theorem C.1's three conditions as ratios; its constants are not known, so 1 stands for them.

    With them a network that is trained until it fits generalises *and* has its records on the
    margin.  Classes are taken for the mixture's components, and the features are divided by their
    spread within a class, which the theorem has as one.
    """

    mean: float  # the least |mu|^2 of a class / (n^0.51 sqrt d): the classes are apart
    dimension: float  # d / (n^2 max |mu|^2): and yet records are nearly orthogonal
    width: float  # k / n^0.02
    squared_means: tuple[float, ...]  # |mu|^2 of each class, without the part that is chance

    @property
    def hold(self) -> bool:
        """Whether all three hold with constants of one."""
        return min(self.mean, self.dimension, self.width) >= 1.0


def learnable_conditions(x: ArrayLike, y: ArrayLike, width: int) -> LearnableConditions:
    """Theorem C.1's conditions, looked at in a training set with labels -1 and 1.

    |mu|^2 is that of the class's mean less what chance adds to it, the class's variance over its
    number of records.

    Parameters
    ----------
    x, y
        (n, d) and (n,): records, and their labels of -1 or 1, two of each label at least.
    width
        k, the neurons of the network.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import relu
    >>> y = np.tile([1.0, -1.0], 10)
    >>> x = np.random.default_rng(0).standard_normal((20, 2000)) + 0.5 * y[:, None]
    >>> relu.learnable_conditions(x, y, width=100).mean > 1.0
    True
    """
    points = np.asarray(x, dtype=np.float64)
    labels = signs(y, len(points))
    n, d = points.shape
    parts = [points[labels == sign] for sign in (-1.0, 1.0)]
    if min(len(part) for part in parts) < 2:
        raise InputError("Theorem C.1's conditions need two records of each label.")
    within = sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts)
    variance = within / ((n - 2) * d)
    if not variance > 0.0:
        raise InputError("All records of a label are alike: there is no spread to compare with.")
    squared = tuple(
        max(float((part.mean(axis=0) ** 2).sum()) / variance - d / len(part), 0.0) for part in parts
    )
    largest = max(squared)
    return LearnableConditions(
        min(squared) / (n**0.51 * d**0.5),
        d / (n**2 * largest) if largest > 0.0 else np.inf,
        width / n**0.02,
        squared,
    )


def _sphere_tail(d: int, bound: float) -> float:
    """P(|x.y| > bound) on the sphere of radius sqrt(d)."""
    from scipy import special

    cosine = bound / d
    if cosine >= 1.0:
        return 0.0
    if d == 1:
        return 1.0
    return float(special.betainc(0.5 * (d - 1), 0.5, 1.0 - cosine**2))


def _short(d: int, squared_mean: float, bound: float) -> float:
    """P(|x|^2 < bound) for x ~ N(mean, I)."""
    from scipy import special

    return float(special.chndtr(bound, d, squared_mean))


def _normal_inner_tail(first: FloatArray, second: FloatArray, bound: float) -> float:
    """P(|x.y| > bound) for x ~ N(first, I), y ~ N(second, I), independent."""
    from scipy import special, stats

    d = len(first)
    size = float(np.linalg.norm(first))
    along = float(first @ second) / size if size > 0.0 else 0.0
    if size == 0.0 and np.any(second):
        return _normal_inner_tail(second, first, bound)
    rest = max(float(second @ second) - along**2, 0.0)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    # In one dimension the tail jumps where y changes sign, so the range is split there.
    ends = sorted({along - REACH, min(max(0.0, along - REACH), along + REACH), along + REACH})
    panels = list(pairwise(ends))
    y1 = np.concatenate([low + 0.5 * (high - low) * (nodes + 1.0) for low, high in panels])
    w1 = np.concatenate([0.5 * (high - low) * weights for low, high in panels])
    w1 = w1 * stats.norm.pdf(y1, along)
    if d == 1:
        length, w2 = np.zeros(1), np.ones(1)
    else:
        centre = np.sqrt(d - 1.0 + rest)
        low = max(centre - REACH, 0.0)
        half = 0.5 * (centre + REACH - low)
        length = low + half * (nodes + 1.0)
        law = stats.ncx2(d - 1, rest) if rest > 1e-12 else stats.chi2(d - 1)
        w2 = half * weights * 2.0 * length * law.pdf(length**2)
    spread = np.hypot(y1[:, None], length)
    mean = size * y1[:, None]
    tails = special.ndtr((mean - bound) / spread) + special.ndtr((-mean - bound) / spread)
    return float(w1 @ tails @ w2)
