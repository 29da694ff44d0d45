"""Advice on a training: each setting that is named, trained and audited like the audit's own."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import leakscope
from leakscope import advising
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.subjects.laws import MEASURES

RNG = np.random.default_rng(5)
X = RNG.normal(size=(160, 12))
Y = (X[:, 0] + RNG.normal(size=160) > 0.0).astype(int)
TARGET = advising.AuditTarget("advantage", 0.25)

MODULE = """
import numpy as np
from pathlib import Path

def train(X, y, seed, shrink=0.01, *, jitter=0.05):
    with open(Path(__file__).with_name("trained.txt"), "a") as log:
        log.write(f"{len(y)} {seed} {shrink}\\n")
    rng = np.random.default_rng(seed)
    gram = X.T @ X + shrink * len(y) * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, X.T @ (2.0 * y - 1.0))
    weights = 4.0 * weights + jitter * rng.normal(size=X.shape[1])
    return lambda features: 1.0 / (1.0 + np.exp(-(features @ weights)))
"""


def trained_audit(features: Any, labels: Any, training: Any, **how: Any) -> leakscope.Audit:
    return leakscope.audit(features, labels, train=training, **how)


def train(
    features: np.ndarray, targets: np.ndarray, seed: int, shrink: float = 0.01, *, jitter=0.05
) -> Any:
    rng = np.random.default_rng(seed)
    gram = features.T @ features + shrink * len(targets) * np.eye(features.shape[1])
    weights = np.linalg.solve(gram, features.T @ (2.0 * targets - 1.0))
    weights = 4.0 * weights + jitter * rng.normal(size=features.shape[1])
    return lambda asked: 1.0 / (1.0 + np.exp(-(asked @ weights)))


@pytest.fixture(scope="module")
def own() -> leakscope.Audit:
    return trained_audit(X, Y, train, models=16, seed=2)


@pytest.fixture(scope="module")
def advice(own: leakscope.Audit) -> Any:
    return leakscope.advise(own, TARGET, tries={"shrink": [0.01, 1.0, 30.0], "jitter": [1.0]})


def log_loss_of_others(result: leakscope.Audit) -> tuple[float, float]:
    """Mean log loss, and share of right answers, over every record and model without it."""
    models = result.examined.half_models
    assert models is not None
    scores = models.scores[~models.trained_on]
    return float(np.log1p(np.exp(-scores)).mean()), float((scores > 0.0).mean())


@pytest.mark.parametrize("shrink", [1.0, 30.0])
def test_a_setting_has_the_numbers_of_its_own_audit(own, advice, shrink) -> None:
    changed = trained_audit(X, Y, partial(train, shrink=shrink), models=16, seed=2)
    option = next(option for option in advice.options if option.name == "shrink")
    point = next(point for point in option.curve if point.setting == {"shrink": shrink})
    error, _ = log_loss_of_others(changed)
    assert point.worst == pytest.approx(changed.advantage.max(), rel=1e-12)
    assert point.median == pytest.approx(np.median(changed.advantage), rel=1e-12)
    assert point.error == pytest.approx(error, rel=1e-12)
    assert (changed.examined.half_models.trained_on == own.examined.half_models.trained_on).all()


def test_the_options_are_ranked_and_told(own, advice) -> None:
    error, right = log_loss_of_others(own)
    assert advice.own.error == pytest.approx(error, rel=1e-12)
    assert advice.own.accuracy == pytest.approx(right, rel=1e-12)
    assert advice.own.worst == pytest.approx(own.advantage.max(), rel=1e-12)
    assert advice.own.worst_low < advice.own.worst < advice.own.worst_high
    best = advice.best
    assert best is not None
    assert best.meets
    assert best.worst <= TARGET.value < advice.own.worst
    met = [option.cost for option in advice.options if option.meets]
    assert met == sorted(met)
    assert advice.loss == "log loss"
    assert advice.model is not None
    # Some intervals reach above the target and none begins there; the best option's all end below.
    assert advice.sentence.startswith("Cannot tell whether advantage <= 0.25 is met")
    assert best.sentence in advice.sentence
    shrink = next(option for option in advice.options if option.name == "shrink")
    assert "Train with shrink=" in shrink.sentence or not shrink.meets
    # The audit's own value is not trained again, and is the audit.
    assert shrink.curve[0].worst == advice.own.worst


def test_noise_on_the_answers_meets_the_target_by_the_laws(own, advice) -> None:
    option = next(option for option in advice.options if option.name == "output noise")
    noise = option.setting["output_sd"]
    advantage = MEASURES["advantage"]
    worst = float(own.laws.noised(noise).measured(advantage).max())
    assert option.worst == pytest.approx(worst)
    assert option.meets
    assert float(own.laws.noised(noise).highest(advantage).max()) <= TARGET.value
    assert float(own.laws.noised(0.9 * noise).highest(advantage).max()) > TARGET.value


def test_an_estimator_is_changed_by_its_parameters() -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    features, labels = features[:200], labels[:200]
    forest = RandomForestClassifier(10, random_state=0)
    result = trained_audit(features, labels, forest, models=16)
    found = leakscope.advise(result, TARGET, tries={"min_samples_leaf": [5, 12, 90]})
    option = next(option for option in found.options if option.name == "min_samples_leaf")
    assert [point.setting for point in option.curve] == [
        {"min_samples_leaf": 5.0},
        {"min_samples_leaf": 12.0},
    ]
    # Leaves of 90 of 100 records: no tree has a split, and nothing varies.
    assert any(note.startswith("min_samples_leaf=90 is left out: ") for note in found.notes)
    assert option.worst < found.own.worst
    with pytest.raises(InputError, match="has no option 'leaves'"):
        leakscope.advise(result, TARGET, tries={"leaves": [3]})


def test_a_quantity_is_priced_by_its_squared_error() -> None:
    quantity = X[:, 0] + 0.3 * RNG.normal(size=160)
    result = trained_audit(X, quantity, RandomForestRegressor(8, random_state=0), models=4)
    found = leakscope.advise(result, TARGET, tries={"min_samples_leaf": [20]})
    models = result.examined.half_models
    assert found.own.error == pytest.approx(np.mean(models.scores[~models.trained_on] ** 2))
    assert found.own.r_squared == pytest.approx(1.0 - found.own.error / np.var(quantity))
    assert found.own.accuracy is None
    assert found.loss == "squared error"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (advising.AuditTarget("epsilon", 1.0), "no epsilon"),
        (advising.AuditTarget("tpr", 0.2, fpr=0.05), "0.01 and 0.001"),
    ],
)
def test_what_few_models_do_not_show_is_refused(own, target, words) -> None:
    with pytest.raises(InputError, match=words):
        leakscope.advise(own, target, tries={"shrink": [1.0]})


def test_an_audit_of_a_fitted_model_has_nothing_to_try() -> None:
    from sklearn.linear_model import LogisticRegression

    result = leakscope.audit(X, Y, model=LogisticRegression().fit(X, Y))
    with pytest.raises(InputError, match="not one of a training"):
        leakscope.advise(result, TARGET, tries={"C": [0.1]})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tried_training.py").write_text(MODULE)
    names = [f"x{column}" for column in range(X.shape[1])]
    rows = [",".join([*names, "ill"])]
    rows += [
        ",".join([*(f"{v:.6f}" for v in x), "yes" if y else "no"])
        for x, y in zip(X, Y, strict=True)
    ]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    arguments = [
        "audit",
        "people.csv",
        "--target",
        "ill",
        "--task",
        "classification",
        "--model",
        "tried_training:train",
    ]
    assert main([*arguments, "--models", "4", "--run-dir", "own"]) == 0
    return tmp_path


def trained(folder: Path) -> list[str]:
    """The settings of the models of halves, without the check before them, whose seeds are 1, 2."""
    lines = [line.split() for line in (folder / "trained.txt").read_text().splitlines()]
    return [shrink for _, seed, shrink in lines if seed not in ("1", "2")]


def test_a_run_is_advised_and_nothing_is_trained_twice(run: Path, capsys) -> None:
    assert trained(run) == ["0.01"] * 4
    arguments = ["advise", "own", "--target-advantage", "0.25", "--try", "shrink=1,30"]
    assert main([*arguments, "--json", "advice.json", "--html", "advice.html"]) == 0
    screen = capsys.readouterr().out
    assert trained(run) == ["0.01"] * 4 + ["1"] * 4 + ["30"] * 4
    assert "interval" in screen
    assert "shrink" in screen
    assert len(screen.splitlines()) <= 24
    stored = json.loads((run / "advice.json").read_text())
    assert stored["settings"]["tries"] == {"shrink": [1, 30]}
    assert main([*arguments[:-1], "shrink=1,30,100"]) == 0
    assert trained(run)[12:] == ["100"] * 4
    page = (run / "advice.html").read_text()
    assert "shrink" in page


@pytest.mark.parametrize(
    ("tries", "words"),
    [
        ("shrink", "NAME=VALUES"),
        ("shrink=much", "list of numbers"),
        ("shrink=nan", "list of numbers"),
        ("epochs=3", "has no option 'epochs'"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(run: Path, capsys, tries: str, words: str) -> None:
    before = sorted(path.name for path in run.iterdir())
    assert main(["advise", "own", "--target-advantage", "0.25", "--try", tries]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") <= 4
    assert sorted(path.name for path in run.iterdir()) == before
