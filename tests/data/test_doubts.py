"""Data that make an audit reassuring without an error are warned of, and ordinary data are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import leakscope
from leakscope import data
from leakscope.cli import main
from leakscope.data.doubts import array_doubts, doubts


def people(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(50, 10, n).round(3), "dose": rng.gamma(2.0, 1.0, n)})
    return frame.assign(cost=frame["age"] * 0.1 + rng.normal(size=n))


def told(frame: pd.DataFrame, **options: object) -> tuple[str, ...]:
    return doubts(data.from_frame(frame, **{"target": "cost", **options}))  # type: ignore[arg-type]


def test_ordinary_data_are_not_doubted() -> None:
    assert told(people()) == ()
    doubted = {name: doubts(data.read_example(name)) for name in data.EXAMPLES}
    # Two flowers of iris are copies of one another.
    assert doubted.pop("iris")[0].startswith("2 of 150 records are exact copies")
    assert not any(doubted.values())


def test_five_copies_of_each_row() -> None:
    frame = pd.concat([people(20)] * 5, ignore_index=True)
    (sentence,) = told(frame)
    assert sentence.startswith("100 of 100 records are exact copies of another record's")
    assert sentence.endswith("remove them, or say whose each record is.")


def test_copies_within_a_group_leave_together() -> None:
    frame = pd.concat([people(20).assign(person=range(20))] * 5, ignore_index=True)
    assert told(frame, group_column="person") == ()
    across = frame.assign(person=range(100))
    assert told(across, group_column="person")[0].startswith("100 of 100 records")


def test_a_few_copies_are_told_too() -> None:
    """For each of them decide refuses, so that the audit says it first."""
    frame = pd.concat([people(100), people(100)[:2]], ignore_index=True)
    assert told(frame)[0].startswith("4 of 102 records are exact copies")


@pytest.mark.parametrize("scale", [1.0, -2.5])
def test_the_target_among_the_features(scale: float) -> None:
    frame = people().assign(bill=lambda f: f["cost"] * scale + 7.0)
    (sentence,) = told(frame)
    assert sentence.startswith("the feature 'bill' repeats the target")


@pytest.mark.parametrize("classes", [2, 4])
def test_the_class_among_the_features(classes: int) -> None:
    names = np.array(["a", "b", "c", "d"])[np.arange(60) % classes]
    as_code = people().assign(cost=names, code=np.arange(60) % classes)
    as_text = people().assign(cost=names, word=[f"class {name}" for name in names])
    for frame, name in ((as_code, "'code'"), (as_text, "'word=class a'")):
        (sentence,) = told(frame, task="classification")
        assert sentence.startswith(f"the feature {name} repeats the target")


def test_an_id_among_the_features() -> None:
    shuffled = np.random.default_rng(1).permutation(60) + 1001
    for numbers in (range(60), shuffled):
        (sentence,) = told(people().assign(patient=numbers))
        assert sentence.startswith("the feature 'patient' numbers the records, as an id does")


def test_classes_taken_as_a_quantity() -> None:
    frame = people().assign(cost=np.arange(60) % 5 + 1)
    (sentence,) = told(frame)
    assert "holds 5 whole numbers only (1, 2, 3, 4, 5)" in sentence
    assert sentence.endswith("give them as text, or fit a classifier.")
    assert told(frame, task="classification") == ()
    # Thirty classes of Location-30 were taken as a quantity without a word.
    (sentence,) = told(people(300).assign(cost=np.arange(300) % 30))
    assert "holds 30 whole numbers only (0 to 29)" in sentence
    for whole in (18 + np.arange(300) % 30, np.arange(300) % 29 * 2, np.arange(300) % 120):
        assert told(people(300).assign(cost=whole)) == ()


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = people().assign(cost=np.arange(60) % 5 + 1, patient=range(60))
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = ["audit", str(tmp_path / "data.csv"), "--target", "cost"]
    assert main([*command, "--run-dir", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "warning: the feature 'patient' numbers the records" in said
    assert "warning: the target 'cost' holds 5 whole numbers only" in said


def arrays(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    frame = people(n)
    return frame[["age", "dose"]].to_numpy(), frame["cost"].to_numpy()


DOUBTFUL = {
    "copies": lambda X, y: (np.tile(X[:12], (5, 1)), np.tile(y[:12], 5)),
    "the target": lambda X, y: (np.column_stack([X, 3.0 - 2.0 * y]), y),
    "a count": lambda X, y: (np.column_stack([X, np.arange(len(X))]), y),
    "classes": lambda X, y: (X, 1.0 + np.arange(len(X)) % 5),
}
SAID = {
    "copies": "60 of 60 records are exact copies",
    "the target": "the feature '2' repeats the target",
    "a count": "the feature '2' numbers the records",
    "classes": "holds 5 whole numbers only",
}


# Data that are doubtful in these ways also have records that one other leads, which is said too.
@pytest.mark.filterwarnings("ignore:For .* a few others", "ignore:Refits contradict")
@pytest.mark.filterwarnings("ignore:For .* the spread depends on the size")
@pytest.mark.parametrize("how", ["stand-in", "process", "model"])
@pytest.mark.parametrize("doubt", list(DOUBTFUL))
def test_arrays_are_doubted_as_files_are(doubt: str, how: str) -> None:
    """``leakscope.audit(X, y)`` said nothing of any of them."""
    X, y = DOUBTFUL[doubt](*arrays())
    more: dict[str, object] = {
        "stand-in": {},
        "process": {"kernel": "rbf", "sensitivity": False},
        "model": {"model": Ridge().fit(X, y)},
    }[how]
    with pytest.warns(UserWarning, match=SAID[doubt]) as said:
        result = leakscope.audit(X, y, **more)
    (sentence,) = [text for text in result.warnings if SAID[doubt] in text]
    assert "--" not in sentence
    assert sentence in [str(warning.message) for warning in said]


def test_ordinary_arrays_are_not_doubted() -> None:
    X, y = arrays(200)
    for more in ({}, {"kernel": "rbf", "sensitivity": False}, {"model": Ridge().fit(X, y)}):
        assert leakscope.audit(X, y, **more).warnings == []
    signs = np.where(y > np.median(y), 1.0, -1.0)
    assert leakscope.audit(X, signs, kernel="rbf", sensitivity=False).warnings == []
    people = np.repeat(np.arange(12), 5)
    X, y = arrays()
    copies = np.repeat(X[:12], 5, axis=0), np.repeat(y[:12], 5)
    found = leakscope.audit(*copies, kernel="rbf", sensitivity=False, groups=people)
    assert found.warnings == []


def test_a_column_of_a_frame_is_named():
    """It was the feature '0'."""
    values = np.random.default_rng(0).normal(size=(30, 2))
    frame = pd.DataFrame(values, columns=["age", "cost"])
    (told,) = array_doubts(frame, 3.0 * values[:, 1])
    assert "'cost' repeats the target" in told
