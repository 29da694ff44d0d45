"""Whether Theorem 4.1's conditions hold for this kernel on this dataset.

The theorem makes the record itself a stationary query where (i) k(x, x) = 1 for all records (any
other constant does as well: it rescales the kernel and the noise) and (ii) the derivative of
k(x, x') in x vanishes at x = x'.  Neither is needed for the numbers of an audit: f(x_i) is
sufficient, so the record itself is the most revealing query under any kernel (docs/lood.md).  What
hangs on them is whether a gradient search can start to find it from nearby, and Prop. 5.1.

(ii) is looked at with the kernel as a black box: along a few directions, among them the record's
own (along which an unnormalised kernel grows), the fall k(x, x) - k(x + h e, x) is measured at
h and h/2.  Where the slope vanishes it falls by 4, where there is a slope or a kink by 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope.kernels import Kernel
from leakscope.laws import Assumption
from leakscope.lood.real_numbers import real_numbers

RECORDS = 8
DIRECTIONS = 4
STEPS = 24

# Falls of these shares of k(x, x) are small enough for the leading power and large enough for
# rounding.
SMALL, RESOLVED = 1e-3, 1e-9

# log2 of the ratio of falls: 2 where the slope vanishes, 1 where it does not.
LEAST_POWER = 1.5

NORMALISED_WITHIN = 1e-9


@dataclass(frozen=True)
class StationarityConditions:
    """Theorem 4.1's two conditions, as found.

    Attributes
    ----------
    normalised, least, largest
        Whether k(x, x) is the same for all records, and its least and largest value.
    stationary, least_power
        Whether the slope at coincidence vanishes wherever it was looked at; the least power of
        the step by which the kernel falls there, 2 for a smooth stationary kernel and 1 for one
        with a slope or a kink.
    records
        How many records were looked at for the slope.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> found = lood.stationarity_conditions(kernels.rbf(1.0), X)
    >>> found.normalised, found.stationary, round(found.least_power, 2)
    (True, True, 2.0)
    """

    normalised: bool
    least: float
    largest: float
    stationary: bool
    least_power: float
    records: int

    def assumptions(self) -> tuple[Assumption, ...]:
        """The findings and their consequence, as they travel with a result."""
        both = self.normalised and self.stationary
        consequence = (
            "the record itself is a stationary query"
            if both
            else "the record itself need not be a stationary query; it is still the most revealing"
        )
        return (
            Assumption(
                statement="the kernel is normalised, k(x, x) the same for all records "
                "(lood Thm 4.1 (i); not needed for these numbers)",
                holds=self.normalised,
                evidence=f"between {self.least:.6g} and {self.largest:.6g}; {consequence}",
            ),
            Assumption(
                statement="the kernel's slope vanishes where its arguments coincide "
                "(lood Thm 4.1 (ii); not needed for these numbers)",
                holds=self.stationary,
                evidence=f"it falls with the power {self.least_power:.2f} of the distance at "
                f"least, over {self.records} records",
            ),
        )


def stationarity_conditions(kernel: Kernel, X: ArrayLike) -> StationarityConditions:
    """Check Theorem 4.1's conditions numerically, for any kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> print(lood.stationarity_conditions(kernels.rbf(1.0), X).assumptions()[0].evidence)
    between 1 and 1; the record itself is a stationary query
    """
    rows = real_numbers(X, "X")
    prior = kernel.diagonal(rows)
    least, largest = float(np.min(prior)), float(np.max(prior))
    rng = np.random.default_rng(0)
    some = rows[np.sort(rng.permutation(len(rows))[:RECORDS])]
    powers = [_least_power(kernel, x, rng) for x in some]
    power = min(powers)
    return StationarityConditions(
        normalised=largest - least <= NORMALISED_WITHIN * largest,
        least=least,
        largest=largest,
        stationary=power > LEAST_POWER,
        least_power=power,
        records=len(some),
    )


def _least_power(kernel: Kernel, x: FloatArray, rng: np.random.Generator) -> float:
    """The least power of h by which k(x, x) - k(x + h e, x) falls, over some directions e."""
    directions = rng.normal(size=(DIRECTIONS, len(x)))
    if x.any():
        directions = np.vstack([directions, x, -x])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    size = max(float(np.linalg.norm(x)), 1.0)
    # Not a whole number of lengths, which would lead through the origin.
    steps = 0.7 * size * 2.0 ** -np.arange(STEPS)
    moved = x + (directions[:, None, :] * steps[None, :, None]).reshape(-1, len(x))
    values = kernel(moved, x[None, :])[:, 0].reshape(len(directions), STEPS)
    own = float(kernel.diagonal(x[None, :])[0])
    falls = np.abs(own - values) / own
    powers = []
    for fall in falls:
        seen = np.flatnonzero((fall[:-1] < SMALL) & (fall[1:] > RESOLVED))
        if seen.size:
            powers.append(float(np.log2(fall[seen[-1]] / fall[seen[-1] + 1])))
        else:
            # Either flat in this direction, which is as stationary as can be, or a jump.
            powers.append(2.0 if fall[-1] < SMALL else 0.0)
    return min(powers)
