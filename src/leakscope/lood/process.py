"""The Gaussian process in question: its records, its kernel, its noise, and who leaves together."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics import cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.eigenvectors import symmetric_eigen
from leakscope._numerics.memory import require_memory
from leakscope._numerics.products import row_products
from leakscope.errors import InputError
from leakscope.kernels.formulas import RBF, Matern
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.lood.dense import all_records, factorise
from leakscope.lood.features import audit_features, finite_features
from leakscope.lood.groups import WholeInverse, all_groups
from leakscope.lood.inputs import checked_groups, checked_targets, real_numbers, require_positive
from leakscope.lood.noise import Spectrum, spectrum_bytes
from leakscope.lood.separation import Separation
from leakscope.settings.process import PROCESS_DEFAULTS, PROCESSES, ProcessParameters, Route
from leakscope.settings.setting import validated

Task = Literal["regression", "classification"]
Rows = NDArray[np.intp]

FEWER = "take fewer records, or use a machine with more memory"

# What is computed on demand and kept; none of it is pickled.
KEPT = ("matrix", "spectrum", "phi")


@dataclass(frozen=True)
class Process:
    """A Gaussian process as a model: what an audit takes as ``model``.

    Parameters
    ----------
    kernel
        From :mod:`leakscope.kernels`; what it leaves open is chosen from the records.
    noise_variance
        s2, in squared units of the target; or ``"marginal_likelihood"`` or ``"leave_one_out"``,
        the criterion that chooses it from the records.
    route
        ``"dense"``, ``"features"``, ``"nystrom"`` or ``"device"``; ``"auto"`` chooses by kernel
        and size.
    inducing
        Of the route nystrom: how many records stand for all.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.1, -1.0])
    >>> model = lood.Process(kernels.rbf(1.0), noise_variance=0.1)
    >>> leakscope.audit(X, y, model=model).to_frame().advantage.round(2).tolist()
    [0.66, 0.21, 0.17]
    """

    kernel: Kernel
    noise_variance: float | str = PROCESS_DEFAULTS.noise_variance
    route: Route = PROCESS_DEFAULTS.route
    inducing: int = PROCESS_DEFAULTS.inducing

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                "the kernel of a process must be one from leakscope.kernels, or have its methods, "
                f"but it is a {type(self.kernel).__name__}."
            )
        validated(
            ProcessParameters,
            noise_variance=self.noise_variance,
            route=self.route,
            inducing=self.inducing,
        )

    @classmethod
    def named(cls, name: str, **given: Any) -> Process:
        """The process of a name in :data:`leakscope.settings.process.PROCESSES`.

        Examples
        --------
        >>> from leakscope import lood
        >>> lood.Process.named("nngp", depth=2, noise_variance=0.1).kernel.describe()["depth"]
        2
        """
        told = validated(PROCESSES[name], **given)
        kernel = pkgutil.resolve_name(told.factory)(**told.kernel_parameters())
        return cls(kernel, told.noise_variance, told.route, told.inducing)


@dataclass(frozen=True, eq=False)
class ProcessOnRecords:
    """A Gaussian process on records, with everything that decides what its leaving records change.

    Nothing is scaled or encoded here, and the prior mean is zero.  The kernel matrix and
    its spectrum are computed when they are first asked for, and kept; what is factorised in place
    is the caller's own.

    Parameters
    ----------
    features, targets
        (n, d) and (n,) or (n, C), as used.
    kernel
        A parameter left open, such as the length scale, is chosen from these features; the
        attribute has every parameter a number.
    noise_variance
        s2, in squared units of the targets.
    kernel_scale
        A factor of the kernel, where one was fitted.
    groups
        (n,) numbers 0 to G - 1 where records leave together; None where they leave singly.
    task
        ``classification`` where the targets are coded classes: one output whose sign is the
        class, or C outputs whose largest is.
    given
        The kernel as it was given, before its open parameters were chosen: what
        ``with_features`` chooses from again.  ``kernel`` itself where left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> process = lood.ProcessOnRecords(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0]),
    ...                        kernels.rbf(), noise_variance=0.1)
    >>> process.kernel.length_scale, process.separation().excess.round(2).tolist()
    (2.0, [2.58, 1.73, 5.99])
    >>> process.with_noise(1.0).separation().kl.round(3).tolist()
    [0.135, 0.164, 0.502]
    """

    features: FloatArray
    targets: FloatArray
    kernel: Kernel
    noise_variance: float
    kernel_scale: float = 1.0
    groups: ArrayLike | None = None
    task: Task = "regression"
    given: Kernel | None = None
    labels: Rows = field(init=False)

    def __post_init__(self) -> None:
        features = real_numbers(self.features, "features")
        if features.ndim < 2 or not features.size:
            raise InputError(
                f"features must be records by features, but their shape is {features.shape}."
            )
        count = len(features)
        targets = checked_targets(self.targets, count, "the dataset")
        if not np.isfinite(features).all():
            raise InputError("features and targets must be finite numbers.")
        require_positive(self.noise_variance, "noise_variance")
        require_positive(self.kernel_scale, "kernel_scale")
        labels = np.arange(count) if self.groups is None else checked_groups(self.groups, count)
        if self.task not in ("regression", "classification"):
            raise InputError(f"task must be regression or classification, but it is {self.task!r}.")
        values = {
            "features": features,
            "targets": targets,
            "labels": labels,
            "groups": None if self.groups is None else labels,
            "given": self.kernel if self.given is None else self.given,
            "kernel": checked_kernel(self.kernel, features),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def records(self) -> int:
        """n."""
        return len(self.features)

    @property
    def units(self) -> int:
        """How many records, or groups, can leave."""
        return self.records if self.groups is None else int(self.labels.max()) + 1

    @property
    def unit(self) -> Literal["record", "group"]:
        """What leaves, in a word."""
        return "record" if self.groups is None else "group"

    @property
    def outputs(self) -> FloatArray:
        """(n, C) the targets as a matrix."""
        return self.targets.reshape(self.records, -1)

    @cached_property
    def total_variance(self) -> float:
        """The targets' variance, averaged over outputs: the error of answering their mean."""
        # What is the same everywhere has a variance that is not always 0 in float64.
        varies = np.ptp(self.outputs, axis=0) > 0.0
        return float(np.mean(np.where(varies, np.var(self.outputs, axis=0), 0.0)))

    @property
    def reach(self) -> float | None:
        """The largest k(q, q) of any question q; None where the kernel knows no bound."""
        if isinstance(self.kernel, (RBF, Matern)):
            return float(self.kernel_scale * self.kernel.variance)
        return None

    def between(self, left: FloatArray, right: FloatArray | None = None) -> FloatArray:
        """The kernel between rows, its scale included."""
        found = self.kernel(left, right)
        return found if self.kernel_scale == 1.0 else np.asarray(self.kernel_scale * found)

    def diagonal(self, rows: FloatArray | None = None) -> FloatArray:
        """k(x, x) of rows, or of all records, the scale included."""
        found = self.kernel.diagonal(self.features if rows is None else rows)
        return np.asarray(self.kernel_scale * found, dtype=np.float64)

    def fresh_matrix(self) -> FloatArray:
        """(n, n) the kernel matrix, computed anew: the caller's own, to be overwritten.

        A route that factorises in place needs no more than this one.
        """
        require_memory(8 * self.records**2, f"the kernel matrix of {self.records} records", FEWER)
        matrix = np.require(self.kernel(self.features), dtype=np.float64, requirements=["W"])
        if self.kernel_scale != 1.0:
            matrix *= self.kernel_scale
        return matrix

    @cached_property
    def matrix(self) -> FloatArray:
        """(n, n) the kernel matrix of all records, kept."""
        return self.fresh_matrix()

    @cached_property
    def phi(self) -> FloatArray | None:
        """(n, d) features whose products are the kernel, where it has fewer than records, kept.

        What each record's leaving changes then follows from d x d algebra, and no matrix of all
        records is ever made.  None for other kernels and for groups.
        """
        found = None if self.groups is not None else self.mapped(self.features)
        return None if found is None or found.shape[1] >= self.records else found

    def mapped(self, rows: FloatArray) -> FloatArray | None:
        """The features of rows under the kernel, its scale included; None where it has none."""
        found = None if rows.ndim != 2 else finite_features(self.kernel, rows)
        if found is None or self.kernel_scale == 1.0:
            return found
        return np.asarray(np.sqrt(self.kernel_scale) * found)

    def factor(self) -> cholesky.Factor:
        """The Cholesky factor of M = K + s2 I, computed anew in the memory of one matrix."""
        kept = "matrix" in vars(self)
        matrix = self.matrix if kept else self.fresh_matrix()
        return factorise(matrix, self.noise_variance, overwrite=not kept)

    def inverse(self) -> WholeInverse:
        """M^{-1}, whole, and the blocks of it that tell what a unit's leaving changes."""
        require_memory(
            8 * 3 * self.records**2,
            f"the inverse of a {self.records} x {self.records} matrix",
            FEWER,
        )
        return WholeInverse.of(self.factor(), self.matrix, self.outputs, self.noise_variance)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenvalues and eigenvectors of K, kept: every noise variance from one of them."""
        require_memory(
            spectrum_bytes(self.records) - 8 * self.records**2 * ("matrix" in vars(self)),
            f"the eigendecomposition of a {self.records} x {self.records} matrix",
            FEWER,
        )
        return Spectrum.of(self.matrix)

    def forget_spectrum(self) -> None:
        """Let the eigenvectors go, once no other noise is asked for; they would be made again."""
        vars(self).pop("spectrum", None)

    @property
    def largest_eigenvalue(self) -> float:
        """Of K."""
        if self.phi is None:
            return float(self.spectrum.values[-1])
        return max(float(symmetric_eigen(row_products(self.phi.T))[0][-1]), 0.0)

    def separation(self) -> Separation:
        """What each unit's leaving changes: every unit, from one factorisation of its own."""
        if self.phi is not None:
            return audit_features(self.phi, self.targets, self.noise_variance)
        keep = "matrix" not in vars(self)
        return self.separation_of(self.fresh_matrix() if keep else self.matrix, overwrite=keep)

    def at_noise(self, noise_variance: float) -> Separation:
        """The same at another noise variance, from the features or the spectrum.

        Where the spectrum does not resolve every unit, a factorisation at this level may: it is
        right to fewer rounding errors.
        """
        if self.phi is not None:
            return audit_features(self.phi, self.targets, noise_variance)
        found = self.spectrum.separation(
            self.targets, noise_variance, groups=None if self.groups is None else self.labels
        )
        if found.trusted.all():
            return found
        try:
            again = self.separation_of(self.matrix, noise_variance)
        except InputError:
            return found
        return again if again.trusted.sum() >= found.trusted.sum() else found

    def separation_of(
        self, matrix: FloatArray, noise_variance: float | None = None, *, overwrite: bool = False
    ) -> Separation:
        """The same with another kernel matrix, or noise, in place of the process's own."""
        level = self.noise_variance if noise_variance is None else noise_variance
        if self.groups is None:
            return all_records(matrix, self.targets, noise_variance=level, overwrite=overwrite)
        return all_groups(
            matrix, self.targets, self.labels, noise_variance=level, overwrite=overwrite
        )

    def with_noise(
        self, noise_variance: float, kernel_scale: float | None = None
    ) -> ProcessOnRecords:
        """The same at another noise variance, and kernel scale where one is given."""
        scale = self.kernel_scale if kernel_scale is None else kernel_scale
        return replace(self, noise_variance=noise_variance, kernel_scale=scale)

    def with_features(self, features: FloatArray) -> ProcessOnRecords:
        """The same question on other features; what the kernel left open is chosen again."""
        kernel = self.kernel if self.given is None else self.given
        return replace(self, features=features, kernel=kernel)

    def only(self, records: Rows) -> ProcessOnRecords:
        """The same process, kernel and all, on some of the records; whole groups only."""
        groups = (
            None if self.groups is None else np.unique(self.labels[records], return_inverse=True)[1]
        )
        return replace(
            self,
            features=self.features[records],
            targets=self.targets[records],
            given=self.kernel,
            groups=groups,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in KEPT}
