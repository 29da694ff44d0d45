"""The pages' text: jinja2 with everything escaped, and the files beside them by a fixed list."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from leakscope.reporting import in_order

STATIC: dict[str, str] = {
    "web.css": "text/css; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "job.js": "text/javascript; charset=utf-8",
}

SCRIPT = "text/javascript; charset=utf-8"


def static_file(name: str) -> str | None:
    """The text of a file beside the pages; None for a name that is not on the list."""
    return part(name) if name in STATIC else None


def render(template: str, **values: Any) -> str:
    """A page; every value is escaped."""
    page: str = _environment().get_template(template).render(**values)
    # A lone surrogate in a name cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def part(name: str) -> str:
    """A template's or a script's own text."""
    folder = resources.files("leakscope.serving") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: in_order(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
