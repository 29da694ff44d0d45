from __future__ import annotations

import subprocess
import sys

import pytest

import leakscope
from leakscope import cli
from leakscope.cli import main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"leakscope {leakscope.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--nope"], ["audit", "--nope"], ["nope"], ["audit", "a", "b"]]
)
def test_usage_errors_are_status_two(capsys, arguments):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: leakscope" in err
    assert "Traceback" not in err


def test_interrupted(monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupt)
    assert main([]) == 130


def test_the_unforeseen_keeps_its_traceback(monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main([])


def test_module_and_broken_pipe(tmp_path):
    """``python -m leakscope ... | head -1`` ends quietly."""
    program = subprocess.Popen(
        [sys.executable, "-m", "leakscope", "audit", "--example", "diabetes", "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert program.stdout is not None
    assert program.stderr is not None
    program.stdout.readline()
    program.stdout.close()
    errors = program.stderr.read().decode()
    program.stderr.close()
    program.wait(timeout=600)
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
