"""A Gaussian process as a model, and on records: its kernel, its noise, and who leaves together."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import HEADROOM_BYTES, available_memory, require_memory
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel, checked_kernel
from leakscope.lood.dense import all_groups, all_records
from leakscope.lood.device import device_records
from leakscope.lood.features import audit_features, finite_features, nystrom_records
from leakscope.lood.inputs import checked_groups, checked_targets, real_numbers, require_positive
from leakscope.lood.noise import Criterion, NoiseChoice, Spectrum, choose_noise
from leakscope.lood.separation import Rows, Separation
from leakscope.settings.process import PROCESS_DEFAULTS, PROCESSES, ProcessParameters, Route
from leakscope.settings.setting import validated

Task = Literal["regression", "classification"]

# What is computed on demand and kept; none of it is pickled.
KEPT = ("matrix", "spectrum", "phi")

# The noise variance is chosen on at most this many records: the choice needs an
# eigendecomposition, and the second digit of a noise variance says nothing.
CHOICE_RECORDS = 2000


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
        if name not in PROCESSES:
            raise InputError(f"there is no process {name!r}; use one of {', '.join(PROCESSES)}.")
        told = validated(PROCESSES[name], **given)
        kernel = pkgutil.resolve_name(told.factory)(**told.kernel_parameters())
        return cls(kernel, told.noise_variance, told.route, told.inducing)

    def on(
        self,
        features: FloatArray,
        targets: FloatArray,
        *,
        groups: ArrayLike | None = None,
        task: Task = "regression",
    ) -> tuple[ProcessOnRecords, NoiseChoice | None]:
        """The process on records, with the choice of its noise where a criterion chooses it."""
        level = self.noise_variance
        process = ProcessOnRecords(
            features,
            targets,
            self.kernel,
            1.0 if isinstance(level, str) else level,
            groups=groups,
            task=task,
            route=self.route,
            inducing=self.inducing,
        )
        if not isinstance(level, str):
            return process, None
        choice = process.noise_choice(
            "leave_one_out" if level == "leave_one_out" else "marginal_likelihood"
        )
        return process.with_noise(choice.noise_variance), choice


@dataclass(frozen=True, eq=False)
class ProcessOnRecords:
    """A Gaussian process on records, with everything that decides what its leaving records change.

    Nothing is scaled or encoded here, and the prior mean is zero.  The kernel matrix and its
    spectrum are computed when they are first asked for, and kept.

    Parameters
    ----------
    features, targets
        (n, d) and (n,) or (n, C), as used.
    kernel
        A parameter left open, such as the length scale, is chosen from these features; the
        attribute has every parameter a number.
    noise_variance
        s2, in squared units of the targets.
    groups
        (n,) numbers 0 to G - 1 where records leave together; None where they leave singly.
    task
        ``classification`` where the targets are coded classes: one output whose sign is the
        class, or C outputs whose largest is.
    route, inducing
        As for :class:`Process`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> process = lood.ProcessOnRecords(X, y, kernels.rbf(), noise_variance=0.1)
    >>> process.kernel.length_scale, process.separation().excess.round(2).tolist()
    (2.0, [2.58, 1.73, 5.99])
    >>> process.at_noise(1.0).kl.round(3).tolist()
    [0.135, 0.164, 0.502]
    """

    features: FloatArray
    targets: FloatArray
    kernel: Kernel
    noise_variance: float
    groups: ArrayLike | None = None
    task: Task = "regression"
    route: Route = "auto"
    inducing: int = PROCESS_DEFAULTS.inducing
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
        labels = np.arange(count) if self.groups is None else checked_groups(self.groups, count)
        if self.task not in get_args(Task):
            raise InputError(f"task must be regression or classification, but it is {self.task!r}.")
        if self.groups is not None and self.route not in ("auto", "dense"):
            raise InputError(f"groups go by the route dense only, not by {self.route}.")
        values = {
            "features": features,
            "targets": targets,
            "labels": labels,
            "groups": None if self.groups is None else labels,
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

    @cached_property
    def matrix(self) -> FloatArray:
        """(n, n) the kernel matrix of all records, kept."""
        require_memory(
            2 * self.matrix_bytes,
            f"the kernel matrix of {self.records} records and its factor",
            "take fewer records, the route nystrom, or a machine with more memory",
        )
        matrix = np.asarray(self.kernel(self.features), dtype=np.float64)
        # Beyond twelve digits a kernel that is nearly constant says nothing of single records.
        if self.records > 1 and matrix.min() >= (1.0 - 1e-12) * np.diagonal(matrix).max():
            raise InputError(
                f"the kernel cannot tell these {self.records} records apart: it has one value for "
                "all of them (are all rows equal?)."
            )
        return matrix

    @property
    def matrix_bytes(self) -> int:
        """What one kernel matrix takes."""
        return 8 * self.records**2

    @cached_property
    def phi(self) -> FloatArray | None:
        """(n, d) features whose products are the kernel; None where it has none, and for groups."""
        if self.groups is not None or self.features.ndim != 2:
            return None
        return finite_features(self.kernel, self.features)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The eigenvalues and eigenvectors of K, kept: every noise variance from one of them."""
        return Spectrum.of(self.matrix)

    @cached_property
    def way(self) -> Route:
        """The route that is taken: the one asked for, or by kernel and size."""
        phi = self.phi if self.route in ("auto", "features") else None
        if self.route == "features" and phi is None:
            raise InputError(
                "the route features needs a kernel with finitely many features, such as linear."
            )
        if self.route != "auto":
            return self.route
        if phi is not None and phi.shape[1] < self.records:
            return "features"
        if self.groups is None and _has_accelerator(self.kernel):
            return "device"
        free = available_memory()
        large = self.records > 2 * self.inducing and self.groups is None
        if large and free is not None and 2 * self.matrix_bytes > free - HEADROOM_BYTES:
            return "nystrom"
        return "dense"

    def separation(self) -> Separation:
        """What each unit's leaving changes, by the route that suits kernel and size."""
        return self.laws_at(self.noise_variance)

    def laws_at(self, noise_variance: float) -> Separation:
        """The same at another noise variance, by a factorisation of its own."""
        X, y, s2 = self.features, self.targets, noise_variance
        if self.way == "features" and self.phi is not None:
            if np.ptp(self.phi, axis=0).max() == 0.0:
                raise InputError(
                    f"the kernel cannot tell these {self.records} records apart (are all rows "
                    "equal?)."
                )
            return audit_features(self.phi, y, s2)
        if self.way == "device":
            return device_records(X, y, kernel=self.kernel, noise_variance=s2)
        if self.way == "nystrom":
            return nystrom_records(
                X, y, kernel=self.kernel, noise_variance=s2, inducing=self.inducing
            )
        if self.groups is not None:
            return all_groups(self.matrix, y, self.labels, noise_variance=s2)
        return all_records(self.matrix, y, noise_variance=s2)

    def at_noise(self, noise_variance: float) -> Separation:
        """The same from the spectrum, which many levels share, or from the features."""
        if self.way != "dense":
            return self.laws_at(noise_variance)
        return self.spectrum.separation(
            self.targets, noise_variance, groups=None if self.groups is None else self.labels
        )

    def noise_choice(self, criterion: Criterion) -> NoiseChoice:
        """The noise variance that a criterion prefers, on some of many records."""
        some = np.sort(np.random.default_rng(0).permutation(self.records)[:CHOICE_RECORDS])
        return choose_noise(
            self.kernel(self.features[some]), self.targets[some], criterion=criterion
        )

    def with_noise(self, noise_variance: float) -> ProcessOnRecords:
        """The same at another noise variance; what was computed of the kernel is shared."""
        other = replace(self, noise_variance=noise_variance)
        vars(other).update({name: vars(self)[name] for name in KEPT if name in vars(self)})
        return other

    def only(self, records: Rows) -> ProcessOnRecords:
        """The same process, kernel and all, on some of the records; whole groups only."""
        groups = (
            None if self.groups is None else np.unique(self.labels[records], return_inverse=True)[1]
        )
        fewer = replace(
            self, features=self.features[records], targets=self.targets[records], groups=groups
        )
        if "matrix" in vars(self):
            vars(fewer)["matrix"] = self.matrix[np.ix_(records, records)]
        return fewer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in KEPT}


def _has_accelerator(kernel: Kernel) -> bool:
    """Whether the kernel is JAX code and JAX computes on something quicker than this CPU."""
    if not hasattr(kernel, "jax"):
        return False
    try:
        import jax
    except ModuleNotFoundError:
        return False
    return bool(jax.default_backend() != "cpu")
