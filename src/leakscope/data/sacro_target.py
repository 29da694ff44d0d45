"""The folder in which SACRO-ML keeps a target: ``target.yaml`` and its arrays.

SACRO-ML's attacks, as used in trusted research environments, start from such a folder.  Its
training records are read for an audit; its model, a pickle, is not.

The arrays may be pickles too, and are read as data: nothing is imported, called or unpickled.  A
pickle is a small program.  Here its opcodes are listed (``pickletools``), plain values are kept on
a stack, and the two forms in which NumPy writes an array are recognised by name; whatever else a
file asks for is refused.
"""

from __future__ import annotations

import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.files import is_there, require_file
from leakscope.data.tables import Layout, read_table
from leakscope.errors import InputError

TARGET_FILE = "target.yaml"

# A line of the file's first level: a name, and a plain value.
_LINE = re.compile(r"^(\w+):[ \t]+(\S.*)$")


def is_sacro_target(path: Path) -> bool:
    """Whether a folder is a target of SACRO-ML."""
    return is_there(path / TARGET_FILE)


def read_sacro_target(path: Path) -> pd.DataFrame:
    """The training records of a target: features ``x0``, ``x1`` and so on, and ``y``."""
    told = _first_level(path / TARGET_FILE)
    features = _named_array(path, told, "X_train")
    labels = _named_array(path, told, "y_train").reshape(-1)
    if features.ndim != 2 or len(labels) != len(features):
        raise InputError(
            f"{path}: X_train has shape {features.shape} and y_train {labels.shape}; rows of "
            "features with one label each are needed."
        )
    names = [f"x{place}" for place in range(features.shape[1])]
    return pd.DataFrame(features, columns=names).assign(y=labels)


def _first_level(path: Path) -> dict[str, str]:
    """The plain values of the file's first level; the rest is not needed, and is not read."""
    require_file(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text.") from error
    found = (_LINE.match(line) for line in lines)
    return {match[1]: match[2].strip().strip("'\"") for match in found if match is not None}


def _named_array(folder: Path, told: dict[str, str], name: str) -> NDArray[Any]:
    file = told.get(f"{name}_path", "")
    if not file:
        raise InputError(f"{folder / TARGET_FILE} names no {name}; save the target with its data.")
    if Path(file).name != file:
        raise InputError(f"{folder / TARGET_FILE}: {name} must lie in the folder, not at {file}.")
    place = folder / file
    if place.suffix == ".pkl":
        return read_pickled_array(place)
    if place.suffix == ".csv":
        return np.asarray(read_table(place, Layout(header=False)).to_numpy())
    raise InputError(f"{place}: arrays of a target are read from .pkl and .csv files.")


# Bytes into an array in one step, or an empty array that is then filled.
FORMS = ("_frombuffer", "_reconstruct")
MODULES = ("numpy", "numpy._core.numeric", "numpy._core.multiarray",
           "numpy.core.numeric", "numpy.core.multiarray")  # fmt: skip

_PLAIN = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_PUSHED = frozenset(
    ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1",
     "BINFLOAT", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")
)  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Refused(Exception):
    """What is no plain array."""


def read_pickled_array(path: str | Path) -> NDArray[Any]:
    """The array that a pickle holds: numbers, booleans or text; anything else is refused."""
    path = Path(path)
    require_memory(3 * require_file(path), f"the array {path}", "save fewer records")
    try:
        return _plain_array(_interpreted(path.read_bytes()))
    except (_Refused, ValueError, TypeError, LookupError, AttributeError) as error:
        said = str(error) if isinstance(error, _Refused) else "it is no pickle, or was cut"
        raise InputError(
            f"{path} is not read, because {said}; only a plain NumPy array is taken out of a "
            "pickle (nothing is unpickled).  Save the array as .csv instead."
        ) from None


def _interpreted(content: bytes) -> Any:
    """What the program leaves, with calls kept as ``("call", name, arguments, state)``."""
    stack: list[Any] = []
    marks: list[int] = []
    memory: dict[int, Any] = {}
    for opcode, given, _ in pickletools.genops(content):
        name = opcode.name
        if name in ("PROTO", "FRAME"):
            continue
        if name == "STOP":
            return stack.pop()
        if name in _PUSHED:
            stack.append(given)
        elif name in _PLAIN:
            stack.append(_PLAIN[name])
        elif name == "MEMOIZE":
            memory[len(memory)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memory[int(given or 0)])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            start = marks.pop()
            stack[start:] = [tuple(stack[start:])]
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "APPENDS":
            start = marks.pop()
            stack[start - 1].extend(stack[start:])
            del stack[start:]
        elif name == "STACK_GLOBAL":
            what, module = stack.pop(), stack.pop()
            if module not in MODULES or what not in (*FORMS, "dtype", "ndarray"):
                raise _Refused(f"it asks for {module}.{what}")
            stack.append(("name", what))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            if not (isinstance(function, tuple) and function[0] == "name"):
                raise _Refused("it calls something else than NumPy")
            stack.append(["call", function[1], arguments, None])
        elif name == "BUILD":
            state = stack.pop()
            if not (isinstance(stack[-1], list) and stack[-1][:1] == ["call"]):
                raise _Refused("it fills something else than an array")
            stack[-1][3] = state
        else:
            raise _Refused(f"it holds more than an array ({name})")
    raise _Refused("it has no end")


def _plain_array(found: Any) -> NDArray[Any]:
    if not (isinstance(found, list) and len(found) == 4 and found[0] == "call"):
        raise _Refused("it holds no array")
    _, form, arguments, state = found
    if form == "_frombuffer":
        content, kind, shape, order = arguments
    elif form == "_reconstruct" and state is not None:
        _, shape, kind, by_columns, content = state
        order = "F" if by_columns else "C"
    else:
        raise _Refused("it holds no array")
    dtype = _dtype(kind)
    if dtype.kind == "O":
        if not all(isinstance(value, (str, int, float)) for value in content):
            raise _Refused("its values are neither numbers nor text")
        return np.array(content, dtype=object).reshape(shape, order=order)
    return np.frombuffer(content, dtype=dtype).reshape(shape, order=order).copy()


def _dtype(found: Any) -> np.dtype[Any]:
    _, form, arguments, state = found
    if form != "dtype" or arguments[0][:1] not in "biufUSO":
        raise _Refused("its values are neither numbers nor text")
    order = state[1] if state is not None and state[1] in "<>" else ""
    return np.dtype(f"{order}{arguments[0]}" if arguments[0][0] != "O" else "O")
