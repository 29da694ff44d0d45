"""The templates of pages, and how numbers and texts stand in them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from leakscope.reporting.embedding import in_order
from leakscope.results import NOT_STATED, certain


def part(name: str) -> str:
    """The text of a file among the templates."""
    folder = resources.files("leakscope.reporting") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Any:
    """A page's template: it escapes every text, and refuses a name it was not given."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(part),
        autoescape=not name.endswith(".md"),
        undefined=jinja2.StrictUndefined,
        finalize=_in_markdown if name.endswith(".md") else _finalised,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["stated"] = stated_number
    environment.filters["fraction"] = fraction
    environment.filters["share"] = lambda value: "–" if value is None else f"{value:.0%}"
    return environment.get_template(name)


def fraction(value: float | None) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them.

    Examples
    --------
    >>> from leakscope.reporting.templating import fraction
    >>> fraction(0.25), fraction(0.999999), fraction(None)
    ('0.2500', '>0.9999', '–')
    """
    return "–" if value is None else certain(value)


def number(value: float | None) -> str:
    """Four significant digits, or a dash."""
    return "–" if value is None else f"{value:.4g}"


def stated_number(value: float | None) -> str:
    """Four significant digits; what nobody knows is not stated, and never zero."""
    return NOT_STATED if value is None else number(value)


def _in_markdown(value: Any) -> Any:
    """A text on one line that is neither HTML nor the end of a table's cell."""
    if not isinstance(value, str):
        return value
    return " ".join(in_order(value).split()).replace("<", "&lt;").replace("|", "\\|")


def _finalised(value: Any) -> Any:
    """Every text that a page is given; what is already HTML is of another type."""
    return in_order(value) if type(value) is str else value
