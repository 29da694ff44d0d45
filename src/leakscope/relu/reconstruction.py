"""Reconstruction of training records from a network with one input: Thms 3.1 to 3.4 of **relu**."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import finite_or_none
from leakscope.errors import InputError
from leakscope.laws import Assumption
from leakscope.relu.crossings import Crossing, crossings, flats
from leakscope.relu.max_margin import MaxMarginNetwork
from leakscope.relu.moments import (
    MomentBounds,
    NeuronMoments,
    Places,
    moment_bounds,
    neuron_moments,
)
from leakscope.relu.network import TwoLayerNetwork
from leakscope.relu.pieces import Pieces, pieces
from leakscope.relu.training_check import (
    KKT_RESIDUAL,
    TrainingCheck,
    check_training_set,
    precision_and_recall,
)
from leakscope.settings import RECONSTRUCT_DEFAULTS

if TYPE_CHECKING:
    import pandas as pd

Form = Literal["printed", "pieces", "moments"]

_POSITIVE = 1e-6  # of the largest multiplier: above it a multiplier is not rounding


@dataclass(frozen=True)
class Candidate:
    """A place where a training record may be.

    Attributes
    ----------
    x
        The place.
    label
        1 or -1, the sign of f there, which is the record's label.
    theorem
        ``"3.1"``, ``"3.2"`` or ``"3.3"`` of **relu**; ``"pieces"`` for what those leave out (a lone
        piece, an unbounded one); ``"moments"`` for the weighted mean of the records in a constant
        piece, which is the record itself if it is the only one there.
    piece
        The linear piece it lies on, counted from 0; the left one at a kink.
    multiplier_low, multiplier_high
        Least and largest KKT multiplier of a record there, over all training sets for which the
        network is a KKT point; ``None`` where only the function is known.
    certified
        Whether the least is above zero, and the weights fit a KKT point with this margin to 1e-6
        (and ``tolerance`` is no larger): under KKT alone, there is a training record at ``x``.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.max_margin_network([-1.0, 0.5, 2.0], [-1, 1, 1]).network
    >>> [(round(c.x, 9), c.label, c.certified) for c in relu.reconstruct(network).candidates]
    [(-1.0, -1, True), (0.5, 1, True)]
    """

    x: float
    label: int
    theorem: str
    piece: int
    multiplier_low: float | None = None
    multiplier_high: float | None = None
    certified: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite bound becomes ``None``."""
        return {
            "x": self.x,
            "label": self.label,
            "theorem": self.theorem,
            "piece": self.piece,
            "certified": self.certified,
            "multiplier_low": self.multiplier_low,
            "multiplier_high": finite_or_none(self.multiplier_high),
        }


@dataclass(frozen=True)
class Flat:
    """A constant piece on the margin: records in it are not determined by crossings.

    ``certified`` says whether, under KKT, there must be a record in it; ``low`` or ``high`` may be
    infinite.  ``mean`` is the place of the records in it, averaged with their multipliers, where
    the weights determine it: the record if there is one, and between two of them otherwise.
    """

    low: float
    high: float
    label: int
    certified: bool
    mean: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite end becomes ``None``."""
        return {
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
            "label": self.label,
            "certified": self.certified,
            "mean": self.mean,
        }


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What the margin and the weights of a network give away about its training set.

    Attributes
    ----------
    candidates
        In order of x.
    flats
        Constant pieces on the margin.
    margin, form
        As used.
    residual
        How far the weights are from KKT with records at the candidates, in units in which every
        neuron's moments have length one; ``None`` where only the function is known.
    guarantee
        A proven lower bound on the share of the candidates that are training records; ``None``
        unless the training set was given and the network is a KKT point of it.
    precision, recall
        Share of the candidates that are training records, and share of the records on the margin
        that are candidates; ``None`` without the training set, precision also without candidates.
    assumptions
        What the theorems need, and whether it holds here.
    queries
        How often the network was asked, for a reconstruction from queries alone.

    Examples
    --------
    >>> from leakscope import relu
    >>> found = relu.reconstruct(relu.max_margin_network([-1.0, 0.5, 2.0], [-1, 1, 1]))
    >>> found.precision, found.recall, found.guarantee
    (1.0, 1.0, 1.0)
    """

    candidates: tuple[Candidate, ...]
    flats: tuple[Flat, ...]
    margin: float
    form: Form
    residual: float | None
    guarantee: float | None
    precision: float | None
    recall: float | None
    assumptions: tuple[Assumption, ...]
    queries: int | None = None

    @property
    def x(self) -> FloatArray:
        """The candidates' places alone."""
        return np.array([candidate.x for candidate in self.candidates])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "flats": [flat.to_dict() for flat in self.flats],
            "margin": self.margin,
            "form": self.form,
            "residual": self.residual,
            "guarantee": self.guarantee,
            "precision": self.precision,
            "recall": self.recall,
            "queries": self.queries,
            "assumptions": [vars(one) for one in self.assumptions],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate."""
        import pandas as pd

        return pd.DataFrame([candidate.to_dict() for candidate in self.candidates])


def reconstruct(
    network: TwoLayerNetwork | MaxMarginNetwork,
    *,
    margin: float = 1.0,
    form: Form = RECONSTRUCT_DEFAULTS.form,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> Reconstruction:
    """Candidates for training records of a network with one input, from its weights.

    Parameters
    ----------
    network
        With one input, at a KKT point of Eq. (1), or near one; a :class:`MaxMarginNetwork` brings
        its training set along.
    margin
        m, the least y f(x) of training; :func:`scan_margin` where it is not known.
    form
        ``"printed"``: Algorithm 1 as printed, over bounded pieces in pairs.  ``"pieces"``: every
        piece that is not constant, the unbounded ones included.  ``"moments"``: those whose
        multiplier can be above zero, and the weighted mean of a bounded constant piece where the
        moment equations determine it.
    training
        The records x and labels y, to check KKT on and to say how good the candidates are.
    tolerance
        How near the margin, as a share of it, counts as on it, and which slope, as a share of all,
        as zero; a network trained for a finite time needs a larger one, and certifies nothing.

    Examples
    --------
    >>> from leakscope import relu
    >>> found = relu.max_margin_network([-2.0, -0.5, 0.3, 1.0, 1.8], [1, -1, 1, 1, -1])
    >>> relu.reconstruct(found.network).x.round(9).tolist()
    [-2.0, -0.5, 0.3, 1.0, 1.8]
    """
    if isinstance(network, MaxMarginNetwork):
        optimal: MaxMarginNetwork | None = network
        training = (network.x, network.y) if training is None else training
        network = network.network
    else:
        optimal = None
    require_margin(margin)
    if form not in get_args(Form):
        raise InputError(f"form must be printed, pieces or moments, but it is {form!r}.")
    found = pieces(network, tolerance=tolerance)
    neurons = neuron_moments(network)
    candidates, flat, bounds = candidates_of(found, neurons, margin, form, tolerance)
    check = None
    if training is not None:
        check = check_training_set(network, neurons, *training, margin, tolerance)
    return assembled(candidates, flat, margin, form, bounds, check, optimal)


def candidates_of(
    found: Pieces, neurons: NeuronMoments | None, margin: float, form: Form, tolerance: float
) -> tuple[list[Candidate], list[Flat], MomentBounds | None]:
    """The candidates of one form; without the neurons there are no multipliers."""
    places = crossings(found, margin, tolerance)
    level = dict(flats(found, margin, tolerance))
    bounds = None
    if neurons is not None:
        ends = np.array([found.bounds(piece) for piece in level]).reshape(-1, 2)
        where = Places(
            np.array([place.x for place in places]),
            np.array([float(place.sign) for place in places]),
            ends[:, 0],
            ends[:, 1],
            np.array([float(sign) for sign in level.values()]),
        )
        bounds = moment_bounds(neurons, where)
    # a network that is no KKT point with this margin, or only nearly, certifies nothing
    exact = bounds is not None and max(bounds.residual, tolerance) <= KKT_RESIDUAL
    candidates = []
    theorem = _theorems(found, level, places, 0 if neurons is None else len(neurons.kinks))
    for i, place in enumerate(places):
        if form == "printed" and theorem[i] == "pieces":
            continue
        low = high = None
        certified = False
        if bounds is not None:
            scale = math.hypot(1.0, place.x)
            low, high = float(bounds.low[i]) / scale, float(bounds.high[i]) / scale
            reach = _POSITIVE * max(1.0, float(bounds.low.max()))
            certified = exact and bool(bounds.low[i] > reach)
            if form == "moments" and bounds.high[i] <= reach:
                continue
        piece = min(place.pieces)
        candidates.append(Candidate(place.x, place.sign, theorem[i], piece, low, high, certified))
    regions = []
    for i, (piece, sign) in enumerate(level.items()):
        ends_of = found.bounds(piece)
        held = exact and bounds is not None and bool(bounds.interval_low[i] > _POSITIVE)
        mean = None
        if bounds is not None:
            low, high = float(bounds.mean_low[i]), float(bounds.mean_high[i])
            if high - low <= 1e-6 * (1.0 + abs(low)):
                mean = 0.5 * (low + high)
        regions.append(Flat(*ends_of, sign, held, mean))
        if form == "moments" and mean is not None and all(map(math.isfinite, ends_of)):
            candidates.append(Candidate(mean, sign, "moments", piece))
    candidates.sort(key=lambda candidate: candidate.x)
    return candidates, regions, bounds


def _theorems(
    found: Pieces, level: dict[int, int], places: list[Crossing], neurons: int
) -> list[str]:
    """Which theorem puts each crossing into the set, Algorithm 1's conditions piece by piece."""
    last = len(found) - 1
    bounded = [0 < piece < last for piece in range(len(found))]
    plain = [bounded[piece] and piece not in level for piece in range(len(found))]
    second = [
        plain[p] and ((p > 0 and plain[p - 1]) or (p < last and plain[p + 1]))
        for p in range(len(found))
    ]
    third = [
        0 < p < last and plain[p] and all(q in level and bounded[q] for q in (p - 1, p + 1))
        for p in range(len(found))
    ]
    names = []
    for place in places:
        if neurons == 1:
            names.append("3.1")
        elif any(second[p] for p in place.pieces):
            names.append("3.2")
        elif any(third[p] for p in place.pieces):
            names.append("3.3")
        else:
            names.append("pieces")
    return names


def require_margin(margin: float) -> None:
    """Refuse a margin that is not a positive number."""
    if not (isinstance(margin, (int, float)) and math.isfinite(margin) and margin > 0.0):
        raise InputError(f"The margin must be a positive number, but it is {margin!r}.")


def assembled(
    candidates: list[Candidate],
    flat: list[Flat],
    margin: float,
    form: Form,
    bounds: MomentBounds | None,
    check: TrainingCheck | None,
    optimal: MaxMarginNetwork | None = None,
    queries: int | None = None,
) -> Reconstruction:
    """The result with what the training set, if it was given, says of it."""
    x = np.array([candidate.x for candidate in candidates])
    precision = recall = guarantee = None
    if check is not None:
        precision, recall = precision_and_recall(x, check.x, check.on_margin, check.tolerance)
        if check.is_kkt and candidates:
            guarantee = sum(candidate.certified for candidate in candidates) / len(candidates)
            third = any(candidate.theorem == "3.3" for candidate in candidates)
            # a quarter of Algorithm 1's set: docs/relu.md has the proof
            if form == "printed" and (check.always_active or not third):
                guarantee = max(guarantee, 0.25)
    return Reconstruction(
        tuple(candidates),
        tuple(flat),
        float(margin),
        form,
        None if bounds is None else bounds.residual,
        guarantee,
        precision,
        recall,
        _assumptions(bounds, check, optimal),
        queries,
    )


def _assumptions(
    bounds: MomentBounds | None, check: TrainingCheck | None, optimal: MaxMarginNetwork | None
) -> tuple[Assumption, ...]:
    if check is not None:
        kkt = Assumption(
            "the network is a KKT point of Eq. (1) with this margin",
            check.is_kkt,
            f"residual {check.residual:.1e} on the training set given, least margin "
            f"{check.least_margin:.6g}",
        )
        active = Assumption(
            "a neuron is active on every record",
            check.always_active,
            "looked at on the training set given",
        )
    else:
        seen = (
            "only the function was asked"
            if bounds is None
            else f"residual {bounds.residual:.1e} with records at the candidates; no training set "
            "was given"
        )
        kkt = Assumption("the network is a KKT point of Eq. (1) with this margin", None, seen)
        active = Assumption("a neuron is active on every record", None, "no training set was given")
    minimum = Assumption(
        "the network is a local minimum of Eq. (1)",
        None if optimal is None else True,
        "not checked, and not needed for the guarantee"
        if optimal is None
        else f"global optimum by a conic programme, duality gap {optimal.gap:.1e}",
    )
    return kkt, active, minimum
