"""Network kernels against neural-tangents, and against the least work they could be.

    python benchmarks/kernels.py --environment DIR

DIR is a virtual environment with neural-tangents, which needs an older JAX than ours; it is made
there where it does not exist yet.  Without the option only our own times are measured.  The two
programs take turns, so that a busy spell hits both; the least time of each counts, after
compilation.  The least work is the matrix product (NumPy) and ``depth`` compiled passes of the
arc-cosine formula over half of the matrix.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np

RECORDS, FEATURES, DEPTH = 2000, 3072, 5
IMAGES, SIDE, CHANNELS, FILTERS = 200, 32, 3, (2, 3)
REQUIREMENTS = ("jax==0.4.30", "jaxlib==0.4.30", "neural-tangents==0.6.5")


def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(RECORDS, FEATURES))


def images() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(IMAGES, SIDE, SIDE, CHANNELS))


def least(action: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(repeats: int) -> dict[str, float]:
    import jax

    from leakscope import kernels

    X, pictures = rows(), images()
    dense = kernels.nngp(DEPTH, "relu")
    found = {"first dense": least(lambda: dense(X), 1), "dense": least(lambda: dense(X), repeats)}
    found["product"] = least(lambda: X @ X.T, repeats)
    found["passes"] = passes(repeats)
    for size in FILTERS:
        layers = [kernels.conv(size), kernels.activation("relu")] * DEPTH
        k = kernels.sequential(*layers, kernels.flatten(), kernels.dense())
        k(pictures)
        found[f"conv {size}"] = least(lambda k=k: k(pictures), repeats)
    return {**found, "jax": jax.__version__}


def passes(repeats: int) -> float:
    """``DEPTH`` passes of the ReLU recursion over the entries on and above the diagonal."""
    import jax
    import jax.numpy as jnp

    from leakscope._numerics.x64 import double_precision
    from leakscope.kernels.duals import arccos

    def one(c: jax.Array) -> jax.Array:
        return (jnp.sqrt((1.0 - c) * (1.0 + c)) + (jnp.pi - arccos(c)) * c) / jnp.pi

    with double_precision():
        entries = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, RECORDS * (RECORDS + 1) // 2))
        compiled = jax.jit(one)

        def all_passes() -> None:
            c = entries
            for _ in range(DEPTH):
                c = compiled(c)
            c.block_until_ready()

        all_passes()
        return least(all_passes, repeats)


def theirs(repeats: int) -> dict[str, object]:
    """Run inside the environment that has neural-tangents."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from neural_tangents import stax

    def dense() -> object:
        return stax.Dense(1, W_std=2.0**0.5, b_std=0.0)

    def timed(layers: list[object], inputs: np.ndarray) -> float:
        kernel = jax.jit(stax.serial(*layers)[2], static_argnums=(2,))

        def run() -> None:
            np.asarray(kernel(inputs, None, "nngp"))

        run()
        return least(run, repeats)

    hidden = [part for _ in range(DEPTH) for part in (stax.Relu(), dense())]
    found: dict[str, object] = {"dense": timed([dense(), *hidden], rows())}
    for size in FILTERS:
        layers = []
        for _ in range(DEPTH):
            conv = stax.Conv(1, (size, size), (1, 1), "SAME", W_std=2.0**0.5, b_std=0.0)
            layers += [conv, stax.Relu()]
        found[f"conv {size}"] = timed([*layers, stax.Flatten(), dense()], images())
    return {**found, "jax": jax.__version__}


def in_environment(folder: Path, repeats: int) -> dict[str, object]:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    done = subprocess.run(
        [python, __file__, "--inside", "--repeats", str(repeats)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def best(results: list[dict[str, object]]) -> dict[str, float]:
    names = [name for name in results[0] if name != "jax"]
    return {name: min(float(str(result[name])) for result in results) for name in names}


def report(own: dict[str, float], other: dict[str, float] | None) -> None:
    print("| kernel, float64 | leakscope, s | neural-tangents, s | times faster |")
    print("|---|---|---|---|")
    wide = {
        "dense": f"dense ReLU, depth {DEPTH}, n = {RECORDS}, d = {FEATURES}",
        **{
            f"conv {size}": f"{DEPTH} convolutions {size} x {size}, flatten, n = {IMAGES}, "
            f"{SIDE} x {SIDE} x {CHANNELS}"
            for size in FILTERS
        },
    }
    for name, text in wide.items():
        theirs_text = f"{other[name]:.3f} | {other[name] / own[name]:.1f}" if other else "– | –"
        print(f"| {text} | {own[name]:.3f} | {theirs_text} |")
    floor = own["product"] + own["passes"]
    print(
        f"\nMatrix product {own['product']:.3f} s and {DEPTH} passes {own['passes']:.3f} s: the "
        f"dense kernel costs {own['dense'] / floor:.2f} times both. "
        f"First call, compilation included: {own['first dense']:.2f} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, help="where neural-tangents is, or shall be")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each program takes")
    parser.add_argument("--repeats", type=int, default=3, help="timings in a turn")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(theirs(options.repeats)))
        return
    load = os.getloadavg()
    our_turns, their_turns = [], []
    for _ in range(options.rounds):
        our_turns.append(ours(options.repeats))
        if options.environment is not None:
            their_turns.append(in_environment(options.environment, options.repeats))
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, JAX {our_turns[0]['jax']}"
        + (f"; neural-tangents on JAX {their_turns[0]['jax']}" if their_turns else "")
        + f"; load {load[0]:.1f} at the start, {os.getloadavg()[0]:.1f} at the end\n"
    )
    report(best(our_turns), best(their_turns) if their_turns else None)


if __name__ == "__main__":
    sys.exit(main())
