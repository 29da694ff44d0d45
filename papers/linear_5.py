"""Fig. 5 of **linear**: latent space, time series and random ReLU features, by histograms.

The figure does not follow the text (docs/errata.md): every model is made in both conventions, what
the text says (``text``) and what the authors' code does (``published``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from leakscope import InputError, linear
from leakscope.laws import Key, LawPair
from leakscope.linear import Convention, DataModel
from leakscope.measures import scored_advantage
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.linear_2 import off_the_reading
from papers.linear_records import histogram_of_law
from papers.mean_interval import Mean, mean_interval

ERRATUM = "linear 2"
COLUMNS = ["p/n", "advantage", "series", "source", "low", "high"]
CONVENTIONS: tuple[Convention, ...] = ("published", "text")
EXACT = "exact"
SERIES = {
    "published": "as in the authors' code",
    "text": "as the text says",
    EXACT: "the code, in exact arithmetic",
}

Knobs = Mapping[str, float]
Model = Callable[[int, Convention, Knobs], DataModel]


class World(NamedTuple):
    """A panel of the figure: its model, its p, and what was read off the authors' paths."""

    knobs: Knobs  # n, and what else the model has
    model: Model
    read: dict[int, float]
    sizes: tuple[int, ...]  # the authors'
    few: tuple[int, ...]  # those of --quick
    quick: tuple[int, int]  # records, designs
    dear: int  # under `text`, fewer designs from this p on


def latent(p: int, convention: Convention, knobs: Knobs) -> DataModel:
    """Fig. 5(a): p covariates of d latent features, n records."""
    return linear.LatentSpace(int(knobs["n"]), p, int(knobs["d"]), convention=convention)


def fourier(p: int, convention: Convention, knobs: Knobs, *, rounding: bool = True) -> DataModel:
    """Fig. 5(b): p frequencies, n of 1,024 times."""
    return linear.FourierSeries(int(knobs["n"]), p, convention=convention, rounding=rounding)


def random_relu(p: int, convention: Convention, knobs: Knobs) -> DataModel:
    """Fig. 5(c): p random ReLU features of D, n records."""
    return linear.RandomRelu(int(knobs["n"]), p, int(knobs["D"]), convention=convention)


# Values good to 0.01 or 0.02: means over 20 records.
WORLDS = {
    "5a": World(
        {"n": 200, "d": 20}, latent,
        {90: 0.054, 110: 0.067, 190: 0.199, 210: 0.093, 230: 0.073, 500: 0.175, 2_000: 0.190},
        (10, 30, 50, 70, 90, 110, 130, 150, 170, 190, 210, 230, 250, 270, 290, 320, 350, 400, 450,
         500, 550, 600, 700, 850, 1_000, 1_250, 1_500, 1_750, 2_000, 2_500, 3_000, 4_000, 5_000,
         6_000, 8_000),
        (30, 90, 110, 150, 190, 210, 230, 290, 500, 2_000), (20, 4), 10_000,
    ),
    "5b": World(
        {"n": 128}, fourier, {64: 0.021, 128: 0.12, 256: 0.452, 1_024: 0.960},
        (8, 16, 32, 48, 64, 72, 80, 88, 96, 104, 112, 118, 124, 128, 132, 148, 160, 176, 192, 224,
         240, 248, 256, 264, 288, 320, 384, 448, 464, 480, 488, 496, 504, 512, 520, 528, 536, 544,
         640, 768, 896, 1_024),
        (32, 64, 96, 128, 192, 256, 512, 1_024), (6, 10), 10_000,
    ),
    "5c": World(
        {"n": 100, "D": 5_000}, random_relu,
        {50: 0.107, 90: 0.237, 110: 0.661, 400: 0.018, 4_000: 0.477},
        (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 110, 120, 140, 160, 180, 200, 225, 250, 275, 300,
         325, 350, 375, 400, 450, 500, 550, 600, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500,
         4_000),
        (20, 50, 70, 90, 110, 140, 200, 400, 1_000, 4_000), (6, 8), 200,
    ),
}  # fmt: skip


def record_pairs(model: DataModel, records: int, designs: int, key: Key) -> list[LawPair]:
    """The laws at ``records`` records, each a mixture over ``designs`` designs."""
    return [
        linear.data_model_law_pair(
            model, model.query(key.child(0, j)), designs=designs, random_state=key.child(1, j)
        )
        for j in range(records)
    ]


class Curve(NamedTuple):
    """For each p: histograms, as in the paper, and the same laws without bins, record by record."""

    histogram: dict[int, Mean]
    mixture: dict[int, FloatArray]


def make(panel: str, order: Order) -> Made:
    """One panel: the histogram adversary at each p, in both conventions."""
    own = WORLDS[panel]
    world = own._replace(knobs=order.knobs)
    # what was read off the figure is of the paper's own model
    printed = world.knobs == own.knobs
    n, where = order.whole("n"), f"Fig. {panel[0]}({panel[1]})"
    sizes = world.sizes if order.full else world.few
    # the text's random ReLU features go to 1,000 only at quick size
    last = min(sizes[-1], 1_000) if panel == "5c" and not order.full else sizes[-1]
    if last <= 1.2 * n:
        raise InputError(f"n must be below {last / 1.2:.0f}: the largest p is {last:,}.")
    records, designs = (20, 40) if order.full else world.quick
    curves: dict[str, Curve] = {}
    for number, convention in enumerate(CONVENTIONS):
        order.step(convention)
        # what is drawn is `published`, where records differ most
        count = records if order.full or convention == "published" else min(records, 6)
        key = order.key.child(number)
        curves[convention] = _curve(world, convention, sizes, count, designs, key, order.full)
    if panel == "5b" and printed:
        order.step("exact arithmetic")
        exact = world._replace(model=partial(fourier, rounding=False))
        curves[EXACT] = _curve(
            exact, "published", tuple(world.read), records, designs, order.key.child(2), True
        )
    rows = [
        (p / n, one.value, SERIES[name], "simulation", one.low, one.high)
        for name, curve in curves.items()
        for p, one in curve.histogram.items()
    ]
    rows += [
        (p / n, value, "read off the figure", "published", np.nan, np.nan)
        for p, value in (world.read if printed else {}).items()
    ]
    drawn = Panel(
        f"{where}, n = {n:,}", pd.DataFrame(rows, columns=COLUMNS),
        x="p/n", y="advantage", series="series", low="low", high="high", x_log=True,
        joined=True,
    )  # fmt: skip
    claims = [_rises(where, curves, n)]
    if printed:
        claims.append(_comes_back(where, world, curves, records))
    if EXACT in curves:
        claims.append(_well_posed(world, curves, records))
    settings = {
        "n": n, "model": repr(world.model(world.few[-1], "text", world.knobs)), "records": records,
        "designs": designs, "predictions": 100_000, "p": list(curves["published"].histogram),
    }  # fmt: skip
    notes = [
        "Each prediction is drawn from its law given one of the designs; the paper draws a design "
        "for every prediction.",
    ]
    if not order.full:
        notes.append(
            f"{records} records x0 for the authors' model, {min(records, 6)} for the text's (the "
            "paper has 20), and fewer values of p."
        )
    return Made((drawn,), tuple(claims), settings=settings, notes=tuple(notes))


def _curve(
    world: World,
    convention: Convention,
    sizes: tuple[int, ...],
    records: int,
    designs: int,
    key: Key,
    full: bool,
) -> Curve:
    histogram, mixture = {}, {}
    for p in sizes:
        # a design of the text's random ReLU has D x p entries: a second each at p = 4,000
        dear = convention == "text" and p >= world.dear
        if dear and not full and p > 1_000:
            continue
        count, drawn = (max(records // 5, 2), max(designs // 4, 4)) if dear else (records, designs)
        pairs = record_pairs(world.model(p, convention, world.knobs), count, drawn, key)
        generator = key.child(2, p).generator()
        histogram[p] = mean_interval(
            [histogram_of_law(pair, generator, convention=convention) for pair in pairs]
        )
        mixture[p] = np.array([scored_advantage(pair, designs=drawn).value for pair in pairs])
    return Curve(histogram, mixture)


def _rises(where: str, curves: dict[str, Curve], n: int) -> Claim:
    """Beyond its least for p > 1.2 n a curve must end higher, and not fall beyond errors between.

    Differences are those of the same records, and of the laws without bins: a histogram too coarse
    for a heavy-tailed law says nothing.
    """
    words, verdicts = [], {}
    for name in CONVENTIONS:
        beyond = {p: values for p, values in curves[name].mixture.items() if p > 1.2 * n}
        start = min(beyond, key=lambda p: float(beyond[p].mean()))
        line = [values for p, values in beyond.items() if p >= start]
        # a curve that ends at its least has no step left, and has not risen
        scores = [_paired(a, b) for a, b in itertools.pairwise(line)] or [0.0]
        score, least = _paired(line[0], line[-1]) if len(line) > 1 else 0.0, min(scores)
        verdicts[name] = score > 2.5 and least > -4.0
        words.append(
            f"{name}: from {line[0].mean():.3f} at p = {start} to {line[-1].mean():.3f} at p = "
            f"{max(beyond)}, {score:.1f} standard errors, least step {least:+.1f}"
        )
    return judge(
        "sufficiently overparameterised, more parameters mean more advantage", f"Sec. 5, {where}",
        "; ".join(words), as_printed=verdicts["text"], corrected=verdicts["published"],
        erratum=ERRATUM,
    )  # fmt: skip


def _paired(low: FloatArray, high: FloatArray) -> float:
    """The mean difference over the records that both have, in standard errors."""
    shared = min(low.size, high.size)
    one = mean_interval(high[:shared] - low[:shared])
    return one.value / max(one.stderr, 1e-12)


def _comes_back(where: str, world: World, curves: dict[str, Curve], records: int) -> Claim:
    shares = {}
    for name in CONVENTIONS:
        seen = curves[name].histogram
        read = {p: value for p, value in world.read.items() if p in seen}
        shares[name] = off_the_reading(read, seen, records)
    (text, at), (published, near) = shares["text"], shares["published"]
    told, own = curves["text"].histogram[at], curves["published"].histogram[near]
    return judge(
        "the model that the text describes gives the values drawn", where,
        f"worst, in units of what reading and standard errors allow: as described {text:.1f} (p = "
        f"{at}: read {world.read[at]:.3f}, {told.value:.3f} +- {told.stderr:.3f}), as in the "
        f"authors' code {published:.2f} (p = {near}: read {world.read[near]:.3f}, "
        f"{own.value:.3f} +- {own.stderr:.3f})",
        as_printed=text < 1.0, corrected=published < 1.0, erratum=ERRATUM,
    )  # fmt: skip


def _well_posed(world: World, curves: dict[str, Curve], records: int) -> Claim:
    """A curve that is the model's own does not change when repeated rows are made equal."""
    exact = curves[EXACT].histogram
    worst, _ = off_the_reading(world.read, exact, records)
    found = ", ".join(f"{one.value:.3f} at p = {p}" for p, one in exact.items())
    return judge(
        "the values drawn are those of the model, whatever the arithmetic", "Fig. 5(b)",
        f"in exact arithmetic {found}; read "
        f"{', '.join(f'{value:.3f}' for value in world.read.values())}",
        as_printed=worst < 1.0, erratum=ERRATUM,
    )  # fmt: skip


FIGURES = tuple(
    Figure(f"linear-{panel}", "linear", f"Fig. {panel[0]}({panel[1]})", title, partial(make, panel),
           full=full, knobs=WORLDS[panel].knobs)
    for panel, title, full in (
        ("5a", "latent space: advantage against p/n", "one core, 20 minutes"),
        ("5b", "time series: advantage against p/n", "one core, 10 minutes"),
        ("5c", "random ReLU features: advantage against p/n", "one core, 40 minutes"),
    )
)  # fmt: skip
