"""What people and programs really hand over: a sentence or a right answer, never a traceback."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import leakscope
from leakscope.cli import main
from leakscope.errors import InputError
from leakscope.fitted import from_sklearn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, 2.0] + RNG.normal(size=40)
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)


@pytest.mark.filterwarnings("ignore:For .* of the records a few others")
def test_truth_values_are_numbers() -> None:
    flags = X > 0
    found = leakscope.audit(flags, Y, model=Ridge().fit(flags, Y))
    same = leakscope.audit(flags.astype(float), Y, model=Ridge().fit(flags, Y))
    np.testing.assert_array_equal(found.advantage, same.advantage)


def test_a_penalty_in_an_array() -> None:
    found = leakscope.audit(X, Y, model=Ridge(alpha=np.array([1.0])).fit(X, Y))
    assert found.model.name == "Ridge(alpha=1)"


@pytest.mark.parametrize("rest", [{"train": LogisticRegression()}, {"kernel": "rbf"}])
def test_labels_of_two_kinds(rest: dict[str, Any]) -> None:
    mixed = np.array(["a" if i % 2 else 1 for i in range(40)], dtype=object)
    with pytest.raises(InputError, match="row 1"):
        leakscope.audit(X, mixed, **rest)
    mixed[5] = None
    with pytest.raises(InputError, match="row"):
        leakscope.audit(X, mixed, **rest)


def test_weights_of_text() -> None:
    with pytest.raises(InputError, match="sample weights are not all numbers"):
        leakscope.audit(X, Y, model=Ridge().fit(X, Y), sample_weight=["a"] * 40)


@pytest.mark.parametrize("rest", [{"model": Ridge().fit(X, Y)}, {"train": Ridge()}, {}])
def test_a_mask_is_not_dropped(rest: dict[str, Any]) -> None:
    mask = np.zeros(X.shape, dtype=bool)
    mask[7, 1] = True
    with pytest.raises(InputError, match="masked entry in row 7"):
        leakscope.audit(np.ma.masked_array(X, mask=mask), Y, **rest)


@pytest.mark.filterwarnings("ignore")
def test_a_frame_takes_the_users_own_model_and_training() -> None:
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(TABLE[["a", "b"]], Y)
    found = leakscope.audit_frame(TABLE, target="y", model=pipeline)
    same = leakscope.audit(TABLE[["a", "b"]], Y, model=pipeline)
    np.testing.assert_array_equal(found.advantage, same.advantage)
    assert leakscope.audit_frame(TABLE, target="y", model="ridge").model.type == "Ridge"
    assert leakscope.audit_frame(TABLE, target="y", train=Ridge()).details.models == 4
    classes = TABLE.assign(y=np.where(Y > 0, "ill", "well"))
    model = LogisticRegression().fit(classes[["a", "b"]], classes["y"])
    assert leakscope.audit_frame(classes, target="y", model=model).units == 40
    with pytest.raises(InputError, match="'b'"):
        leakscope.audit_frame(TABLE.rename(columns={"b": "c"}), target="y", model=pipeline)


def test_python_is_told_of_parameters() -> None:
    with pytest.raises(InputError, match=r"at least 20 groups .* there are 9") as told:
        leakscope.audit(X, Y, train=Ridge(), groups=[i % 9 for i in range(40)])
    assert "--" not in str(told.value)


def test_a_seed_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (2**32, 10**30):
        line = ["audit", "--example", "iris", "--top", "0", "--seed", str(seed)]
        assert main([*line, "--run-dir", str(seed)]) == 0


def test_blanks_tell_ids_apart(tmp_path: Path) -> None:
    rows = "".join(f'"{name}",{i},{i % 3}\n' for i, name in enumerate([" 7", "7", *range(10, 40)]))
    (tmp_path / "d.csv").write_text("id,a,y\n" + rows)
    found = leakscope.data.read_dataset(tmp_path / "d.csv", target="y", id_column="id")
    assert found.record_ids[:2] == (" 7", "7")


def test_a_column_twice_while_streaming(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [pa.array(X[:, 0]), pa.array(X[:, 1]), pa.array(Y)]
    pq.write_table(pa.table(columns, names=["a", "a", "y"]), tmp_path / "d.parquet")
    line = ["audit", str(tmp_path / "d.parquet"), "--target", "y", "--model", "ridge"]
    assert main([*line, "--run-dir", str(tmp_path / "run")]) == 2
    assert "'a'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# Model files.


def changed(model: Any, **parts: Any) -> Any:
    for name, value in parts.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    "parts",
    [
        {"alpha": "strong"},
        {"intercept_": np.array([1.0, 2.0, 3.0])},
        {"intercept_": "a"},
        {"coef_": np.array([[[1.0]]])},
        {"coef_": np.array(["a", "b"])},
        {"alpha": None},
    ],
    ids=str,
)
def test_a_model_file_that_says_anything(
    parts: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    TABLE.to_csv(tmp_path / "d.csv", index=False)
    skops.io.dump(changed(Ridge().fit(X, Y), **parts), tmp_path / "m.skops")
    line = ["audit", str(tmp_path / "d.csv"), "--target", "y", "--model", str(tmp_path / "m.skops")]
    assert main([*line, "--run-dir", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("leakscope: m.skops: ")
    assert told.count("\n") == 1


def test_a_step_that_would_make_millions_of_features() -> None:
    """Twenty kilobytes of a file asked for 7.6 GB, and were then refused."""
    wide = RNG.normal(size=(400, 10))
    steps = PolynomialFeatures(14).fit(wide[:1])
    pipeline = make_pipeline(steps, Ridge())
    pipeline.steps[-1][1].coef_, pipeline.steps[-1][1].intercept_ = np.zeros(5), 0.0
    pipeline.steps[-1][1].n_features_in_ = 5
    with pytest.raises(InputError, match="1961256 features, and Ridge was fitted on 5"):
        from_sklearn(pipeline, wide, wide[:, 0])


# Trainings.


class Verbose(Ridge):
    """An estimator whose repr is eleven lines, as boosters' are."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "Verbose(\n" + "".join(f"    parameter_{i}={i},\n" for i in range(9)) + ")"


@pytest.mark.filterwarnings("ignore")
def test_a_repr_of_many_lines_does_not_bury_the_answer() -> None:
    found = leakscope.audit(X, Y, train=Verbose())
    assert "\n" not in found.sentences[0]
    assert found.sentences[0].startswith("Examined: Verbose( parameter_0=0")
    assert len(found.sentences[0]) < 220
    assert found.sentences[0].endswith("40 records.")


@pytest.mark.filterwarnings("ignore")
def test_a_training_that_fails_in_python_names_no_folder_that_is_gone() -> None:
    calls: list[int] = []

    def fails(X: Any, y: Any, seed: int) -> Any:
        calls.append(seed)
        if len(calls) > 4:
            raise ValueError("no more")
        return Ridge().fit(X, y).predict

    with pytest.raises(InputError, match=r"fails failed \(ValueError: no more") as told:
        leakscope.audit(X, Y, train=fails)
    assert tempfile.gettempdir() not in str(told.value)
    assert "--" not in str(told.value)
