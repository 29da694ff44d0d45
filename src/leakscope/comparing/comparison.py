"""Two audits side by side: two models, two datasets, two kernels, before and after a defence.

Records are compared one by one only where their ids name the same records: the data are the same
(by their digest), or both have an id column of their own.  Row numbers of different data are not
ids.  Runs that answer different questions are not compared at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.auditing import (
    EXPOSED_ABOVE,
    TOP,
    AuditResult,
    ModelAuditResult,
    kernel_in_words,
    rank_correlation,
    top_kept,
)
from leakscope.comparing.run_differences import run_differences
from leakscope.comparing.verdict import Document, number, verdict, worse_in
from leakscope.data import RecordId, is_folder, same_data
from leakscope.errors import InputError
from leakscope.results import (
    AuditDocument,
    AuditRecord,
    ComparedRecord,
    Comparison,
    ModelAuditDocument,
    ModelAuditRecord,
    ResultDocument,
    Run,
    SideEntry,
    read_result,
    read_run,
)
from leakscope.settings import COMPARE_DEFAULTS

# A rise of less than this in an advantage, or in the share of exposed records, is none.
TOLERANCE = COMPARE_DEFAULTS.tolerance

BINS = 40

# How many of those that changed, appeared and vanished are named.
NAMED = 10

# What of a provenance makes a question; its method and source do not.
QUESTION = ("question", "adjacency", "observes", "random", "attacker_knows_label")

Record = AuditRecord | ModelAuditRecord
Comparable = AuditResult | ModelAuditResult | ResultDocument | Run | str | Path


def compare(first: Comparable, second: Comparable, *, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two audits: what differs, how leakage is distributed, which records moved.

    Parameters
    ----------
    first, second
        Results, documents, runs, or paths of run directories or result files.
    tolerance
        A rise of the second's largest or median advantage, or of its share of exposed records,
        by more than this makes it worse (``Comparison.worse``).

    Raises
    ------
    InputError
        Where one is no audit, or the two answer different questions.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> from leakscope import comparing
    >>> X, y = np.array([[0.0], [0.1], [0.2], [3.0]]), np.array([1.0, 1.1, 0.9, -1.0])
    >>> before = leakscope.audit(X, y, noise_variance=0.1)
    >>> after = leakscope.audit(X, y, noise_variance=1.0)
    >>> found = comparing.compare(before, after)
    >>> found.shared, found.worse, found.fallen[0].record_id
    (4, [], 3)
    >>> round(found.first.largest_advantage, 3), round(found.second.largest_advantage, 3)
    (0.685, 0.287)
    """
    start = time.perf_counter()
    if not (np.isfinite(tolerance) and tolerance >= 0.0):
        raise InputError(f"tolerance must be zero or more, but it is {tolerance}.")
    (one, one_name, one_versions), (two, two_name, two_versions) = (
        _read(side, place) for side, place in ((first, "first"), (second, "second"))
    )
    _require_one_question(one, two)
    names = (one_name, two_name)
    sides, advantage_edges, kl_edges = _sides(one, two, names)
    same_data, aligned, not_aligned = _alignment(one, two)
    pairs = _pairs(one, two) if aligned else []
    if aligned and not pairs:
        aligned, not_aligned = False, "No id is in both runs: only the distributions are compared."
    appeared = _only_in(two, one) if aligned else []
    vanished = _only_in(one, two) if aligned else []
    differences = run_differences(one, two, one_versions, two_versions)
    worse = worse_in(sides[0], sides[1], tolerance, one.unit)
    return Comparison(
        leakscope_version=_version(),
        settings={"first": one_name, "second": two_name, "tolerance": tolerance},
        provenance={name: one.provenance.get(name) for name in (*QUESTION, "method", "source")},
        assumptions=[*two.assumptions, *(a for a in one.assumptions if a not in two.assumptions)],
        timing={"compare": time.perf_counter() - start},
        warnings=_warnings(one, two, same_data, aligned),
        unit=one.unit,
        first=sides[0],
        second=sides[1],
        advantage_edges=advantage_edges,
        log10_kl_edges=kl_edges,
        differences=differences,
        same_data=same_data,
        not_aligned=not_aligned,
        shared=len(pairs),
        appeared=len(appeared),
        vanished=len(vanished),
        **_ranks(pairs),
        records=pairs,
        risen=_most_changed(pairs, upwards=True),
        fallen=_most_changed(pairs, upwards=False),
        appeared_ids=appeared[:NAMED],
        vanished_ids=vanished[:NAMED],
        tolerance=tolerance,
        worse=worse,
        verdict=verdict((one, two), sides, worse, differences, same_data),
    )


def _version() -> str:
    from leakscope import __version__

    return __version__


def _read(side: Comparable, place: str) -> tuple[Document, str, dict[str, str]]:
    """The document, a name for it, and the versions it was made with, where those are known."""
    if isinstance(side, (AuditResult, ModelAuditResult)):
        return side.to_document(), place, {}
    document: ResultDocument
    if isinstance(side, Run):
        document, name, versions = side.document, str(side.directory), side.versions
    elif isinstance(side, (str, Path)):
        if is_folder(Path(side)):
            run = read_run(side)
            document, name, versions = run.document, str(side), run.versions
        else:
            document, name, versions = read_result(side), str(side), {}
    else:
        document, name, versions = side, place, {}
    if not isinstance(document, (AuditDocument, ModelAuditDocument)):
        raise InputError(
            f"{name} holds a result of kind {document.kind}; compare takes two runs of leakscope "
            "audit."
        )
    return document, name, versions


def _require_one_question(one: Document, two: Document) -> None:
    kinds = {type(one), type(two)}
    if len(kinds) > 1:
        raise InputError(
            "one run is of a fitted model and the other of a Gaussian process: they answer "
            "different questions, and their numbers are not ranked together."
        )
    # What a fitted model's attacker sees and knows is an assumption that the verdict speaks of.
    asked = () if isinstance(one, ModelAuditDocument) else QUESTION
    differing = [
        f"{name.replace('_', ' ')}: {one.provenance.get(name)} against {two.provenance.get(name)}"
        for name in asked
        if one.provenance.get(name) != two.provenance.get(name)
    ]
    if one.unit != two.unit:
        differing.append(f"what leaves: a {one.unit} against a {two.unit}")
    if differing:
        raise InputError(
            f"the two runs answer different questions ({'; '.join(differing)}), and their numbers "
            "are not ranked together."
        )


def _sides(
    one: Document, two: Document, names: tuple[str, str]
) -> tuple[tuple[SideEntry, SideEntry], list[float], list[float]]:
    levels = [_logarithms(document) for document in (one, two)]
    both = np.concatenate(levels)
    low, high = (float(np.min(both)), float(np.max(both))) if both.size else (0.0, 1.0)
    kl_edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    advantage_edges = np.linspace(0.0, 1.0, BINS + 1)
    made = []
    for document, name, level in zip((one, two), names, levels, strict=True):
        advantage, kl = _values(document, "advantage"), _values(document, "kl")
        made.append(
            SideEntry(
                run=name,
                dataset=document.dataset.name,
                units=len(document.records),
                **_model_of(document),
                largest_advantage=float(np.max(advantage)),
                median_advantage=float(np.median(advantage)),
                exposed=int(np.count_nonzero(advantage >= EXPOSED_ABOVE)),
                largest_kl=float(np.max(kl)),
                median_kl=float(np.median(kl)),
                untrusted=sum(not record.trusted for record in document.records),
                advantage_counts=np.histogram(advantage, bins=advantage_edges)[0].tolist(),
                log10_kl_counts=np.histogram(level, bins=kl_edges)[0].tolist(),
            )
        )
    return (made[0], made[1]), advantage_edges.tolist(), kl_edges.tolist()


def _model_of(document: Document) -> dict[str, Any]:
    """What was audited, and the levels that only a fitted model's records carry."""
    if isinstance(document, AuditDocument):
        return {
            "kernel": kernel_in_words(document.kernel),
            "noise_variance": document.noise_variance,
        }
    rates = ("tpr_at_fpr_0_01", "tpr_at_fpr_0_001")
    largest = {f"largest_{name}": float(np.max(_values(document, name))) for name in rates}
    return {"model": f"{document.model.name}, {document.model.origin}", **largest}


def _values(document: Document, name: str) -> FloatArray:
    """A column of the records; what is null in the file was infinite."""
    found = [getattr(record, name) for record in document.records]
    return np.array([np.inf if value is None else value for value in found], dtype=np.float64)


def _logarithms(document: Document) -> FloatArray:
    kl = _values(document, "kl")
    return np.log10(kl[np.isfinite(kl) & (kl > 0.0)])


def _read_alike(one: Any, two: Any) -> bool:
    """Whether the same columns of both files were asked for."""
    kept = ("target", "id_column", "task", "group_column", "ignore", "missing", "split")
    return all(getattr(one, name) == getattr(two, name) for name in kept)


def _alignment(one: Document, two: Document) -> tuple[bool | None, bool, str | None]:
    """Whether the data are the same (None: cannot be told), whether ids may be matched, why not."""
    first, second = one.dataset.source, two.dataset.source
    if first is not None and second is not None:
        if same_data(first.digest, second.digest, read_alike=_read_alike(first, second)):
            return True, True, None
        if one.unit == "group" and first.group_column == second.group_column:
            return False, True, None
        if one.unit == "record" and first.id_column and first.id_column == second.id_column:
            return False, True, None
        return (
            False,
            False,
            f"The data differ and their {one.unit}s have no id column in common, so that only the "
            "distributions are compared.",
        )
    own = all(not _row_numbers(document) for document in (one, two))
    if own or (first is None and second is None and len(one.records) == len(two.records)):
        return None, True, None
    return (
        None,
        False,
        f"Whether the {one.unit}s of the two runs are the same cannot be told from row numbers, so "
        "that only the distributions are compared; give the records ids of their own.",
    )


def _row_numbers(document: Document) -> bool:
    ids = {record.record_id for record in document.records}
    return ids == set(range(len(ids)))


def _pairs(one: Document, two: Document) -> list[ComparedRecord]:
    """Records in both, in the order of the first run's ranks; ranks are those in each whole run."""
    others: Sequence[Record] = two.records
    records: Sequence[Record] = one.records
    place = {record.record_id: rank for rank, record in enumerate(others, start=1)}
    found = []
    for rank, record in enumerate(records, start=1):
        if record.record_id in place:
            there = place[record.record_id]
            found.append(_pair(record, rank, others[there - 1], there))
    return found


def _pair(record: Record, rank: int, other: Record, there: int) -> ComparedRecord:
    return ComparedRecord(
        record_id=record.record_id,
        first_rank=rank,
        second_rank=there,
        first_kl=record.kl,
        second_kl=other.kl,
        first_advantage=record.advantage,
        second_advantage=other.advantage,
    )


def _only_in(one: Document, other: Document) -> list[RecordId]:
    """Ids that only the first of the two has, most exposed first."""
    there = {record.record_id for record in other.records}
    return [record.record_id for record in one.records if record.record_id not in there]


def _ranks(pairs: Sequence[ComparedRecord]) -> dict[str, Any]:
    """How far the two rank the shared records alike, each among the shared ones only."""
    if len(pairs) < 2:
        return {}
    first, second = (
        -np.array([getattr(pair, name) for pair in pairs], dtype=np.float64)
        for name in ("first_rank", "second_rank")
    )
    hundredth = -(-len(pairs) // 100)
    return {
        "rank_correlation": rank_correlation(first, second),
        "top_ten": min(TOP, len(pairs)),
        "top_ten_kept": top_kept(first, second, TOP),
        "top_hundredth": hundredth,
        "top_hundredth_kept": top_kept(first, second, hundredth),
    }


def _most_changed(pairs: Sequence[ComparedRecord], *, upwards: bool) -> list[ComparedRecord]:
    """Those whose advantage moved most in one direction; equal ones by their KL."""
    sign = 1.0 if upwards else -1.0

    def change(pair: ComparedRecord) -> tuple[float, float]:
        advantage = number(pair.second_advantage) - number(pair.first_advantage)
        kl = np.nan_to_num(number(pair.second_kl) - number(pair.first_kl))
        return sign * advantage, sign * float(kl)

    moved = [pair for pair in pairs if change(pair) > (0.0, 0.0)]
    return sorted(moved, key=change, reverse=True)[:NAMED]


def _warnings(one: Document, two: Document, same_data: bool | None, aligned: bool) -> list[str]:
    found = []
    if one.dataset.outputs != two.dataset.outputs:
        found.append(
            f"one run has {one.dataset.outputs} outputs and the other {two.dataset.outputs}: KL "
            "sums over outputs and is not compared across them; advantages are."
        )
    for side, document in (("first", one), ("second", two)):
        if document.doubt is not None:
            found.append(f"in the {side} run, {document.doubt}")
    if aligned and same_data is None and any(_row_numbers(side) for side in (one, two)):
        found.append("both runs are of arrays in memory; equal rows are taken for the same record.")
    return found
