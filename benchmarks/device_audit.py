"""Audit of 50,000 images of CIFAR's size on one GPU: kernel and all records, in seconds.

    python benchmarks/device_audit.py [N] [--data cifar10_car_plane.npz]

The images are CIFAR-10 cars and planes where the file is given, shifted and flipped until there
are N, and random smooth images otherwise.  The second run is timed, after compilation.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np

from leakscope._numerics import device_cholesky as device
from leakscope._numerics.x64 import double_precision
from leakscope.kernels.network import nngp
from leakscope.lood.device import device_records


def images(count: int, path: str | None) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    if path is None:
        small = generator.standard_normal((count, 8, 8, 3)).astype(np.float32)
        big = small.repeat(4, axis=1).repeat(4, axis=2)
        big += 0.3 * generator.standard_normal(big.shape, dtype=np.float32)
        return big.reshape(count, -1).astype(np.float64), generator.integers(0, 2, count) - 0.5
    with np.load(path, allow_pickle=False) as stored:
        pixels, labels = stored["X"], stored["y"]
    parts, targets = [], []
    made = 0
    for copy in range(-(-count // len(pixels))):
        moved = np.roll(pixels, (copy // 2, (copy + 1) // 2), axis=(1, 2))
        moved = moved[:, :, ::-1] if copy % 2 else moved
        parts.append(moved)
        targets.append(labels)
        made += len(pixels)
    x = np.concatenate(parts)[:count].reshape(count, -1).astype(np.float64)
    y = np.concatenate(targets)[:count] - 0.5
    return (x - x.mean()) / x.std(), y


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("--data")
    parser.add_argument("--stages", action="store_true", help="each stage, compilation included")
    parser.add_argument("--depth", type=int, default=5)
    options = parser.parse_args()
    machine = jax.devices()[0]
    print(f"{machine.device_kind}, jax {jax.__version__}, Python {platform.python_version()}")
    x, y = images(options.count, options.data)
    kernel = nngp(depth=options.depth)
    print(f"{len(x)} records of {x.shape[1]} numbers, {'real' if options.data else 'synthetic'}")
    if options.stages:
        return stages(x, y, kernel)
    for attempt in ("with compilation", "after compilation"):
        start = time.perf_counter()
        found = device_records(x, y, kernel=kernel, noise_variance=0.01)
        print(f"audit {attempt}: {time.perf_counter() - start:.2f} s", flush=True)
    stats = machine.memory_stats() or {}
    print(f"peak device memory {stats.get('peak_bytes_in_use', 0) / 1e9:.1f} GB")
    order = np.argsort(-found.kl)[:5]
    print("most exposed:", order.tolist(), found.kl[order].round(2).tolist())
    print(f"trusted: {found.trusted.mean():.4f}")
    stages(x, y, kernel)


def stages(x: np.ndarray, y: np.ndarray, kernel) -> None:
    """Time of each stage, and a few records against a host computation of their own."""
    with double_precision():
        import jax.numpy as jnp

        data = jax.block_until_ready(jnp.asarray(x))
        clock = time.perf_counter()
        matrix = jax.block_until_ready(device.upper_triangle(data, kernel.jax))
        clock = lap("kernel", clock)
        device.one_norm(matrix)
        clock = lap("norm", clock)
        factor = jax.block_until_ready(device.factorise(matrix, jnp.asarray(0.01)))
        clock = lap("factorisation", clock)
        m = jax.block_until_ready(device.inverse_diagonal(factor))
        clock = lap("inverse diagonal", clock)
        rows = np.array([0, len(x) // 2, len(x) - 1])
        unit = np.zeros((len(x), rows.size))
        unit[rows, np.arange(rows.size)] = 1.0
        again = np.asarray(device.solve(factor, jnp.asarray(unit)))[rows, np.arange(rows.size)]
        apart = np.abs(np.asarray(m)[rows] / again - 1.0).max()
        print(f"inverse diagonal against full solves: {apart:.1e}")


def lap(name: str, clock: float) -> float:
    now = time.perf_counter()
    stats = jax.devices()[0].memory_stats() or {}
    peak = stats.get("peak_bytes_in_use", 0) / 1e9
    print(f"| {name} | {now - clock:.2f} s | peak so far {peak:.1f} GB |", flush=True)
    return now


if __name__ == "__main__":
    main()
