"""Several releases about the same people: who sees them all learns more than from any one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__, measures
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.files import is_folder
from leakscope.errors import InputError
from leakscope.results.audit import EXPOSED_ABOVE, Audit
from leakscope.results.composition import ComposedRecord, Composition, ReleaseEntry
from leakscope.results.document import AssumptionEntry, ResultDocument
from leakscope.results.reader import Run, read_result, read_run
from leakscope.results.shown import certain
from leakscope.settings.compose import ComposeSettings
from leakscope.settings.setting import validated
from leakscope.subjects.laws import exact
from leakscope.subjects.subject import Subject, opened

Released = Audit | ResultDocument | Run | str | Path

# TPRs take milliseconds each, and are of the most exposed only.
WITH_TPR = 100


def compose(
    *releases: Released,
    budget: float | None = None,
    data: Sequence[str | Path | Dataset] | None = None,
) -> Composition:
    """What several released models about the same people give away together.

    Parameters
    ----------
    releases
        Audits of two or more models, in the order of their release: in memory, runs, run
        directories or ``result.json`` files.  Their data are read again, and records are matched
        by their ids.
    budget
        The largest advantage that all together may give about one person.
    data
        Where the data of each release are now, in their order; where the results say, if left out.

    Raises
    ------
    InputError
        Where one is no audit of a model whose laws are known together, or the records cannot be
        matched.

    Examples
    --------
    A ridge regression, and the same again after 100 more people joined:

    >>> import leakscope
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> before, after = (
    ...     leakscope.audit(X[:n], y[:n], model=Ridge(alpha=0.1).fit(X[:n], y[:n]),
    ...                     record_ids=[f"person {i}" for i in range(n)])
    ...     for n in (342, 442)
    ... )
    >>> found = leakscope.compose(before, after, budget=0.2)
    >>> found.largest > found.largest_alone, found.above > found.above_alone
    (True, True)
    """
    start = time.perf_counter()
    how = validated(ComposeSettings, budget=budget)
    if len(releases) < 2:
        raise InputError(
            "Name two or more runs of leakscope audit; for one release its audit already gives the "
            "answer."
        )
    named = [_audit(release, place) for place, release in enumerate(releases, start=1)]
    audits = [audit for audit, _ in named]
    _require_alike(audits)
    if data is not None and len(data) != len(audits):
        raise InputError(
            f"data: there are {len(audits)} releases and {len(data)} files; give one for each, in "
            "their order.",
            option="data",
        )
    places: Sequence[str | Path | Dataset | None] = data or [None] * len(audits)
    subjects = [opened(audit, place) for audit, place in zip(audits, places, strict=True)]
    kinds = {type(subject) for subject in subjects}
    if len(kinds) > 1:
        told = " and ".join(sorted({subject.words for subject in subjects}))
        raise InputError(
            f"the runs are of {told}, and are not of one kind; compose takes one kind."
        )
    people, rows = _people(subjects)
    found = kinds.pop().composed(subjects, rows)
    advantage = exact(measures.advantage(found.pair))
    order = np.argsort(-advantage, kind="stable")
    alone = np.stack([_alone(audit, people) for audit in audits])
    trusted = found.trusted & _trusted(audits, people)
    best = np.nanmax(alone, axis=0)
    shown = order[:WITH_TPR]
    pair = found.pair.take(shown)
    rates = [exact(measures.tpr_at_fpr(pair, fpr)) for fpr in (0.01, 0.001)]
    records = [
        ComposedRecord(
            record_id=people[i],
            alone=[None if np.isnan(value) else float(value) for value in alone[:, i]],
            together=float(advantage[i]),
            trusted=bool(trusted[i]),
            tpr_at_fpr_0_01=float(rates[0][place]) if place < len(shown) else None,
            tpr_at_fpr_0_001=float(rates[1][place]) if place < len(shown) else None,
        )
        for place, i in enumerate(order)
    ]
    over = None if how.budget is None else advantage > how.budget
    provenance = found.pair.provenance.to_dict()
    assumptions = provenance.pop("assumptions")
    result = Composition(
        leakscope_version=__version__,
        settings={"releases": [name for _, name in named], **how.model_dump(mode="json")},
        provenance={**provenance, "check": found.check},
        assumptions=[AssumptionEntry(**entry) for entry in assumptions],
        timing={"compose": time.perf_counter() - start},
        warnings=_warnings(audits, trusted, rows, found.why),
        releases=[_entry(audit, name) for audit, name in named],
        largest=float(advantage.max()),
        median=float(np.median(advantage)),
        exposed=int(np.count_nonzero(advantage >= EXPOSED_ABOVE)),
        largest_alone=float(best.max()),
        exposed_alone=int(np.count_nonzero(best >= EXPOSED_ABOVE)),
        untrusted=int(np.count_nonzero(~trusted)),
        budget=how.budget,
        above=None if over is None else int(np.count_nonzero(over & trusted)),
        above_untrusted=None if over is None else int(np.count_nonzero(over & ~trusted)),
        above_alone=None if over is None else int(np.count_nonzero(best > (how.budget or 0.0))),
        verdict="",
        records=records,
    )
    return result.model_copy(update={"verdict": _verdict(result)})


def _audit(release: Released, place: int) -> tuple[Audit, str]:
    document: ResultDocument
    if isinstance(release, ResultDocument):
        document, name = release, f"release {place}"
    elif isinstance(release, Run) or is_folder(Path(release)):
        run = release if isinstance(release, Run) else read_run(release)
        document, name = run.document, str(run.directory if isinstance(release, Run) else release)
    else:
        document, name = read_result(release), str(release)
    if not isinstance(document, Audit):
        raise InputError(
            f"{name} holds a result of kind {document.kind}; compose takes runs of leakscope audit."
        )
    if document.unit != "record":
        raise InputError(
            f"{name} is an audit of groups; compose works on audits of single records."
        )
    return document, name


def _require_alike(audits: list[Audit]) -> None:
    """Ids must name the same people: ids of their own, or row numbers of the same data."""
    if all(not _row_numbers(audit) for audit in audits):
        return
    digests = {None if a.dataset.source is None else a.dataset.source.digest for a in audits}
    if len(digests) == 1 and len({len(audit.table) for audit in audits}) == 1:
        return
    raise InputError(
        "records of different data cannot be matched by their row numbers: 17 in one table is not "
        "17 in another; audit each with an id column (--id, or record_ids in Python)."
    )


def _row_numbers(audit: Audit) -> bool:
    return set(audit.record_ids) == set(range(len(audit.table)))


def _people(subjects: list[Subject]) -> tuple[list[RecordId], NDArray[np.intp]]:
    """Everybody in any release, and where each stands in each; -1 where not."""
    people = list(dict.fromkeys(name for subject in subjects for name in subject.ids))
    rows = np.full((len(subjects), len(people)), -1, dtype=np.intp)
    for place, subject in enumerate(subjects):
        there = {name: row for row, name in enumerate(subject.ids)}
        rows[place] = [there.get(name, -1) for name in people]
    if not np.any(np.sum(rows >= 0, axis=0) > 1):
        raise InputError(
            "no record is in two of the releases, so together they tell no more about anybody."
        )
    return people, rows


def _alone(audit: Audit, people: list[RecordId]) -> NDArray[np.float64]:
    """The advantage of each person by one release, NaN where it was not trained on that one."""
    there = dict(zip(audit.record_ids, audit.advantage, strict=True))
    return np.array([there.get(name, np.nan) for name in people], dtype=np.float64)


def _trusted(audits: list[Audit], people: list[RecordId]) -> NDArray[np.bool_]:
    """Whether every release that was trained on a person trusts its numbers."""
    found = np.ones(len(people), dtype=np.bool_)
    for audit in audits:
        there = dict(zip(audit.record_ids, audit.trusted, strict=True))
        found &= np.array([there.get(name, True) for name in people], dtype=np.bool_)
    return found


def _entry(audit: Audit, name: str) -> ReleaseEntry:
    return ReleaseEntry(
        run=name,
        model=audit.model.name,
        dataset=audit.dataset.name,
        units=audit.units,
        largest_advantage=float(np.max(audit.advantage)),
        exposed=int(np.count_nonzero(np.asarray(audit.advantage) >= EXPOSED_ABOVE)),
    )


def _warnings(
    audits: list[Audit], trusted: NDArray[np.bool_], rows: NDArray[np.intp], why: str
) -> list[str]:
    found = []
    doubtful = int(np.count_nonzero(~trusted))
    if doubtful:
        usual = (
            "they are not trusted in one release, or a few other records cause much of the "
            "variation between the releases"
        )
        found.append(
            f"{doubtful} of {len(trusted)} records are not trusted together: {why or usual}."
        )
    if any(audit.basis == "assumed" for audit in audits):
        found.append("the noise of a stand-in is assumed, and with it the level of every number.")
    partly = int(np.count_nonzero(np.any(rows < 0, axis=0)))
    if partly:
        found.append(
            f"{partly} of {len(trusted)} records are not in every release; the releases without "
            "them still help the attacker, by what they show about everybody else."
        )
    return found


def _verdict(found: Composition) -> str:
    count, total = len(found.releases), len(found.records)
    words = (
        f"Whoever sees the {count} releases together has an advantage of up to "
        f"{certain(found.largest)} over guessing about a record; by one release alone it is up to "
        f"{certain(found.largest_alone)}. {found.exposed} of {total} records have 0.1 or more "
        f"together, {found.exposed_alone} by one alone."
    )
    if found.budget is None:
        return words
    above = (found.above or 0) + (found.above_untrusted or 0)
    return (
        f"{words} {above or 'None'} {'is' if above == 1 else 'are'} above the budget of "
        f"{found.budget:g}, {found.above_alone} by one alone."
    )
