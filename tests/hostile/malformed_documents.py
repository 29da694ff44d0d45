"""Malformed results, run directories, networks and scores."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from malformed_archives import (
    Exploit,
    _link,
    _pipe,
    archive,
    claims,
    honest_bomb,
    npy,
    npy_claiming,
    npz,
)
from malformed_case import Case, Write, both, content, truncated
from malformed_tables import GOOD

DEEP = "[" * 100_000
JSONS: dict[str, bytes | str] = {
    "empty": "",
    "cut": '{"schema_version": "2", "kind": "au',
    "no json": "not json",
    "a list": "[1, 2, 3]",
    "null": "null",
    "a number": "7",
    "nothing in it": "{}",
    "too deep": DEEP,
    "too deep objects": '{"a":' * 50_000,
    "a number of 5000 digits": '{"schema_version": ' + "9" * 5000 + "}",
    "utf-16": json.dumps({"kind": "audit"}).encode("utf-16"),
    "latin-1": '{"kind": "é"}'.encode("latin-1"),
    "a mark of order": b"\xef\xbb\xbf{}",
    "zeros": bytes(100),
    "a later version": '{"schema_version": "99", "kind": "audit"}',
    "a version of 5000 digits": '{"schema_version": "' + "9" * 5000 + '", "kind": "audit"}',
    "a version in words": '{"schema_version": "one", "kind": "audit"}',
    "a version of signs": '{"schema_version": "²", "kind": "audit"}',
    "an empty version": '{"schema_version": "", "kind": "audit"}',
    "a kind that is none": '{"schema_version": "2", "kind": "novel"}',
    "a kind that is a list": '{"schema_version": "2", "kind": ["audit"]}',
    "a kind with signs": '{"schema_version": "2", "kind": "\\u001b[31m\\u202e"}',
    "no more than its kind": '{"schema_version": "2", "kind": "audit"}',
}


@functools.cache
def run_files() -> dict[str, bytes]:
    """A whole run of ``leakscope audit``, file by file."""
    from leakscope.cli import main

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "data.csv").write_text(GOOD)
        quiet = contextlib.redirect_stdout(io.StringIO())
        with contextlib.chdir(folder), quiet:
            assert (
                main(["audit", "data.csv", "--target", "y", "--model", "rbf", "--run-dir", "run"])
                == 0
            )
        return {file.name: file.read_bytes() for file in (folder / "run").iterdir()}


def run(**changed: bytes | str | None) -> Write:
    """A run directory with some of its files changed, or left out."""

    def write(folder: Path) -> None:
        # Without its digest, by which any change would be seen before the file is looked at.
        own = {name: held for name, held in run_files().items() if name != "digests.json"}
        files = {**own, **{k.replace("__", "."): v for k, v in changed.items()}}
        (folder / "data.csv").write_text(GOOD)
        (folder / "run").mkdir()
        for name, held in files.items():
            if held is not None:
                place = folder / "run" / name
                place.write_bytes(held if isinstance(held, bytes) else held.encode())

    return write


def result(change: Callable[[dict[str, Any]], Any]) -> Write:
    """A run whose result is a little different; its data are beside it."""

    def write(folder: Path) -> None:
        document = json.loads(run_files()["result.json"])
        document["dataset"]["source"]["file"] = str(folder / "data.csv")
        changed = change(document)
        text = json.dumps(document if changed is None else changed)
        run(result__json=text)(folder)

    return write


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def _drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no records": _drop("records"),
    "records that are a word": _set("records", to="many"),
    "records that are numbers": _set("records", to=[1, 2, 3]),
    "one thing too many": _set("surprise", to=1),
    "a kl that is a word": _set("records", 0, "kl", to="large"),
    "a kl that is a list": _set("records", 0, "kl", to=[1.0]),
    "a date that is none": _set("created", to="yesterday"),
    "no settings": _drop("settings"),
    "an assumption that is a word": _set("assumptions", to=["yes"]),
    "an answer that is a number": _set("answer", to=7),
    "a time that is a word": _set("timing", to={"all": "long"}),
    "a kernel that is a list": _set("details", "kernel", to=[1]),
    "no records at all": _set("records", to=[]),
    "a number in quotes": _set("details", "noise_variance", to="0.01"),
    "a number that is none": _set("details", "noise_variance", to="nan"),
    "a number beyond float64": _set("details", "noise_variance", to=float("inf")),
    "a median that is a word": _set("details", "sweep", 0, "median_kl", to="nan"),
}
# Well formed, but not what verify can use.
FALSE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no kernel in its settings": _drop("settings", "scaling"),
    "a scaling that is none": _set("settings", "scaling", to="large"),
    "a kernel that is none": _set("details", "kernel", "name", to="magic"),
    "a length scale that is a word": _set("details", "kernel", "length_scale", to="long"),
    "a noise of nothing": _set("details", "noise_variance", to=0.0),
    "a noise below nothing": _set("details", "noise_variance", to=-1.0),
    "a noise of 1e-320": _set("details", "noise_variance", to=1e-320),
    "a record that is not there": _set("records", 0, "record_id", to=999),
    "a source without a file": _set("dataset", "source", "file", to=None),
    "no source": _set("dataset", "source", to=None),
    "another digest": _set("dataset", "source", "digest", to="0" * 64),
    "a file that is gone": _set("dataset", "source", "file", to="gone.csv"),
    "a file that is a folder": _set("dataset", "source", "file", to="/proc"),
    "a file that never ends": _set("dataset", "source", "file", to="/dev/zero"),
    "a target that is not there": _set("dataset", "source", "target", to="q"),
    "a task that is none": _set("dataset", "source", "task", to="sorting"),
    "groups": _set("unit", to="group"),
    "a variance of nothing": _set("records", 0, "sd_with", to=-1.0),
    "two means for one output": _set("records", 0, "mean_with", to=[1.0, 2.0]),
}


def _results() -> Iterator[Case]:
    report, verify = ("report", "run"), ("verify", "run")
    for name, held in JSONS.items():
        yield Case(f"report: {name}", run(result__json=held), report, "result.json")
    for name in ("empty", "cut", "a list", "too deep", "utf-16", "a later version"):
        yield Case(
            f"verify: {name}", content("one.json", JSONS[name]), ("verify", "one.json"), "one.json"
        )
    for name, change in CHANGES.items():
        yield Case(f"result: {name}", result(change), report, "result.json")
    for name, change in FALSE.items():
        yield Case(f"verify: {name}", result(change), (*verify, "--draws", "100"), " ")
        if "mean" not in name and "variance" not in name and "record" not in name:
            advise = ("advise", "run", "--target-advantage", "0.2")
            yield Case(f"advise: {name}", result(change), advise, " ")
    yield Case(
        "report: no word of the method", result(_drop("provenance", "method")), report, "method"
    )
    text = json.dumps(json.loads('{"schema_version": "2"}'))
    yield Case("report: no run", lambda folder: None, ("report", "run"), "run")
    yield Case("report: a file", content("run", "x"), report, "run")
    yield Case("report: an empty folder", lambda f: (f / "run").mkdir(), report, "result.json")
    yield Case(
        "report: a pipe", both(run(result__json=None), _pipe("run/result.json")), report, "run"
    )
    yield Case(
        "report: a result that never ends",
        both(run(result__json=None), _link("run/result.json", "/dev/zero")),
        report,
        "result.json",
    )
    for name in ("empty", "a list of versions", "too deep", "utf-16"):
        held = JSONS.get(name, '{"versions": [1]}')
        yield Case(f"settings: {name}", run(settings__json=held), report, "settings.json")
    for name in ("empty", "too deep", "no more than its kind"):
        yield Case(f"verify.json: {name}", run(verify__json=JSONS[name]), report, "verify.json")
    yield Case(
        "verify.json: an audit", run(verify__json=run_files()["result.json"]), report, "verify.json"
    )
    for name, held in {
        "empty": "",
        "too deep": DEEP,
        "a list": "[]",
        "climbs": _gallery("../../../etc/passwd"),
        "absolute": _gallery("/etc/passwd"),
        "not there": _gallery("gone.png"),
        "no picture": _gallery("text.png"),
        "signs": _gallery("\x1b[31m.png"),
    }.items():
        yield Case(
            f"gallery: {name}", run(gallery__json=held, text__png="no picture"), report, "run"
        )
    for name, held in {
        "empty": b"",
        "a text": b"nothing",
        "cut": truncated(run_files()["arrays.npz"], 0.6),
        "a bomb": archive({"roc_ranks.npy": npy_claiming(claims("(1000000, 1000000)"))}),
        "a pickle": archive({"roc_ranks.npy": _acting()}),
    }.items():
        yield Case(f"arrays: {name}", run(arrays__npz=held), report, "arrays.npz")
    yield Case("verify: no result", content("x.json", text), ("verify", "x.json"), "x.json")
    yield Case("verify: no file", lambda folder: None, ("verify", "x.json"), "x.json")
    yield Case("verify: a pipe", _pipe("x.json"), ("verify", "x.json"), "x.json")


def _acting() -> bytes:
    return npy(np.array([Exploit()], dtype=object), allow_pickle=True)


def _gallery(file: str) -> str:
    entry = {"record_id": 1, "target": "1", "file": file, "rank": 1, "neighbours": []}
    return json.dumps({"pictures": [entry]})


W, B, V = [[1.0], [-1.0], [0.5]], [0.1, 0.3, -0.2], [1.0, -1.0, 0.5]


def _json_network(**changed: Any) -> str:
    return json.dumps({"w": W, "b": B, "v": V, **changed})


def safetensors(header: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def _networks() -> Iterator[Case]:
    files: dict[str, bytes | str] = {
        f"{place}.json": held
        for place, held in {
            **{name: held for name, held in JSONS.items() if "version" not in name},
            "ragged": _json_network(w=[[1.0, 2.0], [3.0], [4.0]]),
            "words": _json_network(w=["a", "b", "c"]),
            "nan": _json_network(b=[float("nan"), 1.0, 1.0]),
            "infinite": _json_network(v=[float("inf"), 1.0, 1.0]),
            "huge integers": _json_network(b=[10**400, 1, 1]),
            "objects": _json_network(b=[{}, {}, {}]),
            "null weights": _json_network(v=None),
            "no w": json.dumps({"b": B, "v": V}),
            "one thing too many": _json_network(u=[1.0]),
            "lengths that differ": _json_network(v=[1.0]),
            "no neurons": json.dumps({"w": [], "b": [], "v": []}),
            "four axes": _json_network(w=[[[[1.0]]]] * 3),
            "zeros only": json.dumps({"w": [[0.0]] * 3, "b": [0.0] * 3, "v": [0.0] * 3}),
        }.items()
    }
    packed = {"w": {"dtype": "F32", "shape": [3, 1], "data_offsets": [0, 12]}}
    for name, held in {
        "empty": b"",
        "seven bytes": b"1234567",
        "a header of 2^62 bytes": safetensors("{}", length=2**62),
        "a header that is cut": safetensors('{"w": {"dty'),
        "a header that is no json": safetensors("not json at all"),
        "a header too deep": safetensors(DEEP),
        "data that are cut": safetensors(json.dumps(packed), bytes(4)),
        "a shape of 10^18": safetensors(
            json.dumps({"w": {**packed["w"], "shape": [10**9, 10**9]}}), bytes(12)
        ),
        "a shape below nothing": safetensors(
            json.dumps({"w": {**packed["w"], "shape": [-3, -1]}}), bytes(12)
        ),
        "offsets turned round": safetensors(
            json.dumps({"w": {**packed["w"], "data_offsets": [12, 0]}}), bytes(12)
        ),
        "no such type": safetensors(json.dumps({"w": {**packed["w"], "dtype": "F7"}}), bytes(12)),
        "bfloat16": safetensors(
            json.dumps({"w": {"dtype": "BF16", "shape": [6, 1], "data_offsets": [0, 12]}}),
            bytes(12),
        ),
        "names unknown": safetensors(json.dumps({"q": packed["w"]}), bytes(12)),
    }.items():
        files[f"{name}.safetensors"] = held
    for name, held in {
        "empty": b"",
        "no archive": b"PK",
        "a single array": npy(np.array(B)),
        "a pickle that acts": archive({"w.npy": _acting()}),
        "a bomb": archive(
            {"w.npy": npy_claiming(claims("(1000000, 1000000)"), bytes(99)), "b.npy": npy(B)}
        ),
        "a bomb that holds 64 GB": honest_bomb(),
        "text": npz(w=np.array(["a"]), b=B, v=V),
        "complex": npz(w=np.array(W) + 1j, b=B, v=V),
        "shapes that differ": npz(w=W, b=B, v=[1.0]),
        "nan": npz(w=W, b=[np.nan, 1.0, 1.0], v=V),
        "no member that is an array": archive({"w.txt": b"1"}),
    }.items():
        files[f"{name}.npz"] = held
    files |= {f"net{suffix}": b"\x80\x04N." for suffix in (".pkl", ".joblib", ".pt", ".h5", "")}
    for name, held in files.items():
        yield Case(f"network: {name}", content(name, held), ("attack", "reconstruct", name), name)
    for name in ("w.json", "w.npz", "w.safetensors"):
        arguments = ("attack", "reconstruct", name)
        yield Case(f"network: a pipe called {name}", _pipe(name), arguments, name)
        yield Case(f"network: {name} never ends", _link(name, "/dev/zero"), arguments, name)
        yield Case(
            f"network: {name} is a folder", lambda f, n=name: (f / n).mkdir(), arguments, name
        )
    good = content("net.json", _json_network())
    for name, held in {
        "empty": "",
        "two columns": "a,b\n1,2\n",
        "words": "x\nyes\nno\n",
        "nan": "x\n1\nnan\n",
        "infinite": "x\n1\ninf\n",
        "a number of 400 digits": "x\n1\n" + "9" * 400 + "\n",
        "dates": "x\n2024-01-01\n",
        "no rows": "x\n",
    }.items():
        for verb in ("membership", "reconstruct"):
            option = "--queries" if verb == "membership" else "--data"
            yield Case(
                f"{verb}: {option} {name}",
                both(good, content("asked.csv", held)),
                ("attack", verb, "net.json", option, "asked.csv"),
                "asked.csv",
            )
    for name, held in {"labels of 7": "x,y\n1,7\n2,7\n", "nan": "x,y\nnan,1\n2,-1\n"}.items():
        for verb in ("membership", "reconstruct"):
            more = ("--queries", "q.csv") if verb == "membership" else ()
            yield Case(
                f"{verb}: training set with {name}",
                both(good, content("set.csv", held), content("q.csv", "x\n1\n")),
                ("attack", verb, "net.json", *more, "--data", "set.csv"),
                " ",
            )


def _scores() -> Iterator[Case]:
    files: dict[str, bytes | str] = {
        "empty.csv": "",
        "heading.csv": "score\n",
        "words.csv": "score\n0.1\nhigh\n",
        "columns.csv": "0.1,0.2\n0.3,0.4\n0.5,0.6\n",
        "nan.csv": "0.1\nnan\n",
        "inf.txt": "0.1\n-inf\n",
        "digits.txt": "0.1\n" + "9" * 400 + "\n",
        "utf16.csv": "0.1\n0.2\n".encode("utf-16"),
        "nulls.csv": b"0.1\n\0\0\n0.2\n",
        "latin.csv": "score\n0.1\n0,2é\n".encode("latin-1"),
        "signs.csv": "score\n0.1\n\x1b[31m\u202e\n",
        "picture.csv": b"\x89PNG\r\n\x1a\n\0\0",
        "empty.npy": b"",
        "cut.npy": npy(np.ones(9))[:-5],
        "claims.npy": npy_claiming(claims("(1000000000000,)"), bytes(16)),
        "two.npy": npy(np.ones((4, 2))),
        "none.npy": npy(np.ones(0)),
        "number.npy": npy(np.float64(1)),
        "complex.npy": npy(np.ones(3) * 1j),
        "text.npy": npy(np.array(["a", "b"])),
        "dates.npy": npy(np.arange(3).astype("datetime64[D]")),
        "pickle.npy": _acting(),
        "nan.npy": npy(np.array([1.0, np.nan])),
        "archive.npy": npz(a=B),
        "scores.parquet": "0.1\n",
        "scores.json": "[0.1]",
    }
    good = content("good.csv", "0.1\n0.2\n0.3\n0.25\n0.7\n")
    for name, held in files.items():
        for first in (True, False) if name in ("empty.csv", "nan.csv", "pickle.npy") else (True,):
            pair = (name, "good.csv") if first else ("good.csv", name)
            yield Case(
                f"scores: {name} of {'members' if first else 'non-members'}",
                both(good, content(name, held)),
                ("measure", "--member-scores", pair[0], "--nonmember-scores", pair[1]),
                name,
            )
    for name, write in {
        "pipe.csv": _pipe("pipe.csv"),
        "zero.csv": _link("zero.csv", "/dev/zero"),
        "zero.npy": _link("zero.npy", "/dev/zero"),
        "loop.txt": _link("loop.txt", "loop.txt"),
        "folder.csv": lambda folder: (folder / "folder.csv").mkdir(),
        "none.csv": lambda folder: None,
    }.items():
        yield Case(
            f"scores: {name}",
            both(good, write),
            ("measure", "--member-scores", name, "--nonmember-scores", "good.csv"),
            name,
        )


def cases() -> Iterator[Case]:
    yield from _results()
    yield from _networks()
    yield from _scores()
