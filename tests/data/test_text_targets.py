"""A target of text names classes: nobody has to say so."""

from __future__ import annotations

import pandas as pd
import pytest

import leakscope
from leakscope import data
from leakscope.errors import InputError


def table(target):
    return pd.DataFrame({"age": [row * 37 % 101 for row in range(len(target))], "y": target})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_of_a_few_kinds_is_classes(tmp_path, suffix):
    frame, path = table(["<=50K", ">50K"] * 20), tmp_path / f"people{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    read = data.read_dataset(path, target="y")
    assert read.task == "classification"
    assert set(read.target) == {"<=50K", ">50K"}
    assert read.source is not None
    assert read.source.task == "classification"
    assert data.from_frame(frame, target="y").task == "classification"
    assert "LogisticRegression" in " ".join(leakscope.audit_frame(frame, target="y").answer())


def test_what_was_said_counts(tmp_path):
    table(["a", "b"] * 20).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match="not a number; for a target of classes"):
        data.read_dataset(tmp_path / "people.csv", target="y", task="regression")


@pytest.mark.parametrize(
    "target",
    [
        [*["a", "b"] * 20, "17"],  # a number among them: probably a slip
        [f"name {row}" for row in range(40)],  # all different: names, not classes
        ["only"] * 40,
        ["1.5", "2,5"] * 20,
    ],
)
def test_text_that_may_be_something_else_is_still_refused(tmp_path, target):
    table(target).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError):
        data.read_dataset(tmp_path / "people.csv", target="y")
