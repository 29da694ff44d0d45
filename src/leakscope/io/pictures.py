"""Records that are pictures, as PNG files.

A PNG is a header, rows compressed by zlib, and checksums: no imaging library is needed to write
one (PNG specification, third edition, Sections 5 and 11).
"""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError

# Tables have 4 or 9 or 16 features without being pictures.
LEAST_SIDE = 8

# Pictures are enlarged by whole pixels to about this many.
SHOWN_SIDE = 256


def picture_shape(features: int) -> tuple[int, ...] | None:
    """Height, width and, in colour, 3 of rows that may be square pictures; None otherwise.

    Examples
    --------
    >>> from leakscope.io.pictures import picture_shape
    >>> picture_shape(64), picture_shape(3072), picture_shape(100 - 1), picture_shape(9)
    ((8, 8), (32, 32, 3), None, None)
    """
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if side >= LEAST_SIDE and channels * side * side == features:
            return (side, side) if channels == 1 else (side, side, 3)
    return None


def png(
    row: ArrayLike,
    shape: tuple[int, ...],
    low: float,
    high: float,
    *,
    shown_side: int = SHOWN_SIDE,
) -> bytes:
    """A row of pixels, channels last, as the bytes of a PNG: ``low`` is black, ``high`` white.

    Pictures smaller than ``shown_side`` are enlarged by whole pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.io.pictures import png
    >>> png(np.arange(64.0), (8, 8), 0.0, 63.0)[:4]
    b'\\x89PNG'
    """
    pixels = np.asarray(row, dtype=np.float64)
    if pixels.size != math.prod(shape):
        raise InputError(f"a picture of shape {shape} has not {pixels.size} values.")
    shares = np.clip((pixels - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    return _encoded(_enlarged(np.rint(255.0 * shares).astype(np.uint8).reshape(shape), shown_side))


def _enlarged(pixels: NDArray[np.uint8], shown_side: int) -> NDArray[np.uint8]:
    factor = max(1, shown_side // pixels.shape[0])
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def _encoded(pixels: NDArray[np.uint8]) -> bytes:
    height, width = pixels.shape[:2]
    colour_type = 0 if pixels.ndim == 2 else 2
    header = struct.pack(">2I5B", width, height, 8, colour_type, 0, 0, 0)
    # Every row begins with the number of its filter; 0 is none.
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)
