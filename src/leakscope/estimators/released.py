"""The law of what a model hands out: a draw of its latent function, or its mean, and noise on top.

What an attacker sees at record i, with the symbols of :mod:`leakscope.lood.identities` and v_o the
variance of the noise added to answers:

    draw:  N(mean with, s2 h_i + v_o)   against   N(mean without, h_i/m_i + v_o)
    mean:  N(mean with, v_o)            against   N(mean without, v_o).

A draw is what one model trained at random gives; the mean is an ensemble's.  The mean without
noise is a number: whoever knows all other records tells it apart with certainty, so it has no
leakage below one and is refused.

One answer at the record is one look.  k answers of one call have k fresh noises, and are worth one
answer with v_o/k; so all answers of a call to one draw are never worth more than the draw itself,
for the latent value at the record is sufficient (:mod:`leakscope.lood.distinguish`).  Another call
is another draw, and composes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Normal, Provenance
from leakscope.lood import LeaveOneOut
from leakscope.lood.assumptions import common_assumptions

What = Literal["draw", "mean"]

# Pairs measured at once: with many outputs the laws of all records would be large.
PAIRS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Release:
    """What is handed out at a query.

    Attributes
    ----------
    what
        ``"draw"`` or ``"mean"``.
    noise_variance
        v_o, of independent Gaussian noise added to each answer, in squared units of the target as
        used.
    """

    what: What
    noise_variance: float

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

    def variance(self, latent: FloatArray) -> FloatArray:
        """The variance of an answer where the latent function has this one."""
        own = latent if self.what == "draw" else np.zeros_like(latent)
        return own + self.noise_variance

    def law_pair(self, laws: LeaveOneOut, rows: slice = slice(None)) -> LawPair:
        """The batch of pairs, one a record, of one answer at the record itself.

        As in ``LeaveOneOut.law_pair``, each pair is measured from its mean without the record.
        """
        if self.what == "draw" and self.noise_variance == 0.0:
            return laws.law_pair(rows)
        shift = laws.mean_shift[rows]
        spread_with = self.variance(laws.variance_with[rows])
        spread_without = self.variance(laws.variance_without[rows])
        provenance = self._provenance(laws)
        if shift.ndim == 1:
            return LawPair(
                member=Normal(shift, np.sqrt(spread_with)),
                nonmember=Normal(np.zeros_like(shift), np.sqrt(spread_without)),
                provenance=provenance,
            )
        identity = np.eye(shift.shape[1])
        return LawPair(
            member=MultivariateNormal(shift, spread_with[:, None, None] * identity),
            nonmember=MultivariateNormal(
                np.zeros_like(shift), spread_without[:, None, None] * identity
            ),
            provenance=provenance,
        )

    def measured(self, laws: LeaveOneOut) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) advantage, KL(without || with) and AUC of every record."""
        count = len(laws.leverage)
        columns = (np.empty(count), np.empty(count), np.empty(count))
        for start in range(0, count, PAIRS_AT_ONCE):
            rows = slice(start, start + PAIRS_AT_ONCE)
            pair = self.law_pair(laws, rows)
            found = (measures.advantage(pair), measures.kl(pair), measures.auc(pair))
            for column, value in zip(columns, found, strict=True):
                column[rows] = np.asarray(value)
        return columns

    def _provenance(self, laws: LeaveOneOut) -> Provenance:
        own = laws.provenance()
        added = Assumption(
            statement="the attacker sees one answer at the record, "
            + ("a draw of the latent function" if self.what == "draw" else "the posterior mean")
            + f" plus independent Gaussian noise of variance {self.noise_variance:g}",
            holds=None,
            evidence="as the estimator is set; further answers with fresh noise compose",
        )
        # Of a mean, training is not random: the first two assumptions are about that.
        taken = 0 if self.what == "draw" else 2
        common = common_assumptions(laws.noise_variance)
        rest = own.assumptions[len(common) :]
        return replace(
            own,
            observes="prediction",
            random=("training", "output_noise") if self.what == "draw" else ("output_noise",),
            assumptions=(*common[taken:], added, *rest),
        )


def noise_key(random_state: Any) -> Key:
    """Fresh entropy for None: a fixed seed would let whoever knows it take the noise away."""
    if random_state is None:
        return Key(int(np.random.SeedSequence().entropy))  # type: ignore[arg-type]
    if isinstance(random_state, np.random.RandomState):
        return Key(int(random_state.randint(2**63 - 1, dtype=np.int64)))
    return as_key(random_state)
