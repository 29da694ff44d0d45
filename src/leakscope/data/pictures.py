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

# Adjacent pixels of a picture differ by less than this share of what any two pixels differ by; in
# a table whose columns happen to fill a square they do not (digits 0.80, CIFAR-10 0.20; digits with
# its columns shuffled eight ways 1.00 to 1.18, random columns 1.03).
ADJACENT_SHARE = 0.9

# Pictures are enlarged by whole pixels to about this many.
SHOWN_SIDE = 256


def picture_shape(features: int) -> tuple[int, ...] | None:
    """Height, width and, in colour, 3 of rows that may be square pictures; None otherwise.

    Examples
    --------
    >>> from leakscope.data import picture_shape
    >>> picture_shape(64), picture_shape(3072), picture_shape(100 - 1), picture_shape(9)
    ((8, 8), (32, 32, 3), None, None)
    """
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if side >= LEAST_SIDE and channels * side * side == features:
            return (side, side) if channels == 1 else (side, side, 3)
    return None


def array_picture(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Height, width and, in colour, 3 of records that come as arrays; None where they are none.

    Two sides of at least eight are a grey picture; a third of one or three, its channels.

    Examples
    --------
    >>> from leakscope.data import array_picture
    >>> array_picture((8, 12)), array_picture((8, 12, 1)), array_picture((9, 9, 3))
    ((8, 12), (8, 12), (9, 9, 3))
    >>> array_picture((100, 4)), array_picture((3, 9, 9)), array_picture((64,))
    (None, None, None)
    """
    if len(shape) not in (2, 3) or min(shape[:2]) < LEAST_SIDE:
        return None
    if len(shape) == 2 or shape[2] == 1:
        return tuple(shape[:2])
    return tuple(shape) if shape[2] == 3 else None


def pictured(features: NDArray[np.float64]) -> tuple[int, ...] | None:
    """The shape of the pictures that rows are; None where they are none.

    They are where they fill a square and neighbouring pixels are alike, as in pictures of anything.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.data import pictured
    >>> slopes = np.add.outer(np.arange(5.0), np.add.outer(np.arange(8.0), np.arange(8.0)).ravel())
    >>> pictured(slopes), pictured(slopes[:, :60])
    ((8, 8), None)
    """
    shape = picture_shape(features.shape[1])
    if shape is None or not np.isfinite(features).all():
        return None
    some = features[:: max(1, len(features) // 200)].reshape(-1, *shape)
    adjacent = np.mean(np.abs(np.diff(some, axis=2)))
    flat = some.reshape(len(some), -1)
    mixed = flat[:, np.random.default_rng(0).permutation(flat.shape[1])]
    return shape if adjacent < ADJACENT_SHARE * np.mean(np.abs(mixed - flat)) else None


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
    >>> from leakscope.data import png
    >>> png(np.arange(64.0), (8, 8), 0.0, 63.0)[:4]
    b'\\x89PNG'
    """
    pixels = np.asarray(row, dtype=np.float64)
    if pixels.size != math.prod(shape):
        raise InputError(f"a picture of shape {shape} has not {pixels.size} values.")
    shares = np.clip((pixels - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    return _encoded(_enlarged(np.rint(255.0 * shares).astype(np.uint8).reshape(shape), shown_side))


def _enlarged(pixels: NDArray[np.uint8], shown_side: int) -> NDArray[np.uint8]:
    factor = max(1, shown_side // max(pixels.shape[:2]))
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
