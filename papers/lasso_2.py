"""lasso, Fig. 2: the generalisation error against λ, and against the non-zero share it leads to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import lasso
from leakscope.lasso import FixedPoint, LassoSetting
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_runs import (
    KNOBS,
    STEADY,
    Agreement,
    agreement,
    curve,
    data_model,
    points,
    run_lasso,
    together,
)

NOISES = (0.0, 0.1, 0.3)
LARGEST = 2.0
POINTS = 8

BY_LAMBDA = ("lam", "generalization_error")
BY_SPARSITY = ("active_fraction", "generalization_error")


def make(order: Order) -> Made:
    """Both panels, and what Section 4.1 reads in them."""
    p, datasets = 1000, 100 if order.full else 12
    data = data_model(order)
    edge = float(lasso.stability_edge(data.alpha))
    by_lambda: list[pd.DataFrame] = []
    by_sparsity: list[pd.DataFrame] = []
    theory: dict[float, FixedPoint] = {}
    simulated, expected = [], []
    for number, noise in enumerate(NOISES):
        order.step(f"message passing at sigma_eta = {noise:g}")
        label = "no noise" if noise == 0.0 else f"σ_η = {noise:g}"
        theory[noise] = point = lasso.state_evolution(
            data.change(lam=np.geomspace(max(0.05, 1.03 * edge * noise), LARGEST, 120),
                        sigma_eta=noise)
        )  # fmt: skip
        lam = np.geomspace(max(0.08, 1.3 * edge * noise), LARGEST, POINTS)
        trial = data.change(lam=lam, sigma_eta=noise)
        runs = run_lasso(trial, coefficients=p, datasets=datasets, key=order.key.child(number))
        by_lambda += [
            curve(BY_LAMBDA, point.setting.lam, point.error, label),
            points(BY_LAMBDA, lam, runs.generalization_error, label),
        ]
        by_sparsity += [
            curve(BY_SPARSITY, point.active_fraction, point.error, label),
            points(
                BY_SPARSITY, runs.active_fraction.mean(axis=0), runs.generalization_error, label
            ),
        ]
        at = lasso.state_evolution(trial)
        steady = at.active_fraction <= STEADY * data.alpha
        simulated += [runs.active_fraction[:, steady], runs.generalization_error[:, steady]]
        expected += [at.active_fraction[steady], at.error[steady]]
    met = agreement(np.concatenate(simulated, axis=1), np.concatenate(expected))
    return Made(
        panels=(
            Panel("(a) generalisation error against λ", together(by_lambda), *BY_LAMBDA, "curve",
                  "low", "high", y_log=True, x_title="λ", y_title="E"),
            Panel("(b) the same against the non-zero share", together(by_sparsity), *BY_SPARSITY,
                  "curve", "low", "high", y_log=True, x_title="ρ̂", y_title="E"),
        ),
        claims=_claims(data, theory, met),
        settings={
            **order.knobs, "sigma_eta": list(NOISES),
            "lam": [0.05, LARGEST], "coefficients": p, "datasets": datasets,
        },
        notes=(
            "Section 4.2.2 calls the ratio of errors Fig. 2(b); it is in Fig. 3(a), lasso-3a here.",
        ),
    )  # fmt: skip


def _claims(
    data: LassoSetting, theory: dict[float, FixedPoint], met: Agreement
) -> tuple[Claim, ...]:
    none, weak, strong = (theory[noise] for noise in NOISES)
    # every λ that all three noises allow, evenly
    lam = np.linspace(strong.setting.lam[0], LARGEST, 200)
    errors = np.array(
        [lasso.state_evolution(data.change(lam=lam, sigma_eta=noise)).error for noise in NOISES]
    )
    more = errors[2] > errors[0]
    change = errors[2] - errors[0]
    # where the error is ten times its least, coming from large penalties
    blown = [_ten_times(point) for point in (none, weak, strong)]
    shares = np.linspace(
        max(p.active_fraction.min() for p in (none, weak, strong)),
        min(p.active_fraction.max() for p in (none, weak, strong)),
        200,
    )
    at_share = np.array(
        [
            np.exp(np.interp(shares, p.active_fraction[::-1], np.log(p.error[::-1])))
            for p in (none, weak, strong)
        ]
    )
    ordered = (np.diff(at_share, axis=0) > 0.0).all(axis=0)
    half = int(np.argmin(np.abs(shares - 0.2)))
    return (
        judge(
            "noise generally increases the error",
            "Sec. 4.1, Fig. 2(a)",
            f"from no noise to σ_η = 0.3 E is more at {more.mean():.0%} of λ from {lam[0]:.2f} to "
            f"{lam[-1]:g}, by {change.mean():+.3f} on average over all; "
            + (
                f"above {lam[~more].min():.2f} it is less, by {(-change / errors[0]).max():.1%} at "
                "most. "
                if not more.all()
                else ""
            )
            + "The paper does not give its range of λ",
            # Generally: at most λ.  On another range it may be.
            as_printed=True if more.mean() > 0.5 else None,
        ),
        judge(
            "for small λ the error becomes very large with noise",
            "Sec. 4.1, Fig. 2(a)",
            f"{errors[0, 0]:.3f} without noise and {errors[2, 0]:.2f} with σ_η = 0.3 at λ = "
            f"{lam[0]:.2f}",
            as_printed=bool(errors[2, 0] > 10.0 * errors[0, 0]),
        ),
        judge(
            "with more noise the error diverges at larger λ",
            "Sec. 4.1, Fig. 2(a)",
            "E is ten times its least below λ = "
            + ", ".join(
                f"{value:.3f} (σ_η = {noise:g})" if value > 0.0 else f"none (σ_η = {noise:g})"
                for value, noise in zip(blown, NOISES, strict=True)
            )
            + f"; the edge is at λ = {float(lasso.stability_edge(data.alpha)):.3f} σ_η",
            as_printed=bool(blown[0] < blown[1] < blown[2]),
        ),
        judge(
            "at the same non-zero share more noise means more error",
            "Sec. 4.1, Fig. 2(b)",
            f"so at {ordered.mean():.0%} of ρ̂ from {shares[0]:.4f} to {shares[-1]:.2f}; at ρ̂ = "
            f"{shares[half]:.2g} E = {at_share[0, half]:.3f}, {at_share[1, half]:.3f}, "
            f"{at_share[2, half]:.3f}",
            as_printed=bool(ordered.all()),
        ),
        judge(
            "message passing with one noise draw per dataset meets the analysis",
            "Sec. 4.2.1, Figs. 1 and 2",
            f"ρ̂ and E where ρ̂ ≤ {STEADY:g} α: {met.words()}",
            as_printed=met.agrees,
        ),
    )


def _ten_times(point: FixedPoint) -> float:
    """The largest λ at which the error is ten times its least; 0 if there is none."""
    large = point.error >= 10.0 * point.error.min()
    return float(point.setting.lam[large].max()) if large.any() else 0.0


FIGURES = (
    Figure(
        "lasso-2",
        "lasso",
        "Fig. 2(a), (b)",
        "error of the LASSO against its penalty and its non-zero share, with and without noise",
        make,
        full="one core, half a minute",
        knobs=KNOBS,
    ),
)
