"""Scaling and coding of a dataset before an audit, by scikit-learn, with every step recorded.

Means, scales and classes come from the whole dataset once and stay fixed when a record leaves;
the audit's provenance says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.io.datasets import Dataset

Scaling = Literal["standard", "none"]


def prepare(dataset: Dataset, *, scaling: Scaling = "standard") -> Dataset:
    """Scale the features and code the target.

    ``standard`` brings every feature, and a regression target, to mean 0 and variance 1; ``none``
    leaves them as they are.  Two classes become one output of -1/2 and +1/2, and C > 2 classes
    become C outputs, one-hot minus 1/C, under either.

    Examples
    --------
    >>> from leakscope import io
    >>> iris = io.prepare(io.read_example("iris"))
    >>> iris.target.shape, float(iris.features.var(axis=0).round(6).max())
    ((150, 3), 1.0)
    >>> print(iris.steps[-1])
    target coded as 3 outputs, one-hot minus 1/3: 0, 1, 2
    """
    from sklearn.preprocessing import StandardScaler

    features, steps = dataset.features, list(dataset.steps)
    if scaling == "standard":
        features = np.asarray(StandardScaler().fit_transform(features), dtype=np.float64)
        steps.append(
            "features standardised to mean 0 and variance 1 over all records "
            "(scikit-learn StandardScaler)"
        )
    target: NDArray[Any]
    if dataset.task == "classification":
        target, step = _coded(dataset.target, dataset.target_name)
        steps.append(step)
    elif scaling == "standard":
        scaler = StandardScaler()
        target = scaler.fit_transform(dataset.target.reshape(-1, 1))[:, 0]
        steps.append(
            f"target standardised: minus {scaler.mean_[0]:.6g}, divided by {scaler.scale_[0]:.6g}"
        )
    else:
        target = dataset.target
    return replace(
        dataset,
        features=features,
        target=np.asarray(target, dtype=np.float64),
        steps=tuple(steps),
    )


def _coded(labels: NDArray[Any], name: str) -> tuple[NDArray[np.float64], str]:
    from sklearn.preprocessing import LabelEncoder

    encoder = LabelEncoder()
    try:
        numbers = np.asarray(encoder.fit_transform(labels))
    except TypeError as error:
        raise InputError(f"The target {name!r} mixes text and numbers as class names.") from error
    classes = [str(label) for label in encoder.classes_]
    count = len(classes)
    if count < 2:
        raise InputError(f"The target {name!r} holds one class only, {classes[0]!r}.")
    listed = ", ".join(classes[:10]) + (" …" if count > 10 else "")
    if count == 2:
        return numbers - 0.5, f"target coded as one output, -1/2 and +1/2: {listed}"
    if count == len(labels):
        raise InputError(
            f"Every record has its own class in the target {name!r}; is it a quantity, or the id?"
        )
    one_hot = np.eye(count)[numbers] - 1.0 / count
    return one_hot, f"target coded as {count} outputs, one-hot minus 1/{count}: {listed}"
