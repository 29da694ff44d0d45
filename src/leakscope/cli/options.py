"""Options and arguments that several verbs share, declared once, and how their texts are read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from leakscope.errors import InputError
from leakscope.settings.data import READ_KEYS, DataSettings
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
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        help=f"How FILE is read: {', '.join(READ_KEYS)}; repeatable, such as missing=impute.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]
SetValues = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter of --model, such as C=0.1 or depth=3; repeatable.",
        metavar="KEY=VALUE",
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
RunDirectory = Annotated[
    Path | None,
    typer.Option(
        help="Where to put the run.  [default: leakscope-runs/TIME-VERB-NAME]",
        metavar="DIR",
        show_default=False,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(help="Write it as one HTML page.", metavar="FILE.html", show_default=False),
]
Redact = Annotated[
    bool, typer.Option("--redact", help="Aggregates only: no ids and no rows of single records.")
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

    if (file is None) == (example is None):
        raise InputError(
            "Which dataset? Name a file, or one that comes with leakscope, not both: --example "
            "diabetes."
        )
    if example is not None:
        given = data.model_fields_set - {"by", "sample", "sample_seed"}
        if any(getattr(data, name) != DataSettings.model_fields[name].default for name in given):
            option = described(DataSettings, min(given)).option
            raise InputError(f"{option} belongs to a file, not to --example.")
        return Source.of(data, example=example).read(keep=keep)
    source = Source.of(data, file=file)
    found = source.read(two_values_are_classes=two_values_are_classes, keep=keep)
    if len(found.record_ids) < 2:
        raise InputError(f"{file} gives one record; each is compared with others: give at least 2.")
    return found


def one_of(value: str, choices: Sequence[str], option: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, but it is {value!r}.")


def numbers(text: str, option: str, *, whole: bool = False) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        found = tuple(int(entry) if whole else float(entry) for entry in text.split(","))
        if not all(math.isfinite(number) for number in found):
            raise ValueError(text)
        return found
    except ValueError:
        kind, such = ("whole numbers", "256,256") if whole else ("numbers", "0.1,0.001")
        raise InputError(
            f"{option}: {text!r} is not a list of {kind} separated by commas, such as {such}."
        ) from None


CONTEXT = "typer_context"


@dataclass(frozen=True)
class Options:
    """The fields of a settings model that a verb has options for.

    Attributes
    ----------
    model
        The settings model.
    without, only
        Fields to leave at their defaults; or those that are options, where the others are left so.
    texts
        What a field means to this verb, where that is less than the model says.
    """

    model: type[BaseModel]
    without: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    def described(self) -> list[Described]:
        """Each option, as the model describes it."""
        names = self.only or tuple(n for n in self.model.model_fields if n not in self.without)
        found = [described(self.model, name) for name in names]
        return [replace(one, text=self.texts.get(one.name, one.text)) for one in found]

    def settings(self, given: dict[str, Any], context: typer.Context | None = None) -> BaseModel:
        """The checked settings, out of the values given; those used are taken from ``given``.

        What the command line leaves out is left out here too, so that the settings know what was
        asked for (``model_fields_set``).
        """
        options = {one.name: one for one in self.described()}
        values = {name: _read(one, given.pop(name)) for name, one in options.items()}
        asked = {k: v for k, v in values.items() if _given(options[k], v, context)}
        try:
            return validated(self.model, **asked)
        except InputError as error:
            if error.option not in options:
                raise
            # The model begins with its field, and here that is an option.
            option = options[error.option].option
            sentence = f"{option}{error.what.removeprefix(error.option)}"
            raise InputError(sentence, option=error.option) from None


class Verb:
    """A function of settings, called with the values of their options."""

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
        kind, default = (list[str], None) if one.entry is str else (str, None)
    elif one.kind is str and default is not None:
        default = str(default)
    if one.required:
        default = inspect.Parameter.empty
    elif default is None:
        kind = kind | None
        text += "" if one.shown_default is None else f"  [default: {one.shown_default}]"
    information = typer.Option(
        f"{one.option}/{one.typed}" if one.typed != one.option else one.option,
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
    return source.name != "DEFAULT" and value is not None


def _read(one: Described, value: Any) -> Any:
    """A value of the command line as the model takes it."""
    if value is None:
        return None
    if one.choices:
        one_of(value, tuple(one.choices), one.option)
    if one.kind is not tuple:
        return value
    if one.entry is str:
        return tuple(value)
    found = numbers(value, one.option, whole=one.entry is int)
    if one.items not in (None, len(found)):
        raise InputError(f"{one.option} must be {one.metavar}, but it is {value!r}.")
    return found


@contextmanager
def in_options(command: Callable[..., None]) -> Iterator[None]:
    """Let an error about a parameter of the function name the command's option."""
    try:
        yield
    except InputError as error:
        name = str(error).partition(" ")[0].rstrip(":,")
        if name not in inspect.signature(command).parameters:
            raise
        option = f"--{name.replace('_', '-')}"
        raise InputError(f"{option}{str(error).removeprefix(name)}") from error
