"""PNG and JPEG pictures, from files or from bytes, as rows of pixels; all must have one size."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.memory import require_memory
from leakscope.data.reasons import reason
from leakscope.errors import InputError

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
    """Pictures as numbers.

    Attributes
    ----------
    pixels
        (n, d) numbers 0 to 255, row by row; red, green and blue within a pixel.
    shape
        Height and width, and 3 where any picture has colour.
    """

    pixels: NDArray[np.float64]
    shape: tuple[int, ...]

    def in_words(self) -> str:
        """``9 x 8 pixels, grey``: width by height, and what a pixel is."""
        colour = "red, green and blue" if len(self.shape) == 3 else "grey"
        return f"{self.shape[1]} x {self.shape[0]} pixels, {colour}"


def decode_pictures(pictures: Sequence[EncodedPicture], where: str) -> DecodedPictures:
    """Decode them all, once their headers have been looked at.

    Raises
    ------
    InputError
        Where one cannot be read, or has another size, by its name.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from PIL import Image
    >>> from leakscope.data.decoded_pictures import EncodedPicture, decode_pictures
    >>> stream = io.BytesIO()
    >>> Image.fromarray(np.zeros((8, 9), dtype=np.uint8)).save(stream, format="PNG")
    >>> found = decode_pictures([EncodedPicture("row 0", stream.getvalue())], "here")
    >>> found.shape, found.pixels.shape, found.in_words()
    ((8, 9), (1, 72), '9 x 8 pixels, grey')
    """
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
    with _opened(one) as picture:
        try:
            pixels = np.asarray(picture.convert("RGB" if colour else "L"), dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"{one.name} cannot be read as a picture ({reason(error)})."
            ) from error
    return pixels.ravel()


def _opened(one: EncodedPicture) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "pictures need the package Pillow: pip install 'leakscope[images]'."
        ) from None
    try:
        source = io.BytesIO(one.source) if isinstance(one.source, bytes) else one.source
        with warnings.catch_warnings():
            # Pillow warns of many pixels; ours is the stricter limit, and a sentence.
            warnings.simplefilter("ignore")
            return Image.open(source, formats=("PNG", "JPEG"))
    except Exception as error:  # a hostile picture meets many parsers, each with its own errors
        raise InputError(f"{one.name} cannot be read as a picture ({reason(error)}).") from error
