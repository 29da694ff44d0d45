"""``leakscope.audit(X, y, train=...)``: a few models of the user's own training."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakscope
from leakscope import InputError, auditing, measures, measuring, results
from leakscope.auditing.half_models import half
from leakscope.auditing.own_training import own_label_log_odds, require_own_rows, training_of
from leakscope.running import TimeLimitError, read_cells, staying

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] + RNG.normal(size=120) > 0.0).astype(int)
Q = X[:, 0] + 0.5 * RNG.normal(size=120)


class Linear:
    """A small model with noise of its own, quick enough to be trained often."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        chance = 1.0 / (1.0 + np.exp(-(features @ self.weights)))
        return np.stack([1.0 - chance, chance], axis=1)


def train(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
    rng = np.random.default_rng(seed)
    gram = features.T @ features + np.eye(features.shape[1])
    weights = np.linalg.solve(gram, features.T @ (2.0 * targets - 1.0))
    return Linear(3.0 * weights + 0.1 * rng.normal(size=features.shape[1]))


@pytest.mark.parametrize("labels", [None, Y, RNG.integers(0, 7, 120)])
def test_each_record_is_in_exactly_half_of_the_models(labels: np.ndarray | None) -> None:
    inside = np.stack([half(labels, 120, number, seed=5) for number in range(8)])
    assert (inside.sum(axis=0) == 4).all()
    assert not (inside[0::2] & inside[1::2]).any()
    assert len({row.tobytes() for row in inside}) == 8
    if labels is not None:
        for value in np.unique(labels):
            counts = inside[:, labels == value].sum(axis=1)
            assert np.ptp(counts) <= 1


def test_an_odd_number_of_records_is_halved_by_chance() -> None:
    sizes = {int(half(None, 21, 0, seed=seed).sum()) for seed in range(20)}
    assert sizes == {10, 11}


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (RandomForestClassifier(10), Y),
        (HistGradientBoostingClassifier(max_iter=5), Y),
        (GradientBoostingClassifier(n_estimators=5), Y),
        (make_pipeline(StandardScaler(), LogisticRegression()), Y),
        (GaussianNB(), np.where(Y == 1, "yes", "no")),
        (DecisionTreeClassifier(), RNG.integers(0, 3, 120)),
        (RandomForestRegressor(10), Q),
        (DecisionTreeRegressor(min_samples_leaf=5), Q),
    ],
)
def test_any_estimator(estimator: Any, target: np.ndarray) -> None:
    result = leakscope.audit(X, target, train=estimator, models=4)
    frame = result.to_frame()
    assert len(frame) == 120
    assert frame["advantage"].between(0.0, 1.0).all()
    assert (frame["advantage_low"] <= frame["advantage_high"]).all()
    assert (frame["tpr_at_fpr_0_001"] <= frame["tpr_at_fpr_0_01"] + 1e-12).all()
    provenance = result.law_pair().provenance
    assert provenance.question == "pool"
    assert provenance.method == "empirical"
    assert result.model.name.split("(")[0] == type(estimator).__name__
    assert result.to_document().models == 4


def test_the_same_seed_gives_the_same_numbers_and_another_does_not() -> None:
    forest = RandomForestClassifier(5)
    one, two = (auditing.audit_trained(X, Y, forest, seed=1) for _ in range(2))
    assert np.array_equal(one.advantage, two.advantage)
    assert not np.array_equal(one.advantage, auditing.audit_trained(X, Y, forest, seed=2).advantage)


def test_functions_frames_and_forms_of_answers_agree() -> None:
    """Probabilities, their second column, scores before the softmax: the same log-odds."""
    import pandas as pd

    def column(features: Any, targets: Any, seed: int) -> Any:
        model = train(np.asarray(features), targets, seed)
        return lambda asked: model.predict_proba(np.asarray(asked))[:, 1]

    def scores(features: Any, targets: Any, seed: int) -> Any:
        model = train(np.asarray(features), targets, seed)
        return lambda asked: np.stack(
            [np.full(len(asked), 0.7), 0.7 + np.asarray(asked) @ model.weights], axis=1
        )

    first = leakscope.audit(X, Y, train=train)
    for other in (column, scores):
        assert np.allclose(leakscope.audit(X, Y, train=other).advantage, first.advantage)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert np.allclose(leakscope.audit(frame, Y, train=column).advantage, first.advantage)


def test_log_odds_of_certain_votes_stay_finite_and_in_order() -> None:
    table = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    found = own_label_log_odds(table, np.array([0, 0, 0]))
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]
    tiny = 1e-30
    assert own_label_log_odds(np.array([[1.0, tiny]]), np.array([0]))[0] == pytest.approx(
        -np.log(tiny)
    )


def test_a_forest_against_many_models() -> None:
    """Ranks and mean advantage of eight models against 200 models of the same kind."""
    forest = RandomForestRegressor(15, min_samples_leaf=2)
    few = auditing.audit_trained(X, Q, forest, models=8)
    many = auditing.audit_trained(X, Q, forest, models=200, seed=9)
    assert spearmanr(few.advantage, many.advantage).statistic > 0.7
    assert few.advantage.mean() == pytest.approx(many.advantage.mean(), rel=0.2)
    # The laws are about the residual as it is, and training on a record draws it to zero.
    laws = many.laws
    towards = np.sign(-laws.nonmember_mean) * laws.shift
    far = np.abs(laws.nonmember_mean) > 2.0 * laws.nonmember_sd
    assert (towards[far] > 0.0).all()
    assert measures.advantage(many.law_pair()).mean() == pytest.approx(
        many.advantage.mean(), rel=0.1
    )


def test_four_models_then_eight_trains_four(tmp_path: Path) -> None:
    trained: list[int] = []

    def counted(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        if len(targets) == 60:
            trained.append(seed)
        return train(features, targets, seed)

    four = leakscope.audit(X, Y, train=counted, models=4, keep=tmp_path / "kept")
    # The function is tried on few records first, which here are halves too.
    first = len(trained)
    again = leakscope.audit(X, Y, train=counted, models=4, keep=tmp_path / "kept")
    tries = len(trained) - first
    assert first - tries == 4
    assert np.array_equal(four.advantage, again.advantage)
    before = len(trained)
    eight = leakscope.audit(X, Y, train=counted, models=8, keep=tmp_path / "kept")
    assert len(trained) - before - tries == 4
    assert eight.models == 8
    whole = leakscope.audit(X, Y, train=counted, models=8)
    assert np.array_equal(eight.advantage, whole.advantage)


DRIVER = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from leakscope.auditing.half_models import train_halves
from leakscope.auditing.own_training import training_of
from leakscope.running import open_cells, read_cells

folder = Path(sys.argv[1])
log = folder / "log"
X = np.arange(40.0)[:, None]

def train(X, y, seed):
    with log.open("a") as stream:
        stream.write("begun\\n")
    time.sleep(0.2)
    return lambda asked: asked[:, 0] + seed / 2**31

def begun():
    return len(log.read_text().splitlines()) if log.exists() else 0

def life():
    with open_cells(folder / "cells", settings={}, seed=0) as store:
        train_halves(X, X[:, 0], training_of(train, "regression", None), 16, store, seed=0)

there = {}
for kill in range(10):
    before = begun()
    child = os.fork()
    if child == 0:
        life()
        os._exit(0)
    # In the middle of the second model of this life, so that each life finishes one.
    while begun() < before + 2:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with read_cells(folder / "cells") as store:
        now = {cell.name: cell.arrays["scores"].tobytes() for cell in store.cells()}
    assert there.items() <= now.items()
    assert len(now) > len(there)
    there = now
life()
with read_cells(folder / "cells") as store:
    done = {cell.name: cell.arrays["scores"].tobytes() for cell in store.cells()}
assert there.items() <= done.items()
assert len(done) == 16
# Ten models were begun and killed; nothing that was finished was begun again.
assert begun() == 16 + 10, begun()
"""


def test_ten_kills_lose_no_trained_model(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path)]
    done = subprocess.run(command, check=False, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_third_model_that_fails_keeps_the_first_two(tmp_path: Path) -> None:
    calls: list[int] = []
    broken = True

    def fragile(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        calls.append(seed)
        # The first three calls try the function on few records.
        if broken and len(calls) == 6:
            raise FloatingPointError("loss is nan")
        return train(features, targets, seed)

    keep = tmp_path / "kept"
    with pytest.raises(InputError, match=r"Model 3: .*FloatingPointError: loss is nan") as told:
        leakscope.audit(X, Y, train=fragile, models=4, keep=keep)
    assert "2 of 4 models are kept" in str(told.value)
    with read_cells(keep) as store:
        assert store.finished() == {"model=0", "model=1"}
    broken = False
    before = len(calls)
    result = leakscope.audit(X, Y, train=fragile, models=4, keep=keep)
    assert len(calls) - before == 3 + 2
    assert np.array_equal(result.advantage, leakscope.audit(X, Y, train=fragile).advantage)


def test_a_changed_training_is_not_taken_for_the_same(tmp_path: Path) -> None:
    leakscope.audit(X, Y, train=RandomForestClassifier(5), models=2, keep=tmp_path / "kept")
    with pytest.raises(InputError, match="was begun with training"):
        leakscope.audit(X, Y, train=RandomForestClassifier(6), models=2, keep=tmp_path / "kept")
    with pytest.raises(InputError, match="was begun with data"):
        leakscope.audit(X + 1, Y, train=RandomForestClassifier(5), models=2, keep=tmp_path / "kept")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda asked: np.zeros(len(asked) - 1), "answered 120 records with an array of shape"),
        (lambda asked: np.full((len(asked), 3), 1 / 3), "3 scores per record, and there are 2"),
        (lambda asked: np.full(len(asked), np.nan), "not finite, for record 0"),
        (lambda asked: np.full(len(asked), 2.0), "must be the probability of the class 1"),
        (lambda asked: np.full((len(asked), 2), 0.9), "do not sum to 1"),
        (lambda asked: np.array(["a"] * len(asked)), "not with numbers"),
        (3, "returned int, which is no function"),
    ],
)
def test_wrong_scores_are_refused(answer: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        leakscope.audit(X, Y, train=lambda features, targets, seed: answer)


def test_a_function_that_ignores_its_rows_is_refused() -> None:
    def ignores(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        return train(X, Y, seed)

    with pytest.raises(InputError, match="ignores the rows it is given"):
        leakscope.audit(X, Y, train=ignores)


def test_a_function_that_ignores_its_seed_is_told() -> None:
    def constant(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        return train(features, targets, 0)

    with pytest.warns(UserWarning, match="gives the same model for every seed"):
        leakscope.audit(X, Y, train=constant)


def test_a_function_that_draws_from_the_global_generator_is_seeded() -> None:
    def careless(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        return train(features, targets, int(np.random.randint(2**31)))  # noqa: NPY002

    state = np.random.get_state()[1].copy()  # type: ignore[union-attr] # noqa: NPY002
    one, two = (leakscope.audit(X, Y, train=careless) for _ in range(2))
    assert np.array_equal(one.advantage, two.advantage)
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index] # noqa: NPY002
    assert not one.warnings


def test_a_function_that_never_ends_is_ended() -> None:
    def endless(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        while True:
            # What it swallows does not keep it alive.
            with contextlib.suppress(Exception):
                time.sleep(60.0)

    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"endless did not end within its time limit, 0\.2 s"):
        auditing.audit_trained(X, Y, endless, time_limit=0.2)
    assert time.monotonic() - start < 10.0


def test_the_time_limit_holds_in_a_workers_thread_too() -> None:
    seen: list[BaseException] = []

    def work() -> None:
        try:
            with staying("train", seconds=0.2):
                while True:
                    pass
        except InputError as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=20.0)
    assert [type(error) for error in seen] == [TimeLimitError]


def test_what_a_function_prints_stays_out_of_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        print("epoch 1")
        return train(features, targets, seed)

    leakscope.audit(X, Y, train=loud, models=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 1" in captured.err


def test_a_function_that_ends_the_program() -> None:
    with pytest.raises(InputError, match="ended the program"):
        leakscope.audit(X, Y, train=lambda features, targets, seed: sys.exit())


def test_a_function_is_tried_on_few_records() -> None:
    sizes: list[int] = []

    def sized(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        sizes.append(len(targets))
        return train(features, targets, seed)

    many = np.tile(X, (10, 1))
    training = training_of(sized, "classification", None)
    assert require_own_rows(training, many, np.tile(Y, 10), 0) == []
    assert sizes == [200, 200, 200]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"models": 3}, "multiple of 2"),
        ({"models": 0}, "greater than or equal to 2"),
        ({"train": 3}, "train must be a function"),
        ({"train": LinearSVC()}, "gives no probabilities"),
        ({"y": np.zeros(120, int)}, "the same for every record"),
        ({"y": np.arange(120) == 3}, "has one record only"),
        ({"y": Y[:-1]}, "X has 120 records and y has 119"),
        ({"X": X[:10], "y": Y[:10]}, "At least 20 records"),
        ({"model": LogisticRegression()}, "not both"),
        ({"kernel": "rbf"}, "kernel belongs to"),
    ],
)
def test_bad_input(given: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"X": X, "y": Y, "train": RandomForestClassifier(3), **given}
    with pytest.raises(InputError, match=sentence):
        leakscope.audit(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_workers_give_the_same_numbers(tmp_path: Path) -> None:
    forest = RandomForestClassifier(5)
    here = auditing.audit_trained(X, Y, forest, models=2)
    there = auditing.audit_trained(X, Y, forest, models=2, workers=1)
    assert np.array_equal(here.advantage, there.advantage)


def test_the_run_is_written_and_read_again(tmp_path: Path) -> None:
    result = leakscope.audit(X, Y, train=RandomForestClassifier(5))
    place = result.write(tmp_path / "run")
    document = results.result_of(place)
    assert document.kind == "audit_model"
    assert document.models == 4
    assert document.records[0].advantage_low is not None
    heading = (place / "records.csv").read_text().splitlines()[0]
    assert "tpr_at_fpr_0_001_high" in heading
    with np.load(place / "arrays.npz") as arrays:
        given = tmp_path / "models.npz"
        np.savez(given, log_odds=arrays["log_odds"], trained_on=arrays["trained_on"])
    again = measuring.measure_logits(given)
    assert [r.advantage for r in again.records] == pytest.approx(result.advantage.tolist())


def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def network(features: np.ndarray, targets: np.ndarray, seed: int) -> Any:
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        step = torch.optim.Adam(net.parameters(), lr=0.05)
        rows = torch.tensor(features, dtype=torch.float32)
        labels = torch.tensor(targets)
        for _ in range(30):
            step.zero_grad()
            torch.nn.functional.cross_entropy(net(rows), labels).backward()
            step.step()
        return lambda asked: net(torch.tensor(asked, dtype=torch.float32))

    one, two = (leakscope.audit(X, Y, train=network, models=2) for _ in range(2))
    assert np.array_equal(one.advantage, two.advantage)
