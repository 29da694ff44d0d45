"""Targets that cannot be standardised."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import data
from leakscope.errors import InputError


def test_a_target_that_varies_too_much_is_refused() -> None:
    """Found by fuzzing: its variance overflowed."""
    dataset = data.Dataset(
        name="a",
        features=np.arange(8.0).reshape(4, 2),
        target=np.array([1e200, -1e200, 3.0, 4.0]),
        record_ids=(0, 1, 2, 3),
        feature_names=("a", "b"),
        target_name="y",
        task="regression",
    )
    with pytest.raises(InputError, match="'y' varies by 2e\\+200, too much for float64"):
        data.prepare(dataset)
