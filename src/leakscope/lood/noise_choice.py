"""The noise variance, and the kernel's scale, chosen by the data.

Symbols: M = v (K + r I), v the kernel's scale, s2 = v r the noise variance, a = M^{-1} y,
m_i = [M^{-1}]_ii, C outputs.  Two criteria, both in closed form for all r from one
eigendecomposition of K:

    marginal likelihood   -1/2 [y^T M^{-1} y + C log det M + n C log 2 pi],
    leave-one-out score   sum_i log N(y_i | mean without, variance without + s2)
                          = 1/2 sum_i [C log m_i - |a_i|^2/m_i - C log 2 pi].

For either the best v given r has a closed form too, so that the search is over one number.
Marginal likelihood fits the noise of the labels; that this is also the randomness of training is
an assumption, and the audit says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.lood.all_records import checked_problem
from leakscope.lood.features import FeatureSums
from leakscope.lood.spectrum import Spectrum

Criterion = Literal["marginal_likelihood", "leave_one_out"]
CRITERIA: tuple[str, ...] = get_args(Criterion)

# r is sought between these, in units of the kernel's mean diagonal.
LOWEST, HIGHEST = 1e-8, 1e4
GRID = 73


@dataclass(frozen=True)
class NoiseChoice:
    """The noise variance that a criterion prefers.

    Attributes
    ----------
    noise_variance, kernel_scale
        s2, and v (1 unless it was asked for).
    criterion
        Which.
    score
        Its value there, in nats for each record and output.
    at_bound
        Whether the best value lies at an end of the search, and so says only "beyond".

    Examples
    --------
    >>> from leakscope.lood import NoiseChoice
    >>> NoiseChoice(0.05, 1.0, "leave_one_out", -0.7, False).sentence()
    'noise_variance 0.05 maximises the leave-one-out predictive score'
    """

    noise_variance: float
    kernel_scale: float
    criterion: Criterion
    score: float
    at_bound: bool

    def sentence(self) -> str:
        """The choice in words."""
        named = {
            "marginal_likelihood": "the marginal likelihood",
            "leave_one_out": "the leave-one-out predictive score",
        }[self.criterion]
        scale = "" if self.kernel_scale == 1.0 else f" with a kernel scale {self.kernel_scale:.4g}"
        bound = ", at the end of the range searched" if self.at_bound else ""
        return f"noise_variance {self.noise_variance:.4g}{scale} maximises {named}{bound}"


def choose_noise(
    kernel_matrix: FloatArray,
    y: FloatArray,
    *,
    criterion: Criterion = "marginal_likelihood",
    fit_scale: bool = False,
) -> NoiseChoice:
    """The noise variance, and with ``fit_scale`` the kernel's scale, that a criterion prefers.

    Cost: one eigendecomposition of the kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(300, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=300)
    >>> choice = lood.choose_noise(kernels.rbf(1.0)(X), y)
    >>> 0.07 < choice.noise_variance < 0.12
    True
    """
    if criterion not in CRITERIA:
        raise InputError(
            f"the criterion must be one of {', '.join(CRITERIA)}, but it is {criterion!r}."
        )
    matrix, targets = checked_problem(kernel_matrix, y, 1.0)
    outputs = targets.reshape(len(targets), -1)
    unit = float(np.mean(np.diagonal(matrix)))
    spectrum = Spectrum.of(matrix, "evr")
    eigenvalues, vectors = spectrum.values, spectrum.vectors
    turned = vectors.T @ outputs
    squared_vectors = spectrum.squares if criterion == "leave_one_out" else None

    def score_and_scale(log_r: float) -> tuple[float, float]:
        r = unit * float(np.exp(log_r))
        shrunk = 1.0 / (eigenvalues + r)
        if squared_vectors is None:
            quadratic = float(np.sum(turned**2 * shrunk[:, None])) / outputs.size
            log_volume = float(np.mean(np.log(eigenvalues + r)))
        else:
            m = squared_vectors @ shrunk
            a = vectors @ (turned * shrunk[:, None])
            quadratic = float(np.sum(a**2 / m[:, None])) / outputs.size
            log_volume = -float(np.mean(np.log(m)))
        scale = quadratic if fit_scale else 1.0
        value = quadratic / scale + log_volume + np.log(scale) + np.log(2.0 * np.pi)
        return -0.5 * float(value), scale

    if fit_scale and not outputs.any():
        raise InputError("the targets are all zero: no kernel scale fits them best.")
    return _best(score_and_scale, unit, criterion)


def choose_noise_of_sums(sums: FeatureSums) -> NoiseChoice:
    """The noise variance of largest marginal likelihood, under finite features.

    With A = Phi^T Phi + r I (d x d) and beta = A^{-1} Phi^T y,

        y^T M^{-1} y = (|y|^2 - beta . Phi^T y)/r,    log det M = log det A + (n - d) log r,

    so that the sums over the records are enough, however many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> rng = np.random.default_rng(0)
    >>> phi = rng.normal(size=(400, 3))
    >>> y = phi[:, :1] + 0.3 * rng.normal(size=(400, 1))
    >>> found = lood.choose_noise_of_sums(lood.feature_sums(phi, y))
    >>> 0.07 < found.noise_variance < 0.12
    True
    """
    spectrum = Spectrum.of(sums.gram.copy(), "evr")
    eigenvalues, turned = spectrum.values, np.sum((spectrum.vectors.T @ sums.product) ** 2, axis=1)
    width, outputs = sums.product.shape

    def score_and_scale(log_r: float) -> tuple[float, float]:
        r = unit * float(np.exp(log_r))
        left = max(sums.squares - float(np.sum(turned / (eigenvalues + r))), 0.0)
        quadratic = left / r / (sums.records * outputs)
        log_volume = float(np.sum(np.log(eigenvalues + r))) + (sums.records - width) * np.log(r)
        return -0.5 * (quadratic + log_volume / sums.records + np.log(2.0 * np.pi)), 1.0

    unit = float(np.trace(sums.gram)) / sums.records
    return _best(score_and_scale, unit, "marginal_likelihood")


def _best(
    score_and_scale: Callable[[float], tuple[float, float]], unit: float, criterion: Criterion
) -> NoiseChoice:
    """Where the score is largest, r being sought in units of the kernel's mean diagonal."""
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), GRID)
    best = int(np.argmax([score_and_scale(x)[0] for x in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    found = optimize.minimize_scalar(
        lambda x: -score_and_scale(x)[0], bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    log_r = float(found.x)
    score, scale = score_and_scale(log_r)
    return NoiseChoice(
        noise_variance=scale * unit * float(np.exp(log_r)),
        kernel_scale=scale,
        criterion=criterion,
        score=score,
        at_bound=best in (0, GRID - 1),
    )
