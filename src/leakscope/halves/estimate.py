"""Every record's two laws from models of halves: from 2 of them, where attacks train 64 to 256.

A model that is more confident everywhere moves all records alike.  Every model answers for the same
records, and was trained on a share of them that was drawn at random.  So the log-odds of all
records have, up to chance, one distribution for every model.  Where one model's is shifted or
stretched, this is the model's own doing and says nothing of any single record; an attacker, who
sees the model's answers for other records, takes it off too (`model_effects`).

Then the population of records is fitted, and each record's own numbers are weighed against what
records like it show (`population.py`).  The result is a posterior: draws of both laws of every
record, from which `leakscope.measures` gives advantages and TPRs with intervals.

Where answers take few values, or the count of a record contradicts its law, its advantage is
counted instead (`counting.py`).  Its draws are then pairs of normals with one spread and the
advantage that was drawn: they stand for the advantage, not for the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RectBivariateSpline
from scipy.special import ndtr, ndtri, stdtr

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.halves.counting import ONE_ANSWER, Counted, counted
from leakscope.halves.population import (
    Nodes,
    Population,
    RecordSums,
    blocks,
    fit_population,
    means_and_squares,
    nodes,
    record_sums,
)
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.settings.measure import MEASURE_DEFAULTS

Rows = NDArray[np.intp]
# Mean and standard deviation of some records without each, and with it: rows x draws.
Laws = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

FEWEST_RECORDS = 20
# Squares of what is larger overflow, and no log-odds or residual is.
MOST = 1e100
DRAWS = 200
FPRS = (1e-2, 1e-3)
# An advantage that nobody would act on; records whose interval lies above it are called exposed.
NEGLIGIBLE = 0.05
FALSE_CLAIMS = 0.05
# Of the largest log-odds: less than this is rounding.
NO_SPREAD = 1e-9
# Answers without any are given so much, in parts of how far apart they are with and without.
UNVARIED_SHARE = 1e-3
# Quantiles over the records that are matched; the tails are left out, where a few records decide.
LEVELS = np.linspace(0.02, 0.98, 49)
# A model whose answers hardly vary cannot be stretched to the others' spread.
LEAST_SCALE = 0.05
ROUNDING = 1e-12
# Two draws of a normal law are equal after rounding to a step of 0.7 standard deviations with this
# chance; where a record's answers are equal more often, what they have is no normal law.  The mean
# over all records counts as so many pairs of models.
MOST_EQUAL, EQUAL_BELIEF = 0.2, 20.0
# Models that give one answer to more of the other records than this have few answers to give.
MOST_SHARED = 0.05
# Answers of models on one side that are equal more often than this are single values, and where
# models with the record and without it agree less often than this part of what normal laws would
# have them, the value says who was trained on it.
LEAST_EQUAL, LEAST_SHARED_PART = 0.005, 0.5
# How a record's numbers are known: by its law; by a count, where its answers take few values or its
# count contradicts the law; or by a count that ends at one, where single values give it away.
LAW, COUNTED, TELLING = 0, 1, 2
# The count contradicts a law that its interval of so much leaves out, by more than is negligible.
COUNTED_ENDS = (0.025, 0.975)
# Models on each side of a record that can be counted, whose count may contradict its law, whose
# count is then the better number (it errs by 0.05 for a boosted tree, the law by 0.06), and of one
# that is confirmed.
LEAST_COUNTED, LEAST_HELD, LEAST_OWN, LEAST_SIDE = 2, 16, 64, 4
# A confirmed record's advantage is this near to the ends of its interval, and its TPR at 1% FPR
# within this factor of them where it has a law.
NEAR, FACTOR, TRUSTED_FPR = 0.1, 2.0, 0.01
# Answers look normal up to this distance times the root of the models on a side, which four of five
# normal samples keep to, and up to so many errors of skewness and kurtosis.  Without it 345 of 2233
# records of 12 recipes were confirmed and off by more than twice in TPR (machines with a corner,
# twins, rare categories, encoders); with it 1 of 484, and with 0.9 and 4 errors 4 of 730.
FURTHEST, MOST_SHAPE_ERRORS = 0.8, 3.0
# Records whose answers are looked at at once.
SHAPED_AT_ONCE = 2048
# The streams of draws of counted advantages, and of noise where there is none, beside those of
# blocks of records; no draw is one.
COUNTED_DRAWS, UNVARIED, MOST_DRAWN = 10**9, 10**9 + 2, 0.9999
# Each model's answers are compared with those of so many others.
MOST_COMPARED = 32
# Records differ in level, and models hardly do: rows whose levels vary so many times as widely as
# those of the columns are records.
TRANSPOSED = 2.0
# So many standard errors below zero a mean gain is none of chance; of models that learn nothing it
# lies within 2.3 of them, in 300 simulations.
INVERTED = 4.0
# The grid of `tabulated`.
DISTANCES, RATIOS = 321, 161
MOST_DISTANCE, MOST_LOG_RATIO = 40.0, 4.0


@dataclass(frozen=True)
class ModelEffects:
    """Each model's shift and scale: its log-odds are ``shift + scale * levelled``.

    Parameters
    ----------
    shift, scale : arrays of float, one number per model
    typical : array of float
        The quantiles over the records to which every model's were matched.
    """

    shift: FloatArray
    scale: FloatArray
    typical: FloatArray

    def level(self, log_odds: FloatArray) -> FloatArray:
        """The log-odds (models x records) without the models' effects."""
        return np.asarray((log_odds - self.shift[:, None]) / self.scale[:, None])


def model_effects(log_odds: FloatArray, typical: FloatArray | None = None) -> ModelEffects:
    """Shift and scale of every model, by matching its quantiles over the records to the mean ones.

    Parameters
    ----------
    log_odds : array of float, models x records
    typical : array of float, optional
        The quantiles to match, those of `ModelEffects.typical`: so that another model, such as the
        one under attack, is put on the level of the models that were measured.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.halves.estimate import model_effects
    >>> level = np.linspace(-3.0, 9.0, 50)
    >>> effects = model_effects(np.stack([level - 1.0, level + 1.0]))
    >>> effects.shift.round(3).tolist(), effects.scale.round(3).tolist()
    ([-1.0, 1.0], [1.0, 1.0])
    """
    quantiles = np.quantile(np.asarray(log_odds, dtype=np.float64), LEVELS, axis=1).T
    if typical is None:
        typical = np.asarray(quantiles.mean(axis=0))
    centred = typical - typical.mean()
    spread = float(centred @ centred)
    # Where nearly all records have one value, what is left of it is rounding.
    if spread > len(LEVELS) * (ROUNDING * float(np.abs(typical).max())) ** 2:
        scale = np.maximum(quantiles @ centred / spread, LEAST_SCALE)
    else:
        scale = np.ones(len(quantiles))
    shift = quantiles.mean(axis=1) - scale * typical.mean()
    return ModelEffects(shift=np.asarray(shift), scale=np.asarray(scale), typical=typical)


@dataclass(frozen=True)
class CredibleInterval:
    """A posterior mean of every record, with the ends of its interval."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class RecordDraws:
    """Draws of each record's two laws from their posterior: the same ones whenever asked for.

    ``rows`` are the records whose advantage is counted.
    """

    sums: RecordSums
    population: Population
    key: Key
    provenance: Provenance
    rows: Rows | None = None
    counted: Counted | None = None

    def of_counted(self) -> FloatArray:
        """(counted records, draws) of those whose advantage is counted."""
        assert self.counted is not None
        assert self.rows is not None
        rng = self.key.child(COUNTED_DRAWS).generator()
        levels = (np.arange(DRAWS) + rng.random((len(self.rows), 1))) / DRAWS
        return self.counted.quantiles(levels)

    def as_fitted(self, rows: Rows) -> Laws:
        """Mean and spread of some records without each and with it, of their laws: rows x draws."""
        laws = [np.empty((len(rows), DRAWS)) for _ in range(4)]
        for number, (block, where) in enumerate(blocks(self.sums)):
            here = np.flatnonzero((rows >= where.start) & (rows < where.stop))
            if here.size:
                parts = self.of_block(number, block)
                for whole, part in zip(laws, parts, strict=True):
                    whole[here] = part[rows[here] - where.start]
        u, s, m, r = laws
        return u, s, m, r

    def of_block(self, number: int, block: RecordSums) -> Laws:
        """The draws of one block of records."""
        return posterior_draws(nodes(block, self.population), self.key.child(number))

    def pairs(self, rows: Rows) -> LawPair:
        """The pairs of some records, records by draws."""
        u, s, m, r = self.as_fitted(rows)
        if self.counted is not None and self.rows is not None:
            asked = np.flatnonzero(np.isin(rows, self.rows))
            by_count = self.of_counted()[np.searchsorted(self.rows, rows[asked])]
            m[asked], r[asked] = u[asked] + s[asked] * distance_of(by_count), s[asked]
        return LawPair(Normal(m, r), Normal(u, s), self.provenance)


def distance_of(advantage: FloatArray) -> FloatArray:
    """How far apart two normals of standard deviation one are, whose advantage is this."""
    return np.asarray(2.0 * ndtri(0.5 + 0.5 * np.minimum(advantage, MOST_DRAWN)))


@dataclass(frozen=True)
class FewModels:
    """What models of halves show of every record, in the order of the records.

    Parameters
    ----------
    pair : LawPair
        The two normal laws of each record's levelled log-odds at the centre of its posterior.
    advantage : CredibleInterval
        Of the best test between the two laws: posterior mean and interval.
    tpr_at_fpr : dict of float to CredibleInterval
        TPR of that test at each FPR.
    effects : ModelEffects
        What was taken off each model; ``effects.typical`` levels other models the same way.
    certainty : array of float
        How many posterior standard deviations each record's shift lies above zero.
    models : int
    confidence : float
        Of the intervals.
    doubt : array of int
        How each record's numbers are known: 0 by its law, 1 by a count, 2 by a count where single
        values say who was trained on it.
    given_doubt : array of int
        The same before any law was fitted.
    narrow : array of bool
        Whether the advantage is within 0.1 of both ends of its interval.
    lawful : array of bool
        Whether the record has a law, as far as these models show, and its TPR at 1% FPR is within
        a factor of two of both ends of its interval.
    """

    pair: LawPair
    advantage: CredibleInterval
    tpr_at_fpr: dict[float, CredibleInterval]
    effects: ModelEffects
    certainty: FloatArray
    models: int
    confidence: float
    draws: RecordDraws
    doubt: NDArray[np.int8]
    given_doubt: NDArray[np.int8]
    narrow: NDArray[np.bool_]
    lawful: NDArray[np.bool_]

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.advantage.value)

    @property
    def noise_seen(self) -> bool:
        """Whether there are two models on one side of a record, so that they can differ."""
        return all(entry.holds is not False for entry in self.pair.provenance.assumptions)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """The records whose numbers are confirmed: narrow intervals, and laws that look normal."""
        enough = self.draws.sums.fewest >= LEAST_SIDE
        return np.asarray(enough & self.narrow & self.lawful)

    @property
    def exposed(self) -> NDArray[np.bool_]:
        """The records that are surely exposed, allowing for how many there are.

        Their whole interval lies above a negligible advantage (0.05), and the chance that even one
        record is named whose log-odds training on it does not raise is at most one in twenty.
        """
        sure = self.certainty > ndtri(1.0 - FALSE_CLAIMS / self.records)
        return np.asarray(sure & (self.advantage.low > NEGLIGIBLE))


def few_models(
    log_odds: FloatArray,
    trained_on: NDArray[np.bool_],
    *,
    fpr: Sequence[float] = FPRS,
    confidence: float = MEASURE_DEFAULTS.confidence,
    level_models: bool = True,
    random_state: int | Key | None = 0,
    doubt: NDArray[np.int8] | None = None,
    refuse_mistakes: bool = True,
) -> FewModels:
    """The exposure of every record, from the answers of a few models of one kind.

    Parameters
    ----------
    log_odds : array of float, models x records
        log p - log(1 - p), where p is a model's probability for the record's own label.
    trained_on : array of bool, models x records
        Whether the model was trained on the record.  Every record must be in at least one model
        and out of at least one; complementary halves do best.
    fpr : sequence of float
        False-positive rates for the TPRs.
    confidence : float
        Of the intervals.
    level_models : bool
        Whether each model's own level and scale are taken off first; an attacker who sees the
        model's answers for other records can.
    random_state : int or Key, optional
        For the draws from the posterior.
    doubt : array of int, optional
        How each record's numbers are to be known, from `answer_doubts`; where left out, that of
        the log-odds.
    refuse_mistakes : bool
        Whether numbers that all lie between 0 and 1 are taken for probabilities, and refused, and
        so is what looks like another mistake; answers of models that leakscope trained need it not.

    Raises
    ------
    InputError
        For shapes that differ, a mask that is not boolean, one model, fewer than 20 records, a
        record that every model saw or none did, log-odds that are not finite, probabilities, two
        models with one training set, arrays of records x models, and models that are surely less
        sure of the records that they were trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.halves import few_models
    >>> rng = np.random.default_rng(0)
    >>> trained_on = np.repeat(rng.random((2, 400)) < 0.5, 2, axis=0)
    >>> trained_on[1::2] = ~trained_on[1::2]
    >>> level = rng.normal(3.0, 2.0, 400)
    >>> found = few_models(level + 2.0 * trained_on + rng.normal(size=(4, 400)), trained_on)
    >>> found.advantage.value.shape
    (400,)
    """
    scores, mask = _checked(log_odds, trained_on)
    if refuse_mistakes:
        require_models(scores, mask)
    levels = tuple(float(level) for level in fpr)
    if not all(0.0 < level < 1.0 for level in (*levels, confidence)):
        raise InputError("False-positive rates and the confidence must lie between 0 and 1.")
    key = as_key(random_state)
    effects = model_effects(scores)
    levelled = effects.level(scores) if level_models else scores
    sums = record_sums(levelled, mask)
    if refuse_mistakes:
        _require_gains(sums)
    doubt = answer_doubts(scores, mask) if doubt is None else doubt
    given_doubt = np.asarray(doubt, dtype=np.int8)
    noise = _unvaried_noise(scores, sums, key)
    if noise is not None:
        # Whoever was trained on is told by the answer itself, and counted; laws want some spread.
        levelled = levelled + noise
        sums, doubt = record_sums(levelled, mask), np.maximum(given_doubt, COUNTED)
    draws = RecordDraws(sums, fit_population(sums), key, _provenance(mask, level_models))
    asked = (*levels, TRUSTED_FPR)
    kept = []
    for number, (block, _) in enumerate(blocks(sums)):
        u, s, m, r = draws.of_block(number, block)
        shift = m - u
        certainty = shift.mean(1) / np.maximum(shift.std(1), 1e-300)
        # The noise is known from so many numbers only: a Student law's quantile as a normal's.
        known = sums.directions * max(float(block.n_out.mean() + block.n_in.mean()) - 2.0, 1.0) / 2
        certainty = -ndtri(np.maximum(stdtr(known, -certainty), 1e-300))
        unsure = (shift <= 0.0).mean(axis=1) > 0.5 * (1.0 - confidence)
        parts = [u.mean(1), np.log(s).mean(1), m.mean(1), np.log(r).mean(1), certainty]
        parts += _interval(tabulated(shift, s, r), confidence, unsure, 0.0)
        for level in asked:
            parts += _interval(tabulated(shift, s, r, level), confidence, unsure, level)
        kept.append(parts)
    columns = [np.concatenate(parts) for parts in zip(*kept, strict=True)]
    u, log_s, m, log_r, certainty = columns[:5]
    intervals = [CredibleInterval(*columns[at : at + 3]) for at in range(5, len(columns), 3)]
    by_count = counted((scores, levelled) if level_models else (scores,), mask)
    contradicted, fewest = _contradicted(intervals[0].value, sums, by_count), sums.fewest
    doubt = np.maximum(doubt, np.where(contradicted & (fewest >= LEAST_OWN), COUNTED, LAW))
    # One model on a side leaves nothing to count.
    doubt = np.where(fewest < LEAST_COUNTED, LAW, doubt).astype(np.int8)
    rows = np.flatnonzero(contradicted | (doubt >= COUNTED))
    if rows.size:
        drawn = replace(draws, rows=rows, counted=by_count.take(rows)).of_counted()
        for interval, level in zip(intervals, (0.0, *asked), strict=True):
            _count_into(interval, rows, drawn, confidence, doubt[rows], level)
        alone = doubt[rows] >= COUNTED
        rows, drawn = rows[alone], drawn[alone]
        draws = replace(draws, rows=rows, counted=by_count.take(rows))
        certainty[rows] = by_count.certainty[rows]
        m[rows] = u[rows] + np.exp(log_s[rows]) * distance_of(drawn.mean(axis=1))
        log_r[rows] = log_s[rows]
    advantage, tpr = intervals[0], intervals[-1]
    close = (tpr.high <= FACTOR * tpr.value) & (tpr.low * FACTOR >= tpr.value)
    half = np.maximum(advantage.high - advantage.value, advantage.value - advantage.low)
    # As the attacker sees them too, with the models' own levels in them.
    shaped = np.logical_and.reduce(
        [looks_normal(seen, side) for seen in (scores, levelled) for side in (mask, ~mask)]
    )
    return FewModels(
        pair=LawPair(Normal(m, np.exp(log_r)), Normal(u, np.exp(log_s)), draws.provenance),
        advantage=advantage,
        tpr_at_fpr=dict(zip(levels, intervals[1:-1], strict=True)),
        effects=effects,
        certainty=certainty,
        models=len(scores),
        confidence=confidence,
        draws=draws,
        doubt=doubt,
        given_doubt=given_doubt,
        narrow=np.asarray(half <= NEAR),
        lawful=close & (doubt == LAW) & shaped,
    )


def looks_normal(scores: FloatArray, side: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(U,) whether the scores (K, U) over the models of one side show no other law than a normal.

    By Lilliefors' distance, the skewness and the kurtosis; the bounds stand at `FURTHEST`.
    """
    shaped = np.empty(scores.shape[1], dtype=np.bool_)
    for start in range(0, len(shaped), SHAPED_AT_ONCE):
        part = slice(start, start + SHAPED_AT_ONCE)
        inside = side[:, part]
        count, mean, squares = means_and_squares(scores[:, part], inside)
        spread = np.sqrt(np.maximum(squares / np.maximum(count, 1.0), np.finfo(np.float64).tiny))
        away = np.where(inside, (scores[:, part] - mean) / spread, 0.0)
        skewness = np.abs((away**3).sum(axis=0)) / np.sqrt(6.0 * np.maximum(count, 1.0))
        kurtosis = np.abs((away**4).sum(axis=0) - 3.0 * count) / np.sqrt(
            24.0 * np.maximum(count, 1.0)
        )
        # Infinite is who is not on this side.
        ranked = np.sort(np.where(inside, away, np.inf), axis=0)
        rank, normal = np.arange(1, len(ranked) + 1)[:, None], ndtr(ranked)
        gap = np.maximum(rank / count - normal, normal - (rank - 1) / count)
        furthest = np.where(rank <= count, gap, 0.0).max(axis=0)
        shaped[part] = (
            (furthest <= FURTHEST / np.sqrt(count))
            & (skewness <= MOST_SHAPE_ERRORS)
            & (kurtosis <= MOST_SHAPE_ERRORS)
        )
    return shaped


def _unvaried_noise(scores: FloatArray, sums: RecordSums, key: Key) -> FloatArray | None:
    """A little noise for answers that do not vary on either side; None where they do."""
    least = NO_SPREAD * float(np.abs(scores).max())
    varying = float(sums.squares_out.sum() + sums.squares_in.sum())
    # Two models have one answer of each kind for a record, and nothing to vary.
    if len(scores) == 2 or varying > scores.size * least**2:
        return None
    apart = float(np.abs(sums.mean_in - sums.mean_out).max())
    if apart <= least:
        raise InputError(
            "The models' log-odds differ by a constant at most, so nothing varies from one "
            "training to the next and no law can be estimated; give models trained with "
            "different seeds or records."
        )
    return UNVARIED_SHARE * apart * key.child(UNVARIED).generator().normal(size=scores.shape)


def _contradicted(by_law: FloatArray, sums: RecordSums, by_count: Counted) -> NDArray[np.bool_]:
    """The records whose count leaves out what their law says, by more than is negligible."""
    low, high = by_count.quantiles(np.array(COUNTED_ENDS)).T
    outside = ((by_law < low) | (by_law > high)) & (np.abs(by_law - by_count.mean) > NEGLIGIBLE)
    return np.asarray(outside & (sums.fewest >= LEAST_HELD))


def _count_into(
    interval: CredibleInterval,
    rows: NDArray[np.intp],
    drawn: FloatArray,
    confidence: float,
    doubt: NDArray[np.int8],
    level: float,
) -> None:
    """The interval of counted records: of their advantage, or with ``level`` of the TPR there.

    Their law is not known, so that the TPR lies between the level and what any law of that
    advantage allows, the level and the advantage.  Single values that give a record away show
    only with so many models that every one was seen: its interval ends at one.  A record whose
    count contradicts its law keeps its numbers, and its interval takes in both.
    """
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=1)
    value, low = drawn, np.where(low < NEGLIGIBLE, 0.0, low)
    if level > 0.0:
        ones = np.ones_like(drawn)
        value = tabulated(distance_of(drawn), ones, ones, level)
        low, high = np.full(len(rows), level), np.minimum(high + level, 1.0)
    both = doubt == LAW
    interval.value[rows] = np.where(both, interval.value[rows], value.mean(axis=1))
    interval.low[rows] = np.where(both, np.minimum(interval.low[rows], low), low)
    high = np.where(both, np.maximum(interval.high[rows], high), high)
    interval.high[rows] = np.where(doubt == TELLING, 1.0, high)


def answer_doubts(
    answers: FloatArray, trained_on: NDArray[np.bool_], alike: NDArray[np.intp] | None = None
) -> NDArray[np.int8]:
    """How each record's numbers can be known by its answers: 0 a law, 1 a count, 2 values tell.

    Votes of few trees, leaves, neighbours and labels repeat (1): a record gets the same answer from
    model after model, or many records get one answer from the same model.  Where most records' do,
    all are named: what records have in common was then fitted to such answers.  Answers of three
    neighbours are means of three targets, thousands of different ones (2): a model that was trained
    on the record and one that was not never give the same, and models on one side do.

    Parameters
    ----------
    answers : array of float, models x records
        Scores, or what the models predict.
    trained_on : array of bool, models x records
    alike : array of int, optional
        A number for each record, the same for records with the same features: they get the same
        answer from any model.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.halves.estimate import answer_doubts
    >>> rng = np.random.default_rng(0)
    >>> inside = np.tile(np.arange(100) % 2 == np.arange(2)[:, None], (4, 1))
    >>> votes = rng.binomial(5, 0.9, (8, 100)) / 5.0
    >>> [int(answer_doubts(each, inside).max()) for each in (votes, rng.normal(size=(8, 100)))]
    [1, 0]
    """
    step = max(ONE_ANSWER * float(np.ptp(answers)), 1e-300)
    rounded = np.round((answers - answers.min()) / step)
    doubt = np.where(_repeating(rounded, trained_on, alike), COUNTED, LAW).astype(np.int8)
    same, across = np.zeros(2), np.zeros(2)
    n_in, mean_in, squares_in = means_and_squares(answers, trained_on)
    n_out, mean_out, squares_out = means_and_squares(answers, ~trained_on)
    variance = (squares_in + squares_out) / np.maximum(n_in + n_out - 2.0, 1.0)
    # Two normals of one spread agree less often than one with itself, by this factor.
    overlap = np.exp(-0.25 * (mean_in - mean_out) ** 2 / np.maximum(variance, step**2))
    for number in range(1, len(rounded)):
        some = slice(max(number - MOST_COMPARED, 0), number)
        equal = rounded[some] == rounded[number]
        side = trained_on[some] == trained_on[number]
        same += np.count_nonzero(equal & side), np.count_nonzero(side)
        across += np.count_nonzero(equal & ~side), (~side * overlap).sum()
    often, shared = same[0] / max(same[1], 1.0), across[0] / max(across[1], 1.0)
    if often > LEAST_EQUAL and shared < LEAST_SHARED_PART * often:
        doubt[:] = TELLING
    return doubt


def _repeating(
    rounded: FloatArray, trained_on: NDArray[np.bool_], alike: NDArray[np.intp] | None
) -> NDArray[np.bool_]:
    """The records whose answers take few values."""
    equal, pairs = np.zeros(rounded.shape[1]), np.zeros(rounded.shape[1])
    for side in (trained_on, ~trained_on):
        count = side.sum(axis=0)
        pairs += count * (count - 1) / 2
        ordered = np.sort(np.where(side, rounded, np.nan), axis=0)
        run = np.zeros(rounded.shape[1])
        # A run of c equal answers is c (c - 1) / 2 equal pairs: 1 + 2 + ... + (c - 1).
        for before, after in pairwise(ordered):
            run = np.where(before == after, run + 1.0, 0.0)
            equal += run
    usual = float(equal.sum() / max(float(pairs.sum()), 1.0))
    often = (equal + EQUAL_BELIEF * usual) / (pairs + EQUAL_BELIEF) > MOST_EQUAL
    kinds = np.arange(rounded.shape[1]) if alike is None else np.asarray(alike)
    others = max(len(np.unique(kinds)) - 1, 1)
    shared = np.zeros(rounded.shape[1])
    for answers in rounded:
        values = np.unique(answers, return_inverse=True)[1].reshape(-1)
        known = np.unique(np.stack([values, kinds]), axis=1)[0]
        shared += (np.bincount(known)[values] - 1) / others
    few = np.asarray(often | (shared / len(rounded) > MOST_SHARED))
    return np.ones_like(few) if few.mean() > 0.5 else few


def posterior_draws(posterior: Nodes, key: Key) -> Laws:
    """Draws of each record's mean and standard deviation, without it and with it."""
    rng, draws = key.generator(), DRAWS
    count = len(posterior.u)
    cumulated = posterior.probability.reshape(count, -1).cumsum(axis=1)
    at = (np.arange(draws) + rng.random((count, 1))) / draws * cumulated[:, -1:]
    chosen = np.stack([np.searchsorted(c, a) for c, a in zip(cumulated, at, strict=True)])
    chosen = np.minimum(chosen, cumulated.shape[1] - 1)
    s, u, r, c = np.unravel_index(chosen, posterior.probability.shape[1:])
    row = np.arange(count)[:, None]

    def between() -> FloatArray:
        return rng.random((count, draws)) - 0.5

    # Between two nodes of s or u, r and m move along: the shift stays the node's.
    along_s = posterior.s_step[:, None] * between()
    along_u = posterior.u_step[row, s] * between()
    log_s = posterior.log_s[row, s] + along_s
    log_r = posterior.log_r[row, s, u, r] + along_s + posterior.r_step[row, s, u] * between()
    level = posterior.u[row, s, u] + along_u
    noise = rng.standard_normal((count, draws))
    mean = posterior.m[row, s, u, r, c] + along_u
    mean += np.sqrt(posterior.m_variance[row, s, u, r, c]) * noise
    return level, np.exp(log_s), mean, np.exp(log_r)


def _interval(
    draws: FloatArray, confidence: float, unsure: NDArray[np.bool_], nothing: float
) -> list[FloatArray]:
    """Mean and interval; it starts at nothing where it is not sure that the record raises scores.

    Two laws that are nearly known are never drawn exactly equal, so that the draws alone would
    leave no room for a record that changes nothing.
    """
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=1)
    low = np.where(unsure, np.minimum(low, nothing), low)
    # All are fractions, but means and quantiles of ones may be 1 + 2e-16.
    return [np.minimum(end, 1.0) for end in (draws.mean(axis=1), low, high)]


def require_units(count: int, unit: str) -> None:
    """Refuse so few records, or groups, that how scores vary over them cannot be learnt."""
    if count < FEWEST_RECORDS:
        raise InputError(
            f"a few models need at least {FEWEST_RECORDS} {unit}s to learn how scores vary, but "
            f"there {'is' if count == 1 else 'are'} {count}."
        )


def _checked(
    log_odds: FloatArray, trained_on: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Log-odds as float64 and the mask, both (models, records), with nothing wrong in them."""
    scores, mask = np.asarray(log_odds), np.asarray(trained_on)
    if scores.ndim != 2 or scores.dtype.kind not in "fiu" or mask.shape != scores.shape:
        raise InputError(
            "log_odds must be a table of numbers and trained_on one of the same shape, one row per "
            f"model and one column per record, but their shapes are {scores.shape} and "
            f"{mask.shape} and log_odds is of type {scores.dtype}."
        )
    if mask.dtype != np.bool_:
        raise InputError(
            f"trained_on must be of type bool, but it is {mask.dtype}: save it with "
            "trained_on.astype(bool)."
        )
    if len(scores) < 2:
        raise InputError(
            "One model cannot show what a record changes: two or more are needed, each record in "
            "the training set of one and not in that of another."
        )
    require_units(scores.shape[1], "record")
    require_memory(
        scores.size * 8 * 6,
        f"the log-odds of {scores.shape[0]:,} models and {scores.shape[1]:,} records",
        "give fewer models, or the records in parts",
    )
    scores = scores.astype(np.float64)
    bad = ~(np.abs(scores) <= MOST)
    if bad.any():
        model, record = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise InputError(
            f"log_odds must be at most {MOST:g}, but that of model {model} for record {record} is "
            f"{scores[model, record]} (counting from 0): keep probabilities away from 0 and 1 "
            "before taking log p - log(1 - p)."
        )
    seen = mask.sum(axis=0)
    one_sided = (seen == len(mask)) | (seen == 0)
    if one_sided.any():
        raise InputError(
            f"Every model or no model was trained on record {int(np.argmax(one_sided))} (counting "
            "from 0): each must be in the training set of at least one model and out of that of at "
            "least one."
        )
    return scores, mask


def require_models(log_odds: FloatArray, trained_on: NDArray[np.bool_]) -> None:
    """Refuse probabilities, one model given twice, and arrays of records x models.

    Parameters
    ----------
    log_odds, trained_on : arrays, models x records
        As `few_models` takes them, of shapes and types that are right.
    """
    if log_odds.min() >= 0.0 and log_odds.max() <= 1.0:
        raise InputError(
            "Every value of log_odds lies between 0 and 1, as probabilities do: give "
            "log p - log(1 - p), where p is the probability of the record's own label."
        )
    of_models, of_records = log_odds.mean(axis=1), log_odds.mean(axis=0)
    rest = log_odds - of_models[:, None] - of_records + log_odds.mean()
    # What the models' means have beyond the noise of a mean.
    levels = float(of_models.var() - rest.var() / log_odds.shape[1])
    if levels > TRANSPOSED**2 * float(of_records.var()):
        raise InputError(
            f"The rows of log_odds differ in level more than {TRANSPOSED:g} times as much as its "
            f"columns, as records do and models do not: it looks like records x models, and its "
            f"shape {log_odds.shape} must be models x records; transpose both arrays, or take each "
            "model's own mean off."
        )
    _, first, which = np.unique(trained_on, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which.reshape(-1)] != np.arange(len(trained_on)))
    if again.size:
        raise InputError(
            f"Models {int(first[which.reshape(-1)[again[0]]])} and {int(again[0])} (counting from "
            "0) were trained on the same records, and are no independent witnesses; give one model "
            "for each half."
        )


def _require_gains(sums: RecordSums) -> None:
    """Refuse models that are surely less sure of the records that they were trained on."""
    gains = sums.mean_in - sums.mean_out
    witnesses = min(sums.directions, len(gains))
    if float(gains.mean()) * np.sqrt(witnesses) < -INVERTED * float(gains.std()):
        raise InputError(
            "Records have lower log-odds in the models that were trained on them than in the "
            "others: trained_on must be true where the model saw the record, and log_odds must be "
            "higher the surer a model is of the record's own label (not a loss)."
        )


def _provenance(mask: NDArray[np.bool_], level_models: bool) -> Provenance:
    fewest = int(min(mask.sum(axis=0).min(), (~mask).sum(axis=0).min()))
    many = mask.sum(axis=0).max() > 1 and (~mask).sum(axis=0).max() > 1
    assumptions = [
        Assumption("the models differ in nothing but their training sets and seeds"),
        Assumption("each record's log-odds are normal over models"),
        Assumption(
            "the noise of the models can be seen",
            holds=bool(many),
            evidence=f"at least {fewest} models on each side of every record"
            + ("" if many else "; its share of the variance is taken from other data"),
        ),
    ]
    if level_models:
        assumptions.append(
            Assumption("the attacker knows how confident the model is on other records")
        )
    return Provenance(
        question="leave_one_out",
        adjacency="removed",
        observes="scores",
        random=("data", "training"),
        attacker_knows_label=True,
        method="empirical",
        source=f"{len(mask)} models, pooled over {mask.shape[1]:,} records (docs/few_models.md)",
        assumptions=tuple(assumptions),
    )


@lru_cache(maxsize=8)
def _table(fpr: float | None) -> RectBivariateSpline:
    place = np.linspace(0.0, np.arcsinh(MOST_DISTANCE), DISTANCES)
    log_ratio = np.linspace(-MOST_LOG_RATIO, MOST_LOG_RATIO, RATIOS)
    distance, ratio = np.meshgrid(np.sinh(place), np.exp(log_ratio), indexing="ij")
    pair = LawPair(Normal(distance, ratio), Normal(0.0, 1.0))
    values = measures.advantage(pair) if fpr is None else measures.tpr_at_fpr(pair, fpr)
    return RectBivariateSpline(place, log_ratio, np.asarray(values), kx=1, ky=1)


def tabulated(
    shift: FloatArray, sigma_out: FloatArray, sigma_in: FloatArray, fpr: float | None = None
) -> FloatArray:
    """The advantage, or with ``fpr`` the TPR there, of normals with these shifts and spreads.

    Posterior draws are millions of pairs, told apart by two numbers: the distance of the means in
    units of the nonmember's standard deviation, and the ratio of the standard deviations.
    `leakscope.measures` fills a grid of both, which is interpolated.
    """
    place = np.arcsinh(np.minimum(np.abs(shift) / sigma_out, MOST_DISTANCE))
    log_ratio = np.clip(np.log(sigma_in / sigma_out), -MOST_LOG_RATIO, MOST_LOG_RATIO)
    return np.asarray(_table(fpr)(place, log_ratio, grid=False))
