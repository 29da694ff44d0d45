from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError
from leakscope.data.arrays import read_scores


@pytest.mark.parametrize(
    "text", ["0.1\n0.2\n", "score\n0.1\n0.2\n", "\ufeff0.1\n\n0.2", "0.1\r\n0.2"]
)
@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_text(tmp_path, text, suffix):
    path = tmp_path / f"s{suffix}"
    path.write_bytes(text.encode())
    assert read_scores(path).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_npy(tmp_path, shape):
    np.save(tmp_path / "s.npy", np.arange(3, dtype=np.float32).reshape(shape))
    assert read_scores(tmp_path / "s.npy").tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("s.csv", b"1\nx\n", "row 1 is nan"),
        ("s.csv", b"1,2\n3,4\n", "row 0 is nan"),
        ("s.txt", b"1\nnan\n", "the score in row 1 is nan"),
        ("s.txt", b"inf\n", "row 0 is inf"),
        ("s.txt", b"", "one column"),
        ("s.txt", b"\xff\xfe", "not UTF-8"),
        ("s.npy", b"junk", "not a"),
        ("s.json", b"[1]", r"\.npy, \.csv, \.txt"),
    ],
)
def test_refusals(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_scores(tmp_path / name)


def test_more_refusals(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        read_scores(tmp_path / "none.npy")
    with pytest.raises(InputError, match="is a folder"):
        read_scores(tmp_path)
    np.save(tmp_path / "s.npy", np.eye(2))
    with pytest.raises(InputError, match="one column"):
        read_scores(tmp_path / "s.npy")
    np.save(tmp_path / "s.npy", np.array(["a"]))
    with pytest.raises(InputError, match="one column of numbers"):
        read_scores(tmp_path / "s.npy")
