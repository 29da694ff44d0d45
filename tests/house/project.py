"""Where the project's own files are, and how its documentation's examples are read and run."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "leakscope"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")])


def project_files() -> list[Path]:
    """Files that are, or would be, committed; where this is not a checkout, those that look so."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0 and listing.stdout:
        names = listing.stdout.decode().split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    skipped = {"build", "dist", "site", "leakscope-runs", "__pycache__", "leakscope.egg-info"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not skipped & set(path.parts)
        and not any(p.startswith(".") and p != ".ci" for p in path.relative_to(ROOT).parts[:-1])
    ]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the word after it, its text and its line."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    found = []
    pattern = re.compile(r"^```(\w+)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    text = page.read_text(encoding="utf-8")
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], match[2].strip(), match[3], line))
    return found


def console_examples(block: Block) -> list[tuple[str, str]]:
    """Commands of a console block, each with the output written below it."""
    pairs: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs:
            command, output = pairs[-1]
            pairs[-1] = (command, f"{output}{line}\n")
    return pairs


def run_command(command: str) -> tuple[int, str]:
    """Run one ``leakscope ...`` command in this process; its status and all that it printed."""
    from leakscope.cli import main

    words = shlex.split(command)
    assert words[0] == "leakscope", f"only leakscope commands are run: {command}"
    if words[1:2] == ["serve"] and "--help" not in words:
        return _started_and_interrupted(words[1:])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = main(words[1:])
    return status, printed.getvalue()


def _started_and_interrupted(words: list[str]) -> tuple[int, str]:
    """A server in a process of its own: Ctrl-C once it says that it runs."""
    printed = ""
    with subprocess.Popen(
        [sys.executable, "-m", "leakscope", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BROWSER": "true"},
    ) as process:
        assert process.stdout is not None
        # A server that does not stop fails the test and does not hold it up.
        patience = threading.Timer(900.0, process.kill)
        patience.start()
        for line in process.stdout:
            printed += line
            if line.startswith("Press Ctrl-C"):
                process.send_signal(signal.SIGINT)
        patience.cancel()
    return process.returncode, printed


# Stands for an ellipsis in a pattern; no output holds it.
ANYTHING = "\0"


class RoundedOutput(doctest.OutputChecker):
    """Doctest's comparison, but a number may differ by one in its last digit.

    Two machines do not round alike: 0.19055 is printed as 0.1905 by one and as 0.1906 by the other.
    """

    NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?(?![\w.]*\w)")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether the two agree."""
        if super().check_output(want, got, optionflags):
            return True
        written = [Decimal(number) for number in self.NUMBER.findall(want)]
        if not written:
            return False
        # Each piece is taken where it first comes, for good: to try all places takes for ever.
        first, *others = "".join(self._parts(want, optionflags)).split(ANYTHING)
        last = [f".*?{others.pop()}"] if others else []
        pattern = "".join([first, *(f"(?>.*?{piece})" for piece in others), *last])
        found = re.fullmatch(pattern, got, flags=re.DOTALL)
        return found is not None and all(
            abs(Decimal(number) - there) <= Decimal((0, (1,), int(there.as_tuple().exponent)))
            for number, there in zip(found.groups(), written, strict=True)
        )

    def _parts(self, want: str, optionflags: int) -> list[str]:
        """``want`` as pieces of a pattern, with a group for each number."""
        parts = []
        free = r"\.\.\." if optionflags & doctest.ELLIPSIS else r"(?!)"
        for word in re.split(rf"({self.NUMBER.pattern}|{free}|\s+)", want):
            if self.NUMBER.fullmatch(word):
                parts.append(f"({self.NUMBER.pattern})")
            elif word == "..." and optionflags & doctest.ELLIPSIS:
                parts.append(ANYTHING)
            elif word.isspace() and optionflags & doctest.NORMALIZE_WHITESPACE:
                parts.append(r"\s+")
            else:
                parts.append(re.escape(word))
        return parts


def same_output(written: str, got: str) -> bool:
    """Whether an example's output is right; ``...`` stands for anything, as in a doctest."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    # Of two runs that end in one second the later one has a number behind its name.
    got = re.sub(r"^(Run directory: .*-audit-\w+)-\d+$", r"\1", got, flags=re.MULTILINE)
    return RoundedOutput().check_output(written, got, flags)
