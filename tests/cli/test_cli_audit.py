from __future__ import annotations

import json
import stat

import numpy as np
import pytest

from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.results import read_result


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_example_prints_ten_and_writes_a_run(here, capsys):
    assert main(["audit", "--example", "diabetes", "--kernel", "rbf"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith("A Gaussian process (rbf, length scale")
    assert len(lines) <= 24
    assert sum(line.endswith("yes") for line in lines) == 10
    assert "your model was not examined" in " ".join(out.split())
    (run,) = (here / "leakscope-runs").iterdir()
    assert f"Run directory: leakscope-runs/{run.name}" in out
    assert run.name.endswith("-audit-diabetes")
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert len(read_result(run / "result.json").records) == 442
    assert len((run / "records.csv").read_text().splitlines()) == 443
    with np.load(run / "arrays.npz") as arrays:
        assert arrays["kl"].shape == (442,)


def test_json_on_stdout_is_nothing_else(here, capsys):
    assert (
        main(
            ["audit", "--example", "diabetes", "--kernel", "rbf", "--json", "-", "--run-dir", "run"]
        )
        == 0
    )
    out, _ = capsys.readouterr()
    content = json.loads(out)
    assert content["kind"] == "audit"
    first = content["records"][0]
    for key in (
        "record_id",
        "kl",
        "kl_reverse",
        "advantage",
        "auc",
        "mean_distance",
        "mean_without",
        "variance_without",
        "trusted",
        "rank_low",
        "rank_high",
    ):
        assert key in first
    assert content["settings"]["noise_variance"] == 0.01
    assert (here / "run" / "result.json").exists()


def test_file_with_ids_to_a_json_file(here, capsys):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"p{i},{a},{b},{a - b}" for i, (a, b) in enumerate(rng.normal(size=(30, 2))))
    (here / "d.csv").write_text(f"who,a,b,y\n{rows}\n")
    command = ["audit", "d.csv", "--target", "y", "--id", "who", "--json", "r.json", "--top", "3"]
    command += ["--kernel", "rbf"]
    assert main(command) == 0
    out, _ = capsys.readouterr()
    assert "ranks first of 30" in out
    assert read_result("r.json").records[0].record_id.startswith("p")


def test_a_network_kernel_from_a_file(here, capsys):
    rng = np.random.default_rng(0)
    np.savez(here / "d.npz", X=rng.normal(size=(40, 3)), y=rng.normal(size=40))
    options = "--kernel nngp --depth 5 --activation relu --noise-variance 0.01 --json -"
    assert main(["audit", "d.npz", "--target", "y", *options.split()]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["kernel"]["depth"] == 5
    assert len(content["records"]) == 40
    kl = [record["kl"] for record in content["records"]]
    assert kl == sorted(kl, reverse=True)
    assert {"settings", "assumptions", "timing"} <= set(content)


def test_routes_and_noise_by_name(here, capsys):
    common = ["audit", "--example", "diabetes", "--json", "-"]
    assert main([*common, "--kernel", "linear", "--no-sensitivity"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["route"] == "features"
    assert content["sensitivity"] is None
    assert content["records"][0]["rank_low"] is None
    options = ["--route", "nystrom", "--inducing", "150", "--noise-variance", "marginal_likelihood"]
    assert main([*common, *options]) == 0
    out, err = capsys.readouterr()
    content = json.loads(out)
    assert (content["route"], content["noise_chosen_by"]) == ("nystrom", "marginal_likelihood")
    assert err.startswith("approximate, with up to 150 inducing records of 442: at most about")
    assert "warning: this audit is approximate (Nyström, 150 inducing records of 442" in err
    first = content["records"][0]
    assert first["kl_low"] <= first["kl"] <= first["kl_high"]
    assert first["advantage_low"] <= first["advantage"] <= first["advantage_high"]


def test_warnings_are_said_on_stderr(here, capsys):
    (here / "d.csv").write_text("a,c,y\n1,7,1\n2,7,2\n2,7,3\n")
    assert main(["audit", "d.csv", "--target", "y", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"]
    assert "warning: 1 of 2 columns of X is constant and says nothing: c." in err
    assert "warning: 1 record repeats another record's features" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Which dataset?"),
        (["none.csv", "--target", "y"], "There is no file none.csv."),
        (["--example", "titanic"], "no example 'titanic'"),
        (["bad.csv", "--target", "y"], "column 'a' holds 'x' in row 1"),
        (["bad.csv"], "which column is the target?"),
        (["bad.csv", "--example", "iris"], "not both"),
        (["--example", "iris", "--target", "y"], "belong to a file"),
        (["--example", "diabetes", "--noise-variance", "-1"], "--noise-variance"),
        (["--example", "diabetes", "--length-scale", "nan"], "--length-scale"),
        (["--example", "diabetes", "--length-scale", "1e12"], "the kernel cannot tell"),
        (["--example", "diabetes", "--kernel", "magic"], "kernel"),
        (["--example", "diabetes", "--depth", "3"], "depth is not an option of the kernel rbf"),
        (["--example", "iris", "--kernel", "nngp", "--activation", "magic"], "magic"),
        (["--example", "diabetes", "--noise-variance", "low"], "number or one of marginal_likeli"),
        (["--example", "diabetes", "--route", "features"], "finitely many features"),
        (["--example", "diabetes", "--fit-kernel-scale"], "fitted together with the noise"),
        (["--example", "diabetes", "--scaling", "odd"], "scaling"),
        (["--example", "diabetes", "--top", "-1"], "--top must be zero or more"),
        (["--example", "diabetes", "--json", "no/where.json"], "There is no folder no"),
        (["--example", "diabetes", "--json", "."], "is a folder"),
        (["--example", "diabetes", "--run-dir", "taken"], "taken is already there"),
        (["bad.csv", "--target", "y", "--task", "guess"], "--task must be one of regression"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(here, capsys, arguments, sentence):
    (here / "bad.csv").write_text("a,y\n1,2\nx,3\n")
    (here / "taken").mkdir()
    (here / "taken" / "file").write_text("")
    before = sorted(path.name for path in here.rglob("*"))
    assert main(["audit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert sorted(path.name for path in here.rglob("*")) == before


@pytest.mark.parametrize("more", [(), ("--kernel", "rbf", "--no-sensitivity")])
def test_a_json_that_cannot_be_written_leaves_no_run(more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def full(path):
        raise InputError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr("leakscope.data.files.partial_beside", full)
    assert main(["audit", "--example", "iris", *more, "--json", "out.json"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("drop", "Empty values: 3 of 40 records were dropped (a, b)."),
        ("impute", "Empty values: 3 were filled in by the median or most frequent (a 1, b 2)."),
    ],
)
def test_what_was_done_about_empty_values_is_on_the_screen(here, capsys, how, told):
    """It stood in result.json alone."""
    rng = np.random.default_rng(0)
    rows = [[f"{a:.3f}", f"{b:.3f}", f"{a - b:.3f}"] for a, b in rng.normal(size=(40, 2))]
    rows[3][0] = rows[5][1] = rows[9][1] = ""
    text = "\n".join(",".join(row) for row in [["a", "b", "y"], *rows])
    (here / "d.csv").write_text(text + "\n", encoding="utf-8")
    run = str(here / "run")
    assert main(["audit", "d.csv", "--target", "y", "--missing", how, "--run-dir", run]) == 0
    assert told in capsys.readouterr().out.splitlines()
    assert main(["report", run]) == 0
    assert told in (here / "run" / "report.html").read_text(encoding="utf-8")
    assert main(["audit", "--example", "wine"]) == 0
    assert "Empty values" not in capsys.readouterr().out
