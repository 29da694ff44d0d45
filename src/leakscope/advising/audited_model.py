"""What an audit was of, as arrays: the records, the kernel, the noise and who leaves together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.advising.unit_laws import UnitLaws
from leakscope.errors import InputError
from leakscope.kernels import RBF, Kernel, Matern
from leakscope.lood.all_groups import checked_groups
from leakscope.lood.all_records import checked_targets, require_positive

Rows = NDArray[np.intp]
Task = Literal["regression", "classification"]

# Kernel matrices held at once by the widest stage: the matrix, its eigenvectors and their
# squares, the work of the decomposition and the blocks of a fold.
MATRICES = 6


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A Gaussian process on records as the audit took them.

    Parameters
    ----------
    features, targets
        (n, d) and (n,) or (n, C), as prepared: nothing is scaled here, and the prior mean is 0.
    kernel
        A parameter left open, such as the length scale, is chosen from all records.
    noise_variance
        s2, in squared units of the targets.
    kernel_scale
        A factor of the kernel, where the audit fitted one.
    groups
        (n,) numbers 0 to G - 1 where records leave together; None where they leave singly.
    task
        ``classification`` where the targets are coded classes: one output whose sign is the
        class, or C outputs whose largest is.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.advising import AuditedModel
    >>> model = AuditedModel(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                      kernels.rbf(), noise_variance=0.1)
    >>> model.units, model.laws().excess.round(2).tolist()
    (3, [2.58, 1.73, 5.99])
    """

    features: FloatArray
    targets: FloatArray
    kernel: Kernel
    noise_variance: float
    kernel_scale: float = 1.0
    groups: ArrayLike | None = None
    task: Task = "regression"
    labels: Rows = field(init=False)

    def __post_init__(self) -> None:
        features = np.asarray(self.features, dtype=np.float64)
        if features.ndim != 2 or not features.size:
            raise InputError(
                f"features must be records by features, but their shape is {features.shape}."
            )
        count = len(features)
        targets = checked_targets(self.targets, count, "the dataset").reshape(count, -1)
        if not (np.isfinite(features).all() and np.isfinite(targets).all()):
            raise InputError("features and targets must be finite numbers.")
        require_positive(self.noise_variance, "noise_variance")
        require_positive(self.kernel_scale, "kernel_scale")
        require_memory(
            8 * MATRICES * count**2,
            f"advice on {count} records, which holds {MATRICES} kernel matrices,",
            "audit a subsample of the records and ask for advice on that",
        )
        labels = np.arange(count) if self.groups is None else checked_groups(self.groups, count)
        if self.task not in ("regression", "classification"):
            raise InputError(f"task must be regression or classification, but it is {self.task!r}.")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "labels", labels)

    @property
    def units(self) -> int:
        """How many records, or groups, can leave."""
        return int(self.labels[-1]) + 1 if self.groups is None else int(self.labels.max()) + 1

    @property
    def unit(self) -> str:
        """What leaves, in a word."""
        return "record" if self.groups is None else "group"

    @cached_property
    def resolved(self) -> Kernel:
        """The kernel with every parameter a number, from all records."""
        return self.kernel.resolved(self.features)

    @cached_property
    def matrix(self) -> FloatArray:
        """(n, n) the kernel matrix of all records."""
        return self.between(self.features)

    @property
    def reach(self) -> float | None:
        """The largest k(q, q) of any question q; None where the kernel knows no bound."""
        kernel = self.resolved
        if isinstance(kernel, (RBF, Matern)):
            return float(self.kernel_scale * kernel.variance)
        return None

    @cached_property
    def total_variance(self) -> float:
        """The targets' variance, averaged over outputs: the error of answering their mean."""
        # What is the same everywhere has a variance that is not always 0 in float64.
        varies = np.ptp(self.targets, axis=0) > 0.0
        return float(np.mean(np.where(varies, np.var(self.targets, axis=0), 0.0)))

    def between(self, left: FloatArray, right: FloatArray | None = None) -> FloatArray:
        """The kernel between rows, by the kernel of all records."""
        return np.asarray(self.kernel_scale * self.resolved(left, right))

    def diagonal(self, rows: FloatArray) -> FloatArray:
        """k(x, x) of rows."""
        return np.asarray(self.kernel_scale * self.resolved.diagonal(rows), dtype=np.float64)

    def laws(self) -> UnitLaws:
        """Those of the audit: every unit, from one factorisation."""
        return self.laws_of(self.matrix, self.noise_variance)

    def laws_of(self, matrix: FloatArray, noise_variance: float) -> UnitLaws:
        """The laws of every unit under another kernel matrix or noise."""
        if self.groups is None:
            return UnitLaws.of(
                lood.all_records(matrix, self.targets, noise_variance=noise_variance)
            )
        return UnitLaws.of(
            lood.all_groups(matrix, self.targets, self.labels, noise_variance=noise_variance)
        )

    def with_features(self, features: FloatArray) -> AuditedModel:
        """The same question on other features; what the kernel left open is chosen again."""
        return replace(self, features=features)

    def only(self, records: Rows) -> AuditedModel:
        """The same process, kernel and all, on some of the records; whole groups only."""
        groups = (
            None if self.groups is None else np.unique(self.labels[records], return_inverse=True)[1]
        )
        return replace(
            self,
            features=self.features[records],
            targets=self.targets[records],
            kernel=self.resolved,
            groups=groups,
        )

    def blocks(self) -> list[tuple[Rows, Rows]]:
        """Units of one size at a time: their numbers, and (u, g) the rows of their records."""
        if self.groups is None:
            every = np.arange(len(self.features))
            return [(every, every[:, None])]
        order = np.argsort(self.labels, kind="stable")
        sizes = np.bincount(self.labels)
        starts = np.cumsum(sizes) - sizes
        found = []
        for size in np.unique(sizes):
            alike = np.flatnonzero(sizes == size)
            found.append((alike, order[starts[alike][:, None] + np.arange(size)]))
        return found
