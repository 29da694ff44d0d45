"""From a result to the checks of its laws: which simulation or retraining belongs to which kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__
from leakscope.auditing import (
    AuditResult,
    ModelAuditResult,
    data_in_memory,
    data_of,
    examined_again,
)
from leakscope.data import Dataset, RecordId, Source, read_again
from leakscope.errors import InputError
from leakscope.results import (
    AuditDocument,
    LassoPlan,
    LinearPlan,
    ModelAuditDocument,
    QueryAttack,
    ResultDocument,
    Run,
    Verification,
    VerifiedNumber,
    digest_of_result,
    result_of,
)
from leakscope.running import OnProgress
from leakscope.settings import RETRAINING_DEFAULTS, VERIFY_DEFAULTS
from leakscope.verifying.audit_checks import (
    by_draws,
    by_draws_at_record,
    by_draws_of_groups,
    require_same_records,
)
from leakscope.verifying.checks import Verdict, counted, threshold_for
from leakscope.verifying.plan_checks import Outcome, by_matrices, by_refits
from leakscope.verifying.record_choice import rows_to_check
from leakscope.verifying.retrained_checks import Retraining, by_retraining
from leakscope.verifying.shadow_checks import by_shadow_models
from leakscope.verifying.stored_numbers import require_stored_numbers

VERIFIABLE = ("audit", "audit_model", "plan_linear", "plan_lasso", "attack_query")

# Random draws of each law, where the caller does not say.
DRAWS = {"audit": 4000, "attack_query": 20_000, "plan_linear": 200, "plan_lasso": 20}

Verifiable = AuditResult | ModelAuditResult | ResultDocument | Run | str | Path


def verify(
    result: Verifiable,
    *,
    data: str | Path | Dataset | None = None,
    records: int = VERIFY_DEFAULTS.records,
    record_ids: Sequence[RecordId] = VERIFY_DEFAULTS.record_ids,
    draws: int | None = None,
    retraining: Retraining | None = None,
    models: int = RETRAINING_DEFAULTS.models,
    seed: int = VERIFY_DEFAULTS.seed,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check the laws behind a result: by drawing from them anew, or by retraining models.

    Parameters
    ----------
    result
        Of an audit, a plan or a search for a query: in memory, a run, or the path of a run
        directory or a result file.
    data
        Where the data are now, or the dataset itself, where the result does not say.
    records
        Of an audit: how many records, or groups, to check.
    record_ids
        Of an audit: check these records, or groups, instead.
    draws
        Random draws of each law; 4,000 for an audit, 20,000 for a query, 200 matrices for a linear
        plan and 20 datasets for a lasso plan where left out.
    retraining
        Of an audit of records: compare it with models that are really trained, with and without
        a record.
    models
        Of an audit of a fitted model: how many shadow models of the same estimator to fit, each
        on a random part of the records.
    seed
        Of draws and retraining.
    on_progress
        Called as models are retrained.

    Returns
    -------
    Verification
        For every law checked a z-score and a verdict.

    Raises
    ------
    InputError
        Where the result has no law to check, or its data cannot be read or have changed.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> result = leakscope.audit(X, np.sin(X[:, 0]), noise_variance=0.1)
    >>> leakscope.verify(result, records=2).differs
    0
    >>> from leakscope.linear import GaussianDesign
    >>> plan = leakscope.plan_linear(GaussianDesign(20, 60, 100, 1.0), draws=1000, random_state=0)
    >>> found = leakscope.verify(plan, draws=100)
    >>> found.verified_kind, found.differs
    ('plan_linear', 0)
    """
    start = time.perf_counter()
    if seed < 0:
        raise InputError(f"the seed must be zero or above, but it is {seed}.")
    document = (
        result.to_document()
        if isinstance(result, (AuditResult, ModelAuditResult))
        else result_of(result)
    )
    count = DRAWS.get(document.kind, 0) if draws is None else draws
    if isinstance(document, QueryAttack) and retraining is None:
        outcome = by_draws_at_record(document, data_of(document, data), count, seed)
    elif isinstance(document, AuditDocument):
        require_stored_numbers(document)
        if isinstance(result, AuditResult) and data is None and document.dataset.source is None:
            prepared = data_in_memory(result)
        else:
            prepared = data_of(document, data)
        labels = None
        if retraining is not None and retraining.labels == "written":
            labels = _labels(document, data, prepared)
        chosen = (records, record_ids)
        outcome = _audited(document, prepared, labels, chosen, count, retraining, seed, on_progress)
    elif isinstance(document, ModelAuditDocument):
        if retraining is not None:
            raise InputError(
                "an audit of a fitted model is verified by shadow models, and retraining with and "
                "without a record answers another question: leave --train and --network out, or "
                "examine your own training with leakscope audit --train."
            )
        require_stored_numbers(document)
        if isinstance(result, ModelAuditResult) and data is None:
            examined, ids = result.examined, result.record_ids
        else:
            examined, ids = examined_again(document, data)
        outcome = by_shadow_models(
            document,
            examined,
            ids,
            records=records,
            record_ids=record_ids,
            models=models,
            seed=seed,
        )
    elif retraining is not None or data is not None:
        raise InputError("retraining and data belong to the result of an audit.")
    elif isinstance(document, LinearPlan):
        outcome = by_matrices(document, count, seed)
    elif isinstance(document, LassoPlan):
        outcome = by_refits(document, count, seed)
    else:
        raise InputError(
            f"there is nothing to simulate in a result of the kind {document.kind!r}; verify takes "
            f"{', '.join(VERIFIABLE)}."
        )
    found = _verification(document, outcome, time.perf_counter() - start, seed)
    own = document if isinstance(result, (AuditResult, ModelAuditResult)) else result
    return found.model_copy(update={"verified_digest": digest_of_result(own)})


def _audited(
    document: AuditDocument,
    prepared: Dataset,
    labels: NDArray[Any] | None,
    chosen: tuple[int, Sequence[RecordId]],
    draws: int,
    retraining: Retraining | None,
    seed: int,
    on_progress: OnProgress | None,
) -> Outcome:
    if document.unit == "group":
        if retraining is not None:
            raise InputError(
                "retraining checks audits of records, and this one is of groups, which are "
                "checked by draws."
            )
        return by_draws_of_groups(document, prepared, *chosen, draws, seed)
    rows = _chosen(document, prepared, *chosen, seed)
    if retraining is None:
        return by_draws(document, prepared, rows, draws, seed)
    return by_retraining(document, prepared, labels, rows, retraining, seed, on_progress)


def _labels(
    document: AuditDocument, data: str | Path | Dataset | None, prepared: Dataset
) -> NDArray[Any]:
    """The target as it was read, before it was coded or scaled; of arrays, as it was given."""
    if isinstance(data, Dataset):
        return data.target
    entry = document.dataset.source
    if entry is None:
        return prepared.target
    return read_again(Source(**entry.model_dump()), data).target


def _chosen(
    document: AuditDocument,
    prepared: Dataset,
    count: int,
    wanted: Sequence[RecordId],
    seed: int,
) -> list[int]:
    """Rows of the records named, or one from each stratum of predicted leakage."""
    require_same_records(document, prepared)
    place = {name: row for row, name in enumerate(prepared.record_ids)}
    kl = np.zeros(len(place))
    for record in document.records:
        kl[place[record.record_id]] = np.inf if record.kl is None else record.kl
    finite = np.where(np.isfinite(kl), kl, np.max(kl[np.isfinite(kl)], initial=0.0))
    return rows_to_check(prepared.record_ids, finite, count, wanted, random_state=seed)


def _verification(
    document: ResultDocument, outcome: Outcome, seconds: float, seed: int
) -> Verification:
    threshold = threshold_for(len(outcome.checks))
    counts = counted(outcome.checks)
    return Verification(
        leakscope_version=__version__,
        settings={**outcome.settings, "seed": seed},
        provenance=document.provenance,
        assumptions=document.assumptions,
        timing={"verify": seconds},
        warnings=[*_doubts(document), *outcome.warnings],
        verified_kind=document.kind,
        how=outcome.how,
        threshold=threshold,
        agrees=counts["agrees"],
        differs=counts["differs"],
        inconclusive=counts["inconclusive"],
        checks=[
            VerifiedNumber(
                law=check.law,
                quantity=check.quantity,
                predicted=check.predicted,
                measured=check.measured,
                stderr=check.stderr,
                z=check.z,
                verdict=check.verdict(threshold),
            )
            for check in outcome.checks
        ],
        agreement=outcome.agreement,
        verdict=_verdict(counts, threshold, outcome),
    )


def _doubts(document: ResultDocument) -> list[str]:
    """Draws check the laws as they are stored; they do not bring back what float64 lost before."""
    doubt = document.doubt if isinstance(document, (AuditDocument, ModelAuditDocument)) else None
    return [] if doubt is None else [f"in the audit that was verified, {doubt}"]


def _verdict(counts: dict[Verdict, int], threshold: float, outcome: Outcome) -> str:
    total = sum(counts.values())
    words = (
        f"{counts['agrees']} of {total} checks agree, {counts['differs']} differ, "
        f"{counts['inconclusive']} inconclusive (a check differs beyond |z| = "
        f"{threshold:.2f}, where one false alarm is expected in a hundred such verifications). "
        f"Compared with {outcome.how}."
    )
    if outcome.agreement is not None and "spearman" in outcome.agreement:
        rank = outcome.agreement["spearman"]
        words += (
            f" Rank correlation of predicted and measured AUC: {rank['value']:.2f} "
            f"[{rank['low']:.2f}, {rank['high']:.2f}]; the audit's levels depend on its noise "
            "variance, its ranks less."
        )
    return words
