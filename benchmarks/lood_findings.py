"""The lood paper's findings over more settings than its figures have, as tables.

``leakscope reproduce lood`` makes the figures; what they compute is imported from there.

    python benchmarks/lood_findings.py [SECTION ...] [--records N] [--runs N] [--digits]

Sections: auc perturbation queries normalisation recovery group activation depth (all of them where
none is named).  The images are CIFAR-10 cars and planes in ../shared/data beside the project, with
pixels in [0, 1] and labels -1/2 and +1/2; where they are absent, scikit-learn's digits 0 and 1 are
used, and the tables say so; ``--digits`` asks for those.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from leakscope import kernels, lood
from leakscope._numerics.keys import Key
from papers.lood_8 import conv_net
from papers.lood_e2 import shares
from papers.lood_groups import RANKS, run_groups
from papers.lood_newcomers import newcomers
from papers.lood_perturbed import scales, scan
from papers.lood_section_6 import DEPTHS, bound_table, edge, on_sphere, ratios

IMAGES = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10_car_plane.npz"
NOISE = 0.01
ONLY_DIGITS = False


def cifar(records: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    with np.load(IMAGES) as data:
        pick = np.random.default_rng(seed).permutation(len(data["X"]))[:records]
        X = data["X"][pick].reshape(len(pick), -1) / 255.0
        return X, data["y"][pick] - 0.5


def digits(records: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    pick = np.random.default_rng(seed).permutation(np.flatnonzero(y < 2))[:records]
    return X[pick] / 16.0, y[pick] - 0.5


def images(records: int) -> tuple[str, np.ndarray, np.ndarray]:
    if IMAGES.exists() and not ONLY_DIGITS:
        return "CIFAR-10 cars and planes", *cifar(records)
    return "digits 0 and 1", *digits(records)


class Table:
    """A markdown table, printed row by row."""

    def __init__(self, *headings: str) -> None:
        print("| " + " | ".join(headings) + " |")
        print("|" + "---|" * len(headings), flush=True)

    def append(self, row: list[Any]) -> None:
        shown = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        print("| " + " | ".join(shown) + " |", flush=True)


@contextmanager
def section(title: str) -> Iterator[None]:
    start = time.perf_counter()
    print(f"\n## {title}\n", flush=True)
    yield
    print(f"\n({time.perf_counter() - start:.0f} s)", flush=True)


def auc(records: int, runs: int) -> None:
    name, X, y = images(records)
    rng = np.random.default_rng(1)
    half = len(X) // 2
    noise = rng.uniform(size=(half, X.shape[1]))
    sources = {
        "images": (X[half:], y[half:]),
        "uniform pixels": (noise, rng.choice([-0.5, 0.5], half)),
    }
    with section(f"LOOD against the AUC of the best attack (Fig. 1a, 6); {name}, {half} records"):
        rows = Table("kernel", "records added", "n", "rank corr. KL", "rank corr. mean dist.")
        for label, kernel in (
            ("rbf", kernels.rbf().resolved(X[:half])),
            ("nngp, depth 1", kernels.nngp(depth=1)),
        ):
            found = {
                source: newcomers(kernel, X[:half], y[:half], S, t, Key(1), draws=2)
                for source, (S, t) in sources.items()
            }
            found["both"] = found["images"].joined(found["uniform pixels"])
            for source, part in found.items():
                ranks = [
                    float(stats.spearmanr(v, part.auc).statistic)
                    for v in (part.kl, part.mean_distance)
                ]
                rows.append([label, source, len(part.kl), *ranks])


def perturbation(records: int, runs: int) -> None:
    name, X, y = images(records)
    rng = np.random.default_rng(2)
    x = scales(101)
    with section(f"Perturbed queries S + x R (Fig. 4b); {name}, {len(X)} records, 70 scans"):
        rows = Table(
            "kernel", "x of the maximum", "largest LOOD / own", "median LOOD at ±50 / maximum"
        )
        for label, kernel in (
            ("rbf", kernels.rbf().resolved(X)),
            ("nngp, depth 5", kernels.nngp(depth=5)),
            ("nngp, depth 10", kernels.nngp(depth=10)),
        ):
            chosen = rng.permutation(len(X))[:70]
            R = rng.uniform(-1.0, 1.0, size=(len(chosen), X.shape[1]))
            found = scan(X, y, chosen, kernel, x, R, noise_variance=NOISE)
            largest = found.kl.max(axis=1)
            rows.append(
                [
                    label,
                    f"{np.mean(found.peaks):.3f} ± {np.std(found.peaks):.3f}",
                    f"1 {float((largest / found.own).max() - 1.0):+.0e}",
                    float(np.median(found.kl[:, [0, -1]].mean(axis=1) / largest)),
                ]
            )


def several_queries(records: int, runs: int) -> None:
    name, X, y = images(min(records, 300))
    with section(f"Several queries together (App. E.1); {name}, {len(X)} records, 5 a cell"):
        rows = Table("depth", "queries", "least ratio", "largest ratio", "at most 1")
        for depth in (2, 6, 10):
            for count in (1, 2, 4, 8):
                ratios = [
                    lood.search_query(
                        X,
                        y,
                        leave_out=[record],
                        kernel=kernels.nngp(depth=depth),
                        noise_variance=NOISE,
                        queries=count,
                        climb="lood",
                        starts=4,
                        box=(0.0, 1.0),
                        random_state=record,
                    ).ratio
                    for record in range(5)
                ]
                rows.append([depth, count, min(ratios), max(ratios), max(ratios) <= 1.0 + 1e-8])


def normalisation(records: int, runs: int) -> None:
    name, X, y = images(200)
    channels = 3 if X.shape[1] == 3072 else 1
    with section(f"Data-dependent normalisation (App. D.4); {name}, {len(X)} records, 10 a cell"):
        rows = Table("kernel", "preprocessing", "median ratio", "largest ratio", "share above 1")
        for label, kernel in (
            ("rbf", kernels.rbf()),
            ("nngp, depth 5, no bias", kernels.nngp(depth=5)),
            ("nngp, depth 5, bias 0.1", kernels.nngp(depth=5, bias_variance=0.1)),
        ):
            for normalise in (None, channels):
                found = [
                    lood.search_query(
                        X,
                        y,
                        leave_out=[record],
                        kernel=kernel,
                        noise_variance=NOISE,
                        climb="lood",
                        starts=8,
                        box=(0.0, 1.0),
                        normalise_channels=normalise,
                        random_state=record,
                    )
                    for record in range(10)
                ]
                ratios = [one.ratio for one in found]
                how = "fixed" if normalise is None else "by the training set"
                share = float(np.mean([r > 1.0 + 1e-6 for r in ratios]))
                rows.append(
                    [
                        label,
                        how,
                        f"1 {np.median(ratios) - 1.0:+.1e}",
                        f"1 {max(ratios) - 1.0:+.1e}",
                        f"{share:.0%}",
                    ]
                )


def recovery(records: int, runs: int) -> None:
    cases: list[tuple[str, np.ndarray, np.ndarray, str, Any, int]] = []
    if IMAGES.exists() and not ONLY_DIGITS:
        X, y = cifar(min(records, 400))
        cases += [
            ("CIFAR-10", X, y, "rbf", kernels.rbf().resolved(X), runs),
            ("CIFAR-10", X, y, "nngp, depth 5", kernels.nngp(depth=5), runs),
            ("CIFAR-10", X, y, "nngp, depth 5, gelu", kernels.nngp(5, "gelu"), runs),
            (
                "CIFAR-10, n = 60",
                X[:60],
                y[:60],
                "conv net, depth 5",
                conv_net(5, (32, 32, 3)),
                min(10, runs),
            ),
        ]
    X, y = digits(300)
    cases += [
        ("digits 0, 1", X, y, "rbf", kernels.rbf().resolved(X), runs),
        ("digits 0, 1", X, y, "nngp, depth 5", kernels.nngp(depth=5), runs),
    ]
    with section("Query search recovers the record (Fig. 2, 8, 9); one random start a run"):
        rows = Table(
            "data",
            "kernel",
            "climbs",
            "runs",
            "recovered",
            "ratio > 0.99",
            "median dist./neighbour",
            "median cosine",
            "median prediction KL",
            "ratios <= 1",
        )
        for data, X, y, label, kernel, count in cases:
            for climb in ("lood", "correlation"):
                found = lood.search_each(
                    X,
                    y,
                    records=range(min(count, len(X))),
                    kernel=kernel,
                    noise_variance=NOISE,
                    climb=climb,
                    starts=1,
                    box=(0.0, 1.0),
                )
                rows.append(
                    [
                        f"{data}, n = {len(X)}" if "n =" not in data else data,
                        label,
                        climb,
                        len(found),
                        f"{np.mean([one.starts_recovered for one in found]):.0%}",
                        f"{np.mean([one.ratio > 0.99 for one in found]):.0%}",
                        float(np.median([one.relative_distance[0] for one in found])),
                        float(np.median([one.cosine[0] for one in found])),
                        float(np.median([one.prediction_kl[0] for one in found])),
                        max(one.ratio for one in found) <= 1.0 + 1e-8,
                    ]
                )


def group(records: int, runs: int) -> None:
    name, X, y = images(min(records, 300))
    with section(
        f"Groups of three (App. E.2); {name}, {len(X)} records, 10 groups, 10 starts each"
    ):
        rows = Table("queries", *(f"recovered: {rank}" for rank in RANKS), "largest ratio")
        found = run_groups(X, y, 10, kernels.nngp(depth=5), Key(3), starts=10)
        for count in (1, 3):
            recovered = [f"{share:.0%}" for share in shares(found, count).mean(axis=0)]
            rows.append([count, *recovered, max(run.found[count].ratio for run in found)])


def activation(records: int, runs: int) -> None:
    name, X, y = images(records)
    sphere = on_sphere(X)
    inputs = {
        "[0, 1]": X,
        "[0, 1], to mean square 1": X / np.sqrt(np.mean(X**2)),
        "standardised": (X - X.mean()) / X.std(),
        "on a sphere": sphere,
        "on a sphere, a quarter as long": 0.25 * sphere,
    }

    def biased(phi: str) -> lood.Initialisation:
        return lood.Initialisation(2.0, 0.1, 1.0)

    variants: dict[str, dict[str, Any]] = {
        "2, 0 (the paper's)": {},
        "2, 0, equal scale": {"unit_scale": True},
        "2, 0.1": {"initialisation": biased},
        "edge of chaos": {"initialisation": edge},
        "edge, equal scale": {"initialisation": edge, "unit_scale": True},
    }
    verdict = {}
    with section(f"ReLU against GELU (Section 6, Fig. 5); {name}, {len(X)} records"):
        rows = Table(
            "inputs",
            "noise",
            "weight, bias variance",
            *(f"depth {d}" for d in DEPTHS),
            "ReLU > 1.1 GELU",
            "GELU > 1.1 ReLU",
            "k(x,x), GELU/ReLU, depth 10",
        )
        for what, data in inputs.items():
            for noise in (NOISE, 0.1):
                for how, options in variants.items():
                    found, scale = ratios(data, y, noise=noise, **options)
                    row: list[Any] = [what, noise, how]
                    row += [f"{np.median(r):.2f}" for r in found]
                    row += [f"{np.mean(found > 1.1):.0%}", f"{np.mean(1.0 / found > 1.1):.0%}"]
                    row.append(f"{scale:.2g}")
                    rows.append(row)
                    verdict[what, noise, how] = found
        paper = verdict["[0, 1]", NOISE, "2, 0 (the paper's)"]
        sphere_rows = [
            found
            for (what, _, how), found in verdict.items()
            if what == "on a sphere" and how.startswith("edge")
        ]
        print(
            "\nColumns by depth: median over records of LOOD under ReLU / LOOD under GELU.\n\n"
            "Verdict: both of the paper's statements can be had.  With its variances on pixels in "
            f"[0, 1] ReLU exceeds 1.1 GELU for {np.mean(paper[-1] > 1.1):.0%} of records at depth "
            f"10 ({np.mean(paper > 1.1):.0%} over all depths): GELU's kernel shrinks with depth, "
            "and the noise does not.  On a sphere at the edge of chaos, which Prop. G.1 assumes, "
            "GELU exceeds 1.1 ReLU for at least "
            f"{min(float(np.mean(1.0 / r > 1.1)) for r in sphere_rows):.0%}.  What decides is the "
            "size of inputs and weights: ReLU is homogeneous, GELU of small inputs is linear."
        )


def depth(records: int, runs: int) -> None:
    with section("Depth rates (Prop. G.1): exponent of 1 - correlation over layers 250 to 500"):
        rows = Table(
            "activation",
            "weight variance at the edge",
            "bias variance",
            "exponent at the edge",
            "exponent at 2, 0",
            "k(x,x) at 2, 0, depth 10",
        )
        for phi in ("relu", "gelu", "erf", "tanh", "elu"):
            start = lood.edge_of_chaos(phi)
            at_edge = lood.depth_decay(phi, 500)
            paper = lood.depth_decay(phi, 50, initialisation=lood.Initialisation(2.0, 0.0, 1.0))
            rows.append(
                [
                    phi,
                    start.weight_variance,
                    start.bias_variance,
                    at_edge.exponent,
                    paper.exponent,
                    float(paper.variances[9]),
                ]
            )
    name, X, y = images(records)
    sphere = on_sphere(X)
    with section(f"h(alpha_min), bounds and LOOD (Prop. 6.1); {name} on a sphere, noise 1"):
        table = bound_table(sphere, y, (1, 2, 5, 10, 20))
        rows = Table(*table.columns)
        for values in table.itertuples(index=False, name=None):
            rows.append(list(values))


SECTIONS: dict[str, Callable[[int, int], None]] = {
    "auc": auc,
    "perturbation": perturbation,
    "queries": several_queries,
    "normalisation": normalisation,
    "recovery": recovery,
    "group": group,
    "activation": activation,
    "depth": depth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION")
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--digits", action="store_true", help="scikit-learn's digits 0 and 1")
    options = parser.parse_args()
    global ONLY_DIGITS
    ONLY_DIGITS = options.digits
    for name in options.sections or SECTIONS:
        SECTIONS[name](options.records, options.runs)


if __name__ == "__main__":
    main()
