"""One malformed input: what to write, what to run on it, and what the answer must name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Write = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A command that must end in one sentence and exit status 2.

    Attributes
    ----------
    name
        What is wrong.
    write
        Writes the files into an empty folder.
    arguments
        Of the command, which runs in that folder.
    mentions
        What the sentence must name; the first file in the arguments where left empty.
    status
        What the command must end in; 0 for files that look wrong and are not.
    """

    name: str
    write: Write
    arguments: tuple[str, ...]
    mentions: str = ""
    status: int = 2

    @property
    def named(self) -> str:
        """The place that the sentence must name."""
        return self.mentions or next(a for a in self.arguments if "." in a).split(".")[0]


def content(name: str, held: bytes | str) -> Write:
    """Writes one file."""

    def write(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(held if isinstance(held, bytes) else held.encode())

    return write


def both(*writes: Write) -> Write:
    """Writes several."""

    def write(folder: Path) -> None:
        for one in writes:
            one(folder)

    return write


def truncated(whole: bytes, share: float) -> bytes:
    """The first part of a file."""
    return whole[: int(share * len(whole))]
