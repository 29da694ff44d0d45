"""The user's own code: found by name, and run so that it can end neither the program nor time."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from leakscope.data.files import reason
from leakscope.errors import InputError

# Code that swallows the first reminder gets another, at this distance in seconds.
AGAIN = 1.0


class TimeLimitError(InputError):
    """The user's code did not end in time."""


class _Overtime(BaseException):
    """Raised inside the user's code; no ``except Exception`` there holds it back."""


def load_by_name(text: str, *, option: str) -> Any:
    """What ``module:name`` names; modules of the working directory count."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise InputError(f"{option} needs module:function, but it is {text!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with staying(f"{option}: the module {module_name}"):
            module = importlib.import_module(module_name)
    except InputError:
        raise
    except Exception as error:  # a relative name is a TypeError; the module may raise anything
        raise InputError(
            f"{option}: the module {module_name} cannot be imported ({type(error).__name__}: "
            f"{reason(error)})."
        ) from error
    found = getattr(module, name, None)
    if not callable(found) and not hasattr(found, "fit"):
        raise InputError(f"{option}: {module_name} has no function {name}.")
    return found


@contextmanager
def staying(name: str, *, seconds: float | None = None) -> Iterator[None]:
    """Run the user's code: it can neither end the program nor, with ``seconds``, run for ever.

    What it prints goes to stderr, because stdout may be a result.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr), _no_exit_at_once(), _within(seconds):
            yield
    except SystemExit as leaving:
        raise InputError(
            f"{name} ended the program (SystemExit): it must return, or raise an error."
        ) from leaving
    except _Overtime:
        raise TimeLimitError(f"{name} did not end within its time limit, {seconds:g} s.") from None


@contextmanager
def _no_exit_at_once() -> Iterator[None]:
    """``os._exit`` as ``sys.exit``: it would end the program with the status of a success."""
    own, leave = os.getpid(), os._exit

    def leaving(status: int) -> NoReturn:
        # A process that the user's code forked ends itself in this way, and may.
        if os.getpid() != own:
            leave(status)
        raise SystemExit(status)

    os._exit = leaving
    try:
        yield
    finally:
        os._exit = leave


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and PyTorch; the first two are put back.

    A training function that draws from them instead of using its seed is then repeatable too.
    """
    before, before_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)  # noqa: NPY002


@contextmanager
def _within(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        with _alarm(seconds):
            yield
        return
    # A worker of a cluster computes in a thread of its own, where no signal arrives.
    thread, over = threading.get_ident(), threading.Event()

    def remind() -> None:
        wait = seconds
        while not over.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(_Overtime)
            )
            wait = AGAIN

    watch = threading.Thread(target=remind, daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise _Overtime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
