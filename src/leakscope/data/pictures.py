"""Records that are pictures: PNG and JPEG files as rows of pixels, and rows as PNG, by Pillow."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


@dataclass(frozen=True)
class EncodedPicture:
    """A picture that has not been opened: how a sentence calls it, and its file or its bytes."""

    name: str
    source: Path | bytes


@dataclass(frozen=True)
class DecodedPictures:
    """Pictures as (n, d) numbers 0 to 255, row by row; red, green and blue within a pixel.

    ``shape`` is height and width, and 3 where any picture has colour.
    """

    pixels: NDArray[np.float64]
    shape: tuple[int, ...]

    def in_words(self) -> str:
        """``9 x 8 pixels, grey``: width by height, and what a pixel is."""
        colour = "red, green and blue" if len(self.shape) == 3 else "grey"
        return f"{self.shape[1]} x {self.shape[0]} pixels, {colour}"


def decode_pictures(pictures: Sequence[EncodedPicture], where: str) -> DecodedPictures:
    """Decode them all, once their headers have been looked at."""
    width, height, colour = _checked(pictures)
    channels = 3 if colour else 1
    require_memory(
        2 * 8 * len(pictures) * width * height * channels,
        f"the pixels of {len(pictures)} pictures in {where}",
        "use fewer or smaller pictures",
    )
    pixels = np.empty((len(pictures), width * height * channels))
    for row, picture in enumerate(pictures):
        pixels[row] = _pixels(picture, colour)
    return DecodedPictures(pixels, (height, width, 3) if colour else (height, width))


def _checked(pictures: Sequence[EncodedPicture]) -> tuple[int, int, bool]:
    """The size that all pictures have, and whether any has colour, from their headers alone."""
    size: tuple[int, int] | None = None
    colour = False
    for one in pictures:
        with _opened(one) as picture:
            if picture.mode not in (*GREY_MODES, *COLOUR_MODES):
                raise InputError(f"{one.name} is not a picture of 8-bit grey or colour.")
            if picture.width * picture.height > MOST_PIXELS:
                raise InputError(
                    f"{one.name} has {picture.width} x {picture.height} pixels, more than "
                    f"{MOST_PIXELS}; make the pictures smaller."
                )
            if size is not None and picture.size != size:
                raise InputError(
                    f"{one.name} has {picture.width} x {picture.height} pixels, but "
                    f"{pictures[0].name} has {size[0]} x {size[1]}; all pictures must have one "
                    "size."
                )
            size = picture.size
            colour = colour or picture.mode in COLOUR_MODES
    assert size is not None
    return *size, colour


def _pixels(one: EncodedPicture, colour: bool) -> NDArray[np.float64]:
    with _opened(one) as picture, told_as(f"{one.name} cannot be read as a picture"):
        pixels = np.asarray(picture.convert("RGB" if colour else "L"), dtype=np.float64)
    return pixels.ravel()


def _opened(one: EncodedPicture) -> Any:
    required("PIL", "Reading pictures")
    from PIL import Image

    with told_as(f"{one.name} cannot be read as a picture"):
        source = io.BytesIO(one.source) if isinstance(one.source, bytes) else one.source
        with warnings.catch_warnings():
            # Pillow warns of many pixels; ours is the stricter limit, and a sentence.
            warnings.simplefilter("ignore")
            return Image.open(source, formats=("PNG", "JPEG"))


SUFFIXES = (".png", ".jpg", ".jpeg")


def open_image_folder(folder: Path) -> Dataset:
    """All of ``FOLDER/class/picture.png``; the subfolder's name is the class, the path the id."""
    files = list(_pictures(folder))
    if not files:
        raise InputError(
            f"{folder} is a folder without pictures; it must hold one subfolder per class, with "
            f"files that end in {', '.join(SUFFIXES)}."
        )
    for file in files:
        require_text_name(file)
    found = decode_pictures([EncodedPicture(str(file), file) for file in files], str(folder))
    return Dataset(
        name=folder.resolve().name,
        features=found.pixels,
        target=np.array([file.parent.name for file in files]),
        record_ids=tuple(file.relative_to(folder).as_posix() for file in files),
        feature_names=tuple(f"pixel{position}" for position in range(found.pixels.shape[1])),
        target_name="class",
        task="classification",
        steps=(
            f"read {len(files)} pictures of {found.in_words()}, from {folder.resolve().name} "
            "(Pillow)",
            "target: the subfolder's name",
            "record_id: the picture's path in the folder",
        ),
        picture=found.shape,
    )


def _pictures(folder: Path) -> Iterator[Path]:
    for place in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        yield from sorted(
            file for file in place.iterdir() if file.is_file() and file.suffix.lower() in SUFFIXES
        )
