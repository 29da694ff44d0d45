"""Forms of verbs, made from their own declarations, and command lines made from filled forms.

A form is read off the command line's parser, which is itself made from the settings: a new option
is a new field, with its name, description and default.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.errors import InputError
from leakscope.serving.folder import inside

VERBS = ("audit", "report", "verify", "advise", "compare", "decide")

# Whose rows a table's are is asked; the empty answer says that each row is a unit of its own.
GROUP = "group_column"

# Arguments that are the run to which another result belongs.
RUN_ARGUMENTS = ("result", "run", "second")

Command = tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """An argument or an option of a verb, as its help page has it.

    Attributes
    ----------
    name, label
        The parameter, which is the key in a filled form, and what stands over the field.
    switches
        An option's words: where the field is a flag, for yes and for no.  An argument has none.
    metavar, text
        From the help page.
    flag, multiple, required
        Whether it is on or off, takes several values, may not be left out.
    default
        As text, what is used where the field is left empty.
    choices
        Where only these values are allowed: each with what it means.
    """

    name: str
    label: str
    switches: tuple[str, ...]
    metavar: str
    text: str
    flag: bool
    multiple: bool
    required: bool
    default: str
    choices: dict[str, str]


@dataclass(frozen=True)
class Form:
    """A verb and its fields, in the order of the help page."""

    verb: str
    summary: str
    fields: tuple[Field, ...]


def forms(commands: Mapping[str, Any]) -> dict[str, Form]:
    """The forms of the verbs of the page, from the parsers of all verbs."""
    return {verb: _form(verb, commands[verb]) for verb in VERBS if verb in commands}


def _form(verb: str, command: Any) -> Form:
    declared = getattr(inspect.unwrap(command.callback), "options", {}).values()
    choices = {
        option.name: option.choices for options in declared for option in options.described()
    }
    fields = [_field(parameter, choices.get(parameter.name, {})) for parameter in command.params]
    fields.sort(key=lambda field: bool(field.switches))
    return Form(verb, command.short_help or "", tuple(fields))


def _field(parameter: Any, choices: dict[str, str]) -> Field:
    argument = parameter.param_type_name == "argument"
    switches = () if argument else (parameter.opts[0], *parameter.secondary_opts[:1])
    metavar = str(parameter.metavar or "").strip("[]. ")
    default = parameter.default if isinstance(parameter.default, (str, int, float)) else None
    return Field(
        name=parameter.name,
        label=metavar if argument else parameter.opts[0],
        switches=switches,
        metavar=metavar,
        text=parameter.help or "",
        flag=bool(getattr(parameter, "is_flag", False)),
        multiple=parameter.nargs == -1 or bool(getattr(parameter, "multiple", False)),
        required=bool(parameter.required),
        default="" if default is None or default is False else str(default),
        choices=choices,
    )


def composed(form: Form, values: Mapping[str, Any], folder: Path) -> tuple[Command, ...]:
    """The command of a filled form and, after an audit or a verification, that of its report.

    ``values`` has a text, a list of texts or a truth for each field that is filled in, by its name;
    no value may lead out of ``folder``, and an output that is left out gets a place of its own.
    """
    unknown = set(values) - {field.name for field in form.fields}
    if unknown:
        raise InputError(f"{form.verb} has no field {min(unknown)}.")
    given = {field.name: _texts(field, values.get(field.name), folder) for field in form.fields}
    for field in form.fields:
        if field.required and not given[field.name]:
            raise InputError(f"{field.label} is missing.", option=field.name)
    if GROUP in given:
        if not given["file"] and not given["example"]:
            raise InputError("Choose a FILE.", option="file")
        if given["file"] and GROUP not in values:
            raise InputError("Whose rows are these? Answer at --group.", option=GROUP)
    for name, place in _places(form, given, folder).items():
        given[name] = given[name] or [place]
    arguments = [text for field in form.fields if not field.switches for text in given[field.name]]
    options = [word for field in form.fields for word in _words(field, given[field.name])]
    dashed = any(text.startswith("-") for text in arguments)
    words = [*options, "--", *arguments] if dashed else [*arguments, *options]
    command = (form.verb, *words)
    if form.verb == "audit":
        return command, ("report", given["run_dir"][0])
    if form.verb == "verify" and (folder / arguments[0]).is_dir():
        return command, ("report", arguments[0])
    return (command,)


def _texts(field: Field, value: Any, folder: Path) -> list[str]:
    """A field's value as texts; none where it is left empty or is a flag's default."""
    if field.flag and (value is None or isinstance(value, bool)):
        return [] if value in (None, bool(field.default)) else [field.switches[0 if value else -1]]
    entries = value if isinstance(value, list) else [] if value is None else [value]
    if field.flag or not all(isinstance(entry, str) for entry in entries):
        raise InputError(f"{field.label} takes {'yes or no' if field.flag else 'text'}.")
    filled = [entry for entry in entries if entry.strip()]
    if len(filled) > 1 and not field.multiple:
        raise InputError(f"{field.label} takes one value.")
    for entry in filled:
        inside(folder, entry)
    return filled


def _words(field: Field, texts: list[str]) -> Iterator[str]:
    """An option's words on the command line; none of an argument."""
    for text in texts if field.switches else ():
        if field.flag:
            yield text
        elif text.startswith("-"):
            yield f"{field.switches[0]}={text}"
        else:
            yield from (field.switches[0], text)


def _places(form: Form, given: Mapping[str, list[str]], folder: Path) -> dict[str, str]:
    """Where outputs go that nobody has named: into the run, or a directory of their own."""
    if form.verb == "audit":
        return {"run_dir": _free(folder, Path((given["file"] or given["example"])[0]).stem)}
    if form.verb == "decide" and not given["check"]:
        return {"output": _free(folder, "decision")}
    run = next((given[name][0] for name in RUN_ARGUMENTS if given.get(name)), "")
    if not (folder / run).is_dir():
        return {}
    outputs = {"html": f"{run}/{form.verb}.html", "json_path": f"{run}/{form.verb}.json"}
    return {name: place for name, place in outputs.items() if name in given}


def _free(folder: Path, name: str) -> str:
    """A directory that is not there."""
    from leakscope.results.run_directory import RUNS_FOLDER

    number = 1
    while (folder / RUNS_FOLDER / f"{name}-{number}").exists():
        number += 1
    return f"{RUNS_FOLDER}/{name}-{number}"
