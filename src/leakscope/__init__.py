"""leakscope: how much a model gives away about each record it was trained on.

A world and a model give two laws of what an attacker sees, with and without a record; measures
compare them; attacks exploit them; experiments check them; advice moves them together.

Everything here is imported when it is first used, so that ``import leakscope`` and
``leakscope --help`` stay quick.

Examples
--------
>>> import numpy as np
>>> import leakscope
>>> X = np.array([[0.0], [0.1], [0.2], [3.0]])
>>> y = np.array([1.0, 1.1, 0.9, -1.0])
>>> result = leakscope.audit(X, y, noise_variance=0.1)
>>> int(result.to_frame()["record_id"].iloc[0])  # who stands alone is the most exposed
3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope import data, estimators, kernels, laws, linear, lood, measures, results
    from leakscope.advising import AuditTarget
    from leakscope.advising.advise import advise
    from leakscope.attacking import (
        attack_membership,
        attack_query,
        attack_reconstruct,
    )
    from leakscope.auditing import audit_frame
    from leakscope.auditing.audit import audit
    from leakscope.comparing import compare
    from leakscope.deciding.decide import decide
    from leakscope.erasing.erase import erase
    from leakscope.errors import InputError
    from leakscope.estimators import AuditedClassifier, AuditedRegressor
    from leakscope.measuring.measure import measure
    from leakscope.planning import plan_lasso, plan_linear, plan_network
    from leakscope.reporting import report
    from leakscope.results.audit import Audit
    from leakscope.verifying.verify import verify

    __version__: str

__all__ = [
    "Audit",
    "AuditTarget",
    "AuditedClassifier",
    "AuditedRegressor",
    "InputError",
    "__version__",
    "advise",
    "attack_membership",
    "attack_query",
    "attack_reconstruct",
    "audit",
    "audit_frame",
    "compare",
    "compose",
    "data",
    "decide",
    "erase",
    "estimators",
    "kernels",
    "laws",
    "linear",
    "lood",
    "measure",
    "measures",
    "plan_lasso",
    "plan_linear",
    "plan_network",
    "report",
    "results",
    "verify",
]

# A verb is a function, ``audit``; the room it lives in is called by its gerund, ``auditing``.
_ROOMS = (
    "advising",
    "attacking",
    "auditing",
    "comparing",
    "data",
    "deciding",
    "erasing",
    "estimators",
    "fitted",
    "kernels",
    "lasso",
    "laws",
    "linear",
    "lood",
    "measures",
    "measuring",
    "planning",
    "relu",
    "reporting",
    "results",
    "running",
    "settings",
    "subjects",
    "verifying",
)
_NAMES = {
    "Audit": "leakscope.results",
    "AuditTarget": "leakscope.advising",
    "AuditedClassifier": "leakscope.estimators",
    "AuditedRegressor": "leakscope.estimators",
    "InputError": "leakscope.errors",
    "advise": "leakscope.advising",
    "attack_membership": "leakscope.attacking",
    "attack_query": "leakscope.attacking",
    "attack_reconstruct": "leakscope.attacking",
    "audit": "leakscope.auditing",
    "audit_frame": "leakscope.auditing",
    "compare": "leakscope.comparing",
    "compose": "leakscope.laws",
    "decide": "leakscope.deciding",
    "erase": "leakscope.erasing",
    "measure": "leakscope.measuring",
    "plan_lasso": "leakscope.planning",
    "plan_linear": "leakscope.planning",
    "plan_network": "leakscope.planning",
    "report": "leakscope.reporting",
    "verify": "leakscope.verifying",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"leakscope.{name}")
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("leakscope")
    else:
        raise AttributeError(f"module 'leakscope' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
