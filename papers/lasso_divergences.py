"""The on-average KL of the paper **lasso** along the noise: printed, corrected, and joint.

The paper's figures have the component-wise divergence by Eqs. (60) and (63).  Beside it stand the
same divergence corrected (docs/errata.md) and the joint one of Eq. (9), which the paper defines and
does not compute.  A claim about the divergence is judged of each (`judge_both`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.laws import Key
from leakscope.settings import LassoDivergence, LassoMechanism
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.lasso_runs import edge_of

DIVERGENCES: tuple[LassoDivergence, ...] = ("printed", "component_wise", "joint")
WORDS = {"printed": "printed", "component_wise": "corrected", "joint": "joint"}

SYMBOLS = {"alpha": "α", "rho": "ρ", "lam": "λ"}
AXES = ("sigma_eta", "kl")


@dataclass(frozen=True)
class Sweep:
    """The curves of one panel: a parameter and its values; the others are those of ``data``."""

    letter: str
    parameter: str
    values: tuple[float, ...]
    data: LassoSetting

    @property
    def symbol(self) -> str:
        """The parameter as the paper writes it."""
        return SYMBOLS[self.parameter]

    @property
    def fixed(self) -> str:
        """The parameters that all curves share, in words."""
        return ", ".join(
            f"{symbol} = {float(getattr(self.data, name)):g}"
            for name, symbol in SYMBOLS.items()
            if name != self.parameter
        )

    def setting(
        self,
        value: FloatArray | float,
        sigma_eta: FloatArray | float,
        mechanism: LassoMechanism,
    ) -> LassoSetting:
        """One curve's settings."""
        given = {self.parameter: value, "sigma_eta": sigma_eta, "mechanism": mechanism}
        return self.data.change(**given)

    def label(self, value: float) -> str:
        """The curve's name."""
        return f"{self.symbol} = {value:g}"

    def edge(self, value: float) -> float:
        """The largest sigma_eta that objective perturbation bears on this curve."""
        base = self.setting(value, 0.0, "objective")
        return float(base.lam) / edge_of(base)


class Sizes(NamedTuple):
    """Of a simulation: coefficients, datasets, noises for each, and replaced records for each."""

    coefficients: int
    datasets: int
    noises: int
    neighbours: int


def all_kl(setting: LassoSetting) -> dict[str, FloatArray]:
    """The three divergences at every setting of a batch."""
    both = lasso.noise_overlap(lasso.state_evolution(setting))
    return {name: lasso.onavg_kl(both, name) for name in DIVERGENCES}


def kl_frames(
    sigma_eta: FloatArray, kl: Mapping[str, FloatArray], label: str
) -> dict[str, pd.DataFrame]:
    """Rows of one curve for each divergence."""
    return {
        name: pd.DataFrame(
            {
                "sigma_eta": sigma_eta,
                "kl": kl[name],
                "curve": label,
                "source": "printed" if name == "printed" else "theory",
                "low": np.nan,
                "high": np.nan,
            }
        )
        for name in DIVERGENCES
    }


class Measured(NamedTuple):
    """A mean over datasets and its standard error."""

    value: float
    stderr: float


def estimate_frame(
    sigma_eta: FloatArray | float, found: Measured, label: str, datasets: int
) -> pd.DataFrame:
    """A simulated divergence with its 95% interval, as a row (or one for each sigma_eta)."""
    half = stats.t.ppf(0.975, datasets - 2) * found.stderr
    return pd.DataFrame(
        {
            "sigma_eta": np.atleast_1d(sigma_eta),
            "kl": found.value,
            "curve": label,
            "source": "simulation",
            "low": found.value - half,
            "high": found.value + half,
        }
    )


def simulated_joint(setting: LassoSetting, sizes: Sizes, key: Key) -> Measured:
    """The joint divergence from refits; of output perturbation also the component-wise one."""
    return Measured(*lasso.simulate_lasso(setting, **sizes._asdict(), random_state=key).joint_kl)


def simulated_parts(setting: LassoSetting, sizes: Sizes, key: Key) -> Measured:
    """The component-wise divergence of objective perturbation; neighbours are refitted too."""
    found = lasso.simulate_lasso(
        setting, **sizes._asdict(), component_wise=True, random_state=key
    ).cw_kl
    assert found is not None
    return Measured(*found)


def ordered(
    sweep: Sweep, mechanism: LassoMechanism, noises: FloatArray, rising: bool
) -> dict[str, float]:
    """Share of neighbouring curves and noises at which the divergence rises with the value.

    Or falls, where ``rising`` is false.
    """
    kl = [all_kl(sweep.setting(value, noises, mechanism)) for value in sweep.values]
    sign = 1.0 if rising else -1.0
    return {
        name: float(np.mean(sign * np.diff([one[name] for one in kl], axis=0) > 0.0))
        for name in DIVERGENCES
    }


def judge_both(
    text: str,
    where: str,
    holds: Mapping[str, bool | None],
    measured: Mapping[str, str],
    erratum: str,
    *,
    of_both: bool = False,
) -> tuple[Claim, Claim]:
    """A claim about the divergence, of the component-wise one and of the joint one.

    Of the first it holds as printed where the printed formula and the corrected one say so, and
    with the erratum where only the corrected one does.  ``of_both``: the erratum is not about the
    formula, and the joint claim names it too.
    """
    first, second = holds["printed"], holds["component_wise"]
    as_printed = None if first is None or second is None else first and second
    return (
        judge(
            f"{text} (component-wise KL)",
            where,
            f"printed: {measured['printed']}; corrected: {measured['component_wise']}",
            as_printed=as_printed,
            corrected=second,
            erratum=erratum,
        ),
        judge(
            f"{text} (joint KL, Eq. 9)",
            where,
            measured["joint"],
            as_printed=holds["joint"],
            erratum=erratum if of_both else None,
        ),
    )
