"""The folder of a SACRO-ML target is read, its pickles as data; exposure goes back in its form."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import leakscope
from leakscope import data
from leakscope.cli import main
from leakscope.data.sacro_target import read_pickled_array
from leakscope.data.sources import read_again
from leakscope.errors import InputError

# As sacroml 2.0.1 writes it, shortened; its arrays are pickled with the highest protocol.
YAML = """dataset_name: people
dataset_module_path: ''
features:
  0:
    name: age
    indices:
    - 0
    encoding: float
generalisation_error: 0.1
safemodel: []
model_type: SklearnModel
model_name: LogisticRegression
model_path: model.pkl
X_train_path: X_train.pkl
y_train_path: y_train.pkl
X_test_path: ''
"""


@pytest.fixture
def target(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "target.yaml").write_text(YAML)
    for name, array in (("X_train", X), ("y_train", y)):
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(array, pickle.HIGHEST_PROTOCOL))
    (folder / "model.pkl").write_bytes(b"never looked at")
    return folder, X, y


def test_a_target_is_audited_and_its_records_come_back_in_order(target, tmp_path, monkeypatch):
    folder, X, y = target
    found = data.read_dataset(folder, task="classification")
    assert np.array_equal(found.features, X)
    assert np.array_equal(found.target, y)
    again = read_again(found.source)
    assert np.array_equal(again.features, X)
    monkeypatch.chdir(tmp_path)
    command = f"audit {folder} --model logistic --C 1 --run-dir run"
    assert main(command.split()) == 0
    assert main(["report", "run", "--sacro", "sacro.json"]) == 0
    logged = json.loads((tmp_path / "sacro.json").read_text())
    block = logged["attack_experiment_logger"]["attack_instance_logger"]["instance_0"]["individual"]
    records = json.loads((tmp_path / "run" / "result.json").read_text())["records"]
    expected = {record["record_id"]: 0.5 + 0.5 * record["advantage"] for record in records}
    assert block["member_prob"] == [expected[row] for row in range(80)]
    assert block["member"] == [1] * 80


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(8)[::2],
    np.array([True, False]),
    np.array(["a", "bcd"]),
    np.array(["a", "bcd"], dtype=object),
    np.arange(3, dtype=">i2"),
    np.zeros((0, 4)),
]


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_pickled_arrays_are_read_as_numpy_reads_them(tmp_path, array, protocol):
    file = tmp_path / "a.pkl"
    file.write_bytes(pickle.dumps(array, protocol))
    found = read_pickled_array(file)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


class Bomb:
    def __reduce__(self):
        return (print, ("called",))


@pytest.mark.parametrize(
    "value",
    [Bomb(), {"a": 1}, [1, 2], np.array([Bomb()], dtype=object), np.float64(1.0), "text", None],
    ids=["bomb", "dict", "list", "bomb in an array", "scalar", "text", "none"],
)
def test_anything_else_in_a_pickle_is_refused_and_nothing_runs(tmp_path, capsys, value):
    file = tmp_path / "a.pkl"
    file.write_bytes(pickle.dumps(value, 5))
    with pytest.raises(InputError, match="nothing is unpickled"):
        read_pickled_array(file)
    assert capsys.readouterr().out == ""


def test_cut_and_changed_pickles_are_refused(tmp_path):
    content = pickle.dumps(np.arange(20.0), 5)
    file = tmp_path / "a.pkl"
    rng = np.random.default_rng(0)
    for trial in range(300):
        changed = bytearray(content)
        for place in rng.integers(len(content), size=3):
            changed[place] = rng.integers(256)
        file.write_bytes(bytes(changed[: rng.integers(len(content))] if trial % 2 else changed))
        try:
            assert isinstance(read_pickled_array(file), np.ndarray)
        except InputError:
            continue


def test_a_path_out_of_the_folder_is_refused(target):
    folder = target[0]
    (folder / "target.yaml").write_text(YAML.replace("X_train.pkl", "../X_train.pkl"))
    with pytest.raises(InputError, match="must lie in the folder"):
        data.read_dataset(folder, task="classification")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "text"),
        (b"1,2\n3,4,5\n", "is not a table"),
        (None, "There is no file"),
    ],
)
def test_a_csv_that_cannot_be_read_is_one_sentence(tmp_path, capsys, content, sentence):
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "target.yaml").write_text("X_train_path: X.csv\ny_train_path: y.csv\n")
    (folder / "y.csv").write_text("0\n1\n")
    if content is not None:
        (folder / "X.csv").write_bytes(content)
    assert main(["audit", str(folder)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("leakscope: ")
    assert sentence in told
    assert told.count("\n") == 1


def test_records_with_ids_are_listed_in_the_order_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    lines = [f"{1000 - i},{a},{b},{c}" for i, (a, b, c) in enumerate(np.column_stack([X, y]))]
    table = tmp_path / "t.csv"
    table.write_text("who,a,b,y\n" + "\n".join(lines) + "\n")
    words = [
        "audit",
        str(table),
        "--target",
        "y",
        "--id",
        "who",
        "--model",
        "ridge",
        "--alpha",
        "1",
    ]
    assert main([*words, "--run-dir", str(tmp_path / "run")]) == 0
    audit = leakscope.Audit.open(tmp_path / "run")
    told = dict(zip(audit.record_ids, audit.advantage.tolist(), strict=True))
    wanted = [told[1000 - i] for i in range(60)]
    sacro = tmp_path / "sacro.json"
    assert main(["report", str(tmp_path / "run"), "--sacro", str(sacro)]) == 0
    logged = json.loads(sacro.read_text())["attack_experiment_logger"]["attack_instance_logger"]
    assert logged["instance_0"]["individual"]["advantage"] == wanted
    # Redacted, totals only; and nothing says where a file lies.
    redacted = tmp_path / "totals.json"
    assert main(["report", str(tmp_path / "run"), "--redact", "--sacro", str(redacted)]) == 0
    assert "individual" not in redacted.read_text()
    assert "max_advantage" in redacted.read_text()
