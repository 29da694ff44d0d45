"""How far a design is from the i.i.d. Gaussian one that the theory of **lasso** assumes.

Each figure is compared with what it is for i.i.d. Gaussian features of the same size; the
thresholds come from their fluctuation there and leave some room.  What breaks the theory is
dependence between columns, which the spectrum and the coherence see.  That entries are not
Gaussian matters little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.laws import Assumption

# Columns and rows looked at, at most: the spectrum of a part of an i.i.d. design has its own law.
LARGEST_SIDE = 2000
# How far the spectrum's distribution may be from Marchenko-Pastur's, beside its own fluctuation.
SPECTRUM_ROOM = 0.03
# How unequal columns may be, beside their own fluctuation.
LENGTH_ROOM = 0.05


@dataclass(frozen=True)
class DesignCheck:
    """Distances between a design and an i.i.d. Gaussian one.

    Attributes
    ----------
    records, features
        How many of each were looked at.
    spectrum_distance
        Largest difference between the distributions of the squared singular values and the
        Marchenko-Pastur law.
    length_spread
        Relative standard deviation of the columns' mean squares.
    expected_length_spread
        What it is for i.i.d. Gaussian entries, sqrt(2/n).
    coherence
        Largest |cosine| between two columns.
    expected_coherence
        About what it is for independent columns.
    mean_share
        Share of the squared entries that is due to the columns' means; 1/n where they are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.design_check import check_design
    >>> found = check_design(np.random.default_rng(0).standard_normal((100, 200)))
    >>> found.spectrum_distance < 0.05, all(a.holds for a in found.assumptions())
    (True, True)
    """

    records: int
    features: int
    spectrum_distance: float
    length_spread: float
    expected_length_spread: float
    coherence: float
    expected_coherence: float
    mean_share: float

    def assumptions(self) -> tuple[Assumption, ...]:
        """The three assumptions on the design, with the figures as evidence."""
        n, p = self.records, self.features
        room = SPECTRUM_ROOM + 3.0 / min(n, p)
        spread = math.hypot(1.5 * self.expected_length_spread, LENGTH_ROOM)
        coherent = 1.5 * self.expected_coherence
        mean = 1.0 / n + 5.0 * math.sqrt(2.0 / p) / n + 0.01
        return (
            Assumption(
                "columns are independent (singular values)",
                self.spectrum_distance <= room,
                f"distance from the Marchenko-Pastur law {self.spectrum_distance:.3f}, "
                f"at most {room:.3f} expected",
            ),
            Assumption(
                "columns are independent (coherence)",
                self.coherence <= coherent,
                f"largest cosine between two columns {self.coherence:.3f}, "
                f"about {self.expected_coherence:.3f} expected",
            ),
            Assumption(
                "features have mean zero and equal variance",
                self.length_spread <= spread and self.mean_share <= mean,
                f"columns' mean squares spread by {self.length_spread:.3f}, "
                f"{self.expected_length_spread:.3f} expected; "
                f"share of the means {self.mean_share:.3f}",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(vars(self))


def check_design(
    X: ArrayLike, random_state: int | np.random.Generator | Key | None = None
) -> DesignCheck:
    """Compare the spectrum, coherence, lengths and means of X with those of i.i.d. features.

    Of a large design, 2000 rows and 2000 columns chosen at random are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.lasso.design_check import check_design
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 1)) + rng.standard_normal((300, 100))
    >>> [a.holds for a in check_design(X).assumptions()]
    [False, False, True]
    """
    design = np.asarray(X, dtype=np.float64)
    generator = as_key(random_state).generator()
    for axis in (0, 1):
        if design.shape[axis] > LARGEST_SIDE:
            chosen = np.sort(generator.choice(design.shape[axis], LARGEST_SIDE, replace=False))
            design = np.take(design, chosen, axis=axis)
    n, p = design.shape
    square = np.einsum("ij,ij->j", design, design) / n
    mean_square = float(square.mean())
    scaled = design / math.sqrt(mean_square or 1.0)
    values = np.linalg.svd(scaled, compute_uv=False) ** 2 / n
    live = np.flatnonzero(square > 0.0)
    unit = scaled[:, live] / np.linalg.norm(scaled[:, live], axis=0)
    cosine = unit.T @ unit
    np.fill_diagonal(cosine, 0.0)
    pairs = max(p * (p - 1) / 2.0, 1.0)
    return DesignCheck(
        n,
        p,
        spectrum_distance=marchenko_pastur_distance(values, p / n),
        length_spread=float(square.std() / (mean_square or 1.0)),
        expected_length_spread=math.sqrt(2.0 / n),
        coherence=float(np.abs(cosine).max(initial=0.0)),
        expected_coherence=min(1.0, math.sqrt(2.0 * math.log(2.0 * pairs) / n)),
        mean_share=float(np.mean(scaled.mean(axis=0) ** 2)),
    )


def marchenko_pastur_distance(values: FloatArray, ratio: float) -> float:
    """Kolmogorov distance of min(n, p) squared singular values from their limit law.

    ``values`` are the squared singular values of X/sqrt(n), entries of variance one, and ``ratio``
    is p/n.  The density on [(1 - sqrt(r))^2, (1 + sqrt(r))^2] is
    sqrt((b - x)(x - a)) / (2 pi x min(r, 1)), the atom at zero left out.
    """
    ordered = np.sort(values)
    low, high = (1.0 - math.sqrt(ratio)) ** 2, (1.0 + math.sqrt(ratio)) ** 2
    # x = centre - half cos(angle) takes away both square-root ends
    angle = np.linspace(0.0, math.pi, 4001)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    x = centre - half * np.cos(angle)
    slope = np.empty_like(angle)
    positive = x > 0.0
    slope[positive] = (half * np.sin(angle[positive])) ** 2 / x[positive]
    # at ratio 1 the support begins at x = 0, where (half sin)^2/x = half (1 + cos)
    slope[~positive] = 2.0 * half
    law = integrate.cumulative_trapezoid(slope, angle, initial=0)
    law /= law[-1]
    expected = np.interp(ordered, x, law, left=0.0, right=1.0)
    count = ordered.size
    above = np.arange(1, count + 1) / count - expected
    below = expected - np.arange(count) / count
    return float(max(above.max(), below.max()))
