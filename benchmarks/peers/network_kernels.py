"""Kernels of infinitely wide networks, against neural-tangents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from environments import ask
from rows import Row, least

from leakscope import kernels

RECORDS, FEATURES, IMAGES, SIDE, DEPTH, REPEATS = 2000, 3072, 100, 32, 5, 3


def compare(folder: Path, threads: int) -> list[Row]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, FEATURES))
    images = rng.normal(size=(IMAGES, SIDE, SIDE, 3))
    dense = kernels.nngp(DEPTH, "relu")
    layers = [kernels.conv(2), kernels.activation("relu")] * DEPTH
    convolution = kernels.sequential(*layers, kernels.flatten(), kernels.dense())
    own = {}
    for name, kernel, inputs in (("dense", dense, X), ("convolution", convolution, images)):
        kernel(inputs)  # compiles
        own[name] = least(lambda k=kernel, a=inputs: np.asarray(k(a)), REPEATS)
    question = {"depth": DEPTH, "repeats": REPEATS}
    arrays = {"rows": X, "images": images}
    peer, script = "neural-tangents", "peer_neural_tangents.py"
    found = ask(peer, script, question, arrays, folder, threads=threads)
    words = {
        "dense": f"dense ReLU kernel, depth {DEPTH}, n = {RECORDS}, d = {FEATURES}",
        "convolution": f"{DEPTH} convolutions 2 x 2, flatten, n = {IMAGES}, {SIDE} x {SIDE} x 3",
    }
    rows = []
    for name, (seconds, matrix) in own.items():
        theirs = np.array(found[name]["corner"])
        off = float(np.max(np.abs(matrix[:20, :20] / theirs - 1.0)))
        agreement = f"largest relative difference {off:.0e}"
        rows.append(Row(words[name], "neural-tangents", found[name]["seconds"], seconds, agreement))
    return rows
