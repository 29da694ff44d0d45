"""Malformed arrays, archives and pictures, and things that are no files at all."""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from malformed_case import Case, both, content, truncated
from malformed_tables import GOOD
from PIL import Image

X = np.arange(12.0).reshape(6, 2) % 5
Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])
NPY = ("audit", "data.npy", "--target", "0")
NPZ = ("audit", "data.npz")
FOLDER = ("audit", "pets.d")


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=allow_pickle)
    return sink.getvalue()


def npy_claiming(
    header: str | bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)
) -> bytes:
    """An .npy file with a header of one's own."""
    text = header.encode() if isinstance(header, str) else header
    size = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(size, len(text)) + text + data


def claims(shape: str, descr: str = "'<f8'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", compression) as made:
        for name, held in members.items():
            made.writestr(name, held)
    return sink.getvalue()


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


class Exploit:
    """Leaves a file behind where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("unpickled",)


def bomb(claimed: str = "(200000, 500000)", zeros: int = 1 << 22) -> bytes:
    """A small archive that claims 800 GB, and does hold megabytes of zeros."""
    member = npy_claiming(claims(claimed), bytes(zeros))
    return archive({"X.npy": member, "y.npy": npy(Y)}, zipfile.ZIP_DEFLATED)


def honest_bomb(gigabytes: int = 64) -> bytes:
    """An archive whose member really unpacks to that much: one deflated block, again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    count = gigabytes * 1000
    header = npy_claiming(claims(f"({count << 17}, 1)"))
    head = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    body = head + block * 1000 + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    size = len(header) + (count << 20)
    name = b"X.npy"
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 8, 0, 33, 0, len(body), 0xFFFFFFFF, 5, 20)
    extra = struct.pack("<2H2Q", 1, 16, size, len(body))
    entry = struct.pack(
        *("<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 8, 0, 33, 0, len(body), 0xFFFFFFFF),
        *(5, 12, 0, 0, 0, 0, 0),
    )
    directory = entry + name + struct.pack("<2HQ", 1, 8, size)
    start = len(local) + len(name) + len(extra) + len(body)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), start, 0)
    return local + name + extra + body + directory + end


def _with_flag(whole: bytes, flag: int) -> bytes:
    """The archive with a flag set in every header: 1 is 'encrypted'."""
    made = bytearray(whole)
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = whole.find(signature)
        while place >= 0:
            made[place + offset] |= flag
            place = whole.find(signature, place + 1)
    return bytes(made)


def _with_method(whole: bytes, method: int) -> bytes:
    made = bytearray(whole)
    for signature, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        place = whole.find(signature)
        while place >= 0:
            made[place + offset] = method
            place = whole.find(signature, place + 1)
    return bytes(made)


def _structured() -> Any:
    return np.zeros(6, dtype=[("a", "f8"), ("b", "i4")])


ARRAYS: dict[str, bytes] = {
    "empty": b"",
    "six letters": b"\x93NUMPY",
    "no header": b"\x93NUMPY\x01\x00",
    "half a header": npy(X)[:40],
    "cut": npy(X)[:-9],
    "no data": npy(X)[:128],
    "claims 8 TB": npy_claiming(claims("(1000000, 1000000)"), bytes(96)),
    "claims 1 TB of bytes": npy_claiming(claims("(1000000, 1000000)", "'|u1'"), bytes(96)),
    "claims more than 2^63": npy_claiming(claims("(9223372036854775807, 3)"), bytes(96)),
    "claims 10^400": npy_claiming(claims("(1" + "0" * 400 + ", 2)"), bytes(96)),
    "claims one row more": npy_claiming(claims("(7, 2)"), npy(X)[128:]),
    "claims less than nothing": npy_claiming(claims("(-6, 2)"), npy(X)[128:]),
    "claims -1": npy_claiming(claims("(-1, 2)"), npy(X)[128:]),
    "claims a fraction": npy_claiming(claims("(6.0, 2)"), npy(X)[128:]),
    "claims words": npy_claiming(claims("('six', 2)"), npy(X)[128:]),
    "claims a list": npy_claiming(claims("[6, 2]"), npy(X)[128:]),
    "a shape of 100 axes": npy_claiming(claims("(" + "1," * 100 + ")"), npy(X)[128:]),
    "items of size zero": npy_claiming(claims("(1000000000, 1000000000)", "'|V0'")),
    "items of 2^31 bytes": npy_claiming(claims("(2, 2)", "'|S2147483647'"), bytes(64)),
    "no such type": npy_claiming(claims("(6, 2)", "'<Z9'"), npy(X)[128:]),
    "a type that is a program": npy_claiming(claims("(6, 2)", "__import__('os')"), npy(X)[128:]),
    "a type of nested lists": npy_claiming(claims("(6,)", "[('a', [('b', '<f8')])]"), bytes(48)),
    "order that is no truth": npy_claiming(claims("(6, 2)", order="7"), npy(X)[128:]),
    "a header that is a list": npy_claiming("[1, 2, 3]\n"),
    "a header that is a sum": npy_claiming("1 + " * 3000 + "1\n"),
    "a header of brackets": npy_claiming("(" * 9000 + "\n"),
    "a header of a megabyte": npy_claiming(b" " * (1 << 20) + b"\n", version=(2, 0)),
    "a header that is not closed": npy_claiming("{'descr': '<f8', 'fortran_order': False"),
    "a header with zeros": npy_claiming(b"{'descr': '<f8'\0, 'shape': (6, 2)}"),
    "a header with too little": npy_claiming("{'shape': (6, 2)}\n"),
    "a header of binary": npy_claiming(b"\xff\xfe\xfd" * 20, version=(3, 0)),
    "version 9": npy_claiming(claims("(6, 2)"), npy(X)[128:], version=(9, 0)),
    "pickled objects": npy(np.array([[1, "a"], [None, {}]], dtype=object), allow_pickle=True),
    "a pickle that acts": npy(np.array([[Exploit(), 1]], dtype=object), allow_pickle=True),
    "a bare pickle that acts": pickle.dumps(Exploit()),
    "complex": npy(X + 1j),
    "structured": npy(_structured()),
    "dates": npy(X.astype("datetime64[D]")),
    "durations": npy(X.astype("timedelta64[D]")),
    "text": npy(np.array([[f"word {i}", "b"] for i in range(6)])),
    "bytes": npy(np.array([[b"a%d" % i, b"b"] for i in range(6)])),
    "raw": npy(np.zeros((6, 2), dtype="V4")),
    "a single number": npy(np.float64(3)),
    "one axis": npy(Y),
    "three axes": npy(np.zeros((6, 2, 2))),
    "no rows": npy(np.zeros((0, 2))),
    "no columns": npy(np.zeros((6, 0))),
    "one column": npy(X[:, :1]),
    "one row": npy(X[:1]),
    "nan": npy(np.where(X == 4.0, np.nan, X)),
    "inf": npy(np.where(X == 4.0, np.inf, X)),
    "all equal": npy(np.ones((6, 3))),
    "an archive": npz(X=X, y=Y),
    "a table of text": GOOD.encode(),
}

_BROKEN = bytearray(npz(X=X, y=Y))
_BROKEN[120] ^= 0xFF

ARCHIVES: dict[str, bytes] = {
    "empty": b"",
    "no archive": b"PK\3\4 and no more",
    "an archive of nothing": archive({}),
    "cut at half": truncated(npz(X=X, y=Y), 0.5),
    "cut at its end": npz(X=X, y=Y)[:-10],
    "cut at its start": npz(X=X, y=Y)[100:],
    "a wrong checksum": bytes(_BROKEN),
    "a single array": npy(X),
    "a bomb that claims 800 GB": bomb(),
    "a bomb that claims 10^30": bomb("(1000000000000000, 1000000000000000)"),
    "a bomb that holds 64 GB": honest_bomb(),
    "a member that is no array": archive({"X.npy": npy(X), "notes.txt": b"hello"}),
    "an empty member": archive({"X.npy": b"", "y.npy": npy(Y)}),
    "a member that is cut": archive({"X.npy": npy(X)[:-9], "y.npy": npy(Y)}),
    "a member that claims more": archive(
        {"X.npy": npy_claiming(claims("(7, 2)"), npy(X)[128:]), "y.npy": npy(Y)}
    ),
    "a member with a broken header": archive({"X.npy": npy_claiming("((((\n"), "y.npy": npy(Y)}),
    "an archive in an archive": archive({"X.npy": npz(X=X), "y.npy": npy(Y)}),
    "an absolute name": archive({"/etc/X.npy": npy(X), "y.npy": npy(Y)}),
    "a name that climbs": archive({"../../X.npy": npy(X), "y.npy": npy(Y)}),
    "a name with signs": archive({"\x1b[31m\u202eX.npy": npy(X), "b.npy": npy(Y)}),
    "encrypted": _with_flag(npz(X=X, y=Y), 1),
    "patched data": _with_flag(npz(X=X, y=Y), 32),
    "packed in no known way": _with_method(npz(X=X, y=Y), 97),
    "packed as it is not": _with_method(npz(X=X, y=Y), 8),
    "packed by bzip2, it says": _with_method(npz(X=X, y=Y), 12),
    "packed by lzma, it says": _with_method(npz(X=X, y=Y), 14),
    "a pickle that acts": archive(
        {
            "X.npy": npy(np.array([[Exploit(), 1]], dtype=object), allow_pickle=True),
            "y.npy": npy(Y),
        }
    ),
    "a pickled target": archive(
        {"X.npy": npy(X), "y.npy": npy(np.array([None] * 6), allow_pickle=True)}
    ),
    "names unknown": npz(first=X, second=Y),
    "no target": npz(X=X),
    "a target too short": npz(X=X, y=Y[:4]),
    "a target of two axes": npz(X=X, y=Y[:, None]),
    "ids too few": npz(X=X, y=Y, ids=[1, 2]),
    "ids twice": npz(X=X, y=Y, ids=[1, 2, 3, 3, 4, 5]),
    "one axis": npz(X=Y, y=Y),
    "a single number": npz(X=3.0, y=Y),
    "no rows": npz(X=X[:0], y=Y[:0]),
    "no columns": npz(X=X[:, :0], y=Y),
    "complex": npz(X=X + 1j, y=Y),
    "a complex target": npz(X=X, y=Y + 1j),
    "structured": npz(X=_structured(), y=Y),
    "text": npz(X=np.array([[f"a{i}", f"b{i}"] for i in range(6)]), y=Y),
    "a target of dates": npz(X=X, y=Y.astype("datetime64[D]")),
    "nan in the target": npz(X=X, y=np.where(Y == 2, np.nan, Y)),
}


def picture(pixels: Any, kind: str = "PNG") -> bytes:
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, kind)
    return sink.getvalue()


def grey(seed: int, side: int = 8) -> bytes:
    return picture(np.random.default_rng(seed).integers(0, 255, (side, side), dtype=np.uint8))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_of(width: int, height: int, data: bytes = b"", before: bytes = b"") -> bytes:
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    body = _chunk(b"IHDR", header) + before + _chunk(b"IDAT", zlib.compress(data))
    return b"\x89PNG\r\n\x1a\n" + body + _chunk(b"IEND", b"")


def _flipped(whole: bytes, place: int) -> bytes:
    made = bytearray(whole)
    made[place] ^= 0x55
    return bytes(made)


PICTURES: dict[str, bytes] = {
    "empty": b"",
    "the signature only": b"\x89PNG\r\n\x1a\n",
    "cut": grey(3)[:60],
    "cut in its pixels": grey(3)[:-30],
    "a text": b"no picture at all",
    "a gif": picture(np.zeros((8, 8), dtype=np.uint8), "GIF"),
    "a wrong checksum": _flipped(grey(3), 30),
    "wrong pixels": _flipped(grey(3), 50),
    "no pixels": png_of(0, 0),
    "10^10 pixels": png_of(100_000, 100_000),
    "10^8 pixels": png_of(10_000, 10_000),
    "2^62 pixels": png_of(2**31 - 1, 2**31 - 1),
    "another size": grey(3, 9),
    "16 bits": picture(np.zeros((8, 8), dtype=np.uint16)),
    "a text that unpacks to 100 MB": png_of(
        8, 8, bytes(72), _chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(100 << 20), 9))
    ),
    "half a jpeg": picture(np.zeros((8, 8), dtype=np.uint8), "JPEG")[:200],
}


def _pets(*extra: Any) -> Any:
    return both(
        *(content(f"pets.d/{kind}/{i}.png", grey(i)) for kind in ("cat", "dog") for i in range(2)),
        *extra,
    )


def _no_folder(folder: Path) -> None:
    (folder / "pets.d").mkdir()


def _pipe(name: str) -> Any:
    def write(folder: Path) -> None:
        os.mkfifo(folder / name)

    return write


def _socket(name: str) -> Any:
    def write(folder: Path) -> None:
        here = os.getcwd()
        os.chdir(folder)  # a socket's path may have 108 bytes only
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(name)
        finally:
            os.chdir(here)

    return write


def _link(name: str, to: str) -> Any:
    def write(folder: Path) -> None:
        (folder / name).symlink_to(to)

    return write


def _sealed(name: str) -> Any:
    def write(folder: Path) -> None:
        (folder / name).write_text(GOOD)
        (folder / name).chmod(0)

    return write


def _nothing(folder: Path) -> None:
    pass


def _no_files() -> Iterator[Case]:
    for suffix in ("csv", "parquet", "npy", "npz"):
        name = f"data.{suffix}"
        arguments = ("audit", name, "--target", "y")
        yield Case(f"a pipe called {name}", _pipe(name), arguments)
        yield Case(f"{name} leads to /dev/zero", _link(name, "/dev/zero"), arguments)
        yield Case(f"{name} leads to itself", _link(name, name), arguments)
    data = ("audit", "data.csv", "--target", "y")
    yield Case("a socket", _socket("data.csv"), data)
    yield Case("a link to nothing", _link("data.csv", "gone.csv"), data)
    yield Case("a link to /dev/null", _link("data.csv", "/dev/null"), data)
    yield Case("a link to /proc/self/mem", _link("data.csv", "/proc/self/mem"), data)
    yield Case("no file", _nothing, data)
    yield Case("a name of 5,000 letters", _nothing, ("audit", "a" * 5000 + ".csv"), "aaa")
    yield Case("a file as a folder", content("data", GOOD), ("audit", "data/a.csv"), "a.csv")
    yield Case("the folder itself", _nothing, ("audit", "."), "folder")
    if os.geteuid() != 0:
        yield Case("may not be read", _sealed("data.csv"), data)


def _pictures() -> Iterator[Case]:
    yield Case("pictures: none", _no_folder, FOLDER)
    yield Case("pictures: no classes", content("pets.d/1.png", grey(1)), FOLDER)
    yield Case("pictures: a table", content("pets.d/cat/1.csv", GOOD), FOLDER)
    one = content("pets.d/cat/1.png", grey(1))
    yield Case("pictures: one picture", one, FOLDER, "one record")
    yield Case(
        "pictures: one class", both(one, content("pets.d/cat/2.png", grey(2))), FOLDER, "class"
    )
    yield Case("pictures: a target", _pets(), (*FOLDER, "--target", "y"))
    for name, held in PICTURES.items():
        yield Case(
            f"pictures: {name}", _pets(content("pets.d/dog/9.png", held)), FOLDER, "dog/9.png"
        )
    yield Case(
        "pictures: a pipe", both(one, _no_class, _pipe("pets.d/dog/1.png")), FOLDER, "one record"
    )


def _no_class(folder: Path) -> None:
    (folder / "pets.d" / "dog").mkdir()


def cases() -> Iterator[Case]:
    for name, held in ARRAYS.items():
        mentions = "6 rows" if name == "all equal" else ""
        yield Case(f"npy: {name}", content("data.npy", held), NPY, mentions)
    for name, held in ARCHIVES.items():
        yield Case(f"npz: {name}", content("data.npz", held), NPZ)
    yield from _pictures()
    yield from _no_files()
