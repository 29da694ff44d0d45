"""Results that leakscope wrote before its house was rebuilt are still read, and still used.

The files in ``old`` were written by the code as it was then, one by each verb.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakscope
from leakscope import data, results, subjects
from leakscope.results.reader import KINDS
from leakscope.settings import AuditSettings
from tests.audits import process_audit

OLD = Path(__file__).parent / "old"
FILES = sorted(OLD.glob("*.json"))

# Kinds of result that there were not then.
NEW_KINDS = {
    "attack_influence",
    "attack_membership_model",
    "attack_network",
    "attack_reconstruct_model",
    "audit_model",
    "audit_streamed",
    "compose",
    "decision",
    "erase",
    "measure_canaries",
    "measure_models",
    "plan_network",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory of then, with its data where the result says they are."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD / "small.csv", tmp_path)
    shutil.copytree(OLD / "run", tmp_path / "run")
    shutil.copy(OLD / "audit.json", tmp_path / "run" / "result.json")
    return tmp_path / "run"


def _same(old: Any, new: Any, where: str = "") -> None:
    """Everything that was in the file is in what is written from it."""
    if isinstance(old, dict):
        for name, value in old.items():
            if (where, name) == ("", "by"):  # stands in each subgroup now
                assert {entry["column"] for entry in new["subgroups"]} <= {value}
                continue
            now = "inconclusive" if name == "could_not_be_told" else name
            assert now in new, f"{where}.{name} is gone"
            _same(value, new[now], f"{where}.{name}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            _same(one, other, f"{where}[{place}]")
    else:
        assert {"could not be told": "inconclusive"}.get(old, old) == new, where


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_result_is_read_and_nothing_of_it_is_lost(path: Path, tmp_path: Path) -> None:
    found = results.read_result(path)
    again = results.write_result(found, tmp_path / "again.json")
    _same(json.loads(path.read_text()), json.loads(again.read_text()))
    assert results.read_result(again) == found


def test_there_is_an_old_result_of_every_kind() -> None:
    assert {json.loads(path.read_text())["kind"] for path in FILES} == set(KINDS) - NEW_KINDS


def test_the_audit_of_today_has_the_numbers_of_then(run: Path) -> None:
    then = results.read_result(run / "result.json")
    assert isinstance(then, results.Audit)
    dataset = data.read_dataset("small.csv", target="y", id_column="id", ignore=("household",))
    now = process_audit(dataset, AuditSettings())
    assert [r.record_id for r in now.records] == [r.record_id for r in then.records]
    for name in ("kl", "kl_reverse", "advantage", "auc", "mean_with", "variance_without"):
        one, two = (
            np.array([getattr(r, name) for r in each.records], dtype=float) for each in (then, now)
        )
        assert two == pytest.approx(one, rel=1e-10), name


def test_verbs_take_an_old_run(run: Path) -> None:
    advice = leakscope.advise(run, leakscope.AuditTarget("advantage", 0.2), random_state=0)
    then = results.read_result(OLD / "advice.json")
    assert isinstance(then, results.Advice)
    # Records are merged no more.
    before_now = [option for option in then.options if not option.merged]
    assert [option.name for option in advice.options] == [option.name for option in before_now]
    for one, two in zip(before_now, advice.options, strict=True):
        assert two.cost == pytest.approx(one.cost, rel=1e-8), one.name
        assert two.setting == pytest.approx(one.setting, rel=1e-6), one.name
        # In the order in which they are dropped now; in that of the data then.
        assert sorted(two.dropped, key=str) == sorted(one.dropped, key=str)
    verified = leakscope.verify(run, records=2, draws=400)
    before = results.read_result(OLD / "verify.json")
    assert isinstance(before, results.Verification)
    assert [c.law for c in verified.checks] == [c.law for c in before.checks]
    for one_check, other in zip(before.checks, verified.checks, strict=True):
        assert one_check.measured is not None
        assert one_check.stderr is not None
        # Other versions of LAPACK choose other signs of a few eigenvectors: SciPy 1.13 differs by
        # 6e-5, every version that was tried with the newest agrees to 1e-8.
        assert other.predicted == pytest.approx(one_check.predicted, rel=1e-8)
        assert other.measured == pytest.approx(one_check.measured, abs=0.5 * one_check.stderr)
    assert leakscope.compare(run, run).worse == []
    assert leakscope.report(run).stat().st_size > 100_000


def test_an_old_option_can_be_applied(run: Path) -> None:
    from leakscope.advising import defence_of

    then = results.read_result(OLD / "advice.json")
    assert isinstance(then, results.Advice)
    audited = subjects.opened(leakscope.Audit.open(run))
    model = audited.process
    for option in then.options:
        if option.merged:
            with pytest.raises(leakscope.InputError, match="no longer merges"):
                defence_of(option, model, audited.ids)
            continue
        rows, _ = defence_of(option, model, audited.ids).training_set(model.features, model.targets)
        assert len(rows) == 14 - len(option.dropped), option.name


def test_an_earlier_word_for_inconclusive_is_read() -> None:
    found = results.read_result(OLD / "verify_retraining.json")
    assert isinstance(found, results.Verification)
    assert found.inconclusive == 2
    assert sum(check.verdict == "inconclusive" for check in found.checks) == 2
