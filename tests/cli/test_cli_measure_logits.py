"""``leakscope measure --logits``: a file of a few models' log-odds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from leakscope.cli import app, main

RNG = np.random.default_rng(0)
MASK = np.repeat(RNG.random((2, 60)) < 0.5, 2, axis=0) ^ (np.arange(4)[:, None] % 2 == 1)
SCORES = RNG.normal(2.0, 2.0, 60) + RNG.normal(size=(4, 60)) + MASK


def test_one_entry_per_record_in_the_files_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", log_odds=SCORES, trained_on=MASK)
    result = CliRunner().invoke(
        app, ["measure", "--logits", str(tmp_path / "m.npz"), "--json", str(tmp_path / "r.json")]
    )
    assert result.exit_code == 0, result.output
    assert "60 records, 4 models" in result.output
    records = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["records"]
    assert [record["record"] for record in records] == list(range(60))
    first = records[0]
    assert first["advantage_low"] <= first["advantage"] <= first["advantage_high"]
    assert "0.01" in first["tpr_at_fpr"]


def changed(values: np.ndarray, place: tuple, to: object) -> np.ndarray:
    copy = values.copy()
    copy[place] = to
    return copy


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"log_odds": SCORES}, "has no array trained_on"),
        ({"log_odds": SCORES[:, :50], "trained_on": MASK}, "one of the same shape"),
        ({"log_odds": SCORES, "trained_on": MASK.astype(int)}, "must be of type bool"),
        ({"log_odds": SCORES, "trained_on": changed(MASK, (slice(None), 7), True)}, "record 7"),
        ({"log_odds": SCORES, "trained_on": changed(MASK, (slice(None), 7), False)}, "record 7"),
        ({"log_odds": SCORES[:1], "trained_on": MASK[:1]}, "model"),
        ({"log_odds": changed(SCORES, (2, 5), np.nan), "trained_on": MASK}, "5"),
        ({"log_odds": changed(SCORES, (2, 5), np.inf), "trained_on": MASK}, "5"),
        ({"log_odds": SCORES[[0, 1, 2, 1]], "trained_on": MASK[[0, 1, 2, 1]]}, "1 and 3"),
        ({"log_odds": SCORES - 4.0 * MASK, "trained_on": MASK}, "lower"),
        ({"log_odds": 1.0 / (1.0 + np.exp(-SCORES)), "trained_on": MASK}, "probabilit"),
    ],
)
def test_bad_files_end_with_status_two(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arrays: dict[str, np.ndarray],
    words: str,
) -> None:
    np.savez(tmp_path / "m.npz", **arrays)
    answer = tmp_path / "answer.json"
    assert main(["measure", "--logits", str(tmp_path / "m.npz"), "--json", str(answer)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not answer.exists()
