"""Does Theorem 4.2 cover this training set?  The paper's constants, and sharper ones.

Write K_ik = x_i.x_k + 1 (the 1 is the bias), and for a KKT network with multipliers lambda
A_i^s = lambda_i sum over j with sign v_j = s of v_j^2 sigma'_ij, s = + or -.  Everything below
follows from Eqs. (7) to (9) and [a + b]_+ <= [a]_+ + [b]_+, for every KKT network of margin m:

* y_k f(x_k) = m where lambda_k > 0, so with s = y_k and r_ik = [-y_i y_k K_ik]_+
      K_kk A_k^s  <= m + sum_{i != k} r_ik (A_i^s + A_i^-s)          (and trivially if lambda_k = 0)
      K_kk A_k^-s <= sum_{i != k} r_ik A_i^-s
  This is u <= c + M u for the 2n numbers A, with M >= 0.  Where M has spectral radius below one,
  A <= u = (I - M)^-1 c.  Lemma B.1 bounds every entry of M by its largest.
* y_k f(x_k) >= m gives K_kk A_k^s >= m - sum_{i != k} [y_i y_k K_ik]_+ A_i^s.  Where the right
  side is positive at A = u, lambda_k > 0: the point is on the margin, provably (Lemma B.2).
* At any x, with k_i = x_i.x + 1:
      -sum_i [-y_i k_i]_+ A_i^-  <=  f(x)  <=  sum_i [y_i k_i]_+ A_i^+.

**Errata.** The proof of Lemma B.1 drops the bias: Eq. (15) bounds x_i.x_k + 1 by delta, and the
last step turns delta + 1 into delta.  Its denominator is Delta + 1 - 2 (delta + 1)(n - 1), not
Delta + 1 - 2 delta (n - 1).  That of Lemma B.2 bounds |x_k|^2 from above by Delta, the least of
them; the bound needs the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.relu.network import signs


@dataclass(frozen=True)
class TheoremConstants:
    """Lemmas B.1 and B.2 for one training set, from n, delta, Delta and the largest norm alone."""

    n: int  # n, delta = max |x_i.x_j|, Delta = min |x_i|^2 and max |x_i|^2
    coherence: float
    least_squared_norm: float
    largest_squared_norm: float
    upper: float  # the bound of Lemma B.1 on A_i^s / m; infinite where the lemma does not apply
    lower: float  # the bound of Lemma B.2 on A_k^{y_k} / m; minus infinity where it does not apply

    @classmethod
    def of(
        cls,
        n: int,
        coherence: float,
        least_squared_norm: float,
        largest_squared_norm: float,
        *,
        as_printed: bool = False,
    ) -> TheoremConstants:
        """The constants; ``as_printed`` loses the bias of Lemma B.1 and keeps B.2's Delta."""
        far = coherence if as_printed else coherence + 1.0
        gap = least_squared_norm + 1.0 - 2.0 * far * (n - 1)
        upper = 1.0 / gap if gap > 0.0 else np.inf
        lower = -np.inf
        if gap > 0.0:
            longest = least_squared_norm if as_printed else largest_squared_norm
            lower = (1.0 - (coherence + 1.0) * (n - 1) * upper) / (longest + 1.0)
        return cls(n, coherence, least_squared_norm, largest_squared_norm, upper, lower)

    @property
    def covered(self) -> bool:
        """Whether these constants prove that every training point is on the margin."""
        return self.lower > 0.0

    def query_bound(self, coherence_at_query: ArrayLike) -> FloatArray:
        """The bound on |f(x)| / m where max_i |x_i.x| is as given (end of the proof of Thm 4.2)."""
        at_query = np.maximum(np.asarray(coherence_at_query, dtype=np.float64), self.coherence)
        return np.asarray(2.0 * self.n * (at_query + 1.0) * self.upper)


@dataclass(frozen=True, eq=False)
class MarginBounds:
    """What holds for every KKT network on one training set, from its whole Gram matrix."""

    on_margin: NDArray[np.bool_]  # (n,), whether the point provably lies on the margin
    # (n, 2), the bounds u on A_i^- / m and A_i^+ / m; infinite where they cannot be had.
    upper: FloatArray
    radius: float  # spectral radius of M; below one the bounds exist
    printed: TheoremConstants  # the paper's constants as printed, and with the bias put back
    corrected: TheoremConstants
    x: FloatArray  # the training set
    y: FloatArray

    @property
    def covered(self) -> bool:
        """Whether every training point provably lies on the margin."""
        return bool(self.on_margin.all())

    def query_bound(self, queries: ArrayLike) -> FloatArray:
        """A bound on |f(x)| / m at each of the ``queries`` (N, d): (N,).

        A query with a bound below one is provably no point of the margin.  A training point's
        bound is one or more, since it may be on it.
        """
        asked = np.asarray(queries, dtype=np.float64)
        if asked.ndim != 2 or asked.shape[1] != self.x.shape[1]:
            raise InputError(
                f"The training set has {self.x.shape[1]} features, but the queries' shape is "
                f"{asked.shape}."
            )
        if not np.isfinite(self.upper).all():
            return np.full(len(asked), np.inf)
        signed = self.y * (asked @ self.x.T + 1.0)
        above = np.maximum(signed, 0.0) @ self.upper[:, 1]
        below = np.maximum(-signed, 0.0) @ self.upper[:, 0]
        return np.asarray(np.maximum(above, below))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; a bound that does not exist is null."""
        return {
            "covered": self.covered,
            "points_on_margin": int(self.on_margin.sum()),
            "points": len(self.y),
            "spectral_radius": self.radius,
            "coherence": self.corrected.coherence,
            "least_squared_norm": self.corrected.least_squared_norm,
            "covered_by_the_papers_constants": self.corrected.covered,
            "covered_by_the_constants_as_printed": self.printed.covered,
        }


def margin_bounds(x: ArrayLike, y: ArrayLike) -> MarginBounds:
    """Which training points lie on the margin of every KKT network, and how large f is elsewhere.

    Parameters
    ----------
    x, y
        The training set, (n, d) and labels -1 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.relu import margin_bounds
    >>> margin_bounds(3.0 * np.eye(4), [1, -1, 1, -1]).covered
    True
    """
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise InputError(
            "The training points must be finite numbers, one row per point, but their shape is "
            f"{points.shape}."
        )
    labels = signs(y, len(points))
    n = len(points)
    gram = points @ points.T
    between = np.abs(gram - np.diag(np.diag(gram)))
    squared = np.diag(gram)
    sizes = n, float(between.max()), float(squared.min()), float(squared.max())
    upper, radius = _upper_bounds(gram + 1.0, labels)
    return MarginBounds(
        on_margin=_provably_on_margin(gram + 1.0, labels, upper),
        upper=upper,
        radius=radius,
        printed=TheoremConstants.of(*sizes, as_printed=True),
        corrected=TheoremConstants.of(*sizes),
        x=points,
        y=labels,
    )


def _upper_bounds(kernel: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
    """u / m, (n, 2) for the signs - and +, and the spectral radius of M."""
    n = len(y)
    signed = kernel * np.outer(y, y)
    diagonal = np.diag(kernel).copy()
    opposed = np.maximum(-signed, 0.0)
    np.fill_diagonal(opposed, 0.0)
    own = (y > 0.0).astype(int)
    # Unknown 2 i + 1 is A_i^+, 2 i is A_i^-.  Row k: i.e. K_kk A_k <= c_k + sum_i r_ik A_i.
    matrix = np.zeros((n, 2, n, 2))
    rows = np.arange(n)
    scaled = opposed / diagonal[:, None]
    for sign in (0, 1):
        matrix[rows, own, :, sign] = scaled
    matrix[rows, 1 - own, :, :] = 0.0
    for k in range(n):
        matrix[k, 1 - own[k], :, 1 - own[k]] = scaled[k]
    flat = matrix.reshape(2 * n, 2 * n)
    radius = float(np.abs(np.linalg.eigvals(flat)).max())
    if radius >= 1.0:
        return np.full((n, 2), np.inf), radius
    constant = np.zeros((n, 2))
    constant[rows, own] = 1.0 / diagonal
    solved = np.linalg.solve(np.eye(2 * n) - flat, constant.ravel())
    return np.asarray(solved.reshape(n, 2), dtype=np.float64), radius


def _provably_on_margin(kernel: FloatArray, y: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
    """Where the lower bound on A_k^{y_k} is positive."""
    if not np.isfinite(upper).all():
        return np.zeros(len(y), dtype=bool)
    helped = np.maximum(kernel * np.outer(y, y), 0.0)
    np.fill_diagonal(helped, 0.0)
    own = (y > 0.0).astype(int)
    # [k, i] = upper bound of A_i^{y_k}
    taken = upper[:, own].T
    return np.asarray((helped * taken).sum(axis=1) < 1.0)
