"""Phrases that readers stumbled over stay gone from what a user sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project import PAGES, ROOT

# What was said, of which issue 19 has better words.
GONE = (
    r"There the largest advantage",
    r"is the exposed end",
    r"\d+ could not be told",
    r"One row a record",
    r"that is no feature; give it again",
    r"These are offers",
    r"was given up|>Give up<|give one up",
    r"those who know them",
    r"no worse: ",
    r"Whose advantage fell",
    r"asks nothing of any network",
    r"Of nngp",
    r"Its weights fit one to",
    r"no number here counts",
    r"then none has",
    r"More penalty (helps|does not)",
    r"attacks in the table were not run",
    r"Dropping did not converge",
    r"met the target until",
    r"never less exposed than all",
    r"not stated \(computed\)",
)

SOURCES = [
    path
    for folder in ("cli", "settings", "serving", "reporting", "auditing", "comparing",
                   "advising", "attacking", "verifying", "measuring", "results", "deciding")
    for path in sorted((ROOT / "src" / "leakscope" / folder).rglob("*"))
    if path.suffix in (".py", ".html", ".js")
]  # fmt: skip


@pytest.mark.parametrize("phrase", GONE)
def test_a_phrase_is_gone(phrase: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in (*SOURCES, *(Path(page) for page in PAGES))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(phrase, line)
    ]
    assert not found, "\n".join(found)
