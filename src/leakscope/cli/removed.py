"""What was removed, by the name that somebody may still type, and what to use instead."""

from __future__ import annotations

from collections.abc import Sequence

REMOVED = {
    "--split": "save the split as a Parquet file",
    "influence": "take lood.influence in Python, or leakscope attack query",
    "--points": "no theorem covers several inputs; take leakscope attack membership",
    "--measure": "in Python give audit a function: leakscope.audit(X, y, measures={'name': f})",
    "--attack": "give leakscope measure the attack's scores (--member-scores, --nonmember-scores)",
    **dict.fromkeys(
        (
            "--attacker",
            "--recipient",
            "--release",
            "--access",
            "--because",
            "--conditions",
            "--approver",
            "--expires",
            "--reason",
        ),
        "declare it in a file (leakscope decide --template prints one) and give --declare FILE",
    ),
}


def replacements(arguments: Sequence[str]) -> list[str]:
    """A sentence for each argument that was removed."""
    names = dict.fromkeys(argument.partition("=")[0] for argument in arguments)
    return [f"{name} was removed; {REMOVED[name]}." for name in names if name in REMOVED]
