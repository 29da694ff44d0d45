"""Leave-one-out distinguishability under Gaussian processes (the paper **lood**).

The laws of what the model says with and without a record: for all records at once
(``all_records``, ``audit_features``, ``nystrom_records``, ``device_records``),
for every group of a partition (``all_groups``), for any group at any queries (``distinguish``), for
every record at every query (``influence``); and what surrounds them: how ranks move with the noise,
how the noise may be chosen, and where influence is greatest.
"""

from leakscope.lood.activation_analysis import (
    DepthDecay,
    Initialisation,
    constant_approximation,
    depth_decay,
    edge_of_chaos,
    lood_by_activation,
)
from leakscope.lood.dense import all_groups, all_records
from leakscope.lood.distinguish import Distinguishability, distinguish
from leakscope.lood.features import audit_features, nystrom_records
from leakscope.lood.influence import Influence, influence
from leakscope.lood.mean_distance import (
    SelfInfluence,
    find_non_optimal_point,
    self_influence,
    stationarity_conditions,
)
from leakscope.lood.noise import choose_noise, noise_path, sweep_noise
from leakscope.lood.posterior import posterior
from leakscope.lood.process import Process, ProcessOnRecords
from leakscope.lood.query_search import QuerySearch, search_each, search_query
from leakscope.lood.separation import Separation

__all__ = [
    "DepthDecay",
    "Distinguishability",
    "Influence",
    "Initialisation",
    "Process",
    "ProcessOnRecords",
    "QuerySearch",
    "SelfInfluence",
    "Separation",
    "all_groups",
    "all_records",
    "audit_features",
    "choose_noise",
    "constant_approximation",
    "depth_decay",
    "distinguish",
    "edge_of_chaos",
    "find_non_optimal_point",
    "influence",
    "lood_by_activation",
    "noise_path",
    "nystrom_records",
    "posterior",
    "search_each",
    "search_query",
    "self_influence",
    "stationarity_conditions",
    "sweep_noise",
]
