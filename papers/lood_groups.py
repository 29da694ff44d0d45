"""Three records left out together, and the queries that climb to them (lood Fig. 3, App. E.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels, lood
from leakscope.laws import Key
from papers.arrays import FloatArray

KNOBS = {"noise_variance": 0.01, "depth": 5, "records": 1000}
QUICK = {"depth": 3, "records": 100}
GROUP = 3
QUERIES = (1, 3)
RANKS = ("most exposed", "middle", "least exposed")


@dataclass(frozen=True)
class GroupRun:
    """One group, searched from several starts with one query and with three.

    Parameters
    ----------
    members
        Rows of the group, the most exposed first: by the LOOD of the group at that record.
    single
        (3,) the group's LOOD at each member's own point, asked alone.
    found
        By how many queries were asked together.
    """

    members: tuple[int, ...]
    single: FloatArray
    found: dict[int, lood.QuerySearch]


def run_group(
    X: FloatArray,
    y: FloatArray,
    rows: Sequence[int] | NDArray[np.intp],
    kernel: kernels.Kernel,
    key: Key,
    *,
    noise_variance: float,
    starts: int,
    steps: int = 300,
) -> GroupRun:
    """Search for the queries that tell the models with and without the group apart."""
    alone = {
        int(row): lood.distinguish(
            X,
            y,
            leave_out=[int(i) for i in rows],
            queries=X[[row]],
            kernel=kernel,
            noise_variance=noise_variance,
        ).kl
        for row in rows
    }
    members = tuple(sorted(alone, key=lambda row: -alone[row]))
    found = {
        count: lood.search_query(
            X,
            y,
            leave_out=members,
            queries=count,
            kernel=kernel,
            noise_variance=noise_variance,
            climb="lood",
            starts=starts,
            steps=steps,
            box=(0.0, 1.0),
            random_state=key.child(count),
        )
        for count in QUERIES
    }
    return GroupRun(members, np.array([alone[row] for row in members]), found)


def run_groups(
    X: FloatArray,
    y: FloatArray,
    groups: int,
    kernel: kernels.Kernel,
    key: Key,
    *,
    noise_variance: float,
    starts: int,
    steps: int = 300,
) -> list[GroupRun]:
    """The same for several groups drawn at random."""
    runs = []
    for number in range(groups):
        rows = key.child(0, number).generator().choice(len(y), GROUP, replace=False)
        runs.append(
            run_group(
                X,
                y,
                rows,
                kernel,
                key.child(1, number),
                noise_variance=noise_variance,
                starts=starts,
                steps=steps,
            )
        )
    return runs
