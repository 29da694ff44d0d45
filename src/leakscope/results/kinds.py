"""The one table of kinds: what can be examined, by name.

A kind is a class that says how a model of it is examined (:class:`leakscope.subjects.Subject`) and
how its stored audits are worded.  It is named by its path, so that nothing is imported before it is
needed.  A new kind is one file and one line: ``register("knn", KNearestNeighbours)``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import Any

from leakscope.errors import InputError
from leakscope.settings.audit import REGISTERED

# In the order in which they are asked whether they take what is given: the best method first.
KINDS: dict[str, Any] = {
    "fit": "leakscope.subjects.fit:Fit",
    "training": "leakscope.subjects.training:Training",
    "process": "leakscope.subjects.process:GaussianProcess",
    "fit_stream": "leakscope.subjects.stream:StreamedFit",
}


def register(name: str, kind: Any) -> None:
    """Add a kind; it is asked before those that are there already."""
    others = {key: value for key, value in KINDS.items() if key != name}
    KINDS.clear()
    KINDS.update({name: kind, **others})
    REGISTERED.update(kind.models)


def kind_named(name: str) -> Any:
    """The class of a kind."""
    if name not in KINDS:
        raise InputError(
            f"this leakscope knows no kind of model called {name!r}; it knows {', '.join(KINDS)}."
        )
    found = KINDS[name]
    return pkgutil.resolve_name(found) if isinstance(found, str) else found


def all_kinds() -> Iterator[Any]:
    """Every kind, in the order in which they are asked."""
    for name in list(KINDS):
        yield kind_named(name)
