"""Scaling and coding of a dataset before an audit, by scikit-learn, with every step recorded.

Means, scales, categories and what is filled in come from the whole dataset once and stay fixed
when a record leaves; the audit's provenance says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.columns import kind_of, listed, numbers, require_present
from leakscope.data.datasets import Dataset
from leakscope.errors import InputError, Where
from leakscope.settings.audit import AUDIT_DEFAULTS, Scaling
from leakscope.settings.data import DATA_DEFAULTS, Missing

# Of what is audited, in size: distances and their squares stay within float64.
LARGEST = 1e100
# How the step is told that puts a target into units of its standard deviation.
TARGET_SCALED = "target standardised"
# The squares of smaller numbers lose digits, and are zero in the end.
TINY = 1e-120

# Each class is an output, and what is measured grows with the square of their number.
MOST_CLASSES = 1000


@dataclass(frozen=True)
class Encoded:
    """A table's feature columns as (n, d) numbers, and what was done, in words.

    ``indicators`` are positions of the features that indicate a category, such as
    ``region=north``; ``columns`` the column that each feature is of, such as ``region``.
    """

    features: NDArray[np.float64]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    indicators: tuple[int, ...]
    steps: tuple[str, ...]


def encode(
    table: pd.DataFrame,
    names: Sequence[str],
    where: str,
    *,
    missing: Missing = DATA_DEFAULTS.missing,
) -> Encoded:
    """The named columns as numbers: one-hot where they are categories, 0 and 1 where booleans.

    Empty values are refused, or filled in by the column's median (numbers) or most frequent value
    (the others) where ``missing`` is ``impute``.
    """
    parts: list[NDArray[np.float64]] = []
    found: list[str] = []
    columns: list[str] = []
    indicators: list[int] = []
    steps: list[str] = []
    encoded: list[str] = []
    booleans: list[str] = []
    for name in names:
        column = table[name]
        kind = kind_of(column, name, where)
        if missing != "impute":
            remedy = "fill it in, or give --read missing=drop or --read missing=impute"
            require_present(column, name, where, remedy, "missing")
        if kind == "category":
            # An empty value is None in some tables and NaN in others; here it is NaN.
            texts = column.astype(str).astype(object).mask(column.isna(), np.nan)
            values, step = _filled(texts.to_numpy(dtype=object), name, "most_frequent")
            block, categories = _one_hot(values)
            indicators.extend(range(len(found), len(found) + len(categories)))
            found.extend(f"{name}={category}" for category in categories)
            encoded.append(name)
        else:
            strategy = "median" if kind == "number" else "most_frequent"
            values, step = _filled(numbers(column, name, where), name, strategy)
            block = values.astype(np.float64)
            found.append(name)
            if kind == "boolean":
                booleans.append(name)
        parts.append(block)
        columns.extend([name] * block.shape[1])
        steps.extend([step] if step else [])
    if booleans:
        steps.append(f"booleans taken as 0 and 1: {listed(booleans)}")
    if encoded:
        steps.append(
            f"categories one-hot encoded as {len(indicators)} features of 0 and 1, which are not "
            f"scaled (scikit-learn OneHotEncoder): {listed(encoded)}"
        )
    return Encoded(np.hstack(parts), tuple(found), tuple(columns), tuple(indicators), tuple(steps))


def feature_scales(
    dataset: Dataset, scaling: Scaling = AUDIT_DEFAULTS.scaling
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(d,) what :func:`prepare` subtracts from each feature, and what it divides it by.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import data
    >>> iris = data.read_example("iris")
    >>> mean, scale = data.preparation.feature_scales(iris)
    >>> bool(np.allclose(data.prepare(iris).features, (iris.features - mean) / scale))
    True
    """
    width = dataset.features.shape[1]
    mean, scale = np.zeros(width), np.ones(width)
    # Indicators of a category are not scaled, here as in ``prepare``.
    scaled = np.setdiff1d(np.arange(width), dataset.indicators)
    if scaling == "standard" and scaled.size:
        with np.errstate(over="ignore", invalid="ignore"):
            _, mean[scaled], scale[scaled] = standardised(dataset.features[:, scaled])
    return mean, scale


def without_empty(
    table: pd.DataFrame, names: Sequence[str], where: str
) -> tuple[pd.DataFrame, str | None]:
    """The records without an empty value, under their own row numbers, and the step in words."""
    empty = table[list(names)].isna()
    dropped = empty.any(axis=1).to_numpy()
    count = int(np.count_nonzero(dropped))
    if not count:
        return table, None
    if count == len(table):
        raise InputError(
            f"{where}: every record has an empty value",
            where=Where(where),
            remedy="give --read missing=impute",
            option="missing",
        )
    columns = [name for name in names if bool(empty[name].any())]
    return table[~dropped], (
        f"dropped {count} record{'s' if count > 1 else ''} with an empty value "
        f"({listed(columns)}); {len(table) - count} are left"
    )


def _filled(values: NDArray[Any], name: str, strategy: str) -> tuple[NDArray[Any], str | None]:
    """The column, (n, 1), with its empty values filled in, and the step in words."""
    from sklearn.impute import SimpleImputer

    column = values.reshape(-1, 1)
    empty = int(np.count_nonzero(pd.isna(column)))
    if not empty:
        return column, None
    imputer = SimpleImputer(missing_values=np.nan, strategy=strategy)
    filled = np.asarray(imputer.fit_transform(column))
    by = imputer.statistics_[0]
    told = f"{by:.6g}" if isinstance(by, float) else repr(str(by))
    return filled, (
        f"{empty} empty value{'s' if empty > 1 else ''} of {name} filled in by the "
        f"{strategy.replace('_', ' ')}, {told} (scikit-learn SimpleImputer)"
    )


def target_unit(steps: Sequence[str]) -> str:
    """In words, the unit of a number on the target's scale; nothing where it is the target's own.

    Examples
    --------
    >>> from leakscope.data.preparation import target_unit
    >>> target_unit(["target standardised: minus 152, divided by 77"]), target_unit([])
    (" times the target's", '')
    """
    scaled = any(step.startswith(TARGET_SCALED) for step in steps)
    return " times the target's" if scaled else ""


def about_empty(steps: Sequence[str]) -> str | None:
    """What was done about empty values, in one sentence; None where there were none.

    Examples
    --------
    >>> from leakscope.data.preparation import about_empty
    >>> about_empty(["dropped 3 records with an empty value (age); 97 are left"])
    'Empty values: dropped 3 records with an empty value (age); 97 are left.'
    """
    told = [step.partition(", ")[0] for step in steps if " empty value" in step]
    return f"Empty values: {listed(told)}." if told else None


def _one_hot(column: NDArray[Any]) -> tuple[NDArray[np.float64], list[str]]:
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(sparse_output=False, dtype=np.float64)
    block = np.asarray(encoder.fit_transform(column))
    return block, [str(category) for category in encoder.categories_[0]]


def prepare(dataset: Dataset, *, scaling: Scaling = AUDIT_DEFAULTS.scaling) -> Dataset:
    """Scale the features and code the target.

    ``standard`` brings every feature, and a regression target, to mean 0 and variance 1; ``none``
    leaves them as they are.  Indicators of a category stay 0 and 1 under either: two records of
    different categories are then as far apart as two typical values of a scaled number, and a
    rare category is not stretched.  Two classes become one output of -1/2 and +1/2, and C > 2
    classes become C outputs, one-hot minus 1/C, under either.

    Examples
    --------
    >>> from leakscope import data
    >>> iris = data.prepare(data.read_example("iris"))
    >>> iris.target.shape, float(iris.features.var(axis=0).round(6).max())
    ((150, 3), 1.0)
    >>> print(iris.steps[-1])
    target coded as 3 outputs, one-hot minus 1/3: 0, 1, 2
    """
    features, steps = dataset.features, list(dataset.steps)
    scaled = np.setdiff1d(np.arange(features.shape[1]), dataset.indicators)
    if scaling == "standard" and scaled.size:
        features = np.array(features, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            features[:, scaled], _, _ = standardised(features[:, scaled])
        which = "features" if scaled.size == features.shape[1] else "numeric features"
        steps.append(
            f"{which} standardised to mean 0 and variance 1 over all records "
            "(scikit-learn StandardScaler)"
        )
    _require_reachable(features, dataset.features, dataset.feature_names)
    target: NDArray[Any]
    if dataset.task == "classification":
        target, step = _coded(dataset.target, dataset.target_name)
        steps.append(step)
    elif scaling == "standard":
        with np.errstate(over="ignore", invalid="ignore"):
            found, mean, scale = standardised(dataset.target.reshape(-1, 1))
            target, spread = found[:, 0], float(np.ptp(dataset.target))
            wide = float(np.std(target))
        if not np.isfinite(wide):
            raise InputError(
                f"column {dataset.target_name!r} varies by {spread:.3g}, too much for float64; "
                "divide it by a power of ten."
            )
        # scikit-learn takes what varies by less than its rounding for constant, and does not scale
        if spread > 0.0 and abs(wide - 1.0) > 1e-6:
            raise InputError(
                f"column {dataset.target_name!r} varies by {spread:.3g} only, which float64 cannot "
                f"tell from rounding around {mean[0]:.6g}; subtract its mean, or multiply it by a "
                "power of ten."
            )
        steps.append(f"{TARGET_SCALED}: minus {mean[0]:.6g}, divided by {scale[0]:.6g}")
    else:
        target = dataset.target
    if dataset.task == "regression":
        raw = dataset.target.reshape(-1, 1)
        _require_reachable(target.reshape(-1, 1), raw, (dataset.target_name,))
    return replace(
        dataset,
        features=features,
        target=np.asarray(target, dtype=np.float64),
        steps=tuple(steps),
    )


def standardised(
    columns: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Columns less their mean, over their standard deviation; and the two (StandardScaler).

    The squares of numbers below 1e-154 are zero in float64, and such a column would count as
    constant: it is multiplied by a power of two first, which is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.data.preparation import standardised
    >>> found, _, scale = standardised(np.array([[1e-200], [3e-200]]))
    >>> found.ravel().tolist(), float(scale[0])
    ([-1.0, 1.0], 1e-200)
    """
    from sklearn.preprocessing import StandardScaler

    largest = np.max(np.abs(columns), axis=0, initial=0.0)
    tiny = (largest > 0.0) & (largest < TINY)
    power = np.where(tiny, -np.frexp(largest)[1], 0)
    scaler = StandardScaler()
    found = np.asarray(scaler.fit_transform(np.ldexp(columns, power)))
    return found, np.ldexp(scaler.mean_, -power), np.ldexp(scaler.scale_, -power)


def _require_reachable(
    used: NDArray[np.float64], raw: NDArray[np.float64], names: Sequence[str]
) -> None:
    """Refuse numbers whose squares or variance float64 does not hold, once they are scaled.

    A column that varies by less than its rounding is not scaled at all, so that it may stay large.
    """
    bad = ~(np.abs(used) <= LARGEST).all(axis=0)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"column {names[place]!r} holds numbers as large as {np.abs(raw[:, place]).max():.3g}, "
            "too large for their variance in float64; divide the column by a power of ten."
        )


def _coded(labels: NDArray[Any], name: str) -> tuple[NDArray[np.float64], str]:
    from sklearn.preprocessing import LabelEncoder

    encoder = LabelEncoder()
    try:
        codes = np.asarray(encoder.fit_transform(labels))
    except TypeError as error:
        raise InputError(f"The target {name!r} mixes text and numbers as class names.") from error
    classes = [str(label) for label in encoder.classes_]
    count = len(classes)
    if count < 2:
        raise InputError(f"The target {name!r} holds one class only, {classes[0]!r}.")
    if count > MOST_CLASSES:
        raise InputError(
            f"The target {name!r} holds {count} classes, more than the {MOST_CLASSES} that an "
            "audit takes; put rare ones together, or name another target."
        )
    told = ", ".join(classes[:10]) + (" …" if count > 10 else "")
    if count == 2:
        return codes - 0.5, f"target coded as one output, -1/2 and +1/2: {told}"
    if count == len(labels):
        raise InputError(
            f"Every record has its own class in the target {name!r}, as if it were a quantity or "
            "the id",
            where=Where(column=name),
            remedy="name another target, or leave out --task classification",
            option="task",
        )
    one_hot = np.eye(count)[codes] - 1.0 / count
    return one_hot, f"target coded as {count} outputs, one-hot minus 1/{count}: {told}"
