"""k nearest neighbours: both laws of every record's answer by counting, without a model trained.

Each of the other records is in the training set with probability f, by itself.  Going down the
list of the others by their distance from a record, the k-th that is in stands at place j with
s of its own label among the k - 1 before it with probability

    f Bin(s; a, f) Bin(k - 1 - s; b, f),

where a of the j - 1 before it have the label and b have not.  Summed over the places, this is the
law of how many of the k nearest have the own label.  A record that is in is its own nearest
neighbour: one of the label, and k - 1 others.

The score is how much larger the own label's share of the neighbours is than that of all others,
2 s / k - 1.  Where neighbours weigh by the inverse of their distance, a member's own distance of
zero decides alone, and what tells is whether the own label has all the weight: the score is then
1, and -1 where it has not.

Equally far records of different labels are chosen between by the order in which a search meets
them, which no rule of scikit-learn fixes.  Two extreme orders bound what that can change, and a
record whose answers it changes is not trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import LED_WARNED, Diagnostics, FittedLaws, Observed
from leakscope.fitted.paired import Mask, PairedModel
from leakscope.fitted.paired_laws import COUNTED_OFF, ERRORS, require_pool
from leakscope.fitted.problem import NoLawsError
from leakscope.fitted.refits import Rows
from leakscope.laws.distributions import Discrete
from leakscope.laws.pair import Assumption, Provenance
from leakscope.single_fit.problem import require_fraction

# The list of others ends where fewer than k of it are in with no more than this probability.
BEYOND = 1e-13
# So often a training set may have fewer than k records, which answers nothing.
TOO_FEW = 1e-9
# Squared distances that differ by less than this share are equal but for rounding; a sum of
# products rounds them as it rounds the records' squared lengths.
SAME_DISTANCE, SAME_PLACE = 1e-13, 1e-14
# Ties may change so many of a record's answers.
MOST_TIED = 0.01
# Refits by which a record is checked: where nothing else is learned they say what the list says;
# where something is, their answers vary, and there are more.
CHECKED, FEWEST, MOST_NUMBERS = 16, 4, 1e6
# By records times features, each with how many; of a search, which takes many fits each time, few.
CHECKED_LEARNED, CHECKED_CHOSEN = ((3e4, 512), (3e5, 128), (MOST_NUMBERS, 32)), 32
# Records that are counted at a time.
AT_ONCE = 20_000
# What a law says to be rarer than this is not seen in so few refits.
NEVER = 1e-6

EXACT = (
    "its answers by refits on random parts are those that its list of neighbours says, "
    f"and ties change at most {100 * MOST_TIED:g}% of them"
)
HELD = (
    "its own test, on refits of the whole, is worth what it is with the steps held, and no refit "
    f"answers what its law says never happens; ties change at most {100 * MOST_TIED:g}% of its "
    "answers"
)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The other records by their distance from each record, the nearest first: (N, M) each.

    Attributes
    ----------
    others
        Which they are.
    alike
        Whether they have the record's own label.
    tied
        The number of the run of equal distances that each is in.
    copy
        Whether they lie where the record does.
    """

    others: Rows
    alike: Mask
    tied: Rows
    copy: Mask

    @classmethod
    def of(cls, inner: Any, design: Any, y: Any, length: int) -> Nearest:
        """By the estimator's own search, with its own metric."""
        from sklearn.base import clone

        fresh = clone(inner).fit(design, y)
        distance, others = fresh.kneighbors(n_neighbors=length)
        square = np.asarray(distance, dtype=np.float64) ** 2
        place = (SAME_PLACE * float(np.median(distance))) ** 2
        least = place + SAME_DISTANCE * np.maximum(_rounded(fresh), square)
        tied = np.zeros(others.shape, dtype=np.intp)
        tied[:, 1:] = np.cumsum(np.diff(square, axis=1) > least[:, 1:], axis=1)
        alike = np.asarray(y)[others] == np.asarray(y)[:, None]
        copy = (tied == 0) & (square[:, :1] <= least[:, :1])
        return cls(others.astype(np.intp), alike, tied, copy)

    def some(self, records: Any) -> Nearest:
        """Of some records."""
        return Nearest(*(e[records] for e in (self.others, self.alike, self.tied, self.copy)))

    def first(self, *, alike: bool) -> Mask:
        """``alike`` where, of equally far ones, those of the own label come first, or last."""
        behind = ~self.alike if alike else self.alike
        order = np.argsort(2 * self.tied + behind, axis=1, kind="stable")
        return np.asarray(np.take_along_axis(self.alike, order, axis=1))


def _rounded(fresh: Any) -> float:
    """The squared length by which distances are rounded: of differences of products."""
    euclidean = fresh.effective_metric_ in ("euclidean", "sqeuclidean", "l2")
    if fresh._fit_method != "brute" or not euclidean:
        return 0.0
    X: Any = fresh._fit_X
    squares = X.multiply(X) if hasattr(X, "multiply") else np.asarray(X, dtype=np.float64) ** 2
    return float(np.max(squares.sum(axis=1)))


def count_law(alike: Mask, neighbours: int, fraction: float) -> FloatArray:
    """(N, k + 1) how many of the first k that are in have the own label.

    Of training sets in which at least k of the list are.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted.neighbours import count_law
    >>> count_law(np.array([[True, False]]), 1, 0.5).round(4)
    array([[0.3333, 0.6667]])
    """
    records, length = alike.shape
    if records > AT_ONCE:
        parts = np.array_split(alike, -(-records // AT_ONCE))
        return np.concatenate([count_law(part, neighbours, fraction) for part in parts])
    found = np.zeros((records, neighbours + 1))
    if neighbours == 0:
        return found + 1.0
    places = np.arange(length)
    own: Rows = np.cumsum(alike, axis=1) - alike
    other = places - own
    sizes = np.arange(length + 1)[:, None]
    chance = np.asarray(stats.binom.pmf(np.arange(neighbours), sizes, fraction))
    for count in range(neighbours):
        reached = chance[own, count] * chance[other, neighbours - 1 - count]
        found[:, count + 1] += np.where(alike, reached, 0.0).sum(axis=1)
        found[:, count] += np.where(alike, 0.0, reached).sum(axis=1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _uniform(near: Nearest, k: int, fraction: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The laws of the count with the record and without it, and how much ties can change."""
    without = count_law(near.alike, k, fraction)
    within = np.zeros_like(without)
    within[:, 1:] = count_law(near.alike, k - 1, fraction)
    changed = np.zeros(len(without))
    mixed = np.flatnonzero(_mixed(near))
    if mixed.size:
        ends = [near.some(mixed).first(alike=alike) for alike in (True, False)]
        for size in (k, k - 1):
            most, least = (count_law(end, size, fraction) @ np.arange(size + 1.0) for end in ends)
            # Every training set whose answer ties change moves the count by one at least.
            changed[mixed] = np.maximum(changed[mixed], most - least)
    # So many copies may be in that the record is not among the k nearest itself.
    others = (near.copy & ~near.alike).any(axis=1)
    changed += np.where(others, stats.binom.sf(k - 1, near.copy.sum(axis=1), fraction), 0.0)
    return within, without, changed


def _mixed(near: Nearest) -> Mask:
    """Whether equally far ones have different labels."""
    next_tied = np.diff(near.tied, axis=1) == 0
    return np.asarray((next_tied & (near.alike[:, 1:] != near.alike[:, :-1])).any(axis=1))


def _by_distance(
    near: Nearest, k: int, fraction: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whether the own label has all the weight: with the record, without it, and what ties do."""
    own, other = ((near.copy & alike).sum(axis=1) for alike in (near.alike, ~near.alike))
    copies = own + other
    # Copies come first, and those that are in decide as the record itself does.
    beyond, changed = np.empty(len(own)), np.zeros(len(own))
    for count in np.unique(copies):
        rows = np.flatnonzero(copies == count)
        beyond[rows] = count_law(near.alike[rows, count:], k, fraction)[:, -1]
    absent = 1.0 - fraction
    right = absent**other * (1.0 - absent**own + absent**own * beyond)
    within, without = (np.stack([1.0 - p, p], axis=1) for p in (absent**other, right))
    mixed = np.flatnonzero(_mixed(near))
    if mixed.size:
        most, least = (
            count_law(near.some(mixed).first(alike=alike), k, fraction)[:, -1]
            for alike in (True, False)
        )
        changed[mixed] = most - least
    # Beside copies of another label more than a yes or no is seen.
    return within, without, np.where(other > 0, 1.0, changed)


def answers_by_list(near: Nearest, inside: Mask, k: int, *, uniform: bool) -> FloatArray:
    """(N,) the scores by a training set: of the first k of each list that are in."""
    present = inside[near.others]
    place = np.cumsum(present, axis=1) + inside[:, None]
    chosen = present & (place <= k)
    count = (chosen & near.alike).sum(axis=1) + inside
    if uniform:
        return np.asarray(2.0 * (count / k) - 1.0)
    copies = chosen & near.copy
    decided = inside | copies.any(axis=1)
    wrong = np.where(decided, (copies & ~near.alike).any(axis=1), count < k)
    return np.where(wrong, -1.0, 1.0)


def neighbour_laws(
    model: PairedModel, *, question: str, fraction: float | None, observes: Observed | None
) -> FittedLaws:
    """Both laws of every record's score, by counting the neighbours that may be in."""
    inner, labels = model.whole.found.inner, np.asarray(model.whole.y)
    k, uniform = int(inner.n_neighbors), inner.weights != "distance"
    two = len(inner.classes_) == 2
    require_pool(model, question, observes, ("scores", "label") if two and uniform else ("scores",))
    share = require_fraction(0.5 if fraction is None else fraction, whole=False)
    size = model.records
    if stats.binom.cdf(k - 1, size - 1, share) > TOO_FEW:
        raise NoLawsError(
            f"a random part of the {size} records may hold fewer than the {k} neighbours that "
            f"{type(inner).__name__} needs; use fewer neighbours or more records."
        )
    lengths = np.arange(k, size)
    enough = np.asarray(stats.binom.cdf(k - 1, lengths, share)) <= BEYOND
    length = int(lengths[np.argmax(enough)]) if enough.any() else size - 1
    near = Nearest.of(inner, model.whole.found.design, labels, length)
    masses = _uniform(near, k, share) if uniform else _by_distance(near, k, share)
    values = 2.0 * (np.arange(k + 1) / k) - 1.0 if uniform else np.array([-1.0, 1.0])
    within, without = (Discrete(values, mass) for mass in masses[:2])
    seen = _Refits.of(model, near, share, uniform=uniform)
    trusted = (masses[2] <= MOST_TIED) & seen.agree(within, without)
    if observes == "label":
        right = on_top(values, model.targets[:, None])
        within, without = (
            Discrete([0.0, 1.0], np.stack([1.0 - p, p], axis=1))
            for p in (_chance(law, right) for law in (within, without))
        )
    moments = [_moments(law) for law in (within, without)]
    return FittedLaws(
        described=model,
        member_mean=moments[0][0],
        member_sd=moments[0][1],
        nonmember_mean=moments[1][0],
        nonmember_sd=moments[1][1],
        question="pool",
        fraction=share,
        observes=observes or "scores",
        trusted=trusted,
        looked=np.ones(size, dtype=np.bool_),
        check=HELD if seen.vary else EXACT,
        largest_share=np.full(size, np.nan),
        moved_by_refits=None,
        warnings=_warnings(model, masses[2], trusted),
        diagnostics=Diagnostics(0, 0.0, True, 0.0, 0.0, 0.0),
        provenance=Provenance(
            question="pool",
            adjacency="removed",
            observes=observes or "scores",
            random=("data",),
            attacker_knows_label=True,
            method="approximate" if model.whole.learned else "exact",
            source="docs/fitted.md",
            assumptions=_assumptions(model, seen, masses[2], share),
        ),
        atoms=(within, without),
    )


def on_top(scores: FloatArray, codes: FloatArray) -> Mask:
    """Whether the own label of two is answered: of two that are as often it is the first."""
    return np.asarray((scores > 0.0) | ((scores == 0.0) & (codes == 0.0)))


def _chance(law: Discrete, where: Mask) -> FloatArray:
    return np.asarray(np.clip(np.where(where, law.probabilities, 0.0).sum(axis=1), 0.0, 1.0))


def _moments(law: Discrete) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation."""
    mean = (law.probabilities * law.values).sum(axis=-1)
    square = (law.probabilities * (law.values - mean[:, None]) ** 2).sum(axis=-1)
    return np.asarray(mean), np.sqrt(square)


@dataclass(frozen=True, eq=False)
class _Refits:
    """What refits of the whole answer, and what the list of neighbours says: (R, N) each.

    ``vary`` is whether the answers may differ here and there: steps are held that learn a little
    of each record.  Settings that a search chooses jump.
    """

    inside: Mask
    seen: FloatArray
    said: FloatArray
    vary: bool

    @classmethod
    def of(cls, model: PairedModel, near: Nearest, fraction: float, *, uniform: bool) -> _Refits:
        whole, key = model.whole, Key(20267)
        numbers = float(np.prod(np.shape(whole.found.design)))
        count = CHECKED if numbers <= MOST_NUMBERS else FEWEST
        if whole.learned:
            count = next((each for most, each in CHECKED_LEARNED if numbers <= most), CHECKED)
            count = min(count, CHECKED_CHOSEN) if whole.chosen else count
        k = int(whole.found.inner.n_neighbors)
        inside, seen, said = [], [], []
        for number in range(count):
            part = key.child(number).generator().random(model.records) < fraction
            rows = np.flatnonzero(part)
            if len(rows) < k or whole.lacks_a_class(rows):
                continue
            inside.append(part)
            seen.append(whole.scores(rows))
            said.append(answers_by_list(near, part, k, uniform=uniform))
        if not inside:
            raise InputError(
                "A random part of the records lacks a class; use more records of the rarest one."
            )
        vary = bool(whole.learned) and not whole.chosen
        return cls(np.array(inside), np.array(seen), np.array(said), vary)

    @property
    def same(self) -> Mask:
        """(R, N) whether a refit says what the list says."""
        return np.asarray(np.abs(self.seen - self.said) < 1e-6)

    def agree(self, within: Discrete, without: Discrete) -> Mask:
        """(N,) whether the laws are those of the refits."""
        if not self.vary:
            return np.asarray(self.same.all(axis=0))
        # The place of an answer among the values, which lie evenly.
        last = within.values.shape[-1] - 1
        places = [
            np.rint(0.5 * (each + 1.0) * last).astype(np.intp) for each in (self.seen, self.said)
        ]
        yes = within.probabilities > without.probabilities
        records = np.arange(len(yes))
        gap = yes[records, places[0]].astype(np.float64) - yes[records, places[1]]
        off, error = np.zeros(len(yes)), np.zeros(len(yes))
        possible = np.ones(len(yes), dtype=np.bool_)
        for mask, law, sign in ((self.inside, within, 1.0), (~self.inside, without, -1.0)):
            count = np.maximum(mask.sum(axis=0), 1)
            mean = np.where(mask, gap, 0.0).sum(axis=0) / count
            square = np.where(mask, gap**2, 0.0).sum(axis=0) / count - mean**2
            off, error = off + sign * mean, error + square / count
            possible &= np.where(mask, law.probabilities[records, places[0]] > NEVER, True).all(0)
        return np.asarray(possible & (np.abs(off) <= COUNTED_OFF + ERRORS * np.sqrt(error)))


def _warnings(model: PairedModel, tied: FloatArray, trusted: Mask) -> tuple[str, ...]:
    share, by_ties = float(np.mean(~trusted)), float(np.mean(tied > MOST_TIED))
    if share <= LED_WARNED:
        return ()
    learned = ", ".join(model.whole.learned)
    why = []
    if by_ties > 0.0:
        why.append(
            f"for {100 * by_ties:.0f}% equally near records have different labels, and who is "
            "counted is chance"
        )
    if learned:
        why.append(f"what is learned besides ({learned}) changes their answers")
    told = "; ".join(why) or "refits answer otherwise than the list of neighbours says"
    return (f"The numbers of {100 * share:.0f}% of the records are not trusted: {told}.",)


def _assumptions(
    model: PairedModel, seen: _Refits, tied: FloatArray, fraction: float
) -> tuple[Assumption, ...]:
    refits = len(seen.inside)
    found = [
        *model.whole.found.assumptions,
        Assumption(
            f"each other record is in the training set with probability {fraction:g}",
            holds=None,
            evidence="not checked: the question assumes it",
        ),
        Assumption(
            "who is nearer is known",
            holds=bool(np.mean(tied > MOST_TIED) <= LED_WARNED),
            evidence=f"ties between different labels change more than {100 * MOST_TIED:g}% of the "
            f"answers of {100 * float(np.mean(tied > MOST_TIED)):.1f}% of the records",
        ),
    ]
    same = f"{100 * float(seen.same.mean()):.1f}% of the answers of {refits} refits are the list's"
    if model.whole.learned:
        learned = ", ".join(model.whole.learned)
        found.append(Assumption(f"what is learned besides ({learned}) stays as fitted", None, same))
    else:
        found.append(
            Assumption("a refit says what the list does", bool(seen.same.mean() > 0.99), same)
        )
    return tuple(found)
