"""Which route an audit takes, and the laws, the noise sweep and the evidence it comes back with.

Dense: exact, n^2 memory.  Features: exact, for kernels with fewer features than records, cost
linear in n.  FITC: approximate, for what is too large for the dense route and has no features;
its error is measured on a subsample and told.  Device: the dense route on a GPU, for network
kernels; taken where JAX has one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import HEADROOM_BYTES, available_memory, require_memory
from leakscope.auditing.checks import require_varied_kernel
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.lood.features import finite_features
from leakscope.lood.fitc import induce
from leakscope.lood.noise_choice import CRITERIA, Criterion
from leakscope.lood.noise_sweep import sweep_levels
from leakscope.settings import AUDIT_DEFAULTS

Stage = Callable[[str], AbstractContextManager[None]]
Wanted = Literal["auto", "dense", "features", "fitc", "device"]
ROUTES: tuple[str, ...] = get_args(Wanted)

# The noise variance is chosen on at most this many records: the choice needs an
# eigendecomposition, and the second digit of a noise variance says nothing.
CHOICE_RECORDS = 2000


@dataclass(frozen=True)
class Computed:
    """What a route comes back with."""

    laws: lood.LeaveOneOut | lood.LeaveGroupsOut
    sweep: lood.NoiseSweep | None
    route_reason: str
    noise_choice: lood.NoiseChoice | None
    approximation: lood.ApproximationError | None


@dataclass(frozen=True)
class Request:
    """What is to be computed.

    Attributes
    ----------
    kernel
        With every parameter a number.
    noise_variance
        A number, or the criterion that chooses it.
    fit_kernel_scale
        Whether the criterion also chooses a factor of the kernel.
    route, inducing, sensitivity
        As given to ``audit``.
    groups
        (n,) numbers 0 to G - 1 where groups leave together; None where records leave singly.
    """

    features: FloatArray
    targets: FloatArray
    kernel: kernels.Kernel
    noise_variance: float | str
    fit_kernel_scale: bool = False
    route: Wanted = AUDIT_DEFAULTS.route
    inducing: int = AUDIT_DEFAULTS.inducing
    sensitivity: bool = AUDIT_DEFAULTS.sensitivity
    groups: NDArray[np.intp] | None = None


# What the laws, ranks, measures and ids of one record take, measured at a million records
# (benchmarks/memory_ceilings.py).
RESULT_BYTES = 1200


def dense_bytes(features: FloatArray) -> int:
    """What the dense route needs: one kernel matrix, and the features once more."""
    return 8 * len(features) ** 2 + 8 * features.size


def compute(request: Request, stage: Stage) -> Computed:
    """Choose the route by kernel and size, and take it."""
    if request.route not in ROUTES:
        raise InputError(f"route must be one of {', '.join(ROUTES)}, but it is {request.route!r}.")
    count = len(request.features)
    if request.groups is not None:
        return _groups(request, request.groups, stage)
    phi = None
    if request.route in ("auto", "features"):
        phi = finite_features(request.kernel, request.features)
        if phi is None and request.route == "features":
            raise InputError(
                "the route features needs a kernel with finitely many features, such as linear."
            )
    if phi is not None and (request.route == "features" or phi.shape[1] < count):
        reason = f"exact, in feature space: {phi.shape[1]} features, {count} records"
        return _features(request, phi, stage, reason)
    if request.route == "device" or (request.route == "auto" and _has_accelerator(request)):
        return _device(request, stage, f"exact, on the device: a {count} x {count} matrix")
    if request.route == "fitc" or (request.route == "auto" and not _dense_fits(request)):
        reason = f"approximate (FITC, {min(request.inducing, count)} inducing records of {count})"
        return _fitc(request, stage, reason)
    return _dense(request, stage, f"exact, by one factorisation of a {count} x {count} matrix")


def _dense_fits(request: Request) -> bool:
    """Whether the dense route fits; a small dataset that does not is refused, not approximated."""
    available = available_memory()
    if available is None or len(request.features) <= 2 * request.inducing:
        return True
    return dense_bytes(request.features) <= max(available - HEADROOM_BYTES, 0)


def _dense(request: Request, stage: Stage, reason: str) -> Computed:
    targets = request.targets
    require_memory(
        dense_bytes(request.features),
        f"the kernel matrix of {len(request.features)} records",
        "audit fewer records, take the approximate route fitc, or use a machine with more memory",
    )
    with stage("kernel"):
        matrix = request.kernel(request.features)
        require_varied_kernel(matrix)
    with stage("factorise"):
        choice = _choice(request, matrix)
        noise_variance = _noise(request, choice)
        matrix = np.require(matrix, dtype=np.float64, requirements=["W"])
        matrix *= _scale(choice)
        prior = np.diagonal(matrix).copy()
        laws = lood.all_records(matrix, targets, noise_variance=noise_variance, overwrite=True)
    sweep = None
    if request.sensitivity:
        with stage("sensitivity"):
            sweep = lood.sweep_noise(
                matrix,
                targets,
                noise_variance=noise_variance,
                known=laws,
                prior=prior,
                overwrite=True,
            )
    return _computed(request, stage, laws, sweep, reason, choice)


def _groups(request: Request, groups: NDArray[np.intp], stage: Stage) -> Computed:
    if request.route not in ("auto", "dense"):
        raise InputError(f"groups go by the route dense only, not by {request.route}.")
    count, units = len(request.features), int(groups.max()) + 1
    require_memory(
        2 * dense_bytes(request.features),
        f"the kernel matrix of {count} records and its inverse",
        "audit fewer records, or use a machine with more memory",
    )
    with stage("kernel"):
        matrix = request.kernel(request.features)
        require_varied_kernel(matrix)
    with stage("factorise"):
        choice = _choice(request, matrix)
        noise_variance = _noise(request, choice)
        matrix = matrix * _scale(choice)

        def at(level: float) -> lood.LeaveGroupsOut:
            return lood.all_groups(matrix, request.targets, groups, noise_variance=level)

        laws = at(noise_variance)
    sweep = None
    if request.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(at, noise_variance, laws)
    reason = f"exact, {units} groups from one inverse of a {count} x {count} matrix"
    return _computed(request, stage, laws, sweep, reason, choice)


def _has_accelerator(request: Request) -> bool:
    """Whether the kernel is JAX code and JAX computes on something quicker than this CPU."""
    if not hasattr(request.kernel, "jax"):
        return False
    import jax

    return bool(jax.default_backend() != "cpu")


def _device(request: Request, stage: Stage, reason: str) -> Computed:
    with stage("kernel"):
        choice = _choice(request)
        noise_variance, scale = _noise(request, choice), _scale(choice)

    def records(level: float) -> lood.LeaveOneOut:
        return lood.device_records(
            request.features, request.targets, kernel=request.kernel, noise_variance=level
        )

    if scale != 1.0:
        raise InputError("the device route does not fit the kernel's scale; give noise_variance.")
    with stage("factorise"):
        laws = records(noise_variance)
    sweep = None
    if request.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(records, noise_variance, laws)
    return _computed(request, stage, laws, sweep, reason, choice)


def _features(request: Request, phi: FloatArray, stage: Stage, reason: str) -> Computed:
    targets = request.targets
    require_memory(
        phi.nbytes + RESULT_BYTES * len(phi),
        f"the audit of {len(phi)} records in {phi.shape[1]} features",
        "use fewer features or records",
    )
    with stage("kernel"):
        choice = _choice(request)
        noise_variance = _noise(request, choice)
        if _scale(choice) != 1.0:
            phi = phi * np.sqrt(_scale(choice))
        if np.ptp(phi, axis=0).max() == 0.0:
            raise InputError(
                f"the kernel is constant over these {len(phi)} records: to this kernel they are "
                "all the same (are all rows equal?)."
            )
    with stage("factorise"):
        laws = lood.audit_features(phi, targets, noise_variance)
    sweep = None
    if request.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(
                lambda level: lood.audit_features(phi, targets, level), noise_variance, laws
            )
    return _computed(request, stage, laws, sweep, reason, choice)


def _fitc(request: Request, stage: Stage, reason: str) -> Computed:
    rows, targets, kernel = request.features, request.targets, request.kernel
    with stage("kernel"):
        induced = induce(rows, kernel, request.inducing)
        require_varied_kernel(kernel(rows[induced.inducing]))
    with stage("factorise"):
        choice = _choice(request)
        noise_variance = _noise(request, choice)
        # A kernel v k with noise s2 is k with noise s2/v and targets divided by sqrt(v).
        error = lood.approximation_error(
            rows,
            targets / np.sqrt(_scale(choice)),
            kernel,
            noise_variance / _scale(choice),
            inducing=request.inducing,
        )
        induced = induced.scaled(_scale(choice))
        laws = lood.fitc_records(induced, targets, noise_variance)
    sweep = None
    if request.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(
                lambda level: lood.fitc_records(induced, targets, level), noise_variance, laws
            )
    compared = tuple(replace(entry, evidence=error.sentence()) for entry in laws.assumptions)
    laws = replace(laws, assumptions=compared)
    return _computed(request, stage, laws, sweep, reason, choice, error)


def _computed(
    request: Request,
    stage: Stage,
    laws: lood.LeaveOneOut | lood.LeaveGroupsOut,
    sweep: lood.NoiseSweep | None,
    reason: str,
    choice: lood.NoiseChoice | None,
    error: lood.ApproximationError | None = None,
) -> Computed:
    with stage("conditions"):
        found = lood.stationarity_conditions(request.kernel, request.features).assumptions()
    if choice is not None:
        used = min(len(request.features), CHOICE_RECORDS)
        found = (
            *found,
            Assumption(
                statement=f"the noise of the labels, by {choice.criterion}, describes training",
                holds=None,
                evidence=f"{choice.sentence()}, over {used} of {len(request.features)} records",
            ),
        )
    return Computed(
        laws=replace(laws, assumptions=(*laws.assumptions, *found)),
        sweep=sweep,
        route_reason=reason,
        noise_choice=choice,
        approximation=error,
    )


def _choice(request: Request, matrix: FloatArray | None = None) -> lood.NoiseChoice | None:
    """The noise variance by its criterion, on a subsample where there are many records."""
    criterion = request.noise_variance
    if not isinstance(criterion, str):
        if request.fit_kernel_scale:
            raise InputError(
                "the kernel's scale is fitted together with the noise: give noise_variance as one "
                f"of {', '.join(CRITERIA)}."
            )
        return None
    if criterion not in CRITERIA:
        raise InputError(
            f"noise_variance must be a number or one of {', '.join(CRITERIA)}, but it is "
            f"{criterion!r}."
        )
    count = len(request.features)
    some = np.sort(np.random.default_rng(0).permutation(count)[:CHOICE_RECORDS])
    square = (
        request.kernel(request.features[some]) if matrix is None else matrix[np.ix_(some, some)]
    )
    named: Criterion = "leave_one_out" if criterion == "leave_one_out" else "marginal_likelihood"
    return lood.choose_noise(
        square, request.targets[some], criterion=named, fit_scale=request.fit_kernel_scale
    )


def _scale(choice: lood.NoiseChoice | None) -> float:
    return 1.0 if choice is None else choice.kernel_scale


def _noise(request: Request, choice: lood.NoiseChoice | None) -> float:
    return choice.noise_variance if choice is not None else float(request.noise_variance)
