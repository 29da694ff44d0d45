"""Every record's posterior at its own point, with it and without it, from one factorisation.

Symbols: K the kernel matrix of all n records (the paper's K_D'D'), s2 the noise variance (the
paper's sigma^2), M = K + s2 I, a = M^{-1} y, m_i = [M^{-1}]_ii.  A Gaussian process trained on
all records has at record i

    mean with    = y_i - s2 a_i        variance with    = s2 - s2^2 m_i,

and one trained on the others (the classical leave-one-out identities)

    mean without = y_i - a_i / m_i     variance without = 1/m_i - s2,

so that all n pairs of the paper's Def. C.3, each queried at its own record, cost one Cholesky
factorisation and one inverse.  No query reveals more about record i than x_i itself.

**Digits.**  Everything is written in the leverage h_i = [K M^{-1}]_ii = 1 - s2 m_i, in which
nothing cancels: variance with = s2 h_i, variance without = h_i/m_i, mean shift = a_i h_i/m_i.
Where the noise dominates, h_i is small and 1 - s2 m_i would lose it; it is then summed from
K_ij [M^{-1}]_ij, whichever of the two forms has the smaller rounding error.  What is left is the
error of the inverse, estimated for each record and turned into a flag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.log_space import x_minus_log1p
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Normal, Provenance

FloatArray = NDArray[np.float64]

# A record is trusted when its KL is estimated to be right to this relative error.
TRUSTED_BELOW = 1e-8

# The share of eps ||M|| that rounding really uses.  Over random problems with n up to 600 and noise
# from 1e-6 to 1e6 the error reached 0.015 of the estimate that a share of 1 gives, where it was
# anywhere near 1e-8.
ERROR_SHARE = 0.02

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LeaveOneOut:
    """What a Gaussian process says at each training record, with and without that record.

    Arrays run over the n records; those marked (n, C) have the targets' shape: (n,) for a vector
    of targets, (n, C) for C outputs.  The outputs share one kernel, so variances do not depend on
    the output.

    Attributes
    ----------
    mean_with, mean_without
        (n, C) posterior means of the latent function at the record.
    variance_with, variance_without
        (n,) posterior variances of the latent function (no observation noise added).
    mean_shift
        (n, C) mean with minus mean without, computed without subtracting the two.
    leverage
        (n,) how much the record's own target counts in its own prediction, between 0 and 1.
    kl_label_free
        (n,) the part of KL(without || with) from the drop in variance; no label enters it.
    kl_label
        (n,) the part from the shift in mean; it depends on the record's label.
    mean_distance
        (n,) the paper's Def. C.1: half the squared difference of means, summed over outputs.
    error_estimate
        (n,) estimated relative error of the KL, from the conditioning of M at that record.
    trusted
        (n,) whether that estimate is below 1e-8.
    condition_number
        Of M, in the 1-norm (estimated).
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.array([[0.0], [0.1], [3.0]])
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> result = lood.all_records(kernels.rbf(1.0)(X), y, noise_variance=0.1)
    >>> (result.kl_label_free + result.kl_label).round(3).tolist()
    [0.175, 0.178, 8.459]
    >>> result.law_pair().batch_shape
    (3,)
    """

    mean_with: FloatArray
    mean_without: FloatArray
    variance_with: FloatArray
    variance_without: FloatArray
    mean_shift: FloatArray
    leverage: FloatArray
    kl_label_free: FloatArray
    kl_label: FloatArray
    mean_distance: FloatArray
    error_estimate: FloatArray
    trusted: NDArray[np.bool_]
    condition_number: float
    noise_variance: float

    def law_pair(self) -> LawPair:
        """The batch of pairs, one a record, of the latent function at the record itself.

        Each pair is measured from its own mean without the record: the nonmember law is centred
        at zero and the member law at the mean shift.  A known translation changes no measure, and
        in this form a shift far smaller than the means themselves keeps its digits.
        """
        sigma_with = np.sqrt(self.variance_with)
        sigma_without = np.sqrt(self.variance_without)
        if self.mean_shift.ndim == 1:
            return LawPair(
                member=Normal(self.mean_shift, sigma_with),
                nonmember=Normal(np.zeros_like(self.mean_shift), sigma_without),
                provenance=self.provenance(),
            )
        identity = np.eye(self.mean_shift.shape[1])
        return LawPair(
            member=MultivariateNormal(
                self.mean_shift, self.variance_with[:, None, None] * identity
            ),
            nonmember=MultivariateNormal(
                np.zeros_like(self.mean_shift), self.variance_without[:, None, None] * identity
            ),
            provenance=self.provenance(),
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        untrusted = int(np.count_nonzero(~self.trusted))
        return Provenance(
            question="leave_one_out",
            adjacency="removed",
            observes="latent",
            random=("training",),
            attacker_knows_label=True,
            method="exact",
            source="lood Def. C.3 at the record itself, by the leave-one-out identities",
            assumptions=(
                Assumption(
                    statement="the model is a Gaussian process with this kernel and squared loss, "
                    "and the attacker sees a draw of its latent function at the record",
                    holds=None,
                    evidence="no trained model was examined",
                ),
                Assumption(
                    statement="noise_variance describes the randomness of training",
                    holds=None,
                    evidence=f"it was set to {self.noise_variance:g}, in squared units of the "
                    "target, and sets the level of every number; read the ranks",
                ),
                Assumption(
                    statement="scaling, encoding, kernel and noise stay as they are when the "
                    "record leaves",
                    holds=True,
                    evidence="they are fixed in this computation",
                ),
                Assumption(
                    statement="the attacker knows every other record and the record in question",
                    holds=None,
                    evidence="the strongest attacker is assumed",
                ),
                Assumption(
                    statement="float64 resolves each record's laws to a relative 1e-8",
                    holds=untrusted == 0,
                    evidence=f"condition number {self.condition_number:.2g}; "
                    f"{untrusted} of {len(self.trusted)} records flagged",
                ),
            ),
        )


def all_records(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    noise_variance: float,
    overwrite: bool = False,
) -> LeaveOneOut:
    """The laws with and without each record, at that record, for all records at once.

    Parameters
    ----------
    kernel_matrix
        K, n by n, symmetric.
    y
        Targets, (n,) or (n, C).  They are used as they are; the process's prior mean is zero.
    noise_variance
        s2, in squared units of the target.
    overwrite
        Use the kernel matrix's memory for the factorisation; the matrix is lost.

    Raises
    ------
    InputError
        Where shapes do not fit, a record has no variance of its own, or K + s2 I is not positive
        definite to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> result = lood.all_records(np.eye(2), np.array([0.0, 2.0]), noise_variance=1.0)
    >>> result.mean_with.round(12).tolist(), result.variance_with.round(12).tolist()
    ([0.0, 1.0], [0.5, 0.5])
    >>> result.mean_without.round(12).tolist(), result.variance_without.round(12).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    matrix, targets = _checked(kernel_matrix, y, noise_variance)
    prior = np.diagonal(matrix).copy()
    if not overwrite:
        matrix = matrix.copy()
    np.fill_diagonal(matrix, prior + noise_variance)
    try:
        factor = cholesky.factorise(matrix, overwrite=True)
        a = cholesky.solve(factor, targets)
        condition_number = cholesky.condition_number(factor)
        inverse = cholesky.inverse(factor, overwrite=True)
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"the kernel matrix with noise_variance {noise_variance:g} on its diagonal is not "
            f"positive definite in float64 ({error}): raise noise_variance, or check for "
            "repeated records."
        ) from error
    m = inverse.diagonal()
    leverage, leverage_error = _leverage(inverse, m, prior, noise_variance, factor.norm)

    outputs = a.reshape(len(m), -1)
    shift = outputs * (leverage / m)[:, None]
    mean_distance = 0.5 * np.sum(shift**2, axis=1)
    variance_with = noise_variance * leverage
    # rho - 1 - log(rho) for the ratio of variances rho = 1/(s2 m) = 1 + h/(s2 m).
    kl_label_free = outputs.shape[1] * 0.5 * x_minus_log1p(leverage / (noise_variance * m))
    kl_label = mean_distance / variance_with
    error_estimate = _relative_error(
        inverse,
        factor.norm,
        m,
        leverage,
        leverage_error,
        noise_variance * m,
        outputs,
        kl_label_free,
        kl_label,
    )
    return LeaveOneOut(
        mean_with=targets - noise_variance * a,
        mean_without=targets - (outputs / m[:, None]).reshape(targets.shape),
        variance_with=variance_with,
        variance_without=leverage / m,
        mean_shift=shift.reshape(targets.shape),
        leverage=leverage,
        kl_label_free=kl_label_free,
        kl_label=kl_label,
        mean_distance=mean_distance,
        error_estimate=error_estimate,
        trusted=error_estimate < TRUSTED_BELOW,
        condition_number=condition_number,
        noise_variance=float(noise_variance),
    )


def _checked(
    kernel_matrix: FloatArray, y: FloatArray, noise_variance: float
) -> tuple[FloatArray, FloatArray]:
    matrix = np.asarray(kernel_matrix, dtype=np.float64)
    targets = np.asarray(y, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise InputError(f"the kernel matrix must be square, but its shape is {matrix.shape}.")
    if targets.ndim not in (1, 2) or len(targets) != len(matrix) or targets.size == 0:
        raise InputError(
            f"the kernel matrix has {len(matrix)} records, but the targets' shape is "
            f"{targets.shape}; it must be ({len(matrix)},) or ({len(matrix)}, outputs)."
        )
    if not (np.isfinite(noise_variance) and noise_variance > 0.0):
        raise InputError(f"noise_variance must be positive and finite, but it is {noise_variance}.")
    prior = np.diagonal(matrix)
    empty = np.flatnonzero(~(np.isfinite(prior) & (prior > 0.0)))
    if empty.size:
        raise InputError(
            f"the kernel of the record in row {empty[0]} with itself is {prior[empty[0]]}; it "
            "must be positive and finite."
        )
    return matrix, targets


def _leverage(
    inverse: cholesky.PackedInverse,
    m: FloatArray,
    prior: FloatArray,
    noise_variance: float,
    norm: float,
) -> tuple[FloatArray, FloatArray]:
    """h_i = [K M^{-1}]_ii by the better of two exact forms, with a bound on its rounding error."""
    from_diagonal = 1.0 - noise_variance * m
    off_diagonal, magnitude = inverse.off_diagonal_products()
    from_products = prior * m + off_diagonal
    diagonal_error = _EPS * noise_variance * m
    products_error = _EPS * (prior * m + magnitude)
    use_products = products_error < diagonal_error
    leverage = np.where(use_products, from_products, from_diagonal)
    # x/(x + s2) over the spectrum of K is concave and at least x/||M||: rounding cannot be
    # allowed to leave these bounds, or a variance would come out negative.
    leverage = np.clip(leverage, prior / norm, prior / (prior + noise_variance))
    return leverage, np.where(use_products, products_error, diagonal_error)


def _relative_error(
    inverse: cholesky.PackedInverse,
    norm: float,
    m: FloatArray,
    leverage: FloatArray,
    leverage_error: FloatArray,
    complement: FloatArray,
    outputs: FloatArray,
    kl_label_free: FloatArray,
    kl_label: FloatArray,
) -> FloatArray:
    """First-order estimate of the KL's relative error when M is known to ERROR_SHARE eps ||M||.

    A change E of M changes m_i by at most ||E|| ||M^{-1} e_i||^2 and a_i by at most
    ||E|| ||M^{-1} e_i|| ||a||; both are eps times the condition number at worst, and far less for
    a record that the ill-conditioned directions do not touch.
    """
    reach = inverse.squared_column_norms()
    error_matrix = ERROR_SHARE * _EPS * norm
    relative_m = error_matrix * reach / m
    relative_h = leverage_error / leverage + relative_m * complement / leverage
    size = np.sqrt(np.sum(outputs**2, axis=1))
    error_a = error_matrix * np.sqrt(reach) * np.sqrt(np.sum(outputs**2))
    variance_error = outputs.shape[1] * 0.5 * leverage / complement * relative_m
    # kl_label is scale times a_i^2; where a label agrees exactly, a_i = 0, its error is quadratic.
    scale = 0.5 * leverage / (complement * m)
    label_error = scale * error_a * (2.0 * size + error_a) + kl_label * (
        relative_h + 2.0 * relative_m
    )
    total = np.maximum(kl_label_free + kl_label, np.finfo(np.float64).tiny)
    return np.asarray((variance_error + label_error) / total)
