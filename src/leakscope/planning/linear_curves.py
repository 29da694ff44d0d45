"""Privacy against utility: advantage and error along each knob, and how far two knobs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from leakscope import linear
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key, as_key
from leakscope.errors import InputError
from leakscope.linear import GaussianDesign, LinearMethod, OutputNoise
from leakscope.planning.linear_answer import DRAWS, linear_advantage

if TYPE_CHECKING:
    import pandas as pd

Knob = Literal["features", "noise", "noise_nonmembers", "ridge", "answers"]


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Advantage of both attackers and generalisation error at each setting of one knob.

    Examples
    --------
    >>> from leakscope.planning import trade_off_curve
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> curve = trade_off_curve(design, "ridge", [0.0, 1.0, 5.0])
    >>> curve.advantage.round(3).tolist()  # a knob, not a defence
    [0.263, 0.296, 0.334]
    >>> curve.advantage_label_known.round(3).tolist()
    [1.0, 0.791, 0.614]
    """

    knob: Knob
    settings: FloatArray
    advantage: FloatArray
    advantage_label_known: FloatArray
    generalization_error: FloatArray
    method: LinearMethod

    def to_frame(self) -> pd.DataFrame:
        """One row per setting."""
        import pandas as pd

        return pd.DataFrame(
            {
                self.knob: self.settings,
                "advantage": self.advantage,
                "advantage_label_known": self.advantage_label_known,
                "generalization_error": self.generalization_error,
            }
        )


def trade_off_curve(
    design: GaussianDesign,
    knob: Knob,
    settings: Sequence[float],
    *,
    method: LinearMethod = "asymptotic",
    sigma_output: float = 1.0,
    noise: OutputNoise | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | Key | None = None,
) -> TradeOff:
    """Leakage and error over a knob of ``design``.

    The designs are those of :func:`plan_linear` with the same ``draws`` and ``random_state``.

    Parameters
    ----------
    knob
        ``"features"``: p.  ``"noise"``: standard deviation of noise on every answer.
        ``"noise_nonmembers"``: the same for non-members only (Lemma 4.4, which nobody can
        deploy).  ``"ridge"``: lambda, which can raise the advantage.  ``"answers"``: how many
        fresh answers with noise ``sigma_output`` the attacker gets; a memoised answer is
        ``answers`` = 1.
    noise
        Noise that stays while features or ridge are turned; the knob ``"noise"`` keeps its
        ``answers`` and ``memoised``.

    Examples
    --------
    >>> from leakscope.planning import trade_off_curve
    >>> from leakscope.linear import GaussianDesign
    >>> design = GaussianDesign(100, 400, 3000, 1.0)
    >>> trade_off_curve(design, "answers", [1, 10, 100]).advantage.round(3).tolist()
    [0.143, 0.242, 0.261]
    """
    rows, key = [], as_key(random_state)
    count = DRAWS[method] if draws is None else draws
    for setting in settings:
        trial, added = _turn(design, knob, float(setting), sigma_output, noise)
        found = [
            linear_advantage(
                trial,
                attacker=who,
                method=method,
                noise=added,
                draws=count,
                random_state=key.child(0),
            ).value
            for who in ("label_hidden", "label_known")
        ]
        error = linear.generalization_error(
            trial, method=method, noise=added, draws=count, random_state=key.child(1)
        )
        rows.append([*found, error.value])
    table = np.array(rows).T
    hidden, known, errors = table
    levels = np.asarray(settings, dtype=np.float64)
    return TradeOff(knob, levels, hidden, known, errors, method)


def equivalence_gap(
    design: GaussianDesign, *, points: int = 25, method: LinearMethod = "asymptotic"
) -> float:
    """How far Fig. 4's two curves are apart: the largest difference in advantage at equal error.

    Fewer features on one side, on the other all features and noise for non-members (Lemma 4.4),
    matched in error for p from 2.2 n to D.

    Examples
    --------
    >>> from leakscope.planning import equivalence_gap
    >>> from leakscope.linear import GaussianDesign
    >>> equivalence_gap(GaussianDesign(100, 3000, 3000, 1.0), points=8) < 0.003
    True
    """
    if design.ridge > 0.0:
        raise InputError("Fig. 4 compares models without ridge; set ridge to 0.")
    sizes = np.unique(np.geomspace(2.2 * design.n, design.dim, points).astype(int))
    fewer = trade_off_curve(design, "features", [float(p) for p in sizes], method=method)
    everything = replace(design, p=design.dim)
    floor = linear.generalization_error(everything).value
    sigmas = np.sqrt(np.maximum(fewer.generalization_error - floor, 0.0))
    noisy = trade_off_curve(everything, "noise_nonmembers", sigmas.tolist(), method=method)
    return float(np.abs(fewer.advantage - noisy.advantage).max())


def _turn(
    design: GaussianDesign,
    knob: Knob,
    setting: float,
    sigma_output: float,
    noise: OutputNoise | None,
) -> tuple[GaussianDesign, OutputNoise | None]:
    if knob == "features":
        return replace(design, p=int(setting)), noise
    if knob == "ridge":
        return replace(design, ridge=setting), noise
    if knob == "noise":
        return design, OutputNoise(setting) if noise is None else replace(noise, sigma=setting)
    if knob == "noise_nonmembers":
        return design, OutputNoise(setting, to="nonmembers")
    if knob == "answers":
        return design, OutputNoise(sigma_output, answers=int(setting))
    raise InputError(f"There is no knob {knob!r}.")
