"""Run every case of ``frozen.py``: against what was frozen, or to freeze it.

python tests/reference/freeze.py             # what moved, by engine
python tests/reference/freeze.py --write     # frozen.npz and frozen.json anew
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from frozen import CASES, Arrays

ARRAYS = Path(__file__).with_name("frozen.npz")
TOLERANCES = Path(__file__).with_name("frozen.json")
STATUS = "confirmed"


@dataclass(frozen=True)
class Comparison:
    """One case: its largest difference, and that as a share of what is tolerated.

    ``confirmed`` counts units: before, now, and now but not before.
    """

    name: str
    engine: str
    numbers: int
    difference: float
    share: float
    worst: str
    confirmed: tuple[int, int, int]


def arrays_of(name: str) -> Arrays:
    """What a case gives today."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = CASES[name].run()
    return {
        array: np.asarray(values, dtype=bool if array == STATUS else np.float64)
        for array, values in arrays.items()
    }


@cache
def frozen_cases() -> dict[str, Any]:
    """The cases that were frozen, with their tolerances."""
    return dict(json.loads(TOLERANCES.read_text(encoding="utf-8"))["cases"])


def frozen_arrays(name: str) -> Arrays:
    """What a case gave when it was frozen."""
    with np.load(ARRAYS) as stored:
        return {array: stored[f"{name}/{array}"] for array in frozen_cases()[name]["arrays"]}


def _shares(before: Any, now: Any, tolerance: Mapping[str, Any]) -> tuple[Any, Any]:
    """Differences, and what part of the tolerance they are; one of each for a root mean square."""
    if not before.size:
        return np.zeros(1), np.zeros(1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(now - before)
    apart[(now == before) | (np.isnan(now) & np.isnan(before))] = 0.0
    apart[np.isnan(apart)] = np.inf
    size = np.where(np.isfinite(before), np.abs(before), 0.0)
    if tolerance["rms"]:
        apart, size = (np.sqrt(np.mean(values**2, keepdims=True)) for values in (apart, size))
    return apart, apart / (tolerance["absolute"] + tolerance["relative"] * size)


def compared(name: str) -> Comparison:
    """A case today against what was frozen of it."""
    described, before, now = frozen_cases()[name], frozen_arrays(name), arrays_of(name)
    if set(now) != set(before):
        raise AssertionError(f"{name}: arrays {sorted(now)}, frozen {sorted(before)}.")
    status, status_now = before.pop(STATUS, None), now.pop(STATUS, None)
    numbers, difference, share, worst = 0, 0.0, 0.0, ""
    for array, old in before.items():
        new = now[array]
        if new.shape != old.shape:
            raise AssertionError(f"{name}, {array}: shape {new.shape}, frozen {old.shape}.")
        if described["confirmed_only"] and status is not None:
            old, new = old[status], new[status]
        apart, shares = _shares(np.atleast_1d(old), np.atleast_1d(new), described["arrays"][array])
        numbers += old.size
        difference = max(difference, float(apart.max()))
        if float(shares.max()) > share:
            share, worst = float(shares.max()), array
    counts = (0, 0, 0)
    if status is not None and status_now is not None:
        counts = (int(status.sum()), int(status_now.sum()), int((status_now & ~status).sum()))
    return Comparison(name, described["engine"], numbers, difference, share, worst, counts)


def by_engine(comparisons: Iterable[Comparison]) -> list[str]:
    """One line for each engine: how many numbers, and the largest differences."""
    engines = defaultdict(list)
    for one in comparisons:
        engines[one.engine].append(one)
    lines = [
        f"{'engine':26}{'cases':>6}{'numbers':>9}{'largest':>10}{'of tolerance':>13}"
        f"{'confirmed':>11}{'now':>7}{'new':>6}  where"
    ]
    for engine, cases in sorted(engines.items()):
        worst = max(cases, key=lambda one: one.share)
        before, now, new = (sum(one.confirmed[i] for one in cases) for i in range(3))
        lines.append(
            f"{engine:26}{len(cases):6}{sum(one.numbers for one in cases):9,}"
            f"{max(one.difference for one in cases):10.1e}{worst.share:13.2g}"
            f"{before:11,}{now:7,}{new:6,}  {worst.name} {worst.worst}"
        )
    return lines


def write() -> None:
    """Both files, whole or not at all."""
    arrays, cases = {}, {}
    for name, case in CASES.items():
        values = arrays_of(name)
        arrays |= {f"{name}/{array}": value for array, value in values.items()}
        cases[name] = {
            "engine": case.engine,
            "confirmed_only": case.confirmed_only,
            "arrays": {array: asdict(case.tolerance_of(array)) for array in values},
        }
    git = ["git", "-C", str(ARRAYS.parent), "rev-parse", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    np.savez_compressed(ARRAYS, **arrays)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
    text = f'{{"commit": "{commit}", "cases": {{\n{lines}\n}}}}\n'
    TOLERANCES.write_text(text, encoding="utf-8")
    size = sum(value.size for value in arrays.values())
    print(
        f"{len(cases)} cases, {len(arrays)} arrays, {size:,} numbers, {ARRAYS.stat().st_size:,} B"
    )


def main() -> int:
    """The command; 1 where something moved further than is tolerated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="freeze anew: overwrites both files")
    if parser.parse_args().write:
        write()
        return 0
    comparisons = [compared(name) for name in frozen_cases()]
    print("\n".join(by_engine(comparisons)))
    return int(any(one.share > 1.0 for one in comparisons))


if __name__ == "__main__":
    sys.exit(main())
