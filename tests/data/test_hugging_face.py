"""Folders that the real ``datasets`` library wrote (see reference), and bad ones."""

from __future__ import annotations

import contextlib
import io as streams
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from leakscope import data
from leakscope.cli import main
from leakscope.data.sources import read_again
from leakscope.errors import InputError

REFERENCE = Path(__file__).parent / "reference"
Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def copy(tmp_path):
    """A folder of its own, to be spoilt."""

    def make(name):
        return Path(shutil.copytree(REFERENCE / name, tmp_path / name))

    return make


def write(folder, table, **info):
    """A folder as save_to_disk lays it out, from an Arrow table."""
    folder.mkdir(exist_ok=True)
    with (
        pa.OSFile(str(folder / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": info}))
    return folder


def test_a_table_in_two_shards():
    dataset = data.read_dataset(
        REFERENCE / "hf_table", target="label", id_column="name", missing="impute"
    )
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, 12)
    embedding = rng.standard_normal((12, 3)).round(3)
    assert dataset.record_ids == tuple(f"p{i}" for i in range(12))
    assert dataset.target.tolist() == ["cat", "dog", "owl"] * 4
    assert dataset.task == "classification"
    assert dataset.feature_names == (
        "age",
        "ward=east",
        "ward=north",
        "ward=south",
        "smokes",
        "dose",
        "embedding[0]",
        "embedding[1]",
        "embedding[2]",
    )
    np.testing.assert_array_equal(dataset.features[:, 0], age)
    np.testing.assert_allclose(dataset.features[:, 6:], embedding, atol=1e-6)
    # Twelve doses, 0 to 11 without 5: the median of the others.
    np.testing.assert_array_equal(dataset.features[:, 5], [0, 1, 2, 3, 4, 6, 6, 7, 8, 9, 10, 11])
    assert dataset.picture is None
    assert any("lists of 3 numbers" in step for step in dataset.steps)
    again = read_again(dataset.source)
    np.testing.assert_array_equal(again.features, dataset.features)


def test_splits():
    with pytest.raises(InputError, match="several splits; name one with --split: train, test"):
        data.read_dataset(REFERENCE / "hf_splits", target="label")
    with pytest.raises(InputError, match="no split 'valid'; there are train, test"):
        data.read_dataset(REFERENCE / "hf_splits", target="label", split="valid")
    with pytest.raises(InputError, match="without splits; leave --split out"):
        data.read_dataset(REFERENCE / "hf_table", target="label", split="train")
    # The rows 7, 2, 9, 0, 4 were chosen before saving.
    test = data.read_dataset(
        REFERENCE / "hf_splits", target="label", id_column="name", split="test"
    )
    assert test.record_ids == ("p7", "p2", "p9", "p0", "p4")
    assert test.name == "hf_splits-test"
    assert read_again(test.source).record_ids == test.record_ids
    # A split's own folder is a dataset, too.
    own = data.read_dataset(REFERENCE / "hf_splits" / "test", target="label", id_column="name")
    np.testing.assert_array_equal(own.features, test.features)


def test_one_split_needs_no_name(copy):
    folder = copy("hf_splits")
    (folder / "dataset_dict.json").write_text('{"splits": ["test"]}')
    assert data.read_dataset(folder, target="age", ignore=["name"]).source.split == "test"


def test_pictures_are_decoded_and_know_their_shape():
    dataset = data.read_dataset(REFERENCE / "hf_pictures", target="label")
    assert dataset.features.shape == (6, 240)
    assert dataset.picture == (8, 10, 3)
    assert dataset.target.tolist() == ["cat", "dog"] * 3
    rng = np.random.default_rng(1)
    for i in range(6):
        grey = np.add.outer(np.arange(8), np.arange(10)) * 6 + 10 * i + rng.integers(0, 5, (8, 10))
        pixels = dataset.features[i].reshape(8, 10, 3)
        if i == 4:
            expected = np.stack([grey, grey // 2, 255 - grey], axis=2)
        else:
            expected = np.repeat(grey[:, :, None], 3, axis=2)
        # Row 3 is a JPEG, which is near.
        np.testing.assert_allclose(pixels, expected, atol=8 if i == 3 else 0)


def test_arrays_know_their_shape():
    dataset = data.read_dataset(REFERENCE / "hf_arrays", target="y")
    rng = np.random.default_rng(2)
    expected = np.add.outer(np.arange(9), np.arange(8)) + rng.integers(0, 3, (5, 9, 8))
    np.testing.assert_array_equal(dataset.features.reshape(5, 9, 8), expected)
    assert dataset.picture == (9, 8)
    assert dataset.task == "regression"


def test_the_command_line_finds_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    words = ["audit", str(REFERENCE / "hf_pictures"), "--target", "label", "--no-sensitivity"]
    assert main([*words, "--run-dir", str(run)]) == 0
    assert "on hf_pictures; your model was not examined" in capsys.readouterr().out
    with Image.open(run / "record_0.png") as shown:
        assert shown.width * 8 == shown.height * 10
    assert main(["audit", str(REFERENCE / "hf_splits"), "--target", "label"]) == 2
    assert "--split: train, test" in capsys.readouterr().err


def test_ignored_columns_are_not_decoded(copy, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'leakscope\[images\]'"):
        data.read_dataset(REFERENCE / "hf_pictures", target="label")
    with pytest.raises(InputError, match="no feature is left"):
        data.read_dataset(REFERENCE / "hf_pictures", target="label", ignore=["image"])


def test_labels_without_a_class_are_empty(tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "label": [0, -1, None, 1]})
    kind = {"_type": "ClassLabel", "names": ["a", "b"]}
    folder = write(tmp_path / "d", table, label=kind)
    with pytest.raises(InputError, match="column 'label' is empty in row 1"):
        data.read_dataset(folder, target="label")
    kept = data.read_dataset(folder, target="label", missing="drop")
    assert kept.target.tolist() == ["a", "b"]
    assert kept.record_ids == (0, 3)


def test_older_folders_with_indices(copy):
    folder = copy("hf_splits") / "train"
    state = json.loads((folder / "state.json").read_text())
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (folder / "state.json").write_text(json.dumps(state))

    def indices(rows, kind):
        table = pa.table({"indices": pa.array(rows, kind)})
        with (
            pa.OSFile(str(folder / "indices.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as writer,
        ):
            writer.write_table(table)

    indices([3, 0, 3, 1], pa.uint64())
    dataset = data.read_dataset(folder, target="age", ignore=["name", "dose"])
    whole = data.read_dataset(REFERENCE / "hf_splits/train", target="age", ignore=["name", "dose"])
    np.testing.assert_array_equal(dataset.target, whole.target[[3, 0, 3, 1]])
    indices([3, 99], pa.uint64())
    with pytest.raises(InputError, match=r"indices name row 99, but there are 8"):
        data.read_dataset(folder, target="age", ignore=["name"])
    indices([1, None], pa.uint64())
    with pytest.raises(InputError, match="without gaps"):
        data.read_dataset(folder, target="age", ignore=["name"])
    # Never cut down to whole numbers: 1.9 is no row.
    indices([1.9, 0.0], pa.float64())
    with pytest.raises(InputError, match=r"not row numbers \(they are of the type double\)"):
        data.read_dataset(folder, target="age", ignore=["name"])
    indices(["x"], pa.string())
    with pytest.raises(InputError, match="not row numbers"):
        data.read_dataset(folder, target="age", ignore=["name"])


@pytest.mark.parametrize(
    ("column", "kind", "sentence"),
    [
        (pa.array([[1.0], [1.0, 2.0]]), {}, "lists in column 'bad' differ in length"),
        (pa.array([[1.0], None]), {}, "lists in column 'bad' differ in length, or one is empty"),
        (pa.array([["a"], ["b"]]), {}, "lists of string, which are no numbers"),
        (pa.array([{"a": 1}, {"a": 2}]), {}, "column 'bad' holds struct<a: int64>"),
        (pa.array([b"a", b"b"]), {}, "column 'bad' holds binary"),
        (pa.array([0, 7]), {"_type": "ClassLabel", "names": ["a"]}, "holds class 7 in row 1"),
        (pa.array([0, 0]), {"_type": "ClassLabel"}, "does not name the classes of 'bad'"),
        (pa.array([1, 2]), {"_type": "Image"}, "picture 'bad' in row 0 .* is not in the folder"),
        (
            pa.array([{"bytes": None, "path": "/etc/passwd"}] * 2),
            {"_type": "Image"},
            "picture 'bad' in row 0 .* is not in the folder",
        ),
        (
            pa.array([{"bytes": b"no picture", "path": None}] * 2),
            {"_type": "Image"},
            "picture 'bad' in row 0 .* cannot be read as a picture",
        ),
        (pa.array([0, 1], pa.timestamp("s")), {}, "column 'bad' holds dates or times"),
        (pa.array([0, 1], pa.date32()), {}, "column 'bad' holds dates or times"),
        (pa.array([0, 1], pa.time32("s")), {}, "column 'bad' holds dates or times"),
    ],
)
def test_columns_that_are_no_features(tmp_path, column, kind, sentence):
    folder = write(
        tmp_path / "d", pa.table({"y": [0.0, 1.0], "x": [1, 2], "bad": column}), bad=kind
    )
    with pytest.raises(InputError, match=sentence):
        data.read_dataset(folder, target="y")
    # Ignored, they are left alone.
    assert data.read_dataset(folder, target="y", ignore=["bad"]).feature_names == ("x",)


def test_pictures_of_two_sizes(tmp_path):
    def encoded(height):
        stream = streams.BytesIO()
        Image.fromarray(np.zeros((height, 9), dtype=np.uint8)).save(stream, format="PNG")
        return {"bytes": stream.getvalue(), "path": None}

    table = pa.table({"y": [0.0, 1.0], "image": [encoded(8), encoded(9)]})
    folder = write(tmp_path / "d", table, image={"_type": "Image"})
    with pytest.raises(InputError, match=r"row 1 .* has 9 x 9 pixels, but .*row 0 .* has 9 x 8"):
        data.read_dataset(folder, target="y")


def _spoil(file, content):
    return lambda folder: (folder / file).write_bytes(content)


def _shorten(file, size):
    return lambda folder: (folder / file).write_bytes((folder / file).read_bytes()[:size])


SHARD = "data-00000-of-00002.arrow"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_spoil("state.json", b"{"), "state.json is not JSON"),
        (_spoil("state.json", b"[]"), "state.json is not a JSON object"),
        (_spoil("state.json", b"{}"), "names no data files"),
        (_spoil("state.json", b'{"_data_files": 3}'), "_data_files is not a list"),
        (_spoil("state.json", b'{"_data_files": ["a.arrow"]}'), "a plain name in the folder"),
        (
            _spoil("state.json", b'{"_data_files": [{"filename": "../hf_table/x.arrow"}]}'),
            "a plain name in the folder",
        ),
        (
            _spoil("state.json", b'{"_data_files": [{"filename": "/etc/passwd"}]}'),
            "a plain name in the folder",
        ),
        (_spoil("state.json", b'{"_data_files": [{"filename": "x.arrow"}]}'), "There is no file"),
        (lambda folder: (folder / "dataset_info.json").unlink(), "There is no file"),
        (_spoil("dataset_info.json", b"{}"), "features in .* is not a JSON object"),
        (_spoil(SHARD, b""), "is not an Arrow stream"),
        (_spoil(SHARD, b"PK\x03\x04" * 50), "is not an Arrow stream"),
        (_shorten(SHARD, 900), "is not an Arrow stream"),
        (_shorten(SHARD, 1400), "is not an Arrow stream"),
        (
            lambda folder: shutil.copy(
                REFERENCE / "hf_arrays" / "data-00000-of-00001.arrow", folder / SHARD
            ),
            "do not hold the same columns",
        ),
    ],
)
def test_spoilt_folders_end_in_a_sentence(copy, spoil, sentence, tmp_path, monkeypatch, capsys):
    folder = copy("hf_table")
    spoil(folder)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", str(folder), "--target", "age", "--ignore", "name"]) == 2
    said = capsys.readouterr().err
    with pytest.raises(InputError, match=sentence):
        data.read_dataset(folder, target="age")
    assert said.startswith("leakscope: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", [SHARD, "state.json", "dataset_info.json"])
def test_a_link_out_of_the_folder_is_not_followed(copy, name, tmp_path):
    """A folder from somebody else must not make its reader open the reader's own files."""
    folder = copy("hf_table")
    outside = (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(outside)
    with pytest.raises(InputError, match="is a link that leads out of its folder"):
        data.read_dataset(folder, target="age")


def test_a_link_within_the_folder_is_followed(copy):
    folder = copy("hf_table")
    (folder / SHARD).rename(folder / "first.arrow")
    (folder / SHARD).symlink_to("first.arrow")
    whole = data.read_dataset(
        REFERENCE / "hf_table", target="age", id_column="name", missing="impute"
    )
    found = data.read_dataset(folder, target="age", id_column="name", missing="impute")
    np.testing.assert_array_equal(found.target, whole.target)


@pytest.mark.parametrize("splits", ['{"splits": []}', '{"splits": ["../x"]}', "[]", "{}"])
def test_spoilt_splits_end_in_a_sentence(copy, splits):
    folder = copy("hf_splits")
    (folder / "dataset_dict.json").write_text(splits)
    with pytest.raises(InputError, match=r"dataset_dict\.json"):
        data.read_dataset(folder, target="age")


def test_random_damage_never_ends_in_a_traceback(copy):
    """Bytes of a shard changed at random: read, or refused in a sentence."""
    folder = copy("hf_table")
    whole = (folder / SHARD).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(150):
        spoilt = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            spoilt[place] = rng.integers(256)
        (folder / SHARD).write_bytes(bytes(spoilt))
        with contextlib.suppress(InputError):
            data.read_dataset(folder, target="age", ignore=["name"], missing="impute")


def test_splits_belong_to_hugging_face(tmp_path, capsys):
    file = tmp_path / "a.csv"
    file.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match="no Hugging Face dataset and has no splits"):
        data.read_dataset(file, target="b", split="train")
    assert main(["audit", "--example", "wine", "--split", "train"]) == 2
    assert "--split belong to a file" in capsys.readouterr().err
