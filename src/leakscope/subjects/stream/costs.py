"""What a streamed audit would cost, before it is paid, and whether there is another way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leakscope._numerics.cores import usable_cores
from leakscope._numerics.memory import HEADROOM_BYTES, available_memory, format_bytes
from leakscope.data.files import is_folder, is_there
from leakscope.running.parts import duration
from leakscope.settings.audit import ModelSettings
from leakscope.subjects.fit.subject import BYTES_PER_RECORD as FIT_BYTES_PER_RECORD
from leakscope.subjects.fit.subject import COPIES as FIT_COPIES
from leakscope.subjects.stream.fits import EXPECTED
from leakscope.subjects.stream.parts import SUFFIX, file_pieces, record_files
from leakscope.subjects.stream.passes import CELL_RECORDS, stream_bytes

# Of a fitted model, of one core: per record of a pass, per number of it and per product of two; and
# per record what its laws and their measures take once (docs/benchmarks/scaling.md).
FIT_SECONDS = {"ridge": 0.3e-6, "logistic": 0.8e-6}
FIT_PER_NUMBER = 20e-9
FIT_PER_PRODUCT = 1e-9
SECONDS_OF_LAWS = 10e-6

# What the libraries take.
LIBRARY_BYTES = 200_000_000


@dataclass(frozen=True)
class StreamCost:
    """The size of what is to be audited, and what that costs.

    Attributes
    ----------
    records, columns, file_bytes
        As the files say.
    several
        Whether they are several files, which only streaming reads.

    """

    records: int
    columns: int
    file_bytes: int
    several: bool

    def too_large(self) -> bool:
        """Whether an audit in memory would not fit, or cannot read these files."""
        available = available_memory()
        needed = self.records * (FIT_BYTES_PER_RECORD + 8 * FIT_COPIES * self.columns)
        return self.several or (available is not None and needed > available - HEADROOM_BYTES)

    def sentence(self, chosen: ModelSettings, workers: int | None = None) -> str:
        """What is about to be done, what it takes, and what is given up; without workers, here."""
        here, workers = workers is None, workers or usable_cores()
        kind = "logistic" if chosen.named == "logistic" else "ridge"
        given = chosen.C is not None or chosen.alpha is not None or chosen.file is not None
        passes = EXPECTED[kind][not given]
        width = self.columns
        each = FIT_SECONDS[kind] + width * (FIT_PER_NUMBER + width * FIT_PER_PRODUCT)
        seconds = self.records * (passes * each + SECONDS_OF_LAWS) / workers
        cells = -(-self.records // CELL_RECORDS)
        held = stream_bytes(width, cells, workers if here else 1)
        memory = format_bytes(LIBRARY_BYTES + held)
        return (
            f"streaming {self.records:,} records of {self.columns} columns "
            f"({format_bytes(self.file_bytes)}): about {passes} passes in about {memory} a "
            f"process, about {duration(seconds)} on {workers} core{'s' if workers > 1 else ''} "
            f"like those it was measured on; cells of {CELL_RECORDS:,} records are kept. What "
            "would lower it, and why records are exposed, are left out."
        )


def stream_cost(source: str | Path) -> StreamCost | None:
    """The cost of streaming a source; None where it is nothing that can be streamed."""
    place = Path(source)
    if not is_there(place):
        return None
    files = [file for file in record_files(place) if file.suffix.lower() == SUFFIX]
    if not files:
        return None
    found = [file_pieces(file) for file in files]
    return StreamCost(
        records=sum(sum(pieces) for _, pieces in found),
        columns=len(found[0][0].names),
        file_bytes=sum(file.stat().st_size for file in files),
        several=is_folder(place),
    )
