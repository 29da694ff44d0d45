"""Numbers and dates as text are refused with what to do; words stay categories."""

from __future__ import annotations

from pathlib import Path

import pytest

from leakscope import InputError, data

QUANTITIES = [
    "2024-03-{:02d}", "2024-03-01T10:{:02d}:00Z", "{:d} Mar 2024", "{:02d}/03/2024", "10:{:02d}",
    "{:d},5", "1,{:03d}.5", "{:d}%", "${:d}", "{:d} €", "1_{:03d}", "1 {:03d}", "{:d} kg",
    "{:d} mg/dl", "<{:d}", "({:d})",
]  # fmt: skip


def table(folder: Path, values: list[str]) -> Path:
    rows = [values[i % len(values)] for i in range(24)]
    lines = [f'{i},"{row}",{i % 5}' for i, row in enumerate(rows)]
    path = folder / "data.csv"
    path.write_text("x,q,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("form", QUANTITIES)
def test_a_column_of_quantities_is_no_category(form: str, tmp_path: Path) -> None:
    path = table(tmp_path, [form.format(number) for number in range(1, 15)])
    for target in ("y", "q"):
        with pytest.raises(InputError, match="in row 0") as refused:
            data.read_dataset(path, target=target)
        where = refused.value.where
        assert where is not None
        assert where.column == "q"
    assert data.read_dataset(path, target="y", ignore=["q"]).feature_names == ("x",)


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
