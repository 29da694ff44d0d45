"""Fitted laws against shadow models made on the spot: accuracy, ranks, attack and cost.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/fitted_truth.py --data FOLDER

FOLDER holds adult.data, heart_cleveland.csv and location30.npz; pairs whose file is missing are
left out.  `--pairs` names some of them, `--scale` takes fewer or more shadow models, `--null` adds
null data, `--million` times logistic regressions of up to 1,000,000 x 50.  Times are processor
seconds of one thread, so that other work on the machine does not count.  The figures so far are
kept in `--results`; the page's tables are written from all of them, its remarks are by hand.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from leakscope import fitted, measures
from leakscope.fitted.shadow import ShadowScores
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import LawPair
from leakscope.trust import LEAST_EFFECTIVE

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "fitted.md"
NEWTON = {"solver": "newton-cholesky", "tol": 1e-6}


def diabetes(degree: int = 1) -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(degree, include_bias=False).fit_transform(X)
    X = StandardScaler().fit_transform(X)
    return X, (y - y.mean()) / y.std()


def scaled(loader: Callable[..., Any]) -> tuple[Any, Any]:
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def adult(data: Path) -> tuple[Any, Any]:
    table = pd.read_csv(data / "adult.data", header=None, skipinitialspace=True).iloc[:3000]
    table.columns = [str(c) for c in table.columns]
    features = table.iloc[:, :-1]
    numbers = list(features.select_dtypes("number").columns)
    words = [c for c in features.columns if c not in numbers]
    coder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), words), (StandardScaler(), numbers)
    )
    return coder.fit_transform(features), (table.iloc[:, -1] == ">50K").to_numpy(int)


def heart(data: Path) -> tuple[Any, Any]:
    table = pd.read_csv(data / "heart_cleveland.csv", header=None, na_values="?").dropna()
    X = StandardScaler().fit_transform(table.iloc[:, :-1].to_numpy(float))
    return X, (table.iloc[:, -1] > 0).to_numpy(int)


def location(data: Path) -> tuple[Any, Any]:
    file = np.load(data / "location30.npz")
    return file["X"].astype(float), file["y"].astype(int)


def null(_: Path) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(500, 20)), generator.integers(0, 2, 500)


# name: data, estimator, shadow models, and whether the pair is new (not in the table of the notes)
PAIRS: dict[str, tuple[Callable[[Path], tuple[Any, Any]], Any, int, bool]] = {
    "ridge, diabetes": (lambda _: diabetes(), Ridge(alpha=1.0), 4000, False),
    "ridge, diabetes, degree 2": (lambda _: diabetes(2), Ridge(alpha=1.0), 4000, False),
    "kernel ridge, diabetes": (
        lambda _: diabetes(),
        KernelRidge(alpha=0.1, kernel="rbf", gamma=0.1),
        4000,
        False,
    ),
    "kernel ridge, heart": (heart, KernelRidge(alpha=1.0, kernel="rbf", gamma=0.05), 4000, True),
    "ridge classifier, breast cancer": (
        lambda _: scaled(load_breast_cancer),
        RidgeClassifier(alpha=1.0),
        4000,
        True,
    ),
    "logistic, breast cancer": (
        lambda _: scaled(load_breast_cancer),
        LogisticRegression(C=1.0, **NEWTON),
        4000,
        False,
    ),
    "logistic, heart": (heart, LogisticRegression(C=1.0, **NEWTON), 4000, True),
    "logistic, Adult 3,000": (adult, LogisticRegression(C=1.0, **NEWTON), 1024, False),
    "softmax, wine": (lambda _: scaled(load_wine), LogisticRegression(C=1.0, tol=1e-6), 4000, True),
    "softmax, digits": (
        lambda _: (load_digits().data / 16.0, load_digits().target),
        LogisticRegression(C=1.0, tol=1e-5, max_iter=2000),
        1024,
        False,
    ),
    "Poisson, diabetes": (
        lambda _: (diabetes()[0], np.round(load_diabetes().target / 10.0)),
        PoissonRegressor(alpha=0.01, **NEWTON),
        4000,
        True,
    ),
    "logistic, breast cancer, C = 10,000 (separable)": (
        lambda _: scaled(load_breast_cancer),
        LogisticRegression(C=1e4, solver="newton-cholesky", max_iter=1000, tol=1e-8),
        2000,
        False,
    ),
    "logistic, null data": (null, LogisticRegression(C=1.0, **NEWTON), 4000, True),
    "softmax, Location-30": (location, LogisticRegression(C=1.0, max_iter=1000), 256, False),
}


INTRODUCTION = """\
# Fitted laws against shadow models

[Your own model](../fitted.md) says what is compared. Each shadow model is fitted on half of the
records, warm-started from the released fit. Times are processor seconds of one thread, ours and the
shadow models' in the same run.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/fitted_truth.py --data FOLDER
    python benchmarks/fitted_truth.py --pairs --null --million

## Accuracy

- **shift, sd**: fitted over observed. **z**: root mean square of the shift's z-scores, 1 where only
  the shadow models' own noise is left.
- **rank**: Spearman correlation of the advantage with the observed one; in brackets what exactly
  right laws would reach against so many models. **top**: share of the top 1% in common, likewise.
- **TPR**: mean TPR at 1% FPR that the laws predict, and what their likelihood ratio reached on the
  shadow models, counted record by record, with its standard error; at 1% FPR unless the column
  says another, the least that so many models can show.
- **attack**: TPR at 0.1% FPR over all records, by our laws and by laws fitted on half of the
  shadow models, both tried on the other half.
- **warned**: whether the laws come with a warning; in brackets the share of the records that are
  not trusted, because one other record carries more than 40% of their variance.

An asterisk marks pairs that were not in the notes which this room began from.

| pair | N × d | models | shift | sd | z | rank | top | TPR | attack | warned |
|---|---|---|---|---|---|---|---|---|---|---|"""

COST = """
## Cost

| pair | N | our fit and laws, s | one shadow fit, s | as many shadow fits | 1,024 fits over ours |
|---|---|---|---|---|---|"""

NULL = """
## Null data

Features normal, labels drawn at random, 250 records of 12 features. Mean advantage
of the laws, as so many shadow models would show it, less the mean that 400 shadow models did show,
over ten data sets.

| model | predicted | observed | difference | its standard error |
|---|---|---|---|---|"""


def attack(laws: fitted.FittedLaws, shadows: ShadowScores) -> tuple[float, float]:
    """TPR at FPR 0.1% over all records and half of the models: our laws, and the other half's."""
    half = shadows.models // 2
    first = ShadowScores(shadows.scores[:half], shadows.trained_on[:half])
    scores, inside = shadows.scores[half:], shadows.trained_on[half:]
    found = []
    ours = (laws.member_mean, laws.member_sd, laws.nonmember_mean, laws.nonmember_sd)
    for mean_in, sd_in, mean_out, sd_out in (ours, first.moments()):
        z_in, z_out = (scores - mean_in) / sd_in, (scores - mean_out) / sd_out
        ratio = 0.5 * (z_out**2 - z_in**2) - np.log(sd_in / sd_out)
        cut = np.quantile(ratio[~inside], 0.999)
        found.append(float(np.mean(ratio[inside] > cut)))
    return found[0], found[1]


def measure(name: str, data: Path, scale: float) -> dict[str, Any] | None:
    load, estimator, models, new = PAIRS[name]
    try:
        X, y = load(data)
    except FileNotFoundError:
        return None
    start = time.process_time()
    estimator.fit(X, y)
    laws = fitted.laws_of(estimator, X, y)
    ours = time.process_time() - start
    models = max(64, int(scale * models))
    start = time.process_time()
    shadows = fitted.shadow_models(estimator, X, y, models=models, random_state=1)
    each = (time.process_time() - start) / models
    check = fitted.check_against_shadows(laws, shadows)
    attacked = attack(laws, shadows)
    return {
        "records": laws.records,
        "features": X.shape[1],
        "new": new,
        **check.__dict__,
        "advantage": float(np.mean(np.asarray(measures.advantage(laws.law_pair())))),
        "attack": attacked[0],
        "attack_truth": attacked[1],
        "seconds": ours,
        "seconds_per_shadow": each,
        "warned": bool(laws.warnings),
        "untrusted": float(np.mean(laws.shares.effective < LEAST_EFFECTIVE)),
    }


NULLS: dict[str, tuple[Any, int]] = {
    "logistic": (LogisticRegression(C=1.0, **NEWTON), 2),
    "ridge": (Ridge(alpha=1.0), 0),
    "softmax": (LogisticRegression(C=1.0, tol=1e-6), 4),
}


def null_model(name: str, seeds: int = 10, models: int = 400) -> dict[str, float]:
    """Predicted and observed mean advantage over several null data sets."""
    estimator, classes = NULLS[name]
    found = []
    for seed in range(seeds):
        generator = np.random.default_rng(100 + seed)
        X = generator.normal(size=(250, 12))
        y = generator.integers(0, classes, 250) if classes else generator.normal(size=250)
        laws = fitted.laws_of(estimator.fit(X, y), X, y)
        shadows = fitted.shadow_models(estimator, X, y, models=models, random_state=seed)
        mean_in, sd_in, mean_out, sd_out = shadows.moments()
        seen = LawPair(Normal(mean_in, sd_in), Normal(mean_out, sd_out))
        found.append([float(np.mean(measures.advantage(p))) for p in (laws.law_pair(), seen)])
    pairs = np.array(found)
    difference = pairs[:, 0] - pairs[:, 1]
    return {
        "predicted": float(pairs[:, 0].mean()),
        "observed": float(pairs[:, 1].mean()),
        "difference": float(difference.mean()),
        "error": float(difference.std(ddof=1) / np.sqrt(seeds)),
    }


def large(records: int, features: int) -> dict[str, float]:
    """A large logistic regression: time, and the peak of memory beyond the data."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(records, features))
    X[:, -1] = 1.0
    z = X @ generator.normal(size=features) / np.sqrt(features)
    y = (generator.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    penalty = np.append(np.ones(features - 1), 0.0)
    problem = fitted.ConvexProblem(y=y, loss="logistic", X=X, penalty=penalty)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    laws = fitted.laws_of(problem)
    taken = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "records": records,
        "features": features,
        "seconds": taken,
        "rounds": laws.rounds,
        "beyond": (after - before) * 1024 / X.nbytes,
    }


def apart(records: int, features: int) -> dict[str, float]:
    """`large` in a process of its own, because a process's peak of memory only grows."""
    code = (
        f"import fitted_truth, json; print(json.dumps(fitted_truth.large({records}, {features})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, check=True
    )
    return dict(json.loads(done.stdout))


def page(results: dict[str, Any]) -> str:
    lines = [INTRODUCTION]
    pairs = [name for name in PAIRS if name in results]
    for name in pairs:
        r = results[name]
        level = "" if r["tpr_at"] == 0.01 else f" at {100 * r['tpr_at']:.1f}%"
        lines.append(
            f"| {name}{' *' if r['new'] else ''} | {r['records']:,} × {r['features']} "
            f"| {r['models']:,} "
            f"| {r['shift_ratio']:.3f} | {r['sd_ratio']:.3f} | {r['shift_z']:.2f} "
            f"| {r['rank_correlation']:.3f} ({r['ceiling']:.3f}) "
            f"| {r['top_in_common']:.2f} ({r['top_ceiling']:.2f}) "
            f"| {r['tpr_predicted']:.4f}, {r['tpr_observed']:.4f} ± {r['tpr_stderr']:.4f}{level} "
            f"| {r['attack']:.4f}, {r['attack_truth']:.4f} "
            f"| {'yes' if r['warned'] else 'no'} ({100 * r['untrusted']:.0f}%) |"
        )
    lines.append(COST)
    for name in pairs:
        r = results[name]
        fits = r["seconds"] / r["seconds_per_shadow"]
        lines.append(
            f"| {name} | {r['records']:,} | {r['seconds']:.2f} | {r['seconds_per_shadow']:.4f} "
            f"| {fits:.0f} | {1024 / fits:.0f} |"
        )
    if "large" in results:
        lines += [
            "",
            "Large logistic regressions, each in a process of its own; memory is the peak beyond "
            "the data, in sizes of the design (N × d numbers), so that it is O(N d).",
            "",
            "| N × d | processor s | rounds | memory |",
            "|---|---|---|---|",
        ]
        for r in results["large"]:
            lines.append(
                f"| {r['records']:,} × {r['features']} | {r['seconds']:.1f} | {r['rounds']:.0f} "
                f"| {r['beyond']:.2f} |"
            )
    if "null" in results:
        lines.append(NULL)
        for name, r in results["null"].items():
            lines.append(
                f"| {name} | {r['predicted']:.4f} | {r['observed']:.4f} "
                f"| {r['difference']:+.4f} | {r['error']:.4f} |"
            )
    remarks = PAGE.read_text(encoding="utf-8").partition("\n## What to make of it\n")
    return "\n".join(lines) + "\n" + "".join(remarks[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("fitted_truth.json"))
    given = parser.parse_args()
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    for name in given.pairs:
        found = measure(name, given.data, given.scale)
        if found is None:
            print(f"{name}: its file is not in {given.data}")
            continue
        results[name] = found
        print(name, json.dumps(found), flush=True)
        given.results.write_text(json.dumps(results, indent=1))
    if given.null:
        results["null"] = {name: null_model(name) for name in NULLS}
        print(results["null"], flush=True)
    if given.million:
        sizes = ((250_000, 50), (500_000, 50), (500_000, 100), (1_000_000, 50))
        results["large"] = [apart(*size) for size in sizes]
        print(results["large"], flush=True)
    given.results.write_text(json.dumps(results, indent=1))
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
