"""Fuzzing of every reader, the command line and retraining, for an hour from a seed.

    python benchmarks/fuzz.py --minutes 60 --seed 1

Files: valid ones of every kind that leakscope reads (tables, arrays, pictures, networks, results,
run directories, scores) are mutated, as bytes and, where they are JSON or have checksums, in their
structure; law texts likewise.  Command lines are built from the command tree itself, with values
that are empty, huge, negative, NaN, odd text, or paths that lead nowhere.  ``verify`` takes
training functions that a user may write by mistake (``fuzz_services.py``); ``audit --model`` takes
whatever scikit-learn has, and its runs are verified, erased from and decided on.  The
data are tiny, so that an execution takes milliseconds.  With atheris installed (``pip install
atheris``) coverage of leakscope's data, results and cli guides the mutations; without it they are
random.

A finding is: a file that was read and is then another, an exception that leaves the command line (a
user's own function may raise what it likes), a Python warning, an exit status other than 0, 2 and
3, a refusal that is not one sentence, more than 30 seconds of processor time (or ten times that of
waiting) or 2 GB, or the death of the process. Each is saved with its input under ``--folder`` and
made again by ``--replay FILE``. The exit status is 1 where there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import itertools
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
from collections.abc import Iterator
from pathlib import Path

import typer.main
from fuzz_inputs import ODD_NUMBERS, ODD_TEXTS, every_line, furnish, prepare_seeds
from fuzz_services import users_own

SECONDS, BYTES = 30, 2 * 10**9

# What follows these is written.
WRITES = ("--json", "--html", "--output", "--sacro", "--run-dir", "--keep", "--save", "--picture")

SLOW = ("run", "logits", "network records", "any model")


class TooLong(BaseException):
    """Raised by the alarm; no handler of Exception catches it."""


class Fuzzer:
    """Executes inputs, counts, and saves what it finds."""

    def __init__(self, folder: Path, only: str = "") -> None:
        self.folder = folder
        self.targets = prepare_seeds()
        self.names = sorted(name for name in self.targets if name.startswith(only))
        self.executions: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.findings: Counter[str] = Counter()
        self.started = self.told = time.monotonic()
        self.peak = 0
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
        self.tell_each_minute()

    def execute(
        self, name: str, data: bytes, line: list[str] | None = None
    ) -> tuple[str, str] | None:
        """Run a target's command on the bytes, or a line as it stands; what is wrong, if it is."""
        from leakscope.cli import main

        folder = self.place / "x"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        furnish(folder)
        work = line or self.targets[name][0](folder, data)
        lines = work if callable(work) or isinstance(work[0], list) else [work]
        out, error = io.StringIO(), io.StringIO()
        before = _held(folder)
        _watch(True)
        try:
            with (
                contextlib.chdir(folder),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(error),
            ):
                if callable(lines):
                    status, wrong = 0, lines()
                else:
                    for line in lines:
                        error.truncate(error.seek(0))
                        status = main(line)
                        self.statuses[status] += 1
                        wrong = refusal_problem(status, error.getvalue())
                        if wrong is not None:
                            break
        except TooLong:
            return f"over {SECONDS} s: {name} {' '.join(line or [])[:80]}", repr(line)
        except BaseException as problem:
            if users_own(problem, folder):
                return None
            told = "".join(traceback.format_exception(problem))
            return _where(problem), f"{line!r}\n{told}\n{error.getvalue()}"
        finally:
            _watch(False)
        # The peak stays for as long as the process lives: it is told again where it grows.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > max(BYTES, 1.1 * self.peak):
            self.peak = peak
            return f"over {BYTES} bytes: {name}", repr(line)
        after = _held(folder)
        read = _read_by(lines if isinstance(lines, list) else [])
        changed = [
            n for n, held in before.items() if n.split("/")[0] in read and after.get(n) != held
        ]
        if wrong is None and changed:
            wrong = f"what was read is changed: {changed[0]}"
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

    def tell_each_minute(self) -> None:
        if time.monotonic() - self.told > 60.0:
            self.told = time.monotonic()
            self.tell()

    def tell(self) -> None:
        record = {
            "executions": dict(self.executions),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "findings": dict(self.findings),
            "seconds": time.monotonic() - self.started,
            "processor": time.process_time(),
        }
        (self.folder / f"stats-{os.getpid()}.json").write_text(json.dumps(record))
        print(
            f"{record['seconds'] / 60.0:.1f} min, {sum(self.executions.values())} executions, "
            f"{len(self.findings)} findings",
            flush=True,
        )

    def every_option(self) -> None:
        """Every option of every command with every odd value, one at a time."""
        for line in every_line():
            found = self.execute(line[0], b"", line)
            self.executions["every option"] += 1
            if found is not None:
                self.save("every option", json.dumps(line).encode(), *found)
            self.tell_each_minute()

    def inputs(self, seed: int) -> Iterator[bytes]:
        """Random mutations of valid inputs, and of mutations that did something new."""
        generator = random.Random(seed)
        while True:
            number = generator.randrange(len(self.names))
            # A command line has far more to it than a file.
            if "command line" in self.names and generator.random() < 0.25:
                number = self.names.index("command line")
            name = self.names[number]
            # Those take a second.
            if name.startswith(SLOW) and generator.random() < 0.7:
                continue
            seeds = self.targets[name][1]
            yield bytes([number]) + mutated(generator.choice(seeds), generator)


def _held(folder: Path) -> dict[str, bytes]:
    """Every file that a command finds, with what it holds; pages are there to be made anew."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix != ".html"
    }


def _read_by(lines: list[list[str]]) -> set[str]:
    """Files and folders that command lines name without writing there, and what runs came from."""
    found: set[str] = set()
    for line in lines:
        pairs = itertools.pairwise(line)
        found |= {
            word.removeprefix("./").split("/")[0] for flag, word in pairs if flag not in WRITES
        }
    found |= {"data.csv"} if found & {"run", "run2", "model", "groups"} else set()
    return found | ({"many.csv"} if found & {"fitted", "fitted2", "people"} else set())


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
    if status not in (0, 2, 3, 4):
        return f"exit status {status}"
    # Usage errors are typer's own, and repeat what was typed.
    if status == 2 and error.startswith(("Usage: ", "Error: ")):
        return None
    shown = error.replace("\n", "")
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in shown):
        return "orders to the terminal on stderr"
    if "Traceback" in error:
        return "a traceback on stderr"
    if status == 2:
        lines = error.rstrip("\n").split("\n")
        last = lines[-1]
        # Before a file is streamed the cost is stated, in a few lines.
        if lines[0].startswith("streaming "):
            lines = lines[-1:]
        if not last.startswith("leakscope: ") or not last.endswith((".", "?")):
            return f"no sentence: {last[:60]!r}"
        if any(not line.startswith(("warning: ", "note: ")) for line in lines[:-1]):
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


def work(folder: Path, minutes: float, seed: int, guided: bool, first: bool, only: str) -> None:
    """Until the time is over, in this process; the first goes through every option before."""
    seconds = max(int(60 * minutes), 1)
    if guided:
        import atheris

        with atheris.instrument_imports(
            include=["leakscope.data", "leakscope.results", "leakscope.cli"]
        ):
            pass

        fuzzer = Fuzzer(folder, only)
        if first:
            fuzzer.every_option()
        corpus = folder / "corpus"
        corpus.mkdir(exist_ok=True)
        for number, name in enumerate(fuzzer.names):
            for place, held in enumerate(fuzzer.targets[name][1]):
                (corpus / f"seed-{number}-{place}").write_bytes(bytes([number]) + held)
        options = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=0", "-rss_limit_mb=0"]
        options += [
            "-max_len=20000",
            "-print_final_stats=0",
            f"-artifact_prefix={folder}/",
            "-verbosity=0",
            "-len_control=0",
        ]
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
        fuzzer = Fuzzer(folder, only)
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
        line += ["--only", given.only]
        line += ["--first"] if seed == given.seed and not given.skip_options else []
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
    seconds = processor = 0.0
    for file in folder.glob("stats-*.json"):
        record = json.loads(file.read_text())
        executions.update(record["executions"])
        statuses.update(record["statuses"])
        findings.update(record["findings"])
        seconds += record["seconds"]
        processor += record["processor"]
    print(
        f"\n{sum(executions.values())} executions in {seconds / 60.0:.1f} minutes, of which "
        f"{processor / 60.0:.1f} of processor time"
    )
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
    parser.add_argument(
        "--skip-options", action="store_true", help="not every option with every odd value first"
    )
    parser.add_argument("--only", default="", help="targets whose names begin so")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help="execute one saved input and say what happens")
    given = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.replay is not None:
        fuzzer = Fuzzer(Path(tempfile.mkdtemp()), given.only)
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
        work(given.folder, given.minutes, given.seed, guided, given.first, given.only)
    else:
        print(f"mutations are {'guided by coverage' if guided else 'random'}", flush=True)
        sys.exit(watch(given))


if __name__ == "__main__":
    main()
