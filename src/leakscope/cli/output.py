"""Where a verb's answer goes: JSON to a path or to stdout, a table for people, bars on stderr."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from typer.core import TyperCommand

from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.results import ResultDocument
    from leakscope.running.cells import Progress as CellProgress

STDOUT = "-"

# What an exit status says to a pipeline, beside 0 (within), 1 (unforeseen) and 2 (bad input): a
# limit is exceeded or the second run is worse, for certain; or that cannot be told.
EXCEEDED, CANNOT_TELL = 3, 4

WITHOUT_DIGEST = (
    "note: this run has no checksums (digests), so it is not known whether its files were changed."
)


# What a parameter of a verb names when it says where something is written; whatever else is given
# as text may name what is read.
OUTPUTS = {
    "json_path": "--json",
    "html": "--html",
    "output": "--output",
    "sacro": "--sacro",
    "save": "--save",
    "run_dir": "--run-dir",
    "keep": "--keep",
}
# Files of a run that other verbs read beside those with a digest.
OF_A_RUN = (
    "result.json",
    "settings.json",
    "records.csv",
    "arrays.npz",
    "gallery.json",
    "digests.json",
    "run.json",
    "cells.sqlite",
    "verify.json",
    "measure.json",
)
# Places of this call, absolute, by what was typed: whatever code changes the working directory
# later, they stay where they were, and a person reads what he wrote.
_TYPED: dict[str, str] = {}
# Where answers go; see ``answering``.
_ANSWERS: list[tuple[str, Callable[[str], Any]]] = []


def end_judged(exceeded: Sequence[str], unknown: Sequence[str]) -> None:
    """Say what is exceeded and what cannot be told, and end with the status for it."""
    import typer

    for sentence in (*exceeded, *unknown):
        say(f"leakscope: {sentence}")
    if exceeded or unknown:
        raise typer.Exit(EXCEEDED if exceeded else CANNOT_TELL)


class Guarded(TyperCommand):
    """A verb: no output of it is what it reads, and stdout holds its answer alone."""

    def invoke(self, ctx: Any) -> Any:
        """Look at what was given; then do it."""
        for option in self.params:
            # Typer before 0.29 has text here, and a folder's name is told from a word by its type.
            if "Path" in type(getattr(option, "type", None)).__name__:
                ctx.params[option.name] = _as_paths(ctx.params[option.name])
        guard(str(ctx.info_name), ctx.params)
        with answering(ctx.params):
            return super().invoke(ctx)


def _as_paths(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(map(_as_paths, given))
    return Path(given) if isinstance(given, str) else given


def guard(verb: str, given: dict[str, Any]) -> None:
    """Make every output's path absolute, and refuse one that is read from, or is given twice.

    What is read: every file and folder among what was given, the files of the runs among them, and
    the data, models and modules that those runs were made from.  A file is the same by its inode,
    however it is spelt: relative, through a link or a hard link, in other letters where the system
    does not tell them apart.
    """
    from leakscope.data.files import is_stream, is_there

    _TYPED.clear()
    outputs: dict[str, Path] = {}
    for name, option in OUTPUTS.items():
        value = given.get(name)
        if value is None or str(value) == STDOUT or is_stream(Path(value)):
            continue
        outputs[option] = standing(Path(value))
        given[name] = type(value)(outputs[option])
    if given.get("json_path") is not None and "--json" in outputs:
        from leakscope.data.files import require_new_file

        require_new_file(Path(given["json_path"]), "--json needs a file name, or - for stdout")
    _require_apart(outputs)
    # A folder that is still to be made may lead back: x/../data.csv is data.csv then.
    meant = {option: Path(os.path.realpath(path)) for option, path in outputs.items()}
    there = {option: path for option, path in meant.items() if is_there(path)}
    if not there:
        return
    others = [value for name, value in given.items() if name not in OUTPUTS]
    read = list(_read_from([*others, given.get("keep")], verb))
    for option, path in there.items():
        if path.is_file() and (path.suffix == ".py" or _of_a_run(path, verb)):
            what = "Python code" if path.suffix == ".py" else "a part of a run"
            raise InputError(
                f"{option} {outputs[option]} would overwrite {what}; name another file."
            )
        if any(_same_file(path, one) for one in read):
            raise InputError(
                f"{option} {outputs[option]} would overwrite a file that is read; name another."
            )


def standing(path: Path) -> Path:
    """The path from the root; messages go on saying what was typed."""
    found = path.absolute()
    _TYPED[str(found)] = str(path)
    if path.parent != Path():
        _TYPED[str(found.parent)] = str(path.parent)
    return found


def as_typed(text: str) -> str:
    """The text, with each output's place as it was typed."""
    for place in sorted(_TYPED, key=len, reverse=True):
        text = text.replace(place, _TYPED[place])
    return text


def _require_apart(outputs: Mapping[str, Path]) -> None:
    """Refuse two outputs that are one file, and a file inside a folder that is to be new."""
    for (first, one), (second, two) in itertools.permutations(outputs.items(), 2):
        if _same_file(one, two) or os.path.realpath(one) == os.path.realpath(two):
            raise InputError(f"{first} and {second} are one file, {one}; name two.")
        if (
            second == "--run-dir"
            and Path(os.path.realpath(two)) in Path(os.path.realpath(one)).parents
        ):
            raise InputError(
                f"{first} {one} lies in the {second} that is to be made; name another."
            )


def _read_from(given: Any, verb: str) -> Iterator[Path]:
    """The files and folders that texts name, and those that a run among them was made from."""
    for text in _texts(given):
        path = Path(text)
        try:
            # A text such as the decimal point is the name of a folder too.
            named = isinstance(text, Path) or path.is_absolute()
            folder, file = named and path.is_dir(), path.is_file()
        except (OSError, ValueError):
            continue
        result = path / "result.json" if folder else path
        if file:
            yield path
        elif folder and not result.is_file():
            yield from (one for one in path.rglob("*") if one.is_file())
        elif folder:
            yield from (one for one in path.rglob("*") if one.is_file() and _of_a_run(one, verb))
        elif re.fullmatch(r"[\w.]+:\w+", str(text)):
            yield from _module_files(str(text).partition(":")[0])
        if result.is_file() and result.suffix == ".json":
            yield from _recorded(result, verb)


def _recorded(result: Path, verb: str) -> Iterator[Path]:
    """The data, the model and the module that a result names; none where it is no result."""
    from leakscope.data.files import read_json

    try:
        content = read_json(result)
    except InputError:
        return
    if isinstance(content, dict) and "schema_version" in content:
        named = [content.get(name) for name in ("settings", "dataset", "model", "first", "second")]
        # A result that names a result would be read again and again.
        yield from (one for one in _read_from(named, verb) if one.suffix != ".json")


def _texts(given: Any) -> Iterator[str | Path]:
    if isinstance(given, (str, Path)):
        yield given
    elif isinstance(given, dict):
        yield from _texts(list(given.values()))
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _texts(one)


def _module_files(name: str) -> Iterator[Path]:
    """The file of a module that is found in the working directory or on the path."""
    inside = Path(*name.split("."))
    for root in (Path.cwd(), *map(Path, sys.path)):
        yield from (
            one for one in (root / f"{inside}.py", root / inside / "__init__.py") if one.is_file()
        )


def _of_a_run(path: Path, verb: str) -> bool:
    """Whether a file is one that a run's directory keeps; a verb may renew its own answer there."""
    folder = path.parent
    if not any((folder / name).is_file() for name in ("result.json", "run.json", "digests.json")):
        # The answers of a stream lie in a folder of their own.
        return path.suffix == ".parquet" and (folder.parent / "result.json").is_file()
    if path.name == f"{verb}.json":
        return False
    if path.name in OF_A_RUN:
        return True
    try:
        return path.name in json.loads((folder / "digests.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _same_file(one: Path, two: Path) -> bool:
    """Whether both are one file, or would be once the folders on the way are made."""
    try:
        # A folder that is still to be made may lead back: x/../data.csv is data.csv then.
        return one.samefile(two)
    except (OSError, ValueError):
        pass
    try:
        return os.path.realpath(one) == os.path.realpath(two)
    except (OSError, ValueError):
        return False


def _backslashed(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _json_signs(text: str) -> str:
    """JSON with every sign in ASCII, which is the same JSON."""
    return re.sub("[^\x00-\x7f]", lambda sign: json.dumps(sign[0])[1:-1], text)


@contextmanager
def answering(given: Mapping[str, Any]) -> Iterator[None]:
    """Keep stdout for the answer: what libraries write there while a verb works goes to stderr.

    Libraries in C write to the descriptor itself, so that it is led elsewhere too.
    """
    own = sys.stdout
    if given.get("json_path") == STDOUT and getattr(own, "name", None) == os.devnull:
        raise InputError("stdout is closed, and --json - writes there; name a file.")
    own.flush()
    kept = os.dup(1) if _is_descriptor(own, 1) and not _names_stdout(given) else None
    if kept is not None:
        os.dup2(2, 1)
    encoding = own.encoding or "utf-8"
    write = own.write if kept is None else partial(_write_all, kept, encoding)
    _ANSWERS.append((encoding, write))
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = own
        _ANSWERS.pop()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (AttributeError, OSError, ValueError):  # not a stream of the system's
        return False


def _names_stdout(given: Mapping[str, Any]) -> bool:
    """Whether an output is stdout by one of its names, to which it is then written directly."""
    from leakscope.data.files import descriptor_of

    named = [Path(given[name]) for name in OUTPUTS if given.get(name) is not None]
    return any(descriptor_of(path) == 1 for path in named)


def _write_all(descriptor: int, encoding: str, text: str) -> None:
    left = memoryview(text.encode(encoding, "backslashreplace"))
    while left:
        left = left[os.write(descriptor, left) :]


def answer(text: str, escaped: Callable[[str], str] = _backslashed) -> None:
    """Write to stdout; nothing else is written there while a verb works.

    ``escaped`` writes signs out that stdout's encoding lacks, such as all but ASCII's where the
    locale is C.
    """
    encoding, write = _ANSWERS[-1] if _ANSWERS else ("utf-8", sys.stdout.write)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = escaped(text)
    write(text)


@contextmanager
def in_options(command: Callable[..., None]) -> Iterator[None]:
    """Let an error that begins with a parameter of the function speak of the command's option."""
    try:
        yield
    except InputError as error:
        first, mark, rest = re.split(r"([ :,]|$)", str(error), maxsplit=1)
        if first not in inspect.signature(command).parameters:
            raise
        raise InputError(f"--{first.replace('_', '-')}{mark}{rest}") from error


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


def emit_json(document: ResultDocument, json_path: str | None) -> None:
    """Write the document to stdout for ``-``, to the file otherwise."""
    with with_json(document, json_path):
        pass


@contextmanager
def cells_bar() -> Iterator[Callable[[CellProgress], None] | None]:
    """A bar with cells done and the time that is left, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from leakscope.running.cells import duration

    bar = Progress(
        TextColumn("{task.completed:.0f}/{task.total:.0f} cells"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, visible=False)

        def report(progress: CellProgress) -> None:
            left = progress.seconds_left
            words = "" if left is None else f"about {duration(left)} left"
            bar.update(
                task,
                completed=progress.done,
                total=progress.total,
                description=words,
                visible=True,
            )

        yield report


def say(text: str) -> None:
    """A line for people on stderr, where it never mixes with JSON."""
    from leakscope.data.files import printable

    print(printable(as_typed(text)), file=sys.stderr)


def show(page: str) -> None:
    """A page for people on stdout; names from a file cannot give orders to the terminal."""
    from leakscope.data.files import printable

    answer(printable(as_typed(page), keep="\n"))


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
    """A paragraph in lines of 92 signs."""
    return "\n".join(textwrap.wrap(text, width=92, break_on_hyphens=False))


def told_page(found: ResultDocument) -> str:
    """Title, answer, tables, and last what they rest on: a result that describes itself."""
    short = found.in_short()
    *answer, rests = short.sentences
    parts = [wrapped(short.title), "\n".join(map(wrapped, answer))]
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


def number(value: float) -> str:
    """Four digits, and a word where there is no number."""
    return "infinite" if value == float("inf") else f"{value:.4g}"


def fraction(value: float | None) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them."""
    from leakscope.results.shown import certain

    return certain(value)


def standard_error(value: float) -> str:
    """One digit; nothing where there is none."""
    return f"{value:.1g}" if value else ""


@contextmanager
def stages(names: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """A progress bar over the named stages, on stderr, and only where stderr is a terminal."""
    with stages_and_models(names) as (begin, _):
        yield begin


@contextmanager
def stages_and_models(
    names: Sequence[str],
) -> Iterator[tuple[Callable[[str], None], Callable[[CellProgress], None] | None]]:
    """The same, with what is called after each model of a stage that trains several."""
    if not sys.stderr.isatty():
        yield (lambda name: None), None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from leakscope.running.cells import duration

    progress = Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task(names[0], total=len(names))

        def begin(name: str) -> None:
            done = names.index(name.partition(":")[0])
            progress.update(task, description=name, completed=done, total=len(names))

        def trained(models: CellProgress) -> None:
            left = models.seconds_left
            words = "models" if left is None else f"models, about {duration(left)} left"
            progress.update(task, description=words, completed=models.done, total=models.total)

        yield begin, trained


@contextmanager
def steps(name: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done and for how long, where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(),
        TextColumn(name),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task("", total=None)
        yield lambda words: progress.update(task, description=words)
