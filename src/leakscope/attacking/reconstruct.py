"""From a trained network of one input, or a fitted model, to candidates for training records."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np

from leakscope import __version__, relu
from leakscope._numerics.arrays import FloatArray
from leakscope.attacking.network_inputs import (
    answered,
    described_network,
    network_arrays,
    training_rows,
)
from leakscope.attacking.reconstruct_fit import reconstruct_from_fit
from leakscope.errors import InputError
from leakscope.relu.reconstruction import Reconstruction
from leakscope.results.attacks import (
    FitReconstructAttack,
    ReconstructAttack,
    ReconstructedFlat,
    ReconstructedRecord,
)
from leakscope.results.document import AssumptionEntry
from leakscope.settings.attack import (
    FIT_RECONSTRUCT_DEFAULTS,
    RECONSTRUCT_DEFAULTS,
    FitReconstructSettings,
    ReconstructForm,
)

# How near the margin, as a share of it, is on it.
TOLERANCE = RECONSTRUCT_DEFAULTS.tolerance

# A network whose conditions are off by more is no KKT point, nor nearly one.
FAR_FROM = 0.01


def attack_reconstruct(
    network: Any,
    *,
    known: Any = None,
    settings: FitReconstructSettings = FIT_RECONSTRUCT_DEFAULTS,
    margin: float | None = None,
    form: ReconstructForm = RECONSTRUCT_DEFAULTS.form,
    data: Any = None,
    black_box: bool = False,
    tolerance: float = TOLERANCE,
) -> ReconstructAttack | FitReconstructAttack:
    """Reconstruct training records from a trained model.

    A fitted linear model gives the one record away that somebody does not know who knows all
    others.  A two-layer ReLU network gives records away by itself: it must be near a KKT point of
    the maximum-margin problem, where training with the logistic or exponential loss ends, and have
    one input: certified candidates are then training records.

    Parameters
    ----------
    network
        A :class:`leakscope.relu.TwoLayerNetwork`, or the file that holds one; or a fitted linear
        model: an estimator, or a .skops file with ``known``.
    known
        Of a fitted model: the records that the attacker knows, all but the missing ones; records
        and labels, or a file.  With ``data`` alone every record of it is attacked in turn.
    settings
        Of a fitted model: target, how many are missing, noise on the coefficients.
    margin
        The least y f(x) of training; the largest that fits the weights where left out.
    form
        ``pieces``: every linear piece; ``printed``: Algorithm 1 as printed; ``moments``: what the
        multipliers allow.
    data
        The training set, to check the answer on: records and labels of -1 or 1, or a file whose
        last column is the label.  Of a fitted model: the missing record, to check the answer on,
        or without ``known`` all records.
    black_box
        Use the network's answers alone, not its weights.
    tolerance
        How near the margin, as a share of it, is on it.

    Returns
    -------
    ReconstructAttack
        Of a network: the candidates, and what is known of them.
    FitReconstructAttack
        Of a fitted model: the missing record, or how many could be found.

    Raises
    ------
    InputError
        Where the network is constant, or has several inputs, which no theorem covers.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import relu
    >>> trained = relu.max_margin_network([-2.0, -0.5, 0.3, 1.0, 1.8], [1, -1, 1, 1, -1])
    >>> found = leakscope.attack_reconstruct(trained.network, margin=1.0)
    >>> [(round(one.x, 6), one.label) for one in found.candidates][:2]
    [(-2.0, 1), (-0.5, -1)]
    """
    if known is not None or _is_fit(network):
        return reconstruct_from_fit(network, known, data, settings)
    if form not in get_args(ReconstructForm):
        raise InputError(
            f"form must be one of {', '.join(get_args(ReconstructForm))}, but it is {form!r}."
        )
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"tolerance must be between 0 and 1, but it is {tolerance:g}.")
    if black_box and margin is None:
        raise InputError("black_box needs the margin: the weights are what tells it.")
    begin = time.perf_counter()
    arrays = network_arrays(network)
    if not (arrays.v[:, None] * arrays.w).any():
        named = network if isinstance(network, (str, Path)) else arrays.name
        raise InputError(f"{named}: the network's answer is the same everywhere.")
    if arrays.w.shape[1] > 1:
        raise InputError(
            f"{arrays.name} has {arrays.w.shape[1]} inputs, and the theorems of reconstruction are "
            "about one: leakscope attack membership takes networks of any number."
        )
    training = None
    if data is not None:
        x, y = training_rows(data, 1)
        training = (x[:, 0], y)
    attacked = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    known = relu.scan_margin(attacked, tolerance=tolerance).best if margin is None else margin
    attack = relu.reconstruct_from_queries if black_box else relu.reconstruct
    found = attack(attacked, margin=known, form=form, training=training, tolerance=tolerance)
    return ReconstructAttack(
        leakscope_version=__version__,
        settings={
            "margin": margin,
            "form": form,
            "black_box": black_box,
            "tolerance": tolerance,
        },
        provenance=answered(found.provenance()),
        assumptions=[AssumptionEntry(**asdict(one)) for one in found.assumptions],
        timing={"attack": time.perf_counter() - begin},
        warnings=list(arrays.notes),
        network=described_network(arrays),
        margin=found.margin,
        margin_known=margin is not None,
        form=found.form,
        candidates=[ReconstructedRecord(**one.to_dict()) for one in found.candidates],
        flats=[ReconstructedFlat(**one.to_dict()) for one in found.flats],
        residual=found.residual,
        guarantee=found.guarantee,
        precision=found.precision,
        recall=found.recall,
        margin_recall=found.margin_recall,
        queries=found.queries,
        function=None if black_box else _joined(attacked, found.x),
        verdict=_verdict(found, margin is not None),
    )


def _is_fit(model: Any) -> bool:
    """Whether it is a fitted model and no network."""
    if isinstance(model, (str, Path)):
        return str(model).lower().endswith(".skops")
    return hasattr(model, "get_params")


def _joined(network: relu.TwoLayerNetwork, places: FloatArray) -> list[tuple[float, float]]:
    """The breakpoints, and a point on either side beyond them and all candidates."""
    kinks = relu.pieces(network).breakpoints
    inner = np.concatenate([kinks, places])
    width = max(float(np.ptp(inner)), 1.0) if inner.size else 1.0
    middle = inner if inner.size else np.zeros(1)
    ends = [middle.min() - 0.25 * width, middle.max() + 0.25 * width]
    x = np.unique(np.concatenate([ends, kinks]))
    return [(float(a), float(b)) for a, b in zip(x, network(x), strict=True)]


def _verdict(found: Reconstruction, margin_known: bool) -> str:
    total = len(found.candidates)
    certified = sum(candidate.certified for candidate in found.candidates)
    parts = []
    if not margin_known:
        parts.append(
            f"The margin {found.margin:.6g} is the largest that fits the weights best; others may "
            "fit as well."
        )
    if found.queries is not None:
        parts.append(
            f"{total} candidates from {found.queries} queries; without weights none is certified."
        )
    elif found.residual is not None:
        parts.append(
            f"{certified} of {total} candidates are certified: if the network is a KKT point with "
            "this margin, they are training records. "
            + (
                f"It is one, to within {found.residual:.1e}."
                if found.residual <= FAR_FROM
                else f"It is far from a KKT point (off by {found.residual:.2g}): unreliable."
            )
        )
    if found.flats:
        parts.append(
            f"{len(found.flats)} constant pieces lie on the margin; records inside them are not "
            "determined by crossings."
        )
    if found.guarantee is not None:
        parts.append(f"Proven share of records among the candidates: {found.guarantee:.2f}.")
    elif found.precision is not None and found.queries is None:
        parts.append("The network is not a KKT point of the training set given: no guarantee.")
    else:
        parts.append("Nothing is proven: that takes the training set and the weights.")
    return " ".join(parts)
