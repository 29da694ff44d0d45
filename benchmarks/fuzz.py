"""Fuzzing of every file reader and of the command line, for an hour and from a seed.

    python benchmarks/fuzz.py --minutes 60 --seed 1

Files: valid ones of every kind that leakscope reads (tables, arrays, pictures, networks, results,
run directories, scores) are mutated, as bytes and, where they are JSON or have checksums, in their
structure; law texts likewise.  Command lines are built from the command tree itself, with values
that are empty, huge, negative, NaN, odd text, or paths that lead nowhere.  The data are tiny, so
that an execution takes milliseconds.  With atheris installed (``pip install atheris``) coverage of
leakscope's io and cli guides the mutations; without it they are random.

A finding is: an exception that leaves the command line, a Python warning, an exit status other
than 0, 2 and 3, a refusal that is not one sentence, more than 30 seconds of processor time (or ten
times that of waiting) or 2 GB, or the death of the process.  Each is saved with its input under
``--folder`` and made again by ``--replay FILE``.  The exit status is 1 where there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer.main

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hostile"))

SECONDS, BYTES = 30, 2 * 10**9
ODD_TEXTS = (
    *("", " ", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "9" * 400, "0x10", "1_000"),
    *("\x1b[31m", "\u202ea", "é", "\U0001f600", "a" * 3000, "a,b", ",", ";", "=", "-", "--", "y"),
    *("gone.csv", "/", "..", "data.csv", "/dev/null/x", "{{7*7}}", "%s%n", "$(id)", "'", '"', "²"),
)
ODD_NUMBERS = (
    *("0", "-0.0", "1", "-1", "0.5", "2", "1e-300", "1e300", "-1e300", "1e-9", "0.999999", "1e9"),
    *("nan", "inf", "-inf", "1e400", "", "x", "1,5", "0.1", "3"),
)
ODD_COUNTS = ("-1", "0", "1", "2", "3", "5", "-9223372036854775809", "", "x", "1.5", "nan")
HUGE_COUNTS = (*ODD_COUNTS, "1000000000", "9223372036854775808", "1" + "0" * 30)
WORDS: dict[str, tuple[str, ...]] = {
    "--kernel": ("rbf", "matern", "linear", "nngp"),
    "--activation": ("relu", "gelu", "erf", "tanh", "sin", "identity"),
    "--route": ("auto", "dense", "features", "fitc", "device"),
    "--scaling": ("standard", "none"),
    "--task": ("regression", "classification"),
    "--missing": ("error", "drop", "impute"),
    "--noise-variance": ("0.1", "1e-12", "marginal_likelihood", "leave_one_out"),
    "--fail-above": ("advantage=0.1", "kl=1", "auc=0.9", "advantage=2", "kl=nan"),
    "--form": ("pieces", "printed", "moments"),
    "--knowledge": ("margin", "leaked", "bounded"),
    "--mechanism": ("objective", "output"),
    "--divergence": ("joint", "component_wise", "printed"),
    "--method": ("exact", "asymptotic", "simulated", "adam", "l-bfgs"),
    "--attacker": ("label_known", "label_hidden"),
    "--curve": ("p", "ridge", "noise", "answers"),
    "--climb": ("lood", "correlation", "auto"),
    "--begin": ("box", "records"),
    "--box": ("0,1", "-1,1", "1,0", "0,0"),
    "--record": ("0", "1", "5", "7"),
    "--target": ("y", "0", "-1", "a"),
    "--id": ("a", "0"),
    "--group": ("b", "a"),
    "--by": ("b", "y"),
    "--ignore": ("a", "b"),
    "--member": ("normal:0,1", "mixture:0.5*0,1+0.5*1,2", "spike:1,1,0.5", "mvn:0,0/1,0;0,1"),
    "--nonmember": ("normal:0,2", "normal:1e300,1", "spike:1,1,0.5", "mvn:0,0/1,0;0,1"),
    "--fpr": ("0.1", "0.1,0.01", "1e-300", "0", "1"),
    "--delta": ("1e-5", "1e-300", "0", "1"),
    "--settings": ("1,2,3", "0", "1e9", "0.1,0.2"),
    "--network": ("0", "-1", "x", ""),
    "--example": ("none", ""),
    "--queries": ("q.csv", "1", "2"),
}
# They reach for other machines, start processes, or compute for as long as they are told to.
LEFT_OUT = {"--scheduler", "--workers", "--train", "--help", "--version", "--epochs", "--models"}
NO_COMMANDS = {"serve", "reproduce", "advise"}
# Counts that cost memory, which is estimated first, or nothing; the others cost time by design.
MAY_BE_HUGE = {"--seed", "--top", "--inducing", "--n", "--p", "--dim", "--answers", "--points"}
BASES: dict[str, list[str]] = {
    "audit": ["audit", "data.csv", "--target", "y"],
    "measure": ["measure", "--member", "normal:0,1.4", "--nonmember", "normal:0,0.7"],
    "verify": ["verify", "run", "--draws", "100", "--records", "2"],
    "report": ["report", "run"],
    "compare": ["compare", "run", "run2"],
    "attack query": [
        *("attack", "query", "data.csv", "--target", "y", "--record", "1"),
        *("--steps", "3", "--starts", "2"),
    ],
    "attack reconstruct": ["attack", "reconstruct", "net.json", "--margin", "0.5"],
    "attack membership": ["attack", "membership", "net.json", "--queries", "q.csv"],
    "plan linear": ["plan", "linear", "--n", "10", "--p", "20", "--dim", "40"],
    "plan lasso": [
        *("plan", "lasso", "--alpha", "0.5", "--rho", "0.1", "--sigma-xi", "0.1"),
        *("--lam", "1", "--sigma-eta", "0.2"),
    ],
}


class Choices:
    """Decisions taken from bytes, so that mutated bytes are mutated decisions."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def below(self, count: int) -> int:
        taken = self._data[self._place : self._place + 2].ljust(2, b"\0")
        self._place += 2
        return int.from_bytes(taken, "little") % max(count, 1)

    def pick(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def rest(self) -> bytes:
        return self._data[self._place :]


class TooLong(BaseException):
    """Raised by the alarm; no handler of Exception catches it."""


Write = Callable[[Path, bytes], list[str]]


def _file(name: str, *command: str) -> Write:
    def write(folder: Path, data: bytes) -> list[str]:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return list(command)

    return write


def _member(folder: Path, data: bytes) -> list[str]:
    """The bytes as one member of an archive, with a checksum that is right."""
    from malformed_archives import Y, archive, npy

    (folder / "data.npz").write_bytes(archive({"X.npy": data, "y.npy": npy(Y)}))
    return ["audit", "data.npz"]


def _chunks(folder: Path, data: bytes) -> list[str]:
    """The bytes as the size and the pixels of a PNG, with checksums that are right."""
    from malformed_archives import grey, png_of

    for kind in ("cat", "dog"):
        (folder / "pets" / kind).mkdir(parents=True)
        (folder / "pets" / kind / "1.png").write_bytes(grey(1))
    choices = Choices(data)
    width, height = choices.pick((8, 8, 8, 7, 0, 2**31 - 1)), choices.pick((8, 8, 8, 1, 10**6))
    (folder / "pets" / "dog" / "2.png").write_bytes(png_of(width, height, choices.rest()))
    return ["audit", "pets"]


def _picture(folder: Path, data: bytes) -> list[str]:
    from malformed_archives import grey

    for kind in ("cat", "dog"):
        (folder / "pets" / kind).mkdir(parents=True)
        (folder / "pets" / kind / "1.png").write_bytes(grey(1))
    (folder / "pets" / "dog" / "2.png").write_bytes(data)
    return ["audit", "pets"]


def _law(folder: Path, data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace").replace("\0", "0")
    return ["measure", "--member", text, "--nonmember", "normal:0,1"]


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e308, -1e308, 1e-320, 10**30, "", "x", "nan", [], {}, [[]], [1, 2]),
    *({"a": 1}, "0" * 64, "data.csv", "/dev/zero", ["y"], [None], "\x1b[31m", 2, "linear", "nngp"),
)


def _odd_document(kind: str) -> Write:
    """A result of one kind, with a few of its values replaced, removed or doubled."""

    def write(folder: Path, data: bytes) -> list[str]:
        choices = Choices(data)
        document = json.loads(SEEDS["results"][kind])
        if "dataset" in document and document["dataset"].get("source"):
            document["dataset"]["source"]["file"] = str(folder / "data.csv")
        for _ in range(1 + choices.below(3)):
            place: Any = document
            while True:
                keys = list(place) if isinstance(place, dict) else list(range(len(place)))
                if not keys:
                    break
                key = choices.pick(keys)
                if isinstance(place[key], (dict, list)) and place[key] and choices.below(4):
                    place = place[key]
                    continue
                action = choices.below(8)
                if action == 0:
                    del place[key]
                elif action == 1 and isinstance(place, list):
                    place.append(place[key])
                else:
                    place[key] = choices.pick(ODD_VALUES)
                break
        (folder / "run" / "result.json").write_text(json.dumps(document))
        verb = choices.pick(("verify", "verify", "report", "compare"))
        if verb == "report":
            return ["report", "run"]
        if verb == "compare" and "compare" in commands():
            return ["compare", "run", "run2"]
        return ["verify", "run", "--draws", "100", "--records", "2"]

    return write


def commands() -> dict[str, Any]:
    """The command tree, flat: ``attack query`` and its parameters."""
    global _COMMANDS
    if not _COMMANDS:
        from leakscope.cli import app

        root: Any = typer.main.get_command(app)
        for name, command in root.commands.items():
            for sub, inner in getattr(command, "commands", {"": command}).items():
                if name not in NO_COMMANDS:
                    _COMMANDS[f"{name} {sub}".strip()] = inner
    return _COMMANDS


_COMMANDS: dict[str, Any] = {}


def _line(folder: Path, data: bytes) -> list[str]:
    """A command line from the tree, mostly near one that works."""
    choices = Choices(data)
    known = {name: command for name, command in commands().items() if name in BASES}
    name = choices.pick(sorted(known))
    line = list(BASES[name])
    if not choices.below(12):
        del line[choices.below(len(line))]
    for _ in range(choices.below(4)):
        options = [
            option
            for option in known[name].params
            if option.param_type_name == "option" and not LEFT_OUT & set(option.opts)
        ]
        option = choices.pick(options)
        flag = option.opts[0]
        if option.is_flag:
            line.append(choices.pick([*option.opts, *option.secondary_opts]))
            continue
        line += [flag, _value(choices, flag, option)]
    if not choices.below(15):
        line.append(choices.pick(ODD_TEXTS))
    return line


def _value(choices: Choices, flag: str, option: Any) -> str:
    if flag in WORDS and choices.below(3):
        return str(choices.pick(WORDS[flag]))
    return str(choices.pick(_values(flag, option)))


def _values(flag: str, option: Any) -> tuple[str, ...]:
    """The odd values that an option may be given, by what it takes."""
    if flag == "--json":
        return ("-", "out.json", "gone/out.json", "run", "", "/dev/full")
    if flag in ("--run-dir", "--output"):
        return ("new", "run", "data.csv", "new.html", "gone/x.html", "", ".")
    kind = option.metavar or ""
    if flag in MAY_BE_HUGE:
        return HUGE_COUNTS
    if kind == "COUNT":
        return ODD_COUNTS
    if kind in ("NUMBER", "FRACTION"):
        return ODD_NUMBERS
    return (*WORDS.get(flag, ()), *ODD_TEXTS)


SEEDS: dict[str, Any] = {}


def prepare_seeds() -> dict[str, tuple[Write, list[bytes]]]:
    """Every target by name: how its bytes are used, and valid bytes to begin with."""
    import malformed_archives as archives
    import malformed_documents as documents
    import malformed_tables as tables
    import numpy as np

    table = tables.good_table()
    audit = ("--target", "y")
    network = documents._json_network().encode()
    npz = archives.npz(w=documents.W, b=documents.B, v=documents.V)
    packed = _safetensors()
    run = documents.run_files()
    SEEDS["run"] = run
    SEEDS["results"] = _results()
    csv_seeds = [text.encode() for text in (tables.GOOD, "id,c,y\na,x,1\nb,z,2\nc,x,3\n")]
    csv_seeds.append(b'"a ""q""",b,y\n1,2,3\n"4\n",5,6\n')
    targets: dict[str, tuple[Write, list[bytes]]] = {
        "csv": (_file("data.csv", "audit", "data.csv", *audit), csv_seeds),
        "csv classes": (
            _file(
                *("data.csv", "audit", "data.csv", *audit, "--task", "classification"),
                *("--missing", "impute"),
            ),
            csv_seeds,
        ),
        "tsv": (
            _file("data.tsv", "audit", "data.tsv", *audit, "--missing", "drop"),
            [tables.GOOD.replace(",", "\t").encode()],
        ),
        "parquet": (
            _file("data.parquet", "audit", "data.parquet", *audit),
            [tables.parquet(table)],
        ),
        "arrow": (
            _file("data.arrow", "audit", "data.arrow", *audit),
            [tables.arrow_file(table), tables.arrow_stream(table), tables.feather(table)],
        ),
        "npy": (
            _file("data.npy", "audit", "data.npy", "--target", "0"),
            [archives.npy(archives.X), archives.npy(archives.X.astype("f2"))],
        ),
        "npz": (
            _file("data.npz", "audit", "data.npz"),
            [archives.npz(X=archives.X, y=archives.Y)],
        ),
        "npz member": (_member, [archives.npy(archives.X), archives.npy(archives.X.astype("U3"))]),
        "picture": (
            _picture,
            [archives.grey(3), archives.picture(np.zeros((8, 8), dtype=np.uint8), "JPEG")],
        ),
        "picture chunks": (_chunks, [bytes(4) + bytes(72)]),
        "scores csv": (
            _file(
                *("s.csv", "measure", "--member-scores", "s.csv"),
                *("--nonmember-scores", "q.csv"),
            ),
            [b"score\n0.1\n0.2\n0.3\n0.25\n", b"1\n2\n3\n4\n5\n"],
        ),
        "scores npy": (
            _file(
                *("s.npy", "measure", "--member-scores", "s.npy"),
                *("--nonmember-scores", "q.csv"),
            ),
            [archives.npy(archives.Y)],
        ),
        "network json": (_file("net.json", "attack", "reconstruct", "net.json"), [network]),
        "network npz": (_file("net.npz", "attack", "reconstruct", "net.npz"), [npz]),
        "network safetensors": (
            _file("w.safetensors", "attack", "membership", "w.safetensors", "--queries", "q.csv"),
            [packed],
        ),
        "network onnx": (
            _file("net.onnx", "attack", "membership", "net.onnx", "--queries", "q.csv"),
            [documents.onnx_model()],
        ),
        "queries": (
            _file("q.csv", "attack", "membership", "net.json", "--queries", "q.csv"),
            [b"x\n1\n2\n-1\n"],
        ),
        "training set": (
            _file("set.csv", "attack", "reconstruct", "net.json", "--data", "set.csv"),
            [b"x,y\n1,1\n-1,-1\n"],
        ),
        "law text": (
            _law,
            [
                law.encode()
                for law in (*WORDS["--member"], *WORDS["--nonmember"], "mixture:0.2*-1,2+0.8*3,1")
            ],
        ),
        "command line": (_line, [bytes([i, 0] * 12) for i in range(12)]),
    }
    for name in ("result.json", "settings.json", "arrays.npz"):
        targets[f"run {name}"] = (_file(f"run/{name}", "report", "run"), [run[name]])
    gallery = documents._gallery("a.png").encode()
    targets["run gallery.json"] = (_file("run/gallery.json", "report", "run"), [gallery])
    for kind in SEEDS["results"]:
        targets[f"odd {kind}"] = (_odd_document(kind), [bytes(8), bytes(range(40))])
    return targets


def _safetensors() -> bytes:
    import malformed_documents as documents
    import numpy as np
    from safetensors.numpy import save

    return save(
        {"w": np.array(documents.W), "b": np.array(documents.B), "v": np.array(documents.V)}
    )


def _results() -> dict[str, str]:
    """One result of every kind that a small command gives."""
    from leakscope.cli import main

    found = {}
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        furnish(Path(place))
        for name, line in BASES.items():
            if name in ("verify", "report", "compare"):
                continue
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert main([*line, "--json", "-"]) == 0, name
            found[name] = out.getvalue()
    return found


def furnish(folder: Path) -> None:
    """What the commands expect beside the file in question."""
    from malformed_documents import _json_network
    from malformed_tables import GOOD

    (folder / "data.csv").write_text(GOOD)
    (folder / "net.json").write_text(_json_network())
    (folder / "q.csv").write_text("x\n1\n2\n-1\n0.5\n")
    for name in ("run", "run2"):
        (folder / name).mkdir()
        for file, held in SEEDS["run"].items():
            (folder / name / file).write_bytes(held)


class Fuzzer:
    """Executes inputs, counts, and saves what it finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.targets = prepare_seeds()
        self.names = sorted(self.targets)
        self.executions: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.findings: Counter[str] = Counter()
        self.started = self.told = time.monotonic()
        self.place = Path(tempfile.mkdtemp(prefix="leakscope-fuzz-"))
        # The tree is built anew by every call, which takes longer than most executions.
        typer.main.get_command = functools.cache(typer.main.get_command)
        signal.signal(signal.SIGALRM, _too_long)
        signal.signal(signal.SIGPROF, _too_long)
        warnings.simplefilter("error")

    def one(self, data: bytes) -> None:
        """One execution: the first byte says which target, the others are its input."""
        if not data:
            return
        name = self.names[data[0] % len(self.names)]
        (self.folder / "current.bin").write_bytes(data)
        found = self.execute(name, data[1:])
        self.executions[name] += 1
        if found is not None:
            self.save(name, data, *found)
        if time.monotonic() - self.told > 60.0:
            self.told = time.monotonic()
            self.tell()

    def execute(
        self, name: str, data: bytes, line: list[str] | None = None
    ) -> tuple[str, str] | None:
        """Run a target's command on the bytes, or a line as it stands; what is wrong, if it is."""
        from leakscope.cli import main

        folder = self.place / "x"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        furnish(folder)
        line = line or self.targets[name][0](folder, data)
        out, error = io.StringIO(), io.StringIO()
        _watch(True)
        try:
            with (
                contextlib.chdir(folder),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(error),
            ):
                status = main(line)
        except TooLong:
            return f"over {SECONDS} s: {' '.join(line)[:80]}", repr(line)
        except BaseException as problem:
            return _where(problem), f"{line!r}\n{''.join(traceback.format_exception(problem))}"
        finally:
            _watch(False)
        self.statuses[status] += 1
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > BYTES:
            return f"over {BYTES} bytes: {name}", repr(line)
        wrong = refusal_problem(status, error.getvalue())
        return None if wrong is None else (wrong, f"{line!r}\n{error.getvalue()}")

    def save(self, name: str, data: bytes, key: str, details: str) -> None:
        self.findings[key] += 1
        if self.findings[key] > 3:
            return
        place = self.folder / "findings"
        place.mkdir(exist_ok=True)
        safe = "".join(c if c.isalnum() else "_" for c in key)[:80]
        stem = f"{safe}-{self.findings[key]}"
        (place / f"{stem}.bin").write_bytes(data)
        (place / f"{stem}.txt").write_text(f"{name}: {key}\n{details}", errors="replace")
        print(f"FOUND {name}: {key}", flush=True)

    def tell(self) -> None:
        record = {
            "executions": dict(self.executions),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "findings": dict(self.findings),
            "seconds": time.monotonic() - self.started,
        }
        (self.folder / f"stats-{os.getpid()}.json").write_text(json.dumps(record))
        print(
            f"{record['seconds'] / 60.0:.1f} min, {sum(self.executions.values())} executions, "
            f"{len(self.findings)} findings",
            flush=True,
        )

    def every_option(self) -> None:
        """Every option of every command with every odd value, one at a time."""
        for name, command in sorted(commands().items()):
            if name not in BASES:
                continue
            for option in command.params:
                flag = option.opts[0]
                if option.param_type_name != "option" or LEFT_OUT & set(option.opts):
                    continue
                for value in _values(flag, option) if not option.is_flag else (None,):
                    line = [*BASES[name], flag, *([] if value is None else [value])]
                    found = self.execute(name, b"", line)
                    self.executions["every option"] += 1
                    if found is not None:
                        self.save("every option", json.dumps(line).encode(), *found)

    def inputs(self, seed: int) -> Iterator[bytes]:
        """Random mutations of valid inputs, and of mutations that did something new."""
        generator = random.Random(seed)
        while True:
            number = generator.randrange(len(self.names))
            # A command line has far more to it than a file.
            if generator.random() < 0.25:
                number = self.names.index("command line")
            name = self.names[number]
            # A report takes a second.
            if name.startswith("run") and generator.random() < 0.7:
                continue
            seeds = self.targets[name][1]
            yield bytes([number]) + mutated(generator.choice(seeds), generator)


def _watch(on: bool) -> None:
    """A limit of the processor's time, and a tenfold one of the clock's for what only waits."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS if on else 0.0)
    signal.alarm(10 * SECONDS if on else 0)


def _too_long(*_: object) -> None:
    raise TooLong


def _where(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "leakscope" in frame.filename and "fuzz" not in frame.name]
    last = (ours or list(frames))[-1]
    return f"{type(problem).__name__} at {Path(last.filename).name}:{last.lineno}"


def refusal_problem(status: int, error: str) -> str | None:
    """What is wrong with an exit status and what was said on stderr; None where nothing is."""
    if status not in (0, 2, 3):
        return f"exit status {status}"
    shown = error.replace("\n", "")
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in shown):
        return "orders to the terminal on stderr"
    if "Traceback" in error:
        return "a traceback on stderr"
    if status == 2 and not error.startswith("Usage: "):
        lines = error.rstrip("\n").split("\n")
        last = lines[-1]
        if not last.startswith("leakscope: ") or not last.endswith((".", "?")):
            return f"no sentence: {last[:60]!r}"
        if any(not line.startswith("warning: ") for line in lines[:-1]):
            return f"more than a sentence: {lines[0][:60]!r}"
    return None


def mutated(data: bytes, generator: random.Random) -> bytes:
    """A few of: bits flipped, bytes set, cut, doubled, moved, numbers and odd texts put in."""
    made = bytearray(data)
    for _ in range(1 + int(generator.expovariate(0.4))):
        kind, size = generator.randrange(9), len(made)
        place = generator.randrange(size + 1)
        if kind == 0 and size:
            made[place % size] ^= 1 << generator.randrange(8)
        elif kind == 1 and size:
            made[place % size] = generator.choice((0, 1, 127, 128, 255, generator.randrange(256)))
        elif kind == 2:
            del made[place : place + 1 + int(generator.expovariate(0.1))]
        elif kind == 3:
            made[place:place] = generator.randbytes(1 + int(generator.expovariate(0.3)))
        elif kind == 4 and size:
            other = generator.randrange(size)
            made[place:place] = made[other : other + 1 + int(generator.expovariate(0.1))]
        elif kind == 5:
            text = generator.choice((*ODD_TEXTS, *ODD_NUMBERS)).encode()
            made[place : place + generator.choice((0, len(text)))] = text
        elif kind == 6 and size >= 8:
            value = generator.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1))
            at = place % (size - 7)
            made[at : at + 8] = value.to_bytes(8, "little")
        elif kind == 7:
            del made[place:]
        elif kind == 8:
            made[place:place] = generator.choice((b",", b"\n", b'"', b"{", b"[", b"]", b"\0", b":"))
    return bytes(made)


def work(folder: Path, minutes: float, seed: int, guided: bool, first: bool) -> None:
    """Until the time is over, in this process; the first goes through every option before."""
    seconds = max(int(60 * minutes), 1)
    if guided:
        import atheris

        with atheris.instrument_imports(include=["leakscope.io", "leakscope.cli"]):
            import leakscope.cli
            import leakscope.io  # noqa: F401
        fuzzer = Fuzzer(folder)
        if first:
            fuzzer.every_option()
        corpus = folder / "corpus"
        corpus.mkdir(exist_ok=True)
        for number, name in enumerate(fuzzer.names):
            for place, held in enumerate(fuzzer.targets[name][1]):
                (corpus / f"seed-{number}-{place}").write_bytes(bytes([number]) + held)
        options = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=0", "-rss_limit_mb=0"]
        options += ["-max_len=20000", "-print_final_stats=0", "-verbosity=0", "-len_control=0"]
        generator = random.Random(seed)
        end = time.monotonic() + seconds

        def mutate(data: bytes, most: int, _: int) -> bytes:
            """Half by libFuzzer, half by our own, which know numbers and texts."""
            if generator.random() < 0.5:
                return bytes(atheris.Mutate(data, most))
            number = data[:1] if data and generator.random() < 0.8 else generator.randbytes(1)
            return (number + mutated(data[1:], generator))[:most]

        def one(data: bytes) -> None:
            fuzzer.one(data)
            if time.monotonic() > end:
                fuzzer.tell()
                os._exit(0)

        atheris.Setup(["fuzz", *options, str(corpus)], one, custom_mutator=mutate)
        atheris.Fuzz()
    else:
        fuzzer = Fuzzer(folder)
        end = time.monotonic() + seconds
        if first:
            fuzzer.every_option()
        for data in fuzzer.inputs(seed):
            fuzzer.one(data)
            if time.monotonic() > end:
                break
    fuzzer.tell()


def watch(given: argparse.Namespace) -> int:
    """Start workers one after the other; the death of one is a finding, and the next goes on."""
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60.0 * given.minutes
    deaths, seed = 0, given.seed
    while (left := (end - time.monotonic()) / 60.0) > 0.02:
        line = [sys.executable, __file__, "--worker", "--minutes", str(left), "--seed", str(seed)]
        line += ["--folder", str(folder), *(["--random"] if given.random else [])]
        line += ["--first"] if seed == given.seed else []
        done = subprocess.run(line, check=False)
        if done.returncode != 0:
            deaths += 1
            place = folder / "findings"
            place.mkdir(exist_ok=True)
            if (folder / "current.bin").exists():
                shutil.copy(folder / "current.bin", place / f"death-{deaths}.bin")
            print(f"FOUND a worker died with status {done.returncode}", flush=True)
        seed += 1
    return summed_up(folder, deaths)


def summed_up(folder: Path, deaths: int) -> int:
    executions: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    seconds = 0.0
    for file in folder.glob("stats-*.json"):
        record = json.loads(file.read_text())
        executions.update(record["executions"])
        statuses.update(record["statuses"])
        findings.update(record["findings"])
        seconds += record["seconds"]
    print(f"\n{sum(executions.values())} executions in {seconds / 60.0:.1f} minutes")
    print("exit statuses: " + ", ".join(f"{s}: {c}" for s, c in sorted(statuses.items())))
    for name, count in sorted(executions.items()):
        print(f"  {name:24s} {count:8d}")
    print(f"{len(findings)} findings, {deaths} deaths")
    for key, count in findings.most_common():
        print(f"  {key} ({count} times)")
    return 1 if findings or deaths else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/leakscope-fuzz"))
    parser.add_argument("--random", action="store_true", help="no coverage guidance")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help="execute one saved input and say what happens")
    given = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.replay is not None:
        fuzzer = Fuzzer(Path(tempfile.mkdtemp()))
        data = given.replay.read_bytes()
        name = fuzzer.names[data[0] % len(fuzzer.names)]
        found = fuzzer.execute(name, data[1:])
        print(name, *(found or ("nothing is wrong", "")), sep="\n")
        sys.exit(found is not None)
    try:
        import atheris  # noqa: F401

        guided = not given.random
    except ImportError:
        guided = False
    if given.worker:
        work(given.folder, given.minutes, given.seed, guided, given.first)
    else:
        print(f"mutations are {'guided by coverage' if guided else 'random'}", flush=True)
        sys.exit(watch(given))


if __name__ == "__main__":
    main()
