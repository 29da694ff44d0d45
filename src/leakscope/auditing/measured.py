"""From the laws of an audit to the numbers it ranks and reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.laws import LawPair
from leakscope.lood import Separation

# The false-positive rates at which every table says what is found.
FPRS = (0.01, 0.001)


def measured(laws: Separation) -> dict[str, Any]:
    """KL in both directions, advantage, AUC and TPRs of every record or group, by field's name.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import auditing
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> result = leakscope.audit(X, y, kernel="rbf")
    >>> bool((auditing.measured(result.laws)["kl"] == result.kl).all())
    True
    """
    found: dict[str, Any] = {}
    for units, pair in laws.law_pairs():
        for name, values in _flat(measured_pair(pair)).items():
            found.setdefault(name, np.empty(laws.units))[units] = values
    tprs = {fpr: found.pop(f"tpr {fpr:g}") for fpr in FPRS}
    return {**found, "tpr_at_fpr": tprs}


def measured_pair(pair: LawPair) -> dict[str, Any]:
    """The same of pairs of laws at hand."""
    return {
        "kl": exact(measures.kl(pair)),
        "kl_reverse": exact(measures.kl(pair, "member_to_nonmember")),
        "advantage": exact(measures.advantage(pair)),
        "auc": exact(measures.auc(pair)),
        "tpr_at_fpr": {fpr: exact(measures.tpr_at_fpr(pair, fpr)) for fpr in FPRS},
    }


def _flat(found: dict[str, Any]) -> dict[str, FloatArray]:
    tprs = found.pop("tpr_at_fpr")
    return {**found, **{f"tpr {fpr:g}": values for fpr, values in tprs.items()}}


def advantages(laws: Separation) -> FloatArray:
    """The best test's TPR - FPR alone, of every record or group."""
    return laws.measured(lambda pair: exact(measures.advantage(pair)))


def exact(found: FloatArray | measures.Estimate) -> FloatArray:
    """A measure of the audit's own laws: they are exact, so it is never an estimate."""
    if isinstance(found, measures.Estimate):
        raise TypeError("an audit's laws are exact, but a measure of them came out as an estimate")
    return found
