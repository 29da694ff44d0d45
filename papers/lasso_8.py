"""lasso, Fig. 8: error against on-average KL as the noise grows, output and objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.planning import lasso_trade_off
from leakscope.settings import LassoDivergence, LassoMechanism
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_divergences import DIVERGENCES, judge_both
from papers.lasso_optimal_noise import Optima, optima
from papers.lasso_runs import KNOBS, data_model, edge_of

LAMBDAS = (0.5, 1.0, 1.5)
MECHANISMS: tuple[LassoMechanism, ...] = ("output", "objective")
AXES = ("generalization_error", "kl")
FIELDS = {
    "printed": "cw_onavg_kl_paper",
    "component_wise": "cw_onavg_kl",
    "joint": "joint_onavg_kl",
}

# Noise: of output perturbation, and as a share of what objective perturbation can bear.
OUTPUT = np.geomspace(0.03, 1.0, 80)
OBJECTIVE = np.linspace(0.04, 0.95, 183)
NEAR_EDGE = np.linspace(0.04, 0.999, 960)

# How far beyond its least the error may go for "approximately linear", and how straight a line is.
REACH, STRAIGHT = 10.0, 0.95


class Curve(NamedTuple):
    """Along the noise: the error, and each divergence."""

    sigma_eta: FloatArray
    error: FloatArray
    kl: dict[str, FloatArray]


def make(order: Order) -> Made:
    """Panels (a) and (b), the latter for both divergences, and what Section 6.4 says of them."""
    order.step("curves and their optima")
    data = data_model(order)
    best: dict[str, dict[str, Optima]] = {
        mechanism: {name: optima(data, np.array(LAMBDAS), mechanism, name) for name in DIVERGENCES}
        for mechanism in MECHANISMS
    }
    plain = {lam: float(lasso.state_evolution(data.change(lam=lam)).error) for lam in LAMBDAS}
    edges = {lam: lam / edge_of(data) for lam in LAMBDAS}
    outside = {lam: _curve(data, lam, "output", OUTPUT) for lam in LAMBDAS}
    inside = {lam: _curve(data, lam, "objective", edges[lam] * OBJECTIVE) for lam in LAMBDAS}
    near = {lam: _curve(data, lam, "objective", edges[lam] * NEAR_EDGE) for lam in LAMBDAS}
    return Made(
        panels=(
            _panel("(a) output perturbation", "on-average KL, nats",
                   _table(plain, outside, best["output"], "joint", printed=True)),
            _panel("(b) objective perturbation: component-wise", "on-average KL, component-wise",
                   _table(plain, inside, best["objective"], "component_wise", printed=True)),
            _panel("(b) objective perturbation: joint", "on-average KL, joint",
                   _table(plain, inside, best["objective"], "joint", printed=False)),
        ),
        claims=(
            *_output_claims(plain, outside, best["output"]),
            *_objective_claims(plain, near, best["objective"]),
        ),
        settings={**order.knobs, "lam": list(LAMBDAS)},
        notes=(
            "Dotted vertical lines are the error without noise, crosses the points nearest to the "
            "origin. "
            "Axes are logarithmic, so that both ends of the curves can be seen; dashed is the "
            "printed formula. All is theory; lasso-6 and lasso-7 compare it with refits.",
        ),
    )  # fmt: skip


def _panel(title: str, y_title: str, table: pd.DataFrame) -> Panel:
    return Panel(title, table, *AXES, "curve", x_log=True, y_log=True,
                 x_title="generalisation error E", y_title=y_title)  # fmt: skip


def _curve(data: LassoSetting, lam: float, mechanism: LassoMechanism, noises: FloatArray) -> Curve:
    found = lasso_trade_off(data.change(lam=lam, mechanism=mechanism), noises)
    kl = {name: getattr(found, field) for name, field in FIELDS.items()}
    return Curve(noises, found.generalization_error, kl)


def _table(
    plain: dict[float, float],
    curves: dict[float, Curve],
    best: dict[str, Optima],
    solid: LassoDivergence,
    *,
    printed: bool,
) -> pd.DataFrame:
    """One panel: a divergence solid with its optima, the printed one dashed where it belongs."""
    names: tuple[LassoDivergence, ...] = (solid, "printed") if printed else (solid,)
    shown = np.concatenate([curve.kl[name] for curve in curves.values() for name in names])
    ends = np.array([shown.min(), shown.max()])
    frames = []
    for place, lam in enumerate(LAMBDAS):
        label, curve, at = f"λ = {lam:g}", curves[lam], best[solid]
        for name in names:
            source = "printed" if name == "printed" else "theory"
            frames.append(_rows(curve.error, curve.kl[name], label, source, curve.sigma_eta))
        frames.append(_rows(at.error[place], at.kl[place], label, "marked", at.sigma_eta[place]))
    for lam in LAMBDAS:
        upright = np.full(2, plain[lam])
        frames.append(_rows(upright, ends, f"λ = {lam:g}", "no noise", ends))
    return pd.concat(frames, ignore_index=True)


def _rows(
    error: FloatArray, kl: FloatArray, label: str, source: str, along: FloatArray
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "generalization_error": np.atleast_1d(error),
            "kl": np.atleast_1d(kl),
            "curve": label,
            "source": source,
            "order": np.atleast_1d(along),
        }
    )


def _output_claims(
    plain: dict[float, float], curves: dict[float, Curve], best: dict[str, Optima]
) -> list[Claim]:
    monotone = all(
        (np.diff(curve.error) > 0.0).all() and (np.diff(curve.kl[name]) < 0.0).all()
        for curve in curves.values()
        for name in ("printed", "joint")
    )
    weak = curves[1.0]
    corner = _corner(plain, best, "joint")
    return [
        judge(
            "under output perturbation more error means less divergence, without a turn",
            "Sec. 6.4, Fig. 8(a)",
            f"λ = 1: KL {weak.kl['joint'][0]:.3g} at E = {weak.error[0]:.4f} to "
            f"{weak.kl['joint'][-1]:.3g} at {weak.error[-1]:.3g}; without noise E = "
            f"{plain[1.0]:.4f}",
            as_printed=monotone,
        ),
        judge(
            "as λ grows the curve approaches the corner (E0, 0)",
            "Sec. 6.4, Fig. 8(a)",
            "distance of its nearest-to-origin point from the corner "
            + ", ".join(f"{d:.3f} (λ = {lam:g})" for d, lam in zip(corner, LAMBDAS, strict=True)),
            as_printed=bool((np.diff(corner) < 0.0).all()),
        ),
    ]


def _corner(plain: dict[float, float], best: dict[str, Optima], name: str) -> FloatArray:
    noiseless = np.array([plain[lam] for lam in LAMBDAS])
    return np.asarray(np.hypot(best[name].error - noiseless, best[name].kl))


def _objective_claims(
    plain: dict[float, float], curves: dict[float, Curve], best: dict[str, Optima]
) -> list[Claim]:
    first = {name: [_first_part(curves[lam], name) for lam in LAMBDAS] for name in DIVERGENCES}
    later = {
        name: [
            _straightness(curves[lam], name, best[name].sigma_eta[place])
            for place, lam in enumerate(LAMBDAS)
        ]
        for name in DIVERGENCES
    }
    corner = {name: _corner(plain, best, name) for name in DIVERGENCES}
    last = {name: [float(curves[lam].kl[name][-1]) for lam in LAMBDAS] for name in DIVERGENCES}
    at_best = {name: best[name].kl for name in DIVERGENCES}
    return [
        *judge_both(
            "weak noise in the objective first lowers the divergence at almost the same error",
            "Sec. 6.4, Fig. 8(b)",
            {
                name: all(kl < 0.5 and 0.9 < e < 1.1 for kl, e in first[name])
                for name in DIVERGENCES
            },
            {
                name: "halved at E/E0 = "
                + ", ".join(f"{e:.3f}" for _, e in first[name])
                + f" (λ = {', '.join(f'{lam:g}' for lam in LAMBDAS)})"
                for name in DIVERGENCES
            },
            "lasso 2",
        ),
        *judge_both(
            "beyond the optimum divergence and error grow together, about linearly, for any λ",
            "Sec. 6.4, Fig. 8(b)",
            {name: all(r > STRAIGHT for r in later[name]) for name in DIVERGENCES},
            {
                name: f"up to {REACH:g} times the least error, a straight line explains "
                + ", ".join(f"{abs(r):.0%}" for r in later[name])
                + (", falling" if later[name][0] < 0.0 else "")
                for name in DIVERGENCES
            },
            "lasso 5",
        ),
        *judge_both(
            "as λ grows the curve's minimum approaches (E0, 0)",
            "Sec. 6.4, Fig. 8(b)",
            {name: bool((np.diff(corner[name]) < 0.0).all()) for name in DIVERGENCES},
            {
                name: "distance " + ", ".join(f"{d:.3f}" for d in corner[name])
                for name in DIVERGENCES
            },
            "lasso 2",
        ),
        *judge_both(
            "at strong noise the divergence grows again, however large λ is",
            "Sec. 6.4, Fig. 8(b)",
            {name: bool((np.array(last[name]) > at_best[name]).all()) for name in DIVERGENCES},
            {
                name: "at 0.999 of the edge "
                + ", ".join(f"{value:.3g}" for value in last[name])
                + ", at the optimum "
                + ", ".join(f"{value:.3g}" for value in at_best[name])
                for name in DIVERGENCES
            },
            "lasso 5",
        ),
    ]


def _first_part(curve: Curve, name: str) -> tuple[float, float]:
    """Where the divergence is first at most half of what it is at the weakest noise."""
    share = curve.kl[name] / curve.kl[name][0]
    half = int(np.argmax(share < 0.5)) if (share < 0.5).any() else int(np.argmin(share))
    return float(share[half]), float(curve.error[half] / curve.error[0])


def _straightness(curve: Curve, name: str, optimum: float) -> float:
    """R² of a straight line from the optimum to `REACH` times the least error; below 0: falling."""
    part = (curve.sigma_eta >= optimum) & (curve.error <= REACH * curve.error.min())
    error = np.linspace(curve.error[part][0], curve.error[part][-1], 200)
    correlation = np.corrcoef(error, np.interp(error, curve.error[part], curve.kl[name][part]))
    return float(correlation[0, 1] * abs(correlation[0, 1]))


FIGURES = (
    Figure(
        "lasso-8",
        "lasso",
        "Fig. 8(a), (b)",
        "error against on-average KL for both mechanisms",
        make,
        full="the same, seconds",
        knobs=KNOBS,
    ),
)
