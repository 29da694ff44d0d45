"""Several fitted models about overlapping records: each record as each model takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.fitted.joint import Release, joint_laws
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
    for name in ("question", "fraction", "observes"):
        told = {str(release.settings[name]) for release in releases}
        if len(told) > 1:
            raise InputError(
                f"the releases were audited with another {name} each ({', '.join(sorted(told))}); "
                "audit them alike."
            )
    if first.settings["observes"] in ("label", "probabilities"):
        raise InputError(
            f"what several releases tell together is known of scores, and these audits are of "
            f"{first.settings['observes']}; audit them with --observes log_odds."
        )
    if any(release.sample_weight is not None for release in releases):
        raise InputError("what models with sample weights tell together is not known.")
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
    return Together(found.law_pair(), found.trusted, found.check)


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
                f"releases {place + 1} and {other + 1} have other features, so that a record of "
                "one cannot be put to the other; give both the same columns."
            )
        shared = (rows[place] >= 0) & (rows[other] >= 0)
        there = _taken(release.X if features else release.y, rows[other])
        fill = missing & (rows[other] >= 0)
        taken = _filled(taken, there, shared, fill, (place, other), what)
        missing = missing & ~fill
    return taken


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
    places: tuple[int, int],
    what: str,
) -> Any:
    """Values of another release in one's own scaling; both scaled what they read by columns.

    Who is in both releases shows the scaling, and must be the same record in both.
    """
    changed = InputError(
        f"somebody has other {what} in release {places[0] + 1} than in release {places[1] + 1}; "
        "together the releases are of people whose records stay the same."
    )
    if hasattr(mine, "iloc"):
        # Columns as they were read: the model's own pipeline scales them.
        if not mine[shared].equals(theirs[shared]):
            raise changed
        return mine.where(~fill, theirs)
    inside = fill if mine.ndim == 1 else fill[:, None]
    here, there = mine[shared], theirs[shared]
    if np.array_equal(here, there):
        return np.where(inside, theirs, mine)
    if here.dtype.kind not in "fiu" or there.dtype.kind not in "fiu":
        raise changed
    if len(here) < LEAST_SHARED:
        raise InputError(
            f"releases {places[0] + 1} and {places[1] + 1} share {len(here)} records, too few to "
            "match their scalings by; audit both with --scaling none."
        )
    spread, own = np.std(there, axis=0), np.std(here, axis=0)
    slope = np.where(spread > 0.0, own / np.where(spread > 0.0, spread, 1.0), 1.0)
    offset = here.mean(axis=0) - slope * there.mean(axis=0)
    off = np.max(np.abs(slope * there + offset - here), axis=0)
    if np.any(off > ROUNDING * np.maximum(own, 1.0)):
        raise changed
    return np.where(inside, slope * theirs + offset, mine)
