"""How a dataset is read: which column is what, and what to do about empty values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from leakscope.settings.setting import Count, Natural, setting

Task = Literal["regression", "classification"]
Missing = Literal["error", "drop", "impute"]
Decimal = Literal[".", ","]


class DataSettings(BaseModel):
    """How a dataset is read.

    Examples
    --------
    >>> from leakscope.settings.data import DataSettings
    >>> DataSettings(target="cost").missing
    'error'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str | None = setting(
        None,
        "Target column, by name or position (0 is the first, -1 the last).",
        metavar="COLUMN",
    )
    id_column: str | None = setting(
        None,
        "Column with each record's own id.",
        metavar="COLUMN",
        option="--id",
        unset="row numbers from 0",
    )
    task: Task | None = setting(
        None,
        "regression or classification.",
        metavar="TASK",
        unset="the example's own; for FILE regression, but classification where the target is text "
        "or a Hugging Face class label",
    )
    split: str | None = setting(None, "Split of a Hugging Face dataset that has several.")
    missing: Missing = setting(
        "error",
        "Empty values: error; drop such records; impute the median or most frequent value.",
        metavar="HOW",
    )
    ignore: tuple[str, ...] = setting((), "Column to exclude; repeatable.", metavar="COLUMN")
    group_column: str | None = setting(
        None,
        "Column of the group, such as the person: all rows with the same value leave together.  "
        "It is not a feature.",
        metavar="COLUMN",
        option="--group",
    )
    by: tuple[str, ...] = setting(
        (),
        "Show exposure by the values of this column; repeatable.  It stays a feature, unless it is "
        "the target or in --ignore.",
        metavar="COLUMN",
    )
    header: bool = setting(
        True, "Whether the first line of a text file names the columns; without, x0, x1 and so on."
    )
    na_values: tuple[str, ...] = setting(
        (),
        "Text that means empty, such as '?', beside nothing at all and NA; repeatable.",
        metavar="TEXT",
    )
    decimal: Decimal = setting(
        ".", "The decimal sign of a text file: . or , (1.5 or 1,5).", metavar="SIGN"
    )
    sample: Count | None = setting(
        None,
        "Audit a random sample of this many records, in which classes (or the target's tenths) "
        "have the same share as in all.",
        unset="all records",
    )
    sample_seed: Natural = setting(0, "Seed of --sample.", metavar="NUMBER")


DATA_DEFAULTS = DataSettings()
