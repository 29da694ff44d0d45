"""All records where the kernel matrix does not fit into memory: exact, with its factor in a file.

Symbols as in `leakscope.lood.separation`; the linear algebra is
`leakscope._numerics.disk_cholesky`.  The file holds the factor's lower triangle, 4 n^2 bytes;
memory one block column of it and a few pieces.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from leakscope._numerics import disk_cholesky
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import HEADROOM_BYTES, available_memory, format_bytes
from leakscope.errors import InputError
from leakscope.kernels.kernel import Kernel
from leakscope.lood.dense import laws_by_difference, not_positive_definite, probes
from leakscope.lood.inputs import checked_targets, real_numbers, require_positive, require_prior
from leakscope.lood.separation import Separation

# Columns of a block: with more of them the file is read less often.
WIDEST, NARROWEST = 4096, 128


def disk_records(
    X: FloatArray,
    y: FloatArray,
    *,
    kernel: Kernel,
    noise_variance: float,
    folder: str | Path | None = None,
    width: int | None = None,
    advanced: Callable[[float], None] = lambda share: None,
) -> Separation:
    """Every record's laws with and without it; the factor of the kernel matrix is kept on disk.

    The answer of `all_records`.  Leverages far below one have fewer digits than there, which the
    trust flag counts in.  Asked again after it was stopped, it goes on at its last block column.

    Parameters
    ----------
    X, y, kernel, noise_variance
        As in `all_records`, with the records and the kernel in place of its matrix.
    folder
        Where the file may be: 4 bytes times the square of the number of records.  The system's
        temporary folder if left out, which the variable ``TMPDIR`` sets.
    width
        Columns of a block; by the memory that there is if left out.
    advanced
        Called with the share of the work that is done.

    Raises
    ------
    InputError
        Where something does not fit together, or there is too little disk or memory.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope import kernels, lood
    >>> rng = np.random.default_rng(0)
    >>> X, y, k = rng.normal(size=(50, 3)), rng.normal(size=50), kernels.rbf(1.0)
    >>> there = lood.disk_records(X, y, kernel=k, noise_variance=0.1, width=16)
    >>> here = lood.all_records(k(X), y, noise_variance=0.1)
    >>> bool(np.allclose(there.kl, here.kl, rtol=1e-8)), there.route
    (True, 'disk')
    """
    rows = real_numbers(X, "X")
    targets = checked_targets(y, len(rows), "the dataset")
    require_positive(noise_variance, "noise_variance")
    prior = np.asarray(kernel.diagonal(rows))
    require_prior(prior)
    size, outputs = len(rows), targets.reshape(len(targets), -1)
    wide = _width(size) if width is None else width
    key = _key(rows, targets, kernel, noise_variance)
    place = Path(tempfile.gettempdir() if folder is None else folder) / f"leakscope-tiles-{key}"

    def columns(start: int, stop: int) -> FloatArray:
        found = np.empty((size - start, stop - start))
        for first in range(start, size, disk_cholesky.PIECE):
            last = min(first + disk_cholesky.PIECE, size)
            found[first - start : last - start] = kernel(rows[first:last], rows[start:stop])
        own = np.arange(stop - start)
        found[own, own] = prior[start:stop] + noise_variance
        return found

    _require_disk(place, disk_cholesky.file_bytes(size, wide))
    try:
        place.mkdir(parents=True, exist_ok=True)
        found = disk_cholesky.inverse_on_disk(
            columns,
            np.column_stack([outputs, probes(size)]),
            width=wide,
            folder=place,
            advanced=advanced,
        )
    except np.linalg.LinAlgError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise not_positive_definite(noise_variance, error) from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise InputError(
            f"the kernel matrix's factor could not be kept in {place} ({error.strerror or error}): "
            + ("make room there, or set TMPDIR to a larger folder; " if full else "")
            + "what was computed stays and is used when the same is asked again."
        ) from error
    shutil.rmtree(place, ignore_errors=True)
    return laws_by_difference(
        found.diagonal,
        found.solution,
        prior,
        targets,
        noise_variance=noise_variance,
        norm=found.norm,
        # An upper bound: no eigenvalue of M is below the noise.
        condition_number=found.norm / noise_variance,
        route="disk",
    )


def disk_bytes(records: int) -> int:
    """What the route writes, in bytes."""
    return disk_cholesky.file_bytes(records, WIDEST)


def _width(size: int) -> int:
    """As many columns as memory holds about twice, with the pieces beside them."""
    available = available_memory()
    if available is None:
        return WIDEST
    fits = max(available - HEADROOM_BYTES, 0) // (24 * size)
    if fits < NARROWEST:
        raise InputError(
            f"{NARROWEST} columns of the kernel matrix of {size} records need "
            f"{format_bytes(24 * size * NARROWEST)}, but only {format_bytes(available)} are "
            "available: audit fewer records, or use a machine with more memory."
        )
    return int(min(fits, WIDEST))


def _require_disk(place: Path, needed: int) -> None:
    """Refuse what will not fit, before anything is computed."""
    there = sum(entry.stat().st_size for entry in place.glob("*")) if place.exists() else 0
    above = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    free = shutil.disk_usage(above).free
    if needed - there > free:
        raise InputError(
            f"the kernel matrix's factor needs {format_bytes(needed)} of disk, but {above} has "
            f"only {format_bytes(free)}: make room there, or set TMPDIR to a larger folder."
        )


def _key(rows: FloatArray, targets: FloatArray, kernel: Kernel, noise_variance: float) -> str:
    """What tells this problem from others, so that it does not go on with the work of another."""
    found = hashlib.sha256(f"{rows.shape} {kernel!r} {noise_variance!r}".encode())
    for array in (rows, targets):
        found.update(array.tobytes())
    return found.hexdigest()[:16]
