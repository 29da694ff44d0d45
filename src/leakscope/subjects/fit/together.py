"""Several fitted models about overlapping records: each record as each model takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.fitted.joint import Release, joint_laws
from leakscope.fitted.paired import PairedModel
from leakscope.subjects.subject import Together

if TYPE_CHECKING:
    from leakscope.subjects.fit.subject import Fit

Rows = NDArray[np.intp]

# What two scalings of one column may differ by, as a share of its spread.
ROUNDING = 1e-9
# Two points lie on every line.
LEAST_SHARED = 5


def together(releases: Sequence[Fit], rows: Rows) -> Together:
    """The joint laws of the models' scores; ``rows`` as in `Subject.composed`."""
    first = releases[0]
    for place, release in enumerate(releases):
        _require_known(release, rows[place], place)
    for name in ("question", "fraction", "observes"):
        told = {str(release.settings[name]) for release in releases}
        if len(told) > 1:
            raise InputError(
                f"the releases were audited with another {name} each ({', '.join(sorted(told))}); "
                "audit them alike."
            )
    if first.settings["observes"] in ("label", "probabilities"):
        raise InputError(
            f"compose works on scores, and these audits are of {first.settings['observes']}; audit "
            "them with --observes log_odds."
        )
    if any(release.sample_weight is not None for release in releases):
        raise InputError("compose does not work on models with sample weights.")
    found = joint_laws(
        [
            Release(
                release.estimator,
                _everybody(releases, rows, place, "features"),
                _everybody(releases, rows, place, "labels"),
                rows[place] >= 0,
            )
            for place, release in enumerate(releases)
        ],
        question=first.settings["question"],
        fraction=first.settings["fraction"],
    )
    whole = [place for place, release in enumerate(releases, start=1) if release.of_the_whole]
    if not whole:
        return Together(found.law_pair(), found.trusted, found.check)
    several = "s" * (len(whole) > 1)
    why = (
        f"what the model{several} of release{several} {', '.join(map(str, whole))} learn"
        f"{'' if several else 's'} beside the coefficients moves with the records, which is not "
        "followed through several releases"
    )
    return Together(found.law_pair(), np.zeros_like(found.trusted), found.check, why)


def _require_known(release: Fit, rows: Rows, place: int) -> None:
    """One output, an estimator at its optimum, and records that it takes."""
    told, described = f"release {place + 1}, {release.model.name}", release.described
    if (
        release.estimator is None
        or isinstance(described, PairedModel)
        or described.loss == "softmax"
        or len(described.problems) > 1
    ):
        raise InputError(
            f"{told}: what several releases tell together is known of scikit-learn estimators with "
            "one output (ridge, kernel ridge, logistic with two classes, Poisson)."
        )
    if described.problems[0].X is None and np.any(rows < 0):
        raise InputError(
            f"{told}: models with a kernel can be composed only where all were fitted on the same "
            "records."
        )


def _everybody(releases: Sequence[Fit], rows: Rows, place: int, what: str) -> Any:
    """All records as one release takes them; those that it never saw from another release."""
    features = what == "features"
    own = releases[place]
    taken = _taken(own.X if features else own.y, rows[place])
    missing = rows[place] < 0
    for other, release in enumerate(releases):
        if other == place:
            continue
        if features and own.feature_names != release.feature_names:
            raise InputError(
                f"releases {place + 1} and {other + 1} have different features, so a record of one "
                "cannot be given to the other; give both the same columns."
            )
        shared = (rows[place] >= 0) & (rows[other] >= 0)
        there = _taken(release.X if features else release.y, rows[other])
        fill = missing & (rows[other] >= 0)
        names = [own.ids[row] for row in rows[place][shared]]
        taken = _filled(taken, there, shared, fill, _Changed(what, names, (place, other)))
        missing = missing & ~fill
    return taken


@dataclass(frozen=True)
class _Changed:
    """Whose records are compared between two releases, and what of them."""

    what: str
    names: Sequence[RecordId]
    places: tuple[int, int]

    def refuse(self, same: Any) -> None:
        """Name the first record that is not the same, where there is one."""
        if np.all(same):
            return
        first = int(np.argmin(np.asarray(same).reshape(len(self.names), -1).all(axis=1)))
        one, two = (place + 1 for place in self.places)
        raise InputError(
            f"record {self.names[first]!r} has other {self.what} in release {one} than in release "
            f"{two}; together the releases are of people whose records stay the same."
        )


def _line(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Slope and offset, column by column, that most records agree on: a few may have changed."""
    low, high = (np.quantile(x, q, axis=0, method="nearest") for q in (0.1, 0.9))
    wide = high > low
    if x.ndim == 1:
        first, last = int(np.argmax(x == low)), int(np.argmax(x == high))
        at_low, at_high = y[first], y[last]
    else:
        columns = np.arange(x.shape[1])
        at_low = y[np.argmax(x == low, axis=0), columns]
        at_high = y[np.argmax(x == high, axis=0), columns]
    slope = np.where(wide, (at_high - at_low) / np.where(wide, high - low, 1.0), 1.0)
    return slope, np.asarray(at_low - slope * low)


def _taken(values: Any, rows: Rows) -> Any:
    rows = np.maximum(rows, 0)
    if hasattr(values, "iloc"):
        return values.iloc[rows].reset_index(drop=True)
    return np.asarray(values)[rows]


def _filled(
    mine: Any,
    theirs: Any,
    shared: NDArray[np.bool_],
    fill: NDArray[np.bool_],
    changed: _Changed,
) -> Any:
    """Values of another release in one's own scaling; both scaled what they read by columns.

    Who is in both releases shows the scaling, and must be the same record in both.
    """
    if hasattr(mine, "iloc"):
        # Columns as they were read: the model's own pipeline scales them.
        here, there = mine[shared], theirs[shared]
        changed.refuse((here == there) | (here.isna() & there.isna()))
        place = np.arange(len(fill))
        either = pd.concat([mine, theirs], ignore_index=True)
        return either.iloc[np.where(fill, place + len(fill), place)].reset_index(drop=True)
    inside = fill if mine.ndim == 1 else fill[:, None]
    here, there = mine[shared], theirs[shared]
    if np.array_equal(here, there):
        return np.where(inside, theirs, mine)
    if here.dtype.kind not in "fiu" or there.dtype.kind not in "fiu":
        changed.refuse(here == there)
    if len(here) < LEAST_SHARED:
        one, two = (place + 1 for place in changed.places)
        raise InputError(
            f"releases {one} and {two} share {len(here)} records, too few to match their scalings "
            "by; audit both with --scaling none."
        )
    slope, offset = _line(there, here)
    off = np.abs(slope * there + offset - here)
    changed.refuse(off <= ROUNDING * np.maximum(np.std(here, axis=0), 1.0))
    return np.where(inside, slope * theirs + offset, mine)
