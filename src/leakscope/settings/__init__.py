"""What each verb may be told: type, default, bounds and meaning of every setting, once.

The command line's options, the web form, the estimators' parameters and the defaults of the
Python functions are derived from these models; the kernels that can be named are in one table.
"""

from leakscope.settings.audit import (
    AUDIT_DEFAULTS,
    AuditSettings,
    KernelName,
    NoiseVariance,
    Route,
    Scaling,
)
from leakscope.settings.data import DATA_DEFAULTS, DataSettings, Missing, Task
from leakscope.settings.kernel_catalogue import KERNELS, NamedKernel, kernel_options
from leakscope.settings.measure import MEASURE_DEFAULTS, MeasureSettings
from leakscope.settings.query import (
    QUERY_DEFAULTS,
    QuerySettings,
    SearchBegin,
    SearchClimb,
    SearchMethod,
)
from leakscope.settings.setting import LARGEST, LEAST, Described, described, in_text
from leakscope.settings.validation import first_problem, validated

__all__ = [
    "AUDIT_DEFAULTS",
    "DATA_DEFAULTS",
    "KERNELS",
    "LARGEST",
    "LEAST",
    "MEASURE_DEFAULTS",
    "QUERY_DEFAULTS",
    "AuditSettings",
    "DataSettings",
    "Described",
    "KernelName",
    "MeasureSettings",
    "Missing",
    "NamedKernel",
    "NoiseVariance",
    "QuerySettings",
    "Route",
    "Scaling",
    "SearchBegin",
    "SearchClimb",
    "SearchMethod",
    "Task",
    "described",
    "first_problem",
    "in_text",
    "kernel_options",
    "validated",
]
