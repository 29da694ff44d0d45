"""Advantages that are counted, for records whose answers have no normal law.

Votes, leaves, neighbours and labels take few values; a boosted tree's answer stays where it is and
jumps now and then.  Two normals fitted to such answers say far too much (0.53 for 0.13).  Here no
law is fitted.  A record's answers are cut in two at a place that is chosen without looking at who
was trained on it, and the answers above the cut are counted: x of the models with the record, z of
those without.  x/n - z/m is an unbiased estimate of the advantage of that test, at any number of
models.  Where to cut (at the middle of the answers, at their mean, or into the two most compact
parts; as they are or levelled) is one choice for all records: the one that tells most on average.

Given how many are above the cut in all, x has Fisher's noncentral hypergeometric law, whose odds
ratio follows from the advantage.  The prior is a beta law for records that the models find about
as hard, with the mean and the spread that their counts show; how hard is the mean over all models,
blind too, so that no record's own count has a say in whom it is likened to.  The posterior is a sum
over a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri
from scipy.stats import beta, binom, hypergeom

from leakscope._numerics.arrays import FloatArray

Mask = NDArray[np.bool_]

# The places at which an advantage is weighed.
GRID = (np.arange(100) + 0.5) / 100.0
# Records that are as hard and share a prior, and how many such parts there are at most.
RECORDS_PER_PART, MOST_PARTS = 60, 10
# A prior's standard deviation is at least its mean, as an exponential law's is, however alike the
# counts are, and its variance at most this part of the largest that a beta law has.
LEAST_SPREAD, MOST_VARIANCE = 1.0, 0.95
# The mean of a prior keeps this far from nothing and from everything.
LEAST_MEAN = 0.01
# Answers that differ by less, in parts of their range, are one answer but for rounding.
ONE_ANSWER = 1e-9


@dataclass(frozen=True, eq=False)
class Counted:
    """The posterior of each record's advantage.

    Parameters
    ----------
    probability : array of float, records x places of the grid
    certainty : array of float
        Of Fisher's exact test that training on the record changes nothing, as a normal quantile.
    """

    probability: FloatArray
    certainty: FloatArray

    def take(self, rows: Mask) -> Counted:
        """Those of some records."""
        return Counted(self.probability[rows], self.certainty[rows])

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """(records, levels) at levels of shape (records, levels) or (levels,)."""
        cumulated = np.cumsum(self.probability, axis=1)
        at = np.broadcast_to(levels, (len(cumulated), np.shape(levels)[-1]))
        found = np.empty(at.shape)
        ends = np.arange(1, len(GRID) + 1) / len(GRID)
        for row, (mass, level) in enumerate(zip(cumulated, at, strict=True)):
            found[row] = np.interp(level, np.append(0.0, mass), np.append(0.0, ends))
        return found


def counted(forms: tuple[FloatArray, ...], trained_on: Mask, directions: float) -> Counted:
    """Each record's advantage by counting.

    Parameters
    ----------
    forms : tuple of arrays of float, models x records
        The scores in every form that an attacker may look at.
    trained_on : array of bool, models x records
    directions : float
        In how many independent directions the models' noise varies.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted.counted_models import GRID, counted
    >>> rng = np.random.default_rng(0)
    >>> inside = np.tile(np.arange(60) % 2 == np.arange(2)[:, None], (100, 1))
    >>> right = (rng.random(inside.shape) < np.where(inside, 0.9, 0.6)).astype(float)
    >>> found = counted((right,), inside, 60.0)
    >>> float((found.probability @ GRID).mean().round(1))
    0.3
    """
    n_in, n_out = trained_on.sum(axis=0), (~trained_on).sum(axis=0)
    tried = []
    for scores in forms:
        for cut in cuts(scores):
            above = scores > cut
            tried.append(((above & trained_on).sum(axis=0), (above & ~trained_on).sum(axis=0)))
    x, z = max(tried, key=lambda hits: float(np.mean(hits[0] / n_in - hits[1] / n_out)))
    log_p = log_likelihood(x, n_in, x + z, n_in + n_out)
    hard = forms[0].mean(axis=0)
    for part, prior in _priors(x / n_in, z / n_out, n_in, n_out, hard, directions):
        log_p[part] += prior
    probability = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    # The chance of as many hits with the record, or more, where training on it changes nothing.
    chance = len(tried) * hypergeom.sf(x - 1, n_in + n_out, x + z, n_in)
    return Counted(probability, -ndtri(np.clip(chance, 1e-300, 1.0 - 1e-12)))


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
    hits: NDArray[np.intp],
    n_in: NDArray[np.intp],
    total: NDArray[np.intp],
    models: NDArray[np.intp],
) -> FloatArray:
    """(records, places) of ``hits`` above the cut among the ``n_in`` models with the record.

    ``total`` of all ``models`` are above it.  Where p and q are the shares above the cut with and
    without the record, their mean is that of ``total`` and their difference the advantage.  An
    advantage of A needs a mean share of A/2 or more on both sides of the cut, and the chance of
    one as small as was seen counts too.
    """
    found = np.empty((len(hits), len(GRID)))
    kinds, which = np.unique(np.stack([n_in, total, models]), axis=1, return_inverse=True)
    for number, (inside, above, count) in enumerate(kinds.T.tolist()):
        rows = np.flatnonzero(which.reshape(-1) == number)
        outside = count - inside
        least = max(0, above - outside)
        x = np.arange(least, min(inside, above) + 1)[:, None]
        ways = -gammaln(x + 1) - gammaln(inside - x + 1)
        ways = ways - gammaln(above - x + 1) - gammaln(outside - above + x + 1)
        edge = 0.5 / (count + 1)
        share = (above + 0.5) / (count + 1)
        p = np.clip(share + GRID * outside / count, edge, 1.0 - edge)
        q = np.clip(share - GRID * inside / count, edge, 1.0 - edge)
        log_p = ways + x * (np.log(p) - np.log1p(-p) - np.log(q) + np.log1p(-q))
        log_p -= log_p.max(axis=0)
        log_p -= np.log(np.exp(log_p).sum(axis=0))
        room = np.minimum(2.0 * binom.cdf(min(above, count - above), count, 0.5 * GRID), 1.0)
        found[rows] = log_p[hits[rows] - least] + np.log(np.maximum(room, 1e-300))
    return found


def _priors(
    p: FloatArray,
    q: FloatArray,
    n_in: NDArray[np.intp],
    n_out: NDArray[np.intp],
    hard: FloatArray,
    directions: float,
) -> list[tuple[NDArray[np.intp], FloatArray]]:
    """The rows of records that are as hard, and the log of their beta prior on the grid.

    Its mean is that of their counts; its variance is theirs less that of counting, and the error
    of the mean, which the records share.
    """
    gain = p - q
    noise = p * (1.0 - p) / np.maximum(n_in - 1, 1) + q * (1.0 - q) / np.maximum(n_out - 1, 1)
    many = int(np.clip(len(gain) // RECORDS_PER_PART, 1, MOST_PARTS))
    found = []
    for part in np.array_split(np.argsort(hard, kind="stable"), many):
        mean = float(np.clip(gain[part].mean(), LEAST_MEAN, 1.0 - LEAST_MEAN))
        most = mean * (1.0 - mean)
        variance = float(np.var(gain[part]) - noise[part].mean())
        variance = max(variance, (LEAST_SPREAD * mean) ** 2)
        variance += 1.0 / (directions * float((n_in + n_out)[part].mean()))
        weight = most / min(variance, MOST_VARIANCE * most) - 1.0
        found.append((part, beta.logpdf(GRID, weight * mean, weight * (1.0 - mean))))
    return found
