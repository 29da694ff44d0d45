"""The qualitative claims of the paper **lasso**, re-measured with three divergences.

    python benchmarks/lasso_claims.py

alpha = 0.5, rho = 0.1, sigma_xi = 0.1 unless a line says otherwise.  Every verdict is computed from
the numbers: printed (Eqs. 60 and 63-64), component-wise corrected, and joint (Eq. 9).  The
computations are those of `leakscope reproduce lasso-9 lasso-10`; here with the numbers in rows.
"""

from __future__ import annotations

import numpy as np

from leakscope import lasso
from papers.lasso_divergences import DATA, DIVERGENCES, all_kl
from papers.lasso_optimal_noise import equal_error, monotone, optima, penalties

EDGE = float(lasso.stability_edge(0.5))
LAMBDAS = np.round(penalties(14), 4)


def verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def error_not_monotone() -> None:
    print("1. The error is not monotone in sigma_eta at large lambda (Fig. 1b)")
    for lam in (0.5, 1.0, 1.5):
        noise = np.linspace(0.0, 0.98 * lam / EDGE, 400)
        error = lasso.state_evolution(DATA.change(lam=lam, sigma_eta=noise)).error
        low = int(np.argmin(error))
        print(
            f"   lambda {lam}: {error[0]:.4f} without noise, least {error[low]:.4f} at sigma_eta "
            f"{noise[low]:.3f}: {verdict(0 < low < noise.size - 1 and error[low] < error[0])}"
        )


def kl_not_monotone() -> None:
    print("2. Objective perturbation: the divergence is not monotone in sigma_eta (Fig. 7)")
    print("3. ... and it rises towards instability")
    for lam in (0.5, 1.0, 1.5):
        noise = lam / EDGE * np.append(np.geomspace(0.02, 0.9, 300), 0.999)
        found = all_kl(DATA.change(lam=lam, sigma_eta=noise))
        for name in DIVERGENCES:
            kl = found[name]
            turns = int((np.diff(np.sign(np.diff(kl))) != 0).sum())
            rises = bool(kl[-1] > kl[-2])
            print(
                f"   lambda {lam}, {name}: least {kl.min():.4f} at sigma_eta "
                f"{noise[kl.argmin()]:.3f}, {kl[-2]:.4f} at 0.9 and {kl[-1]:.4f} at "
                f"0.999 of the edge: not monotone {verdict(turns > 0)}, rises {verdict(rises)}"
            )


def optimal_noises() -> None:
    print(
        "4. Optimal noise (nearest to the origin) falls with lambda for output, not for objective"
    )
    print("5. At the optimum output has less KL and objective less error (Fig. 10)")
    for name in DIVERGENCES:
        found = {
            "output": optima(LAMBDAS, "output", name),
            "objective": optima(LAMBDAS, "objective", name),
        }
        noise = {k: at.sigma_eta for k, at in found.items()}
        error = {k: at.error for k, at in found.items()}
        kl = {k: at.kl for k, at in found.items()}
        falls = bool((np.diff(noise["output"]) < 0).all())
        turns = not monotone(noise["objective"])
        less_kl, less_error = kl["output"] < kl["objective"], error["objective"] < error["output"]
        print(
            f"   {name}: output monotone {verdict(falls)}, objective not monotone "
            f"{verdict(turns)}; output has less KL at {less_kl.sum()} of {LAMBDAS.size} lambdas "
            f"({verdict(bool(less_kl.all()))}), objective less error at {less_error.sum()} "
            f"({verdict(bool(less_error.all()))})"
        )
        for i in (0, 4, 8, 10, 12):
            print(
                f"      lambda {LAMBDAS[i]:.3f}: sigma_eta {noise['output'][i]:.4f} / "
                f"{noise['objective'][i]:.4f}, error {error['output'][i]:.4f} / "
                f"{error['objective'][i]:.4f}, KL {kl['output'][i]:.4f} / {kl['objective'][i]:.4f}"
            )


def where_the_support_is_stable() -> None:
    print("6. Objective perturbation has less KL where the support is stable under the noise")
    print("   (least KL at an error of 1.1 times the noiseless one; changed = 1 - chi/rho_hat)")
    for name in DIVERGENCES:
        at = equal_error(LAMBDAS, name)
        rows = list(zip(at.changed, at.objective, at.output, at.lam, strict=True))
        rows.sort()
        wins = np.array([a < b for _, a, b, _ in rows])
        half = wins.size // 2
        print(
            f"   {name}: objective has less KL at {wins[:half].sum()} of {half} lambdas with the "
            f"steadier support ({verdict(bool(wins[:half].all()))}) and at {wins[half:].sum()} of "
            f"{wins.size - half} others"
        )
        for changed, a, b, lam in rows[:: max(1, len(rows) // 5)]:
            print(
                f"      lambda {lam:.3f}: {changed:.2f} of the support changed, objective {a:.4f}, "
                f"output {b:.4f}"
            )


if __name__ == "__main__":
    error_not_monotone()
    kl_not_monotone()
    optimal_noises()
    where_the_support_is_stable()
