"""A model that is more confident everywhere moves all records alike: its effect, taken off.

Every model answers for the same records, and was trained on a share of them that was drawn at
random.  So the log-odds of all records have, up to chance, one distribution for every model.
Where one model's is shifted or stretched, this is the model's own doing and says nothing of any
single record; an attacker, who sees the model's answers for other records, takes it off too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope._numerics.arrays import FloatArray

# Quantiles over the records that are matched; the tails are left out, where a few records decide.
LEVELS = np.linspace(0.02, 0.98, 49)
# A model whose answers hardly vary cannot be stretched to the others' spread.
LEAST_SCALE = 0.05
ROUNDING = 1e-12


@dataclass(frozen=True)
class ModelEffects:
    """Each model's shift and scale: its log-odds are ``shift + scale * levelled``.

    Parameters
    ----------
    shift, scale : arrays of float, one number per model
    typical : array of float
        The quantiles over the records to which every model's were matched.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import model_effects
    >>> one = np.linspace(-3.0, 9.0, 50)
    >>> effects = model_effects(np.stack([one, 2.0 * one + 1.0]))
    >>> effects.scale.round(3).tolist()
    [0.667, 1.333]
    """

    shift: FloatArray
    scale: FloatArray
    typical: FloatArray

    def level(self, log_odds: FloatArray) -> FloatArray:
        """The log-odds (models x records) without the models' effects."""
        return np.asarray((log_odds - self.shift[:, None]) / self.scale[:, None])


def model_effects(log_odds: FloatArray, typical: FloatArray | None = None) -> ModelEffects:
    """Shift and scale of every model, by matching its quantiles over the records to the mean ones.

    Parameters
    ----------
    log_odds : array of float, models x records
    typical : array of float, optional
        The quantiles to match, those of `ModelEffects.typical`: so that another model, such as the
        one under attack, is put on the level of the models that were measured.

    Returns
    -------
    ModelEffects

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.fitted import model_effects
    >>> one = np.linspace(-3.0, 9.0, 50)
    >>> found = model_effects(np.stack([one - 1.0, one + 1.0]))
    >>> found.shift.round(3).tolist(), found.scale.round(3).tolist()
    ([-1.0, 1.0], [1.0, 1.0])
    """
    quantiles = np.quantile(np.asarray(log_odds, dtype=np.float64), LEVELS, axis=1).T
    if typical is None:
        typical = np.asarray(quantiles.mean(axis=0))
    centred = typical - typical.mean()
    spread = float(centred @ centred)
    # Where nearly all records have one value, what is left of it is rounding.
    if spread > len(LEVELS) * (ROUNDING * float(np.abs(typical).max())) ** 2:
        scale = np.maximum(quantiles @ centred / spread, LEAST_SCALE)
    else:
        scale = np.ones(len(quantiles))
    shift = quantiles.mean(axis=1) - scale * typical.mean()
    return ModelEffects(shift=np.asarray(shift), scale=np.asarray(scale), typical=typical)
