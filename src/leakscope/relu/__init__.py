"""Reconstruction and membership inference against two-layer ReLU networks (the paper **relu**)."""

from leakscope.relu.black_box import FoundPieces, find_pieces, reconstruct_from_queries
from leakscope.relu.kkt import KktResidual, kkt_residual
from leakscope.relu.kkt_reconstruction import (
    PointCandidate,
    PointReconstruction,
    reconstruct_points,
)
from leakscope.relu.margin_bounds import MarginBounds, TheoremConstants, margin_bounds
from leakscope.relu.margin_scan import MarginScan, scan_margin
from leakscope.relu.max_margin import MaxMarginNetwork, max_margin_network
from leakscope.relu.membership import (
    LEAST_MARGIN,
    BoundedMargin,
    KnownMargin,
    LeakedPoints,
    MembershipAnswer,
    membership_attack,
    scores_law_pair,
)
from leakscope.relu.near_orthogonality import (
    Coverage,
    NearOrthogonality,
    coverage,
    near_orthogonality,
    orthogonality_of,
)
from leakscope.relu.network import TwoLayerNetwork
from leakscope.relu.pieces import Pieces, pieces
from leakscope.relu.point_recovery import PointRecovery, point_recovery
from leakscope.relu.populations import MixtureData, SphereData, normal_data
from leakscope.relu.provenance import attack_provenance
from leakscope.relu.reconstruction import Candidate, Form, Reconstruction, reconstruct
from leakscope.relu.sklearn_network import network_from_sklearn
from leakscope.relu.span import DataSpan
from leakscope.relu.trained_networks import TrainedNetworks, TrainingHistory
from leakscope.relu.training import TrainingPlan, train

__all__ = [
    "LEAST_MARGIN",
    "BoundedMargin",
    "Candidate",
    "Coverage",
    "DataSpan",
    "Form",
    "FoundPieces",
    "KktResidual",
    "KnownMargin",
    "LeakedPoints",
    "MarginBounds",
    "MarginScan",
    "MaxMarginNetwork",
    "MembershipAnswer",
    "MixtureData",
    "NearOrthogonality",
    "Pieces",
    "PointCandidate",
    "PointReconstruction",
    "PointRecovery",
    "Reconstruction",
    "SphereData",
    "TheoremConstants",
    "TrainedNetworks",
    "TrainingHistory",
    "TrainingPlan",
    "TwoLayerNetwork",
    "attack_provenance",
    "coverage",
    "find_pieces",
    "kkt_residual",
    "margin_bounds",
    "max_margin_network",
    "membership_attack",
    "near_orthogonality",
    "network_from_sklearn",
    "normal_data",
    "orthogonality_of",
    "pieces",
    "point_recovery",
    "reconstruct",
    "reconstruct_from_queries",
    "reconstruct_points",
    "scan_margin",
    "scores_law_pair",
    "train",
]
