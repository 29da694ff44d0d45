"""Every malformed input there is a case for."""

from __future__ import annotations

import malformed_archives
import malformed_documents
import malformed_tables
from malformed_case import Case


def malformed() -> list[Case]:
    """The cases, each name once."""
    found = [
        *malformed_tables.cases(),
        *malformed_archives.cases(),
        *malformed_documents.cases(),
    ]
    names = [case.name for case in found]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return found
