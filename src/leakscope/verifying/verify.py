"""From a result to the checks of its laws: which simulation or refits belong to which kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from leakscope import __version__
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.results.attacks import QueryAttack
from leakscope.results.audit import Audit
from leakscope.results.document import ResultDocument
from leakscope.results.plan import LassoPlan, LinearPlan
from leakscope.results.reader import Run, digest_of_result, result_of
from leakscope.results.verification import Verification, VerifiedNumber
from leakscope.settings.audit import AuditSettings
from leakscope.settings.setting import validated
from leakscope.settings.verify import VERIFY_DEFAULTS
from leakscope.subjects.process.draws import kl_from_draws
from leakscope.subjects.process.subject import stored_process
from leakscope.subjects.recipe import data_again
from leakscope.subjects.subject import opened
from leakscope.verifying.audits import check_audit
from leakscope.verifying.checks import NumberCheck, Outcome, counted, threshold_for
from leakscope.verifying.plans import by_matrices, by_refits
from leakscope.verifying.stored_numbers import require_stored_numbers

VERIFIABLE = ("audit", "plan_linear", "plan_lasso", "attack_query")

# Random draws of each law, where the caller does not say.
DRAWS = {"audit": 4000, "attack_query": 20_000, "plan_linear": 200, "plan_lasso": 20}

Verifiable = ResultDocument | Run | str | Path


def verify(
    result: Verifiable,
    *,
    data: str | Path | Dataset | None = None,
    records: int = VERIFY_DEFAULTS.records,
    record_ids: Sequence[RecordId] = VERIFY_DEFAULTS.record_ids,
    draws: int | None = None,
    models: int = VERIFY_DEFAULTS.models,
    seed: int = VERIFY_DEFAULTS.seed,
) -> Verification:
    """NumberCheck the laws behind a result: by drawing from them anew, or by fitting models again.

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
    models
        Of an audit of a fitted model: how many shadow models of the same estimator to fit, each
        on a random part of the records.
    seed
        Of draws and refits.

    Returns
    -------
    Verification
        For every law checked a z-score and a verdict; ``contradicts`` where one differs.

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
    document = result_of(result)
    count = DRAWS.get(document.kind, 0) if draws is None else draws
    if isinstance(document, QueryAttack):
        outcome = _at_record(document, data, count, seed)
    elif isinstance(document, Audit):
        require_stored_numbers(document)
        subject = opened(document, data)
        outcome = check_audit(
            document,
            subject,
            records=records,
            record_ids=record_ids,
            count=models if subject.counted_in == "models" else count,
            seed=seed,
        )
    elif data is not None:
        raise InputError("data belong to the result of an audit.")
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
    return found.model_copy(update={"verified_digest": digest_of_result(result)})


def _at_record(
    document: QueryAttack, data: str | Path | Dataset | None, draws: int, seed: int
) -> Outcome:
    """The KL at the record itself, which no query may exceed, from draws with and without it."""
    if document.settings.get("normalise_channels") is not None:
        raise InputError(
            "a model that normalises by its own data is two fits with inputs of their own; verify "
            "takes attack_query without normalise_channels."
        )
    scaling = validated(AuditSettings, scaling=document.settings.get("scaling")).scaling
    prepared = prepare(data_again(document.dataset, data), scaling=scaling)
    if len(document.records) != 1:
        raise InputError("verify checks the search for one record, and this one is for a group.")
    if document.records[0] not in prepared.record_ids:
        raise InputError(f"the data have no record {document.records[0]!r}.")
    process, names = stored_process(document.kernel, document.noise_variance, prepared)
    row = list(names).index(document.records[0])
    value, stderr = kl_from_draws(process, row, draws=draws, random_state=seed)
    predicted = float("nan") if document.kl_at_record is None else document.kl_at_record
    law = f"record {document.records[0]}"
    checks = [NumberCheck(law, "KL at the record", predicted, value, stderr, 0.1 * abs(predicted))]
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without the "
        "record; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws})


def _verification(
    document: ResultDocument, outcome: Outcome, seconds: float, seed: int
) -> Verification:
    threshold, counts = threshold_for(len(outcome.checks)), counted(outcome.checks)
    warnings = list(outcome.warnings)
    if isinstance(document, Audit) and document.unconfirmed:
        # Draws check the laws as they are stored; what float64 lost before does not come back.
        warnings.insert(0, f"in the audit that was verified, {document.doubted}.")
    verdict = (
        f"{counts['agrees']} of {len(outcome.checks)} checks agree, {counts['differs']} "
        f"{'differs' if counts['differs'] == 1 else 'differ'}, "
        f"{counts['inconclusive']} inconclusive (a check differs beyond |z| = "
        f"{threshold:.2f}, where one false alarm is expected in a hundred such verifications). "
        f"Compared with {outcome.how}."
    )
    return Verification(
        leakscope_version=__version__,
        settings={**outcome.settings, "seed": seed},
        provenance=document.provenance,
        assumptions=document.assumptions,
        timing={"verify": seconds},
        warnings=warnings,
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
        borne_out=list(outcome.borne_out),
        verdict=verdict,
    )
