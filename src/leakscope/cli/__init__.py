"""The command line: one file per verb, each of which parses, calls the library, and prints.

Nothing heavier than typer is imported before a verb runs, so that every ``--help`` is quick.

Exit status: 0 done; 2 the input cannot be used (one sentence on stderr); 130 interrupted; 1
anything unforeseen, with its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from leakscope.cli import (
    advise,
    attack,
    audit,
    compare,
    decide,
    erase,
    measure,
    plan,
    report,
    reproduce,
    serve,
    verify,
)
from leakscope.cli.output import Guarded
from leakscope.cli.removed import replacements
from leakscope.errors import InputError

app = typer.Typer(
    name="leakscope",
    help="How much a trained model gives away about each record it was trained on, "
    "computed rather than attacked.",
    epilog="Example: leakscope audit --example diabetes",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(attack.app, short_help=attack.SUMMARY)
app.add_typer(plan.app, short_help=plan.SUMMARY)
_VERBS: tuple[Any, ...] = (
    advise, audit, compare, decide, erase, measure, report, reproduce, serve, verify,
)  # fmt: skip
for _verb in _VERBS:
    _name = _verb.__name__.rpartition(".")[2]
    app.command(
        _name,
        cls=None if _verb is serve else Guarded,
        short_help=_verb.SUMMARY,
        epilog=_verb.EPILOG,
    )(getattr(_verb, _name))


def _print_version(wanted: bool) -> None:
    if wanted:
        from leakscope import __version__

        typer.echo(f"leakscope {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    if sys.stdout is None:  # closed by whoever started this process (``>&-``)
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has gone.
        _leave_stdout()
        return 1
    except OSError as error:
        # The disk under stdout is full, or its terminal is gone; no other error passes the verbs.
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT, errno.EFBIG):
            raise
        _leave_stdout()
        print(f"leakscope: stdout cannot be written: {error.strerror}.", file=sys.stderr)
        return 2
    return status


def _leave_stdout() -> None:
    """Nothing more is written: the interpreter must not try to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(args=None if arguments is None else list(arguments), prog_name="leakscope")
    except InputError as error:
        from leakscope.data.files import printable

        print(f"leakscope: {printable(str(error))}", file=sys.stderr)
        return 2
    except MemoryError:
        print(
            "leakscope: the memory ran out; use fewer records, or a machine with more memory.",
            file=sys.stderr,
        )
        return 2
    except ImportError as error:
        # A shared library that does not fit under ``ulimit -v``.
        if "failed to map" not in str(error) and "cannot allocate memory" not in str(error):
            raise
        print(
            "leakscope: the libraries do not fit into the memory that this process may use; raise "
            "ulimit -v to 3 GB or more.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        return 130
    except SystemExit as leaving:
        if leaving.code == 2:
            for sentence in replacements(sys.argv[1:] if arguments is None else arguments):
                print(f"leakscope: {sentence}", file=sys.stderr)
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0
