"""``leakscope reproduce``: the list, one figure, folders that are gone on with, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import leakscope
from leakscope import InputError
from leakscope.cli import main
from leakscope.cli import reproduce as verb
from papers import Figure, Made, Order, Panel, Picture, catalogue, judge, read_reproduction
from papers.result import ReproductionDocument

PACKAGE = Path(leakscope.__file__).parent
COUNTED: list[str] = []


def make(order: object) -> Made:
    COUNTED.append("made")
    table = pd.DataFrame(
        {
            "n.of:things": [1, 2, 4, 1, 2, 4],
            "y": [1.0, 0.5, 0.25, 1.1, float("nan"), 0.2],
            "source": ["theory"] * 3 + ["simulation"] * 3,
            "low": [None] * 3 + [0.9, 0.4, 0.1],
            "high": [None] * 3 + [1.2, 0.6, 0.3],
        }
    )
    claims = (
        judge("falls | by half", "Fig. 0", "1, 0.5, 0.25", as_printed=True),
        judge("is small", "Fig. 0", "9 against 1", as_printed=False, erratum="linear 1"),
    )
    panel = Panel(
        "falling", table, x="n.of:things", y="y", low="low", high="high", x_log=True, y_log=True
    )
    return Made((panel,), claims, (Picture("a picture", b"\x89PNG"),), {"n": 4}, ("a note",))


@pytest.fixture
def one_figure(monkeypatch: pytest.MonkeyPatch) -> Figure:
    figure = Figure("linear-0", "linear", "Fig. 0", "something that falls", make)
    monkeypatch.setattr(catalogue, "MODULES", ())
    monkeypatch.setattr("papers.figures", lambda: (figure,))
    monkeypatch.setattr(catalogue, "figures", lambda: (figure,))
    COUNTED.clear()
    return figure


def test_without_a_name_it_lists(one_figure: Figure, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert "linear-0  Fig. 0        something that falls" in capsys.readouterr().out


def test_one_figure(one_figure: Figure, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "made"
    assert main(["reproduce", "linear-0", "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "holds: falls | by half [Fig. 0]" in out
    assert "does not hold (linear 1): is small" in out
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "index.md", "linear-0-1.csv", "linear-0-picture-1.png", "linear-0.json", "linear-0.png",
    ]  # fmt: skip
    assert (folder / "linear-0.png").read_bytes().startswith(b"\x89PNG")
    document = read_reproduction("linear-0", folder)
    assert isinstance(document, ReproductionDocument)
    assert document.panels[0].rows[4][1] is None
    page = (folder / "index.md").read_text(encoding="utf-8")
    assert "falls \\| by half" in page
    assert "![linear-0](linear-0.png)" in page


def test_a_folder_is_gone_on_with(one_figure: Figure, tmp_path: Path) -> None:
    folder = ["--output", str(tmp_path / "made")]
    assert main(["reproduce", "linear", *folder]) == 0
    assert main(["reproduce", "all", *folder]) == 0
    assert len(COUNTED) == 1
    assert main(["reproduce", "all", *folder, "--seed", "1"]) == 0
    assert main(["reproduce", "all", *folder, "--seed", "1", "--again"]) == 0
    assert len(COUNTED) == 3


def test_one_figure_that_fails_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make figures` ended at the first that lacked a package, without a page over the rest."""

    def lacks(order: object) -> Made:
        raise InputError("It needs the package nothing; install leakscope[nothing].")

    several = (
        Figure("linear-0", "linear", "Fig. 0", "lacks something", lacks),
        Figure("linear-00", "linear", "Fig. 00", "something that falls", make),
    )
    monkeypatch.setattr("papers.figures", lambda: several)
    assert main(["reproduce", "all", "--output", str(tmp_path / "made")]) == 2
    told = capsys.readouterr()
    assert "linear-0 was not made: It needs the package nothing" in told.err
    assert "1 of 2 figures were not made: linear-0" in told.err
    assert "holds: falls | by half" in told.out
    page = (tmp_path / "made" / "index.md").read_text(encoding="utf-8")
    assert "### linear-00: something that falls" in page
    monkeypatch.setattr("papers.find_figure", lambda name: several[0])
    assert main(["reproduce", "linear-0", "--output", str(tmp_path / "alone")]) == 2
    assert "leakscope: It needs the package nothing" in capsys.readouterr().err


def test_other_data_make_a_figure_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--data` was ignored where the folder held the same figure of other pictures."""
    seen: list[Path | None] = []

    def of_images(order: Order) -> Made:
        seen.append(order.data)
        return Made((), (), settings={"data": "digits" if order.data is None else "pictures"})

    def of_none(order: Order) -> Made:
        return make(order)

    several = (
        Figure("lood-0", "lood", "Fig. 0", "pictures", of_images),
        Figure("lood-00", "lood", "Fig. 00", "no pictures", of_none),
    )
    monkeypatch.setattr("papers.figures", lambda: several)
    COUNTED.clear()
    words = ["reproduce", "all", "--output", str(tmp_path / "made")]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "cifar10_car_plane.npz").write_text(folder.name)
    for data in ([], *(["--data", str(folder)] for folder in folders)):
        assert main([*words, *data]) == 0
        assert main([*words, *data]) == 0
    assert seen == [None, *folders]
    assert len(COUNTED) == 1


def test_json_is_all_that_stdout_holds(
    one_figure: Figure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "linear-0", "--output", str(tmp_path / "m"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["linear-1000"], "there is no figure 'linear-1000'"),
        (["linear-0", "--seed", "-1"], "--seed must be zero or above"),
        (["linear-0", "--data", "nowhere"], "there is no folder nowhere"),
        (["linear-0", "--output", str(Path(__file__).parents[2] / "README.md")], "is a file"),
        (["linear-0", "--json", "nowhere/x.json"], "There is no folder nowhere"),
    ],
)
def test_refusals(
    one_figure: Figure,
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_clone_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; from leakscope.cli import main; sys.exit(main(['reproduce']))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "linear-2b" in done.stdout


def without_papers(monkeypatch: pytest.MonkeyPatch, roots: tuple[Path, ...]) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "papers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(verb, "_roots", lambda: roots)


def test_an_installed_wheel_says_how_to_get_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A folder of the same name is not a clone.
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "__init__.py").write_text("raise AssertionError", encoding="utf-8")
    without_papers(monkeypatch, (tmp_path,))
    for arguments in ([], ["linear-2b"]):
        assert main(["reproduce", *arguments]) == 2
        complaint = capsys.readouterr().err
        assert "clone leakscope's repository" in complaint
        assert "`make figures`" in complaint
        assert complaint.count("\n") == 1


def test_a_clone_that_is_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src" / "leakscope").mkdir(parents=True)
    (tmp_path / "src" / "leakscope" / "__init__.py").touch()
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "__init__.py").write_text(
        "from papers.one import Figure\nfind_figure = None\ndef figures():\n"
        "    return (Figure('linear-0', 'Fig. 0', 'another clone'),)\n",
        encoding="utf-8",
    )
    (tmp_path / "papers" / "one.py").write_text(
        "import collections\nFigure = collections.namedtuple('Figure', 'name where title')\n",
        encoding="utf-8",
    )
    without_papers(monkeypatch, (tmp_path / "nowhere", tmp_path))
    path = list(sys.path)
    try:
        assert main(["reproduce"]) == 0
    finally:
        for name in ("papers", "papers.one"):
            sys.modules.pop(name, None)
    assert "another clone" in capsys.readouterr().out
    assert sys.path == path


def test_a_panel_names_columns_that_it_has() -> None:
    with pytest.raises(InputError, match="names a column 'z'"):
        Panel("p", pd.DataFrame({"x": [1]}), x="x", y="z")
    with pytest.raises(InputError, match="source 'guess'"):
        Panel("p", pd.DataFrame({"x": [1], "source": ["guess"]}), x="x", y="x")


def test_a_parameter_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def of_n(order: Order) -> Made:
        n = int(order.knobs["n"])
        table = pd.DataFrame({"n": [n], "y": [1.0 / (n - 3)]})
        return Made((Panel("one", table, x="n", y="y"),), (), settings={"n": n})

    figure = Figure("linear-0", "linear", "Fig. 0", "n", of_n, knobs={"n": 100, "sigma": 1.0})
    monkeypatch.setattr(catalogue, "find_figure", lambda name: figure)
    monkeypatch.setattr("papers.find_figure", lambda name: figure)
    words = ["reproduce", "linear-0", "--output", str(tmp_path / "out")]
    for number in ("500", "7"):
        assert main([*words, "--set", f"n={number}"]) == 0
        made = read_reproduction("linear-0", tmp_path / "out")
        # Not taken from the folder, where another number was set.
        assert made is not None
        assert made.settings["n"] == int(number)
        assert f"Made with n = {number} in place of the paper's n = 100" in made.notes[-1]
        capsys.readouterr()
    for text, sentence in (
        ("n=3", "cannot be made with n = 3 (ZeroDivisionError"),
        ("n=2.5", "n must be a whole number"),
        ("n=-1", "n must be a number above 0"),
        ("n=nan", "n must be a number above 0"),
        ("p=2", "linear-0 has no parameter p to set; it has n, sigma."),
        ("n", "--set needs a name and a number"),
    ):
        assert main([*words, "--set", text]) == 2
        assert sentence in capsys.readouterr().err
