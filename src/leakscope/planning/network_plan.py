"""Infinitely wide networks on the user's records: what each gives away (lood Section 6).

A Bayesian network of infinite width is a Gaussian process with its NNGP kernel, and what each
record's leaving changes follows from one factorisation (:mod:`leakscope.lood.dense`).  What an
activation or a depth does to leakage depends on the size of the kernel as much as on its shape
(docs/attack_query.md), so kernels are brought to one mean prior variance unless asked otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from leakscope import __version__, kernels, measures
from leakscope.data.datasets import Dataset
from leakscope.data.pictures import picture_shape
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import all_records
from leakscope.lood.process import ProcessOnRecords
from leakscope.results.document import DatasetEntry
from leakscope.results.plan import NetworkPlan, PlannedNetwork
from leakscope.results.shown import certain, digits
from leakscope.settings.audit import AUDIT_DEFAULTS, AuditSettings
from leakscope.settings.plan import NETWORK_PLAN_DEFAULTS, NetworkPlanSettings

# The lood paper's networks: no bias, and weights of this variance over the fan-in.
WEIGHT_VARIANCE = 2.0

# Pixels that a convolution looks at, each way.
FILTER = 3


def architecture(
    form: str, activation: str, depth: int, shape: tuple[int, ...] | None = None
) -> Kernel:
    """The kernel of a network of ``depth`` hidden layers.

    ``plain`` is dense; ``residual`` goes around every hidden layer but the first; ``convolution``
    and ``pooling`` end with all pixels side by side, or with their average.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels
    >>> from leakscope.planning.network_plan import architecture
    >>> X = np.eye(3)
    >>> bool(np.allclose(architecture("plain", "relu", 2)(X), kernels.nngp(2, "relu")(X)))
    True
    """
    phi, weights = kernels.activation(activation), kernels.dense(WEIGHT_VARIANCE)
    if form == "plain":
        return kernels.nngp(depth, activation, WEIGHT_VARIANCE)
    if form == "residual":
        around = kernels.residual(phi, weights)
        return kernels.sequential(weights, *([around] * (depth - 1)), phi, weights)
    if shape is None:
        raise InputError(
            f"{form} is for pictures, and the records are none: rows of n x n or n x n x 3 pixels, "
            "an .npz of pictures or a folder of them; leave it out."
        )
    hidden = (kernels.conv(FILTER, weight_variance=WEIGHT_VARIANCE), phi)
    end = kernels.flatten() if form == "convolution" else kernels.global_average_pool()
    return kernels.sequential(
        *(hidden * depth),
        end,
        weights,
        input_shape=(shape[0], shape[1], shape[2] if len(shape) == 3 else 1),
    )


def plan_network(
    dataset: Dataset,
    networks: NetworkPlanSettings | None = None,
    settings: AuditSettings | None = None,
) -> NetworkPlan:
    """Compare networks on the user's records: what each would give away, and how it predicts.

    Parameters
    ----------
    dataset
        From :func:`leakscope.data.read_dataset`, :func:`~leakscope.data.read_example` or
        :func:`~leakscope.data.from_frame`.
    networks
        Which networks; activations, depths and forms are combined.
    settings
        Scaling and noise variance, as an audit takes them; a kernel is not looked at.

    Returns
    -------
    NetworkPlan
        One row per network: the largest and the median advantage, and the leave-one-out error.

    Raises
    ------
    InputError
        Where no network can be computed, or one of pictures is asked for and there are none.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope import data
    >>> from leakscope.settings.plan import NetworkPlanSettings
    >>> few = NetworkPlanSettings(activations=("relu",), depths=(1, 5), forms=("plain",))
    >>> plan = leakscope.plan_network(data.read_example("iris"), few)
    >>> [one.name for one in plan.networks]
    ['relu, 1 layer', 'relu, 5 layers']
    """
    begin = time.perf_counter()
    how = NETWORK_PLAN_DEFAULTS if networks is None else networks
    model = AUDIT_DEFAULTS if settings is None else settings
    noise = model.noise_variance
    if isinstance(noise, str):
        raise InputError(f"noise_variance must be a number, but it is {noise!r}.")
    prepared = prepare(dataset, scaling=model.scaling)
    shape = dataset.picture or picture_shape(dataset.features.shape[1])
    found: list[PlannedNetwork] = []
    refused: list[str] = []
    provenance = None
    for form, activation, depth in _combined(how):
        kernel = architecture(form, activation, depth, shape)
        name = f"{activation}, {depth} layer{'' if depth == 1 else 's'}"
        name += "" if form == "plain" else f", {form}"
        try:
            process = ProcessOnRecords(prepared.features, prepared.target, kernel, noise)
            prior = float(np.mean(np.diagonal(process.matrix)))
            matrix = process.matrix / prior if how.equal_scale else process.matrix
            laws = all_records(matrix, prepared.target, noise_variance=noise)
        except InputError as error:
            refused.append(f"{name}: {error}")
            continue
        advantage = np.asarray(laws.measured(lambda pair: np.asarray(measures.advantage(pair))))
        most = int(np.argmax(laws.kl))
        deviation = float(np.sqrt(process.total_variance))
        provenance = provenance or laws.provenance()
        found.append(
            PlannedNetwork(
                name=name,
                activation=activation,
                depth=depth,
                form=form,
                largest_advantage=float(advantage.max()),
                median_advantage=float(np.median(advantage)),
                largest_kl=float(laws.kl[most]),
                median_kl=float(np.median(laws.kl)),
                record_id=dataset.record_ids[most],
                error=laws.prediction_error / deviation if deviation > 0.0 else None,
                prior_variance=prior,
                unconfirmed=int(np.count_nonzero(~laws.trusted)),
            )
        )
    if provenance is None:
        # What holds for every network, such as a library that is missing, names none of them.
        reasons = {one.partition(": ")[2] for one in refused}
        raise InputError(reasons.pop() if len(reasons) == 1 else refused[0])
    told = provenance.to_dict()
    assumptions = told.pop("assumptions")
    lost = [one for one in found if one.unconfirmed]
    return NetworkPlan(
        leakscope_version=__version__,
        settings={**how.model_dump(), "noise_variance": noise, "scaling": model.scaling},
        provenance=told,
        # The one about float64 is of each network; the warnings have it.
        assumptions=assumptions[:-1],
        timing={"plan": time.perf_counter() - begin},
        warnings=[
            *refused,
            *(
                f"{one.name}: float64 does not resolve {one.unconfirmed} records; raise "
                "--noise-variance."
                for one in lost
            ),
        ],
        dataset=DatasetEntry.of(prepared),
        noise_variance=noise,
        networks=tuple(found),
        verdict=_verdict(found, equal=how.equal_scale),
    )


def _combined(how: NetworkPlanSettings) -> Iterator[tuple[str, str, int]]:
    for form in dict.fromkeys(how.forms):
        for activation in dict.fromkeys(how.activations):
            for depth in dict.fromkeys(how.depths):
                # With one hidden layer there is nothing to go around.
                if form != "residual" or depth > 1:
                    yield form, activation, depth


def _verdict(found: list[PlannedNetwork], *, equal: bool) -> str:
    def leaks(one: PlannedNetwork) -> float:
        return one.median_advantage or 0.0

    least, most = min(found, key=leaks), max(found, key=leaks)
    sizes = (
        "Kernels are scaled to one size; --no-equal-scale may change the order."
        if equal
        else "Kernels keep their own sizes, which move the level."
    )
    if len(found) == 1:
        return (
            f"{least.name}: the median record's advantage is {certain(least.median_advantage)}, "
            f"the largest {certain(least.largest_advantage)}. {sizes}"
        )
    return (
        f"{_told(least)} gives away least about the median record, {_told(most)} most, of "
        f"{len(found)} networks. {sizes}"
    )


def _told(one: PlannedNetwork) -> str:
    return f"{one.name} (advantage {certain(one.median_advantage)}, error {digits(one.error)})"
