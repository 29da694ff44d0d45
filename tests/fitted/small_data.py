"""Small data sets, and shadow models of them as an independent truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone


def regression(records: int = 120, features: int = 12, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(records, features)) * np.linspace(0.5, 2.0, features)
    y = X @ generator.normal(size=features) / 3.0 + generator.normal(size=records)
    return X, y


def two_classes(records: int = 200, features: int = 8, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(records, features))
    z = X @ np.linspace(-1.0, 1.0, features) + 0.3
    return X, (generator.random(records) < 1.0 / (1.0 + np.exp(-z))).astype(int)


def several_classes(records: int = 240, features: int = 6, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(records, features))
    z = X @ generator.normal(size=(features, 4)) + generator.gumbel(size=(records, 4))
    return X, np.argmax(z, axis=1)


def counts(records: int = 200, features: int = 5, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(records, features))
    return X, generator.poisson(np.exp(0.5 + X @ np.linspace(-0.4, 0.4, features))).astype(float)


def amounts(records: int = 200, features: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Above zero, with a gamma law around their mean."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(records, features))
    return X, generator.gamma(2.0, np.exp(0.5 + X @ np.linspace(-0.4, 0.4, features)) / 2.0)


def refit_without(estimator: Any, X: Any, y: Any, record: int, **extra: Any) -> Any:
    rest = np.arange(len(y)) != record
    weights = {name: value[rest] for name, value in extra.items()}
    return clone(estimator).fit(X[rest], y[rest], **weights)


def checked_laws(model, X, y, **asked):
    """The laws of a fitted estimator, counted against refits of it."""
    from leakscope import fitted
    from leakscope.fitted.refits import WholeFit

    described = fitted.from_sklearn(model, X, y)
    laws = fitted.laws_of(model, X, y, **asked)
    if asked.get("groups") is not None:
        from leakscope.single_fit.problem import group_codes

        described = described.in_groups(group_codes(asked["groups"], len(y)))
    return fitted.counted(laws, described, WholeFit.of(model, X, y))
