"""Laws of every record from a few paired fits, and the refits by which they are trusted.

K fits on random parts of the records answer about every record with it and without it
(`leakscope.fitted.paired`).  The shift is the mean over the fits of the difference between the two,
in which all that the fits have in common cancels.  The spread is that of the answers over the fits.
It is known from K - 1 degrees of freedom only, so that each record's variance is weighed against
that of records whose force moves their own score as far, as much as these are alike (Smyth 2004).

What a family holds while a record comes or goes is checked: records spread over the ranks are
really taken out and put in, and the model is fitted again, pipeline, search and all.  Where that
changes a record's advantage it is refitted at more parts, and its shift is the one of the refits.
A record is trusted where those refitted next to it in rank agree with the turned answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.cavity import Neighbours
from leakscope.fitted.few_models import repeating
from leakscope.fitted.fitted_laws import LED_WARNED, Diagnostics, FittedLaws, Observed
from leakscope.fitted.margins import Corner
from leakscope.fitted.paired import Mask, PairedModel, Pairs
from leakscope.fitted.problem import require_fraction
from leakscope.fitted.refits import Rows
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.measures.pair_measures import advantage

# Records that are taken out and put in: the most exposed, and others spread evenly over the ranks.
MOST_EXPOSED, SPREAD_OVER = 6, 15
# At so many parts each, of a model that chooses its settings at fewer.
AT_PARTS, AT_PARTS_OF_CHOSEN = 4, 2
# Where these change the advantage, at one part in so many of all.
MORE_PARTS = 4
# An advantage from refits may differ by so much, or by this share of it.
MOST_OFF, MOST_OFF_SHARE = 0.02, 0.15
# The power of the curve of spreads over yields, and from how many records on there is one.
CURVE, FEWEST_FOR_CURVE = 2, 30
# Below it a spread is rounding, as a share of the answers.
ROUNDING = 1e-9
# Kurtosis of the answers without a record: a normal law has 3, two lumps have 1.
LEAST_KURTOSIS, MOST_KURTOSIS = 1.6, 6.0
# Of a loss with two corners: the share of what moves to the other one.
MOST_BACK = 0.05

CHECK = (
    "refits with and without the records next to it in rank give their advantage within "
    f"{MOST_OFF:g} or {100 * MOST_OFF_SHARE:.0f}%, and its answers neither repeat nor cluster"
)


@dataclass(frozen=True, eq=False)
class Moments:
    """Shift, spread without and with the record, and the errors of shift and log spread."""

    mean: FloatArray
    shift: FloatArray
    sd_out: FloatArray
    sd_in: FloatArray
    shift_error: FloatArray
    log_sd_error: FloatArray
    corner: Corner | None = None

    def moved(self, rows: Rows, gap: FloatArray) -> Moments:
        """With another shift of some records."""
        shift = self.shift.copy()
        shift[rows] += gap
        if self.corner is None:
            return replace(self, shift=shift)
        corner = Corner.of(self.corner.place, self.corner.side, self.mean, self.sd_out, shift)
        return replace(self, shift=shift, corner=corner)

    def advantage(self) -> FloatArray:
        """Of laws with these moments."""
        if self.corner is None:
            pair = LawPair(Normal(self.shift, self.sd_in), Normal(0.0 * self.shift, self.sd_out))
        else:
            pair = self.corner.pair(self.mean, self.sd_out, 0.0, Provenance())
        return np.asarray(advantage(pair))


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
    both, free = np.isfinite(differences).sum(axis=0), np.isfinite(without).sum(axis=0) - 1.0
    out, inside = np.nanvar(without, axis=0, ddof=1), np.nanvar(within, axis=0, ddof=1)
    least = (ROUNDING * float(np.nanmax(np.abs(without)))) ** 2
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


def _cornered(found: Moments, pairs: Pairs, model: PairedModel) -> Moments:
    """How far each record can move its score, from the fits that were asked both ways alone.

    Mean and shift of the same fits belong together; the reach is what other fits share with them.
    """
    assert model.family.corner is not None
    place, side = model.family.corner(model.whole.found.inner, model.whole.y, found.mean)
    both = np.isfinite(pairs.within - pairs.without)
    only = Pairs(pairs.inside, *(np.where(both, x, np.nan) for x in (pairs.without, pairs.within)))
    own = moments_of(only, yields_of(model, only))
    corner = Corner.of(place, side, own.mean, own.sd_out, own.shift)
    return replace(found, corner=corner, shift=corner.shift(found.mean, found.sd_out))


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
    turned answers; ``good`` whether that leaves their advantage what it is; ``long`` whether they
    were refitted at so many parts that their shift is known.
    """

    rows: Rows
    gap: FloatArray
    good: Mask
    long: Mask
    refits: int

    @property
    def measured(self) -> Rows:
        """Those whose shift refits say better."""
        return self.rows[self.long & np.isfinite(self.gap)]


def paired_laws(
    model: PairedModel, *, question: str, fraction: float | None, observes: Observed | None
) -> FittedLaws:
    """Both laws of every record's score, from fits on random parts of the records."""
    _require_asked(model, question, observes)
    share = require_fraction(0.5 if fraction is None else fraction, whole=False)
    pairs = model.pairs(share)
    found = moments_of(pairs, yields_of(model, pairs))
    if model.family.corner is not None:
        found = _cornered(found, pairs, model)
    seen = _refitted(model, pairs, found)
    trusted = _trusted(pairs, found, seen)
    found = found.moved(seen.measured, seen.gap[np.isin(seen.rows, seen.measured)])
    sign = -1.0 if observes == "residual" else 1.0
    offset = model.targets if observes == "residual" else 0.0
    size = model.records
    return FittedLaws(
        member_mean=offset + sign * (found.mean + found.shift),
        member_sd=found.sd_in,
        nonmember_mean=offset + sign * found.mean,
        nonmember_sd=found.sd_out,
        question="pool",
        fraction=share,
        observes=observes or model.family.observes,
        trusted=trusted,
        looked=np.ones(size, dtype=np.bool_),
        check=CHECK,
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


def _require_asked(model: PairedModel, question: str, observes: Observed | None) -> None:
    own = model.family.observes
    if question != "pool":
        raise InputError(
            f"The laws of {model.name} come from fits on parts of the records at hand, which is "
            "the pool question; leave the question out."
        )
    plain = own == "prediction" and model.family.corner is None
    allowed = (own, "residual") if plain else (own,)
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
    first = AT_PARTS_OF_CHOSEN if model.whole.chosen else AT_PARTS
    gaps: list[list[float]] = [[] for _ in rows]

    def refit(place: int, count: int) -> None:
        row, start = int(rows[place]), place * first + len(gaps[place])
        known = np.flatnonzero(np.isfinite(pairs.within[:, row] - pairs.without[:, row]))
        for turn in range(count):
            gaps[place].append(_gap(model, pairs, int(known[(start + turn) % len(known)]), row))

    def agree() -> tuple[FloatArray, Mask]:
        gap = np.array([np.mean(some) for some in gaps])
        now, then = found.advantage()[rows], found.moved(rows, gap).advantage()[rows]
        return gap, np.abs(then - now) <= np.maximum(MOST_OFF, MOST_OFF_SHARE * then)

    for place in range(len(rows)):
        refit(place, first)
    _, good = agree()
    long = ~good
    for place in np.flatnonzero(long).tolist():
        refit(place, pairs.fits // MORE_PARTS - first)
    gap, good = agree()
    return Refitted(rows, gap, good, long, sum(map(len, gaps)))


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


def _trusted(pairs: Pairs, found: Moments, seen: Refitted) -> Mask:
    """Whose neighbours in rank agree with refits, and whose answers are spread as normal ones."""
    exposure, good = found.advantage(), seen.good
    rank = np.empty(len(exposure), dtype=np.intp)
    rank[np.argsort(-exposure, kind="stable")] = np.arange(len(exposure))
    places = rank[seen.rows]
    # The refitted ones at or before each rank, and at or after it.
    before = np.searchsorted(places, rank, side="right") - 1
    after = np.searchsorted(places, rank, side="left")
    passed = good[before] & good[np.minimum(after, len(places) - 1)]
    passed[seen.measured] = True
    spread = found.sd_out > 1e3 * ROUNDING * float(np.nanmax(np.abs(pairs.without)))
    numbers = np.isfinite(found.shift) & np.isfinite(found.sd_out) & np.isfinite(found.sd_in)
    smooth = _one_lump(pairs.without)
    if found.corner is None:
        smooth &= ~repeating(pairs.without, np.ones_like(pairs.inside))
        smooth &= ~repeating(pairs.within, np.ones_like(pairs.inside))
    else:
        smooth &= _pushed_one_way(pairs, found)
    return np.asarray(passed & spread & numbers & smooth)


def _pushed_one_way(pairs: Pairs, found: Moments) -> Mask:
    """Whether a record moves its score towards one corner: of a tube there are two."""
    assert found.corner is not None
    towards = np.nan_to_num(found.corner.side * (pairs.within - pairs.without))
    back, forth = np.maximum(-towards, 0.0).sum(axis=0), np.maximum(towards, 0.0).sum(axis=0)
    return np.asarray(back <= MOST_BACK * forth + ROUNDING)


def _one_lump(answers: FloatArray) -> Mask:
    """Whether answers are spread as one normal law is, by their kurtosis."""
    centred = answers - np.nanmean(answers, axis=0)
    square = np.nanmean(centred**2, axis=0)
    kurtosis = np.nanmean(centred**4, axis=0) / np.maximum(square, 1e-300) ** 2
    return np.asarray((kurtosis >= LEAST_KURTOSIS) & (kurtosis <= MOST_KURTOSIS))


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
        often = float(np.mean(found.corner.chance(found.mean, found.sd_out)))
        said.append(
            f"Members are answered with exactly {_corner_words(model)} in {100 * often:.0f}% of "
            "the cases, and an attacker who sees that knows; labels, or answers with few digits, "
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
    model: PairedModel, pairs: Pairs, moments: Moments, seen: Refitted, fraction: float
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
    if model.family.held:
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
                evidence=f"fitted again on each of {pairs.fits} parts and in {seen.refits} refits",
            )
        )
    return tuple(found)
