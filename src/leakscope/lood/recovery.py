"""How near a query search came to the records it looked for.

Three views: the objective there against the records' own, distances (in the features, and in the
kernel's own geometry), and what the trained model answers (the paper's Fig. 2(c), after Balle et
al. 2022, Section V.B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.kernels import Kernel
from leakscope.laws import LawPair, Normal
from leakscope.lood.distinguish import distinguish

if TYPE_CHECKING:
    from leakscope.lood.search_objective import Normalised, Objective

# A query has recovered a record when it is nearer to it, in the kernel's own distance, than this
# share of the way to the record's nearest neighbour; no other record can then be nearer, except a
# twin, which nothing tells apart from it.
RECOVERED_WITHIN = 0.5

# What rounding leaves of a distance of zero: of sqrt(1 - rho), squared, and of rows beside their
# own length.
SAME_TO_KERNEL = 64 * float(np.finfo(np.float64).eps)
SAME_ROW = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Answers:
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


def answers(
    rows: FloatArray,
    targets: FloatArray,
    group: NDArray[np.intp],
    kernel: Kernel,
    noise_variance: float,
    queries: FloatArray,
    objective: Objective,
) -> Answers:
    """By the identities of :mod:`leakscope.lood.distinguish`, without the search's own code."""
    leave_out = [int(i) for i in group]
    everywhere = distinguish(
        rows,
        targets,
        leave_out=leave_out,
        queries=np.concatenate([queries, rows[group]]),
        kernel=kernel,
        noise_variance=noise_variance,
    )
    there = distinguish(
        rows,
        targets,
        leave_out=leave_out,
        queries=queries,
        kernel=kernel,
        noise_variance=noise_variance,
    )
    # The queries add nothing to the group's own points, so that the first pair has their KL.
    values = (there.kl, everywhere.kl)
    if objective == "mean_distance":
        own = everywhere.mean_shift[len(queries) :]
        values = (there.mean_distance, 0.5 * float(np.sum(own**2)))
    tiny = np.finfo(np.float64).tiny
    return Answers(
        *values,
        mean=everywhere.mean_with.reshape(len(queries) + len(group), -1),
        variance=np.maximum(np.diagonal(everywhere.covariance_with), tiny),
    )


def normalised_answers(
    problem: Normalised,
    kernel: Kernel,
    own: FloatArray,
    queries: FloatArray,
    objective: Objective,
) -> Answers:
    """The same under data-dependent normalisation.  Called with JAX in 64 bits."""
    from leakscope.lood.search_objective import lood

    fit = problem.with_group
    asked = (np.concatenate([queries, own]) - fit.mean) / fit.deviation
    cross = kernel(asked, np.asarray(fit.rows))
    half = cross @ np.asarray(fit.inverse_factor).T
    variance = kernel.diagonal(asked) - np.einsum("ij,ij->i", half, half)
    return Answers(
        lood=float(lood(kernel, objective, problem, queries[None])[0]),
        lood_at_record=float(lood(kernel, objective, problem, own[None])[0]),
        mean=cross @ np.asarray(fit.a),
        variance=np.maximum(variance, np.finfo(np.float64).tiny),
    )


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
    """The row numbers of other records with the same features, up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> lood.twins(np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]]), 0).tolist()
    [2]
    """
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
