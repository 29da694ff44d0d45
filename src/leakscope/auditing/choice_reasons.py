"""Why this kernel and this noise: said with every audit, and checked against what the data say.

The noise variance stands for how random training is, which the data cannot tell; what they can
tell is how noisy their labels are.  So the audit asks which noise variance predicts each label best
from the others, and repeats itself there: a reader sees whether the level in use is the exposed or
the sheltered end, and what is left of the finding at the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope.auditing.kernel_choice import kernel_in_words
from leakscope.auditing.kernel_sensitivity import (
    COMPARED_UP_TO,
    TOP,
    KernelSensitivity,
    compare_kernels,
    laws_under,
    top_kept,
)
from leakscope.auditing.measured import advantages
from leakscope.auditing.routes import Computed, RoutePlan
from leakscope.auditing.verdict import CRITERIA
from leakscope.errors import InputError

# The data are asked for their noise on at most this many records: an eigendecomposition.
ASKED_RECORDS = 1000

# Fewer records than these settle no noise variance.
LEAST_ASKED = 20

# Within this factor of what the data would choose, a noise variance is about the same.
ABOUT = 3.0


@dataclass(frozen=True)
class NoiseOfData:
    """The noise variance that the data would choose, and the audit there.

    Attributes
    ----------
    noise_variance, criterion
        By the leave-one-out predictive score; of groups, whose records may repeat each other, by
        the marginal likelihood.
    records
        Over how many records it was chosen.
    at_bound
        Whether it lies at an end of the search, and so says only "beyond".
    largest_advantage, median_advantage
        Over all records, at that noise variance.
    top_ten_kept
        How many of the ten most exposed are so there too.
    prediction_error
        Root mean square of label minus what the other records predict, in units of the target.
    """

    noise_variance: float
    criterion: str
    records: int
    at_bound: bool
    largest_advantage: float
    median_advantage: float
    top_ten_kept: int
    prediction_error: float


@dataclass(frozen=True)
class Choices:
    """Why this kernel and this noise, and what other choices would have given.

    Attributes
    ----------
    kernel_reason, noise_reason
        A sentence or two each.
    noise_of_data, kernels
        The audit at the data's own noise variance, and under other kernels; None where they were
        not tried.
    not_compared
        Why they were not; None where they were.
    """

    kernel_reason: str
    noise_reason: str
    noise_of_data: NoiseOfData | None = None
    kernels: KernelSensitivity | None = None
    not_compared: str | None = None


def why_not_compared(computed: Computed, plan: RoutePlan) -> str | None:
    """The reason why other kernels and the data's own noise are not tried; None where they are."""
    if not plan.sensitivity:
        return "Other kernels, and the noise that the data would choose, were not tried, as asked."
    if computed.process.records > COMPARED_UP_TO:
        noise = "" if _in_features(computed) else ", and the noise that the data would choose,"
        return (
            f"Other kernels{noise} were not tried: with more than {COMPARED_UP_TO} records they "
            "cost too much; audit a sample to see them."
        )
    if computed.laws.route == "nystrom":
        return (
            "Other kernels, and the noise that the data would choose, were not tried: this audit "
            "is approximate, and approximations of different kernels are not compared."
        )
    return None


def choices(
    computed: Computed,
    plan: RoutePlan,
    advantage: FloatArray,
    *,
    picture: tuple[int, ...] | None = None,
) -> Choices:
    """Explain the kernel and the noise of an audit, and try others where the cost is small.

    Parameters
    ----------
    computed, advantage
        What was audited, and what was found.
    plan
        How it was computed.
    picture
        The shape of the pictures that records are, where they are.
    """
    process = computed.process
    given = process.kernel if process.given is None else process.given
    kernel_reason = _kernel_reason(process.kernel, given, process.features, picture)
    reason = why_not_compared(computed, plan)
    compared = own_noise = None
    if reason is None:
        compared = compare_kernels(process, computed.laws, advantage)
    cheap = reason is None or (plan.sensitivity and _in_features(computed))
    if cheap and computed.noise_choice is None:
        own_noise = _noise_of_data(process, computed.laws)
    return Choices(
        kernel_reason=kernel_reason,
        noise_reason=_noise_reason(computed, own_noise),
        noise_of_data=own_noise,
        kernels=compared,
        not_compared=reason,
    )


def _in_features(computed: Computed) -> bool:
    """Whether an audit at another noise variance takes a pass over few features."""
    return computed.laws.route == "features" and computed.process.phi is not None


def _noise_of_data(process: lood.Process, laws: lood.Separation) -> NoiseOfData | None:
    """None where there are too few records to tell, or float64 fails at what they choose."""
    count = process.records
    if count < LEAST_ASKED:
        return None
    some = np.sort(np.random.default_rng(0).permutation(count)[:ASKED_RECORDS])
    try:
        if count > COMPARED_UP_TO and process.phi is not None:
            # Sums over all records say as much as a matrix of some.
            some = np.arange(count)
            choice = lood.choose_noise_of_sums(lood.FeatureSums.over(process.phi, process.outputs))
            found = lood.audit_features(process.phi, process.targets, choice.noise_variance)
        else:
            choice = lood.choose_noise(
                process.between(process.features[some]),
                process.targets[some],
                criterion="leave_one_out" if process.groups is None else "marginal_likelihood",
            )
            found = laws_under(process, process.kernel, choice.noise_variance)
    except InputError:
        return None
    advantage = advantages(found)
    return NoiseOfData(
        noise_variance=choice.noise_variance,
        criterion=choice.criterion,
        records=len(some),
        at_bound=choice.at_bound,
        largest_advantage=float(np.max(advantage)),
        median_advantage=float(np.median(advantage)),
        top_ten_kept=top_kept(laws.kl, found.kl, TOP),
        prediction_error=found.prediction_error,
    )


def _noise_reason(computed: Computed, own: NoiseOfData | None) -> str:
    level = computed.laws.noise_variance
    variance = float(np.mean(np.var(computed.process.targets, axis=0)))
    share = f", {level / variance:.2g} of the target's variance" if variance > 0.0 else ""
    if computed.noise_choice is not None:
        return (
            f"{computed.noise_choice.sentence()}{share}: it is the noise of the labels, and that "
            "training is as random as they are is an assumption."
        )
    opening = f"noise_variance {level:.4g}{share}"
    if own is None:
        return f"{opening}: the smaller it is, the more exposed every record looks."
    bound = ", the end of the range searched," if own.at_bound else ""
    asked = f"{own.noise_variance:.2g}{bound} by {CRITERIA[own.criterion]}"
    if level * ABOUT < own.noise_variance:
        words = (
            f"is a pessimistic setting: the model follows its labels more closely than "
            f"the data themselves would have it ({asked})."
        )
    elif level > ABOUT * own.noise_variance:
        words = (
            f"is an optimistic setting: the model follows its labels less closely than "
            f"the data themselves would have it ({asked})."
        )
    else:
        words = f"is about what the data themselves would choose ({asked})."
    units = computed.laws.units
    top = "ten" if units >= TOP else str(units)
    return (
        f"{opening}, {words} With that noise {own.top_ten_kept} of the {top} most exposed would be "
        "the same."
    )


def _kernel_reason(
    kernel: kernels.Kernel,
    given: kernels.Kernel,
    features: FloatArray,
    shape: tuple[int, ...] | None,
) -> str:
    told = kernel.describe()
    words = kernel_in_words(told)
    scaled = isinstance(kernel, kernels.RBF | kernels.Matern)
    network = isinstance(kernel, kernels.Network) and "depth" in told
    open_scale = "length_scale" in told and given.describe().get("length_scale") is None
    smooth = "smooth" if isinstance(kernel, kernels.RBF) else "rough"
    if open_scale:
        found = (
            f"{words}: a {smooth} function of all features, none of them special, that varies over "
            "the median distance between records"
        )
    elif scaled:
        found = f"{words}, as given: a {smooth} function of all features" + _against(told, features)
    elif isinstance(kernel, kernels.Linear):
        found = f"{words}: linear regression on the features, as for a read-out of embeddings"
    elif network:
        found = f"{words}: networks of this shape, very wide, before and after Bayesian training"
    else:
        found = f"{words}, as given"
    if shape is not None:
        size = " x ".join(str(side) for side in shape)
        dense = "" if network else "A network's (nngp) is nearer to models of pictures. "
        return (
            f"{found}. The rows look like pictures of {size} pixels, which to this kernel are "
            f"columns like any others. {dense}One with convolutions (kernels.conv, from Python) "
            "is nearest to a network that looks at neighbouring pixels."
        )
    usual = scaled and open_scale
    return f"{found}; the usual choice for a table of scaled numbers." if usual else f"{found}."


def _against(told: dict[str, Any], features: FloatArray) -> str:
    """How a given length scale stands to the usual one."""
    median = kernels.median_length_scale(features)
    return f" (the median distance between records is {median:.4g})"
