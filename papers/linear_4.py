"""Fig. 4 of **linear**: fewer features against noise on the answers, at equal error."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from leakscope import InputError, linear
from leakscope.linear import GaussianDesign, OutputNoise, RecordNorms
from leakscope.planning import equivalence_gap, linear_advantage, trade_off_curve
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.mean_interval import Mean, around

KNOBS = {"n": 100, "D": 3_000, "sigma": 1.0}
RATIOS = (2.2, 2.5, 3.0, 4.0, 6.0, 10.0, 30.0)
WAYS = {
    "features": "fewer features",
    "noise_nonmembers": "noise for non-members (Lemma 4.4)",
    "noise": "noise on every answer",
}
ERRATUM = "linear 3"


def make(order: Order) -> Made:
    """Both trade-offs in the limit, the finite-n law beside them, and noise for everyone."""
    points = 50 if order.full else 25
    # all features in use
    design = GaussianDesign(order.whole("n"), order.whole("D"), order.whole("D"), _sigma(order))
    if design.dim < 4 * design.n:
        raise InputError("D must be 4 times n or more.")
    order.step("curves")
    floor = linear.generalization_error(design).value
    sizes = np.unique(np.geomspace(2.05 * design.n, design.dim, points).astype(int))
    sigmas = np.sqrt([max(_error(design, p) - floor, 0.0) for p in sizes.tolist()])
    rows: list[tuple[float, float, str, str, float, float]] = []
    curves = {}
    for knob, name in WAYS.items():
        levels = sizes if knob == "features" else sigmas
        curve = trade_off_curve(design, knob, [float(x) for x in levels])  # type: ignore[arg-type]
        curves[knob] = curve
        rows += [
            (error, value, name, "theory", np.nan, np.nan)
            for error, value in zip(curve.generalization_error, curve.advantage, strict=True)
        ]
    order.step("finite-n law")
    draws = 20_000 if order.full else 2_000
    fewer, noisy = _finite_n(order, design, draws, floor)
    for name, found in ((WAYS["features"], fewer), (WAYS["noise_nonmembers"], noisy)):
        rows += [
            (_error(design, p), one.value, name, "simulation", one.low, one.high)
            for p, one in found.items()
        ]
    columns = ["error", "advantage", "knob", "source", "low", "high"]
    panel = Panel(
        "privacy against utility", pd.DataFrame(rows, columns=columns), x="error", y="advantage",
        series="knob", low="low", high="high", x_title="generalisation error", overlaid=True,
    )  # fmt: skip
    known = curves["noise"].advantage
    apart = float(np.abs(curves["features"].advantage - known).max())
    gap = equivalence_gap(design, points=points)
    # a fiftieth of the curve's range cannot be seen on the figure
    bound = float(np.ptp(curves["features"].advantage)) / 50.0
    claims = (
        _equivalent(fewer, noisy, gap, bound),
        _deployable(apart, gap, bound),
        _falls(curves["noise_nonmembers"].advantage, curves["noise_nonmembers"].settings),
        _enough_noise(design),
    )
    settings = {**order.knobs, "designs": draws}
    notes = (
        "Noise on every answer is ours: it can be deployed, noise for non-members cannot.",
        f"Points are the exact law at n = {design.n:,}; errors are Prop. 4.3 and Eq. (6), exact at "
        "every n.",
    )
    return Made((panel,), claims, settings=settings, notes=notes)


def _sigma(order: Order) -> float:
    return float(order.knobs["sigma"])


def _fewer(whole: GaussianDesign, p: int) -> GaussianDesign:
    return GaussianDesign(whole.n, p, whole.dim, whole.sigma)


def _error(whole: GaussianDesign, p: int) -> float:
    return linear.generalization_error(_fewer(whole, p)).value


def _finite_n(
    order: Order, whole: GaussianDesign, draws: int, floor: float
) -> tuple[dict[int, Mean], dict[int, Mean]]:
    """The exact law's advantage with p features, and with all and noise of the same error."""
    fewer: dict[int, Mean] = {}
    noisy: dict[int, Mean] = {}
    sizes = [round(ratio * whole.n) for ratio in RATIOS]
    for p in (p for p in sizes if p <= whole.dim):
        noise = OutputNoise(max(_error(whole, p) - floor, 0.0) ** 0.5, to="nonmembers")
        for found, design, added in (
            (fewer, _fewer(whole, p), None),
            (noisy, whole, noise),
        ):
            one = linear_advantage(
                design, attacker="label_hidden", noise=added, draws=draws,
                random_state=order.key.child(0, p, int(added is not None)),
            )  # fmt: skip
            found[p] = around(one.value, one.stderr)
    return fewer, noisy


def _equivalent(
    fewer: dict[int, Mean], noisy: dict[int, Mean], limit: float, bound: float
) -> Claim:
    gaps = {p: abs(one.value - noisy[p].value) for p, one in fewer.items()}
    worst = max(gaps, key=lambda p: gaps[p])
    return judge(
        "fewer features and noise for non-members trade privacy for utility equally well",
        "Sec. 4.2, Fig. 4",
        f"at equal error the two advantages differ by {limit:.4f} at most in the limit, and by "
        f"{gaps[worst]:.4f} (p = {worst}) under the finite-n laws; bound {bound:.4f}, a fiftieth "
        "of the curve's range",
        as_printed=max(limit, gaps[worst]) < bound,
    )  # fmt: skip


def _deployable(apart: float, gap: float, bound: float) -> Claim:
    return judge(
        "reducing parameters is equivalent to adding independent noise to the model's output",
        "Sec. 1, contribution 4",
        f"noise on every answer differs from fewer features by up to {apart:.3f} at equal error, "
        f"noise for non-members only by {gap:.4f}",
        as_printed=apart < bound, corrected=gap < bound, erratum=ERRATUM,
    )  # fmt: skip


def _falls(advantage: np.ndarray, sigmas: np.ndarray) -> Claim:
    ordered = advantage[np.argsort(sigmas)]
    falls = all(b < a for a, b in itertools.pairwise(ordered.tolist()))
    return judge(
        "more noise for non-members lowers the advantage, at the cost of error", "Sec. 4.2",
        f"from {ordered[0]:.3f} without noise to {ordered[-1]:.3f} at a standard deviation of "
        f"{sigmas.max():.2f}",
        as_printed=falls,
    )  # fmt: skip


def _enough_noise(design: GaussianDesign) -> Claim:
    """At the record of average norms, with the noise that makes the two variances equal."""
    typical = RecordNorms.typical(design)
    pair = linear.law_pair(design, typical, method="asymptotic")
    member, other = (np.asarray(law.sigma)[0] for law in (pair.member, pair.nonmember))  # type: ignore[attr-defined]
    sigma = float(np.sqrt(member**2 - other**2))
    noise = OutputNoise(sigma, to="nonmembers")
    hidden = linear.law_pair(design, typical, method="asymptotic", noise=noise)
    from leakscope import measures

    left = float(np.asarray(measures.advantage(hidden))[0])
    over = linear_advantage(design, attacker="label_hidden", method="asymptotic", noise=noise).value
    return judge(
        "enough noise for non-members makes the advantage zero", "Sec. 4.2",
        f"{left:.1e} at the record of average norm with a standard deviation of {sigma:.2f}; "
        f"{over:.3f} over all records, whose norms differ",
        as_printed=left < 1e-9,
    )  # fmt: skip


FIGURES = (
    Figure(
        "linear-4", "linear", "Fig. 4", "fewer features against noise, at equal error", make,
        full="one core, one minute", knobs=KNOBS,
    ),
)  # fmt: skip
