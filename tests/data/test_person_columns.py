"""Which columns look like a person's: names, labels of people, and never a measurement."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from leakscope.data.person_columns import alikeness, is_person_name, person_columns


def persons(table: pd.DataFrame) -> tuple[str, ...]:
    table = table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)
    return person_columns(table, list(table.columns), list(table.columns))


def seen_often(
    key: np.random.Generator, people: int = 200, most: int = 5, within: float = 0.3
) -> pd.DataFrame:
    """Rows of people in no order: five numbers, a class of the person, and ``place`` of each."""
    who = np.repeat(np.arange(people), key.integers(1, most + 1, people))
    who = who[key.permutation(len(who))]
    numbers = key.normal(size=(people, 5))[who] + within * key.normal(size=(len(who), 5))
    return pd.DataFrame(numbers, columns=list("abcde")).assign(
        kind=np.array(["no", "yes"])[key.integers(0, 2, people)][who], place=who
    )


@pytest.mark.parametrize("people", [40, 200])
@pytest.mark.parametrize(
    "named",
    [
        lambda who, key: who,
        lambda who, key: key.permutation(10**6)[: who.max() + 1][who],
        lambda who, key: np.where(who == 3, np.nan, who),
        lambda who, key: [f"K{unit}" for unit in who],
    ],
)
def test_a_column_that_tells_people_apart(people: int, named: Any) -> None:
    key = np.random.default_rng(people)
    table = seen_often(key, people)
    table["place"] = named(table["place"].to_numpy(), key)
    assert persons(table) == ("place",)


@pytest.mark.parametrize("seed", range(20))
def test_measurements_counts_and_codes_are_no_people(seed: int) -> None:
    key = np.random.default_rng(seed)
    n = int(key.integers(60, 1500))
    age = key.integers(18, 90, n)
    bell = np.rint(key.normal(120.0, 15.0, n))
    table = pd.DataFrame(
        {
            "age": age,
            "pressure": bell.astype(int),
            "visits": key.poisson(20, n),
            "days": key.geometric(0.05, n),
            "salary": 100 * key.integers(5, 60, n),
            "rounded": np.round(key.normal(size=n), 1),
            "ward": key.choice(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), n),
            "dose": 0.05 * age + key.normal(size=n),
            "rate": np.sin(bell / 7.0) + key.normal(size=n),
        }
    )
    assert persons(table) == ()


def test_public_tables_have_no_people() -> None:
    for name in ("iris", "wine", "breast_cancer", "diabetes", "digits"):
        table = getattr(datasets, f"load_{name}")(as_frame=True).frame
        assert persons(table) == (), name
    table = datasets.load_diabetes(as_frame=True, scaled=False).frame
    assert persons(table) == ()


@pytest.mark.parametrize(
    ("name", "personal"),
    [
        *((name, True) for name in ("patient", "Patient_ID", "patientId", "study.subject_no")),
        *((name, True) for name in ("family", "household id", "MRN", "id", "customer-key")),
        *((name, False) for name in ("patients", "patient_age", "household_size", "n_users")),
        *((name, False) for name in ("impatient", "age", "idle", "valid", "number", "user_rating")),
    ],
)
def test_names(name: str, personal: bool) -> None:
    assert is_person_name(name) is personal
    table = pd.DataFrame({"age": np.arange(30.0), name: np.repeat(np.arange(15), 2)})
    assert (name in persons(table)) is personal
    # Where no value repeats, every row is a person of its own.
    assert persons(table.assign(**{name: np.arange(30)})) == ()


def test_a_name_on_a_kind_or_a_count_names_nobody() -> None:
    key = np.random.default_rng(0)
    table = pd.DataFrame({"x": key.normal(size=300), "household": key.integers(1, 7, 300)})
    assert persons(table) == ()
    assert persons(table.rename(columns={"household": "household_id"})) == ("household_id",)
    assert persons(table.assign(household=key.integers(0, 2, 300) == 1)) == ()


def test_text_that_cannot_be_a_feature_counts_without_likeness() -> None:
    key = np.random.default_rng(0)
    table = pd.DataFrame({"x": key.normal(size=300), "k": [f"w{i % 60}" for i in range(300)]})
    assert persons(table) == ("k",)
    dates = pd.date_range("2024-01-01", periods=60).astype(str)
    assert persons(table.assign(k=[dates[i % 60] for i in range(300)])) == ()


def test_alikeness_is_that_of_all_pairs() -> None:
    key = np.random.default_rng(1)
    codes = key.integers(-1, 40, 200)
    others = key.normal(size=(200, 3)) + np.sin(codes)[:, None]
    rows = np.bincount(codes[codes >= 0], minlength=40)
    values = [v for v in range(40) if 2 <= rows[v] <= 20]

    def apart(v: int, w: int) -> Any:
        squares = ((others[codes == v][:, None] - others[codes == w][None]) ** 2).sum(axis=2)
        return squares[np.triu_indices(len(squares), 1)].mean() if v == w else squares.mean()

    freedom = [rows[v] - 1 for v in values]
    within = np.average([apart(v, v) for v in values], weights=freedom)
    between = np.average(
        [apart(v, w) for v, w in pairwise(values)],
        weights=[a + b for a, b in pairwise(freedom)],
    )
    assert alikeness(codes, others) == pytest.approx(within / between, rel=1e-12)
