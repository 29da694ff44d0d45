"""What relu's attacks answer, said once: for their results, and for pairs of their scores."""

from __future__ import annotations

from leakscope.laws import Assumption, Provenance
from leakscope.relu.kkt_reconstruction import PointReconstruction
from leakscope.relu.membership import MembershipAnswer, membership_provenance
from leakscope.relu.reconstruction import Reconstruction


def attack_provenance(found: MembershipAnswer | Reconstruction | PointReconstruction) -> Provenance:
    """Which question an attack's result answers, what the attacker saw, and by which theorem.

    Membership: a typical training point against a fresh one of the same law, by the network's
    answer.  Reconstruction: this training set, by the weights or, from queries, by the answers.

    Examples
    --------
    >>> from leakscope.relu import KnownMargin, attack_provenance
    >>> told = attack_provenance(KnownMargin(1.0).attack([1.0, 0.2]))
    >>> told.question, told.observes, told.source
    ('population', 'prediction', 'relu Cor. 4.3')
    """
    if isinstance(found, MembershipAnswer):
        return membership_provenance(found.source)
    if isinstance(found, Reconstruction):
        return Provenance(
            question="leave_one_out",
            observes="coefficients" if found.queries is None else "prediction",
            method="exact",
            source="relu Thms 3.1 to 3.4, Algorithm 1",
            assumptions=found.assumptions,
        )
    return Provenance(
        question="leave_one_out",
        observes="coefficients",
        method="simulated",
        source="the KKT residual over points and multipliers, after Haim et al. 2022",
        assumptions=(Assumption("the network is a KKT point of the maximum-margin problem"),),
    )
