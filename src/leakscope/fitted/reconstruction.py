"""A missing record from a fit and all other records: the optimum's own equation.

At the optimum the gradient over everybody vanishes, so that the gradient g over the known records,
penalty included, is -F (x, 1): the force F of the missing record's loss times its features, and the
intercept's column gives F itself.  One division gives x, and the loss gives the label: it is
z - F for squares, the sign of F for classes (Balle, Cherubin, Hayes 2022, arXiv 2201.04845).

What stops it is the solver: at coefficients that are r away from a zero gradient the attacker
divides F x - r by F - r_0.  With noise of sd s on the coefficients the gradient is off by H times
the noise, and every attack at all, whatever it knows of the others, succeeds with at most
Phi(Phi^{-1}(kappa) + mu): kappa the chance without the model, mu the record's effect on the
coefficients over s (Hayes, Mahloujifar, Balle 2023, arXiv 2302.07225; Gaussian noise).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.erasure import Metric, forces, gradient
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.measures import tpr_at_fpr
from leakscope.settings.attack import FIT_RECONSTRUCT_DEFAULTS
from leakscope.single_fit.losses import LOSSES, Codes
from leakscope.single_fit.problem import ConvexProblem

# A record counts as found where its features are this near, beside their own length.
NEAR = 0.01
# A force smaller than this share of the largest is lost in rounding.
LOST = 1e-11

Determined = Literal["record", "direction", "sum", "nothing"]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What the equation says of what is missing.

    Attributes
    ----------
    determined
        ``record``: its features and its label; ``direction``: its features up to a factor (there
        is no intercept); ``sum``: the forces' weighted mean of several records; ``nothing``: the
        gradient over the known records is zero, so that nobody is missing.
    x
        The features as they reach the model, without the intercept: d numbers.
    label
        As the loss has it: a number, 0 or 1, a class code, a count; None unless a record.
    force
        F, or the classes' forces; None where there is no intercept.
    sd
        With noise on the coefficients: the standard deviation of each feature; None without.
    """

    determined: Determined
    x: FloatArray
    label: float | None
    force: FloatArray | None
    sd: FloatArray | None = None


def intercept_column(problem: ConvexProblem) -> tuple[int, float] | None:
    """The design's constant column and its value; None where there is none."""
    assert problem.X is not None
    last = problem.X[:, -1]
    constant = last[0] != 0.0 and bool(np.all(last == last[0]))
    return (problem.X.shape[1] - 1, float(last[0])) if constant else None


def reconstruct(
    known: ConvexProblem,
    *,
    missing: int = FIT_RECONSTRUCT_DEFAULTS.missing,
    weight: float = 1.0,
    noise: float = FIT_RECONSTRUCT_DEFAULTS.noise,
) -> Reconstruction:
    """What is missing from ``known``, which has all other records and the released coefficients.

    Parameters
    ----------
    known
        The problem over the known records; its coefficients are those of the fit with all.
    missing
        How many records are missing.
    weight
        The weight of each, where the fit had weights.
    noise
        The standard deviation of normal noise on every coefficient, for the error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from leakscope.fitted import from_sklearn
    >>> from leakscope.fitted.reconstruction import reconstruct
    >>> X, y = load_diabetes(return_X_y=True)
    >>> others = from_sklearn(Ridge(alpha=0.1).fit(X, y), X[1:], y[1:], at_optimum=False)
    >>> found = reconstruct(others.problems[0])
    >>> bool(np.allclose(found.x, X[0])), round(found.label)
    (True, 151)
    """
    if known.X is None:
        raise InputError(
            "This model keeps its training records in its file: they can be read without an attack."
        )
    if known.coefficients is None:
        raise InputError("The coefficients of the fit are needed to reconstruct from.")
    theta = np.asarray(known.coefficients, dtype=np.float64)
    slope = gradient(known, theta)
    if known.penalty_per_record:
        # the penalty of the whole training set, the missing records' share included
        share = missing * weight / known.sample_weights.sum()
        slope = slope + share * (known.penalty_at(1.0) * theta.T).T
    place = intercept_column(known)
    pulled = slope.reshape(len(theta), -1)
    size = float(np.abs(known.X.T @ forces(known, theta)).max())
    if not np.abs(pulled).max() > LOST * max(size, 1e-300):
        return Reconstruction("nothing", np.zeros(len(theta)), None, None)
    if place is None:
        left = _strongest(pulled)
        return Reconstruction("direction", left / np.linalg.norm(left), None, None)
    column, value = place
    force = -pulled[column] / value
    strength = float(force @ force)
    features = np.delete(np.arange(len(theta)), column)
    if strength == 0.0:
        raise InputError(
            "The missing records' effects cancel, so the equation does not reveal them."
        )
    x = np.asarray(-pulled[features] @ force / strength)
    sd = None
    if noise > 0.0:
        sd = _sds(known, theta, x, force, features, column, noise)
    if missing > 1:
        return Reconstruction("sum", x, None, force, sd)
    label = _label(known, theta, x, force / weight, features, column, value)
    return Reconstruction("record", x, label, force, sd)


def _strongest(pulled: FloatArray) -> FloatArray:
    """The one direction of a gradient of several classes."""
    left, sizes, _ = np.linalg.svd(pulled, full_matrices=False)
    return np.asarray(left[:, 0] * sizes[0])


def _label(
    known: ConvexProblem,
    theta: FloatArray,
    x: FloatArray,
    force: FloatArray,
    features: Codes,
    column: int,
    value: float,
) -> float:
    """The label that has this force at these features."""
    if known.loss == "softmax":
        return float(np.argmin(force))
    if known.loss == "logistic":
        return float(force[0] < 0.0)
    z = float(x @ theta[features] + value * theta[column])
    mean = -float(LOSSES[known.loss].force(np.array([z]), np.array([0.0]))[0])
    # force = mean(z) - label, and at a label of 0 it is the mean itself
    return float(-mean - force[0])


def _sds(
    known: ConvexProblem,
    theta: FloatArray,
    x: FloatArray,
    force: FloatArray,
    features: Codes,
    column: int,
    noise: float,
) -> FloatArray | None:
    """To first order: the gradient is off by H times the noise, of one output."""
    if known.loss == "softmax":
        return None
    metric = Metric(known, theta)
    hessian = np.column_stack([metric.times(row) for row in np.eye(len(theta))])
    rows = hessian[features] - np.outer(x, hessian[column])
    return np.asarray(noise * np.linalg.norm(rows, axis=1) / abs(float(force[0])))


@dataclass(frozen=True, eq=False)
class EveryRecord:
    """What the attack gets of each record in turn, from the released coefficients.

    Attributes
    ----------
    error
        How far the reconstruction is off, beside the record's own length: N.
    right
        Whether the label is right.
    gradient
        The largest entry of the gradient over all records: what the solver left.
    needed
        The largest entry at which half of the records would be found; infinite at the optimum.
    """

    error: FloatArray
    right: FloatArray
    gradient: float
    needed: float

    @property
    def found(self) -> float:
        """The share of the records that is found."""
        return float(np.mean(self.error <= NEAR))


def every_record(problem: ConvexProblem) -> EveryRecord:
    """The attack on every record, each by somebody who knows all others: one pass.

    ``problem`` has all records and the released coefficients.  Whoever knows all but record i sees
    the gradient over all, r, less F_i x_i; at the optimum r is zero.
    """
    assert problem.X is not None
    assert problem.coefficients is not None
    theta = np.asarray(problem.coefficients, dtype=np.float64)
    place = intercept_column(problem)
    if place is None:
        raise InputError("Without an intercept records are found up to a factor only.")
    column, value = place
    slope = gradient(problem, theta).reshape(len(theta), -1)
    force = forces(problem, theta)
    force = force if force.ndim == 2 else force[:, None]
    features = np.delete(np.arange(len(theta)), column)
    # what is seen of record i at the intercept and at the features
    seen = force - slope[column] / value
    strength = np.maximum(np.einsum("nc,nc->n", seen, seen), 1e-300)
    X = problem.X[:, features]
    pulled = np.einsum("nc,nc->n", force, seen)[:, None] * X - seen @ slope[features].T
    found = pulled / strength[:, None]
    length = np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    error = np.linalg.norm(found - X, axis=1) / length
    if problem.loss == "softmax":
        right = np.argmin(seen, axis=1) == problem.y
    elif problem.loss == "logistic":
        right = (seen[:, 0] < 0.0) == (problem.y > 0.5)
    else:
        right = error <= NEAR
    largest = float(np.max(np.abs(slope)))
    # errors grow as the gradient does
    with np.errstate(divide="ignore"):
        reach = np.where(error > 0.0, NEAR / error, np.inf)
    return EveryRecord(error, right, largest, float(np.median(reach)) * largest)


def rero_bound(kappa: float, effect: FloatArray | float, noise: float) -> FloatArray:
    """The largest chance of any reconstruction, with noise of this sd on every coefficient.

    ``kappa`` is the chance without the model, ``effect`` how far the record moves the coefficients.
    """
    if not 0.0 < kappa < 1.0:
        raise InputError(f"kappa is a chance between 0 and 1, but it is {kappa:g}.")
    if not noise > 0.0:
        return np.ones_like(np.asarray(effect, dtype=np.float64))
    mu = np.asarray(effect, dtype=np.float64) / noise
    # the best test of level kappa between two normals that far apart
    return np.asarray(tpr_at_fpr(LawPair(Normal(mu, 1.0), Normal(np.zeros_like(mu), 1.0)), kappa))
