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
>>> result.to_frame()["record_id"].iloc[0]  # the record that stands alone is the most exposed
np.int64(3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope import estimators, kernels, laws, linear, lood, measures
    from leakscope.auditing.audit import audit, audit_frame
    from leakscope.auditing.result import AuditResult
    from leakscope.errors import InputError
    from leakscope.estimators import AuditedClassifier, AuditedRegressor, LeakageAuditor

    __version__: str

__all__ = [
    "AuditResult",
    "AuditedClassifier",
    "AuditedRegressor",
    "InputError",
    "LeakageAuditor",
    "__version__",
    "audit",
    "audit_frame",
    "data",
    "estimators",
    "kernels",
    "laws",
    "linear",
    "lood",
    "measures",
    "results",
]

# ``audit`` is the function; the room it lives in is called ``auditing``.
_ROOMS = (
    "advising",
    "attacking",
    "auditing",
    "comparing",
    "data",
    "estimators",
    "kernels",
    "lasso",
    "laws",
    "linear",
    "lood",
    "measures",
    "planning",
    "relu",
    "reporting",
    "results",
    "running",
    "settings",
    "verifying",
)
_NAMES = {
    "AuditResult": "leakscope.auditing",
    "AuditedClassifier": "leakscope.estimators",
    "AuditedRegressor": "leakscope.estimators",
    "InputError": "leakscope.errors",
    "LeakageAuditor": "leakscope.estimators",
    "audit": "leakscope.auditing",
    "audit_frame": "leakscope.auditing",
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
