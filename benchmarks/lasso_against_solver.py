"""State evolution, the stability edge, message passing and the divergences against refits.

    python benchmarks/lasso_against_solver.py states      # sparsity and errors, p = 2000
    python benchmarks/lasso_against_solver.py edge        # the linear programme, three alphas
    python benchmarks/lasso_against_solver.py amp         # message passing against the solver
    python benchmarks/lasso_against_solver.py divergences # E12 and the three KLs, p = 1000
    python benchmarks/lasso_against_solver.py output      # Eq. (60), printed and corrected
    python benchmarks/lasso_against_solver.py sizes       # what is finite p about it

Standard errors are over datasets; z is (simulated - theory) / standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

from leakscope import lasso
from leakscope.lasso import LassoSetting
from leakscope.lasso.amp import message_passing
from leakscope.lasso.solver import solve_lasso
from leakscope.lasso.stability import stability_programme

P = 2000
WANTED = 0.05
FEWEST, MOST = 10, 400

# The estimators of simulate_lasso() were settled on the seeds from 0.
SEED = 1_000_000


def stable_points() -> list[LassoSetting]:
    """Settings with rho_hat/alpha of at most 0.6."""
    points = []
    for alpha in (0.3, 0.5, 0.8):
        edge = float(lasso.stability_edge(alpha))
        for rho in (0.05, 0.2):
            for lam in (0.3, 0.6, 1.0, 1.5):
                for share in (0.0, 0.3, 0.6):
                    setting = LassoSetting(alpha, rho, 0.1, lam, share * lam / edge)
                    found = lasso.state_evolution(setting)
                    active = float(found.active_fraction)
                    # fewer than 5 active coefficients of 2000 need hundreds of datasets for 5%
                    if active / alpha <= 0.6 and active * P >= 5.0:
                        points.append(setting)
    return points


def datasets(alpha: float, rho: float, sigma_xi: float, p: int, seed: int) -> Iterator[tuple]:
    rng = np.random.default_rng(seed)
    n = round(alpha * p)
    while True:
        X = np.asfortranarray(rng.normal(0.0, p**-0.5, (n, p)))
        truth = np.where(rng.random(p) < rho, rng.normal(size=p), 0.0)
        yield X, X @ truth + rng.normal(0.0, sigma_xi, n), truth, rng


def states() -> None:
    points = stable_points()
    print(f"{len(points)} settings, p = {P}")
    names = ("active_fraction", "generalization_error", "training_error", "ratio")
    print("| alpha | rho | lambda | sigma_eta | datasets |", *(f"{n}, z |" for n in names))
    print("|" + "---|" * 9)
    outside, values, relative = 0, [], []
    groups: dict[tuple[float, float], list[LassoSetting]] = {}
    for s in points:
        groups.setdefault((float(s.alpha), float(s.rho)), []).append(s)
    for index, ((alpha, rho), group) in enumerate(groups.items()):
        rows: list[list[list[float]]] = [[] for _ in group]
        for number, (X, y, truth, rng) in enumerate(datasets(alpha, rho, 0.1, P, 17 + index)):
            waiting = [i for i in range(len(group)) if not _enough(rows[i])]
            if not waiting or number >= MOST:
                break
            for i in waiting:
                noise = rng.normal(0.0, 1.0, P) * float(group[i].sigma_eta)
                beta = solve_lasso(X, y, float(group[i].lam), noise).coef
                error = 0.01 + np.mean((beta - truth) ** 2)
                train = np.mean((y - X @ beta) ** 2)
                rows[i].append([np.count_nonzero(beta) / P, error, train, error / train])
        for setting, found in zip(group, rows, strict=True):
            table = np.array(found)
            errors = lasso.prediction_errors(lasso.state_evolution(setting))
            cells = []
            for column, name in enumerate(names):
                mean = table[:, column].mean()
                stderr = table[:, column].std(ddof=1) / np.sqrt(len(table))
                theory = float(getattr(errors, name))
                z = (mean - theory) / stderr
                outside += abs(z) > 4.0
                values.append(z)
                relative.append(stderr / mean)
                cells.append(f"{mean:.4f} / {theory:.4f}, {z:+.1f}")
            print(
                f"| {alpha} | {rho} | {float(setting.lam)} | {float(setting.sigma_eta):.3f} | "
                f"{len(table)} | " + " | ".join(cells) + " |",
                flush=True,
            )
    print(
        f"{outside} of {len(values)} beyond 4 standard errors; largest "
        f"{np.abs(values).max():.1f}; standard errors of {max(relative):.1%} at most"
    )


def _enough(rows: list[list[float]]) -> bool:
    if len(rows) < FEWEST:
        return False
    table = np.array(rows)
    return bool((table.std(axis=0, ddof=1) / np.sqrt(len(table)) <= WANTED * table.mean(0)).all())


def edge() -> None:
    p, draws = 500, 12
    print(f"p = {p}, {draws} draws\n\n| alpha | closed form | linear programme | ratio |")
    print("|---|---|---|---|")
    for alpha in (0.3, 0.5, 0.7):
        rng = np.random.default_rng(5)
        found = np.array(
            [
                stability_programme(
                    rng.normal(0.0, p**-0.5, (round(alpha * p), p)), rng.normal(size=p)
                ).edge
                for _ in range(draws)
            ]
        )
        closed = float(lasso.stability_edge(alpha))
        print(
            f"| {alpha} | {closed:.4f} | {found.mean():.4f} ± {found.std(ddof=1) / draws**0.5:.4f} "
            f"| {found.mean() / closed:.4f} |",
            flush=True,
        )


def amp() -> None:
    worst = 0.0
    for alpha, lam, noise in ((0.5, 1.0, 0.5), (0.5, 0.3, 0.1), (0.3, 1.0, 0.4), (0.8, 0.5, 0.5)):
        X, y, _, rng = next(datasets(alpha, 0.1, 0.1, P, 3))
        eta = rng.normal(0.0, noise, P)
        passed = message_passing(X, y, lam, eta)
        solved = solve_lasso(X, y, lam, eta)
        gap = float(np.abs(passed.coef[0] - solved.coef).max())
        worst = max(worst, gap)
        print(f"alpha {alpha}, lambda {lam}, sigma_eta {noise}: {passed.status[0]}, gap {gap:.1e}")
    print(f"largest difference {worst:.1e}")


DIVERGENCE_POINTS = [
    (0.5, 0.1, 1.0, 0.3),
    (0.5, 0.1, 1.0, 0.5),
    (0.5, 0.1, 1.0, 0.7),
    (0.5, 0.1, 1.5, 1.0),
    (0.5, 0.1, 0.6, 0.3),
    (0.5, 0.1, 0.4, 0.1),
    (0.5, 0.1, 0.2, 0.05),
    (0.5, 0.2, 0.6, 0.3),
    (0.8, 0.1, 0.4, 0.3),
    (0.3, 0.1, 1.0, 0.4),
]


def divergences(limit: float) -> None:
    head = "alpha | rho | lambda | sigma_eta | rho_hat/alpha | E12 simulated (z) | E12 | "
    head += "cw KL simulated (z) | corrected | printed (z) | joint simulated (z) | limit | pairs"
    print(f"| {head} |\n|" + "---|" * 13)
    for number, (alpha, rho, lam, noise) in enumerate(DIVERGENCE_POINTS):
        setting = LassoSetting(alpha, rho, 0.1, lam, noise)
        point = lasso.state_evolution(setting)
        both = lasso.noise_overlap(point)
        start, found, parts = time.perf_counter(), None, []
        while True:
            found = lasso.simulate_lasso(
                setting,
                coefficients=1000,
                datasets=16,
                noises=16,
                neighbours=6,
                component_wise=True,
                random_state=SEED + 1000 * number + len(parts),
            )
            parts.append(found)
            pooled = {
                name: _pooled([getattr(part, name) for part in parts])
                for name in ("overlap_error", "cw_kl", "joint_kl")
            }
            good = all(e <= WANTED * abs(v) for v, e in pooled.values())
            if good or time.perf_counter() - start > limit:
                break
        theory = {
            "overlap_error": float(both.overlap_error),
            "cw_kl": float(lasso.onavg_kl(both, "component_wise")),
            "joint_kl": float(lasso.onavg_kl(both, "joint")),
        }
        cells = {
            name: f"{v:.4f} ± {e:.4f} ({(v - theory[name]) / e:+.1f})"
            for name, (v, e) in pooled.items()
        }
        printed = float(lasso.onavg_kl(both, "printed"))
        value, error = pooled["cw_kl"]
        print(
            f"| {alpha} | {rho} | {lam} | {noise} | {float(point.active_fraction) / alpha:.3f} | "
            f"{cells['overlap_error']} | {theory['overlap_error']:.4f} | {cells['cw_kl']} | "
            f"{theory['cw_kl']:.4f} | {printed:.4f} ({(value - printed) / error:+.1f}) | "
            f"{cells['joint_kl']} | {theory['joint_kl']:.4f} | {96 * len(parts)} |",
            flush=True,
        )


def _pooled(parts: list) -> tuple[float, float]:
    values = np.array([part.value for part in parts])
    errors = np.array([part.stderr for part in parts])
    return float(values.mean()), float(np.sqrt((errors**2).sum()) / len(parts))


def output() -> None:
    print("| lambda | V | simulated | Eq. (60), z | times 1 + V, z |\n|---|---|---|---|---|")
    for lam in (0.5, 0.2, 0.1):
        setting = LassoSetting(0.5, 0.1, 0.1, lam, 0.3, "output")
        found = lasso.simulate_lasso(
            setting, coefficients=1500, datasets=30, neighbours=25, random_state=2
        )
        value, error = found.joint_kl
        point = lasso.state_evolution(setting)
        printed = float(lasso.onavg_kl(point, "printed"))
        corrected = float(lasso.onavg_kl(point))
        print(
            f"| {lam} | {float(point.response):.3f} | {value:.4f} ± {error:.4f} | {printed:.4f}, "
            f"{(value - printed) / error:+.1f} | {corrected:.4f}, "
            f"{(value - corrected) / error:+.1f} |",
            flush=True,
        )


def sizes() -> None:
    """A record's removal: how far the refit moves, over what it would at a fixed support."""
    lam = 0.1
    print("| p | moved, refit over fixed support |\n|---|---|")
    for p, count, each in ((200, 60, 10), (800, 20, 16), (3200, 4, 16)):
        rows = []
        for number, (X, y, _, rng) in enumerate(datasets(0.5, 0.1, 0.1, p, 1)):
            if number == count:
                break
            whole = solve_lasso(X, y, lam).coef
            part = X[:, whole != 0.0]
            inverse = np.linalg.inv(part.T @ part)
            residual = y - X @ whole
            for m in rng.permutation(len(y))[:each]:
                x = part[m]
                leverage = x @ inverse @ x
                fixed = np.sum((inverse @ x) ** 2) * (residual[m] / (1.0 - leverage)) ** 2
                kept = np.arange(len(y)) != m
                refit = solve_lasso(X[kept], y[kept], lam, start=whole).coef
                rows.append([fixed, np.sum((refit - whole) ** 2)])
        table = np.array(rows)
        ratio = table[:, 1].sum() / table[:, 0].sum()
        spread = np.std(table[:, 1] - ratio * table[:, 0]) / np.sqrt(len(table))
        print(f"| {p} | {ratio:.3f} ± {spread / table[:, 0].mean():.3f} |", flush=True)


if __name__ == "__main__":
    parts = {
        "states": states,
        "edge": edge,
        "amp": amp,
        "divergences": lambda: divergences(limit=600.0),
        "output": output,
        "sizes": sizes,
    }
    for name in sys.argv[1:] or parts:
        parts[name]()
        print()
