"""Every output option of every verb against every input of it: what is read is not written over.

The options are taken from the command line itself, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import inspect
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
import typer.main
from sklearn.linear_model import Ridge

from leakscope.cli import app, main
from leakscope.cli.output import OUTPUTS, Guarded, guard
from leakscope.errors import InputError

TRAINING = (
    "from sklearn.linear_model import Ridge\ndef fit(X, y, seed):\n    return Ridge().fit(X, y)\n"
)

# A command line of each verb, with what it reads: given on it, of its run, or named in its run.
RUN = ["run/result.json", "run/settings.json", "run/records.csv", "run/arrays.npz"]
RUN += ["run/digests.json", "d.csv", "m.skops"]
TRAINED = ["trained/result.json", "d.csv", "own_training.py"]
LINES: dict[str, list[tuple[list[str], list[str]]]] = {
    "audit": [
        (
            ["d.csv", "--target", "y", "--model", "m.skops", "--scaling", "none"],
            ["d.csv", "m.skops"],
        ),
        (["d.csv", "--target", "y", "--train", "own_training:fit"], ["d.csv", "own_training.py"]),
        (["d.parquet", "--target", "y", "--kernel", "linear", "--stream"], ["d.parquet"]),
        (["parts", "--target", "y", "--kernel", "linear"], ["parts/a.parquet"]),
    ],
    "advise": [
        (["run", "--target-advantage", "0.5"], RUN),
        (["run/result.json", "--target-advantage", "0.5"], RUN[:1] + RUN[5:]),
        (["run", "--target-advantage", "0.5", "--data", "copy.csv"], ["copy.csv", *RUN]),
        (["trained", "--target-advantage", "0.5"], TRAINED),
    ],
    "verify": [
        (["run"], RUN),
        (["trained"], TRAINED),
        (["run", "--data", "copy.csv"], ["copy.csv"]),
    ],
    "compare": [(["run", "trained"], RUN + TRAINED)],
    "erase": [(["run", "--record", "3", "--after", "m.skops"], RUN)],
    "report": [(["run"], [*RUN, "run/verify.json"]), (["run", "--beside", "m.json"], ["m.json"])],
    "decide": [
        (["run", "m.json", "--model", "m.skops", "--threshold-advantage", "0.5"], [*RUN, "m.json"]),
        (["--check", "m.json"], ["m.json"]),
    ],
    "measure": [
        (["--member-scores", "a.npy", "--nonmember-scores", "b.npy"], ["a.npy", "b.npy"]),
        (["--logits", "logits.npz"], ["logits.npz"]),
    ],
    "attack query": [(["d.csv", "--target", "y", "--record", "1"], ["d.csv"])],
    "attack reconstruct": [
        (["net.json", "--data", "d.csv"], ["net.json", "d.csv"]),
        (["m.skops", "--known", "q.csv", "--target", "y"], ["m.skops", "q.csv"]),
    ],
    "attack membership": [
        (["m.skops", "--queries", "q.csv", "--pool", "d.csv"], ["m.skops", "q.csv", "d.csv"]),
        (["net.json", "--queries", "q.csv", "--leaked", "l.csv"], ["net.json", "q.csv", "l.csv"]),
    ],
    "reproduce": [(["linear-2b", "--data", "parts"], ["parts/a.parquet"])],
    "plan lasso": [(["--data", "d.csv", "--target", "y", "--sigma-eta", "0.2"], ["d.csv"])],
    "plan network": [(["d.csv", "--target", "y", "--depths", "1"], ["d.csv"])],
    # These read no file.
    "plan linear": [],
    "serve": [],
}
# Parameters that name what is read; a new one that takes a path belongs here or in OUTPUTS.
READ = {"file", "run", "result", "data", "first", "second", "runs", "model", "check", "beside"}
READ |= {
    "member_scores",
    "nonmember_scores",
    "logits",
    "queries",
    "pool",
    "leaked",
    "train",
    "held_out",
    "after",
    "before",
    "known",
    "canaries",
    "measure",
}

SPELLINGS: dict[str, Callable[[Path, Path], Path]] = {
    "as it is": lambda file, folder: file,
    "relative": lambda file, folder: Path(os.path.relpath(file)),
    "dots": lambda file, folder: file.parent / ".." / file.parent.name / file.name,
    "no folder": lambda file, folder: file.parent / "new" / ".." / file.name,
    "link": lambda file, folder: _linked(os.symlink, file, folder),
    "hard link": lambda file, folder: _linked(os.link, file, folder),
    "folder link": lambda file, folder: _linked(os.symlink, file.parent, folder) / file.name,
}


def _linked(make: Callable[[Path, Path], None], file: Path, folder: Path) -> Path:
    place = folder / "linked"
    make(file, place)
    return place


def verbs() -> dict[str, Any]:
    """Every verb of the command line by its name, with how it was registered."""
    found = {str(one.name): one for one in app.registered_commands}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        for one in group.typer_instance.registered_commands:
            found[f"{group.typer_instance.info.name} {one.name}"] = one
    return found


def parameters(verb: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(verbs()[verb].callback, eval_str=True).parameters)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=X @ [1.0, 2.0] + rng.normal(size=24))
    for name in ("d.csv", "copy.csv", "q.csv", "l.csv"):
        frame.to_csv(folder / name, index=False)
    frame.to_parquet(folder / "d.parquet")
    (folder / "parts").mkdir()
    frame.to_parquet(folder / "parts" / "a.parquet")
    skops.io.dump(Ridge().fit(X, frame["y"]), folder / "m.skops")
    (folder / "own_training.py").write_text(TRAINING)
    np.save(folder / "a.npy", rng.normal(size=30))
    np.save(folder / "b.npy", rng.normal(size=30))
    (folder / "logits.npz").write_bytes(b"not read before it is refused")
    (folder / "net.json").write_text("{}")
    before = Path.cwd()
    os.chdir(folder)
    try:
        model = ["audit", "d.csv", "--target", "y", "--model", "m.skops", "--scaling", "none"]
        trained = ["audit", "d.csv", "--target", "y", "--train", "own_training:fit"]
        assert main([*model, "--run-dir", "run"]) == 0
        assert main([*trained, "--models", "2", "--run-dir", "trained"]) == 0
        scores = ["measure", "--member", "normal:1,1", "--nonmember", "normal:0,1"]
        assert main([*scores, "--json", "m.json"]) == 0
        shutil.copy("m.json", "run/verify.json")
        yield folder
    finally:
        os.chdir(before)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def test_every_verb_has_a_command_line_here_and_is_guarded() -> None:
    assert set(verbs()) == set(LINES)
    for name, command in verbs().items():
        writes = set(OUTPUTS) & set(parameters(name))
        guarded = isinstance(command.cls, type) and issubclass(command.cls, Guarded)
        assert guarded or not writes, name


@pytest.mark.parametrize("verb", LINES)
def test_every_path_is_known_as_read_or_written(verb: str) -> None:
    for name, parameter in parameters(verb).items():
        words = str(getattr(parameter.annotation, "__metadata__", ""))
        path = "Path" in str(parameter.annotation).partition(",")[0]
        metavar = [
            getattr(one, "metavar", None)
            for one in getattr(parameter.annotation, "__metadata__", ())
        ]
        named = any(word in str(metavar) for word in ("FILE", "DIR", "PATH", "MODULE"))
        if path or named:
            assert name in READ | set(OUTPUTS), (verb, name, words)


TABLE = [
    (verb, line, option, input)
    for verb, lines in LINES.items()
    for line, inputs in lines
    for option, input in itertools.product(
        [OUTPUTS[name] for name in OUTPUTS if name in parameters(verb)], inputs
    )
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_read_is_not_written_over(
    spelling: str,
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Typer builds every command anew at each call, which takes longer than all the rest.
    monkeypatch.setattr("leakscope.cli.app", typer.main.get_command(app))
    before = contents(workspace)
    for place, (verb, line, option, read) in enumerate(TABLE):
        folder = workspace / f"links-{place}"
        folder.mkdir()
        output = SPELLINGS[spelling](workspace / read, folder)
        status = main([*verb.split(), *line, option, str(output)])
        told = capsys.readouterr()
        row = (verb, option, read)
        assert status == 2, row
        missing = spelling == "no folder" and "There is no folder" in told.err
        assert missing or "would overwrite" in told.err, (row, told.err)
        assert told.err.count("\n") == 1, (row, told.err)
        assert told.out == "", row
        shutil.rmtree(folder)
    assert contents(workspace) == before


def test_outputs_that_are_one_file_are_refused(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "a.html"
    line = ["advise", "run", "--target-advantage", "0.5", "--html", str(page), "--json", str(page)]
    assert main(line) == 2
    assert "are one file" in capsys.readouterr().err
    line = ["audit", "d.csv", "--target", "y", "--run-dir", str(tmp_path), "--json"]
    assert main([*line, str(tmp_path / "x.json")]) == 2
    assert "lies in the --run-dir" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_verb_may_renew_its_own_answer_in_a_run(workspace: Path) -> None:
    page = workspace / "run" / "report.html"
    page.touch()
    answers = [("verify", "json_path", "verify.json"), ("report", "output", page.name)]
    for verb, name, file in answers:
        given = {"run": Path("run"), name: workspace / "run" / file}
        guard(verb, given)
        with pytest.raises(InputError, match="a part of a run"):
            guard("report", {"run": Path("run"), "sacro": workspace / "run" / "verify.json"})
    page.unlink()


def test_what_lies_beside_what_is_read_may_be_written_over(workspace: Path) -> None:
    """The decimal point is no folder that is read."""
    (workspace / "old.json").touch()
    guard("audit", {"file": Path("d.csv"), "decimal": ".", "json_path": "old.json"})
