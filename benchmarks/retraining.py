"""How fast many networks are trained, and what stopping early saves.

    python benchmarks/retraining.py [--torch PYTHON] [--steps] [--models] [--stop]

1. Model-steps a second of 784-256-256-1 on 500 rows in full batches: ``NetworkTrainer`` as it
   comes, a vmapped batch of models, a Python loop over one jitted step, and PyTorch (in a process
   of its own, skipped where there is none).  Rounds of the four take turns; medians are reported.
2. Models a second: ``NetworkTrainer`` against the loop, batches of 64, 10 epochs, and whether both
   leave the same distribution of final losses (Kolmogorov-Smirnov on other seeds).
3. Sequential stopping: breast cancer, a small network, every record's AUC to within 0.05.

All three by default.  Needs jax, optax, NumPy and SciPy beside leakscope's own io packages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from leakscope import kernels, lood, measures
from leakscope._numerics.keys import Key
from leakscope.running.cell_store import open_cells
from leakscope.verifying import (
    DenseNetwork,
    NetworkTrainer,
    RetrainingPlan,
    choose_records,
    retrain,
)

NETWORK = DenseNetwork((256, 256))
ROWS, INPUTS, RATE = 500, 784, 2e-3

TORCH = """
import sys, time, torch
threads, steps, rows, inputs, rate = (float(v) for v in sys.argv[1:])
torch.manual_seed(0)
torch.set_num_threads(int(threads))
layers = [torch.nn.Linear(int(inputs), 256, bias=False), torch.nn.ReLU(),
          torch.nn.Linear(256, 256, bias=False), torch.nn.ReLU(),
          torch.nn.Linear(256, 1, bias=False)]
model = torch.nn.Sequential(*layers)
optimiser = torch.optim.SGD(model.parameters(), lr=rate)
X, y = torch.randn(int(rows), int(inputs)), torch.randn(int(rows), 1)
def run(count):
    for _ in range(count):
        optimiser.zero_grad(set_to_none=True)
        loss = 0.5 * ((model(X) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
run(5)
start = time.perf_counter()
run(int(steps))
print(steps / (time.perf_counter() - start))
"""


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, INPUTS))
    y = np.sign(X @ rng.normal(size=INPUTS) + 0.5 * np.sqrt(INPUTS) * rng.normal(size=ROWS))
    return X, y[:, None]


def loop(X, y, *, batch: int | None, momentum: float):
    """What trains models one after another, one jitted step at a time, and gives final losses."""
    rows, targets = jnp.float32(X), jnp.float32(y)
    optimiser = optax.sgd(RATE, momentum=momentum or None)

    def loss(parameters, x, t):
        return 0.5 * jnp.mean((NETWORK.apply(parameters, x) - t) ** 2)

    @jax.jit
    def step(parameters, memory, chosen):
        x, t = (rows, targets) if chosen is None else (rows[chosen], targets[chosen])
        change, memory = optimiser.update(jax.grad(loss)(parameters, x, t), memory, parameters)
        return optax.apply_updates(parameters, change), memory

    final = jax.jit(lambda parameters: loss(parameters, rows, targets))
    start = jax.jit(lambda key: NETWORK.initial(key, INPUTS, 1))

    def train(epochs: int, models: int, first: int = 0) -> np.ndarray:
        rng, losses = np.random.default_rng([99, first]), []
        for model in range(first, first + models):
            parameters = start(jax.random.key(10_000 + model))
            memory = optimiser.init(parameters)
            for _ in range(epochs):
                order = None if batch is None else rng.permutation(ROWS)
                for begin in range(0, ROWS, batch or ROWS):
                    chosen = None if order is None else order[begin : begin + batch]
                    parameters, memory = step(parameters, memory, chosen)
            losses.append(final(parameters))
        return np.array([float(value) for value in losses])

    return train


def rate_of(task, count: float) -> float:
    start = time.perf_counter()
    task()
    return count / (time.perf_counter() - start)


def steps_a_second(torch: str, rounds: int, models: int, steps: int, cores: int) -> None:
    X, y = problem()
    included = np.ones((models, ROWS), dtype=bool)

    def trainer(together: int | None) -> NetworkTrainer:
        return NetworkTrainer(
            NETWORK,
            optimiser="sgd",
            learning_rate=RATE,
            momentum=0.0,
            epochs=steps,
            batch_size=None,
            side_by_side=together,
        )

    one_by_one = loop(X, y, batch=None, momentum=0.0)
    tasks = {
        "NetworkTrainer": lambda: trainer(None).train(X, y, included, X[:1], Key(1)),
        f"vmap over {models} models": lambda: trainer(models).train(X, y, included, X[:1], Key(1)),
        "loop over a jitted step": lambda: one_by_one(steps, models),
    }
    for task in tasks.values():
        task()
    found: dict[str, list[float]] = {name: [] for name in tasks}
    there = Path(torch).is_file()
    if there:
        found["torch"] = []
    for _ in range(rounds):
        for name, task in tasks.items():
            found[name].append(rate_of(task, models * steps))
        if there:
            words = [torch, "-c", TORCH, *map(str, (cores, models * steps, ROWS, INPUTS, RATE))]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            found["torch"].append(float(done.stdout))
    print(f"\n1. model-steps a second, 784-256-256-1 on {ROWS} rows, medians of {rounds} rounds")
    if not there:
        print("   (no PyTorch; name a Python that has it by --torch)")
    others = max(np.median(v) for name, v in found.items() if name != "NetworkTrainer")
    for name, values in found.items():
        value = np.median(values)
        print(
            f"   {name:26s} {value:9.1f}   (from {min(values):.1f} to {max(values):.1f})   "
            f"{value / others:.2f} of the best other"
        )


def models_a_second(many: int, few: int) -> None:
    X, y = problem()
    epochs, batch, momentum = 10, 64, 0.9
    trainer = NetworkTrainer(
        NETWORK,
        optimiser="sgd",
        learning_rate=RATE,
        momentum=momentum,
        epochs=epochs,
        batch_size=batch,
    )
    included = np.ones((many, ROWS), dtype=bool)
    trainer.train(X, y, included, X[:1], Key(0))
    one_by_one = loop(X, y, batch=batch, momentum=momentum)
    one_by_one(1, 1)
    batched, single, seconds = [], [], np.zeros((3, 2))
    for turn in range(3):
        start = time.perf_counter()
        batched.append(trainer.train(X, y, included, X[:1], Key(1 + turn)).losses)
        middle = time.perf_counter()
        single.append(one_by_one(epochs, few, first=turn * few))
        seconds[turn] = middle - start, time.perf_counter() - middle
    fast, slow = np.array([many, few]) / np.median(seconds, axis=0)
    batched, single = np.concatenate(batched), np.concatenate(single)
    test = stats.ks_2samp(batched, single)
    print(f"\n2. models a second, {epochs} epochs of batches of {batch}, medians of 3 turns")
    print(f"   NetworkTrainer, {many} models   {fast:9.2f}")
    print(f"   loop, {few} models              {slow:9.2f}   ratio {fast / slow:.1f}")
    print(
        f"   final losses: {batched.mean():.4g} +- {batched.std(ddof=1):.2g} and "
        f"{single.mean():.4g} +- {single.std(ddof=1):.2g}; Kolmogorov-Smirnov p {test.pvalue:.2f}"
    )


def breast_cancer(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    if path is not None:
        with np.load(path, allow_pickle=False) as stored:
            X, y = stored["X"], stored["y"]
    else:
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:200]
    X = X[rows]
    return (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y[rows] - 1.0


def stopping(path: str | None, models: int, cell: int) -> None:
    X, y = breast_cancer(path)
    laws = lood.all_records(kernels.nngp(depth=2)(X), y, noise_variance=0.2)
    records = choose_records(np.asarray(measures.auc(laws.law_pair())), 12, random_state=0)
    trainer = NetworkTrainer(DenseNetwork((32, 32)), learning_rate=3e-3, epochs=60, batch_size=None)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for width in (0.05, None):
            plan = RetrainingPlan(
                tuple(records), models=models, models_per_cell=cell, auc_half_width=width
            )
            with open_cells(Path(folder, "run"), settings=plan.describe(), seed=0) as store:
                found.append(retrain(X, y, trainer, plan, store, seed=0))
    stopped, whole = found
    saved = 1.0 - stopped.models_trained / stopped.models_planned
    print(
        f"\n3. stopping at +-0.05: breast cancer, {len(X)} rows, 30-32-32-1, "
        f"{len(records)} records, at most {models} models on either side"
    )
    print(
        f"   {stopped.models_trained} of {stopped.models_planned} models trained: "
        f"{100 * saved:.0f}% saved; {stopped.seconds:.1f} s in place of {whole.seconds:.1f} s"
    )
    print("   record  AUC at the stop      models   AUC of all")
    for one, all_of in zip(stopped.records, whole.records, strict=True):
        print(
            f"   {one.row:6d}  {one.auc.value:.3f} [{one.auc.low:.3f}, {one.auc.high:.3f}]  "
            f"{len(one.nonmember):6d}   {all_of.auc.value:.3f}"
        )
    gap = [abs(float(a.auc.value - b.auc.value)) for a, b in zip(*_records(found), strict=True)]
    print(f"   largest difference to the AUC of all models {max(gap):.3f}")


def _records(found):
    return [result.records for result in found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", default="", help="a Python that has PyTorch")
    parser.add_argument("--breast-cancer", help=".npz with X and y, where scikit-learn is not")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    for part in ("steps", "models", "stop"):
        parser.add_argument(f"--{part}", action="store_true")
    options = parser.parse_args()
    asked = {part for part in ("steps", "models", "stop") if getattr(options, part)}
    asked = asked or {"steps", "models", "stop"}
    cpu = jax.default_backend() == "cpu"
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {options.cores} cores")
    if "steps" in asked:
        steps_a_second(options.torch, 5, *((4, 25) if cpu else (64, 200)), cores=options.cores)
    if "models" in asked:
        models_a_second(*((12, 12) if cpu else (512, 48)))
    if "stop" in asked:
        stopping(options.breast_cancer, 320, 32)


if __name__ == "__main__":
    main()
