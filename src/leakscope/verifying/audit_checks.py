"""Checks of an audit's laws by draws from the same Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing import process_of_run, record_name, settings_of
from leakscope.data import Dataset, RecordId
from leakscope.errors import InputError
from leakscope.results import AuditDocument, QueryAttack
from leakscope.verifying.checks import Check
from leakscope.verifying.group_draws import check_groups
from leakscope.verifying.plan_checks import Outcome
from leakscope.verifying.posterior_draws import RecordLaws, check_records, kl_from_draws
from leakscope.verifying.record_choice import rows_to_check
from leakscope.verifying.stored_numbers import require_group_numbers


def _kernel_matrix(document: AuditDocument | QueryAttack, prepared: Dataset) -> NDArray[np.float64]:
    settings_of(document)
    process, _ = process_of_run(document, prepared)
    # As for any two sets of rows: what is drawn from it has been the same since the first version.
    return process.between(process.features, process.features)


def require_same_records(document: AuditDocument, prepared: Dataset) -> None:
    """Refuse a result whose records are not those of its data."""
    told, there = [r.record_id for r in document.records], list(prepared.record_ids)
    strange = sorted(set(map(str, told)) ^ set(map(str, there)))
    if len(told) != len(there) or set(told) != set(there):
        which = f", such as {strange[0]!r}" if strange else ""
        raise InputError(
            f"the result has {len(told)} records and its data {len(there)}, and they are not the "
            f"same{which}."
        )
    outputs = 1 if prepared.target.ndim == 1 else prepared.target.shape[1]
    for record in document.records:
        for mean in (record.mean_with, record.mean_without):
            if len(mean if isinstance(mean, list) else [mean]) != outputs:
                raise InputError(
                    f"the result's record {record.record_id!r} has not one mean for each of "
                    f"{outputs} outputs."
                )


def by_draws_at_record(document: QueryAttack, prepared: Dataset, draws: int, seed: int) -> Outcome:
    """The KL at the record itself, which no query may exceed, from draws with and without it."""
    if len(document.records) != 1:
        raise InputError("verify checks the search for one record, and this one is for a group.")
    if document.records[0] not in prepared.record_ids:
        raise InputError(f"the data have no record {document.records[0]!r}.")
    row = list(prepared.record_ids).index(document.records[0])
    _require_positive(document.noise_variance, "the result's noise_variance")
    value, stderr = kl_from_draws(
        _kernel_matrix(document, prepared),
        prepared.target,
        row,
        noise_variance=document.noise_variance,
        draws=draws,
        random_state=seed,
    )
    own = float("nan") if document.kl_at_record is None else document.kl_at_record
    law = f"record {document.records[0]}"
    checks = [Check(law, "KL at the record", own, value, stderr, resolution=0.1 * abs(own))]
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without the "
        "record; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws})


def by_draws(
    document: AuditDocument, prepared: Dataset, rows: Sequence[int], draws: int, seed: int
) -> Outcome:
    """Means and deviations of the audit's laws against draws of the same process."""
    matrix = _kernel_matrix(document, prepared)
    _require_positive(document.noise_variance, "the result's noise_variance")
    by_id = {record.record_id: record for record in document.records}
    told = [by_id[prepared.record_ids[row]] for row in rows]
    for record in told:
        for variance in (record.variance_with, record.variance_without):
            _require_positive(variance, f"a variance of the result's record {record.record_id!r}")
    laws = RecordLaws(
        rows=np.asarray(rows, dtype=np.intp),
        mean_with=_matrix([r.mean_with for r in told]),
        variance_with=np.array([r.variance_with for r in told], dtype=np.float64),
        mean_without=_matrix([r.mean_without for r in told]),
        variance_without=np.array([r.variance_without for r in told], dtype=np.float64),
    )
    checks = check_records(
        matrix,
        prepared.target,
        laws,
        noise_variance=document.noise_variance,
        draws=draws,
        names=prepared.record_ids,
        random_state=seed,
    )
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each "
        f"of {len(rows)} records; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws, "records": len(rows)})


def by_draws_of_groups(
    document: AuditDocument,
    prepared: Dataset,
    count: int,
    wanted: Sequence[RecordId],
    draws: int,
    seed: int,
) -> Outcome:
    """KL and mean distance of some groups against draws of the same process."""
    members: dict[RecordId, list[int]] = {}
    for row, value in enumerate(prepared.group or ()):
        members.setdefault(record_name(value), []).append(row)
    told = {record.record_id: record for record in document.records}
    if set(told) != set(members):
        raise InputError(
            f"the result has {len(told)} groups and its data {len(members)}, and they are not the "
            "same."
        )
    _require_positive(document.noise_variance, "the result's noise_variance")
    matrix = _kernel_matrix(document, prepared)
    require_group_numbers(document, matrix, prepared.target, members)
    names = list(told)
    finite = np.array([np.nan if told[n].kl is None else told[n].kl for n in names], dtype=float)
    finite = np.where(np.isfinite(finite), finite, np.nanmax(finite, initial=0.0))
    chosen = [names[i] for i in rows_to_check(names, finite, count, wanted, random_state=seed)]
    checks = check_groups(
        matrix,
        prepared.target,
        [members[name] for name in chosen],
        _matrix([told[name].kl for name in chosen])[:, 0],
        _matrix([told[name].mean_distance for name in chosen])[:, 0],
        noise_variance=document.noise_variance,
        draws=draws,
        names=chosen,
        random_state=seed,
    )
    how = (
        f"{draws} functions drawn from the same Gaussian process, trained with and without each "
        f"of {len(chosen)} groups; your model was not examined"
    )
    return Outcome(checks, how, {"draws": draws, "groups": len(chosen)})


def _require_positive(value: float | None, what: str) -> None:
    if value is None or not value > 0.0:
        raise InputError(f"{what} must be above 0 to be verified, but it is {value}.")


def _matrix(values: list[Any]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64).reshape(len(values), -1)
