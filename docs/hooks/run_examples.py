"""A hook of mkdocs: every example on the pages is run before the site is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ("tests/house/test_documentation.py", "tests/house/test_commands.py")


def on_pre_build(config: Any) -> None:
    """Run the pages' examples; a site with one that fails is not built."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "auto", *CHECKS], cwd=ROOT, check=False
    )
    if done.returncode:
        from mkdocs.exceptions import PluginError

        raise PluginError("an example in the documentation does not run as written")
