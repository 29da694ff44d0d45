"""Files as people have them: no line of names, '?', decimal commas, far too many rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from leakscope import data
from leakscope.cli import main
from leakscope.data.datasets import same_data
from leakscope.errors import InputError
from leakscope.settings import AuditSettings, ModelSettings
from tests.audits import model_audit, process_audit

ADULT = "".join(
    f"{25 + i % 40}, {('Private', '?', 'State-gov')[i % 3]}, {10 + i % 7}, "
    f"{('<=50K', '>50K')[i % 2]}\n"
    for i in range(60)
)


def written(folder, text, name="data.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_without_names_is_read_by_positions(tmp_path):
    file = written(tmp_path, "1,2,3.5\n4,5,6\n7,8,9\n")
    with pytest.raises(InputError, match="give --read header=no"):
        data.read_dataset(file, target="2")
    found = data.read_dataset(file, target="-1", header=False)
    assert found.feature_names == ("x0", "x1")
    assert found.target.tolist() == [3.5, 6.0, 9.0]
    assert found.features[0].tolist() == [1.0, 2.0]


def test_a_first_line_that_is_a_record_is_not_taken_for_names(tmp_path):
    """Adult's first line has words and numbers; one record was lost, and columns had odd names."""
    file = written(tmp_path, ADULT, "adult.data")
    with pytest.raises(InputError, match=r"looks like a record.*give --read header=no"):
        data.read_dataset(file, target="-1", task="classification", na_values=["?"])
    found = data.read_dataset(
        file, target="-1", task="classification", na_values=["?"], header=False, missing="impute"
    )
    assert len(found.record_ids) == 60
    # Without the blank that stands after each comma.
    assert set(found.target.tolist()) == {"<=50K", ">50K"}
    assert found.feature_names == ("x0", "x1=Private", "x1=State-gov", "x2")


def test_names_that_are_years_beside_a_word_stay_names(tmp_path):
    file = written(tmp_path, "country,2001,2002\nA,1,2\nB,3,4\nA,5,7\n")
    found = data.read_dataset(file, target="2002")
    assert found.feature_names == ("country=A", "country=B", "2001")


@pytest.mark.parametrize("mark", ["?", "-", ".", "n.a.", "**"])
@pytest.mark.parametrize("values", ["numbers", "words"])
def test_a_mark_for_a_value_not_known_is_never_a_category(tmp_path, mark, values):
    cells = ["1.5", "2", mark, "3", mark] if values == "numbers" else ["a", "b", mark, "a", mark]
    text = "c,x,y\n" + "".join(f"{cell},{i},{i * i}\n" for i, cell in enumerate(cells))
    file = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        data.read_dataset(file, target="y")
    told = str(refused.value)
    assert f"column 'c' holds {mark!r} 2 times, first in row 2" in told
    assert f"give --read na_values={mark!r}" in told
    with pytest.raises(InputError, match=r"column 'c' is empty in row 2.*--read missing"):
        data.read_dataset(file, target="y", na_values=[mark])
    dropped = data.read_dataset(file, target="y", na_values=[mark], missing="drop")
    assert dropped.record_ids == (0, 1, 3)
    assert f"read as empty: {mark!r}" in dropped.steps


def test_a_mark_can_be_kept_and_signs_of_a_charge_are_no_marks(tmp_path):
    file = written(tmp_path, "c,y\n?,1\na,2\n?,4\na,5\n")
    kept = data.read_dataset(file, target="y", na_values=["NA"])
    assert kept.feature_names == ("c=?", "c=a")
    signs = written(tmp_path, "c,y\n+,1\n-,2\n-,4\n+,5\n")
    assert data.read_dataset(signs, target="y").feature_names == ("c=+", "c=-")


def test_a_mark_in_the_target_and_in_a_frame_is_refused_too(tmp_path):
    file = written(tmp_path, "x,y\n1,a\n2,?\n3,b\n")
    with pytest.raises(InputError, match="column 'y' holds '\\?' once, first in row 1"):
        data.read_dataset(file, target="y", task="classification")
    frame = pd.DataFrame({"c": ["?", "a", "b", "a"], "y": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(InputError, match="give --read na_values='\\?'"):
        data.from_frame(frame, target="y")
    found = data.from_frame(frame, target="y", na_values=["?"], missing="drop")
    assert found.record_ids == (1, 2, 3)


def test_what_means_empty_is_so_in_every_kind_of_file(tmp_path):
    frame = pd.DataFrame({"a": [1.0, -999.0, 3.0], "c": ["u", " ? ", "v"], "y": [0.5, 1.0, 2.0]})
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_csv(tmp_path / "data.csv", index=False)
    for name in ("data.parquet", "data.csv"):
        found = data.read_dataset(
            tmp_path / name, target="y", na_values=["?", "-999"], missing="impute"
        )
        assert found.features[1, 0] == 2.0, name
        assert found.feature_names == ("a", "c=u", "c=v"), name


@pytest.mark.parametrize("text", ['"1,5","2,25",0\n"3,0","4,5",1\n', "1,5;2,25;0\n3,0;4,5;1\n"])
def test_decimal_commas_are_numbers_when_asked_for(tmp_path, text):
    sign = ";" if ";" in text else ","
    file = written(tmp_path, f"a{sign}b{sign}y\n{text}")
    found = data.read_dataset(file, target="y", decimal=",")
    assert found.features.tolist() == [[1.5, 2.25], [3.0, 4.5]]
    assert found.source.read_again().features.tolist() == found.features.tolist()


def test_options_of_text_are_refused_elsewhere(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(InputError, match="text files"):
        data.read_dataset(tmp_path / "a.npy", target="0", header=False)


def test_a_sample_keeps_the_share_of_each_class_and_can_be_read_again(tmp_path):
    labels = ["a"] * 90 + ["b"] * 9 + ["c"]
    rows = "".join(f"{i * 0.37:.3f},{label}\n" for i, label in enumerate(labels))
    file = written(tmp_path, f"x,y\n{rows}")
    found = data.read_dataset(file, target="y", task="classification", sample=20)
    values, counts = np.unique(found.target.astype(str), return_counts=True)
    assert counts.sum() == 20
    assert dict(zip(values, counts, strict=True))["a"] >= 17
    assert found.sampled_from == 100
    assert "sampled 20 of 100 records at random" in found.steps[-1]
    again = found.source.read_again()
    assert again.record_ids == found.record_ids
    other = data.read_dataset(file, target="y", task="classification", sample=20, sample_seed=1)
    assert other.record_ids != found.record_ids
    assert not same_data(other.source.digest, found.source.digest)
    whole = data.read_dataset(file, target="y", task="classification")
    assert not same_data(whole.source.digest, found.source.digest)


def test_a_sample_of_numbers_follows_the_target_s_tenths():
    whole = data.read_example("diabetes")
    found = data.read_example("diabetes", sample=44)
    edges = np.quantile(whole.target, np.linspace(0, 1, 11))
    counts = np.histogram(found.target, edges)[0]
    assert counts.min() >= 3
    assert counts.max() <= 6
    assert len(found.target) == 44


def test_groups_stay_whole_in_a_sample(tmp_path):
    rows = "".join(f"p{i // 3},{i % 5},{i}\n" for i in range(60))
    file = written(tmp_path, f"person,x,y\n{rows}")
    found = data.read_dataset(file, target="y", group_column="person", sample=30)
    values, counts = np.unique(found.group, return_counts=True)
    assert set(counts.tolist()) == {3}
    assert len(values) == 10


def test_categories_that_a_sample_lacks_are_no_features(tmp_path):
    rows = "".join(f"{'rare' if i == 7 else 'ab'[i % 2]},{i},{i % 3}\n" for i in range(200))
    file = written(tmp_path, f"c,x,y\n{rows}")
    found = data.read_dataset(file, target="y", sample=20)
    assert found.feature_names == ("c=a", "c=b", "x")
    assert found.indicators == (0, 1)
    assert found.features.shape == (20, 3)


@pytest.mark.parametrize("count", [1, 151])
def test_a_sample_that_cannot_be_drawn_is_refused(count):
    with pytest.raises(InputError, match=f"--read sample must be from 2 to 150.*it is {count}"):
        data.read_example("iris", sample=count)


def test_a_result_says_that_it_is_of_a_sample():
    iris = data.read_example("iris", sample=60)
    process = process_audit(iris, AuditSettings(sensitivity=False))
    model = model_audit(iris, ModelSettings(model="logistic", C=1.0))
    for document in (process, model):
        assert document.dataset.sampled_from == 150
        assert any("sample of 60 of 150" in sentence for sentence in document.warnings)
        assert any("60 of 150 records were drawn" in a.evidence for a in document.assumptions)
        assert json.loads(document.model_dump_json())["dataset"]["source"]["sample"] == 60


def test_several_columns_of_subgroups(tmp_path):
    rows = "".join(f"{i},{'mf'[i % 2]},{'uvw'[i % 3]},{i % 7}\n" for i in range(40))
    file = written(tmp_path, f"x,sex,race,y\n{rows}")
    found = data.read_dataset(file, target="y", by=["sex", "race"])
    assert list(found.by) == ["sex", "race"]
    for result in (
        process_audit(found, AuditSettings(sensitivity=False)),
        model_audit(found, ModelSettings(model="ridge", alpha=1.0)),
    ):
        told = [(entry.column, entry.value) for entry in result.subgroups]
        assert sorted(told) == [
            ("race", "u"),
            ("race", "v"),
            ("race", "w"),
            ("sex", "f"),
            ("sex", "m"),
        ]
        for entry in result.subgroups:
            rows_of = np.array(found.by[entry.column]) == entry.value
            assert entry.count == np.count_nonzero(rows_of)
            assert entry.median_advantage == np.median(result.advantage[rows_of])


def test_several_numbers_that_become_classes_are_said(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{i % 5}" for i, (a, b) in enumerate(rng.normal(size=(100, 2)))]
    table = tmp_path / "t.csv"
    table.write_text("a,b,stage\n" + "\n".join(rows) + "\n")
    words = ["audit", str(table), "--target", "stage", "--model", "logistic", "--set", "C=0.1"]
    assert main([*words, "--run-dir", str(tmp_path / "one")]) == 0
    told = capsys.readouterr().err
    assert "taken as 5 classes" in told
    # Who says it is not told.
    said = [*words, "--task", "classification", "--run-dir", str(tmp_path / "two")]
    assert main(said) == 0
    assert "taken as 5 classes" not in capsys.readouterr().err
