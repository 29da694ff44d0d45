"""The models that the peers attack, the same in every environment: scikit-learn alone."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

warnings.filterwarnings("ignore", category=ConvergenceWarning)


def target(name: str, seed: int):
    if name == "forest":
        return RandomForestClassifier(n_estimators=50, random_state=seed)
    if name == "network":
        return MLPClassifier((64,), max_iter=20, random_state=seed)
    raise ValueError(name)


def logit(probability: np.ndarray) -> np.ndarray:
    clipped = np.clip(probability, 1e-4, 1.0 - 1e-4)
    return np.log(clipped / (1.0 - clipped))
