"""Notebooks without Jupyter: run them, keep their outputs, and show them as pages of the site.

``python docs/notebooks/pages.py`` runs every notebook here and stores what its cells show.
mkdocs loads this file as a hook and makes a page of each; ``tests/house/test_notebooks.py`` runs
them and compares the words of what is stored.  Jupyter itself would bring forty packages for that.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import os
import re
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run from top to bottom in an empty folder."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    number += 1
                    outputs = _outputs("".join(cell["source"]), scope, number)
                    cell = {**cell, "execution_count": number, "outputs": outputs}
                cells.append(cell)
        finally:
            os.chdir(before)
    return {**notebook, "cells": cells}


def _outputs(source: str, scope: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(tree, f"cell {number}", "exec"), scope)
            if last is not None and not source.rstrip().endswith(";"):
                expression = ast.Expression(last.value)
                shown = eval(compile(expression, f"cell {number}", "eval"), scope)
        except Exception as error:
            raise RuntimeError(f"cell {number}:\n{source}\n{traceback.format_exc()}") from error
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append(
            {"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}
        )
    if shown is not None:
        data = {name: _lines(text) for name, text in _shown(shown).items()}
        found.append(
            {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": data,
            }
        )
    return found


def _shown(value: Any) -> dict[str, str]:
    """By kind of content, as Jupyter asks for it; an Altair chart as a picture."""
    if type(value).__module__.startswith("altair"):
        import vl_convert

        # Not its repr, which is the whole description.
        picture = vl_convert.vegalite_to_svg(value.to_json())
        return {"text/plain": "alt.Chart(...)", "image/svg+xml": picture}
    found = {"text/plain": repr(value)}
    as_html = getattr(value, "_repr_html_", None)
    if as_html is not None and (text := as_html()) is not None:
        found["text/html"] = text
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def as_markdown(notebook: dict[str, Any], name: str) -> str:
    """A page of the site: prose, code, and what each cell showed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            if len(parts) == 1:
                parts.append(f"[Download this notebook]({name}.ipynb){{ download }}")
            continue
        parts.append(f"```py\n{source}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text'])}```")
                continue
            data = {kind: "".join(text) for kind, text in output["data"].items()}
            if "image/svg+xml" in data:
                parts.append(f'<div class="notebook-output">{_inline(data["image/svg+xml"])}</div>')
            elif "text/html" in data:
                parts.append(f'<div class="notebook-output">{_inline(data["text/html"])}</div>')
            else:
                parts.append(
                    f'<pre class="notebook-output">{html.escape(data["text/plain"])}</pre>'
                )
    return "\n\n".join(parts) + "\n"


def _inline(text: str) -> str:
    """HTML on one line: Markdown ends a piece of it at an empty one."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def read(path: Path) -> dict[str, Any]:
    """A notebook file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs: links as the site has them, to a notebook's page, not to its file."""
    if page.file.src_uri == "changes.md":
        # The changelog stands outside of the pages, and links from there.
        text = (FOLDER.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
        markdown = text.replace("](docs/", "](")
    return re.sub(r"(notebooks/\w+)\.ipynb\)", r"\1.md)", markdown)


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs: a page for each notebook."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        content = as_markdown(read(path), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        text = json.dumps(executed(read(path)), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path.name)
