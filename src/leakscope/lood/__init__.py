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
from leakscope.lood.all_groups import all_groups
from leakscope.lood.all_records import all_records
from leakscope.lood.certified import (
    Certificate,
    CertifiedRecords,
    certified_cost,
    certified_records,
)
from leakscope.lood.conditions import StationarityConditions, stationarity_conditions
from leakscope.lood.distinguish import distinguish
from leakscope.lood.distinguishability import Distinguishability
from leakscope.lood.features import (
    FeatureRegression,
    FeatureSums,
    audit_features,
    feature_sums,
    finite_features,
)
from leakscope.lood.influence import Influence, influence
from leakscope.lood.inverse_blocks import WholeInverse, separation_of_blocks
from leakscope.lood.mean_distance import (
    NonOptimalPoint,
    SelfInfluence,
    find_non_optimal_point,
    self_influence,
)
from leakscope.lood.noise_choice import (
    CRITERIA,
    Criterion,
    NoiseChoice,
    choose_noise,
    choose_noise_of_sums,
)
from leakscope.lood.noise_path import noise_path
from leakscope.lood.noise_sweep import NoiseSweep, added_levels, ranks_of, sweep_levels, sweep_noise
from leakscope.lood.nystrom import Inducing
from leakscope.lood.on_device import device_columns, device_records
from leakscope.lood.on_disk import disk_bytes, disk_records
from leakscope.lood.posterior import Posterior, posterior
from leakscope.lood.process import Process
from leakscope.lood.query_search import QuerySearch, search_query
from leakscope.lood.real_numbers import require_real
from leakscope.lood.recovery import twins
from leakscope.lood.release import Release
from leakscope.lood.search_each import search_each
from leakscope.lood.separation import Separation
from leakscope.lood.spectrum import Spectrum

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
