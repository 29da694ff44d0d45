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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.special_functions import chance_of_largest
from leakscope.errors import InputError
from leakscope.laws.distributions import MultivariateNormal, Normal
from leakscope.laws.pair import Assumption, LawPair, Method, Provenance
from leakscope.measures.normal_divergence import kl_parts
from leakscope.trust import ROUNDINGS, resolved

Route = Literal["dense", "features", "nystrom", "device"]
Rows = NDArray[np.intp]

# Pairs measured at once; one of w coordinates takes about 350 w^2 bytes while it is measured.
PAIRS_AT_ONCE = 20_000
BYTES_AT_ONCE, BYTES_A_PAIR = 64_000_000, 350

EPS = float(np.finfo(np.float64).eps)


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
    trusted
        (U,) whether float64 resolves the unit's laws; by the route nystrom, an approximation that
        nothing checks, nobody's.
    noise_variance
        s2, in squared units of the target.
    groups
        (n,) the group of each record, 0 to U - 1; None where records leave singly.
    route
        How it was computed: all are exact but ``"nystrom"``.
    output_variance
        Of fresh noise on every answer: KL, law pairs and provenance are of one noisy answer.

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
    trusted: NDArray[np.bool_]
    noise_variance: float
    groups: Rows | None = None
    route: Route = "dense"
    output_variance: float = 0.0

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
    def members(self) -> Rows:
        """(n,) row numbers, unit after unit."""
        if self.groups is None:
            return np.arange(len(self.excess))
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def sizes(self) -> Rows:
        """(U,) records in each unit."""
        if self.groups is None:
            return np.ones(len(self.excess), dtype=np.intp)
        return np.bincount(self.groups)

    @cached_property
    def starts(self) -> Rows:
        """(U,) where each unit's coordinates begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes, dtype=np.intp)

    @cached_property
    def _kl_parts(self) -> tuple[FloatArray, FloatArray]:
        return kl_parts(self._seen_excess, np.sum(self.score**2, axis=1), self.outputs)

    @property
    def kl_label_free(self) -> FloatArray:
        """(U,) the part of the KL from the drop in variance; no label enters it."""
        return self._sums(self._kl_parts[0])

    @property
    def kl_label(self) -> FloatArray:
        """(U,) the part of the KL from the shift in mean; it depends on the labels."""
        return self._sums(self._kl_parts[1])

    @property
    def kl(self) -> FloatArray:
        """(U,) KL(without || with) at the unit's own points (lood Def. C.3)."""
        return self.kl_label_free + self.kl_label

    @property
    def _seen_excess(self) -> FloatArray:
        """(n,) the excess of a noisy answer: s2 x + v against s2 x/(1 + x) + v."""
        spread, noise = self.variance_without, self.output_variance
        if noise == 0.0:
            return self.excess
        return np.asarray(self.excess * (spread / (spread + noise * (1.0 + self.excess))))

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
        return np.asarray(
            np.sqrt(np.mean(self._placed(self.score).reshape(len(self.score), -1) ** 2, axis=1))
        )

    @property
    def accuracy_memorisation(self) -> FloatArray:
        """Of records: how much likelier a model is right at the record when it was trained on it.

        Feldman's memorisation (2020) without retraining: P(right | with) - P(right | without), for
        a draw of the process.  With one output the classes are the signs of the targets; with C it
        is the largest, and the outputs are independent with one variance.
        """
        labels = self.targets.reshape(len(self.targets), -1)
        if labels.shape[1] == 1 and not ((labels < 0.0).any() and (labels > 0.0).any()):
            raise InputError("memorisation of accuracy needs classes: targets on both sides of 0.")
        right = [
            chance_of_right(mean.reshape(labels.shape), variance, labels)
            for mean, variance in (
                (self.mean_with, self.variance_with),
                (self.mean_without, self.variance_without),
            )
        ]
        return np.asarray(right[0] - right[1])

    @property
    def prediction_error(self) -> float:
        """How far labels lie from what the other units predict, root mean square, in units of y."""
        return float(np.sqrt(np.mean(self.residual**2)))

    def noised(self, variance: float) -> Separation:
        """The same when every answer gets fresh noise of this variance.

        k answers of one call have k fresh noises, and are worth one answer with a k-th of the
        variance: never more than the draw itself.  Another call is another draw, and composes.
        """
        if not (np.isfinite(variance) and variance >= 0.0):
            raise InputError(f"the variance of noise must be zero or above, but it is {variance}.")
        return replace(self, output_variance=self.output_variance + float(variance))

    def some(self, units: Rows) -> Separation:
        """Those of some units, in the order given."""
        chosen = np.arange(self.units)[units]
        sizes = self.sizes[chosen]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.repeat(self.starts[chosen], sizes) + within
        return replace(
            self,
            targets=self.targets[self.members[places]],
            excess=self.excess[places],
            residual=self.residual[places],
            trusted=self.trusted[chosen],
            groups=None if self.groups is None else np.repeat(np.arange(len(chosen)), sizes),
        )

    def law_pair(self, units: Any = slice(None)) -> LawPair:
        """The batch of pairs of some units, one per unit; groups must be of one size.

        ``units`` takes them by a slice or an array of numbers or of truth values; one number gives
        that unit's pair alone, with an empty batch shape.

        Each pair is measured from its own mean without the unit: the nonmember law is centred at
        zero and the member law at the shift.  A known translation changes no measure, and in this
        form a shift far smaller than the means themselves keeps its digits.  A record's pair is in
        the target's units; a group's coordinates are scaled to unit variance with the group.
        """
        chosen = np.asarray(np.arange(self.units)[units])
        sizes = np.unique(self.sizes[chosen])
        if len(sizes) > 1:
            raise InputError(
                "groups of different sizes have laws of different dimensions; take law_pairs()."
            )
        return self._pair(self.starts[chosen][..., None] + np.arange(int(sizes.sum())))

    def law_pairs(self) -> Iterator[tuple[Rows, LawPair]]:
        """Units of one size at a time, some at once, and the batch of their pairs."""
        for size in np.unique(self.sizes):
            alike = np.flatnonzero(self.sizes == size)
            width = int(size) * self.outputs
            step = min(PAIRS_AT_ONCE, max(1, BYTES_AT_ONCE // (BYTES_A_PAIR * width**2)))
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                yield some, self._pair(self.starts[some][:, None] + np.arange(size))

    def measured(self, measure: Callable[[LawPair], FloatArray]) -> FloatArray:
        """(U,) a measure of every unit's pair."""
        values = np.empty(self.units)
        for units, pair in self.law_pairs():
            values[units] = measure(pair)
        return values

    def _pair(self, places: Rows) -> LawPair:
        """The one builder of pairs: (..., g) places of the coordinates of units of one size."""
        seen = self._seen_excess[places]
        shift = np.sqrt(seen)[..., None] * self.score[places]
        # A group's coordinates are scaled to unit variance with it; a record keeps its unit.
        scale = np.ones_like(seen)
        if self.groups is None:
            scale = self.variance_with[places] + self.output_variance
        return coordinate_pair(
            shift * np.sqrt(scale)[..., None], scale, (1.0 + seen) * scale, self.provenance()
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        lost = int(np.count_nonzero(~self.trusted))
        digits = Assumption(
            statement="the laws are exact, and float64 resolves them",
            holds=lost == 0,
            evidence=f"{lost} of {self.units} {self.unit}s flagged"
            + (", because the route nystrom approximates" if self.route == "nystrom" else ""),
        )
        latent = leaving_out(
            "lood Def. C.3 at the record itself, by the leave-one-out identities"
            if self.groups is None
            else "lood Def. C.3 and App. E at the group's own points, from one inverse",
            self.noise_variance,
            digits,
            group=self.groups is not None,
            method="approximate" if self.route == "nystrom" else "exact",
        )
        if self.output_variance == 0.0:
            return latent
        noise = Assumption(
            statement="the attacker sees one answer with independent normal noise of variance "
            f"{self.output_variance:g}, at the {self.unit}",
            holds=None,
            evidence="further answers with fresh noise compose",
        )
        return replace(
            latent,
            observes="prediction",
            random=("training", "output_noise"),
            assumptions=(*latent.assumptions, noise),
        )

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


def chance_of_right(mean: FloatArray, variance: FloatArray, labels: FloatArray) -> FloatArray:
    """(..., n) the chance that N(mean, variance I), (..., n, C), has the label's sign, or its
    largest output, (n, C).
    """
    sigma = np.sqrt(np.maximum(variance, np.finfo(np.float64).tiny))
    if labels.shape[1] == 1:
        return np.asarray(special.ndtr(np.sign(labels[:, 0]) * mean[..., 0] / sigma))
    return chance_of_largest(mean / sigma[..., None], np.argmax(labels, axis=1))


def confirmed_laws(
    means: FloatArray, sds: FloatArray, noise_variance: float, norm: float
) -> NDArray[np.bool_]:
    """(n,) the one rule of trust for exact laws, from (n, C) means and (n,) sds, both with.

    An sd, and the noise beside the size ``norm`` of M, must be more than ``ROUNDINGS`` roundings.
    """
    largest = np.max(np.abs(means.reshape(len(sds), -1)), axis=1)
    visible = noise_variance > ROUNDINGS * EPS * norm
    return np.asarray(resolved(largest, sds) & visible)


def record_laws(
    m: FloatArray,
    a: FloatArray,
    targets: FloatArray,
    *,
    prior: FloatArray,
    noise_variance: float,
    norm: float,
    route: Route = "dense",
) -> Separation:
    """What each record's leaving changes.

    Parameters
    ----------
    m, a
        (n,) the diagonal of M^{-1}, and (n, C) M^{-1} y.
    targets
        (n,) or (n, C).
    prior, norm
        (n,) K_ii, and a bound of the largest eigenvalue of M.
    """
    # x/(x + s2) over the spectrum of K is concave and at least x/||M||: rounding may not leave
    # these bounds, or a variance would come out negative.
    share = 1.0 - noise_variance * m
    share = np.clip(share, prior / norm, prior / (prior + noise_variance))
    with_record = targets.reshape(a.shape) - noise_variance * a
    trusted = confirmed_laws(with_record, np.sqrt(noise_variance * share), noise_variance, norm)
    return Separation(
        targets=targets,
        excess=share / (noise_variance * m),
        residual=a / m[:, None],
        trusted=trusted & (route != "nystrom"),
        noise_variance=float(noise_variance),
        route=route,
    )


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
