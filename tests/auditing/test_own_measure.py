"""A measure of the user's own reaches the table, the file, the report and the gate."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope import auditing, measures

# Few records: some laws are not trusted, which is not what is looked at here.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 3))
Y = X[:, 0] + GENERATOR.normal(size=60)


def lift(pair):
    return measures.tpr_at_fpr(pair, 0.01) / 0.01


def test_it_is_in_table_file_report_and_gate(tmp_path, capsys):
    result = leakscope.audit(X, Y, model=Ridge(), measures={"lift": lift})
    told = result.table.of("own_lift")
    assert told == pytest.approx(result.table.of("tpr_at_fpr_0_01") / 0.01)
    run = result.write(tmp_path / "run")
    again = leakscope.Audit.open(run)
    assert again.records[0].own_lift == pytest.approx(told[result.order[0]])
    assert "own_lift" in (run / "records.csv").read_text().partition("\n")[0]
    assert ">lift<" in leakscope.report(run).read_text()
    limit = float(np.median(told))
    above = auditing.gate_failures(again, {"lift": limit})
    known = (told > limit) & result.known
    assert f"{int(known.sum())} of 60 records are above the limit, lift" in above[0]


def test_of_a_training_it_is_a_posterior_mean_with_an_interval():
    found = leakscope.audit(X, Y, train=Ridge(), models=8, measures={"lift": lift}, seed=3)
    low, value, high = (found.table.of(f"own_lift{end}") for end in ("_low", "", "_high"))
    assert value == pytest.approx(found.table.of("tpr_at_fpr_0_01") / 0.01, rel=0.05)
    assert (low <= value).all()
    assert (value <= high).all()
    # By the upper end: nobody is known to be above, and not all are known to be below.
    exceeded, unknown = auditing.gate.judged(found, {"lift": float(value.max())})
    assert not exceeded
    assert "not known to be within the limit" in unknown[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"measures": {"lift": lambda pair: 1.0}},
            r"must give one number for each .* array of \(\)",
        ),
        (
            {"measures": {"lift": lambda pair: 1 / 0}},
            "lift could not be computed .ZeroDivisionError",
        ),
        ({"measures": {"lift": lambda pair: np.full(60, np.nan)}}, "gave a NaN"),
        ({"measures": {"Lift it": lift}}, "names of small letters"),
        ({"fpr": 0.0}, "fpr must lie between 0 and 1"),
        ({"confidence": 0.9}, "intervals are of 95%"),
        ({"seed": -1}, "seed: "),
    ],
)
def test_what_is_wrong_is_one_sentence(asked, words):
    with pytest.raises(leakscope.InputError, match=words):
        leakscope.audit(X, Y, model=Ridge(), **asked)


def test_other_rates_and_seeds():
    result = leakscope.audit(X, Y, model=Ridge(), fpr=[1e-4, 0.01])
    # 1% is there already.
    assert [name for name in result.table.columns if name.startswith("own_")] == [
        "own_tpr_at_fpr_0_0001"
    ]
    pair = result.laws.pair()
    assert result.table.of("own_tpr_at_fpr_0_0001") == pytest.approx(
        measures.tpr_at_fpr(pair, 1e-4)
    )
    few = [leakscope.audit(X, Y, train=Ridge(), models=4, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(few[0].advantage, few[1].advantage)
    assert not np.array_equal(few[0].advantage, few[2].advantage)
