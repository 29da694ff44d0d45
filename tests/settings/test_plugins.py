"""What other installed packages bring is found; what is broken is left out with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
