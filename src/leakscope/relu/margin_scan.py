"""Reconstruction where the margin is not known: the one number that fits the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.crossings import crossings, flats
from leakscope.relu.moments import Places, moment_residual, neuron_moments
from leakscope.relu.network import TwoLayerNetwork
from leakscope.relu.pieces import Pieces, pieces
from leakscope.settings import RECONSTRUCT_DEFAULTS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class MarginScan:
    """Margins in the order in which they fit the weights, best first.

    ``residuals`` are those of the moment equations with records where the function meets that
    margin; ``places`` counts these.  Several margins may fit exactly.

    Examples
    --------
    >>> from leakscope import relu
    >>> network = relu.max_margin_network([-2.0, -0.5, 0.3, 1.8], [1, -1, 1, -1]).network
    >>> scan = relu.scan_margin(network)
    >>> round(scan.best, 9), bool(scan.residuals[0] < 1e-9)
    (1.0, True)
    """

    margins: FloatArray
    residuals: FloatArray
    places: NDArray[np.intp]

    @property
    def best(self) -> float:
        """The margin that fits best."""
        return float(self.margins[0])

    def to_frame(self) -> pd.DataFrame:
        """One row a margin."""
        import pandas as pd

        return pd.DataFrame(
            {"margin": self.margins, "residual": self.residuals, "places": self.places}
        )


def scan_margin(
    network: TwoLayerNetwork,
    *,
    steps: int = 100,
    keep: int = 10,
    tolerance: float = RECONSTRUCT_DEFAULTS.tolerance,
) -> MarginScan:
    """Try margins, and rank them by how well the weights fit a KKT point with that margin.

    The moment equations of the neurons (:mod:`leakscope.relu.moments`) have a solution with
    multipliers at the crossings if the margin is right.  Tried are |f| at every breakpoint, because
    kinks like to lie on records, and on constant pieces; and ``steps`` margins in equal ratios from
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
    found, neurons = pieces(network, tolerance=tolerance), neuron_moments(network)
    half = 0.5 * float(np.sum(network.w**2) + np.sum(network.b**2) + np.sum(network.v**2))
    if not len(neurons.kinks) or half < np.finfo(np.float64).tiny:
        raise InputError(
            "There is no margin to look for: the network's answer is zero everywhere, or its "
            "weights are too small for float64."
        )
    grid = half * np.geomspace(1e-5, 1e2, steps)

    def residual(margin: float) -> float:
        return moment_residual(neurons, places_on(found, margin, tolerance))

    rough = np.array([residual(margin) for margin in grid])
    levels = [found.start(int(piece))[1] for piece in np.flatnonzero(found.constant)]
    at_kinks = np.unique(np.abs(np.concatenate([found.values, levels])))
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
    order = sorted(tried, key=lambda margin: (round(tried[margin], 10), -margin))[:keep]
    counts = [len(places_on(found, margin, tolerance).x) for margin in order]
    return MarginScan(
        np.array(order), np.array([tried[margin] for margin in order]), np.array(counts, np.intp)
    )


def places_on(found: Pieces, margin: float, tolerance: float) -> Places:
    """Where the function meets a margin."""
    points = crossings(found, margin, tolerance)
    level = flats(found, margin, tolerance)
    ends = np.array([found.bounds(piece) for piece, _ in level]).reshape(-1, 2)
    return Places(
        np.array([point.x for point in points]),
        np.array([float(point.sign) for point in points]),
        ends[:, 0],
        ends[:, 1],
        np.array([float(sign) for _, sign in level]),
    )
