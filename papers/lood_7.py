"""lood Fig. 7: where a record moves the mean most is not where it gives itself away most."""

from __future__ import annotations

import numpy as np

from leakscope import kernels, lood
from papers.arrays import FloatArray
from papers.claims import Claim, judge
from papers.figure import Figure, Made, Order
from papers.lood_sine import KNOBS, LOW, grid, marked_panel, shown


def make(order: Order) -> Made:
    """Three curves over the query: mean distance, log variance ratio, KL."""
    data = shown(order)
    S = data.worst
    queries = grid(order, S)
    found = data.at(S, queries)
    distance, kl, reverse = found.mean_distance[-1], found.kl[-1], found.kl_reverse[-1]
    ratio = np.log1p(found.variance_added[-1] / found.variance_with)
    own = int(np.flatnonzero(queries == S)[0])
    best = {name: int(np.argmax(v)) for name, v in (("M", distance), ("ratio", ratio), ("KL", kl))}
    Q = float(queries[best["M"]])
    everyone = [data.at(float(s), grid(order, float(s))) for s in np.linspace(LOW, -LOW, 41)]
    least_ratio = min(float(one.variance_added[-1].min()) for one in everyone)
    least_gap = min(float(np.min(one.kl[-1] - one.kl_reverse[-1])) for one in everyone)
    printed_term = min(
        float(
            np.min(_printed_term(one.mean_distance[-1], one.variance_with, one.variance_added[-1]))
        )
        for one in everyone
    )
    claims = (
        judge(
            "the query that maximises the mean distance is not the differing record",
            "Fig. 7, left",
            f"S* = {S:.3f}, Q* = {Q:.3f}, where the mean distance is "
            f"{distance[best['M']] / distance[own]:.3f} times that at S*",
            as_printed=bool(abs(Q - S) > data.same and distance[best["M"]] > distance[own]),
        ),
        judge(
            "the query that maximises KL is the differing record",
            "Fig. 7, right",
            f"KL is greatest at {queries[best['KL']]:.3f} of {len(queries)} queries",
            as_printed=best["KL"] == own,
        ),
        judge(
            "the variance ratio peaks at the differing record, and is smaller at Q*, so that KL at "
            "Q* is lower",
            "App. C.3, Fig. 7, middle",
            f"log ratio {ratio[own]:.2f} at S*, {ratio[best['M']]:.2f} at Q*; "
            f"KL {kl[own]:.2f} and {kl[best['M']]:.2f}",
            as_printed=bool(best["ratio"] == own and kl[best["M"]] < kl[own]),
        ),
        judge(
            "the variance without the record is never below that with it, and KL(without || with) "
            "is then never below KL(with || without)",
            "App. C.2",
            f"over 41 records and {len(queries)} queries each: least difference of variances "
            f"{least_ratio:.1e}, least difference of the two KLs {least_gap:.1e}",
            as_printed=bool(least_ratio >= 0.0 and least_gap >= -1e-12),
        ),
        judge(
            "in the proof of that, M(Q) (r - 1)/Sigma(Q) >= 1 (needed, and true, is >= 0)",
            "App. C.2",
            f"the least value over the same records and queries is {printed_term:.1e}",
            as_printed=printed_term >= 1.0,
            corrected=printed_term >= 0.0,
            erratum="lood 7",
        ),
        _homogeneity(order),
    )
    marks = {"S*": S, "Q*": Q}
    curves: dict[tuple[str, str], dict[str, FloatArray]] = {
        ("Mean distance", "M(Q)"): {"M(Q)": distance},
        ("Variances", "log ratio"): {"log variance ratio": ratio},
        ("KL", "KL (nats)"): {"without || with": kl, "reverse": reverse},
    }
    return Made(
        panels=tuple(
            marked_panel(f"{title} under S*", name, queries, values, marks, data)
            for (title, name), values in curves.items()
        ),
        claims=claims,
        settings={**order.knobs, "S*": S, "queries": len(queries)},
        notes=(
            f"The {data.count} points are drawn anew: the paper does not print its own. Fig. 11 "
            "and 12 show the same ones.",
        ),
    )


def _printed_term(distance: FloatArray, with_it: FloatArray, added: FloatArray) -> FloatArray:
    """M(Q) (r - 1)/Sigma(Q), with r the ratio of the variances."""
    return np.asarray(distance * (added / with_it) / (with_it + added))


def _homogeneity(order: Order) -> Claim:
    """Eq. (9) and (10) under the kernel of a ReLU network without bias, for which alpha is 1."""
    generator = order.key.child(7, 1).generator()
    X, y = generator.normal(size=(20, 3)), generator.normal(size=20)
    queries = generator.normal(size=(50, 3))
    once, twice = (
        lood.influence(X, y, scale * queries, kernels.nngp(depth=2), order.knobs["noise_variance"])
        for scale in (1.0, 2.0)
    )
    grown = twice.mean_distance / once.mean_distance
    same = float(np.max(np.abs(twice.kl / once.kl - 1.0)))
    return judge(
        "under a homogeneous kernel of degree alpha, a query lambda times as long has lambda^alpha "
        "times the mean distance and the same KL",
        "Eq. (9) and (10)",
        f"alpha = 1, lambda = 2: {grown.min():.6f} to {grown.max():.6f} times the mean distance "
        f"(printed 2; lambda^(2 alpha) is 4), KL the same to {same:.0e}",
        as_printed=bool(np.allclose(grown, 2.0) and same < 1e-6),
        corrected=bool(np.allclose(grown, 4.0) and same < 1e-6),
        erratum="lood 7",
    )


FIGURES = (
    Figure(
        "lood-7",
        "lood",
        "Fig. 7",
        "mean distance, variance ratio and KL over the query, on ten points of a sine",
        make,
        full="one core, seconds",
        knobs=KNOBS,
    ),
)
