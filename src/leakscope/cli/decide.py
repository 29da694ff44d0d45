"""``leakscope decide``: the record that a person signs, from finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import STDOUT, end_judged, show, standing, with_json, wrapped
from leakscope.errors import InputError
from leakscope.settings.decide import DecideOptions, declaration_template, read_declaration

if TYPE_CHECKING:
    from leakscope.results import Decision

SUMMARY = "The record a person signs: thresholds, findings, attacks not run."
EPILOG = (
    "Example: leakscope decide diabetes-run --threshold-advantage 0.5 --prior 0.01 --output signed"
)


@with_options(settings=Options(DecideOptions))
def decide(
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Runs of one model: audit, and verify, measure, advise, compare or attack; "
            "directories or result files.",
            metavar="RUN",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="The file of the model that is to be released; it is hashed, not read.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    declare: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with what only you know: release, recipient, access, attacker, "
            "reason, approver and others; --template prints an empty one.",
            metavar="FILE.toml",
            show_default=False,
        ),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Instead: print an empty file for --declare.")
    ] = False,
    settings: DecideOptions,
    redact: Annotated[
        bool, typer.Option("--redact", help="Without the ids of the most exposed records.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A new folder for decision.html, decision.json and decision.md.  [default: "
            "leakscope-runs/TIME-decide-NAME]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Instead: say whether a filed record, or one of its files, is as it was written.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Make the sign-off record of one model: HTML to sign, JSON to file, Markdown for a model card.

    Give the runs of the model and at least one threshold.  What is measured, computed and declared
    is kept apart, and what nobody stated reads "not stated".  The decision is left blank to be
    signed.  The exit status is 3 where a threshold is not met, and 4 where that cannot be told or
    something stands in the way of an approval.  It is not legal advice.
    """
    from leakscope.deciding import check_record
    from leakscope.deciding import decide as decide_on
    from leakscope.reporting import write_decision
    from leakscope.results.run_directory import default_run_directory, require_free

    if template:
        show(declaration_template())
        return
    if check is not None:
        if runs:
            raise InputError("Give --check alone, without runs.")
        show(f"{check} is as it was written; SHA-256 {check_record(check)}\n")
        return
    folder = output or standing(
        default_run_directory("decide", (runs or [Path("nothing")])[0].name)
    )
    require_free(folder)
    declared = {} if declare is None else read_declaration(declare)
    declared |= {name: value for name, value in dict(settings).items() if value is not None}
    found = decide_on(*(runs or ()), model=model, redact=redact, **declared)
    with with_json(found, json_path):
        folder = write_decision(found, folder)
    if json_path != STDOUT:
        show(_page(found, folder))
    end_judged(*found.judged)


def _page(found: Decision, folder: Path) -> str:
    """The first page, and where the rest is."""
    parts = []
    if found.obstacles:
        parts.append("\n".join(wrapped(f"Cannot be approved: {one}") for one in found.obstacles))
    parts.append("\n".join(wrapped(sentence) for sentence in found.summary))
    missing = [
        field.label
        for field in (*found.identity, *found.context, *found.attacker)
        if field.value is None and field.basis == "declared"
    ]
    if found.reason is None:
        missing.append("reason for the thresholds")
    if missing:
        parts.append(wrapped(f"Not stated: {'; '.join(missing)} (--declare FILE)."))
    signed = found.sign_off.decision or "blank, to be signed"
    parts.append(
        f"Decision: {signed}\nRecord: {folder} (decision.html to sign, decision.json to file, "
        f"decision.md for a model card)\nSHA-256: {found.record_hash}"
    )
    return "\n\n".join(parts) + "\n"
