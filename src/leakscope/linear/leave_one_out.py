"""The user's own records: each one's prediction with and without it, from one factorisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.linear.law_pair import bivariate
from leakscope.settings.plan import LinearAttacker


@dataclass(frozen=True, eq=False)
class LinearLeaveOneOut:
    """Second moments of label and prediction at each of n records, with and without the record.

    All are zero-mean Gaussian over coefficients and label noise, the features being fixed.

    Attributes
    ----------
    leverage
        (n,) how much a record's own label counts in its own prediction.
    label_variance
        (n,) variance of y_i.
    variance_with, variance_without
        (n,) variance of the prediction at the record.
    covariance_with, covariance_without
        (n,) covariance of label and prediction.
    interpolates
        Whether every record's label is reproduced.
    """

    leverage: FloatArray
    label_variance: FloatArray
    variance_with: FloatArray
    variance_without: FloatArray
    covariance_with: FloatArray
    covariance_without: FloatArray
    interpolates: bool
    assumptions: tuple[Assumption, ...]

    def law_pair(self, attacker: LinearAttacker = "label_hidden") -> LawPair:
        """A pair for each record: of the prediction, or of (label, prediction).

        A record that the model without it predicts as a constant (all its features are zero in
        the others' span) has no law there and is refused by the laws themselves.
        """
        provenance = Provenance(
            question="leave_one_out",
            adjacency="removed",
            observes="prediction" if attacker == "label_hidden" else "label_and_prediction",
            random=("labels",),
            attacker_knows_label=attacker == "label_known",
            method="exact",
            source="linear Exp. 1 at a fixed design, by leave-one-out identities",
            assumptions=self.assumptions,
        )
        if attacker == "label_hidden":
            return LawPair(
                Normal(0.0, np.sqrt(self.variance_with)),
                Normal(0.0, np.sqrt(self.variance_without)),
                provenance,
            )
        if self.interpolates:
            raise InputError(
                "The model reproduces every label, so an attacker who knows the label has "
                "advantage 1 at every record, and no law is needed."
            )
        return LawPair(
            bivariate(self.label_variance, self.covariance_with, self.variance_with),
            bivariate(self.label_variance, self.covariance_without, self.variance_without),
            provenance,
        )


def linear_leave_one_out(
    X: ArrayLike, sigma: float, prior_variance: float, ridge: float = 0.0
) -> LinearLeaveOneOut:
    """Every record's prediction with and without it, for least squares or ridge on the design X.

    Labels are y = X beta + noise, beta ~ N(0, prior_variance I), noise ~ N(0, sigma^2 I).  With
    z = n ridge, K = XX' and G = (K + zI)^{-1}, the model without record i says
    f_-i = y_i - (Gy)_i/G_ii at that record, and the one with it y_i - z(Gy)_i; their variances need
    only the diagonals of G and G^2, so one singular value decomposition serves all records.  The
    penalty stays n ridge when a record leaves.

    Parameters
    ----------
    X
        (n, p) features, centred or with a constant column as the user's model has them.
    sigma
        Standard deviation of the label noise.
    prior_variance
        Variance of each coefficient; it sets the signal, in squared label units per squared
        feature unit.
    ridge
        lambda; 0 is least squares, minimum norm where p >= n.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.linear import linear_leave_one_out
    >>> from leakscope.measures import advantage
    >>> X = np.random.default_rng(0).standard_normal((20, 60))
    >>> found = linear_leave_one_out(X, sigma=1.0, prior_variance=1 / 60)
    >>> found.interpolates, float(advantage(found.law_pair()).round(2).max())
    (True, 0.38)
    """
    design = _checked(X, sigma, prior_variance, ridge)
    n, p = design.shape
    left, values, _ = np.linalg.svd(design, full_matrices=False)
    square, weight = values**2, left**2
    z = n * ridge
    tau2, noise = prior_variance, sigma**2
    norm = np.einsum("ij,ij->i", design, design)
    label = tau2 * norm + noise
    rank = int((values > values[0] * max(n, p) * np.finfo(float).eps).sum())
    if z == 0.0 and p < n:
        _require_full(rank, p, "columns")
        h = weight.sum(axis=1)
        # a record that alone spans a direction cannot be left out of least squares
        if np.any(h > 1.0 - 1e-10):
            row = int(np.argmax(h))
            raise InputError(
                f"Without record {row} the columns of X are dependent and least squares has no "
                "unique answer; use a ridge above zero."
            )
        rest = h / (1.0 - h)
        parts = (
            tau2 * norm + noise * h,
            tau2 * norm + noise * rest,
            tau2 * norm + noise * h,
            tau2 * norm,
        )
        return LinearLeaveOneOut(h, label, *parts, False, _assumptions(design, z, values))
    if z == 0.0:
        _require_full(rank, n, "rows")
    outside = np.maximum(1.0 - weight.sum(axis=1), 0.0) if n > p else np.zeros(n)
    g = weight @ (1.0 / (square + z)) + (outside / z if z else 0.0)
    g2 = weight @ (1.0 / (square + z)) ** 2 + (outside / z**2 if z else 0.0)
    # written in sums of positive terms where possible: explained signal and passed-on noise
    spread = np.maximum(g2 / g**2 - 1.0, 0.0)
    kept = norm + z - 1.0 / g
    without = np.maximum(tau2 * (kept - z * spread) + noise * spread, 0.0)
    share = square / (square + z)
    with_it = weight @ (share**2 * (tau2 * square + noise))
    covariance = weight @ (share * (tau2 * square + noise))
    return LinearLeaveOneOut(
        leverage=weight @ share if z else np.ones(n),
        label_variance=label,
        variance_with=with_it,
        variance_without=without,
        covariance_with=covariance,
        covariance_without=tau2 * kept,
        interpolates=z == 0.0,
        assumptions=_assumptions(design, z, values),
    )


def _checked(X: ArrayLike, sigma: float, prior_variance: float, ridge: float) -> FloatArray:
    try:
        design = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("X must be a table of numbers, one row per record.") from None
    if design.ndim != 2 or design.shape[0] < 2 or design.shape[1] < 1:
        raise InputError(f"X must have two rows or more and a column, not shape {design.shape}.")
    if not np.all(np.isfinite(design)):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(design))[0])
        raise InputError(f"X must be finite, but row {row}, column {column} is not.")
    for name, value in (("sigma", sigma), ("prior_variance", prior_variance), ("ridge", ridge)):
        if not np.isfinite(value) or value < 0.0:
            raise InputError(f"{name} must be zero or above, but it is {value!r}.")
    if sigma == 0.0 and prior_variance == 0.0:
        raise InputError("Without label noise and coefficients there is nothing random.")
    return design


def _require_full(rank: int, wanted: int, what: str) -> None:
    if rank < wanted:
        raise InputError(
            f"The {what} of X are dependent (rank {rank}, not {wanted}), so least squares without "
            "a record is not determined; use a ridge above zero."
        )


def _assumptions(design: FloatArray, z: float, values: FloatArray) -> tuple[Assumption, ...]:
    condition = (values[0] ** 2 + z) / (values[-1] ** 2 + z)
    digits = condition * np.finfo(float).eps
    means = np.abs(design.mean(axis=0)) / np.maximum(design.std(axis=0), 1e-300)
    centred = bool(means.max() < 1e-6)
    return (
        Assumption("coefficients are N(0, prior_variance I) and label noise is Gaussian"),
        Assumption("the attacker knows the features of all records, sigma and the prior"),
        Assumption("the penalty n ridge stays as it is when a record leaves"),
        Assumption(
            "there is no intercept, or it is a column of X",
            holds=None if centred else bool(np.any(np.ptp(design, axis=0) == 0.0)) or None,
            evidence="columns are centred" if centred else "columns are not centred",
        ),
        Assumption(
            "float64 resolves the variances to a relative 1e-8",
            holds=bool(digits < 1e-8),
            evidence=f"condition number {condition:.2g}",
        ),
    )
