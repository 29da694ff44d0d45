"""Every kind of model through every verb: it works, or one sentence says why not.

The table that comes out stands in docs/kinds.md; ``python tests/subjects/test_kinds_and_verbs.py``
writes it again.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakscope
from leakscope import InputError, data
from leakscope.auditing import audit_streamed
from leakscope.auditing.gate import gate_failures
from leakscope.results import Audit
from leakscope.settings import ModelSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kinds.md"
BEGIN, END = "<!-- begin: made by tests/subjects/test_kinds_and_verbs.py -->", "<!-- end -->"

TREE = "sklearn.tree:DecisionTreeClassifier"


def tables(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = X[:, 0] + 0.5 * rng.normal(size=90)
    frame["label"] = np.where(frame["y"] > 0.0, "high", "low")
    frame["who"] = np.arange(90) // 3
    frame.to_csv(folder / "table.csv", index=False)
    twice = pd.concat([frame, 0.9 * frame[["a", "b", "c", "y"]] + 0.05], ignore_index=True)
    twice[["a", "b", "c", "y"]].to_parquet(folder / "table.parquet")


def runs(folder: Path) -> dict[str, Callable[[str], Audit]]:
    """How each kind of audit is made, and written under a name."""

    def read(target: str, **more: Any) -> data.Dataset:
        left = {"y", "label", "who"} - {target, more.get("group_column", "")}
        return data.read_dataset(folder / "table.csv", target=target, ignore=tuple(left), **more)

    def written(audit: Audit, name: str) -> Audit:
        return Audit.open(audit.write(folder / name))

    rbf = {"kernel": "rbf", "sensitivity": False}
    return {
        "fitted model": lambda name: written(
            leakscope.audit(read("y"), model="ridge", alpha=1.0),
            name,
        ),
        "training": lambda name: written(
            leakscope.audit(
                read("label"),
                model=TREE,
                models=4,
            ),
            name,
        ),
        "fitted model, groups": lambda name: written(
            leakscope.audit(
                read("y", group_column="who"),
                model="ridge",
                alpha=1.0,
            ),
            name,
        ),
        "training, groups": lambda name: written(
            leakscope.audit(
                read("label", group_column="who"),
                model=TREE,
                models=4,
            ),
            name,
        ),
        "Gaussian process": lambda name: written(leakscope.audit(read("y"), **rbf), name),
        "process, groups": lambda name: written(
            leakscope.audit(read("y", group_column="who"), **rbf), name
        ),
        "fitted model, streamed": lambda name: _streamed(
            folder, name, chosen=ModelSettings(model="ridge", alpha=1.0)
        ),
    }


def _streamed(folder: Path, name: str, **more: Any) -> Audit:
    audit_streamed(folder / "table.parquet", target="y", directory=folder / name, **more)
    return Audit.open(folder / name)


VERBS: dict[str, Callable[[Audit, Audit, Path], object]] = {
    "audit": lambda one, two, place: one.answer(),
    "gate": lambda one, two, place: gate_failures(one, {"advantage": 0.5}),
    "report": lambda one, two, place: leakscope.report(place, place.with_suffix(".html")),
    "compare": lambda one, two, place: leakscope.compare(place, place),
    "advise": lambda one, two, place: leakscope.advise(
        place, leakscope.AuditTarget(measure="advantage", value=0.05), random_state=0
    ),
    "verify": lambda one, two, place: leakscope.verify(place, records=2, draws=300, models=24),
    "decide": lambda one, two, place: leakscope.decide(place, threshold_advantage=0.5),
    "erase": lambda one, two, place: leakscope.erase(place, records=[one.record_ids[0]]),
}


def table() -> str:
    """Markdown: a row for each kind, a column for each verb, and the sentences below."""
    notes: list[str] = []
    lines = [f"| | {' | '.join(VERBS)} |", f"|---{'|:-:' * len(VERBS)}|"]
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(place)
        tables(folder)
        for kind, made in runs(folder).items():
            cells = []
            name = kind.replace(" ", "-").replace(",", "")
            audit = made(name)
            for verb in VERBS.values():
                try:
                    with contextlib.redirect_stderr(io.StringIO()):
                        verb(audit, audit, folder / name)
                    cells.append("yes")
                except InputError as error:
                    said = str(error).replace(str(folder) + os.sep, "")
                    if said not in notes:
                        notes.append(said)
                    cells.append(f"no ({notes.index(said) + 1})")
            lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{k}. {text}" for k, text in enumerate(notes, start=1))])


@pytest.mark.skipif(not PAGE.exists(), reason="the page stands in a checkout only")
def test_the_page_says_what_is_so() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip() == table().strip()


if __name__ == "__main__":
    whole = PAGE.read_text(encoding="utf-8")
    start, stop = whole.index(BEGIN) + len(BEGIN), whole.index(END)
    PAGE.write_text(f"{whole[:start]}\n\n{table()}\n\n{whole[stop:]}", encoding="utf-8")
