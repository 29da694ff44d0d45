"""Checks of an audit of a fitted model: shadow models of the same estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing import Examined, models_of_halves, stored_laws
from leakscope.data import RecordId
from leakscope.errors import InputError
from leakscope.results import ModelAuditDocument, ModelAuditRecord, fpr_reached
from leakscope.verifying.checks import Check, leaning
from leakscope.verifying.plan_checks import Outcome
from leakscope.verifying.record_choice import rows_to_check

# With fewer, a standard deviation is not known to a fifth.
LEAST_MODELS = 20

# A check agrees where its standard error is within this share of the score's own sd.
RESOLUTION = 0.25

# So many of the records that an audit does not trust are checked beside those asked for.
MOST_DOUBTED = 20

# Between the seeds of an audit and those of its check: none of its models is trained again.
AFRESH = 1_000_003


def by_shadow_models(
    document: ModelAuditDocument,
    examined: Examined,
    ids: tuple[RecordId, ...],
    *,
    records: int,
    record_ids: Sequence[RecordId] = (),
    models: int,
    seed: int,
) -> Outcome:
    """Shift and spread of some records' scores, and the ranks of all, against shadow models."""
    if document.question != "pool":
        raise InputError(
            "shadow models draw the others from the records at hand; this audit asks about fresh "
            "ones, and the pool question can be verified."
        )
    trained = document.models is not None
    if document.observes == "residual" and not trained:
        raise InputError("shadow models check predictions; audit with observes prediction.")
    if models < LEAST_MODELS:
        raise InputError(f"at least {LEAST_MODELS} shadow models are needed, not {models}.")
    told = {record.record_id: record for record in document.records}
    if set(told) != set(ids):
        raise InputError("the records of the data are not those of the result.")
    laws, shadows = (_trained_afresh if trained else _fitted_again)(
        document, examined, [told[name] for name in ids], models, seed
    )
    found = fitted.check_against_shadows(laws, shadows, random_state=seed)
    exposure = np.array([told[name].advantage or 0.0 for name in ids])
    rows = rows_to_check(ids, exposure, records, record_ids, random_state=seed)
    if not record_ids:
        # What the audit itself does not trust is what a check is for.
        doubted = [row for row, name in enumerate(ids) if not told[name].trusted]
        rows = list(dict.fromkeys([*rows, *doubted[:MOST_DOUBTED]]))
    checks = [
        check
        for row in rows
        for check in _of_record(
            told[ids[row]],
            shadows.scores[shadows.trained_on[:, row], row],
            shadows.scores[~shadows.trained_on[:, row], row],
        )
    ]
    kind = "training" if trained else "estimator"
    how = (
        f"{shadows.models} shadow models of the same {kind}, each fitted on a random "
        f"{document.fraction:g} of the records. Over all records the predicted shift is "
        f"{found.shift_ratio:.2f} times the observed one and the sd {found.sd_ratio:.2f} times; "
        f"the rank correlation of the advantages is {found.rank_correlation:.2f}, where exactly "
        f"right numbers would reach {found.ceiling:.2f} with so many models; the mean TPR at "
        f"{fpr_reached(found.tpr_at)} is {found.tpr_predicted:.3f} predicted and "
        f"{found.tpr_observed:.3f} counted (standard error {found.tpr_stderr:.3f})"
    )
    lean = leaning(checks)
    return Outcome(
        checks,
        how,
        {"models": models, "records": len(rows)},
        asdict(found),
        () if lean is None else (lean,),
    )


def _fitted_again(
    document: ModelAuditDocument,
    examined: Examined,
    told: Sequence[ModelAuditRecord],
    models: int,
    seed: int,
) -> tuple[fitted.FittedLaws, fitted.ShadowScores]:
    """The laws of the fit, and the same estimator fitted on random parts of the records."""
    laws = fitted.laws_of(
        examined.estimator,
        examined.X,
        examined.y,
        fraction=document.fraction,
        sample_weight=examined.sample_weight,
    )
    shadows = fitted.shadow_models(
        examined.estimator,
        examined.X,
        examined.y,
        models=models,
        fraction=document.fraction,
        sample_weight=examined.sample_weight,
        random_state=seed,
    )
    return laws, shadows


def _trained_afresh(
    document: ModelAuditDocument,
    examined: Examined,
    told: Sequence[ModelAuditRecord],
    models: int,
    seed: int,
) -> tuple[fitted.FittedLaws, fitted.ShadowScores]:
    """The laws that a few models gave, and many more models of other halves and other seeds."""
    shadows = models_of_halves(
        examined, document.settings["task"], models - models % 2, seed=seed + AFRESH
    )
    return stored_laws(document, told), shadows


def _of_record(record: ModelAuditRecord, inside: FloatArray, outside: FloatArray) -> list[Check]:
    """The shift of the mean, and the sd without the record."""
    law = f"record {record.record_id}"
    with_mean, without_mean, sd = record.mean_with, record.mean_without, record.sd_without
    if with_mean is None or without_mean is None or sd is None:
        raise InputError(f"the result's {law} has no mean and spread to check.")
    spread = outside.std(ddof=1)
    error = np.hypot(inside.std(ddof=1) / len(inside) ** 0.5, spread / len(outside) ** 0.5)
    # A law that is not normal has a fourth moment of its own.
    fourth = np.mean((outside - outside.mean()) ** 4) / max(float(spread), 1e-300) ** 4
    spread_error = spread * np.sqrt(max(float(fourth) - 1.0, 0.0) / (4.0 * len(outside)))
    return [
        Check(
            law,
            "shift",
            with_mean - without_mean,
            float(inside.mean() - outside.mean()),
            float(error),
            resolution=RESOLUTION * sd,
        ),
        Check(law, "sd without", sd, float(spread), float(spread_error), RESOLUTION * sd),
    ]
