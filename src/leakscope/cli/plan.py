"""``leakscope plan``: leakage and error before training.  One file a kind of model."""

from __future__ import annotations

import typer

from leakscope.cli import plan_lasso, plan_linear
from leakscope.cli.output import Guarded

SUMMARY = "Before training: what a design gives away, and what meets a target."

app = typer.Typer(
    name="plan",
    help="Before training: how much a planned model would give away, and what it would cost to "
    "keep to a target.",
    epilog=plan_linear.EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _plan() -> None:
    pass


app.command("linear", cls=Guarded, short_help=plan_linear.SUMMARY, epilog=plan_linear.EPILOG)(
    plan_linear.linear
)
app.command("lasso", cls=Guarded, short_help=plan_lasso.SUMMARY, epilog=plan_lasso.EPILOG)(
    plan_lasso.lasso
)
