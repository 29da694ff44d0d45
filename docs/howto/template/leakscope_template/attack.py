"""An attack that can be named: ``leakscope measure --logits models.npz --attack difference``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def difference(
    answers: NDArray[np.float64], others: NDArray[np.float64], trained_on: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """How much surer the model is of a record than models that were trained without it.

    ``answers`` (records,) are the log-odds of the model that is attacked, ``others`` (models,
    records) those of the attacker's own models, and ``trained_on`` says what these have seen.
    """
    without = ~trained_on
    mean = (others * without).sum(axis=0) / np.maximum(without.sum(axis=0), 1)
    return np.asarray(answers - mean)
