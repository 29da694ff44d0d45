"""Which queries was this model trained on?  A network by its margin, a fitted model by its laws."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, get_args

from numpy.typing import ArrayLike

from leakscope import __version__, relu
from leakscope.attacking.network_inputs import (
    TrainingSet,
    answered,
    described_network,
    network_arrays,
    query_rows,
    training_rows,
)
from leakscope.attacking.pool import Records, attack_model
from leakscope.errors import InputError
from leakscope.relu.kkt import KktResidual
from leakscope.relu.margin_bounds import MarginBounds
from leakscope.relu.membership import membership_attack
from leakscope.results.attacks import (
    Applicability,
    MembershipAttack,
    ModelMembershipAttack,
)
from leakscope.results.document import AssumptionEntry
from leakscope.settings.attack import (
    MEMBERSHIP_DEFAULTS,
    POOL_ATTACK_DEFAULTS,
    MarginKnowledge,
    PoolAttackSettings,
)

# How far from the margin, as a share of it, is on it.
TOLERANCE = MEMBERSHIP_DEFAULTS.tolerance

# Corollary 4.4 with the queries themselves as its points.
ONE_OF_THEM = (
    "This assumes that at least one of them was trained on, and that no other point has a larger "
    "answer (Cor. 4.4); if none was, these calls mean nothing. "
)


def attack_membership(
    network: Any,
    queries: Any,
    *,
    pool: Records | None = None,
    settings: PoolAttackSettings = POOL_ATTACK_DEFAULTS,
    knowledge: MarginKnowledge | None = MEMBERSHIP_DEFAULTS.knowledge,
    margin: float | None = None,
    leaked: ArrayLike | str | Path | None = None,
    lower_bound: float | None = None,
    tolerance: float = TOLERANCE,
    data: TrainingSet | None = None,
) -> MembershipAttack | ModelMembershipAttack:
    """Which of these queries was a model trained on?  From its answers alone.

    With ``pool`` a fitted model is attacked, by the likelihood ratio of its own laws.  Without it
    a network is: training with the logistic or exponential loss ends near a KKT point of the
    maximum-margin problem.  In high dimension its answers have the size of the margin at every
    training record and are far smaller elsewhere.

    Parameters
    ----------
    network
        A :class:`leakscope.relu.TwoLayerNetwork`, or the file that holds one.  With ``pool`` a
        fitted estimator, a .skops file, or a model's name.
    queries
        The records in question, one row each, a column for each input; an array or a file.  With
        ``pool`` records and labels, as it has them.
    pool
        The records that the model was trained on a part of, records and labels or a file.
    settings
        With ``pool``: target, penalty, the share trained on, the prior.
    knowledge
        What the attacker knows: ``margin``, its value; ``leaked``, points one of which was trained
        on; ``bounded``, a lower bound of the margin.  Where left out, what the options below say;
        with none of them and no ``data``, that one of the queries was trained on.
    margin
        With ``margin``: the least y f(x) of training; that of ``data`` where left out.
    leaked
        With ``leaked``: those points; the queries where left out.
    lower_bound
        With ``bounded``: what the margin exceeds; 1/e where left out.
    tolerance
        With ``margin`` and ``leaked``: how far from the margin, as a share of it, is on it.
    data
        The training set, to check the theorem on: records and labels of -1 or 1, or a file whose
        last column is the label.

    Returns
    -------
    MembershipAttack
        A score and a call for each query, and whether the theorem covers the network.
    ModelMembershipAttack
        With ``pool``: score, posterior and calibrated thresholds.

    Raises
    ------
    InputError
        Where an option does not belong to the knowledge, or the network misclassifies ``data``.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.relu import TwoLayerNetwork
    >>> network = TwoLayerNetwork(w=[[1.0], [-1.0]], b=[0.0, 0.0], v=[1.0, -1.0])
    >>> leakscope.attack_membership(network, [[1.0], [0.1], [-0.9]], margin=1.0).member
    [True, False, True]
    """
    if pool is not None:
        of_margin = any(value is not None for value in (margin, leaked, lower_bound, data))
        if of_margin or knowledge != MEMBERSHIP_DEFAULTS.knowledge:
            raise InputError(
                "pool is for fitted models, and what is known of a margin is for networks; give "
                "one of them."
            )
        return attack_model(network, queries, pool, settings)
    if knowledge is None:
        if lower_bound is not None:
            knowledge = "bounded"
        else:
            takes_margin = leaked is None and (margin is not None or data is not None)
            knowledge = "margin" if takes_margin else "leaked"
    if knowledge not in get_args(MarginKnowledge):
        raise InputError(
            f"knowledge must be one of {', '.join(get_args(MarginKnowledge))}, but it is "
            f"{knowledge!r}."
        )
    for given, name, owner in (
        (margin, "margin", "margin"),
        (leaked, "leaked", "leaked"),
        (lower_bound, "lower_bound", "bounded"),
    ):
        if given is not None and knowledge != owner:
            raise InputError(f"{name} belongs to the knowledge {owner}, not to {knowledge}.")
    begin = time.perf_counter()
    arrays = network_arrays(network)
    attacked = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    asked = query_rows(queries, attacked.features)
    residual = bounds = None
    if data is not None:
        training = training_rows(data, attacked.features)
        residual, bounds = relu.kkt_residual(attacked, *training), relu.margin_bounds(*training)
    if knowledge == "margin":
        value, margin_from = _margin(margin, residual)
        known: Any = relu.KnownMargin(value, tolerance)
    elif knowledge == "leaked":
        points = None if leaked is None else attacked(query_rows(leaked, attacked.features))
        known = relu.LeakedPoints(points, tolerance)
        margin_from = "the largest answer of the queries" if leaked is None else "the leaked points"
    else:
        known = relu.BoundedMargin() if lower_bound is None else relu.BoundedMargin(lower_bound)
        margin_from = "Remark B.5" if lower_bound is None else "the lower bound given"
    found = membership_attack(attacked, asked, known)
    applicability = applicability_of(residual, bounds)
    values = found.to_dict()
    del values["source"]
    return MembershipAttack(
        leakscope_version=__version__,
        settings={
            "knowledge": knowledge,
            "margin": margin,
            "lower_bound": lower_bound,
            "tolerance": tolerance,
        },
        provenance=answered(found.provenance()),
        assumptions=_assumptions(applicability),
        timing={"attack": time.perf_counter() - begin},
        warnings=list(arrays.notes),
        network=described_network(arrays),
        knowledge=knowledge,
        margin_from=margin_from,
        query_bounds=None if bounds is None else bounds.query_bound(asked).tolist(),
        applicability=applicability,
        verdict=f"{int(found.member.sum())} of {found.member.size} queries are called members. "
        + (ONE_OF_THEM if knowledge == "leaked" and leaked is None else "")
        + applicability.statement,
        **values,
    )


def _margin(margin: float | None, residual: KktResidual | None) -> tuple[float, str]:
    if margin is not None:
        return margin, "given"
    if residual is None:
        raise InputError(
            "knowledge margin needs the margin, or the training set as data to take it from."
        )
    if not residual.margin > 0.0:
        raise InputError(
            "The network misclassifies a record of the training set given, so there is no margin: "
            f"its least y f(x) is {residual.margin:g}."
        )
    return residual.margin, "of the training set given"


def applicability_of(residual: KktResidual | None, bounds: MarginBounds | None) -> Applicability:
    """Whether Theorem 4.2 covers a network, from its training set where there is one."""
    if residual is None or bounds is None:
        return Applicability(
            covered=None,
            kkt_residual=None,
            bounds=None,
            statement="Whether Theorem 4.2 covers this network is not known without its training "
            "set; give it as data.",
        )
    proven, n = int(bounds.on_margin.sum()), len(bounds.y)
    verb = "covers" if bounds.covered else "does not cover"
    return Applicability(
        covered=bounds.covered,
        kkt_residual=residual.residual,
        bounds=bounds.to_dict(),
        statement=f"Theorem 4.2, with constants for this training set, {verb} it: {proven} of {n} "
        "records are proven to lie on the margin. It speaks of KKT points; this network's residual "
        f"is {residual.residual:.2g}, with {residual.kinks} pairs of a neuron and a record on a "
        "kink.",
    )


def _assumptions(found: Applicability) -> list[AssumptionEntry]:
    entries = (
        ("the network is a KKT point of the maximum-margin problem", None),
        ("the training records are nearly orthogonal (Assumption 4.1)", found.covered),
        ("queries that were not trained on come from the records' own law", None),
    )
    return [
        AssumptionEntry(statement=statement, holds=holds, evidence=found.statement)
        for statement, holds in entries
    ]
