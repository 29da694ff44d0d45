"""A test that is skipped for want of a component is told of, and in CI it is a failure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from project import ROOT

SKIPPED = """
import pytest

@pytest.mark.skipif(True, reason="no chromium on this machine")
def test_page():
    pass

def test_group():
    pytest.skip("no control group can be made here")

def test_network():
    pytest.importorskip("torch_that_nobody_has")

@pytest.mark.xfail(reason="chromium does this wrongly", strict=True)
def test_known():
    assert False
"""


def run_skipped(folder: Path, require_all: str) -> tuple[int, str]:
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "test_skipped.py").write_text(SKIPPED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env={**os.environ, "LEAKSCOPE_REQUIRE_ALL": require_all},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_user_s_run_says_in_one_line_what_was_skipped(tmp_path: Path) -> None:
    status, said = run_skipped(tmp_path, "")
    assert status == 0
    lines = [line for line in said.splitlines() if line.startswith("Skipped:")]
    assert len(lines) == 1
    assert "1 module or test (to run: apt-get install chromium)" in lines[0]
    assert "(to run: pip install torch" in lines[0]
    assert "1 module or test that this platform cannot run" in lines[0]


def test_in_ci_it_is_a_failure(tmp_path: Path) -> None:
    status, said = run_skipped(tmp_path, "1")
    assert status == 1
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in said
    assert "LEAKSCOPE_REQUIRE_ALL is set, and no chromium on this machine" in said


def test_ci_runs_the_readme_s_command_and_requires_all() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    command = re.search(r"^(make test)\b", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command is not None
    assert f"LEAKSCOPE_REQUIRE_ALL=1 exec {command[1]}\n" in script


# Skips that no installation removes; whoever adds one says here what the platform lacks.
PLATFORM = (
    "this user or folder may not hold a device",
    "this user may not make a device",
    "these tests run under nohup, which a server rightly inherits",
    "no control group can be made here",
    "no file system of our own can be mounted here",
    "the peak cannot be reset here",
)


def test_no_skip_is_of_an_unknown_kind() -> None:
    reasons = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            reasons |= set(re.findall(r"pytest\.skip\(\s*f?\"([^\"]*)\"", text))
            reasons |= set(re.findall(r"skipif\([^)]*reason=f?\"([^\"]*)\"", text))
    assert {reason for reason in reasons if "chromium" not in reason.lower()} <= set(PLATFORM)
