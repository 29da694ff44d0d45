"""What a planned private LASSO would give away about a typical record, and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope import lasso, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.lasso import LassoSetting, SimulatedLasso
from leakscope.lasso.assumptions import NOT_A_GUARANTEE, provenance_of
from leakscope.lasso.state_evolution import unstable_sentence
from leakscope.laws import LawPair, Provenance

_NOISES = 8


@dataclass(frozen=True)
class LassoAnswer:
    """Leakage and error of one private LASSO in the limit; ``None`` where there is no number.

    ``cw_onavg_kl`` is component-wise and corrected, ``cw_onavg_kl_paper`` the printed Eqs.
    (63)-(64) or (60), ``joint_onavg_kl_limit`` the joint divergence of Eq. (9) in the limit, and
    ``joint_onavg_kl`` with its standard error the same from simulated pairs, where they were asked
    for.  ``auc``, ``advantage`` and ``epsilon_at_delta`` are those of an attacker who knows both
    records and sees the whole estimate, over typical pairs (`leakscope.lasso.joint_law_pair`).
    ``worst_case_epsilon`` is ``None``: no guarantee holds without clipped rows and an l2 term
    (`worst_case_epsilon`).  ``advice`` says what to change where the setting is unstable.

    Examples
    --------
    >>> from leakscope.planning import plan_lasso
    >>> from leakscope.lasso import LassoSetting
    >>> answer = plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2))
    >>> answer.stable, round(answer.generalization_error, 4), round(answer.cw_onavg_kl, 4)
    (True, 0.0971, 0.0453)
    """

    setting: LassoSetting
    stable: bool
    stability_ratio: float
    generalization_error: float | None
    training_error: float | None
    error_ratio: float | None
    active_fraction: float | None
    overlap_error: float | None
    cw_onavg_kl: float | None
    cw_onavg_kl_paper: float | None
    joint_onavg_kl_limit: float | None
    simulated: SimulatedLasso | None
    auc: float | None
    advantage: float | None
    epsilon_at_delta: dict[float, float]
    worst_case_epsilon: None
    advice: str | None
    provenance: Provenance

    @property
    def joint_onavg_kl(self) -> float | None:
        """The joint on-average KL from simulated pairs."""
        return None if self.simulated is None else self.simulated.joint_kl.value

    @property
    def joint_onavg_kl_stderr(self) -> float | None:
        """Its standard error."""
        return None if self.simulated is None else self.simulated.joint_kl.stderr

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or does not exist is ``None``."""
        found = self.provenance.to_dict()
        numbers = (
            "stability_ratio",
            "generalization_error",
            "training_error",
            "error_ratio",
            "active_fraction",
            "overlap_error",
            "cw_onavg_kl",
            "cw_onavg_kl_paper",
            "joint_onavg_kl_limit",
            "joint_onavg_kl",
            "joint_onavg_kl_stderr",
            "auc",
            "advantage",
        )
        return {
            "mechanism": self.setting.mechanism,
            "stable": self.stable,
            **{name: _finite(getattr(self, name)) for name in numbers},
            "epsilon_at_delta": {f"{k:g}": _finite(v) for k, v in self.epsilon_at_delta.items()},
            "worst_case_epsilon": self.worst_case_epsilon,
            "simulated": None if self.simulated is None else self.simulated.to_dict(),
            "advice": self.advice,
            "guarantee": NOT_A_GUARANTEE,
            "method": found["method"],
            "assumptions": found.pop("assumptions"),
            "provenance": found,
        }


def require_labels(setting: LassoSetting) -> None:
    """Refuse a data model whose labels are all zero, about which there is nothing to say."""
    if not np.all(setting.sigma_xi**2 + setting.rho * setting.signal_variance > 0.0):
        raise InputError(
            "every label is zero, for there is neither signal nor noise (rho, sigma_xi)."
        )


def plan_lasso(
    setting: LassoSetting,
    *,
    pairs: int = 0,
    coefficients: int = 1000,
    delta: tuple[float, ...] = (1e-3, 1e-5),
    random_state: int | np.random.Generator | Key | None = None,
) -> LassoAnswer:
    """How much a private LASSO of this setting gives away about a typical record, and its errors.

    Parameters
    ----------
    setting
        One setting.  Beyond the stability edge the answer is ``stable`` false, with advice.
    pairs
        Neighbouring pairs of datasets to simulate for the joint divergence; 0 for none.  About 20
        pairs share a dataset; 400 bring the standard error to about 5%.
    coefficients
        p of the simulated datasets.

    Examples
    --------
    >>> from leakscope.planning import plan_lasso
    >>> from leakscope.lasso import LassoSetting
    >>> plan_lasso(LassoSetting(0.5, 0.1, 0.1, lam=0.3, sigma_eta=0.3)).advice
    'Objective perturbation is unstable at alpha = 0.5, lam = 0.3, sigma_eta = 0.3: lam must be \
above 0.319, or sigma_eta below 0.2822.'
    """
    if setting.shape != ():
        raise InputError("plan_lasso takes one setting; lasso_trade_off takes many noises.")
    if pairs < 0:
        raise InputError(f"pairs must be zero or above, but it is {pairs}.")
    require_labels(setting)
    point = lasso.state_evolution(setting, unstable="mark")
    ratio = float(lasso.stability_ratio(setting))
    provenance = provenance_of(setting)
    if not bool(point.stable):
        return LassoAnswer(
            setting=setting,
            stable=False,
            stability_ratio=ratio,
            generalization_error=None,
            training_error=None,
            error_ratio=None,
            active_fraction=None,
            overlap_error=None,
            cw_onavg_kl=None,
            cw_onavg_kl_paper=None,
            joint_onavg_kl_limit=None,
            simulated=None,
            auc=None,
            advantage=None,
            epsilon_at_delta=dict.fromkeys(delta, np.inf),
            worst_case_epsilon=None,
            advice=unstable_sentence(setting, point.stable),
            provenance=provenance,
        )
    errors = lasso.prediction_errors(point)
    both = lasso.overlap(point)
    noisy = bool(setting.sigma_eta > 0.0)
    pair = lasso.joint_law_pair(point) if noisy else None
    advice = None if noisy else "Without privacy noise the divergences are infinite; add noise."
    return LassoAnswer(
        setting=setting,
        stable=True,
        stability_ratio=ratio,
        generalization_error=float(errors.generalization_error),
        training_error=float(errors.training_error),
        error_ratio=float(errors.ratio),
        active_fraction=float(errors.active_fraction),
        overlap_error=float(both.overlap_error),
        cw_onavg_kl=float(lasso.onavg_kl(both, "component_wise")),
        cw_onavg_kl_paper=float(lasso.onavg_kl(both, "printed")),
        joint_onavg_kl_limit=np.inf if pair is None else _number(measures.kl(pair)),
        simulated=_simulated(setting, pairs, coefficients, random_state),
        auc=1.0 if pair is None else _number(measures.auc(pair)),
        advantage=1.0 if pair is None else _number(measures.advantage(pair)),
        epsilon_at_delta={level: _epsilon(pair, level) for level in delta},
        worst_case_epsilon=None,
        advice=advice,
        provenance=provenance,
    )


def _epsilon(pair: LawPair | None, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1, both excluded, not {delta!r}.")
    if pair is None:
        return np.inf
    # both records play the same part, so one direction is both
    return _number(measures.epsilon_at_delta(pair, delta, "member_to_nonmember"))


def _number(value: FloatArray | measures.Estimate) -> float:
    return float(np.asarray(value))


def _simulated(
    setting: LassoSetting,
    pairs: int,
    coefficients: int,
    random_state: int | np.random.Generator | Key | None,
) -> SimulatedLasso | None:
    if pairs == 0:
        return None
    # 20 pairs a dataset, but never fewer than 4 datasets for a standard error
    each = max(1, min(20, pairs // 4))
    return lasso.simulate(
        setting,
        coefficients=coefficients,
        datasets=max(2, -(-pairs // each)),
        noises=_NOISES,
        neighbours=each,
        random_state=random_state,
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
