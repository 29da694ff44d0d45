"""How a dataset is read: which column is what, and what to do about empty values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.errors import InputError
from leakscope.settings.setting import Count, Natural, key_values, setting, validated

Task = Literal["regression", "classification"]
Missing = Literal["error", "drop", "impute"]
Decimal = Literal[".", ","]


class DataSettings(BaseModel):
    """How a dataset is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str | None = setting(
        None,
        "Target column, by name or position (-1: the last).",
        metavar="COLUMN",
    )
    id_column: str | None = setting(
        None,
        "Column of each record's own id.",
        metavar="COLUMN",
        option="--id",
        unset="row numbers",
    )
    task: Task | None = setting(
        None,
        "regression or classification.",
        metavar="TASK",
        unset="by the target",
    )
    missing: Missing = setting(
        "error",
        "Empty values: error, drop (the record) or impute.",
        metavar="HOW",
    )
    ignore: tuple[str, ...] = setting((), "Column to exclude; repeatable.", metavar="COLUMN")
    group_column: str | None = setting(
        None,
        "Column of the person or group: its rows leave together.",
        metavar="COLUMN",
        option="--group",
    )
    by: tuple[str, ...] = setting(
        (),
        "Exposure by the values of this column; repeatable.",
        metavar="COLUMN",
    )
    header: bool = setting(True, "Whether the first line of text names columns.")
    na_values: tuple[str, ...] = setting(
        (),
        "Text that means empty, such as '?'; repeatable.",
        metavar="TEXT",
    )
    decimal: Decimal = setting(".", "Decimal sign of a text file: . or ,", metavar="SIGN")
    sample: Count | None = setting(
        None,
        "Audit a random sample of so many records.",
    )
    sample_seed: Natural = setting(0, "Seed of --sample.", metavar="NUMBER")


DATA_DEFAULTS = DataSettings()

# Of a file's own form, which --read takes; the other settings are options of their own.
READ_KEYS = ("missing", "header", "na_values", "decimal", "sample", "sample_seed")


def with_read(data: DataSettings, texts: Sequence[str] | None) -> DataSettings:
    """The data's settings with those of ``--read``."""
    given = key_values(texts, "--read")
    for key in given:
        if key not in READ_KEYS:
            raise InputError(f"--read takes {', '.join(READ_KEYS)}, but it is {key!r}.")
    if isinstance(given.get("na_values"), str):
        given["na_values"] = [given["na_values"]]
    return validated(DataSettings, **data.model_dump(exclude_unset=True), **given)
