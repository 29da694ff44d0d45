"""Complementary random halves: models 2k and 2k + 1 share no record, and together have them all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.keys import Key


def half(
    labels: NDArray[Any] | None,
    records: int,
    number: int,
    seed: int,
    codes: NDArray[np.intp] | None = None,
) -> NDArray[np.bool_]:
    """(records,) which records the model of this number is trained on.

    It follows from the seed and the number alone, so that four models and eight begin with the
    same four.

    Parameters
    ----------
    labels
        Classes, which are halved one by one, so that no half lacks one that has two records; None
        where the target is a quantity.
    records, number, seed
        How many records there are; which model; and the run's seed.
    codes
        The number of each record's group: whole groups are halved then, of each set of classes
        that a group has every second one.

    Examples
    --------
    >>> from leakscope.halves.draw import half
    >>> first, second = (half(None, 6, number, seed=0) for number in (0, 1))
    >>> int(first.sum()), bool((first != second).all())
    (3, True)
    """
    rng = Key(seed).child(number // 2).generator()
    count = records
    if codes is not None:
        count = int(codes.max()) + 1
        labels = None if labels is None else _classes_of(labels, codes, count)
    order = rng.permutation(count)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    inside = np.zeros(count, dtype=np.bool_)
    # Every second one in this order; where the count is odd, chance says who has more.
    inside[order[int(rng.integers(2)) :: 2]] = True
    inside = inside if number % 2 == 0 else ~inside
    return inside if codes is None else inside[codes]


def _classes_of(labels: NDArray[Any], codes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """A number for each group, the same where the groups' records have the same classes."""
    classes = np.unique(labels, return_inverse=True)[1].reshape(-1)
    has = np.zeros((count, int(classes.max()) + 1), dtype=np.bool_)
    has[codes, classes] = True
    return np.unique(has, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def summed_by(codes: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the records of each group, along the last axis."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    return np.asarray(np.add.reduceat(values[..., order], starts, axis=-1))


def kinds_of(X: Any) -> NDArray[np.intp]:
    """(N,) a number for each record, the same where the features are the same."""
    if hasattr(X, "iloc"):
        from pandas.util import hash_pandas_object

        keys = hash_pandas_object(X, index=False).to_numpy()
    elif hasattr(X, "tocsr"):
        rows = X.tocsr()
        rows.sort_indices()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        keys = np.array(
            [hash(rows.indices[a:b].tobytes() + rows.data[a:b].tobytes()) for a, b in ends]
        )
    else:
        keys = np.array([hash(row.tobytes()) for row in np.ascontiguousarray(X)])
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.intp)
