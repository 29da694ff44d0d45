"""Training functions of a user's, models, and runs with odd values, for the fuzzer.

A training function comes from a list of those that a user may write by mistake; the bytes choose it
and the options of ``verify`` beside it.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
from pathlib import Path

TRAINERS = {
    "mean": "return lambda Q: np.full(len(Q), np.mean(y))",
    "nearest": "return lambda Q: y[np.argmin(((Q[:, None] - X) ** 2).sum(-1), axis=1)]",
    "solved": "w = np.linalg.pinv(X) @ y\n    return lambda Q: Q @ w",
    "noisy": "r = np.random.default_rng(seed)\n    return lambda Q: r.normal(size=len(Q))",
    "an_object": "class A:\n        predict = lambda self, Q: Q[:, 0]\n    return A()",
    "nothing": "pass",
    "text": "return 'a model'",
    "words": "return lambda Q: ['a'] * len(Q)",
    "mixed": "return lambda Q: [None, 'a'] + [1.0] * (len(Q) - 2)",
    "complex_numbers": "return lambda Q: np.ones(len(Q)) * 1j",
    "ragged": "return lambda Q: [[1.0], [1.0, 2.0]]",
    "too_few": "return lambda Q: [1.0]",
    "too_many": "return lambda Q: np.ones((len(Q), 7))",
    "a_number": "return lambda Q: 3.0",
    "infinite": "return lambda Q: np.full(len(Q), np.inf)",
    "not_numbers": "return lambda Q: np.full(len(Q), np.nan)",
    "large": "return lambda Q: np.full(len(Q), 1e308)",
    "constant": "return lambda Q: np.zeros(len(Q))",
    "dates": "return lambda Q: np.full(len(Q), np.datetime64('2020-01-01'))",
    "masked": "return lambda Q: np.ma.masked_all(len(Q))",
    "truths": "return lambda Q: Q[:, 0] > 0",
    "objects": "return lambda Q: np.array([object()] * len(Q))",
    "fails": "raise ValueError('no')",
    "fails_later": "return lambda Q: 1 / 0",
    "leaves": "sys.exit(0)",
    "leaves_at_once": "os._exit(0)",
    "leaves_later": "return lambda Q: os._exit(0)",
    "leaves_with_words": "raise SystemExit('enough')",
    "spoils": "X[:] = np.nan\n    y[:] = 0.0\n    return lambda Q: Q.fill(0.0) or np.zeros(len(Q))",
    "prints": "print('warning: mine')\n    return lambda Q: np.zeros(len(Q))",
    "recurses": "return train_recurses(X, y, seed)",
    "warns": "import warnings\n    warnings.warn('mind')\n    return lambda Q: np.zeros(len(Q))",
    "wide": "return lambda Q: np.zeros((len(Q), 1, 1))",
    "a_list": "return lambda Q: [float(v) for v in Q[:, 0]]",
    "a_generator": "return lambda Q: (v for v in Q[:, 0])",
}
MODULE = "import os, sys\nimport numpy as np\n\n" + "\n".join(
    f"def train_{name}(X, y, seed):\n    {body}\n" for name, body in TRAINERS.items()
)
_COUNT = itertools.count()


def trained_audit(folder: Path, data: bytes) -> list[list[str]]:
    """``audit --train`` with a function of the list, and what is then done with the run."""
    from fuzz_inputs import ODD_COUNTS, ODD_NUMBERS, Choices

    choices = Choices(data)
    module = f"audited_{os.getpid()}_{next(_COUNT)}"
    (folder / f"{module}.py").write_text(MODULE, encoding="utf-8")
    # Enough records for what they have in common to be seen.
    rows = [f"{i * 37 % 11},{i * 17 % 7},{i % 2 if i % 5 else i % 3}" for i in range(24)]
    (folder / "many.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    importlib.invalidate_caches()
    named = [f"{module}:train_{name}" for name in TRAINERS]
    named += ["sklearn.linear_model:Ridge", "sklearn.neighbors:KNeighborsClassifier"]
    line = ["audit", "many.csv", "--target", "y", "--train", choices.pick(named)]
    line += ["--models", choices.pick(("2", "2", "4", *ODD_COUNTS))]
    if not choices.below(3):
        line += ["--task", choices.pick(("classification", "regression", "x"))]
    if not choices.below(4):
        flag = choices.pick(
            (
                *("--seed", "--time-limit", "--keep", "--json", "--by", "--scaling", "--group"),
                *("--answer-noise", "--observes", "--fraction", "--sample", "--secret"),
            )
        )
        kept = ("kept", "run", "many.csv", f"{module}.py", "run/result.json", "")
        line += [flag, choices.pick((*ODD_NUMBERS, "b", "none", *kept))]
    elif not choices.below(8):
        # It goes on for as long as it is told to.
        line += ["--minutes", choices.pick(("0.001", "0.01", "0", "-1", "nan", "x", "1e-300"))]
    line += ["--run-dir", "trained"]
    more = choices.pick(
        (
            ["report", "trained"],
            ["verify", "trained", "--models", "20", "--records", "2"],
            ["decide", "trained", "--threshold-advantage", "0.5", "--output", "signed"],
            ["compare", "trained", "trained"],
            line,
        )
    )
    return [line, more]


def decided(folder: Path, data: bytes) -> list[list[str]]:
    """``decide`` on runs whose results have odd values, with odd declarations."""
    from fuzz_inputs import ODD_NUMBERS, ODD_TEXTS, Choices, spoilt

    choices = Choices(data)
    name = choices.pick(("model", "run", "groups", "people", "fitted"))
    file = folder / name / "result.json"
    document = json.loads(file.read_text())
    if choices.below(4):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    line = ["decide", name, *choices.pick(([], [], ["models.json"], ["run2"]))]
    line += [choices.pick(("--threshold-advantage", "--threshold-tpr", "--threshold-ppv"))]
    line += [choices.pick(("0.5", "0.9", *ODD_NUMBERS)), "--prior", choices.pick(("0.1", "0", "x"))]
    if not choices.below(2):
        flag = choices.pick(("--model", "--reason", "--approver", "--expires", "--conditions"))
        line += [flag, choices.pick((*ODD_TEXTS, "2027-01-31", "![a](http://b/c.png)", "net.json"))]
    line += ["--output", choices.pick(("signed", "signed", "run", "data.csv"))]
    return [line, ["decide", "--check", "signed"], ["report", "signed/decision.json"]]


def shadow_verification(folder: Path, data: bytes) -> list[str]:
    """``verify --models`` of an audit of a named model, whose result has odd values."""
    from fuzz_inputs import ODD_COUNTS, ODD_NUMBERS, Choices, spoilt

    choices = Choices(data)
    file = folder / "model" / "result.json"
    document = json.loads(file.read_text())
    if choices.below(3):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    line = ["verify", "model", "--models", choices.pick(("20", "25", "30", *ODD_COUNTS))]
    line += ["--records", choices.pick(("1", "2", *ODD_COUNTS))]
    if not choices.below(3):
        line += [choices.pick(("--seed", "--draws", "--data")), choices.pick(ODD_NUMBERS)]
    return line


MODELS = (
    *("sklearn.svm:SVC", "sklearn.svm:SVR", "sklearn.svm:LinearSVC", "sklearn.svm:NuSVC"),
    *("sklearn.linear_model:Lasso", "sklearn.linear_model:HuberRegressor"),
    *("sklearn.linear_model:QuantileRegressor", "sklearn.linear_model:SGDClassifier"),
    *("sklearn.linear_model:LassoCV", "sklearn.linear_model:BayesianRidge", "kernel_ridge"),
    *("sklearn.linear_model:LogisticRegression", "sklearn.linear_model:GammaRegressor"),
    *("sklearn.naive_bayes:GaussianNB", "sklearn.naive_bayes:MultinomialNB", "poisson", "linear"),
    *("sklearn.discriminant_analysis:LinearDiscriminantAnalysis", "sklearn.dummy:DummyClassifier"),
    *("sklearn.neighbors:NearestCentroid", "sklearn.tree:DecisionTreeRegressor", "sklearn.svm:x"),
    *("sklearn.gaussian_process:GaussianProcessRegressor", "sklearn.cluster:KMeans"),
    *("sklearn.preprocessing:StandardScaler", "sklearn.pipeline:Pipeline", "sklearn.base:clone"),
)


def any_model(folder: Path, data: bytes) -> list[list[str]]:
    """``audit --model`` of whatever scikit-learn has, and what is then done with the run."""
    from fuzz_inputs import ODD_NUMBERS, ODD_TEXTS, Choices

    choices = Choices(data)
    line = ["audit", "many.csv", "--target", choices.pick(("y", "z", "z", "c"))]
    line += ["--model", choices.pick(MODELS), "--models", "2"]
    line += choices.pick(([], ["--task", "classification"], ["--task", "regression"]))
    line += choices.pick(([], [], ["--group", "g"], ["--ignore", "c", "--ignore", "g"]))
    for _ in range(choices.below(3)):
        flag = choices.pick(
            (
                *("--alpha", "--C", "--gamma", "--fraction", "--answer-noise", "--scaling"),
                *("--observes", "--question", "--by", "--sample", "--secret", "--id", "--missing"),
            )
        )
        words = ("none", "label", "prediction", "population", "c", "g", "12", "drop")
        line += [flag, choices.pick((*ODD_NUMBERS, *words, *ODD_TEXTS[:6]))]
    line += ["--run-dir", "of"]
    more = choices.pick(
        (
            ["report", "of"],
            ["verify", "of", "--models", "20", "--records", "2"],
            ["decide", "of", "--threshold-tpr", "0.1"],
            ["erase", "of", "--record", choices.pick(("1", "p1", "0", "x")), "--save", "w.skops"],
            ["advise", "of", "--target-advantage", "0.5"],
        )
    )
    return [line, more]


def erased(folder: Path, data: bytes) -> list[list[str]]:
    """``erase`` of a run whose result has odd values."""
    from fuzz_inputs import Choices, spoilt

    choices = Choices(data)
    name = choices.pick(("fitted", "fitted2", "people"))
    file = folder / name / "result.json"
    document = json.loads(file.read_text())
    if choices.below(5):
        spoilt(document, choices)
        file.write_text(json.dumps(document))
    line = ["erase", name, "--record", choices.pick(("1", "p1", "29", "30", "-1", ""))]
    line += choices.pick(([], ["--after", "mine.skops"], ["--save", "made.skops"]))
    return [line]


def users_own(problem: BaseException, folder: Path) -> bool:
    """Whether an exception comes from the user's own function, which keeps its traceback."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code.co_filename.startswith(str(folder))
