"""Error against divergence as the noise of a private LASSO grows, with slopes for root finders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leakscope import lasso
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import plain
from leakscope.errors import InputError
from leakscope.lasso import Divergence, LassoSetting


class CurvePoint(NamedTuple):
    """Error and divergence, and their derivatives, along sigma_eta (or lambda)."""

    error: FloatArray
    kl: FloatArray
    error_slope: FloatArray
    kl_slope: FloatArray


@dataclass(frozen=True, eq=False)
class LassoTradeOff:
    """The trade-off curve of Fig. 8: generalisation error and on-average KL at each noise.

    Examples
    --------
    >>> from leakscope.planning import lasso_trade_off
    >>> from leakscope.lasso import LassoSetting
    >>> curve = lasso_trade_off(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0), [0.1, 0.3, 0.6])
    >>> curve.joint_onavg_kl.round(4).tolist()  # not monotone
    [0.0962, 0.0643, 0.3033]
    """

    setting: LassoSetting
    sigma_eta: FloatArray
    generalization_error: FloatArray
    cw_onavg_kl: FloatArray
    cw_onavg_kl_paper: FloatArray
    joint_onavg_kl: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON."""
        names = (
            "sigma_eta",
            "generalization_error",
            "cw_onavg_kl",
            "cw_onavg_kl_paper",
            "joint_onavg_kl",
        )
        return {name: plain(getattr(self, name)) for name in names}

    def to_frame(self) -> Any:
        """One row a noise level, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())


def lasso_trade_off(
    setting: LassoSetting, sigma_eta: ArrayLike | None = None, *, points: int = 60
) -> LassoTradeOff:
    """Error and the three divergences over the noise; the setting's own ``sigma_eta`` is not used.

    Without ``sigma_eta``, ``points`` levels from weak noise to near the stability edge (or, where
    there is none, to noise that swamps the signal).

    Examples
    --------
    >>> from leakscope.planning import lasso_trade_off
    >>> from leakscope.lasso import LassoSetting
    >>> curve = lasso_trade_off(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0, "output"), points=3)
    >>> bool((curve.joint_onavg_kl == curve.cw_onavg_kl).all())
    True
    """
    _one(setting)
    levels = noise_levels(setting, points) if sigma_eta is None else np.atleast_1d(sigma_eta)
    trial = setting.change(sigma_eta=np.asarray(levels, dtype=np.float64))
    point = lasso.state_evolution(trial)
    both = lasso.noise_overlap(point)
    return LassoTradeOff(
        setting=setting,
        sigma_eta=trial.sigma_eta,
        generalization_error=lasso.prediction_errors(point).generalization_error,
        cw_onavg_kl=lasso.onavg_kl(both, "component_wise"),
        cw_onavg_kl_paper=lasso.onavg_kl(both, "printed"),
        joint_onavg_kl=lasso.onavg_kl(both, "joint"),
    )


def noise_levels(setting: LassoSetting, points: int) -> FloatArray:
    """Noise levels that cover the curve: geometric at weak noise, closing in on the edge."""
    scale = np.sqrt(float(setting.sigma_xi) ** 2 + float(setting.rho * setting.signal_variance))
    least = 1e-3 * min(float(setting.lam), scale if scale > 0.0 else float(setting.lam))
    edge = float(lasso.stability_edge(setting.alpha)) if setting.mechanism == "objective" else 0.0
    if edge > 0.0:
        most = float(setting.lam) / edge
        weak = np.geomspace(least, 0.5 * most, points // 2)
        strong = most * (1.0 - np.geomspace(0.5, 1e-4, points - points // 2 + 1)[1:])
        return np.concatenate([weak, strong])
    return np.geomspace(least, 1e3 * max(float(setting.lam), scale), points)


def curve_at(
    setting: LassoSetting,
    divergence: Divergence,
    parameter: str = "sigma_eta",
) -> CurvePoint:
    """Error, divergence and slopes at each setting of a batch."""
    point = lasso.state_evolution(setting)
    name: Any = parameter
    moved = lasso.fixed_point_derivative(point, name).error
    if setting.mechanism == "output" and parameter == "sigma_eta":
        moved = 2.0 * setting.sigma_eta
    kl = lasso.onavg_kl_with_slope(point, divergence, name)
    error = lasso.prediction_errors(point).generalization_error
    return CurvePoint(error, kl.value, np.asarray(moved), kl.slope)


def _one(setting: LassoSetting) -> None:
    if setting.shape != ():
        raise InputError("A trade-off curve is of one setting; its noises are the curve.")
