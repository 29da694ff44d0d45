"""The numbers people read in a result of an audit, computed again from the laws beside them.

A result holds each record's law with and without the record, and what was measured of the two.
Checks by draws and by retraining speak of the laws; a file whose measures were changed, by hand or
by a fault of the disk, would pass them.  So KL, AUC and advantage are measured again, of every
record, before anything is drawn.

The means are stored to 16 digits, and their difference to fewer: every comparison allows for what
rounding the stored means and variances can do, and for one part in a million beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import LawPair, MultivariateNormal, Normal
from leakscope.results import AuditDocument, ModelAuditDocument

RELATIVE, ABSOLUTE = 1e-6, 1e-9

# Units in the last place by which a stored mean or variance may be off.
ROUNDING = 8.0 * np.finfo(np.float64).eps

# What an attacker may see whose law is not normal, or has more to it than a mean and a spread.
NOT_NORMAL = ("label", "probabilities")

# A pair of C outputs takes about 350 C^2 bytes while it is measured.
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350


def require_stored_numbers(document: AuditDocument | ModelAuditDocument) -> None:
    """Refuse a result whose KL, AUC or advantage are not those of its records' own laws.

    Records whose numbers float64 does not resolve (``trusted`` is false) are left out: of those
    the audit itself says that they are not to be relied on.

    Raises
    ------
    InputError
        With the first record that differs, what is stored and what its laws give.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope.verifying import require_stored_numbers
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> document = result.to_document()
    >>> require_stored_numbers(document)
    >>> first = document.records[0].model_copy(update={"auc": 0.5})
    >>> changed = document.model_copy(update={"records": [first, *document.records[1:]]})
    >>> require_stored_numbers(changed)
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: the result says that record 2 has an AUC of 0.5, but its means
    and variances give 0.989; the file was changed after it was written.
    """
    _require_summary(document)
    told: list[Any] = [record for record in document.records if record.trusted]
    if isinstance(document, ModelAuditDocument):
        # Posterior means over a few models are no measures of one pair of laws.
        if document.observes in NOT_NORMAL or document.models is not None:
            return
        told = [_as_audited(record) for record in told]
    elif document.unit != "record":
        return
    outputs = {len(_listed(mean)) for r in told for mean in (r.mean_with, r.mean_without)}
    if len(outputs) > 1:
        raise InputError("the result's records have not as many means each; the file was changed.")
    step = max(1, BYTES_AT_ONCE // (BYTES_A_PAIR * max(outputs, default=1) ** 2))
    for start in range(0, len(told), step):
        _require_records(told[start : start + step])


def require_group_numbers(
    document: AuditDocument,
    kernel_matrix: ArrayLike,
    targets: ArrayLike,
    members: Mapping[int | str, Sequence[int]],
) -> None:
    """The same of an audit of groups, whose laws are computed from the data again.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import kernels
    >>> from leakscope.verifying import require_group_numbers
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 0.0, 1.0, 5.0])
    >>> result = leakscope.audit(X, y, kernel=kernels.rbf(1.0), groups=list("aabbb"))
    >>> require_group_numbers(
    ...     result.to_document(), kernels.rbf(1.0)(X, X), y, {"a": [0, 1], "b": [2, 3, 4]})
    """
    matrix = np.array(kernel_matrix, dtype=np.float64)
    numbers = np.empty(len(matrix), dtype=np.intp)
    for place, own in enumerate(members.values()):
        numbers[list(own)] = place
    laws = lood.all_groups(
        matrix,
        np.asarray(targets, dtype=np.float64),
        numbers,
        noise_variance=document.noise_variance,
        overwrite=True,
    )
    stored = {record.record_id: record for record in document.records}
    names = list(members)
    for rows, pair in laws.law_pairs():
        some = [stored[names[row]] for row in rows.tolist()]
        sure = np.array([record.trusted for record in some]) & laws.trusted[rows]
        # The condition of the matrix limits what a second factorisation can repeat.
        loose = 1e-5 + laws.error_estimate[rows]
        for quantity, found in _measured(pair).items():
            _require_close(some, quantity, found, loose * (1.0 + np.abs(found)), sure)


def _require_records(records: Sequence[Any]) -> None:
    variances = [(r.variance_without, r.variance_with) for r in records]
    for record, both in zip(records, variances, strict=True):
        if any(value is None or not value > 0.0 for value in both) or None in _means(record):
            raise InputError(
                f"the result's record {record.record_id!r} cannot be measured: a mean or a "
                "variance is missing or not above 0."
            )
    without, with_it = np.array(variances, dtype=np.float64).T
    mean_without = np.array([_listed(r.mean_without) for r in records], dtype=np.float64)
    mean_with = np.array([_listed(r.mean_with) for r in records], dtype=np.float64)
    shift = mean_with - mean_without
    slack = ROUNDING * (np.abs(mean_with) + np.abs(mean_without))
    ratio = without / with_it
    ratio_slack = ROUNDING * (1.0 + ratio)
    pair = _pair(shift, with_it, without)
    found = _measured(pair)
    outputs = shift.shape[1]
    means_slack = ((np.abs(shift) + slack) * slack).sum(axis=1)
    slacks = {
        "kl": means_slack / with_it
        + outputs * 0.5 * (np.abs(1.0 - 1.0 / ratio) + ratio_slack) * ratio_slack,
        "kl_reverse": means_slack / without
        + outputs * 0.5 * (np.abs(1.0 - ratio) / ratio + ratio_slack) * ratio_slack,
        "advantage": (slack.sum(axis=1) / np.sqrt(np.minimum(with_it, without))) + ratio_slack,
    }
    slacks["auc"] = slacks["advantage"]
    everyone = np.ones(len(records), dtype=np.bool_)
    # Earlier runs of Gaussian processes have none.
    if all(record.tpr_at_fpr_0_01 is not None for record in records):
        for quantity, fpr in (("tpr_at_fpr_0_01", 0.01), ("tpr_at_fpr_0_001", 0.001)):
            found[quantity] = np.asarray(measures.tpr_at_fpr(pair, fpr))
            slacks[quantity] = slacks["advantage"]
    for quantity, values in found.items():
        allowed = RELATIVE * np.abs(values) + ABSOLUTE + 4.0 * slacks[quantity]
        _require_close(records, quantity, values, allowed, everyone)


def _require_close(
    records: Sequence[Any],
    quantity: str,
    found: FloatArray,
    allowed: FloatArray,
    sure: NDArray[np.bool_],
) -> None:
    stored = np.array(
        [np.inf if (v := getattr(r, quantity)) is None else v for r in records], dtype=np.float64
    )
    with np.errstate(invalid="ignore"):
        near = (np.abs(stored - found) <= allowed) | (stored == found)
    wrong = np.flatnonzero(~near & sure)
    if wrong.size:
        place = int(wrong[0])
        raise InputError(
            f"the result says that record {records[place].record_id!r} has {_WORDS[quantity]} of "
            f"{stored[place]:.4g}, but its means and variances give {found[place]:.4g}; the file "
            "was changed after it was written."
        )


_WORDS = {
    "kl": "a KL",
    "kl_reverse": "a reverse KL",
    "advantage": "an advantage",
    "auc": "an AUC",
    "tpr_at_fpr_0_01": "a TPR at 1% FPR",
    "tpr_at_fpr_0_001": "a TPR at 0.1% FPR",
}


def _as_audited(record: Any) -> Any:
    """A record of an audit of a model, with variances in place of standard deviations."""
    values = record.model_dump()
    for side in ("with", "without"):
        sd = values[f"sd_{side}"]
        values[f"variance_{side}"] = None if sd is None else sd**2
    return SimpleNamespace(**values)


def _require_summary(document: AuditDocument | ModelAuditDocument) -> None:
    """The order of the records and the median, which the verdict and the page are made from."""
    name, words = "kl", "KL"
    if isinstance(document, ModelAuditDocument):
        name, words = "advantage", "advantage"
        passing = [r for r in document.records if (r.advantage or 0.0) >= document.exposed_above]
        if len(passing) != document.exposed:
            raise InputError(
                f"the result says that {document.exposed} records are exposed, but its records "
                f"say {len(passing)}; the file was changed after it was written."
            )
    ranked = [np.inf if (v := getattr(r, name)) is None else v for r in document.records]
    for place in range(1, len(ranked)):
        if ranked[place] > ranked[place - 1]:
            raise InputError(
                f"the result's record {document.records[place].record_id!r} stands after one of a "
                f"smaller {words}; the file was changed after it was written."
            )
    advantages = [r.advantage for r in document.records if r.advantage is not None]
    if document.median_advantage is None or len(advantages) < len(document.records):
        return
    median = float(np.median(advantages))
    if abs(median - document.median_advantage) > RELATIVE:
        raise InputError(
            f"the result says that the median advantage is {document.median_advantage:.4g}, but "
            f"its records' is {median:.4g}; the file was changed after it was written."
        )


def _measured(pair: LawPair) -> dict[str, FloatArray]:
    return {
        "kl": np.asarray(measures.kl(pair)),
        "kl_reverse": np.asarray(measures.kl(pair, "member_to_nonmember")),
        "advantage": np.asarray(measures.advantage(pair)),
        "auc": np.asarray(measures.auc(pair)),
    }


def _pair(shift: FloatArray, with_it: FloatArray, without: FloatArray) -> LawPair:
    """Each pair from its own mean without the record, as the audit measured it."""
    if shift.shape[1] == 1:
        return LawPair(Normal(shift[:, 0], np.sqrt(with_it)), Normal(0.0, np.sqrt(without)))
    identity = np.eye(shift.shape[1])
    return LawPair(
        MultivariateNormal(shift, with_it[:, None, None] * identity),
        MultivariateNormal(np.zeros_like(shift), without[:, None, None] * identity),
    )


def _listed(mean: Any) -> list[Any]:
    return mean if isinstance(mean, list) else [mean]


def _means(record: Any) -> list[Any]:
    return [*_listed(record.mean_with), *_listed(record.mean_without)]
