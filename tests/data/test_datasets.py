from __future__ import annotations

import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from leakscope import InputError, data
from leakscope.data.preparation import prepare

TABLE = "name,age,height,weight\nann,31,1.7,65\nbob,45,1.8,80\ncat,28,1.6,55\n"


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


def test_csv_with_target_and_ids(people):
    dataset = data.read_dataset(people, target="weight", id_column="name")
    assert dataset.record_ids == ("ann", "bob", "cat")
    assert dataset.feature_names == ("age", "height")
    np.testing.assert_array_equal(dataset.features, [[31, 1.7], [45, 1.8], [28, 1.6]])
    np.testing.assert_array_equal(dataset.target, [65, 80, 55])
    assert dataset.name == "people"
    assert "record_id: column name" in dataset.steps


@pytest.mark.parametrize("target", ["3", "-1", "weight"])
def test_target_by_name_or_position(people, target):
    assert data.read_dataset(people, target=target, id_column="0").target_name == "weight"


def test_row_numbers_from_zero_where_there_is_no_id(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    dataset = data.read_dataset(path, target="b")
    assert dataset.record_ids == (0, 1)
    assert "record_id: row numbers, starting at 0" in dataset.steps


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy", ".npz"])
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    path = tmp_path / f"data{suffix}"
    frame = pd.DataFrame(np.column_stack([X, y]), columns=["x0", "x1", "x2", "y"])
    if suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".npy":
        np.save(path, frame.to_numpy())
    else:
        np.savez(path, X=X, y=y)
    dataset = data.read_dataset(path, target="-1")
    np.testing.assert_array_equal(dataset.features, X)
    np.testing.assert_array_equal(dataset.target, y)


def test_npz_knows_its_target_and_ids_and_flattens_images(tmp_path):
    path = tmp_path / "images.npz"
    np.savez(path, X=np.arange(24.0).reshape(3, 2, 4), y=[0, 1, 0], ids=[7, 8, 9])
    dataset = data.read_dataset(path, task="classification")
    assert dataset.features.shape == (3, 8)
    assert dataset.record_ids == (7, 8, 9)


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"not a \.npy file of numbers"):
        data.read_dataset(path, target="0")
    archive = tmp_path / "x.npz"
    np.savez(archive, X=np.array([[1, "a"]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"not an \.npz archive"):
        data.read_dataset(archive)
    bare = tmp_path / "bare.npy"
    bare.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match="not a"):
        data.read_dataset(bare, target="0")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", "a,b\n1,2\n3,\n", "column 'b' is empty in row 1"),
        ("t.csv", "a,b\n1,2\nred,4\n", "column 'a' holds 'red' in row 1"),
        ("t.csv", "a,b\n1,2\ninf,4\n", "column 'a' holds inf in row 1"),
        ("t.csv", "a,b\n1,x\n3,y\n", "give --task classification"),
        ("t.csv", "a,a,b\n1,2,3\n", "two columns called 'a'"),
        ("t.csv", "b\n1\n2\n", "no feature is left"),
        ("t.csv", "a,b\n", "holds no records"),
        ("t.csv", "", "is not a table"),
        ("t.csv", 'a,b\n1,2\n"3,4\n', "is not a table"),
        ("t.csv", b"a,b\n\xff\xfe,2\n", "is not UTF-8 text"),
        ("t.csv", "a,b\nGenève,2\n".encode("latin-1"), "save it as UTF-8"),
        ("t.csv", "a,c\n1,2\n", "no column 'b' for the target; the columns are a, c"),
        ("t.parquet", "not parquet", "is not a Parquet file"),
        ("t.npy", "not npy", r"is not a \.npy file"),
        ("t.npz", "not npz", r"is not an \.npz archive"),
        ("t.xyz", "1", r"files that end in \.xyz cannot be read; these can: \.csv"),
        ("t", "1", "files that end in nothing"),
    ],
)
def test_refusals_name_the_place(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=sentence) as caught:
        data.read_dataset(path, target="b")
    assert "\n" not in str(caught.value)


def test_more_refusals(people, tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        data.read_dataset(tmp_path / "nowhere.csv", target="a")
    with pytest.raises(InputError, match="is a folder"):
        data.read_dataset(tmp_path, target="a")
    with pytest.raises(InputError, match="which column is the target"):
        data.read_dataset(people)
    with pytest.raises(InputError, match="cannot be both"):
        data.read_dataset(people, target="name", id_column="name")
    people.write_text(TABLE + "ann,1,1,1\n")
    with pytest.raises(InputError, match="holds 'ann' twice, in rows 0 and 3"):
        data.read_dataset(people, target="weight", id_column="name")
    several = tmp_path / "several.npz"
    np.savez(several, a=np.eye(2), b=np.eye(2))
    with pytest.raises(InputError, match="holds a, b; call the features X"):
        data.read_dataset(several)
    lengths = tmp_path / "lengths.npz"
    np.savez(lengths, X=np.eye(3), y=[1, 2])
    with pytest.raises(InputError, match=r"y has shape \(2,\), but there are 3 records"):
        data.read_dataset(lengths)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("X.npy", "hello")
    with pytest.raises(InputError, match="is not an"):
        data.read_dataset(tmp_path / "text.npz")


@pytest.mark.parametrize("name", data.EXAMPLES)
def test_examples(name):
    dataset = data.read_example(name)
    assert len(dataset.features) == len(dataset.target) == len(dataset.record_ids)
    assert len(dataset.feature_names) == dataset.features.shape[1]
    assert dataset.record_ids[0] == 0
    prepared = prepare(dataset)
    np.testing.assert_allclose(prepared.features.mean(axis=0), 0.0, atol=1e-10)
    assert prepared.target.dtype == np.float64


def test_an_unknown_example_is_refused():
    with pytest.raises(InputError, match="no example 'titanic'; there are diabetes"):
        data.read_example("titanic")


def test_diabetes_is_standardised_and_says_so():
    prepared = prepare(data.read_example("diabetes"))
    np.testing.assert_allclose(prepared.features.std(axis=0), 1.0)
    assert prepared.target.std() == pytest.approx(1.0)
    assert any("features standardised" in step for step in prepared.steps)
    assert "target standardised: minus 152.133, divided by 77.0057" in prepared.steps
    raw = prepare(data.read_example("diabetes"), scaling="none")
    np.testing.assert_array_equal(raw.features, data.read_example("diabetes").features)


@pytest.mark.parametrize("size", [1e-200, 1e-310])
def test_columns_of_tiny_numbers_are_standardised_too(size):
    """scikit-learn takes what has a variance below 1e-308 for constant."""
    given = data.read_example("diabetes")
    tiny = replace(given, features=given.features.copy(), target=given.target * size)
    tiny.features[:, 2] *= size
    found, wanted = prepare(tiny), prepare(given)
    exact = 1e-9 if size > 1e-300 else 1e-3  # below it, float64 itself has few digits
    np.testing.assert_allclose(found.features, wanted.features, atol=exact)
    np.testing.assert_allclose(found.target, wanted.target, atol=exact)


def test_classes_are_coded(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,y\n3,x\n")
    two = prepare(data.read_dataset(path, target="b", task="classification"))
    np.testing.assert_array_equal(two.target, [-0.5, 0.5, -0.5])
    path.write_text("a,b\n1,x\n2,y\n3,z\n4,x\n")
    three = prepare(data.read_dataset(path, target="b", task="classification"))
    np.testing.assert_allclose(three.target.sum(axis=1), 0.0, atol=1e-15)
    assert three.target.shape == (4, 3)
    path.write_text("a,b\n1,x\n2,x\n")
    with pytest.raises(InputError, match="one class only, 'x'"):
        prepare(data.read_dataset(path, target="b", task="classification"))
    path.write_text("a,b\n1,x\n2,y\n3,z\n")
    with pytest.raises(InputError, match="its own class"):
        prepare(data.read_dataset(path, target="b", task="classification"))
    path.write_text("a,b\n1,x\n2,\n3,z\n")
    with pytest.raises(InputError, match="empty in row 1"):
        data.read_dataset(path, target="b", task="classification")


def test_too_many_columns_and_classes_are_refused(tmp_path, monkeypatch):
    from leakscope.data import preparation, tables

    monkeypatch.setattr(tables, "MOST_COLUMNS", 4)
    monkeypatch.setattr(preparation, "MOST_CLASSES", 3)
    (tmp_path / "wide.csv").write_text("a,b,c,d,e\n1,2,3,4,5\n")
    with pytest.raises(InputError, match="has 5 columns, more than the 4 that are read"):
        data.read_dataset(tmp_path / "wide.csv", target="a")
    lines = "".join(f"{i},{'pqrs'[i % 4]}\n" for i in range(12))
    (tmp_path / "many.csv").write_text(f"x,c\n{lines}")
    found = data.read_dataset(tmp_path / "many.csv", target="c", task="classification")
    with pytest.raises(InputError, match="holds 4 classes, more than the 3 that an audit takes"):
        prepare(found)
