"""Whether a network with one input is a KKT point of a training set, and which guesses hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.moments import NeuronMoments, Places, moment_residual
from leakscope.relu.network import TwoLayerNetwork, signs

KKT_RESIDUAL = 1e-6  # largest residual and imbalance, in units of moments of length one
_SAME = 1e-6  # a candidate this near a record, relative to 1 + |x|, is the record at the least


@dataclass(frozen=True, eq=False)
class TrainingCheck:
    """What a given training set says of a network.

    ``residual`` is the larger of the error of the moment equations, with multipliers fitted to the
    records on the margin, and the neurons' imbalance; ``on_margin`` are those records' places.
    """

    residual: float
    least_margin: float
    margin_holds: bool
    always_active: bool
    x: FloatArray
    on_margin: FloatArray
    tolerance: float

    @property
    def is_kkt(self) -> bool:
        """Stationarity, feasibility and complementarity together."""
        return self.margin_holds and self.residual <= KKT_RESIDUAL


def precision_and_recall(
    candidates: FloatArray, x: FloatArray, on_margin: FloatArray, tolerance: float
) -> tuple[float | None, float | None]:
    """Share of the candidates that are records, and of the margin's records that are candidates.

    A candidate is a record within ``tolerance`` (1e-6 at least), relative to 1 + |x|.
    """
    reach = max(_SAME, tolerance)
    precision = float(_near(candidates, x, reach).mean()) if len(candidates) else None
    recall = float(_near(on_margin, candidates, reach).mean()) if len(on_margin) else None
    return precision, recall


def _near(places: FloatArray, others: FloatArray, reach: float) -> NDArray[np.bool_]:
    if not len(others):
        return np.zeros(len(places), dtype=bool)
    gap = np.abs(places[:, None] - others).min(axis=1)
    return np.asarray(gap <= reach * (1.0 + np.abs(places)))


def check_training_set(
    network: TwoLayerNetwork,
    neurons: NeuronMoments,
    x: ArrayLike,
    y: ArrayLike,
    margin: float,
    tolerance: float,
) -> TrainingCheck:
    """Fit multipliers to the records on the margin, and look for an always-active neuron."""
    points = network.inputs(x)[:, 0]
    if not len(points):
        raise InputError("The training set has no records.")
    labels = signs(y, len(points))
    margins = labels * network(points)
    within = max(tolerance, 1e-8) * margin
    least = float(margins.min())
    on = np.abs(margins - margin) <= within
    empty = np.zeros(0)
    unique, first = np.unique(points[on], return_index=True)
    places = Places(unique, labels[on][first], empty, empty, empty)
    residual = max(moment_residual(neurons, places), neurons.imbalance)
    active = np.all(points[:, None] * network.w[:, 0] + network.b > 0.0, axis=0)
    weight = np.abs(network.v) * np.hypot(network.w[:, 0], network.b)
    return TrainingCheck(
        residual,
        least,
        abs(least - margin) <= within,
        bool(np.any(active & (weight > 1e-9 * weight.sum()))),
        points,
        points[on],
        tolerance,
    )
