"""Write the Hugging Face folders beside this file, with the real ``datasets`` library.

    pip install datasets pillow
    python tests/data/reference/make_hugging_face.py

The tests read these folders without that library.  Written by datasets 5.2.0.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import datasets
import numpy as np
from datasets import Array2D, ClassLabel, Dataset, DatasetDict, Features, Image, List, Value
from PIL import Image as Picture

HERE = Path(__file__).resolve().parent


def fresh(name: str) -> Path:
    place = HERE / name
    shutil.rmtree(place, ignore_errors=True)
    return place


def encoded(pixels: np.ndarray, form: str) -> dict[str, object]:
    stream = io.BytesIO()
    Picture.fromarray(pixels).save(stream, format=form)
    return {"bytes": stream.getvalue(), "path": None}


def table() -> Dataset:
    """Numbers, text, booleans, a category, an embedding, and an empty value."""
    rng = np.random.default_rng(0)
    n = 12
    return Dataset.from_dict(
        {
            "name": [f"p{i}" for i in range(n)],
            "age": [float(v) for v in rng.integers(20, 80, n)],
            "ward": ["north", "south", "east"] * 4,
            "smokes": [bool(i % 2) for i in range(n)],
            "dose": [None if i == 5 else float(i) for i in range(n)],
            "embedding": rng.standard_normal((n, 3)).round(3).tolist(),
            "label": [i % 3 for i in range(n)],
        },
        features=Features(
            {
                "name": Value("string"),
                "age": Value("float64"),
                "ward": Value("string"),
                "smokes": Value("bool"),
                "dose": Value("float32"),
                "embedding": List(Value("float32"), length=3),
                "label": ClassLabel(names=["cat", "dog", "owl"]),
            }
        ),
    )


def pictures() -> Dataset:
    """PNG and JPEG, grey and colour, 10 wide and 8 high."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(6):
        slope = np.add.outer(np.arange(8), np.arange(10)) * 6 + 10 * i + rng.integers(0, 5, (8, 10))
        pixels = slope.astype(np.uint8)
        if i == 4:
            rows.append(encoded(np.stack([pixels, pixels // 2, 255 - pixels], axis=2), "PNG"))
        else:
            rows.append(encoded(pixels, "JPEG" if i == 3 else "PNG"))
    return Dataset.from_dict(
        {"image": rows, "label": [0, 1, 0, 1, 0, 1]},
        features=Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])}),
    )


def arrays() -> Dataset:
    """Pictures as arrays of numbers, 9 by 8."""
    rng = np.random.default_rng(2)
    grids = (np.add.outer(np.arange(9), np.arange(8)) + rng.integers(0, 3, (5, 9, 8))).tolist()
    return Dataset.from_dict(
        {"grid": grids, "y": [0.5, 1.5, 2.5, 3.5, 4.5]},
        features=Features({"grid": Array2D((9, 8), "uint8"), "y": Value("float64")}),
    )


def main() -> None:
    """Write them all."""
    datasets.disable_progress_bars()
    whole = table()
    whole.save_to_disk(fresh("hf_table"), num_shards=2)
    chosen = whole.select([7, 2, 9, 0, 4])
    DatasetDict({"train": whole.select(range(8)), "test": chosen}).save_to_disk(fresh("hf_splits"))
    pictures().save_to_disk(fresh("hf_pictures"))
    arrays().save_to_disk(fresh("hf_arrays"))


if __name__ == "__main__":
    main()
