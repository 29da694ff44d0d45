"""Every row of the mapping page is in the record: with a value, or as "not stated"."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope.reporting.decision_page import decision_html, decision_markdown
from leakscope.results import Decision, to_json

PAGE = Path(__file__).parents[2] / "docs" / "decide_fields.md"
ROWS = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

# Where a table of the record stands on the form; in Markdown under the same words.
TABLES = {
    "exposed": "TPR at 0.1% FPR",
    "exposed_basis": "computed",
    "above": "",
    "against": "Against other attackers",
    "levels": "expected number of people found",
    "subgroups": "",
    "thresholds": "Thresholds",
    "reason": "eason for th",
    "reconciliation": "Predicted and measured",
    "coverage": "attribute inference",
    "mitigations": "and their price",
    "assumptions": "What this rests on",
    "runs": "SHA-256 of its result",
    "versions": "Versions:",
    "obstacles": "",
    "sign_off": "conditions",
}
# A model card is short: it names the record, which holds these.
NOT_ON_A_CARD = {"assumptions", "runs"}


@pytest.fixture(scope="module")
def records(filed: Path) -> list[Decision]:
    declared = {"release": "a", "recipient": "b", "access": "weights", "queries": 3, "reason": "c"}
    declared |= {"attacker": "pool", "each_row": "d"}
    run, model = filed / "run", filed / "model.bin"
    model.write_bytes(b"weights")
    return [
        leakscope.decide(run, threshold_tpr=0.5),
        leakscope.decide(run, model=model, threshold_tpr=0.5, prior=0.1, **declared),
    ]


def entry(content: dict[str, Any], path: str) -> Any:
    found = re.fullmatch(r"(\w+)\[([\w.]+)\]", path)
    if found is None:
        return content[path]
    return next(one for one in content[found[1]] if one["key"] == found[2])


def test_the_page_maps_every_field_and_nothing_else(records: list[Decision]) -> None:
    content = json.loads(to_json(records[0]))
    listed = {
        f"{name}[{one['key']}]"
        for name in ("identity", "context", "attacker")
        for one in content[name]
    }
    assert listed <= set(ROWS)
    assert {row for row in ROWS if "[" in row} == listed
    assert len(ROWS) == len(set(ROWS))


@pytest.mark.parametrize("path", ROWS)
def test_a_row_is_there_or_not_stated(records: list[Decision], path: str) -> None:
    for record in records:
        content = json.loads(to_json(record))
        found = entry(content, path)
        pages = decision_html(record), decision_markdown(record)
        if isinstance(found, dict) and "key" in found:
            assert found["text"]
            missing = ("not stated", "not known", "no file was given (--model FILE)")
            assert (found["value"] is None) == (found["text"] in missing)
            assert found["value"] != 0
            for page in pages:
                line = next(text for text in page.splitlines() if _plain(found["label"]) in text)
                assert _plain(str(found["text"])) in line
        elif path in TABLES:
            for page in pages[: 1 if path in NOT_ON_A_CARD else 2]:
                assert TABLES[path] in page
        else:
            for page in pages:
                assert str(found) in page


def _plain(text: str) -> str:
    """Up to a sign that HTML writes otherwise."""
    return re.split(r"[<>&'\"]", text)[0]


def test_every_declared_field_was_stated_in_the_second(records: list[Decision]) -> None:
    missing = [f.key for f in (*records[1].context, *records[1].attacker) if f.value is None]
    assert missing == []
    assert records[1].stated("model.sha256").value
