"""Reconstruction of training records from a network with one input: Thms 3.1 to 3.4 of **relu**.

From the weights, from answers alone, and where the margin is not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.json_numbers import finite_or_none
from leakscope.errors import InputError
from leakscope.laws.pair import Assumption, Provenance
from leakscope.relu.max_margin import MaxMarginNetwork
from leakscope.relu.moments import (
    MomentBounds,
    NeuronMoments,
    Places,
    moment_bounds,
    moment_residual,
    neuron_moments,
)
from leakscope.relu.network import TwoLayerNetwork, signs
from leakscope.relu.pieces import Ask, Crossing, Pieces, crossings, find_pieces, flats, pieces
from leakscope.settings.attack import RECONSTRUCT_DEFAULTS

Form = Literal["printed", "pieces", "moments"]

KKT_RESIDUAL = 1e-6  # largest residual and imbalance, in units of moments of length one
_POSITIVE = 1e-6  # of the largest multiplier: above it a multiplier is not rounding
_SAME = 1e-6  # a candidate this near a record, relative to 1 + |x|, is the record at the least


@dataclass(frozen=True)
class Candidate:
    """A place where a training record may be."""

    x: float  # the place
    label: int  # 1 or -1, the sign of f there, which is the record's label
    # ``"3.1"``, ``"3.2"`` or ``"3.3"`` of **relu**; ``"pieces"`` for what those leave out (a lone
    # piece, an unbounded one); ``"moments"`` for the weighted mean of the records in a constant
    # piece, which is the record itself if it is the only one there.
    theorem: str
    piece: int  # the linear piece it lies on, counted from 0; the left one at a kink
    # Least and largest KKT multiplier of a record there, over all training sets for which the
    # network is a KKT point; ``None`` where only the function is known.
    multiplier_low: float | None = None
    multiplier_high: float | None = None
    # Whether the least is above zero, and the weights fit a KKT point with this margin to 1e-6 (and
    # ``tolerance`` is no larger): under KKT alone, there is a training record at ``x``.
    certified: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite bound becomes ``None``."""
        return {**vars(self), "multiplier_high": finite_or_none(self.multiplier_high)}


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
            **vars(self),
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
        }


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What the margin and the weights of a network give away about its training set."""

    candidates: tuple[Candidate, ...]  # in order of x
    flats: tuple[Flat, ...]  # constant pieces on the margin
    margin: float  # as used
    form: Form
    # How far the weights are from KKT with records at the candidates, in units in which every
    # neuron's moments have length one; ``None`` where only the function is known.
    residual: float | None
    assumptions: tuple[Assumption, ...]  # what the theorems need, and whether it holds here
    # A proven lower bound on the share of the candidates that are training records; ``None`` unless
    # the training set was given and the network is a KKT point of it.
    guarantee: float | None = None
    # Share of the candidates that are training records, share of all records that are candidates,
    # and share of those on the margin; ``None`` without the training set, precision also without
    # candidates, the last also without a record on the margin.
    precision: float | None = None
    recall: float | None = None
    margin_recall: float | None = None
    # How often the network was asked, for a reconstruction from queries alone.
    queries: int | None = None

    @property
    def x(self) -> FloatArray:
        """The candidates' places alone."""
        return np.array([candidate.x for candidate in self.candidates])

    def provenance(self) -> Provenance:
        """This training set, by the weights or, from queries, by the answers."""
        return Provenance(
            question="leave_one_out",
            observes="coefficients" if self.queries is None else "prediction",
            method="exact",
            source="relu Thms 3.1 to 3.4, Algorithm 1",
            assumptions=self.assumptions,
        )


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
    optimal = network if isinstance(network, MaxMarginNetwork) else None
    if isinstance(network, MaxMarginNetwork):
        training = (network.x, network.y) if training is None else training
        network = network.network
    _require_margin(margin)
    if form not in get_args(Form):
        raise InputError(f"form must be printed, pieces or moments, but it is {form!r}.")
    neurons = neuron_moments(network)
    function = pieces(network, tolerance=tolerance)
    candidates, flat, bounds = _candidates(function, neurons, margin, form, tolerance)
    check = None
    if training is not None:
        check = _check(network, neurons, *training, margin, tolerance)
    found = Reconstruction(
        tuple(candidates),
        tuple(flat),
        float(margin),
        form,
        None if bounds is None else bounds.residual,
        _assumptions(bounds, check, optimal),
    )
    if check is None:
        return found
    found = _compared(found, check.x, check.on_margin, tolerance)
    guarantee = None
    if check.is_kkt and candidates:
        guarantee = sum(candidate.certified for candidate in candidates) / len(candidates)
        third = any(candidate.theorem == "3.3" for candidate in candidates)
        # a quarter of Algorithm 1's set: docs/relu.md has the proof
        if form == "printed" and (check.always_active or not third):
            guarantee = max(guarantee, 0.25)
    return replace(found, guarantee=guarantee)


def reconstruct_from_queries(
    ask: Ask,
    *,
    margin: float = 1.0,
    form: Form = RECONSTRUCT_DEFAULTS.form,
    reach: float = 1e4,
    max_queries: int = 10_000,
    training: tuple[ArrayLike, ArrayLike] | None = None,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> Reconstruction:
    """Candidates for training records from answers alone (footnote 3 of **relu**).

    ``form`` is ``"printed"`` or ``"pieces"``, as for :func:`reconstruct`; without weights there are
    no multipliers, so that no candidate is certified and there is no guarantee.  ``queries`` of the
    result says how often the function was asked.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.max_margin_network([-2.0, -0.5, 0.3, 1.8], [1, -1, 1, -1]).network
    >>> found = relu.reconstruct_from_queries(network)
    >>> found.x.round(8).tolist(), found.queries < 200
    ([-2.0, -0.5, 0.3, 1.8], True)
    """
    _require_margin(margin)
    if form not in ("printed", "pieces"):
        raise InputError(
            f"From queries alone the form is printed or pieces, not {form!r}: the moments are in "
            "the weights."
        )
    function = find_pieces(ask, reach=reach, max_queries=max_queries)
    if not function.complete:
        raise InputError(
            f"{function.queries} queries did not resolve the kinks of the function; raise "
            "max_queries, or, if the function's answers are rounded, ask for fewer digits."
        )
    candidates, flat, _ = _candidates(function.pieces, None, margin, form, tolerance)
    found = Reconstruction(
        tuple(candidates),
        tuple(flat),
        float(margin),
        form,
        None,
        _assumptions(None, None, None),
        queries=function.queries,
    )
    if training is None:
        return found
    x = np.asarray(training[0], dtype=np.float64).reshape(-1)
    labels = signs(training[1], len(x))
    answers = np.asarray(ask(x), dtype=np.float64).reshape(-1)
    on = np.abs(labels * answers - margin) <= tolerance * margin
    return _compared(found, x, x[on], tolerance)


@dataclass(frozen=True, eq=False)
class MarginScan:
    """Margins in the order in which they fit the weights, best first.

    ``residuals`` are those of the moment equations with records where the function meets that
    margin.  Several margins may fit exactly.
    """

    margins: FloatArray
    residuals: FloatArray

    @property
    def best(self) -> float:
        """The margin that fits best."""
        return float(self.margins[0])


def scan_margin(
    network: TwoLayerNetwork,
    *,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> MarginScan:
    """Try margins, and rank them by how well the weights fit a KKT point with that margin.

    The moment equations of the neurons (:mod:`leakscope.relu.moments`) have a solution with
    multipliers at the crossings if the margin is right.  Tried are |f| at every breakpoint, because
    kinks like to lie on records, and on constant pieces; and a hundred margins in equal ratios from
    1e-5 to 100 times half the squared norm of the weights, which is the margin times the sum of the
    multipliers, the best of them refined.  Among margins that fit equally well the largest comes
    first.  Where no kink lies on a record a whole range of margins may fit: the weights do not
    determine it then.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.TwoLayerNetwork(w=[0.6], b=[0.8], v=[1.0])
    >>> round(relu.scan_margin(network).best, 6)  # x = w/b = 0.75, and f(0.75) is the margin
    1.25
    """
    function, neurons = pieces(network, tolerance=tolerance), neuron_moments(network)
    half = 0.5 * float(np.sum(network.w**2) + np.sum(network.b**2) + np.sum(network.v**2))
    if not len(neurons.kinks) or half < np.finfo(np.float64).tiny:
        raise InputError(
            "There is no margin to look for: the network's answer is zero everywhere, or its "
            "weights are too small for float64."
        )
    grid = half * np.geomspace(1e-5, 1e2, 100)

    def residual(margin: float) -> float:
        where = _places(
            function, crossings(function, margin, tolerance), flats(function, margin, tolerance)
        )
        return moment_residual(neurons, where)

    rough = np.array([residual(margin) for margin in grid])
    levels = [function.start(int(piece))[1] for piece in np.flatnonzero(function.constant)]
    at_kinks = np.unique(np.abs(np.concatenate([function.values, levels])))
    at_kinks = at_kinks[at_kinks > 1e-9 * half]
    tried = {float(margin): residual(float(margin)) for margin in at_kinks}
    inner = np.flatnonzero((rough[1:-1] <= rough[:-2]) & (rough[1:-1] <= rough[2:])) + 1
    fitting = [margin for margin, error in tried.items() if error <= 1e-9]
    # small margins fit easily, by large multipliers of both signs in pairs: the largest is wanted
    inner = inner[grid[inner + 1] > max(fitting, default=0.0)]
    for i in inner[np.argsort(rough[inner])][:4]:
        refined = optimize.minimize_scalar(
            lambda log_margin: residual(float(np.exp(log_margin))),
            bounds=(np.log(grid[i - 1]), np.log(grid[i + 1])),
            method="bounded",
            options={"xatol": 1e-11, "maxiter": 60},
        )
        margin = float(np.exp(refined.x))
        if all(abs(margin - other) > 1e-6 * margin for other in tried):
            tried[margin] = float(refined.fun)
    if not tried:
        tried = dict(zip(grid.tolist(), rough.tolist(), strict=True))
    order = sorted(tried, key=lambda margin: (round(tried[margin], 10), -margin))[:10]
    return MarginScan(np.array(order), np.array([tried[margin] for margin in order]))


def _require_margin(margin: float) -> None:
    if not (isinstance(margin, (int, float)) and math.isfinite(margin) and margin > 0.0):
        raise InputError(f"The margin must be a positive number, but it is {margin!r}.")


def _places(function: Pieces, crossed: list[Crossing], level: list[tuple[int, int]]) -> Places:
    """Where records that hold the network can be: crossings, and constant pieces on the margin."""
    ends = np.array([function.bounds(piece) for piece, _ in level]).reshape(-1, 2)
    return Places(
        np.array([place.x for place in crossed]),
        np.array([float(place.sign) for place in crossed]),
        ends[:, 0],
        ends[:, 1],
        np.array([float(sign) for _, sign in level]),
    )


def _candidates(
    function: Pieces, neurons: NeuronMoments | None, margin: float, form: Form, tolerance: float
) -> tuple[list[Candidate], list[Flat], MomentBounds | None]:
    """The candidates of one form; without the neurons there are no multipliers."""
    crossed = crossings(function, margin, tolerance)
    level = flats(function, margin, tolerance)
    bounds = None
    if neurons is not None:
        bounds = moment_bounds(neurons, _places(function, crossed, level))
    # a network that is no KKT point with this margin, or only nearly, certifies nothing
    exact = bounds is not None and max(bounds.residual, tolerance) <= KKT_RESIDUAL
    candidates = []
    alone = neurons is not None and len(neurons.kinks) == 1
    theorem = _theorems(function, {piece for piece, _ in level}, crossed, alone)
    for i, place in enumerate(crossed):
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
    for i, (piece, sign) in enumerate(level):
        ends = function.bounds(piece)
        held = exact and bounds is not None and bool(bounds.interval_low[i] > _POSITIVE)
        mean = None
        if bounds is not None:
            low, high = float(bounds.mean_low[i]), float(bounds.mean_high[i])
            if high - low <= 1e-6 * (1.0 + abs(low)):
                mean = 0.5 * (low + high)
        regions.append(Flat(*ends, sign, held, mean))
        if form == "moments" and mean is not None and all(map(math.isfinite, ends)):
            candidates.append(Candidate(mean, sign, "moments", piece))
    candidates.sort(key=lambda candidate: candidate.x)
    return candidates, regions, bounds


def _theorems(function: Pieces, level: set[int], crossed: list[Crossing], alone: bool) -> list[str]:
    """Which theorem puts each crossing into the set, Algorithm 1's conditions piece by piece."""
    last = len(function) - 1
    bounded = {piece for piece in range(len(function)) if 0 < piece < last}
    plain = bounded - level
    second = {p for p in plain if p - 1 in plain or p + 1 in plain}
    third = {p for p in plain if {p - 1, p + 1} <= level & bounded}
    names = []
    for place in crossed:
        if alone:
            names.append("3.1")
        elif second & set(place.pieces):
            names.append("3.2")
        elif third & set(place.pieces):
            names.append("3.3")
        else:
            names.append("pieces")
    return names


@dataclass(frozen=True, eq=False)
class _TrainingCheck:
    """What a given training set says of a network.

    ``residual`` is the larger of the error of the moment equations, with multipliers fitted to the
    records on the margin, and the neurons' imbalance; ``on_margin`` are those records' places.
    """

    residual: float
    least_margin: float
    is_kkt: bool
    always_active: bool
    x: FloatArray
    on_margin: FloatArray


def _check(
    network: TwoLayerNetwork,
    neurons: NeuronMoments,
    x: ArrayLike,
    y: ArrayLike,
    margin: float,
    tolerance: float,
) -> _TrainingCheck:
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
    return _TrainingCheck(
        residual,
        least,
        abs(least - margin) <= within and residual <= KKT_RESIDUAL,
        bool(np.any(active & (weight > 1e-9 * weight.sum()))),
        points,
        points[on],
    )


def _compared(
    found: Reconstruction, x: FloatArray, on_margin: FloatArray, tolerance: float
) -> Reconstruction:
    """With precision and recall: a candidate is a record within ``tolerance`` of 1 + |x|."""
    reach = max(_SAME, tolerance)

    def share(places: FloatArray, others: FloatArray) -> float | None:
        return float(_near(places, others, reach).mean()) if len(places) else None

    return replace(
        found,
        precision=share(found.x, x),
        recall=share(x, found.x),
        margin_recall=share(on_margin, found.x),
    )


def _near(places: FloatArray, others: FloatArray, reach: float) -> NDArray[np.bool_]:
    if not len(others):
        return np.zeros(len(places), dtype=bool)
    gap = np.abs(places[:, None] - others).min(axis=1)
    return np.asarray(gap <= reach * (1.0 + np.abs(places)))


def _assumptions(
    bounds: MomentBounds | None, check: _TrainingCheck | None, optimal: MaxMarginNetwork | None
) -> tuple[Assumption, ...]:
    kkt, active, seen = None, None, "no training set was given"
    if check is not None:
        kkt, active, seen = check.is_kkt, check.always_active, "looked at on the training set given"
        how = (
            f"residual {check.residual:.1e} on the training set given, least margin "
            f"{check.least_margin:.6g}"
        )
    elif bounds is not None:
        how = f"residual {bounds.residual:.1e} with records at the candidates; {seen}"
    else:
        how = "only the function was asked"
    return (
        Assumption("the network is a KKT point of Eq. (1) with this margin", kkt, how),
        Assumption("a neuron is active on every record", active, seen),
        Assumption(
            "the network is a local minimum of Eq. (1)",
            None if optimal is None else True,
            "not checked, and not needed for the guarantee"
            if optimal is None
            else f"global optimum by a conic programme, duality gap {optimal.gap:.1e}",
        ),
    )
