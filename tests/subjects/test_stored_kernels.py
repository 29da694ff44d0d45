"""The kernel that a stored audit of a process names is taken, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope import data
from leakscope.subjects.subject import opened


@pytest.mark.parametrize(
    "kernel",
    [
        {"name": "rbf"},
        {"name": "rbf", "length_scale": "x", "variance": 1.0},
        {"name": "secret"},
        {},
        {"name": "rbf", "length_scale": 1.0, "variance": 1.0, "fitted_scale": -1.0},
        {"name": "rbf", "length_scale": 1.0, "variance": 1.0, "more": 1},
    ],
)
def test_a_kernel_that_is_none_is_refused(kernel: dict[str, Any], tmp_path: Path) -> None:

    run = leakscope.audit(data.read_example("wine"), model="rbf", noise_variance=0.1).write(
        tmp_path / "run"
    )
    document = leakscope.Audit.open(run)
    details = document.details.model_copy(update={"kernel": kernel})
    with pytest.raises(leakscope.InputError):
        opened(document.model_copy(update={"details": details}))
