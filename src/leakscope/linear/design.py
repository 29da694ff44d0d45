"""What is planned: a model that sees p features of Gaussian records, and noise on its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.settings.plan import LinearDesignSettings
from leakscope.settings.setting import default_of


def require_scale(name: str, value: float) -> None:
    """Refuse a standard deviation, or a penalty, that is negative or no number."""
    if not math.isfinite(value) or value < 0.0:
        raise InputError(f"{name} must be zero or above, but it is {value!r}.")


@dataclass(frozen=True)
class GaussianDesign:
    """Least squares or ridge on n Gaussian records, with p of their D features in use.

    Records are x ~ N(0, I_D), coefficients beta ~ N(0, I_D / D), labels y = x'beta + noise, and the
    estimate solves (X_p'X_p + n lambda I) beta_hat = X_p'y (the minimum-norm solution at
    lambda = 0).

    Parameters
    ----------
    n
        Records in the training set.
    p
        Features that the model uses.
    dim
        D, all features.
    sigma
        Standard deviation of the label noise.
    ridge
        lambda; 0 is least squares (minimum norm where p > n).
    """

    n: int
    p: int
    dim: int
    sigma: float
    ridge: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("n", 2), ("p", 1), ("dim", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise InputError(f"{name} must be a whole number, but it is {value!r}.")
            if value < least:
                raise InputError(f"{name} must be {least} or more, but it is {value}.")
        for name in ("sigma", "ridge"):
            require_scale(name, getattr(self, name))
        if self.p > self.dim:
            raise InputError(
                f"p must be at most dim, the number of features there are, but p is {self.p} and "
                f"dim is {self.dim}."
            )

    @property
    def ratio(self) -> float:
        """gamma = p / n, parameters for each record."""
        return self.p / self.n

    @property
    def penalty(self) -> float:
        """n lambda, what is added to the diagonal of X_p'X_p."""
        return self.n * self.ridge

    @property
    def interpolates(self) -> bool:
        """Whether the model reproduces the labels of its training records."""
        return self.ridge == 0.0 and self.p >= self.n

    @property
    def unseen_variance(self) -> float:
        """sigma^2 + 1 - p/D: noise and unused features together, on average."""
        return self.sigma**2 + 1.0 - self.p / self.dim


@dataclass(frozen=True, eq=False)
class RecordNorms:
    """What matters of the records x0 in question: their squared norms, and a weight for each.

    By rotation nothing else of x0 enters the laws.  ``used`` is ||x_{0,p}||^2, ``unused`` is
    ||x_{0,pbar}||^2; weights sum to one.
    """

    used: FloatArray
    unused: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, used: ArrayLike, unused: ArrayLike, weight: ArrayLike | None = None) -> RecordNorms:
        """Check and broadcast given squared norms; equal weights where none are given."""
        pair: list[Any] = []
        for name, value in (("used", used), ("unused", unused)):
            array = np.atleast_1d(np.asarray(value, dtype=np.float64))
            if array.ndim != 1 or not np.all(np.isfinite(array)) or np.any(array < 0.0):
                raise InputError(f"Squared norms ({name}) must be finite, zero or above, in a row.")
            pair.append(array)
        first, second = np.broadcast_arrays(*pair)
        if weight is None:
            return cls(first, second, np.full(first.shape, 1.0 / first.size))
        share = np.broadcast_to(np.asarray(weight, dtype=np.float64), first.shape)
        return cls(first, second, share / share.sum())

    @classmethod
    def typical(cls, design: GaussianDesign) -> RecordNorms:
        """The record of average norms, p and D - p."""
        return cls.of(float(design.p), float(design.dim - design.p))

    @classmethod
    def nodes(cls, design: GaussianDesign, used: int = 7, unused: int = 3) -> RecordNorms:
        """Quadrature nodes for x0 ~ N(0, I_D): chi-square(p) and chi-square(D - p) norms.

        Gauss-Hermite nodes carried over by the quantile function: the laws are smooth in the
        norms, and a few nodes replace any number of sampled D-vectors.
        """
        first, weight_first = _chi_square_nodes(design.p, used)
        second, weight_second = _chi_square_nodes(design.dim - design.p, unused)
        weight = np.outer(weight_first, weight_second)
        grid = np.meshgrid(first, second, indexing="ij")
        return cls.of(grid[0].ravel(), grid[1].ravel(), weight.ravel())

    @classmethod
    def sample(
        cls,
        design: GaussianDesign,
        count: int,
        random_state: int | np.random.Generator | Key | None = None,
    ) -> RecordNorms:
        """The norms of ``count`` records drawn from N(0, I_D), without drawing D-vectors."""
        generator = as_key(random_state).generator()
        used = generator.chisquare(design.p, count)
        rest = design.dim - design.p
        return cls.of(used, generator.chisquare(rest, count) if rest else np.zeros(count))


def _chi_square_nodes(freedom: int, count: int) -> tuple[FloatArray, FloatArray]:
    if freedom == 0:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    quantile = 2.0 * special.gammaincinv(0.5 * freedom, special.ndtr(nodes))
    return np.asarray(quantile), np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class OutputNoise:
    """Independent Gaussian noise of standard deviation ``sigma`` on the model's answers.

    Parameters
    ----------
    sigma
        The paper's sigma-bar.
    to
        ``"everyone"``: every answer, which can be deployed.  ``"nonmembers"``: only answers about
        records outside the training set (Lemma 4.4), which nobody can deploy, for whoever knows
        when to add noise gives membership away.
    answers
        How often the attacker asks the same question and gets fresh noise.
    memoised
        Whether a repeated question gets the same answer, so that asking again is of no use.

    Examples
    --------
    >>> from leakscope.linear import OutputNoise
    >>> OutputNoise(1.0, answers=4).variances()
    (0.25, 0.25)
    >>> OutputNoise(1.0, answers=4, memoised=True).variances()
    (1.0, 1.0)
    >>> OutputNoise(1.0, to="nonmembers").variances()
    (0.0, 1.0)
    """

    sigma: float
    to: Literal["everyone", "nonmembers"] = "everyone"
    answers: int = default_of(LinearDesignSettings, "answers")
    memoised: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.sigma) or self.sigma < 0.0:
            raise InputError(
                f"The output noise must be a standard deviation, zero or above, "
                f"but it is {self.sigma!r}."
            )
        if self.answers < 1:
            raise InputError(f"answers must be 1 or more, but it is {self.answers}.")
        if self.to == "nonmembers" and self.answers > 1 and not self.memoised:
            raise InputError(
                "Fresh noise for non-members only gives membership away at the second answer: "
                "members' answers repeat and others' do not."
            )

    def variances(self) -> tuple[float, float]:
        """Noise variance of what counts for the attacker, the mean answer: member, non-member.

        The mean of k answers with fresh Gaussian noise is sufficient, so k answers are one answer
        with variance sigma^2/k.
        """
        variance = self.sigma**2 / (1 if self.memoised else self.answers)
        return (variance if self.to == "everyone" else 0.0), variance
