"""Ways to train a linear model that may give less away, in one design: all are linear in y.

Ridge, gradient descent that stops early, gradient descent with noise in every step, and bags of
least-squares fits predict yhat0 = w'y with weights that the features alone decide, plus a noise
that they decide too.  So (y0, yhat0) stays a zero-mean Gaussian given the design, and the laws are
mixtures over designs as those of least squares are (:mod:`leakscope.linear.moments`).

With X_p'X_p = V diag(e) V' a spectral filter has w = X_p V diag(psi(e)) V'x0:

    ridge             psi = 1/(e + n lambda)
    t steps of rate r psi = (1 - q^t)/e,  q = 1 - r e/n,
                      of beta <- beta - (r/n) X_p'(X_p beta - y), from zero
    with noise        the same, and r^2 s^2 sum_{j<t} q^(2j) for each direction of x0: every step
                      adds r N(0, s^2 I)

A bag holds a share of the records, drawn without replacement; a model is the mean over bags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.keys import Key
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.moments import (
    Moments,
    drawn_record,
    gaussian_moments,
    label_variance,
    prediction_weights,
)

IntArray = NDArray[np.int64]
DefenceName = Literal["none", "ridge", "early stopping", "noisy descent", "bagging", "output noise"]


@dataclass(frozen=True)
class Defence:
    """One way to train, at one setting.

    Parameters
    ----------
    name
        ``"none"`` is the design's own model.
    setting
        lambda of ridge; steps of early stopping; s, the noise of a gradient's entry, of noisy
        descent; a bag's share of the records; the standard deviation of noise on every answer.
    steps
        Of noisy descent.
    bags
        Of bagging.

    Examples
    --------
    >>> from leakscope.linear.defences import Defence
    >>> Defence("early stopping", 10).setting
    10
    """

    name: DefenceName
    setting: float = 0.0
    steps: int = 10
    bags: int = 20

    def __post_init__(self) -> None:
        if not (math.isfinite(self.setting) and self.setting >= 0.0):
            raise InputError(f"{self.name}: a setting must be zero or above, not {self.setting}.")
        if self.name == "early stopping" and self.setting != int(self.setting):
            raise InputError(f"early stopping: steps must be whole, but they are {self.setting}.")
        if self.name == "bagging" and not 0.0 < self.setting <= 1.0:
            raise InputError(f"bagging: a bag's share lies in (0, 1], but it is {self.setting}.")


def descent_rate(design: GaussianDesign) -> float:
    """The rate r of gradient descent: one over the limit of X_p'X_p/n's largest eigenvalue."""
    return 1.0 / (1.0 + math.sqrt(design.ratio)) ** 2


def defended_moments(
    design: GaussianDesign,
    defences: Sequence[Defence],
    norms: RecordNorms,
    *,
    draws: int,
    key: Key,
) -> list[tuple[Moments, Moments]]:
    """Second moments of (y0, yhat0) with and without the record, of each defence.

    All defences are of the same ``draws`` whole matrices, so that they are compared like with like.
    """
    found = np.empty((len(defences), 2, 2, norms.used.size, draws))
    for draw in range(draws):
        generator = key.child(draw).generator()
        rows = generator.standard_normal((design.n, design.dim))
        records = np.stack(
            [
                drawn_record(design, float(used), float(unused), generator)
                for used, unused in zip(norms.used, norms.unused, strict=True)
            ],
            axis=1,
        )
        chosen = [_bags(design, one, generator) for one in defences]
        found[:, 1, :, :, draw] = _trained(design, defences, rows, records, chosen)
        for j in range(records.shape[1]):
            trained = rows.copy()
            trained[0] = records[:, j]
            asked = records[:, j : j + 1]
            found[:, 0, :, j, draw] = _trained(
                design, defences, trained, asked, chosen, member=True
            )[..., 0]
    label = label_variance(design, norms)
    return [
        (Moments(label, member[0], member[1]), Moments(label, fresh[0], fresh[1]))
        for member, fresh in found
    ]


def _trained(
    design: GaussianDesign,
    defences: Sequence[Defence],
    rows: FloatArray,
    records: FloatArray,
    chosen: Sequence[IntArray | None],
    *,
    member: bool = False,
) -> FloatArray:
    """(defences, 2, K): variance of a prediction and covariance with y0, at K records (D, K)."""
    p = design.p
    small = any(bags is not None and bags.shape[1] <= p for bags in chosen)
    gram = row_products(rows[:, :p]) if p >= design.n or small else None
    spectrum = _Spectrum.of(rows[:, :p], records[:p], gram)
    found = []
    for one, bags in zip(defences, chosen, strict=True):
        extra: FloatArray | float = 0.0
        if one.name == "bagging":
            assert bags is not None
            weights = _bagged(rows[:, :p], records[:p], design.penalty * one.setting, bags, gram)
        elif one.name == "early stopping":
            weights = spectrum.descended(int(one.setting), descent_rate(design))
        elif one.name == "noisy descent":
            weights = spectrum.descended(one.steps, descent_rate(design))
            extra = spectrum.shaken(one.steps, descent_rate(design)) * one.setting**2
        else:
            lam = one.setting if one.name == "ridge" else design.ridge
            weights = spectrum.ridge(design.n * lam)
            extra = one.setting**2 if one.name == "output noise" else 0.0
        moments = gaussian_moments(rows, records, weights, 1.0 / design.dim, design.sigma**2)
        if member:
            moments[1] += design.sigma**2 * weights[0]
        moments[0] += extra
        found.append(moments)
    return np.stack(found)


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """X_p in its own directions: eigenvalues e of the smaller Gram matrix, and K records there.

    ``inside`` is V'x0, (m, K), ``beyond`` the squared length of x0 outside the rows' span.
    """

    values: FloatArray
    left: FloatArray
    inside: FloatArray
    beyond: FloatArray
    n: int

    @classmethod
    def of(
        cls, features: FloatArray, records: FloatArray, gram: FloatArray | None = None
    ) -> _Spectrum:
        """``gram``, the products of rows, is what a wide design needs; it may be known."""
        n, p = features.shape
        if p >= n:
            values, left = symmetric_eigen(row_products(features) if gram is None else gram)
            values = np.maximum(values, 1e-14 * values[-1])
            inside = (left.T @ (features @ records)) / np.sqrt(values)[:, None]
        else:
            values, right = symmetric_eigen(row_products(features.T))
            values = np.maximum(values, 1e-14 * values[-1])
            left = (features @ right) / np.sqrt(values)
            inside = right.T @ records
        beyond = np.maximum((records**2).sum(axis=0) - (inside**2).sum(axis=0), 0.0)
        return cls(values, left, inside, beyond if p > n else np.zeros_like(beyond), n)

    def _filtered(self, psi: FloatArray) -> FloatArray:
        """w = X_p V psi V'x0 = U sqrt(e) psi V'x0."""
        return np.asarray(self.left @ ((np.sqrt(self.values) * psi)[:, None] * self.inside))

    def ridge(self, penalty: float) -> FloatArray:
        return self._filtered(1.0 / (self.values + penalty))

    def descended(self, steps: int, rate: float) -> FloatArray:
        q = 1.0 - rate * self.values / self.n
        return self._filtered((1.0 - q**steps) / self.values)

    def shaken(self, steps: int, rate: float) -> FloatArray:
        """Variance of the prediction for unit noise: r^2 sum_{j<t} q^(2j) in each direction."""
        square = (1.0 - rate * self.values / self.n) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            series = np.where(square == 1.0, steps, (1.0 - square**steps) / (1.0 - square))
        return np.asarray(rate**2 * (series @ self.inside**2 + steps * self.beyond))


def _bags(design: GaussianDesign, one: Defence, generator: np.random.Generator) -> IntArray | None:
    """Rows of each bag, (bags, size); the same whether or not the record is in the first row."""
    if one.name != "bagging":
        return None
    size = max(1, round(one.setting * design.n))
    return np.stack([generator.permutation(design.n)[:size] for _ in range(one.bags)])


def _bagged(
    features: FloatArray,
    records: FloatArray,
    penalty: float,
    bags: IntArray,
    gram: FloatArray | None = None,
) -> FloatArray:
    """The mean over bags of each one's weights, zero on the rows that it has not.

    Bags of fewer records than features share one Gram matrix of all rows.
    """
    weights = np.zeros((features.shape[0], records.shape[1]))
    if bags.shape[1] > features.shape[1]:
        for bag in bags:
            weights[bag] += prediction_weights(features[bag], records, penalty)
        return weights / len(bags)
    gram = row_products(features) if gram is None else gram
    asked = features @ records
    inner = gram[bags[:, :, None], bags[:, None, :]] + penalty * np.eye(bags.shape[1])
    solved = np.linalg.solve(inner, asked[bags])
    np.add.at(weights, bags, solved)
    return weights / len(bags)
