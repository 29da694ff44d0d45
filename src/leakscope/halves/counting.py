"""Advantages that are counted, for records whose answers have no normal law.

Votes, leaves, neighbours and labels take few values; a boosted tree's answer stays where it is and
jumps now and then.  Two normals fitted to such answers say far too much (0.53 for 0.13).  Here no
law is believed.  A test says yes or no of every model, without having seen who that model was
trained on, and is counted: x of the models with the record, z of those without.  x/n - z/m is an
unbiased estimate of the advantage of that test, at any number of models.  A test is a blind cut (at
the middle of the answers, at their mean, or into the two most compact parts), or is learnt on other
models (the best cut, or the ratio of two normals); of the answers as they are or levelled.  Records
that the models find about as hard have one test: the one that tells most on average, of the other
models than those of which it is counted.

Both counts are binomial, or vary more where models of complementary halves err in opposite
directions; nothing is known of the chance of a yes without the record, which is integrated out.
The prior of the advantage is a beta law for records that are as hard, with the mean and the spread
that their counts show; how hard is the mean over all models, blind too, so that no record's own
count has a say in whom it is likened to.  The posterior is a sum over a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta, binom, hypergeom

from leakscope._numerics.arrays import FloatArray
from leakscope.halves.population import means_and_squares

Mask = NDArray[np.bool_]
Counts = NDArray[np.intp]

# The places at which an advantage is weighed, and at which the chance of a yes without the record,
# in parts of what the advantage leaves; so many counts are weighed at once.
GRID = (np.arange(100) + 0.5) / 100.0
SHARES = (np.arange(64) + 0.5) / 64.0
AT_ONCE = 1_000
# Records that are as hard and share a prior, and how many such parts there are at most.
RECORDS_PER_PART, MOST_PARTS = 60, 10
# A prior's standard deviation is at least its mean, as an exponential law's is, however alike the
# counts are; but its variance then need not be more than the first, and never is more than the
# second, of these parts of the largest that a beta law has.
LEAST_VARIANCE, MOST_VARIANCE = 0.5, 0.95
# The mean of a prior keeps this far from nothing and from everything.
LEAST_MEAN = 0.01
# How many blind cuts `cuts` makes.
BLIND = 3
# Tests that are learnt are tried on one of so many parts of the models, and learnt on the others;
# fewer models teach nothing.
FOLDS, LEAST_LEARNT = 8, 16
# The test of one part of the models is learnt, or chosen, on the other parts, so that the parts'
# answers depend on each other: for records that give nothing away, an exact test's chance of 1% is
# exceeded twice as often.
DEPENDENT = 3.0
# By what factor the difference of two counts varies more than binomial ones do, at most; and of how
# many models in pairs it is seen.
MOST_EXCESS, FEWEST_PAIRED = 2.0, 4
# Few models give records one hardness by luck, and the counts with it: two of two, and two of two.
# So the mean of all records counts beside that of those as hard, as if so many models showed it.
MODELS_OF_ALL = 4.0
# Answers that differ by less, in parts of their range, are one answer but for rounding.
ONE_ANSWER = 1e-9


@dataclass(frozen=True, eq=False)
class Counted:
    """The posterior of each record's advantage.

    Parameters
    ----------
    probability : array of float, records x places of the grid
    certainty : array of float
        That training on the record changes something, as a normal quantile.
    gain, variance : arrays of float
        What was counted, and its variance.
    """

    probability: FloatArray
    certainty: FloatArray
    gain: FloatArray
    variance: FloatArray

    @property
    def mean(self) -> FloatArray:
        """(records,) of the posterior."""
        return np.asarray(self.probability @ GRID)

    def take(self, rows: Mask | NDArray[np.intp]) -> Counted:
        """Those of some records."""
        return Counted(
            self.probability[rows], self.certainty[rows], self.gain[rows], self.variance[rows]
        )

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """(records, levels) at levels of shape (records, levels) or (levels,)."""
        cumulated = np.cumsum(self.probability, axis=1)
        at = np.broadcast_to(levels, (len(cumulated), np.shape(levels)[-1]))
        found = np.empty(at.shape)
        ends = np.arange(1, len(GRID) + 1) / len(GRID)
        for row, (mass, level) in enumerate(zip(cumulated, at, strict=True)):
            found[row] = np.interp(level, np.append(0.0, mass), np.append(0.0, ends))
        return found


def counted(forms: tuple[FloatArray, ...], trained_on: Mask) -> Counted:
    """Each record's advantage by counting.

    Parameters
    ----------
    forms : tuple of arrays of float, models x records
        The scores in every form that an attacker may look at.
    trained_on : array of bool, models x records

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.halves.counting import counted
    >>> rng = np.random.default_rng(0)
    >>> inside = np.tile(np.arange(60) % 2 == np.arange(2)[:, None], (100, 1))
    >>> right = (rng.random(inside.shape) < np.where(inside, 0.9, 0.6)).astype(float)
    >>> found = counted((right,), inside)
    >>> float(found.mean.mean().round(1))
    0.3
    """
    many = int(np.clip(trained_on.shape[1] // RECORDS_PER_PART, 1, MOST_PARTS))
    parts = np.array_split(np.argsort(forms[0].mean(axis=0), kind="stable"), many)
    hits = count(best_said(forms, trained_on, parts), trained_on)
    log_p = log_likelihood(hits.x, hits.n_in, hits.z, hits.n_out, hits.excess)
    own = len(trained_on) / (len(trained_on) + MODELS_OF_ALL)
    for part in parts:
        mean = own * hits.gain[part].mean() + (1.0 - own) * hits.gain.mean()
        log_p[part] += _log_prior(float(mean), hits.gain[part], hits.variance[part])
    probability = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    certainty = -ndtri(np.clip(DEPENDENT * hits.chance, 1e-300, 1.0 - 1e-12))
    return Counted(probability, certainty, hits.gain, hits.variance)


@dataclass(frozen=True, eq=False)
class Hits:
    """Of how many models a test says yes, by record.

    Parameters
    ----------
    x, n_in : arrays of int
        Of so many models with the record.
    z, n_out : arrays of int
        Of so many models without it.
    excess : float
        By what factor ``x/n_in - z/n_out`` varies more than two binomial counts do.
    chance : array of float
        That a test which knows nothing, and was chosen beforehand, does as well.
    """

    x: Counts
    n_in: Counts
    z: Counts
    n_out: Counts
    excess: float
    chance: FloatArray

    @property
    def gain(self) -> FloatArray:
        """An unbiased estimate of the test's advantage."""
        return np.asarray(self.x / self.n_in - self.z / self.n_out)

    @property
    def variance(self) -> FloatArray:
        """That of the gain."""
        return self.excess * _binomial_variance(self.x, self.n_in, self.z, self.n_out)


def count(said: Mask, trained_on: Mask) -> Hits:
    """What a test that says this is worth.

    Two models of complementary halves err in opposite directions: what one learns of a record's
    neighbours the other lacks.  Then the difference of both counts varies up to twice as much as
    two binomial counts would.  How much is seen from pair to pair, over all records together.

    Parameters
    ----------
    said, trained_on : arrays of bool, models x records
    """
    n_in, n_out = trained_on.sum(axis=0), (~trained_on).sum(axis=0)
    x, z = (said & trained_on).sum(axis=0), (said & ~trained_on).sum(axis=0)
    one, other = opposites(trained_on)
    if 2 * len(one) < max(len(said) - 1, FEWEST_PAIRED):
        # Fisher's exact test of two independent counts.
        chance = hypergeom.sf(x - 1, n_in + n_out, x + z, n_in)
        return Hits(x, n_in, z, n_out, 1.0, np.asarray(chance))
    signed = np.where(trained_on, said, -said.astype(np.int8))
    told = signed[one] + signed[other]
    spread = float((told.var(axis=0, ddof=1) / len(one)).sum())
    alone = float(_binomial_variance(x, n_in, z, n_out).sum())
    excess = float(np.clip(spread / max(alone, 1e-300), 1.0, MOST_EXCESS))
    # McNemar's exact test of pairs that differ.
    for_it, against = (told > 0).sum(axis=0), (told < 0).sum(axis=0)
    chance = binom.sf(for_it - 1, for_it + against, 0.5)
    return Hits(x, n_in, z, n_out, excess, np.asarray(chance))


def opposites(trained_on: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The models of complementary halves, in pairs: the first of each, and the second."""
    waiting: dict[bytes, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for model, row in enumerate(trained_on):
        if waits := waiting.get((~row).tobytes()):
            pairs.append((waits.pop(), model))
        else:
            waiting.setdefault(row.tobytes(), []).append(model)
    one, other = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return one, other


def folds_of(trained_on: Mask) -> NDArray[np.intp]:
    """(models,) the part of each, in whatever order they come where no two halves are the same.

    Models of complementary halves are in one.
    """
    pairs = opposites(trained_on)
    alone = np.setdiff1d(np.arange(len(trained_on)), np.concatenate(pairs))
    together = [*zip(*pairs, strict=True), *zip(alone, strict=True)]
    together.sort(key=lambda models: min(trained_on[model].tobytes() for model in models))
    folds = np.empty(len(trained_on), dtype=np.intp)
    for number, models in enumerate(together):
        folds[list(models)] = number % FOLDS
    return folds


def best_said(
    forms: tuple[FloatArray, ...], trained_on: Mask, parts: list[NDArray[np.intp]]
) -> Mask:
    """(models, records) what the test that tells most says, for the records of each part.

    It is chosen on the other models than those of which it says something, so that no luck of the
    choice is counted.
    """
    tests, folds = said_by_each(forms, trained_on), folds_of(trained_on)
    # Of the parts of models, tests x records: of how many each says yes; and how many there are.
    yes = [_by_side(tests[:, folds == fold], trained_on[folds == fold]) for fold in range(FOLDS)]
    of = [_by_side(None, trained_on[folds == fold]) for fold in range(FOLDS)]
    x, z = (sum(side) for side in zip(*yes, strict=True))
    n_in, n_out = (sum(side) for side in zip(*of, strict=True))
    said = np.empty(trained_on.shape, dtype=np.bool_)
    for fold in range(FOLDS):
        own = np.flatnonzero(folds == fold)
        gain = (x - yes[fold][0]) / np.maximum(n_in - of[fold][0], 1)
        gain -= (z - yes[fold][1]) / np.maximum(n_out - of[fold][1], 1)
        for part in parts:
            mean = gain[:, part].mean(axis=1)
            # What is learnt must tell more than by chance.
            mean[BLIND * len(forms) :] -= np.sqrt(1.0 / (len(trained_on) * len(part)))
            said[np.ix_(own, part)] = tests[int(np.argmax(mean))][np.ix_(own, part)]
    return said


def said_by_each(forms: tuple[FloatArray, ...], trained_on: Mask) -> Mask:
    """(tests, models, records) what each test says.

    Blind cuts first, `BLIND` for each form.  Then tests that are learnt for each record on some
    models and tried on the others: the best cut, the ratio of two normals, whose spreads may
    differ, and whether the other models with answers around this one's were more often trained on
    the record, whatever the laws are.
    """
    folds = folds_of(trained_on)
    said = [scores > cut for scores in forms for cut in cuts(scores)]
    for scores in forms if len(trained_on) >= LEAST_LEARNT else ():
        for learnt in (best_cut, ratio_of_normals):
            yes = np.empty(scores.shape, dtype=np.bool_)
            for fold in range(FOLDS):
                own = folds == fold
                yes[own] = learnt(scores[~own], trained_on[~own], scores[own])
            said.append(yes)
        said.append(neighbours_say(scores, trained_on, folds))
    return np.stack(said)


def _by_side(said: Mask | None, trained_on: Mask) -> tuple[Counts, Counts]:
    """How many models with each record, and without it; of which a test says yes."""
    sides = trained_on, ~trained_on
    with_it, without = (
        (side if said is None else said & side).sum(axis=-2, dtype=np.intp) for side in sides
    )
    return with_it, without


def _binomial_variance(x: Counts, n_in: Counts, z: Counts, n_out: Counts) -> FloatArray:
    p, q = x / n_in, z / n_out
    own = p * (1.0 - p) / np.maximum(n_in - 1, 1) + q * (1.0 - q) / np.maximum(n_out - 1, 1)
    return np.asarray(own)


def neighbours_say(scores: FloatArray, trained_on: Mask, folds: NDArray[np.intp]) -> Mask:
    """Whether most models of other folds with answers near this one's were trained on it."""
    models = len(scores)
    # Wide enough to be sure of a majority, narrow enough to see two peaks.
    reach = max(2, round(0.25 * models**0.8))
    order = np.argsort(scores, axis=0, kind="stable")
    rank = np.argsort(order, axis=0, kind="stable")
    first, last = np.maximum(rank - reach, 0), np.minimum(rank + reach + 1, models)
    yes = np.empty(scores.shape, dtype=np.bool_)
    for fold in range(FOLDS):
        other = (folds != fold)[:, None]
        own = np.flatnonzero(folds == fold)
        near = []
        for side in (trained_on & other, ~trained_on & other):
            there = np.take_along_axis(side, order, axis=0).cumsum(axis=0)
            there = np.concatenate([np.zeros((1, scores.shape[1]), dtype=np.intp), there])
            within = [np.take_along_axis(there, end[own], axis=0) for end in (last, first)]
            near.append((within[0] - within[1]) / np.maximum(there[-1], 1))
        yes[own] = near[0] > near[1]
    return yes


def best_cut(scores: FloatArray, trained_on: Mask, asked: FloatArray) -> Mask:
    """Whether the asked scores are above the cut that tells each record's own best."""
    order = np.argsort(scores, axis=0)
    sorted_scores = np.take_along_axis(scores, order, axis=0)
    inside = np.take_along_axis(trained_on, order, axis=0)
    n_in = trained_on.sum(axis=0)
    below_in, below_out = np.cumsum(inside, axis=0)[:-1], np.cumsum(~inside, axis=0)[:-1]
    gain = below_out / np.maximum(len(scores) - n_in, 1) - below_in / np.maximum(n_in, 1)
    gain = np.where(np.diff(sorted_scores, axis=0) > 0.0, gain, -np.inf)
    best = np.argmax(gain, axis=0)
    columns = np.arange(scores.shape[1])
    cut = 0.5 * (sorted_scores[best, columns] + sorted_scores[best + 1, columns])
    # A record with one answer is cut nowhere.
    return np.asarray(asked > np.where(np.isfinite(gain.max(axis=0)), cut, np.inf))


def ratio_of_normals(scores: FloatArray, trained_on: Mask, asked: FloatArray) -> Mask:
    """Whether normals with the means and spreads of both sides speak for training."""
    told = []
    for side in (trained_on, ~trained_on):
        count, mean, squares = means_and_squares(scores, side)
        spread = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
        spread = np.maximum(spread, 1e-9 * max(float(np.ptp(scores)), 1e-300))
        told.append(-0.5 * ((asked - mean) / spread) ** 2 - np.log(spread))
    return np.asarray(told[0] > told[1])


def cuts(scores: FloatArray) -> FloatArray:
    """(3, records) where each record's answers are cut, blind to who was trained on it.

    Nearest to their middle, into the two most compact parts (Otsu's), and nearest to their mean:
    always between two answers that differ.  A record with one answer is cut nowhere.
    """
    answers = np.sort(scores, axis=0)
    models, records = answers.shape
    differ = np.diff(answers, axis=0) > ONE_ANSWER * max(float(np.ptp(scores)), 1e-300)
    between = 0.5 * (answers[1:] + answers[:-1])
    below = np.arange(1, models)[:, None]
    sums = np.cumsum(answers, axis=0)
    left, right = sums[:-1] / below, (sums[-1] - sums[:-1]) / (models - below)
    wanted = (
        np.minimum(below, models - below) * np.ones(records),
        below * (models - below) * (right - left) ** 2,
        -np.abs(between - sums[-1] / models),
    )
    columns = np.arange(records)
    found = [
        between[np.argmax(np.where(differ, each, -np.inf), axis=0), columns] for each in wanted
    ]
    return np.where(differ.any(axis=0), found, np.inf)


def log_likelihood(
    x: Counts, n_in: Counts, z: Counts, n_out: Counts, excess: float = 1.0
) -> FloatArray:
    """(records, places) of a yes for x of n_in models with the record, and z of n_out without.

    Both are binomial.  Where the advantage is A the chances are q without the record and q + A with
    it, and q is as likely to be anywhere between 0 and 1 - A.  Where they vary more, by a factor
    of ``excess``, they say as much as fewer models.
    """
    q = (1.0 - GRID[:, None]) * SHARES
    chances = np.stack([q + GRID[:, None], 1.0 - q - GRID[:, None], q, 1.0 - q])
    logs = np.log(np.maximum(chances, 1e-300)).reshape(4, -1) / excess
    counts, which = np.unique(np.stack([x, n_in - x, z, n_out - z]), axis=1, return_inverse=True)
    found = np.empty((counts.shape[1], len(GRID)))
    for start in range(0, len(found), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        log_p = (counts[:, some].T @ logs).reshape(-1, len(GRID), len(SHARES))
        most = log_p.max(axis=2)
        found[some] = most + np.log(np.exp(log_p - most[:, :, None]).mean(axis=2))
    return np.asarray(found[which.reshape(-1)])


def _log_prior(mean: float, gain: FloatArray, variance: FloatArray) -> FloatArray:
    """The log of the beta prior with this mean, on the grid, of records that are as hard.

    Its variance is theirs less that of counting, and the error of the mean: who is trained on is
    drawn for each record, so that an error that many records share has either sign.
    """
    mean = float(np.clip(mean, LEAST_MEAN, 1.0 - LEAST_MEAN))
    most = mean * (1.0 - mean)
    spread = float(np.var(gain) - variance.mean())
    spread = max(spread, min(mean**2, LEAST_VARIANCE * most)) + float(variance.mean()) / len(gain)
    weight = most / min(spread, MOST_VARIANCE * most) - 1.0
    return np.asarray(beta.logpdf(GRID, weight * mean, weight * (1.0 - mean)))
