"""A source is passed whole: read, read once, stored in a result and read again."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from leakscope import InputError, data
from leakscope.data import sources
from leakscope.data.sources import raw_features
from leakscope.errors import Where
from leakscope.results.document import DatasetEntry
from leakscope.settings.data import DataSettings


def _two_values(tmp_path, labels=("01", "02")):
    rows = [f"{i},{i / 7},{labels[i % 2]},{'ab'[i % 2]}" for i in range(20)]
    file = tmp_path / "two.csv"
    file.write_text("id,x,y,c\n" + "\n".join(rows) + "\n")
    return file


def test_a_source_reads_what_the_function_reads(tmp_path):
    file = _two_values(tmp_path)
    options = {"target": "y", "id_column": "id", "by": ("c",), "ignore": ("c",), "sample": 12}
    one = data.read_dataset(file, **options)
    settings = DataSettings(**options)
    other = data.Source.of(settings, file=file).read()
    np.testing.assert_array_equal(one.features, other.features)
    assert (one.record_ids, one.steps, one.by) == (other.record_ids, other.steps, other.by)
    assert one.source == other.source


def test_every_reading_option_is_a_field_of_the_source():
    fields = set(data.Source.__dataclass_fields__)
    assert fields == {*DataSettings.model_fields, "file", "example", "digest"}


@pytest.mark.parametrize("sample", [None, 12])
def test_two_values_are_classes_without_reading_the_table_again(tmp_path, monkeypatch, sample):
    source = data.Source(file=str(_two_values(tmp_path)), target="y", sample=sample)
    asked = replace(source, task="classification").read()
    count = 0
    read = sources.read_table

    def counted(*arguments):
        nonlocal count
        count += 1
        return read(*arguments)

    monkeypatch.setattr(sources, "read_table", counted)
    found = source.read(two_values_are_classes=True)
    assert count == 1
    assert found.target.tolist() == asked.target.tolist()
    assert set(found.target.tolist()) == {"01", "02"}
    assert found.source == asked.source
    assert found.steps == asked.steps
    assert source.read().task == "regression"
    regression = replace(source, task="regression")
    assert regression.read(two_values_are_classes=True).task == "regression"


def test_a_frame_of_two_values_too():
    frame = pd.DataFrame({"x": np.arange(8.0), "y": [0, 1] * 4})
    assert data.from_frame(frame, target="y").task == "regression"
    found = data.from_frame(frame, target="y", two_values_are_classes=True)
    assert found.task == "classification"
    assert found.target.tolist() == [0, 1] * 4


def test_a_source_is_stored_as_it_always_was(tmp_path):
    source = data.read_dataset(_two_values(tmp_path), target="y", by="c", na_values=["?"]).source
    assert source.by == ("c",)
    names = ["file", "example", "target", "id_column", "task", "digest", "group_column", "ignore"]
    names += ["missing", "header", "na_values", "decimal", "sample", "sample_seed"]
    assert list(source.to_dict()) == names
    kept = json.loads(json.dumps(source.to_dict()))
    assert data.Source.from_dict(kept) == replace(source, by=())
    entry = DatasetEntry.of(data.read_example("wine"))
    assert data.Source.from_dict(entry.source.model_dump()).read_again().name == "wine"
    assert data.Source.from_dict(kept).read_again().record_ids == tuple(range(20))


def test_a_source_of_nothing_is_refused():
    with pytest.raises(InputError, match="a file or an example"):
        data.Source().read()
    with pytest.raises(InputError, match="does not say where its data are"):
        data.Source().read_again()


def test_an_error_has_its_place_its_remedy_and_its_option(tmp_path):
    file = tmp_path / "gap.csv"
    file.write_text("x,y\n1,2\n,3\n")
    with pytest.raises(InputError) as caught:
        data.read_dataset(file, target="y")
    error = caught.value
    assert str(error) == f"{error.what}; {error.remedy}."
    assert error.where == Where(str(file), "x", 1)
    assert error.option == "missing"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.where, again.option) == (str(error), error.where, error.option)
    plain = InputError("one sentence.")
    assert (str(plain), plain.what, plain.where, plain.remedy) == (
        *("one sentence.", "one sentence."),
        *(None, None),
    )


def test_a_table_s_own_columns_are_read_as_the_dataset_was(tmp_path):
    file = tmp_path / "commas.csv"
    file.write_text("a;b;y\n" + "\n".join(f"{i},5;{'pq'[i % 2]};{i}" for i in range(6)) + "\n")
    dataset = data.read_dataset(file, target="y", decimal=",")
    found = raw_features(dataset, ["a", "b"])
    assert found["a"].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert found["b"].tolist() == ["p", "q"] * 3
