"""Does `verify` cry wolf, and does it see what is wrong?  Sixty seeds, few and many shadow models.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/verify_alarms.py [--seeds 60] [--write]

Right audits: ridge regression of diabetes, logistic regression of breast cancer and of heavy-tailed
noise, all as fitted.  A verification is a false alarm where any of its checks differs.

Wrong audits, whose laws are of something else than the shadow models: a penalty of a tenth; a step
that chose eight of sixty columns by their labels, frozen, where the models choose anew; answers
with noise of which the audit knows half.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.subjects.subject import Answers, shared_answers

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "verify.md"
MODELS = (20, 64, 200)


def diabetes() -> Any:
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def cancer() -> Any:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :10], y


def tails() -> Any:
    rng = np.random.default_rng(1)
    return rng.standard_t(4, size=(250, 6)), rng.integers(0, 2, 250)


def audited(X: Any, y: Any, estimator: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leakscope.audit(X, y, model=clone(estimator).fit(X, y))


class Instead:
    """The subject of an audit, whose models are others than its laws are of."""

    def __init__(self, subject: Any, answers: Callable[[Any, int, int], Answers]) -> None:
        self._subject, self.answers = subject, answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subject, name)


def whole_recipe(X: Any, y: Any, recipe: Any) -> Callable[[Any, int, int], Answers]:
    """Shadow models of a recipe, every step refitted."""

    def answers(units: Any, count: int, seed: int) -> Answers:
        rng = np.random.default_rng(seed)
        rows = rng.random((count, len(y))) < 0.5
        scores = np.stack([clone(recipe).fit(X[own], y[own]).predict(X) for own in rows])
        return shared_answers(scores, rows, units, "models of the whole recipe", count)

    return answers


def instead(audit: Any, answers: Callable[[Any, int, int], Answers]) -> Any:
    return audit.with_memory(audit._laws, Instead(audit._subject, answers))


def wrong_penalty() -> Any:
    X, y = diabetes()
    return instead(audited(X, y, Ridge(3.0)), whole_recipe(X, y, Ridge(30.0)))


def frozen_step() -> Any:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(150, 60)), rng.normal(size=150)
    recipe = make_pipeline(SelectKBest(f_regression, k=8), Ridge(1.0))
    chosen = recipe.fit(X, y)[0].transform(X)
    return instead(audited(chosen, y, Ridge(1.0)), whole_recipe(X, y, recipe))


def halved_noise() -> Any:
    X, y = diabetes()
    audit = audited(X, y, Ridge(1.0))
    subject, known = audit._subject, 0.1
    noised = audit._laws.noised(known)
    spread = {name: np.hypot(noised.columns[name], known) for name in ("sd_without", "sd_with")}
    laws = replace(noised, columns={**noised.columns, **spread})
    from leakscope.auditing.audit import audit_subject

    class Noised(Instead):
        def laws(self, stage: Any) -> Any:
            return laws

    def answers(units: Any, count: int, seed: int) -> Answers:
        found = subject.answers(units, count, seed)
        rng = np.random.default_rng(seed + 1)
        scores = found.scores + 2.0 * known * rng.normal(size=found.scores.shape)
        return shared_answers(scores, found.trained_on, units, found.how, count)

    return audit_subject(Noised(subject, answers))  # type: ignore[arg-type]


RIGHT: dict[str, Callable[[], Any]] = {
    "ridge, diabetes": lambda: audited(*diabetes(), Ridge(1.0)),
    "logistic, breast cancer": lambda: audited(
        *cancer(), LogisticRegression(solver="newton-cholesky", tol=1e-6)
    ),
    "logistic, heavy-tailed noise": lambda: audited(
        *tails(), LogisticRegression(solver="newton-cholesky", tol=1e-6)
    ),
}
WRONG: dict[str, Callable[[], Any]] = {
    "penalty of a tenth": wrong_penalty,
    "supervised step frozen": frozen_step,
    "noise halved": halved_noise,
}


def alarms(audit: Any, models: int, seeds: int) -> tuple[int, int, int]:
    """Verifications that differ, those with a leaning, and checks that agree."""
    differ = lean = agree = 0
    for seed in range(seeds):
        found = leakscope.verify(audit, models=models, seed=seed)
        differ += found.differs > 0
        lean += any("measured values of" in text for text in found.warnings)
        agree += found.agrees
    return differ, lean, agree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--models", type=int, nargs="*", default=list(MODELS))
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)
    lines: dict[bool, list[str]] = {True: [], False: []}
    start = time.process_time()
    for right, table in ((True, RIGHT), (False, WRONG)):
        for name, make in table.items():
            if given.only and not any(text in name for text in given.only):
                continue
            audit, cells = make(), []
            for models in given.models:
                differ, lean, _ = alarms(audit, models, given.seeds)
                cells.append(f"{differ} ({100 * differ / given.seeds:.0f}%), {lean}")
            lines[right].append(f"| {name} | " + " | ".join(cells) + " |")
            print(lines[right][-1], flush=True)
    if given.write:
        minutes = (time.process_time() - start) / 60.0
        heads = " | ".join(f"{m} models" for m in given.models)
        rule = "|---" * (len(given.models) + 1) + "|"
        PAGE.write_text(
            TEXT.format(
                seeds=given.seeds,
                minutes=minutes,
                right="\n".join([f"| right audit | {heads} |", rule, *lines[True]]),
                wrong="\n".join([f"| wrong audit | {heads} |", rule, *lines[False]]),
            )
        )


TEXT = """\
# Does verify cry wolf?

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/verify_alarms.py --write

{seeds} seeds of `leakscope.verify(audit, models=...)` each; {minutes:.0f} minutes of one core. In
how many of them a check differs, and then in how many a warning says that all records lean to one
side. Ten records are checked, and all together: 23 numbers. One false alarm in a hundred
verifications is promised.

{right}

Wrong audits: the laws are of something else than the shadow models. *Penalty*: laws of Ridge(3),
models of Ridge(30), diabetes. *Step*: the best 8 of 60 columns of noise, chosen once, where the
models choose anew. *Noise*: answers with noise of sd 0.2 where the audit says 0.1.

{wrong}
"""

if __name__ == "__main__":
    main()
