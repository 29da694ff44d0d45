"""Classifiers made of sums over classes: exact answers with one record more, or one fewer.

Gaussian naive Bayes, linear and quadratic discriminant analysis and the nearest centroid are known
by each class's count n, mean m and scatter S = sum (x - m)(x - m)'.  Where a record x of the class
comes (s = +1) or goes (s = -1), n' = n + s, m' = m + s u / n' with u = x - m, and
S' = S + s (n / n') u u'.  Naive Bayes of counts is known by the sums of its features, which move by
s x.  Nothing is held, and nothing is approximated: what a refit says of the record follows from
these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.products import row_products
from leakscope.fitted.problem import NoLawsError
from leakscope.fitted.refits import Labels
from leakscope.single_fit.losses import label_log_odds

# Scatter with less than this share in a direction has no inverse that can be moved by one record.
NO_SCATTER = 1e-10
# scikit-learn adds at least so much to a count where it is not told otherwise.
LEAST_ADDED = 1e-10
# Below this share of the largest a sum of counts or squares is rounding.
NO_COUNT = 1e-13
# Scatter of scaled features in a direction: below the first there is none, and between the two
# scikit-learn may keep the direction with one record and drop it without; so it may within this
# factor of where it drops directions, the square of its ``tol``.  Directions between the classes
# are dropped by ``tol`` as well, which matters where it is larger than this.
NO_SHARE, SURE_SHARE, NEAR_TOL, MOST_TOL = 1e-12, 1e-7, 10.0, 1e-3
# A record that takes more of the scatter's determinant with it is refitted: digits would be lost.
LEAST_LEFT = 1e-3
# Of each half so many records are refitted at the most, where no shorter way leads to any answer,
# and each with so many products.
MOST_REFITTED, MOST_PRODUCTS = 100, 2e5
# A feature whose scatter is a smaller share of its squares is constant but for rounding.
ROUNDING = 1e-24


@dataclass(frozen=True, eq=False)
class _Classes:
    """What the classes of a training set are, and what each record changes of its own one.

    Attributes
    ----------
    codes, sign
        (N,) each record's class, and +1 where it is put in, -1 where it is taken out.
    counts, means
        (C,) and (C, d) of the training set.
    after
        (N,) how many its own class has afterwards.
    away, ratio
        (N, d) u = x - m of its own class, and (N,) n / n'.
    priors
        (N, C) the classes' shares afterwards.
    """

    X: FloatArray
    codes: npt.NDArray[np.intp]
    inside: npt.NDArray[np.bool_]
    sign: FloatArray
    counts: FloatArray
    means: FloatArray
    after: FloatArray
    away: FloatArray
    ratio: FloatArray
    priors: FloatArray

    @classmethod
    def of(cls, inner: Any, X: FloatArray, y: Labels, inside: Any, priors: Any) -> _Classes:
        """Of a training set; ``priors`` are those that were given, None where they are shares."""
        codes = np.searchsorted(inner.classes_, y)
        size = len(inner.classes_)
        counts = np.bincount(codes[inside], minlength=size).astype(np.float64)
        totals = np.zeros((size, X.shape[1]))
        np.add.at(totals, codes[inside], X[inside])
        means = totals / counts[:, None]
        sign = np.where(inside, -1.0, 1.0)
        after = counts[codes] + sign
        # A class of this one record is gone without it, and its score is not a number.
        ratio = counts[codes] / np.where(after > 0.0, after, np.nan)
        shares = np.tile(counts, (len(y), 1))
        shares[np.arange(len(y)), codes] = after
        chances = shares / shares.sum(axis=1, keepdims=True)
        if priors is not None:
            chances = np.tile(np.asarray(priors, dtype=np.float64), (len(y), 1))
        return cls(X, codes, inside, sign, counts, means, after, X - means[codes], ratio, chances)

    def along(self, basis: FloatArray) -> _Classes:
        """The same in the directions of a basis, (d, r)."""
        X, means, away = (part @ basis for part in (self.X, self.means, self.away))
        return replace(self, X=X, means=means, away=away)

    @property
    def rows(self) -> Any:
        """Every record's number."""
        return np.arange(len(self.codes))

    def scatter(self, number: int) -> FloatArray:
        """(d, d) of one class."""
        own = (self.X - self.means[number])[self.inside & (self.codes == number)]
        return row_products(own.T)

    def squares(self) -> FloatArray:
        """(C, d) the diagonals of the scatters."""
        found = np.zeros_like(self.means)
        np.add.at(found, self.codes[self.inside], self.away[self.inside] ** 2)
        return found

    def moved_squares(self) -> FloatArray:
        """(N, d) how much a record changes that of its own class."""
        return np.asarray((self.sign * self.ratio)[:, None] * self.away**2)

    def from_means(self, number: int) -> FloatArray:
        """(N, d) x - m of a class as it is afterwards: m' of the own one."""
        own = np.equal(self.codes, number)[:, None]
        return np.where(own, self.away * self.ratio[:, None], self.X - self.means[number])

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Of the own label, from all classes' log densities times shares; none of a class gone."""
        with np.errstate(divide="ignore"):
            whole = scores + np.log(self.priors)
        good = np.asarray(np.isfinite(whole).all(axis=1))
        return np.where(
            good, label_log_odds(np.where(good[:, None], whole, 0.0), self.codes), np.nan
        )


def naive_bayes(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Gaussian naive Bayes; what is added to every variance is a share of the largest one."""
    found = _Classes.of(inner, X, y, inside, inner.priors)
    size, total = float(np.count_nonzero(inside)), X[inside]
    centre, after = total.mean(axis=0), size + found.sign
    u = X - centre
    spread = np.sum((total - centre) ** 2, axis=0) + (found.sign * size / after)[:, None] * u**2
    added = inner.var_smoothing * np.max(spread / after[:, None], axis=1)
    squares = found.squares()
    scores = np.empty((len(y), len(found.counts)))
    for number, count in enumerate(found.counts):
        own = found.codes == number
        sums = np.where(own[:, None], squares[number] + found.moved_squares(), squares[number])
        counts = np.where(own, found.after, count)
        variance = sums / np.where(counts > 0.0, counts, np.nan)[:, None] + added[:, None]
        away = found.from_means(number)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores[:, number] = -0.5 * np.sum(np.log(variance) + away**2 / variance, axis=1)
    return found.log_odds(scores)


def _of_counts(inner: Any, X: FloatArray, y: Labels, inside: Any) -> tuple[_Classes, FloatArray]:
    """The classes of a naive Bayes of counts, and what is added to each count, (d,)."""
    shares = inner.class_prior
    if shares is None and not inner.fit_prior:
        shares = np.full(len(inner.classes_), 1.0 / len(inner.classes_))
    added = np.asarray(inner.alpha, dtype=np.float64)
    if not inner.force_alpha:
        added = np.maximum(added, LEAST_ADDED)
    found = _Classes.of(inner, X, y, inside, shares)
    return found, np.broadcast_to(added, (X.shape[1],))


def multinomial(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Multinomial naive Bayes: shares of a class's counts; a record's own class is moved."""
    found, added = _of_counts(inner, X, y, inside)
    counts = found.means * found.counts[:, None]
    scores = np.empty((len(y), len(counts)))
    for number, count in enumerate(counts):
        own = np.where(found.codes == number, found.sign, 0.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = _counted(count + own * X) + added
            logs = np.log(moved) - np.log(moved.sum(axis=1, keepdims=True))
            scores[:, number] = np.sum(X * logs, axis=1)
    return found.log_odds(scores)


def complement(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Complement naive Bayes: the counts of all other classes, which a record's own has not."""
    found, added = _of_counts(inner, X, y, inside)
    counts = found.means * found.counts[:, None]
    scores = np.empty((len(y), len(counts)))
    for number, count in enumerate(counts):
        other = np.where(found.codes == number, 0.0, found.sign)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = _counted(counts.sum(axis=0) - count + other * X) + added
            logs = np.log(moved / moved.sum(axis=1, keepdims=True))
            if inner.norm:
                logs /= -logs.sum(axis=1, keepdims=True)
            scores[:, number] = -np.sum(X * logs, axis=1)
    # It has no shares of the classes; without a class it has another number of them.
    scores = np.where((found.after > 0.0)[:, None], scores, np.nan)
    return replace(found, priors=np.ones_like(scores)).log_odds(scores)


def bernoulli(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Bernoulli naive Bayes: how many of a class have each feature."""
    has = X if inner.binarize is None else np.greater(X, inner.binarize).astype(np.float64)
    found, added = _of_counts(inner, has, y, inside)
    scores = np.empty((len(y), len(found.counts)))
    for number, count in enumerate(found.counts):
        own = np.where(found.codes == number, found.sign, 0.0)
        some = _counted(found.means[number] * count + own[:, None] * has) + added
        chance = some / ((count + own)[:, None] + 2.0 * added)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(has > 0.0, has * np.log(chance), 0.0)
            logs += np.where(has < 1.0, (1.0 - has) * np.log1p(-chance), 0.0)
        scores[:, number] = logs.sum(axis=1)
    return found.log_odds(scores)


def categorical(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Categorical naive Bayes: how many of a class have the record's own category."""
    found, added = _of_counts(inner, X, y, inside)
    codes, sizes = X.astype(np.intp), np.asarray(inner.n_categories_)
    scores = np.zeros((len(y), len(found.counts)))
    for column in range(X.shape[1]):
        alike = np.zeros((len(found.counts), int(sizes[column])))
        np.add.at(alike, (found.codes[inside], codes[inside, column]), 1.0)
        for number, count in enumerate(found.counts):
            own = np.where(found.codes == number, found.sign, 0.0)
            same = alike[number, codes[:, column]] + own + added[column]
            with np.errstate(divide="ignore", invalid="ignore"):
                scores[:, number] += np.log(same / (count + own + sizes[column] * added[column]))
    return found.log_odds(scores)


def _counted(sums: FloatArray) -> FloatArray:
    """Sums less a record's own share: none is what rounding leaves of it."""
    return np.where(sums < NO_COUNT * np.max(sums, initial=0.0), 0.0, sums)


def categorical_refusal(inner: Any) -> str | None:
    """How many categories there are must not follow from the records."""
    told = inner.min_categories
    if told is None or np.any(np.asarray(getattr(inner, "n_categories_", 0)) > np.asarray(told)):
        return (
            f"{type(inner).__name__} learns from the records how many categories there are; give "
            "min_categories"
        )
    return None


def nearest_centroid(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """The nearest centroid by distances in units of the spread within the classes."""
    given = None if inner.priors == "empirical" else inner.class_prior_
    found = _Classes.of(inner, X, y, inside, given)
    before = found.squares().sum(axis=0)
    _require_no_rounding(inner, X, inside, before)
    within = before + found.moved_squares()
    # A feature that is constant within the classes is not scaled, but for rounding.
    last = np.any((within <= NO_COUNT * before) & (before > 0.0), axis=1)
    within = np.where(within <= NO_COUNT * before, 0.0, within)
    variance = within / (np.count_nonzero(inside) + found.sign - len(found.counts))[:, None]
    variance = np.where(variance > 0.0, variance, 1.0)
    scores = np.stack(
        [-np.sum(found.from_means(c) ** 2 / variance, axis=1) for c in range(len(found.counts))],
        axis=1,
    )
    scores += 2.0 * np.log(found.priors)
    answers = scores[found.rows, found.codes]
    if scores.shape[1] == 2:
        answers = answers - scores[found.rows, 1 - found.codes]
    again = np.flatnonzero(last)
    answers[again] = _refits(inner, X, y, inside, again)
    return np.asarray(answers)


def linear_discriminant(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Linear discriminant analysis: one scatter for all classes, moved by one record.

    In directions with next to no scatter scikit-learn's usual solver sees nothing; a record that
    brings scatter into one, or takes the last of it, is refitted.
    """
    found = _Classes.of(inner, X, y, inside, inner.priors)
    classes = len(found.counts)
    within = np.sum([found.scatter(number) for number in range(classes)], axis=0)
    # The first class's coefficients beside the last's.
    theirs = inner.coef_[0] - inner.coef_[-1] if len(inner.coef_) > 1 else -inner.coef_[0]
    # Whom the directions do not hold for, and the least that a record may leave of them.
    bringing, least = np.zeros(len(y), dtype=np.bool_), 0.0
    if inner.solver == "svd":
        _require_no_rounding(inner, X, inside, np.diagonal(within))
        scaled = _Directions.of(within, float(inner.tol))
        if scaled is None:
            return _refits(inner, X, y, inside)
        least = scaled.sure / min(scaled.least, 1.0)
        # An outlier widens its features, so that of two that are alike less is their own.
        bringing = ~inside & (1.0 / (1.0 + (scaled.units(found.away) ** 2).max(axis=1)) < least)
        if scaled.basis.shape[1] < X.shape[1]:
            bringing |= ~inside & scaled.brought(found.away)
            theirs = (scaled.size * theirs) @ scaled.basis
            found, within = found.along(scaled.turn), scaled.turn.T @ within @ scaled.turn
    elif _inverse(within) is None:
        return _refits(inner, X, y, inside)
    inverse = np.asarray(linalg.inv(within))
    records = float(np.count_nonzero(inside))
    scale = records + found.sign - _fewer(theirs, found, inverse, records)
    pull, u = found.sign * found.ratio, found.away
    turned = u @ inverse
    # By what factor the scatter's determinant changes: no direction loses more than this.
    slack = 1.0 + pull * np.sum(turned * u, axis=1)
    scores = np.empty((len(y), classes))
    for number in range(classes):
        away = found.from_means(number)
        square = np.sum((away @ inverse) * away, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            square -= pull * np.sum(turned * away, axis=1) ** 2 / slack
        scores[:, number] = -0.5 * scale * square
    answers = found.log_odds(scores)
    again = np.flatnonzero(bringing | (slack < max(least, LEAST_LEFT)))
    answers[again] = _refits(inner, X, y, inside, again)
    return answers


@dataclass(frozen=True, eq=False)
class _Directions:
    """Where the scatter of a training set lies.

    Attributes
    ----------
    size
        (d,) the root of each feature's scatter.
    basis
        (d, r) the directions that have some, of features scaled by it.
    none, sure
        Scatter below the first is none in any training set with one record more or fewer, above
        the second is some.
    least
        The least scatter of the directions.
    """

    size: FloatArray
    basis: FloatArray
    none: float
    sure: float
    least: float

    @classmethod
    def of(cls, within: FloatArray, tol: float) -> _Directions | None:
        """None where a direction has so little that one record decides whether it is seen."""
        none, sure = min(NO_SHARE, tol**2 / NEAR_TOL), max(SURE_SHARE, NEAR_TOL * tol**2)
        if tol > MOST_TOL:
            return None
        size = np.sqrt(np.diagonal(within))
        unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
        values, vectors = np.linalg.eigh(within * unit * unit[:, None])
        if np.any((values > none) & (values < sure)):
            return None
        kept = values >= sure
        return cls(size, vectors[:, kept], none, sure, float(values[kept].min(initial=np.inf)))

    @property
    def turn(self) -> FloatArray:
        """(d, r) from the features to the directions."""
        return np.asarray(self.units(np.eye(len(self.size))) @ self.basis)

    def units(self, away: FloatArray) -> FloatArray:
        """(N, d) scaled as the directions are."""
        return np.asarray(away / np.where(self.size > 0.0, self.size, np.inf))

    def brought(self, away: FloatArray) -> npt.NDArray[np.bool_]:
        """(N,) whether a record this far from its class's mean has scatter in another direction."""
        units = self.units(away)
        square = np.sum(units**2, axis=1)
        lost = square - np.sum((units @ self.basis) ** 2, axis=1)
        constant = np.any(away[:, self.size == 0.0] != 0.0, axis=1)
        return np.asarray(constant | (lost > self.none * (1.0 + square)))


def _require_no_rounding(inner: Any, X: FloatArray, inside: Any, squares: FloatArray) -> None:
    """Pass on to models what is divided by the rounding of a feature's mean."""
    whole = np.sum(X[inside] ** 2, axis=0)
    rounded = np.flatnonzero((squares > 0.0) & (squares <= ROUNDING * whole))
    if rounded.size:
        raise NoLawsError(
            f"feature {rounded[0] + 1} of what reaches {type(inner).__name__} is constant within "
            "the classes but for rounding, and is divided by that rounding; leave it out."
        )


def _fewer(theirs: FloatArray, found: _Classes, inverse: FloatArray, records: float) -> float:
    """By how much its divisor lies below the records: 0, or in some versions the classes.

    ``theirs`` is the difference of two classes' coefficients, which the divisor alone scales.
    """
    classes = len(found.counts)
    known = (found.means[0] - found.means[-1]) @ inverse
    scale = float(known @ theirs / (known @ known))
    return 0.0 if abs(scale - records) < abs(scale - (records - classes)) else float(classes)


def quadratic_discriminant(inner: Any, X: FloatArray, y: Labels, inside: Any) -> FloatArray:
    """Quadratic discriminant analysis: each class's own scatter, ``reg_param`` towards one."""
    found = _Classes.of(inner, X, y, inside, inner.priors)
    share, width = float(inner.reg_param), X.shape[1]
    # What its divisor lies below the records of a class: 0, or in some versions 1.
    sizes = float(np.sum(inner.scalings_[0])) - share * width
    divisor = (1.0 - share) * float(np.trace(found.scatter(0))) / max(sizes, 1e-300)
    fewer = 0.0 if abs(divisor - found.counts[0]) < 0.5 else 1.0
    scores = np.empty((len(y), len(found.counts)))
    for number, count in enumerate(found.counts):
        scatter = found.scatter(number)
        for sign in (-1.0, 0.0, 1.0):
            own = (found.codes == number) & (found.sign == sign)
            rows = np.flatnonzero(own if sign else found.codes != number)
            free = count + sign - fewer
            if not rows.size or free <= 0.0:
                scores[rows, number] = np.nan
                continue
            covariance = (1.0 - share) * scatter / free + share * np.eye(width)
            inverse = _inverse(covariance)
            if inverse is None:
                return _refits(inner, X, y, inside)
            log_size = np.linalg.slogdet(covariance)[1]
            away = found.from_means(number)[rows]
            square = np.sum((away @ inverse) * away, axis=1)
            change = np.zeros(len(rows))
            if sign:
                pull, u = sign * found.ratio[rows] * (1.0 - share) / free, found.away[rows]
                turned = u @ inverse
                slack = 1.0 + pull * np.sum(turned * u, axis=1)
                square -= pull * np.sum(turned * away, axis=1) ** 2 / slack
                change = np.log(np.maximum(slack, 0.0) + 1e-300)
            scores[rows, number] = -0.5 * (square + log_size + change)
    return found.log_odds(scores)


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """The inverse of a positive definite matrix; None where it has none."""
    size = np.sqrt(np.diagonal(matrix))
    if np.any(size == 0.0):
        return None
    values = np.linalg.eigvalsh(matrix / size / size[:, None])
    if values[0] <= NO_SCATTER * values[-1]:
        return None
    return np.asarray(linalg.inv(matrix))


def _refits(
    inner: Any, X: FloatArray, y: Labels, inside: Any, rows: npt.NDArray[np.intp] | None = None
) -> FloatArray:
    """Answers by refits, of all records unless some are named: where there is no shorter way."""
    from sklearn.base import clone

    from leakscope.fitted.refits import score_records

    asked = np.arange(len(y)) if rows is None else rows
    records, width = np.count_nonzero(inside), X.shape[1]
    products = float(records * width * min(records, width))
    if len(asked) > MOST_REFITTED or (rows is None and products > MOST_PRODUCTS):
        raise NoLawsError(
            f"the features that reach {type(inner).__name__} nearly repeat each other, and to fit "
            f"it again for each of {len(asked)} records takes too long."
        )
    found = np.full(len(asked), np.nan)
    for place, row in enumerate(asked.tolist()):
        turned = inside.copy()
        turned[row] = not turned[row]
        if len(np.unique(y[turned])) == len(inner.classes_):
            again = clone(inner).fit(X[turned], y[turned])
            found[place] = score_records(again, X[[row]], y[[row]])[0]
    return found


def discriminant_refusal(inner: Any) -> str | None:
    """Why a discriminant analysis cannot be taken; None where it can."""
    # Before 1.8 scikit-learn's quadratic one had neither.
    learned = (getattr(inner, name, None) for name in ("shrinkage", "covariance_estimator"))
    if any(one is not None for one in learned):
        return f"{type(inner).__name__} with shrinkage learns more than sums over classes"
    return None


def centroid_refusal(inner: Any) -> str | None:
    """Why a nearest centroid cannot be taken; None where it can."""
    if inner.metric != "euclidean" or inner.shrink_threshold or not hasattr(inner, "priors"):
        return (
            f"{type(inner).__name__} by medians or with shrunken centroids is no sum over classes"
        )
    return None


def neighbours_refusal(inner: Any) -> str | None:
    """Why nearest neighbours cannot be taken; None where they can."""
    name = type(inner).__name__
    if inner.metric == "precomputed":
        return f"{name} with given distances has no records of its own"
    if inner.weights not in (None, "uniform", "distance"):
        return f"{name} with weights of its own answers with numbers of any kind"
    return None
