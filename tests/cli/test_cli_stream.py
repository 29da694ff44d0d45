"""``leakscope audit`` of files that are streamed, from the cost that it states to the report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.running import cells
from leakscope.subjects.stream import costs
from leakscope.subjects.stream.costs import stream_cost

ASKED = ["--target", "y", "--model", "ridge", "--alpha", "1", "--run-dir", "run"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "many").mkdir()
    for number in range(2):
        frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "y"])
        frame["name"] = [f"person-{number}-{row}" for row in range(400)]
        frame.to_parquet(tmp_path / "many" / f"{number}.parquet", index=False)
    return tmp_path


def words(text):
    return " ".join(text.split())


def test_a_folder_is_streamed_and_says_what_it_costs(here, capsys):
    assert main(["audit", "many", "--id", "name", "--top", "3", *ASKED]) == 0
    out, err = capsys.readouterr()
    assert "streaming 800 records of 4 columns" in words(err)
    assert "go on with --run-dir run" in words(err)
    assert len(out.splitlines()) <= 24
    assert "Ridge(alpha=1), alpha as given; many, 800 records" in words(out)
    assert sum(line.endswith("yes") for line in out.splitlines()) == 3
    assert "Every record: the Parquet files in answers/." in out
    assert main(["report", "run"]) == 0
    page = (here / "run" / "report.html").read_text(encoding="utf-8")
    first = json.loads((here / "run" / "result.json").read_text())["records"][0]["record_id"]
    assert first in page
    assert "How leakage is distributed" in page
    assert main(["report", "run", "--redact"]) == 0
    redacted = (here / "run" / "report-redacted.html").read_text(encoding="utf-8")
    assert "person-" not in redacted


def test_a_person_is_no_feature_of_a_stream_and_stays_on_record(here, capsys):
    frame = pd.read_parquet(here / "many" / "0.parquet").drop(columns="name")
    frame = frame.assign(patient=np.arange(len(frame)) // 2)
    frame.to_parquet(here / "visits.parquet", index=False)
    assert main(["audit", "visits.parquet", "--stream", *ASKED]) == 2
    said = capsys.readouterr().err
    assert all(option in said for option in ("--id", "--ignore", "--group"))
    assert main(["audit", "visits.parquet", "--stream", "--ignore", "patient", *ASKED]) == 0
    stored = json.loads((here / "run" / "result.json").read_text())
    assert stored["dataset"]["person_columns"] == ["patient"]


def test_a_run_that_is_there_is_refused_before_a_cost_is_stated(here, capsys):
    assert main(["audit", "many", "--ignore", "name", *ASKED]) == 0
    capsys.readouterr()
    assert main(["audit", "many", "--ignore", "name", *ASKED]) == 2
    assert capsys.readouterr()[1] == (
        "leakscope: run is already there; name a new run directory.\n"
    )


@pytest.mark.parametrize("name", ["a", "y"])
def test_numbers_whose_squares_overflow_are_refused(here, capsys, name):
    frame = pd.read_parquet(here / "many" / "0.parquet")
    frame.loc[3, name] = -1e200
    frame.to_parquet(here / "large.parquet")
    assert main(["audit", "large.parquet", "--ignore", "name", "--stream", *ASKED]) == 2
    told = capsys.readouterr()[1].splitlines()[-1]
    assert f"column {name!r} of large.parquet holds numbers as large as 1e+200" in told


def test_json_and_the_gate(here, capsys):
    assert main(["audit", "many", "--ignore", "name", "--json", "-", *ASKED]) == 0
    found = json.loads(capsys.readouterr()[0])
    assert found["kind"] == "audit_streamed"
    limit = found["worst"]["advantage"] * 0.9
    asked = ["audit", "many", "--ignore", "name", *ASKED[:-1], "other"]
    assert main([*asked, "--fail-above", f"advantage={limit}"]) == 3
    assert "the largest advantage is" in capsys.readouterr()[1]


def test_one_file_is_streamed_where_it_does_not_fit_or_is_asked_to(here, capsys, monkeypatch):
    file = "many/0.parquet"
    assert main(["audit", file, "--ignore", "name", *ASKED[:-1], "dense"]) == 0
    assert "streaming" not in capsys.readouterr()[1]
    assert main(["audit", file, "--ignore", "name", "--stream", *ASKED]) == 0
    assert "streaming 400 records" in capsys.readouterr()[1]
    monkeypatch.setattr(costs, "available_memory", lambda: 300 * 2**20)
    assert not stream_cost(file).too_large()
    monkeypatch.setattr(costs, "available_memory", lambda: 0)
    assert stream_cost(file).too_large()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["audit", "many", "--target", "y", "--model", "lasso"], "--model lasso needs all records"),
        (
            ["audit", "many", "--target", "y", "--train", "sklearn.svm:SVR"],
            "a training is examined in memory only",
        ),
        (["audit", "many", "--target", "y", "--kernel", "rbf"], "(--model ridge)"),
        (["audit", "--example", "diabetes", "--stream"], "are for .parquet files"),
        (["audit", "many", "--no-stream", "--target", "y"], ""),
        (["audit", "many", "--target", "none", "--model", "ridge"], "no column 'none'"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(asked, sentence, here, capsys):
    assert main(asked) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in words(err)
    assert "Traceback" not in err
    assert not (here / "leakscope-runs").exists()


class Workers:
    """A cluster as far as its versions go."""

    def __init__(self, found):
        self.found = found

    def run(self, function):
        if isinstance(self.found, Exception):
            raise self.found
        ours = function()
        return {f"tcp://{i}": {**ours, **change} for i, change in enumerate(self.found)}


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ([{}, {"numpy": "1.0"}], "the worker tcp://1 has numpy 1.0, but here it is"),
        ([{"leakscope": "0.0.1"}], "has leakscope 0.0.1"),
        ([], "has no workers"),
        (ModuleNotFoundError("No module named 'leakscope'"), "cannot run leakscope"),
    ],
)
def test_workers_of_another_version(found, sentence):
    with pytest.raises(InputError, match=sentence):
        cells._require_same_versions(Workers(found))


def test_workers_of_the_same_version():
    cells._require_same_versions(Workers([{}, {}]))
