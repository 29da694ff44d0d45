"""lasso, Fig. 4: one estimated coefficient over datasets, its true value and its noise fixed."""

from __future__ import annotations

import numpy as np
from scipy import special

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.laws import Key, SpikeAndSlab
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, OnStep, Order, Panel
from papers.lasso_histogram import (
    AXES,
    bin_edges,
    counted,
    histogram_frame,
    kolmogorov_p,
)
from papers.lasso_runs import LEVEL, data_model

KNOBS = {"alpha": 0.5, "rho": 0.3, "sigma_xi": 0.1, "lam": 0.5, "sigma_eta": 0.1}

# True coefficient and noise of the panels (a) to (j), from the caption.
PANELS = (
    (1.0629, 0.0460), (-1.0412, -0.0238), (-2.1796, -0.0079), (2.1290, -0.0317),
    (3.2188, 0.0556), (-3.2333, -0.0321), (-1.0095, 0.2907), (0.1017, -0.3261),
    (0.0, 0.3579), (0.0, -0.3233),
)  # fmt: skip
SMALL = 6  # the first six have a small noise

# A deviation in the peak that a reader would notice in the figure, as a share of all datasets.
NOTICEABLE = 0.1


def make(order: Order) -> Made:
    """Ten panels, and what Section 5.1 says of their agreement."""
    p, realisations, width = (5000, 1000, 0.1) if order.full else (1000, 480, 0.2)
    setting = data_model(order)
    point = lasso.state_evolution(setting)
    estimates = _estimates(setting, p, realisations, order.key, order.step)
    panels, laws = [], []
    for place, (truth, noise) in enumerate(PANELS):
        law = lasso.law_over_data(point, truth, noise)
        values = estimates[:, place]
        edges = bin_edges(law, width)
        table = histogram_frame(law, edges, *counted(values, edges))
        title = f"({'abcdefghij'[place]}) β0 = {truth:g}, η = {noise:g}"
        panels.append(
            Panel(title, table, *AXES, low="low", high="high", x_title="estimate",
                  y_title=f"share in bins of {width:g}")
        )  # fmt: skip
        laws.append(law)
    return Made(
        panels=tuple(panels),
        claims=_claims(laws, estimates),
        settings={
            **order.knobs, "coefficients": p, "realisations": realisations, "bin": width,
        },
        notes=(
            f"The paper has p = 5000, 1000 realisations and bins of 0.01; here {p}, {realisations} "
            f"and {width:g}. Signal and noise are quantiles of their laws in a random order, and "
            "the nearest values were replaced by those of the caption.",
        ),
    )  # fmt: skip


def _estimates(
    setting: LassoSetting, p: int, realisations: int, key: Key, step: OnStep
) -> FloatArray:
    """(realisations, panels) estimates of the ten coefficients over features and label noise."""
    n = round(float(setting.alpha) * p)
    generator = key.child(0).generator()
    # One signal and one noise for all datasets: with quantiles for draws, both have the variance
    # that theory takes them to have.
    active = round(float(setting.rho) * p)
    truth = generator.permutation(np.append(_quantiles(active), np.zeros(p - active)))
    noise = float(setting.sigma_eta) * generator.permutation(_quantiles(p))
    places: list[int] = []
    for value, own in PANELS:
        free = np.abs(truth - value)
        free[places] = np.inf
        places.append(int(np.argmin(free)))
        truth[places[-1]], noise[places[-1]] = value, own
    found = np.empty((realisations, len(PANELS)))
    for number in range(realisations):
        if number % max(1, realisations // 10) == 0:
            step(f"dataset {number} of {realisations}")
        generator = key.child(1, number).generator()
        X = generator.normal(0.0, p**-0.5, (n, p))
        y = X @ truth + generator.normal(0.0, float(setting.sigma_xi), n)
        passed = lasso.message_passing(X, y, float(setting.lam), noise, tol=1e-6)
        found[number] = passed.coef[0, places]
    return found


def _quantiles(count: int) -> FloatArray:
    """Equally likely values of a standard normal, scaled to variance 1."""
    values = special.ndtri((np.arange(count) + 0.5) / count)
    return np.asarray(values / np.sqrt(np.mean(values**2)))


def _claims(laws: list[SpikeAndSlab], estimates: FloatArray) -> tuple[Claim, ...]:
    p_values = np.array([kolmogorov_p(law, estimates[:, i]) for i, law in enumerate(laws)])
    peaks = np.array([float(law.atom) for law in laws])
    shares = np.mean(estimates == 0.0, axis=0)
    stderr = np.sqrt(peaks * (1.0 - peaks) / estimates.shape[0])
    off = (shares - peaks)[SMALL:]
    worst = float((np.abs(off) + 2.0 * stderr[SMALL:]).max())
    z = np.abs(off / stderr[SMALL:])
    # four peaks at once: the bound of one chance in a hundred that any is beyond it
    deviates = bool((z > 3.02).any() or (p_values[SMALL:] < 0.01 / off.size).any())
    verdict: bool | None = deviates
    if not deviates and worst > NOTICEABLE:
        verdict = None
    return (
        judge(
            "where |η| is small the law over data is that of state evolution (Eqs. 45 and 46)",
            "Sec. 5.1, Fig. 4(a) to (f)",
            f"Kolmogorov-Smirnov p-values {', '.join(f'{v:.2f}' for v in p_values[:SMALL])} over "
            f"{estimates.shape[0]} datasets",
            as_printed=bool((p_values[:SMALL] > LEVEL / SMALL).all()),
        ),
        judge(
            "where |η| is about 0.3 the simulation deviates noticeably, in the peak above all",
            "Sec. 5.1, Fig. 4(g) to (j)",
            "share of zeros, simulated and by state evolution: "
            + ", ".join(
                f"{s:.3f} and {q:.3f}" for s, q in zip(shares[SMALL:], peaks[SMALL:], strict=True)
            )
            + f", {z.max():.1f} standard errors at most; Kolmogorov-Smirnov p-values "
            + ", ".join(f"{v:.2f}" for v in p_values[SMALL:]),
            as_printed=verdict,
            erratum="lasso 8",
        ),
    )  # fmt: skip


FIGURES = (
    Figure(
        "lasso-4",
        "lasso",
        "Fig. 4(a) to (j)",
        "the law of an estimated coefficient over datasets",
        make,
        full="one core, a quarter of an hour",
        knobs=KNOBS,
    ),
)
