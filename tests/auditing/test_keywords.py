"""Every keyword of an audit beside a Dataset, and beside settings: honoured, or refused."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import leakscope
from leakscope import data, kernels
from leakscope.errors import InputError
from leakscope.settings.audit import AuditSettings, ModelSettings, TrainingSettings

# What else is said of so small data is of no account here.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RECORDS, REFUSED = 64, "refused:"
RNG = np.random.default_rng(39)
X = RNG.normal(size=(RECORDS, 3)).round(2)
Y = X @ [1.0, -1.0, 0.3] + RNG.normal(size=RECORDS)
FRAME = pd.DataFrame(X, columns=["0", "1", "2"]).assign(y=Y)
KEYWORDS = tuple(name for name in inspect.signature(leakscope.audit).parameters if name != "X")
WHOLE: dict[str, type[BaseModel]] = {
    "settings": AuditSettings,
    "chosen": ModelSettings,
    "training": TrainingSettings,
}


class Heard:
    """A callback that counts how often it is called."""

    calls = 0

    def __call__(self, *given: Any, **named: Any) -> None:
        self.calls += 1


PROCESS = {"noise_variance": 0.1, "sensitivity": False}
RIDGE, TREE = {"model": "ridge"}, {"train": DecisionTreeRegressor(max_depth=3), "models": 4}
SECRET = {"model": "ridge", "secret": "0"}
# A value of each keyword, beside what it needs.
VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    "y": (-Y, {}),
    "model": (Ridge(alpha=70.0), {}),
    "train": (TREE["train"], {"models": 4}),
    "task": ("classification", TREE),
    "models": (6, {"train": TREE["train"], "models": 4}),
    "minutes": (0.001, TREE),
    "keep": ("kept", TREE),
    "kernel": ("matern", PROCESS),
    "noise_variance": (0.5, {"sensitivity": False}),
    "fit_kernel_scale": (True, {"noise_variance": "leave_one_out", "sensitivity": False}),
    "sensitivity": (False, {"noise_variance": 0.1}),
    "route": ("nystrom", PROCESS),
    "inducing": (5, {**PROCESS, "route": "nystrom"}),
    "error": (1e-9, {**PROCESS, "route": "nystrom"}),
    "question": ("population", RIDGE),
    "fraction": (0.25, RIDGE),
    "observes": ("prediction", RIDGE),
    "weight_decay": (0.1, RIDGE),
    "secret": ("0", {"model": "ridge"}),
    "secret_prior": ("shares", {**SECRET, "secret_within": 0.5}),
    "secret_within": (0.2, {**SECRET, "secret_within": 0.5}),
    "secret_values": ((-1.0, 0.0, 1.0), SECRET),
    "sample_weight": (np.linspace(0.5, 1.5, RECORDS), {"model": Ridge(alpha=70.0)}),
    "record_ids": ([f"r{row}" for row in range(RECORDS)], RIDGE),
    "groups": (np.arange(RECORDS) // 2, RIDGE),
    "seed": (5, TREE),
    "fpr": (0.05, RIDGE),
    "confidence": (0.9, RIDGE),
    "measures": ({"twice": lambda pair: 2.0 * leakscope.measures.advantage(pair)}, RIDGE),
    "explain": (3, PROCESS),
    "settings": (AuditSettings(noise_variance=0.5, sensitivity=False), {}),
    "chosen": (ModelSettings(model="ridge", alpha=70.0), {}),
    "training": (TrainingSettings(models=6), {"train": TREE["train"]}),
    "on_stage": (Heard(), RIDGE),
    "on_progress": (Heard(), TREE),
}  # fmt: skip


@cache
def dataset() -> data.Dataset:
    return data.from_frame(FRAME, target="y")


def outcome(door: str, **given: Any) -> str:
    """All that an audit says and does, or the sentence that refuses it."""
    callbacks = [value for value in given.values() if isinstance(value, Heard)]
    for callback in callbacks:
        callback.calls = 0
    try:
        if door == "settings":
            given = {"y": Y, **given}
            found = leakscope.audit(X, settings=AuditSettings(), **given)
        else:
            found = leakscope.audit(dataset(), **given)
    except InputError as error:
        return f"{REFUSED} {error}"
    told = found.model_dump(mode="json", exclude={"timing", "created"})
    return f"{told} {found.to_frame().to_csv()} {any(heard.calls for heard in callbacks)}"


@pytest.mark.parametrize("name", KEYWORDS)
@pytest.mark.parametrize("door", ["dataset", "settings"])
def test_no_keyword_is_ignored(
    door: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == door:
        return
    monkeypatch.chdir(tmp_path)
    # A keyword without a value here fails: say what it is to change.
    value, base = VALUES[name]
    found = outcome(door, **{**base, name: value})
    without = outcome(door, **base)
    # That the same is said twice makes a difference count.
    assert without == outcome(door, **base)
    assert found != without
    if found.startswith(REFUSED):
        assert name.replace("_", " ") in found.replace("-", " ").replace("_", " ")


BOTH = [
    (whole, name)
    for whole, settings in WHOLE.items()
    for name in KEYWORDS
    if name in settings.model_fields
]


@pytest.mark.parametrize(("whole", "name"), BOTH)
def test_what_stands_in_settings_and_beside_them_is_refused(whole: str, name: str) -> None:
    value, _ = VALUES[name]
    inside = {"model": "ridge", "train": "builtins:print", "secret": "b"}.get(name, value)
    beside = {name: value}
    with pytest.raises(InputError, match=f"{name} stands in {whole}"):
        leakscope.audit(X, Y, **{whole: WHOLE[whole](**{name: inside})}, **beside)


def test_a_kernel_object_stands_beside_no_dataset_and_no_named_kernel() -> None:
    for given in (
        {"X": dataset()},
        {"X": X, "y": Y, "settings": AuditSettings(kernel="matern")},
        {"X": X, "y": Y, "settings": AuditSettings(length_scale=2.0)},
        {"X": X, "y": Y, "model": "ridge"},
    ):
        with pytest.raises(InputError, match=r"kernel|length_scale"):
            leakscope.audit(**given, kernel=kernels.rbf(2.0))


def test_settings_of_a_kernel_and_of_scaling_are_honoured_with_arrays() -> None:
    settings = AuditSettings(kernel="matern", smoothness=2.5, sensitivity=False)
    found = leakscope.audit(X, Y, settings=settings)
    assert found.details.kernel["nu"] == 2.5
    with pytest.raises(InputError, match="scaling"):
        leakscope.audit(X, Y, settings=AuditSettings(scaling="standard", kernel="rbf"))


def mixed(row: int, name: int) -> Any:
    """As ``pandas.read_csv`` reads a column in chunks: text, whole numbers, and floats by a gap."""
    return (name, str(name), float(name), f"{name}.0")[row % 4]


def warned(found: Any) -> list[str]:
    """Whose names were mixed, as the warnings of an audit have it."""
    return [text.split(":")[0] for text in found.warnings if "text are mixed" in text]


PEOPLE = [row // 4 for row in range(RECORDS)]
MIXED = [mixed(row, name) for row, name in enumerate(PEOPLE)]


@pytest.mark.parametrize("kept", [{"model": "ridge"}, PROCESS, TREE, {"model": Ridge(alpha=7.0)}])
def test_a_person_is_one_whatever_the_type_of_the_name(kept: dict[str, Any]) -> None:
    # More people than a few models need.
    pairs = [mixed(row, row // 2) for row in range(RECORDS)]
    found = leakscope.audit(X, Y, groups=pairs, **kept)
    assert warned(found) == ["groups"]
    assert sorted(map(int, found.record_ids)) == list(range(RECORDS // 2))
    plain = leakscope.audit(X, Y, groups=[row // 2 for row in range(RECORDS)], **kept)
    assert warned(plain) == []
    np.testing.assert_array_equal(found.advantage, plain.advantage)


def test_at_the_doors_of_frames_and_datasets() -> None:
    frame = FRAME.assign(who=pd.Series(MIXED, dtype=object))
    found = leakscope.audit_frame(frame, target="y", group_column="who")
    assert warned(found) == ["group"]
    assert len(found.record_ids) == RECORDS // 4
    by_hand = dataset().__class__(**{**vars(dataset()), "group": tuple(MIXED)})
    found = leakscope.audit(by_hand)
    assert warned(found) == ["groups"]
    assert len(found.record_ids) == RECORDS // 4


def test_ids_that_are_one_by_their_text_are_refused() -> None:
    ids: list[Any] = [mixed(row, row) for row in range(RECORDS)]
    found = leakscope.audit(X, Y, model="ridge", record_ids=ids)
    assert warned(found) == ["record_ids"]
    assert found.record_ids == tuple(map(str, range(RECORDS)))
    ids[9] = "7"
    for given in (
        {"X": X, "record_ids": ids},
        {"X": pd.DataFrame(X, index=ids)},
    ):
        with pytest.raises(InputError, match="'7' twice, in rows 7 and 9"):
            leakscope.audit(**given, y=Y, model="ridge")
    with pytest.raises(InputError, match="'7' twice, in rows 7 and 9"):
        leakscope.audit_frame(
            FRAME.assign(name=pd.Series(ids, dtype=object)), target="y", id_column="name"
        )


def test_whole_numbers_that_a_gap_made_floats_are_whole_numbers() -> None:
    found = leakscope.audit(X, Y, model="ridge", record_ids=np.arange(RECORDS, dtype=float))
    assert found.record_ids == tuple(range(RECORDS))
    with pytest.raises(InputError, match="no name for 1 records"):
        leakscope.audit(X, Y, model="ridge", record_ids=[float("nan"), *range(1, RECORDS)])
