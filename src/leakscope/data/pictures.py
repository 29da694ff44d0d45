"""Records that are pictures: PNG and JPEG files as rows of pixels, and rows as PNG, by Pillow."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.data.datasets import Dataset
from leakscope.data.files import require_text_name, told_as
from leakscope.errors import InputError, required

# Tables have 4 or 9 or 16 features without being pictures.
LEAST_SIDE = 8

# Adjacent pixels of a picture differ by less than this share of what any two pixels differ by; in
# a table whose columns happen to fill a square they do not (digits 0.80, CIFAR-10 0.20; digits with
# its columns shuffled eight ways 1.00 to 1.18, random columns 1.03).
ADJACENT_SHARE = 0.9

# Pictures are enlarged by whole pixels to about this many.
SHOWN_SIDE = 256


def picture_shape(features: int) -> tuple[int, ...] | None:
    """Height, width and, in colour, 3 of rows that may be square pictures; None otherwise."""
    for channels in (1, 3):
        side = math.isqrt(features // channels)
        if side >= LEAST_SIDE and channels * side * side == features:
            return (side, side) if channels == 1 else (side, side, 3)
    return None


def array_picture(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Height, width and, in colour, 3 of records that come as arrays; None where they are none.

    Two sides of at least eight are a grey picture; a third of one or three, its channels.
    """
    if len(shape) not in (2, 3) or min(shape[:2]) < LEAST_SIDE:
        return None
    if len(shape) == 2 or shape[2] == 1:
        return tuple(shape[:2])
    return tuple(shape) if shape[2] == 3 else None


def pictured(features: NDArray[np.float64]) -> tuple[int, ...] | None:
    """The shape of the pictures that rows are; None where they are none.

    They are where they fill a square and neighbouring pixels are alike, as in pictures of anything.
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
    """
    pixels = np.asarray(row, dtype=np.float64)
    if pixels.size != math.prod(shape):
        raise InputError(f"a picture of shape {shape} has not {pixels.size} values.")
    shares = np.clip((pixels - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    grey = np.rint(255.0 * shares).astype(np.uint8).reshape(shape)
    factor = max(1, shown_side // max(shape[:2]))
    required("PIL", "Writing a picture")
    from PIL import Image

    image = Image.fromarray(grey.repeat(factor, axis=0).repeat(factor, axis=1))
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


# Modes of Pillow that are a picture of 8-bit grey or colour; a palette and transparency go.
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")

# A picture that claims more pixels than this is not opened.
MOST_PIXELS = 10_000_000


def decode_pictures(files: Sequence[Path], where: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Pictures as (n, d) numbers 0 to 255, row by row, once their headers have been looked at.

    The shape is height and width, and 3 where any picture has colour.
    """
    sizes, modes = set(), set()
    for file in files:
        with _opened(file) as picture:
            if picture.mode not in (*GREY_MODES, *COLOUR_MODES):
                raise InputError(f"{file} is not a picture of 8-bit grey or colour.")
            sizes.add(picture.size)
            modes.add(picture.mode)
            if len(sizes) > 1 or picture.width * picture.height > MOST_PIXELS:
                raise InputError(
                    f"{file} has {picture.width} x {picture.height} pixels; all pictures must have "
                    f"one size, of {MOST_PIXELS} pixels at most."
                )
    (width, height), colour = sizes.pop(), not modes <= set(GREY_MODES)
    shape = (height, width, 3) if colour else (height, width)
    require_memory(
        2 * 8 * len(files) * math.prod(shape),
        f"the pixels of {len(files)} pictures in {where}",
        "use fewer or smaller pictures",
    )
    pixels = np.empty((len(files), math.prod(shape)))
    for row, file in enumerate(files):
        with _opened(file) as picture, told_as(f"{file} cannot be read as a picture"):
            pixels[row] = np.asarray(picture.convert("RGB" if colour else "L")).ravel()
    return pixels, shape


def _opened(file: Path) -> Any:
    required("PIL", "Reading pictures")
    from PIL import Image

    with told_as(f"{file} cannot be read as a picture"), warnings.catch_warnings():
        # Pillow warns of many pixels; ours is the stricter limit, and a sentence.
        warnings.simplefilter("ignore")
        return Image.open(file, formats=("PNG", "JPEG"))


SUFFIXES = (".png", ".jpg", ".jpeg")


def open_image_folder(folder: Path) -> Dataset:
    """All of ``FOLDER/class/picture.png``; the subfolder's name is the class, the path the id."""
    files = sorted(
        file for file in folder.glob("*/*") if file.is_file() and file.suffix.lower() in SUFFIXES
    )
    if not files:
        raise InputError(
            f"{folder} is a folder without pictures; it must hold one subfolder per class, with "
            f"files that end in {', '.join(SUFFIXES)}."
        )
    for file in files:
        require_text_name(file)
    pixels, shape = decode_pictures(files, str(folder))
    colour = "red, green and blue" if len(shape) == 3 else "grey"
    return Dataset(
        name=folder.resolve().name,
        features=pixels,
        target=np.array([file.parent.name for file in files]),
        record_ids=tuple(file.relative_to(folder).as_posix() for file in files),
        feature_names=tuple(f"pixel{position}" for position in range(pixels.shape[1])),
        target_name="class",
        task="classification",
        steps=(
            f"read {len(files)} pictures of {shape[1]} x {shape[0]} pixels, {colour}, from "
            f"{folder.resolve().name} (Pillow)",
            "target: the subfolder's name",
            "record_id: the picture's path in the folder",
        ),
        picture=shape,
    )
