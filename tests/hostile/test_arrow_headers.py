"""Any byte of an Arrow file set to anything: a header is read or refused, never an odd error."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from malformed_tables import arrow_file, arrow_stream, feather, good_table

from leakscope.data.arrow_tables import arrow_claims


@pytest.mark.parametrize("made", [arrow_file, arrow_stream, feather])
def test_a_changed_byte_is_read_or_refused(made, tmp_path: Path) -> None:
    whole, file = made(good_table()), tmp_path / "a.arrow"
    read = refused = 0
    for place in range(len(whole)):
        for value in (0, 1, 127, 128, 255):
            file.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                arrow_claims(file)
                read += 1
            except (ValueError, struct.error):
                refused += 1
    assert read > 0
    assert refused > 0
