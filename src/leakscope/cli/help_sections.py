"""The options of a help page under headings: what most people need first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

# Options that several verbs have, by the names of their parameters.
READING = (
    "missing",
    "ignore",
    "header",
    "na_values",
    "decimal",
    "split",
    "sample",
    "sample_seed",
    "scaling",
)
KERNEL = (
    "kernel",
    "length_scale",
    "kernel_variance",
    "smoothness",
    "depth",
    "activation",
    "weight_variance",
    "bias_variance",
)


def sectioned(sections: Mapping[str, tuple[str, ...]]) -> type[TyperCommand]:
    """A command whose help has these headings, in their order, over the parameters they name.

    What no heading names stands at the end of the first.
    """

    class Sectioned(TyperCommand):
        def format_options(self, ctx: Any, formatter: Any) -> None:
            records: dict[str, tuple[str, str]] = {}
            arguments: list[tuple[str, str]] = []
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is not None and parameter.param_type_name == "argument":
                    arguments.append(record)
                elif record is not None:
                    records[str(parameter.name)] = record
            named = {name for names in sections.values() for name in names}
            others = [name for name in records if name not in named]
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
            for place, (heading, names) in enumerate(sections.items()):
                shown = [*names, *(others if place == 0 else ())]
                with formatter.section(heading):
                    formatter.write_dl([records[name] for name in shown])

    return Sectioned
