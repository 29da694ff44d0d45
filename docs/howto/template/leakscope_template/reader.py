"""A reader of files of your own form: records are blocks of lines ``name: value``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from leakscope import InputError


def read_blocks(path: Path) -> pd.DataFrame:
    """One row for each block; blank lines stand between blocks."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    records = []
    for row, block in enumerate(blocks):
        pairs = [line.partition(":") for line in block.splitlines()]
        wrong = [name for name, colon, _ in pairs if not colon]
        if wrong:
            raise InputError(f"{path}: record {row} has a line without a colon, {wrong[0]!r}.")
        records.append({name.strip(): value.strip() for name, _, value in pairs})
    return pd.DataFrame(records).apply(pd.to_numeric)
