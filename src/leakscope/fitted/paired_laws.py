"""Laws of every record from a few paired fits, and the refits by which they are trusted.

K fits on random parts of the records answer about every record with it and without it
(`leakscope.fitted.paired`).  The shift is the mean over the fits of the difference between the two,
in which all that the fits have in common cancels.  The spread is that of the answers over the fits.
It is known from K - 1 degrees of freedom only, so that each record's variance is weighed against
that of records whose force moves their own score as far, as much as these are alike (Smyth 2004).

What a family holds while a record comes or goes is checked: records spread over the ranks are
really taken out and put in, and the model is fitted again, pipeline, search and all.  Shifts are
changed as those of the records refitted next in rank are.  Where refits change an advantage, the
record is refitted at more parts, and its shift is the one of the refits.

A record is trusted where those refitted next to it in rank agree, and where the law's own test,
counted on what the fits answer themselves, with the record and without, is worth what it says; and
where the answers without it are spread as a normal law is, with no other record that leads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import LED_WARNED, Diagnostics, FittedLaws, Observed
from leakscope.fitted.margins import Corner
from leakscope.fitted.paired import FEWEST_FITS, LEARNED, Mask, PairedModel, Pairs
from leakscope.fitted.refits import Rows
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.measures.pair_measures import advantage
from leakscope.single_fit.problem import require_fraction
from leakscope.single_fit.shares import Neighbours

# Records that are taken out and put in: the most exposed, and others spread evenly over the ranks.
MOST_EXPOSED, SPREAD_OVER = 6, 15
# At so many parts each; at fewer of a model that chooses its settings, or of a large table.
AT_PARTS, AT_FEWER_PARTS = 4, 2
# Where these change the advantage, at one part in so many of all.
MORE_PARTS = 4
# An advantage from refits may differ by so much, or by this share of it.
MOST_OFF, MOST_OFF_SHARE = 0.05, 0.15
# Shifts are changed as in the median of so many refitted records next in rank.
LIKE = 5
# The power of the curve of spreads over yields, and from how many records on there is one.
CURVE, FEWEST_FOR_CURVE = 2, 30
# Below it a spread is rounding, as a share of the answers.
ROUNDING = 1e-9
# How near to a corner answers are known to lie on it: turned ones are solved for so far, and a
# solver may take no tolerance.
SOLVED = 1e-6
# How far the answers' distribution may lie from a normal one, beside so much by chance over the
# root of the fits (Lilliefors: less in 99% of samples); and the kurtosis of one tail that is heavy.
MOST_APART, BY_CHANCE, MOST_KURTOSIS = 0.04, 0.9, 6.0
# By this factor the TPR at 1% FPR may be another with the skewness and kurtosis that are seen.
MOST_TAIL = 1.6
# Turned answers may be spread by another factor than the fits' own within so many of its errors.
SPREAD_APART = 3.0
# Where both sides have so many of their own.
FEWEST_ALONE = 16
# Of all records together, the fits' own shifts over those that are said, either way, and their mean
# squared distance in standard errors; and of one record how rare that distance may be.
OWN_RATIO, OWN_APART, OWN_CHANCE = 1.12, 3.0, 3e-5
# Where they are not used, the shift is known to this share of the spread.
MOST_SHIFT_ERROR = 0.15
# What counts as on the corner is at most this wide, beside the spread without the record.
MOST_BLURRED = 0.3
# The share of one other record in the variance of a score, or the root of several's squares.
MOST_LED = 0.4
# At least this share of a record's answers are different numbers.
LEAST_DIFFERENT = 0.9
# Of a loss with two corners: the share of what moves to the other one.
MOST_BACK = 0.05
# An advantage that is counted on the fits may differ by so much beside so many of its errors.
COUNTED_OFF, ERRORS = 0.05, 1.5
# How often a score lies on a corner is counted too, to within this standard error.
MOST_ERROR = 0.05

# Where tails are looked at, and how finely.
FPR, GRID_ENDS, GRID_POINTS = 0.01, 7.0, 1401
# Records at a time whose answers are set beside all others' presence.
TILE = 1000

COUNTED = "its own test, counted on the fits with it and without it, is worth what is said"
CHECK = (
    "refits with and without the records next to it in rank give their advantage within "
    f"{MOST_OFF:g} or {100 * MOST_OFF_SHARE:.0f}%; {COUNTED}; and its answers neither repeat, nor "
    "cluster, nor follow one other record"
)


@dataclass(frozen=True, eq=False)
class Moments:
    """Shift, spread without and with the record, and the errors of shift and log spread.

    ``alone`` says of whom they are those of the fits' own answers, because turned ones are spread
    by another factor.
    """

    mean: FloatArray
    shift: FloatArray
    sd_out: FloatArray
    sd_in: FloatArray
    shift_error: FloatArray
    log_sd_error: FloatArray
    corner: Corner | None = None
    alone: Mask | None = None

    def moved(self, rows: Rows, gap: FloatArray) -> Moments:
        """With another shift of some records."""
        shift = self.shift.copy()
        shift[rows] += gap
        return replace(self, shift=shift)

    @property
    def turned(self) -> Mask:
        """Of whom turned answers are used."""
        return np.ones(len(self.mean), dtype=np.bool_) if self.alone is None else ~self.alone

    @property
    def pair(self) -> LawPair:
        """Laws with these moments, or those beside a corner."""
        if self.corner is not None:
            return self.corner.pair(0.0, Provenance())
        return LawPair(Normal(self.mean + self.shift, self.sd_in), Normal(self.mean, self.sd_out))

    def advantage(self) -> FloatArray:
        """Of these laws."""
        return np.asarray(advantage(self.pair))


def yields_of(model: PairedModel, pairs: Pairs) -> FloatArray:
    """(N,) log of how far a unit of force moves each record's own score; NaN where none is felt.

    The force at the answer with the record: of the square loss its residual, of log-odds the
    chance of the other labels, of margins how far it is within.
    """
    if model.family.observes == "prediction":
        force = np.abs(model.targets - pairs.within)
    elif model.family.observes == "log_odds":
        force = special.expit(-pairs.within)
    else:
        force = np.maximum(1.0 - pairs.within, 0.0)
    moved = np.abs(pairs.within - pairs.without)
    felt = (force > 0.0) & (moved > 0.0)
    ratio = np.where(felt, moved / np.where(felt, force, 1.0), np.nan)
    found = np.full(ratio.shape[1], np.nan)
    some = felt.any(axis=0)
    found[some] = np.log(np.nanmedian(ratio[:, some], axis=0))
    return found


def moments_of(pairs: Pairs, like: FloatArray | None = None) -> Moments:
    """What the pairs say of every record, its variance weighed against that of records like it.

    ``like`` (N,) is what goes with the spread, `yields_of`; None for all records alike.
    """
    without, within = pairs.without, pairs.within
    differences = within - without
    if not np.isfinite(differences).any():
        return _unpaired(pairs, like)
    both, free = np.isfinite(differences).sum(axis=0), np.isfinite(without).sum(axis=0) - 1.0
    out, inside = np.nanvar(without, axis=0, ddof=1), np.nanvar(within, axis=0, ddof=1)
    least = _least_variance(pairs)
    out, inside = np.maximum(out, least), np.maximum(inside, least)
    variance, prior = squeezed(out, free, like)
    apart = np.maximum(np.nanvar(differences, axis=0, ddof=1), 0.0)
    correlation = np.clip(0.5 * (out + inside - apart) / np.sqrt(out * inside), -1.0, 1.0)
    ratio = _towards_common(0.5 * np.log(inside / out), (1.0 - correlation**2) / free)
    sd_out = np.sqrt(variance)
    return Moments(
        mean=np.nanmean(without, axis=0),
        shift=np.nanmean(differences, axis=0),
        sd_out=sd_out,
        sd_in=sd_out * np.exp(ratio),
        shift_error=np.sqrt(apart / both),
        log_sd_error=1.0 / np.sqrt(2.0 * (free + prior)),
    )


def _unpaired(pairs: Pairs, like: FloatArray | None) -> Moments:
    """The same where a fit answers about a record one way only."""
    (count_in, mean_in, inside), (count_out, mean_out, out) = (
        _some(pairs.own, mask) for mask in (pairs.inside, ~pairs.inside)
    )
    least = _least_variance(pairs)
    inside, out = np.maximum(inside, least), np.maximum(out, least)
    free = np.maximum(count_out - 1.0, 1.0)
    variance, prior = squeezed(out, free, like)
    noise = 0.5 / np.maximum(count_in - 1.0, 1.0) + 0.5 / free
    ratio = _towards_common(0.5 * np.log(inside / out), noise)
    return Moments(
        mean=mean_out,
        shift=mean_in - mean_out,
        sd_out=np.sqrt(variance),
        sd_in=np.sqrt(variance) * np.exp(ratio),
        shift_error=np.sqrt(inside / np.maximum(count_in, 1) + out / np.maximum(count_out, 1)),
        log_sd_error=1.0 / np.sqrt(2.0 * (free + prior)),
    )


def _some(answers: FloatArray, mask: Mask) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(N,) how many answers a mask has, their mean and their variance; 0 where there are none."""
    count = mask.sum(axis=0).astype(np.float64)
    mean = np.where(mask, answers, 0.0).sum(axis=0) / np.maximum(count, 1.0)
    square = np.where(mask, (answers - mean) ** 2, 0.0).sum(axis=0)
    return count, mean, square / np.maximum(count - 1.0, 1.0)


def _least_variance(pairs: Pairs) -> FloatArray:
    """(N,) of the answers about each record, below which it is rounding."""
    return np.asarray((ROUNDING * np.maximum(np.abs(pairs.own).max(axis=0), 1e-150)) ** 2)


def _as_spread(found: Moments, pairs: Pairs, like: FloatArray | None) -> Moments:
    """With what the fits answer themselves, where turned answers are spread by another factor.

    Near interpolation a record that is taken out moves its own score by more than all else.
    """
    alone, spreads = _unpaired(pairs, like), []
    for answers, own in ((pairs.without, ~pairs.inside), (pairs.within, pairs.inside)):
        squares = [_some(answers, mask)[2] for mask in (own, ~own)]
        spreads.append(0.5 * np.abs(np.diff(np.log(np.maximum(squares, 1e-300)), axis=0)[0]))
    fewest = np.minimum(pairs.inside.sum(axis=0), (~pairs.inside).sum(axis=0))
    noise = np.sqrt(2.0 / np.maximum(fewest, 1))
    apart = (np.maximum(*spreads) > SPREAD_APART * noise) & (fewest >= FEWEST_ALONE)
    names = ("mean", "shift", "sd_out", "sd_in", "shift_error", "log_sd_error")
    return replace(
        found,
        alone=apart,
        **{n: np.where(apart, getattr(alone, n), getattr(found, n)) for n in names},
    )


def _cornered(found: Moments, pairs: Pairs, model: PairedModel) -> Moments:
    """With the pieces beside the corner of the loss."""
    assert model.family.corner is not None
    inner = model.whole.found.inner
    place, side = model.family.corner(inner, model.whole.y, found.mean)
    answers = pairs.inside, pairs.without, pairs.within
    tolerance = max(float(getattr(inner, "tol", SOLVED)), SOLVED)
    return replace(found, corner=Corner.of(place, side, answers, tolerance))


def squeezed(
    variance: FloatArray, free: FloatArray | float, like: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Sample variances weighed against those of records like them, and what that counts for.

    s² has ``free`` degrees of freedom; the true ones are as if drawn from a scaled inverse
    chi-squared law with d0, around a curve over ``like`` where that is given.  Log s² then has the
    variance psi'(free / 2) + psi'(d0 / 2) around it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted.paired_laws import squeezed
    >>> drawn = np.random.default_rng(0).chisquare(15, 4000) / 15
    >>> found, prior = squeezed(drawn, 15)
    >>> bool(prior > 200.0), bool(np.std(np.log(found)) < 0.1 * np.std(np.log(drawn)))
    (True, True)
    """
    half = 0.5 * np.asarray(free, dtype=np.float64)
    log = np.log(variance) - special.digamma(half) + np.log(half)
    line = np.full(len(log), float(np.mean(log)))
    if like is not None and np.isfinite(like).sum() > FEWEST_FOR_CURVE:
        line = _curve(log, like)
    degrees = 1.0 if like is None else CURVE + 2.0
    spread = float(np.sum((log - line) ** 2) / max(len(log) - degrees, 1.0))
    spread -= float(np.mean(special.polygamma(1, half)))
    prior = 2.0 * _inverse_trigamma(spread) if spread > 1e-6 else 1e6
    common = np.exp(line + special.digamma(0.5 * prior) - np.log(0.5 * prior))
    return np.asarray((free * variance + prior * common) / (free + prior)), prior


def _curve(log: FloatArray, like: FloatArray) -> FloatArray:
    """A parabola over ``like``, held at its ends; one level for those without."""
    known = np.isfinite(like)
    centre, width = float(np.median(like[known])), float(np.std(like[known])) or 1.0
    x = np.clip((np.where(known, like, centre) - centre) / width, -2.5, 2.5)
    powers = np.stack([known * x**power for power in range(CURVE + 1)] + [~known * 1.0], axis=1)
    found, *_ = np.linalg.lstsq(powers, log, rcond=None)
    return np.asarray(powers @ found)


def _inverse_trigamma(value: float) -> float:
    """The x with psi'(x) = value, by Newton's steps on 1 / psi', which is nearly a line."""
    x = 0.5 + 1.0 / value
    for _ in range(50):
        slope, bend = (float(special.polygamma(order, x)) for order in (1, 2))
        step = slope * (1.0 - slope / value) / bend
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x


def _towards_common(values: FloatArray, noise: FloatArray) -> FloatArray:
    """Numbers with known noise, weighed against their common mean."""
    weight = 1.0 / (noise + 1e-12)
    centre = float(np.sum(weight * values) / np.sum(weight))
    between = max(float(np.mean((values - centre) ** 2 - noise)), 0.0)
    return np.asarray(centre + (values - centre) * between / (between + noise + 1e-300))


@dataclass(frozen=True, eq=False)
class Refitted:
    """What refits of some records showed.

    ``rows`` are in the order of their ranks; ``gap`` is how much larger their shift is than by
    turned answers; ``change`` (N,) by which share all shifts are larger, as those refitted next in
    rank are; ``good`` whether an advantage is that of the refits; ``long`` whether a record was
    refitted at so many parts that its shift is known.
    """

    rows: Rows
    gap: FloatArray
    change: FloatArray
    good: Mask
    long: Mask
    refits: int

    @property
    def measured(self) -> Rows:
        """Those whose shift refits say better."""
        return self.rows[self.long & np.isfinite(self.gap)]

    def corrected(self, found: Moments) -> Moments:
        """With shifts as refits have them."""
        everybody = np.arange(len(self.change))
        change = np.where(found.turned, self.change, 0.0)
        change[self.measured] = 0.0
        moved = found.moved(everybody, change * found.shift)
        own = np.where(found.turned[self.measured], self.gap[np.isin(self.rows, self.measured)], 0)
        return moved.moved(self.measured, own)


def paired_laws(
    model: PairedModel, *, question: str, fraction: float | None, observes: Observed | None
) -> FittedLaws:
    """Both laws of every record's score, from fits on random parts of the records."""
    own = model.family.observes
    plain = own == "prediction" and model.family.corner is None
    require_pool(model, question, observes, (own, "residual") if plain else (own,))
    share = require_fraction(0.5 if fraction is None else fraction, whole=False)
    pairs = model.pairs(share)
    like = yields_of(model, pairs)
    found = moments_of(pairs, like)
    seen = None
    if model.family.corner is None:
        found = _as_spread(found, pairs, like)
        seen = _refitted(model, pairs, found)
        found = seen.corrected(found)
    else:
        found = _cornered(found, pairs, model)
    trusted = _trusted(pairs, found, seen)
    if model.family.held == LEARNED:
        trusted &= _as_fitted(pairs, found)
    sign = -1.0 if observes == "residual" else 1.0
    offset = model.targets if observes == "residual" else 0.0
    size = model.records
    return FittedLaws(
        described=model,
        member_mean=offset + sign * (found.mean + found.shift),
        member_sd=found.sd_in,
        nonmember_mean=offset + sign * found.mean,
        nonmember_sd=found.sd_out,
        question="pool",
        fraction=share,
        observes=observes or model.family.observes,
        trusted=trusted,
        looked=np.ones(size, dtype=np.bool_),
        check=COUNTED if seen is None else CHECK,
        largest_share=np.full(size, np.nan),
        moved_by_refits=None,
        warnings=_warnings(model, found, trusted),
        diagnostics=Diagnostics(pairs.fits, 0.0, True, 0.0, 0.0, 0.0),
        provenance=Provenance(
            question="pool",
            adjacency="removed",
            observes=observes or model.family.observes,
            random=("data",),
            attacker_knows_label=True,
            method="simulated",
            source="docs/fitted.md",
            assumptions=_assumptions(model, pairs, found, seen, share),
        ),
        errors=(found.shift_error, found.log_sd_error),
        corner=found.corner,
    )


def require_pool(
    model: PairedModel, question: str, observes: Observed | None, allowed: Sequence[str]
) -> None:
    """Refuse what is not known of a family: another question, or other answers than these."""
    if question != "pool":
        raise InputError(
            f"The laws of {model.name} come from fits on parts of the records at hand, which is "
            "the pool question; leave the question out."
        )
    if observes is not None and observes not in allowed:
        raise InputError(
            f"observes must be one of {', '.join(allowed)} for {model.name}, but it is "
            f"{observes!r}."
        )


def _chosen(exposure: FloatArray) -> Rows:
    """The most exposed records, and others spread evenly over the ranks, by rank."""
    order = np.argsort(-exposure, kind="stable")
    places = np.linspace(0, len(order) - 1, SPREAD_OVER).round().astype(np.intp)
    return np.asarray(order[np.unique(np.append(places, np.arange(min(MOST_EXPOSED, len(order)))))])


def _refitted(model: PairedModel, pairs: Pairs, found: Moments) -> Refitted:
    """A few refits of each chosen record, and more of those whose advantage these change."""
    rows = _chosen(found.advantage())
    costly = model.whole.chosen or model.fits == FEWEST_FITS
    first = AT_FEWER_PARTS if costly else AT_PARTS
    gaps: list[list[float]] = [[] for _ in rows]

    def refit(place: int, count: int) -> None:
        row, start = int(rows[place]), place * first + len(gaps[place])
        known = np.flatnonzero(np.isfinite(pairs.within[:, row] - pairs.without[:, row]))
        if not known.size:
            gaps[place] += [float("nan")] * count
            return
        for turn in range(count):
            gaps[place].append(_gap(model, pairs, int(known[(start + turn) % len(known)]), row))

    exposure = found.advantage()
    order = np.argsort(-exposure, kind="stable")

    def agree(said: Moments) -> tuple[FloatArray, Mask]:
        gap = np.array([np.mean(some) for some in gaps])
        now, then = said.advantage()[rows], found.moved(rows, gap).advantage()[rows]
        return gap, np.abs(then - now) <= np.maximum(MOST_OFF, MOST_OFF_SHARE * then)

    for place in range(len(rows)):
        refit(place, first)
    gap, good = agree(found)
    change = np.empty(len(exposure))
    change[order] = _like_the_next(gap / found.shift[rows], rows, order)
    everybody = np.arange(len(change))
    long = ~good
    for place in np.flatnonzero(long).tolist():
        refit(place, pairs.fits // MORE_PARTS - first)
    gap, good = agree(found.moved(everybody, change * found.shift))
    return Refitted(rows, gap, change, good, long, sum(map(len, gaps)))


def _like_the_next(ratio: FloatArray, rows: Rows, order: Rows) -> FloatArray:
    """(N,) by rank: the median change of a few refitted records next in rank; none where unsure."""
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    away = np.abs(rank[rows][None, :] - np.arange(len(order))[:, None])
    next_ones = np.argsort(away, axis=1, kind="stable")[:, :LIKE]
    found = np.median(np.nan_to_num(ratio)[next_ones], axis=1)
    # A change that is larger than the shift is none that neighbours share.
    return np.where(np.abs(found) < 1.0, found, 0.0)


def _gap(model: PairedModel, pairs: Pairs, fit: int, row: int) -> float:
    """How much larger a record's shift is by a refit than by turning its answer, at one part."""
    inside = pairs.inside[fit].copy()
    inside[row] = not inside[row]
    rows = np.flatnonzero(inside)
    if model.whole.lacks_a_class(rows):
        return float("nan")
    answer = float(model.whole.scores(rows)[row])
    if inside[row]:
        return answer - float(pairs.within[fit, row])
    return float(pairs.without[fit, row]) - answer


def _trusted(pairs: Pairs, found: Moments, seen: Refitted | None) -> Mask:
    """Whose neighbours in rank agree with refits, whose own fits agree, and who is spread well."""
    passed = np.ones(len(found.shift), dtype=np.bool_) if seen is None else _next_agree(found, seen)
    spread = found.sd_out > 1e3 * np.sqrt(_least_variance(pairs))
    numbers = np.isfinite(found.shift) & np.isfinite(found.sd_out) & np.isfinite(found.sd_in)
    good = passed & spread & numbers & counted_as_said(pairs, found) & _own_agree(pairs, found)
    if found.corner is None:
        out, into = (
            np.where(found.turned | mask, answers, np.nan)
            for mask, answers in ((~pairs.inside, pairs.without), (pairs.inside, pairs.within))
        )
        good &= _one_lump(out) & _one_lump(into) & (leads(out, pairs.inside) <= MOST_LED)
        good &= _different(out) & _different(into) & (tails_of(found, out, into) <= MOST_TAIL)
    else:
        good &= _pushed_one_way(pairs, found) & (_error_of_chance(pairs, found) <= MOST_ERROR)
        # Where the solver stops early, who is on the corner is not told from who is near it.
        blurred = found.corner.near > MOST_BLURRED * found.sd_out
        good &= ~blurred | (found.corner.chance < MOST_ERROR)
    return np.asarray(good)


def _as_fitted(pairs: Pairs, found: Moments) -> bool:
    """Whether all records together show by the fits' own answers the shifts that are said.

    A step that chooses features by the labels may choose others when one record leaves.  No turned
    answer knows that, and refits of twenty records see it of few.
    """
    seen, said = _own_shifts(pairs, found)
    ratio = float(seen @ said) / max(float(said @ said), 1e-300)
    return bool(1.0 / OWN_RATIO <= ratio <= OWN_RATIO)


def _own_shifts(pairs: Pairs, found: Moments) -> tuple[FloatArray, FloatArray]:
    """(N,) shifts by the fits' own answers, none of them turned, and those said; standardised.

    A record that is in all parts, or in none, shows no shift.
    """
    own, parts, means = pairs.own, np.zeros(len(found.shift)), []
    for mask, sd in ((pairs.inside, found.sd_in), (~pairs.inside, found.sd_out)):
        count = np.maximum(mask.sum(axis=0), 1)
        mean = np.where(mask, own, 0.0).sum(axis=0) / count
        variance = np.where(mask, (own - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1)
        parts += np.maximum(variance, sd**2) / count
        means.append(mean)
    both = pairs.inside.any(axis=0) & ~pairs.inside.all(axis=0)
    error = np.sqrt(np.maximum(parts, 1e-300))
    seen, said = (means[0] - means[1]) / error, found.shift / error
    return np.where(both, seen, 0.0), np.where(both, said, 0.0)


def _own_agree(pairs: Pairs, found: Moments) -> Mask:
    """Whether a record's own answers show the shift that is said; of none where most do not.

    Of a record that the law leaves as it is the law's own test finds nothing to count: a solver
    that stops early may yet move it.
    """
    seen, said = _own_shifts(pairs, found)
    apart = np.abs(seen - said)
    if float(np.mean(apart**2)) > OWN_APART:
        return np.zeros(len(apart), dtype=np.bool_)
    return np.asarray(apart <= special.stdtrit(pairs.fits - 2.0, 1.0 - OWN_CHANCE))


def _next_agree(found: Moments, seen: Refitted) -> Mask:
    """Whether the refitted ones at or before each rank, and at or after it, agree."""
    exposure = found.advantage()
    rank = np.empty(len(exposure), dtype=np.intp)
    rank[np.argsort(-exposure, kind="stable")] = np.arange(len(exposure))
    order = np.argsort(rank[seen.rows], kind="stable")
    places, good = rank[seen.rows][order], seen.good[order]
    before = np.maximum(np.searchsorted(places, rank, side="right") - 1, 0)
    after = np.minimum(np.searchsorted(places, rank, side="left"), len(places) - 1)
    passed = good[before] & good[after]
    passed[seen.measured] = True
    # Of those whose answers were not turned, the noise of so few fits.
    passed = np.where(found.turned, passed, found.shift_error <= MOST_SHIFT_ERROR * found.sd_out)
    return np.asarray(passed)


def counted_as_said(pairs: Pairs, found: Moments) -> Mask:
    """Whether the law's own test, on what the fits answer themselves, is worth what it says.

    Its yeses are counted among the fits with the record and among those without it; of these
    answers none was turned.
    """
    pair, answers = found.pair, pairs.own
    if found.corner is not None:
        answers = found.corner.side * (answers - found.corner.place)
    with np.errstate(invalid="ignore"):
        yes = pair.member.log_density(answers) > pair.nonmember.log_density(answers)
    shares, variance = [], np.zeros(len(found.shift))
    for mask in (pairs.inside, ~pairs.inside):
        count = np.maximum(mask.sum(axis=0), 1)
        often = (yes & mask).sum(axis=0)
        smooth = (often + 1.0) / (count + 2.0)
        variance += smooth * (1.0 - smooth) / count
        shares.append(often / count)
    error = np.sqrt(variance)
    off = np.abs(shares[0] - shares[1] - np.asarray(advantage(pair)))
    return np.asarray(off <= COUNTED_OFF + ERRORS * error)


def leads(answers: FloatArray, inside: Mask) -> FloatArray:
    """(N,) how much a few other records lead a record's answers (K, N): shares of the variance.

    The share of one other record is the squared correlation of the answers with its presence; what
    chance makes of so many others is left out, and several count as the root of their squares.
    """
    fits, size = answers.shape
    least = min(special.chdtri(1.0, 0.5 / max(size, 2)) / fits, 1.0)
    centred = np.nan_to_num(answers - np.nanmean(answers, axis=0))
    centred /= np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    present = inside - inside.mean(axis=0)
    present /= np.maximum(np.linalg.norm(present, axis=0), 1e-300)
    found = np.empty(size)
    for start in range(0, size, TILE):
        rows = np.arange(start, min(start + TILE, size))
        shares = (centred[:, rows].T @ present) ** 2
        shares[np.arange(len(rows)), rows] = 0.0
        found[rows] = np.sqrt(np.sum(np.where(shares > least, shares, 0.0) ** 2, axis=1))
    return found


def _different(answers: FloatArray) -> Mask:
    """Whether hardly any of a record's answers repeat, beside how far they are spread."""
    step = np.maximum(ROUNDING * np.nanstd(answers, axis=0), 1e-300)
    # Those that are not known come last.
    apart = np.diff(np.sort(answers, axis=0), axis=0)
    known = np.maximum(np.isfinite(apart).sum(axis=0), 1)
    return np.asarray((apart > step).sum(axis=0) >= LEAST_DIFFERENT * known)


def _pushed_one_way(pairs: Pairs, found: Moments) -> Mask:
    """Whether a record moves its score towards one corner: of a tube there are two."""
    assert found.corner is not None
    towards = np.nan_to_num(found.corner.side * (pairs.within - pairs.without))
    back, forth = np.maximum(-towards, 0.0).sum(axis=0), np.maximum(towards, 0.0).sum(axis=0)
    return np.asarray(back <= MOST_BACK * forth + ROUNDING)


def _error_of_chance(pairs: Pairs, found: Moments) -> FloatArray:
    """(N,) the standard error of how often a score with the record lies on the corner."""
    assert found.corner is not None
    fits = np.maximum(np.isfinite(pairs.within).sum(axis=0), 1)
    return np.asarray(np.sqrt(found.corner.chance * (1.0 - found.corner.chance) / fits))


def _one_lump(answers: FloatArray) -> Mask:
    """Whether answers are spread as one normal law is: nowhere far from its distribution."""
    ordered = np.sort(answers, axis=0)
    count = np.maximum(np.isfinite(ordered).sum(axis=0), 1)
    place = np.arange(1, len(ordered) + 1)[:, None] / count
    sd = np.maximum(np.nanstd(answers, axis=0, ddof=1), 1e-300)
    chance = special.ndtr((ordered - np.nanmean(answers, axis=0)) / sd)
    apart = np.nanmax(np.maximum(place - chance, chance - place + 1.0 / count), axis=0)
    even = apart <= MOST_APART + BY_CHANCE / np.sqrt(count)
    return np.asarray(even & (_cumulants(answers)[1] + 3.0 <= MOST_KURTOSIS))


def _cumulants(answers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(N,) skewness and excess kurtosis."""
    centred = answers - np.nanmean(answers, axis=0)
    sd = np.sqrt(np.maximum(np.nanmean(centred**2, axis=0), 1e-300))
    return (
        np.asarray(np.nanmean((centred / sd) ** 3, axis=0)),
        np.asarray(np.nanmean((centred / sd) ** 4, axis=0) - 3.0),
    )


def tails_of(found: Moments, out: FloatArray, into: FloatArray) -> FloatArray:
    """(N,) by which factor, at least 1, skewness and kurtosis change the TPR at 1% FPR.

    Both densities are taken to second order around normal ones (Edgeworth), from the answers
    without the record (``out``) and with it (``into``); what so few fits make of skewness and
    kurtosis by chance is left out.
    """
    place, ratio = found.shift / found.sd_out, found.sd_in / found.sd_out
    cumulants = []
    for answers in (out, into):
        fits = np.maximum(np.isfinite(answers).sum(axis=0), 8)
        skewness, kurtosis = _cumulants(answers)
        cumulants.append((_kept(skewness, 6.0 / fits), _kept(kurtosis, 24.0 / fits)))
    found_ratio = np.empty(len(place))
    grid = np.linspace(-GRID_ENDS, GRID_ENDS, GRID_POINTS)[None, :]
    for start in range(0, len(place), TILE):
        rows = slice(start, start + TILE)
        # In the units of whichever law is narrower, around it.
        narrow = np.minimum(ratio[rows], 1.0)[:, None]
        x = np.where(narrow < 0.5, place[rows][:, None] + narrow * grid, grid)
        at = x, (x - place[rows][:, None]) / ratio[rows][:, None]
        plain = [np.exp(-0.5 * z**2) for z in at]
        bent = [
            density * _edgeworth(z, *(each[rows][:, None] for each in own))
            for density, z, own in zip(plain, at, cumulants, strict=True)
        ]
        step = np.gradient(x, axis=1) / np.sqrt(2.0 * np.pi)
        rates = [
            _rate(inside * step / ratio[rows][:, None], outside * step)
            for outside, inside in (plain, bent)
        ]
        found_ratio[rows] = np.exp(np.abs(np.log(np.maximum(rates[1], 1e-6) / rates[0])))
    return found_ratio


def _edgeworth(z: FloatArray, skewness: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """What a normal density is multiplied by, to second order; never below a thousandth."""
    return np.maximum(
        1.0
        + skewness * (z**3 - 3.0 * z) / 6.0
        + kurtosis * (z**4 - 6.0 * z**2 + 3.0) / 24.0
        + skewness**2 * (z**6 - 15.0 * z**4 + 45.0 * z**2 - 15.0) / 72.0,
        1e-3,
    )


def _rate(inside: FloatArray, outside: FloatArray) -> FloatArray:
    """(N,) the TPR at 1% FPR of the best test between two densities on a grid."""
    order = np.argsort(-inside / np.maximum(outside, 1e-300), axis=1)
    fpr, tpr = (
        np.cumsum(np.take_along_axis(density, order, axis=1), axis=1)
        for density in (outside, inside)
    )
    last = np.argmax(fpr >= FPR * np.minimum(1.0, 0.99 * fpr[:, -1:] / FPR), axis=1)[:, None]
    return np.asarray(np.maximum(np.take_along_axis(tpr, last, axis=1)[:, 0], 1e-6))


def _kept(values: FloatArray, noise: FloatArray) -> FloatArray:
    """Values of which as much is kept as is not their noise, of variance ``noise``."""
    between = max(float(np.mean(values**2 - noise)), 0.0)
    return np.asarray(values * between / (between + noise))


def reasons(model: PairedModel, laws: FittedLaws, rows: Sequence[int]) -> Neighbours:
    """How much features and label of some records weigh; which others matter is not known."""
    chosen = np.asarray(rows, dtype=np.intp)
    without = laws.nonmember_mean
    if model.family.observes == "prediction":
        # A residual is its own distance from the label.
        off = np.abs(without - (model.targets if laws.observes == "prediction" else 0.0))
    elif model.family.observes == "log_odds":
        off = special.expit(-without)
    else:
        off = np.maximum(1.0 - without, 0.0) + ROUNDING
    weight = np.abs(laws.shift) / np.maximum(off, 1e-300)
    none = np.empty((len(chosen), 0))
    return Neighbours(
        weight=weight[chosen] / max(float(np.median(weight)), 1e-300),
        surprise=off[chosen] / max(float(np.median(off)), 1e-300),
        others=none.astype(np.intp),
        shares=none,
    )


def _warnings(model: PairedModel, found: Moments, trusted: Mask) -> tuple[str, ...]:
    said, share = [], float(np.mean(~trusted))
    if found.corner is not None:
        often = float(np.mean(found.corner.chance))
        if often >= 0.005:
            said.append(
                f"In {100 * often:.0f}% of the cases a member is answered with exactly "
                f"{_corner_words(model)}, which gives it away; labels, or answers with few digits, "
                "hide it."
            )
    if share > LED_WARNED:
        held = f"{model.family.held} does not stay as it is when they come or go, or "
        said.append(
            f"The numbers of {100 * share:.0f}% of the records are not trusted: "
            f"{held * bool(model.family.held)}their answers repeat or cluster, as refits and fits "
            "on random parts show."
        )
    return tuple(said)


def _corner_words(model: PairedModel) -> str:
    return "a margin of 1" if model.task == "classification" else "a residual of epsilon"


def _assumptions(
    model: PairedModel, pairs: Pairs, moments: Moments, seen: Refitted | None, fraction: float
) -> tuple[Assumption, ...]:
    found = [
        *model.whole.found.assumptions,
        Assumption(
            f"each training set has {fraction:g} of the records, drawn at random",
            holds=None,
            evidence=f"{pairs.fits} fits of {model.name} on such parts",
        ),
        Assumption(
            "the score is normal over training sets, with and without the record",
            holds=None,
            evidence=f"kurtosis over {pairs.fits} fits, record by record; a spread is known to "
            f"{100 * float(np.median(moments.log_sd_error)):.0f}%",
        ),
    ]
    # What is learned is named below.
    if model.family.held not in ("", LEARNED) and seen is not None:
        found.append(
            Assumption(
                f"{model.family.held} stays as it is when a record comes or goes",
                holds=None,
                evidence=f"{seen.refits} refits with and without {len(seen.rows)} records",
            )
        )
    learned = model.whole.learned
    if learned:
        found.append(
            Assumption(
                f"what is learned beside the coefficients ({', '.join(learned)}) stays as it is "
                "when a record comes or goes",
                holds=None,
                evidence=f"fitted again on each of {pairs.fits} parts"
                + (f" and in {seen.refits} refits" if seen is not None else ""),
            )
        )
    return tuple(found)
