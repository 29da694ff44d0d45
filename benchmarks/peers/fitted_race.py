"""Who ranks the records of a fitted model best, and at what cost: shadow models and formulas.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/peers/fitted_race.py

The truth is the advantage of normals with the moments of many shadow models, which no contender
sees.  LiRA and RMIA get shadow models of their own, warm-started; the formulas get the released
fit.  The packages that carry LiRA and RMIA train the same models; here `attacking.lira` and
`attacking.rmia` stand for them.  Writes the table of docs/benchmarks/peers.md and prints it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from leakscope import attacking, fitted, measures
from leakscope.laws import LawPair, Normal
from leakscope.single_fit.laws import Score
from leakscope.single_fit.optimum import newton

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "peers.md"
MARK = "## Fitted models: shadow models against formulas\n"
COUNTS = (16, 64, 256, 1024)
TRUTH = 4096

Moments = tuple[Any, Any, Any, Any]


def diabetes() -> tuple[Any, Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(X))
    return X, (y - y.mean()) / y.std(), Ridge(alpha=1.0)


def breast_cancer() -> tuple[Any, Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    newton = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-6)
    return StandardScaler().fit_transform(X), y, newton


def digits() -> tuple[Any, Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y, LogisticRegression(C=1.0, tol=1e-5, max_iter=2000)


DATA = {
    "ridge, diabetes, degree 2": diabetes,
    "logistic, breast cancer": breast_cancer,
    "softmax, digits": digits,
}


def advantage(mean_in: Any, sd_in: Any, mean_out: Any, sd_out: Any) -> Any:
    pair = LawPair(Normal(mean_in, np.maximum(sd_in, 1e-12)), Normal(mean_out, sd_out))
    return np.asarray(measures.advantage(pair))


def formulas(estimator: Any, X: Any, y: Any) -> Iterator[tuple[str, Any]]:
    """Plain influence, approximate leave-one-out and leverage of the released fit."""
    problem = fitted.from_sklearn(estimator, X, y).problems[0]
    fit = newton(problem, most_steps=0)
    stack, c, force = fit.response.route.stacks[0], fit.curvatures[0], fit.forces[0]
    towards = Score.of(problem.records).gradients(stack, fit.predictions[0])[:, 0]
    g = fit.response.leverage()[0]
    slack = fit.response.slack([g], [c])[0]
    plain = np.einsum("ic,icd,id->i", towards, g, force)
    refit = np.einsum("ic,icd,id->i", towards, np.linalg.solve(slack, g), force)
    leverage = np.einsum("icd,icd->i", g, c)
    yield "plain influence function", np.abs(plain)
    yield "approximate leave-one-out", np.abs(refit)
    yield "generalised leverage score", leverage


def rows(name: str, truth_models: int) -> list[dict[str, Any]]:
    X, y, estimator = DATA[name]()
    start = time.process_time()
    estimator.fit(X, y)
    fit = time.process_time() - start
    truth = fitted.shadow_models(estimator, X, y, models=truth_models, random_state=2)
    exposed = advantage(*truth.moments())
    top = set(np.argsort(-exposed)[: max(1, round(0.01 * len(y)))].tolist())
    found = []

    def scored(tool: str, seconds: float, scores: Any, level: float | None = None) -> None:
        mine = set(np.argsort(-scores)[: len(top)].tolist())
        found.append(
            {
                "pair": name,
                "tool": tool,
                "seconds": seconds,
                "rank": float(stats.spearmanr(scores, exposed).statistic),
                "top": len(mine & top) / len(top),
                "level": level,
            }
        )

    start = time.process_time()
    laws = fitted.laws_of(clone(estimator).fit(X, y), X, y)
    ours = advantage(laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd)
    scored("leakscope, fitted laws", time.process_time() - start, ours, float(ours.mean()))
    start = time.process_time()
    told_by = list(formulas(estimator, X, y))
    taken = time.process_time() - start
    for tool, scores in told_by:
        scored(tool, fit + taken, scores)
    start = time.process_time()
    shadows = fitted.shadow_models(estimator, X, y, models=max(COUNTS), random_state=1)
    each = (time.process_time() - start) / max(COUNTS)
    for count in COUNTS:
        scores, inside = shadows.scores[:count], shadows.trained_on[:count]
        # with 16 models some records are in fewer than two: no variance of their own
        for kind in ("own", "shared")[count < 64 :]:
            pair = attacking.lira(scores, inside, variance=kind)
            told = np.asarray(measures.advantage(pair))
            tool = f"LiRA, {count:,} models, {kind} variance"
            scored(tool, fit + count * each, told, float(told.mean()))
        if estimator.__class__ is LogisticRegression and count <= 256:
            scored(f"RMIA, {count:,} models", fit + count * each, attacking.rmia(scores, inside))
    for row in found:
        row["truth"] = float(exposed.mean())
    return found


def table(found: list[dict[str, Any]], truth_models: int) -> str:
    lines = [
        MARK,
        "```sh",
        "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/peers/fitted_race.py",
        "```",
        "",
        f"The truth is {truth_models:,} warm-started shadow models that no contender sees, half of "
        "the records each. **rank** is the Spearman correlation with the true advantage, **top** "
        "the share of the truly top 1% found, **mean** the tool's mean advantage beside the true "
        "one where it gives a level. Seconds are processor seconds of one thread, the shadow "
        "models' time included. LiRA and RMIA are our own implementations "
        "(`attacking.lira`, `attacking.rmia`), on the models that the packages would train.",
        "",
        "| model | tool | s | rank | top | mean (true) |",
        "|---|---|---|---|---|---|",
    ]
    for r in found:
        level = "–" if r["level"] is None else f"{r['level']:.3f} ({r['truth']:.3f})"
        lines.append(
            f"| {r['pair']} | {r['tool']} | {r['seconds']:.3g} | {r['rank']:.3f} "
            f"| {r['top']:.2f} | {level} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="*", default=list(DATA))
    parser.add_argument("--truth", type=int, default=TRUTH)
    parser.add_argument("--results", type=Path, help="keep the rows, and add those kept before")
    given = parser.parse_args()
    kept = given.results if given.results is not None and given.results.exists() else None
    found = json.loads(kept.read_text()) if kept else []
    found = [row for row in found if row["pair"] not in given.pairs]
    for name in given.pairs:
        found += rows(name, given.truth)
    if given.results is not None:
        given.results.write_text(json.dumps(found, indent=1))
    text = table(found, given.truth)
    before = PAGE.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    after = PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition("\n## ")
    PAGE.write_text(f"{before}\n\n{text}{after[1]}{after[2]}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
