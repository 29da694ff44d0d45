"""Names that no file can have, wherever a name is taken; and names that are as long as may be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import InputError
from leakscope.cli import main
from papers import lood_images, reproduce

LONG = ["a" * 5000, "x/" * 3000 + "y"]
MEASURE = ("measure", "--member", "normal:0,1", "--nonmember", "normal:0,2")
PLAN = ("plan", "linear", "--n", "10", "--p", "20", "--dim", "40")
LINES = {
    "audit": ("audit", "NAME"),
    "audit --run-dir": ("audit", "--example", "iris", "--run-dir", "NAME"),
    "audit --json": ("audit", "--example", "iris", "--json", "NAME"),
    "measure --json": (*MEASURE, "--json", "NAME"),
    "plan --json": (*PLAN, "--json", "NAME"),
    "verify": ("verify", "NAME"),
    "verify, the data": ("verify", "run", "--data", "NAME.csv"),
    "report": ("report", "NAME"),
    "report --output": ("report", "run", "--output", "NAME.html"),
    "compare": ("compare", "NAME", "run"),
    "compare, the second": ("compare", "run", "NAME"),
    "compare --html": ("compare", "run", "run", "--html", "NAME.html"),
    "advise": ("advise", "NAME", "--target-advantage", "0.2"),
    "attack reconstruct": ("attack", "reconstruct", "NAME.json"),
    "reproduce --output": ("reproduce", "lood-7", "--output", "NAME"),
    "reproduce --data": ("reproduce", "lood-7", "--data", "NAME"),
    "reproduce --json": ("reproduce", "lood-7", "--json", "NAME"),
}


@pytest.fixture
def audited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = np.array([[0.0], [0.1], [3.0]]), np.array([1.0, 1.0, -1.0])
    leakscope.audit(X, y, kernel="rbf").write(tmp_path / "run")
    return tmp_path


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", LONG, ids=["one name", "many folders"])
def test_a_name_that_no_file_has(line, name, audited, capsys):
    assert main([word.replace("NAME", name) for word in LINES[line]]) == 2
    error = capsys.readouterr().err
    assert error.startswith("leakscope: ")
    assert error.rstrip().endswith(".")
    assert error.count("\n") == 1
    assert [file.name for file in audited.iterdir()] == ["run"]


@pytest.mark.parametrize("letter", ["a", "ß"])
def test_a_name_as_long_as_may_be_is_written(letter, tmp_path, monkeypatch):
    """What is written beside it while it is not whole has a shorter name."""
    monkeypatch.chdir(tmp_path)
    name = letter * (250 // len(letter.encode()))
    assert main([*MEASURE, "--json", name]) == 0
    assert [file.name for file in tmp_path.iterdir()] == [name]


GREY = np.zeros((4, 32, 32, 3), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": GREY}, "square pictures of 3 colours"),
        ({"X": GREY, "y": np.array(1)}, "square pictures of 3 colours"),
        ({"X": GREY[:, :8], "y": np.arange(4) % 2}, "square pictures of 3 colours"),
        ({"X": GREY.astype(float), "y": np.arange(4) % 2}, "X must hold bytes"),
        ({"X": GREY, "y": np.arange(4)}, "both of 0 and 1"),
        ({"X": GREY, "y": np.zeros(4)}, "both of 0 and 1"),
        (None, "is not an .npz archive"),
    ],
)
def test_pictures_that_are_something_else(arrays, sentence, tmp_path):
    file = tmp_path / lood_images.CIFAR_FILE
    if arrays is None:
        file.write_bytes(b"PK\x03\x04 and no more")
    else:
        np.savez(file, **arrays)
    with pytest.raises(InputError, match=sentence):
        reproduce("lood-1a", data=tmp_path)


def test_the_run_of_a_streamed_audit(tmp_path):
    from leakscope.auditing import audit_streamed

    pd.DataFrame(np.eye(3), columns=["a", "b", "y"]).to_parquet(tmp_path / "records.parquet")
    with pytest.raises(InputError, match="cannot be used"):
        audit_streamed(tmp_path / "records.parquet", target="y", directory=tmp_path / LONG[0])
