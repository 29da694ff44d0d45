"""Real datasets that scikit-learn ships, by name: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakscope.data.columns import column_name
from leakscope.data.datasets import Dataset, Source, Task, digest, subgroups
from leakscope.data.sampling import sampled
from leakscope.errors import InputError
from leakscope.settings import DATA_DEFAULTS

EXAMPLES: dict[str, Task] = {
    "diabetes": "regression",
    "breast_cancer": "classification",
    "digits": "classification",
    "iris": "classification",
    "wine": "classification",
}


def read_example(
    name: str,
    *,
    by: str | Sequence[str] = (),
    sample: int | None = DATA_DEFAULTS.sample,
    sample_seed: int = DATA_DEFAULTS.sample_seed,
) -> Dataset:
    """One of scikit-learn's own datasets; ``record_ids`` are row numbers, starting at 0.

    ``by`` names features, or ``target``, to take subgroups from; ``sample`` and ``sample_seed``
    are those of :func:`leakscope.data.read_dataset`.

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
    wanted = (by,) if isinstance(by, str) else tuple(by)
    chosen = [column_name([*names, "target"], one, "subgroups", name) for one in wanted]
    found = Dataset(
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
        by={
            one: subgroups(pd.Series(target if one == "target" else features[:, names.index(one)]))
            for one in chosen
        },
    )
    return found if sample is None else sampled(found, sample, seed=sample_seed)
