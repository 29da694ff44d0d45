"""What each verb may be told: type, default, bounds and meaning of every setting, once.

The command line's options, the web form, the estimators' parameters and the defaults of the
Python functions are derived from these models; the kernels that can be named are in one table.
"""

from leakscope.settings.audit import AuditSettings, KernelName, NoiseVariance
from leakscope.settings.data import DataSettings
from leakscope.settings.kernel_catalogue import KERNELS, NamedKernel, kernel_options
from leakscope.settings.measure import MeasureSettings
from leakscope.settings.query import QuerySettings
from leakscope.settings.setting import LARGEST, LEAST, Described, described
from leakscope.settings.validation import first_problem, validated

__all__ = [
    "KERNELS",
    "LARGEST",
    "LEAST",
    "AuditSettings",
    "DataSettings",
    "Described",
    "KernelName",
    "MeasureSettings",
    "NamedKernel",
    "NoiseVariance",
    "QuerySettings",
    "described",
    "first_problem",
    "kernel_options",
    "validated",
]
