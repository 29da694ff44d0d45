"""The settings of ``leakscope decide``: what a person declares, and the limits that hold."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leakscope.errors import InputError
from leakscope.settings.setting import Count, Probability, setting

Attacker = Literal["outsider", "pool", "insider"]

# The question and the fraction of an audit against each attacker, and who it is.
ATTACKERS: dict[str, tuple[str, float, str]] = {
    "outsider": (
        "population",
        1.0,
        "knows none of the other records; they are fresh, and as many as were trained on",
    ),
    "pool": (
        "pool",
        0.5,
        "knows the pool, of which each other record is in with probability one half, as LiRA "
        "asks: the numbers are for a training set of half the size",
    ),
    "insider": ("pool", 0.95, "knows all other records but for one in twenty"),
}
ReleaseAccess = Literal["black-box", "weights"]
Verdict = Literal["approved", "approved with conditions", "refused"]

# A limit of 1 allows everything, and is no limit.
Limit = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]
Words = Annotated[str, Field(min_length=1, max_length=2000)]


class Thresholds(BaseModel):
    """What is acceptable, by the same names and with the same meaning for every verb.

    Examples
    --------
    >>> from leakscope.settings.decide import Thresholds
    >>> Thresholds(threshold_tpr=0.01).prior
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold_advantage: Limit | None = setting(None, "No record's advantage may be above this.")
    threshold_tpr: Limit | None = setting(None, "No record's TPR at 0.1% FPR may be above this.")
    threshold_ppv: Limit | None = setting(
        None,
        "Accusations at 0.1% FPR no more often right than this; needs --prior.",
    )
    prior: Probability | None = setting(
        None,
        "Share of members among those asked about.",
    )


class DecideOptions(Thresholds):
    """What is given on the command line; all else stands in the file of ``--declare``.

    Examples
    --------
    >>> from leakscope.settings.decide import DecideOptions
    >>> DecideOptions(threshold_tpr=0.01).decision
    """

    each_row: Words | None = setting(
        None,
        "That each row is a person of its own, though a column of names or copies of rows speak "
        "against it, and how you know.",
        metavar="TEXT",
    )
    decision: Verdict | None = setting(
        None,
        "Fill in the decision: approved, approved with conditions, or refused.",
        metavar="WORD",
        unset="blank, to be signed",
    )


class DecideSettings(DecideOptions):
    """What is declared about a release; a field that is left out reads "not stated".

    Examples
    --------
    >>> from leakscope.settings.decide import DecideSettings
    >>> DecideSettings(threshold_tpr=0.01).recipient
    """

    attacker: Attacker | None = setting(
        None,
        "Whom the thresholds are for: outsider (knows no other record), pool (the default audit's, "
        "as LiRA asks) or insider (knows all others but for one in twenty); the audit must be "
        "against that one.",
    )
    reason: Words | None = setting(None, "Why these thresholds.")
    release: Words | None = setting(None, "What is released, and for what.")
    recipient: Words | None = setting(None, "Who receives it.")
    access: ReleaseAccess | None = setting(
        None, "What they get: black-box (answers only) or weights."
    )
    queries: Count | None = setting(
        None,
        "How many questions each recipient may ask; for the record, since the numbers assume one "
        "question about each person.",
    )
    because: Words | None = setting(None, "Why it was decided so.")
    conditions: Words | None = setting(None, "The conditions of an approval.")
    approver: Words | None = setting(None, "Who decides.")
    expires: date | None = setting(None, "Until when the decision holds, such as 2027-01-31.")


def declaration_template() -> str:
    """A TOML file with every field that can be declared, commented out, and what it means.

    Examples
    --------
    >>> from leakscope.settings.decide import declaration_template
    >>> declaration_template().splitlines()[:2]
    ["# No record's advantage may be above this.", '# threshold_advantage = ']
    """
    fields = DecideSettings.model_fields.items()
    return "".join(f"# {field.description}\n# {name} = \n\n" for name, field in fields)


def read_declaration(path: Path) -> dict[str, Any]:
    """The fields that a TOML file declares, by name."""
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{path} is no file of declarations ({error}); leakscope decide --template writes one."
        ) from None
    unknown = sorted(set(declared) - set(DecideSettings.model_fields))
    if unknown:
        raise InputError(
            f"{path} declares {unknown[0]!r}, which is no field of a decision; leakscope decide "
            "--template names all fields."
        )
    return declared


DECIDE_DEFAULTS = DecideSettings()
