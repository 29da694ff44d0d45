"""lood Fig. 1(b), 1(c) and 5: predicted leakage against retrained networks, record by record.

    python benchmarks/retraining_lood.py                       # CIFAR-10 cars and planes, for a CPU
    python benchmarks/retraining_lood.py --paper --minutes 7   # the paper's network, for one GPU
    python benchmarks/retraining_lood.py --digits              # scikit-learn's digits 3 and 8

Predicted: the laws of ``lood.all_records`` with the NNGP kernel of the network's own depth and
activation, at several noise variances.  Measured: networks trained by
SGD with all records and without each of the chosen ones.  Beside them influence functions and
TracIn, and the seconds of each.  ``--run`` names a directory; started again, finished cells are not
repeated.  Records are chosen by strata of predicted AUC, in an order drawn at random, so that a run
that ``--minutes`` cuts short has checked a stratified part of them.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np

from leakscope import kernels
from leakscope._numerics.keys import Key
from leakscope.running.cell_store import open_cells
from leakscope.verifying import (
    DenseNetwork,
    NetworkTrainer,
    RetrainingPlan,
    agreement,
    choose_records,
    influence_functions,
    parameters_at,
    prediction_difference,
    retrain,
    trac_in,
)
from leakscope.verifying.influence import tangent_products
from papers.lood_networks import by_process, learning_rate

NOISES = (0.001, 0.01, 0.05, 0.2, 1.0)
CHOSEN_AT = 0.05


def pictures(path: str, n: int, pool: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n cars and planes, half of each, as rows; targets -1 and 1."""
    with np.load(path, allow_pickle=False) as stored:
        pixels, labels = stored["X"], stored["y"]
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[: n // 2] for c in (0, 1)])
    x = pixels[rows].astype(np.float64)
    side = x.shape[1] // pool
    x = x.reshape(len(x), side, pool, side, pool, 3).mean(axis=(2, 4)).reshape(len(x), -1)
    return (x - x.mean()) / x.std(), 2.0 * labels[rows] - 1.0


def digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    x, labels = load_digits(return_X_y=True)
    rows = np.flatnonzero((labels == 3) | (labels == 8))
    rows = np.random.default_rng(seed).permutation(rows)[:n]
    x = x[rows]
    return (x - x.mean()) / x.std(), np.where(labels[rows] == 3, -1.0, 1.0)


def seconds_of(task):
    start = time.perf_counter()
    found = task()
    return found, time.perf_counter() - start


def row(name: str, predicted, measured, low, high) -> None:
    found = agreement(predicted, measured, low, high, random_state=0)
    p, s = found.pearson, found.spearman
    print(
        f"  {name:34s} {np.mean(predicted):8.3f} {np.mean(measured):8.3f}   "
        f"{p.value:5.2f} [{p.low:5.2f}, {p.high:5.2f}]  "
        f"{s.value:5.2f} [{s.low:5.2f}, {s.high:5.2f}]  "
        f"{100 * found.outside:4.0f}%  {found.slope:8.3g}",
        flush=True,
    )


def header(what: str) -> None:
    print(f"\n{what}")
    print(
        f"  {'predicted by':34s} mean pred mean meas  Pearson [95%]          Spearman [95%]      "
        "  outside  slope"
    )


class Study:
    """One activation: what is predicted, and what retraining has found so far."""

    def __init__(self, activation: str, X: np.ndarray, y: np.ndarray, options) -> None:
        self.activation, self.X, self.y, self.options = activation, X, y, options
        self.network = DenseNetwork((options.width,) * options.depth, activation=activation)
        kernel = kernels.nngp(depth=options.depth, activation=activation, weight_variance=2.0)
        self.kernel = kernel
        _, self.cold = seconds_of(lambda: by_process(kernel(X), y, CHOSEN_AT))
        _, self.analytic = seconds_of(lambda: by_process(kernel(X), y, CHOSEN_AT))
        self.K = kernel(X)
        self.at = {noise: by_process(self.K, y, noise) for noise in NOISES}
        self.trainer = NetworkTrainer(
            self.network,
            optimiser="sgd",
            learning_rate=options.rate or learning_rate(self.network, X, options.share),
            momentum=0.9,
            epochs=options.epochs,
            batch_size=options.batch,
        )
        self.parts: list = []
        self.seconds = 0.0

    def train(self, records: np.ndarray, place: Path) -> None:
        o = self.options
        plan = RetrainingPlan(
            tuple(records), models=o.models, models_per_cell=o.models_per_cell, auc_half_width=None
        )
        digest = hashlib.sha256(self.X.tobytes() + self.y.tobytes()).hexdigest()[:16]
        settings = {**plan.describe(), "trainer": self.trainer.describe(), "data": digest}
        with open_cells(place, settings=settings, seed=o.seed) as store:
            found, spent = seconds_of(
                lambda: retrain(self.X, self.y, self.trainer, plan, store, seed=o.seed)
            )
        self.parts.append(found)
        # Cells of an earlier start count with the seconds they took then.
        self.seconds += max(spent, found.seconds)

    def collect(self) -> None:
        self.records = np.array([r.row for part in self.parts for r in part.records])
        every = [r for part in self.parts for r in part.records]
        self.auc = np.array([float(r.auc.value) for r in every])
        self.low = np.array([float(r.auc.low) for r in every])
        self.high = np.array([float(r.auc.high) for r in every])
        differences = [prediction_difference(part) for part in self.parts]
        # Towards the record's own label, so that a record that teaches its label counts as plus.
        towards = self.y[self.records]
        self.shift = towards * np.concatenate([d.shift[:, 0] for d in differences])
        self.stderr = np.concatenate([d.stderr[:, 0] for d in differences])
        self.distance = np.array([r.mean_distance for r in every])
        self.distance_stderr = np.array([r.mean_distance_stderr for r in every])
        self.sigma = [np.mean([s(r).std(ddof=1) for r in every]) for s in (_member, _nonmember)]
        self.losses = np.concatenate([part.losses for part in self.parts])

    def report(self) -> None:
        o, rows, n = self.options, self.records, len(self.y)
        print(
            f"\n== {self.activation}, {o.depth} layers of {o.width}, SGD "
            f"{self.trainer.learning_rate:g} momentum 0.9, {o.epochs} epochs of "
            f"batches of {o.batch}; {n} records, {len(rows)} checked, {o.models} models "
            f"with and {o.models} without each ==\n"
            f"final losses (half the mean square; labels +-1): median "
            f"{np.median(self.losses):.2g}, 95% below {np.quantile(self.losses, 0.95):.2g}\n"
            f"std. deviation of answers over models: with {self.sigma[0]:.3f}, without "
            f"{self.sigma[1]:.3f}"
        )
        header("Fig. 1(b): AUC")
        for noise, found in self.at.items():
            row(f"NNGP, noise {noise:g}", found.auc[rows], self.auc, self.low, self.high)
        header("KL predicted, against measured AUC")
        row("KL, noise 0.05", self.at[0.05].kl[rows], self.auc, self.low, self.high)
        header("Fig. 1(c): prediction difference, towards the label")
        ends = self.shift - 1.96 * self.stderr, self.shift + 1.96 * self.stderr
        towards = self.y[rows]
        for noise, found in self.at.items():
            row(f"NNGP, noise {noise:g}", towards * found.shift[rows], self.shift, *ends)
        seconds = self.baselines(towards, ends)
        header("mean distance (half the squared difference)")
        ends = (
            self.distance - 1.96 * self.distance_stderr,
            self.distance + 1.96 * self.distance_stderr,
        )
        row("NNGP, noise 0.05", 0.5 * self.at[0.05].shift[rows] ** 2, self.distance, *ends)
        each = self.seconds / len(rows)
        print(
            f"\nseconds: analytic {self.analytic:.3f} for all {n} records (first call "
            f"{self.cold:.2f}); retraining {self.seconds:.1f} for {len(rows)} records, {each:.2f} "
            f"a record; influence functions {seconds[0]:.1f}, TracIn {seconds[1]:.1f}\n"
            f"retraining the checked records took {self.seconds / self.analytic:.0f} times the "
            f"analytic route for all; a record, {each / (self.analytic / n):.0f} times"
        )

    def baselines(self, towards: np.ndarray, ends) -> tuple[float, float]:
        o, rows = self.options, self.records
        included = np.ones((o.baseline_models, len(self.y)), dtype=bool)

        def influences() -> list:
            (models,) = parameters_at(
                self.trainer, self.X, self.y[:, None], included, Key(o.seed).child(1)
            )
            one = tangent_products(self.network, models[0], self.X[:64], self.X[:64])[:, 0, :, 0]
            # In units of the curvature's own mean, so that the damping means the same everywhere.
            unit = float(np.trace(one)) / 64 / len(self.y)
            return [
                influence_functions(self.network, models, self.X, self.y, damping=d * unit)
                for d in (0.01, 0.1, 1.0)
            ]

        found, first = seconds_of(influences)
        for name, influence in zip((0.01, 0.1, 1.0), found, strict=True):
            own = influence.self_shift()[rows, 0]
            row(f"influence function, damping {name:g}", towards * own, self.shift, *ends)
            exact = influence.leave_one_out[rows, rows, 0]
            row(f"  linearised leave-one-out, {name:g}", towards * exact, self.shift, *ends)
        traced, second = seconds_of(
            lambda: trac_in(
                self.trainer, self.X, self.y, self.X[rows],
                models=o.baseline_models, random_state=Key(o.seed).child(2),
            )
        )  # fmt: skip
        own = traced.shift[rows, np.arange(len(rows)), 0]
        row("TracIn", towards * own, self.shift, *ends)
        return first / 3, second


def _member(record):
    return record.member


def _nonmember(record):
    return record.nonmember


def compare(studies: list[Study]) -> None:
    """Fig. 5: is one activation's leakage higher than the other's, record by record?"""
    one, other = studies
    both = np.intersect1d(one.records, other.records)
    print(f"\n== Fig. 5: {other.activation} against {one.activation}, {len(both)} records ==")
    for noise in NOISES:
        gap = other.at[noise].auc[both] - one.at[noise].auc[both]
        print(
            f"predicted, noise {noise:g}: AUC higher for {100 * np.mean(gap > 0):.0f}% of these "
            f"records, by {gap.mean():.3f} on average"
        )
    places = [[list(s.records).index(r) for r in both] for s in studies]
    gap = other.auc[places[1]] - one.auc[places[0]]
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    print(
        f"measured: AUC higher for {100 * np.mean(gap > 0):.0f}%, by {gap.mean():.3f} on average "
        f"(std. error over records {error:.3f})"
    )


def write(path: str, studies: list[Study]) -> None:
    with open(path, "w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(
            ["activation", "record", "auc", "low", "high", "shift", "stderr"]
            + [f"predicted_auc_{s}" for s in NOISES]
            + [f"predicted_shift_{s}" for s in NOISES]
        )
        for s in studies:
            for i, r in enumerate(s.records):
                out.writerow(
                    [s.activation, r, s.auc[i], s.low[i], s.high[i], s.shift[i], s.stderr[i]]
                    + [s.at[v].auc[r] for v in NOISES]
                    + [s.y[r] * s.at[v].shift[r] for v in NOISES]
                )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="../shared/data/cifar10_car_plane.npz")
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--paper", action="store_true", help="10 x 1024, n 1000, 90 records, 50+50")
    for name, value in (("n", 200), ("pool", 2), ("width", 128), ("depth", 3), ("records", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("models", 24), ("models-per-cell", 24), ("epochs", 15), ("batch", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--chunk", type=int, default=8, help="records between looks at the clock")
    parser.add_argument("--baseline-models", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of data, records and models")
    parser.add_argument("--rate", type=float, help="learning rate; else from the curvature")
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--activations", nargs="+", default=["relu", "gelu"])
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--run", help="directory of a run that can be resumed")
    parser.add_argument("--table", help="CSV of the records")
    options = parser.parse_args()
    if options.paper:
        given = {"n": 1000, "pool": 1, "width": 1024, "depth": 10, "records": 90, "models": 50}
        given |= {
            "models_per_cell": 50,
            "baseline_models": 2,
            "epochs": 50,
            "batch": 128,
            "chunk": 10,
        }
        for name, value in given.items():
            if getattr(options, name) == parser.get_default(name):
                setattr(options, name, value)
    begun = time.perf_counter()
    if options.digits:
        X, y = digits(options.n, options.seed)
    else:
        X, y = pictures(options.data, options.n, options.pool, options.seed)
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}; {X.shape[0]} records of {X.shape[1]}")
    studies = [Study(activation, X, y, options) for activation in options.activations]
    chosen = choose_records(
        studies[0].at[CHOSEN_AT].auc, options.records, random_state=options.seed
    )
    chosen = np.random.default_rng(options.seed).permutation(chosen)
    root = Path(options.run or tempfile.mkdtemp())
    longest = 0.0
    for begin in range(0, len(chosen), options.chunk):
        spent = time.perf_counter() - begun
        if spent + longest > 60.0 * options.minutes:
            print(f"{begin} of {len(chosen)} records fit in {options.minutes:g} minutes")
            break
        chunk = chosen[begin : begin + options.chunk]
        for study in studies:
            study.train(chunk, root / study.activation / f"records-{begin}")
        # The first chunk compiles.
        longest = (time.perf_counter() - begun) - spent
        print(f"{begin + len(chunk)} of {len(chosen)} records, {spent + longest:.0f} s", flush=True)
    for study in studies:
        study.collect()
    if options.table:
        write(options.table, studies)
    for study in studies:
        study.report()
    if len(studies) == 2:
        compare(studies)


if __name__ == "__main__":
    main()
