"""lasso, Fig. 6: the on-average KL of output perturbation against the noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from leakscope import lasso
from leakscope.lasso import LassoSetting
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_divergences import (
    AXES,
    Measured,
    Sizes,
    Sweep,
    all_kl,
    estimate_frame,
    kl_frames,
    ordered,
    simulated_joint,
)
from papers.lasso_runs import KNOBS, agreement_of, data_model

SWEPT = (
    ("a", "lam", (0.1, 0.2, 0.5, 1.0)),
    ("b", "rho", (0.05, 0.1, 0.2, 0.3)),
    ("c", "alpha", (0.3, 0.5, 0.8, 1.5)),
)

NOISES = np.geomspace(0.03, 1.0, 60)
LARGE = 0.5  # V from which 1 + V cannot be overlooked
DRAWN = np.array([0.1, 0.3, 0.7])  # where simulated points are drawn


class Row(NamedTuple):
    """A simulated divergence at sigma_eta = 1, and what the formulas say."""

    sweep: Sweep
    value: float
    found: Measured
    kl: dict[str, FloatArray]
    datasets: int


def make(order: Order) -> Made:
    """Three panels, and what Section 6.3 says of them."""
    sizes = Sizes(1000, 60, 2, 25) if order.full else Sizes(500, 20, 2, 16)
    # where the factor 1 + V is large the two formulas can be told apart
    telling = sizes._replace(datasets=4 * sizes.datasets)
    panels, rows = [], list[Row]()
    data = data_model(order)
    sweeps = [Sweep(*swept, data) for swept in SWEPT]
    for number, sweep in enumerate(sweeps):
        frames: list[pd.DataFrame] = []
        for place, value in enumerate(sweep.values):
            order.step(f"refits at {sweep.parameter} = {value:g}")
            kl = all_kl(sweep.setting(value, NOISES, "output"))
            curves = kl_frames(NOISES, kl, sweep.label(value))
            frames += [curves["joint"], curves["printed"]]
            trial = sweep.setting(value, 1.0, "output")
            used = telling if float(lasso.state_evolution(trial).response) > LARGE else sizes
            found = simulated_joint(trial, used, order.key.child(number, place))
            # a pair's KL is ||difference||^2/(2 sigma_eta^2), at every noise
            for noise in DRAWN:
                scaled = Measured(found.value / noise**2, found.stderr / noise**2)
                frames.append(estimate_frame(noise, scaled, sweep.label(value), used.datasets))
            rows.append(Row(sweep, value, found, all_kl(trial), used.datasets))
        panels.append(
            Panel(f"({sweep.letter}) {sweep.fixed}", pd.concat(frames, ignore_index=True),
                  *AXES, "curve", "low", "high", x_log=True, y_log=True, x_title="σ_η",
                  y_title="on-average KL, nats")
        )  # fmt: skip
    return Made(
        panels=tuple(panels),
        claims=(_falls(data), *_orders(sweeps, rows), _formula(rows)),
        settings={
            **order.knobs, **{sweep.parameter: list(sweep.values) for sweep in sweeps},
            "coefficients": sizes.coefficients, "datasets": sizes.datasets,
            "datasets_large_v": telling.datasets, "replaced_records": sizes.neighbours,
        },
        notes=(
            "Dashed: Eq. (60) as printed. Solid: times 1 + V. Under output perturbation the "
            "component-wise KL, corrected, and the joint one are the same. The caption does not "
            "give the curves' values.",
        ),
    )  # fmt: skip


def _falls(data: LassoSetting) -> Claim:
    kl = all_kl(data.change(sigma_eta=NOISES, mechanism="output"))
    return judge(
        "more output noise, less divergence",
        "Sec. 6.3, Fig. 6",
        f"from {kl['joint'][0]:.3g} at σ_η = {NOISES[0]:g} to {kl['joint'][-1]:.3g} at "
        f"{NOISES[-1]:g}, as 1/σ_η²",
        as_printed=all(bool((np.diff(kl[name]) < 0.0).all()) for name in ("printed", "joint")),
    )


def _orders(sweeps: list[Sweep], rows: list[Row]) -> list[Claim]:
    claims = []
    noise = np.array([0.3])
    for sweep, rising, words in zip(
        sweeps, (False, True, False), ("smaller λ", "larger ρ", "smaller α"), strict=True
    ):
        share = ordered(sweep, "output", noise, rising)
        values = {v: all_kl(sweep.setting(v, 0.3, "output")) for v in sweep.values}
        measured = "KL at σ_η = 0.3, corrected (printed): " + ", ".join(
            f"{float(kl['joint']):.4f} ({float(kl['printed']):.4f}) at {sweep.label(v)}"
            for v, kl in values.items()
        )
        if sweep.parameter == "alpha":
            alphas = np.linspace(0.1, 2.0, 191)
            kl = lasso.onavg_kl(lasso.state_evolution(sweep.setting(alphas, 0.3, "output")))
            measured += f"; largest at α = {alphas[kl.argmax()]:.2f}, and below it falls with α"
            measured += "; refits, times 1/0.09, " + ", ".join(
                f"{row.found.value / 0.09:.4f} ± {row.found.stderr / 0.09:.4f} at α = {row.value:g}"
                for row in rows
                if row.sweep is sweep
            )
        claims.append(
            judge(
                f"{words}, more divergence",
                "Sec. 6.3, Fig. 6",
                measured,
                as_printed=bool(share["printed"] == 1.0 and share["joint"] == 1.0),
                erratum="lasso 6" if sweep.parameter == "alpha" else None,
            )
        )
    return claims


def _formula(rows: list[Row]) -> Claim:
    chosen = [row for row in rows if row.kl["joint"] > (1.0 + LARGE) * row.kl["printed"]]
    if not chosen:
        return judge(
            "Eq. (60) is the divergence of output perturbation",
            "Sec. 6.1, Eq. (60)",
            f"V is at most {LARGE:g} on every curve, so that no refit tells 1 + V from 1",
            as_printed=None,
        )
    values = np.array([row.found.value for row in chosen])
    stderr = np.array([row.found.stderr for row in chosen])
    kl = {name: np.array([float(row.kl[name]) for row in chosen]) for name in ("printed", "joint")}
    freedom = min(row.datasets for row in chosen) - 2
    tests = {name: agreement_of(values, stderr, kl[name], freedom) for name in kl}
    decisive = bool((np.abs(kl["joint"] - kl["printed"]) / stderr).max() > 4.0)
    return judge(
        "Eq. (60) is the divergence of output perturbation",
        "Sec. 6.1, Eq. (60)",
        "; ".join(
            f"{row.sweep.label(row.value)}, σ_η = 1: refits {row.found.value:.4f} ± "
            f"{row.found.stderr:.4f}, printed {float(row.kl['printed']):.4f}, times 1 + V "
            f"{float(row.kl['joint']):.4f}"
            for row in chosen
        )
        + f"; printed off by up to {tests['printed'].largest:.1f} standard errors, corrected by "
        f"{tests['joint'].largest:.1f}",
        as_printed=tests["printed"].agrees if decisive else None,
        corrected=tests["joint"].agrees if decisive else None,
        erratum="lasso 1",
    )


FIGURES = (
    Figure(
        "lasso-6",
        "lasso",
        "Fig. 6(a) to (c)",
        "on-average KL of output perturbation against the noise",
        make,
        full="one core, three minutes",
        knobs={**KNOBS, "lam": 1.0},
    ),
)
