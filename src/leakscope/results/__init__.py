"""What is stored: one class for each kind of result, and the run directories that hold them."""

from leakscope.results.advice import Advice
from leakscope.results.attacks import (
    FitReconstructAttack,
    MembershipAttack,
    ModelMembershipAttack,
    QueryAttack,
    ReconstructAttack,
)
from leakscope.results.audit import Audit, ExaminedModel
from leakscope.results.columns import COLUMNS, Record
from leakscope.results.comparison import Comparison
from leakscope.results.decision import Decision
from leakscope.results.document import ResultDocument, to_json, write_result
from leakscope.results.erasure import Erasure
from leakscope.results.kinds import register
from leakscope.results.measurement import Measurement, ModelsMeasurement
from leakscope.results.plan import LassoPlan, LinearPlan, NetworkPlan
from leakscope.results.reader import Run, read_result
from leakscope.results.run_directory import write_run_directory
from leakscope.results.sections import Section
from leakscope.results.trust import Trust
from leakscope.results.verification import Verification

__all__ = [
    "COLUMNS",
    "Advice",
    "Audit",
    "Comparison",
    "Decision",
    "Erasure",
    "ExaminedModel",
    "FitReconstructAttack",
    "LassoPlan",
    "LinearPlan",
    "Measurement",
    "MembershipAttack",
    "ModelMembershipAttack",
    "ModelsMeasurement",
    "NetworkPlan",
    "QueryAttack",
    "ReconstructAttack",
    "Record",
    "ResultDocument",
    "Run",
    "Section",
    "Trust",
    "Verification",
    "read_result",
    "register",
    "to_json",
    "write_result",
    "write_run_directory",
]
