"""Reproduced figures on disk: JSON, PNG and CSV files, and a page over all of them."""

from __future__ import annotations

import csv
import io as text_io
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakscope import InputError
from leakscope.data import write_file
from leakscope.results import read_result, to_json
from papers.panels import figure_png
from papers.result import ReproductionDocument

PAGE = "index.md"
PAPERS = {
    "linear": "Overparameterised regression (linear)",
    "relu": "Two-layer ReLU networks (relu)",
    "lasso": "The private LASSO (lasso)",
    "lood": "Leave-one-out distinguishability (lood)",
}
# A verdict on several claims.
MANY = {
    "holds": "hold",
    "holds with the erratum": "hold with the erratum",
    "does not hold": "do not hold",
    "cannot tell": "are inconclusive",
}


def write_reproduction(document: ReproductionDocument, folder: str | Path) -> list[Path]:
    """Write a figure's numbers and pictures into a folder; the files' paths.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from papers import write_reproduction
    >>> from papers import Figure, Made, Panel, reproduce
    >>> panel = Panel("error", pd.DataFrame({"n": [1, 2], "error": [1.0, 0.5]}), x="n", y="error")
    >>> figure = Figure("linear-0", "linear", "Fig. 0", "error", lambda order: Made((panel,), ()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_reproduction(reproduce(figure), folder)]
    ['linear-0.png', 'linear-0-1.csv', 'linear-0.json']
    """
    folder = Path(folder)
    contents: dict[str, bytes] = {}
    if document.panels:
        contents[f"{document.name}.png"] = figure_png(document)
    for number, panel in enumerate(document.panels, start=1):
        stream = text_io.StringIO(newline="")
        writer = csv.writer(stream)
        writer.writerow(panel.columns)
        writer.writerows(panel.rows)
        contents[f"{document.name}-{number}.csv"] = stream.getvalue().encode("utf-8")
    for number, picture in enumerate(document.pictures, start=1):
        contents[f"{document.name}-picture-{number}.png"] = picture.content()
    # Last, because a figure counts as made once its JSON is there.
    contents[f"{document.name}.json"] = (to_json(document) + "\n").encode("utf-8")
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


def read_reproduction(name: str, folder: str | Path) -> ReproductionDocument | None:
    """A figure made before into this folder; None where it was not.

    Examples
    --------
    >>> import tempfile
    >>> from papers import read_reproduction
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_reproduction("linear-0", folder) is None
    True
    """
    path = Path(folder) / f"{name}.json"
    if not os.path.exists(path):
        return None
    document = read_result(path, {"reproduction": ReproductionDocument})
    if not isinstance(document, ReproductionDocument):
        raise InputError(f"{path} is a result of kind {document.kind}, not a reproduced figure.")
    return document


def write_gallery(
    documents: Sequence[ReproductionDocument], folder: str | Path, *, machine: str | None = None
) -> Path:
    """Write ``index.md``: every figure with its picture, claims and verdicts.

    Parameters
    ----------
    documents
        In the order of the page.
    folder
        Where the figures' files are.
    machine
        A sentence on where they were made.

    Examples
    --------
    >>> import tempfile
    >>> from papers import write_gallery
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_gallery([], folder).name
    'index.md'
    """
    path = Path(folder) / PAGE
    write_file(path, gallery_page(documents, machine).encode("utf-8"))
    return path


def gallery_page(documents: Sequence[ReproductionDocument], machine: str | None = None) -> str:
    """The text of the gallery, Markdown, from the documents alone."""
    counts = Counter(claim.verdict for document in documents for claim in document.claims)
    tally = ", ".join(f"{count} {MANY[verdict]}" for verdict, count in counts.most_common())
    sizes = sorted({str(document.settings.get("size")) for document in documents})
    lines = [
        "# The papers' figures, made again",
        "",
        f"{len(documents)} figures at size {' and '.join(sizes) or 'none'}, "
        f"{sum(counts.values())} claims: {tally or 'none'}. Every verdict is computed from the "
        "numbers of the run. Lines are theory, dashed lines formulas as printed, circles "
        "simulation, squares retraining, diamonds values read off the paper's figure.",
        "",
        "Written by `leakscope reproduce`; not edited by hand."
        + (f" {machine}" if machine else ""),
    ]
    for paper, heading in PAPERS.items():
        own = [document for document in documents if document.provenance["paper"] == paper]
        if own:
            lines += ["", f"## {heading}"]
        for document in own:
            lines += _section(document)
    return "\n".join(lines) + "\n"


def _section(document: ReproductionDocument) -> list[str]:
    settings = "; ".join(f"{name} {_value(value)}" for name, value in document.settings.items())
    lines = ["", f"### {document.name}: {document.title}", ""]
    full = " --full" if document.settings.get("size") == "full" else ""
    lines.append(f"{document.provenance['where']}. `leakscope reproduce {document.name}{full}`: ")
    lines[-1] += f"{document.timing['make']:.1f} s; {settings}."
    if document.panels:
        lines += ["", f"![{document.name}]({document.name}.png)"]
    for number, picture in enumerate(document.pictures, start=1):
        lines += ["", f"![{picture.caption}]({document.name}-picture-{number}.png)"]
        lines += ["", f"*{picture.caption}*"]
    if document.claims:
        lines += ["", "| claim | where | verdict | measured |", "|---|---|---|---|"]
    for claim in document.claims:
        verdict = claim.verdict + (f" ({claim.erratum})" if claim.erratum else "")
        cells = (claim.text, claim.where, f"**{verdict}**", claim.measured)
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    for note in document.notes:
        lines += ["", f"Note: {note}"]
    return lines


def _value(value: Any) -> str:
    """A setting for people: numbers to six digits, lists and tables without Python's signs."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name}: {_value(entry)}" for name, entry in value.items()) + ")"
    if isinstance(value, list):
        inner = [
            f"({_value(entry)})" if isinstance(entry, list) else _value(entry) for entry in value
        ]
        return ", ".join(inner)
    return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
