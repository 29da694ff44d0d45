"""From a design to the pair of laws of what the attacker sees, by three routes."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws import (
    Assumption,
    Law,
    LawPair,
    MultivariateNormal,
    Normal,
    NormalMixture,
    Provenance,
)
from leakscope.linear.asymptotic import asymptotic_moments
from leakscope.linear.design import GaussianDesign, RecordNorms
from leakscope.linear.moments import Moments, exact_moments
from leakscope.linear.output_noise import OutputNoise
from leakscope.linear.simulated import simulated_moments
from leakscope.settings import LINEAR_PLAN_DEFAULTS, LinearAttacker, LinearMethod

Attacker = LinearAttacker


def law_pair(
    design: GaussianDesign,
    norms: RecordNorms | None = None,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    attacker: Attacker = "label_hidden",
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    draws: int = 2000,
    random_state: int | np.random.Generator | Key | None = None,
) -> LawPair:
    """The laws of a prediction yhat0 at a record x0, when x0 was trained on and when it was not.

    The membership experiment is Exp. 1 of the paper **linear**: a non-member is a fresh record
    beside n others, a member replaces one of them.  The pair's advantage at one x0 is that of the
    optimal adversary (Prop. 3.1).

    Parameters
    ----------
    design
        The data model and the estimator.
    norms
        The records in question, J of them; the typical one where left out.
    method
        ``"exact"``: finite-n laws, mixtures over ``draws`` random designs that cost a few random
        numbers each.  ``"asymptotic"``: Thm 3.2 and the corrected Thm 4.1.  ``"simulated"``: the
        same mixtures from ``draws`` whole matrices.
    attacker
        ``"label_hidden"``, the paper's, sees x0 and yhat0; ``"label_known"`` sees y0 too.
    noise
        Noise on the answers.
    labels
        For the label-known attacker of a finite-n law: the labels, in their standard deviations,
        at which the laws of yhat0 given y0 are wanted, L of them; `label_nodes` by default.
    draws
        Designs in a mixture: its components, equally weighted and independent.

    Returns
    -------
    LawPair
        A batch of shape (J,): normals (asymptotic) or scale mixtures of normals.  For the
        label-known attacker, (J,) bivariate normals of (y0, yhat0) (asymptotic) or (J, L)
        mixtures of normals of yhat0 given y0.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign, law_pair
    >>> from leakscope.measures import advantage
    >>> design = GaussianDesign(n=100, p=400, dim=3000, sigma=1.0)
    >>> pair = law_pair(design, method="asymptotic")
    >>> advantage(pair).round(4)
    array([0.2624])
    >>> advantage(law_pair(design, draws=500, random_state=1)).round(2)
    array([0.26])
    """
    if method not in get_args(LinearMethod):
        raise InputError(
            f"method must be one of {', '.join(get_args(LinearMethod))}, not {method!r}."
        )
    if attacker not in get_args(Attacker):
        raise InputError(
            f"attacker must be one of {', '.join(get_args(Attacker))}, not {attacker!r}."
        )
    if draws < 1:
        raise InputError(f"draws must be 1 or more, but it is {draws}.")
    records = RecordNorms.typical(design) if norms is None else norms
    member, nonmember = moments(design, records, method, draws, as_key(random_state))
    return pair_of_moments(
        member,
        nonmember,
        attacker=attacker,
        noise=noise,
        labels=labels,
        provenance=_provenance(design, method, attacker, noise, draws),
    )


def moments(
    design: GaussianDesign, norms: RecordNorms, method: LinearMethod, draws: int, key: Key
) -> tuple[Moments, Moments]:
    """Second moments of (y0, yhat0), with the record and without it, by the route ``method``.

    Examples
    --------
    >>> from leakscope import linear
    >>> from leakscope._numerics.keys import Key
    >>> design = linear.GaussianDesign(100, 400, 3000, 1.0)
    >>> norms = linear.RecordNorms.nodes(design)
    >>> member, nonmember = linear.moments(design, norms, "asymptotic", 1, Key(0))
    >>> bool((member.prediction > nonmember.prediction).all())
    True
    """
    if method == "asymptotic":
        return asymptotic_moments(design, norms)
    if method == "exact":
        return exact_moments(design, norms, key, draws)
    return simulated_moments(design, norms, key, draws)


def pair_of_moments(
    member: Moments,
    nonmember: Moments,
    *,
    attacker: Attacker,
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    provenance: Provenance,
) -> LawPair:
    """The pair of laws that second moments over designs stand for.

    Examples
    --------
    >>> from leakscope import linear, measures
    >>> from leakscope._numerics.keys import Key
    >>> from leakscope.laws import Provenance
    >>> design = linear.GaussianDesign(100, 400, 3000, 1.0)
    >>> norms = linear.RecordNorms.typical(design)
    >>> sides = linear.moments(design, norms, "asymptotic", 1, Key(0))
    >>> pair = linear.pair_of_moments(*sides, attacker="label_hidden",
    ...                               provenance=Provenance(method="asymptotic"))
    >>> measures.advantage(pair).round(4)
    array([0.2624])
    """
    extra = (0.0, 0.0) if noise is None else noise.variances()
    sides = [
        side._replace(prediction=side.prediction + more)
        for side, more in zip((member, nonmember), extra, strict=True)
    ]
    laws: list[Law]
    if attacker == "label_hidden":
        laws = [_scale_law(side.prediction) for side in sides]
    elif provenance.method == "asymptotic":
        laws = [_bivariate(side) for side in sides]
    else:
        scores = label_nodes()[0] if labels is None else np.asarray(labels, dtype=np.float64)
        laws = [_given_label(side, np.atleast_1d(scores)) for side in sides]
    return LawPair(laws[0], laws[1], provenance)


def label_nodes(count: int = 6) -> tuple[FloatArray, FloatArray]:
    """Labels, in standard deviations, and weights that average an even function of them.

    Examples
    --------
    >>> from leakscope.linear import label_nodes
    >>> nodes, weights = label_nodes()
    >>> float((weights * nodes**2).sum()).__round__(12)
    1.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * count)
    half = nodes > 0.0
    return np.asarray(nodes[half]), np.asarray(weights[half] / weights[half].sum())


def _scale_law(variance: FloatArray) -> Normal | NormalMixture:
    if np.all(variance == variance[:, :1]):
        return Normal(0.0, np.sqrt(variance[:, 0]))
    return NormalMixture.scale(np.sqrt(variance))


def _bivariate(side: Moments) -> MultivariateNormal:
    label, prediction, covariance = (a[:, 0] for a in side)
    _require_spread(prediction - covariance**2 / label, label)
    matrix = np.stack([label, covariance, covariance, prediction], axis=-1).reshape(-1, 2, 2)
    return MultivariateNormal(np.zeros((len(label), 2)), matrix)


def _given_label(side: Moments, scores: FloatArray) -> NormalMixture:
    slope, variance = side.given_label()
    _require_spread(side.prediction - slope * side.covariance, side.label)
    labels = scores[None, :, None] * np.sqrt(side.label)[:, :, None]
    return NormalMixture(1.0, slope[:, None, :] * labels, np.sqrt(variance)[:, None, :])


def _require_spread(variance: FloatArray, label: FloatArray) -> None:
    if np.any(variance <= 1e-12 * label):
        raise InputError(
            "The prediction is the label itself, so an attacker who knows the label knows the "
            "prediction: for an interpolating model without noise on its answers the label-known "
            "advantage is 1, and no law is needed."
        )


def _provenance(
    design: GaussianDesign,
    method: LinearMethod,
    attacker: Attacker,
    noise: OutputNoise | None,
    draws: int,
) -> Provenance:
    sources = {
        "exact": "linear Exp. 1; finite-n law from chi-squares (in place of Lemmas C.1 and C.3)",
        "asymptotic": "linear Thm 3.2, Eq. (2)"
        if design.ridge == 0.0
        else "linear Thm 4.1, first factor of the member's variance corrected",
        "simulated": f"linear Exp. 1 with {draws} random matrices",
    }
    assumptions = [
        Assumption("records are N(0, I) and the first p of their features are used"),
        Assumption("coefficients are N(0, I/dim) and label noise is Gaussian"),
        Assumption("the attacker knows x0, n, p, dim, sigma, the ridge and the data model"),
    ]
    if method == "asymptotic":
        assumptions.append(
            Assumption(
                "n, p and dim are large",
                holds=None,
                evidence=f"n = {design.n}, p = {design.p}, dim = {design.dim}",
            )
        )
    else:
        assumptions.append(
            Assumption(
                "the mixture over random designs is resolved by its draws",
                holds=None,
                evidence=f"{draws} designs",
            )
        )
    if noise is not None and noise.to == "nonmembers":
        assumptions.append(
            Assumption(
                "noise is added to answers about non-members only (Lemma 4.4)",
                holds=False,
                evidence="no deployment can do this without telling members apart",
            )
        )
    return Provenance(
        question="population",
        adjacency="replaced",
        observes="prediction" if attacker == "label_hidden" else "label_and_prediction",
        random=("data", "labels") if noise is None else ("data", "labels", "output_noise"),
        attacker_knows_label=attacker == "label_known",
        method=method,
        source=sources[method],
        assumptions=tuple(assumptions),
    )
