"""Which numbers can be relied on: confirmed, range or unknown, unit by unit.

A unit (a record or a group) is confirmed only by a check that was made for it.  One whose interval
holds, while its number is not confirmed, has a range; of the others nothing is known.
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


@dataclass(frozen=True, eq=False)
class Trust:
    """The check that each unit passed.

    Built by :meth:`checked`; ``checks`` are sentences, ``passed`` (U,) the number of the sentence
    that holds for each unit, or what stands in its place.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.results import Trust
    >>> shares = np.array([0.1, 0.7, np.nan])
    >>> trust = Trust.checked("few share it", shares <= 0.4, looked=~np.isnan(shares))
    >>> trust.status.tolist(), [trust.why(row) for row in range(3)]
    (['confirmed', 'unknown', 'unknown'], ['few share it', 'failed: few share it', 'not checked'])
    """

    checks: tuple[str, ...]
    passed: NDArray[np.int8]

    def __init__(self, checks: Sequence[str], passed: NDArray[np.integer]) -> None:
        numbers = np.asarray(passed)
        sentences = tuple(str(sentence).strip() for sentence in checks)
        if not all(sentences) or len(sentences) > MOST_CHECKS:
            raise ValueError(f"checks must say what was checked, and be at most {MOST_CHECKS}")
        if numbers.size and (numbers.max() >= len(sentences) or numbers.min() < UNCERTAIN):
            raise ValueError("a unit cannot have passed a check that is not named")
        object.__setattr__(self, "checks", sentences)
        object.__setattr__(self, "passed", numbers.astype(np.int8))

    @classmethod
    def checked(
        cls,
        check: str,
        passed: NDArray[np.bool_],
        *,
        looked: NDArray[np.bool_] | bool = True,
        bounded: NDArray[np.bool_] | bool = False,
    ) -> Trust:
        """One check: who passed it among those looked at, and whose intervals hold all the same."""
        wanting = np.where(bounded, UNCERTAIN, np.where(looked, FAILED, UNCHECKED))
        return cls((check,), np.where(np.asarray(passed, dtype=np.bool_) & looked, 0, wanting))

    @classmethod
    def nobody(cls, units: int) -> Trust:
        """No check was made of anybody."""
        return cls((), np.full(units, UNCHECKED))

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """(U,) whether it is confirmed."""
        return np.asarray(self.passed >= 0)

    @property
    def known(self) -> NDArray[np.bool_]:
        """(U,) whether it is confirmed, or has a range."""
        return np.asarray(self.confirmed | (self.passed == UNCERTAIN))

    @property
    def status(self) -> NDArray[np.str_]:
        """(U,) "confirmed", "range" or "unknown"."""
        return np.where(self.confirmed, "confirmed", np.where(self.known, "range", "unknown"))

    def why(self, unit: int) -> str:
        """The check that a unit passed or failed, in words."""
        number = int(self.passed[unit])
        if number >= 0:
            return self.checks[number]
        failed = f"failed: {'; '.join(self.checks)}" if self.checks else "failed"
        return {FAILED: failed, UNCERTAIN: f"its interval holds; {failed}"}.get(
            number, "not checked"
        )

    def take(self, units: NDArray[np.intp] | slice) -> Trust:
        """That of some units."""
        return Trust(self.checks, self.passed[units])
