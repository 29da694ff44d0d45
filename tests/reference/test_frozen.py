"""Numbers are what they were before the house was rewritten (issue 40), each to its tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from freeze import compared, frozen_cases
from frozen import CASES


@pytest.mark.parametrize("name", list(frozen_cases()))
def test_numbers_are_as_frozen(name: str, record_property: Callable[[str, Any], None]) -> None:
    found = compared(name)
    record_property("frozen", asdict(found))
    assert found.share <= 1.0, found


def test_every_case_is_frozen() -> None:
    assert list(CASES) == list(frozen_cases())
