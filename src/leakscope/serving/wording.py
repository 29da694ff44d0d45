"""What the page says: stages in plain words, fields of the form, and errors for who sees a form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel

from leakscope.errors import InputError
from leakscope.settings.audit import AuditSettings, ModelSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.setting import described

# The fields of the form by the names of their settings: what stands over each.
LABELS = {
    "target": "What is predicted",
    "task": "It is",
    "id_column": "Each record’s own id",
    "group_column": "Several rows are one person",
    "by": "Compare subgroups",
    "missing": "Empty values",
    "na_values": "These mean empty",
    "ignore": "Columns to leave out",
    "C": "Its penalty",
    "alpha": "Its penalty",
    "kernel": "Kernel",
    "noise_variance": "Noise variance",
}

# Where the page can say it more briefly than a help page.
HINTS = {
    "C": "C, the inverse penalty; by leave-one-out where left empty",
    "alpha": "alpha; by leave-one-out where left empty",
    "kernel": "what “similar records” means",
    "noise_variance": "a number, or marginal_likelihood",
}

# What to do about an error, by the setting that it is about.
REMEDIES = {
    "missing": "choose what to do with empty values",
    "na_values": "say which signs mean empty",
    "ignore": "leave the column out, or choose it as each record’s own id",
    "target": "choose the column that is predicted",
    "task": "choose whether a number or a class is predicted, or another target",
}

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


def stage_words(stage: str) -> str:
    """A stage in plain words; one that the page does not know, by its name."""
    return STAGE_WORDS.get(stage, stage.capitalize())


def in_page_words(said: InputError | str) -> str:
    """An error or a warning for somebody who sees a form.

    What an error's fields say is worded here; elsewhere an option becomes the field that it is.

    Examples
    --------
    >>> from leakscope.errors import InputError
    >>> from leakscope.serving.wording import in_page_words
    >>> in_page_words(InputError("column 'a' is empty in row 3", remedy="give --missing drop",
    ...                          option="missing"))
    "column 'a' is empty in row 3; choose what to do with empty values."
    >>> in_page_words("column 'a' is constant; leave it out with --ignore.")
    "column 'a' is constant; leave it out with “Columns to leave out”."
    """
    if isinstance(said, InputError) and said.remedy is not None and said.option in REMEDIES:
        return f"{said.what}; {REMEDIES[said.option]}."
    fields = {_option(name): f"“{label}”" for name, label in LABELS.items()}
    return re.sub(r"--[\w-]+", lambda found: fields.get(found.group(), found.group()), str(said))


def _model_of(name: str) -> type[BaseModel]:
    """The settings that have a field of the form."""
    models = (DataSettings, AuditSettings, ModelSettings)
    return next(model for model in models if name in model.model_fields)


def _option(name: str) -> str:
    return described(_model_of(name), name).option


@dataclass(frozen=True)
class Field:
    """A field of the form for one setting: its label, what it means, and what it offers."""

    name: str
    label: str
    hint: str
    value: str
    choices: tuple[tuple[str, str], ...]
    # The models that it goes with.
    models: tuple[str, ...]


def form_fields(names: Iterable[str], models: dict[str, tuple[str, ...]]) -> list[Field]:
    """The form's fields for these settings; ``models`` says which each named model asks for.

    Examples
    --------
    >>> from leakscope.serving.wording import form_fields
    >>> form_fields(["noise_variance"], {"process": ("noise_variance",)})[0].value
    '0.01'
    """
    found = []
    for name in names:
        one = described(_model_of(name), name)
        choices = [
            (choice, f"{choice} ({words})" if words else choice)
            for choice, words in one.choices.items()
        ]
        found.append(
            Field(
                name=name,
                label=LABELS.get(name, name.replace("_", " ").capitalize()),
                hint=HINTS.get(name, in_page_words(one.text)),
                value="" if one.default is None else one.shown_default or "",
                choices=tuple(choices),
                models=tuple(model for model, asked in models.items() if name in asked),
            )
        )
    return found
