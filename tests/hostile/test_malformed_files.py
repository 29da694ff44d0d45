"""Malformed input ends in one clear sentence, exit status 2, and nothing half written."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import typer.main
from malformed_archives import X, Y, archive, npy, npz, png_of
from malformed_case import Case, both, content
from malformed_files import malformed
from malformed_tables import GOOD

from leakscope._numerics import memory
from leakscope.cli import main

CASES = malformed()

# Through a process of its own: one of each kind, and those that could hang or take all memory.
IN_A_PROCESS = (
    "csv: cut inside a quote",
    "csv: an escape sequence in a bad column's name",
    "npy: claims 8 TB",
    "npz: a bomb that claims 800 GB",
    "a pipe called data.csv",
    "data.csv leads to /dev/zero",
    "report: too deep",
)

# What libraries say to programmers, not to users.
FOREIGN = re.compile(
    r"Traceback|allow_pickle|max_header_size|Errno|<class|C error|codec can't|"
    r"numpy\.(?!savez)|pandas\.|pyarrow|pydantic|site-packages|\w+Error\b|Warning\b"
)


@pytest.fixture(autouse=True, scope="module")
def _one_command_tree():
    """typer builds the tree anew in every call; once is enough."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def _as_much_memory_everywhere(monkeypatch):
    """A bomb is one on a large machine too."""
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 10**9)


def files(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.lstat().st_size for p in folder.rglob("*")}


def require_one_sentence(error: str, case: Case) -> None:
    assert error.startswith("leakscope: "), error
    assert error.endswith(".\n"), error
    sentence = error.removesuffix("\n")
    assert not [c for c in sentence if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert len(sentence) < 700
    assert not FOREIGN.search(sentence), sentence
    assert case.named in sentence, sentence


def test_there_are_more_than_two_hundred():
    assert len(CASES) > 200
    assert set(IN_A_PROCESS) <= {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_malformed(case, tmp_path, capsys):
    case.write(tmp_path)
    before = files(tmp_path)
    with contextlib.chdir(tmp_path):
        status = main(list(case.arguments))
    out, error = capsys.readouterr()
    assert status == 2, (status, out, error)
    assert out == ""
    require_one_sentence(error, case)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in IN_A_PROCESS], ids=lambda case: case.name
)
def test_malformed_in_a_process(case, tmp_path):
    case.write(tmp_path)
    before = files(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "leakscope", *case.arguments],
        cwd=tmp_path,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    require_one_sentence(done.stderr.decode(), case)
    assert files(tmp_path) == before


HTML = "<script>alert(1)</script>"
SIGNS = "\x1b[31m\u202ered"
ROWS = "".join(f"{i * 7 % 5},{i * 3 % 4},{i % 3}\n" for i in range(12))
AUDIT = ("audit", "data.csv", "--target", "y", "--run-dir", "run")

# What looks wrong, and is not: it must succeed, and come out escaped.
FINE = [
    Case("HTML in a name", content("data.csv", f"{HTML},b,y\n{ROWS}"), AUDIT),
    Case(
        "HTML as the target's name",
        content("data.csv", f"a,b,{HTML}\n{ROWS}"),
        ("audit", "data.csv", "--target", HTML, "--run-dir", "run"),
    ),
    Case("a name that is missing", content("data.csv", f",b,y\n{ROWS}"), AUDIT),
    Case("signs in a name", content("data.csv", f"{SIGNS},b,y\n{ROWS}"), AUDIT),
    Case(
        "a constant column of signs",
        content("data.csv", f"{SIGNS},b,y\n" + "".join(f"1,{i},{i}\n" for i in range(8))),
        AUDIT,
    ),
    Case(
        "signs in ids",
        content("data.csv", "id,b,y\n" + "".join(f"{SIGNS}{i},{i},{i % 3}\n" for i in range(9))),
        (*AUDIT, "--id", "id"),
    ),
    Case(
        "a newline in ids",
        content("data.csv", "id,b,y\n" + "".join(f'"a\nb{i}",{i},{i % 3}\n' for i in range(9))),
        (*AUDIT, "--id", "id"),
    ),
    Case(
        "HTML in categories",
        content("data.csv", "a,b,y\n" + "".join(f"{HTML}{i % 2},{i},{i % 3}\n" for i in range(9))),
        AUDIT,
    ),
    Case("a mark of order", content("data.csv", "\ufeff" + GOOD), AUDIT),
    Case("lines of old Macs", content("data.csv", GOOD.replace("\n", "\r")), AUDIT),
    Case("lines of Windows", content("data.csv", GOOD.replace("\n", "\r\n")), AUDIT),
    Case("blank lines before the heading", content("data.csv", "\n\n" + GOOD), AUDIT),
    Case("no newline at the end", content("data.csv", GOOD.rstrip()), AUDIT),
    Case(
        "an upper-case suffix",
        content("DATA.CSV", GOOD),
        ("audit", "DATA.CSV", "--target", "y", "--run-dir", "run"),
    ),
    Case("two rows", content("data.csv", "a,y\n1,2\n3,4\n"), AUDIT),
    Case("a constant target", content("data.csv", "a,y\n1,2\n3,2\n4,2\n"), AUDIT),
    Case(
        "a name of 10,000 letters",
        content("data.csv", GOOD.replace("b,", "b" * 10_000 + ",")),
        AUDIT,
    ),
    Case(
        "numbers of 1e150",
        content("data.csv", "a,y\n" + "".join(f"{i}e150,{i % 3}\n" for i in range(8))),
        AUDIT,
    ),
    Case(
        "members without a suffix",
        content("data.npz", archive({"X": npy(X), "y": npy(Y)})),
        ("audit", "data.npz", "--run-dir", "run"),
    ),
    Case(
        "half precision",
        content("data.npz", npz(X=X.astype("f2"), y=Y.astype("f2"))),
        ("audit", "data.npz", "--run-dir", "run"),
    ),
    Case(
        "the other order of bytes",
        content("data.npz", npz(X=X.astype(">f8"), y=Y.astype(">i4"))),
        ("audit", "data.npz", "--run-dir", "run"),
    ),
    Case(
        "order of Fortran",
        content("data.npz", npz(X=X.copy(order="F"), y=Y)),
        ("audit", "data.npz", "--run-dir", "run"),
    ),
    Case(
        "a picture with too few rows, as Pillow and browsers read it",
        both(
            *(
                content(f"pets/{k}/{i}.png", png_of(8, 8, bytes([0, *range(i, i + 8)]) * 8))
                for k, i in (("cat", 1), ("cat", 60), ("dog", 90))
            ),
            content("pets/dog/9.png", png_of(8, 8, b"\0" * 9)),
        ),
        ("audit", "pets", "--run-dir", "run"),
    ),
]


@pytest.mark.parametrize("case", FINE, ids=lambda case: case.name)
def test_fine(case, tmp_path, capsys):
    case.write(tmp_path)
    with contextlib.chdir(tmp_path):
        assert main([*case.arguments, "--explain"]) == 0
        out, error = capsys.readouterr()
        if "HTML" in case.name or "signs" in case.name:
            assert main(["report", "run"]) == 0
            page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
            assert HTML not in page
            assert "\u202e" not in page
    for text in (out, error):
        shown = text.replace("\n", "")
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs")], repr(text)


def test_a_file_name_that_is_no_text(tmp_path, capsys):
    name = os.fsdecode(b"data\xff.csv")
    (tmp_path / name).write_text(GOOD)
    with contextlib.chdir(tmp_path):
        status = main(["audit", name, "--target", "y"])
    assert status == 2
    require_one_sentence(capsys.readouterr().err, Case("", lambda folder: None, (), "data"))
    assert [p.name for p in tmp_path.iterdir()] == [name]
