"""Two audits of fitted models: what is the model's, what is assumed, and what is the data's."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import leakscope
from leakscope import data
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, ModelSettings
from tests.audits import model_audit, process_audit


def audited(alpha, dataset=None, **options):
    dataset = data.read_example("diabetes") if dataset is None else dataset
    return model_audit(dataset, ModelSettings(model="ridge", alpha=alpha, **options))


@pytest.fixture(scope="module")
def weak():
    return audited(1.0)


@pytest.fixture(scope="module")
def strong():
    return audited(3000.0)


def test_more_penalty_on_the_same_data_is_an_improvement_of_what_is_released(weak, strong):
    found = leakscope.compare(weak, strong)
    assert found.same_data is True
    assert found.shared == 442
    assert not found.worse
    assert found.verdict.startswith("The second run is no worse. The largest advantage went from ")
    assert "Ridge(alpha=1) and Ridge(alpha=3000)" in found.verdict
    assert found.first.largest_tpr_at_fpr_0_001 > found.second.largest_tpr_at_fpr_0_001
    assert found.first.kernel is None
    assert {"model", "setting alpha"} <= {entry.what for entry in found.differences}
    top = {record.record_id: record for record in found.records}
    worst = weak.ranking()[0]
    assert top[worst].first_advantage == pytest.approx(float(weak.advantage.max()))
    back = leakscope.compare(strong, weak)
    assert any("largest advantage rises" in text for text in back.worse)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fraction": 0.9}, "fraction 0.5 and 0.9"),
        ({"question": "population"}, "question pool and population"),
    ],
)
def test_another_attacker_is_an_assumption_and_no_improvement(weak, options, words):
    second = audited(1.0, **options)
    found = leakscope.compare(weak, second)
    text = found.verdict
    assert "the two runs assume different attackers" in text.lower()
    assert words in text
    assert "The second run is no worse." not in text


def test_other_data_are_said(weak, tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    table = pd.concat([X, y], axis=1).iloc[:300]
    table.to_csv(tmp_path / "part.csv", index=False)
    part = audited(3000.0, data.read_dataset(tmp_path / "part.csv", target="target"))
    found = leakscope.compare(weak, part)
    assert found.same_data is False
    assert found.records == []
    assert "the data differ" in found.verdict
    assert "no improvement can be claimed" in found.verdict.lower() or found.worse


def test_a_process_and_a_fitted_model_are_not_compared(weak):
    process = process_audit(data.read_example("diabetes"), AuditSettings(kernel="rbf"))
    with pytest.raises(InputError, match="one run is of a fitted model"):
        leakscope.compare(weak, process)


def test_stand_ins_are_not_the_model_that_is_released(weak):
    stand_in = model_audit(data.read_example("diabetes"), ModelSettings())
    found = leakscope.compare(weak, stand_in)
    assert "stand-in" in found.verdict


def test_command_line_page_and_gate(weak, strong, tmp_path, capsys):
    first, second = weak.write(tmp_path / "weak"), strong.write(tmp_path / "strong")
    page = tmp_path / "both.html"
    assert main(["compare", str(first), str(second), "--html", str(page), "--fail-if-worse"]) == 0
    out = capsys.readouterr().out
    assert "largest TPR at 0.1%" in out
    assert "Ridge(alpha=3000), alpha as given" in " ".join(out.split())
    assert "Ridge(alpha=3000)" in page.read_text(encoding="utf-8")
    assert "noise variance" not in page.read_text(encoding="utf-8").split("<script")[0]
    assert main(["compare", str(second), str(first), "--fail-if-worse"]) == 3
