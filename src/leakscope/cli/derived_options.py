"""Command-line options derived from settings models: a verb takes one checked object for each.

    @with_options(settings=Options(AuditSettings, without=("explain",)))
    def audit(*, settings: AuditSettings, json_path: JsonPath = None) -> None: ...

gives ``leakscope audit`` an option for each field of the model, with its type, default and
description, and calls ``audit`` with the settings, or ends with one sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from leakscope.cli.options import numbers, one_of
from leakscope.errors import InputError
from leakscope.settings import Described, described, validated

COUNT_WORDS = {2: "two", 3: "three"}
CONTEXT = "typer_context"


@dataclass(frozen=True)
class Options:
    """The fields of a settings model that a verb has options for.

    Attributes
    ----------
    model
        The settings model.
    without
        Fields to leave at their defaults.
    texts
        What a field means to this verb, where that is less than the model says.
    """

    model: type[BaseModel]
    without: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> list[Described]:
        """Each option, as the model describes it now."""
        found = [
            described(self.model, name)
            for name in self.model.model_fields
            if name not in self.without
        ]
        return [replace(one, text=self.texts.get(one.name, one.text)) for one in found]

    def settings(self, given: dict[str, Any], context: typer.Context | None = None) -> BaseModel:
        """The checked settings, out of the values given; those used are taken from ``given``.

        What the command line leaves out is left out here too, so that the settings know what was
        asked for (``model_fields_set``).
        """
        found = {one.name: one for one in self.described()}
        read = {name: _read(one, given.pop(name)) for name, one in found.items()}
        values = {
            name: value for name, value in read.items() if _given(found[name], value, context)
        }
        try:
            return validated(self.model, **values)
        except InputError as error:
            # The model begins with its field, and here that is an option.
            if error.option not in found:
                raise
            option = found[error.option].option
            sentence = f"{option}{error.what.removeprefix(error.option)}"
            raise InputError(sentence, option=error.option) from None


class Verb:
    """A function of settings, called with the values of their options.

    Its signature is made whenever it is asked for, so that it shows the tables as they are then.
    """

    def __init__(self, function: Callable[..., None], options: dict[str, Options]) -> None:
        self.function = function
        self.options = options
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__annotations__: dict[str, Any] = {}

    @property
    def __signature__(self) -> inspect.Signature:
        # Typer hands over the context, which knows what the command line has and has not.
        context = inspect.Parameter(
            CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        found: list[inspect.Parameter] = [context]
        signature = inspect.signature(self.function, eval_str=True)
        for name, parameter in signature.parameters.items():
            if name in self.options:
                found += [_parameter(one) for one in self.options[name].described()]
            else:
                found.append(parameter)
        return signature.replace(parameters=found)

    def __call__(self, **given: Any) -> None:
        """Check what was given, then do it."""
        context = given.pop(CONTEXT, None)
        checked = {name: options.settings(given, context) for name, options in self.options.items()}
        self.function(**checked, **given)


def with_options(**options: Options) -> Callable[[Callable[..., None]], Verb]:
    """Give a verb the options of settings models, by the name of the parameter that takes them."""
    return lambda function: Verb(function, options)


def _parameter(one: Described) -> inspect.Parameter:
    text, default = one.text, one.default
    kind: Any = one.kind
    if one.kind is tuple:
        # Names are given again and again, numbers with commas between.
        kind, default = (list[str], None) if _repeatable(one) else (str, None)
    elif one.kind is str and default is not None:
        default = str(default)
    if one.required:
        default = inspect.Parameter.empty
    elif default is None:
        kind = kind | None
        text += "" if one.shown_default is None else f"  [default: {one.shown_default}]"
    both_ways = f"{one.option}/{one.typed}" if one.typed != one.option else one.option
    information = typer.Option(
        both_ways,
        help=text,
        metavar=None if one.kind is bool else one.metavar,
        show_default=default is not None and default is not False and not one.required,
    )
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, information],
    )


def _given(one: Described, value: Any, context: typer.Context | None) -> bool:
    """Whether the command line has the option; by its value, where there is no command line."""
    source = None if context is None else context.get_parameter_source(one.name)
    if source is None:
        return one.required or (value is not None and value != one.default)
    return source.name != "DEFAULT"


def _repeatable(one: Described) -> bool:
    return one.entry is str


def _read(one: Described, value: Any) -> Any:
    """A value of the command line as the model takes it."""
    if value is None:
        return None
    if one.choices:
        one_of(value, tuple(one.choices), one.option)
    if one.kind is not tuple:
        return value
    if _repeatable(one):
        return tuple(value)
    if one.items is not None:
        return _so_many(value, one)
    return numbers(value, one.option, whole=one.entry is int)


def _so_many(text: str, one: Described) -> tuple[float, ...]:
    try:
        found = tuple(float(entry) for entry in text.split(","))
    except ValueError:
        found = ()
    if len(found) != one.items:
        count = COUNT_WORDS.get(one.items or 0, str(one.items))
        raise InputError(
            f"{one.option} must be {count} numbers, {one.metavar}, but it is {text!r}."
        )
    return found
