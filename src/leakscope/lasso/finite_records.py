"""The component-wise divergence at a finite number of records: Eq. (62) of **lasso**, corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.quadrature import panels
from leakscope.errors import InputError
from leakscope.lasso.estimate_laws import neighbouring_laws
from leakscope.lasso.noise_overlap import Overlap

_NEAR = np.array([-9.0, -6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 9.0])
_FAR = np.array([0.0, 0.7, 1.5, 2.5, 4.0, 6.0, 9.5])
_SHIFTS = np.array([0.0, 1.0, 2.0, 3.5, 5.5, 8.5])


def cw_onavg_kl_at(found: Overlap, records: ArrayLike) -> FloatArray:
    """cwOnAveKL of Eq. (62) with n records, with the corrected laws; one setting, many n.

    Both datasets' locations have the variance E12/alpha, and they differ by a normal of variance
    2 Delta, Delta = E12/((alpha - chi) n); Claim 6.1 has E/(alpha n).  As n grows it tends to
    `onavg_kl` with ``"component_wise"``.

    Examples
    --------
    >>> from leakscope.lasso import LassoSetting, cw_onavg_kl_at, noise_overlap, state_evolution
    >>> both = noise_overlap(state_evolution(LassoSetting(0.5, 0.1, 0.1, 1.0, 0.5)))
    >>> cw_onavg_kl_at(both, [50, 500, 1e9]).round(4).tolist()
    [0.0772, 0.0771, 0.0771]
    """
    setting = found.fixed_point.setting
    n = np.asarray(records, dtype=np.float64)
    if setting.shape != ():
        raise InputError("cw_onavg_kl_at takes one setting; ask for many numbers of records.")
    if not np.all(n >= 2.0):
        raise InputError("cw_onavg_kl_at: records must be 2 or more.")
    if setting.mechanism == "output" or not found.sigma > 0.0:
        raise InputError("Eq. (62) is for objective perturbation with noise above zero.")
    alpha, rho = float(setting.alpha), float(setting.rho)
    s, cut = float(found.sigma), float(found.fixed_point.threshold)
    location = float(found.overlap_error) / alpha
    total = np.zeros(n.shape)
    parts = ((1.0 - rho, location), (rho, location + float(setting.signal_variance)))
    for index in np.ndindex(n.shape):
        delta = location * float(found.amplification) / float(n[index])
        sd = np.sqrt(2.0 * delta)
        shift, weight = panels(np.minimum(sd * _SHIFTS, sd * 8.5), 10)
        weight = weight * 2.0 * np.exp(-0.25 * shift**2 / delta) / np.sqrt(4.0 * np.pi * delta)
        mean = 0.0
        for share, variance in parts:
            # the middle of the two locations, and their difference, are independent
            middle = np.sqrt(variance - 0.5 * delta)
            far = 9.5 * middle
            breaks = np.sort(np.append(middle * _FAR, np.clip(cut + s * _NEAR, 0.0, far)))
            x, mass = panels(breaks, 12)
            mass = mass * 2.0 * np.exp(-0.5 * (x / middle) ** 2) / np.sqrt(2.0 * np.pi) / middle
            pair = neighbouring_laws(found, x[:, None] - 0.5 * shift, shift)
            # the mean of the two KLs
            mean += share * float(mass @ (0.5 * measures.jeffreys(pair)) @ weight)
        total[index] = float(n[index]) / alpha * mean
    return total
