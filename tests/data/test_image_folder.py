"""Folders of pictures, read and refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from leakscope import data
from leakscope.cli import main
from leakscope.errors import InputError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def pets(tmp_path):
    generator = np.random.default_rng(0)
    folder = tmp_path / "pets"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for number in range(4):
            pixels = generator.integers(0, 256, (8, 9), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def test_pixels_classes_and_ids(pets):
    (pets / "notes.txt").write_text("not a picture")
    dataset = data.read_dataset(pets)
    assert dataset.features.shape == (8, 72)
    assert dataset.record_ids[:2] == ("cat/0.png", "cat/1.png")
    assert dataset.target.tolist() == ["cat"] * 4 + ["dog"] * 4
    assert dataset.task == "classification"
    with Image.open(pets / "dog" / "2.png") as picture:
        np.testing.assert_array_equal(dataset.features[6].reshape(8, 9), np.asarray(picture))
    again = dataset.source.read_again()
    np.testing.assert_array_equal(again.features, dataset.features)
    assert dataset.steps[0] == "read 8 pictures of 9 x 8 pixels, grey, from pets (Pillow)"


def test_one_colour_picture_makes_all_three_channels(pets):
    pixels = np.random.default_rng(1).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(pets / "dog" / "colour.png")
    dataset = data.read_dataset(pets)
    assert dataset.features.shape == (9, 216)
    np.testing.assert_array_equal(dataset.features[-1].reshape(8, 9, 3), pixels)


def test_jpeg_and_the_command_line(pets, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.full((8, 9), 7, dtype=np.uint8)).save(pets / "cat" / "x.jpg")
    assert main(["audit", str(pets), "--top", "1"]) == 0
    assert "on pets; your model was not examined" in capsys.readouterr().out


def test_refusals(pets, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is a folder without pictures"):
        data.read_dataset(tmp_path / "pets" / "cat")
    with pytest.raises(InputError, match="options of a table's columns"):
        data.read_dataset(pets, target="class")
    with pytest.raises(InputError, match="There is no file"):
        data.read_dataset(tmp_path / "nowhere")
    broken = pets / "dog" / "9.png"
    broken.write_bytes((pets / "dog" / "0.png").read_bytes()[:60])
    with pytest.raises(InputError, match=r"9\.png cannot be read as a picture"):
        data.read_dataset(pets)
    broken.write_bytes(b"text")
    with pytest.raises(InputError, match=r"9\.png cannot be read as a picture"):
        data.read_dataset(pets)
    Image.fromarray(np.zeros((5, 9), dtype=np.uint8)).save(broken)
    with pytest.raises(InputError, match=r"9\.png has 9 x 5 pixels"):
        data.read_dataset(pets)
    Image.fromarray(np.zeros((8, 9), dtype=np.uint16)).save(broken)
    with pytest.raises(InputError, match="not a picture of 8-bit"):
        data.read_dataset(pets)
    broken.unlink()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'leakscope\[images\]'"):
        data.read_dataset(pets)
