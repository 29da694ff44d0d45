"""The user's own code: found by its name, and run under a time limit and without ending this "
"program."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import numpy as np

from leakscope.data.files import reason
from leakscope.errors import InputError

T = TypeVar("T")

# Seconds within which the pipe of a process that was killed is closed.
ENDS = 5.0


class TimeLimitError(InputError):
    """The user's code did not end in time."""


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
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a relative name is a TypeError; the module may raise anything
        raise InputError(
            f"{option}: the module {module_name} cannot be imported ({type(error).__name__}: "
            f"{reason(error)})."
        ) from error
    found = getattr(module, name, None)
    if not callable(found) and not hasattr(found, "fit"):
        raise InputError(f"{option}: {module_name} has no function {name}.")
    return found


def made(found: Any, *, option: str) -> Any:
    """What was named or given; of an estimator's class, one with its usual parameters."""
    if not (inspect.isclass(found) and hasattr(found, "fit")):
        return found
    try:
        return found()
    except TypeError as error:
        raise InputError(
            f"{option}: {found.__name__} cannot be made without parameters ({reason(error)}); "
            "give one that is made, or a function that makes and fits it."
        ) from error


def code_text(things: Iterable[Any]) -> str:
    """The code that functions and classes run, as text: the same as long as it is the same.

    Of things in modules of the user's own the files of these and of what they import, as far as
    that is the user's own too; of libraries the version.  Of things in ``__main__`` their own text
    and that of what they name there.  What a function is closed over counts where it cannot change.
    """
    found: dict[str, str] = {}
    modules: list[str] = []
    for thing in things:
        name = getattr(thing, "__module__", None) or ""
        if _file_of(name) is None and name not in sys.builtin_module_names:
            _named_text(thing, found)
        else:
            modules.append(name)
        for cell in getattr(thing, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # not filled yet
                value = cell.cell_contents
                if callable(value):
                    _named_text(value, found)
                elif _is_plain(value):
                    found[f"closed over {len(found)}"] = repr(value)
    while modules:
        name = modules.pop()
        if name in found or not name:
            continue
        file = _file_of(name)
        if file is None or not _is_users(file):
            top = name.partition(".")[0]
            found[name] = ""
            found[top] = _version(top)
            continue
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found[name] = file.read_text(encoding="utf-8")
        modules += _imported(found.setdefault(name, ""), name, file.name == "__init__.py")
    return "\n".join(f"{name}: {text}" for name, text in sorted(found.items()) if text)


def _file_of(name: str) -> Path | None:
    """A module's file, loaded or not; ``__main__`` has none that is one thing's own."""
    if name in ("", "__main__", "__mp_main__"):
        return None
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None:
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name)
            file = None if spec is None or not spec.has_location else spec.origin
    return None if file is None else Path(file)


def _is_users(file: Path) -> bool:
    """Whether a module is the user's own: neither installed, nor Python's, nor this package's."""
    places = (sysconfig.get_path("stdlib"), Path(__file__).parents[1])
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    return file.suffix == ".py" and not (
        installed or any(file.is_relative_to(place) for place in places)
    )


def _version(package: str) -> str:
    told = getattr(sys.modules.get(package), "__version__", None)
    if told is None:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            told = importlib.metadata.version(package)
    return str(told or "")


def _imported(text: str, module: str, is_package: bool) -> list[str]:
    """The modules that a module's text names in its imports, wherever they stand."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            up = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    # A.b is a name in a, unless it is a module.
    return [name for name in found if name in sys.modules or _file_of(name) is not None]


def _named_text(thing: Any, found: dict[str, str]) -> None:
    """The text of a function or class, and of what it names among its globals."""
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing))}"
    if name in found:
        return
    try:
        found[name] = inspect.getsource(thing)
    except (OSError, TypeError):
        found[name] = ""
        return
    own = getattr(thing, "__globals__", {})
    codes = [getattr(thing, "__code__", None)]
    while codes:
        code = codes.pop()
        if code is None:
            continue
        codes += [each for each in code.co_consts if hasattr(each, "co_names")]
        for used in code.co_names:
            value = own.get(used)
            if _is_plain(value) and used in own:
                found[f"{name} {used}"] = repr(value)
            elif getattr(value, "__module__", None) == getattr(thing, "__module__", ""):
                _named_text(value, found)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


@contextmanager
def staying(name: str) -> Iterator[None]:
    """Run the user's code: it cannot end the program.

    What it prints goes to stderr, because stdout may be a result.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr), _no_exit_at_once():
            yield
    except SystemExit as leaving:
        raise InputError(
            f"{name} ended the program (SystemExit): it must return a model, or raise an error."
        ) from leaving


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


def within(name: str, seconds: float | None, work: Callable[[], T]) -> T:
    """What ``work`` returns, if it ends in time; it may swallow exceptions or loop in C.

    With a limit it runs in a process of its own, which is killed: nothing else ends every loop.
    That is a fresh interpreter where ``work`` can be sent there, and a copy of this process where
    it cannot (a function of a notebook or of another function).  The time to start does not count.
    """
    if seconds is None:
        return work()
    child = _sent(work)
    if child is None:
        raise InputError(
            f"{name} cannot be given a time limit here, because another process must import it; "
            "define it at the top level of a module."
        )
    ready, answer = threading.Event(), list[bytes]()

    def listen() -> None:
        with contextlib.suppress(OSError, struct.error):
            begun = child.answers.read(1)
            ready.set()
            if begun:
                size = struct.unpack("<Q", child.answers.read(8))[0]
                answer.append(child.answers.read(size))
        ready.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        ready.wait()
        listener.join(min(seconds, threading.TIMEOUT_MAX))
    finally:
        late = listener.is_alive()
        if late or not answer or child is not _kept.child:
            child.end()
            listener.join(ENDS)
    if late:
        raise TimeLimitError(f"{name} did not end within its time limit, {seconds:g} s.")
    if not answer:
        raise InputError(
            f"{name} ended the process that it ran in; most likely there was not enough memory."
        )
    refused, found = pickle.loads(answer[0])
    if refused is not None:
        raise InputError(refused)
    returned: T = found
    return returned


class _Kept(threading.local):
    """The interpreter that a thread's works share while :func:`one_process` lasts."""

    wanted: bool = False
    child: _Child | None = None


_kept = _Kept()


@contextmanager
def one_process() -> Iterator[None]:
    """Works :func:`within` their time share one interpreter, which takes seconds to start.

    It ends with the block, so that code that is changed afterwards is not run as it was.
    """
    if _kept.wanted:
        yield
        return
    _kept.wanted = True
    try:
        yield
    finally:
        child, _kept.child, _kept.wanted = _kept.child, None, False
        if child is not None:
            child.end()


@dataclass(frozen=True, eq=False)
class _Child:
    """A process in a session of its own: what it started ends with it."""

    process: int
    works: IO[bytes] | None
    answers: IO[bytes]
    wait: Callable[[], Any]

    def end(self) -> None:
        if _kept.child is self:
            _kept.child = None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process, signal.SIGKILL)
            else:
                os.kill(self.process, signal.SIGTERM)
        self.wait()
        for pipe in (self.works, self.answers):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _sent(work: Callable[[], Any]) -> _Child | None:
    """The process that has the work; None where there can be none."""
    try:
        sent = pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        sent = b""
    # What stands in __main__ is not there in another interpreter.
    if not sys.executable or not sent or b"__main__" in sent:
        return _copy(work) if hasattr(os, "fork") else None
    child = _kept.child or _interpreter()
    if _kept.wanted:
        _kept.child = child
    assert child.works is not None
    # One that has ended meanwhile answers nothing.
    with contextlib.suppress(BrokenPipeError):
        child.works.write(struct.pack("<Q", len(sent)) + sent)
        child.works.flush()
    return child


def _interpreter() -> _Child:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import answer_to_pipe; answer_to_pipe()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    assert process.stdout is not None
    return _Child(process.pid, process.stdin, process.stdout, process.wait)


def _copy(work: Callable[[], Any]) -> _Child:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that the copy does not have
        copy = os.fork()
    if copy == 0:
        os.setsid()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            _answer(lambda: work, pipe)
        os._exit(0)
    os.close(writing)
    return _Child(copy, None, os.fdopen(reading, "rb"), lambda: os.waitpid(copy, 0))


def answer_to_pipe() -> None:
    """The whole life of the interpreter: works come by stdin, their answers go by stdout."""
    works = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        # What the user's code prints, from C too, goes to stderr.
        os.dup2(2, 1)
        while head := works.read(8):
            sent = works.read(struct.unpack("<Q", head)[0])
            _answer(lambda sent=sent: pickle.loads(sent), answers)  # type: ignore[misc]


def _answer(found: Callable[[], Callable[[], Any]], pipe: IO[bytes]) -> None:
    """Say that the work begins, do it, and send what came of it."""
    told: tuple[str | None, Any]
    try:
        try:
            work = found()
        finally:
            pipe.write(b"+")
            pipe.flush()
        told = (None, work())
    except InputError as error:
        told = (str(error), None)
    except BaseException as error:
        told = (f"the training's process failed ({type(error).__name__}: {reason(error)}).", None)
    sent = pickle.dumps(told)
    pipe.write(struct.pack("<Q", len(sent)) + sent)
    pipe.flush()
