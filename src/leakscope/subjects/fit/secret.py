"""What a fitted model gives away of one column: which values there are, and who gives theirs away.

The column is changed where the records enter the model: in the table that a pipeline was given, or
among the features that leakscope made of a file.  What the fitted steps make of it is the row that
:mod:`leakscope.fitted.secret` asks the model about; the steps stay as they were fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.memory import require_memory
from leakscope.data.columns import listed
from leakscope.data.datasets import Dataset, subgroup_label
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import FittedLaws
from leakscope.fitted.problem import FittedModel
from leakscope.fitted.refits import inner_model
from leakscope.fitted.secret import (
    Codes,
    SecretChances,
    beliefs,
    named_by,
    secret_chances,
    secret_laws,
)
from leakscope.results.audit import EXPOSED_ABOVE, Audit, SecretAttribute, SecretValue
from leakscope.results.columns import COLUMNS, Record
from leakscope.results.sections import Section
from leakscope.results.shown import certain
from leakscope.subjects.subgroups import SMALL_BELOW
from leakscope.trust import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from leakscope.subjects.fit.subject import Fit

# More values than this are named within a tolerance, and these many at most.
MOST_VALUES, MOST_WITHIN = 20, 50

# How many records a page names.
SHOWN = 10

PRIORS = {
    "imputed": "imputed from the other columns and the label",
    "shares": "by the column's shares",
}
OWN_COLUMNS = (
    "secret_prior", "secret_without", "secret_with", "secret_leak", "secret_advantage",
    "secret_confirmed",
)  # fmt: skip

# A belief is off where it misses what is named by so many standard errors.
MOST_OFF = 4.0


@dataclass(frozen=True, eq=False)
class SecretColumn:
    """A column whose values are secret.

    Attributes
    ----------
    values
        In words, one for each that the column may hold.
    own
        (n,): which of them each record has.
    numbers
        (V,): the middle of each, where they are numbers within a tolerance; else None.
    put_in
        The records with one of the values in the column, as the estimator takes them.
    """

    values: tuple[str, ...]
    own: Codes
    numbers: FloatArray | None
    put_in: Callable[[int], Any]


def secret_of(fit: Fit, laws: FittedLaws) -> tuple[SecretAttribute, dict[str, NDArray[Any]]]:
    """What the model gives away of the column that ``--secret`` names, and its columns."""
    prior, within = fit.settings["secret_prior"], fit.settings["secret_within"]
    column = secret_column(fit)
    assert isinstance(fit.described, FittedModel)
    problem = fit.described.problems[0]
    assert problem.X is not None
    rows = _designs(fit, column, problem.X)
    found = secret_laws(problem, rows, column.own, question=laws.question, fraction=laws.fraction)
    chances = secret_chances(found, *beliefs(prior, found, rows, column.numbers))
    shares, _ = beliefs("shares", found, rows)
    advantage = np.asarray(measures.advantage(found.law_pair(chances.other)))
    confirmed = laws.confirmed & (found.shares.effective >= LEAST_EFFECTIVE)
    columns = {
        "secret_prior": chances.prior,
        "secret_without": chances.without,
        "secret_with": chances.within,
        "secret_leak": chances.leak,
        "secret_advantage": advantage,
        "secret_confirmed": confirmed,
    }
    first = int(np.argmax(chances.leak))
    return SecretAttribute(
        column=str(fit.settings["secret"]),
        values=len(column.values),
        prior=prior,
        within=within,
        by_shares=_mean(named_by(shares, column.own)),
        by_other_model=_mean(named_by(found.updated(shares), column.own)),
        named_prior=_mean(chances.named_prior),
        named_without=_mean(chances.named_without),
        named_with=_mean(chances.named_within),
        chance_prior=_mean(chances.prior),
        chance_without=_mean(chances.without),
        chance_with=_mean(chances.within),
        mean_leak=_mean(chances.leak),
        largest_leak=float(chances.leak[first]),
        largest_leak_of=fit.ids[first],
        leaking=int(np.count_nonzero(chances.leak >= EXPOSED_ABOVE)),
        median_advantage=float(np.median(advantage)),
        largest_advantage=float(advantage.max()),
        unconfirmed=int(np.count_nonzero(~confirmed)),
        error=chances.error,
        by_value=_by_value(column, chances),
    ), columns


def _mean(values: FloatArray) -> float:
    return float(np.mean(values))


def _by_value(column: SecretColumn, chances: SecretChances) -> list[SecretValue]:
    """How often each value is named; a share of few records says little, and nearly names them."""
    found = []
    for code, value in enumerate(column.values):
        has = column.own == code
        if np.count_nonzero(has) >= SMALL_BELOW:
            found.append(
                SecretValue(
                    value=value,
                    count=int(np.count_nonzero(has)),
                    named_prior=_mean(chances.named_prior[has]),
                    named_without=_mean(chances.named_without[has]),
                    named_with=_mean(chances.named_within[has]),
                )
            )
    return found


# Which values there are.


def secret_column(fit: Fit) -> SecretColumn:
    """The column that ``--secret`` names: its values, those of the records, how each is put in.

    Refused where the model is none of which this is known.
    """
    name, near = str(fit.settings["secret"]), fit.settings
    model, X = fit.described, fit.X
    if fit.unit == "group":
        raise InputError("--secret is about single records; leave out --group.")
    if fit.settings["observes"] == "label":
        raise InputError(
            "--secret takes attackers who see numbers; leave out --set observes=label."
        )
    if model.problems[0].X is None:
        raise InputError(
            f"--secret takes models with a coefficient for each column, and {model.name} has a "
            "kernel instead; take --model ridge."
        )
    if len(model.problems) > 1:
        raise InputError(
            f"--secret takes models that fit all classes together, and {model.name} fits each for "
            "itself; take --model logistic."
        )
    if hasattr(X, "columns"):
        place = _named(name, [str(one) for one in X.columns], fit)
        held = X.iloc[:, place]
        if bool(held.isna().any()):
            row = int(np.argmax(held.isna().to_numpy()))
            raise InputError(
                f"column {name!r} is empty in row {row} (rows count from 0), and --secret takes "
                "columns that every record has; fill it in."
            )

        def altered(value: Any) -> Any:
            changed = X.copy()
            changed[X.columns[place]] = value
            # The middle of a tolerance need not be a whole number.
            return changed if numeric else changed.astype({X.columns[place]: held.dtype})

        plain = held.to_numpy()
        numeric = plain.dtype.kind in "fiu"
        if numeric:
            return _of_numbers(name, plain.astype(np.float64), near, altered)
        _require_numbers_not_asked(name, near)
        values, own = np.unique(plain.astype(str), return_inverse=True)
        first = [plain[np.argmax(own == code)] for code in range(len(values))]
        _require_values(name, len(values), 50)
        return SecretColumn(tuple(map(str, values)), own, None, lambda code: altered(first[code]))
    if not isinstance(X, np.ndarray):
        raise InputError("--secret takes tables and arrays; pass X as one of them.")
    return _of_features(fit, X, name, near)


def _of_features(fit: Fit, X: NDArray[Any], name: str, near: Mapping[str, Any]) -> SecretColumn:
    """A column of a file, or of an array, among the features that were made of it."""
    read: Dataset | None = fit.read
    columns = [str(place) for place in range(X.shape[1])]
    if read is not None:
        columns = list(read.columns or read.feature_names)
    place = _named(name, columns, fit)
    own_places = [one for one, column in enumerate(columns) if column == columns[place]]
    if read is not None and place in read.indicators:
        _require_numbers_not_asked(name, near)
        texts = [read.feature_names[one][len(columns[place]) + 1 :] for one in own_places]
        _require_values(name, len(texts), len(texts))

        def indicated(code: int) -> NDArray[np.float64]:
            changed = np.array(X, dtype=np.float64)
            changed[:, own_places] = np.eye(len(texts))[code]
            return changed

        own = np.asarray(read.features[:, own_places].argmax(axis=1), dtype=np.intp)
        return SecretColumn(tuple(texts), own, None, indicated)
    used = np.asarray(X[:, place], dtype=np.float64)
    raw = used if read is None else np.asarray(read.features[:, place], dtype=np.float64)
    low, high = int(np.argmin(raw)), int(np.argmax(raw))
    # What scaling made of the column is a straight line through any two of its values.
    slope = (used[high] - used[low]) / (raw[high] - raw[low]) if raw[high] > raw[low] else 0.0

    def replaced(value: float) -> NDArray[np.float64]:
        changed = np.array(X, dtype=np.float64)
        changed[:, place] = used[low] + slope * (value - raw[low])
        return changed

    return _of_numbers(name, raw, near, replaced)


def _of_numbers(
    name: str, raw: FloatArray, near: Mapping[str, Any], altered: Callable[[Any], Any]
) -> SecretColumn:
    """The different numbers, those that are given, or parts of their range."""
    if near["secret_values"] is not None:
        given = np.unique(np.asarray(near["secret_values"], dtype=np.float64))
        if len(given) < 2 or len(given) > MOST_WITHIN or not np.isfinite(given).all():
            raise InputError(
                f"--set secret_values takes 2 to {MOST_WITHIN} numbers, with commas between."
            )
        own = np.abs(raw[:, None] - given).argmin(axis=1)
        told = tuple(subgroup_label(float(value)) for value in given)
        return SecretColumn(told, own, given, lambda code: altered(given[code]))
    if near["secret_within"] is None:
        values, own = np.unique(raw, return_inverse=True)
        if len(values) > MOST_VALUES:
            raise InputError(
                f"column {name!r} holds {len(values)} different numbers; say how near a guess must "
                f"come, such as --set secret_within={_usual(raw)}, or name values "
                "with --set secret_values."
            )
        _require_values(name, len(values), MOST_VALUES)
        told = tuple(subgroup_label(float(value)) for value in values)
        return SecretColumn(told, own, None, lambda code: altered(values[code]))
    within = float(near["secret_within"])
    with np.errstate(over="ignore"):
        part = np.floor((raw - raw.min()) / (2.0 * within))
    used, own = np.unique(part, return_inverse=True)
    if len(used) > MOST_WITHIN or not np.isfinite(used[-1]):
        raise InputError(
            f"within {within:g} column {name!r} has {len(used)} values, more than the "
            f"{MOST_WITHIN} that are told apart; take --set secret_within={_usual(raw)} or wider."
        )
    _require_values(name, len(used), MOST_WITHIN)
    middles = raw.min() + (2.0 * used + 1.0) * within
    told = tuple(f"{middle - within:g} to {middle + within:g}" for middle in middles)
    return SecretColumn(told, own, middles, lambda code: altered(middles[code]))


def _usual(raw: FloatArray) -> str:
    """A tolerance that leaves about ten values, in one digit."""
    return f"{float(np.ptp(raw)) / 20.0:.1g}"


def _require_numbers_not_asked(name: str, near: Mapping[str, Any]) -> None:
    """Of categories there is nothing near."""
    for option in ("secret_within", "secret_values"):
        if near[option] is not None:
            raise InputError(
                f"column {name!r} holds categories, and --set {option} is for numbers; "
                "leave it out."
            )


def _require_values(name: str, values: int, most: int) -> None:
    if values < 2:
        raise InputError(f"column {name!r} holds one value only, so it is no secret.")
    if values > most:
        raise InputError(
            f"column {name!r} holds {values} different values, more than the {most} that can be "
            "told apart; put rare ones together."
        )


def _named(name: str, columns: list[str], fit: Fit) -> int:
    if name in columns:
        return columns.index(name)
    if name == fit.dataset.target_name:
        raise InputError(
            f"column {name!r} is the target, which the attacker is assumed to know; name a feature."
        )
    raise InputError(
        f"the model takes no column {name!r}, so its answers do not depend on it; name one of "
        f"{listed(list(dict.fromkeys(columns)))}."
    )


def _designs(fit: Fit, column: SecretColumn, X: FloatArray) -> FloatArray:
    """(V, n, d): the design of every record with each value."""
    size, width = X.shape
    require_memory(
        4 * 8 * len(column.values) * size * width,
        f"{size} records with each of {len(column.values)} values",
        "audit a part of them with --read sample",
    )
    rows = np.empty((len(column.values), size, width))
    for code in range(len(column.values)):
        design = np.asarray(inner_model(fit.estimator, column.put_in(code))[1], dtype=np.float64)
        # an intercept is a last column of the problem's own
        rows[code] = np.column_stack([design, X[:, design.shape[1] :]])
    return rows


# How it is told.


def secret_sentence(found: SecretAttribute, *, ids: bool) -> str:
    """Three chances of naming the value, and what a single record adds."""
    who = f" (record {found.largest_leak_of})" if ids else ""
    near = "" if found.within is None else f" within {found.within:g}"
    return (
        f"Secret column {found.column}: the chance of naming a record's value{near} is "
        f"{certain(found.chance_prior)} on average without the model ({PRIORS[found.prior]}), "
        f"{certain(found.chance_without)} with a model that was not trained on the record and "
        f"{certain(found.chance_with)} with this one. The difference between the last two is the "
        f"record's own leak, {found.mean_leak or 0.0:.2g} on average and "
        f"{found.largest_leak or 0.0:.2g} at most{who}; the rest is known about the population."
    )


def secret_warnings(found: SecretAttribute, units: int) -> tuple[str, ...]:
    """Where beliefs do not bear out, and where laws do not hold."""
    said = []
    believed, named = found.chance_without or 0.0, found.named_without or 0.0
    error = np.sqrt(max(named * (1.0 - named), 1.0 / units) / units)
    if abs(believed - named) > MOST_OFF * error:
        said.append(
            f"The values of {found.column} are named for {named:.1%} of the records by a model "
            f"that was not trained on them, where the attacker's own belief says {believed:.1%}: "
            "the belief is wrong, and the leak may be too; try the other --secret-prior."
        )
    if found.unconfirmed:
        said.append(
            f"What {found.unconfirmed} of {units} records give away about {found.column} is not "
            "confirmed: a few other records cause much of the variation there, as with rare values."
        )
    return tuple(said)


def secret_sections(audit: Audit, found: SecretAttribute) -> list[Section]:
    """Three chances, by value, and the records that give most away."""
    near = "" if found.within is None else f", each {found.within:g} to either side"
    sentences = [
        "The attacker knows all of a record but this column, and its label, and asks the model "
        "about the record with each of the values put in.",
        "What a model tells about a record that it was not trained on, it tells about everybody "
        "like it: that is knowledge about a population, and no leak of this record. The leak is "
        "what this model adds because the record was in its training data.",
        f"{found.leaking} of {audit.units} records leak {EXPOSED_ABOVE:g} or more. Whatever is "
        "believed before, a record's own value can be told from the likeliest other with an "
        f"advantage of {found.median_advantage or 0.0:.2g} in the median and of "
        f"{found.largest_advantage or 0.0:.2g} at most.",
    ]
    believed = PRIORS[found.prior]
    learnt = believed.removesuffix(" and the label")
    chances = [
        ["the column's shares", certain(found.by_shares), ""],
        ["the column's shares, a model without the record", certain(found.by_other_model), ""],
        [believed, certain(found.named_prior), certain(found.chance_prior)],
        [f"{learnt}, a model without the record", certain(found.named_without),
         certain(found.chance_without)],
        [f"{learnt}, this model", certain(found.named_with), certain(found.chance_with)],
    ]  # fmt: skip
    values = [
        [entry.value, str(entry.count), certain(entry.named_prior), certain(entry.named_without),
         certain(entry.named_with)]
        for entry in found.by_value
    ]  # fmt: skip
    of_values = (
        "named of those with", "records",
        *(COLUMNS[f"secret_{name}"].heading for name in ("prior", "without", "with")),
    )  # fmt: skip
    tables: list[tuple[Sequence[str], list[list[str]]]] = [
        (("what the attacker has", "named", "chance, as believed"), chances)
    ]
    if values:
        tables.append((of_values, values))
    order = np.argsort(-audit.table.of("secret_leak"), kind="stable")[:SHOWN]
    shown = [Record({k: v[row] for k, v in audit.table.columns.items()}) for row in order]
    most = [
        [str(row.record_id), *(COLUMNS[name].text(row) for name in OWN_COLUMNS)] for row in shown
    ]
    headings = ("record", *(COLUMNS[name].heading for name in OWN_COLUMNS))
    title = f"A secret column: {found.column}, {found.values} values{near}"
    return [
        Section(title, sentences, tables=tables, asked=True),
        Section(
            f"Who gives {found.column} away",
            ["Chances of naming the value, as the attacker believes."],
            tables=[(headings, most)],
            names=True,
            asked=True,
        ),
    ]
