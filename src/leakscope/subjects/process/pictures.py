"""The most exposed records that are pictures, and those that look like them to the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.pictures import pictured, png
from leakscope.lood.noise import ranks_of
from leakscope.lood.process import Process
from leakscope.results.audit import Audit
from leakscope.results.run_directory import GALLERY_FILE, ExposedPicture, Gallery, Neighbour

# How many of the most exposed pictures are kept, and how many similar ones with each.
PICTURES = 12
NEIGHBOURS = 5


def report_pictures(
    process: Process, audit: Audit, dataset: Dataset, odd: Sequence[RecordId]
) -> dict[str, bytes]:
    """Files by name: ``gallery.json`` and its PNGs; none where the records are not pictures.

    The most exposed records, those whose labels the others contradict (``odd``), and the records
    most similar to each in the kernel.
    """
    shape = dataset.picture or pictured(dataset.features)
    if shape is None or audit.unit != "record":
        return {}
    if dataset.record_ids != audit.record_ids:
        return {}
    features, kernel = process.features, process.kernel
    row_of = {name: row for row, name in enumerate(audit.record_ids)}
    ranks = ranks_of(audit.kl)
    strange = [row_of[name] for name in odd]
    top = np.array([*audit.order[:PICTURES].tolist(), *strange])
    prior, shared = kernel.diagonal(features), kernel(features[top], features)
    distance = prior[top, None] + prior - 2.0 * shared
    similarity = shared / np.sqrt(prior[top, None] * prior)
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
