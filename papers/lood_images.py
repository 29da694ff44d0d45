"""The pictures of the lood paper's figures: CIFAR-10 cars and planes, or scikit-learn's digits.

The paper takes class-balanced subsets of CIFAR-10, of all ten classes in some figures.  Here it is
cars and planes throughout, as in its other figures, with pixels in [0, 1] and labels -1/2 and 1/2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import InputError
from leakscope.data import png, read_arrays
from leakscope.laws import Key
from papers.arrays import FloatArray
from papers.figure import Picture

CIFAR_FILE = "cifar10_car_plane.npz"

# A picture on the page is small; whole pixels, enlarged to about this many.
SHOWN_SIDE = 96
# And a sheet of many pictures about so wide.
SHEET_SIDE = 930

SMALLER = (
    "Pictures are scikit-learn's digits {} and {} (8 x 8) in place of CIFAR-10, which --data "
    "gives; what the paper finds of its own pictures they can bear out, and not refute."
)
TWO_CLASSES = "Cars and planes, in place of all ten classes of CIFAR-10."


@dataclass(frozen=True)
class Images:
    """Pictures as rows of pixels between 0 and 1.

    Parameters
    ----------
    name
        What they are.
    X, y
        (n, d) pixels, and (n,) labels -1/2 and 1/2, half of each.
    shape
        Of one picture: height, width and, in colour, 3.
    notes
        How they differ from the paper's.
    stand_in
        Whether they are other pictures than the paper's.
    """

    name: str
    X: FloatArray
    y: FloatArray
    shape: tuple[int, ...]
    notes: tuple[str, ...]
    stand_in: bool = False

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a reader needs to have the same."""
        return {"data": self.name, "records": len(self.y), "pixels": self.X.shape[1]}

    def told(self, verdict: bool | None) -> bool | None:
        """A finding about the paper's pictures, which other pictures cannot refute."""
        return None if verdict is False and self.stand_in else verdict

    @property
    def channels(self) -> int:
        """Colours of a pixel."""
        return self.shape[2] if len(self.shape) == 3 else 1

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Height, width and channels, for convolutions."""
        return (self.shape[0], self.shape[1], self.channels)

    def picture(self, caption: str, row: ArrayLike) -> Picture:
        """A row as a picture; 0 is black and 1 white."""
        return Picture(caption, png(row, self.shape, 0.0, 1.0, shown_side=SHOWN_SIDE))

    def strip(self, caption: str, rows: ArrayLike) -> Picture:
        """Several rows side by side, as one picture with a white seam between them."""
        tiles = np.clip(np.asarray(rows, dtype=np.float64), 0.0, 1.0).reshape(-1, *self.shape)
        seam = np.ones((self.shape[0], 1, *self.shape[2:]))
        parts = [part for tile in tiles for part in (tile, seam)][:-1]
        whole = np.concatenate(parts, axis=1)
        return Picture(caption, png(whole, whole.shape, 0.0, 1.0, shown_side=SHOWN_SIDE))

    def sheet(self, caption: str, above: ArrayLike, below: ArrayLike, columns: int) -> Picture:
        """Pairs of rows, one over the other, so many pairs side by side."""
        height, width = self.shape[:2]
        pairs = [
            np.clip(np.asarray(rows, dtype=np.float64), 0.0, 1.0).reshape(-1, *self.shape)
            for rows in (above, below)
        ]
        lines = -(-len(pairs[0]) // columns)
        # A pixel between the two of a pair and between columns, three between lines of pairs.
        size = (lines * (2 * height + 4) - 3, columns * (width + 1) - 1)
        whole = np.ones((*size, *self.shape[2:]))
        for place, pair in enumerate(zip(*pairs, strict=True)):
            line, column = divmod(place, columns)
            top, left = line * (2 * height + 4), column * (width + 1)
            for row, tile in zip((top, top + height + 1), pair, strict=True):
                whole[row : row + height, left : left + width] = tile
        return Picture(caption, png(whole, whole.shape, 0.0, 1.0, shown_side=SHEET_SIDE))


def load_images(
    data: Path | None,
    records: int,
    key: Key,
    *,
    digits: tuple[int, int] = (0, 1),
    ten_classes: bool = False,
) -> Images:
    """So many pictures, half of each class, or as many as there are.

    Parameters
    ----------
    data
        A folder with ``cifar10_car_plane.npz``; None takes two of scikit-learn's digits.
    records
        How many.
    key
        For which of them.
    digits
        Which two.
    ten_classes
        Whether the paper's figure has all ten classes of CIFAR-10, which is then noted.
    """
    if data is None:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        name, shape, top = f"digits {digits[0]} and {digits[1]}", (8, 8), 16.0
        kept = np.isin(labels, digits)
        pixels, labels = pixels[kept], (labels[kept] == digits[1]).astype(int)
        notes: tuple[str, ...] = (SMALLER.format(*digits),)
    else:
        place = data / CIFAR_FILE
        if not os.path.exists(place):
            raise InputError(f"the folder {data} has no file {CIFAR_FILE}.")
        pixels, labels = _stored(place)
        name, shape, top = "CIFAR-10 cars and planes", pixels.shape[1:], 255.0
        notes = (TWO_CLASSES,) if ten_classes else ()
    generator = key.generator()
    half = min(records // 2, *(int(np.sum(labels == c)) for c in (0, 1)))
    chosen = np.concatenate(
        [generator.permutation(np.flatnonzero(labels == c))[:half] for c in (0, 1)]
    )
    chosen = generator.permutation(chosen)
    X = pixels[chosen].reshape(len(chosen), -1).astype(np.float64) / top
    side = tuple(int(s) for s in shape)
    return Images(name, X, labels[chosen] - 0.5, side, notes, stand_in=data is None)


def images_digest(data: Path | None) -> str | None:
    """Which pictures a folder holds; None for the digits that stand in for them."""
    if data is None or not os.path.exists(data / CIFAR_FILE):
        return None
    with open(data / CIFAR_FILE, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


def _stored(place: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """X, square pictures of 3 bytes a pixel, and y, 0 or 1; refused where they are not."""
    arrays = read_arrays(place, ("X", "y"))
    pixels, labels = (arrays.get(name, np.empty(0)) for name in ("X", "y"))
    side = pixels.shape[1] if pixels.ndim == 4 else 0
    if labels.ndim != 1 or len(labels) < 2 or pixels.shape != (len(labels), side, side, 3):
        raise InputError(
            f"{place} must hold X, square pictures of 3 colours, and y, as many labels; they have "
            f"the shapes {pixels.shape} and {labels.shape}."
        )
    if pixels.dtype != np.uint8 or not np.isin(labels, (0, 1)).all() or np.ptp(labels) == 0:
        raise InputError(f"{place}: X must hold bytes, and y both of 0 and 1 and nothing else.")
    return pixels, labels
