"""Mutated files through the readers themselves: a value or an InputError, never anything else.

What hours of the same found, guided by coverage and through the command line, stands below, each
with the input that found it.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import malformed_archives as archives
import malformed_documents as documents
import malformed_tables as tables
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from leakscope import data, results
from leakscope.cli import main
from leakscope.data.arrays import read_scores
from leakscope.data.files import read_json
from leakscope.data.preparation import prepare
from leakscope.errors import InputError
from leakscope.laws.text import parse_law

TABLE = tables.good_table()
SEEDS: dict[str, bytes] = {
    "data.csv": tables.GOOD.encode(),
    "data.tsv": tables.GOOD.replace(",", "\t").encode(),
    "data.parquet": tables.parquet(TABLE),
    "data.npy": archives.npy(archives.X),
    "data.npz": archives.npz(X=archives.X, y=archives.Y),
}
NETWORKS: dict[str, bytes] = {
    "net.json": documents._json_network().encode(),
    "net.npz": archives.npz(w=documents.W, b=documents.B, v=documents.V),
}
QUICK = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def mutated(draw: st.DrawFn, seeds: dict[str, bytes]) -> tuple[str, bytes]:
    """A file's name and its bytes, with a few of them replaced, removed, doubled or cut off."""
    name = draw(st.sampled_from(sorted(seeds)))
    made = bytearray(seeds[name])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(made) - 1, 0)))
        length = draw(st.sampled_from([0, 1, 2, 8, 40]))
        made[place : place + length] = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(
                    [b"\xff" * 8, bytes(8), b'"', b"\n", b"1e400", b"nan", b"[" * 3000]
                ),
            )
        )
    return name, bytes(made[: draw(st.sampled_from([len(made), len(made), len(made) // 2]))])


@QUICK
@given(mutated(SEEDS))
def test_tables(tmp_path, file):
    name, held = file
    (tmp_path / name).write_bytes(held)
    with contextlib.suppress(InputError):
        prepare(data.read_dataset(tmp_path / name, target="0"))


@QUICK
@given(mutated(NETWORKS))
def test_networks(tmp_path, file):
    name, held = file
    (tmp_path / name).write_bytes(held)
    with contextlib.suppress(InputError):
        found = data.read_network(tmp_path / name)
        assert np.isfinite(found.w).all()


@QUICK
@given(mutated({"result.json": documents.run_files()["result.json"]}))
def test_results(tmp_path, file):
    (tmp_path / "result.json").write_bytes(file[1])
    with contextlib.suppress(InputError):
        results.read_result(tmp_path / "result.json")


@QUICK
@given(mutated({"s.csv": b"score\n0.1\n0.2\n", "s.npy": archives.npy(archives.Y)}))
def test_scores(tmp_path, file):
    (tmp_path / file[0]).write_bytes(file[1])
    with contextlib.suppress(InputError):
        assert np.isfinite(read_scores(tmp_path / file[0])).all()


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.sampled_from(["", " ", "+", "1e", "1e+3", "0x1", "1_0", "²", "nan", "-inf", "1e400"]),
)


@QUICK
@given(
    st.sampled_from(
        ["normal:{},{}", "spike:{},{},{}", "mixture:{}*{},{}+{}*{},{}", "mvn:{},{}/{}"]
    ),
    st.lists(NUMBERS, min_size=6, max_size=6),
)
@example("normal:{},{}", ["1e300", "1", "", "", "", ""])
def test_law_texts(form, numbers):
    with contextlib.suppress(InputError):
        parse_law(form.format(*numbers), "--member")


@QUICK
@given(
    st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=9)
)
def test_json(tmp_path, value):
    (tmp_path / "a.json").write_text(json.dumps(value))
    with contextlib.suppress(InputError):
        read_json(tmp_path / "a.json")


def written(folder: Path, name: str, held: bytes | str) -> None:
    (folder / name).write_bytes(held if isinstance(held, bytes) else held.encode())


# What the fuzzer found: a file, a command, and what the sentence says; None where it now works.
FOUND: dict[str, tuple[dict[str, bytes | str], list[str], str | None]] = {
    "text whose signs are none": (
        {
            "data.npz": archives.archive(
                {
                    "X.npy": archives.npy_claiming(
                        archives.claims("(2, 2)", "'<U1'"), b"\xff\xff\xff\x7f" * 4
                    ),
                    "y.npy": archives.npy(np.array([1.0, 2.0])),
                }
            )
        },
        ["audit", "data.npz"],
        "characters that do not exist",
    ),
    "every record equally exposed": (
        {"data.csv": "id,c,y\na,x,1\nb,z,2\n"},
        ["audit", "data.csv", "--target", "y", "--id", "id"],
        None,
    ),
    "a law with a mean of 1e300": (
        {},
        ["measure", "--member", "normal:1e300,1", "--nonmember", "normal:0,1"],
        "beyond what float64 can compare",
    ),
    "a ratio of records and coefficients of 1e300": (
        {},
        [
            *("plan", "lasso", "--alpha", "1e300", "--rho", "0.1", "--sigma-xi", "0.1"),
            *("--lam", "1", "--sigma-eta", "0.2"),
        ],
        "--alpha must be 0, or from 1e-12 to 1e+12",
    ),
    "a column of 1e200 that hardly varies": (
        {"data.csv": "a,b,y\n1e200,1,1\n1.0000000000000002e200,2,2\n1e200,3,3\n1e200,4,3\n"},
        ["audit", "data.csv", "--target", "y"],
        "column 'a' holds numbers as large as 1e+200",
    ),
    "features of 1e200 as they are": (
        {"data.csv": "a,b,y\n1e200,1,1\n2e200,2,2\n1e200,3,3\n1e200,4,3\n"},
        ["audit", "data.csv", "--target", "y", "--set", "scaling=none"],
        "column 'a' holds numbers as large as 2e+200",
    ),
    "a ridge of 1e9": (
        {},
        ["plan", "linear", "--n", "10", "--p", "20", "--dim", "40", "--ridge", "1e9"],
        "--ridge must be 0, or from 1e-12 to 1e+06",
    ),
    "a length scale of 1e-300": (
        {"data.csv": tables.GOOD},
        ["audit", "data.csv", "--target", "y", "--model", "rbf", "--set", "length_scale=1e-300"],
        "input should be from 1e-30 to 1e+30",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name, tmp_path, capsys):
    files, arguments, sentence = FOUND[name]
    for file, held in files.items():
        written(tmp_path, file, held)
    with contextlib.chdir(tmp_path):
        status = main(arguments)
    error = capsys.readouterr().err
    assert status == (0 if sentence is None else 2), error
    assert sentence is None or sentence in error


def test_a_bias_variance_beyond_float64_is_refused(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    line = [
        "audit",
        "--example",
        "iris",
        "--model",
        "linear_kernel",
        "--set",
        "bias_variance=1e300",
    ]
    assert main(line) == 2
    assert "from 1e-30 to 1e+30" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        # beyond the best lambda nothing is feasible, and infinity less infinity was taken
        ["--alpha", "0.1", "--sigma-eta", "0.2"],
        # what is divided by -0.0 is below zero
        ["--alpha", "2", "--sigma-eta=-0.0"],
        # the overlap of two errors, a difference beside 1e18, was below zero
        ["--alpha", "2", "--sigma-eta", "1e9"],
        # what is left of the information, a difference of rounding's size, was below zero
        ["--alpha", "1e9", "--sigma-eta", "3"],
    ],
)
def test_a_plan_without_warnings(options, capsys) -> None:
    from leakscope.lasso import LassoSetting
    from leakscope.planning import best_lasso

    line = ["plan", "lasso", "--rho", "0.1", "--sigma-xi", "0.1", "--lam", "1"]
    assert main([*line, *options]) == 0
    assert "advantage" in capsys.readouterr().out
    told = [float(text.split("=")[-1]) for text in options if "=" in text or text[0].isdigit()]
    setting = LassoSetting(told[0], 0.1, 0.1, 1.0, told[1])
    assert {one.goal for one in best_lasso(setting, kl_at_most=2.0)} == {"least_error"}


def test_a_plan_for_labels_that_are_all_zero(capsys) -> None:
    line = ["plan", "lasso", "--alpha", "0.1", "--rho", "0", "--sigma-xi", "0", "--lam", "889.2"]
    line += ["--sigma-eta", "0.007767"]
    assert main(line) == 2
    assert "there is nothing to learn" in capsys.readouterr().err
