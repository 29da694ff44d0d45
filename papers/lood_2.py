"""lood Fig. 2: climbing LOOD from a random picture ends at the record that was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leakscope import kernels, lood
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.binomial_share import Share, share_of
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel, Picture
from papers.lood_images import Images, load_images

NOISE = 0.01

# "Very similar LOOD": within a tenth; "significantly lower": less than half.
SIMILAR, LOWER = 0.9, 0.5

# A query resembles its record where few other records, this share, are as like it.
FEW = 0.1

# Searches that a machine does together; they share every product with the records.
TOGETHER = 50

Found = Mapping[str, Sequence[lood.QuerySearch]]

CLIMBS = {"lood": "climbing LOOD (the paper)", "correlation": "climbing the correlation"}


@dataclass(frozen=True)
class Runs:
    """The pictures, the kernel, and searches with one random start each, by way uphill."""

    images: Images
    kernel: kernels.Kernel
    depth: int
    starts: Key
    found: Found


def searched(order: Order, climbs: Sequence[str]) -> Runs:
    """The runs of Fig. 2, whose pictures are Figs. 14 to 19."""
    key = order.key.child(2)
    records, runs, depth = (10_000, 500, 10) if order.full else (100, 40, 3)
    images = load_images(order.data, records, key.child(0))
    kernel = kernels.nngp(depth=depth)
    chosen = key.child(1).generator().permutation(len(images.y))[:runs]
    found: dict[str, list[lood.QuerySearch]] = {}
    for climb in climbs:
        found[climb] = []
        for begin in range(0, len(chosen), TOGETHER):
            order.step(f"{CLIMBS[climb]}, runs {begin + 1} to {min(begin + TOGETHER, len(chosen))}")
            found[climb] += lood.search_each(
                images.X,
                images.y,
                records=[int(i) for i in chosen[begin : begin + TOGETHER]],
                kernel=kernel,
                noise_variance=order.knobs["noise_variance"],
                climb=climb,  # type: ignore[arg-type]
                starts=1,
                steps=300,
                box=(0.0, 1.0),
                random_state=key.child(2),
            )
    return Runs(images, kernel, depth, key.child(2), found)


def make(order: Order) -> Made:
    """Many runs with one random start each, by two ways uphill."""
    runs = searched(order, tuple(CLIMBS))
    images, found = runs.images, runs.found
    alike = {climb: likeness(images, runs_) for climb, runs_ in found.items()}
    return Made(
        panels=(_cumulative(found), _scatter(found, alike)),
        claims=_claims(images, found, alike),
        pictures=_pictures(images, found["lood"], alike["lood"]),
        settings={
            **images.settings,
            "runs": len(found["lood"]),
            "depth": runs.depth,
            "noise_variance": order.knobs["noise_variance"],
        },
        notes=(
            *images.notes,
            *(() if order.full else ("A network of depth 3 in place of 10.",)),
            "All runs as pictures: lood-14.",
        ),
    )


@dataclass(frozen=True)
class Likeness:
    """How alike the query and the record look, one number per run.

    Parameters
    ----------
    own
        Correlation of the two as differences from the mean picture: negative where colours are
        flipped.
    rank
        The share of all other records that are as like the query, whatever the sign.
    """

    own: FloatArray
    rank: FloatArray


def likeness(images: Images, found: Sequence[lood.QuerySearch]) -> Likeness:
    """Of each run's best query.

    A kernel without bias does not see a query's length, so the query is first brought to the
    length of the record.
    """
    mean = images.X.mean(axis=0)
    unit = images.X - mean
    unit = unit - unit.mean(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    own, rank = [], []
    for one in found:
        row, query = one.leave_out[0], one.query[0]
        length = np.linalg.norm(images.X[row]) / max(float(np.linalg.norm(query)), 1e-12)
        seen = query * length - mean
        seen = seen - seen.mean()
        every = unit @ seen / np.linalg.norm(seen)
        own.append(every[row])
        others = np.delete(np.abs(every), row)
        rank.append(np.mean(others >= abs(every[row])))
    return Likeness(np.array(own), np.array(rank))


def _ratios(found: Sequence[lood.QuerySearch]) -> FloatArray:
    return np.array([one.ratio for one in found])


def _cumulative(found: Found) -> Panel:
    rows = []
    for climb, runs in found.items():
        kl = np.sort([float(one.prediction_kl[0]) for one in runs])
        rows.append(
            pd.DataFrame(
                {
                    "prediction KL": np.maximum(kl, 1e-12),
                    "share": np.arange(1, len(kl) + 1) / len(kl),
                    "climb": CLIMBS[climb],
                    "source": "theory",
                }
            )
        )
    return Panel(
        "Prediction similarity of record and query",
        pd.concat(rows, ignore_index=True),
        x="prediction KL",
        y="share",
        series="climb",
        x_log=True,
        x_title="KL of the two predictions (nats)",
        y_title="share of runs at or below",
    )


def _scatter(found: Found, alike: dict[str, Likeness]) -> Panel:
    rows = [
        pd.DataFrame(
            {
                "ratio": _ratios(runs),
                "likeness": alike[climb].own,
                "climb": CLIMBS[climb],
                "source": "simulation",
            }
        )
        for climb, runs in found.items()
    ]
    return Panel(
        "LOOD of the query, and how it looks",
        pd.concat(rows, ignore_index=True),
        x="ratio",
        y="likeness",
        series="climb",
        x_title="LOOD of the query / LOOD of the record",
        y_title="correlation with the record's picture",
        kind="scatter",
    )


def _claims(images: Images, found: Found, alike: dict[str, Likeness]) -> tuple[Claim, ...]:
    ratio = {climb: _ratios(runs) for climb, runs in found.items()}
    recovered = {
        climb: share_of([one.starts_recovered for one in runs]) for climb, runs in found.items()
    }
    similar = share_of(ratio["lood"] >= SIMILAR)
    low = ratio["lood"] < LOWER
    look = alike["lood"]
    resembles = share_of(look.rank[low] <= FEW) if low.any() else None
    flipped = low & (look.own < 0.0) & (look.rank <= FEW)
    largest = float(max(values.max() for values in ratio.values()))
    return (
        judge(
            "the optimised query generally recovers the differing record",
            "Section 4, Fig. 2(a)",
            f"of {recovered['lood'].total} runs with one random start {recovered['lood']} end at "
            f"the record (climbing the correlation: {recovered['correlation']})",
            as_printed=images.told(recovered["lood"].above(0.5)),
        ),
        judge(
            "its LOOD tends to be very similar to that of the record",
            "Section 4, Fig. 2(c)",
            f"within a tenth in {similar} of runs; median ratio {np.median(ratio['lood']):.3f}",
            as_printed=images.told(similar.above(0.5)),
        ),
        judge(
            "runs exist that end at a significantly lower LOOD, and whose query still resembles "
            "the record, with colours flipped",
            "Fig. 2(b)",
            f"{int(low.sum())} runs end below half; of their queries {resembles} are more like the "
            f"record than {1.0 - FEW:.0%} of the others are, {int(flipped.sum())} with flipped "
            "colours",
            as_printed=images.told(_resembling(resembles, flipped=bool(flipped.any()))),
        ),
        judge(
            "no query has a higher LOOD than the record itself",
            "Section 4",
            f"largest ratio of {2 * len(found['lood'])} runs: 1 {largest - 1.0:+.0e}",
            as_printed=largest <= 1.0 + 1e-8,
        ),
    )


def _resembling(share: Share | None, *, flipped: bool) -> bool | None:
    """None where no run ended low, or none of them is flipped, or too few to tell."""
    if share is None or not flipped:
        return None
    # One in ten would be so by chance.
    return share.above(FEW)


def _pictures(
    images: Images, found: Sequence[lood.QuerySearch], alike: Likeness
) -> tuple[Picture, ...]:
    ratio = _ratios(found)
    ranked = np.argsort(-ratio)
    flipped = [int(j) for j in np.argsort(alike.own)[:3] if alike.own[j] < 0.0]
    shown = [("exact", int(j)) for j in ranked[:3]] + [("colour-flipped", j) for j in flipped]
    return tuple(
        images.strip(
            f"{what}: record {found[j].leave_out[0]} and the query found; LOOD "
            f"{found[j].lood_at_record:.3g} and {found[j].lood:.3g}",
            [images.X[found[j].leave_out[0]], found[j].query[0]],
        )
        for what, j in shown
    )


FIGURES = (
    Figure(
        "lood-2",
        "lood",
        "Fig. 2",
        "queries that climb LOOD end at the record, or at its negative",
        make,
        full="one H200, 25 minutes, with --data",
        knobs={"noise_variance": NOISE},
    ),
)
