"""What other installed packages bring: kinds of models, kernels, readers, attacks, by entry points.

A package names what it brings in its ``pyproject.toml``; nothing of it is imported before it may be
needed, and one that is broken is left out, with one sentence (docs/howto/plugins.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from typing import Any

from leakscope.settings.kernel_catalogue import KERNELS, NamedKernel


def _is_kind(found: Any) -> bool:
    return isinstance(found, type) and all(
        hasattr(found, name) for name in ("name", "words", "models", "takes", "of", "laws")
    )


# Each group: what an entry of it must be, in words and as a test.
GROUPS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "leakscope.subjects": ("a subclass of leakscope.subjects.Subject", _is_kind),
    "leakscope.kernels": (
        "a leakscope.settings.NamedKernel",
        lambda found: isinstance(found, NamedKernel),
    ),
    "leakscope.readers": ("a function from a path to a pandas table", callable),
    "leakscope.attacks": ("a function from answers of models to scores", callable),
}


@cache
def plugged(group: str) -> Mapping[str, Any]:
    """What installed packages bring to a group, by name; asked once in a process.

    Examples
    --------
    >>> from leakscope.settings.plugins import plugged
    >>> isinstance(plugged("leakscope.kernels"), dict)
    True
    """
    wanted, fits = GROUPS[group]
    found: dict[str, Any] = {}
    for entry in sorted(metadata.entry_points(group=group), key=lambda one: one.name):
        owner = "unknown" if entry.dist is None else entry.dist.name
        what = f"{entry.name!r} ({group}) of the package {owner} is left out"
        try:
            brought = entry.load()
        except (Exception, SystemExit) as error:
            reason = (str(error).splitlines() or [""])[0].rstrip(".")
            _tell(f"{what}: it cannot be imported ({type(error).__name__}: {reason}).")
            continue
        if not fits(brought):
            _tell(f"{what}: it must be {wanted}, but it is a {type(brought).__name__}.")
        elif entry.name in found:
            _tell(f"{what}: another package brings one of that name.")
        else:
            found[entry.name] = brought
    return found


def all_kernels() -> dict[str, NamedKernel]:
    """The table of kernels with those that other packages bring; ours keep their names."""
    for name, entry in plugged("leakscope.kernels").items():
        KERNELS.setdefault(name, entry)
    return KERNELS


def brings_model(name: str) -> bool:
    """Whether a kind of another package examines models of that name."""
    return any(name in kind.models for kind in plugged("leakscope.subjects").values())


def _tell(sentence: str) -> None:
    # No line of ours would help: it is the other package that is wrong.
    warnings.warn_explicit(sentence, UserWarning, "leakscope", 0)
