"""What other installed packages bring is found; what is broken is left out with a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "docs" / "howto" / "template"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template as pip installs it."""
    folder: Path = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for path in [p for p in TEMPLATE.rglob("*") if p.suffix in (".py", ".toml")]:
        copy = source / path.relative_to(TEMPLATE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-build-isolation", "--no-deps", "--no-index", "--target", folder / "there", source],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder / "there"


def package(folder: Path, name: str, group: str, entry: str) -> Path:
    """A folder with what pip leaves of a package that has one entry point."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    return folder


def leakscope(at: Path, *arguments: str, beside: Path) -> subprocess.CompletedProcess[str]:
    """Run the program where a folder of packages is installed too."""
    paths = os.pathsep.join([str(beside), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "leakscope", *arguments],
        cwd=at,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


BLOCKS = "\n\n".join(f"hour: {i}\nload: {(i * 7) % 5 + 0.5}" for i in range(40))


def test_the_template_is_found(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "readings.blocks").write_text(BLOCKS)
    done = leakscope(
        tmp_path, "audit", "readings.blocks", "--target", "load", "--kernel", "periodic",
        "--length-scale", "24", "--run-dir", "run", beside=installed,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "periodic" in done.stdout
    # A stored run is opened again, its kernel by name and its file by its ending.
    again = leakscope(tmp_path, "verify", "run", "--records", "3", beside=installed)
    assert again.returncode == 0, again.stderr
    (tmp_path / "bad.blocks").write_text("hour 3\n")
    wrong = leakscope(tmp_path, "audit", "bad.blocks", "--target", "load", beside=installed)
    assert wrong.returncode == 2
    assert wrong.stderr.endswith("bad.blocks: record 0 has a line without a colon, 'hour 3'.\n")
    # Without the package both are unknown.
    bare = leakscope(tmp_path, "audit", "readings.blocks", "--target", "load", beside=tmp_path)
    assert bare.returncode == 2
    assert "files that end in .blocks cannot be read" in bare.stderr


def test_the_template_s_attack_is_met_in_measure(installed: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    trained_on = rng.random((9, 300)) < 0.5
    log_odds = rng.normal(0.0, 3.0, 300) + rng.normal(size=(9, 300)) + 1.5 * trained_on
    np.savez(tmp_path / "models.npz", log_odds=log_odds, trained_on=trained_on)
    words = ("measure", "--logits", "models.npz", "--attack")
    done = leakscope(tmp_path, *words, "difference", "--json", "found.json", beside=installed)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["settings"]["attack"] == "difference"
    # By hand: the same scores, and the share of pairs that they rank rightly.
    without = ~trained_on[1:]
    scores = log_odds[0] - (log_odds[1:] * without).sum(axis=0) / np.maximum(without.sum(axis=0), 1)
    inside, outside = scores[trained_on[0]], scores[~trained_on[0]]
    assert found["auc"] == pytest.approx(np.mean(inside[:, None] > outside[None, :]), abs=1e-12)
    # Records differ far more than membership moves them, which the attack takes out.
    plain = log_odds[0]
    own = np.mean(plain[trained_on[0]][:, None] > plain[~trained_on[0]][None, :])
    assert found["auc"] > own + 0.05
    unknown = leakscope(tmp_path, *words, "nothing", beside=installed)
    assert unknown.returncode == 2
    assert "brings an attack called 'nothing'; they bring difference." in unknown.stderr


@pytest.mark.parametrize(
    ("code", "trained_on", "said"),
    [
        ("def it(a, b, c): return a[:3]", [1, 0, 1, 0], "must give one score for each of 4"),
        ("def it(a, b, c): raise KeyError('x')", [1, 0, 1, 0], "failed (KeyError: 'x')."),
        ("def it(a, b, c): return a", [1, 1, 1, 1], "but it was on 4 of 4."),
        ("it = 3", [1, 0, 1, 0], "brings an attack called 'xyz'; they bring none."),
    ],
)
def test_an_attack_that_cannot_be_measured_gets_a_sentence(
    code: str, trained_on: list[int], said: str, tmp_path: Path
) -> None:
    there = package(tmp_path / "there", "own", "leakscope.attacks", "xyz = own_attack:it")
    (there / "own_attack.py").write_text(code)
    mask = np.array([trained_on, [0, 1, 0, 1]], dtype=bool)
    np.savez(tmp_path / "m.npz", log_odds=np.arange(8.0).reshape(2, 4), trained_on=mask)
    done = leakscope(tmp_path, "measure", "--logits", "m.npz", "--attack", "xyz", beside=there)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_kind_of_another_package(tmp_path: Path) -> None:
    source = ROOT / "tests" / "subjects" / "nearest_neighbours.py"
    there = package(
        tmp_path / "there", "knn-kind", "leakscope.subjects",
        "knn = knn_of_another:NearestNeighbours",
    )  # fmt: skip
    (there / "knn_of_another.py").write_bytes(source.read_bytes())
    run = str(tmp_path / "run")
    done = leakscope(
        tmp_path, "audit", "--example", "iris", "--model", "knn", "--run-dir", run, beside=there
    )
    assert done.returncode == 0, done.stderr
    again = leakscope(tmp_path, "report", run, beside=there)
    assert again.returncode == 0, again.stderr
    # Where the package is gone, the run says so.
    gone = leakscope(tmp_path, "report", run, beside=tmp_path)
    assert gone.returncode == 2
    assert "knows no kind of model called 'knn'" in gone.stderr


@pytest.mark.parametrize(
    ("group", "code", "said"),
    [
        ("leakscope.subjects", "raise SystemExit(3)", "it cannot be imported (SystemExit: 3)."),
        ("leakscope.subjects", "import nothing_here", "(ModuleNotFoundError: No module named"),
        ("leakscope.subjects", "it = 3", "a subclass of leakscope.subjects.Subject, but it is a"),
        ("leakscope.kernels", "it = 3", "must be a leakscope.settings.NamedKernel, but it is a"),
        ("leakscope.readers", "it = 3", "must be a function from a path to a pandas table, but"),
        ("leakscope.attacks", "it = 3", "must be a function from answers of models to scores, but"),
    ],
)
def test_a_broken_one_is_a_sentence_and_no_end(
    group: str, code: str, said: str, tmp_path: Path
) -> None:
    there = package(tmp_path / "there", "broken", group, "xyz = broken_of_another:it")
    (there / "broken_of_another.py").write_text(code)
    program = (
        "from leakscope.settings.plugins import plugged\n"
        f"print(dict(plugged({group!r})), dict(plugged({group!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{there}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "{} {}\n"
    (line,) = done.stderr.splitlines()
    assert f"'xyz' ({group}) of the package broken is left out" in line
    assert said in line
