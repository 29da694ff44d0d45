"""What a model hands out at a query: a draw of its latent function or its mean, and noise on top.

With v_o the variance of the noise that is added to answers, an attacker sees at record i

    draw:  N(mean with, variance with + v_o)   against   N(mean without, variance without + v_o)
    mean:  N(mean with, v_o)                   against   N(mean without, v_o).

A draw is what one model trained at random gives; the mean is an ensemble's.  The mean without
noise is a number: whoever knows all other records tells it apart with certainty, so it has no
leakage below one and is refused.

One answer at the record is one look.  k answers of one call have k fresh noises, and are worth one
answer with v_o/k; so all answers of a call to one draw are never worth more than the draw itself,
for the latent value at the record is sufficient (:mod:`leakscope.lood.distinguish`).  Another call
is another draw, and composes.

**Questions elsewhere.**  Without noise no question tells more of a record than its own point.  With
noise one may, where the function varies more.  In the coordinates of
:mod:`leakscope.lood.sufficient`, at a question q with variance w without the record, and c the
covariance of f(q) and f(x_i) then, the score is the same and the excess u^2/(w - u^2 + v_o), where
u^2 = c^2/(s2 (1 + x)), and c^2 <= w s2 x by Cauchy and Schwarz.  So it is at most

    x' = x W/(W + v_o (1 + x))    with W = w,

which rises with w, and w is at most the kernel's largest value k(q, q), the ``reach``: with W that
value, x' bounds what one question can tell, wherever it is.  At the record's own point W = s2 x,
and x' is the excess itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError

What = Literal["draw", "mean"]


@dataclass(frozen=True)
class Release:
    """What is handed out at a query.

    Attributes
    ----------
    what
        ``"draw"`` of the latent function, or its ``"mean"``.
    noise_variance
        v_o, of independent Gaussian noise added to each answer, in squared units of the target.
    reach
        The largest prior variance that any question meets: the laws then bound what one question
        anywhere tells.  None where the record's own point is asked.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import lood
    >>> lood.Release("mean", 0.5).variance(np.array([2.0, 3.0])).tolist()
    [0.5, 0.5]
    >>> lood.Release("draw", 0.5).variance(np.array([2.0, 3.0])).tolist()
    [2.5, 3.5]
    """

    what: What = "draw"
    noise_variance: float = 0.0
    reach: float | None = None

    def __post_init__(self) -> None:
        if self.what not in get_args(What):
            raise InputError(f"release must be draw or mean, but it is {self.what!r}.")
        if not (np.isfinite(self.noise_variance) and self.noise_variance >= 0.0):
            raise InputError(
                f"output_noise_variance must be zero or above, but it is {self.noise_variance!r}."
            )
        if self.what == "mean" and self.noise_variance == 0.0:
            raise InputError(
                "release='mean' without noise gives every record away, for an exact mean is told "
                "apart with certainty; give output_noise_variance above zero, or release='draw'."
            )

    @property
    def plain(self) -> bool:
        """Whether this is the draw itself, with nothing added."""
        return self.what == "draw" and self.noise_variance == 0.0

    def variance(self, latent: FloatArray) -> FloatArray:
        """The variance of an answer where the latent function has this one."""
        own = latent if self.what == "draw" else np.zeros_like(latent)
        return np.asarray(own + self.noise_variance)

    def spread(self, variance_without: FloatArray) -> FloatArray:
        """W: the variance at the record without it, or what any question can meet."""
        if self.reach is None:
            return variance_without
        return np.maximum(variance_without, self.reach)

    def excess(self, excess: FloatArray, variance_without: FloatArray) -> FloatArray:
        """x' of a draw's answers, from the latent function's own excess x."""
        if self.noise_variance == 0.0:
            return excess
        spread = self.spread(variance_without)
        return np.asarray(excess * (spread / (spread + self.noise_variance * (1.0 + excess))))
