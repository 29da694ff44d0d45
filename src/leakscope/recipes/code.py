"""The user's own code: found by its name, told by a digest, and run so that it cannot end us."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import random
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CellType
from typing import Any, TypeVar

import numpy as np

from leakscope.data.files import reason
from leakscope.errors import InputError

T = TypeVar("T")

# The process in which code with a time limit runs, while it is there.
_LIMITED: list[Any] = []


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
    subject = getattr(module, name, None)
    if not callable(subject) and not hasattr(subject, "fit"):
        raise InputError(f"{option}: {module_name} has no function {name}.")
    return subject


def made(subject: Any, *, option: str) -> Any:
    """What was named or given; of an estimator's class, one with its usual parameters."""
    if not (inspect.isclass(subject) and hasattr(subject, "fit")):
        return subject
    try:
        return subject()
    except TypeError as error:
        raise InputError(
            f"{option}: {subject.__name__} cannot be made without parameters ({reason(error)}); "
            "give one that is made, or a function that makes and fits it."
        ) from error


def code_digest(text: str, parts: Iterable[Any]) -> str:
    """A digest of parameters, as text, and of the code that functions and classes run.

    Of modules of the user's own, those of ``parts`` and what they import, the text counts, of
    libraries the version; of a function its code and what it is closed over where that is plain.
    """
    texts = {"": text}
    waiting = []
    for part in parts:
        _add_code(part, texts)
        waiting.append(str(getattr(part, "__module__", None) or ""))
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        file = _file_of(name)
        if file is None:
            top = name.partition(".")[0]
            texts[name] = ""
            with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
                texts[top] = importlib.metadata.version(top)
            continue
        texts[name] = file.read_text(encoding="utf-8", errors="replace")
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        waiting += _imported(texts[name], package)
    whole = "\n".join(f"{name}: {text}" for name, text in sorted(texts.items()))
    return hashlib.sha256(whole.encode()).hexdigest()


def _add_code(part: Any, texts: dict[str, str]) -> None:
    """The code of a function, of those of its module that it names, and of a class, as text."""
    name = f"code of {getattr(part, '__qualname__', part)!s}"
    if name in texts:
        return
    texts[name] = ""
    code = getattr(part, "__code__", None)
    if code is None:
        with contextlib.suppress(OSError, TypeError):
            texts[name] = inspect.getsource(part)
        return
    cells = [cell.cell_contents for cell in part.__closure__ or () if cell != CellType()]
    values = [*cells, *(part.__defaults__ or ())]
    codes = [code]
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if hasattr(const, "co_names")]
        consts = [const for const in code.co_consts if not hasattr(const, "co_names")]
        texts[name] += f"{code.co_code.hex()} {code.co_names} {consts!r}"
        values += [part.__globals__[n] for n in code.co_names if n in part.__globals__]
    for value in values:
        if isinstance(value, (bool, int, float, str, bytes, tuple, type(None))):
            texts[name] += f" {value!r}"
        elif getattr(value, "__module__", None) == part.__module__ and callable(value):
            _add_code(value, texts)


def _file_of(name: str) -> Path | None:
    """The file of a module of the user's own; None of one that is installed, and of __main__."""
    if name in ("__main__", "__mp_main__"):
        return None
    module, origin = sys.modules.get(name), None
    if module is not None:
        origin = getattr(module, "__file__", None)
    else:
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name)
            origin = None if spec is None or not spec.has_location else spec.origin
    if origin is None or not origin.endswith(".py"):
        return None
    file = Path(origin)
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    library = (sysconfig.get_path("stdlib"), Path(__file__).parents[1])
    return None if installed or any(file.is_relative_to(place) for place in library) else file


def _imported(text: str, package: str) -> list[str]:
    """The modules that a module's text names in its imports, wherever they stand."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            with contextlib.suppress(ImportError):
                if node.level:
                    base = importlib.util.resolve_name("." * node.level + base, package)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    # A name in a module is no module.
    return [name for name in names if name in sys.modules or _file_of(name) is not None]


@contextmanager
def staying(name: str) -> Iterator[None]:
    """Run the user's code: sys.exit is an error, and what it prints goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SystemExit as leaving:
        raise InputError(
            f"{name} ended the program (SystemExit): it must return a model, or raise an error."
        ) from leaving


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
    """What ``work`` returns, if it ends in time; without a limit it runs in this process.

    With one it runs in another, which is killed: nothing else ends a loop in C.  The time to start
    that process does not count.
    """
    if seconds is None:
        return work()
    from concurrent.futures import BrokenExecutor
    from concurrent.futures import TimeoutError as Late

    from joblib.externals.loky import ProcessPoolExecutor

    if not _LIMITED:
        _LIMITED.append(ProcessPoolExecutor(max_workers=1))
    executor = _LIMITED[0]
    try:
        executor.submit(importlib.import_module, __name__).result()
        returned: T = executor.submit(work).result(timeout=seconds)
    except Late:
        _LIMITED.clear()
        executor.shutdown(kill_workers=True)
        raise TimeLimitError(f"{name} did not end within its time limit, {seconds:g} s.") from None
    except BrokenExecutor as error:
        _LIMITED.clear()
        raise InputError(
            f"{name} ended the process that it ran in; most likely there was not enough memory."
        ) from error
    return returned
