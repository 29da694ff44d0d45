"""Message passing on drawn datasets of the paper **lasso**, and whether its means meet a formula.

The experiments of Figs. 1 to 3: every dataset has one draw of features, labels and privacy noise
(Setting D), which all settings on it share.  Means over datasets carry 95% intervals, and theory is
refused by t tests at a level that is shared out over all numbers tested (Bonferroni).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from leakscope import InputError
from leakscope.lasso import LassoSetting, message_passing, stability_edge
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.figure import Order

# The chance that agreement is refused though theory is right, over all tests of a claim.
LEVEL = 1e-3

# Nearer to the edge than this the error of a finite problem has heavy tails: its mean over datasets
# says little (docs/lasso.md), and no claim rests on it.
STEADY = 0.6

# The data model of most figures.
KNOBS = {"alpha": 0.5, "rho": 0.1, "sigma_xi": 0.1}


def data_model(order: Order) -> LassoSetting:
    """The data model that was asked for; what the figure does not set is its own to change."""
    knobs = {**KNOBS, "lam": 1.0, "sigma_eta": 0.0, **order.knobs}
    return LassoSetting(
        knobs["alpha"], knobs["rho"], knobs["sigma_xi"], knobs["lam"], knobs["sigma_eta"]
    )


def edge_of(setting: LassoSetting) -> float:
    """The least λ/σ_η that objective perturbation bears, for figures that run up to it."""
    edge = float(stability_edge(setting.alpha))
    if edge == 0.0:
        raise InputError(
            "alpha must be below 1: from there on every noise is borne, and the "
            "figure runs up to the largest one."
        )
    return edge


class LassoData(NamedTuple):
    """A dataset of Setting D with a standard normal privacy noise: X (n, p), the rest vectors."""

    X: FloatArray
    y: FloatArray
    truth: FloatArray
    noise: FloatArray


class LassoRuns(NamedTuple):
    """What message passing found, (datasets, settings); NaN where it did not converge."""

    active_fraction: FloatArray
    generalization_error: FloatArray
    training_error: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """Generalisation error over training error."""
        return np.asarray(self.generalization_error / self.training_error)


class Agreement(NamedTuple):
    """t tests of means against a formula, and whether none refuses it at `LEVEL`."""

    agrees: bool
    largest: float
    tested: int

    def words(self) -> str:
        """In a few words."""
        return f"largest of {self.tested} differences {self.largest:.1f} standard errors"


def draw(setting: LassoSetting, coefficients: int, key: Key) -> LassoData:
    """A dataset with the data model of ``setting``, which may be a batch that shares it."""
    alpha, rho, sigma_xi, variance = (
        _shared(setting, name) for name in ("alpha", "rho", "sigma_xi", "signal_variance")
    )
    generator = key.generator()
    p, n = coefficients, max(2, round(alpha * coefficients))
    X = generator.normal(0.0, p**-0.5, (n, p))
    signal = generator.normal(0.0, variance**0.5, p)
    truth = np.where(generator.random(p) < rho, signal, 0.0)
    y = X @ truth + generator.normal(0.0, sigma_xi, n)
    return LassoData(X, y, truth, generator.normal(0.0, 1.0, p))


def run_lasso(
    setting: LassoSetting, *, coefficients: int, datasets: int, key: Key, iterations: int = 1000
) -> LassoRuns:
    """Message passing at every setting of a one-dimensional batch, on each of ``datasets`` draws.

    Under output perturbation the noise goes onto the estimate.
    """
    output = setting.mechanism == "output"
    found = np.full((3, datasets, setting.lam.size), np.nan)
    for number in range(datasets):
        data = draw(setting, coefficients, key.child(number))
        for lam in np.unique(setting.lam):
            at = np.flatnonzero(setting.lam == lam)
            noise = setting.sigma_eta[at, None] * data.noise
            passed = message_passing(
                data.X,
                data.y,
                float(lam),
                np.zeros((1, coefficients)) if output else noise,
                tol=1e-8,
                max_iterations=iterations,
            )
            coef = passed.coef + (noise if output else 0.0)
            converged = np.broadcast_to(passed.status == "converged", at.size)
            sigma_xi = float(setting.sigma_xi[at[0]])
            values = (
                np.broadcast_to(passed.active_fraction, at.size),
                sigma_xi**2 + np.mean((coef - data.truth) ** 2, axis=1),
                np.mean((data.y - coef @ data.X.T) ** 2, axis=1),
            )
            for place, value in enumerate(values):
                found[place, number, at] = np.where(converged, value, np.nan)
    return LassoRuns(*found)


def interval_columns(values: FloatArray) -> dict[str, FloatArray]:
    """Means over datasets (the first axis) with 95% intervals; NaN where a run is missing."""
    count = values.shape[0]
    mean = values.mean(axis=0)
    half = stats.t.ppf(0.975, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return {"mean": mean, "low": mean - half, "high": mean + half}


def agreement(values: FloatArray, theory: FloatArray) -> Agreement:
    """Test means over datasets (the first axis) against theory, one number for each column."""
    count = values.shape[0]
    spread = values.std(axis=0, ddof=1) / np.sqrt(count)
    used = np.isfinite(spread) & (spread > 0.0)
    if not used.any():
        raise InputError("no simulated number is left to compare with theory.")
    t = (values.mean(axis=0) - theory)[used] / spread[used]
    return _judged(np.abs(t), count - 1)


def agreement_of(
    means: FloatArray, stderr: FloatArray, theory: FloatArray, freedom: int
) -> Agreement:
    """The same from means and standard errors of ``freedom`` degrees."""
    t = np.abs((np.asarray(means) - theory) / stderr)
    return _judged(t[np.isfinite(t)], freedom)


def curve(axes: tuple[str, str], x: FloatArray, y: FloatArray, name: str) -> pd.DataFrame:
    """Rows of a curve that theory gives; ``axes`` are the names of the two columns."""
    return pd.DataFrame({axes[0]: x, axes[1]: y, "curve": name, "source": "theory"})


def points(axes: tuple[str, str], x: FloatArray, values: FloatArray, name: str) -> pd.DataFrame:
    """Rows of means over datasets with intervals; settings with a failed run are left out."""
    found = interval_columns(values)
    table = pd.DataFrame(
        {
            axes[0]: x,
            axes[1]: found["mean"],
            "curve": name,
            "source": "simulation",
            "low": found["low"],
            "high": found["high"],
        }
    )
    return table[np.isfinite(found["mean"])]


def together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """One table of all; where a curve has no interval, there is none."""
    return pd.concat(
        [
            frame.assign(**{n: np.nan for n in ("low", "high") if n not in frame})
            for frame in frames
        ],
        ignore_index=True,
    )


def _judged(t: FloatArray, freedom: int) -> Agreement:
    refused = 2.0 * stats.t.sf(t, freedom) < LEVEL / t.size
    return Agreement(not bool(refused.any()), float(t.max()), int(t.size))


def _shared(setting: LassoSetting, name: str) -> float:
    values = np.unique(getattr(setting, name))
    if values.size != 1:
        raise InputError(f"settings on one dataset share {name}, but it has {values.size} values.")
    return float(values[0])
