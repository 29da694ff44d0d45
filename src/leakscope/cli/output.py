"""Where a verb's answer goes: JSON to a path or to stdout, a table for people, bars on stderr."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.results import ResultDocument
    from leakscope.running.cells import Progress as CellProgress

STDOUT = "-"

# What an exit status says to a pipeline, beside 0 (within), 1 (unforeseen) and 2 (bad input): a
# limit is exceeded or the second run is worse, for certain; or that cannot be told.
EXCEEDED, CANNOT_TELL = 3, 4

WITHOUT_DIGEST = "note: this run carries no digest of itself, so that changes to it cannot be seen."


def end_judged(exceeded: Sequence[str], unknown: Sequence[str]) -> None:
    """Say what is exceeded and what cannot be told, and end with the status for it."""
    import typer

    for sentence in (*exceeded, *unknown):
        say(f"leakscope: {sentence}")
    if exceeded or unknown:
        raise typer.Exit(EXCEEDED if exceeded else CANNOT_TELL)


def require_writable(json_path: str | None, *inputs: Path | str | None) -> None:
    """Refuse, before any work is done, a JSON path that cannot be written, or is read from."""
    if json_path is None or json_path == STDOUT:
        return
    from leakscope.data.files import require_new_file

    path = Path(json_path)
    require_new_file(path, "--json needs a file name, or - for stdout")
    if any(given is not None and _same_file(path, Path(given)) for given in inputs):
        raise InputError(f"--json {path} would write over what is read; name another file.")


def _same_file(one: Path, two: Path) -> bool:
    """Whether both are there and are one file, or the second is the run that holds the first."""
    try:
        return one.samefile(two) or one.samefile(two / "result.json")
    except (OSError, ValueError):
        return False


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


def emit_json(document: ResultDocument, json_path: str) -> None:
    """Write the document to stdout for ``-``, to the file otherwise."""
    from leakscope.results import to_json, write_result

    if json_path == STDOUT:
        sys.stdout.write(to_json(document) + "\n")
    else:
        write_result(document, json_path)


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

    print(printable(text), file=sys.stderr)


def show(page: str) -> None:
    """A page for people on stdout; names from a file cannot give orders to the terminal."""
    from leakscope.data.files import printable

    sys.stdout.write(printable(page, keep="\n"))


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


def write_page(found: ResultDocument, path: Path, *, quiet: bool) -> None:
    """Write a result as one HTML page, and say where unless stdout holds JSON."""
    from leakscope.reporting.writing import short_html
    from leakscope.results.document import write_private

    write_private(path, short_html(found))
    if not quiet:
        show(f"\nPage: {path} ({path.stat().st_size / 1e6:.1f} MB)\n")


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
