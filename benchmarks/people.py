"""Laws of people with one to six records each against shadow models that draw people.

    python benchmarks/people.py [docs/benchmarks/people.md]

The records of a person are alike: each is 0.7 times the person's first plus 0.5 times a record of
its own, of breast cancer (a tenth of the labels flipped), diabetes and wine.  Half an hour on one
core, most of it for the shadow models.

    python benchmarks/people.py --weights

compares ways to weigh a person's rows in a training (docs/few_models.md).
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier

import leakscope
from leakscope import fitted, measures
from leakscope.fitted.people import summed_by
from leakscope.fitted.shadow import ShadowCheck, ShadowScores
from leakscope.halves.draw import half
from leakscope.recipes.recipe import recipe_of
from leakscope.trust import LEAST_EFFECTIVE

FITS, TRAININGS = 1000, 300
FEW = (4, 16)


def of_people(data: Any, seed: int, *, flipped: float = 0.0) -> tuple[Any, Any, Any]:
    """Standardised records in persons of one to six, alike within a person."""
    generator = np.random.default_rng(seed)
    X, y = data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    who = np.repeat(np.arange(len(y)), generator.integers(1, 7, size=len(y)))[: len(y)]
    first = np.unique(who, return_index=True)[1]
    X = 0.7 * X[first][who] + 0.5 * X
    if flipped:
        wrong = generator.random(len(y)) < flipped
        y = np.where(wrong, 1 - y, y)
    return X, y if y.dtype.kind == "i" else (y - y.mean()) / y.std(), who


def line(name: str, people: int, seconds: float, found: ShadowCheck, more: str = "") -> str:
    return (
        f"| {name} | {people} | {found.shift_ratio:.3f} | {found.sd_ratio:.3f} | "
        f"{more}{seconds:.1f} |"
    )


def of_fit(name: str, estimator: Any, data: tuple[Any, Any, Any]) -> tuple[str, str]:
    X, y, who = data
    estimator.fit(X, y)
    start = time.process_time()
    laws = fitted.laws_of(estimator, X, y, groups=who)
    seconds = time.process_time() - start
    shadows = fitted.shadow_models(estimator, X, y, models=FITS, random_state=0, people=laws.people)
    found = fitted.check_against_shadows(laws, shadows)
    alone = np.asarray(measures.advantage(fitted.laws_of(estimator, X, y).law_pair()))
    own = np.asarray(measures.advantage(laws.law_pair()))
    largest = np.maximum.reduceat(alone[np.argsort(who, kind="stable")], _starts(who))
    told = (
        f"| {name} | {alone.mean():.3f} | {largest.mean():.3f} | {own.mean():.3f} | "
        f"{laws.people.joint.mean():.3f} | {(laws.people.joint - own).max():.3f} | "
        f"{100 * np.mean(laws.shares.effective >= LEAST_EFFECTIVE):.0f}% |"
    )
    more = f"{100 * np.mean(laws.shares.effective >= LEAST_EFFECTIVE):.0f}% | "
    return line(name, laws.records, seconds, found, more), told


def _starts(who: Any) -> Any:
    return np.searchsorted(np.sort(who), np.arange(who.max() + 1))


def of_training(name: str, estimator: Any, data: tuple[Any, Any, Any]) -> list[str]:
    X, y, who = data
    found = []
    for models in FEW:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            audit = leakscope.audit(X, y, train=estimator, models=models, groups=who)
        seconds = time.process_time() - start
        answers = audit.examined.answers(np.arange(audit.units), TRAININGS, 1)
        laws = SimpleNamespace(
            records=audit.units,
            member_mean=audit.table.of("mean_with"),
            member_sd=audit.table.of("sd_with"),
            nonmember_mean=audit.table.of("mean_without"),
            nonmember_sd=audit.table.of("sd_without"),
        )
        laws.shift = laws.member_mean - laws.nonmember_mean
        shadows = ShadowScores(answers.scores, answers.trained_on)
        check = fitted.check_against_shadows(laws, shadows)
        mean_in, sd_in, mean_out, sd_out = shadows.moments()
        truth = np.asarray(measures.advantage(measures_pair(mean_in, sd_in, mean_out, sd_out)))
        low, high = audit.table.of("advantage_low"), audit.table.of("advantage_high")
        inside = np.mean((low <= truth) & (truth <= high))
        more = f"{100 * audit.confirmed.mean():.0f}% | "
        row = line(f"{name}, {models} models", audit.units, seconds, check, more)
        found.append(
            f"{row[:-1]}| {audit.advantage.mean():.3f} | {truth.mean():.3f} | {inside:.2f} |"
        )
    return found


def measures_pair(mean_in: Any, sd_in: Any, mean_out: Any, sd_out: Any) -> Any:
    from leakscope.laws import LawPair, Normal

    return LawPair(Normal(mean_in, sd_in), Normal(mean_out, sd_out))


def compare_weights(name: str, estimator: Any, X: Any, y: Any, task: Any, models: int) -> None:
    """The mean advantage on the second half of the models, weights from the first half or less."""
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 7, size=len(y))
    codes = np.repeat(np.arange(len(y)), sizes)[: len(y)]
    recipe = recipe_of(estimator, X, y, task)
    labels = y if task == "classification" else None
    rows = np.stack([half(labels, len(y), number, 5, codes) for number in range(models)])
    scores = np.stack([recipe.scores(own, k) for k, own in enumerate(rows)])
    inside = rows[:, np.unique(codes, return_index=True)[1]]
    first, second = slice(0, models // 2), slice(models // 2, models)
    mean_in, _, mean_out, sd_out = ShadowScores(scores[first], rows[first]).moments()

    def slope(some: Any) -> Any:
        return expit(-some.mean(axis=0)) if labels is not None else -some.mean(axis=0)

    plain = np.ones(len(y)) if labels is not None else np.sign(slope(scores[first]))
    told = []
    for weights in (
        plain, slope(scores[first]), slope(scores[:4]), (mean_in - mean_out) / sd_out**2,
    ):  # fmt: skip
        summed = summed_by(codes, weights * scores) / summed_by(codes, np.abs(weights))
        moments = ShadowScores(summed[second], inside[second]).moments()
        told.append(float(np.mean(np.asarray(measures.advantage(measures_pair(*moments))))))
    print(f"| {name} | {' | '.join(f'{value:.3f}' for value in told)} |", flush=True)


def weights_table() -> None:
    """Ways to weigh a person's rows."""
    generator = np.random.default_rng(3)
    X, y = load_breast_cancer(return_X_y=True)
    y = np.where(generator.random(len(y)) < 0.1, 1 - y, y)
    boosted = HistGradientBoostingClassifier(max_iter=30)
    compare_weights("boosting, breast cancer", boosted, X, y, "classification", 160)
    compare_weights("forest of 50", RandomForestClassifier(50), X, y, "classification", 100)
    boosted = HistGradientBoostingRegressor(max_iter=30)
    compare_weights(
        "boosting, diabetes", boosted, *load_diabetes(return_X_y=True), "regression", 160
    )
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(generator.random(len(y)) < 0.1, generator.integers(0, 3, len(y)), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        perceptron = MLPClassifier(32, max_iter=200)
        compare_weights("perceptron, wine", perceptron, X, y, "classification", 100)


def main() -> None:
    """The tables, on the screen or into a page."""
    if sys.argv[1:] == ["--weights"]:
        weights_table()
        return
    cancer = of_people(load_breast_cancer(return_X_y=True), 0, flipped=0.1)
    diabetes = of_people(load_diabetes(return_X_y=True), 1)
    wine = of_people(load_wine(return_X_y=True), 2)
    newton = {"solver": "newton-cholesky", "tol": 1e-8}
    fits = [
        ("ridge, diabetes", Ridge(alpha=1.0), diabetes),
        ("kernel ridge, diabetes", KernelRidge(alpha=0.5, kernel="rbf", gamma=0.05), diabetes),
        ("logistic, breast cancer, C=0.1", LogisticRegression(C=0.1, **newton), cancer),
        ("logistic, breast cancer, C=1", LogisticRegression(C=1.0, **newton), cancer),
        ("softmax, wine, C=0.1", LogisticRegression(C=0.1, **newton), wine),
        ("ridge classifier, wine", RidgeClassifier(alpha=10.0), wine),
    ]
    head = (
        "| | people | rank (ceiling) | mean advantage (observed) | shift | sd | mean TPR at 1% "
        "(counted) | trusted | seconds |"
    )
    first = [head, "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    second = [
        "| | a row | the largest of a person's rows | a person | any test of all answers | "
        "most that the sum loses | trusted |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, estimator, data in fits:
        row, told = of_fit(name, estimator, data)
        print(row, flush=True)
        first.append(row)
        second.append(told)
    third = [
        f"{head[:-1]}| mean advantage of the audit | of {TRAININGS} models | intervals that hold |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    boosted = HistGradientBoostingClassifier(max_iter=30)
    third += of_training("boosting, breast cancer", boosted, cancer)
    third += of_training("boosting, diabetes", HistGradientBoostingRegressor(max_iter=30), diabetes)
    tables = ["\n".join(table) for table in (first, second, third)]
    if len(sys.argv) < 2:
        print("\n\n".join(tables))
        return
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    for number, table in enumerate(tables, start=1):
        begin, end = f"<!-- table {number} -->", f"<!-- end {number} -->"
        start = text.index(begin) + len(begin)
        text = f"{text[:start]}\n\n{table}\n\n{text[text.index(end) :]}"
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
