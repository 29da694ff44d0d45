"""Records of a network with several inputs, from its KKT residual: an attack without a theorem."""

from __future__ import annotations

import time

from leakscope import __version__, relu
from leakscope.attacking.network_inputs import TrainingSet, answered, told_of, training_rows
from leakscope.data import NetworkArrays
from leakscope.relu import PointReconstruction, PointRecovery
from leakscope.results import AssumptionEntry, ReconstructAttack, ReconstructedRecord

THEOREM = "kkt residual (no theorem)"


def reconstructed_points(
    arrays: NetworkArrays,
    margin: float | None,
    points: int | None,
    data: TrainingSet | None,
    seed: int,
) -> ReconstructAttack:
    """Attack a network with several inputs, and check what was found on the training set."""
    begin = time.perf_counter()
    network = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    training = None if data is None else training_rows(data, network.features)
    recovery, residual = None, None
    if training is not None:
        residual = relu.kkt_residual(network, *training)
    found = relu.reconstruct_points(network, points=points, margin=margin, random_state=seed)
    if training is not None:
        recovery = relu.point_recovery(found.x, training[0], random_state=seed)
    values = found.to_dict()
    entries = []
    for one in values.pop("candidates"):
        del one["method"]
        entries.append(
            ReconstructedRecord(
                theorem=THEOREM,
                piece=None,
                certified=False,
                multiplier_low=None,
                multiplier_high=None,
                **one,
            )
        )
    return ReconstructAttack(
        leakscope_version=__version__,
        settings={"margin": margin, "points": points, "seed": seed},
        provenance=answered(found),
        assumptions=[
            AssumptionEntry(
                statement="the network is a KKT point of the maximum-margin problem",
                holds=None if residual is None else residual.residual <= 1e-6,
                evidence=f"residual {found.residual:.1e} with the best points found; no training "
                "set was given"
                if residual is None
                else f"residual {residual.residual:.1e} on the training set given",
            ),
            AssumptionEntry(
                statement="the weights determine the records",
                holds=None if found.determined else False,
                evidence=f"{found.distinct} distinct neurons: the equations are "
                f"{'as many as' if found.determined else 'fewer than'} the unknowns",
            ),
        ],
        timing={"attack": time.perf_counter() - begin},
        warnings=list(arrays.notes),
        network=told_of(arrays),
        form="kkt",
        flats=[],
        queries=None,
        candidates=entries,
        precision=None if recovery is None else recovery.precision,
        recall=None if recovery is None else recovery.recall,
        baseline_recall=None if recovery is None else recovery.baseline_recall,
        verdict=_verdict(found, recovery),
        **values,
    )


def _verdict(found: PointReconstruction, recovery: PointRecovery | None) -> str:
    agreed = sum((one.agreement or 0.0) > 0.5 for one in found.candidates)
    parts = [
        f"An attack without a theorem. {found.solutions} of its starts explain the weights about "
        f"equally well, the best to a KKT residual of {found.residual:.1e}; more than half of them "
        f"agree on {agreed} of the {len(found.candidates)} candidates."
    ]
    if not found.determined:
        parts.append(
            "With so many records the network has too few distinct neurons to determine them: "
            "other points explain it exactly as well."
        )
    if recovery is not None:
        parts.append(
            f"As many random points from the records' own mean and covariance would have a recall "
            f"of {recovery.baseline_recall:.3f}."
        )
    return " ".join(parts)
