"""From a design to the pair of laws of what the attacker sees, and what the model is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.laws.distributions import Law, MultivariateNormal, Normal, NormalMixture
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.linear.design import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.moments import Moments, moments
from leakscope.settings.plan import LINEAR_PLAN_DEFAULTS, LinearAttacker, LinearMethod


def law_pair(
    design: GaussianDesign,
    norms: RecordNorms | None = None,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    attacker: LinearAttacker = "label_hidden",
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
    if attacker not in get_args(LinearAttacker):
        raise InputError(
            f"attacker must be one of {', '.join(get_args(LinearAttacker))}, not {attacker!r}."
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


def pair_of_moments(
    member: Moments,
    nonmember: Moments,
    *,
    attacker: LinearAttacker,
    noise: OutputNoise | None = None,
    labels: ArrayLike | None = None,
    provenance: Provenance,
) -> LawPair:
    """The pair of laws that second moments over designs stand for."""
    extra = (0.0, 0.0) if noise is None else noise.variances()
    sides = [
        side._replace(prediction=side.prediction + more)
        for side, more in zip((member, nonmember), extra, strict=True)
    ]
    laws: list[Law]
    if attacker == "label_hidden":
        laws = [_scale_law(side.prediction) for side in sides]
    elif provenance.method == "asymptotic":
        label = member.label[:, 0]
        laws = []
        for side in sides:
            prediction, covariance = side.prediction[:, 0], side.covariance[:, 0]
            _require_spread(prediction - covariance**2 / label, label)
            laws.append(bivariate(label, covariance, prediction))
    else:
        scores = label_nodes()[0] if labels is None else np.asarray(labels, dtype=np.float64)
        laws = [_given_label(side, np.atleast_1d(scores)) for side in sides]
    return LawPair(laws[0], laws[1], provenance)


def label_nodes(count: int = 6) -> tuple[FloatArray, FloatArray]:
    """Labels, in standard deviations, and weights that average an even function of them."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * count)
    half = nodes > 0.0
    return np.asarray(nodes[half]), np.asarray(weights[half] / weights[half].sum())


def _scale_law(variance: FloatArray) -> Normal | NormalMixture:
    if np.all(variance == variance[:, :1]):
        return Normal(0.0, np.sqrt(variance[:, 0]))
    return NormalMixture.scale(np.sqrt(variance))


def bivariate(
    label: FloatArray, covariance: FloatArray, prediction: FloatArray
) -> MultivariateNormal:
    """The zero-mean normal of (y0, yhat0) at each of J records."""
    matrix = np.stack([label, covariance, covariance, prediction], axis=-1).reshape(-1, 2, 2)
    return MultivariateNormal(np.zeros((label.size, 2)), matrix)


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
    attacker: LinearAttacker,
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
        size = f"n = {design.n}, p = {design.p}, dim = {design.dim}"
        assumptions.append(Assumption("n, p and dim are large", None, size))
    else:
        resolved = "the mixture over random designs is resolved by its draws"
        assumptions.append(Assumption(resolved, None, f"{draws} designs"))
    if noise is not None and noise.to == "nonmembers":
        assumptions.append(
            Assumption(
                "noise is added to answers about non-members only (Lemma 4.4)",
                holds=False,
                evidence="no deployment can do this without telling members apart",
            )
        )
    return population_provenance(
        attacker, noise, method=method, source=sources[method], assumptions=tuple(assumptions)
    )


def population_provenance(
    attacker: LinearAttacker,
    noise: OutputNoise | None,
    *,
    method: LinearMethod,
    source: str,
    assumptions: tuple[Assumption, ...],
) -> Provenance:
    """Where a pair of laws comes from that is of a population of records and not of a dataset."""
    return Provenance(
        question="population",
        adjacency="replaced",
        observes="prediction" if attacker == "label_hidden" else "label_and_prediction",
        random=("data", "labels") if noise is None else ("data", "labels", "output_noise"),
        attacker_knows_label=attacker == "label_known",
        method=method,
        source=source,
        assumptions=assumptions,
    )


@dataclass(frozen=True)
class GeneralizationError:
    """E (y0 - yhat0)^2 at a fresh record, infinite within one of p = n at ridge 0."""

    value: float
    stderr: float
    """0 for a closed form."""


def generalization_error(
    design: GaussianDesign,
    *,
    method: LinearMethod = LINEAR_PLAN_DEFAULTS.method,
    noise: OutputNoise | None = None,
    draws: int = 2000,
    random_state: int | np.random.Generator | Key | None = None,
) -> GeneralizationError:
    """The mean squared error at a fresh record, noise on the answer included.

    Without ridge it is Prop. 4.3 for p > n, exact at every n, and its counterpart for p < n; with
    ridge it comes from the moments of the route ``method``.  At a record of average norms the
    moments are those of the average record, because they are linear in the norms.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign, generalization_error
    >>> round(generalization_error(GaussianDesign(100, 400, 3000, 1.0)).value, 6)
    2.59097
    """
    # an answer carries its own noise, however many an attacker may average
    added = 0.0 if noise is None else noise.sigma**2
    if design.ridge == 0.0 and method != "simulated":
        return GeneralizationError(_least_squares(design) + added, 0.0)
    typical = RecordNorms.typical(design)
    _, fresh = moments(design, typical, method, draws, as_key(random_state))
    error = (fresh.label - 2.0 * fresh.covariance + fresh.prediction)[0]
    spread = float(error.std(ddof=1) / math.sqrt(error.size)) if error.size > 1 else 0.0
    return GeneralizationError(float(error.mean()) + added, spread)


def _least_squares(design: GaussianDesign) -> float:
    """Prop. 4.3 for p > n + 1; for p < n - 1 the signal is whole and 1/chi2(n-p+1) averages."""
    n, p = design.n, design.p
    if p > n + 1:
        return float(
            1.0 + design.sigma**2 + n * (design.unseen_variance / (p - n - 1) - 1.0 / design.dim)
        )
    if p < n - 1:
        return float(design.unseen_variance * (1.0 + p / (n - p - 1)))
    return math.inf


def mean_predictions(design: GaussianDesign) -> tuple[float, float] | None:
    """E yhat0^2 of a member and of a non-member over records and designs; None with ridge.

    Both are exact at every n.  Least squares with p < n keeps the whole signal in use, p/D, and of
    the rest a share tr H/n = p/n comes back at a training record; with p >= n a member's prediction
    is its label.  At a fresh record E yhat0^2 = E (y0 - yhat0)^2 - E y0^2 + 2 E y0 yhat0, where the
    first is Prop. 4.3 and the last min(n, p)/D.
    """
    if design.ridge > 0.0:
        return None
    n, p, dim = design.n, design.p, design.dim
    label = 1.0 + design.sigma**2
    member = label if p >= n else p / dim + design.unseen_variance * p / n
    return member, _least_squares(design) - label + 2.0 * min(n, p) / dim
