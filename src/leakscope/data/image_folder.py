"""A folder of pictures: one subfolder per class, PNG or JPEG, all of one size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from leakscope.data.datasets import Dataset, Source, digest
from leakscope.data.decoded_pictures import EncodedPicture, decode_pictures
from leakscope.data.regular_files import require_text_name
from leakscope.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg")


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
    >>> from leakscope import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         place = pathlib.Path(folder, name)
    ...         place.mkdir()
    ...         Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(place / "1.png")
    ...     pets = data.read_image_folder(folder)
    >>> pets.features.shape, pets.record_ids, pets.target.tolist()
    ((2, 64), ('cat/1.png', 'dog/1.png'), ['cat', 'dog'])
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    files = list(_pictures(folder))
    if not files:
        raise InputError(
            f"{folder} is a folder without pictures; it must hold one subfolder per class, with "
            f"files that end in {', '.join(SUFFIXES)}."
        )
    for file in files:
        require_text_name(file)
    found = decode_pictures([EncodedPicture(str(file), file) for file in files], str(folder))
    features = found.pixels
    target = np.array([file.parent.name for file in files])
    ids = tuple(file.relative_to(folder).as_posix() for file in files)
    return Dataset(
        name=folder.resolve().name,
        features=features,
        target=target,
        record_ids=ids,
        feature_names=tuple(f"pixel{position}" for position in range(features.shape[1])),
        target_name="class",
        task="classification",
        steps=(
            f"read {len(files)} pictures of {found.in_words()}, from {folder.resolve().name} "
            "(Pillow)",
            "target: the subfolder's name",
            "record_id: the picture's path in the folder",
        ),
        source=Source(
            file=str(folder.resolve()),
            example=None,
            target=None,
            id_column=None,
            task="classification",
            digest=digest(features, target, ids, file=str(folder)),
        ),
        picture=found.shape,
    )


def _pictures(folder: Path) -> Iterator[Path]:
    for place in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        yield from sorted(
            file for file in place.iterdir() if file.is_file() and file.suffix.lower() in SUFFIXES
        )
