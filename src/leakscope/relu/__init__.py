"""Reconstruction and membership inference against two-layer ReLU networks (the paper **relu**)."""

from leakscope.relu.kkt import kkt_residual
from leakscope.relu.margin_bounds import margin_bounds
from leakscope.relu.max_margin import MaxMarginNetwork, max_margin_network
from leakscope.relu.membership import BoundedMargin, KnownMargin, LeakedPoints, scores_law_pair
from leakscope.relu.near_orthogonality import (
    MixtureData,
    SphereData,
    coverage,
    learnable_conditions,
    near_orthogonality,
    normal_data,
    orthogonality_of,
)
from leakscope.relu.network import TwoLayerNetwork, network_from_sklearn
from leakscope.relu.pieces import pieces
from leakscope.relu.reconstruction import (
    Form,
    Reconstruction,
    reconstruct,
    reconstruct_from_queries,
    scan_margin,
)
from leakscope.relu.training import TrainingPlan, train

__all__ = [
    "BoundedMargin",
    "Form",
    "KnownMargin",
    "LeakedPoints",
    "MaxMarginNetwork",
    "MixtureData",
    "Reconstruction",
    "SphereData",
    "TrainingPlan",
    "TwoLayerNetwork",
    "coverage",
    "kkt_residual",
    "learnable_conditions",
    "margin_bounds",
    "max_margin_network",
    "near_orthogonality",
    "network_from_sklearn",
    "normal_data",
    "orthogonality_of",
    "pieces",
    "reconstruct",
    "reconstruct_from_queries",
    "scan_margin",
    "scores_law_pair",
    "train",
]
