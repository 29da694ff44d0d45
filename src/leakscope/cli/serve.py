"""``leakscope serve``: the audit as a local web page."""

from __future__ import annotations

from typing import Annotated

import typer

SUMMARY = "The audit as a web page on this machine."
EPILOG = "Example: leakscope serve --max-upload 20"


def serve(
    port: Annotated[
        int,
        typer.Option(help="Where to listen; 0 for any free port.", metavar="NUMBER"),
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; another than this machine's own needs --allow-remote.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            help="Let --host be an address that other machines reach.  Nothing is encrypted.",
        ),
    ] = False,
    max_upload: Annotated[
        float, typer.Option(help="The largest file to take, in megabytes.", metavar="MB")
    ] = 100.0,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Upload a dataset or choose an example, watch the audit, read its report, move the noise.

    Only this machine reaches it, and only with the address that is printed.  Files stay in a
    private folder and are removed when Ctrl-C stops the server.
    """
    from leakscope.serving import Limits
    from leakscope.serving import serve as listen

    listen(
        host=host,
        port=port,
        allow_remote=allow_remote,
        open_browser=open_browser,
        limits=Limits.of_megabytes(max_upload),
    )
