"""A small table of visits, three of each patient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def write_visits(folder: Path) -> Path:
    random = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 3)
    X = random.normal(size=(40, 2))[patients] + 0.1 * random.normal(size=(120, 2))
    cost = X @ [1.0, -1.0] + random.normal(size=120)
    table = pd.DataFrame({"patient": patients, "age": X[:, 0], "bp": X[:, 1], "cost": cost})
    table.to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"
