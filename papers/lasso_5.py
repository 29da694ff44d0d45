"""lasso, Fig. 5: one estimated coefficient over the privacy noise, averaged over datasets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.laws import SpikeAndSlab
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_histogram import AXES, averaged, bin_edges, histogram_frame
from papers.lasso_runs import Agreement, agreement, data_model, draw, interval_columns

KNOBS = {"alpha": 0.5, "rho": 0.5, "sigma_xi": 0.1, "lam": 1.0, "sigma_eta": 0.5}

# True coefficients of the panels (a) to (f), from the caption.
TRUTHS = (0.0, 0.3554, 1.308, -1.279, 2.191, -2.432)

WIDTH = 0.25


class OverNoise(NamedTuple):
    """What the runs gave.

    ``estimates[panel][dataset]`` are values over the noise; ``spread`` and ``location`` (datasets,)
    are the variance of a field over the noise at fixed data, and that of its mean over coordinates.
    """

    estimates: list[list[FloatArray]]
    spread: FloatArray
    location: FloatArray


def make(order: Order) -> Made:
    """Six panels, what averaging over datasets hides, and Claim 5.1."""
    p, datasets, noises = (500, 100, 1000) if order.full else (500, 32, 100)
    setting = data_model(order)
    point = lasso.state_evolution(setting)
    found = _run(order, setting, p, datasets, noises)
    both = lasso.noise_overlap(point)
    panels, laws = [], []
    for place, truth in enumerate(TRUTHS):
        # over data and noise together, where the printed and the corrected law are the same
        law = SpikeAndSlab(truth, np.sqrt(point.field_variance), point.threshold)
        edges = bin_edges(law, WIDTH)
        table = histogram_frame(law, edges, *averaged(found.estimates[place], edges))
        panels.append(
            Panel(f"({'abcdef'[place]}) β0 = {truth:g}", table, *AXES, low="low",
                  high="high", y_log=True, x_title="estimate",
                  y_title=f"share in bins of {WIDTH:g}")
        )  # fmt: skip
        laws.append(law)
    own = float((point.scale * setting.sigma_eta) ** 2)
    expected = {
        "printed": (own, float(point.error / setting.alpha)),
        "theory": (float(both.sigma**2), float(both.overlap_error / setting.alpha)),
    }
    panels.append(_variances(found, expected))
    return Made(
        panels=tuple(panels),
        claims=(*_averaged_claims(found, laws), _fixed_data_claim(found, expected)),
        settings={
            **order.knobs, "coefficients": p, "datasets": datasets, "noises": noises,
        },
        notes=(
            "Averaged over datasets, as in the paper, the printed law and the corrected one are "
            "the same; the last panel has what tells them apart, the variances at fixed data.",
            "Panel (a) takes all coefficients that are truly zero.",
        ),
    )  # fmt: skip


def _run(order: Order, setting: LassoSetting, p: int, datasets: int, noises: int) -> OverNoise:
    estimates: list[list[FloatArray]] = [[] for _ in TRUTHS]
    spread, location = [], []
    sigma, lam = float(setting.sigma_eta), float(setting.lam)
    for number in range(datasets):
        if number % max(1, datasets // 10) == 0:
            order.step(f"dataset {number} of {datasets}")
        key = order.key.child(number)
        data = draw(setting, p, key)
        truth, y = data.truth.copy(), data.y.copy()
        places: list[int] = []
        for value in TRUTHS[1:]:
            away = np.abs(truth - value)
            away[places] = np.inf
            places.append(int(np.argmin(away)))
            y += data.X[:, places[-1]] * (value - truth[places[-1]])
            truth[places[-1]] = value
        eta = key.child(0).generator().normal(0.0, sigma, (noises, p))
        passed = lasso.message_passing(data.X, y, lam, eta, tol=1e-6)
        good = passed.status == "converged"
        coef = passed.coef[good]
        estimates[0].append(coef[:, truth == 0.0].ravel())
        for panel, place in enumerate(places, start=1):
            estimates[panel].append(coef[:, place])
        # the field less the coordinate's own noise is what a soft threshold turns into the estimate
        field = passed.field[good] - eta[good] * passed.spread[good, None]
        over_noise = float(field.var(axis=0, ddof=1).mean())
        means = field.mean(axis=0) - truth
        spread.append(over_noise)
        location.append(float(np.mean(means**2)) - over_noise / int(good.sum()))
    return OverNoise(estimates, np.array(spread), np.array(location))


def _variances(found: OverNoise, expected: dict[str, tuple[float, float]]) -> Panel:
    rows = []
    names = ("over the noise", "over data")
    for place, (name, values) in enumerate(zip(names, found[1:], strict=True)):
        simulated = interval_columns(values[:, None])
        low, mean, high = (float(simulated[key][0]) for key in ("low", "mean", "high"))
        rows.append((name, "simulated", mean, low, high, "simulation"))
        for source, label in (("theory", "corrected"), ("printed", "printed")):
            rows.append((name, label, expected[source][place], np.nan, np.nan, source))
    columns = ["part", "by", "variance", "low", "high", "source"]
    return Panel(
        "variance of a field at fixed data, and of its mean over data",
        pd.DataFrame(rows, columns=columns), "part",
        "variance", "by", "low", "high", x_title="", kind="bars",
    )  # fmt: skip


def _averaged_claims(found: OverNoise, laws: list[SpikeAndSlab]) -> list[Claim]:
    values, theory = [], []
    towards = []
    for law, truth, groups in zip(laws, TRUTHS, found.estimates, strict=True):
        zero = np.array([np.mean(group == 0.0) for group in groups])
        below = np.array([np.mean(group < 0.0) for group in groups])
        values += [zero, below]
        atom = float(law.atom)
        theory += [atom, float(law.cdf(0.0)) - atom]
        if truth != 0.0:
            above = np.array([np.mean(group > 0.0) for group in groups])
            right, wrong = (above, below) if truth > 0.0 else (below, above)
            towards.append((float(right.mean()), float(wrong.mean())))
    met = agreement(np.array(values).T, np.array(theory))
    return [
        judge(
            "averaged over datasets, the law over the noise is that of state evolution",
            "Sec. 5.2, Fig. 5",
            f"shares of zeros and of negative estimates at six coefficients: {met.words()}",
            as_printed=met.agrees,
        ),
        judge(
            "the mass of a non-zero coefficient leans to its sign",
            "Sec. 5.2, Fig. 5",
            "right against wrong sign "
            + ", ".join(f"{right:.3f} : {wrong:.3f}" for right, wrong in towards),
            as_printed=all(right > wrong for right, wrong in towards),
        ),
    ]


def _fixed_data_claim(found: OverNoise, expected: dict[str, tuple[float, float]]) -> Claim:
    values = np.stack(found[1:], axis=1)
    tests: dict[str, Agreement] = {
        name: agreement(values, np.array(pair)) for name, pair in expected.items()
    }
    means = values.mean(axis=0)
    return judge(
        "at fixed data the law over the noise has scale Σσ_η around a location that has the "
        "variance E/α over data (Claim 5.1)",
        "Sec. 5.2",
        f"variance over the noise {means[0]:.3f}, printed {expected['printed'][0]:.3f}, corrected "
        f"{expected['theory'][0]:.3f}; of the location {means[1]:.3f}, "
        f"{expected['printed'][1]:.3f}, {expected['theory'][1]:.3f}; printed off by "
        f"{tests['printed'].largest:.1f} standard errors, corrected by "
        f"{tests['theory'].largest:.1f}",
        as_printed=tests["printed"].agrees,
        corrected=tests["theory"].agrees,
        erratum="lasso 2",
    )


FIGURES = (
    Figure(
        "lasso-5",
        "lasso",
        "Fig. 5(a) to (f)",
        "the law of an estimated coefficient over the privacy noise",
        make,
        full="one core, two minutes",
        knobs=KNOBS,
    ),
)
