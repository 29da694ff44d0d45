"""Everything by direct simulation: draw datasets, replace a record, refit, compare.

Nothing here uses state evolution except, for the component-wise divergence, the form of an
estimate's law (Eq. 53), whose location and scale are measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.lasso.estimate_laws import log_ratios
from leakscope.lasso.noise_laws import information
from leakscope.lasso.setting import LassoSetting
from leakscope.lasso.solver import solve_lasso, solve_lasso_many
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair

# Noises that locate a coordinate, for each noise under which neighbours are refitted.
_LOCATING = 4

# Draws of Laplace noise on a release, whose advantage has no closed form.
_OUTPUT_DRAWS = 400


class DatasetMean(NamedTuple):
    """A mean over datasets and its standard error."""

    value: float
    stderr: float


@dataclass(frozen=True)
class SimulatedLasso:
    """Errors, overlap and divergences measured on drawn datasets, each with a standard error.

    ``joint_kl`` is Eq. (9) from the explicit density; ``kl_pairs`` (pairs,) are its estimates for
    the single pairs, each from its noises alone; ``advantage`` is the mean over pairs;
    ``mean_ratio`` is the mean of p'/p, which is 1 if the density is normalised (``None`` for output
    perturbation).  ``cw_kl`` is ``None`` unless refits of the neighbours were asked; under output
    perturbation it is ``joint_kl``.
    """

    setting: LassoSetting
    coefficients: int
    datasets: int
    pairs: int
    generalization_error: DatasetMean
    training_error: DatasetMean
    active_fraction: DatasetMean
    overlap_error: DatasetMean
    joint_kl: DatasetMean
    advantage: DatasetMean
    mean_ratio: DatasetMean | None
    cw_kl: DatasetMean | None
    kl_pairs: FloatArray


class _Drawn(NamedTuple):
    energy: float
    row: list[float]
    pairs: list[list[float]]
    cw: list[list[float]]


def simulate_lasso(
    setting: LassoSetting,
    *,
    coefficients: int = 1000,
    datasets: int = 20,
    noises: int = 10,
    neighbours: int = 20,
    component_wise: bool = False,
    random_state: int | np.random.Generator | Key | None = None,
) -> SimulatedLasso:
    """Draw datasets of Setting D, add noise, refit, replace records, compare.

    Parameters
    ----------
    setting
        One setting, sigma_eta above zero.  Under output perturbation each pair's KL is exact given
        its two fits, ||beta_hat - beta_hat'||^2/(2 sigma_eta^2), and ``noises`` is not used.
    coefficients
        p; n is alpha p, rounded.
    datasets, noises, neighbours
        How many datasets, noises for each, and replaced records for each; datasets are the
        independent units of every standard error.
    component_wise
        Also refit every neighbour under every noise, for cwOnAveKL (Eq. 56): each coordinate's
        location moves by a mean over noises; the product of two halves' means has no noise bias.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, simulate_lasso
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.5)
    >>> found = simulate_lasso(setting, coefficients=200, datasets=4, noises=4, neighbours=2)
    >>> bool(0.0 < found.overlap_error.value < found.generalization_error.value)
    True
    """
    if setting.shape != ():
        raise InputError("simulate_lasso takes one setting at a time.")
    if not setting.sigma_eta > 0.0:
        raise InputError("Without privacy noise the divergence is infinite; set sigma_eta > 0.")
    if min(datasets, noises) < 2 or neighbours < 1 or coefficients < 10:
        raise InputError(
            "simulate_lasso needs 10 coefficients, 2 datasets, 2 noises and 1 neighbour or more."
        )
    if component_wise and setting.objective_noise > 0.0 and setting.noise == "laplace":
        raise InputError("The component-wise divergence is of Gaussian noise; leave it out.")
    n = max(2, round(float(setting.alpha) * coefficients))
    if neighbours > n:
        raise InputError(f"There are {n} records to replace, fewer than {neighbours} neighbours.")
    require_memory(
        8 * coefficients * (3 * n + 8 * noises + 8 * neighbours),
        f"A simulation with {coefficients} coefficients",
        "ask for fewer coefficients, noises or neighbours",
    )
    key = as_key(random_state)
    output = setting.mechanism == "output"
    drawn = []
    for index in range(datasets):
        data = _Data.draw(setting, n, coefficients, neighbours, key.child(index))
        if output:
            drawn.append(_under_output(setting, data, key.child(index, 1)))
        else:
            own = key.child(index, 1)
            drawn.append(_under_objective(setting, data, noises, component_wise, own))
    energy = np.array([part.energy for part in drawn])
    means = [_mean(column, energy) for column in np.array([part.row for part in drawn]).T]
    pairs = np.array([part.pairs for part in drawn])
    joint = _controlled(pairs, energy)
    cw = joint if output else None
    if component_wise and not output:
        cw = _controlled(np.array([part.cw for part in drawn]), energy)
    return SimulatedLasso(
        setting=setting,
        coefficients=coefficients,
        datasets=datasets,
        pairs=datasets * neighbours,
        generalization_error=means[0],
        training_error=means[1],
        active_fraction=means[2],
        overlap_error=means[3],
        joint_kl=joint,
        advantage=means[4],
        mean_ratio=None if output else _mean(1.0 + pairs[..., 1].mean(axis=1), energy),
        cw_kl=cw,
        kl_pairs=pairs[..., 0].ravel(),
    )


class _Data(NamedTuple):
    """A dataset of Setting D, the records to replace, and what replaces them."""

    truth: FloatArray
    X: FloatArray
    y: FloatArray
    rows: NDArray[np.intp]
    new_X: FloatArray
    new_y: FloatArray

    @classmethod
    def draw(cls, setting: LassoSetting, n: int, p: int, count: int, key: Key) -> _Data:
        generator = key.generator()
        noise = float(setting.sigma_xi)
        signal = generator.normal(0.0, np.sqrt(float(setting.signal_variance)), p)
        truth = np.where(generator.random(p) < float(setting.rho), signal, 0.0)
        X, new_X = (generator.normal(0.0, p**-0.5, (rows, p)) for rows in (n, count))
        y = X @ truth + generator.normal(0.0, noise, n)
        new_y = new_X @ truth + generator.normal(0.0, noise, count)
        return cls(truth, X, y, generator.permutation(n)[:count], new_X, new_y)

    def energy(self, setting: LassoSetting) -> float:
        """The signal's mean square less what it is on average."""
        return float(np.mean(self.truth**2) - setting.rho * setting.signal_variance)

    def neighbour(self, index: int) -> tuple[FloatArray, FloatArray]:
        """The dataset with one record replaced."""
        X, y = self.X.copy(), self.y.copy()
        X[self.rows[index]], y[self.rows[index]] = self.new_X[index], self.new_y[index]
        return X, y


def _under_output(setting: LassoSetting, data: _Data, key: Key) -> _Drawn:
    lam, sigma = float(setting.lam), float(setting.sigma_eta)
    beta = solve_lasso(data.X, data.y, lam).coef
    moved = [
        solve_lasso(*data.neighbour(index), lam, start=beta).coef - beta
        for index in range(data.rows.size)
    ]
    kl, advantage = _moved_apart(setting, np.array(moved), key)
    plain = float(setting.sigma_xi) ** 2 + float(np.mean((beta - data.truth) ** 2))
    row = [
        plain + sigma**2,
        float(np.mean((data.y - data.X @ beta) ** 2)) + sigma**2,
        np.count_nonzero(beta) / beta.size,
        plain,
        advantage,
    ]
    return _Drawn(data.energy(setting), row, kl[:, None].tolist(), [])


def _moved_apart(setting: LassoSetting, moved: FloatArray, key: Key) -> tuple[FloatArray, float]:
    """KL of each pair of releases whose fits are (pairs, p) apart, and their mean advantage."""
    sigma = float(setting.sigma_eta)
    if setting.noise == "laplace":
        scale = sigma * np.sqrt(0.5)
        size = np.abs(moved) / scale
        kl = np.asarray((size + np.expm1(-size)).sum(axis=1))
        eta = drawn_noise(setting, (_OUTPUT_DRAWS, moved.shape[1]), key.generator())
        ratios = [(np.abs(eta + one) - np.abs(eta)).sum(axis=1) / scale for one in moved]
        return kl, measures.advantage_of_log_ratios(np.array(ratios).T)
    apart = np.sqrt((moved**2).sum(axis=1)) / sigma
    shifts = LawPair(Normal(apart, 1.0), Normal(0.0, 1.0))
    return np.asarray(measures.kl(shifts)), float(np.mean(np.asarray(measures.advantage(shifts))))


def _under_objective(setting: LassoSetting, data: _Data, noises: int, cw: bool, key: Key) -> _Drawn:
    lam, sigma = float(setting.lam), float(setting.sigma_eta)
    sigma_xi = float(setting.sigma_xi)
    truth, X, y, rows, new_X, new_y = data
    n, p = X.shape
    eta = drawn_noise(setting, (p, noises), key.generator())
    betas = _refits(X, y, lam, eta)
    wrong = betas - truth[:, None]
    gram = wrong.T @ wrong / p
    own = np.trace(gram) / noises
    crossed = (gram.sum() - np.trace(gram)) / (noises * (noises - 1))
    row = [
        sigma_xi**2 + own,
        float(np.mean((y[:, None] - X @ betas) ** 2)),
        np.count_nonzero(betas) / (p * noises),
        sigma_xi**2 + crossed,
    ]
    ratios = log_ratios(X, y, betas, rows, new_X, new_y, lam, sigma, setting.noise)
    row.append(measures.advantage_of_log_ratios(ratios))
    # given the estimates, a fresh record's squared residual has a known mean, and so has that of a
    # record chosen at random among those trained on
    residual, fresh = y[:, None] - X @ betas, new_y[:, None] - new_X @ betas
    squared = (residual**2).mean(axis=1)
    pairs = np.stack(
        [
            ratios.mean(axis=0),
            np.expm1(-ratios).mean(axis=0),
            (fresh**2).mean(axis=1) - sigma_xi**2 - own,
            squared[rows] - squared.mean(),
        ],
        axis=-1,
    )
    moved = []
    if cw:
        halves = slice(0, None, 2), slice(1, None, 2)
        left, right = (wrong[:, half].mean(axis=1) for half in halves)
        product = np.prod([residual[:, half].mean(axis=1) for half in halves], axis=0)
        new_product = np.prod([fresh[:, half].mean(axis=1) for half in halves], axis=0)
        companions = np.stack(
            [new_product - sigma_xi**2 - left @ right / p, product[rows] - product.mean()], axis=-1
        )
        scale = 1.0 / (n / p - row[2])
        field = _fields(X, y, betas, eta, scale)
        weight = _weights(setting, X, y, scale, _LOCATING * noises, key.child(1))
        for index in range(rows.size):
            other_X, other_y = data.neighbour(index)
            again = _refits(other_X, other_y, lam, eta)
            shift = _fields(other_X, other_y, again, eta, scale) - field
            first, second = (shift[:, half].mean(axis=1) for half in halves)
            value = float(0.5 * (weight * first * second).sum())
            moved.append([value, *companions[index].tolist()])
    return _Drawn(data.energy(setting), row, pairs.tolist(), moved)


def _refits(X: FloatArray, y: FloatArray, lam: float, eta: FloatArray) -> FloatArray:
    """Minimisers of Eq. (2) for each column of ``eta``, as columns (p, N)."""
    found = solve_lasso_many(X, y, lam, eta.T)
    failed = sum(solution.status != "optimal" for solution in found)
    if failed:
        raise InputError(
            f"{failed} of {len(found)} refits have no solution: with {X.shape[0]} records and "
            f"{X.shape[1]} coefficients this setting is too close to its stability edge; raise "
            "lam, lower sigma_eta or take more coefficients."
        )
    return np.stack([solution.coef for solution in found], axis=1)


def drawn_noise(
    setting: LassoSetting, shape: tuple[int, ...], generator: np.random.Generator
) -> FloatArray:
    """Privacy noise of the setting's law and standard deviation."""
    sigma = float(setting.sigma_eta)
    if setting.noise == "laplace":
        return np.asarray(generator.laplace(0.0, sigma * np.sqrt(0.5), shape))
    return np.asarray(generator.normal(0.0, sigma, shape))


def _weights(
    setting: LassoSetting, X: FloatArray, y: FloatArray, scale: float, noises: int, key: Key
) -> FloatArray:
    """Fisher information about its location of each coordinate's law over the noise, (p,).

    Locations are means over fresh noises.  Their error biases the information by a term in
    1/noises, which twice the value from all noises less the mean of two halves' removes.
    """
    lam = float(setting.lam)
    eta = drawn_noise(setting, (X.shape[1], noises), key.generator())
    field = _fields(X, y, _refits(X, y, lam, eta), eta, scale)
    spread = float(np.sqrt(field.var(axis=1, ddof=1).mean()))
    theta = np.full(X.shape[1], lam * scale / spread)

    def at(part: FloatArray) -> FloatArray:
        return information(part.mean(axis=1) / spread, theta, "gaussian") / spread**2

    return np.asarray(2.0 * at(field) - 0.5 * (at(field[:, ::2]) + at(field[:, 1::2])))


def _fields(
    X: FloatArray, y: FloatArray, betas: FloatArray, eta: FloatArray, scale: float
) -> FloatArray:
    """h = beta + Sigma (X'(y - X beta) - eta); beta is its soft threshold at lambda Sigma."""
    return np.asarray(betas + scale * (X.T @ (y[:, None] - X @ betas) - eta))


def _controlled(pairs: FloatArray, energy: FloatArray) -> DatasetMean:
    """Mean over datasets of the first column, less what the others, of mean zero, explain.

    ``pairs`` is (datasets, neighbours, columns).
    """
    flat = pairs.reshape(-1, pairs.shape[-1])
    centred = flat - flat.mean(axis=0)
    slope = np.linalg.lstsq(centred[:, 1:], centred[:, 0], rcond=None)[0]
    left = (flat[:, 0] - flat[:, 1:] @ slope).reshape(pairs.shape[:2])
    return _mean(left.mean(axis=1), energy)


def _mean(values: FloatArray, energy: FloatArray) -> DatasetMean:
    """The mean over datasets and its standard error.

    From 8 datasets on, less what the size of the datasets' own signals explains, which is the
    largest part of how datasets differ, and whose mean is known.
    """
    count = values.size
    spent = 1
    if count >= 8 and np.ptp(energy) > 0.0:
        centred = energy - energy.mean()
        values = values - energy * float(centred @ values / (centred @ centred))
        spent = 2
    return DatasetMean(float(values.mean()), float(values.std(ddof=spent) / np.sqrt(count)))
