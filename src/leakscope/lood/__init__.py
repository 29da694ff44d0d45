"""Leave-one-out distinguishability under Gaussian processes (the paper **lood**).

The laws of what the model says with and without a record: for all records at once
(``all_records``, ``audit_features``, ``certified_records``, ``device_records``, ``disk_records``),
for every group of a partition (``all_groups``), for any group at any queries (``distinguish``), for
every record at every query (``influence``); and what surrounds them: how ranks move with the noise,
how the noise may be chosen, and where influence is greatest.
"""

from leakscope.lood.activation_analysis import (
    ActivationLood,
    ConstantApproximation,
    DepthDecay,
    Initialisation,
    constant_approximation,
    depth_decay,
    edge_of_chaos,
    lood_by_activation,
)
from leakscope.lood.dense import all_records
from leakscope.lood.device import device_columns, device_records
from leakscope.lood.disk import disk_bytes, disk_records
from leakscope.lood.distinguish import Distinguishability, distinguish
from leakscope.lood.features import (
    FeatureRegression,
    FeatureSums,
    audit_features,
    feature_sums,
    finite_features,
)
from leakscope.lood.groups import WholeInverse, all_groups, separation_of_blocks
from leakscope.lood.influence import Influence, influence
from leakscope.lood.inputs import require_real
from leakscope.lood.mean_distance import (
    NonOptimalPoint,
    SelfInfluence,
    StationarityConditions,
    find_non_optimal_point,
    self_influence,
    stationarity_conditions,
)
from leakscope.lood.noise import (
    CRITERIA,
    Criterion,
    NoiseChoice,
    NoiseSweep,
    Spectrum,
    added_levels,
    choose_noise,
    choose_noise_of_sums,
    noise_path,
    ranks_of,
    sweep_levels,
    sweep_noise,
)
from leakscope.lood.nystrom import (
    Certificate,
    CertifiedRecords,
    Inducing,
    certified_cost,
    certified_records,
)
from leakscope.lood.posterior import Posterior, posterior
from leakscope.lood.process import Process
from leakscope.lood.query_search import QuerySearch, search_each, search_query, twins
from leakscope.lood.separation import Release, Separation

__all__ = [
    "CRITERIA",
    "ActivationLood",
    "Certificate",
    "CertifiedRecords",
    "ConstantApproximation",
    "Criterion",
    "DepthDecay",
    "Distinguishability",
    "FeatureRegression",
    "FeatureSums",
    "Inducing",
    "Influence",
    "Initialisation",
    "NoiseChoice",
    "NoiseSweep",
    "NonOptimalPoint",
    "Posterior",
    "Process",
    "QuerySearch",
    "Release",
    "SelfInfluence",
    "Separation",
    "Spectrum",
    "StationarityConditions",
    "WholeInverse",
    "added_levels",
    "all_groups",
    "all_records",
    "audit_features",
    "certified_cost",
    "certified_records",
    "choose_noise",
    "choose_noise_of_sums",
    "constant_approximation",
    "depth_decay",
    "device_columns",
    "device_records",
    "disk_bytes",
    "disk_records",
    "distinguish",
    "edge_of_chaos",
    "feature_sums",
    "find_non_optimal_point",
    "finite_features",
    "influence",
    "lood_by_activation",
    "noise_path",
    "posterior",
    "ranks_of",
    "require_real",
    "search_each",
    "search_query",
    "self_influence",
    "separation_of_blocks",
    "stationarity_conditions",
    "sweep_levels",
    "sweep_noise",
    "twins",
]
