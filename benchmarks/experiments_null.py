"""Do attacks report leakage where there is none?  Retraining with a function that ignores records.

    python benchmarks/experiments_null.py [SEEDS]

For every seed a run of its own: models with a record and without it, whose answers do not depend on
it, attacked three ways.  Leakage is reported where the 95% interval of the AUC lies above one half.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from leakscope import measures
from leakscope.attacking import likelihood_ratio, loss_threshold, relative
from leakscope.running.cell_store import open_cells, read_cells
from leakscope.verifying import FunctionTrainer, RetrainingPlan, retrain


def ignores(X, y, seed):
    weights = np.random.default_rng(seed).normal(size=X.shape[1])
    return lambda Q: Q @ weights


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    print("| models a side | likelihood ratio | loss | relative |")
    print("|---|---|---|---|")
    for models in (16, 32, 64):
        reports = np.zeros(3, dtype=int)
        plan = RetrainingPlan((7,), models=models, models_per_cell=models, auc_half_width=None)
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder, "run")
                with open_cells(place, settings=plan.describe(), seed=seed) as store:
                    found = retrain(
                        X, y, FunctionTrainer(ignores), plan, store, seed=seed, population=X[:20]
                    )
                with read_cells(place) as store:
                    without = next(c for c in store.cells() if c.name.startswith("without"))
            record = found.records[0]
            pairs = (
                likelihood_ratio(record.member, record.nonmember),
                loss_threshold(record.member, record.nonmember, record.target),
                relative(
                    record.member,
                    record.nonmember,
                    record.target,
                    member_population=found.population_member,
                    nonmember_population=without.arrays["answers"][:, 1:],
                    population_target=y[:20],
                ),
            )
            reports += [bool(measures.auc(pair).low > 0.5) for pair in pairs]
        print(f"| {models} | " + " | ".join(f"{n} of {seeds}" for n in reports) + " |", flush=True)


if __name__ == "__main__":
    main()
