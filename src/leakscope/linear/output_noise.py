"""Noise on a model's answers: whom it is added to, and how many answers an attacker may average."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from leakscope.errors import InputError
from leakscope.settings import LinearDesignSettings, default_of

Recipients = Literal["everyone", "nonmembers"]


@dataclass(frozen=True)
class OutputNoise:
    """Independent Gaussian noise of standard deviation ``sigma`` on the model's answers.

    Parameters
    ----------
    sigma
        The paper's sigma-bar.
    to
        ``"everyone"``: every answer, which can be deployed.  ``"nonmembers"``: only answers about
        records outside the training set (Lemma 4.4), which nobody can deploy, for whoever knows
        when to add noise gives membership away.
    answers
        How often the attacker asks the same question and gets fresh noise.
    memoised
        Whether a repeated question gets the same answer, so that asking again is of no use.

    Examples
    --------
    >>> from leakscope.linear import OutputNoise
    >>> OutputNoise(1.0, answers=4).variances()
    (0.25, 0.25)
    >>> OutputNoise(1.0, answers=4, memoised=True).variances()
    (1.0, 1.0)
    >>> OutputNoise(1.0, to="nonmembers").variances()
    (0.0, 1.0)
    """

    sigma: float
    to: Recipients = "everyone"
    answers: int = default_of(LinearDesignSettings, "answers")
    memoised: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.sigma) or self.sigma < 0.0:
            raise InputError(
                f"The output noise must be a standard deviation, zero or above, "
                f"but it is {self.sigma!r}."
            )
        if self.answers < 1:
            raise InputError(f"answers must be 1 or more, but it is {self.answers}.")
        if self.to == "nonmembers" and self.answers > 1 and not self.memoised:
            raise InputError(
                "Fresh noise for non-members only gives membership away at the second answer: "
                "members' answers repeat and others' do not."
            )

    def variances(self) -> tuple[float, float]:
        """Noise variance of what counts for the attacker, the mean answer: member, non-member.

        The mean of k answers with fresh Gaussian noise is sufficient, so k answers are one answer
        with variance sigma^2/k.
        """
        variance = self.sigma**2 / (1 if self.memoised else self.answers)
        return (variance if self.to == "everyone" else 0.0), variance
