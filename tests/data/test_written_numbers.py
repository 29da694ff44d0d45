"""Numbers and dates as text are refused with what to do; words stay categories."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope import InputError, data

QUANTITIES = {
    "ISO dates": (["2024-03-01", "2024-03-02", "2023-11-30"], "dates or times"),
    "times of ISO dates": (["2024-03-01T10:00:00Z", "2024-03-02 11:30"], "dates or times"),
    "written dates": (["1 Mar 2024", "12 November 2023"], "dates or times"),
    "slashed dates": (["01/03/2024", "31/12/2023"], "dates or times"),
    "dotted dates": (["1.3.2024", "31.12.2023"], "dates or times"),
    "clock": (["10:30", "23:59:59"], "dates or times"),
    "decimal commas": (["1,5", "2,25", "3"], "numbers with commas"),
    "thousands": (["1,234.5", "2,000"], "numbers with commas"),
    "German thousands": (["1.234,5", "22.000,1"], "numbers with commas"),
    "percentages": (["5%", "12.5 %"], "percentages"),
    "money": (["$5", "$ 12.50"], "amounts of money"),
    "money after": (["5 €", "7€"], "amounts of money"),
    "hexadecimal": (["0x1f", "0x2A"], "numbers in another base"),
    "underscores": (["1_000", "20_000"], "numbers with signs between the thousands"),
    "spaces": (["1 000", "20 000"], "numbers with signs between the thousands"),
    "units": (["60 kg", "71 kg", "64.5kg"], "numbers with the unit kg"),
    "rates": (["5 mg/dl", "6 mg/dl", "7 mg/dl"], "numbers with the unit mg/dl"),
    "bounds": (["<5", ">= 10"], "bounds"),
    "brackets": (["(5)", "(12.5)"], "numbers in brackets"),
}


def table(folder: Path, values: list[str]) -> Path:
    rows = [values[i % len(values)] for i in range(24)]
    lines = [f'{i},"{row}",{i % 5}' for i, row in enumerate(rows)]
    path = folder / "data.csv"
    path.write_text("x,q,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", QUANTITIES)
def test_a_feature_of_quantities_is_no_category(kind: str, tmp_path: Path) -> None:
    values, what = QUANTITIES[kind]
    path = table(tmp_path, values)
    with pytest.raises(InputError) as refused:
        data.read_dataset(path, target="y")
    sentence = str(refused.value)
    assert f"column 'q' holds {what}" in sentence
    assert f"({values[0]!r} in row 0, rows count from 0)" in sentence
    assert "or leave the column out with --ignore." in sentence
    assert data.read_dataset(path, target="y", ignore=["q"]).feature_names == ("x",)


@pytest.mark.parametrize("kind", QUANTITIES)
def test_a_target_of_quantities_says_how_to_write_it(kind: str, tmp_path: Path) -> None:
    values, what = QUANTITIES[kind]
    with pytest.raises(InputError, match=f"column 'q' holds {what}"):
        data.read_dataset(table(tmp_path, values), target="q")


@pytest.mark.parametrize(
    "values",
    [
        ["north", "south"],
        ["40-49", "50-59", "60-69"],
        ["1st", "2nd", "3rd", "4th", "5th", "6th"],
        ["2WD", "4WD"],
        ["A1", "B2", "C3"],
        ["5A", "6A", "7B"],
        ["<HS", "HS", "BSc"],
        ["May", "June", "July"],
        ["yes (1)", "no (0)"],
        ["10th", "Bachelors", "Masters", "HS-grad"],
    ],
)
def test_words_are_categories(values: list[str], tmp_path: Path) -> None:
    found = data.read_dataset(table(tmp_path, values), target="y")
    assert found.feature_names == ("x", *(f"q={value}" for value in sorted(values)))


def test_plain_numbers_in_quotes_are_numbers(tmp_path: Path) -> None:
    found = data.read_dataset(table(tmp_path, ["1.5", " 2", "3e2"]), target="y")
    assert found.features[:3, 1].tolist() == [1.5, 2.0, 300.0]
