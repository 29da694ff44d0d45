"""Files from the user: good ones, and every kind of bad one; each ends in one sentence."""

from __future__ import annotations

import io
import pickle
import stat
import threading
import time
import zipfile
from concurrent.futures import Future, ThreadPoolExecutor
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from leakscope.serving import Limits, application, inspection
from leakscope.serving.uploads import SUFFIXES, shown_name
from serving import client, finished, upload

HOSTILE = '<img src=x onerror="window.hacked=1">'


def table(records: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(records)],
            "age": rng.normal(50, 10, records),
            "region": ["north", "south", "east"] * (records // 3),
            "cost": rng.normal(size=records),
        }
    )


def as_bytes(suffix: str) -> bytes:
    frame, buffer = table(), io.BytesIO()
    if suffix in (".csv", ".data", ".tsv"):
        return frame.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
    if suffix == ".parquet":
        frame.to_parquet(buffer)
    elif suffix in (".arrow", ".feather"):
        frame.to_feather(buffer)
    elif suffix == ".npy":
        np.save(buffer, frame[["age", "cost"]].to_numpy())
    else:
        np.savez(buffer, X=frame[["age"]].to_numpy(), y=frame["cost"].to_numpy())
    return buffer.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def found(folder):
    with client(folder, Limits(upload_bytes=200_000)) as (served, _):
        yield served


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_kind_of_file_is_read_and_its_columns_offered(found, suffix):
    answer = upload(found, f"people{suffix.upper()}", as_bytes(suffix))
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["records"] == 30
    names = [column["name"] for column in told["columns"]]
    assert told["offered"]["target"] in names
    if suffix == ".csv":
        assert names == ["person", "age", "region", "cost"]
        assert told["offered"] == {
            "target": "cost",
            "task": "regression",
            "id_column": "person",
            "missing": "error",
            "ignore": [],
            "header": True,
            "na_values": [],
            "decimal": ".",
        }
        assert [column["kind"] for column in told["columns"]][1:] == [
            "number",
            "category",
            "number",
        ]


def test_offers_of_classes_empty_values_and_text(found):
    lines = ["when,note,a,label"]
    for i in range(40):
        lines.append(f"2024-01-{i % 28 + 1:02d},word{i} more,{'' if i == 3 else i},{'ab'[i % 2]}")
    told = upload(found, "t.csv", "\n".join(lines).encode()).json()
    offered = told["offered"]
    assert offered["target"] == "label"
    assert offered["task"] == "classification"
    assert offered["missing"] == "impute"
    assert offered["id_column"] == "note"
    assert told["columns"][2]["empty"] == 1
    lines[5] = lines[5].removesuffix("a").removesuffix("b")
    told = upload(found, "t.csv", "\n".join(lines).encode()).json()
    assert told["offered"]["missing"] == "drop"


def pickled_archive() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, X=np.array([[{"a": 1}, None]], dtype=object), y=np.zeros(1))
    return buffer.getvalue()


class Evil:
    ran = False

    def __reduce__(self):
        return (setattr, (Evil, "ran", True))


def evil_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Evil()))
    return buffer.getvalue()


BAD = {
    "a pickle in npz": ("x.npz", pickled_archive()),
    "a pickle named npy in npz": ("x.npz", evil_archive()),
    "a bare pickle": ("x.npy", pickle.dumps(Evil())),
    "truncated parquet": ("x.parquet", as_bytes(".parquet")[:-100]),
    "parquet's beginning": ("x.parquet", as_bytes(".parquet")[:20]),
    "truncated arrow": ("x.arrow", as_bytes(".arrow")[:200]),
    "truncated npz": ("x.npz", as_bytes(".npz")[:100]),
    "not a zip": ("x.npz", b"PK\x03\x04 nothing"),
    "empty": ("x.csv", b""),
    "no text": ("x.csv", bytes(range(128, 256)) * 10),
    "one column": ("x.csv", b"a\n1\n2\n"),
    "no records": ("x.csv", b"a,b\n"),
    "two columns of one name": ("x.csv", b"a,a\n1,2\n3,4\n"),
    "html in a name twice": ("x.csv", f"{HOSTILE!r},{HOSTILE!r}\n1,2\n".encode()),
    "another suffix": ("x.exe", b"MZ"),
    "no suffix": ("csv", b"a,b\n1,2\n"),
    "a pickle suffix": ("x.pkl", pickle.dumps(Evil())),
    "a path": ("../../../../etc/passwd", b"a,b\n1,2\n"),
    "an object column of lists": ("x.arrow", b"ARROW1\x00\x00" + b"\xff" * 64),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_sentence_and_is_not_kept(found, folder, case):
    before = set(folder.iterdir())
    answer = upload(found, *BAD[case])
    assert answer.status_code == 400, answer.text
    sentence = answer.json()["error"]
    assert sentence
    assert "\n" not in sentence
    assert str(folder) not in sentence
    assert "upload-" not in sentence
    assert "Traceback" not in sentence
    assert set(folder.iterdir()) <= before
    assert not Evil.ran


def test_a_file_beyond_the_limit_is_refused(found, folder):
    before = set(folder.iterdir())
    answer = upload(found, "big.csv", b"a,b\n" + b"1,2\n" * 60_000)
    assert answer.status_code == 413
    assert "larger than 0.2 MB" in answer.json()["error"]
    assert set(folder.iterdir()) <= before


def test_it_is_refused_while_it_streams_in(found, folder):
    before, sent = set(folder.iterdir()), []

    def chunks():
        for _ in range(1000):
            sent.append(1)
            yield b"1,2\n" * 10_000

    answer = found.post("/api/uploads", params={"name": "endless.csv"}, content=chunks())
    assert "content-length" not in answer.request.headers
    assert answer.status_code == 413
    assert set(folder.iterdir()) <= before


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("..\\..\\boot.csv", "boot.csv"),
        ("/absolute/x.csv", "x.csv"),
        ("a\x00b\nc.csv", "abc.csv"),
        ("\u202efdp.csv", "\ufffdfdp.csv"),
        ("", "upload"),
        ("..", "upload"),
        ("x" * 500 + ".csv", "…" + "x" * 75 + ".csv"),
    ],
)
def test_a_name_is_shown_and_never_a_path(given, shown):
    found = shown_name(given)
    assert found in (shown, "..") if given == ".." else found == shown


def test_files_are_private_and_have_names_of_our_own(found, folder):
    answer = upload(found, "../../evil name.csv", as_bytes(".csv"))
    assert answer.json()["name"] == "evil name.csv"
    held = [path for path in folder.iterdir() if path.is_file()]
    assert held
    for path in held:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.name.startswith("upload-")
        assert "evil" not in path.name


def test_only_the_newest_files_are_held(tmp_path):
    with client(tmp_path, Limits(uploads_held=2)) as (found, _):
        ids = [upload(found, "a.csv", as_bytes(".csv")).json()["upload"] for _ in range(3)]
        assert len(set(ids)) == 3
        assert len(list(tmp_path.iterdir())) == 2
        answer = found.post("/api/jobs", json={"upload": ids[0], "target": "cost"})
        assert answer.status_code == 400
        assert "upload it again" in answer.json()["error"]
    assert list(tmp_path.iterdir()) == []


def test_hostile_names_come_back_as_they_are_and_pages_escape_them(tmp_path):
    frame = table().rename(columns={"age": HOSTILE, "cost": "y</script>"})
    with client(tmp_path) as (found, _):
        name = "<script>alert(1)</script>.csv"
        told = upload(found, name, frame.to_csv(index=False).encode()).json()
        assert told["name"] == "script>.csv"
        told = upload(found, f"{HOSTILE}.csv", frame.to_csv(index=False).encode()).json()
        assert told["columns"][1]["name"] == HOSTILE
        wanted = {"upload": told["upload"], "target": "y</script>", "id_column": "person"}
        job = found.post("/api/jobs", json=wanted).json()["job"]
        state = finished(found, job)
        assert state["state"] == "done", state
        for page in (f"/jobs/{job}", "/", f"/jobs/{job}/report"):
            text = found.get(page).text
            assert HOSTILE not in text
            assert "<img src=x" not in text


def test_an_error_in_the_data_is_told_in_the_words_of_the_page(tmp_path):
    frame = table()
    frame.loc[3, "age"] = np.nan
    with client(tmp_path) as (found, _):
        told = upload(found, "people.csv", frame.to_csv(index=False).encode()).json()
        wanted = {"upload": told["upload"], "target": "cost", "id_column": "person"}
        job = found.post("/api/jobs", json=wanted | {"missing": "error"}).json()["job"]
        state = finished(found, job)
        assert state["state"] == "failed"
        assert state["problem"].startswith("people.csv: column 'age'")
        assert "choose what to do with empty values" in state["problem"]
        assert "--" not in state["problem"]
        job = found.post("/api/jobs", json=wanted | {"missing": "impute"}).json()["job"]
        assert finished(found, job)["state"] == "done"
        text = found.get(f"/jobs/{job}/report").text
        assert "people.csv" in text
        assert str(tmp_path) not in text
        assert "upload-" not in text


def test_one_file_that_takes_long_does_not_hold_up_the_others(tmp_path, monkeypatch):
    """A wide file of text took 57 seconds to look through, and every other upload waited."""
    begun, go_on = threading.Event(), threading.Event()
    look = application.inspect

    def slow(held):
        if held.name == "wide.csv":
            begun.set()
            assert go_on.wait(600.0)
        return look(held)

    monkeypatch.setattr(application, "inspect", slow)
    content = as_bytes(".csv")
    with client(tmp_path) as (served, _), ThreadPoolExecutor(1) as pool:
        first = pool.submit(upload, served, "wide.csv", content)
        try:
            assert begun.wait(600.0)
            other = pool_of_one(upload, served, "other.csv", content)
            assert other.result(timeout=300.0).status_code == 200
            assert not first.done()
        finally:
            go_on.set()
        assert first.result(timeout=600.0).status_code == 200


def pool_of_one(work, *given):
    """What the work comes to, in a thread that is not waited for where it hangs."""
    found = Future()
    threading.Thread(target=lambda: found.set_result(work(*given)), daemon=True).start()
    return found


def test_columns_of_numbers_are_told_together_as_they_are_singly():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 5, 40),
            "unsigned": np.arange(40, dtype=np.uint8),
            "large": np.arange(40) + 2**60,
            "half": rng.normal(size=40).astype(np.float16),
            "gaps": np.where(np.arange(40) % 3, np.arange(40) % 4, np.nan),
            "empty": np.full(40, np.nan),
            "infinite": np.where(np.arange(40) % 2, np.inf, 1.0),
            "constant": np.zeros(40),
            "signed zeros": np.where(np.arange(40) % 2, 0.0, -0.0),
            "text": ["a", "b"] * 20,
            "truth": [True, False] * 20,
            "dates": pd.date_range("2020-01-01", periods=40),
            "nullable": pd.array([1, None] * 20, dtype="Int64"),
        }
    )
    singly = [inspection._column(frame[name], name) for name in frame.columns]
    assert inspection._columns(frame) == singly
    with mock.patch.object(inspection, "BLOCK", 90):
        assert inspection._columns(frame) == singly


def test_a_wide_table_is_looked_through_in_seconds():
    """20,000 columns took 6 seconds of processor time one by one."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 20_000)))
    start = time.process_time()
    assert len(inspection._columns(frame)) == 20_000
    assert time.process_time() - start < 2.0


def uploaded(tmp_path, text, name="people.csv"):
    from leakscope.serving.uploads import Upload

    path = tmp_path / name
    path.write_text(text)
    return Upload("id", name, path)


def test_marks_for_values_not_known_are_offered_as_empty(tmp_path):
    """The page took '?' for a category without a word."""
    from leakscope.serving.inspection import inspect

    rows = "".join(f"{i},{'?' if i % 5 == 0 else 'ab'[i % 2]},{i % 3}\n" for i in range(30))
    found = inspect(uploaded(tmp_path, f"x,c,y\n{rows}"))
    assert found["offered"]["na_values"] == ("?",)
    assert found["offered"]["missing"] == "impute"
    column = found["columns"][1]
    assert (column["kind"], column["empty"], column["distinct"]) == ("category", 6, 2)


def test_a_file_without_names_and_decimal_commas_are_seen(tmp_path):
    from leakscope.serving.inspection import inspect

    rows = "".join(f"{i}.5, {'?' if i == 3 else 'ab'[i % 2]}, {i % 2}\n" for i in range(30))
    found = inspect(uploaded(tmp_path, rows, "adult.data"))
    assert found["records"] == 30
    assert found["offered"]["header"] is False
    assert [column["name"] for column in found["columns"]] == ["x0", "x1", "x2"]
    commas = "".join(f"{i},5;{i % 7},25;{i % 2}\n" for i in range(30))
    found = inspect(uploaded(tmp_path, f"a;b;y\n{commas}", "commas.csv"))
    assert found["offered"]["decimal"] == ","
    assert [column["kind"] for column in found["columns"]] == ["number"] * 3
