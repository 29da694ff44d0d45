"""Mixture over 2,000 designs against the histogram of 100,000 draws, both against a long run.

    python benchmarks/linear_histogram.py

Small versions of the three other data models; the long run is a mixture over 40,000 designs.
Histograms draw 100,000 predictions of each kind from that mixture, as if each came from a design
of its own.  Errors are root mean squares over repetitions, bias beside them.
"""

from __future__ import annotations

import numpy as np

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.defences import scored_advantage
from leakscope.laws import LawPair, NormalMixture

MODELS: list[tuple[str, linear.DataModel]] = [
    ("latent 20/12", linear.LatentSpace(20, 12, 4)),
    ("latent 20/40", linear.LatentSpace(20, 40, 4)),
    ("latent 20/100", linear.LatentSpace(20, 100, 4)),
    ("fourier 12/8", linear.FourierSeries(12, 8, times=64, convention="published")),
    ("fourier 12/40", linear.FourierSeries(12, 40, times=64, convention="published")),
    ("relu 20/40", linear.RandomRelu(20, 40, 100, convention="published")),
    ("relu 20/100", linear.RandomRelu(20, 100, 100, convention="published")),
]
LONG, SHORT, REPEATS = 40_000, 2_000, 20


def part(pair: LawPair, index: np.ndarray) -> LawPair:
    laws = [NormalMixture.scale(law.sigmas[index]) for law in (pair.member, pair.nonmember)]
    return LawPair(*laws, pair.provenance)


def main() -> None:
    print("model  long run | mixture: bias, rms error | histogram text: bias, rms | published")
    for name, model in MODELS:
        key = Key(11)
        pair = linear.data_model_law_pair(model, model.query(key), designs=LONG, random_state=key)
        truth = scored_advantage(pair).value
        rng = np.random.default_rng(3)
        found = {"mixture": [], "text": [], "published": []}
        for repeat in range(REPEATS):
            chosen = np.arange(repeat * SHORT, (repeat + 1) * SHORT)
            found["mixture"].append(scored_advantage(part(pair, chosen)).value)
            drawn = [
                law.sigmas[rng.integers(LONG, size=100_000)] * rng.standard_normal(100_000)
                for law in (pair.member, pair.nonmember)
            ]
            for convention in ("text", "published"):
                found[convention].append(linear.histogram_advantage(*drawn, convention=convention))
        line = [f"{name:14s} {truth:.4f}"]
        for values in found.values():
            gap = np.array(values) - truth
            line += [f"| {gap.mean():+.4f} {np.sqrt((gap**2).mean()):.4f}"]
        print(*line, flush=True)


if __name__ == "__main__":
    main()
