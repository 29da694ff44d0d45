"""The most exposed records that are pictures, and those that look like them.

What looks alike is a matter of the kernel where the model has one, and of the pixels elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.pictures import pictured, png
from leakscope.results.audit import Audit
from leakscope.results.run_directory import GALLERY_FILE, ExposedPicture, Gallery, Neighbour

# How many of the most exposed pictures are kept, and how many similar ones with each.
PICTURES = 12
NEIGHBOURS = 5


# Of some rows: (r, n) their inner products with all, and (n,) those of all with themselves.
Products = Callable[[NDArray[np.intp]], tuple[FloatArray, FloatArray]]


def of_pixels(features: FloatArray) -> Products:
    """Inner products of pixels around the mean picture: their cosine is a correlation."""
    centred = features - features.mean(axis=0)

    def products(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        return centred[rows] @ centred.T, np.einsum("ij,ij->i", centred, centred)

    return products


def report_pictures(
    audit: Audit,
    dataset: Dataset,
    odd: Sequence[RecordId] = (),
    products: Products | None = None,
) -> dict[str, bytes]:
    """Files by name: ``gallery.json`` and its PNGs; none where the records are not pictures,
    or Pillow is not there to write them.

    The most exposed records, those whose labels the others contradict (``odd``), and the records
    most similar to each by ``products``, those of the pixels where left out.
    """
    shape = dataset.picture or pictured(dataset.features)
    if shape is None or audit.unit != "record" or find_spec("PIL") is None:
        return {}
    if dataset.record_ids != audit.record_ids:
        return {}
    products = products or of_pixels(np.asarray(dataset.features, dtype=np.float64))
    row_of = {name: row for row, name in enumerate(audit.record_ids)}
    ranks = np.empty(len(audit.order), dtype=np.intp)
    ranks[audit.order] = np.arange(1, len(audit.order) + 1)
    strange = [row_of[name] for name in odd]
    top = np.array([*audit.order[:PICTURES].tolist(), *strange])
    shared, prior = products(top)
    distance = prior[top, None] + prior - 2.0 * shared
    size = np.sqrt(prior[top, None] * prior)
    similarity = np.divide(shared, size, out=np.zeros_like(size), where=size > 0.0)
    low, high = float(dataset.features.min()), float(dataset.features.max())
    files: dict[str, bytes] = {}

    def shown(row: int) -> dict[str, Any]:
        name = f"record_{row}.png"
        if name not in files:
            files[name] = png(dataset.features[row], shape, low, high, shown_side=1)
        return {
            "record_id": dataset.record_ids[row],
            "target": str(dataset.target[row]),
            "file": name,
        }

    pictures = []
    for place, row in enumerate(top.tolist()):
        others = np.argsort(distance[place], kind="stable")
        near = [int(other) for other in others[: NEIGHBOURS + 1] if other != row][:NEIGHBOURS]
        pictures.append(
            ExposedPicture(
                **shown(row),
                rank=int(ranks[row]),
                neighbours=[
                    Neighbour(**shown(other), similarity=float(similarity[place, other]))
                    for other in near
                ],
            )
        )
    count = len(pictures) - len(strange)
    gallery = Gallery(pictures=pictures[:count], disagreeing=pictures[count:])
    text = gallery.model_dump_json(indent=2)
    return {GALLERY_FILE: text.encode(), **files}
