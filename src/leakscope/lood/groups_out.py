"""What a Gaussian process says about each group of its records, with and without that group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Normal, Provenance
from leakscope.lood.assumptions import leaving_out
from leakscope.lood.chosen_places import Chosen, chosen_places

# Numbers in the covariances of the pairs that are handed out at once.
NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class LeaveGroupsOut:
    """The joint law at each group's own points, with and without that group, for every group.

    A group of g records and C outputs has g C coordinates in which the two laws differ; they are
    independent, and those of all groups stand one after another, (n,) and (n, C) in all.

    Attributes
    ----------
    groups
        (n,) the group of each record, 0 to G - 1.
    members
        (n,) row numbers, group after group.
    sizes
        (G,) records in each group.
    excess, score
        (n,) x_i and (n, C) t_ic of :mod:`leakscope.lood.sufficient`, in the order of ``members``
        by group (within one, a coordinate is no single record).
    kl_label_free, kl_label
        (G,) the parts of KL(without || with) from the drop in variance and from the shift in mean.
    mean_distance
        (G,) half the squared length of the shift of the means, over records and outputs.
    leverage
        (G,) how many of the group's own targets its own predictions rest on, 0 to g.
    error_estimate, trusted
        (G,) estimated relative error of ``kl``, and whether it is below 1e-8.
    condition_number, noise_variance
        Of M, in the 1-norm (estimated); s2, in squared units of the target.
    route, assumptions
        As in :class:`leakscope.lood.LeaveOneOut`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X, y = np.array([[0.0], [3.0], [3.0]]), np.array([1.0, -1.0, -1.0])
    >>> K = kernels.rbf(1.0)(X)
    >>> lood.all_records(K, y, noise_variance=0.1).kl.round(2).tolist()  # each hides the other
    [8.44, 0.15, 0.15]
    >>> lood.all_groups(K, y, [0, 1, 1], noise_variance=0.1).kl.round(2).tolist()
    [8.44, 18.19]
    """

    groups: NDArray[np.intp]
    members: NDArray[np.intp]
    sizes: NDArray[np.intp]
    excess: FloatArray
    score: FloatArray
    kl_label_free: FloatArray
    kl_label: FloatArray
    mean_distance: FloatArray
    leverage: FloatArray
    error_estimate: FloatArray
    trusted: NDArray[np.bool_]
    condition_number: float
    noise_variance: float
    route: Literal["dense"] = "dense"
    assumptions: tuple[Assumption, ...] = ()

    @property
    def kl(self) -> FloatArray:
        """KL(without || with) of each group at its own points (lood Def. C.3)."""
        return self.kl_label_free + self.kl_label

    def rows(self, group: int) -> NDArray[np.intp]:
        """The row numbers of a group."""
        start = int(self._starts()[group])
        return self.members[start : start + int(self.sizes[group])]

    def law_pair(self, groups: Chosen = slice(None)) -> LawPair:
        """The batch of pairs of some groups, which must be of one size.

        ``groups`` takes them by a slice or an array of numbers or of truth values; one number
        gives that group's pair alone, with an empty batch shape.
        """
        places = chosen_places(groups, len(self.sizes), "group")
        chosen = np.arange(len(self.sizes))[places]
        sizes = np.unique(self.sizes[chosen])
        if len(sizes) == 0:
            raise InputError("no group was chosen, so that there is no law pair.")
        if len(sizes) > 1:
            raise InputError(
                "groups of different sizes have laws of different dimensions; take law_pairs()."
            )
        inside = self._starts()[np.atleast_1d(chosen)][:, None] + np.arange(sizes[0])
        pair = self._pair(self.excess[inside], self.score[inside])
        return pair if np.ndim(chosen) else pair.reshape()

    def law_pairs(self) -> Iterator[tuple[NDArray[np.intp], LawPair]]:
        """Groups of one size at a time, and the batch of their pairs in their own coordinates.

        Every measure of a pair is that of the model's answers at the group's points, exactly:
        the coordinates are sufficient, and centred at the mean without the group.
        """
        starts, outputs = self._starts(), self.score.shape[1]
        for size in np.unique(self.sizes):
            alike = np.flatnonzero(self.sizes == size)
            width = int(size) * outputs
            step = max(1, NUMBERS_AT_ONCE // width**2)
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                places = starts[some][:, None] + np.arange(size)
                yield some, self._pair(self.excess[places], self.score[places])

    def _starts(self) -> NDArray[np.intp]:
        return np.cumsum(self.sizes) - self.sizes

    def _pair(self, excess: FloatArray, score: FloatArray) -> LawPair:
        count = len(excess)
        shift = (np.sqrt(excess)[:, :, None] * score).reshape(count, -1)
        spread = np.repeat(1.0 + excess, score.shape[2], axis=1)
        if shift.shape[1] == 1:
            member, nonmember = Normal(shift[:, 0], 1.0), Normal(0.0, np.sqrt(spread[:, 0]))
            return LawPair(member, nonmember, self.provenance())
        identity = np.eye(shift.shape[1])
        return LawPair(
            MultivariateNormal(shift, np.broadcast_to(identity, (count, *identity.shape))),
            MultivariateNormal(np.zeros_like(shift), spread[:, :, None] * identity),
            self.provenance(),
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        untrusted = int(np.count_nonzero(~self.trusted))
        digits = Assumption(
            statement="float64 resolves each group's laws to a relative 1e-8",
            holds=untrusted == 0,
            evidence=f"condition number {self.condition_number:.2g}; "
            f"{untrusted} of {len(self.trusted)} groups flagged",
        )
        return leaving_out(
            "lood Def. C.3 and App. E at the group's own points, from one inverse",
            self.noise_variance,
            digits,
            *self.assumptions,
            group=True,
        )
