"""The cheapest change of an audited model that keeps every record to a target."""

from leakscope.advising.advise import advise
from leakscope.advising.applied_defence import Defence, defence_of
from leakscope.advising.audit_target import AuditTarget
from leakscope.advising.dropping import DropPath, drop_exposed
from leakscope.advising.fewer_features import largest_components, principal_directions
from leakscope.advising.kernel_noise import least_kernel_noise
from leakscope.advising.merging import least_merging, merged_measures
from leakscope.advising.output_noise import least_output_noise
from leakscope.advising.ranked_options import ADVICE_STAGES
from leakscope.advising.released_error import Folds, ReleasedError
from leakscope.advising.training_advice import parsed_tries

__all__ = [
    "ADVICE_STAGES",
    "AuditTarget",
    "Defence",
    "DropPath",
    "Folds",
    "ReleasedError",
    "advise",
    "defence_of",
    "drop_exposed",
    "largest_components",
    "least_kernel_noise",
    "least_merging",
    "least_output_noise",
    "merged_measures",
    "parsed_tries",
    "principal_directions",
]
