"""From a result to the checks of its laws: which simulation or retraining belongs to which kind."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np

from leakscope import __version__, verifying
from leakscope.cli.audit_checks import (
    Retraining,
    by_draws,
    by_draws_at_record,
    by_draws_of_groups,
    by_retraining,
    require_same_records,
    settings_of,
)
from leakscope.cli.output import table
from leakscope.cli.plan_checks import Outcome, by_matrices, by_refits
from leakscope.data import Dataset, Source, prepare, read_again
from leakscope.errors import InputError
from leakscope.results import AuditDocument, QueryDocument
from leakscope.results.document import AssumptionEntry, ResultDocument
from leakscope.results.plan import LassoPlanDocument, LinearPlanDocument
from leakscope.results.verification import CheckEntry, VerifyDocument
from leakscope.running.cells import OnProgress
from leakscope.verifying import counted, threshold_for

VERIFIABLE = ("audit", "plan_linear", "plan_lasso", "attack_query")


def verified(
    document: ResultDocument,
    *,
    data: Path | None,
    records: int,
    draws: int | None,
    retraining: Retraining | None,
    seed: int,
    on_progress: OnProgress | None,
) -> VerifyDocument:
    """Check the laws behind a result."""
    start = time.perf_counter()
    if isinstance(document, QueryDocument) and retraining is None:
        outcome = by_draws_at_record(document, _data(document, data), draws or 20_000, seed)
    elif isinstance(document, AuditDocument):
        prepared = _data(document, data)
        if document.unit == "group":
            if retraining is not None:
                raise InputError(
                    "--train and --network check audits of records, and this one is of groups, "
                    "which are checked by draws."
                )
            outcome = by_draws_of_groups(document, prepared, records, draws or 4000, seed)
            return _document(document, outcome, time.perf_counter() - start, seed)
        rows = _chosen(document, prepared, records, seed)
        if retraining is None:
            outcome = by_draws(document, prepared, rows, draws or 4000, seed)
        else:
            outcome = by_retraining(document, prepared, rows, retraining, seed, on_progress)
    elif retraining is not None or data is not None:
        raise InputError("--train, --network and --data belong to the result of an audit.")
    elif isinstance(document, LinearPlanDocument):
        outcome = by_matrices(document, draws or 200, seed)
    elif isinstance(document, LassoPlanDocument):
        outcome = by_refits(document, draws or 20, seed)
    else:
        raise InputError(
            f"there is nothing to simulate in a result of the kind {document.kind!r}; verify takes "
            f"{', '.join(VERIFIABLE)}."
        )
    return _document(document, outcome, time.perf_counter() - start, seed)


def _data(document: AuditDocument | QueryDocument, data: Path | None) -> Dataset:
    entry = document.dataset.source
    if entry is None:
        raise InputError("the audit was of arrays in memory, and its result has no data to read.")
    source = Source(**entry.model_dump())
    return prepare(read_again(source, data), scaling=settings_of(document).scaling)


def _chosen(document: AuditDocument, prepared: Dataset, count: int, seed: int) -> list[int]:
    """Rows of records, one from each stratum of predicted leakage."""
    require_same_records(document, prepared)
    place = {name: row for row, name in enumerate(prepared.record_ids)}
    kl = np.zeros(len(place))
    for record in document.records:
        kl[place[record.record_id]] = np.inf if record.kl is None else record.kl
    finite = np.where(np.isfinite(kl), kl, np.max(kl[np.isfinite(kl)], initial=0.0))
    return [int(r) for r in verifying.choose_records(finite, count, random_state=seed)]


def _document(
    document: ResultDocument, outcome: Outcome, seconds: float, seed: int
) -> VerifyDocument:
    threshold = threshold_for(len(outcome.checks))
    counts = counted(outcome.checks)
    return VerifyDocument(
        leakscope_version=__version__,
        settings={**outcome.settings, "seed": seed},
        provenance=document.provenance,
        assumptions=[AssumptionEntry(**a.model_dump()) for a in document.assumptions],
        timing={"verify": seconds},
        warnings=[],
        verified_kind=document.kind,
        how=outcome.how,
        threshold=threshold,
        agrees=counts["agrees"],
        differs=counts["differs"],
        could_not_be_told=counts["could not be told"],
        checks=[CheckEntry(**check.to_dict(threshold)) for check in outcome.checks],
        agreement=outcome.agreement,
        verdict=_verdict(counts, threshold, outcome),
    )


def _verdict(counts: dict[Any, int], threshold: float, outcome: Outcome) -> str:
    total = sum(counts.values())
    words = (
        f"{counts['agrees']} of {total} checks agree, {counts['differs']} differ, "
        f"{counts['could not be told']} could not be told (a check differs beyond |z| = "
        f"{threshold:.2f}, where one false alarm is expected in a hundred such verifications). "
        f"Compared with {outcome.how}."
    )
    if outcome.agreement is not None:
        rank = outcome.agreement["spearman"]
        words += (
            f" Rank correlation of predicted and measured AUC: {rank['value']:.2f} "
            f"[{rank['low']:.2f}, {rank['high']:.2f}]; the audit's levels depend on its noise "
            "variance, its ranks less."
        )
    return words


def page(found: VerifyDocument) -> str:
    """What a person sees."""
    rows = [
        [
            check.law,
            check.quantity,
            _number(check.predicted),
            _number(check.measured),
            _number(check.stderr, 2),
            "-" if check.z is None else f"{check.z:+.2f}",
            check.verdict,
        ]
        for check in found.checks
    ]
    headings = ["law", "quantity", "predicted", "measured", "std. error", "z", "verdict"]
    words = textwrap.wrap(found.verdict, width=92, break_on_hyphens=False)
    return "\n".join([table(headings, rows), "", *words])


def _number(value: float | None, digits: int = 5) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
