"""An environment of its own for each peer: made with pip where it does not exist yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent

# Pinned: a peer's next release may answer differently.
REQUIREMENTS = {
    "sacroml": ("sacroml==2.0.1", "torch==2.13.0"),
    "art": ("adversarial-robustness-toolbox==1.20.1", "packaging"),
    "riskcal": ("riskcal==1.5.1", "dp-accounting>=0.4.4"),
    "jax-privacy": ("jax-privacy==2.0.0",),
    "lasso": ("celer>=0.7", "skglm>=0.5"),
    "neural-tangents": ("jax==0.4.30", "jaxlib==0.4.30", "neural-tangents==0.6.5"),
}


def python_of(peer: str, folder: Path) -> Path:
    """The peer's interpreter; its environment is made the first time."""
    home = folder / peer
    python = home / "bin" / "python"
    ready = home / ".ready"
    if ready.exists():
        return python
    print(f"making an environment for {peer}", file=sys.stderr, flush=True)
    try:
        venv.create(home, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        # Debian leaves ensurepip out; our own pip then puts pip there.
        venv.create(home, with_pip=False, clear=True)
        own = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "pip"]
        subprocess.run(own, check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[peer]]
    subprocess.run(install, check=True)
    ready.touch()
    return python


def ask(
    peer: str,
    script: str,
    question: dict[str, Any],
    arrays: dict[str, np.ndarray],
    folder: Path,
    *,
    threads: int,
) -> dict[str, Any]:
    """Run a script of this folder in the peer's environment: question and arrays in, JSON out."""
    threaded = {
        name: str(threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
    with tempfile.TemporaryDirectory() as place:
        data, answer = Path(place, "data.npz"), Path(place, "answer.json")
        np.savez(data, **arrays)
        Path(place, "question.json").write_text(json.dumps(question))
        done = subprocess.run(
            [python_of(peer, folder), HERE / script, place],
            cwd=place,
            env={**os.environ, **threaded, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{peer}: {script} failed\n{done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(answer.read_text())
    return found
