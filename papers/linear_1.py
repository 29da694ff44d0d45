"""Fig. 1 of **linear**: the two laws of a prediction, and how they part as p grows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy import special

from leakscope import InputError, linear
from leakscope.laws import Key, LawPair, Normal, NormalMixture
from leakscope.linear import GaussianDesign, RecordNorms, law_pair
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_records import growing_norms
from papers.mean_interval import Mean, around

RATIOS = (1.5, 2.0, 5.0, 10.0, 50.0)
SIDES = ("member", "non-member")
KNOBS = {"n": 400, "D": 20_000, "sigma": 1.0}
PREDICTIONS = 20_000
BINS = 81
WHERE = "Sec. 3.2 and Fig. 1"


def make(order: Order) -> Made:
    """Eq. (2)'s standard deviations, whole matrices beside them, and histograms at five p/n."""
    whole = GaussianDesign(order.whole("n"), order.whole("D"), order.whole("D"), _sigma(order))
    parts, matrices = (1, 200) if order.full else (4, 40)
    # (a) has whole matrices, and at quick size a quarter of the records and of the features
    n, dim = whole.n // parts, whole.dim // parts
    ratios = tuple(ratio for ratio in RATIOS if round(ratio * n) <= dim)
    if len(ratios) < 2:
        raise InputError(f"D must be {RATIOS[1]:g} times n or more.")
    records, designs = _record(GaussianDesign(n, dim, dim, whole.sigma), ratios, order.key.child(0))
    order.step("curves")
    curves = _curves(designs[-1], records[-1])
    order.step(f"{matrices} whole matrices for each p")
    spread = {
        design.ratio: _whole_matrices(design, norms, order.key.child(1, k), matrices)
        for k, (design, norms) in enumerate(zip(designs, records, strict=True))
    }
    points = [
        (ratio, side, np.sqrt(one.value), "simulation", np.sqrt(one.low), np.sqrt(one.high))
        for ratio, both in spread.items()
        for side, one in zip(SIDES, both, strict=True)
    ]
    columns = ["p/n", "record", "sd", "source", "low", "high"]
    table = pd.concat([curves, pd.DataFrame(points, columns=columns)], ignore_index=True)
    order.step("histograms")
    large = list(zip(*_record(whole, ratios, order.key.child(0)), strict=True))
    pairs = [
        linear.law_pair(design, norms, draws=PREDICTIONS, random_state=order.key.child(2, k))
        for k, (norms, design) in enumerate(large)
    ]
    drawn = [_predictions(pair, order.key.child(3, k)) for k, pair in enumerate(pairs)]
    limits = [linear.law_pair(design, norms, method="asymptotic") for norms, design in large]
    panels = [
        Panel(
            "(a) standard deviation of the prediction", table, x="p/n", y="sd", series="record",
            low="low", high="high", x_log=True,
        ),
        *(
            Panel(
                f"({letter}) p/n = {ratio:g}", _histogram(sample, limit), x="prediction",
                y="density", series="record", low="low", high="high",
            )
            for letter, ratio, sample, limit in zip("bcdef", ratios, drawn, limits, strict=False)
        ),
    ]  # fmt: skip
    settings = {
        "p/n": ratios, "sigma": whole.sigma, "(a)": {"n": n, "D": dim, "matrices": matrices},
        "(b-f)": {"n": whole.n, "D": whole.dim, "predictions": PREDICTIONS},
    }  # fmt: skip
    notes = [
        "The text does not say which five values of p/n are drawn; these are ours.",
        "Predictions are drawn from the exact finite-n law (five chi-squares each), not from "
        "matrices; the points of (a) are from whole matrices.",
    ]
    if not order.full:
        notes.append(
            f"In (a) n = {n:,} and D = {dim:,} in place of {whole.n:,} and {whole.dim:,}, the same "
            "D/n."
        )
    claims = (
        _eq_2(designs, records, spread),
        _eq_1(ratios, drawn, limits),
        _one_falls(spread),
        _crossing(whole),
    )
    return Made(tuple(panels), claims, settings=settings, notes=tuple(notes))


def _sigma(order: Order) -> float:
    return float(order.knobs["sigma"])


def _record(
    whole: GaussianDesign, ratios: tuple[float, ...], key: Key
) -> tuple[list[RecordNorms], list[GaussianDesign]]:
    """One record x0 at each p, and the designs it is asked in."""
    sizes = [round(ratio * whole.n) for ratio in ratios]
    designs = [GaussianDesign(whole.n, p, whole.dim, whole.sigma) for p in sizes]
    return growing_norms(sizes, whole.dim, 1, key), designs


def _curves(design: GaussianDesign, norms: RecordNorms) -> pd.DataFrame:
    """Eq. (2) along p/n, for a record whose norm is spread evenly over its features."""
    n, dim, total = design.n, design.dim, float(norms.used[0] + norms.unused[0])
    rows = []
    for p in np.unique(np.geomspace(max(1.05 * n, n + 2), dim, 80).astype(int)).tolist():
        there = RecordNorms.of(total * p / dim, total * (dim - p) / dim)
        sides = _eq_2_variances(GaussianDesign(n, p, dim, design.sigma), there)
        for side, variance in zip(SIDES, sides, strict=True):
            rows.append((p / n, side, variance**0.5, "theory", np.nan, np.nan))
    return pd.DataFrame(rows, columns=["p/n", "record", "sd", "source", "low", "high"])


def _eq_2_variances(design: GaussianDesign, norms: RecordNorms) -> tuple[float, float]:
    """sigma_1^2 and sigma_0^2 of Eq. (2) at one record."""
    pair = law_pair(design, norms, method="asymptotic")
    assert isinstance(pair.member, Normal)
    assert isinstance(pair.nonmember, Normal)
    return float(pair.member.sigma[0] ** 2), float(pair.nonmember.sigma[0] ** 2)


def _whole_matrices(
    design: GaussianDesign, norms: RecordNorms, key: Key, matrices: int
) -> tuple[Mean, Mean]:
    """Mean variance of the prediction over matrices, a least-squares solve each."""
    found = []
    pair = law_pair(design, norms, method="simulated", draws=matrices, random_state=key)
    for law in (pair.member, pair.nonmember):
        assert isinstance(law, NormalMixture)
        variance = law.sigmas[0] ** 2
        found.append(around(float(variance.mean()), float(variance.std(ddof=1) / matrices**0.5)))
    return found[0], found[1]


def _predictions(pair: LawPair, key: Key) -> tuple[FloatArray, FloatArray]:
    laws = (pair.member, pair.nonmember)
    drawn = [law.sample(key.child(k), PREDICTIONS).ravel() for k, law in enumerate(laws)]
    return drawn[0], drawn[1]


def _histogram(sample: tuple[FloatArray, FloatArray], limit: LawPair) -> pd.DataFrame:
    rows = []
    reach = float(np.quantile(np.abs(np.concatenate(sample)), 0.999))
    edges = np.linspace(-reach, reach, BINS + 1)
    centres, width = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    line = np.linspace(-reach, reach, 121)
    for side, values, law in zip(SIDES, sample, (limit.member, limit.nonmember), strict=True):
        density = np.exp(np.asarray(law.log_density(line[:, None]))).ravel()
        rows += [(x, side, y, "theory", np.nan, np.nan) for x, y in zip(line, density, strict=True)]
        counts = np.histogram(values, edges)[0]
        for x, count in zip(centres, counts.tolist(), strict=True):
            one = around(count, count**0.5)
            height = [y / (values.size * width) for y in (one.value, one.low, one.high)]
            rows.append((x, side, height[0], "simulation", height[1], height[2]))
    return pd.DataFrame(rows, columns=["prediction", "record", "density", "source", "low", "high"])


def _eq_2(
    designs: list[GaussianDesign],
    records: list[RecordNorms],
    spread: dict[float, tuple[Mean, Mean]],
) -> Claim:
    """Eq. (2) is exact in the mean at every n, so it must meet whole matrices in their errors."""
    scores = []
    for design, norms, found in zip(designs, records, spread.values(), strict=True):
        for variance, one in zip(_eq_2_variances(design, norms), found, strict=True):
            gap = one.value - variance
            # a member's variance is the same in every matrix, up to rounding
            scores.append(gap / max(one.stderr, 1e-9))
    worst = max(map(abs, scores))
    return judge(
        "the prediction's variances are those of Eq. (2)", "Thm 3.2, Fig. 1(a)",
        f"whole matrices are at most {worst:.1f} standard errors off, over {len(scores)} variances",
        as_printed=worst < 4.0,
    )  # fmt: skip


def _eq_1(
    ratios: tuple[float, ...],
    drawn: list[tuple[FloatArray, FloatArray]],
    limits: list[LawPair],
) -> Claim:
    """Kolmogorov's distance to Eq. (1); below the 1% point over all histograms it is not seen."""
    bound = float(special.kolmogi(0.01 / (2 * len(drawn)))) / PREDICTIONS**0.5
    largest, where = 0.0, ""
    for ratio, sample, limit in zip(ratios, drawn, limits, strict=True):
        for side, values, law in zip(SIDES, sample, (limit.member, limit.nonmember), strict=True):
            assert isinstance(law, Normal)
            cdf = np.asarray(law.cdf(np.sort(values)[:, None])).ravel()
            above = np.arange(1, values.size + 1) / values.size - cdf
            distance = float(max(above.max(), (1.0 / values.size - above).max()))
            if distance > largest:
                largest, where = distance, f"the {side} at p/n = {ratio:g}"
    return judge(
        "predictions follow the normals of Eq. (1)", "Thm 3.2, Fig. 1(b-f)",
        f"largest distance of distribution functions {largest:.4f} ({where}); {PREDICTIONS:,} "
        f"draws would show {bound:.4f} and more",
        as_printed=largest < bound,
    )  # fmt: skip


def _one_falls(spread: dict[float, tuple[Mean, Mean]]) -> Claim:
    members = [both[0].value ** 0.5 for both in spread.values()]
    others = [both[1] for both in spread.values()]
    drops = [
        (a.value - b.value) / np.hypot(a.stderr, b.stderr) for a, b in itertools.pairwise(others)
    ]
    spans = max(members) - min(members)
    return judge(
        "the variance at members stays constant in p, the one at others falls", WHERE,
        f"members' standard deviation changes by {spans:.1e}; the others' falls from "
        f"{others[0].value ** 0.5:.3f} to {others[-1].value ** 0.5:.3f}, each step by "
        f"{min(drops):.0f} standard errors or more",
        as_printed=bool(spans < 1e-6 and min(drops) > 2.0),
    )  # fmt: skip


def _crossing(whole: GaussianDesign) -> Claim:
    """Where sigma_0 = sigma_1 at the typical record; n/D and 1/n move it from 2."""
    n, dim = whole.n, whole.dim
    sizes = np.arange(n + 2, min(4 * n, dim + 1))
    gaps = []
    for p in sizes.tolist():
        design = GaussianDesign(n, p, dim, whole.sigma)
        member, other = _eq_2_variances(design, RecordNorms.typical(design))
        gaps.append(other - member)
    falls = bool(np.all(np.diff(gaps) < 0.0))
    at = float(np.interp(0.0, gaps[::-1], sizes[::-1] / n))
    return judge(
        "sigma_0 is above sigma_1 below p/n = 2 and below it beyond", WHERE,
        f"they meet at p/n = {at:.3f} for n = {n}, D = {dim:,}, and nowhere else",
        as_printed=falls and abs(at - 2.0) <= 1.0 / n + n / dim,
    )  # fmt: skip


FIGURES = (
    Figure(
        "linear-1", "linear", "Fig. 1(a-f)", "the two laws of a prediction, p/n from 1.5 to 50",
        make, full="one core, 12 minutes (1,000 matrices of 400 x 20,000)", knobs=KNOBS,
    ),
)  # fmt: skip
