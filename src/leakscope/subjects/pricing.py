"""What a change costs: the loss of released answers about records that were held out.

Folds hold whole units: a person's records never stand on both sides.  Records that are dropped are
so in the training part only; every record is predicted once per repetition.  Noise on the answers
is averaged over, not simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope._numerics.special_functions import chance_of_largest
from leakscope.errors import InputError
from leakscope.results.document import AssumptionEntry
from leakscope.settings.advise import AdviseSettings
from leakscope.single_fit.losses import LOSSES as FITTED_LOSSES
from leakscope.single_fit.losses import tweedie

Rows = NDArray[np.intp]

# What the error of each loss is called.
LOSSES = {
    "square": "squared error",
    "logistic": "log loss",
    "softmax": "log loss",
    "poisson": "Poisson deviance",
}


def loss_words(loss: str) -> str:
    """What the error of a loss is called."""
    return LOSSES.get(loss) or ("gamma deviance" if loss == GAMMA else "Tweedie deviance")


def has_log_link(loss: str) -> bool:
    """Whether an answer is the exponential of the score."""
    return loss not in LOSSES or loss == "poisson"


GAMMA = tweedie(2.0)

# Normal draws over which the log loss of several noised scores is averaged.
DRAWS = 64
NODES = 61


class Unavailable(InputError):
    """What this kind of model does not offer at all, such as a price."""


class HeldOut(Protocol):
    """Answers about records by models that were trained without them."""

    def released(self, noise: float = 0.0) -> ReleasedError:
        """The loss of answers with normal noise of this standard deviation on each."""


@dataclass(frozen=True)
class Terms:
    """How advice on a kind of model is worded and priced; every field may be left out.

    Attributes
    ----------
    loss, priced, whose
        What the error is called, in a sentence too, and whose accuracy goes with it.
    variance
        The outcome's, for R²; None where the error is no squared one.
    commonest
        The share of the commonest class, which a model that knows nothing gets right.
    unconfirmed
        Why it is not known whether a change meets the target.
    noise
        What to do, with noise of standard deviation ``{sd}``.
    noise_digits
        To so many digits noise is rounded up; None for as it was found.
    noise_shares
        Of the noise that is needed: where its curve is.
    batches
        So many batches of all units are dropped, one after the other.
    wide
        A note where the worst unit's interval passes the target up to ``{high}``.
    notes, warnings, assumptions
        Sentences about all that was tried, and what the advice rests on.
    """

    loss: str = "squared error"
    priced: str = "the loss on held-out records"
    whose: str = "its"
    variance: float | None = None
    commonest: float | None = None
    unconfirmed: str = "the numbers of a {unit} are not confirmed there"
    noise: str = "Add fresh normal noise of standard deviation {sd:.2g} to every answer"
    noise_digits: int | None = 2
    noise_shares: tuple[float, ...] = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.3, 1.7)
    batches: float = 200
    wide: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    assumptions: tuple[AssumptionEntry, ...] = ()


def commonest_share(labels: Any) -> float:
    """The share of the commonest class.

    Examples
    --------
    >>> from leakscope.subjects.pricing import commonest_share
    >>> commonest_share(["ill", "well", "well", "well"])
    0.75
    """
    counts = np.unique(np.asarray(labels), return_counts=True)[1]
    return float(counts.max() / counts.sum())


CONSTANT_TARGET = (
    "The target is the same for every record, so there is no variance to compare an error with and "
    "R2 has no value; errors and costs are in squared units of the target as used."
)

ASKED_ONCE = AssumptionEntry(
    statement="the attacker asks once, at the record's own point",
    holds=None,
    evidence="as in the audit; more answers average noise on them away",
)


def like_these(evidence: str) -> AssumptionEntry:
    """That other data would have the same price."""
    return AssumptionEntry(
        statement="the price of an option is that of data like these", holds=None, evidence=evidence
    )


@dataclass(frozen=True)
class Folds:
    """Which fold holds out each record, repetition by repetition, (R, n).

    Examples
    --------
    >>> from leakscope.subjects.pricing import Folds
    >>> folds = Folds.of([0, 0, 1, 2, 2, 3], count=2, repeats=1, random_state=0)
    >>> bool(folds.number[0, 0] == folds.number[0, 1])
    True
    """

    number: Rows
    count: int

    @classmethod
    def of(
        cls,
        labels: object,
        *,
        count: int = 5,
        repeats: int = 4,
        random_state: int | np.random.Generator | Key | None = None,
    ) -> Folds:
        """Random folds of whole units; ``labels`` has each record's unit."""
        units = np.asarray(labels, dtype=np.intp)
        total = int(units.max()) + 1
        if count < 2 or count > total:
            raise InputError(
                f"folds must be from 2 to the {total} units there are, but they are {count}."
            )
        if repeats < 1:
            raise InputError(f"repeats must be 1 or more, but it is {repeats}.")
        key, number = as_key(random_state), np.empty((repeats, len(units)), dtype=np.intp)
        for repeat in range(repeats):
            place = np.empty(total, dtype=np.intp)
            place[key.child(repeat).generator().permutation(total)] = np.arange(total) % count
            number[repeat] = place[units]
        return cls(number, count)

    def released(self, loss: FloatArray, right: FloatArray | None = None) -> ReleasedError:
        """Fold by fold, the mean of every record's loss, (R, n), and of being right."""
        sizes = np.array([np.bincount(row, minlength=self.count) for row in self.number])

        def means(values: FloatArray) -> FloatArray:
            sums = [
                np.bincount(row, weights=each, minlength=self.count)
                for row, each in zip(self.number, values, strict=True)
            ]
            return np.asarray(np.array(sums) / sizes)

        return ReleasedError(means(loss), sizes, None if right is None else means(right))


# Up to so many records: repetitions of the cross-validation.
REPEATS = ((1000, 4), (2500, 2))
FOLDS = 5


def folds_of(labels: Rows, settings: AdviseSettings, random_state: Any) -> Folds:
    """Folds as they are asked for, of units with these labels, or what suits so many records."""
    units, repeats = int(labels.max()) + 1, by_size(REPEATS, len(labels), 1)
    return Folds.of(
        labels,
        count=min(FOLDS, units) if settings.folds is None else settings.folds,
        repeats=repeats if settings.repeats is None else settings.repeats,
        random_state=random_state,
    )


def by_size(table: tuple[tuple[int, int], ...], count: int, otherwise: int) -> int:
    """What a table has for so many records."""
    return next((value for limit, value in table if count <= limit), otherwise)


@dataclass(frozen=True)
class ReleasedError:
    """The error of released answers, fold by fold.

    Attributes
    ----------
    by_fold
        (R, K) mean loss of each fold.
    sizes
        (R, K) records held out.
    accuracy_by_fold
        (R, K) share of right classes; None where the target is a quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.subjects.pricing import ReleasedError
    >>> found = ReleasedError(np.array([[1.0, 3.0]]), np.array([[5, 5]]))
    >>> found.error, found.cost(found)
    (2.0, (0.0, 0.0, None))
    """

    by_fold: FloatArray
    sizes: Rows
    accuracy_by_fold: FloatArray | None = None

    @property
    def error(self) -> float:
        """The mean loss over all records and repetitions."""
        return float(np.mean(self._by_repeat(self.by_fold)))

    @property
    def accuracy(self) -> float | None:
        """The share of right classes."""
        if self.accuracy_by_fold is None:
            return None
        return float(np.mean(self._by_repeat(self.accuracy_by_fold)))

    @property
    def stderr(self) -> float:
        """Of the error, over folds; repeating the split does not make it smaller."""
        return _over_folds(self.by_fold)

    def cost(self, own: ReleasedError) -> tuple[float, float, float | None]:
        """The error minus that of ``own`` on the same folds, with two standard errors.

        The first is over folds (other records would give another cost), the second over
        repetitions (another split of these records would); None where there is one repetition.
        """
        difference = self.by_fold - own.by_fold
        repeats = self._by_repeat(difference)
        several = len(repeats) > 1
        # What is the same in every fold, such as output noise, has no error but rounding.
        if np.ptp(difference) <= 1e-12 * np.max(np.abs(self.by_fold)):
            return float(np.mean(difference)), 0.0, 0.0 if several else None
        split = float(np.std(repeats, ddof=1) / np.sqrt(len(repeats))) if several else None
        return float(np.mean(repeats)), _over_folds(difference), split

    def _by_repeat(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.sum(values * self.sizes, axis=1) / np.sum(self.sizes, axis=1))


def _over_folds(values: FloatArray) -> float:
    variance = np.var(values, axis=1, ddof=1) / values.shape[1]
    return float(np.sqrt(np.mean(variance)))


@dataclass(frozen=True)
class HeldOutScores:
    """Scores (R, n) or (R, n, C) of records held out: predictions, log-odds or logits."""

    scores: FloatArray
    targets: FloatArray
    loss: str
    task: str
    folds: Folds

    def released(self, noise: float = 0.0) -> ReleasedError:
        """The loss of answers with normal noise of this standard deviation on every score."""
        if self.task != "classification":
            return self.folds.released(self._of_numbers(noise))
        codes = self.targets.astype(np.intp)
        if self.scores.ndim == 3:
            return self._of_classes(codes, noise)
        own = np.where(codes == 1, self.scores, -self.scores)
        right = special.ndtr(own / noise) if noise > 0.0 else (own > 0.0).astype(np.float64)
        if self.loss == "square":
            return self.folds.released((own - 1.0) ** 2 + noise**2, right)
        return self.folds.released(noised_log_loss(own, noise), right)

    def _of_numbers(self, noise: float) -> FloatArray:
        if not has_log_link(self.loss):
            return np.asarray((self.scores - self.targets) ** 2 + noise**2)
        if self.loss != "poisson":
            return _tweedie_deviance(self.loss, self.scores, self.targets, noise)
        mean = np.exp(np.minimum(self.scores + 0.5 * noise**2, 700.0))
        return np.asarray(
            2.0 * (special.xlogy(self.targets, self.targets) - self.targets * self.scores
                   - self.targets + mean)
        )  # fmt: skip

    def _of_classes(self, codes: Rows, noise: float) -> ReleasedError:
        if noise > 0.0:
            right = chance_of_largest(self.scores / noise, codes)
        else:
            right = (np.argmax(self.scores, axis=2) == codes).astype(np.float64)
        place = (slice(None), np.arange(len(codes)), codes)
        if self.loss == "square":
            aim = -np.ones(self.scores.shape[1:])
            aim[np.arange(len(codes)), codes] = 1.0
            loss = np.mean((self.scores - aim) ** 2, axis=2) + noise**2
            return self.folds.released(loss, right)
        if noise == 0.0:
            loss = special.logsumexp(self.scores, axis=2) - self.scores[place]
            return self.folds.released(loss, right)
        generator = as_key(0).generator()
        loss = np.zeros(self.scores.shape[:2])
        for _ in range(DRAWS // 2):
            draw = noise * generator.standard_normal(self.scores.shape[1:])
            for sign in (1.0, -1.0):
                loss += special.logsumexp(self.scores + sign * draw, axis=2)
        # The own score's noise has mean zero.
        return self.folds.released(loss / DRAWS - self.scores[place], right)


def _tweedie_deviance(loss: str, z: FloatArray, y: FloatArray, noise: float) -> FloatArray:
    """2 (E l(z + noise e) - l(log y)) over a standard normal e, of a Tweedie loss l."""
    of = FITTED_LOSSES[loss]
    assert of.power is not None
    rise, fall = 2.0 - of.power, of.power - 1.0
    first = z if rise == 0.0 else np.exp(rise * z + 0.5 * (rise * noise) ** 2) / rise
    second = y * np.exp(np.minimum(-fall * z + 0.5 * (fall * noise) ** 2, 700.0)) / fall
    at_best = of.value(np.log(np.where(y > 0.0, y, 1.0)), y)
    return np.asarray(2.0 * (first + second - np.where(y > 0.0, at_best, 0.0)))


def noised_log_loss(margin: FloatArray, noise: float) -> FloatArray:
    """E log(1 + exp(-(m + noise e))) over a standard normal e.

    Up to a noise of 1 by Gauss-Hermite.  Above that log(1 + exp(x)) = max(x, 0) + log(1 +
    exp(-|x|)), the first part in closed form and the second, which is narrow, by Gauss-Laguerre.
    """
    if noise <= 1.0:
        nodes, weights = special.roots_hermitenorm(NODES if noise > 0.0 else 1)
        parts = [
            w * np.logaddexp(0.0, -(margin + noise * x))
            for x, w in zip(nodes, weights, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0) / weights.sum())
    ratio = -margin / noise
    density = np.exp(-0.5 * ratio**2) / np.sqrt(2.0 * np.pi)
    total = -margin * special.ndtr(ratio) + noise * density
    nodes, weights = special.roots_laguerre(NODES)
    for x, w in zip(nodes, weights, strict=True):
        near = np.exp(-0.5 * ((x + margin) / noise) ** 2) + np.exp(
            -0.5 * ((x - margin) / noise) ** 2
        )
        total += w * np.exp(x) * np.log1p(np.exp(-x)) * near / (noise * np.sqrt(2.0 * np.pi))
    return np.asarray(total)
