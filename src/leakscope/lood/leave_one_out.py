"""What a Gaussian process says at each training record, with and without that record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.laws import Assumption, LawPair, MultivariateNormal, Normal, Provenance
from leakscope.lood.assumptions import leaving_out
from leakscope.lood.chosen_places import Chosen, chosen_places

Route = Literal["dense", "features", "fitc"]


@dataclass(frozen=True)
class LeaveOneOut:
    """What a Gaussian process says at each training record, with and without that record.

    Arrays run over the n records; those marked (n, C) have the targets' shape: (n,) for a vector
    of targets, (n, C) for C outputs.  The outputs share one kernel, so variances do not depend on
    the output.

    Attributes
    ----------
    mean_with, mean_without
        (n, C) posterior means of the latent function at the record.
    variance_with, variance_without
        (n,) posterior variances of the latent function (no observation noise added).
    mean_shift
        (n, C) mean with minus mean without, computed without subtracting the two.
    leverage
        (n,) how much the record's own target counts in its own prediction, between 0 and 1.
    kl_label_free
        (n,) the part of KL(without || with) from the drop in variance; no label enters it.
    kl_label
        (n,) the part from the shift in mean; it depends on the record's label.
    mean_distance
        (n,) the paper's Def. C.1: half the squared difference of means, summed over outputs.
    error_estimate
        (n,) estimated relative error of the KL, from the conditioning at that record.
    trusted
        (n,) whether that estimate is below 1e-8.
    condition_number
        Of M, in the 1-norm (estimated).
    noise_variance
        s2, in squared units of the target.
    route
        How it was computed: ``"dense"`` and ``"features"`` are exact, ``"fitc"`` is not.
    assumptions
        What this route assumes beside what every leave-one-out answer does.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> X = np.array([[0.0], [0.1], [3.0]])
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> result = lood.all_records(kernels.rbf(1.0)(X), y, noise_variance=0.1)
    >>> result.kl.round(3).tolist()
    [0.175, 0.178, 8.459]
    >>> result.law_pair().batch_shape
    (3,)
    """

    mean_with: FloatArray
    mean_without: FloatArray
    variance_with: FloatArray
    variance_without: FloatArray
    mean_shift: FloatArray
    leverage: FloatArray
    kl_label_free: FloatArray
    kl_label: FloatArray
    mean_distance: FloatArray
    error_estimate: FloatArray
    trusted: NDArray[np.bool_]
    condition_number: float
    noise_variance: float
    route: Route = "dense"
    assumptions: tuple[Assumption, ...] = ()

    @property
    def kl(self) -> FloatArray:
        """KL(without || with) of each record, the paper's Def. C.3 at the record itself."""
        return self.kl_label_free + self.kl_label

    @property
    def disagreement(self) -> FloatArray:
        """How far each label lies from what the other records predict, in standard deviations.

        The deviation is that of a label: latent variance without the record plus the noise.  With
        several outputs it is the root of the mean square.  A wrong label among records that are
        alike stands out here and not in the KL, since it hardly moves the model.
        """
        residual = self.mean_shift.reshape(len(self.leverage), -1) / self.leverage[:, None]
        spread = np.sqrt(self.variance_without + self.noise_variance)
        return np.asarray(np.sqrt(np.mean(residual**2, axis=1)) / spread)

    def law_pair(self, rows: Chosen = slice(None)) -> LawPair:
        """The batch of pairs, one a record, of the latent function at the record itself.

        ``rows`` takes some of the records, by a slice or an array of numbers or of truth values:
        with many outputs, all laws at once are large.  One number gives that record's pair alone,
        with an empty batch shape.

        Each pair is measured from its own mean without the record: the nonmember law is centred
        at zero and the member law at the mean shift.  A known translation changes no measure, and
        in this form a shift far smaller than the means themselves keeps its digits.
        """
        places = chosen_places(rows, len(self.leverage), "record")
        shift = np.asarray(self.mean_shift[places])
        variance_with = np.asarray(self.variance_with[places])
        variance_without = np.asarray(self.variance_without[places])
        if self.mean_shift.ndim == 1:
            return LawPair(
                member=Normal(shift, np.sqrt(variance_with)),
                nonmember=Normal(np.zeros_like(shift), np.sqrt(variance_without)),
                provenance=self.provenance(),
            )
        identity = np.eye(shift.shape[-1])
        return LawPair(
            member=MultivariateNormal(shift, variance_with[..., None, None] * identity),
            nonmember=MultivariateNormal(
                np.zeros_like(shift), variance_without[..., None, None] * identity
            ),
            provenance=self.provenance(),
        )

    def provenance(self) -> Provenance:
        """Which question these laws answer, and what they assume."""
        untrusted = int(np.count_nonzero(~self.trusted))
        digits = Assumption(
            statement="float64 resolves each record's laws to a relative 1e-8",
            holds=untrusted == 0,
            evidence=f"condition number {self.condition_number:.2g}; "
            f"{untrusted} of {len(self.trusted)} records flagged",
        )
        return leaving_out(
            "lood Def. C.3 at the record itself, by the leave-one-out identities",
            self.noise_variance,
            digits,
            *self.assumptions,
            # The answers of FITC become exact as its inducing records become all records.
            method="approximate" if self.route == "fitc" else "exact",
        )
