"""Real datasets that scikit-learn ships, by name: nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from leakscope.data.columns import column_name
from leakscope.data.datasets import Dataset, Source, Task, digest, subgroups
from leakscope.errors import InputError

EXAMPLES: dict[str, Task] = {
    "diabetes": "regression",
    "breast_cancer": "classification",
    "digits": "classification",
    "iris": "classification",
    "wine": "classification",
}


def read_example(name: str, *, by: str | None = None) -> Dataset:
    """One of scikit-learn's own datasets; ``record_ids`` are row numbers, starting at 0.

    ``by`` names a feature, or ``target``, to take subgroups from.

    Examples
    --------
    >>> from leakscope import data
    >>> data.read_example("wine").task
    'classification'
    >>> sorted(data.EXAMPLES)
    ['breast_cancer', 'diabetes', 'digits', 'iris', 'wine']
    """
    if name not in EXAMPLES:
        raise InputError(f"There is no example {name!r}; there are {', '.join(EXAMPLES)}.")
    from sklearn import datasets

    loader: Any = getattr(datasets, f"load_{name}")
    # scikit-learn's own scaling of diabetes is undone, so that the steps below tell all of it.
    bunch = loader(scaled=False) if name == "diabetes" else loader()
    features = np.asarray(bunch.data, dtype=np.float64)
    target = np.asarray(bunch.target)
    names = [str(feature) for feature in bunch.feature_names]
    chosen = None if by is None else column_name([*names, "target"], by, "subgroups", name)
    return Dataset(
        name=name,
        features=features,
        target=target,
        record_ids=tuple(range(len(features))),
        feature_names=tuple(names),
        target_name="target",
        task=EXAMPLES[name],
        steps=(
            f"read {features.shape[0]} records of {features.shape[1]} features from "
            f"scikit-learn's {name}",
            "record_id: row numbers, starting at 0",
        ),
        source=Source(
            file=None,
            example=name,
            target=None,
            id_column=None,
            task=EXAMPLES[name],
            digest=digest(features, target, range(len(features))),
        ),
        by=None
        if chosen is None
        else subgroups(
            pd.Series(target if chosen == "target" else features[:, names.index(chosen)])
        ),
        by_name=chosen,
    )
