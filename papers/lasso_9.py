"""lasso, Fig. 9: the optimal noise of both mechanisms against λ."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope.settings import LassoDivergence
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_divergences import DIVERGENCES, WORDS, judge_both
from papers.lasso_optimal_noise import Optima, monotone, optima, penalties
from papers.lasso_runs import data_model

RHOS = (0.05, 0.1, 0.2)
AXES = ("lam", "sigma_eta")

Found = dict[str, dict[float, Optima]]


def make(order: Order) -> Made:
    """Output perturbation, objective perturbation by both divergences, and Section 6.4's claims."""
    lam = penalties(40 if order.full else 14)
    data = data_model(order)
    order.step("optimal noise of output perturbation")
    # corrected, the component-wise divergence of output perturbation is the joint one
    output: Found = {
        name: {rho: optima(data.change(rho=rho), lam, "output", name) for rho in RHOS}
        for name in ("printed", "joint")
    }
    order.step("optimal noise of objective perturbation")
    objective: Found = {
        name: {rho: optima(data.change(rho=rho), lam, "objective", name) for rho in RHOS}
        for name in DIVERGENCES
    }
    return Made(
        panels=(
            _panel("(a) output perturbation", output, ("joint", "printed")),
            _panel("(b) objective: component-wise", objective, ("component_wise", "printed")),
            _panel("(b) objective: joint", objective, ("joint",)),
        ),
        claims=(*_output_claims(output), *_objective_claims(objective)),
        settings={
            **order.knobs, "rho": list(RHOS), "lam": [0.1, 2.0],
            "penalties": lam.size,
        },
        notes=(
            "The caption gives neither the values of ρ nor the range of λ. The dashed line is the "
            "printed formula. Where there is no optimum, the noise at the end of its range is "
            "drawn.",
        ),
    )  # fmt: skip


def _panel(title: str, found: Found, names: tuple[LassoDivergence, ...]) -> Panel:
    frames = [
        pd.DataFrame(
            {
                "lam": at.lam,
                "sigma_eta": at.sigma_eta,
                "curve": f"ρ = {rho:g}",
                "source": "printed" if name == "printed" else "theory",
            }
        )
        for name in names
        for rho, at in found[name].items()
    ]
    return Panel(title, pd.concat(frames, ignore_index=True), *AXES, "curve", x_log=True,
                 x_title="λ", y_title="optimal σ_η")  # fmt: skip


def _ends(at: Optima) -> str:
    values = at.sigma_eta
    middle = values.size // 2
    return (
        f"{values[0]:.3f}, {values[middle]:.3f}, {values[-1]:.3f} at λ = {at.lam[0]:g}, "
        f"{at.lam[middle]:.2g}, {at.lam[-1]:g}"
    )


def _output_claims(found: Found) -> list[Claim]:
    falls = {
        name: all((np.diff(at.sigma_eta) < 0.0).all() for at in by_rho.values())
        for name, by_rho in found.items()
    }
    denser = {
        name: np.diff([by_rho[rho].sigma_eta for rho in RHOS], axis=0) > 0.0
        for name, by_rho in found.items()
    }
    return [
        judge(
            "the optimal output noise falls as λ grows",
            "Sec. 6.4, Fig. 9(a)",
            f"ρ = 0.1, corrected: {_ends(found['joint'][0.1])}; falling at every step for all "
            f"three ρ by {sum(falls.values())} of 2 formulas",
            as_printed=bool(falls["printed"] and falls["joint"]),
        ),
        judge(
            "a denser signal needs more output noise",
            "Sec. 6.4, Fig. 9(a)",
            ", ".join(
                f"{WORDS[name]}: at {share.mean():.0%} of λ and neighbouring ρ"
                for name, share in denser.items()
            ),
            as_printed=all(bool(share.all()) for share in denser.values()),
        ),
    ]


def _objective_claims(found: Found) -> tuple[Claim, ...]:
    turning = {
        name: [not monotone(found[name][rho].sigma_eta) for rho in RHOS] for name in DIVERGENCES
    }
    return judge_both(
        "the optimal noise in the objective is not monotone in λ",
        "Sec. 6.4, Fig. 9(b)",
        {name: all(turning[name]) for name in DIVERGENCES},
        {
            name: f"not monotone at {sum(turning[name])} of 3 ρ; ρ = 0.1: "
            + _ends(found[name][0.1])
            for name in DIVERGENCES
        },
        "lasso 9",
        of_both=True,
    )


FIGURES = (
    Figure(
        "lasso-9",
        "lasso",
        "Fig. 9(a), (b)",
        "the optimal noise against the penalty",
        make,
        full="one core, half a minute",
        knobs={"alpha": 0.5, "sigma_xi": 0.1},
    ),
)
