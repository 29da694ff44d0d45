"""Which numbers can be relied on, and by which check: trust is earned, unit by unit.

A unit (a record or a group) is confirmed only by a check that was made for it.  There is no other
way to build a :class:`Trust`: what nobody looked at is not confirmed, and what was looked at and
found wanting is not confirmed either.

A number that is not confirmed may have an interval that holds: the unit is *uncertain*.  It is
known to lie between two ends, and verbs that compare with a limit go by these.  Of the others
nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# What stands in the place of a check where it failed, where there was none, and where it failed
# for the number while its interval holds.
FAILED, UNCHECKED, UNCERTAIN = -1, -2, -3

# A file may name no more checks than this.
MOST_CHECKS = 100


@dataclass(frozen=True, eq=False, init=False)
class Trust:
    """The check that each unit passed.

    Built by :meth:`checked`; ``checks`` are sentences, ``passed`` the number of the sentence that
    holds for each unit, ``UNCHECKED`` where none was made, ``FAILED`` where one failed and
    ``UNCERTAIN`` where one failed and the unit's interval holds.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.results import Trust
    >>> shares = np.array([0.1, 0.7, np.nan])
    >>> found = Trust.checked("few share it", shares <= 0.4, looked=~np.isnan(shares))
    >>> found.confirmed.tolist(), [found.why(row) for row in range(3)]
    ([True, False, False], ['few share it', 'failed: few share it', 'not checked'])
    """

    checks: tuple[str, ...]
    passed: NDArray[np.int8]

    def __init__(self, checks: Sequence[str], passed: NDArray[np.integer]) -> None:
        numbers = np.asarray(passed)
        told = tuple(str(sentence).strip() for sentence in checks)
        if not all(told) or len(told) > MOST_CHECKS:
            raise ValueError(f"checks must say what was checked, and be at most {MOST_CHECKS}")
        if numbers.size and (numbers.max() >= len(told) or numbers.min() < UNCERTAIN):
            raise ValueError("a unit cannot have passed a check that is not named")
        numbers = numbers.astype(np.int8)
        object.__setattr__(self, "checks", told)
        object.__setattr__(self, "passed", numbers)

    @classmethod
    def checked(
        cls,
        check: str,
        passed: NDArray[np.bool_],
        *,
        looked: NDArray[np.bool_] | None = None,
        bounded: NDArray[np.bool_] | bool = False,
    ) -> Trust:
        """One check: who passed it, among those that it looked at (all where left out).

        ``bounded`` are those whose intervals hold all the same.
        """
        good = np.asarray(passed, dtype=np.bool_)
        seen = np.ones(len(good), dtype=np.bool_) if looked is None else np.asarray(looked)
        wanting = np.where(bounded, UNCERTAIN, np.where(seen, FAILED, UNCHECKED))
        return cls((check,), np.where(seen & good, 0, wanting))

    @classmethod
    def nobody(cls, units: int) -> Trust:
        """No check was made of anybody."""
        return cls((), np.full(units, UNCHECKED))

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """(U,) whether a check was made for the unit and it passed."""
        return np.asarray(self.passed >= 0)

    @property
    def known(self) -> NDArray[np.bool_]:
        """(U,) whether it is confirmed, or its interval holds."""
        return np.asarray(self.confirmed | (self.passed == UNCERTAIN))

    def why(self, unit: int) -> str:
        """The check that a unit passed or failed, in words."""
        number = int(self.passed[unit])
        if number == UNCHECKED:
            return "not checked"
        if number == UNCERTAIN:
            return f"its interval holds; failed: {'; '.join(self.checks)}"
        if number == FAILED:
            return f"failed: {'; '.join(self.checks)}" if self.checks else "failed"
        return self.checks[number]

    def take(self, units: NDArray[np.intp] | slice) -> Trust:
        """That of some units."""
        return Trust(self.checks, self.passed[units])
