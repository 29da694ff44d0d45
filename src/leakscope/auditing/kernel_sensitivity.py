"""How the ranks move when the kernel does.

A kernel is a statement about the model, and nobody's model is exactly one.  So the same data are
audited under a handful of others: a length scale of half and twice the one in use, a rougher
function (Matérn 3/2), a straight line, an infinitely wide ReLU network.  The noise variance stays,
and every kernel is multiplied so that its mean prior variance is that of the kernel in use: what
differs is the shape and not the level.

Cost: one audit per kernel, in the memory of one kernel matrix at a time; left out above
``COMPARED_UP_TO`` records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leakscope import kernels, lood
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.auditing.checks import require_varied_kernel
from leakscope.auditing.kernel_choice import kernel_in_words
from leakscope.auditing.measured import advantages
from leakscope.auditing.routes import dense_bytes
from leakscope.errors import InputError

# At 5,000 records and one output the comparison costs about twice the noise sweep (docs/lood.md).
COMPARED_UP_TO = 5000

TOP = 10

# Rows of a block of a network's matrix (kernels/network_matrix.py).
BLOCK = 512

# A network is as wide as it likes, not as deep; a small bias keeps a record at the origin from
# having no variance of its own.
DEPTH, NETWORK_BIAS = 2, 0.1


@dataclass(frozen=True)
class KernelComparison:
    """The same data under another kernel.

    Attributes
    ----------
    name, kernel
        In a few words, and with all parameters.
    rank_correlation
        Spearman's, of the KL under this kernel and under the one in use; nan where all are equal.
    top_ten_kept, top_hundredth_kept
        How many of the ten (of the hundredth) most exposed are so under both.
    rank_of_first
        The rank here of the record that is first under the kernel in use.
    largest_advantage, median_advantage
        Over all records.
    prediction_error
        Root mean square of label minus what the other records predict, in units of the target as
        used: the kernel with the smallest describes these data best.
    """

    name: str
    kernel: dict[str, Any]
    rank_correlation: float
    top_ten_kept: int
    top_hundredth_kept: int
    rank_of_first: int
    largest_advantage: float
    median_advantage: float
    prediction_error: float


@dataclass(frozen=True)
class KernelSensitivity:
    """The audit under the kernel in use beside those under others.

    Attributes
    ----------
    in_use, others
        One entry per kernel; ``in_use`` is compared with itself.
    rank_low, rank_high
        (n,) each record's best and worst rank over all of them.
    top_ten, top_hundredth
        How many records those are: ten, and a hundredth, rounded up (fewer where there are fewer).
    refused
        Kernels that float64 cannot factorise here, with the reason.
    """

    in_use: KernelComparison
    others: tuple[KernelComparison, ...]
    rank_low: NDArray[np.intp]
    rank_high: NDArray[np.intp]
    top_ten: int
    top_hundredth: int
    refused: tuple[str, ...]

    def caution(self) -> str | None:
        """Where another kernel ranks the first record neither in its top ten nor hundredth."""
        limit = max(self.top_ten, self.top_hundredth)
        outside = [c for c in self.others if c.rank_of_first > limit]
        if not outside:
            return None
        worst = max(outside, key=lambda entry: entry.rank_of_first)
        return (
            f"The kernel matters: under {len(outside)} of {len(self.others)} others, the first is "
            f"outside the top {limit} ({worst.rank_of_first} under {worst.name})."
        )


def compare_kernels(
    process: lood.Process, laws: lood.Separation, advantage: FloatArray
) -> KernelSensitivity:
    """Audit a process's records under other kernels than its own.

    Parameters
    ----------
    process
        What was audited.
    laws, advantage
        What the audit found under the kernel in use.
    """
    kernel, features, kernel_scale = process.kernel, process.features, process.kernel_scale
    own = lood.ranks_of(laws.kl)
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
        ranks.append(lood.ranks_of(found.kl))
    return KernelSensitivity(
        in_use=in_use,
        others=tuple(others),
        rank_low=np.min(ranks, axis=0),
        rank_high=np.max(ranks, axis=0),
        top_ten=min(TOP, len(own)),
        top_hundredth=_hundredth(len(own)),
        refused=tuple(refused),
    )


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
        scale = kernels.median_length_scale(features)
    found += [
        kernels.rbf(float(scale)),
        kernels.matern(1.5, float(scale)),
        kernels.linear(bias_variance=1.0, divide_by_features=True),
        kernels.nngp(depth=DEPTH, bias_variance=NETWORK_BIAS),
    ]
    used = _shape(kernel)
    return tuple(other for other in found if _shape(other) != used)


def laws_under(
    process: lood.Process,
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


def top_kept(kl: FloatArray, other: FloatArray, count: int) -> int:
    """How many of the ``count`` most exposed by one are so by the other too.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import auditing
    >>> auditing.top_kept(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), 2)
    1
    """
    return int(np.count_nonzero((lood.ranks_of(kl) <= count) & (lood.ranks_of(other) <= count)))


def rank_correlation(kl: FloatArray, other: FloatArray) -> float:
    """Spearman's rank correlation; nan where one of the two does not vary.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import auditing
    >>> auditing.rank_correlation(np.array([3.0, 2.0, 1.0]), np.array([30.0, 20.0, 10.0]))
    1.0
    """
    first, second = rankdata(kl), rankdata(other)
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _compared(
    described: dict[str, Any],
    found: lood.Separation,
    advantage: FloatArray,
    kl: FloatArray,
    ranks: NDArray[np.intp],
) -> KernelComparison:
    first = int(np.argmin(ranks))
    return KernelComparison(
        name=kernel_in_words(described),
        kernel=described,
        rank_correlation=rank_correlation(kl, found.kl),
        top_ten_kept=top_kept(kl, found.kl, TOP),
        top_hundredth_kept=top_kept(kl, found.kl, _hundredth(len(kl))),
        rank_of_first=int(lood.ranks_of(found.kl)[first]),
        largest_advantage=float(np.max(advantage)),
        median_advantage=float(np.median(advantage)),
        prediction_error=found.prediction_error,
    )


def _hundredth(count: int) -> int:
    return -(-count // 100)


def _shape(kernel: kernels.Kernel) -> tuple[Any, ...]:
    """What tells two kernels apart once both have the same prior variance."""
    told = kernel.describe()
    if told["name"] == "linear":
        return ("linear",)
    return tuple(told.get(name) for name in ("name", "length_scale", "nu", "depth", "activation"))
