"""What a bare ``pip install leakscope`` can do, and the one sentence for what it cannot.

A process in which no library of an extra can be imported stands for such an installation.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from project import PACKAGE, ROOT
from sklearn.datasets import load_diabetes

from leakscope.errors import EXTRAS, InputError, required

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BROUGHT: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]

# Where an import's name is not the distribution's; h11 comes with uvicorn.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "distributed": "dask",
    "h11": "uvicorn",
    "vl_convert": "vl-convert-python",
}

PROGRAM = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from leakscope.cli import main

answers = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    answers.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


def bare(*commands: list[str], at: Path) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of each command, one after another in a bare installation."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(missing=tuple(EXTRAS)), json.dumps(commands)],
        cwd=at,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(status, out, err) for status, out, err in json.loads(done.stdout.splitlines()[-1])]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file with a text column."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.iloc[:120].assign(sex=np.where(X["sex"].iloc[:120] > 0, "f", "m"), y=y.iloc[:120])
    path: Path = tmp_path_factory.mktemp("bare") / "table.csv"
    X.to_csv(path, index=False)
    return path


def test_the_usual_way_needs_no_extra(table: Path) -> None:
    forest = "sklearn.tree:DecisionTreeRegressor"
    commands = [
        ["audit", "--example", "diabetes", "--run-dir", "default"],
        ["report", "default"],
        ["audit", "table.csv", "--target", "y", "--model", "sklearn.linear_model:Ridge",
         "--run-dir", "own"],
        ["report", "own"],
        ["decide", "own", "--threshold-advantage", "0.99", "--prior", "0.01", "--output", "record"],
        ["advise", "own", "--target-advantage", "0.3"],
        ["verify", "own", "--models", "20"],
        ["erase", "own", "--record", "3"],
        ["audit", "table.csv", "--target", "y", "--secret", "sex", "--run-dir", "secret"],
        ["audit", "table.csv", "--target", "y", "--model", forest, "--models", "6",
         "--run-dir", "trained"],
        ["audit", "table.csv", "--target", "y", "--model", "rbf", "--run-dir", "process"],
        ["compare", "own", "secret"],
    ]  # fmt: skip
    answers = bare(*commands, at=table.parent)
    # decide: 4 where something stands in the way of an approval.
    refused = [
        (command, err)
        for command, (status, _, err) in zip(commands, answers, strict=True)
        if status not in ((0, 4) if command[0] == "decide" else (0,))
    ]
    assert refused == []
    assert "Most exposed" in answers[0][1]
    assert "vegaEmbed" in (table.parent / "own" / "report.html").read_text(encoding="utf-8")
    assert (table.parent / "record" / "decision.html").is_file()


def files(place: Path) -> None:
    """Files and folders that only a library of an extra can read."""
    for name in ("t.parquet", "m.skops", "n.safetensors"):
        (place / name).write_bytes(b"something that is not empty")
    for name in ("cats", "dogs"):
        (place / "pictures" / name).mkdir(parents=True)
        (place / "pictures" / name / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (place / "q.csv").write_text("a\n0.5\n1.5\n", encoding="utf-8")
    (place / "two.csv").write_text("a,b,y\n1,0,1\n0,1,-1\n-1,0,1\n0,-1,-1\n", encoding="utf-8")
    network = {"w": [[1.0, 0.5], [-1.0, 0.2]], "b": [0.1, -0.2], "v": [1.0, -1.0]}
    (place / "n.json").write_text(json.dumps(network), encoding="utf-8")


# Each way to need a library, and the library.
REFUSED = [
    ("audit t.parquet --target y", "pyarrow"),
    ("audit t.parquet --target y", "pyarrow"),
    ("audit pictures", "PIL"),
    ("audit table.csv --target y --model m.skops", "skops"),
    ("audit table.csv --target y --model nngp", "jax"),
    ("audit table.csv --target y --model sklearn.tree:DecisionTreeRegressor "
     "--cluster tcp://127.0.0.1:9",
     "distributed"),
    ("attack query table.csv --target y --record 3", "jax"),
    ("attack membership n.safetensors --queries q.csv", "safetensors"),
    ("plan network table.csv --target y", "jax"),
    ("serve", "starlette"),
]  # fmt: skip


def test_each_missing_extra_is_one_sentence_that_names_it(table: Path, tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "table.csv").write_bytes(table.read_bytes())
    made = ["audit", "table.csv", "--target", "y", "--model", "rbf", "--run-dir", "rbf"]
    _, *answers = bare(made, *(command.split() for command, _ in REFUSED), at=tmp_path)
    for (command, library), (status, out, err) in zip(REFUSED, answers, strict=True):
        name, extra = EXTRAS[library]
        sentence = rf"leakscope: [^.\n]*(\.[a-z]+ [^.\n]*)?needs {name}, which is not installed: "
        assert status == 2, (command, out, err)
        assert re.fullmatch(
            sentence + rf"pip install 'leakscope\[{extra}\]'\.\n", err
        ), (command, err)  # fmt: skip
        assert out == "", command
    # Nothing was begun that is not finished.
    assert [path.name for path in tmp_path.glob("leakscope-runs/*")] == []


@pytest.mark.parametrize("library", EXTRAS)
def test_the_extra_that_is_named_brings_the_library(library: str) -> None:
    _, extra = EXTRAS[library]
    brought = [re.split(r"[\[<>=]", one)[0] for one in BROUGHT[extra]]
    assert DISTRIBUTIONS.get(library, library) in brought


def test_all_is_everything_but_torch() -> None:
    (one,) = BROUGHT["all"]
    named = set(re.fullmatch(r"leakscope\[(.*)\]", one)[1].split(","))  # type: ignore[index]
    assert named == set(BROUGHT) - {"all", "torch", "docs", "test"}
    assert {extra for _, extra in EXTRAS.values()} == named | {"torch"}


def test_a_missing_library_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(InputError, match=r"^It needs Clarabel, .* 'leakscope\[conic\]'\.$"):
        required("clarabel", "It")


def test_a_broken_library_keeps_its_own_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is installed, and lacks something itself, is not said to be missing."""
    (tmp_path / "clarabel.py").write_text("import nothing_of_this_name", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "clarabel", raising=False)
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        required("clarabel", "It")


def test_the_charts_library_is_the_one_that_is_named() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    templates = PACKAGE / "reporting" / "templates"
    named = (templates / "vega.LICENSE").read_text(encoding="utf-8")
    # Another version's bundle is another text.
    if f"vl-convert {vl_convert.__version__} " in named and (templates / "vega.js.gz").is_file():
        carried = gzip.decompress((templates / "vega.js.gz").read_bytes()).decode("utf-8")
        assert carried == vl_convert.javascript_bundle()
