"""Mixture over 2,000 designs against the histogram of 100,000 draws, both against a long run.

    python benchmarks/linear_histogram.py [--only NAME] [--long 20000] [--repeats 10]

Small versions of the three other data models in both conventions, on both sides of p = n and close
to it; ``fourier exact`` is the published series in exact arithmetic.  The long run is a mixture
over designs of its own, ``long`` of them.  A repetition's mixture has 2,000 fresh designs; its
histograms are of 100,000 predictions of each kind, each from a design drawn among the repetitions'
designs.  Errors are root mean squares against the long run, the bias beside them; the last column
says which of the two has the smaller error.
"""

from __future__ import annotations

import argparse

import numpy as np

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.laws import LawPair
from leakscope.linear.data_models import design_law, design_moments
from leakscope.measures import scored_advantage
from papers.linear_histogram import histogram_advantage

SHORT, DRAWS = 2_000, 100_000


def models() -> dict[str, linear.DataModel]:
    found: dict[str, linear.DataModel] = {}
    for convention in ("text", "published"):
        for p in (12, 18, 24, 40, 100):
            found[f"latent {convention} 20/{p}"] = linear.LatentSpace(
                20, p, 4, convention=convention
            )
        for p in (4, 8, 12, 20, 40, 64):
            found[f"fourier {convention} 12/{p}"] = linear.FourierSeries(
                12, p, times=64, convention=convention
            )
        for p in (12, 18, 24, 40, 100):
            found[f"relu {convention} 20/{p}"] = linear.RandomRelu(
                20, p, 100, convention=convention
            )
    for p in (8, 12, 20, 40):
        found[f"fourier exact 12/{p}"] = linear.FourierSeries(
            12, p, times=64, convention="published", rounding=False
        )
    return found


class World:
    """One model at one record, with designs drawn ahead."""

    def __init__(self, model: linear.DataModel, designs: int, key: Key) -> None:
        self.model, self.query = model, model.query(key.child(0))
        self.settled, self.label = model.settled(self.query), model.label_variance(self.query)
        sides, _ = design_moments(model, self.query, designs=designs, random_state=key.child(1))
        self.member, self.nonmember = (side[0].reshape(designs, -1) for side in sides)
        self.provenance = linear.data_model_law_pair(
            model, self.query, designs=2, random_state=0
        ).provenance

    def pair(self, which: slice | np.ndarray) -> LawPair:
        laws = [
            design_law(np.stack([side[which].ravel()] * 2), self.label, share)
            for side, share in ((self.member, 0.0), (self.nonmember, self.settled))
        ]
        return LawPair(*laws, self.provenance)

    def advantage(self, which: slice | np.ndarray) -> float:
        return scored_advantage(self.pair(which), designs=self.member[which].shape[0]).value

    def predictions(self, which: slice, draws: int, rng: np.random.Generator) -> list[np.ndarray]:
        found = []
        for side, settled in ((self.member, 0.0), (self.nonmember, self.settled)):
            variance = rng.choice(side[which].ravel(), draws)
            variance[rng.random(draws) < settled] = self.label
            found.append(np.sqrt(variance) * rng.standard_normal(draws))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append")
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    print("model | long run | mixture: bias, error | text histogram | published histogram | wins")
    for name, model in models().items():
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        fresh = arguments.repeats * SHORT
        world = World(model, fresh + arguments.long, Key(11))
        truth = world.advantage(slice(fresh, None))
        rng = np.random.default_rng(3)
        found: dict[str, list[float]] = {"mixture": [], "text": [], "published": []}
        for repeat in range(arguments.repeats):
            part = slice(repeat * SHORT, (repeat + 1) * SHORT)
            found["mixture"].append(world.advantage(part))
            drawn = world.predictions(slice(0, fresh), DRAWS, rng)
            for convention in ("text", "published"):
                found[convention].append(histogram_advantage(*drawn, convention=convention))
        line, errors = [f"{name:24s} | {truth:.4f}"], []
        for values in found.values():
            gap = np.array(values) - truth
            errors.append(float(np.sqrt((gap**2).mean())))
            line.append(f"| {gap.mean():+.4f} {errors[-1]:.4f}")
        line.append("| mixture" if errors[0] < min(errors[1:]) else "| HISTOGRAM")
        print(*line, flush=True)


if __name__ == "__main__":
    main()
