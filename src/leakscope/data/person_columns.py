"""Columns that look like the names of people who have several rows each.

Such a column is no feature, and its rows leave together; docs/howto/groups.md says what is caught
and what is missed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.columns import (
    MOST_CATEGORIES,
    PERSON_REMEDY,
    holds_dates,
)
from leakscope.data.datasets import Dataset
from leakscope.errors import InputError, Where

# More rows than this of one value are a category's rather than a person's.
MOST_ROWS = 20

# Fewer are no people.
LEAST_VALUES = 3

# So few values, each in more rows than that, are kinds or counts, even under a person's name.
FEW_VALUES = 10

# Rows of one value differ at most this much as strongly as rows of the next one, in mean square.
LARGEST_RATIO = 0.5

# Below so many degrees of freedom within values chance alone may make that ratio.
LEAST_FREEDOM = 50

# So many other columns tell how alike rows are.
MOST_COMPARED = 30

# In lower case: a person's word at the end, an id's behind it or not; or an id alone.
_WORD = (
    "patient|person|subject|participant|respondent|user|customer|client|member|household|family|"
    "employee|student|citizen"
)
_ID = "id|uid|uuid|no|nr|num|number|key|code|ref"
_NAMED = re.compile(rf"(?:.*[^a-z])?(?:{_WORD})[^a-z]*(?P<id>(?:{_ID})[^a-z]*)?|id|pid|mrn|ssn")
# Fractions, numbers with a sign or a unit apart, and dates: measurements, not names.
_MEASURED = re.compile(
    r"[^\w]*\d+[.,]\d.*|\W+\d+|\d+(?:\s+[^\W\d].{0,10}|\W+)|\d{1,2}:\d{2}\b.*"
    r"|\d{1,4}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{1,4}\b.*"
)
_INSIDE_NAME = re.compile(r"(?<=[a-z])(?=[A-Z])")


def person_columns(
    table: pd.DataFrame, names: Sequence[str], compared: Sequence[str]
) -> tuple[str, ...]:
    """Which of the named columns look like a person's; ``compared`` say whether rows are alike.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.data.person_columns import person_columns
    >>> visits = pd.DataFrame({"patient": [7, 7, 9, 9, 4], "age": [31, 31, 45, 45, 28]})
    >>> person_columns(visits, ["patient", "age"], ["age"])
    ('patient',)
    """
    step = max(1, -(-len(compared) // MOST_COMPARED))
    others = {other: _standardised(table[other]) for other in compared[::step]}
    return tuple(name for name in names if _is_person(table[name], name, others))


def is_person_name(name: str) -> bool:
    """Whether a column is named like a person's."""
    return _named(name) is not None


def person_columns_of(X: Any, groups: Sequence[Any] | None) -> tuple[str, ...]:
    """The same of a data frame that a model was fitted on, none where its rows leave in groups."""
    by_row = groups is None or len(set(groups)) == len(groups)
    if not (by_row and isinstance(X, pd.DataFrame) and X.columns.is_unique):
        return ()
    table = X.set_axis([str(name) for name in X.columns], axis=1)
    return person_columns(table, list(table.columns), list(table.columns))


def require_no_person(dataset: Dataset) -> None:
    """Refuse a dataset in which a person's column is a feature."""
    found = [name for name in dataset.person_columns if name in dataset.columns]
    if found:
        raise InputError(
            f"{dataset.name}: column {found[0]!r} looks like a person's, with several rows for "
            "most values",
            where=Where(dataset.name, found[0]),
            remedy=PERSON_REMEDY,
            option="group_column",
        )


def _named(name: str) -> re.Match[str] | None:
    return _NAMED.fullmatch(_INSIDE_NAME.sub("_", name).lower())


def _is_person(column: pd.Series[Any], name: str, compared: Mapping[str, FloatArray]) -> bool:
    named = _named(name)
    text = not pd.api.types.is_numeric_dtype(column)
    if not _is_labels(column) or (named is None and _is_quantity(column, text)):
        return False
    codes = pd.factorize(column.astype(str).mask(column.isna()) if text else column, sort=True)[0]
    rows = np.bincount(codes[codes >= 0])
    shared = rows[rows > 1]
    if len(rows) < LEAST_VALUES or not shared.size:
        return False
    if named and (named["id"] or len(rows) > FEW_VALUES or np.median(shared) <= MOST_ROWS):
        return True
    personal = shared[shared <= MOST_ROWS]
    most_rows = bool(2 * personal.sum() >= rows.sum())
    if text and len(rows) > MOST_CATEGORIES:
        return most_rows or 2 * personal.size >= rows.size
    others = [values for other, values in compared.items() if other != name]
    if not (most_rows and others):
        return False
    return alikeness(codes, np.column_stack(others)) < LARGEST_RATIO


def _is_labels(column: pd.Series[Any]) -> bool:
    """Whether a column holds what can be told apart: no truths, dates or lists."""
    types = pd.api.types
    if types.is_bool_dtype(column) or types.is_complex_dtype(column) or holds_dates(column):
        return False
    nested = (list, tuple, dict, set, np.ndarray)
    return types.is_numeric_dtype(column) or not any(isinstance(v, nested) for v in column)


def _is_quantity(column: pd.Series[Any], text: bool) -> bool:
    """Numbers with fractions, or text in which amounts or dates are written."""
    if text:
        texts = [str(value) for value in column.dropna().unique()]
        return 2 * sum(_MEASURED.fullmatch(each.strip()) is not None for each in texts) >= len(
            texts
        )
    if pd.api.types.is_integer_dtype(column):
        return False
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return not np.all(np.isnan(numbers) | (numbers == np.rint(numbers)))


def alikeness(codes: NDArray[np.intp], others: FloatArray) -> float:
    """Mean square between rows of one value, by that between rows of neighbouring values.

    A name tells equal from different, a measurement near from far: about 1 where the neighbour of
    a value says as much as the value, near 0 where only rows of one value are alike.

    Parameters
    ----------
    codes
        (n,) the place of each row's value among the sorted ones, -1 where there is none.
    others
        (n, d) the other columns, each of variance 1.
    """
    rows = np.bincount(codes[codes >= 0])
    shared = np.flatnonzero((rows > 1) & (rows <= MOST_ROWS))
    sizes = rows[shared]
    if sizes.sum() - len(sizes) < LEAST_FREEDOM or len(sizes) < 2:
        return 1.0
    order = np.argsort(codes, kind="stable")
    values = others[order[np.isin(codes[order], shared)]]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    freedom = sizes - 1.0
    mean = np.add.reduceat(values, starts) / sizes[:, None]
    squares = np.add.reduceat((values - np.repeat(mean, sizes, axis=0)) ** 2, starts)
    variance = squares / sizes[:, None]
    apart = variance[1:] + variance[:-1] + np.diff(mean, axis=0) ** 2
    within = 2.0 * squares.sum() / freedom.sum()
    between = float(np.average(apart.sum(axis=1), weights=freedom[1:] + freedom[:-1]))
    return float(within / between) if between else 1.0


def _standardised(column: pd.Series[Any]) -> FloatArray:
    """(n,) ranks of the values, mean 0 and variance 1; all 0 of a constant."""
    numeric = pd.api.types.is_numeric_dtype(column)
    ordered = column if numeric else pd.Series(pd.factorize(column.astype(str), sort=True)[0])
    ranks = np.asarray(ordered.rank(na_option="top"), dtype=np.float64)
    centred: FloatArray = ranks - ranks.mean()
    sd = float(centred.std())
    return centred / (sd or 1.0)
