"""What the leaving of each unit, a record or a group, changes in what a Gaussian process says.

**The leave-one-out identities**, shared by every route.  Symbols: K the kernel matrix of all n
records (the paper's K_D'D'), s2 the noise variance (the paper's sigma^2), M = K + s2 I,
a = M^{-1} y, m_i = [M^{-1}]_ii and the leverage h_i = [K M^{-1}]_ii = 1 - s2 m_i.  A Gaussian
process trained on all records has at record i

    mean with    = y_i - s2 a_i        variance with    = s2 - s2^2 m_i = s2 h_i,

and one trained on the others

    mean without = y_i - a_i / m_i     variance without = 1/m_i - s2    = h_i / m_i.

A group G falls apart, in the eigenvectors of [M^{-1}]_GG (eigenvalues m_i), into as many
independent coordinates as it has records; a single record is its own coordinate.  Two numbers per
coordinate (and output) hold everything:

    the excess    x_i = h_i/(s2 m_i)        the residual   r_i = a_i/m_i,

the second being the label minus what the others predict.  For with 1/m_i = s2 (1 + x_i) and
h_i = x_i/(1 + x_i) the latent function has there

    variance with = s2 h_i     variance without = s2 x_i     mean with - mean without = h_i r_i.

All of these are products and quotients: no digit is lost to a difference.

**The sufficient coordinates.**  The two laws of what the model says at any q queries, with and
without g left-out records, differ only in r <= min(g, q) coordinates: with Sigma' the covariance
with the records and the one without them Sigma = Sigma' + U U^T (U is q x g), the coordinates are
those of U^T Sigma'^{-1} f(Q), and everything orthogonal to them has the same conditional law under
both.  Scaled and turned, coordinate i of output c is

    N(sqrt(x_i) t_ic, 1) with the records,    N(0, 1 + x_i) without them,

where x_i are the eigenvalues of U^T Sigma'^{-1} U, the ``excess``, and t_ic is the ``score`` of
the labels, a translation by the mean without the records being left out; at the records' own points
t_i = r_i/sqrt(s2 (1 + x_i)).  Hence, per output,

    KL(without || with) = sum_i [x_i - log(1 + x_i)]/2 + sum_i x_i t_i^2/2
    KL(with || without) = sum_i [log(1 + x_i) - u_i]/2 + sum_i u_i t_i^2/2,   u_i = x_i/(1 + x_i).

which are `leakscope.measures.kl_parts` and `kl_reverse_parts`, and the first is the paper's
Def. C.3.  For one left-out record r = 1: q queries reduce to one `Normal` pair, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope._numerics.special_functions import x_minus_log1p
from leakscope.errors import InputError
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import Assumption, LawPair, Method, Provenance
from leakscope.lood.inputs import Chosen, chosen_places
from leakscope.measures.normal_divergence import kl_parts

Route = Literal["dense", "features", "nystrom", "device"]

# Pairs measured at once; one of w coordinates takes about 350 w^2 bytes while it is measured, so
# that there are fewer of them.
PAIRS_AT_ONCE = 20_000
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350

What = Literal["draw", "mean"]


@dataclass(frozen=True)
class Release:
    """What a model hands out at a query: a draw of its latent function or its mean, with noise.

    With v_o the variance of the noise that is added to answers, an attacker sees at record i

        draw:  N(mean with, variance with + v_o)   against   N(mean without, variance without + v_o)
        mean:  N(mean with, v_o)                   against   N(mean without, v_o).

    A draw is what one model trained at random gives; the mean is an ensemble's.  The mean without
    noise is a number: whoever knows all other records tells it apart with certainty, so it has no
    leakage below one and is refused.

    One answer at the record is one look.  k answers of one call have k fresh noises, and are worth
    one answer with v_o/k; so all answers of a call to one draw are never worth more than the draw
    itself, for the latent value at the record is sufficient.  Another call is another draw, and
    composes.

    **Questions elsewhere.**  Without noise no question tells more of a record than its own point.
    With noise one may, where the function varies more.  At a question q with variance w without the
    record, and c the covariance of f(q) and f(x_i) then, the score is the same and the excess
    u^2/(w - u^2 + v_o), where u^2 = c^2/(s2 (1 + x)), and c^2 <= w s2 x by Cauchy and Schwarz.  So
    it is at most

        x' = x W/(W + v_o (1 + x))    with W = w,

    which rises with w, and w is at most the kernel's largest value k(q, q), the ``reach``: with W
    that value, x' bounds what one question can tell, wherever it is.  At the record's own point
    W = s2 x, and x' is the excess itself.

    Attributes
    ----------
    what
        ``"draw"`` of the latent function, or its ``"mean"``.
    noise_variance
        v_o, of independent Gaussian noise added to each answer, in squared units of the target.
    reach
        The largest prior variance that any question meets: the laws then bound what one question
        anywhere tells.  None where the record's own point is asked.
    """

    what: What = "draw"
    noise_variance: float = 0.0
    reach: float | None = None

    def __post_init__(self) -> None:
        if self.what not in get_args(What):
            raise InputError(f"release must be draw or mean, but it is {self.what!r}.")
        if not (np.isfinite(self.noise_variance) and self.noise_variance >= 0.0):
            raise InputError(
                f"output_noise_variance must be zero or above, but it is {self.noise_variance!r}."
            )
        if self.what == "mean" and self.noise_variance == 0.0:
            raise InputError(
                "release='mean' without noise gives every record away, because an exact mean can "
                "be recognised with certainty; give output_noise_variance above zero, or "
                "release='draw'."
            )

    @property
    def plain(self) -> bool:
        """Whether this is the draw itself, with nothing added."""
        return self.what == "draw" and self.noise_variance == 0.0

    def variance(self, latent: FloatArray) -> FloatArray:
        """The variance of an answer where the latent function has this one."""
        own = latent if self.what == "draw" else np.zeros_like(latent)
        return np.asarray(own + self.noise_variance)

    def spread(self, variance_without: FloatArray) -> FloatArray:
        """W: the variance at the record without it, or what any question can meet."""
        if self.reach is None:
            return variance_without
        return np.maximum(variance_without, self.reach)

    def excess(self, excess: FloatArray, variance_without: FloatArray) -> FloatArray:
        """x' of a draw's answers, from the latent function's own excess x."""
        if self.noise_variance == 0.0:
            return excess
        spread = self.spread(variance_without)
        return np.asarray(excess * (spread / (spread + self.noise_variance * (1.0 + excess))))


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
        """(n, C) t, in the order of ``excess``."""
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
    def accuracy_memorisation(self) -> FloatArray:
        """Of records: how much likelier a model is right at the record when it was trained on it.

        Feldman's memorisation (2020) without retraining: P(right | with) - P(right | without), for
        a draw of the process.  With one output the classes are the signs of the targets; with C it
        is the largest, and the outputs are independent with one variance, so that
        P(output c is largest) = E over z ~ N(0, 1) of prod over k of Phi((mu_c - mu_k)/sigma + z).
        """
        if not self.release.plain:
            raise InputError("memorisation is that of the process itself, before noise is added.")
        means = [np.atleast_2d(m.T).T for m in (self.mean_with, self.mean_without)]
        targets = np.atleast_2d(self.targets.T).T
        if targets.shape[1] == 1 and not (targets < 0.0).any() & (targets > 0.0).any():
            raise InputError("memorisation of accuracy needs classes: targets on both sides of 0.")
        spreads = [np.sqrt(v) for v in (self.variance_with, self.variance_without)]
        right = [_right(m, s, targets) for m, s in zip(means, spreads, strict=True)]
        return np.asarray(right[0] - right[1])

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


def _right(mean: FloatArray, sigma: FloatArray, targets: FloatArray) -> FloatArray:
    """(n,) the probability that N(mean, sigma^2 I), (n, C), has its largest output, or its sign,
    where the targets have it.
    """
    if mean.shape[1] == 1:
        return np.asarray(special.ndtr(np.sign(targets[:, 0]) * mean[:, 0] / sigma))
    rows = np.arange(len(mean))
    own = np.argmax(targets, axis=1)
    ahead = (mean[rows, own][:, None] - mean) / sigma[:, None]
    nodes, weights = panels(np.linspace(-REACH, REACH, PANELS + 1), 16)
    each = special.log_ndtr(ahead[:, :, None] + nodes)
    each[rows, own] = 0.0
    density = np.exp(-0.5 * nodes**2) / np.sqrt(2.0 * np.pi)
    return np.asarray(np.exp(each.sum(axis=1)) @ (weights * density))


# How far, in deviations, and in how many panels the largest of several outputs is integrated.
REACH, PANELS = 9.0, 12

# A record is trusted when its KL is estimated to be right to this relative error.
TRUSTED_BELOW = 1e-8

# Or when it is surely below this: no test then has an advantage of 1e-6 (Pinsker's inequality), and
# nobody needs its digits.
UNSEEN_BELOW = 1e-12

# Below this a sum of squares has lost digits to the range of float64.
TINY_SQUARES = 1e-280

# Below this 1 - s2 m_i would show its rounding (some 1e-16) in the last five of sixteen digits.
SMALL_LEVERAGE = 1e-4

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Leverages:
    """What a route finds out about each record."""

    leverage: FloatArray  # h_i, with its digits also where it is near 0
    m: FloatArray  # [M^{-1}]_ii, with its digits also where it is near 0
    a: FloatArray  # (n, C) rows of M^{-1} y
    relative_error_h: FloatArray  # first-order estimates of the relative errors of h_i and m_i
    relative_error_m: FloatArray
    error_a: FloatArray  # (n,) the same of the length of a_i, absolute


def laws_from_leverages(
    found: Leverages,
    targets: FloatArray,
    *,
    noise_variance: float,
    condition_number: float,
    route: Route,
    assumptions: tuple[Assumption, ...] = (),
) -> Separation:
    """What each record's leaving changes, the parts of its KL, and whether float64 resolves it."""
    h, m, outputs = found.leverage, found.m, found.a
    mean_distance = 0.5 * np.sum((outputs * (h / m)[:, None]) ** 2, axis=1)
    excess = h / (noise_variance * m)
    kl_label_free = outputs.shape[1] * 0.5 * x_minus_log1p(excess)
    kl_label = mean_distance / (noise_variance * h)
    lost = mean_distance < TINY_SQUARES
    if lost.any():
        squares = np.sum(outputs[lost] ** 2, axis=1)
        kl_label[lost] = 0.5 * (excess[lost] / m[lost]) * squares
    error = _relative_error(found, excess, kl_label_free, kl_label)
    return Separation(
        targets=targets,
        excess=excess,
        residual=outputs / m[:, None],
        kl_label_free=kl_label_free,
        kl_label=kl_label,
        error_estimate=error,
        trusted=resolved(kl_label_free + kl_label, error),
        condition_number=condition_number,
        noise_variance=float(noise_variance),
        route=route,
        assumptions=assumptions,
    )


def resolved(kl: FloatArray, error: FloatArray) -> NDArray[np.bool_]:
    """Whether each KL is known well enough, from its estimated relative error."""
    return (error < TRUSTED_BELOW) | ((error < 1.0) & (kl * (1.0 + error) < UNSEEN_BELOW))


def _relative_error(
    found: Leverages, excess: FloatArray, kl_label_free: FloatArray, kl_label: FloatArray
) -> FloatArray:
    """How the errors of h_i, m_i and a_i reach the KL, to first order."""
    relative_excess = found.relative_error_h + found.relative_error_m
    # d(x - log(1 + x)) = x^2/(1 + x) dx/x
    free_error = found.a.shape[1] * 0.5 * excess * (excess / (1.0 + excess)) * relative_excess
    # kl_label is scale times |a_i|^2; where a label agrees exactly, its error is quadratic.
    scale = 0.5 * excess / found.m
    size = np.sqrt(np.sum(found.a**2, axis=1))
    label_error = scale * found.error_a * (2.0 * size + found.error_a) + kl_label * (
        found.relative_error_h + 2.0 * found.relative_error_m
    )
    total = np.maximum(kl_label_free + kl_label, np.finfo(np.float64).tiny)
    return np.asarray((free_error + label_error) / total)


def coordinate_pair(
    shift: FloatArray,
    variance_with: FloatArray,
    variance_without: FloatArray,
    provenance: Provenance,
) -> LawPair:
    """The room's one builder of pairs: independent coordinates, centred at the mean without.

    ``shift`` is (..., r, C), the mean with, output by output; the variances are (..., r), the same
    for every output.
    """
    width = shift.shape[-2] * shift.shape[-1]
    if width == 1:
        centred = shift[..., 0, 0]
        return LawPair(
            Normal(centred, np.sqrt(variance_with[..., 0])),
            Normal(np.zeros_like(centred), np.sqrt(variance_without[..., 0])),
            provenance,
        )
    mean = shift.reshape(*shift.shape[:-2], width)
    identity = np.eye(width)
    spread = (
        np.repeat(variance, shift.shape[-1], axis=-1)[..., None] * identity
        for variance in (variance_with, variance_without)
    )
    return LawPair(
        MultivariateNormal(mean, next(spread)),
        MultivariateNormal(np.zeros_like(mean), next(spread)),
        provenance,
    )


def common_assumptions(noise_variance: float, *, group: bool = False) -> tuple[Assumption, ...]:
    """What the analysis assumes of the model, the noise and the attacker."""
    record = "group" if group else "record"
    place = "at the queries" if group else "at the record"
    return (
        Assumption(
            statement="the model is a Gaussian process with this kernel and squared loss, and the "
            f"attacker sees a draw of its latent function {place}",
            holds=None,
            evidence="no trained model was examined",
        ),
        Assumption(
            statement="noise_variance describes the randomness of training",
            holds=None,
            evidence=f"it was set to {noise_variance:g}, in squared units of the target, and "
            "sets the level of every number, so read the ranks",
        ),
        Assumption(
            statement=f"scaling, encoding, kernel and noise stay as they are when the {record} "
            "leaves",
            holds=True,
            evidence="they are fixed in this computation",
        ),
        Assumption(
            statement=f"the attacker knows every other record and the {record} in question",
            holds=None,
            evidence="the strongest attacker is assumed",
        ),
    )


def leaving_out(
    source: str,
    noise_variance: float,
    *more: Assumption,
    group: bool = False,
    method: Method = "exact",
) -> Provenance:
    """The room's one question: a latent function trained with a record, or a group, and without."""
    return Provenance(
        question="leave_one_out",
        adjacency="removed",
        observes="latent",
        random=("training",),
        attacker_knows_label=True,
        method=method,
        source=source,
        assumptions=(*common_assumptions(noise_variance, group=group), *more),
    )


def released_answers(latent: Provenance, release: Release, unit: str) -> Provenance:
    """The question where an answer is seen instead of the latent function itself."""
    place = "anywhere, by a bound" if release.reach is not None else f"at the {unit}"
    what = "a draw of the latent function" if release.what == "draw" else "the posterior mean"
    added = Assumption(
        statement=f"the attacker sees one answer {place}, {what} plus independent Gaussian noise "
        f"of variance {release.noise_variance:g}",
        holds=None,
        evidence="as the release is set; further answers with fresh noise compose",
    )
    common = len(common_assumptions(1.0))
    # Of a mean, training is not random: the first two assumptions are about that.
    kept = latent.assumptions[0 if release.what == "draw" else 2 : common]
    return replace(
        latent,
        observes="prediction",
        random=("training", "output_noise") if release.what == "draw" else ("output_noise",),
        assumptions=(*kept, added, *latent.assumptions[common:]),
    )
