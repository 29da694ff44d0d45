"""A secret column: laws against refits, chances against an attacker.

``python benchmarks/secret.py``, or with the names of parts.

``laws``: 10,000 random halves for each of 10 records and each value of the secret, ridge and
logistic, heart disease: means, standard deviations and correlations of the answers.

``attacker``: 200 shadow models on halves.  For every record an attacker who knows all of it but the
secret, and the laws, names it from each model's answers: models with the record and models without
it, for the value that the record has.  Beside them what the laws promised.  Models with all
products of three or two columns have as many coefficients as records, or more.

``tables``: heart disease (sex, fasting blood sugar), Adult (marital status, race) and a column that
has nothing to do with anything.

The data are those of ../shared/data (heart_cleveland.csv, adult.data); give another folder with
--data.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from leakscope import fitted, measures
from leakscope.fitted import secret
from leakscope.single_fit.problem import ConvexProblem

HEART = [
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak",
    "slope", "ca", "thal", "num",
]  # fmt: skip
ADULT = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation",
    "relationship", "race", "sex", "gain", "loss", "hours", "country", "income",
]  # fmt: skip
Table = tuple[pd.DataFrame, np.ndarray]


def heart(folder: Path) -> Table:
    """297 patients, 13 columns; the label is whether there is any disease."""
    read = pd.read_csv(folder / "heart_cleveland.csv", header=None, names=HEART, na_values="?")
    read = read.dropna()
    return read[HEART[:-1]], (read.num > 0).to_numpy().astype(int)


def adult(folder: Path, size: int = 2000) -> Table:
    """The first records of Adult without empty values; the label is whether income is above 50K."""
    read = pd.read_csv(
        folder / "adult.data", header=None, names=ADULT, na_values="?", skipinitialspace=True
    )
    read = read.dropna().head(size)
    kept = ["age", "education_num", "marital", "occupation", "relationship", "race", "sex", "hours"]
    return read[kept], (read.income == ">50K").to_numpy().astype(int)


def coded(table: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Any]]:
    """Design with an intercept, its rows for every value, the own values, all values."""
    text = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    values = sorted(table[column].unique())

    def design(frame: pd.DataFrame) -> np.ndarray:
        parts = [np.ones((len(frame), 1))]
        for name in table:
            if name in text:
                parts.append(
                    (frame[name].to_numpy()[:, None] == np.array(sorted(table[name].unique())))
                    * 1.0
                )
            else:
                mean, sd = table[name].mean(), table[name].std(ddof=0)
                parts.append(((frame[name] - mean) / sd).to_numpy()[:, None])
        return np.hstack(parts)[:, ::-1]  # the intercept comes last, as leakscope has it

    rows = np.stack([design(table.assign(**{column: value})) for value in values])
    own = np.searchsorted(values, table[column])
    return design(table), rows, own, values


def products(X: np.ndarray, rows: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """All products of up to so many columns, standardised, of a design and of its rows."""
    if degree == 1:
        return X, rows
    expand = PolynomialFeatures(degree, include_bias=False).fit(X[:, :-1])
    scale = StandardScaler().fit(expand.transform(X[:, :-1]))
    every = [
        np.column_stack([scale.transform(expand.transform(part[:, :-1])), part[:, -1]])
        for part in (X, *rows)
    ]
    return every[0], np.stack(every[1:])


def described(X: np.ndarray, y: np.ndarray, loss: str, penalty: float) -> ConvexProblem:
    """The convex problem of ridge or logistic regression, at its optimum."""
    if loss == "square":
        model: Any = Ridge(alpha=penalty).fit(X[:, :-1], y.astype(float))
    else:
        model = LogisticRegression(C=1.0 / penalty, tol=1e-9, max_iter=10_000)
        model.fit(X[:, :-1], y)
    return fitted.from_sklearn(model, X[:, :-1], y).problems[0]


def refitted(
    problem: ConvexProblem, row: np.ndarray | None, label: float, inside: np.ndarray
) -> np.ndarray:
    """Coefficients of fits on many parts of the records (models x n), with one more row."""
    X, y = problem.X, problem.y
    assert X is not None
    if row is not None:
        X, y = np.vstack([X, row]), np.append(y, label)
        inside = np.column_stack([inside, np.ones(len(inside))])
    penalty = np.diag(problem.penalty_at(1.0))
    d = X.shape[1]
    theta = np.tile(np.asarray(problem.coefficients), (len(inside), 1))
    for _ in range(1 if problem.loss == "square" else 12):
        z = theta @ X.T
        if problem.loss == "square":
            force, h = z - y, np.ones_like(z)
        else:
            p = special.expit(z)
            force, h = p - y, p * (1.0 - p)
        gradient = (inside * force) @ X + theta @ penalty
        if d < 50:
            outer = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)
            hessian = ((inside * h) @ outer).reshape(-1, d, d) + penalty
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        else:
            weights = inside * h
            step = np.stack(
                [
                    np.linalg.solve((X.T * each) @ X + penalty, one)
                    for each, one in zip(weights, gradient, strict=True)
                ]
            )
        theta = theta - step
        if float(np.abs(step).max()) < 1e-9:
            break
    return theta


def laws(folder: Path, halves: int, records: int) -> None:
    """Means, standard deviations and correlations of the answers against refits."""
    table, y = heart(folder)
    generator = np.random.default_rng(0)
    print("model     column  mean off (sd)  se     sd off  se     correlation off  se")
    for loss in ("square", "logistic"):
        for column in ("sex", "fbs"):
            X, rows, own, values = coded(table, column)
            problem = described(X, y, loss, 1.0)
            found = secret.secret_laws(problem, rows, own)
            errors = []
            for i in generator.choice(len(y), records, replace=False):
                inside = generator.random((halves, len(y))) < 0.5
                inside[:, i] = False
                for v in range(len(values)):
                    theta = np.vstack(
                        [
                            refitted(problem, rows[v, i], problem.y[i], part.astype(float))
                            for part in np.array_split(inside, 10)
                        ]
                    )
                    seen = theta @ rows[:, i].T
                    mean, covariance = found.answers(np.full(len(y), v))
                    mean = mean[:, :, 0]
                    sd = np.sqrt(np.diagonal(covariance[i]))
                    true = np.cov(seen.T)
                    true_sd = np.sqrt(np.diagonal(true))
                    errors.append(
                        (
                            np.abs((seen.mean(axis=0) - mean[i]) / true_sd).max(),
                            np.abs(sd / true_sd - 1.0).max(),
                            abs(
                                covariance[i][0, 1] / sd[0] / sd[1]
                                - true[0, 1] / true_sd[0] / true_sd[1]
                            ),
                        )
                    )
            worst = np.max(errors, axis=0)
            middle = np.median(errors, axis=0)
            print(
                f"{loss:9s} {column:6s}  median {middle[0]:.3f} worst {worst[0]:.3f} (se "
                f"{halves**-0.5:.3f}) | sd median {middle[1]:.3f} worst {worst[1]:.3f} (se "
                f"{(2 * halves) ** -0.5:.3f}) | correlation median {middle[2]:.4f} worst "
                f"{worst[2]:.4f}",
                flush=True,
            )


def classes(folder: Path, models: int) -> None:
    """The same with five classes, how ill a patient is, by scikit-learn's own refits."""
    read = pd.read_csv(folder / "heart_cleveland.csv", header=None, names=HEART, na_values="?")
    read = read.dropna()
    table, y = read[HEART[:-1]], read["num"].to_numpy()
    generator = np.random.default_rng(3)
    for column in ("sex", "fbs"):
        X, rows, own, _ = coded(table, column)
        problem = described(X, y, "softmax", 1.0)
        found = secret.secret_laws(problem, rows, own)
        inside = generator.random((models, len(y))) < 0.5
        seen = np.empty((len(y), models, len(rows), 4))
        for place, part in enumerate(inside):
            model = LogisticRegression(C=1.0, tol=1e-7, max_iter=10_000)
            model.fit(X[part, :-1], y[part])
            logits = rows[:, :, :-1] @ model.coef_.T + model.intercept_
            seen[:, place] = np.swapaxes(logits @ secret.contrasts(5), 0, 1)
        told(f"softmax {column}", found, rows, seen, inside)


def attacker(folder: Path, models: int) -> None:
    """What an attacker names with shadow models, with the record in them and without it."""
    table, y = heart(folder)
    generator = np.random.default_rng(1)
    table = table.assign(coin=generator.integers(0, 2, len(table)).astype(float))
    for loss, degree, penalty in (
        ("square", 1, 1.0), ("logistic", 1, 1.0), ("square", 3, 100.0), ("logistic", 2, 100.0),
    ):  # fmt: skip
        for column in ("sex", "fbs", "coin"):
            X, rows, own, _ = coded(table, column)
            X, rows = products(X, rows, degree)
            problem = described(X, y, loss, penalty)
            found = secret.secret_laws(problem, rows, own)
            inside = generator.random((models, len(y))) < 0.5
            theta = refitted(problem, None, 0.0, inside.astype(float))
            seen = np.einsum("md,vid->imv", theta, rows)[..., None]
            told(f"{loss} {X.shape[1] - 1} columns, {column}", found, rows, seen, inside)
    classes(folder, models)


def told(
    name: str, laws: secret.SecretLaws, rows: np.ndarray, seen: np.ndarray, inside: np.ndarray
) -> None:
    """What is named by models' answers (n, M, V, O) about every record with every value."""
    density = laws.log_density(seen)
    for kind in ("shares", "imputed"):
        prior, before = secret.beliefs(kind, laws, rows)
        chances = secret.secret_chances(laws, prior, before)
        guess = (np.log(laws.updated(before))[:, None] + density).argmax(axis=2)
        right = (guess == laws.own[:, None]).T
        print(
            f"{name}, {kind}: named, no model {chances.named_prior.mean():.3f} | not trained on it "
            f"{chances.named_without.mean():.3f} | this model: said "
            f"{chances.named_within.mean():.3f}, seen {_share(right, inside)} | the same attacker "
            f"on models without the record {_share(right, ~inside)}",
            flush=True,
        )


def _share(right: np.ndarray, mask: np.ndarray) -> str:
    """The mean over the records of their shares, with its error over the models."""
    by_record = (right * mask).sum(axis=0) / np.maximum(mask.sum(axis=0), 1)
    by_model = (right * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
    return f"{by_record.mean():.3f} ± {by_model.std() / len(by_model) ** 0.5:.3f}"


def tables(folder: Path, size: int) -> None:
    """Three chances, the leak and the advantage, for each column."""
    generator = np.random.default_rng(2)
    people, income = adult(folder, size)
    patients, disease = heart(folder)
    coin = patients.assign(coin=generator.integers(0, 2, len(patients)).astype(float))
    cases = [
        ("heart", patients, disease, "sex"),
        ("heart", patients, disease, "fbs"),
        ("heart", coin, disease, "coin"),
        ("adult", people, income, "marital"),
        ("adult", people, income, "race"),
    ]
    print("data  column  values | shares, + model | imputed, + model, this model | leak: mean, max")
    for name, table, y, column in cases:
        X, rows, own, values = coded(table, column)
        problem = described(X, y, "logistic", 1.0)
        found = secret.secret_laws(problem, rows, own)
        shares = secret.secret_chances(found, *secret.beliefs("shares", found, rows))
        full = secret.secret_chances(found, *secret.beliefs("imputed", found, rows))
        advantage = measures.advantage(found.law_pair(full.other))
        print(
            f"{name:5s} {column:8s} {len(values)} | {shares.named_prior.mean():.3f} "
            f"{shares.named_without.mean():.3f} | {full.named_prior.mean():.3f} "
            f"{full.named_without.mean():.3f} {full.named_within.mean():.3f} | "
            f"{full.leak.mean():.4f} {full.leak.max():.3f} | advantage median "
            f"{np.median(advantage):.3f} largest {advantage.max():.3f}; error {full.error:.1g}",
            flush=True,
        )


def main() -> None:
    """The parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["laws", "attacker", "tables"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--halves", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=10)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--size", type=int, default=2000)
    given = parser.parse_args()
    if "laws" in given.parts:
        laws(given.data, given.halves, given.records)
    if "attacker" in given.parts:
        attacker(given.data, given.models)
    if "tables" in given.parts:
        tables(given.data, given.size)


if __name__ == "__main__":
    main()
