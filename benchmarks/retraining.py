"""How fast many networks are trained.

    python benchmarks/retraining.py [--torch PYTHON] [--steps] [--models]

1. Model-steps a second of 784-256-256-1 on 500 rows in full batches: ``NetworkTrainer`` as it
   comes, a Python loop over one jitted step, and PyTorch (in a process of its own, skipped where
   there is none).  Rounds of the three take turns; medians are reported.
2. Models a second: ``NetworkTrainer`` against the loop, batches of 64, 10 epochs, and whether both
   leave the same distribution of final losses (Kolmogorov-Smirnov on other seeds).

Both by default.  Needs jax, optax, NumPy and SciPy beside leakscope's own io packages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from leakscope._numerics.keys import Key
from leakscope.verifying import DenseNetwork, NetworkTrainer

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

    trainer = NetworkTrainer(
        NETWORK, optimiser="sgd", learning_rate=RATE, momentum=0.0, epochs=steps, batch_size=None
    )
    one_by_one = loop(X, y, batch=None, momentum=0.0)
    tasks = {
        "NetworkTrainer": lambda: trainer.train(X, y, included, X[:1], Key(1)),
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", default="", help="a Python that has PyTorch")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    for part in ("steps", "models"):
        parser.add_argument(f"--{part}", action="store_true")
    options = parser.parse_args()
    asked = {part for part in ("steps", "models") if getattr(options, part)}
    asked = asked or {"steps", "models"}
    cpu = jax.default_backend() == "cpu"
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, {options.cores} cores")
    if "steps" in asked:
        steps_a_second(options.torch, 5, *((4, 25) if cpu else (64, 200)), cores=options.cores)
    if "models" in asked:
        models_a_second(*((12, 12) if cpu else (512, 48)))


if __name__ == "__main__":
    main()
