"""lasso, Fig. 10: error and on-average KL at the optimal noise, both mechanisms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope import lasso
from leakscope.settings import LassoMechanism
from papers.arrays import FloatArray
from papers.claims import Claim
from papers.figure import Figure, Made, Order, Panel
from papers.lasso_divergences import DIVERGENCES, judge_both
from papers.lasso_optimal_noise import (
    ALLOWED,
    EqualError,
    Optima,
    equal_error,
    optima,
    penalties,
)
from papers.lasso_runs import KNOBS, data_model

MECHANISMS: tuple[LassoMechanism, ...] = ("output", "objective")

Found = dict[str, dict[str, Optima]]


def make(order: Order) -> Made:
    """Both panels by both divergences, and what Section 6.4 concludes from them."""
    lam = penalties(40 if order.full else 14)
    data = data_model(order)
    order.step("optimal noise of both mechanisms")
    found: Found = {
        name: {mechanism: optima(data, lam, mechanism, name) for mechanism in MECHANISMS}
        for name in DIVERGENCES
    }
    order.step("both mechanisms at equal error")
    equal: dict[str, EqualError] = {name: equal_error(data, lam, name) for name in DIVERGENCES}
    plain = lasso.state_evolution(data.change(lam=lam)).error
    panels = []
    for words, names in (("component-wise", ("component_wise", "printed")), ("joint", ("joint",))):
        panels += [
            Panel(f"(a) error at the optimum: {words}", _table(found, names, "error", lam, plain),
                  "lam", "error", "curve", x_log=True, x_title="λ", y_title="E"),
            Panel(f"(b) KL at the optimum: {words}", _table(found, names, "kl", lam, None),
                  "lam", "kl", "curve", x_log=True, y_log=True, x_title="λ",
                  y_title=f"on-average KL, {words}"),
        ]  # fmt: skip
    return Made(
        panels=tuple(panels),
        claims=(*_error_claims(found, plain), *_kl_claims(found), *_steady_claims(equal)),
        settings={
            **order.knobs, "lam": [0.1, 2.0], "penalties": lam.size,
        },
        notes=(
            "The caption does not give the range of λ; here it is 0.1 to 2. Dashed: by the printed "
            "formulas.",
        ),
    )  # fmt: skip


def _table(
    found: Found, names: tuple[str, ...], column: str, lam: FloatArray, plain: FloatArray | None
) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "lam": lam,
                column: getattr(found[name][mechanism], column),
                "curve": mechanism,
                "source": "printed" if name == "printed" else "theory",
            }
        )
        for name in names
        for mechanism in MECHANISMS
    ]
    if plain is not None:
        frames.append(
            pd.DataFrame({"lam": lam, column: plain, "curve": "no noise", "source": "theory"})
        )
    return pd.concat(frames, ignore_index=True)


def _error_claims(found: Found, plain: FloatArray) -> list[Claim]:
    less = {n: found[n]["objective"].error < found[n]["output"].error for n in DIVERGENCES}
    beats = {n: found[n]["objective"].error < plain for n in DIVERGENCES}
    lam = found["joint"]["output"].lam
    # penalties are spaced geometrically, and the paper's axis is even
    part = {name: np.average(less[name], weights=np.gradient(lam)) for name in DIVERGENCES}
    return [
        *judge_both(
            "at the optimum objective perturbation has less error over the wider range of λ",
            "Sec. 6.4, Fig. 10(a)",
            {name: bool(part[name] > 0.5) for name in DIVERGENCES},
            {
                name: f"at {less[name].sum()} of {lam.size} λ, {part[name]:.0%} of the interval"
                for name in DIVERGENCES
            },
            "lasso 2",
        ),
        *judge_both(
            "at large λ it has less error than no noise at all",
            "Sec. 6.4, Fig. 10(a)",
            # the largest third of the penalties
            {name: bool(beats[name][-(lam.size // 3) :].all()) for name in DIVERGENCES},
            {
                name: f"at {beats[name].sum()} of {lam.size} λ, from "
                f"{lam[beats[name]].min() if beats[name].any() else np.inf:.2f} on"
                for name in DIVERGENCES
            },
            "lasso 2",
        ),
    ]


def _kl_claims(found: Found) -> tuple[Claim, ...]:
    less = {n: found[n]["output"].kl < found[n]["objective"].kl for n in DIVERGENCES}
    lam = found["joint"]["output"].lam
    one = int(np.argmin(np.abs(lam - 1.0)))
    return judge_both(
        "at the optimum output perturbation has less divergence over the entire range of λ",
        "Sec. 6.4, Fig. 10(b)",
        {name: bool(less[name].all()) for name in DIVERGENCES},
        {
            name: f"at {less[name].sum()} of {lam.size} λ"
            + (f", those up to {lam[less[name]].max():.2f}" if less[name].any() else "")
            + f"; at λ = {lam[one]:.2g} {found[name]['output'].kl[one]:.4f} against "
            f"{found[name]['objective'].kl[one]:.4f} of objective perturbation"
            for name in DIVERGENCES
        },
        "lasso 7",
        of_both=True,
    )


def _steady_claims(equal: dict[str, EqualError]) -> tuple[Claim, ...]:
    wins = {name: at.objective < at.output for name, at in equal.items()}
    steady = {name: at.steady() for name, at in equal.items()}
    return judge_both(
        "objective perturbation has less divergence at equal error where the support is stable",
        "Sec. 1.2",
        {name: bool(wins[name][steady[name]].all()) for name in DIVERGENCES},
        {
            name: f"at {wins[name][steady[name]].sum()} of {steady[name].sum()} λ with the "
            f"steadier support and {wins[name][~steady[name]].sum()} of {(~steady[name]).sum()} "
            f"others, at {ALLOWED:g} times the noiseless error"
            for name in DIVERGENCES
        },
        "lasso 2",
    )


FIGURES = (
    Figure(
        "lasso-10",
        "lasso",
        "Fig. 10(a), (b)",
        "error and on-average KL at the optimal noise",
        make,
        full="one core, half a minute",
        knobs=KNOBS,
    ),
)
