"""A user's own training function: which answers agree, which are refused, and how it is held."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Any

import numpy as np
import pytest
from small_training import Linear, X, Y, train

import leakscope
from leakscope import InputError
from leakscope.recipes.answers import own_label_log_odds
from leakscope.recipes.code import TimeLimitError, within
from leakscope.recipes.recipe import recipe_of
from leakscope.subjects.handed import Handed, first_taken
from tests.audits import trained_audit


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
    odds = own_label_log_odds(table, np.array([0, 0, 0]))
    assert np.isfinite(odds).all()
    assert odds[0] > odds[1] > odds[2]
    tiny = own_label_log_odds(np.array([[1.0, 1e-30]]), np.array([0]))[0]
    assert tiny == pytest.approx(-np.log(1e-30))


@pytest.mark.parametrize(
    ("answer", "token"),
    [
        (lambda asked: np.zeros(len(asked) - 1), "shape"),
        (lambda asked: np.full((len(asked), 3), 1 / 3), "classes"),
        (lambda asked: np.full(len(asked), np.nan), "finite"),
        (lambda asked: np.full(len(asked), 2.0), "probability"),
        (lambda asked: np.full((len(asked), 2), 0.9), "sum to 1"),
        (lambda asked: np.array(["a"] * len(asked)), "numbers"),
        (3, "predict"),
    ],
)
def test_wrong_scores_are_refused(answer: Any, token: str) -> None:
    with pytest.raises(InputError, match=token):
        leakscope.audit(X, Y, train=lambda features, targets, seed: answer)


def test_functions_that_ignore_their_rows_or_seed() -> None:
    with pytest.raises(InputError, match="ignores the rows"):
        leakscope.audit(X, Y, train=lambda features, targets, seed: train(X, Y, seed))
    with pytest.warns(UserWarning, match="every seed"):
        leakscope.audit(X, Y, train=lambda features, targets, seed: train(features, targets, 0))


def test_a_function_that_draws_from_the_global_generator_is_seeded() -> None:
    def careless(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        return train(features, targets, int(np.random.randint(2**31)))  # noqa: NPY002

    state = np.random.get_state()[1].copy()  # type: ignore[union-attr] # noqa: NPY002
    first, second = (leakscope.audit(X, Y, train=careless) for _ in range(2))
    assert np.array_equal(first.advantage, second.advantage)
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index] # noqa: NPY002


def endless() -> None:
    sleep = ctypes.CDLL(None).sleep
    while True:
        # What it swallows does not keep it alive, nor does a call of C.
        with contextlib.suppress(BaseException):
            sleep(900)


def test_a_time_limit_ends_loops_and_changes_no_numbers() -> None:
    start = time.monotonic()
    with pytest.raises(TimeLimitError, match="train"):
        within("train", 0.2, endless)
    assert time.monotonic() - start < 60.0
    first = leakscope.audit(X, Y, train=train, models=2)
    limited = trained_audit(X, Y, train, models=2, time_limit=300.0)
    assert np.array_equal(limited.advantage, first.advantage)
    with pytest.raises(InputError, match="ended the process"):
        within("train", 60.0, lambda: os.kill(os.getpid(), signal.SIGKILL))


def fails(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
    raise FloatingPointError("loss is nan")


def cancelled(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "token"),
    [
        (fails, "Model 1: .*FloatingPointError"),
        (cancelled, "CancelledError"),
        (lambda features, targets, seed: sys.exit(), "ended the program"),
    ],
)
@pytest.mark.parametrize("limit", [None, 60.0])
def test_a_failure_is_one_sentence(function: Any, token: str, limit: float | None) -> None:
    with pytest.raises(InputError, match=token):
        trained_audit(X, Y, function, time_limit=limit)


def test_what_a_function_prints_stays_out_of_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        print("epoch 1")
        return train(features, targets, seed)

    leakscope.audit(X, Y, train=loud, models=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 1" in captured.err


def test_a_function_is_tried_on_few_records() -> None:
    sizes: list[int] = []

    def sized(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        sizes.append(len(targets))
        return train(features, targets, seed)

    many, labels = np.tile(X, (10, 1)), np.tile(Y, 10)
    recipe = recipe_of(sized, many, labels, "classification")
    assert first_taken(lambda _: recipe, [Handed("arrays", many, labels)], 0)[1] == ()
    assert sizes == [200, 200, 200]


def test_torch() -> None:
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

    first, second = (leakscope.audit(X, Y, train=network, models=2) for _ in range(2))
    assert np.array_equal(first.advantage, second.advantage)
