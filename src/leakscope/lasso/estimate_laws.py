"""The law of one estimated coefficient: over data, and over the privacy noise at fixed data."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.lasso.assumptions import provenance_of
from leakscope.lasso.noise_overlap import Overlap, noise_overlap
from leakscope.lasso.state_evolution import FixedPoint
from leakscope.laws import LawPair, Normal, SpikeAndSlab

Form = Literal["corrected", "printed"]


def law_over_data(point: FixedPoint, coefficient: ArrayLike, noise: ArrayLike) -> SpikeAndSlab:
    """The law of an estimate over datasets, its true coefficient and its own noise given: Eq. (46).

    soft(beta0 + sqrt(E/alpha) z - Sigma eta, lambda Sigma).

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, law_over_data, state_evolution
    >>> point = state_evolution(LassoSetting(0.5, 0.3, 0.1, lam=0.5, sigma_eta=0.1))
    >>> law_over_data(point, [0.0, 2.1796], [0.3579, -0.0079]).atom.round(4).tolist()
    [0.7218, 0.0846]
    """
    _require_objective(point)
    location = np.asarray(coefficient) - point.scale * np.asarray(noise)
    return SpikeAndSlab(location, np.sqrt(point.error / point.setting.alpha), point.threshold)


def law_over_noise(
    point: FixedPoint | Overlap, location: ArrayLike, form: Form = "corrected"
) -> SpikeAndSlab:
    """The law of an estimate over the privacy noise at fixed data, its location given.

    ``"corrected"``: scale s = sqrt(Sigma^2 sigma_eta^2 + (E - E12)/alpha), and over data the
    location is N(beta0, E12/alpha).  ``"printed"``: Eq. (53), scale Sigma sigma_eta, location
    N(beta0, E/alpha), which leaves out that the location moves with the other coordinates' noise.
    Both have the same law once data and noise are averaged over.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, law_over_noise, state_evolution
    >>> point = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.7))
    >>> laws = [law_over_noise(point, 1.0, form) for form in ("corrected", "printed")]
    >>> [float(law.sigma.round(3)) for law in laws]
    [2.533, 2.322]
    """
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    _require_objective(fixed)
    if form == "printed":
        scale = fixed.scale * fixed.setting.sigma_eta
    elif form == "corrected":
        scale = (point if isinstance(point, Overlap) else noise_overlap(point)).sigma
    else:
        raise InputError(f"form must be corrected or printed, but it is {form!r}.")
    return SpikeAndSlab(location, scale, fixed.threshold)


def neighbouring_laws(
    point: FixedPoint | Overlap,
    location: ArrayLike,
    shift: ArrayLike,
    form: Form = "corrected",
) -> LawPair:
    """One estimate's laws over the noise with a record and with another in its place.

    ``location`` is the estimate's with the record, and replacing the record moves it by ``shift``,
    which over pairs is a normal of variance 2 E12/((alpha - chi) n) (Claim 6.1, corrected).  Under
    output perturbation the laws are normals of scale sigma_eta around the two fitted values.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, neighbouring_laws, state_evolution
    >>> from leakscope.measures import advantage
    >>> point = state_evolution(LassoSetting(0.5, 0.1, 0.1, lam=1.0, sigma_eta=0.5))
    >>> pair = neighbouring_laws(point, location=[0.0, 2.0], shift=0.05)
    >>> advantage(pair).round(4).tolist()
    [0.0026, 0.016]
    >>> pair.provenance.adjacency
    'replaced'
    """
    fixed = point.fixed_point if isinstance(point, Overlap) else point
    here, there = np.asarray(location), np.asarray(location) + np.asarray(shift)
    provenance = provenance_of(fixed.setting, observes="coefficients", method="asymptotic")
    if fixed.setting.mechanism == "output":
        noise = fixed.setting.sigma_eta
        return LawPair(Normal(here, noise), Normal(there, noise), provenance)
    member = law_over_noise(point, here, form)
    return LawPair(member, law_over_noise(point, there, form), provenance)


def _require_objective(point: FixedPoint) -> None:
    if point.setting.mechanism == "output":
        raise InputError(
            "Under output perturbation an estimate is normal around the fitted value; these laws "
            "are for objective perturbation."
        )
