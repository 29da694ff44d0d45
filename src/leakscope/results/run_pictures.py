"""Which pictures a run holds: the most exposed records that are pictures, and those like them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from leakscope.data import require_file
from leakscope.errors import InputError
from leakscope.results.document import Number
from leakscope.settings import first_problem

GALLERY_FILE = "gallery.json"

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Plain names only: a gallery never leads out of its run directory.
PictureName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,60}\.png$")]


class Picture(BaseModel):
    """A record that is a picture: its id, its target in words and its file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    record_id: int | str
    target: str
    file: PictureName


class Neighbour(Picture):
    """A picture with its kernel correlation k(x, z) / sqrt(k(x, x) k(z, z)) to the record.

    Examples
    --------
    >>> from leakscope.results import Neighbour
    >>> Neighbour(record_id=3, target="cat", file="record_3.png", similarity=0.9).similarity
    0.9
    """

    similarity: Number


class ExposedPicture(Picture):
    """One of the most exposed records, with those most similar to it in the kernel.

    Examples
    --------
    >>> from leakscope.results import ExposedPicture
    >>> shown = ExposedPicture(record_id=3, target="cat", file="a.png", rank=1, neighbours=[])
    >>> shown.rank
    1
    """

    rank: int
    neighbours: list[Neighbour]


class Gallery(BaseModel):
    """The pictures of a run, most exposed record first; ``gallery.json`` in its directory.

    ``disagreeing`` has those whose label the other records contradict most, the worst first.

    Examples
    --------
    >>> from leakscope.results import Gallery
    >>> Gallery(pictures=[]).pictures
    []
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pictures: list[ExposedPicture]
    disagreeing: list[ExposedPicture] = Field(default_factory=list)

    def files(self) -> list[str]:
        """The names of all picture files, each once."""
        every = (*self.pictures, *self.disagreeing)
        named = [p.file for shown in every for p in (shown, *shown.neighbours)]
        return list(dict.fromkeys(named))


def read_gallery(directory: Path) -> tuple[Gallery, dict[str, bytes]]:
    """The gallery of a run directory and the contents of its files; empty where it has none."""
    path = directory / GALLERY_FILE
    if not path.exists():
        return Gallery(pictures=[]), {}
    require_file(path)
    try:
        gallery = Gallery.model_validate_json(path.read_bytes())
        for name in gallery.files():
            require_file(directory / name)
        contents = {name: (directory / name).read_bytes() for name in gallery.files()}
    except ValidationError as error:
        raise InputError(f"{path} is not a gallery: {first_problem(error)}.") from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror or error}.") from error
    for name, content in contents.items():
        if not content.startswith(PNG_SIGNATURE):
            raise InputError(f"{directory / name} is not a PNG picture.")
    return gallery, contents
