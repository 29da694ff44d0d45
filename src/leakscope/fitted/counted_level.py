"""How exposed all records together are: what their laws promise, held against what is counted.

The laws of `few_models` are normal, and answers need not be.  A few models cannot tell that of one
record; of hundreds of records together they can.  So tests are learnt and counted on the models as
they are (`counted_models.best_said`), and again on answers drawn from the laws, of as many models
that were trained on the same records: what learning loses is lost in both.  Where less is counted
than the laws promise, shifts are shortened until they promise as much; where more is, lengthened.

Records that are about as hard have one level, and between them it is a line.  A level is weighed
against the belief that the laws are nearly right; what that leaves open goes into the intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.fitted.counted_models import best_said, count

Rows = NDArray[np.intp]
Laws = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

# Laws promise too much or too little by this (standard deviation), or, as likely, by this share of
# what they promise beside it.
OFF, SHARE_OFF = 0.01, 0.2
# Records that have one level, and how many levels there are at most.
PER_LEVEL, MOST_LEVELS = 75, 5
# What all shifts may be multiplied with; the place of 1 is where the laws are left as they are.
STRETCHES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0])
AS_IT_IS = 10
# How many answers are looked at, and drawn; and of how many records at least.
ANSWERS, FEWEST_RECORDS = 500_000, 200


@dataclass(frozen=True, eq=False)
class Level:
    """What every record's shift is multiplied with, once for each draw of its laws.

    Parameters
    ----------
    place : array of float
        Of each record, between 0 for the hardest and the number of levels less one.
    stretch : array of float, levels x draws
    """

    place: FloatArray
    stretch: FloatArray

    def of(self, rows: Rows | slice) -> FloatArray:
        """(rows, draws) of some records."""
        place = self.place[rows]
        low = np.minimum(place.astype(np.intp), max(len(self.stretch) - 2, 0))
        high = np.minimum(low + 1, len(self.stretch) - 1)
        along = (place - low)[:, None]
        return np.asarray((1.0 - along) * self.stretch[low] + along * self.stretch[high])

    def beside(self, other: Level, of_other: NDArray[np.bool_]) -> Level:
        """This level, and another of some of the records."""
        place = np.where(of_other, len(self.stretch) + other.place, self.place)
        return Level(place, np.concatenate([self.stretch, other.stretch]))


def rows_for_level(scores: FloatArray, of_law: NDArray[np.bool_]) -> Rows:
    """The records that are looked at, hardest first: evenly spread where they are many.

    ``of_law`` are those that have normal laws.
    """
    order = np.flatnonzero(of_law)[np.argsort(scores.mean(axis=0)[of_law], kind="stable")]
    if scores.shape[0] * len(order) <= ANSWERS:
        return order
    wanted = min(max(ANSWERS // scores.shape[0], FEWEST_RECORDS), len(order))
    return np.asarray(order[np.linspace(0, len(order) - 1, wanted).round().astype(np.intp)])


def level_of(
    scores: FloatArray,
    trained_on: NDArray[np.bool_],
    rows: Rows,
    laws: Laws,
    advantage: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    directions: float,
    rng: np.random.Generator,
    draws: int,
) -> Level:
    """The level of every record, counted.

    Parameters
    ----------
    scores : array of float, models x records
        Levelled.
    trained_on : array of bool, models x records
    rows : array of int
        The records that are looked at, from `rows_for_level`.
    laws : four arrays of float, rows x some draws
        Their mean and spread without each, and with it.
    advantage : function
        Of shifts, and spreads without and with the record.
    directions : float
        In how many independent directions the models' noise varies.
    rng : numpy.random.Generator
    draws : int
        How many draws of the level there are to be.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted.counted_level import level_of, rows_for_level
    >>> from leakscope.fitted.few_models import tabulated
    >>> rng = np.random.default_rng(0)
    >>> inside = np.tile(np.arange(300) % 2 == np.arange(2)[:, None], (30, 1))
    >>> scores = inside + rng.normal(size=inside.shape)
    >>> rows = rows_for_level(scores, np.ones(300, dtype=bool))
    >>> twice = tuple(np.full((300, 4), x) for x in (0.0, 1.0, 2.0, 1.0))
    >>> level = level_of(scores, inside, rows, twice, tabulated, 300.0, rng, 100)
    >>> bool(0.4 < level.of(np.arange(300)).mean() < 0.6)
    True
    """
    hardness, parts = scores.mean(axis=0), _parts(len(rows))
    middles = np.array([hardness[rows[part]].mean() for part in parts])
    place = np.interp(hardness, middles, np.arange(len(parts)))
    inside = trained_on[:, rows]

    def told(answers: FloatArray, mask: NDArray[np.bool_]) -> FloatArray:
        """(2, levels) the mean gain of the test that tells most, and its variance."""
        hits = count(best_said((answers,), mask, parts), mask)
        gain = [hits.gain[part].mean() for part in parts]
        return np.array([gain, [hits.variance[part].mean() / len(part) for part in parts]])

    u, s, m, r = laws
    # The models in an order of their own, so that the one they come in is of no account.
    halves = inside[sorted(range(len(inside)), key=lambda model: inside[model].tobytes())]
    drawn = [
        told(
            np.where(halves, m[:, k], u[:, k])
            + np.where(halves, r[:, k], s[:, k]) * rng.standard_normal(halves.shape),
            halves,
        )
        for k in range(min(max(ANSWERS // halves.size, 1), u.shape[1]))
    ]
    promised, own_noise = np.mean(drawn, axis=0)
    seen, noise = told(scores[:, rows], inside)
    # Who is trained on is drawn for each record, so that noise that all share has either sign; but
    # how far it reaches, and with it what can be told, is known from so many directions only.
    noise += own_noise / len(drawn) + promised**2 / (2.0 * len(scores) * directions)
    believed = _believed(seen - promised, promised, noise, rng, draws)
    stretch = np.ones((len(parts), draws))
    for number, (part, found) in enumerate(zip(parts, believed, strict=True)):
        levels = np.array(
            [
                advantage(
                    f * (m[part] - u[part]), s[part], s[part] * (r[part] / s[part]) ** f
                ).mean()
                for f in STRETCHES
            ]
        )
        # In parts of what is promised, which learning has made less.
        ratio = np.maximum(1.0 + found / max(promised[number], OFF), 0.0)
        asked = ratio * levels[AS_IT_IS]
        stretch[number] = np.interp(asked, np.maximum.accumulate(levels), STRETCHES)
    return Level(place, stretch)


def _believed(
    gap: FloatArray, promised: FloatArray, noise: FloatArray, rng: np.random.Generator, draws: int
) -> FloatArray:
    """(levels, draws) of what is too little or too much, where the gaps have noise.

    Laws are nearly right at all levels, or at none: the gaps of all say which is likelier.
    """
    beliefs = [(share * promised + OFF) ** 2 for share in (0.0, SHARE_OFF)]
    fits = [np.sum(-0.5 * gap**2 / (b + noise) - 0.5 * np.log(b + noise)) for b in beliefs]
    off = rng.random(draws) < 1.0 / (1.0 + np.exp(np.clip(fits[0] - fits[1], -500.0, 500.0)))
    belief = np.where(off, beliefs[1][:, None], beliefs[0][:, None])
    weight = belief / (belief + noise[:, None])
    spread = np.sqrt(weight * noise[:, None])
    return np.asarray(weight * gap[:, None] + spread * rng.standard_normal(weight.shape))


def _parts(records: int) -> list[Rows]:
    many = int(np.clip(records // PER_LEVEL, 1, MOST_LEVELS))
    return list(np.array_split(np.arange(records), many))
