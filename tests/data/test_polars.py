"""A real polars frame, as ``audit_frame`` and ``from_frame`` take it."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import data
from leakscope.errors import InputError

pl = pytest.importorskip("polars")


def people() -> dict[str, list]:
    rng = np.random.default_rng(0)
    return {
        "person": [f"p{i}" for i in range(20)],
        "age": rng.integers(20, 80, 20).tolist(),
        "height": [None if i == 3 else 1.5 + i / 100 for i in range(20)],
        "smokes": [None if i == 4 else bool(i % 2) for i in range(20)],
        "ward": [None if i == 6 else ["north", "south", "east"][i % 3] for i in range(20)],
        "cost": rng.standard_normal(20).tolist(),
    }


def frame():
    return pl.DataFrame(people())


def test_it_is_the_pandas_frame():
    ours = data.from_frame(frame(), target="cost", id_column="person", missing="impute")
    theirs = data.from_frame(
        pd.DataFrame(people()), target="cost", id_column="person", missing="impute"
    )
    np.testing.assert_array_equal(ours.features, theirs.features)
    np.testing.assert_array_equal(ours.target, theirs.target)
    assert ours.record_ids == theirs.record_ids
    assert ours.feature_names == theirs.feature_names
    assert ours.feature_names[-3:] == ("ward=east", "ward=north", "ward=south")
    assert ours.steps == theirs.steps
    assert any("of height filled in by the median" in step for step in ours.steps)
    assert any("of smokes filled in by the most frequent" in step for step in ours.steps)


def test_audit():
    result = leakscope.audit_frame(
        frame(), target="cost", id_column="person", missing="drop", model="rbf"
    )
    assert len(result.record_ids) == 17
    assert "p3" not in result.record_ids
    wards = leakscope.audit_frame(
        frame().drop("height", "smokes").drop_nulls(),
        target="ward",
        task="classification",
        group_column="person",
        model="rbf",
    )
    assert wards.unit == "group"


def test_missing_values_are_refused_by_default():
    with pytest.raises(InputError, match="column 'height' is empty in row 3"):
        data.from_frame(frame(), target="cost", id_column="person")


@pytest.mark.parametrize(
    "kind", [pl.Categorical, pl.Enum(["east", "north", "south", "west"]), pl.String]
)
def test_categories(kind):
    table = frame().with_columns(pl.col("ward").cast(kind)).select("age", "ward", "cost")
    dataset = data.from_frame(table, target="cost", missing="impute")
    assert dataset.feature_names == ("age", "ward=east", "ward=north", "ward=south")
    np.testing.assert_array_equal(dataset.features[:3, 1:], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    by_ward = data.from_frame(table.drop_nulls(), target="ward", task="classification")
    assert set(by_ward.target) == {"north", "south", "east"}


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_numbers_of_every_kind(kind):
    table = pl.DataFrame({"a": pl.Series([1, 2, 3, 5]).cast(kind), "y": [0.0, 1.0, 0.5, 2.0]})
    dataset = data.from_frame(table, target="y")
    np.testing.assert_array_equal(dataset.features[:, 0], [1.0, 2.0, 3.0, 5.0])


@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2020, 1, day) for day in range(1, 5)],
        [datetime.datetime(2020, 1, day) for day in range(1, 5)],
        [datetime.time(hour) for hour in range(4)],
        [datetime.timedelta(days=day) for day in range(4)],
        [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)],
    ],
    ids=["date", "datetime", "time", "duration", "with a null"],
)
@pytest.mark.parametrize("role", ["feature", "target"])
def test_dates_are_refused_in_one_sentence(values, role):
    table = pl.DataFrame({"when": values, "x": [1.0, 2.0, 3.0, 4.0], "y": [0.0, 1.0, 0.5, 2.0]})
    if role == "target" and values[1] is None:
        return
    with pytest.raises(
        InputError, match=r"^the frame: column 'when' holds dates or times; [^.]*\.$"
    ):
        data.from_frame(table, target="when" if role == "target" else "y", missing="impute")


def test_what_is_no_table_is_refused():
    for wrong in (frame().lazy(), frame()["age"].to_list()):
        with pytest.raises(InputError, match="a pandas, polars or Arrow table is needed"):
            data.from_frame(wrong, target="cost")
    with pytest.raises(InputError, match="holds no records"):
        data.from_frame(frame().head(0), target="cost")
    nested = pl.DataFrame({"a": [[1.0, 2.0], [3.0, 4.0]], "x": [1.0, 2.0], "y": [0.0, 1.0]})
    with pytest.raises(InputError, match="column 'a' holds lists or tables"):
        data.from_frame(nested, target="y")
