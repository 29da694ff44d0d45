"""Malformed tables of text, Parquet and Arrow, for ``leakscope audit``."""

from __future__ import annotations

import datetime
import gzip
import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from malformed_case import Case, content, truncated

GOOD = "a,b,y\n1,2,3\n2,1,4\n3,5,1\n4,2,6\n5,5,5\n6,1,2\n"
AUDIT = ("audit", "data.csv", "--target", "y")
CLASSES = (*AUDIT, "--task", "classification")
ROWS = "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(8))

# name: what the file holds, and the options if not --target y.
TEXTS: dict[str, bytes | str | tuple[bytes | str, tuple[str, ...]]] = {
    "empty": "",
    "one newline": "\n",
    "newlines only": "\n\n\n\n",
    "blanks only": "   \n   \n",
    "a mark of order only": b"\xef\xbb\xbf",
    "heading only": "a,b,y\n",
    "heading without newline": "a,b,y",
    "cut inside a quote": 'a,b,y\n1,2,3\n2,"1,4\n3,5,1\n4,2,6\n',
    "cut inside a quoted heading": '"a,b,y\n1,2,3\n',
    "cut inside a character": "é,b,y\n1,2,3\n4,5,é".encode()[:-1],
    "utf-16 without mark": GOOD.encode("utf-16-le"),
    "utf-16 big without mark": GOOD.encode("utf-16-be"),
    "utf-16 with mark": GOOD.encode("utf-16"),
    "utf-32": GOOD.encode("utf-32"),
    "latin-1 in the heading": GOOD.replace("b", "ä").encode("latin-1"),
    "latin-1 in a row": GOOD.replace("4,2", "ö,2").encode("latin-1"),
    "cp1252 quotes": GOOD.replace("4,2", "“,2").encode("cp1252"),
    "cp500": GOOD.encode("cp500"),
    "zeros in the middle": GOOD.encode().replace(b"3,5", b"\0\0,5"),
    "zeros in the heading": GOOD.encode().replace(b"b,", b"\0,"),
    "zeros only": b"\0" * 4096,
    "random bytes": np.random.default_rng(0).bytes(4096),
    "gzip": gzip.compress(GOOD.encode(), mtime=0),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a web page": "<!DOCTYPE html>\n<html><body>\n<p>Not found, sorry</p>\n</body></html>\n",
    "a pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
    "a pickle": b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02K\x03e.",
    "bars between": GOOD.replace(",", "|"),
    "tabs": GOOD.replace(",", "\t"),
    "a number of 400 digits": GOOD.replace("3,5", "9" * 400 + ",5"),
    "a target of 400 digits": GOOD.replace("5,1\n", "5," + "9" * 400 + "\n"),
    "a number of 6000 digits": GOOD.replace("3,5", "9" * 6000 + ",5"),
    "a target of 6000 digits": GOOD.replace("5,1\n", "5," + "9" * 6000 + "\n"),
    "1e400": GOOD.replace("3,5", "1e400,5"),
    "-1e400 as target": GOOD.replace("5,1\n", "5,-1e400\n"),
    "inf": GOOD.replace("3,5", "inf,5"),
    "-Infinity": GOOD.replace("3,5", "-Infinity,5"),
    "nan": GOOD.replace("3,5", "nan,5"),
    "nan as target": GOOD.replace("5,1\n", "5,NaN\n"),
    "a word among numbers": GOOD.replace("3,5", "three,5"),
    "a word among targets": GOOD.replace("5,1\n", "5,one\n"),
    "complex numbers": "a,b,y\n" + "".join(f"{i}+{i}j,{i},{i}\n" for i in range(8)),
    "dates": "a,b,y\n" + "".join(f"2024-01-0{i},{i},{i}\n" for i in range(1, 9)),
    "free text": "a,b,y\n" + "".join(f"a sentence {i},{i},{i}\n" for i in range(8)),
    "one row": "a,b,y\n1,2,3\n",
    "one column": "y\n1\n2\n3\n",
    "all rows equal": "a,b,y\n" + "1,2,3\n" * 8,
    "all features constant": "a,b,y\n" + "".join(f"1,2,{i}\n" for i in range(8)),
    "features of 1e308": "a,b,y\n" + "".join(f"{i}e307,{-i}e307,{i}\n" for i in range(9)),
    "a target of 1e308": "a,b,y\n" + "".join(f"{i},{i},{(-1) ** i}e308\n" for i in range(9)),
    "two columns of one name": GOOD.replace("b,y", "a,y"),
    "two columns without a name": ",,y\n" + ROWS,
    "the target twice": GOOD.replace("b,y", "y,y"),
    "a row too long": GOOD.replace("3,5,1", "3,5,1,9"),
    "a row far too long": GOOD.replace("3,5,1", "3,5,1" + ",9" * 500),
    "a row too short": GOOD.replace("3,5,1", "3,5"),
    "every row too long": "a,b,y\n" + "".join(f"{i},{i * i},{i},7\n" for i in range(8)),
    "an empty value": GOOD.replace("3,5", ",5"),
    "an empty target": GOOD.replace("5,1\n", "5,\n"),
    "an empty column": "a,b,y\n" + "".join(f"{i},,{i}\n" for i in range(8)),
    "a field of 200,000 characters": GOOD.replace("b,y", "b" * 200_000 + ",y"),
    "a value of 200,000 characters": GOOD.replace("3,5", "x" * 200_000 + ",5"),
    "5,000 columns of one name": ",".join(["a"] * 5000) + ",y\n",
    "a newline in a bad column's name": GOOD.replace("b,", '"b\nleakscope: done.",').replace(
        "3,5", "3,?"
    ),
    "an escape sequence in a bad column's name": GOOD.replace("b,", "\x1b[31mb,").replace(
        "3,5", "3,?"
    ),
    "a sign that turns the writing round": GOOD.replace("b,", "\u202eb,").replace(
        "3,5", "3,\u202e"
    ),
    "a bell in a value": GOOD.replace("3,5", "3,\x07"),
    "no such target": (GOOD, ("--target", "z")),
    "no such target, with signs": (GOOD, ("--target", "\x1b[2Jz\n")),
    "target at place 7": (GOOD, ("--target", "7")),
    "target at place -9": (GOOD, ("--target", "-9")),
    "target at a place of 5000 digits": (GOOD, ("--target", "9" * 5000)),
    "an empty target name": (GOOD, ("--target", "")),
    "no target named": (GOOD, ()),
    "the id is the target": (GOOD, ("--target", "y", "--id", "y")),
    "ids stand twice": (GOOD, ("--target", "y", "--id", "b")),
    "an id is empty": (GOOD.replace("3,5", ",5"), ("--target", "y", "--id", "a")),
    "a group is empty": (GOOD.replace("3,5", ",5"), ("--target", "y", "--group", "a")),
    "one group for all": ("a,g,y\n" + ROWS.replace(",", ",1,", 0), ("--target", "y", "--id", "q")),
    "the group is the target": (GOOD, ("--target", "y", "--group", "y")),
    "no such column to ignore": (GOOD, ("--target", "y", "--ignore", "q")),
    "the target is ignored": (GOOD, ("--target", "y", "--ignore", "y")),
    "every feature ignored": (GOOD, ("--target", "y", "--ignore", "a", "--ignore", "b")),
    "no such subgroups": (GOOD, ("--target", "y", "--by", "q")),
    "every record dropped": (
        "a,b,y\n" + "1,,3\n,2,4\n" * 4,
        ("--target", "y", "--read", "missing=drop"),
    ),
    "all but one dropped": (
        "a,b,y\n1,2,3\n" + ",2,4\n" * 4,
        ("--target", "y", "--read", "missing=drop"),
    ),
    "an empty target imputed": (
        GOOD.replace("5,1\n", "5,\n"),
        ("--target", "y", "--read", "missing=impute"),
    ),
    "an empty column imputed": (
        "a,b,y\n" + "".join(f"{i},,{i}\n" for i in range(8)),
        ("--target", "y", "--read", "missing=impute"),
    ),
    "one class": ("a,b,y\n" + "".join(f"{i},{i},no\n" for i in range(8)), CLASSES[2:]),
    "a class for every record": (
        "a,b,y\n" + "".join(f"{i},{i},c{i}\n" for i in range(8)),
        CLASSES[2:],
    ),
    "classes for a regression": (
        "a,b,y\n" + "".join(f"{i},{i % 3},c{i % 2}\n" for i in range(8)),
        (*AUDIT[2:], "--task", "regression"),
    ),
}

# Sentences of what is behind the reader name the column or the rows, not the file.
MENTIONS = {
    "all rows equal": "8 rows",
    "all features constant": "8 rows",
    "features of 1e308": "column 'a'",
    "a target of 1e308": "column 'y'",
    "one class": "'y'",
    "a class for every record": "'y'",
}


def _text_cases() -> Iterator[Case]:
    for name, given in TEXTS.items():
        held, options = given if isinstance(given, tuple) else (given, AUDIT[2:])
        arguments = ("audit", "data.csv", *options)
        yield Case(f"csv: {name}", content("data.csv", held), arguments, MENTIONS.get(name, ""))
    for name in ("empty", "zeros only", "latin-1 in the heading", "random bytes", "one newline"):
        held = TEXTS[name]
        assert not isinstance(held, tuple)
        yield Case(
            f"tsv: {name}", content("data.tsv", held), ("audit", "data.tsv", "--target", "y")
        )
    yield Case("tsv: commas", content("data.tsv", GOOD), ("audit", "data.tsv", "--target", "y"))
    for suffix in (
        ".xlsx",
        ".json",
        ".pkl",
        ".txt",
        "",
        ".csv.gz",
        ".CSV~",
        ".ods",
        ".rds",
        ".mat",
    ):
        yield Case(
            f"a table that ends in {suffix or 'nothing'}",
            content(f"data{suffix}", GOOD),
            ("audit", f"data{suffix}", "--target", "y"),
            f"data{suffix}",
        )


def good_table() -> pa.Table:
    return pa.table({"a": [1.0, 2, 3, 4, 5, 6], "b": [2, 1, 5, 2, 5, 1], "y": [3.0, 4, 1, 6, 5, 2]})


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _columns() -> dict[str, pa.Table]:
    """Whole files whose columns are no features."""
    good = good_table()
    six = range(6)
    return {
        "no rows": good.slice(0, 0),
        "one row": good.slice(0, 1),
        "one column": good.select(["y"]),
        "no columns": good.select([]),
        "lists": good.set_column(0, "a", pa.array([[i, i] for i in six])),
        "structs": good.set_column(0, "a", pa.array([{"k": i} for i in six])),
        "a map": good.set_column(
            0, "a", pa.array([[("k", i)] for i in six], pa.map_(pa.string(), pa.int64()))
        ),
        "bytes": good.set_column(0, "a", pa.array([bytes([i]) for i in six])),
        "nothing": good.set_column(0, "a", pa.nulls(6)),
        "dates": good.set_column(0, "a", pa.array([datetime.date(2024, 1, 1 + i) for i in six])),
        "times": good.set_column(0, "a", pa.array([datetime.datetime(2024, 1, 1, i) for i in six])),
        "times of day": good.set_column(0, "a", pa.array([datetime.time(i) for i in six])),
        "durations": good.set_column(0, "a", pa.array([datetime.timedelta(i) for i in six])),
        "times out of range": good.set_column(0, "a", pa.array([2**62] * 6, pa.timestamp("ms"))),
        "nan": good.set_column(0, "a", pa.array([1.0, float("nan"), 2, 3, 4, 5])),
        "inf": good.set_column(0, "a", pa.array([1.0, float("inf"), 2, 3, 4, 5])),
        "a null": good.set_column(0, "a", pa.array([1, None, 2, 3, 4, 5])),
        "a null target": good.set_column(2, "y", pa.array([1, None, 2, 3, 4, 5])),
        "lists as target": good.set_column(2, "y", pa.array([[i] for i in six])),
    }


def _binary_cases() -> Iterator[Case]:
    whole, line = parquet(good_table()), ("audit", "data.parquet", "--target", "y")
    for share in (0.0, 0.01, 0.3, 0.7, 0.99):
        held = truncated(whole, share)
        yield Case(f"parquet: cut at {share:.0%}", content("data.parquet", held), line)
    for name, held in {
        "a table of text": GOOD.encode(),
        "zeros": bytes(1000),
        "the first half zeros": bytes(len(whole) // 2) + whole[len(whole) // 2 :],
        "the last bytes zeros": whole[:-30] + bytes(30),
        **{name: parquet(table) for name, table in _columns().items()},
    }.items():
        yield Case(f"parquet: {name}", content("data.parquet", held), line)


def cases() -> Iterator[Case]:
    yield from _text_cases()
    yield from _binary_cases()
