"""Why this kernel and this noise: said with every audit, and checked against what the data say.

The noise variance stands for how random training is, which the data cannot tell; what they can
tell is how noisy their labels are.  So the audit asks which noise variance predicts each label best
from the others, and repeats itself there: a reader sees whether the level in use is the exposed or
the sheltered end, and what is left of the finding at the other.

A kernel is a statement about the model, and nobody's model is exactly one.  So the same data are
audited under a handful of others: a length scale of half and twice the one in use, a rougher
function (Matérn 3/2), a straight line, an infinitely wide ReLU network.  The noise variance stays,
and every kernel is multiplied so that its mean prior variance is that of the kernel in use: what
differs is the shape and not the level.  It costs one audit per kernel, in the memory of one kernel
matrix at a time, and is left out above ``COMPARED_UP_TO`` records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import kernels, lood, measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.errors import InputError
from leakscope.kernels.formulas import RBF, Linear, Matern, median_length_scale
from leakscope.kernels.network import Network
from leakscope.lood.features import FeatureSums
from leakscope.lood.noise import choose_noise, choose_noise_of_sums, ranks_of
from leakscope.settings.audit import AuditSettings
from leakscope.subjects.arrays import require_varied_kernel
from leakscope.subjects.laws import exact
from leakscope.subjects.process.details import (
    Choices,
    ComparedKernel,
    KernelSensitivity,
    NoiseOfData,
)
from leakscope.subjects.process.process_words import kernel_in_words
from leakscope.subjects.process.routes import Computed, RoutePlan, dense_bytes
from leakscope.subjects.ranks import TOP, hundredth, rank_correlation, top_kept

CRITERIA = {
    "leave_one_out": "the leave-one-out predictive score",
    "marginal_likelihood": "the marginal likelihood",
}

# At 5,000 records and one output the comparison costs about twice the noise sweep (docs/lood.md).
COMPARED_UP_TO = 5000

# Rows of a block of a network's matrix (kernels/network_matrix.py).
BLOCK = 512

# A network is as wide as it likes, not as deep; a small bias keeps a record at the origin from
# having no variance of its own.
DEPTH, NETWORK_BIAS = 2, 0.1


# The data are asked for their noise on at most this many records: an eigendecomposition.
ASKED_RECORDS = 1000

# Fewer records than these settle no noise variance.
LEAST_ASKED = 20

# Within this factor of what the data would choose, a noise variance is about the same.
ABOUT = 3.0


def kernel_from_settings(settings: AuditSettings) -> kernels.Kernel:
    """The kernel that the settings name, with the options they give and its own defaults."""
    return kernels.by_name(settings.kernel, **settings.kernel_options())


def advantages(laws: lood.Separation) -> FloatArray:
    """The best test's TPR - FPR, of every record or group."""
    return laws.measured(lambda pair: exact(measures.advantage(pair)))


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
) -> tuple[Choices, dict[str, NDArray[np.intp]]]:
    """Explain the kernel and the noise of an audit, and try others where the cost is small.

    Beside the reasons there are columns: each record's range of ranks over the kernels.

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
    columns: dict[str, NDArray[np.intp]] = {}
    if reason is None:
        compared, columns = compare_kernels(process, computed.laws, advantage)
    cheap = reason is None or (plan.sensitivity and _in_features(computed))
    if cheap and computed.noise_choice is None:
        own_noise = _noise_of_data(process, computed.laws)
    told = Choices(
        kernel_reason=kernel_reason,
        noise_reason=_noise_reason(computed, own_noise),
        noise_of_data=own_noise,
        kernels=compared,
        not_compared=reason,
    )
    return told, columns


def _in_features(computed: Computed) -> bool:
    """Whether an audit at another noise variance takes a pass over few features."""
    return computed.laws.route == "features" and computed.process.phi is not None


def _noise_of_data(process: lood.ProcessOnRecords, laws: lood.Separation) -> NoiseOfData | None:
    """None where there are too few records to tell, or float64 fails at what they choose."""
    count = process.records
    if count < LEAST_ASKED:
        return None
    some = np.sort(np.random.default_rng(0).permutation(count)[:ASKED_RECORDS])
    try:
        if count > COMPARED_UP_TO and process.phi is not None:
            # Sums over all records say as much as a matrix of some.
            some = np.arange(count)
            choice = choose_noise_of_sums(FeatureSums.over(process.phi, process.outputs))
            found = lood.audit_features(process.phi, process.targets, choice.noise_variance)
        else:
            choice = choose_noise(
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
            f"{computed.noise_choice.sentence()}{share}: it is the noise of the labels; that "
            "training is as random as the labels is an assumption."
        )
    opening = f"noise_variance {level:.4g}{share}"
    if own is None:
        return f"{opening}: the smaller it is, the more exposed every record looks."
    bound = ", the end of the range searched," if own.at_bound else ""
    asked = f"{own.noise_variance:.2g}{bound} by {CRITERIA[own.criterion]}"
    if level * ABOUT < own.noise_variance:
        words = (
            "is a pessimistic setting: the model follows its labels more closely than the data "
            f"suggest ({asked})."
        )
    elif level > ABOUT * own.noise_variance:
        words = (
            "is an optimistic setting: the model follows its labels less closely than the data "
            f"suggest ({asked})."
        )
    else:
        words = f"is about what the data suggest ({asked})."
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
    scaled = isinstance(kernel, RBF | Matern)
    network = isinstance(kernel, Network) and "depth" in told
    open_scale = "length_scale" in told and given.describe().get("length_scale") is None
    smooth = "smooth" if isinstance(kernel, RBF) else "rough"
    if open_scale:
        found = (
            f"{words}: a {smooth} function of all features, none of them special, that varies over "
            "the median distance between records"
        )
    elif scaled:
        found = f"{words}, as given: a {smooth} function of all features" + _against(told, features)
    elif isinstance(kernel, Linear):
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
    median = median_length_scale(features)
    return f" (the median distance between records is {median:.4g})"


def compare_kernels(
    process: lood.ProcessOnRecords, laws: lood.Separation, advantage: FloatArray
) -> tuple[KernelSensitivity, dict[str, NDArray[np.intp]]]:
    """Audit a process's records under other kernels than its own.

    Parameters
    ----------
    process
        What was audited.
    laws, advantage
        What the audit found under the kernel in use.
    """
    kernel, features, kernel_scale = process.kernel, process.features, process.kernel_scale
    own = ranks_of(laws.kl)
    prior = float(np.mean(process.diagonal()))
    described = {**kernel.describe(), **({} if kernel_scale == 1.0 else {"factor": kernel_scale})}
    in_use = _compared(described, laws, advantage, laws.kl, own)
    others, ranks, refused = [], [own], []
    for other in alternatives(kernel, features):
        try:
            found = laws_under(process, other, laws.noise_variance, prior=prior)
        except InputError as error:
            refused.append(f"{kernel_in_words(other.describe())}: {error}")
            continue
        others.append(_compared(other.describe(), found, advantages(found), laws.kl, own))
        ranks.append(ranks_of(found.kl))
    compared = KernelSensitivity(
        in_use=in_use,
        others=others,
        top_ten=min(TOP, len(own)),
        top_hundredth=hundredth(len(own)),
        refused=refused,
    )
    return compared, {
        "kernel_rank_low": np.min(ranks, axis=0),
        "kernel_rank_high": np.max(ranks, axis=0),
    }


def alternatives(kernel: kernels.Kernel, features: FloatArray) -> tuple[kernels.Kernel, ...]:
    """A handful of other sensible kernels, with every parameter a number."""
    described: Any = kernel
    scale = getattr(kernel, "length_scale", None)
    found: list[kernels.Kernel] = []
    if scale is not None and hasattr(described, "__dataclass_fields__"):
        half: Any = replace(described, length_scale=0.5 * scale)
        double: Any = replace(described, length_scale=2.0 * scale)
        found += [half, double]
    else:
        scale = median_length_scale(features)
    found += [
        kernels.rbf(float(scale)),
        kernels.matern(1.5, float(scale)),
        kernels.linear(bias_variance=1.0, divide_by_features=True),
        kernels.nngp(depth=DEPTH, bias_variance=NETWORK_BIAS),
    ]
    used = _shape(kernel)
    return tuple(other for other in found if _shape(other) != used)


def laws_under(
    process: lood.ProcessOnRecords,
    kernel: kernels.Kernel,
    noise_variance: float,
    *,
    prior: float | None = None,
) -> lood.Separation:
    """What leaving changes under another kernel and noise, by the dense route.

    Where ``prior`` is given, the kernel is multiplied so that its mean over the records, k(x, x),
    is that.
    """
    grouped = process.groups is not None
    require_memory(
        (2 if grouped or hasattr(kernel, "jax") else 1) * dense_bytes(process.features),
        f"another kernel matrix of {process.records} records",
        "skip the sensitivity",
    )
    matrix = np.require(_matrix(kernel, process.features), dtype=np.float64, requirements=["W"])
    require_varied_kernel(matrix)
    if prior is not None:
        matrix *= prior / float(np.mean(np.diagonal(matrix)))
    return process.separation_of(matrix, noise_variance, overwrite=True)


def _matrix(kernel: kernels.Kernel, features: FloatArray) -> FloatArray:
    """The kernel matrix; a network's over whole blocks, whose code is compiled once for all n."""
    count = len(features)
    if not hasattr(kernel, "jax") or features.ndim != 2:
        return kernel(features)
    padded = np.resize(np.arange(count), -(-count // BLOCK) * BLOCK)
    return np.array(kernel(features[padded])[:count, :count])


def _compared(
    described: dict[str, Any],
    found: lood.Separation,
    advantage: FloatArray,
    kl: FloatArray,
    ranks: NDArray[np.intp],
) -> ComparedKernel:
    first = int(np.argmin(ranks))
    return ComparedKernel(
        name=kernel_in_words(described),
        kernel=described,
        rank_correlation=rank_correlation(kl, found.kl),
        top_ten_kept=top_kept(kl, found.kl, TOP),
        top_hundredth_kept=top_kept(kl, found.kl, hundredth(len(kl))),
        rank_of_first=int(ranks_of(found.kl)[first]),
        largest_advantage=float(np.max(advantage)),
        median_advantage=float(np.median(advantage)),
        prediction_error=found.prediction_error,
    )


def _shape(kernel: kernels.Kernel) -> tuple[Any, ...]:
    """What tells two kernels apart once both have the same prior variance."""
    told = kernel.describe()
    if told["name"] == "linear":
        return ("linear",)
    return tuple(told.get(name) for name in ("name", "length_scale", "nu", "depth", "activation"))
