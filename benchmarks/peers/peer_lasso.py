"""celer, skglm and scikit-learn on one LASSO problem: time, duality gap and coefficients."""

from __future__ import annotations

import time
import warnings

import numpy as np
from answers import read_question, write_answer
from celer import Lasso as CelerLasso
from skglm import Lasso as SkglmLasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as ScikitLasso

warnings.filterwarnings("ignore", category=ConvergenceWarning)


def main() -> None:
    question, data = read_question()
    X, y = np.asfortranarray(data["X"]), data["y"]
    alpha = question["lam"] / len(y)
    makers = {
        "celer": lambda: CelerLasso(alpha=alpha, fit_intercept=False, tol=1e-10, max_iter=1000),
        "skglm": lambda: SkglmLasso(alpha=alpha, fit_intercept=False, tol=1e-10, max_iter=1000),
        "scikit-learn": lambda: ScikitLasso(
            alpha=alpha, fit_intercept=False, tol=1e-10, max_iter=100_000
        ),
    }
    answer = {}
    for name, make in makers.items():
        make().fit(X, y)  # compiles
        times = []
        for _ in range(question["repeats"]):
            model = make()
            start = time.perf_counter()
            model.fit(X, y)
            times.append(time.perf_counter() - start)
        answer[name] = {"seconds": min(times), "coef": model.coef_.tolist()}
    write_answer(answer)


if __name__ == "__main__":
    main()
