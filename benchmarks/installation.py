"""What an installation weighs and how soon it answers: the wheel alone, in an empty environment.

    python benchmarks/installation.py [EXTRAS]

EXTRAS are as in pip's brackets: ``jax``, ``jax,parquet``, ``all``; none where left out.  Seconds
are by the clock and of CPU, children counted; the size of site-packages is told without pip and
setuptools.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


def timed(what: str, command: list[str], place: Path) -> None:
    """Run it, and tell how long it took."""
    wall, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - wall, os.times()
    if done.returncode:
        sys.exit(f"{what}: {done.stdout}{done.stderr}")
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    print(f"{what:34} {wall:6.1f} s, {cpu:6.1f} s of CPU", flush=True)


def megabytes(folder: Path) -> float:
    """What files take, in 10^6 bytes, those of pip and setuptools left out."""
    kept = [one for one in folder.iterdir() if not one.name.split("-")[0].startswith(TOOLS)]
    files = [file for one in kept for file in (one.rglob("*") if one.is_dir() else [one])]
    return sum(file.lstat().st_size for file in files if not file.is_dir()) / 1e6


def main() -> None:
    extras = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
        timed(
            "building the wheel",
            [sys.executable, *pip, "wheel", str(HERE), "--no-deps", "--wheel-dir", "."],
            place,
        )
        (wheel,) = place.glob("*.whl")
        subprocess.run([sys.executable, "-m", "venv", "alone"], cwd=place, check=True)
        python = str(place / "alone" / "bin" / "python")
        wanted = str(wheel) + (f"[{extras}]" if extras else "")
        timed("pip install of it", [python, *pip, "install", wanted], place)
        (packages,) = (place / "alone" / "lib").glob("python*/site-packages")
        size, packed = megabytes(packages), wheel.stat().st_size / 1e6
        print(f"{'site-packages':34} {size:6.0f} MB (the wheel {packed:.1f} MB)")
        leakscope = [python, "-m", "leakscope"]
        for what, command in (
            ("import leakscope", [python, "-c", "import leakscope"]),
            ("leakscope --help", [*leakscope, "--help"]),
            ("audit", [*leakscope, "audit", "--example", "diabetes", "--run-dir", "run"]),
            ("report", [*leakscope, "report", "run"]),
        ):  # fmt: skip
            timed(f"{what}, first", command, place)
            if what != "report":
                again = [one if one != "run" else "again" for one in command]
                timed(f"{what}, again", again, place)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
