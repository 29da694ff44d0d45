"""A user's own training function: which answers agree, which are refused, and how it is held."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_training import Linear, X, Y, train

import leakscope
from leakscope import InputError
from leakscope.running.own_code import TimeLimitError, within
from leakscope.subjects.training.own_training import (
    Handed,
    own_label_log_odds,
    training_of,
    tried,
)
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
    found = own_label_log_odds(table, np.array([0, 0, 0]))
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]
    tiny = 1e-30
    assert own_label_log_odds(np.array([[1.0, tiny]]), np.array([0]))[0] == pytest.approx(
        -np.log(tiny)
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda asked: np.zeros(len(asked) - 1), "answered 120 records with an array of shape"),
        (lambda asked: np.full((len(asked), 3), 1 / 3), "3 scores per record, and there are 2"),
        (lambda asked: np.full(len(asked), np.nan), "not finite, for record 0"),
        (lambda asked: np.full(len(asked), 2.0), "must be the probability of the class 1"),
        (lambda asked: np.full((len(asked), 2), 0.9), "do not sum to 1"),
        (lambda asked: np.array(["a"] * len(asked)), "not with numbers"),
        (3, "returned int, which does not predict"),
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
            with contextlib.suppress(BaseException):
                time.sleep(900.0)

    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"endless did not end within its time limit, 0\.2 s"):
        trained_audit(X, Y, endless, time_limit=0.2)
    assert time.monotonic() - start < 600.0


def test_the_time_limit_holds_in_a_workers_thread_too() -> None:
    seen: list[BaseException] = []

    def endless() -> None:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(900.0)

    def work() -> None:
        try:
            within("train", 0.2, endless)
        except InputError as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=300.0)
    assert [type(error) for error in seen] == [TimeLimitError]


def test_a_loop_in_c_is_ended_too() -> None:
    """No signal handler of Python's runs before such a call returns."""
    sleep = ctypes.CDLL(None).sleep

    def endless() -> None:
        while True:
            sleep(900)

    start = time.monotonic()
    with pytest.raises(TimeLimitError, match="train did not end"):
        within("train", 0.2, endless)
    assert time.monotonic() - start < 60.0


def test_with_a_time_limit_the_numbers_are_the_same() -> None:
    """In an interpreter of its own (a function of a module), and in a copy (one of a test)."""

    def local(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        return train(features, targets, seed)

    first = leakscope.audit(X, Y, train=train, models=2)
    for function in (train, local):
        limited = trained_audit(X, Y, function, models=2, time_limit=300.0)
        assert np.array_equal(limited.advantage, first.advantage)


def test_a_failure_within_a_time_limit_is_told() -> None:
    def fails(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        raise FloatingPointError("loss is nan")

    with pytest.raises(InputError, match=r"Model 1: .*FloatingPointError: loss is nan"):
        trained_audit(X, Y, fails, time_limit=60.0)
    with pytest.raises(InputError, match="ended the process that it ran in"):
        trained_audit(X, Y, lambda *_: os.kill(os.getpid(), signal.SIGKILL), time_limit=60.0)


def test_a_training_that_is_cancelled_is_one_sentence() -> None:
    def cancelled(features: np.ndarray, targets: np.ndarray, seed: int) -> Linear:
        raise asyncio.CancelledError

    with pytest.raises(InputError, match=r"Model 1: .*cancelled failed \(CancelledError"):
        leakscope.audit(X, Y, train=cancelled)


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
    assert tried(training, [Handed("arrays", many, np.tile(Y, 10))], 0)[1] == []
    assert sizes == [200, 200, 200]


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


def test_a_limit_longer_than_any_clock_is_none() -> None:
    """Found by fuzzing: the platform's clock overflowed."""
    assert within("it", 1e300, partial(sum, [1, 2])) == 3
