"""What each verb may be told: type, default, bounds and meaning of every setting, once.

The command line's options, the web form, the estimators' parameters and the defaults of the
Python functions are derived from these models; the kernels that can be named are in one table.
"""

from leakscope.settings.advise import Questions
from leakscope.settings.attack import QuerySettings
from leakscope.settings.audit import AuditSettings, ModelSettings
from leakscope.settings.kernel_catalogue import KERNELS, NamedKernel
from leakscope.settings.plan import LassoDivergence, LassoMechanism

__all__ = [
    "KERNELS",
    "AuditSettings",
    "LassoDivergence",
    "LassoMechanism",
    "ModelSettings",
    "NamedKernel",
    "QuerySettings",
    "Questions",
]
