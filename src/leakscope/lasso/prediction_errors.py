"""Generalisation and training error of a private LASSO, and Claim 4.2's ratio of the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope.lasso.state_evolution import FixedPoint


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """Errors and sparsity of what is released, at each setting.

    ``ratio`` is generalisation over training error: (1 + V)^2 for objective perturbation
    (Claim 4.2); output noise adds sigma_eta^2 to both errors (Eqs. 6-7) and pulls it to 1.
    ``active_fraction`` is that of the fit; output noise then makes every coefficient non-zero.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, prediction_errors, state_evolution
    >>> setting = LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.3)
    >>> objective = prediction_errors(state_evolution(setting))
    >>> output = prediction_errors(state_evolution(setting.change(mechanism="output")))
    >>> round(float(objective.generalization_error), 4), round(float(objective.ratio), 4)
    (0.0955, 1.0663)
    >>> round(float(output.generalization_error), 4), round(float(output.ratio), 4)
    (0.1893, 1.0136)
    """

    generalization_error: FloatArray
    training_error: FloatArray
    active_fraction: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """Generalisation error over training error."""
        return np.asarray(self.generalization_error / self.training_error)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("generalization_error", "training_error", "active_fraction", "ratio")
        return {name: plain(getattr(self, name)) for name in names}


def prediction_errors(point: FixedPoint) -> PredictionErrors:
    """The errors of Eqs. (4)-(7) at each setting; NaN where the point is marked unstable.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, prediction_errors, state_evolution
    >>> point = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=[0.0, 0.5]))
    >>> prediction_errors(point).training_error.round(4).tolist()
    [0.0967, 0.0877]
    """
    setting = point.setting
    added = np.zeros(setting.shape)
    if setting.mechanism == "output":
        added = setting.sigma_eta**2
    return PredictionErrors(
        generalization_error=np.asarray(point.error + added),
        training_error=np.asarray(point.error / (1.0 + point.response) ** 2 + added),
        active_fraction=point.active_fraction,
    )
