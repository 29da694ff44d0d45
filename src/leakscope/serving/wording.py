"""The library's sentences in the words of the page: options become the fields they are there."""

from __future__ import annotations

import re

FIELDS: tuple[tuple[str, str], ...] = (
    ("give --missing drop or --missing impute", "choose what to do with empty values"),
    ("give --missing drop", "choose to drop records with empty values"),
    ("give --missing impute", "choose to fill empty values in"),
    ("name it with --id", "choose it as the id"),
    ("leave it out with --ignore", "leave it out"),
    ("leave the column out with --ignore", "leave the column out"),
    ("Name it with --target", "Choose it"),
    ("give --task classification", "choose the task “a class”"),
    ("take the approximate route fitc", "use the command line with --route fitc"),
)

PLAIN = {
    "--missing": "empty values",
    "--ignore": "the columns to leave out",
    "--id": "the id",
    "--target": "the target",
    "--task": "the task",
    "--group": "the group",
    "--by": "the subgroups",
    "--noise-variance": "the noise variance",
    "--kernel": "the kernel",
}


def in_page_words(sentence: str) -> str:
    """A sentence of the command line, for somebody who sees a form.

    Examples
    --------
    >>> from leakscope.serving.wording import in_page_words
    >>> in_page_words("column 'a' is empty in row 3; give --missing drop or --missing impute.")
    "column 'a' is empty in row 3; choose what to do with empty values."
    """
    for said, meant in FIELDS:
        sentence = sentence.replace(said, meant)
    return re.sub(r"--[a-z-]+", lambda option: PLAIN.get(option.group(), option.group()), sentence)


# The stages of a job in order and in plain words; a test compares them with those of the audit,
# which the server's own process does not import.
STAGE_WORDS: dict[str, str] = {
    "read": "Reading the data",
    "check": "Checking and scaling it",
    "kernel": "Comparing every record with every other",
    "factorise": "Working out the model with and without each record",
    "sensitivity": "Trying other noise levels",
    "conditions": "Checking what is assumed",
    "measure": "Measuring what an attacker gains",
    "compare": "Comparing with other kernels",
    "explain": "Finding out why the most exposed are exposed",
    "report": "Writing the report",
    "noise": "Preparing the noise slider",
}
