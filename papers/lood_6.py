"""lood Fig. 6: mean distance and KL against the AUC of the best attack, two kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope.verifying import Interval
from papers.arrays import FloatArray
from papers.binomial_share import all_of, side_of
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order, Panel
from papers.lood_images import Images
from papers.lood_newcomers import (
    DRAWS,
    KNOBS,
    QUICK,
    Newcomers,
    kernels_of,
    newcomers,
    pool,
)
from papers.paired_correlations import correlation_gap

ERRATUM = "lood 5"

# A "low" mean distance in the paper's Example C.2: this share of the median, and less.
NEGLIGIBLE = 0.01


def make(order: Order) -> Made:
    """Four scatter plots, and what the paper reads off them."""
    key = order.key.child(6)
    data = pool(order, key)
    found: dict[str, dict[str, Newcomers]] = {}
    noise = order.knobs["noise_variance"]
    for place, (name, kernel) in enumerate(kernels_of(data.X).items()):
        order.step(f"records added, {name}")
        found[name] = {
            kind: newcomers(
                kernel, data.X, data.y, S, labels, key.child(2, place, number), noise_variance=noise
            )
            for number, (kind, (S, labels)) in enumerate(data.added.items())
        }
    panels = [
        _panel(name, kinds, metric) for name, kinds in found.items() for metric in ("mean", "kl")
    ]
    count = len(next(iter(data.added.values()))[1])
    return Made(
        panels=tuple(panels),
        claims=(_stronger(found, order, data.images), _low_and_high(found), _threshold(found)),
        settings={
            **data.images.settings,
            "records": len(data.y),
            "added": {"pictures": count, "uniform pixels": count},
            "noise_variance": noise,
            "draws": DRAWS,
        },
        notes=(
            *data.images.notes,
            "The AUC is that of the two normal laws; points with intervals are the paper's way, "
            f"the likelihood-ratio test on {DRAWS:,} draws of each.",
        ),
    )


def table_of(kinds: dict[str, Newcomers]) -> pd.DataFrame:
    """One row per record, exact and from draws."""
    rows = []
    for kind, found in kinds.items():
        common = {"kl": found.kl, "mean distance": found.mean_distance}
        rows.append(pd.DataFrame({**common, "AUC": found.auc, "records": kind, "source": "theory"}))
        rows.append(
            pd.DataFrame(
                {
                    **common,
                    "AUC": found.drawn,
                    "low": found.low,
                    "high": found.high,
                    "records": f"{kind}, drawn",
                    "source": "simulation",
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


def _panel(name: str, kinds: dict[str, Newcomers], metric: str) -> Panel:
    return Panel(
        title=f"{'Mean distance' if metric == 'mean' else 'KL'} against AUC, {name}",
        table=table_of(kinds),
        x="mean distance" if metric == "mean" else "kl",
        y="AUC",
        series="records",
        low="low",
        high="high",
        x_log=True,
        x_title="mean distance LOOD" if metric == "mean" else "KL LOOD (nats)",
        y_title="AUC of the best attack",
        kind="scatter",
    )


def _stronger(found: dict[str, dict[str, Newcomers]], order: Order, images: Images) -> Claim:
    one_kind: list[Interval] = []
    pooled: list[Interval] = []
    words = []
    for place, (name, kinds) in enumerate(found.items()):
        both = kinds["pictures"].joined(kinds["uniform pixels"])
        for number, (kind, part) in enumerate([*kinds.items(), ("both", both)]):
            gap = correlation_gap(
                part.kl,
                part.mean_distance,
                part.auc,
                order.key.child(6, 3, place, number),
                kind="spearman",
            )
            (pooled if kind == "both" else one_kind).append(gap)
            words.append(f"{name}, {kind}: {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
    return judge(
        "KL follows the attack's AUC more closely than the mean distance does, for every kernel "
        "and kind of record",
        "Fig. 6, App. C.3",
        "rank correlation of KL less that of the mean distance: " + "; ".join(words),
        as_printed=images.told(all_of(side_of(g.low, g.high, 0.0) for g in [*one_kind, *pooled])),
        corrected=all_of(side_of(g.low, g.high, 0.0) for g in one_kind),
        erratum=ERRATUM,
    )


def _low_and_high(found: dict[str, dict[str, Newcomers]]) -> Claim:
    words: list[str] = []
    seen: list[bool] = []
    for name, kinds in found.items():
        both = kinds["pictures"].joined(kinds["uniform pixels"])
        high = both.auc >= 0.5 * (0.5 + both.auc.max())
        low = both.mean_distance <= NEGLIGIBLE * np.median(both.mean_distance)
        seen += [bool(flag) for flag in high[low]]
        words.append(
            f"{name}: {int(low.sum())} records with a mean distance below a hundredth of the "
            f"median, {int(np.sum(low & high))} of them with a high AUC"
            + (f" (up to {both.auc[low].max():.2f})" if low.any() else "")
        )
    return judge(
        "a low mean distance does not imply a low AUC: both occur together",
        "Example C.2",
        "; ".join(words) + "; high is at least half-way from one half to the largest AUC",
        as_printed=any(seen) if seen else None,
    )


def largest_auc(kl: FloatArray) -> FloatArray:
    """The largest AUC that a KL allows.

    Total variation is at most sqrt(KL/2) (Pinsker) and at most sqrt(1 - exp(-KL)) (Bretagnolle and
    Huber); a ROC whose largest TPR - FPR is t has at most the area 1/2 + t - t^2/2.
    """
    t = np.minimum(np.sqrt(0.5 * kl), np.sqrt(-np.expm1(-kl)))
    return np.asarray(0.5 + t - 0.5 * t**2)


def _threshold(found: dict[str, dict[str, Newcomers]]) -> Claim:
    every = [part for kinds in found.values() for part in kinds.values()]
    kl, auc = (np.concatenate([vars(part)[name] for part in every]) for name in ("kl", "auc"))
    room = largest_auc(kl) - auc
    lowest = kl <= np.quantile(kl, 0.1)
    return judge(
        "a small KL implies a small AUC, whatever the kernel and the kind of record",
        "App. C.3",
        f"all {len(kl)} AUCs are below the bound from their KL (least room {room.min():.3f}); the "
        f"tenth with the lowest KL (at most {kl[lowest].max():.2g} nats) have an AUC of at most "
        f"{auc[lowest].max():.3f}, the others a median of {np.median(auc[~lowest]):.3f}",
        as_printed=bool(room.min() >= 0.0 and auc[lowest].max() < np.median(auc[~lowest])),
    )


FIGURES = (
    Figure(
        "lood-6",
        "lood",
        "Fig. 6",
        "mean distance and KL against the AUC of the best attack",
        make,
        full="one core, 2 minutes; --data for the pictures",
        knobs=KNOBS,
        quick=QUICK,
    ),
)
