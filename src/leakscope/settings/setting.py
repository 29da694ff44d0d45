"""One setting: its default and what it means, for help pages, forms and documentation."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from leakscope.errors import InputError
from leakscope.settings.kernel_catalogue import having

Probability = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
# Beyond this a network's kernel takes minutes to compile and says no more: its layers have settled.
Depth = Annotated[int, Field(ge=1, le=256)]
Natural = Annotated[int, Field(ge=0)]

# Beyond these squares and ratios of a kernel's parameters leave float64.
LEAST, LARGEST = 1e-30, 1e30


def reachable(value: float) -> float:
    """Refuse a number whose square or inverse leaves float64."""
    if not LEAST <= value <= LARGEST:
        raise PydanticCustomError("reach", f"input should be from {LEAST:g} to {LARGEST:g}")
    return value


Reachable = Annotated[Positive, AfterValidator(reachable)]
NotNegative = Annotated[
    float,
    Field(ge=0.0, allow_inf_nan=False),
    AfterValidator(lambda value: reachable(value) if value else value),
]


@dataclass(frozen=True)
class Names:
    """Marks a setting whose choices come from a table, read whenever they are asked for."""

    listed: Callable[[], dict[str, str]]


def setting(
    default: Any,
    description: str,
    *,
    metavar: str | None = None,
    option: str | None = None,
    unset: str | None = None,
    **bounds: Any,
) -> Any:
    """A field of a settings model.

    Parameters
    ----------
    default
        Its only home; ``...`` for none.
    description
        A sentence, or a phrase where the option's name says the rest.
    metavar
        What stands for the value in a help page; by its type where left out.
    option
        The option's name on the command line, where it is not the field's.
    unset
        In words, what happens where the default is None or empty.
    bounds
        As pydantic's ``Field`` takes them.
    """
    shown = {"metavar": metavar, "option": option, "unset": unset}
    extra: dict[str, Any] = {name: text for name, text in shown.items() if text is not None}
    return Field(default, description=description, json_schema_extra=extra or None, **bounds)


@dataclass(frozen=True)
class Described:
    """A setting as people meet it.

    Attributes
    ----------
    name, option
        In Python, and on the command line.
    kind
        ``int``, ``float``, ``bool`` or ``str``, ``tuple`` for several.
    entry, items
        Of a tuple: the kind of each, and how many, or None for any number.
    default, required, shown_default
        The value, whether there is none, and what to say of it; None for nothing.
    choices
        Where only these are allowed: each with what it stands for, or nothing.
    text
        What it means, and which kernels it belongs to.
    """

    name: str
    option: str
    metavar: str
    kind: type
    entry: type | None
    items: int | None
    default: Any
    required: bool
    shown_default: str | None
    choices: dict[str, str]
    text: str

    @property
    def typed(self) -> str:
        """The option that changes it: that of a setting which is on turns it off."""
        return f"--no-{self.option[2:]}" if self.default is True else self.option


METAVARS: dict[type, str] = {int: "COUNT", float: "NUMBER", str: "NAME", tuple: "LIST"}


def default_of(model: type[BaseModel], name: str) -> Any:
    """A setting's default, where a model cannot be built without what it requires."""
    return model.model_fields[name].default


def described(model: type[BaseModel], name: str) -> Described:
    """What a settings model says of one of its settings."""
    field = model.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind, entry, items = _kind(field.annotation)
    default = None if field.is_required() else field.default
    return Described(
        name=name,
        option=str(extra.get("option", f"--{name.replace('_', '-')}")),
        metavar=str(extra.get("metavar", METAVARS.get(kind, "VALUE"))),
        kind=kind,
        entry=entry,
        items=items,
        default=default,
        required=field.is_required(),
        shown_default=_shown(name, default, extra.get("unset")),
        choices=_choices(field),
        text=_text(name, field),
    )


def _text(name: str, field: FieldInfo) -> str:
    """A description with what comes from the table: the kernels, or those it belongs to."""
    text, owners = field.description or "", list(having(name))
    if owners:
        return f"{text.removesuffix('.')} ({_joined(owners, 'and')} only)."
    if any(isinstance(mark, Names) for mark in field.metadata):
        listed = [f"{choice} ({words})" for choice, words in _choices(field).items()]
        return f"{text.removesuffix('.')}: {_joined(listed, 'or')}."
    return text


def _shown(name: str, default: Any, unset: Any) -> str | None:
    if default is not None and default != ():
        return in_text(default)
    own = {kernel: entry.defaults()[name] for kernel, entry in having(name).items()}
    values = set(own.values()) - {None}
    if len(values) == 1:
        return in_text(values.pop())
    if values:
        return ", ".join(f"{in_text(value)} for {kernel}" for kernel, value in own.items())
    return None if unset is None else str(unset)


def in_text(value: Any) -> str:
    """A value as it is written on the command line: 1 for 1.0, commas between several."""
    if isinstance(value, tuple):
        return ",".join(in_text(entry) for entry in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _joined(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _choices(field: FieldInfo) -> dict[str, str]:
    for mark in field.metadata:
        if isinstance(mark, Names):
            return mark.listed()
    inner = _without_none(field.annotation)
    return dict.fromkeys(get_args(inner), "") if get_origin(inner) is Literal else {}


def _kind(annotation: Any) -> tuple[type, type | None, int | None]:
    inner = _without_none(annotation)
    if get_origin(inner) is tuple:
        entries = get_args(inner)
        return tuple, _without_none(entries[0]), None if entries[-1] is ... else len(entries)
    # A number or a word, such as the noise: read as text, and told apart by the model.
    return (inner if inner in (int, float, bool, str) else str), None, None


def _without_none(annotation: Any) -> Any:
    """The type itself, out of ``Annotated`` and of a union with None."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        some = [part for part in get_args(annotation) if part is not type(None)]
        return _without_none(some[0]) if len(some) == 1 else annotation
    return annotation


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], /, **values: Any) -> Model:
    """Build settings, turning the first problem into one sentence; None means the default.

    Examples
    --------
    >>> from leakscope.settings import AuditSettings
    >>> from leakscope.settings.setting import validated
    >>> validated(AuditSettings, noise_variance=None).noise_variance
    0.01
    >>> validated(AuditSettings, noise_variance=-1.0)
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: noise_variance: input should be greater than 0, but it is -1.0.
    """
    given = {name: value for name, value in values.items() if value is not None}
    try:
        return model(**given)
    except ValidationError as error:
        path = error.errors()[0]["loc"]
        if error.errors()[0]["type"] == "extra_forbidden" and len(path) == 1:
            raise _unknown(str(path[0]), model) from None
        raise InputError(
            f"{first_problem(error)}.", option=str(path[0]) if path else None
        ) from None


def _unknown(name: str, model: type[BaseModel]) -> InputError:
    """What is said of a setting that there is not: the nearest one, and all of them."""
    near = get_close_matches(name, model.model_fields, 1)
    meant = f"; did you mean {near[0]}?" if near else "."
    told = ", ".join(model.model_fields)
    return InputError(f"there is no setting {name}{meant} There are {told}.", option=name)


def first_problem(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as a clause without a full stop."""
    problem = error.errors()[0]
    path = list(problem["loc"])
    last = path.pop() if path and isinstance(path[-1], int) else None
    where = ".".join(str(part) for part in path) or "the whole"
    if last is not None:
        where += f", entry {last} (from 0)"
    message = problem["msg"][:1].lower() + problem["msg"][1:]
    value = problem.get("input")
    if problem["type"] == "missing" or isinstance(value, (dict, list, bytes)):
        return f"{where}: {message}"
    text = repr(value)
    return f"{where}: {message}, but it is {text if len(text) <= 80 else text[:80] + '…'}"


def key_values(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """``C=0.1`` and the like by key; what is given again has all its texts."""
    found: dict[str, list[str]] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise InputError(f"{option} needs a key and a value, KEY=VALUE, but it is {text!r}.")
        found.setdefault(key.strip(), []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}
