"""The published curves of Fig. 2(b) and Fig. 5 of **linear**, beside what the text's model gives.

    python benchmarks/linear_published.py [CSV] [--records 20] [--designs 300] [--figure 2b]

CSV has columns figure, p, advantage (read off the authors' figures).  For each point: the
histogram adversary under the published convention, and under both conventions the mixture over
designs with its standard error over records.  Predictions for the histogram are drawn from the
mixture, 100,000 of each kind, as the paper draws them.
"""

from __future__ import annotations

import argparse
import csv

import numpy as np

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.defences import scored_advantage
from leakscope.laws import LawPair

POINTS = {
    "2b": [110, 150, 200, 300, 500, 2000],
    "5a-latent": [90, 110, 190, 210, 230, 500, 2000],
    "5b-fourier": [64, 128, 256, 1024],
    "5c-relu": [50, 90, 110, 400, 4000],
}


def model(figure: str, p: int, convention: str) -> linear.DataModel:
    if figure == "5a-latent":
        return linear.LatentSpace(200, p, 20, convention=convention)
    if figure == "5b-fourier":
        return linear.FourierSeries(128, p, convention=convention)
    return linear.RandomRelu(100, p, 5000, convention=convention)


def pairs(figure: str, p: int, convention: str, records: int, designs: int) -> list[LawPair]:
    key = Key(5)
    if figure == "2b":
        design = linear.GaussianDesign(100, p, 3000, 1.0)
        norms = linear.RecordNorms.sample(design, records, key)
        batch = linear.law_pair(design, norms, draws=100 * designs, random_state=key)
        return [batch.take(slice(j, j + 1)).reshape() for j in range(records)]
    world = model(figure, p, convention)
    return [
        linear.data_model_law_pair(
            world, world.query(key.child(0, j)), designs=designs, random_state=key.child(1, j)
        )
        for j in range(records)
    ]


def histogram(pair: LawPair, convention: str, seed: int) -> float:
    rng = np.random.default_rng(seed)
    drawn = []
    for law in (pair.member, pair.nonmember):
        sigmas = law.sigmas[rng.integers(law.components, size=100_000)]
        drawn.append(sigmas * rng.standard_normal(100_000))
    return linear.histogram_advantage(*drawn, convention=convention)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--records", type=int, default=20)
    parser.add_argument("--designs", type=int, default=300)
    parser.add_argument("--figure", choices=list(POINTS), action="append")
    parser.add_argument("--p", type=int, action="append")
    arguments = parser.parse_args()
    read: dict[tuple[str, int], str] = {}
    if arguments.table:
        with open(arguments.table, encoding="utf-8") as file:
            read = {(r["figure"], int(r["p"])): r["advantage"] for r in csv.DictReader(file)}
    print("figure p read | published: histogram, mixture | text: histogram, mixture")
    for figure in arguments.figure or POINTS:
        for p in arguments.p or POINTS[figure]:
            line = [figure, str(p), read.get((figure, p), "-")]
            for convention in ("published", "text"):
                found = pairs(figure, p, convention, arguments.records, arguments.designs)
                bins = np.array([histogram(x, convention, j) for j, x in enumerate(found)])
                mix = np.array([scored_advantage(x).value for x in found])
                error = bins.std(ddof=1) / np.sqrt(len(bins))
                line += ["|", f"{bins.mean():.3f}±{error:.3f}", f"{mix.mean():.3f}"]
            print(*line, flush=True)


if __name__ == "__main__":
    main()
