"""How every estimator of scikit-learn is answered.  ``python benchmarks/any_estimator.py --write``

Every classifier and regressor of ``sklearn.utils.all_estimators()``, with its usual parameters, on
one small table of each task: by which method it is answered, what that costs in seconds of the
processor, the largest and the median advantage, and the share of the records that are trusted; of
one that is refused the sentence.  ``--write`` puts the table into docs/estimators_answered.md; with
names as arguments their rows only.
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import all_estimators

import leakscope
from leakscope.errors import InputError
from leakscope.subjects import Asked
from leakscope.subjects.subject import kind_for

PAGE = Path(__file__).parents[1] / "docs" / "estimators_answered.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
# Models of halves, where there is nothing better, are trained for so long; a user's for a minute.
MINUTES = 0.25

# What some must be given: the estimators inside, and parameters that fit the tables.
AROUND = {
    "CategoricalNB": lambda kind: kind(min_categories=2),
    "QuadraticDiscriminantAnalysis": lambda kind: kind(reg_param=0.01),
    "SelfTrainingClassifier": lambda kind: kind(LogisticRegression()),
    "StackingClassifier": lambda kind: kind([("logistic", LogisticRegression())]),
    "VotingClassifier": lambda kind: kind([("logistic", LogisticRegression())], voting="soft"),
    "StackingRegressor": lambda kind: kind([("ridge", Ridge())]),
    "VotingRegressor": lambda kind: kind([("ridge", Ridge())]),
}


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features between 0 and 1, which every estimator takes."""
    X, y = load_breast_cancer(return_X_y=True)
    features, target = load_diabetes(return_X_y=True)
    return {
        "classifier": (MinMaxScaler().fit_transform(X[::2, :10]), y[::2]),
        "regressor": (MinMaxScaler().fit_transform(features[::2]), target[::2]),
    }


def instances(task: str) -> list[tuple[str, Any]]:
    """Every estimator of a task, made with its usual parameters."""
    inner = LogisticRegression() if task == "classifier" else Ridge()
    found = []
    for name, kind in all_estimators(type_filter=task):
        if name in AROUND:
            found.append((name, AROUND[name](kind)))
            continue
        try:
            found.append((name, kind()))
        except TypeError:
            found.append((name, kind(inner)))
    return found


def method(audit: Any, kind: str) -> str:
    """By what an audit was answered, of an estimator that was sent to this kind first."""
    first = audit.sentences[0]
    paired = re.search(r"(\d+) fits of parts", first)
    if "laws of one fit" in first:
        return "one fit"
    if paired:
        return f"{paired[1]} paired fits"
    return f"{audit.details.models} models of halves{', passed on' * (kind == 'fit')}"


def routed(estimator: Any, X: Any, y: Any) -> str:
    """Which kind an estimator is sent to before anything is fitted."""
    return kind_for(Asked(X=X, y=y, model=estimator)).name


def row(name: str, estimator: Any, X: Any, y: Any) -> str:
    """One line of the table."""
    kind = routed(estimator, X, y)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = leakscope.audit(X, y, model=estimator, minutes=MINUTES)
    except InputError as error:
        return f"| `{name}` | {kind} | refused: {error} | | | | |"
    seconds = time.process_time() - begin
    advantage = found.advantage
    trusted = 1.0 - found.untrusted / found.units
    return (
        f"| `{name}` | {kind} | {method(found, kind)} | {seconds:.1f} | {advantage.max():.2f} | "
        f"{np.median(advantage):.3f} | {trusted:.0%} |"
    )


HEAD = (
    "| estimator | sent to | answered by | CPU s | largest advantage | median | trusted |\n"
    "|---|---|---|---|---|---|---|\n"
)


def rewritten(page: str, lines: list[str]) -> str:
    """The page with these rows in the place of those of the same estimators."""
    made = {line.split("|")[1]: line for line in lines}
    cells = [(line.split("|")[1:2] or [""])[0] for line in page.split("\n")]
    kept = [made.get(cell, line) for cell, line in zip(cells, page.split("\n"), strict=True)]
    return "\n".join(kept)


def main() -> None:
    """Print the table, and write it where that is asked for."""
    wanted = [name for name in sys.argv[1:] if not name.startswith("--")]
    parts, made = [f"scikit-learn {sklearn.__version__}.\n"], []
    for task, (X, y) in tables().items():
        lines = []
        for name, estimator in instances(task):
            if not wanted or name in wanted:
                lines.append(row(name, estimator, X, y))
                print(lines[-1], flush=True)
        parts.append(f"\n**{task.capitalize()}s**, {X.shape[0]} records x {X.shape[1]}:\n\n")
        parts.append(HEAD + "\n".join(lines) + "\n")
        made += lines
    if "--write" not in sys.argv:
        return
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    whole = before + BEGIN + "\n" + "".join(parts) + "\n" + END + after
    PAGE.write_text(rewritten(text, made) if wanted else whole, "utf-8")


if __name__ == "__main__":
    main()
