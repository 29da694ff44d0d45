"""The JSON Schema in the package is that of the record, and records are valid by it.

``python tests/deciding/test_schema.py`` writes it anew where the record changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.results import Decision, to_json

FILE = Path(leakscope.__file__).parent / "results" / "decision.schema.json"


def schema() -> str:
    found = Decision.model_json_schema(mode="serialization")
    shortened = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_short(found)}
    return json.dumps(shortened, indent=1, ensure_ascii=False) + "\n"


def _short(value: Any) -> Any:
    """Docstrings' first lines only, no titles, and every field required: all are always written.

    What JSON Schema takes for granted goes too: pydantic writes ``additionalProperties: true``
    since 2.11 and left it out before.
    """
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    found = {
        name: _short(entry)
        for name, entry in value.items()
        if not _is_title(name, entry) and (name, entry) != ("additionalProperties", True)
    }
    if isinstance(found.get("description"), str):
        found["description"] = found["description"].split("\n\n")[0]
    if isinstance(found.get("properties"), dict):
        found["required"] = list(found["properties"])
    return found


def _is_title(name: str, entry: Any) -> bool:
    return name == "title" and isinstance(entry, str)


@pytest.fixture(scope="module")
def records() -> list[Decision]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    audit = leakscope.audit(X, y, model=LogisticRegression(C=0.1).fit(X, y))
    models = leakscope.measure([0.4, 1.0, 2.0, 0.1], [0.0, 0.3, -0.2, 1.5])
    full = leakscope.decide(
        audit,
        leakscope.verify(audit, models=60, records=2),
        models,
        threshold_advantage=0.9,
        threshold_ppv=0.5,
        prior=0.1,
        reason="a test",
        release="an answer service",
        recipient="two hospitals",
        access="black-box",
        queries=100,
        approver="A. Person",
        expires="2027-01-31",
    )
    return [leakscope.decide(audit, threshold_tpr=0.5, redact=True), full]


def test_the_schema_in_the_package_is_the_records() -> None:
    assert FILE.read_text(encoding="utf-8") == schema(), "run python tests/deciding/test_schema.py"
    assert Decision.schema_text() == schema()


def test_records_are_valid_and_others_are_not(records: list[Decision]) -> None:
    checker = jsonschema.Draft202012Validator(json.loads(Decision.schema_text()))
    checker.check_schema(checker.schema)
    for record in records:
        content = json.loads(to_json(record))
        checker.validate(content)
        for name in content:
            less = {key: value for key, value in content.items() if key != name}
            assert not checker.is_valid(less), name
        assert not checker.is_valid({**content, "more": 1})
        assert not checker.is_valid({**content, "record_hash": "0"})
        assert not checker.is_valid({**content, "sign_off": {"decision": "perhaps"}})


if __name__ == "__main__":
    FILE.write_text(schema(), encoding="utf-8")
