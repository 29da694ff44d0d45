"""Where a verb's answer goes: JSON to a path or to stdout, a table for people, bars on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.results import ResultDocument

STDOUT = "-"

# What an exit status says to a pipeline, beside 0 (within), 1 (unforeseen) and 2 (bad input): a
# limit is exceeded or the second run is worse, for certain; or that cannot be told.
EXCEEDED, CANNOT_TELL = 3, 4

WITHOUT_DIGEST = (
    "note: this run has no checksums (digests), so it is not known whether its files were changed."
)

# What a parameter of a verb names when it says where something is written.
OUTPUTS = {
    "json_path": "--json",
    "html": "--html",
    "output": "--output",
    "sacro": "--sacro",
    "save": "--save",
    "run_dir": "--run-dir",
    "keep": "--keep",
}
# Files of a run that its digests do not name.
OF_A_RUN = ("digests.json", "run.json", "cells")

WIDTH = 92  # of a paragraph on the screen

# Where answers go while a verb works: the stdout that this process was given.
_ANSWERS: list[Any] = []


class Guarded(TyperCommand):
    """A verb: no output of it is what it reads, and stdout holds its answer alone."""

    def invoke(self, ctx: Any) -> Any:
        """Look at what was given; then do it."""
        for option in self.params:
            # Typer before 0.29 has text here, and a folder's name is told from a word by its type.
            if "Path" in type(getattr(option, "type", None)).__name__:
                ctx.params[option.name] = _as_paths(ctx.params[option.name])
        guard(str(ctx.info_name), ctx.params)
        if ctx.params.get("json_path") == STDOUT and getattr(sys.stdout, "name", "") == os.devnull:
            raise InputError("stdout is closed, and --json - writes there; name a file.")
        _ANSWERS.append(sys.stdout)
        # What libraries print goes to stderr.
        sys.stdout = sys.stderr
        try:
            return super().invoke(ctx)
        finally:
            sys.stdout = _ANSWERS.pop()


def _as_paths(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(map(_as_paths, given))
    return Path(given) if isinstance(given, str) else given


def guard(verb: str, given: Mapping[str, Any]) -> None:
    """Refuse an output that is read from, that is a part of a run, or that is given twice.

    A file is the same by its inode, however it is spelt.
    """
    from leakscope.data.files import is_stream, is_there, require_new_file

    outputs = {
        option: Path(given[name])
        for name, option in OUTPUTS.items()
        if given.get(name) is not None and str(given[name]) != STDOUT
    }
    outputs = {option: path for option, path in outputs.items() if not is_stream(path)}
    if "--json" in outputs:
        require_new_file(outputs["--json"], "--json needs a file name, or - for stdout")
    read = [path for name, value in given.items() if name not in OUTPUTS for path in _files(value)]
    for option, path in outputs.items():
        for other, place in outputs.items():
            if other != option and _same(path, place):
                raise InputError(f"{option} and {other} are one file, {path}; name two.")
            if other == "--run-dir" and place.absolute() in path.absolute().parents:
                raise InputError(f"{option} {path} lies in the --run-dir; name another.")
        if not is_there(path) or not path.is_file():
            continue
        if path.suffix == ".py" or _of_a_run(path, verb) or any(_same(path, one) for one in read):
            raise InputError(
                f"{option} {path} would overwrite code, a part of a run or a file that is read; "
                "name another file."
            )


def _files(given: Any) -> Iterator[Path]:
    """The files that texts name, and the data of a run among them."""
    if isinstance(given, (list, tuple)):
        for entry in given:
            yield from _files(entry)
    if not isinstance(given, (str, Path)):
        return
    path = Path(given)
    try:
        result = path / "result.json" if path.is_dir() else path
        there, is_result = path.is_file(), result.is_file() and result.suffix == ".json"
    except (OSError, ValueError):
        return
    if there:
        yield path
    if is_result:
        try:
            content = json.loads(result.read_text(encoding="utf-8"))
            named = [content["dataset"]["source"]["file"], content["model"]["file"]]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            named = []
        yield from (Path(name) for name in named if isinstance(name, str))


def _of_a_run(path: Path, verb: str) -> bool:
    """Whether a file is one that a run's directory keeps; a verb may renew its own answer there."""
    if path.name == f"{verb}.json":
        return False
    try:
        digests = json.loads((path.parent / "digests.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return path.name in OF_A_RUN or path.name in digests


def _same(one: Path, two: Path) -> bool:
    """Whether both are one file, or would be once the folders on the way are made."""
    try:
        return one.samefile(two)
    except (OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(two)


def _backslashed(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _json_signs(text: str) -> str:
    """JSON with every sign in ASCII, which is the same JSON."""
    return re.sub("[^\x00-\x7f]", lambda sign: json.dumps(sign[0])[1:-1], text)


def answer(text: str, escaped: Callable[[str], str] = _backslashed) -> None:
    """Write to stdout; nothing else is written there while a verb works.

    ``escaped`` writes signs out that stdout's encoding lacks, such as all but ASCII's where the
    locale is C.
    """
    stdout = _ANSWERS[-1] if _ANSWERS else sys.stdout
    try:
        text.encode(stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = escaped(text)
    stdout.write(text)


def say(text: str) -> None:
    """A line for people on stderr, where it never mixes with JSON."""
    from leakscope.data.files import printable

    print(printable(text), file=sys.stderr)


def warn(found: ResultDocument) -> None:
    """The warnings of a result, on stderr."""
    for sentence in found.warnings:
        say(f"warning: {sentence}")


def show(page: str) -> None:
    """A page for people on stdout; names from a file cannot give orders to the terminal."""
    from leakscope.data.files import printable

    answer(printable(page, keep="\n"))


def end_judged(exceeded: Sequence[str], unknown: Sequence[str]) -> None:
    """Say what is exceeded and what cannot be told, and end with the status for it."""
    import typer

    for sentence in (*exceeded, *unknown):
        say(f"leakscope: {sentence}")
    if exceeded or unknown:
        raise typer.Exit(EXCEEDED if exceeded else CANNOT_TELL)


@contextmanager
def with_json(document: ResultDocument, json_path: str | None) -> Iterator[None]:
    """Write the document with what is written inside, both or neither; to stdout for ``-``."""
    from leakscope.data.files import written_with
    from leakscope.results import to_json

    if json_path is None or json_path == STDOUT:
        yield
    else:
        with written_with(Path(json_path), f"{to_json(document)}\n".encode()):
            yield
    if json_path == STDOUT:
        answer(to_json(document) + "\n", escaped=_json_signs)


def emit(document: ResultDocument, json_path: str | None, page: str) -> None:
    """The end of a verb: its warnings, its JSON where that was asked for, and its page."""
    warn(document)
    emit_json(document, json_path)
    if json_path != STDOUT:
        show(page + "\n")


def emit_json(document: ResultDocument, json_path: str | None) -> None:
    """Write the document to stdout for ``-``, to the file otherwise."""
    with with_json(document, json_path):
        pass


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Plain aligned columns: text as it is in the first column, numbers to the right."""
    from leakscope.data.files import printable

    cells = [[printable(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(len(row[c]) for row in cells) for c in range(len(headings))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def wrapped(text: str) -> str:
    """A paragraph in lines that fit the screen."""
    return "\n".join(textwrap.wrap(text, width=WIDTH, break_on_hyphens=False))


def told_page(found: ResultDocument) -> str:
    """Title, answer, tables, and last what they rest on: a result that describes itself."""
    short = found.in_short()
    *sentences, rests = short.sentences
    parts = [wrapped(short.title), "\n".join(map(wrapped, sentences))]
    parts += [wrapped(f"Warning: {sentence}") for sentence in short.warnings]
    parts += [table(short.headings, short.rows)] if short.rows else []
    for section in found.sections():
        parts += [table(headings, rows) for headings, rows in section.tables]
        parts += [wrapped(paragraph) for paragraph in section.paragraphs]
    return "\n\n".join([*filter(None, parts), wrapped(rests)])


def write_page(found: ResultDocument, path: Path) -> None:
    """Write a result as one HTML page."""
    from leakscope.reporting.writing import short_html
    from leakscope.results.document import write_private

    write_private(path, short_html(found))


class Steps:
    """What a long verb reports: the name of each stage, and how many of its models are done."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def models(self, progress: Any) -> None:
        """So many models, or blocks, are done (``done``, ``total``, ``seconds_left``)."""

    def counted(self, done: int, total: int) -> None:
        """The same as two numbers."""


@contextmanager
def steps(title: str = "") -> Iterator[Steps]:
    """A line that says what is being done and for how long, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from leakscope.running.parts import duration

    bar = Progress(
        TextColumn(f"{title} {{task.description}}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )

    class Shown(Steps):
        def stage(self, name: str) -> None:
            bar.update(task, description=name, total=None)

        def models(self, progress: Any) -> None:
            left = progress.seconds_left
            words = f"{progress.done} of {progress.total}"
            words += "" if left is None else f", about {duration(left)} left"
            bar.update(task, description=words, completed=progress.done, total=progress.total)

        def counted(self, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

    with bar:
        task = bar.add_task("", total=None)
        yield Shown()


def standing(path: Path) -> Path:
    """The path as it was typed."""
    return path
