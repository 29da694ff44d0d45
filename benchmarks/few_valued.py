"""Which trainings' answers take few values, and whether what few models say of them is right.

Truth is counted.  Of the trainings on which the method was chosen: for every record the best
threshold, on scores as they are or levelled, is chosen on half of 400 models of random halves and
tried on the other half, both ways round.  It errs by 0.05 either way, and never overstates on
average.  Of those by which it is judged: the attack of `trust_audit.py` on 1,136 models that had no
other part.  Then 4, 16 and 64 of the models are taken.

    python benchmarks/few_valued.py FOLDER [docs/benchmarks/few_valued.md]
    python benchmarks/few_valued.py FOLDER --judges [before]

FOLDER keeps the models' scores; 30 minutes on one core without them, 5 with them.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
    make_sparse_uncorrelated,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from trust_audit import attacked, count_if_right, levelled

from leakscope import fitted
from leakscope.halves.draw import half
from leakscope.halves.estimate import answer_doubts, model_effects, tabulated
from leakscope.recipes.recipe import recipe_of

# Of the trainings on which the method was chosen, and of those by which it is judged.
MODELS, JUDGED_MODELS = 400, 1200
# Of the latter, those from this one on are counted, and so many of the first are asked.
LEARNT, ASKED = 64, (4, 16, 64)
OFF = 0.1


def labels_only(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """A function that returns labels where probabilities are asked for."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=100)).fit(X, y)
    return lambda asked: model.predict(asked).astype(float)


def settings() -> dict[str, tuple[Any, tuple[np.ndarray, np.ndarray], str]]:
    """Name, training, data, task."""
    cancer, wine = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
    digits = tuple(part[:600] for part in load_digits(return_X_y=True))
    diabetes = load_diabetes(return_X_y=True)
    made = make_classification(600, 12, n_informative=5, flip_y=0.1, random_state=0)
    scaled = StandardScaler
    classes: dict[str, tuple[Any, Any]] = {
        "5 neighbours, breast cancer": (KNeighborsClassifier(5), cancer),
        "tree, digits": (DecisionTreeClassifier(), digits),
        "tree of depth 5, breast cancer": (DecisionTreeClassifier(max_depth=5), cancer),
        "labels only, breast cancer": (labels_only, cancer),
        "10 boosted stumps, breast cancer": (
            GradientBoostingClassifier(n_estimators=10, max_depth=1),
            cancer,
        ),
        "20 boosted trees, breast cancer": (GradientBoostingClassifier(n_estimators=20), cancer),
        "5 boosted trees, made": (GradientBoostingClassifier(n_estimators=5), made),
        "forest of 100, breast cancer": (RandomForestClassifier(100), cancer),
        "forest of 10, made": (RandomForestClassifier(10), made),
        "50 extra trees, digits": (ExtraTreesClassifier(50), digits),
        "forest of 100, made": (RandomForestClassifier(100), made),
        "50 neighbours, made": (KNeighborsClassifier(50), made),
        "AdaBoost of 10, made": (AdaBoostClassifier(n_estimators=10), made),
        "20 rounds of histogram boosting, made": (
            HistGradientBoostingClassifier(max_iter=20),
            made,
        ),
        "100 boosted trees, made": (GradientBoostingClassifier(n_estimators=100), made),
        "naive Bayes, made": (GaussianNB(), made),
        "logistic, breast cancer": (make_pipeline(scaled(), LogisticRegression()), cancer),
        "logistic, made": (LogisticRegression(), made),
        "perceptron, wine": (make_pipeline(scaled(), MLPClassifier((20,), max_iter=100)), wine),
    }
    numbers: dict[str, Any] = {
        "tree with leaves of 5, diabetes": DecisionTreeRegressor(min_samples_leaf=5),
        "forest of 30, diabetes": RandomForestRegressor(30, min_samples_leaf=2),
        "5 neighbours, diabetes": KNeighborsRegressor(5),
        "ridge, diabetes": Ridge(0.1),
    }
    return {
        **{name: (*each, "classification") for name, each in classes.items()},
        **{name: (each, diabetes, "regression") for name, each in numbers.items()},
    }


def judges() -> dict[str, tuple[Any, tuple[np.ndarray, np.ndarray], str]]:
    """Trainings and data that had no part in any choice: name, training, data, task."""
    X, y = load_breast_cancer(return_X_y=True)
    wine, grower = load_wine(return_X_y=True)
    moved = np.random.default_rng(31).random(len(grower)) < 0.1
    pixels, digit = load_digits(return_X_y=True)
    alike = np.isin(digit, (4, 7, 9))
    made = make_classification(320, 12, n_informative=5, flip_y=0.1, random_state=32)
    spread = make_blobs(200, 5, centers=3, cluster_std=5.0, random_state=33)
    sums = make_sparse_uncorrelated(1000, 10, random_state=34)
    classes: dict[str, tuple[Any, Any]] = {
        "20 boosted trees, wine": (
            GradientBoostingClassifier(n_estimators=20),
            (wine, np.where(moved, (grower + 1) % 3, grower)),
        ),
        "20 AdaBoost stumps, moons 250": (
            AdaBoostClassifier(n_estimators=20),
            make_moons(250, noise=0.4, random_state=35),
        ),
        "forest of 25, digits 4, 7, 9": (
            RandomForestClassifier(25),
            (pixels[alike][:300], digit[alike][:300]),
        ),
        "30 extra trees, leaves of 2, made 320": (
            ExtraTreesClassifier(30, min_samples_leaf=2),
            made,
        ),
        "SVC, blobs 200": (SVC(C=10.0, probability=True), spread),
        "perceptron of 10, breast cancer 150": (
            make_pipeline(StandardScaler(), MLPClassifier((10,), max_iter=150)),
            (X[1::3][:150], y[1::3][:150]),
        ),
        "20 rounds of histogram boosting, sums 1000": (
            HistGradientBoostingClassifier(max_iter=20),
            (sums[0], (sums[1] > 0).astype(int)),
        ),
    }
    return {
        **{name: (*each, "classification") for name, each in classes.items()},
        "forest of 15, Friedman 3": (
            RandomForestRegressor(15, min_samples_leaf=2),
            make_friedman3(280, noise=0.3, random_state=36),
            "regression",
        ),
    }


def judges_seen() -> dict[str, tuple[Any, tuple[np.ndarray, np.ndarray], str]]:
    """Those that judged the form before the last."""
    X, y = load_breast_cancer(return_X_y=True)
    pixels, digit = load_digits(return_X_y=True)
    curved = np.isin(digit, (3, 8, 9))
    made = make_classification(800, 15, n_informative=4, flip_y=0.15, random_state=21)
    sparse = make_sparse_uncorrelated(300, 8, random_state=22)
    spread = make_blobs(180, 6, centers=4, cluster_std=6.0, random_state=23)
    linear = make_classification(240, 10, n_informative=3, flip_y=0.2, random_state=24)
    quantiles = make_gaussian_quantiles(n_samples=400, n_features=4, n_classes=3, random_state=25)
    classes: dict[str, tuple[Any, Any]] = {
        "15 boosted trees of depth 2, sums 300": (
            GradientBoostingClassifier(n_estimators=15, max_depth=2),
            (sparse[0], (sparse[1] > 0).astype(int)),
        ),
        "25 AdaBoost stumps, blobs 180": (AdaBoostClassifier(n_estimators=25), spread),
        "forest of 20, leaves of 3, quantiles 400": (
            RandomForestClassifier(20, min_samples_leaf=3),
            quantiles,
        ),
        "20 extra trees, breast cancer 190": (ExtraTreesClassifier(20), (X[::3], y[::3])),
        "SVC of degree 3, digits 3, 8, 9": (
            SVC(kernel="poly", probability=True, C=0.1),
            (pixels[curved][:210], digit[curved][:210]),
        ),
        "perceptron of 6, made 240": (
            make_pipeline(
                StandardScaler(), MLPClassifier((6,), "tanh", solver="lbfgs", max_iter=80)
            ),
            linear,
        ),
        "15 rounds of histogram boosting, made 800": (
            HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8),
            made,
        ),
    }
    return {
        **{name: (*each, "classification") for name, each in classes.items()},
        "25 boosted trees, Friedman 2": (
            GradientBoostingRegressor(n_estimators=25),
            make_friedman2(250, noise=50.0, random_state=26),
            "regression",
        ),
    }


def judges_first() -> dict[str, tuple[Any, tuple[np.ndarray, np.ndarray], str]]:
    """Those that judged the first form; tests that are learnt were chosen on them."""
    hastie = make_hastie_10_2(1000, random_state=1)
    hastie = hastie[0], (hastie[1] > 0).astype(int)
    quantiles = make_gaussian_quantiles(n_samples=500, n_features=6, n_classes=2, random_state=2)
    blobs = make_blobs(150, 4, centers=3, cluster_std=4.0, random_state=3)
    classes: dict[str, tuple[Any, Any]] = {
        "20 boosted trees, Hastie 300": (
            GradientBoostingClassifier(n_estimators=20),
            tuple(part[:300] for part in hastie),
        ),
        "30 boosted stumps, quantiles 500": (
            GradientBoostingClassifier(n_estimators=30, max_depth=1),
            quantiles,
        ),
        "forest of 30, moons 200": (
            RandomForestClassifier(30),
            make_moons(200, noise=0.35, random_state=4),
        ),
        "30 extra trees, iris": (ExtraTreesClassifier(30), load_iris(return_X_y=True)),
        "SVC, circles 250": (
            SVC(probability=True),
            make_circles(250, noise=0.2, factor=0.6, random_state=5),
        ),
        "perceptron of 8, blobs 150": (
            make_pipeline(StandardScaler(), MLPClassifier((8,), solver="lbfgs", max_iter=60)),
            blobs,
        ),
        "tree of depth 4, Hastie 1000": (DecisionTreeClassifier(max_depth=4), hastie),
        "10 neighbours, moons 300": (
            KNeighborsClassifier(10),
            make_moons(300, noise=0.3, random_state=6),
        ),
    }
    friedman = make_friedman1(300, noise=1.0, random_state=7)
    return {
        **{name: (*each, "classification") for name, each in classes.items()},
        "forest of 20, Friedman 300": (RandomForestRegressor(20), friedman, "regression"),
    }


def judges_before() -> dict[str, tuple[Any, tuple[np.ndarray, np.ndarray], str]]:
    """All that judged once."""
    return judges_seen() | judges_first()


def trained(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Scores and who was trained on whom, models x records."""
    file = folder / f"{name.replace(' ', '_')}.npz"
    judged = judges() | judges_before()
    subject, (X, y), task = judged[name] if name in judged else settings()[name]
    labels = y if task == "classification" else None
    models = JUDGED_MODELS if name in judged else MODELS
    inside = np.stack([half(labels, len(y), number, 11) for number in range(models)])
    if not file.exists():
        recipe = recipe_of(subject, X, y, task)  # type: ignore[arg-type]
        found = Parallel(n_jobs=-1)(
            delayed(recipe.scores)(own, seed + 7) for seed, own in enumerate(inside)
        )
        np.savez(file, scores=np.stack(found))
    with np.load(file) as held:
        return held["scores"], inside


def counted(scores: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(records,) the advantage of a threshold chosen on one half of the models, on the other."""
    forms = (scores, model_effects(scores).level(scores))
    first = np.arange(len(scores)) % 4 < 2

    def tried(form: np.ndarray, own: np.ndarray, fit: np.ndarray) -> tuple[float, float]:
        values = np.unique(form[fit])
        between = np.concatenate([[-np.inf], 0.5 * (values[1:] + values[:-1])])

        def gain(models: np.ndarray, at: np.ndarray) -> np.ndarray:
            with_it, without = np.sort(form[models & own]), np.sort(form[models & ~own])
            below = np.searchsorted(without, at, "right") / len(without)
            return below - np.searchsorted(with_it, at, "right") / len(with_it)

        found = gain(fit, between)
        best = int(np.argmax(np.abs(found)))
        there = float(gain(~fit, between[best : best + 1])[0])
        return float(abs(found[best])), float(np.sign(found[best])) * there

    return np.array([
        np.mean([
            max(tried(form[:, row], inside[:, row], fit) for form in forms)[1]
            for fit in (first, ~first)
        ])
        for row in range(scores.shape[1])
    ])  # fmt: skip


def said(scores: np.ndarray, inside: np.ndarray, y: np.ndarray, task: str) -> fitted.FewModels:
    """What some models say of every record, as an audit asks them."""
    sign = np.where(scores.mean(axis=0) > 0.0, -1.0, 1.0) if task == "regression" else 1.0
    doubt = answer_doubts(scores + (y if task == "regression" else 0.0), inside)
    return fitted.few_models(sign * scores, inside, random_state=0, doubt=doubt)


def judged(name: str, folder: Path) -> str:
    """One row of the table of those that had no part in any choice."""
    scores, inside = trained(name, folder)
    _, (_, y), task = (judges() | judges_before())[name]
    both = np.stack([scores, levelled(scores)], axis=2)[LEARNT:]
    truth, error, _, _ = np.array([
        attacked(both[inside[LEARNT:, row], row], both[~inside[LEARNT:, row], row])
        for row in range(len(y))
    ]).T  # fmt: skip
    most = np.argsort(-truth)[:30]
    # Halves that have nothing to do with the models: whatever is claimed of them is wrong.  (Those
    # of another record do: it may be a neighbour.)
    labels = y if task == "classification" else None
    other = np.stack([half(labels, len(y), number, 12) for number in range(max(ASKED))])
    cells = [name, f"{truth.mean():.3f}"]
    for models in ASKED:
        few = said(scores[:models], inside[:models], y, task)
        low, high = few.advantage.low - 2.0 * error, few.advantage.high + 2.0 * error
        covered = (low <= truth) & (truth <= high)
        off = np.abs(truth - few.advantage.value) - 3.0 * error > OFF
        cells.append(f"{few.advantage.value.mean():.3f}")
        cells.append(f"{covered.mean():.0%}, {covered[most].mean():.0%}")
        cells.append(f"{int(np.sum(few.trusted & off))} of {int(few.trusted.sum())}")
        null = said(scores[:models], other[:models], y, task)
        cells.append(f"{int(null.exposed.sum())}")
    # What is said by the last, the most models.
    cells.append(f"{count_if_right(few.advantage.value, inside[LEARNT:]):.3f}")
    return f"| {' | '.join(cells)} |"


def line(name: str, folder: Path) -> str:
    """One row of the table."""
    scores, inside = trained(name, folder)
    _, (_, y), task = settings()[name]
    truth = counted(scores, inside)
    cells = [name, f"{truth.mean():.2f}"]
    for models in (4, 16, 64):
        few = said(scores[:models], inside[:models], y, task)
        trusted = few.trusted
        low, high = few.advantage.low, few.advantage.high
        outside = (truth < low - OFF) | (truth > high + OFF)
        among = f"{outside[trusted].mean():.0%}" if trusted.mean() > 0.02 else "–"
        cells.append(f"{few.advantage.value.mean():.2f}")
        cells.append(f"{trusted.mean():.0%}")
        cells.append(f"{outside.mean():.0%} → {among}")
        if models == 4:
            draws = few.draws.pairs(np.arange(len(truth)))
            shift = draws.member.mean - draws.nonmember.mean  # type: ignore[attr-defined]
            drawn = tabulated(shift, draws.nonmember.sigma, draws.member.sigma)  # type: ignore[attr-defined]
            above = [few.advantage.value >= 0.1, drawn >= 0.1, truth >= 0.1]
            exposed = " / ".join(f"{each.mean():.0%}" for each in above)
    return f"| {' | '.join([*cells, exposed])} |"


def main() -> None:
    """All rows, to the screen and to a page."""
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    if "--judges" in sys.argv:
        heading = ["training", "counted"]
        for models in ASKED:
            heading += [f"said by {models}", "covered: all, top 30", "trusted, off", "null"]
        heading.append("count if that is right")
        print(f"| {' | '.join(heading)} |\n|---{'|--:' * (len(heading) - 1)}|")
        for name in judges_before() if "before" in sys.argv else judges():
            print(judged(name, folder), flush=True)
        return
    heading = ["training", "counted"]
    for models in (4, 16, 64):
        heading += [f"said by {models}", "trusted", "outside"]
    heading.append("0.1 or more: means / expected / counted")
    rows = [f"| {' | '.join(heading)} |", "|---" + "|--:" * (len(heading) - 1) + "|"]
    for name in settings():
        rows.append(line(name, folder))
        print(rows[-1], flush=True)
    if len(sys.argv) > 2:
        page = Path(sys.argv[2])
        text = page.read_text(encoding="utf-8")
        before, after = text.split("<!-- begin -->")[0], text.split("<!-- end -->")[1]
        table = "\n".join(rows)
        page.write_text(f"{before}<!-- begin -->\n\n{table}\n\n<!-- end -->{after}", "utf-8")


if __name__ == "__main__":
    main()
