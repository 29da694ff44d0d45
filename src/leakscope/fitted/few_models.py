"""Every record's two laws from a few models: 2 to 16 where attacks train 64 to 256.

A model that is more confident everywhere moves all records alike.  Every model answers for the same
records, and was trained on a share of them that was drawn at random.  So the log-odds of all
records have, up to chance, one distribution for every model.  Where one model's is shifted or
stretched, this is the model's own doing and says nothing of any single record; an attacker, who
sees the model's answers for other records, takes it off too (`model_effects`).

Then what the models say of each record is summed up, the population of records is fitted, and each
record's own numbers are weighed against what records like it show (`record_population.py`).  The
result is a posterior: draws of both laws of every record, from which `leakscope.measures` gives
advantages and TPRs with intervals.  How much all laws together promise is held against what can be
counted, and shifts are stretched to that level (`counted_level.py`).

Where answers have no normal law (`answer_doubts`), or the laws say more than can be counted, the
advantage is counted instead (`counted_models.py`).  Its draws are then pairs of normals with one
spread and the advantage that was drawn: they stand for the advantage, not for the law.
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
from leakscope.fitted.counted_level import Laws, Level, Rows, level_of, rows_for_level
from leakscope.fitted.counted_models import ONE_ANSWER, Counted, counted
from leakscope.fitted.record_population import (
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

FEWEST_RECORDS = 20
# Squares of what is larger overflow, and no log-odds or residual is.
MOST = 1e100
DRAWS, DRAWS_FOR_LEVEL = 200, 20
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
# What stands against a record's answers: nothing; that they are not quite normal, so that its
# interval takes in what is counted too; that they take few values or their laws say more than can
# be counted, so that its advantage is what is counted; and that single values give it away.
SOUND, BENT, COUNTED, TELLING = 0, 1, 2, 3
# Laws that say more than this many times what is counted are wrong, where that is more than three
# errors and more than the difference that matters.
OVERSTATED, ERRORS = 1.5, 3.0
# Where the count's interval leaves out what the law says, the law is wrong; with so many models on
# each side the count is then the better number (it errs by 0.05 for a boosted tree, the law 0.06).
COUNTED_ENDS, LEAST_OWN = (0.025, 0.975), 64
# A record with at least so many models on a side is held against the normal law there, and against
# the count; further off than this over the root of their number are one in a hundred normal samples
# (Lilliefors).
LEAST_HELD, FURTHEST = 16, 1.031
# Models on each side of a trusted record, and of one that can be counted.
LEAST_SIDE, LEAST_COUNTED = 4, 2
# A trusted record's advantage is this near to the ends of its interval, and its TPR at 1% FPR
# within this factor of them.
NEAR, FACTOR, TRUSTED_FPR = 0.1, 2.0, 0.01
# The streams of draws of counted advantages, and of levels, beside those of blocks of records; no
# draw is one.
COUNTED_DRAWS, LEVEL_DRAWS, UNVARIED, MOST_DRAWN = 10**9, 10**9 + 1, 10**9 + 2, 0.9999
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

    Returns
    -------
    ModelEffects

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted.few_models import model_effects
    >>> one = np.linspace(-3.0, 9.0, 50)
    >>> found = model_effects(np.stack([one - 1.0, one + 1.0]))
    >>> found.shift.round(3).tolist(), found.scale.round(3).tolist()
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

    def at(self, record: int) -> tuple[float, float]:
        """The interval of one record."""
        return float(self.low[record]), float(self.high[record])


@dataclass(frozen=True, eq=False)
class RecordDraws:
    """Draws of each record's two laws from their posterior: the same ones whenever asked for."""

    sums: RecordSums
    population: Population
    key: Key
    provenance: Provenance
    level: Level | None = None
    rows: Rows | None = None
    counted: Counted | None = None

    def of_counted(self) -> FloatArray:
        """(counted records, draws) of those whose advantage is counted."""
        assert self.counted is not None
        assert self.rows is not None
        rng = self.key.child(COUNTED_DRAWS).generator()
        levels = (np.arange(DRAWS) + rng.random((len(self.rows), 1))) / DRAWS
        return self.counted.quantiles(levels)

    def as_fitted(self, rows: Rows, rng: np.random.Generator | None = None) -> Laws:
        """Mean and spread of some records without each and with it, of their laws: rows x draws.

        With ``rng`` a few draws of each, by chance.
        """
        draws = DRAWS if rng is None else DRAWS_FOR_LEVEL
        found = [np.empty((len(rows), draws)) for _ in range(4)]
        for number, (block, where) in enumerate(blocks(self.sums)):
            here = np.flatnonzero((rows >= where.start) & (rows < where.stop))
            if not here.size:
                continue
            parts = [part[rows[here] - where.start] for part in self.of_block(number, block)]
            if rng is not None:
                some = rng.integers(DRAWS, size=(len(here), draws))
                parts = [np.take_along_axis(part, some, axis=1) for part in parts]
            for whole, part in zip(found, parts, strict=True):
                whole[here] = part
        u, s, m, r = found
        return u, s, m, r

    def of_block(self, number: int, block: RecordSums) -> Laws:
        """The draws of one block of records."""
        return posterior_draws(nodes(block, self.population), self.key.child(number))

    def at_level(self, laws: Laws, rows: Rows | slice) -> Laws:
        """The same where all shifts are as long as the counts of all records have them."""
        if self.level is None:
            return laws
        u, s, m, r = laws
        stretch = self.level.of(rows)
        return u, s, u + stretch * (m - u), s * (r / s) ** stretch

    def pairs(self, rows: Rows) -> LawPair:
        """The pairs of some records, records by draws."""
        u, s, m, r = self.at_level(self.as_fitted(rows), rows)
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
    """What a few models show of every record, in the order of the records.

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
        What stands against each record's answers, as `answer_doubts` has it, or against its law.
    given_doubt : array of int
        What stood against them before any law was fitted.
    narrow : array of bool
        Whether its intervals leave little open: the advantage is within 0.1 of both ends of its
        own, and the TPR at 1% FPR within a factor of two.
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
        """The records whose very numbers can be relied on, beside their intervals.

        There are four models or more on each side, nothing stands against the answers, and the
        intervals are narrow.
        """
        sums = self.draws.sums
        enough = np.minimum(sums.n_in, sums.n_out) >= LEAST_SIDE
        return np.asarray(enough & self.narrow & (self.doubt == SOUND))

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
        What stands against each record's answers, from `answer_doubts`; where left out, that of
        the log-odds.  The advantage of a doubted record is counted.
    refuse_mistakes : bool
        Whether numbers that all lie between 0 and 1 are taken for probabilities, and refused, and
        so is what looks like another mistake; answers of models that leakscope trained need it not.

    Returns
    -------
    FewModels

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
    >>> from leakscope.fitted import few_models
    >>> rng = np.random.default_rng(0)
    >>> trained_on = np.repeat(rng.random((2, 400)) < 0.5, 2, axis=0)
    >>> trained_on[1::2] = ~trained_on[1::2]
    >>> level = rng.normal(3.0, 2.0, 400)
    >>> found = few_models(level + 2.0 * trained_on + rng.normal(size=(4, 400)), trained_on)
    >>> found.advantage.value.shape
    (400,)
    """
    scores, mask = _checked(log_odds, trained_on)
    if refuse_mistakes and scores.min() >= 0.0 and scores.max() <= 1.0:
        raise InputError(
            "Every value of log_odds lies between 0 and 1, as probabilities do: give "
            "log p - log(1 - p), where p is the probability of the record's own label."
        )
    if refuse_mistakes:
        require_models(scores, mask)
    levels = _levels(fpr)
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence must lie between 0 and 1, but it is {confidence}.")
    effects = model_effects(scores)
    levelled = effects.level(scores) if level_models else scores
    sums = record_sums(levelled, mask)
    if refuse_mistakes:
        _require_gains(sums)
    varying = float(sums.squares_out.sum() + sums.squares_in.sum())
    least = NO_SPREAD * float(np.abs(scores).max())
    # Two models have one answer of each kind for a record, and nothing to vary.
    unvaried = len(scores) > 2 and varying <= scores.size * least**2
    if unvaried:
        apart = float(np.abs(sums.mean_in - sums.mean_out).max())
        if apart <= least:
            raise InputError(
                "The models' log-odds differ by a constant at most, so nothing varies from one "
                "training to the next and no law can be estimated; give models trained with "
                "different seeds or records."
            )
        # Whoever was trained on is told by the answer itself, and counted; laws want some spread.
        noise = as_key(random_state).child(UNVARIED).generator().normal(size=levelled.shape)
        levelled = levelled + UNVARIED_SHARE * apart * noise
        sums = record_sums(levelled, mask)
    population = fit_population(sums)
    provenance = _provenance(mask, level_models)
    key = as_key(random_state)
    draws = RecordDraws(sums, population, key, provenance)
    if doubt is None:
        doubt = answer_doubts(scores, mask)
    given_doubt = np.asarray(doubt, dtype=np.int8)
    if unvaried:
        doubt = np.maximum(doubt, COUNTED)
    bent = not_normal(levelled, mask) | not_normal(levelled, ~mask)
    draws = replace(draws, level=_counted_level(levelled, mask, draws, doubt < COUNTED, bent))
    kept: list[list[FloatArray]] = []
    by_law: list[FloatArray] = []
    asked = (*levels, TRUSTED_FPR)
    for number, (block, where) in enumerate(blocks(sums)):
        laws = draws.of_block(number, block)
        shift = laws[2] - laws[0]
        by_law.append(tabulated(shift, laws[1], laws[3]).mean(axis=1))
        certainty = shift.mean(1) / np.maximum(shift.std(1), 1e-300)
        # The noise is known from so many numbers only: a Student law's quantile as a normal's.
        known = sums.directions * max(float(block.n_out.mean() + block.n_in.mean()) - 2.0, 1.0) / 2
        certainty = -ndtri(np.maximum(stdtr(known, -certainty), 1e-300))
        unsure = (shift <= 0.0).mean(axis=1) > 0.5 * (1.0 - confidence)
        u, s, m, r = draws.at_level(laws, where)
        shift = m - u
        centre = [u.mean(1), np.log(s).mean(1), m.mean(1), np.log(r).mean(1), certainty]
        parts = _interval(tabulated(shift, s, r), confidence, unsure, 0.0)
        for level in asked:
            parts += _interval(tabulated(shift, s, r, level), confidence, unsure, level)
        kept.append(centre + parts)
    columns = [np.concatenate(parts) for parts in zip(*kept, strict=True)]
    u, log_s, m, log_r, certainty = columns[:5]
    found = [CredibleInterval(*columns[at : at + 3]) for at in range(5, len(columns), 3)]
    forms = (scores, levelled) if level_models else (scores,)
    by_count = counted(forms, mask)
    doubt = _doubted(doubt, bent, np.concatenate(by_law), found[0].value, sums, by_count)
    rows = np.flatnonzero(doubt != SOUND)
    if rows.size:
        by_count = by_count.take(rows)
        whole = replace(draws, rows=rows, counted=by_count).of_counted()
        for each, level in zip(found, (0.0, *asked), strict=True):
            _count_into(each, rows, whole, confidence, doubt[rows], level)
        alone = doubt[rows] >= COUNTED
        rows, by_count, drawn = rows[alone], by_count.take(alone), whole[alone]
        certainty[rows] = by_count.certainty
        m[rows] = u[rows] + np.exp(log_s[rows]) * distance_of(drawn.mean(axis=1))
        log_r[rows] = log_s[rows]
        draws = replace(draws, rows=rows, counted=by_count)
    return FewModels(
        pair=LawPair(
            member=Normal(m, np.exp(log_r)),
            nonmember=Normal(u, np.exp(log_s)),
            provenance=provenance,
        ),
        advantage=found[0],
        tpr_at_fpr=dict(zip(levels, found[1:-1], strict=True)),
        effects=effects,
        certainty=certainty,
        models=len(scores),
        confidence=confidence,
        draws=draws,
        doubt=doubt,
        given_doubt=given_doubt,
        narrow=_narrow(found[0], found[-1]),
    )


def _narrow(advantage: CredibleInterval, tpr: CredibleInterval) -> NDArray[np.bool_]:
    near = np.maximum(advantage.high - advantage.value, advantage.value - advantage.low) <= NEAR
    return np.asarray(
        near & (tpr.high <= FACTOR * tpr.value) & (tpr.low * FACTOR >= tpr.value), dtype=np.bool_
    )


def _counted_level(
    levelled: FloatArray,
    mask: NDArray[np.bool_],
    draws: RecordDraws,
    of_law: NDArray[np.bool_],
    bent: NDArray[np.bool_],
) -> Level | None:
    """The level of records with normal laws, and one of its own for those that are bent.

    None where one model on a side leaves nothing to count.
    """
    sums = draws.sums
    of_law = of_law & (np.minimum(sums.n_in, sums.n_out) >= LEAST_COUNTED)
    if not of_law.any():
        return None
    rng = draws.key.child(LEVEL_DRAWS).generator()
    found = []
    for own in (of_law & ~bent, of_law & bent):
        level = Level(np.zeros(sums.records), np.ones((1, DRAWS)))
        if own.sum() >= FEWEST_RECORDS:
            rows = rows_for_level(levelled, own)
            laws = draws.as_fitted(rows, rng)
            level = level_of(levelled, mask, rows, laws, tabulated, sums.directions, rng, DRAWS)
        found.append(level)
    return found[0].beside(found[1], bent)


def _doubted(
    given: NDArray[np.int8],
    bent: NDArray[np.bool_],
    by_law: FloatArray,
    said: FloatArray,
    sums: RecordSums,
    by_count: Counted,
) -> NDArray[np.int8]:
    """What is given; all are to be counted where the laws say more than can be counted.

    A record is bent where the count does not bear out its law, as fitted or at its level; with many
    models the count is better.  A record with one model on a side has nothing to count.
    """
    doubt = np.asarray(given, dtype=np.int8)
    fewest = np.minimum(sums.n_in, sums.n_out)
    if float(fewest.max()) < LEAST_COUNTED:
        return np.zeros_like(doubt)
    gain = max(float(by_count.gain.mean()), 0.0)
    error = float(np.sqrt(by_count.variance.mean() / len(doubt)))
    if float(by_law.mean()) > OVERSTATED * gain + max(ERRORS * error, NEAR):
        doubt = np.maximum(doubt, COUNTED)
    low, high = by_count.quantiles(np.array(COUNTED_ENDS)).T
    for advantage in (by_law, said):
        outside = (fewest >= LEAST_HELD) & ((advantage < low) | (advantage > high))
        far = np.abs(by_count.mean - advantage) > NEAR
        bent = bent | outside | ((fewest >= LEAST_HELD) & far)
        doubt = np.where(outside & (fewest >= LEAST_OWN), np.maximum(doubt, COUNTED), doubt)
    doubt = np.maximum(doubt, np.where(bent, BENT, SOUND))
    return np.where(fewest < LEAST_COUNTED, SOUND, doubt).astype(np.int8)


def not_normal(scores: FloatArray, side: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The records whose scores over the models of one side are not normal, by Lilliefors' test.

    One normal record in a hundred is named too; with fewer than 16 models on the side none is.
    """
    count, mean, squares = means_and_squares(scores, side)
    spread = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
    with np.errstate(over="ignore"):
        # Infinite is who is not on this side.
        away = np.clip((scores - mean) / np.maximum(spread, 1e-300), -1e300, 1e300)
    own = np.sort(np.where(side, away, np.inf), axis=0)
    rank = np.arange(1, len(own) + 1)[:, None]
    normal = ndtr(own)
    off = np.maximum(rank / count - normal, normal - (rank - 1) / count)
    furthest = np.where(rank <= count, off, 0.0).max(axis=0)
    return np.asarray((count >= LEAST_HELD) & (furthest > FURTHEST / np.sqrt(count)))


def _count_into(
    found: CredibleInterval,
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
    answers are not quite normal keeps its numbers, and its interval takes in both.
    """
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=1)
    value = drawn
    if level > 0.0:
        one = np.ones_like(drawn)
        value = tabulated(distance_of(drawn), one, one, level)
        low, high = np.full(len(rows), level), np.minimum(high + level, 1.0)
    else:
        low = np.where(low < NEGLIGIBLE, 0.0, low)
    bent = doubt == BENT
    found.value[rows] = np.where(bent, found.value[rows], value.mean(axis=1))
    found.low[rows] = np.where(bent, np.minimum(found.low[rows], low), low)
    high = np.where(bent, np.maximum(found.high[rows], high), high)
    found.high[rows] = np.where(doubt == TELLING, 1.0, high)


def answer_doubts(
    answers: FloatArray, trained_on: NDArray[np.bool_], alike: NDArray[np.intp] | None = None
) -> NDArray[np.int8]:
    """What stands against each record's answers: 0 nothing, 2 few values, 3 values that tell.

    Answers of three neighbours are means of three targets, thousands of different ones.  But a
    model that was trained on the record and one that was not never give the same, and models on
    one side do: an attacker who knows the values reads who was trained on.

    Parameters
    ----------
    answers, trained_on, alike
        As `repeating` takes them.
    """
    doubt = np.where(repeating(answers, trained_on, alike), COUNTED, SOUND).astype(np.int8)
    step = max(ONE_ANSWER * float(np.ptp(answers)), 1e-300)
    rounded = np.round((answers - answers.min()) / step)
    same, across = np.zeros(2), np.zeros(2)
    n_in, mean_in, squares_in = means_and_squares(answers, trained_on)
    n_out, mean_out, squares_out = means_and_squares(answers, ~trained_on)
    variance = (squares_in + squares_out) / np.maximum(n_in + n_out - 2.0, 1.0)
    # Two normals of one spread agree less often than one with itself, by this factor.
    overlap = np.exp(-0.25 * (mean_in - mean_out) ** 2 / np.maximum(variance, step**2))
    for number, (one, inside) in enumerate(zip(rounded, trained_on, strict=True)):
        for other, also in zip(
            rounded[:number][-MOST_COMPARED:], trained_on[:number][-MOST_COMPARED:], strict=True
        ):
            equal, alike_side = one == other, inside == also
            same += np.count_nonzero(equal & alike_side), np.count_nonzero(alike_side)
            across += np.count_nonzero(equal & ~alike_side), overlap[~alike_side].sum()
    often = same[0] / max(same[1], 1.0)
    shared = across[0] / max(across[1], 1.0)
    if often > LEAST_EQUAL and shared < LEAST_SHARED_PART * often:
        doubt[:] = TELLING
    return doubt


def repeating(
    answers: FloatArray, trained_on: NDArray[np.bool_], alike: NDArray[np.intp] | None = None
) -> NDArray[np.bool_]:
    """The records whose answers take few values, so that no normal law is theirs.

    Votes of few trees, leaves, neighbours and labels repeat: a record gets the same answer from
    model after model, or many records get one answer from the same model.  Where most records'
    do, all are named: what records have in common was then fitted to such answers.

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
    >>> from leakscope.fitted.few_models import repeating
    >>> rng = np.random.default_rng(0)
    >>> inside = np.tile(np.arange(100) % 2 == np.arange(2)[:, None], (4, 1))
    >>> votes = rng.binomial(5, 0.9, (8, 100)) / 5.0
    >>> int(repeating(votes, inside).sum()), int(repeating(rng.normal(size=(8, 100)), inside).sum())
    (100, 0)
    """
    step = max(ONE_ANSWER * float(np.ptp(answers)), 1e-300)
    rounded = np.round((answers - answers.min()) / step)
    equal, pairs = np.zeros(rounded.shape[1]), np.zeros(rounded.shape[1])
    for side in (trained_on, ~trained_on):
        count = side.sum(axis=0)
        pairs += count * (count - 1) / 2
        own = np.sort(np.where(side, rounded, np.nan), axis=0)
        run = np.zeros(rounded.shape[1])
        # A run of c equal answers is c (c - 1) / 2 equal pairs: 1 + 2 + ... + (c - 1).
        for before, after in pairwise(own):
            run = np.where(before == after, run + 1.0, 0.0)
            equal += run
    usual = float(equal.sum() / max(float(pairs.sum()), 1.0))
    often = (equal + EQUAL_BELIEF * usual) / (pairs + EQUAL_BELIEF) > MOST_EQUAL
    kinds = np.arange(rounded.shape[1]) if alike is None else np.asarray(alike)
    others = max(len(np.unique(kinds)) - 1, 1)
    shared = np.zeros(rounded.shape[1])
    for each in rounded:
        values = np.unique(each, return_inverse=True)[1].reshape(-1)
        known = np.unique(np.stack([values, kinds]), axis=1)[0]
        shared += (np.bincount(known)[values] - 1) / others
    found = np.asarray(often | (shared / len(rounded) > MOST_SHARED))
    return np.ones_like(found) if found.mean() > 0.5 else found


def posterior_draws(
    found: Nodes, key: Key, draws: int = DRAWS
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Draws of each record's mean and standard deviation, without it and with it."""
    rng = key.generator()
    count = len(found.u)
    cumulated = found.probability.reshape(count, -1).cumsum(axis=1)
    at = (np.arange(draws) + rng.random((count, 1))) / draws * cumulated[:, -1:]
    chosen = np.stack([np.searchsorted(c, a) for c, a in zip(cumulated, at, strict=True)])
    chosen = np.minimum(chosen, cumulated.shape[1] - 1)
    s, u, r, c = np.unravel_index(chosen, found.probability.shape[1:])
    row = np.arange(count)[:, None]

    def between() -> FloatArray:
        return rng.random((count, draws)) - 0.5

    # Between two nodes of s or u, r and m move along: the shift stays the node's.
    along_s, along_u = found.s_step[:, None] * between(), found.u_step[row, s] * between()
    log_s = found.log_s[row, s] + along_s
    log_r = found.log_r[row, s, u, r] + along_s + found.r_step[row, s, u] * between()
    level = found.u[row, s, u] + along_u
    noise = rng.standard_normal((count, draws))
    mean = found.m[row, s, u, r, c] + along_u
    mean += np.sqrt(found.m_variance[row, s, u, r, c]) * noise
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
    return [np.minimum(found, 1.0) for found in (draws.mean(axis=1), low, high)]


def require_units(count: int, unit: str) -> None:
    """Refuse so few records, or groups, that how scores vary over them cannot be learnt."""
    if count < FEWEST_RECORDS:
        raise InputError(
            f"a few models need at least {FEWEST_RECORDS} {unit}s to learn how scores vary, but "
            f"there {'is' if count == 1 else 'are'} {count}."
        )


def _levels(fpr: Sequence[float]) -> tuple[float, ...]:
    levels = tuple(float(level) for level in fpr)
    for level in levels:
        if not 0.0 < level < 1.0:
            raise InputError(
                f"A false-positive rate must lie between 0 and 1, but one is {level:g}."
            )
    return levels


def _checked(
    log_odds: FloatArray, trained_on: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    scores, mask = np.asarray(log_odds), np.asarray(trained_on)
    if scores.ndim != 2 or scores.dtype.kind not in "fiu":
        raise InputError(
            "log_odds must be a table of numbers, one row per model and one column per record, "
            f"but its shape is {scores.shape} and its type {scores.dtype}."
        )
    if mask.shape != scores.shape:
        raise InputError(
            f"log_odds has the shape {scores.shape} and trained_on {mask.shape}: both must have "
            "one row per model and one column per record."
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
    for wrong, what in ((seen == len(mask), "every model was"), (seen == 0, "no model was")):
        if wrong.any():
            raise InputError(
                f"{what[:1].upper()}{what[1:]} trained on record {int(np.argmax(wrong))} (counting "
                "from 0): each record must be in the training set of at least one model and out "
                "of that of at least one."
            )
    return scores, mask


def require_models(log_odds: FloatArray, trained_on: NDArray[np.bool_]) -> None:
    """Refuse models that are one model twice, and arrays of records x models.

    Parameters
    ----------
    log_odds, trained_on : arrays, models x records
        As `few_models` takes them, of shapes and types that are right.
    """
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
        model = int(again[0])
        raise InputError(
            f"Models {int(first[which.reshape(-1)[model]])} and {model} (counting from 0) were "
            "trained on the same records: halves that repeat, or one model given twice, are no "
            "independent witnesses; give one model for each half."
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
    if fpr is None:
        values = measures.advantage(pair)
    else:
        values = measures.tpr_at_fpr(pair, fpr)
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
