"""What a Gaussian process says at some queries, with and without a group of its records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Normal, Provenance
from leakscope.lood.assumptions import leaving_out
from leakscope.lood.sufficient import sufficient_pair
from leakscope.measures import kl_parts, kl_reverse_parts


@dataclass(frozen=True)
class Distinguishability:
    """The two posteriors at q queries, and the few coordinates in which they differ.

    Means are (q,) for a vector of targets and (q, C) for C outputs; covariances are (q, q) and
    the same for every output.

    Attributes
    ----------
    leave_out
        Row numbers of the group.
    mean_with, mean_without, covariance_with, covariance_without
        Of the latent function at the queries.
    mean_shift
        Mean with minus mean without, computed without subtracting the two.
    excess, score
        (r,) x_i and (r, C) t_ic, the sufficient coordinates of :mod:`leakscope.lood.sufficient`;
        r is at most the size of the group.
    sufficient
        Whether the queries contain the group's own points, so that no other set of queries
        reveals more.
    queries_used
        How many queries float64 can tell apart; the others' answers follow from theirs.
    error_estimate, trusted
        Estimated relative error of ``kl``, and whether it is below 1e-8.
    noise_variance
        s2, in squared units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    >>> k = kernels.rbf(1.0)
    >>> pair = lood.distinguish(X, y, leave_out=[0, 1], kernel=k, noise_variance=0.1)
    >>> round(pair.kl, 4), round(pair.kl_reverse, 4)
    (18.2024, 1.5109)
    >>> pair.law_pair().member.event_shape
    (2,)
    """

    leave_out: tuple[int, ...]
    mean_with: FloatArray
    mean_without: FloatArray
    covariance_with: FloatArray
    covariance_without: FloatArray
    mean_shift: FloatArray
    excess: FloatArray
    score: FloatArray
    sufficient: bool
    queries_used: int
    error_estimate: float
    trusted: bool
    noise_variance: float

    @property
    def kl_label_free(self) -> float:
        """The part of ``kl`` from the drop in variance; no label enters it."""
        return float(self._parts(reverse=False)[0].sum())

    @property
    def kl_label(self) -> float:
        """The part of ``kl`` from the shift in mean."""
        return float(self._parts(reverse=False)[1].sum())

    @property
    def kl(self) -> float:
        """KL(without || with) over all queries at once (lood Def. C.3), summed over outputs."""
        return self.kl_label_free + self.kl_label

    @property
    def kl_reverse(self) -> float:
        """KL(with || without)."""
        return float(sum(part.sum() for part in self._parts(reverse=True)))

    @property
    def mean_distance(self) -> float:
        """Half the squared difference of means, summed over queries and outputs (lood Def. C.1)."""
        return 0.5 * float(np.sum(self.mean_shift**2))

    @property
    def average_mean_distance(self) -> float:
        """Half the mean squared difference over queries and outputs: the authors' code's.

        The same as ``mean_distance`` for one query and one output.
        """
        return self.mean_distance / self.mean_shift.size

    def sufficient_pair(self) -> LawPair:
        """The pair of laws of the r x C coordinates in which the two posteriors differ.

        Every measure of it is that of the queries' answers, exactly; it exists also where the
        queries' covariance is singular.  One left-out record and one output give a `Normal` pair,
        whatever the number of queries.
        """
        return sufficient_pair(self.excess, self.score, self.provenance())

    def law_pair(self) -> LawPair:
        """The pair of laws of the latent function at the queries, from the mean without the group.

        `Normal` for one query and one output; otherwise `MultivariateNormal` over the queries,
        output after output.
        """
        shift = self.mean_shift.reshape(len(self.mean_shift), -1)
        if shift.size == 1:
            return LawPair(
                Normal(shift[0, 0], float(np.sqrt(self.covariance_with[0, 0]))),
                Normal(0.0, float(np.sqrt(self.covariance_without[0, 0]))),
                self.provenance(),
            )
        outputs = np.eye(shift.shape[1])
        return LawPair(
            MultivariateNormal(shift.T.ravel(), np.kron(outputs, self.covariance_with)),
            MultivariateNormal(np.zeros(shift.size), np.kron(outputs, self.covariance_without)),
            self.provenance(),
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        resolved = Assumption(
            statement="float64 resolves the laws to a relative 1e-8",
            holds=self.trusted,
            evidence=f"estimated error {self.error_estimate:.2g}; "
            f"{self.queries_used} of {len(self.mean_shift)} queries told apart",
        )
        return leaving_out(
            f"lood Def. C.3 and App. E, {len(self.leave_out)} left out, "
            f"{len(self.mean_shift)} queries, by a rank-{len(self.leave_out)} update",
            self.noise_variance,
            resolved,
            group=True,
        )

    def _parts(self, *, reverse: bool) -> tuple[FloatArray, FloatArray]:
        squares = np.sum(self.score**2, axis=1)
        function = kl_reverse_parts if reverse else kl_parts
        return function(self.excess, squares, self.score.shape[1])
