"""Training on the first k principal components: the largest k that meets a target.

The directions are those of all records and stay fixed when one leaves, as the audit's scaling does.
The features are projected as they are (not centred): with all directions the kernel is the audit's
own.  What the kernel left open, such as a median length scale, is chosen again for each k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.products import row_products
from leakscope.advising.audit_target import AuditTarget
from leakscope.errors import InputError
from leakscope.lood import Process, Separation

# At most this many numbers of components are tried at first; then those between are halved.
TRIED = 16


@dataclass(frozen=True)
class ComponentScan:
    """Numbers of components tried, rising, with the laws and the worst unit's measure at each.

    ``directions`` is (d, r), the principal directions; ``largest`` the largest k found that meets
    the target, None where none did.  Numbers that cannot be audited are left out.
    """

    counts: NDArray[np.intp]
    worst: FloatArray
    laws: tuple[Separation, ...]
    directions: FloatArray
    largest: int | None

    def at(self, count: int) -> Separation:
        """The laws at a number that was tried."""
        return self.laws[int(np.flatnonzero(self.counts == count)[0])]


def principal_directions(features: FloatArray) -> FloatArray:
    """(d, r) directions of falling variance, those without any left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.advising import principal_directions
    >>> X = np.array([[0.0, 0.0], [3.0, 3.0], [-3.0, -3.0]])
    >>> np.abs(principal_directions(X)).round(4).tolist()
    [[0.7071], [0.7071]]
    """
    centred = features - features.mean(axis=0)
    values, vectors = symmetric_eigen(row_products(centred.T))
    kept = values > len(features) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    if not kept.any():
        raise InputError("all records have the same features: there is no component to keep.")
    return np.asarray(vectors[:, kept][:, ::-1])


def largest_components(model: Process, target: AuditTarget) -> ComponentScan:
    """Audit again with the first k components, for a range of k.

    With more than 16 directions k is taken on a geometric grid, and the gap above the largest k
    that meets the target is halved: between two numbers tried the worst is taken to rise with k.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> from leakscope.advising import AuditTarget, largest_components
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4)) * [2.0, 1.0, 0.5, 0.5]
    >>> model = lood.Process(X, np.tanh(X[:, 0]), kernels.rbf(2.0), noise_variance=0.5)
    >>> scan = largest_components(model, AuditTarget("advantage", 0.15))
    >>> scan.counts.tolist(), scan.largest
    ([1, 2, 3, 4], 2)
    """
    directions = principal_directions(model.features)
    rank = directions.shape[1]
    seen: dict[int, tuple[float, Separation | None]] = {}

    def met(count: int) -> bool:
        if count not in seen:
            try:
                applied = model.with_features(model.features @ directions[:, :count])
                laws = applied.separation()
                worst = float(np.max(laws.measured(target.measured)))
                seen[count] = (worst if laws.trusted.all() else float("inf"), laws)
            except InputError:
                # A record that these components do not reach, or a matrix float64 cannot factorise.
                seen[count] = (float("inf"), None)
        return target.met(seen[count][0])

    grid = np.arange(1, rank + 1)
    if rank > TRIED:
        grid = np.unique(np.geomspace(1, rank, TRIED).round().astype(np.intp))
    largest = max((count for count in grid.tolist() if met(count)), default=None)
    if largest is not None:
        next_up = min((count for count in seen if count > largest), default=largest + 1)
        while next_up - largest > 1:
            middle = (largest + next_up) // 2
            largest, next_up = (middle, next_up) if met(middle) else (largest, middle)
    audited = [(count, worst, laws) for count, (worst, laws) in sorted(seen.items()) if laws]
    if not audited:
        raise InputError("no number of principal components of these features can be audited.")
    return ComponentScan(
        counts=np.array([count for count, _, _ in audited], dtype=np.intp),
        worst=np.array([worst for _, worst, _ in audited]),
        laws=tuple(laws for _, _, laws in audited),
        directions=directions,
        largest=largest,
    )
