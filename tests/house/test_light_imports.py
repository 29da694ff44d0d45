"""``import leakscope`` and every help page load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Not pydantic: typer itself uses it to read a verb's options.
HEAVY = ("numpy", "scipy", "pandas", "sklearn", "jax", "pyarrow", "altair")

PROGRAM = """
import json, sys
{action}
print(json.dumps([name for name in {heavy!r} if name in sys.modules]))
"""


def loaded_by(action: str) -> list[str]:
    program = PROGRAM.format(action=action, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize(
    "action",
    [
        "import leakscope; dir(leakscope)",
        "from leakscope.cli import main; main(['--help'])",
        "from leakscope.cli import main; main(['audit', '--help'])",
        "from leakscope.cli import main; main(['attack', 'query', '--help'])",
        "from leakscope.cli import main; main(['compare', '--help'])",
        "from leakscope.cli import main; main(['measure', '--help'])",
        "from leakscope.cli import main; main(['plan', 'linear', '--help'])",
        "from leakscope.cli import main; main(['report', '--help'])",
        "from leakscope.cli import main; main(['reproduce', '--help'])",
        "from leakscope.cli import main; main(['serve', '--help'])",
        "from leakscope.cli import main; main(['--version'])",
    ],
)
def test_nothing_heavy_is_loaded(action: str) -> None:
    assert loaded_by(action) == []


def test_an_audit_of_a_table_does_without_jax() -> None:
    assert "jax" not in loaded_by("import leakscope.auditing, leakscope.advising, leakscope.lood")


def test_names_resolve_when_they_are_used() -> None:
    import leakscope

    for name in leakscope.__all__:
        assert getattr(leakscope, name) is not None
    assert set(leakscope.__all__) <= set(dir(leakscope))
    assert callable(leakscope.audit)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = leakscope.nothing
