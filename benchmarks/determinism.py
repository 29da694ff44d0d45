"""The same commands under several Python and JAX versions: are the numbers the same?

    python benchmarks/determinism.py --folder /tmp/determinism

For every pair of a Python and a JAX an environment is made (kept in the folder, so that a second
run is quick), leakscope is installed into it with whatever NumPy and SciPy pip chooses, and a fixed
set of commands is run with ``--json -`` on one thread.  Every number of every answer, times and
versions apart, is compared with that of the first environment.

Whole numbers, such as ranks, are counted apart.  The difference is relative to the larger of the
two numbers, or to 1e-9 times the largest number of the answer where both are smaller than that: a
residual of 1e-17 has no digits to agree on.  Pythons that are not installed, and
pairs that pip cannot install, are said so and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# JAX 0.5.3 is the oldest that pyproject.toml allows; 0.10.2 the newest for Python 3.11.
PAIRS = (("3.11", "0.10.2"), ("3.11", "0.5.3"), ("3.13", "0.12.0.1"), ("3.13", "0.5.3"))
TOLD = ("numpy", "scipy", "scikit-learn", "pandas", "jax")

NETWORK = {
    "w": [[1.0], [-1.0], [0.5], [-2.0]],
    "b": [0.1, 0.3, -0.2, 0.5],
    "v": [1.0, -1.0, 0.5, -0.25],
}
LAWS = ["--member", "mixture:0.7*0,1.4+0.3*2,0.5", "--nonmember", "normal:0,0.7"]
SCORES = ["--member-scores", "member.csv", "--nonmember-scores", "nonmember.csv"]
COMMANDS: dict[str, list[str]] = {
    "audit rbf": ["audit", "--example", "diabetes"],
    "audit nngp": ["audit", "--example", "wine", "--kernel", "nngp"],
    "audit nngp gelu": ["audit", "--example", "iris", "--kernel", "nngp", "--activation", "gelu"],
    "plan linear": ["plan", "linear", "--n", "100", "--p", "400", "--dim", "3000"],
    "plan lasso": [
        *("plan", "lasso", "--alpha", "0.5", "--rho", "0.1", "--sigma-xi", "0.1"),
        *("--lam", "1", "--sigma-eta", "0.2"),
    ],
    "attack query": [
        *("attack", "query", "--example", "wine", "--record", "5", "--starts", "4"),
        *("--steps", "100"),
    ],
    "attack reconstruct": ["attack", "reconstruct", "network.json", "--margin", "1.0"],
    "attack membership": ["attack", "membership", "network.json", "--queries", "queries.csv"],
    "verify": ["verify", "audit.json", "--records", "3", "--draws", "500"],
    "measure laws": ["measure", *LAWS],
    "measure scores": ["measure", *SCORES],
}
# Neither numbers of the answer, nor the same twice.
LEFT_OUT = ("timing", "created", "leakscope_version", "versions")


def interpreter(version: str) -> str | None:
    """A Python of that version: on the path, or pyenv's."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [found, *sorted(str(p) for p in pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in candidates:
        if candidate and _runs(candidate):
            return candidate
    return None


def _runs(python: str) -> bool:
    """pyenv puts names on the path that run nothing."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def environment(folder: Path, python: str, jax: str) -> Path | None:
    """The environment's Python, made where it is not there yet; None where pip cannot."""
    found = interpreter(python)
    if found is None:
        print(f"Python {python} is not installed here.", flush=True)
        return None
    place = folder / f"python{python}-jax{jax}"
    inside = place / "bin" / "python"
    if (place / "made").exists():
        return inside
    print(f"making {place.name}", flush=True)
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    subprocess.run([found, "-m", "venv", "--clear", str(place)], check=True)
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    made = subprocess.run([*pip, str(source), f"jax=={jax}", f"jaxlib=={jax}"], check=False)
    if made.returncode != 0:
        # A fourth number is of jax alone; its jaxlib has three.
        made = subprocess.run([*pip, str(source), f"jax=={jax}"], check=False)
    if made.returncode != 0:
        print(f"pip cannot install jax {jax} on Python {python}.", flush=True)
        return None
    (place / "made").touch()
    return inside


def versions(python: Path) -> str:
    program = (
        "import sys, importlib.metadata as m;"
        f"print('Python', sys.version.split()[0], *[n + ' ' + m.version(n) for n in {TOLD}])"
    )
    return subprocess.run(
        [str(python), "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def write_inputs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "network.json").write_text(json.dumps(NETWORK))
    (folder / "queries.csv").write_text("x\n" + "\n".join(str(x / 4) for x in range(-8, 9)))
    for name, shift in (("member", 0.8), ("nonmember", 0.0)):
        rows = [math.sin(12.9898 * k + shift) * 3.0 + shift for k in range(200)]
        (folder / f"{name}.csv").write_text("\n".join(repr(row) for row in rows))


def answers(python: Path, folder: Path, source: Path) -> dict[str, Any]:
    write_inputs(folder)
    found = {}
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    settings.update(JAX_PLATFORMS="cpu", PYTHONPATH=str(source / "src"))
    for name, command in COMMANDS.items():
        if name == "verify":
            (folder / "audit.json").write_text(json.dumps(found["audit rbf"]))
        shutil.rmtree(folder / "leakscope-runs", ignore_errors=True)
        done = subprocess.run(
            [str(python), "-m", "leakscope", *command, "--json", "-"],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 3):
            last = done.stderr.strip().splitlines()[-1:]
            print(f"{name}: exit status {done.returncode}: {last}", flush=True)
            found[name] = None
            continue
        found[name] = json.loads(done.stdout)
    return found


def numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, entry in value.items():
            if name not in LEFT_OUT:
                yield from numbers(entry, f"{place}.{name}")
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from numbers(entry, f"{place}[{position}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place, float(value)


def compared(first: Any, other: Any) -> str:
    if first is None or other is None:
        return "did not run"
    ours, theirs = dict(numbers(first)), dict(numbers(other))
    if ours.keys() != theirs.keys():
        where = sorted(ours.keys() ^ theirs.keys())[0]
        return f"not the same numbers: {where}"
    if ours == theirs:
        return f"identical ({len(ours)})"
    floor = 1e-9 * max(abs(value) for value in ours.values())
    worst, where = max(
        (abs(ours[k] - theirs[k]) / max(abs(ours[k]), abs(theirs[k]), floor, 1e-300), k)
        for k in ours
        if not _is_whole(ours[k], theirs[k])
    )
    whole = [k for k in ours if _is_whole(ours[k], theirs[k]) and ours[k] != theirs[k]]
    same = sum(ours[k] == theirs[k] for k in ours)
    told = f"{worst:.1e} at {where.lstrip('.')} ({same} of {len(ours)} identical)"
    if whole:
        told += f"; {len(whole)} whole numbers differ, first {whole[0].lstrip('.')}"
    return told


def _is_whole(first: float, other: float) -> bool:
    """Counts and ranks, which either agree or do not."""
    return first == int(first) and other == int(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/leakscope-determinism"))
    parser.add_argument("--make-only", action="store_true", help="make the environments, no more")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    made = [(pair, environment(given.folder, *pair)) for pair in PAIRS]
    usable = [(f"{python}, {jax}", found) for (python, jax), found in made if found is not None]
    if given.make_only or not usable:
        sys.exit(0 if usable else 1)
    collected = {}
    for name, python in usable:
        print(f"{name}: {versions(python)}", flush=True)
        collected[name] = answers(python, given.folder / "runs" / name.replace(", ", "-"), ROOT)
    reference, *others = collected
    print(f"\ncompared with Python and JAX {reference}; largest relative difference\n")
    print("| command | " + " | ".join(others) + " |")
    print("|---|" + "---|" * len(others))
    for command in COMMANDS:
        cells = [compared(collected[reference][command], collected[o][command]) for o in others]
        print(f"| `{command}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
