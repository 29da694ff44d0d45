"""How a page is put together: its template, its charts and scripts, and its words.

jinja2 escapes what stands between tags.  Inside ``<script>`` the browser looks for ``</script``
and ``<!--`` before it looks at anything else, so JSON and JavaScript need their own care.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pydantic import BaseModel

from leakscope.data.files import require_new_file
from leakscope.errors import InputError, required
from leakscope.results.columns import COLUMNS, text_with_ends
from leakscope.results.decision import NOT_STATED
from leakscope.results.document import write_private
from leakscope.results.shown import certain

# Unicode's bidirectional controls: an id must not turn itself, or the sentence it stands in, round.
TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")

# Ids are shown whole up to here; records.csv has all of every one.
LONGEST_ID = 120

HOLDS = {True: "yes", False: "no", None: "cannot tell"}

# Every word that a page may use, explained once; the page has those that it uses.
GLOSSARY: Mapping[str, str] = {
    "record": "A row of the training data.",
    "group": "The records that leave together, such as those of one person.",
    "member, nonmember": "The record was, or was not, used in training. A test that says “member” "
    "of a nonmember is a false positive.",
    "law": "The probability distribution of what an attacker sees, over all that is random or not "
    "known about training. Each record has two: with it in the training set and without it.",
    "advantage": "The best test’s true-positive rate minus its false-positive rate: 0 is guessing, "
    "1 is certainty.",
    "TPR at an FPR": "The share of members that the best test finds when it accuses this share "
    "of nonmembers. It matters to an attacker who must be sure.",
    "AUC": "The area under the ROC of the best test: 0.5 is guessing, 1 is certainty.",
    "ROC": "The true-positive rate of the best test against its false-positive rate. The "
    "logarithmic one shows attackers who accuse rarely but are nearly always right.",
    "KL": "The Kullback–Leibler divergence of the law without the record from the law with it, in "
    "nats; it goes on growing where the advantage is close to 1.",
    "from label, from features": "The two parts of the KL: the shift in mean, which depends on the "
    "record’s label, and the drop in variance, which depends on its features only. A large second "
    "part means that the record stands alone.",
    "shift": "How far the record’s own presence moves its score on average, in standard deviations "
    "of the score over training sets without it.",
    "noise variance": "How random training is assumed to be, in squared units of the target as "
    "used. It sets the level of every number; the ranks depend on it far less.",
    "range": "The best and the worst rank of a record as the noise variance is swept; “kernels”, "
    "as the kernel is changed.",
    "kernel": "The kind of function that the model is assumed to prefer: smooth, rough, straight "
    "lines, or those of very wide networks.",
    "label off": "How far a label lies from what the other records predict, in standard "
    "deviations of that prediction. Wrong labels have large values.",
    "leverage": "How much the model’s answer at a record follows the record’s own label, from 0 to "
    "1.",
    "confirmed": "A check was made for this very record and confirmed its numbers; the page names "
    "the check. A record that was not checked is not confirmed.",
    "similarity": "The correlation of two records, by the model’s kernel or, where it has none, of "
    "their pixels: 1 is the same, 0 unrelated.",
}


# A title has so many signs of a model's name.
LONGEST_TITLE = 60


def short_name(name: str) -> str:
    """A model's name for a title: of steps the last, and the beginning of what is long."""
    if len(name) <= LONGEST_TITLE:
        return name
    last = f"… → {name.rpartition(' → ')[2]}" if " → " in name else name
    return last if len(last) <= LONGEST_TITLE else f"{last[:LONGEST_TITLE]}…"


def without_folders(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the names of files and without the folders that they are in."""

    def shown(value: Any) -> Any:
        if isinstance(value, str) and any(p(value).is_absolute() for p in _PATHS):
            return PureWindowsPath(value).name
        return value

    return {name: shown(value) for name, value in values.items()}


_PATHS = (PurePosixPath, PureWindowsPath)


def words_used(texts: Iterable[str]) -> list[tuple[str, str]]:
    """The words of the glossary that stand in these texts."""
    said = " ".join(texts)
    return [
        (word, meaning)
        for word, meaning in GLOSSARY.items()
        if any(
            re.search(rf"\b{re.escape(one)}", said, re.IGNORECASE)
            for one in word.replace("TPR at an FPR", "TPR").split(", ")
        )
    ]


def in_order(text: str) -> str:
    """Text without the signs that turn the direction of what follows; U+FFFD in their places."""
    return text.translate(TURNING)


def shown_id(record_id: int | str) -> str:
    """An id as text that reads as it is written, cut where it is very long."""
    text = in_order(str(record_id))
    return text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"


def rendered(
    name: str,
    *,
    charts: Mapping[str, Any] | None = None,
    records: Mapping[str, list[Any]] | None = None,
    **values: Any,
) -> str:
    """A page from its template; without charts it has no script."""
    scripts = () if charts is None else (chart_library(), part("report.js"))
    page: str = template(name).render(
        drawn=charts or {},
        data=script_json({"charts": charts, "records": records}),
        style=part("report.css"),
        scripts=scripts,
        digests=" ".join(map(script_digest, scripts)) or "'none'",
        **values,
    )
    # A lone surrogate in an id cannot be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def require_report_path(path: Path) -> None:
    """Refuse, before any work is done, a name that is no page or cannot be written."""
    if path.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"{path} does not end in .html; a report is an HTML file.")
    require_new_file(path, "a report needs a file name")


def write_page(path: str | Path, page: str) -> Path:
    """Write a page, mode 0600, whole or not at all; where it was written."""
    require_report_path(Path(path))
    write_private(Path(path), page)
    return Path(path)


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
    environment.filters["stated"] = lambda value: NOT_STATED if value is None else number(value)
    environment.filters["fraction"] = fraction
    environment.filters["with_ends"] = with_ends
    environment.filters["short_name"] = short_name
    environment.filters["share"] = lambda value: "–" if value is None else f"{value:.0%}"
    return environment.get_template(name)


def with_ends(row: BaseModel, name: str) -> str:
    """A number of a record as the audit's table has it, with the ends of its interval."""
    values = row.model_dump()
    return NOT_STATED if values[name] is None else text_with_ends(COLUMNS[name], values)


def fraction(value: float | None) -> str:
    """Four digits; what would round to 1 is not certainty, only beyond them."""
    return "–" if value is None else certain(value)


def number(value: float | None) -> str:
    """Four significant digits, or a dash."""
    return "–" if value is None else f"{value:.4g}"


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever strings it holds.

    Examples
    --------
    >>> from leakscope.reporting.pages import script_json
    >>> print(script_json({"id": "</script><!-- & \\u2028"}))
    {"id":"\\u003c/script\\u003e\\u003c!-- \\u0026 \\u2028"}
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script_digest(source: str) -> str:
    """How a content security policy names a script: nothing else on the page may run."""
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, in a scope of their own.

    An installed package carries them (setup.py); a bare checkout takes them from vl-convert.
    """
    packed = resources.files("leakscope.reporting").joinpath("templates", "vega.js.gz")
    if packed.is_file():
        bundle = gzip.decompress(packed.read_bytes()).decode("utf-8")
    else:
        bundle = required("vl_convert", "A page with charts").javascript_bundle()
    # ``</script`` and ``<!--`` occur in strings and regular expressions only, where a backslash
    # before the sign changes nothing.
    scoped = f"(() => {{{bundle}\n}})();"
    return re.sub(r"<(/script|!--)", r"<\\\1", scoped, flags=re.IGNORECASE)


def png_address(content: bytes) -> str:
    """A picture as an address that needs no network."""
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")


def _in_markdown(value: Any) -> Any:
    """A text on one line that Markdown shows as it is: no HTML, no link or picture, no cell's end.

    A category of the data may be written as a picture that a reader's program would fetch.
    """
    if not isinstance(value, str):
        return value
    line = " ".join(in_order(value).split()).replace("<", "&lt;")
    return re.sub(r"([\\`*|\[\]])", r"\\\1", line)


def _finalised(value: Any) -> Any:
    """Every text that a page is given; what is already HTML is of another type."""
    return in_order(value) if type(value) is str else value
