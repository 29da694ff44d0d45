from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from leakscope import data, kernels
from leakscope.cli import main
from leakscope.data.preparation import prepare


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Small grey pictures, 8 x 8 with values from 0 to 16, and a run over them."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 16.0, size=(30, 64))
    np.savez(folder / "small.npz", X=X, y=rng.normal(size=30))
    status = main(
        [
            "attack", "query", str(folder / "small.npz"), "--record", "3", "--box", "0,16",
            "--starts", "2", "--run-dir", str(folder / "run"), "--json", str(folder / "r.json"),
        ]
    )  # fmt: skip
    assert status == 0
    return folder, X


def pixels(path):
    """The values of a grey PNG."""
    from PIL import Image

    with Image.open(path) as image:
        assert image.mode == "L"
        return np.asarray(image)


def test_the_run_directory_holds_the_search_and_its_pictures(pictures):
    folder, X = pictures
    run = folder / "run"
    assert {file.name for file in run.iterdir()} == {
        "settings.json", "result.json", "records.csv", "arrays.npz", "digests.json",
        "record_0.png", "query_0.png", "difference_0.png",
    }  # fmt: skip
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in run.iterdir()} == {0o600}
    with np.load(run / "arrays.npz") as arrays:
        np.testing.assert_array_equal(arrays["records"], X[[3]])
        np.testing.assert_allclose(arrays["queries"], X[[3]], atol=0.1)
        assert arrays["trace"].shape == (301, 2)
    assert len((run / "records.csv").read_text().splitlines()) == 3


def test_the_result_says_what_was_found(pictures):
    folder, _ = pictures
    content = json.loads((folder / "r.json").read_text())
    assert content == json.loads((folder / "run" / "result.json").read_text())
    assert content["kind"] == "attack_query"
    assert content["records"] == [3]
    assert 0.999 < content["ratio"] <= 1.0 + 1e-9
    assert content["starts_recovered"] >= 1
    assert content["queries"][0]["nearest_record"] == 3
    assert content["settings"]["box"] == [0.0, 16.0]
    assert content["assumptions"]


def test_pictures_show_the_record(pictures):
    folder, X = pictures
    shown = pixels(folder / "run" / "record_0.png")
    assert shown.shape == (256, 256)
    np.testing.assert_array_equal(shown[::32, ::32], np.rint(255 * X[3].reshape(8, 8) / 16))
    found = pixels(folder / "run" / "query_0.png").astype(float)
    assert np.abs(found - shown).max() <= 3
    assert np.abs(pixels(folder / "run" / "difference_0.png").astype(float) - 127.5).max() <= 3


def test_table_and_json_on_stdout(here, capsys):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"p{i},{a},{b},{a - b}" for i, (a, b) in enumerate(rng.normal(size=(15, 2))))
    (here / "d.csv").write_text(f"who,a,b,y\n{rows}\n")
    command = ["attack", "query", "d.csv", "--target", "y", "--id", "who", "--record", "p4"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "d: record p4 of 15, 2 features" in out
    assert "at the record itself" in out
    assert "your model was not examined" in " ".join(out.split())
    assert "Pictures" not in out
    (run,) = (here / "leakscope-runs").iterdir()
    assert run.name.endswith("-attack-query-d")
    assert main([*command, "--json", "-"]) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out)["records"] == ["p4"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--example", "wine"], "Which record?"),
        (["--record", "1"], "Which dataset?"),
        (["--example", "wine", "--record", "9999"], "wine has no record with the id '9999'."),
        (["--example", "wine", "--record", "1", "--box", "3"], "--box must be LOW,HIGH"),
        (
            ["--example", "wine", "--record", "1", "--box", "3,1"],
            "box: input should rise from LOW to HIGH",
        ),
        (["--example", "wine", "--record", "1", "--starts", "0"], "starts: input should be"),
        (["--example", "wine", "--record", "1", "--set", "depth=2"], "depth"),
        (["--example", "wine", "--record", "1", "--record", "1"], "names a row twice"),
        (["--example", "wine", "--record", "1", "--task", "regression"], "belongs to a file"),
        (["--example", "wine", "--record", "1", "--json", "no/r.json"], "There is no folder"),
    ],
)
def test_bad_input_is_one_sentence(here, capsys, arguments, sentence):
    assert main(["attack", "query", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("leakscope: ")
    assert sentence in err
    assert not (here / "leakscope-runs").exists()


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from leakscope.cli import main; main(['attack', 'query', '--help']); "
        "print([n for n in ('numpy', 'jax', 'pandas', 'sklearn') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_sample_holds_the_record_that_was_asked_for():
    """`--sample` drew another set of records, and then had none with the id."""
    words = ["--example", "digits", "--record", "0", "--record", "7", "--starts", "1"]
    told = ["--steps", "2", "--sample", "60", "--run-dir", "run", "--json", "r.json"]
    assert main(["attack", "query", *words, *told]) == 0
    found = json.loads(Path("r.json").read_text())
    assert found["records"] == [0, 7]
    assert found["dataset"]["records"] == 60
    assert any("0, 7 among them" in step for step in found["dataset"]["steps"])


def test_a_sample_too_small_for_the_records_is_refused(capsys):
    words = ["--example", "iris", *(w for i in range(3) for w in ("--record", str(i)))]
    assert main(["attack", "query", *words, "--sample", "2"]) == 2
    assert "3 records are to be in it" in capsys.readouterr().err


def test_a_search_by_mean_distance(capsys):
    """Its value against two refits at the query that was found; KL is told beside it."""
    words = ["--example", "iris", "--record", "41", "--objective", "mean_distance"]
    more = ["--set", "noise_variance=0.1", "--starts", "3", "--run-dir", "run", "--json", "r.json"]
    assert main(["attack", "query", *words, *more]) == 0
    assert "mean distance" in capsys.readouterr().out
    found = json.loads(Path("r.json").read_text())
    assert found["objective"] == "mean_distance"
    assert found["mean_distance"] > 1.01 * found["mean_distance_at_record"]
    assert found["ratio"] == pytest.approx(
        found["mean_distance"] / found["mean_distance_at_record"]
    )
    assert found["kl"] < found["kl_at_record"]
    assert found["starts"][0]["kl"] is None
    assert Path("run", "records.csv").read_text().startswith("start,mean_distance,")
    iris = prepare(data.read_example("iris"), scaling="standard")
    scaler = StandardScaler().fit(data.read_example("iris").features)
    query = scaler.transform([found["queries"][0]["features"]])
    kernel = kernels.rbf(found["kernel"]["length_scale"], found["kernel"]["variance"])
    means = []
    for rows in (np.arange(150), np.delete(np.arange(150), 41)):
        matrix = kernel(iris.features[rows]) + 0.1 * np.eye(len(rows))
        weights = np.linalg.solve(matrix, iris.target[rows])
        means.append(kernel(query, iris.features[rows]) @ weights)
    refitted = 0.5 * float(np.sum((means[0] - means[1]) ** 2))
    assert found["mean_distance"] == pytest.approx(refitted, rel=1e-6)


def test_a_model_that_normalises_by_its_own_data(capsys):
    """App. D.4: the KL at the record is that of two fits, and the answer says what it is of."""
    words = ["--example", "iris", "--record", "41", "--starts", "2", "--steps", "20", "--run-dir"]
    words += ["normalised", "--normalise-channels", "4", "--json", "-"]
    assert main(["attack", "query", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "others may reveal more" in found["verdict"]
    iris = prepare(data.read_example("iris"), scaling="none")
    kernel = kernels.rbf(found["kernel"]["length_scale"], found["kernel"]["variance"])
    answers = []
    for kept in (np.arange(150), np.delete(np.arange(150), 41)):
        X, y = iris.features[kept], iris.target[kept]
        mean, deviation = X.mean(0), X.std(0)
        X, asked = (X - mean) / deviation, (iris.features[41:42] - mean) / deviation
        inverse = np.linalg.inv(kernel(X) + found["noise_variance"] * np.eye(len(X)))
        cross = kernel(asked, X)
        answers.append((cross @ inverse @ y, (kernel(asked) - cross @ inverse @ cross.T).item()))
    (m1, v1), (m0, v0) = answers
    outputs = m1.size
    kl = 0.5 * (outputs * (v0 / v1 - 1.0 - np.log(v0 / v1)) + ((m1 - m0) ** 2).sum() / v1)
    assert found["kl_at_record"] == pytest.approx(kl, rel=1e-5)
