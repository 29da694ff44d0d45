"""What the limit assumes, said with every result; and that a typical-case KL is no guarantee."""

from __future__ import annotations

from leakscope.lasso.setting import LassoSetting
from leakscope.laws import Assumption, Method, Observes, Provenance

NOT_A_GUARANTEE = (
    "The on-average KL is that of a typical pair of datasets of this data model; it is not a "
    "differential-privacy guarantee, which holds for every dataset."
)


def assumptions_of(setting: LassoSetting) -> tuple[Assumption, ...]:
    """The assumptions of the limit for one setting."""
    stated = [
        Assumption("the features are i.i.d. Gaussian with variance 1/p", None, "a data model"),
        Assumption("coefficients are Bernoulli-Gaussian, label noise Gaussian", None, "the same"),
        Assumption("n and p are large with n/p = alpha", None, "the limit is taken"),
        Assumption("the privacy noise is i.i.d. Gaussian and independent of the data", None, ""),
        Assumption("the replica-symmetric (state-evolution) solution", None, "Claims 4.2, 6.1"),
        Assumption("the number is a differential-privacy guarantee", False, NOT_A_GUARANTEE),
    ]
    if setting.mechanism == "output":
        stated.append(
            Assumption("replacing a record changes few coordinates' support", None, "Section 6.1")
        )
    return tuple(stated)


def provenance_of(
    setting: LassoSetting, *, observes: Observes = "coefficients", method: Method = "asymptotic"
) -> Provenance:
    """The provenance of a pair at this setting: a record replaced, over the privacy noise.

    Examples
    --------
    >>> from leakscope import lasso
    >>> setting = lasso.LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.2, mechanism="output")
    >>> lasso.provenance_of(setting).source
    'lasso Eq. (60) times 1 + V'
    """
    source = (
        "lasso Eq. (60) times 1 + V"
        if setting.mechanism == "output"
        else "lasso Eqs. (9) and (53), with the two-replica correction of Claims 5.1 and 6.1"
    )
    return Provenance(
        question="population",
        adjacency="replaced",
        observes=observes,
        random=("privacy_noise",),
        attacker_knows_label=True,
        method=method,
        source=source,
        assumptions=assumptions_of(setting),
    )
