"""What the folder holds that commands can be about: tables and their columns, models, runs."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from leakscope.errors import InputError
from leakscope.settings.audit import MODEL_FILES, ModelName

# As leakscope.data reads them; written here so that the page comes before pandas does.
TABLES = (".csv", ".data", ".tsv", ".parquet", ".npy", ".npz")

# What makes a folder a run or a decision, and results of other verbs that stand in a run.
RUN, DECISION = "result.json", "decision.json"
RESULTS = ("verify.json", "measure.json", "advise.json", "compare.json")

# Levels of folders that are looked through, and files that are listed.
DEPTH, LONGEST_LIST = 3, 1000

# Of a larger Parquet file the names of the columns are read, and no rows.
READ_WHOLE_BYTES = 2**28


def inside(folder: Path, text: str) -> Path:
    """The path that a text is in the folder; refused where it leads out, by a link too."""
    try:
        path = (folder / text).resolve()
    except (OSError, ValueError, RuntimeError):
        path = Path("/")
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{text!r} leads out of the folder of leakscope serve.")
    return path


def contents(folder: Path) -> dict[str, Any]:
    """What can be chosen, as paths in the folder.

    ``models`` is what ``--model`` takes: names, files, and what Python files define.  ``results``
    are run directories and results in them; ``pages`` lists each run's HTML files.
    """
    files = list(_files(folder))
    names = [path.relative_to(folder).as_posix() for path in files]
    runs = sorted({path.parent for path in files if path.name == RUN} - {folder})
    decisions = sorted({path.parent for path in files if path.name == DECISION} - {folder})
    results = [*runs, *(path for path in files if path.name in RESULTS and path.parent in runs)]
    parts = {path.parent for path in files if path.suffix == ".parquet"} - {folder}
    tables = [path for path in files if path.suffix in TABLES and path.parent not in runs]
    models = [name for name in names if name.endswith(MODEL_FILES)]
    return {
        "folder": str(folder),
        "files": names,
        "tables": [path.relative_to(folder).as_posix() for path in (*tables, *sorted(parts))],
        "models": [*get_args(ModelName), *models, *_code(folder)],
        "results": [path.relative_to(folder).as_posix() for path in results],
        "pages": {
            run.relative_to(folder).as_posix(): pages(folder, [run]) for run in (*runs, *decisions)
        },
    }


def _files(folder: Path) -> Iterator[Path]:
    """Files that are not hidden, at most so deep and so many; no links out of the folder."""
    count = 0
    for parent, folders, names in os.walk(folder):
        deep = len(Path(parent).relative_to(folder).parts) + 1 >= DEPTH
        folders[:] = [] if deep else sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            path = Path(parent, name)
            if name[0] != "." and path.resolve().is_relative_to(folder):
                count += 1
                yield path
            if count == LONGEST_LIST:
                return


def _code(folder: Path) -> Iterator[str]:
    """``module:Name`` of what the folder's Python files define; they are read, and not run."""
    for path in sorted(folder.glob("*.py")):
        try:
            body = ast.parse(path.read_bytes()).body
        except (OSError, SyntaxError, ValueError):
            continue
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.append(node.name)
            yield from (f"{path.stem}:{name}" for name in names if not name.startswith("_"))


def columns(folder: Path, values: dict[str, Any]) -> dict[str, list[str]]:
    """The columns of the table in a filled form, and which of them look like a person's."""
    path = inside(folder, str(values.get("file") or ""))
    if path.is_dir():
        path = min(path.glob("*.parquet"), default=path)
    if path.suffix == ".parquet" and path.stat().st_size > READ_WHOLE_BYTES:
        import pyarrow.parquet

        return {"columns": list(pyarrow.parquet.read_schema(path).names), "persons": []}
    from leakscope.data.person_columns import person_columns
    from leakscope.data.tables import Layout, read_table
    from leakscope.settings.data import DATA_DEFAULTS, with_read

    data = with_read(DATA_DEFAULTS, [text for text in values.get("read") or () if "=" in text])
    table = read_table(path, Layout(data.header, data.na_values, data.decimal))
    names = [str(name) for name in table.columns]
    return {"columns": names, "persons": list(person_columns(table, names, names))}


def pages(folder: Path, places: Iterable[Path], since: float = 0.0) -> list[str]:
    """The HTML files among these paths and in these folders, as new as that; the report first."""
    candidates = {page for place in places for page in (place, *place.glob("*.html"))}
    files = [page for page in candidates if page.suffix == ".html" and page.is_file()]
    files = [page for page in files if page.stat().st_mtime >= since]
    files.sort(key=lambda page: (page.stem != "report", page))
    return [page.relative_to(folder).as_posix() for page in files]
