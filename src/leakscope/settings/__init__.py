"""What each verb may be told: type, default, bounds and meaning of every setting, once.

The command line's options, the web form, the estimators' parameters and the defaults of the
Python functions are derived from these models; the kernels that can be named are in one table.
"""

from leakscope.settings.advise import (
    ADVISE_DEFAULTS,
    TARGET_DELTA,
    TARGET_FPR,
    AdviseSettings,
    Questions,
)
from leakscope.settings.audit import (
    AUDIT_DEFAULTS,
    AuditSettings,
    KernelName,
    NoiseVariance,
    RouteChoice,
    Scaling,
)
from leakscope.settings.compare import COMPARE_DEFAULTS, CompareSettings
from leakscope.settings.data import DATA_DEFAULTS, DataSettings, Decimal, Missing, Task
from leakscope.settings.decide import DECIDE_DEFAULTS, DecideSettings, ReleaseAccess
from leakscope.settings.kernel_catalogue import KERNELS, NamedKernel, kernel_options
from leakscope.settings.measure import MEASURE_DEFAULTS, MeasureSettings
from leakscope.settings.model import (
    FOLDS,
    MODEL_DEFAULTS,
    PENALTIES,
    STAND_IN_COEFFICIENTS,
    STAND_IN_RECORDS,
    ModelName,
    ModelObserves,
    ModelQuestion,
    ModelSettings,
)
from leakscope.settings.network_attacks import (
    MEMBERSHIP_DEFAULTS,
    POOL_ATTACK_DEFAULTS,
    RECONSTRUCT_DEFAULTS,
    MarginKnowledge,
    MembershipSettings,
    PoolAttackSettings,
    ReconstructForm,
    ReconstructSettings,
)
from leakscope.settings.plan import (
    LASSO_PLAN_DEFAULTS,
    LINEAR_PLAN_DEFAULTS,
    LassoDesignSettings,
    LassoDivergence,
    LassoMechanism,
    LassoPlanSettings,
    LinearAttacker,
    LinearDesignSettings,
    LinearKnob,
    LinearMethod,
    LinearPlanSettings,
)
from leakscope.settings.query import (
    QUERY_DEFAULTS,
    QuerySettings,
    SearchBegin,
    SearchClimb,
    SearchMethod,
)
from leakscope.settings.setting import LARGEST, LEAST, Described, default_of, described, in_text
from leakscope.settings.training import TRAINING_DEFAULTS, TrainingSettings
from leakscope.settings.validation import first_problem, validated
from leakscope.settings.verify import (
    RETRAINING_DEFAULTS,
    VERIFY_DEFAULTS,
    RetrainingSettings,
    VerifySettings,
)

__all__ = [
    "ADVISE_DEFAULTS",
    "AUDIT_DEFAULTS",
    "COMPARE_DEFAULTS",
    "DATA_DEFAULTS",
    "DECIDE_DEFAULTS",
    "FOLDS",
    "KERNELS",
    "LARGEST",
    "LASSO_PLAN_DEFAULTS",
    "LEAST",
    "LINEAR_PLAN_DEFAULTS",
    "MEASURE_DEFAULTS",
    "MEMBERSHIP_DEFAULTS",
    "MODEL_DEFAULTS",
    "PENALTIES",
    "POOL_ATTACK_DEFAULTS",
    "QUERY_DEFAULTS",
    "RECONSTRUCT_DEFAULTS",
    "RETRAINING_DEFAULTS",
    "STAND_IN_COEFFICIENTS",
    "STAND_IN_RECORDS",
    "TARGET_DELTA",
    "TARGET_FPR",
    "TRAINING_DEFAULTS",
    "VERIFY_DEFAULTS",
    "AdviseSettings",
    "AuditSettings",
    "CompareSettings",
    "DataSettings",
    "DecideSettings",
    "Decimal",
    "Described",
    "KernelName",
    "LassoDesignSettings",
    "LassoDivergence",
    "LassoMechanism",
    "LassoPlanSettings",
    "LinearAttacker",
    "LinearDesignSettings",
    "LinearKnob",
    "LinearMethod",
    "LinearPlanSettings",
    "MarginKnowledge",
    "MeasureSettings",
    "MembershipSettings",
    "Missing",
    "ModelName",
    "ModelObserves",
    "ModelQuestion",
    "ModelSettings",
    "NamedKernel",
    "NoiseVariance",
    "PoolAttackSettings",
    "QuerySettings",
    "Questions",
    "ReconstructForm",
    "ReconstructSettings",
    "ReleaseAccess",
    "RetrainingSettings",
    "RouteChoice",
    "Scaling",
    "SearchBegin",
    "SearchClimb",
    "SearchMethod",
    "Task",
    "TrainingSettings",
    "VerifySettings",
    "default_of",
    "described",
    "first_problem",
    "in_text",
    "kernel_options",
    "validated",
]
