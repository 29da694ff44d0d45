"""What the leaving of each unit, a record or a group, changes in what a Gaussian process says.

Symbols as in :mod:`leakscope.lood.identities`: M = K + s2 I, a = M^{-1} y, and for a unit G the
block [M^{-1}]_GG.  In the eigenvectors of that block (eigenvalues m_i) the unit's own points fall
apart into as many independent coordinates as it has records; a single record is its own
coordinate.  Two numbers per coordinate (and output) hold everything:

    the excess    x_i = h_i/(s2 m_i)        the residual   r_i = a_i/m_i,

the second being the label minus what the others predict.  For with 1/m_i = s2 (1 + x_i) and
h_i = x_i/(1 + x_i) the latent function has there

    variance with = s2 h_i     variance without = s2 x_i     mean with - mean without = h_i r_i,

and t_i = r_i/sqrt(s2 (1 + x_i)) is the score of :mod:`leakscope.lood.sufficient`.  All of these
are products and quotients: no digit is lost to a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, Provenance
from leakscope.lood.assumptions import leaving_out, released_answers
from leakscope.lood.chosen_places import Chosen, chosen_places
from leakscope.lood.release import Release
from leakscope.lood.sufficient import coordinate_pair
from leakscope.measures import kl_parts

Route = Literal["dense", "features", "nystrom", "device", "disk"]

# Pairs measured at once; one of w coordinates takes about 350 w^2 bytes while it is measured, so
# that there are fewer of them.
PAIRS_AT_ONCE = 20_000
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350


@dataclass(frozen=True)
class Separation:
    """The laws of what the model says with and without each unit, at the unit's own points.

    A unit is a record, or a group of records that leave together.  Arrays are over the units,
    (U,), or over the n records, (n,).  Means have the targets' shape, (n,) or (n, C) for C outputs;
    the outputs share one kernel, so that variances do not depend on the output.

    Attributes
    ----------
    targets
        (n,) or (n, C) labels, as used.
    excess, residual
        (n,) and (n, C) the two numbers per coordinate, unit after unit (``members``); a group's
        coordinates are not its single records.
    kl_label_free
        (U,) the part of KL(without || with) from the drop in variance; no label enters it.
    kl_label
        (U,) the part from the shift in mean; it depends on the labels.
    error_estimate
        (U,) estimated relative error of the KL.
    trusted
        (U,) whether that estimate is small enough: below 1e-8, or the KL is surely below 1e-12, so
        that no test has an advantage of 1e-6; by the route nystrom below the error asked for, or
        the KL surely below 2e-6, so that none has one of 0.001.
    condition_number
        Of M, in the 1-norm (estimated).
    noise_variance
        s2, in squared units of the target.
    groups
        (n,) the group of each record, 0 to U - 1; None where records leave singly.
    route
        How it was computed: all are exact but ``"nystrom"``.
    assumptions
        What this route assumes beside what every leave-one-out answer does.
    release
        What the attacker sees; KL, law pairs and provenance are of that.
    ends, error_asked
        Of the route nystrom: the laws at both ends of what is claimed of each record, least and
        most exposed, between which its KL and its advantage lie; and the relative error of the KL
        up to which a record is trusted.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.array([[0.0], [3.0], [3.0]])
    >>> y = np.array([1.0, -1.0, -1.0])
    >>> K = kernels.rbf(1.0)(X)
    >>> singly = lood.all_records(K, y, noise_variance=0.1)  # each hides the other
    >>> singly.kl.round(2).tolist(), singly.law_pair().batch_shape
    ([8.44, 0.15, 0.15], (3,))
    >>> lood.all_groups(K, y, [0, 1, 1], noise_variance=0.1).kl.round(2).tolist()
    [8.44, 18.19]
    >>> singly.noised(1.0).kl.round(2).tolist()
    [0.5, 0.0, 0.0]
    """

    targets: FloatArray
    excess: FloatArray
    residual: FloatArray
    kl_label_free: FloatArray
    kl_label: FloatArray
    error_estimate: FloatArray
    trusted: NDArray[np.bool_]
    condition_number: float
    noise_variance: float
    groups: NDArray[np.intp] | None = None
    route: Route = "dense"
    assumptions: tuple[Assumption, ...] = ()
    release: Release = field(default_factory=Release)
    ends: tuple[Separation, Separation] | None = None
    error_asked: float | None = None

    @property
    def units(self) -> int:
        """How many records, or groups, can leave."""
        return len(self.trusted)

    @property
    def unit(self) -> Literal["record", "group"]:
        """What leaves, in a word."""
        return "record" if self.groups is None else "group"

    @property
    def outputs(self) -> int:
        """C."""
        return int(self.residual.shape[1])

    @cached_property
    def members(self) -> NDArray[np.intp]:
        """(n,) row numbers, unit after unit."""
        if self.groups is None:
            return np.arange(len(self.excess))
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """(U,) records in each unit."""
        if self.groups is None:
            return np.ones(len(self.excess), dtype=np.intp)
        return np.bincount(self.groups)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """(U,) where each unit's coordinates begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes, dtype=np.intp)

    def rows(self, unit: int) -> NDArray[np.intp]:
        """The row numbers of a unit."""
        start = int(self.starts[unit])
        return self.members[start : start + int(self.sizes[unit])]

    @property
    def kl(self) -> FloatArray:
        """(U,) KL(without || with) at the unit's own points (lood Def. C.3)."""
        return self.kl_label_free + self.kl_label

    @property
    def interval(self) -> tuple[FloatArray, FloatArray] | None:
        """(U,) and (U,) between what the KL lies; None where it is exact."""
        return None if self.ends is None else (self.ends[0].kl, self.ends[1].kl)

    @property
    def score(self) -> FloatArray:
        """(n, C) t of :mod:`leakscope.lood.sufficient`, in the order of ``excess``."""
        return self.residual / np.sqrt(self.noise_variance * (1.0 + self.excess))[:, None]

    @property
    def shares(self) -> FloatArray:
        """(n,) h of each coordinate."""
        return self.excess / (1.0 + self.excess)

    @property
    def leverage(self) -> FloatArray:
        """(U,) how many of the unit's own targets its own predictions rest on, 0 to its size."""
        return self._sums(self.shares)

    @property
    def mean_distance(self) -> FloatArray:
        """(U,) half the squared length of the shift of means, over outputs (lood Def. C.1)."""
        shift = self.shares[:, None] * self.residual
        return self._sums(0.5 * np.sum(shift**2, axis=1))

    @property
    def mean_shift(self) -> FloatArray:
        """Of records: mean with minus mean without, computed without subtracting the two."""
        return self._placed(self.shares[:, None] * self.residual)

    @property
    def mean_with(self) -> FloatArray:
        """Of records: the posterior mean of the latent function at the record."""
        return self.targets - self._placed(self.residual / (1.0 + self.excess)[:, None])

    @property
    def mean_without(self) -> FloatArray:
        """Of records: the mean at the record of a process trained without it."""
        return self.targets - self._placed(self.residual)

    @property
    def variance_with(self) -> FloatArray:
        """(n,) posterior variance of the latent function, coordinate by coordinate."""
        return self.noise_variance * self.shares

    @property
    def variance_without(self) -> FloatArray:
        """(n,) the same without the unit (no observation noise added)."""
        return self.noise_variance * self.excess

    @property
    def disagreement(self) -> FloatArray:
        """Of records: how far each label lies from what the others predict, in deviations.

        The deviation is that of a label: latent variance without the record plus the noise.  With
        several outputs it is the root of the mean square.  A wrong label among records that are
        alike stands out here and not in the KL, since it hardly moves the model.
        """
        self._placed(self.residual)
        spread = np.sqrt(self.noise_variance * (1.0 + self.excess))
        return np.asarray(np.sqrt(np.mean(self.residual**2, axis=1)) / spread)

    @property
    def prediction_error(self) -> float:
        """How far labels lie from what the other units predict, root mean square, in units of y."""
        return float(np.sqrt(np.mean(self.residual**2)))

    def noised(self, variance: float, reach: float | None = None) -> Separation:
        """The same when every answer gets fresh noise of this variance; see :class:`Release`."""
        return self.released(Release("draw", float(variance), reach))

    def released(self, release: Release) -> Separation:
        """The same where the attacker sees this; trust, assumptions and units stay."""
        if release.plain and self.release.plain:
            return self
        if release.what == "mean":
            shift = self.shares[:, None] * self.residual
            free, label = np.zeros_like(self.excess), np.sum(shift**2, axis=1)
            label = 0.5 * label / release.noise_variance
        else:
            seen = release.excess(self.excess, self.variance_without)
            free, label = kl_parts(seen, np.sum(self.score**2, axis=1), self.outputs)
        return replace(
            self,
            release=release,
            kl_label_free=self._sums(free),
            kl_label=self._sums(label),
            ends=self._ends(lambda end: end.released(release)),
        )

    def some(self, units: Chosen) -> Separation:
        """Those of some units, in the order given; trust, assumptions and release stay."""
        chosen = np.atleast_1d(np.arange(self.units)[chosen_places(units, self.units, self.unit)])
        sizes = self.sizes[chosen]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.repeat(self.starts[chosen], sizes) + within
        return replace(
            self,
            targets=self.targets[self.members[places]],
            excess=self.excess[places],
            residual=self.residual[places],
            groups=None if self.groups is None else np.repeat(np.arange(len(chosen)), sizes),
            ends=self._ends(lambda end: end.some(units)),
            **{
                name: getattr(self, name)[chosen]
                for name in ("kl_label_free", "kl_label", "error_estimate", "trusted")
            },
        )

    def law_pair(self, units: Chosen = slice(None)) -> LawPair:
        """The batch of pairs of some units, one per unit; groups must be of one size.

        ``units`` takes them by a slice or an array of numbers or of truth values: with many
        outputs, all laws at once are large.  One number gives that unit's pair alone, with an empty
        batch shape.

        Each pair is measured from its own mean without the unit: the nonmember law is centred at
        zero and the member law at the shift.  A known translation changes no measure, and in this
        form a shift far smaller than the means themselves keeps its digits.  A record's pair is in
        the target's units; a group's coordinates are scaled to unit variance with the group.
        """
        chosen = np.arange(self.units)[chosen_places(units, self.units, self.unit)]
        if self.groups is None:
            return self._pair(chosen[..., None])
        sizes = np.unique(self.sizes[chosen])
        if len(sizes) == 0:
            raise InputError("no group was chosen, so that there is no law pair.")
        if len(sizes) > 1:
            raise InputError(
                "groups of different sizes have laws of different dimensions; take law_pairs()."
            )
        return self._pair(self.starts[chosen][..., None] + np.arange(int(sizes[0])))

    def law_pairs(self) -> Iterator[tuple[NDArray[np.intp], LawPair]]:
        """Units of one size at a time, some at once, and the batch of their pairs.

        Every measure of a pair is that of the model's answers at the unit's own points, exactly.
        """
        for size in np.unique(self.sizes):
            alike = np.flatnonzero(self.sizes == size)
            width = int(size) * self.outputs
            step = min(PAIRS_AT_ONCE, max(1, BYTES_AT_ONCE // (BYTES_A_PAIR * width**2)))
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                yield some, self._pair(self.starts[some][:, None] + np.arange(size))

    def measured(self, measure: Callable[[LawPair], FloatArray]) -> FloatArray:
        """(U,) a measure of every unit's pair."""
        found = np.empty(self.units)
        for units, pair in self.law_pairs():
            found[units] = measure(pair)
        return found

    def _pair(self, places: NDArray[np.intp]) -> LawPair:
        """The one builder of pairs: (..., g) places of the coordinates of units of one size."""
        x, residual = self.excess[places], self.residual[places]
        without, release = self.noise_variance * x, self.release
        share = x / (1.0 + x)
        if release.what == "mean":
            shift = share[..., None] * residual / np.sqrt(release.noise_variance)
            spread_with = spread_without = np.ones_like(x)
            scale = np.full_like(x, release.noise_variance)
        elif self.groups is None and release.reach is None:
            shift, scale = share[..., None] * residual, None
            spread_with = release.variance(self.noise_variance * share)
            spread_without = release.variance(without)
        else:
            seen, scale = release.excess(x, without), None
            score = residual / np.sqrt(self.noise_variance * (1.0 + x))[..., None]
            shift = np.sqrt(seen)[..., None] * score
            spread_with, spread_without = np.ones_like(x), 1.0 + seen
        if scale is not None and self.groups is None:
            shift = shift * np.sqrt(scale)[..., None]
            spread_with, spread_without = spread_with * scale, spread_without * scale
        return coordinate_pair(shift, spread_with, spread_without, self.provenance())

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        untrusted = int(np.count_nonzero(~self.trusted))
        resolved = (
            f"float64 resolves each {self.unit}'s laws to a relative 1e-8, or to an advantage "
            "below 1e-6"
            if self.error_asked is None
            else f"each KL is known to a relative {self.error_asked:g}, or to an advantage below "
            "0.001"
        )
        digits = Assumption(
            statement=resolved,
            holds=untrusted == 0,
            evidence=f"condition number {self.condition_number:.2g}; "
            f"{untrusted} of {self.units} {self.unit}s flagged",
        )
        found = leaving_out(
            "lood Def. C.3 at the record itself, by the leave-one-out identities"
            if self.groups is None
            else "lood Def. C.3 and App. E at the group's own points, from one inverse",
            self.noise_variance,
            digits,
            *self.assumptions,
            group=self.groups is not None,
            method="approximate" if self.route == "nystrom" else "exact",
        )
        return found if self.release.plain else released_answers(found, self.release, self.unit)

    def _ends(
        self, change: Callable[[Separation], Separation]
    ) -> tuple[Separation, Separation] | None:
        return None if self.ends is None else (change(self.ends[0]), change(self.ends[1]))

    def _sums(self, values: FloatArray) -> FloatArray:
        """(U,) sums over each unit's coordinates."""
        if self.groups is None:
            return np.asarray(values)
        return np.asarray(np.add.reduceat(values, self.starts))

    def _placed(self, values: FloatArray) -> FloatArray:
        """(n, C) numbers of records in the targets' shape; of a group there is no such number."""
        if self.groups is not None:
            raise InputError("means are those of single records, and here groups leave as a whole.")
        return np.asarray(values.reshape(self.targets.shape))
