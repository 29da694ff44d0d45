"""The library's sentences in the words of the page: options become the fields they are there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel

from leakscope.settings import described

FIELDS: tuple[tuple[str, str], ...] = (
    ("give --missing drop or --missing impute", "choose what to do with empty values"),
    ("give --missing drop", "choose to drop records with empty values"),
    ("give --missing impute", "choose to fill empty values in"),
    ("name it with --id", "choose it as the id"),
    ("leave it out with --ignore", "leave it out"),
    ("leave the column out with --ignore", "leave the column out"),
    ("Name it with --target", "Choose it"),
    ("give --task classification", "choose the task “a class”"),
    ("take the approximate route nystrom", "use the command line with --route nystrom"),
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

# Where the page can say it more briefly than a help page.
HINTS = {
    "kernel": "what “similar records” means",
    "noise_variance": "a number, or marginal_likelihood",
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


# The stages of jobs in plain words.
STAGE_WORDS: dict[str, str] = {
    "read": "Reading the data",
    "check": "Checking and scaling it",
    "fit": "Fitting the model",
    "laws": "Working out its answers with and without each record",
    "kernel": "Comparing every record with every other",
    "factorise": "Working out the model with and without each record",
    "sensitivity": "Trying other noise levels",
    "conditions": "Checking what is assumed",
    "measure": "Measuring what an attacker gains",
    "compare": "Comparing with other kernels",
    "explain": "Finding out why the most exposed are exposed",
    "report": "Writing the report",
    "option": "Trying ten times the penalty",
    "verify": "Verifying: drawing or fitting anew",
    "set beside": "Comparing with the other audit",
    "noise": "Preparing the noise slider",
    "advise": "Looking for changes that meet the target",
}


@dataclass(frozen=True)
class Field:
    """A field of the form for one setting: its label, what it means, and what it offers."""

    name: str
    label: str
    hint: str
    value: str
    choices: tuple[tuple[str, str], ...]


def form_fields(model: type[BaseModel], names: tuple[str, ...]) -> list[Field]:
    """The form's fields for these settings; the model has their choices and defaults.

    Examples
    --------
    >>> from leakscope.serving.wording import form_fields
    >>> from leakscope.settings import AuditSettings
    >>> form_fields(AuditSettings, ("noise_variance",))[0].value
    '0.01'
    """
    found = []
    for name in names:
        one = described(model, name)
        label = name.replace("_", " ")
        choices = [
            (choice, f"{choice} ({words})" if words else choice)
            for choice, words in one.choices.items()
        ]
        found.append(
            Field(
                name=name,
                label=label[:1].upper() + label[1:],
                hint=HINTS.get(name, in_page_words(one.text)),
                value=one.shown_default or "",
                choices=tuple(choices),
            )
        )
    return found
