"""A folder of pictures: one subfolder a class, PNG or JPEG, all of one size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.io.datasets import Dataset, Source, digest

SUFFIXES = (".png", ".jpg", ".jpeg")

# Modes of Pillow that are a picture of 8-bit grey or colour; a palette and transparency go.
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")

# A picture that claims more pixels than this is not opened.
MOST_PIXELS = 10_000_000


def read_image_folder(path: str | Path) -> Dataset:
    """Read ``FOLDER/class/picture.png``; the subfolder's name is the class, the path the id.

    Features are the pixels, 0 to 255, row by row (and red, green, blue within a pixel where any
    picture has colour).

    Raises
    ------
    InputError
        Where there are no pictures, or one cannot be read or has another size, by its name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from PIL import Image
    >>> from leakscope import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         place = pathlib.Path(folder, name)
    ...         place.mkdir()
    ...         Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(place / "1.png")
    ...     pets = io.read_image_folder(folder)
    >>> pets.features.shape, pets.record_ids, pets.target.tolist()
    ((2, 64), ('cat/1.png', 'dog/1.png'), ['cat', 'dog'])
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    files = list(_pictures(folder))
    if not files:
        raise InputError(
            f"{folder} is a folder without pictures; it must hold one subfolder a class, with "
            f"files that end in {', '.join(SUFFIXES)}."
        )
    first_size, colour = _checked(folder, files)
    features = np.stack([_pixels(file, colour) for file in files])
    target = np.array([file.parent.name for file in files])
    width, height = first_size
    return Dataset(
        name=folder.resolve().name,
        features=features,
        target=target,
        record_ids=tuple(file.relative_to(folder).as_posix() for file in files),
        feature_names=tuple(f"pixel{position}" for position in range(features.shape[1])),
        target_name="class",
        task="classification",
        steps=(
            f"read {len(files)} pictures of {width} x {height} pixels, "
            f"{'red, green and blue' if colour else 'grey'}, from {folder.resolve().name} (Pillow)",
            "target: the subfolder's name",
            "record_id: the picture's path in the folder",
        ),
        source=Source(
            file=str(folder.resolve()),
            example=None,
            target=None,
            id_column=None,
            task="classification",
            digest=digest(features, target),
        ),
    )


def _pictures(folder: Path) -> Iterator[Path]:
    for place in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        yield from sorted(
            file for file in place.iterdir() if file.is_file() and file.suffix.lower() in SUFFIXES
        )


def _checked(folder: Path, files: list[Path]) -> tuple[tuple[int, int], bool]:
    """The size that all pictures have, and whether any has colour, from their headers alone."""
    size: tuple[int, int] | None = None
    colour = False
    for file in files:
        with _opened(file) as picture:
            if picture.mode not in (*GREY_MODES, *COLOUR_MODES):
                raise InputError(f"{file} is not a picture of 8-bit grey or colour.")
            if picture.width * picture.height > MOST_PIXELS:
                raise InputError(
                    f"{file} has {picture.width} x {picture.height} pixels, more than "
                    f"{MOST_PIXELS}; make the pictures smaller."
                )
            if size is not None and picture.size != size:
                raise InputError(
                    f"{file} has {picture.width} x {picture.height} pixels, but "
                    f"{files[0].relative_to(folder)} has {size[0]} x {size[1]}; all pictures must "
                    "have one size."
                )
            size = picture.size
            colour = colour or picture.mode in COLOUR_MODES
    assert size is not None
    return size, colour


def _pixels(file: Path, colour: bool) -> NDArray[np.float64]:
    with _opened(file) as picture:
        try:
            pixels = np.asarray(picture.convert("RGB" if colour else "L"), dtype=np.float64)
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{file} cannot be read as a picture ({error}).") from error
    return pixels.ravel()


def _opened(file: Path) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "pictures need the package Pillow: pip install 'leakscope[images]'."
        ) from None
    try:
        return Image.open(file, formats=("PNG", "JPEG"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{file} cannot be read as a picture ({told}).") from error
