"""Records added to a dataset one at a time, and what gives each away (lood Fig. 1(a) and 6).

D has n records; S joins it alone, and is asked for at its own point.  The laws of f(S) with and
without it are those of ``lood.all_records`` over D and S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope import kernels, lood, measures
from leakscope.laws import Empirical, Key, LawPair, Normal
from leakscope.verifying import Interval, correlation
from papers.arrays import FloatArray
from papers.figure import Order
from papers.lood_images import Images, load_images

KNOBS = {"noise_variance": 0.01, "records": 1000}
QUICK = {"records": 120}

# The paper's attack is run on so many samples from each of the two laws.
DRAWS = 5000


@dataclass(frozen=True)
class Newcomers:
    """What each added record gives away.

    Parameters
    ----------
    kl, mean_distance
        (m,) at its own point, Def. C.3 and C.1.
    auc
        (m,) of the best attack, from the two laws.
    drawn, low, high
        (m,) the same from draws of them, with its 95% interval.
    """

    kl: FloatArray
    mean_distance: FloatArray
    auc: FloatArray
    drawn: FloatArray
    low: FloatArray
    high: FloatArray

    def joined(self, other: Newcomers) -> Newcomers:
        """Both lists as one."""
        return Newcomers(
            *(np.concatenate([vars(self)[name], vars(other)[name]]) for name in vars(self))
        )


def newcomers(
    kernel: kernels.Kernel,
    X: FloatArray,
    y: FloatArray,
    S: FloatArray,
    labels: FloatArray,
    key: Key,
    *,
    noise_variance: float,
    draws: int = DRAWS,
) -> Newcomers:
    """The laws of each row of S, added alone to (X, y), at its own point."""
    matrix = np.empty((len(X) + 1, len(X) + 1))
    matrix[:-1, :-1] = kernel(X)
    cross, own = kernel(X, S), kernel.diagonal(S)
    shift, with_it, without, kl, distance = [], [], [], [], []
    for column, prior, label in zip(cross.T, own, labels, strict=True):
        matrix[-1, :-1] = matrix[:-1, -1] = column
        matrix[-1, -1] = prior
        laws = lood.all_records(matrix, np.append(y, label), noise_variance=noise_variance)
        shift.append(laws.mean_shift[-1])
        with_it.append(np.sqrt(laws.variance_with[-1]))
        without.append(np.sqrt(laws.variance_without[-1]))
        kl.append(laws.kl[-1])
        distance.append(laws.mean_distance[-1])
    pair = LawPair(Normal(shift, with_it), Normal(np.zeros(len(S)), without))
    drawn = drawn_auc(pair, key, draws)
    return Newcomers(np.array(kl), np.array(distance), np.asarray(measures.auc(pair)), *drawn)


def drawn_auc(
    pair: LawPair, key: Key, draws: int = DRAWS
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """AUC of the likelihood-ratio test from draws of both laws, and its interval: (m,) each."""
    scores = []
    for label, law in enumerate((pair.member, pair.nonmember)):
        drawn = law.sample(key.child(label), draws).T
        scores.append((pair.member.log_density(drawn) - pair.nonmember.log_density(drawn)).T)
    found = measures.auc(LawPair(Empirical(scores[0]), Empirical(scores[1])))
    assert isinstance(found, measures.Estimate)
    return np.asarray(found.value), np.asarray(found.low), np.asarray(found.high)


@dataclass(frozen=True)
class Pool:
    """A dataset, and two kinds of records to add to it."""

    images: Images
    X: FloatArray
    y: FloatArray
    added: dict[str, tuple[FloatArray, FloatArray]]


def pool(order: Order, key: Key) -> Pool:
    """D of 1,000 pictures and 100 of each kind to add, or 120 and 40 where it is to be quick."""
    size, count = order.whole("records"), 100 if order.full else 40
    images = load_images(order.data, size + count, key.child(0), ten_classes=True)
    size = len(images.y) - count
    generator = key.child(1).generator()
    uniform = generator.uniform(size=(count, images.X.shape[1]))
    labels = generator.permutation(np.repeat([-0.5, 0.5], -(-count // 2)))[:count]
    added = {
        "pictures": (images.X[size:], images.y[size:]),
        "uniform pixels": (uniform, labels),
    }
    return Pool(images, images.X[:size], images.y[:size], added)


def kernels_of(X: FloatArray) -> dict[str, kernels.Kernel]:
    """The two kernels of Fig. 6."""
    return {"RBF": kernels.rbf().resolved(X), "NNGP, depth 1": kernels.nngp(depth=1)}


def rank_correlation(x: FloatArray, y: FloatArray) -> Interval:
    """Spearman's, with its 95% interval."""
    return correlation(x, y, ranks=True)
