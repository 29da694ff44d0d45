"""Numbers are what they were before the house was rewritten (issue 40), each to its tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from freeze import compared, frozen_cases
from frozen import CASES

# Arrays in which the frozen number is the wrong one, or promises more, and what says so.
FROZEN_ERRS = {
    ("kernels_of_dense_networks", "tanh"): "an input of deviation 104: brute force to 1e-11, "
    "tests/kernels/test_duals.py; the frozen table was off by 8e-6",
    **dict.fromkeys(
        (
            ("halves_64", "advantage"),
            ("halves_near_the_ends", "tpr_interval"),
            ("halves_of_people", "low"),
        ),
        "shifts are no longer stretched to a counted level: against the simulated truth intervals "
        "hold as often as frozen ones (0.93 for 0.92, 0.88 for 0.88) and TPRs are nearer, though "
        "mean advantages are 0.02 and 0.05 higher; on the truths of real networks ranks and mean "
        "advantages are nearer (docs/few_models.md)",
    ),
    ("process_approximate", "approximate"): "the frozen number is right to 3e-4 (solved by "
    "conjugate gradients); this one approximates, to 0.1% in the median and 59% at worst, keeps "
    "the ranks, and confirms nobody",
}


@pytest.mark.parametrize("name", list(frozen_cases()))
def test_numbers_are_as_frozen(name: str, record_property: Callable[[str, Any], None]) -> None:
    found = compared(name)
    record_property("frozen", asdict(found))
    if found.share > 1.0 and (name, found.worst) in FROZEN_ERRS:
        pytest.xfail(FROZEN_ERRS[name, found.worst])
    assert found.share <= 1.0, found


def test_every_case_is_frozen() -> None:
    assert list(CASES) == list(frozen_cases())
