"""How much the server takes and keeps."""

from __future__ import annotations

from dataclasses import dataclass

from leakscope.errors import InputError

MEGABYTE = 1_000_000
MOST_MEGABYTES = 100_000.0


@dataclass(frozen=True)
class Limits:
    """Sizes and counts beyond which a request is refused, or something old is dropped.

    Attributes
    ----------
    upload_bytes
        Of one file; counted while it streams in.
    uploads_held
        Files kept; a further one replaces the oldest.
    uploads_read
        Files that are taken apart at a time; a further one waits.
    jobs_held
        Audits kept; a further one replaces the oldest that is finished.
    jobs_waiting
        Audits that may wait for the one that runs.
    request_bytes
        Of a request that is no upload.
    table_bytes
        Of what one file unpacks to: a few kilobytes may claim any size.

    Examples
    --------
    >>> from leakscope.serving import Limits
    >>> Limits().upload_bytes
    100000000
    """

    upload_bytes: int = 100 * MEGABYTE
    uploads_held: int = 5
    uploads_read: int = 3
    jobs_held: int = 20
    jobs_waiting: int = 8
    request_bytes: int = MEGABYTE
    table_bytes: int = 2000 * MEGABYTE

    @classmethod
    def of_megabytes(cls, upload: float) -> Limits:
        """The defaults with uploads of at most so many megabytes."""
        if not 0.0 < upload <= MOST_MEGABYTES:
            raise InputError(
                f"--max-upload must be above 0 and at most {MOST_MEGABYTES:g} megabytes, but it is "
                f"{upload:g}."
            )
        return cls(upload_bytes=int(upload * MEGABYTE))
