from __future__ import annotations

import json
import math
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope import InputError, results
from leakscope.results.columns import Table
from leakscope.results.document import DatasetEntry
from leakscope.subjects.process.details import ProcessDetails

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)


def audit_document(numbers=(0.5,) * 8, record_id=0, means=(0.1, 0.2)):
    kl, kl_reverse, advantage, auc, distance, free, label, variance = numbers
    return results.Audit(
        subject="process",
        leakscope_version="0.1.0",
        settings={"noise_variance": 0.01},
        provenance={"question": "leave_one_out"},
        assumptions=[{"statement": "s", "holds": None, "evidence": "e"}],
        timing={"kernel": 0.1},
        warnings=[],
        dataset=DatasetEntry(
            name="n", records=1, features=1, outputs=1, target_name="y", steps=["read"]
        ),
        model=results.ExaminedModel(
            type="GaussianProcess", name="rbf", origin="assumed", parameters={}
        ),
        question="leave_one_out",
        observes="latent",
        median_advantage=0.5,
        sentences=["v"],
        checks=["its error was estimated"],
        table=Table.of_rows(
            [
                {
                    "record_id": record_id,
                    "kl": kl,
                    "kl_reverse": kl_reverse,
                    "advantage": advantage,
                    "auc": auc,
                    "mean_distance": distance,
                    "kl_label_free": free,
                    "kl_label": label,
                    "mean_without": means[0],
                    "sd_without": variance,
                    "mean_with": means[1],
                    "sd_with": variance,
                    "confirmed": True,
                    "check": 0,
                }
            ]
        ),
        details=ProcessDetails(
            kernel={"name": "rbf", "length_scale": 1.0},
            noise_variance=0.01,
        ),
    )


def measure_document():
    return results.Measurement(
        leakscope_version="0.1.0",
        settings={},
        provenance={},
        assumptions=[],
        timing={},
        warnings=[],
        advantage=0.1,
        kl=math.inf,
        kl_reverse=0.2,
        auc=0.6,
        tpr_at_fpr={"0.1": 0.2},
        epsilon_at_delta={"1e-05": math.inf},
        intervals={
            "auc": {"low": 0.5, "high": 0.7, "confidence": 0.95, "method": "DeLong", "bias": ""}
        },
    )


def strict_loads(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@given(
    numbers=st.lists(ANY_NUMBER, min_size=8, max_size=8),
    fractions=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    record_id=st.one_of(st.integers(-(2**53), 2**53), st.text(max_size=20)),
    means=st.one_of(
        st.tuples(ANY_NUMBER, ANY_NUMBER),
        st.tuples(st.lists(ANY_NUMBER, min_size=2, max_size=4), st.lists(ANY_NUMBER, min_size=2)),
    ),
)
def test_round_trip_of_any_numbers(tmp_path_factory, numbers, fractions, record_id, means):
    document = audit_document([*numbers[:2], *fractions, *numbers[4:]], record_id, means)
    path = tmp_path_factory.mktemp("result") / "result.json"
    results.write_result(document, path)
    strict_loads(path.read_text(encoding="utf-8"))
    assert results.read_result(path) == document


def test_measure_round_trip_keeps_what_the_measures_add(tmp_path):
    results.write_result(measure_document(), tmp_path / "m.json")
    content = strict_loads((tmp_path / "m.json").read_text())
    assert content["kl"] is None
    assert content["epsilon_at_delta"] == {"1e-05": None}
    assert content["intervals"]["auc"]["low"] == 0.5
    assert results.read_result(tmp_path / "m.json") == measure_document().model_copy(
        update={"created": results.read_result(tmp_path / "m.json").created}
    )


def test_only_the_owner_may_read_it(tmp_path):
    path = results.write_result(audit_document(), tmp_path / "r.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


def changed(**fields):
    content = json.loads(results.to_json(audit_document()))
    return json.dumps(content | fields)


def with_record(**fields):
    """A second record that is like the first but for these fields."""
    content = json.loads(results.to_json(audit_document()))
    content["records"].append({**content["records"][0], **fields})
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("not json", "JSON"),
        ("[1, 2]", "schema_version"),
        ("{}", "schema_version"),
        (changed(schema_version="1"), "another version"),
        (changed(kind="novel"), "known kind"),
        (changed(records=[{"record_id": 1}]), "kl"),
        (changed(unheard_of=1), "unheard_of"),
        (changed(records=[]), "at least one record"),
        (changed(details={"kernel": "rbf"}), "kernel"),
        (changed(subject="novel"), "novel"),
        (changed(kind="audit_novel"), "kind"),
        (changed(checks=[]), "check"),
        (changed(checks=[" "]), "check"),
        (with_record(advantage=1.5), "advantage: record 1"),
        (with_record(kl="{x}"), "kl: record 1"),
        (with_record(novel=1), "novel"),
        (with_record(mean_with=[1.0, 2.0]), "mean_with"),
        (with_record(rank_low=10**400), "rank_low: record 1"),
        (with_record(check=10**30), "check: record 1"),
        (with_record(check=None), "record 1"),
        (with_record(confirmed=False), "record 1"),
        (with_record(confirmed=None), "confirmed: record 1"),
    ],
    ids=lambda value: value[:12] if value.startswith("{") else None,  # the whole has a time in it
)
def test_what_is_not_a_result_is_refused(tmp_path, text, token):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        results.read_result(path)
    assert token in str(error.value)


def test_missing_and_unwritable(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        results.read_result(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be written"):
        results.write_result(audit_document(), tmp_path / "no" / "folder.json")


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = results.write_result(audit_document(), tmp_path / "r.json")
    before = path.read_text()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(InputError, match="full"):
        results.write_result(audit_document(record_id=5), path)
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]
