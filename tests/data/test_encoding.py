"""Categories, booleans, empty values and tables in memory, as features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from leakscope import data
from leakscope.data.preparation import prepare
from leakscope.errors import InputError

TABLE = """person,age,smokes,region,cost
ann,31,True,north,1.0
bob,45,False,south,3.0
cat,28,True,north,1.5
dan,,False,east,2.0
eve,52,True,,3.2
fay,33,False,south,2.5
"""


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


def test_categories_become_indicators_and_are_not_scaled(people):
    dataset = data.read_dataset(people, target="cost", id_column="person", missing="impute")
    names = ("age", "smokes", "region=east", "region=north", "region=south")
    assert dataset.feature_names == names
    assert dataset.indicators == (2, 3, 4)
    expected = pd.get_dummies(["north", "south", "north", "east", "north", "south"])
    np.testing.assert_array_equal(dataset.features[:, 2:], expected.to_numpy(dtype=float))
    np.testing.assert_array_equal(dataset.features[:, 1], [1, 0, 1, 0, 1, 0])
    prepared = prepare(dataset)
    np.testing.assert_array_equal(prepared.features[:, 2:], dataset.features[:, 2:])
    np.testing.assert_allclose(prepared.features[:, :2].std(axis=0), 1.0)
    assert any(step.startswith("numeric features standardised") for step in prepared.steps)


def test_what_was_filled_in_is_told(people):
    dataset = data.read_dataset(people, target="cost", id_column="person", missing="impute")
    assert dataset.features[3, 0] == 33.0
    told = " ".join(dataset.steps)
    assert "1 empty value of age filled in by the median, 33 (scikit-learn SimpleImputer)" in told
    assert "1 empty value of region filled in by the most frequent, 'north'" in told
    assert "booleans taken as 0 and 1: smokes" in told
    assert "categories one-hot encoded as 3 features of 0 and 1" in told


def test_dropping_keeps_the_ids_of_the_others(people):
    dataset = data.read_dataset(people, target="cost", id_column="person", missing="drop")
    assert dataset.record_ids == ("ann", "bob", "cat", "fay")
    assert "dropped 2 records with an empty value (age, region); 4 are left" in dataset.steps
    rows = data.read_dataset(people, target="cost", ignore=["person"], missing="drop")
    assert rows.record_ids == (0, 1, 2, 5)
    assert "ignored: person" in rows.steps
    again = rows.source.read_again()
    np.testing.assert_array_equal(again.features, rows.features)


def test_booleans_with_gaps_and_numbers_as_text(tmp_path):
    frame = pd.DataFrame(
        {"a": [True, None, True, False], "b": ["1", "2.5", "3", "4"], "y": [1.0, 2.0, 3.0, 4.0]}
    )
    dataset = data.from_frame(frame, target="y", missing="impute")
    np.testing.assert_array_equal(dataset.features, [[1, 1], [1, 2.5], [1, 3], [0, 4]])
    assert dataset.indicators == ()


def test_declared_categories_are_categories_even_where_they_are_numbers():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2]), "y": [1.0, 2.0, 3.0, 4.0]})
    assert data.from_frame(frame, target="y").feature_names == ("a=1", "a=2")


@pytest.mark.parametrize(
    ("missing", "arguments", "sentence"),
    [
        ("error", {"id_column": "person"}, "'age' is empty in row 3 .* --read missing=drop or"),
        (
            "impute",
            {},
            "'person' holds 6 different values in 6 records .* name it with --id .* --ignore",
        ),
        ("error", {"ignore": ["cost"]}, "is the target and cannot be ignored"),
        ("error", {"ignore": ["price"]}, "no column 'price'"),
        ("error", {"group_column": "cost"}, "cannot be both the target and the group"),
    ],
)
def test_refusals_say_what_to_do(people, missing, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        data.read_dataset(people, target="cost", missing=missing, **arguments)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([None, None, None, None], "'a' is empty in every row"),
        (["1", "2", "x", "3"], "'a' holds 'x' in row 2 .* not a finite number"),
        (pd.date_range("2024-01-01", periods=4), "'a' holds dates or times"),
        ([1 + 2j, 1, 1, 1], "'a' holds complex numbers"),
        ([[1], [2], [3], [4]], "'a' holds lists or tables"),
        (pd.Series([10**400, 1, 2, 3], dtype=object), "'a' holds 1000.* not a finite number"),
    ],
)
def test_columns_that_cannot_be_used(values, sentence):
    frame = pd.DataFrame({"a": values, "y": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(InputError, match=sentence) as caught:
        data.from_frame(frame, target="y")
    assert "\n" not in str(caught.value)


def test_an_empty_target_is_never_filled_in():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, None, 2.0]})
    with pytest.raises(InputError, match=r"'y' is empty in row 1 .* --read missing=drop"):
        data.from_frame(frame, target="y", missing="impute")
    assert data.from_frame(frame, target="y", missing="drop").record_ids == (0, 2)
    with pytest.raises(InputError, match="every record has an empty value"):
        data.from_frame(frame.assign(a=[None, 1.0, None]), target="y", missing="drop")


class OnlyArrow:
    """What a polars frame is to us: something that hands over Arrow."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyToPandas:
    def __init__(self, frame):
        self._frame = frame

    def to_pandas(self):
        return self._frame


def test_tables_of_every_make_are_the_same():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "y": [1.0, 2.0, 3.0]})
    table = pa.Table.from_pandas(frame)
    for made in (table, OnlyArrow(table), OnlyToPandas(frame)):
        dataset = data.from_frame(made, target="y")
        np.testing.assert_array_equal(dataset.features, [[1, 1, 0], [2, 0, 1], [3, 1, 0]])
        assert dataset.record_ids == (0, 1, 2)
    with pytest.raises(InputError, match="this is a list"):
        data.from_frame([1, 2], target="y")
    with pytest.raises(InputError, match="holds no records"):
        data.from_frame(frame.head(0), target="y")


def test_a_frame_keeps_its_own_index_as_ids():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "y": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    dataset = data.from_frame(frame, target="y", missing="drop")
    assert dataset.record_ids == (7, 9)
    assert "record_id: the frame's index" in dataset.steps


def test_subgroups_and_groups_come_with_the_records(people):
    dataset = data.read_dataset(
        people, target="cost", group_column="person", by="region", missing="impute"
    )
    assert dataset.group == ("ann", "bob", "cat", "dan", "eve", "fay")
    assert dataset.by == {"region": ("north", "south", "north", "east", "(empty)", "south")}
    assert "region=north" in dataset.feature_names
    quarters = data.read_example("diabetes", by="age").by["age"]
    counts = np.unique(quarters, return_counts=True)[1]
    assert len(counts) == 4
    assert counts.min() > 90
    assert set(data.read_example("iris", by="target").by["target"]) == {"0", "1", "2"}


@pytest.mark.parametrize("power", [-420, -700, -1000])
def test_a_tiny_column_is_standardised_too(power):
    """Its squares are zero in float64: it counted as constant, and the audit lacked it, trusted."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    small = frame.assign(a=np.ldexp(X[:, 0], power), y=np.ldexp(y, power))
    usual, tiny = (prepare(data.from_frame(f, target="y")) for f in (frame, small))
    # A power of two is exact, so that every digit agrees.
    np.testing.assert_array_equal(tiny.features, usual.features)
    np.testing.assert_array_equal(tiny.target, usual.target)
