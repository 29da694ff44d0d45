"""Many records, each with a search of its own, in one climb.

The searches share the factorisation and every product with the records, so that a hundred of them
cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError
from leakscope.kernels import Kernel
from leakscope.lood.all_records import all_records
from leakscope.lood.influence import influence
from leakscope.lood.query_search import (
    ALIVE,
    QuerySearch,
    checked_box,
    checked_search,
    what_to_follow,
)
from leakscope.settings import QUERY_DEFAULTS, SearchClimb

if TYPE_CHECKING:
    from leakscope.lood.search_objective import Climb


def search_each(
    X: ArrayLike,
    y: ArrayLike,
    *,
    records: Sequence[int],
    kernel: Kernel,
    noise_variance: float,
    queries: int = QUERY_DEFAULTS.queries,
    climb: SearchClimb = QUERY_DEFAULTS.climb,
    starts: int = 1,
    steps: int = QUERY_DEFAULTS.steps,
    step_size: float = 0.02,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> tuple[QuerySearch, ...]:
    """:func:`search_query` for each of several records left out alone: KL, Adam.

    Every record has its own starts, which do not depend on the other records in the list.  With
    several ``queries`` asked together, ``lood`` is the search's own value, in place of one by
    identities that share nothing with it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> found = lood.search_each(X, X[:, 0], records=[3, 5, 8], kernel=kernels.rbf(2.0),
    ...                          noise_variance=0.01, starts=4)
    >>> [one.leave_out for one in found], [one.ratio <= 1.0 + 1e-9 for one in found]
    ([(3,), (5,), (8,)], [True, True, True])
    """
    rows, targets, chosen = checked_search(X, y, records)
    if queries < 1 or starts < 1 or steps < 1:
        raise InputError(
            f"queries, starts and steps must be at least 1, but they are {queries}, {starts} and "
            f"{steps}."
        )
    count, features = rows.shape
    sets = len(chosen) * starts
    require_memory(
        8 * (3 * count * count + sets * queries * (ALIVE * count + 8 * features)),
        f"{sets} searches over {count} records",
        "take fewer records or starts at a time",
    )
    followed = what_to_follow(climb, "kl", 1, queries, None)
    low, high = checked_box(box, rows)
    key = as_key(random_state)
    begin = np.concatenate(
        [
            key.child(int(i)).generator().uniform(low, high, size=(starts, queries, features))
            for i in chosen
        ]
    )
    # JAX is imported when a search runs, and not by those who only audit.
    from leakscope.lood import box_ascent, search_objective

    resolved = kernel.resolved(rows)
    problem = search_objective.fixed_problems(
        rows, targets, np.repeat(chosen, starts), resolved, noise_variance
    )
    with double_precision():
        places, trace = box_ascent.adam(
            resolved, followed, problem, begin, (low, high), steps=steps, step_size=step_size
        )
        values = np.asarray(search_objective.lood(resolved, "kl", problem, places))
    shape = (len(chosen), starts)
    return _results(
        rows,
        targets,
        chosen,
        resolved,
        noise_variance,
        _Ended(
            followed,
            places.reshape(*shape, queries, features),
            values.reshape(shape),
            trace.reshape(-1, *shape),
        ),
    )


@dataclass(frozen=True)
class _Ended:
    """Where the starts of every record ended: what was followed, queries, values, traces."""

    followed: Climb
    places: FloatArray
    values: FloatArray
    trace: FloatArray


def _results(
    rows: FloatArray,
    targets: FloatArray,
    chosen: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
    ended: _Ended,
) -> tuple[QuerySearch, ...]:
    """One result a record, by identities that are not the search's own."""
    from leakscope.lood import recovery

    places, values = ended.places, ended.values
    start = np.nanargmax(values, axis=1)
    best = places[np.arange(len(chosen)), start]
    queries = best.shape[1]
    asked = best.reshape(-1, rows.shape[1])
    there = influence(rows, targets, asked, kernel, noise_variance)
    own = all_records(kernel(rows), targets, noise_variance=noise_variance)
    mean_there = kernel(asked, rows) @ there.a
    mean_own = own.mean_with.reshape(len(rows), -1)
    found = []
    for j, record in enumerate(chosen):
        group = chosen[j : j + 1]
        own_queries = slice(j * queries, (j + 1) * queries)
        near = recovery.nearness(rows, group, best[j])
        answers = recovery.Answers(
            lood=float(there.kl[record, j] if queries == 1 else values[j, start[j]]),
            lood_at_record=float(own.kl[record]),
            mean=np.concatenate([mean_there[own_queries], mean_own[[record]]]),
            variance=np.append(there.variance_with[own_queries], own.variance_with[record]),
        )
        found.append(
            QuerySearch(
                leave_out=(int(record),),
                objective="kl",
                climb=ended.followed,
                query=best[j],
                lood=answers.lood,
                lood_at_record=answers.lood_at_record,
                nearest=group[near.place],
                distance=near.distance,
                relative_distance=near.relative_distance,
                cosine=near.cosine,
                prediction_kl=answers.prediction_kl(near.place),
                queries=places[j],
                values=values[j],
                recovered=recovery.recovered_records(kernel, rows, group, places[j]),
                trace=ended.trace[:, j],
            )
        )
    return tuple(found)
