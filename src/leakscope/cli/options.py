"""Options and arguments that several verbs share, declared once, and how their texts are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from leakscope.cli.output import Guarded
from leakscope.errors import InputError
from leakscope.settings.data import DataSettings
from leakscope.settings.setting import Described, described, validated

if TYPE_CHECKING:
    from leakscope.data import Dataset

# The dataset.
DatasetFile = Annotated[
    Path | None,
    typer.Argument(
        help="The data: .csv, .tsv, .data, .parquet, .npy or .npz; or a folder of "
        "pictures, one subfolder per class.",
        metavar="FILE",
        show_default=False,
    ),
]
Example = Annotated[
    str | None,
    typer.Option(
        help="Not FILE but diabetes, breast_cancer, digits, iris or wine.",
        metavar="NAME",
        show_default=False,
    ),
]

# Where the answer goes.


def _json_path(given: str | None) -> str | None:
    """Stdout by any of its names is ``-``: then nothing but JSON is printed there."""
    from leakscope.data.files import descriptor_of

    return "-" if given is not None and descriptor_of(Path(given)) == 1 else given


JsonPath = Annotated[
    str | None,
    typer.Option(
        "--json",
        callback=_json_path,
        help="Write the result as JSON; - for stdout alone.",
        metavar="PATH",
        show_default=False,
    ),
]
DataNow = Annotated[
    Path | None,
    typer.Option(
        help="Where the data are now, if not where the result says.",
        metavar="FILE",
        show_default=False,
    ),
]
RunDirectory = Annotated[
    Path | None,
    typer.Option(
        help="Where to put the run.  [default: leakscope-runs/TIME-VERB-NAME]",
        metavar="DIR",
        show_default=False,
    ),
]


def dataset_from(
    data: DataSettings,
    file: Path | None,
    example: str | None,
    *,
    two_values_are_classes: bool = False,
    keep: tuple[str, ...] = (),
) -> Dataset:
    """The dataset that the options name: a file, or one that scikit-learn ships."""
    from leakscope.data import Source

    if file is not None and example is not None:
        raise InputError("Give a file or --example, not both.")
    if example is not None:
        _require_unset(data, "target", "id_column", "task")
        _require_unset(data, "ignore", "group_column", "missing")
        _require_unset(data, "header", "na_values", "decimal")
        return Source.of(data, example=example).read(keep=keep)
    if file is None:
        raise InputError(
            "Which dataset? Name a file, or try one that comes with leakscope: --example diabetes."
        )
    source = Source.of(data, file=file)
    found = source.read(two_values_are_classes=two_values_are_classes, keep=keep)
    if len(found.record_ids) < 2:
        raise InputError(
            f"{file} gives one record; each is compared with the others, so at least two are "
            "needed."
        )
    return found


def _require_unset(data: DataSettings, *names: str) -> None:
    """Refuse settings that only a file has."""
    if any(getattr(data, name) != DataSettings.model_fields[name].default for name in names):
        *first, last = (described(DataSettings, name).typed for name in names)
        raise InputError(f"{', '.join(first)} and {last} belong to a file, not to --example.")


def one_of(value: str, choices: tuple[str, ...], option: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, but it is {value!r}.")


def numbers(text: str, option: str, *, whole: bool = False) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(int(entry) if whole else float(entry) for entry in text.split(","))
    except ValueError:
        kind, such = ("whole numbers", "256,256") if whole else ("numbers", "0.1,0.001")
        raise InputError(
            f"{option}: {text!r} is not a list of {kind} separated by commas, such as {such}."
        ) from None


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


# Options that several verbs have, by the names of their parameters.
READING = (
    "missing",
    "ignore",
    "header",
    "na_values",
    "decimal",
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


# Of an option's name and value on a help page.
WIDEST = 26


def sectioned(sections: Mapping[str, tuple[str, ...]]) -> type[Guarded]:
    """A command whose help has these headings, in their order, over the parameters they name.

    What no heading names stands at the end of the first.  The example comes before the options,
    which are many, and a default stands in brackets without the word.
    """

    class Sectioned(Guarded):
        headings = sections

        def format_options(self, ctx: Any, formatter: Any) -> None:
            records: dict[str, tuple[str, str]] = {}
            arguments: list[tuple[str, str]] = []
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is not None and parameter.param_type_name == "argument":
                    # Some versions of Typer say by brackets here too that it may be left out.
                    arguments.append((record[0].replace("[", "").replace("]", ""), record[1]))
                elif record is not None:
                    option, text = record
                    records[str(parameter.name)] = option, text.replace("  [default: ", " [")
            named = {name for names in sections.values() for name in names}
            others = [name for name in records if name not in named]
            super().format_epilog(ctx, formatter)
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
            for place, (heading, names) in enumerate(sections.items()):
                shown = [*names, *(others if place == 0 else ())]
                with formatter.section(heading if place else f"{heading} (defaults in brackets)"):
                    # A long name has a line of its own, and leaves the others room.
                    formatter.write_dl([records[name] for name in shown], col_max=WIDEST)

        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            """Where the example was, on pages that fit a screen."""

    return Sectioned
