"""JSON from files that others may have written: a value, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leakscope._numerics.memory import require_memory
from leakscope.data.reasons import reason
from leakscope.data.regular_files import require_file
from leakscope.errors import InputError

# Python's objects for a text of JSON: measured at 4 to 9 times its size for our own results.
OBJECTS_PER_BYTE = 10


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises
    ------
    InputError
        Where it is no file, no UTF-8, no JSON, nested too deeply or too large.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leakscope.data import read_json
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.json")
    ...     _ = file.write_text('{"a": [1, 2]}')
    ...     read_json(file)
    {'a': [1, 2]}
    """
    size = require_file(path)
    require_memory(
        OBJECTS_PER_BYTE * size, f"{path}, read as JSON,", "use a machine with more memory"
    )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({reason(error)}).") from error
