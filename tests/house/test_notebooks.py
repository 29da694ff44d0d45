"""The notebooks run from top to bottom, and what is stored in them is what their cells show."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _pages() -> Any:
    spec = importlib.util.spec_from_file_location("notebook_pages", FOLDER / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


pages = _pages()


def words(notebook: dict[str, Any]) -> list[list[tuple[str, str]]]:
    """What each cell shows, without numbers: they, and places on a chart, differ a little."""

    def plain(text: str) -> str:
        text = re.sub(r"<svg.*?</svg>", "(chart)", text, flags=re.DOTALL)
        text = re.sub(r"[-+]?\d[\d.,e%-]*", "#", text)
        # So many records may become one.
        return re.sub(r"\s+", " ", re.sub(r"\b(is|are|record|records)\b", "", text)).strip()

    return [
        [
            (kind, plain("".join(text)))
            for output in cell["outputs"]
            for kind, text in (output.get("data") or {"stream": output.get("text")}).items()
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_stores(path: Path) -> None:
    stored = pages.read(path)
    assert words(pages.executed(stored)) == words(stored), f"run {FOLDER / 'pages.py'} again"


def test_there_is_one_for_each_person_and_each_begins_with_a_model() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["data_scientist", "researcher", "sign_off"]
    for path in NOTEBOOKS:
        source = "".join(
            "".join(cell["source"]) for cell in pages.read(path)["cells"] if "outputs" in cell
        )
        first = re.search(r"leakscope\.audit\([^)]*", source)
        assert first is not None
        assert "model=" in first[0], path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_of_format_4_and_becomes_a_page(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    page = pages.as_markdown(notebook, path.stem)
    assert page.startswith("# ")
    assert page.count("```py\n") == sum(c["cell_type"] == "code" for c in notebook["cells"])
    assert f"notebooks/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
