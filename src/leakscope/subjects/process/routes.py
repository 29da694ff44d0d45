"""Which route an audit takes, and the laws, the noise sweep and the evidence it comes back with.

Dense: exact, n^2 memory.  Features: exact, for kernels with fewer features than records, cost
linear in n.  Nyström: approximate, for what is too large for the dense route and has no features;
an interval for each record, and no trust where it is too wide.  Device: the dense route on a GPU,
for network kernels; taken where JAX has one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from leakscope import lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.cores import usable_cores
from leakscope._numerics.memory import (
    HEADROOM_BYTES,
    available_memory,
    format_bytes,
    require_memory,
)
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption
from leakscope.lood.device import device_records
from leakscope.lood.features import finite_features
from leakscope.lood.mean_distance import stationarity_conditions
from leakscope.lood.noise import (
    CRITERIA,
    Criterion,
    NoiseChoice,
    NoiseSweep,
    added_levels,
    choose_noise,
    sweep_levels,
    sweep_noise,
)
from leakscope.lood.nystrom import Certificate, certified_cost, certified_records
from leakscope.running.parts import duration
from leakscope.settings.audit import AuditSettings
from leakscope.subjects.arrays import require_varied_kernel

Stage = Callable[[str], AbstractContextManager[None]]
Wanted = Literal["auto", "dense", "features", "nystrom", "device"]
ROUTES: tuple[str, ...] = get_args(Wanted)

# The noise variance is chosen on at most this many records: the choice needs an
# eigendecomposition, and the second digit of a noise variance says nothing.
CHOICE_RECORDS = 2000


@dataclass(frozen=True)
class RoutePlan:
    """How to compute, beside what: the process itself says what.

    Attributes
    ----------
    route
        Which way.
    inducing, error
        Of the approximate one: how many records may stand for all, and up to which relative error
        of its KL a record is trusted.
    sensitivity
        Whether to repeat the audit at other noise variances and under other kernels.
    criterion
        What chooses the noise variance; None where the process has the one that was given.
    fit_kernel_scale
        Whether the criterion also chooses a factor of the kernel.
    """

    route: Wanted
    inducing: int
    error: float
    sensitivity: bool
    criterion: str | None
    fit_kernel_scale: bool

    @classmethod
    def of(cls, settings: AuditSettings) -> tuple[float, RoutePlan]:
        """The noise variance to start from, and the plan; 1 where a criterion will choose it."""
        level = settings.noise_variance
        plan = cls(
            route=settings.route,
            inducing=settings.inducing,
            error=settings.error,
            sensitivity=settings.sensitivity,
            criterion=level if isinstance(level, str) else None,
            fit_kernel_scale=settings.fit_kernel_scale,
        )
        return (1.0 if isinstance(level, str) else level), plan

    @classmethod
    def of_model(cls, model: lood.Process) -> tuple[float, RoutePlan]:
        """The noise variance to start from, and the plan, of a process that is given."""
        settings = AuditSettings(
            noise_variance=model.noise_variance, route=model.route, inducing=model.inducing
        )
        return cls.of(settings)


@dataclass(frozen=True)
class Computed:
    """What a route comes back with: the process with its noise chosen, and what it found."""

    process: lood.ProcessOnRecords
    laws: lood.Separation
    sweep: NoiseSweep | None
    route_reason: str
    noise_choice: NoiseChoice | None
    approximation: Certificate | None


# What the laws, ranks, measures and ids of one record take, measured at a million records
# (benchmarks/memory_ceilings.py).
RESULT_BYTES = 1200


def dense_bytes(features: FloatArray) -> int:
    """What the dense route needs: one kernel matrix, and the features once more."""
    return 8 * len(features) ** 2 + 8 * features.size


def compute(process: lood.ProcessOnRecords, plan: RoutePlan, stage: Stage) -> Computed:
    """Choose the route by kernel and size, and take it."""
    if plan.route not in ROUTES:
        raise InputError(f"route must be one of {', '.join(ROUTES)}, but it is {plan.route!r}.")
    count = process.records
    if process.groups is not None:
        return _groups(process, plan, stage)
    phi = None
    if plan.route in ("auto", "features"):
        phi = finite_features(process.kernel, process.features)
        if phi is None and plan.route == "features":
            raise InputError(
                "the route features needs a kernel with finitely many features, such as linear."
            )
    if phi is not None and (plan.route == "features" or phi.shape[1] < count):
        reason = f"exact, in feature space: {phi.shape[1]} features, {count} records"
        return _features(process, plan, phi, stage, reason)
    if plan.route == "device" or (plan.route == "auto" and _has_accelerator(process)):
        return _on_device(process, plan, stage)
    if plan.route == "nystrom" or (
        plan.route == "auto" and not dense_fits(process.features, plan.inducing)
    ):
        return _nystrom(process, plan, stage)
    return _dense(
        process, plan, stage, f"exact, by one factorisation of a {count} x {count} matrix"
    )


def dense_fits(features: FloatArray, inducing: int) -> bool:
    """Whether the dense route fits; a small dataset that does not is refused, not approximated."""
    available = available_memory()
    if available is None or len(features) <= 2 * inducing:
        return True
    return dense_bytes(features) <= max(available - HEADROOM_BYTES, 0)


def _dense(process: lood.ProcessOnRecords, plan: RoutePlan, stage: Stage, reason: str) -> Computed:
    targets = process.targets
    require_memory(
        dense_bytes(process.features),
        f"the kernel matrix of {process.records} records",
        "audit fewer records, take the route nystrom, or use a machine with more memory",
    )
    with stage("kernel"):
        matrix = process.fresh_matrix()
        require_varied_kernel(matrix)
    with stage("factorise"):
        process, choice = _chosen(process, plan, matrix)
        if choice is not None:
            matrix *= process.kernel_scale
        noise_variance = process.noise_variance
        prior = np.diagonal(matrix).copy()
        laws = lood.all_records(matrix, targets, noise_variance=noise_variance, overwrite=True)
    sweep = None
    if plan.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_noise(
                matrix,
                targets,
                noise_variance=noise_variance,
                known=laws,
                prior=prior,
                overwrite=True,
            )
    return _computed(process, stage, laws, sweep, reason, choice)


def _groups(process: lood.ProcessOnRecords, plan: RoutePlan, stage: Stage) -> Computed:
    if plan.route not in ("auto", "dense"):
        raise InputError(f"groups go by the route dense only, not by {plan.route}.")
    count = process.records
    require_memory(
        2 * dense_bytes(process.features),
        f"the kernel matrix of {count} records and its inverse",
        "audit fewer records, or use a machine with more memory",
    )
    with stage("kernel"):
        matrix = process.fresh_matrix()
        require_varied_kernel(matrix)
    with stage("factorise"):
        process, choice = _chosen(process, plan, matrix)
        if choice is not None:
            matrix *= process.kernel_scale

        def at(level: float) -> lood.Separation:
            return lood.all_groups(matrix, process.targets, process.labels, noise_variance=level)

        laws = at(process.noise_variance)
    sweep = None
    if plan.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(at, process.noise_variance, laws)
    reason = f"exact, {process.units} groups from one inverse of a {count} x {count} matrix"
    return _computed(process, stage, laws, sweep, reason, choice)


def _has_accelerator(process: lood.ProcessOnRecords) -> bool:
    """Whether the kernel is JAX code and JAX computes on something quicker than this CPU."""
    if not hasattr(process.kernel, "jax"):
        return False
    try:
        import jax
    except ModuleNotFoundError:
        return False
    return bool(jax.default_backend() != "cpu")


def _on_device(process: lood.ProcessOnRecords, plan: RoutePlan, stage: Stage) -> Computed:
    """On a GPU: one call for each noise level."""
    with stage("kernel"):
        process, choice = _chosen(process, plan)
    if process.kernel_scale != 1.0:
        raise InputError("the device route does not fit the kernel's scale; give noise_variance.")

    def records(level: float) -> lood.Separation:
        return device_records(
            process.features, process.targets, kernel=process.kernel, noise_variance=level
        )

    with stage("factorise"):
        laws = records(process.noise_variance)
    sweep = None
    if plan.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(records, process.noise_variance, laws)
    reason = f"exact, on the device: a {process.records} x {process.records} matrix"
    return _computed(process, stage, laws, sweep, reason, choice)


def _features(
    process: lood.ProcessOnRecords, plan: RoutePlan, phi: FloatArray, stage: Stage, reason: str
) -> Computed:
    targets = process.targets
    require_memory(
        phi.nbytes + RESULT_BYTES * len(phi),
        f"the audit of {len(phi)} records in {phi.shape[1]} features",
        "use fewer features or records",
    )
    with stage("kernel"):
        process, choice = _chosen(process, plan)
        if process.kernel_scale != 1.0:
            phi = phi * np.sqrt(process.kernel_scale)
        if np.ptp(phi, axis=0).max() == 0.0:
            raise InputError(
                f"the kernel cannot tell these {len(phi)} records apart: it has one value for all "
                "of them (are all rows equal?)."
            )
    with stage("factorise"):
        laws = lood.audit_features(phi, targets, process.noise_variance)
    sweep = None
    if plan.sensitivity:
        with stage("sensitivity"):
            sweep = sweep_levels(
                lambda level: lood.audit_features(phi, targets, level),
                process.noise_variance,
                laws,
            )
    return _computed(process, stage, laws, sweep, reason, choice)


def _nystrom(process: lood.ProcessOnRecords, plan: RoutePlan, stage: Stage) -> Computed:
    count = process.records
    _, needed = certified_cost(count, plan.inducing, process.outputs.shape[1])
    require_memory(
        # The laws of both ends of a claim are there beside those in the middle.
        needed + 2 * RESULT_BYTES * count,
        f"the approximate audit of {count} records with up to {plan.inducing} inducing ones",
        "audit fewer records, or use fewer inducing ones",
    )
    with stage("kernel"):
        some = np.random.default_rng(0).permutation(process.records)[: plan.inducing]
        require_varied_kernel(process.kernel(process.features[np.sort(some)]))
        process, choice = _chosen(process, plan)
    levels = added_levels(process.noise_variance) if plan.sensitivity else ()
    with stage("factorise"):
        found = certified_records(process, inducing=plan.inducing, error=plan.error, levels=levels)
    sweep = None
    if plan.sensitivity:
        with stage("sensitivity"):
            at = {laws.noise_variance: laws for laws in found.others}
            sweep = sweep_levels(at.__getitem__, process.noise_variance, found.laws)
    reason = f"approximate ({found.certificate.sentence()})"
    if plan.route == "auto":
        reason += f", because a {count} x {count} matrix does not fit in memory"
    return _computed(process, stage, found.laws, sweep, reason, choice, found.certificate)


def _computed(
    process: lood.ProcessOnRecords,
    stage: Stage,
    laws: lood.Separation,
    sweep: NoiseSweep | None,
    reason: str,
    choice: NoiseChoice | None,
    error: Certificate | None = None,
) -> Computed:
    with stage("conditions"):
        found = stationarity_conditions(process.kernel, process.features).assumptions()
    if choice is not None:
        used = min(process.records, CHOICE_RECORDS)
        found = (
            *found,
            Assumption(
                statement=f"the noise of the labels, by {choice.criterion}, describes training",
                holds=None,
                evidence=f"{choice.sentence()}, over {used} of {process.records} records",
            ),
        )
    return Computed(
        process=process,
        laws=replace(laws, assumptions=(*laws.assumptions, *found)),
        sweep=sweep,
        route_reason=reason,
        noise_choice=choice,
        approximation=error,
    )


def _chosen(
    process: lood.ProcessOnRecords, plan: RoutePlan, matrix: FloatArray | None = None
) -> tuple[lood.ProcessOnRecords, NoiseChoice | None]:
    """The process at the noise of the plan's criterion; on a subsample of many records."""
    criterion = plan.criterion
    if criterion is None:
        if plan.fit_kernel_scale:
            raise InputError(
                "the kernel's scale is fitted together with the noise: give noise_variance as one "
                f"of {', '.join(CRITERIA)}."
            )
        return process, None
    if criterion not in CRITERIA:
        raise InputError(
            f"noise_variance must be a number or one of {', '.join(CRITERIA)}, but it is "
            f"{criterion!r}."
        )
    some = np.sort(np.random.default_rng(0).permutation(process.records)[:CHOICE_RECORDS])
    square = (
        process.kernel(process.features[some]) if matrix is None else matrix[np.ix_(some, some)]
    )
    named: Criterion = "leave_one_out" if criterion == "leave_one_out" else "marginal_likelihood"
    choice = choose_noise(
        square, process.targets[some], criterion=named, fit_scale=plan.fit_kernel_scale
    )
    return process.with_noise(choice.noise_variance, choice.kernel_scale), choice


# Of one core: factor and inverse diagonal, for each cubed record (benchmarks/adult_dense.py,
# docs/benchmarks/size.md).
SECONDS_PER_CUBE = 1.75e-11

# Of shorter exact audits nothing is said.
SAID_FROM = 60.0


def route_cost(features: FloatArray, settings: AuditSettings) -> str | None:
    """What a long or an approximate audit will take, in words; None of others."""
    records, route = len(features), settings.route
    if route == "auto" and settings.kernel != "linear":
        route = "dense" if dense_fits(features, settings.inducing) else "nystrom"
    if route == "nystrom":
        return _approximate(records, settings.inducing)
    if route == "dense":
        return _exact(records, settings.sensitivity, format_bytes(dense_bytes(features)))
    return None


def _approximate(records: int, inducing: int) -> str:
    seconds, memory = certified_cost(records, inducing)
    return (
        f"approximate, with up to {min(inducing, records):,} inducing records of {records:,}: at "
        f"most about {duration(seconds)} on a core like those it was measured on, and "
        f"{format_bytes(memory)}; an interval for each record in place of an exact number."
    )


def _exact(records: int, sensitivity: bool, needed: str) -> str | None:
    levels = 1 + len(added_levels(1.0)) if sensitivity else 1
    cores = usable_cores()
    seconds = levels * SECONDS_PER_CUBE * float(records) ** 3 / cores
    if seconds < SAID_FROM:
        return None
    told = (
        f"exact, by factorising a {records:,} x {records:,} matrix: {needed} and about "
        f"{duration(seconds)} on {cores} core{'s' if cores > 1 else ''} like those it was measured "
        "on; "
    )
    if sensitivity:
        told += f"--no-sensitivity takes {duration(seconds / levels)}, and "
    return f"{told}--route nystrom is quicker, with an interval for each record."
