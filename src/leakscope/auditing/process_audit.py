"""The audit of one Gaussian process, from its laws to the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import numpy as np

from leakscope import lood
from leakscope.auditing.checks import oddities, without_intercept
from leakscope.auditing.choice_reasons import choices, why_not_compared
from leakscope.auditing.explanation import Explanation
from leakscope.auditing.explanation import explain as explain_records
from leakscope.auditing.measured import measured
from leakscope.auditing.result import AuditResult
from leakscope.auditing.routes import Computed, RoutePlan, compute
from leakscope.data import RecordId
from leakscope.results import DatasetEntry

OnStage = Callable[[str], None]

STAGES = (
    "check",
    "kernel",
    "factorise",
    "sensitivity",
    "conditions",
    "measure",
    "compare",
    "explain",
)

# Those that --no-sensitivity skips.
SENSITIVITY_STAGES = ("sensitivity", "compare")


def audit_process(
    process: lood.Process,
    plan: RoutePlan,
    *,
    ids: tuple[RecordId, ...],
    dataset: DatasetEntry,
    settings: dict[str, Any],
    on_stage: OnStage | None,
    explained: int = 0,
    warnings: tuple[str, ...] | None = None,
    picture: tuple[int, ...] | None = None,
) -> AuditResult:
    """Compute what is asked for; warnings are in the result, for the caller to show.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import auditing, kernels, lood
    >>> from leakscope.results import DatasetEntry
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> process = lood.Process(X, y, kernels.rbf(1.0), noise_variance=0.1)
    >>> told = DatasetEntry(name="arrays", records=3, features=1, outputs=1, target_name="y",
    ...                     steps=[])
    >>> plan = auditing.RoutePlan("dense", 2, 0.1, False, None, False)
    >>> auditing.audit_process(process, plan, ids=("a", "b", "c"), dataset=told, settings={},
    ...                        on_stage=None).ranking()[0]
    'c'
    """
    timing: dict[str, float] = {}
    with _stage("check", timing, on_stage):
        named = ids if process.groups is None else tuple(range(process.records))
        found = oddities(process.features, process.targets, named) if warnings is None else warnings
        found = (*found, *without_intercept(process.features, process.kernel.describe()))
    computed = compute(process, plan, lambda name: _stage(name, timing, on_stage))
    process = computed.process
    with _stage("measure", timing, on_stage):
        found_by_rows = measured(computed.laws)
    # Without a comparison the reasons are words only, and no stage of their own.
    quick = why_not_compared(computed, plan) is not None
    with nullcontext() if quick else _stage("compare", timing, on_stage):
        chosen = choices(computed, plan, found_by_rows["advantage"], picture=picture)
    described = process.kernel.describe()
    if computed.noise_choice is not None and plan.fit_kernel_scale:
        described["fitted_scale"] = process.kernel_scale
    explanations: tuple[Explanation, ...] = ()
    if explained and process.groups is None:
        with _stage("explain", timing, on_stage):
            explanations = explain_records(
                process,
                computed.laws,
                rows=np.argsort(-found_by_rows["kl"], kind="stable")[:explained].tolist(),
                record_ids=ids,
            )
    return AuditResult(
        record_ids=ids,
        **found_by_rows,
        laws=computed.laws,
        process=process,
        sweep=computed.sweep,
        route_reason=computed.route_reason,
        noise_choice=computed.noise_choice,
        approximation=computed.approximation,
        kernel=described,
        dataset=dataset,
        settings=settings,
        created=datetime.now(UTC),
        timing=timing,
        warnings=(*found, *_cautions(computed)),
        explanations=explanations,
        choices=chosen,
    )


def _cautions(computed: Computed) -> tuple[str, ...]:
    """What a user must know about how the numbers were got."""
    found: list[str] = []
    if computed.approximation is not None:
        found.append(
            f"this audit is {computed.route_reason}; each record's KL and advantage lie between "
            "kl_low and kl_high, advantage_low and advantage_high."
        )
    if computed.noise_choice is not None and computed.noise_choice.at_bound:
        found.append(f"{computed.noise_choice.sentence()}: give noise_variance a number instead.")
    if computed.sweep is not None and computed.sweep.refused:
        levels = ", ".join(f"{level:.2g}" for level in computed.sweep.refused)
        found.append(f"float64 cannot factorise at noise_variance {levels}, left out of the sweep.")
    return tuple(found)


@contextmanager
def _stage(name: str, timing: dict[str, float], on_stage: OnStage | None) -> Iterator[None]:
    if on_stage is not None:
        on_stage(name)
    start = time.perf_counter()
    yield
    # After a colon stands how far the stage is.
    timing[name.partition(":")[0]] = time.perf_counter() - start
