"""``attack query`` on tables as they come, and on pictures that are no squares."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope.cli import main

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def visits(here):
    rng = np.random.default_rng(0)
    rows = ["visit,note,ward,age,dose,stay"]
    for i in range(24):
        ward = ["north", "south", "east"][i % 3]
        dose = "" if i == 5 else f"{100 * rng.random():.3f}"
        rows.append(f"v{i},text {i},{ward},{rng.integers(20, 80)},{dose},{rng.random():.3f}")
    path = here / "visits.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def attack(*words, steps=20):
    few = ["--starts", "2", "--steps", str(steps)]
    return main(["attack", "query", *words, *few, "--json", "found.json"])


OPTIONS = ("--target", "stay", "--id", "visit", "--ignore", "note")


def test_missing_and_ignore(visits, here, capsys):
    assert attack(visits, *OPTIONS[:4], "--record", "v3") == 2
    assert "leave it out with --ignore" in capsys.readouterr().err
    assert attack(visits, *OPTIONS, "--record", "v3") == 2
    assert "column 'dose' is empty in row 5" in capsys.readouterr().err
    assert attack(visits, *OPTIONS, "--record", "v3", "--missing", "guess") == 2
    assert "--missing must be one of error, drop, impute" in capsys.readouterr().err
    assert attack(visits, *OPTIONS, "--record", "v5", "--missing", "drop") == 2
    assert "no record with the id 'v5'" in capsys.readouterr().err
    assert attack("--example", "wine", "--record", "5", "--missing", "drop") == 2
    assert "belong to a file" in capsys.readouterr().err
    assert attack(visits, *OPTIONS, "--record", "v5", "--missing", "impute") == 0
    document = json.loads((here / "found.json").read_text())
    assert any("of dose filled in by the median" in step for step in document["dataset"]["steps"])
    assert document["dataset"]["source"]["missing"] == "impute"


def test_categories_come_back_in_the_files_own_units(visits, here):
    """An indicator is not scaled, so the query that finds the record has its ones and zeros."""
    run = here / "run"
    words = (*OPTIONS, "--record", "v4", "--missing", "drop", "--run-dir", str(run))
    assert attack(visits, *words, steps=300) == 0
    arrays = np.load(run / "arrays.npz")
    record = arrays["records"][0]
    assert record[:3].tolist() == [0.0, 0.0, 1.0]
    document = json.loads((here / "found.json").read_text())
    assert document["queries"][0]["nearest_record"] == "v4"
    # Ages and doses span some 60 and 100.
    np.testing.assert_allclose(arrays["queries"][0][:3], record[:3], atol=0.02)
    np.testing.assert_allclose(arrays["queries"][0][3:], record[3:], atol=2.0)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_arrays_that_are_no_squares_are_shown_as_they_are(here, channels):
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 16.0, size=(12, 8, 12, *channels))
    np.savez(here / "wide.npz", X=X, y=rng.normal(size=12))
    run = here / "run"
    assert attack("wide.npz", "--record", "3", "--box", "0,16", "--run-dir", str(run)) == 0
    with Image.open(run / "record_0.png") as picture:
        shown = np.asarray(picture)
    factor = shown.shape[0] // 8
    assert shown.shape[:2] == (8 * factor, 12 * factor)
    expected = np.rint(255.0 * X[3] / 16.0).reshape(shown[::factor, ::factor].shape)
    np.testing.assert_array_equal(shown[::factor, ::factor], expected)


def test_the_gallery_of_an_audit_shows_them_too(here):
    slopes = np.add.outer(np.arange(10.0), np.add.outer(np.arange(8.0), np.arange(12.0)).ravel())
    slopes += np.random.default_rng(0).uniform(0, 2, slopes.shape)
    y = np.arange(10.0) % 3
    np.savez(here / "wide.npz", X=slopes.reshape(10, 8, 12), y=y)
    np.savez(here / "flat.npz", X=slopes, y=y)
    words = ["audit", "--no-sensitivity", "--run-dir"]
    assert main([*words, str(here / "wide"), "wide.npz"]) == 0
    with Image.open(here / "wide" / "record_3.png") as picture:
        assert picture.size == (12, 8)
    # Without a shape 96 features are no square, and no picture.
    assert main([*words, str(here / "flat"), "flat.npz"]) == 0
    assert not (here / "flat" / "gallery.json").exists()
