"""Ridge laws where the penalty is almost nothing: no digits are lost to it."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from leakscope._numerics.keys import Key
from leakscope.linear.moments import draw_designs


def by_resolvent(s: np.ndarray, t: np.ndarray, z: float) -> tuple[mpmath.mpf, ...]:
    """The four numbers from the bidiagonal matrix itself, with sixty digits."""
    depth = len(s)
    with mpmath.workdps(60):
        B = mpmath.zeros(depth, depth + 1)
        for k in range(depth):
            B[k, k] = mpmath.sqrt(mpmath.mpf(s[k]))
            B[k, k + 1] = mpmath.sqrt(mpmath.mpf(t[k]))
        inverse = mpmath.inverse(B.T * B + mpmath.mpf(z) * mpmath.eye(depth + 1))
        a1, a2 = inverse[0, 0], (inverse * inverse)[0, 0]
        z = mpmath.mpf(z)
        return a1, 1 - z * a1, 1 - 2 * z * a1 + z * z * a2, a1 - z * a2


@pytest.mark.parametrize("penalty", [1e-14, 1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize(("rows", "p"), [(2, 11), (4, 5)])
def test_against_sixty_digits(rows, p, penalty):
    found = draw_designs(rows, p, penalty, Key(3), 5)
    generator = Key(3).generator()
    s = 2.0 * generator.standard_gamma(0.5 * (rows - np.arange(rows))[:, None], (rows, 5))
    t = 2.0 * generator.standard_gamma(0.5 * (p - 1 - np.arange(rows))[:, None], (rows, 5))
    for draw in range(5):
        exact = by_resolvent(s[:, draw], t[:, draw], penalty)
        for own, reference in zip(found, exact, strict=True):
            assert float(abs(own[draw] / reference - 1)) < 1e-13
