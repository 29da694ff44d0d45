"""Which records to check: some from every stratum of predicted leakage, not only the top."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.keys import Key, as_key
from leakscope.data import RecordId
from leakscope.errors import InputError


def rows_to_check(
    names: Sequence[RecordId],
    predicted: ArrayLike,
    count: int,
    wanted: Sequence[RecordId] = (),
    *,
    random_state: int | np.random.Generator | Key | None = None,
) -> list[int]:
    """Rows of the records named in ``wanted``, or of ``count`` that :func:`choose_records` draws.

    Examples
    --------
    >>> from leakscope.verifying import rows_to_check
    >>> rows_to_check(("ann", "bob", "cid"), [0.1, 0.2, 0.3], 2, ["cid"])
    [2]
    """
    if not wanted:
        return [int(row) for row in choose_records(predicted, count, random_state=random_state)]
    places = {str(name): row for row, name in enumerate(names)}
    for name in wanted:
        if str(name) not in places:
            raise InputError(
                f"the result has no record {name!r}; the first of {len(names)} is {names[0]!r}."
            )
    return list(dict.fromkeys(places[str(name)] for name in wanted))


def choose_records(
    predicted: ArrayLike, count: int, *, random_state: int | np.random.Generator | Key | None = None
) -> NDArray[np.intp]:
    """Rows of ``count`` records, one drawn at random from each of ``count`` strata of leakage.

    The records are sorted by predicted leakage and cut into strata of equal size (to within one),
    so that the whole range is checked and a correlation is not one of the extremes only.

    Parameters
    ----------
    predicted
        Predicted leakage of every record, finite.
    count
        How many to choose; all where there are no more.
    random_state
        Seed of the draw.

    Examples
    --------
    >>> from leakscope.verifying import choose_records
    >>> choose_records([0.1, 0.9, 0.5, 0.2, 0.7, 0.3], 3, random_state=0).tolist()
    [0, 1, 5]
    """
    leakage = np.asarray(predicted, dtype=np.float64)
    if leakage.ndim != 1 or not len(leakage):
        raise InputError(f"predicted leakage must be one number per record, not {leakage.shape}.")
    if not np.isfinite(leakage).all():
        row = int(np.argmax(~np.isfinite(leakage)))
        raise InputError(f"the predicted leakage of row {row} is {leakage[row]}.")
    if count < 1:
        raise InputError(f"the number of records to check must be 1 or more, but it is {count}.")
    if count >= len(leakage):
        return np.arange(len(leakage))
    generator = as_key(random_state).generator()
    strata = np.array_split(np.argsort(leakage, kind="stable"), count)
    return np.sort([int(generator.choice(stratum)) for stratum in strata])
