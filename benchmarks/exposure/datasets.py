"""The data of the truths, from public files to arrays that fit into one small archive.

``python benchmarks/exposure/datasets.py --data FOLDER --fashion FOLDER --to exposure_data.npz``

FOLDER holds ``location30.npz``, ``adult.data``, ``adult.test`` and ``cifar10_car_plane.npz``; the
second one holds the four files of Fashion-MNIST (Debian's package dataset-fashion-mnist).  Digits
come with scikit-learn.  What ends in ``_test``, and half of Location, is for the truths that no
choice was made on.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np

ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def adult(path: Path, records: int = 4000, seed: int = 11) -> tuple[np.ndarray, np.ndarray]:
    """A random subset of Adult: standardised numbers and one column per category."""
    import pandas as pd

    table = pd.read_csv(path, names=ADULT_COLUMNS, skipinitialspace=True, comment="|")
    rows = np.random.default_rng(seed).permutation(len(table))[:records]
    table = table.iloc[np.sort(rows)].drop(columns=["fnlwgt", "education"])
    y = table.pop("income").str.startswith(">50K").to_numpy(np.int64)
    for name in ("capital-gain", "capital-loss"):
        table[name] = np.log1p(table[name])
    numbers = table[NUMBERS].to_numpy(float)
    numbers = (numbers - numbers.mean(0)) / numbers.std(0)
    categories = pd.get_dummies(table.drop(columns=NUMBERS)).to_numpy(float)
    return np.hstack([numbers, categories]).astype(np.float32), y


def fashion(
    folder: Path, part: str = "train", records: int = 6000, seed: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """A random subset of Fashion-MNIST's pictures, of those for training or for tests (t10k)."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as stream:
        images = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as stream:
        labels = np.frombuffer(stream.read(), np.uint8, offset=8)
    rows = np.sort(np.random.default_rng(seed).permutation(len(images))[:records])
    return images[rows], labels[rows].astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fashion", type=Path)
    parser.add_argument("--only", nargs="*", help="such as adult_test cifar_test; all unless given")
    parser.add_argument("--to", type=Path, default=Path("exposure_data.npz"))
    given = parser.parse_args()
    from sklearn.datasets import load_digits

    arrays: dict[str, np.ndarray] = {}
    arrays["adult_X"], arrays["adult_y"] = adult(given.data / "adult.data")
    arrays["adult_test_X"], arrays["adult_test_y"] = adult(given.data / "adult.test", 2500, 21)
    digits = load_digits()
    arrays["digits_X"] = (digits.data / 16.0).astype(np.float32)
    arrays["digits_y"] = digits.target.astype(np.int64)
    with np.load(given.data / "location30.npz") as location:
        arrays["location_X"] = location["X"].astype(np.uint8)
        arrays["location_y"] = np.unique(location["y"], return_inverse=True)[1].astype(np.int64)
    rows = np.sort(np.random.default_rng(22).permutation(len(arrays["location_y"]))[:2500])
    for name in ("X", "y"):
        arrays[f"location_half_{name}"] = arrays[f"location_{name}"][rows]
    with np.load(given.data / "cifar10_car_plane.npz") as cifar:
        order = np.random.default_rng(13).permutation(len(cifar["X"]))
        for part, rows in (("cifar", order[:6000]), ("cifar_test", order[6000:8500])):
            arrays[f"{part}_X"] = cifar["X"][np.sort(rows)]
            arrays[f"{part}_y"] = cifar["y"][np.sort(rows)].astype(np.int64)
        arrays["cifar_other_X"] = cifar["X_test"]
        arrays["cifar_other_y"] = cifar["y_test"].astype(np.int64)
    if given.fashion is not None:
        arrays["fashion_X"], arrays["fashion_y"] = fashion(given.fashion)
        found = fashion(given.fashion, "t10k", 2500, 23)
        arrays["fashion_test_X"], arrays["fashion_test_y"] = found
    if given.only:
        arrays = {k: a for k, a in arrays.items() if k[:-2] in given.only}
    np.savez_compressed(given.to, **arrays)
    for name, array in arrays.items():
        print(f"{name:15} {array.shape} {array.dtype}")
    print(f"{given.to}: {given.to.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
