"""The published curves of Fig. 2(b) and Fig. 5 of **linear**, beside what the text's model gives.

    python benchmarks/linear_published.py [CSV] [--records 20] [--designs 60] [--figure 2b]

CSV has columns figure, p, advantage (read off the authors' figures).  For each point and each
convention: the histogram adversary of that convention with its standard error over records, and the
mixture over designs.  Predictions for the histogram are drawn from the mixture, 100,000 of each
kind, as the paper draws them.  ``5b-exact`` is the published Fourier series in exact arithmetic.
"""

from __future__ import annotations

import argparse
import csv

import numpy as np

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.laws import LawPair
from leakscope.measures import scored_advantage
from papers.linear_5 import fourier, latent, random_relu, record_pairs
from papers.linear_records import each_record, histogram_of_law

POINTS = {
    "2b": [110, 150, 200, 300, 500, 2000],
    "5a-latent": [90, 110, 190, 210, 230, 500, 2000],
    "5b-fourier": [64, 128, 256, 1024],
    "5b-exact": [64, 128, 256, 1024],
    "5c-relu": [50, 90, 110, 400, 4000],
}
CONVENTIONS = ("published", "text")


def model(figure: str, p: int, convention: str) -> linear.DataModel:
    if figure == "5b-exact":
        return fourier(p, convention, rounding=False)
    return {"5a": latent, "5b": fourier, "5c": random_relu}[figure[:2]](p, convention)


def pairs(figure: str, p: int, convention: str, records: int, designs: int) -> list[LawPair]:
    key = Key(5)
    if figure == "2b":
        design = linear.GaussianDesign(100, p, 3000, 1.0)
        norms = linear.RecordNorms.sample(design, records, key)
        batch = linear.law_pair(design, norms, draws=100 * designs, random_state=key)
        return each_record(batch)
    return record_pairs(model(figure, p, convention), records, designs, key)


def histogram(pair: LawPair, convention: str, seed: int) -> float:
    return histogram_of_law(pair, np.random.default_rng(seed), convention=convention)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--records", type=int, default=20)
    parser.add_argument("--designs", type=int, default=60)
    parser.add_argument("--figure", choices=list(POINTS), action="append")
    parser.add_argument("--p", type=int, action="append")
    parser.add_argument("--convention", choices=CONVENTIONS, action="append")
    arguments = parser.parse_args()
    read: dict[tuple[str, int], str] = {}
    if arguments.table:
        with open(arguments.table, encoding="utf-8") as file:
            read = {(r["figure"], int(r["p"])): r["advantage"] for r in csv.DictReader(file)}
    conventions = arguments.convention or CONVENTIONS
    print("figure p read", *(f"| {name}: histogram, mixture" for name in conventions))
    for figure in arguments.figure or POINTS:
        designs = None if figure == "2b" else arguments.designs
        for p in arguments.p or POINTS[figure]:
            line = [figure, str(p), read.get((figure.replace("exact", "fourier"), p), "-")]
            for convention in conventions:
                if figure == "5b-exact" and convention == "text":
                    continue
                found = pairs(figure, p, convention, arguments.records, arguments.designs)
                bins = np.array([histogram(pair, convention, j) for j, pair in enumerate(found)])
                mix = np.array([scored_advantage(pair, designs=designs).value for pair in found])
                error = bins.std(ddof=1) / np.sqrt(len(bins))
                line += ["|", f"{bins.mean():.3f}±{error:.3f}", f"{mix.mean():.3f}"]
            print(*line, flush=True)


if __name__ == "__main__":
    main()
