"""The noise that the paper **lasso** calls optimal, over λ: nearest to the origin in (error, KL).

And the question it does not ask: the least divergence of each mechanism at the same error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.planning import least_kl, optimal_noise
from leakscope.settings import LassoDivergence, LassoMechanism
from papers.arrays import FloatArray

# How much above the noiseless error both mechanisms may go when compared at equal error.
ALLOWED = 1.1


class Optima(NamedTuple):
    """At the optimal noise of each λ: the noise, the generalisation error, the divergence."""

    lam: FloatArray
    sigma_eta: FloatArray
    error: FloatArray
    kl: FloatArray


class EqualError(NamedTuple):
    """The least divergence of both mechanisms at one error, for each λ.

    ``changed`` is the share of the support that a second noise changes, 1 - chi/rho_hat.
    """

    lam: FloatArray
    changed: FloatArray
    objective: FloatArray
    output: FloatArray

    def steady(self) -> NDArray[np.bool_]:
        """The half of the penalties with the steadier support."""
        rank = np.argsort(np.argsort(self.changed, kind="stable"))
        return np.asarray(rank < self.changed.size // 2)


def penalties(count: int) -> FloatArray:
    """λ from 0.1 to 2."""
    return np.geomspace(0.1, 2.0, count)


def optima(
    data: LassoSetting, lam: FloatArray, mechanism: LassoMechanism, divergence: LassoDivergence
) -> Optima:
    """The optimal noise of the paper at each λ."""
    base = data.change(mechanism=mechanism)
    found = [optimal_noise(base.change(lam=float(one)), divergence=divergence) for one in lam]
    columns = [
        np.array([getattr(choice, name) for choice in found], dtype=np.float64)
        for name in ("sigma_eta", "generalization_error", "onavg_kl")
    ]
    return Optima(lam, *columns)


def equal_error(data: LassoSetting, lam: FloatArray, divergence: LassoDivergence) -> EqualError:
    """Both mechanisms at `ALLOWED` times the noiseless error, with the least divergence there."""
    rows = []
    for one in lam:
        base = data.change(lam=float(one))
        target = ALLOWED * float(lasso.state_evolution(base).error)
        objective = least_kl(base, target, divergence=divergence)
        output = least_kl(base.change(mechanism="output"), target, divergence=divergence)
        point = lasso.state_evolution(base.change(sigma_eta=objective.sigma_eta))
        changed = 1.0 - float(lasso.noise_overlap(point).both_active / point.active_fraction)
        rows.append((changed, objective.onavg_kl, output.onavg_kl))
    return EqualError(lam, *np.array(rows, dtype=np.float64).T)


def monotone(values: FloatArray) -> bool:
    """Whether values only rise or only fall."""
    steps = np.diff(values)
    return bool((steps > 0.0).all() or (steps < 0.0).all())
