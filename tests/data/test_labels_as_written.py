"""What a text file says, kept: headings, leading zeros, large ids, and results beside inputs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leakscope import InputError, data
from leakscope.cli import main
from leakscope.data.preparation import prepare


def written(folder, text, name="data.csv"):
    file = folder / name
    file.write_text(text)
    return file


ZEROS = "id,g,c,x,y\n001,01,1,1.0,2\n1,1,01,2.0,3\n071,01,1,3.5,4\n71,2,02,1.5,0\n"


def test_a_leading_zero_makes_another_id_group_and_class(tmp_path):
    file = written(tmp_path, ZEROS)
    found = data.read_dataset(file, target="y", id_column="id", group_column="g", ignore=["c"])
    assert found.record_ids == ("001", "1", "071", "71")
    assert found.group == ("01", "1", "01", "2")
    classes = data.read_dataset(file, target="c", task="classification", ignore=["id", "g"])
    assert sorted(set(classes.target.tolist())) == ["01", "02", "1"]


def test_numbers_without_leading_zeros_stay_numbers(tmp_path):
    file = written(tmp_path, "id,g,x,y\n10,0,1.0,2\n2,1,2.0,3\n30,0,3.0,5\n")
    found = data.read_dataset(file, target="y", id_column="id", group_column="g")
    assert found.record_ids == (10, 2, 30)
    assert found.group == (0, 1, 0)


def test_a_feature_with_leading_zeros_is_a_number(tmp_path):
    file = written(tmp_path, "x,y\n001,2\n010,3\n100,5\n")
    assert data.read_dataset(file, target="y").features[:, 0].tolist() == [1.0, 10.0, 100.0]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_first_line_of_numbers_is_no_heading(tmp_path, suffix):
    text = "9.0,1,2\n1,2,3\n2,2,4\n3,1,1\n"
    separator = "," if suffix == "csv" else "\t"
    file = written(tmp_path, text.replace(",", separator), f"data.{suffix}")
    with pytest.raises(InputError, match=r"first line holds numbers only \(9.0, 1, 2\)"):
        data.read_dataset(file, target="-1")


@pytest.mark.parametrize("first", [0, 1])
def test_columns_that_are_counted_are_a_heading(tmp_path, first):
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=range(first, first + 3))
    frame.to_csv(tmp_path / "data.csv", index=False)
    found = data.read_dataset(tmp_path / "data.csv", target="-1")
    assert found.features.shape == (4, 2)


@pytest.mark.parametrize("largest", [2**63 - 1, 2**63, 2**64 - 1, 2**64 + 5])
def test_large_ids(tmp_path, largest):
    file = written(tmp_path, f"id,x,y\n1,1.0,2\n2,2.0,3\n{largest},3.5,1\n")
    assert main(["audit", str(file), "--target", "y", "--id", "id", "--json", str(file) + ".json",
                 "--run-dir", str(tmp_path / "run")]) == 0  # fmt: skip
    found = json.loads((tmp_path / "data.csv.json").read_text())
    assert {str(record["record_id"]) for record in found["records"]} == {"1", "2", str(largest)}


def test_a_tiny_target_is_standardised(tmp_path):
    file = written(tmp_path, "\n".join(["x,y", *(f"{i},{i}e-170" for i in range(20))]) + "\n")
    rows = "\n".join(["x,y", *(f"{i},{i}" for i in range(20))])
    whole = written(tmp_path, rows + "\n", "whole.csv")
    found, same = (prepare(data.read_dataset(each, target="y")) for each in (file, whole))
    np.testing.assert_allclose(found.target, same.target, rtol=1e-12)


def test_a_target_that_rounding_hides_is_refused(tmp_path):
    rows = [f"{i},{10**15 + i % 10}" for i in range(20)]
    file = written(tmp_path, "\n".join(["x,y", *rows]) + "\n")
    with pytest.raises(InputError, match=r"column 'y' varies by .* multiply it by a power of ten"):
        prepare(data.read_dataset(file, target="y"))


def test_a_result_is_not_written_over_what_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "x,y\n1,2\n2,3\n4,1\n"
    written(tmp_path, text)
    (tmp_path / "link.csv").symlink_to(tmp_path / "data.csv")
    for name in ("data.csv", "./data.csv", "link.csv"):
        assert main(["audit", "data.csv", "--target", "y", "--json", name]) == 2
        assert "would overwrite" in capsys.readouterr().err
    assert (tmp_path / "data.csv").read_text() == text
    assert main(["audit", "data.csv", "--target", "y", "--run-dir", "run"]) == 0
    before = (tmp_path / "run" / "result.json").read_text()
    assert main(["verify", "run", "--draws", "100", "--json", "run/result.json"]) == 2
    assert (tmp_path / "run" / "result.json").read_text() == before


DECIMALS = ("1.1", "1.10", "1.2", "1.1", "1.10", "1.2")
LONG = tuple(f"123456789012345678{i}" for i in range(6))


def labelled(folder, labels, suffix=".csv"):
    lines = [f"{label},{i % 4},{i * 1.5}" for i, label in enumerate(labels)]
    return written(folder, "g,x,y\n" + "\n".join(lines) + "\n", f"data{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_groups_and_classes_are_what_was_written(tmp_path, suffix):
    file = labelled(tmp_path, DECIMALS)
    if suffix == ".tsv":
        file = written(tmp_path, file.read_text().replace(",", "\t"), "data.tsv")
    grouped = data.read_dataset(file, target="y", group_column="g")
    assert grouped.group == DECIMALS
    classes = data.read_dataset(file, target="g", task="classification")
    assert classes.target.tolist() == list(DECIMALS)
    assert data.read_dataset(file, target="y", by="g").by == {"g": DECIMALS}


def test_long_ids_with_a_gap_are_what_was_written(tmp_path):
    """One empty row has pandas read the column as floating-point numbers: six become two."""
    file = written(
        tmp_path,
        "id,x,y\n" + "".join(f"{name},{i},{i % 3}\n" for i, name in enumerate(LONG)) + ",7,\n",
    )
    found = data.read_dataset(file, target="y", id_column="id", missing="drop")
    assert found.record_ids == LONG
    by = data.read_dataset(file, target="y", ignore=["id"], by="id", missing="drop")
    assert by.by == {"id": LONG}


def test_a_feature_that_is_also_a_subgroup_stays_a_number(tmp_path):
    found = data.read_dataset(labelled(tmp_path, DECIMALS), target="y", by="g")
    assert found.feature_names == ("g", "x")
    assert found.features[:, 0].tolist() == [1.1, 1.1, 1.2, 1.1, 1.1, 1.2]


def test_numbers_of_a_frame_are_told_apart_by_all_their_digits():
    frame = pd.DataFrame({"g": [0.1, 0.1 + 1e-12, 3.0], "x": [1, 2, 3], "y": [1.0, 2.0, 4.0]})
    assert len(set(data.from_frame(frame, target="y", by="g").by["g"])) == 3


def test_reversed_ids_and_shuffled_groups_are_other_data(tmp_path):
    rows = [f"p{i},{i % 4},{i * 1.5},{i % 3}" for i in range(12)]
    turned = [f"p{11 - i},{i % 4},{i * 1.5},{i % 3}" for i in range(12)]
    groups = [f"p{i},{i % 4},{i * 1.5},{(i + 1) % 3}" for i in range(12)]
    heading = "id,x,y,g\n"
    first = written(tmp_path, heading + "\n".join(rows))
    source = data.read_dataset(first, target="y", id_column="id", group_column="g").source
    for name, lines in (("ids.csv", turned), ("groups.csv", groups)):
        other = written(tmp_path, heading + "\n".join(lines), name)
        with pytest.raises(InputError, match="does not hold the data that the result is about"):
            source.read_again(other)
    # The same rows with other line ends are the same values in another file.
    same = written(tmp_path, heading.strip() + "\r\n" + "\r\n".join(rows) + "\r\n", "same.csv")
    assert source.read_again(same).record_ids[0] == "p0"


def test_the_file_s_bytes_tell_where_a_parser_s_last_digit_differs(tmp_path, monkeypatch):
    from leakscope.data import sources

    file = written(tmp_path, "x,y\n" + "\n".join(f"{i / 7},{i % 3}" for i in range(12)) + "\n")
    source = data.read_dataset(file, target="y").source
    read = sources.read_table

    def another_pandas(path, layout=None):
        table = read(path)
        return table.assign(x=np.nextafter(table["x"].to_numpy(), np.inf))

    monkeypatch.setattr(sources, "read_table", another_pandas)
    assert source.read_again().features.shape == (12, 1)
    file.write_text(file.read_text().replace("0.0,0", "0.5,0"))
    with pytest.raises(InputError, match="they have changed since"):
        source.read_again()


@pytest.mark.parametrize("name", [None, "person"])
def test_a_pandas_index_in_parquet_names_the_records(tmp_path, name):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 3.0]},
        index=pd.Index(["ann", "bob", "cid"], name=name),
    )
    frame.to_parquet(tmp_path / "data.parquet")
    found = data.read_dataset(tmp_path / "data.parquet", target="y")
    assert found.record_ids == ("ann", "bob", "cid")
    assert found.feature_names == ("x",)
    assert found.source.read_again().record_ids == found.record_ids


def test_an_index_that_names_nobody_is_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 3.0]}, index=[7, 7, 9])
    frame.to_parquet(tmp_path / "data.parquet")
    found = data.read_dataset(tmp_path / "data.parquet", target="y")
    assert found.record_ids == (0, 1, 2)
    assert found.feature_names == ("x",)
    assert "ignored: __index_level_0__" in found.steps


def test_subgroups_of_infinite_numbers_are_refused(tmp_path):
    text = "z,x,y\n" + "".join(f"{i % 7},{i},{i % 3}\n" for i in range(30)) + "1,inf,1\n"
    with pytest.raises(InputError, match="column 'x' holds an infinite number in row 30"):
        data.read_dataset(written(tmp_path, text), target="y", by="x", ignore=["x"])
