"""The query that gives most away, found by climbing (lood Section 4, App. D.4 and E).

An attacker who knows all records but one, and the laws of the model's answers with and without it,
can look for the query at which the two differ most.  Since that query is the record itself
(docs/attack_query.md), the search reconstructs it.  :mod:`leakscope.lood.query_climb` has the
formulas and the climbing.

How near a search came to the records it looked for has three views: the objective there against the
records' own, distances (in the features, and in the kernel's own geometry), and what the trained
model answers (the paper's Fig. 2(c), after Balle et al. 2022, Section V.B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope._numerics.x64 import double_precision, require_jax
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair
from leakscope.lood.dense import all_records
from leakscope.lood.distinguish import answers_pair, distinguish
from leakscope.lood.influence import influence
from leakscope.lood.inputs import checked_group, checked_targets, real_numbers
from leakscope.lood.separation import leaving_out
from leakscope.settings.attack import QUERY_DEFAULTS

if TYPE_CHECKING:
    from leakscope.lood.query_climb import Climb, Normalised, Objective, Problem

SearchBegin = Literal["box", "both"]
SearchClimb = Literal["auto", "lood", "correlation"]

# Arrays of (starts x queries) by records that a step may hold at once, with its derivative.
ALIVE = 24

# How far a start is moved from the record it was drawn at, as a share of the box's width.
NEAR = 0.1


@dataclass(frozen=True)
class QuerySearch:
    """The best queries found for a left-out record or group, and how near they came to it.

    Attributes
    ----------
    leave_out
        Row numbers of the group (one record: one number).
    objective, climb
        What was maximised, and what was followed uphill to do so.
    query
        (q, d) the best set of queries over all starts.
    lood, lood_at_record
        The objective at the best queries and at the group's own points.
    nearest, distance, relative_distance
        (q,) for each query the row of the nearest record of the group, the Euclidean distance to
        it, and that distance as a share of the one from that record to its own nearest neighbour
        (NaN where that is a twin, a record with the same features).
    cosine
        (q,) of the angle between the query and that record: a kernel without bias and with a
        homogeneous activation does not see a query's length.
    prediction_kl
        (q,) KL from the model's answer at that record to its answer at the query, both of the
        model trained on all records: 0 where the two cannot be told apart.
    queries, values
        (S, q, d) where each start ended, (S,) the objective there.
    recovered
        (S, g) whether some query of that start ended at that record: nearer to it, in the kernel's
        own distance, than half the way to its nearest neighbour that is no twin.
    trace
        (steps + 1, S) the objective along the way.
    """

    leave_out: tuple[int, ...]
    objective: Objective
    climb: Climb
    query: FloatArray
    lood: float
    lood_at_record: float
    nearest: NDArray[np.intp]
    distance: FloatArray
    relative_distance: FloatArray
    cosine: FloatArray
    prediction_kl: FloatArray
    queries: FloatArray
    values: FloatArray
    recovered: NDArray[np.bool_]
    trace: FloatArray

    @property
    def ratio(self) -> float:
        """LOOD at the best queries over LOOD at the group's own points.

        At most 1 for KL, up to rounding, whatever the kernel and the number of queries: the
        function's values at the group are sufficient.  Data-dependent normalisation is the
        exception, and the mean distance has no such bound.
        """
        return self.lood / self.lood_at_record

    @property
    def starts_recovered(self) -> int:
        """How many starts ended at a record of the group."""
        return int(self.recovered.any(axis=1).sum())


def search_query(
    X: ArrayLike,
    y: ArrayLike,
    *,
    leave_out: Sequence[int],
    kernel: Kernel,
    noise_variance: float,
    queries: int = QUERY_DEFAULTS.queries,
    objective: Objective = QUERY_DEFAULTS.objective,
    climb: SearchClimb = "auto",
    starts: int = QUERY_DEFAULTS.starts,
    begin: SearchBegin = "box",
    steps: int = QUERY_DEFAULTS.steps,
    step_size: float = 0.02,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    normalise_channels: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> QuerySearch:
    """Look for the queries at which the models with and without a group differ most.

    X and y are used as they are; the prior mean is zero.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, C).
    leave_out
        Row numbers of the records that leave together.
    kernel
        From :mod:`leakscope.kernels`: rbf, matern (nu 0.5, 1.5, 2.5), linear or a network.
    noise_variance
        s2, in squared units of the target.
    queries
        How many are asked together.
    objective
        ``"kl"``, KL(without || with), or ``"mean_distance"``.
    climb
        ``"lood"`` follows the objective, as the paper does.  ``"correlation"`` follows the signed
        correlation of the answer with the record's own, which has the same maximum for one record
        and one query and avoids the paper's colour-flipped queries.  ``"auto"`` takes the latter
        where it applies.
    starts, steps
        How many starts; each takes so many steps.
    begin
        Where they are drawn from: ``"box"``, uniformly, as in the paper, or ``"both"``: every
        second one is a record that the attacker knows, moved a little.  Far from all records a
        stationary kernel is flat, and there is nothing to climb.
    step_size
        Adam's first step, as a share of the box's width.
    box
        Least and largest values of the query's features, numbers or one a feature, such as
        ``(0, 255)`` for pixels; each feature's range over all records where left out.
    normalise_channels
        The model normalises its inputs by the mean and deviation of its own training set (App.
        D.4), for so many channels: 3 for rows of RGB pixels, channels last; 1 for one mean over
        everything; the number of features for one each.  None: preprocessing is fixed.
    random_state
        For the starts.

    Examples
    --------
    Three records that leave together, and three queries:

    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> found = lood.search_query(X, X[:, 0], leave_out=[1, 2, 3], queries=3,
    ...                           kernel=kernels.rbf(2.0), noise_variance=0.01)
    >>> found.query.shape, found.recovered.shape, found.ratio <= 1.0
    ((3, 4), (8, 3), True)
    """
    rows, targets, group = _checked_search(X, y, leave_out)
    _require_at_least_one(queries, starts, steps)
    count, features = rows.shape
    require_memory(
        8 * (3 * count * count + starts * queries * (ALIVE * count + 8 * features)),
        f"the search from {starts} starts over {count} records",
        "take fewer starts",
    )
    followed = _what_to_follow(climb, objective, len(group), queries, normalise_channels)
    low, high = checked_box(box, rows)
    places = _starting_points(
        begin, rows, group, (low, high), (starts, queries), as_key(random_state)
    )
    # JAX is imported when a search runs, and not by those who only audit.
    require_jax("The search for queries")
    from leakscope.lood import query_climb

    problem: Problem
    if normalise_channels is None:
        mean, deviation = np.zeros(features), np.ones(features)
        resolved = kernel.resolved(rows)
        problem = query_climb.fixed_problem(rows, targets, group, resolved, noise_variance)
    else:
        mean, deviation = query_climb.channel_statistics(rows, normalise_channels)
        resolved = kernel.resolved((rows - mean) / deviation)
        problem = query_climb.normalised_problem(
            rows, targets, group, resolved, noise_variance, normalise_channels
        )
    with double_precision():
        places, trace = query_climb.adam(
            resolved, followed, problem, places, (low, high), steps=steps, step_size=step_size
        )
        values = np.asarray(query_climb.lood(resolved, objective, problem, places))
        best = places[int(np.nanargmax(values))]
        if isinstance(problem, query_climb.Fixed):
            answers = _answers_at(rows, targets, group, resolved, noise_variance, best, objective)
        else:
            answers = _normalised_answers(problem, resolved, rows[group], best, objective)
    ended = _Ended(objective, followed, places, values, trace)
    return _result(rows, group, resolved, answers, ended, (mean, deviation))


def _starting_points(
    begin: str,
    rows: FloatArray,
    group: NDArray[np.intp],
    box: tuple[FloatArray, FloatArray],
    shape: tuple[int, int],
    key: Key,
) -> FloatArray:
    """(starts, queries, d) points of the box; of both, every second start is at known records."""
    low, high = box
    generator = key.generator()
    starts = generator.uniform(low, high, size=(*shape, rows.shape[1]))
    if begin == "both":
        known = np.setdiff1d(np.arange(len(rows)), group)
        chosen = rows[generator.choice(known, size=shape)]
        moved = chosen + NEAR * (high - low) * generator.standard_normal(chosen.shape)
        starts[1::2] = np.clip(moved, low, high)[1::2]
    return np.asarray(starts)


def _checked_search(
    X: ArrayLike, y: ArrayLike, leave_out: Sequence[int]
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Rows, targets and the group as arrays, or a sentence that says what is wrong."""
    rows = real_numbers(X, "X")
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(
            f"X must be rows of features, at least two, but its shape is {rows.shape}."
        )
    group = checked_group(leave_out, len(rows))
    if len(group) == len(rows):
        raise InputError("leave_out names every record; at least one must stay.")
    return rows, checked_targets(y, len(rows), "X"), group


def checked_box(
    box: tuple[ArrayLike, ArrayLike] | None, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest values, one a feature."""
    if box is None:
        return rows.min(axis=0), rows.max(axis=0)
    try:
        low, high = (
            np.array(np.broadcast_to(np.asarray(side, dtype=np.float64), rows.shape[1]))
            for side in box
        )
    except ValueError:
        raise InputError(
            f"the sides of the box must be numbers, or one for each of {rows.shape[1]} features."
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InputError("the box must be finite, and its least values not above its largest.")
    return low, high


def _what_to_follow(
    climb: str, objective: str, records: int, queries: int, channels: int | None
) -> Climb:
    """What to follow uphill, or a sentence that says why it cannot be."""
    if objective not in ("kl", "mean_distance"):
        raise InputError(f"objective must be kl or mean_distance, but it is {objective!r}.")
    if climb not in ("auto", "lood", "correlation"):
        raise InputError(f"climb must be auto, lood or correlation, but it is {climb!r}.")
    applies = objective == "kl" and records == queries == 1 and channels is None
    if climb == "correlation" and not applies:
        raise InputError(
            "climb='correlation' is for one record, one query, the objective kl and fixed "
            "preprocessing."
        )
    if climb != "lood" and applies:
        return "correlation"
    return "kl" if objective == "kl" else "mean_distance"


# A query has recovered a record when it is nearer to it, in the kernel's own distance, than this
# share of the way to the record's nearest neighbour; no other record can then be nearer, except a
# twin, which nothing tells apart from it.
RECOVERED_WITHIN = 0.5

# What rounding leaves of a distance of zero: of sqrt(1 - rho), squared, and of rows beside their
# own length.
SAME_TO_KERNEL = 64 * float(np.finfo(np.float64).eps)
SAME_ROW = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class _Answers:
    """LOOD at the queries and at the group's own points, and the trained model's answers there.

    The model is the one trained on all records; means are (q + g, C), the queries first, and
    variances (q + g,).
    """

    lood: float
    lood_at_record: float
    mean: FloatArray
    variance: FloatArray

    def prediction_kl(self, places: NDArray[np.intp]) -> FloatArray:
        """(q,) KL(answer at the group's record ``places[j]`` || answer at query j)."""
        asked = np.arange(len(places))
        own = len(places) + places
        sigma = np.sqrt(self.variance)[:, None]
        pair = LawPair(Normal(self.mean[asked], sigma[asked]), Normal(self.mean[own], sigma[own]))
        return np.asarray(np.asarray(measures.kl(pair)).sum(axis=1))


def _answers_at(
    rows: FloatArray,
    targets: FloatArray,
    group: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
    queries: FloatArray,
    objective: Objective,
) -> _Answers:
    """By the identities of :mod:`leakscope.lood.distinguish`, without the search's own code."""
    there, everywhere = (
        distinguish(
            rows,
            targets,
            leave_out=[int(i) for i in group],
            queries=asked,
            kernel=kernel,
            noise_variance=noise_variance,
        )
        for asked in (queries, np.concatenate([queries, rows[group]]))
    )
    # The queries add nothing to the group's own points, so that the second pair has their KL.
    values = (there.kl, everywhere.kl)
    if objective == "mean_distance":
        own = everywhere.mean_shift[len(queries) :]
        values = (there.mean_distance, 0.5 * float(np.sum(own**2)))
    tiny = np.finfo(np.float64).tiny
    return _Answers(
        *values,
        mean=everywhere.mean_with.reshape(len(queries) + len(group), -1),
        variance=np.maximum(np.diagonal(everywhere.covariance_with), tiny),
    )


def _normalised_answers(
    problem: Normalised,
    kernel: Kernel,
    own: FloatArray,
    queries: FloatArray,
    objective: Objective,
) -> _Answers:
    """The same under data-dependent normalisation.  Called with JAX in 64 bits."""
    from leakscope.lood.query_climb import lood

    fit = problem.with_group
    asked = (np.concatenate([queries, own]) - fit.mean) / fit.deviation
    cross = kernel(asked, np.asarray(fit.rows))
    half = cross @ np.asarray(fit.inverse_factor).T
    variance = kernel.diagonal(asked) - np.einsum("ij,ij->i", half, half)
    return _Answers(
        lood=float(lood(kernel, objective, problem, queries[None])[0]),
        lood_at_record=float(lood(kernel, objective, problem, own[None])[0]),
        mean=cross @ np.asarray(fit.a),
        variance=np.maximum(variance, np.finfo(np.float64).tiny),
    )


def normalised_pair(
    X: ArrayLike,
    y: ArrayLike,
    *,
    leave_out: Sequence[int],
    kernel: Kernel,
    noise_variance: float,
    channels: int,
    queries: ArrayLike | None = None,
) -> LawPair:
    """The laws of the answers where the model normalises its inputs by its own data (App. D.4).

    Arguments as for `search_query`; the group's own points where ``queries`` are left out.  Both
    models are fitted, for a record that leaves moves the statistics and with them every input.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, measures
    >>> from leakscope.lood.query_search import normalised_pair
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> pair = normalised_pair(X, X[:, 0], leave_out=[3], kernel=kernels.rbf(2.0),
    ...                        noise_variance=0.01, channels=1)
    >>> 0.0 < float(measures.advantage(pair)) < 1.0
    True
    """
    from leakscope.lood import query_climb

    rows, targets, group = _checked_search(X, y, leave_out)
    asked = rows[group] if queries is None else real_numbers(queries, "queries")
    mean, deviation = query_climb.channel_statistics(rows, channels)
    resolved = kernel.resolved((rows - mean) / deviation)
    with double_precision():
        problem = query_climb.normalised_problem(
            rows, targets, group, resolved, noise_variance, channels
        )
        answers = []
        for fit in problem:
            scaled = (asked - np.asarray(fit.mean)) / np.asarray(fit.deviation)
            cross = resolved(scaled, np.asarray(fit.rows))
            half = cross @ np.asarray(fit.inverse_factor).T
            answers.append((cross @ np.asarray(fit.a), resolved(scaled) - half @ half.T))
    provenance = leaving_out(
        f"lood App. D.4, {len(group)} left out, {len(asked)} queries, by two fits",
        noise_variance,
        Assumption("the model normalises its inputs by the statistics of its own training set"),
        group=True,
    )
    (mean_with, inside), (mean_without, outside) = answers
    return answers_pair(mean_with - mean_without, inside, outside, provenance)


@dataclass(frozen=True)
class Nearness:
    """For each query the place in the group of the nearest record, and how near it is."""

    place: NDArray[np.intp]
    distance: FloatArray
    relative_distance: FloatArray
    cosine: FloatArray


def nearness(rows: FloatArray, group: NDArray[np.intp], queries: FloatArray) -> Nearness:
    """Euclidean distances, as they are and relative to each record's nearest neighbour.

    The relative distance is NaN where that neighbour is a twin: it is no distance away.
    """
    apart = np.linalg.norm(queries[:, None, :] - rows[group][None, :, :], axis=2)
    place = np.argmin(apart, axis=1)
    distance = apart[np.arange(len(queries)), place]
    neighbours = np.array([_nearest_other(rows, int(i)) for i in group])
    record = rows[group[place]]
    lengths = np.linalg.norm(queries, axis=1) * np.linalg.norm(record, axis=1)
    tiny = np.finfo(np.float64).tiny
    cosine = np.sum(queries * record, axis=1) / np.maximum(lengths, tiny)
    return Nearness(place, distance, distance / neighbours[place], cosine)


def twins(rows: FloatArray, record: int) -> NDArray[np.intp]:
    """The row numbers of other records with the same features, up to rounding."""
    same = _distances(rows, record) <= SAME_ROW * np.linalg.norm(rows[record])
    return np.flatnonzero(same)


def _nearest_other(rows: FloatArray, record: int) -> float:
    """The distance to the nearest neighbour; NaN where that is a twin."""
    if len(twins(rows, record)):
        return float("nan")
    return float(_distances(rows, record).min())


def _distances(rows: FloatArray, record: int) -> FloatArray:
    apart = np.linalg.norm(rows - rows[record], axis=1)
    apart[record] = np.inf
    return np.asarray(apart)


def recovered_records(
    kernel: Kernel, rows: FloatArray, group: NDArray[np.intp], queries: FloatArray
) -> NDArray[np.bool_]:
    """(S, g) whether some query of each start, (S, q, d), ended at each record of the group.

    The distance is that of the two functions' values as the kernel sees them, up to scale:
    sqrt(1 - rho) with rho = k(x, z)/sqrt(k(x, x) k(z, z)).  The neighbour that says what is near
    is the nearest that the kernel tells apart from the record.
    """
    starts, count, features = queries.shape
    asked = queries.reshape(-1, features)
    tiny = np.finfo(np.float64).tiny
    own = np.sqrt(np.maximum(kernel.diagonal(rows), tiny))
    there = np.sqrt(np.maximum(kernel.diagonal(asked), tiny))
    between = 1.0 - kernel(rows[group], rows) / np.outer(own[group], own)
    between[np.arange(len(group)), group] = np.inf
    squared = 1.0 - kernel(asked, rows[group]) / np.outer(there, own[group])
    between[between <= SAME_TO_KERNEL] = np.inf
    nearest = between.min(axis=1)
    within = np.where(np.isfinite(nearest), RECOVERED_WITHIN**2 * nearest, SAME_TO_KERNEL)
    near = squared <= within
    return np.asarray(near.reshape(starts, count, len(group)).any(axis=1))


def search_each(
    X: ArrayLike,
    y: ArrayLike,
    *,
    records: Sequence[int],
    kernel: Kernel,
    noise_variance: float,
    queries: int = QUERY_DEFAULTS.queries,
    climb: SearchClimb = "auto",
    starts: int = 1,
    steps: int = QUERY_DEFAULTS.steps,
    step_size: float = 0.02,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> tuple[QuerySearch, ...]:
    """:func:`search_query` for each of several records left out alone, in one climb: KL, Adam.

    The searches share the factorisation and every product with the records, so that a hundred of
    them cost little more than one.  Every record has its own starts, which do not depend on the
    other records in the list.  With several ``queries`` asked together, ``lood`` is the search's
    own value, in place of one by identities that share nothing with it.
    """
    rows, targets, chosen = _checked_search(X, y, records)
    _require_at_least_one(queries, starts, steps)
    count, features = rows.shape
    sets = len(chosen) * starts
    require_memory(
        8 * (3 * count * count + sets * queries * (ALIVE * count + 8 * features)),
        f"{sets} searches over {count} records",
        "take fewer records or starts at a time",
    )
    followed = _what_to_follow(climb, "kl", 1, queries, None)
    low, high = checked_box(box, rows)
    key = as_key(random_state)
    begin = np.concatenate(
        [
            key.child(int(i)).generator().uniform(low, high, size=(starts, queries, features))
            for i in chosen
        ]
    )
    # JAX is imported when a search runs, and not by those who only audit.
    require_jax("The search for queries")
    from leakscope.lood import query_climb

    resolved = kernel.resolved(rows)
    problem = query_climb.fixed_problems(
        rows, targets, np.repeat(chosen, starts), resolved, noise_variance
    )
    with double_precision():
        places, trace = query_climb.adam(
            resolved, followed, problem, begin, (low, high), steps=steps, step_size=step_size
        )
        values = np.asarray(query_climb.lood(resolved, "kl", problem, places))
    shape = (len(chosen), starts)
    places, values = places.reshape(*shape, queries, features), values.reshape(shape)
    trace = trace.reshape(-1, *shape)
    # What is reported comes from identities that are not the search's own.
    start = np.nanargmax(values, axis=1)
    asked = places[np.arange(len(chosen)), start].reshape(-1, features)
    there = influence(rows, targets, asked, resolved, noise_variance)
    own = all_records(resolved(rows), targets, noise_variance=noise_variance)
    mean_there = resolved(asked, rows) @ there.a
    mean_own = own.mean_with.reshape(count, -1)
    found = []
    for j, record in enumerate(chosen):
        own_queries = slice(j * queries, (j + 1) * queries)
        answers = _Answers(
            lood=float(there.kl[record, j] if queries == 1 else values[j, start[j]]),
            lood_at_record=float(own.kl[record]),
            mean=np.concatenate([mean_there[own_queries], mean_own[[record]]]),
            variance=np.append(there.variance_with[own_queries], own.variance_with[record]),
        )
        ended = _Ended("kl", followed, places[j], values[j], trace[:, j])
        found.append(_result(rows, chosen[j : j + 1], resolved, answers, ended))
    return tuple(found)


class _Ended(NamedTuple):
    """Where the starts of a search ended: queries (S, q, d), values (S,), traces (steps + 1, S)."""

    objective: Objective
    climb: Climb
    places: FloatArray
    values: FloatArray
    trace: FloatArray


def _result(
    rows: FloatArray,
    group: NDArray[np.intp],
    kernel: Kernel,
    answers: _Answers,
    ended: _Ended,
    statistics: tuple[FloatArray | float, FloatArray | float] = (0.0, 1.0),
) -> QuerySearch:
    """The search's result; ``statistics`` are the mean and deviation it normalises by."""
    best = ended.places[int(np.nanargmax(ended.values))]
    near = nearness(rows, group, best)
    mean, deviation = statistics
    return QuerySearch(
        leave_out=tuple(int(i) for i in group),
        objective=ended.objective,
        climb=ended.climb,
        query=best,
        lood=answers.lood,
        lood_at_record=answers.lood_at_record,
        nearest=group[near.place],
        distance=near.distance,
        relative_distance=near.relative_distance,
        cosine=near.cosine,
        prediction_kl=answers.prediction_kl(near.place),
        queries=ended.places,
        values=ended.values,
        recovered=recovered_records(
            kernel, (rows - mean) / deviation, group, (ended.places - mean) / deviation
        ),
        trace=ended.trace,
    )


def _require_at_least_one(queries: int, starts: int, steps: int) -> None:
    if queries < 1 or starts < 1 or steps < 1:
        raise InputError(
            f"queries, starts and steps must be at least 1, but they are {queries}, {starts} and "
            f"{steps}."
        )
