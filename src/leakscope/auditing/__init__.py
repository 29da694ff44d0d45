"""From a dataset to a ranked, explained result, and to run directories."""

from leakscope.auditing.audit import audit
from leakscope.auditing.audited_records import AuditedRecords
from leakscope.auditing.checks import checked_ids, record_name
from leakscope.auditing.dataset_audit import (
    audit_by_settings,
    audit_dataset,
    audit_frame,
    audit_stages,
)
from leakscope.auditing.examined_again import examined_again
from leakscope.auditing.file_models import classifies, labels_for, plain_parameters, rebuilt
from leakscope.auditing.gate import gate_failures, gate_limits
from leakscope.auditing.kernel_choice import kernel_from_settings, kernel_in_words
from leakscope.auditing.kernel_sensitivity import TOP, rank_correlation, top_kept
from leakscope.auditing.laws_from_answers import answered_laws
from leakscope.auditing.measured import measured
from leakscope.auditing.model_audit import (
    MODEL_STAGES,
    audit_model,
    audit_named_model,
    noise_for,
)
from leakscope.auditing.model_result import Examined, ModelAuditResult
from leakscope.auditing.named_models import named_fit
from leakscope.auditing.noise_path import audit_noise_path, noise_path_unavailable
from leakscope.auditing.out_of_core import OutOfCoreAudit, audit_out_of_core
from leakscope.auditing.own_training import (
    OwnTraining,
    named_training,
    require_one_subject,
    trains_classes,
)
from leakscope.auditing.process_audit import SENSITIVITY_STAGES, STAGES, audit_process
from leakscope.auditing.process_of_run import process_of_run
from leakscope.auditing.reopened import (
    Audited,
    audit_document,
    data_in_memory,
    data_of,
    settings_of,
    taken_from_result,
)
from leakscope.auditing.result import AuditResult
from leakscope.auditing.route_costs import audit_cost
from leakscope.auditing.routes import RoutePlan
from leakscope.auditing.run_writing import write_run
from leakscope.auditing.stream_costs import StreamCost, stream_cost
from leakscope.auditing.streamed import audit_streamed
from leakscope.auditing.subgroups import Subgroup
from leakscope.auditing.trained_again import audit_training_with, models_of_halves, stored_laws
from leakscope.auditing.trained_audit import audit_trained, audit_trained_dataset
from leakscope.auditing.training_options import options_of, with_options
from leakscope.auditing.units import leaving_units
from leakscope.auditing.verdict import EXPOSED_ABOVE

__all__ = [
    "EXPOSED_ABOVE",
    "MODEL_STAGES",
    "SENSITIVITY_STAGES",
    "STAGES",
    "TOP",
    "AuditResult",
    "Audited",
    "AuditedRecords",
    "Examined",
    "ModelAuditResult",
    "OutOfCoreAudit",
    "OwnTraining",
    "RoutePlan",
    "StreamCost",
    "Subgroup",
    "answered_laws",
    "audit",
    "audit_by_settings",
    "audit_cost",
    "audit_dataset",
    "audit_document",
    "audit_frame",
    "audit_model",
    "audit_named_model",
    "audit_noise_path",
    "audit_out_of_core",
    "audit_process",
    "audit_stages",
    "audit_streamed",
    "audit_trained",
    "audit_trained_dataset",
    "audit_training_with",
    "checked_ids",
    "classifies",
    "data_in_memory",
    "data_of",
    "examined_again",
    "gate_failures",
    "gate_limits",
    "kernel_from_settings",
    "kernel_in_words",
    "labels_for",
    "leaving_units",
    "measured",
    "models_of_halves",
    "named_fit",
    "named_training",
    "noise_for",
    "noise_path_unavailable",
    "options_of",
    "plain_parameters",
    "process_of_run",
    "rank_correlation",
    "rebuilt",
    "record_name",
    "require_one_subject",
    "settings_of",
    "stored_laws",
    "stream_cost",
    "taken_from_result",
    "top_kept",
    "trains_classes",
    "with_options",
    "write_run",
]
