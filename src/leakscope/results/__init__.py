"""What is stored: one class for each kind of result, and the run directories that hold them."""

from leakscope.results.advice import Advice, AdviceOption, AdvicePoint, AdviceTarget, setting_text
from leakscope.results.audit import (
    AuditDocument,
    AuditRecord,
    ChoicesEntry,
    DisagreementEntry,
    ExplanationEntry,
    KernelEntry,
    KernelSensitivityEntry,
    NoiseOfDataEntry,
    SensitivityEntry,
    SubgroupEntry,
    doubt_words,
)
from leakscope.results.comparison import (
    STEPS,
    ComparedRecord,
    Comparison,
    DifferenceEntry,
    SideEntry,
)
from leakscope.results.document import (
    SCHEMA_VERSION,
    AssumptionEntry,
    DatasetEntry,
    Number,
    ResultDocument,
    to_json,
    write_private,
    write_result,
)
from leakscope.results.measurement import MeasureInterval, Measurement
from leakscope.results.membership import Applicability, MembershipAttack
from leakscope.results.model_audit import (
    ExaminedModel,
    ModelAuditDocument,
    ModelAuditRecord,
    PenaltyOption,
    model_doubt_words,
)
from leakscope.results.models_measurement import MeasuredRecord, ModelsMeasurement
from leakscope.results.opening import digest_of_result, has_digest, result_of
from leakscope.results.plan import (
    LassoChoice,
    LassoPlan,
    LinearCurve,
    LinearPlan,
    LinearTarget,
)
from leakscope.results.query import FoundQuery, QueryAttack, QueryStart
from leakscope.results.reader import read_result
from leakscope.results.reconstruction import (
    AttackedNetwork,
    ReconstructAttack,
    ReconstructedFlat,
    ReconstructedRecord,
)
from leakscope.results.run_directory import (
    default_run_directory,
    require_free,
    versions,
    write_run_directory,
)
from leakscope.results.run_pictures import GALLERY_FILE, ExposedPicture, Gallery, Neighbour
from leakscope.results.run_reader import Run, read_run
from leakscope.results.verification import Verification, VerifiedNumber

__all__ = [
    "GALLERY_FILE",
    "SCHEMA_VERSION",
    "STEPS",
    "Advice",
    "AdviceOption",
    "AdvicePoint",
    "AdviceTarget",
    "Applicability",
    "AssumptionEntry",
    "AttackedNetwork",
    "AuditDocument",
    "AuditRecord",
    "ChoicesEntry",
    "ComparedRecord",
    "Comparison",
    "DatasetEntry",
    "DifferenceEntry",
    "DisagreementEntry",
    "ExaminedModel",
    "ExplanationEntry",
    "ExposedPicture",
    "FoundQuery",
    "Gallery",
    "KernelEntry",
    "KernelSensitivityEntry",
    "LassoChoice",
    "LassoPlan",
    "LinearCurve",
    "LinearPlan",
    "LinearTarget",
    "MeasureInterval",
    "MeasuredRecord",
    "Measurement",
    "MembershipAttack",
    "ModelAuditDocument",
    "ModelAuditRecord",
    "ModelsMeasurement",
    "Neighbour",
    "NoiseOfDataEntry",
    "Number",
    "PenaltyOption",
    "QueryAttack",
    "QueryStart",
    "ReconstructAttack",
    "ReconstructedFlat",
    "ReconstructedRecord",
    "ResultDocument",
    "Run",
    "SensitivityEntry",
    "SideEntry",
    "SubgroupEntry",
    "Verification",
    "VerifiedNumber",
    "default_run_directory",
    "digest_of_result",
    "doubt_words",
    "has_digest",
    "model_doubt_words",
    "read_result",
    "read_run",
    "require_free",
    "result_of",
    "setting_text",
    "to_json",
    "versions",
    "write_private",
    "write_result",
    "write_run_directory",
]
