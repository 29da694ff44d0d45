"""What a text file says, kept: headings, leading zeros, large ids, and results beside inputs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leakscope import InputError, data
from leakscope.cli import main


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


@pytest.mark.parametrize("y", ["1e-170", "1000000000000000"])
def test_a_target_that_rounding_hides_is_refused(tmp_path, y):
    step = "e-170" if y == "1e-170" else ""
    rows = [f"{i},{i}{step}" if step else f"{i},{int(y) + i % 10}" for i in range(20)]
    file = written(tmp_path, "\n".join(["x,y", *rows]) + "\n")
    with pytest.raises(InputError, match=r"column 'y' varies by .* multiply it by a power of ten"):
        data.prepare(data.read_dataset(file, target="y"))


def test_a_result_is_not_written_over_what_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = "x,y\n1,2\n2,3\n4,1\n"
    written(tmp_path, text)
    (tmp_path / "link.csv").symlink_to(tmp_path / "data.csv")
    for name in ("data.csv", "./data.csv", "link.csv"):
        assert main(["audit", "data.csv", "--target", "y", "--json", name]) == 2
        assert "would write over what is read" in capsys.readouterr().err
    assert (tmp_path / "data.csv").read_text() == text
    assert main(["audit", "data.csv", "--target", "y", "--run-dir", "run"]) == 0
    before = (tmp_path / "run" / "result.json").read_text()
    assert main(["verify", "run", "--draws", "100", "--json", "run/result.json"]) == 2
    assert (tmp_path / "run" / "result.json").read_text() == before
