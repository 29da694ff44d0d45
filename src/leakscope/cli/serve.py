"""``leakscope serve``: a page that composes and runs this folder's commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

SUMMARY = "A page that composes and runs this folder's commands."
EPILOG = "Example: leakscope serve"


def serve(
    context: typer.Context,
    port: Annotated[
        int,
        typer.Option(help="Where to listen; 0 for any free port.", metavar="NUMBER"),
    ] = 0,
) -> None:
    """Choose a table, its target, whose rows they are and a model; run it; read the report.

    The page shows the files of the folder it is started in, and the command line of everything that
    it runs.  Only this machine reaches it, and only with the address that is printed.
    """
    from leakscope.serving import listen

    commands: dict[str, Any] = context.find_root().command.commands  # type: ignore[attr-defined]
    # At once, so that a program that started the server can read the address.
    listen(commands, port=port, say=lambda line: print(line, flush=True))
