"""Two audits side by side: two models, two datasets, two kernels, before and after a defence.

Their numbers are set beside each other only where both answer the same question.  Records are
matched by their ids: where the data are the same, or where both name an id column.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.comparing.verdict import number, run_differences, verdict, worse_in
from leakscope.data.datasets import RecordId, same_data
from leakscope.data.files import is_folder
from leakscope.errors import InputError
from leakscope.results.audit import Audit
from leakscope.results.columns import Record
from leakscope.results.comparison import ComparedRecord, Comparison, SideEntry
from leakscope.results.document import ResultDocument
from leakscope.results.reader import Run, digest_of_result, read_result, read_run, unsealed_note
from leakscope.results.reconciliation import doubt_left, unsettled
from leakscope.results.verification import Verification
from leakscope.settings.compare import COMPARE_DEFAULTS
from leakscope.subjects.ranks import TOP, hundredth, rank_correlation, top_kept

# A rise of less than this in an advantage, or in the share of exposed records, is none.
TOLERANCE = COMPARE_DEFAULTS.tolerance

BINS = 40

# How many of those that changed, appeared and vanished are named.
NAMED = 10

# What of a provenance makes a question; its method and source do not.
QUESTION = ("question", "adjacency", "observes", "random", "attacker_knows_label")

Comparable = ResultDocument | Run | str | Path
Verified = Verification | None


def compare(first: Comparable, second: Comparable, *, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two audits: what differs, how leakage is distributed, which records moved.

    Parameters
    ----------
    first, second
        Audits in memory, runs, run directories or ``result.json`` files.
    tolerance
        How much an advantage, or the share of exposed records, may rise before the second is
        called worse.

    Raises
    ------
    InputError
        Where one is no audit, or the two answer different questions.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    >>> rbf = leakscope.kernels.rbf(1.0)
    >>> before = leakscope.audit(X, y, kernel=rbf, noise_variance=0.01)
    >>> after = leakscope.audit(X, y, kernel=rbf, noise_variance=1.0)
    >>> found = leakscope.compare(before, after)
    >>> found.worse, found.shared
    ([], 40)
    """
    start = time.perf_counter()
    if not (np.isfinite(tolerance) and tolerance >= 0.0):
        raise InputError(f"tolerance must be zero or more, but it is {tolerance}.")
    (one, one_name, one_versions, one_verified), (two, two_name, two_versions, two_verified) = (
        _read(side, place) for side, place in ((first, "first"), (second, "second"))
    )
    _require_one_question(one, two)
    verified = (one_verified, two_verified)
    sides, advantage_edges, kl_edges = _sides(one, two, (one_name, two_name), verified)
    same, aligned, not_aligned = _alignment(one, two)
    pairs = _pairs(one, two) if aligned else []
    if aligned and not pairs:
        aligned, not_aligned = False, "No id is in both runs: only the distributions are compared."
    appeared = _only_in(two, one) if aligned else []
    vanished = _only_in(one, two) if aligned else []
    differences = run_differences(one, two, one_versions, two_versions)
    worse, unsure = worse_in(sides, (one, two), tolerance)
    return Comparison(
        leakscope_version=_version(),
        settings={"first": one_name, "second": two_name, "tolerance": tolerance},
        provenance={name: one.provenance.get(name) for name in (*QUESTION, "method", "source")},
        assumptions=[*two.assumptions, *(a for a in one.assumptions if a not in two.assumptions)],
        timing={"compare": time.perf_counter() - start},
        warnings=[*unsealed_note(first, second), *_warnings(one, two, verified, same, aligned)],
        unit=one.unit,
        first=sides[0],
        second=sides[1],
        advantage_edges=advantage_edges,
        log10_kl_edges=kl_edges,
        differences=differences,
        same_data=same,
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
        unsure=unsure,
        verdict=verdict((one, two), sides, worse, unsure, differences, same),
    )


def _version() -> str:
    from leakscope import __version__

    return __version__


def _read(side: Comparable, place: str) -> tuple[Audit, str, dict[str, str], Verified]:
    """The audit, a name for it, versions where they are known, and what verify found."""
    document: ResultDocument
    versions: dict[str, str] = {}
    verified = None
    if isinstance(side, ResultDocument):
        document, name = side, place
    elif isinstance(side, Run) or is_folder(Path(side)):
        run = side if isinstance(side, Run) else read_run(side)
        document, versions, verified = run.document, run.versions, run.verification
        name = str(run.directory if isinstance(side, Run) else side)
        if verified is not None and verified.verified_digest != digest_of_result(run):
            verified = None
    else:
        document, name = read_result(side), str(side)
    if not isinstance(document, Audit):
        raise InputError(
            f"{name} holds a result of kind {document.kind}; compare takes two runs of leakscope "
            "audit."
        )
    if not document.complete:
        raise InputError(
            f"{name} holds the most exposed records only, since its records were streamed; compare "
            "takes audits of all records: audit a sample."
        )
    return document, name, versions, verified


def _require_one_question(one: Audit, two: Audit) -> None:
    known = [audit.question == "leave_one_out" for audit in (one, two)]
    if known[0] != known[1]:
        which = [audit.about.words for audit in (one, two)]
        raise InputError(
            f"one run is of {which[0]} and the other of {which[1]}: the attacker knows all other "
            "records in one of them only, so they answer different questions and cannot be "
            "compared."
        )
    # What an attacker who does not know the others sees and knows is assumed; the verdict says so.
    differing = [
        f"{name.replace('_', ' ')}: {one.provenance.get(name)} against {two.provenance.get(name)}"
        for name in (QUESTION if known[0] else ())
        if one.provenance.get(name) != two.provenance.get(name)
    ]
    if one.unit != two.unit:
        differing.append(f"what leaves: a {one.unit} against a {two.unit}")
    if differing:
        raise InputError(
            f"the two runs answer different questions ({'; '.join(differing)}), and cannot be "
            "compared."
        )


def _sides(
    one: Audit, two: Audit, names: tuple[str, str], verified: tuple[Verified, Verified]
) -> tuple[tuple[SideEntry, SideEntry], list[float], list[float]]:
    levels = [_logarithms(audit.kl) for audit in (one, two)]
    both = np.concatenate(levels)
    low, high = (float(np.min(both)), float(np.max(both))) if both.size else (0.0, 1.0)
    kl_edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    advantage_edges = np.linspace(0.0, 1.0, BINS + 1)
    made = []
    for audit, name, level, found in zip((one, two), names, levels, verified, strict=True):
        # Where the level is assumed, a rate at the end of the scale says nothing of a release, and
        # where it is an interval, it may be anywhere.
        vague = audit.basis == "assumed" or "advantage_low" in audit.table
        largest = {} if vague else audit.totals.largest
        made.append(
            SideEntry(
                run=name,
                dataset=audit.dataset.name,
                units=audit.units,
                model=f"{audit.model.name}, {audit.model.origin}",
                largest_advantage=float(np.max(audit.advantage)),
                median_advantage=float(np.median(audit.advantage)),
                largest_tpr_at_fpr_0_01=largest.get("tpr_at_fpr_0_01"),
                largest_tpr_at_fpr_0_001=largest.get("tpr_at_fpr_0_001"),
                exposed=audit.totals.exposed or 0,
                largest_kl=float(np.max(audit.kl)),
                median_kl=float(np.median(audit.kl)),
                untrusted=len(unsettled(audit, [found])),
                advantage_counts=np.histogram(audit.advantage, bins=advantage_edges)[0].tolist(),
                log10_kl_counts=np.histogram(level, bins=kl_edges)[0].tolist(),
            )
        )
    return (made[0], made[1]), advantage_edges.tolist(), kl_edges.tolist()


def _logarithms(kl: FloatArray) -> FloatArray:
    return np.log10(kl[np.isfinite(kl) & (kl > 0.0)])


def _read_alike(one: Any, two: Any) -> bool:
    """Whether the same columns of both files were asked for."""
    kept = ("target", "id_column", "task", "group_column", "ignore", "missing")
    return all(getattr(one, name) == getattr(two, name) for name in kept)


def _alignment(one: Audit, two: Audit) -> tuple[bool | None, bool, str | None]:
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
            f"The data differ and have no id column in common, so {one.unit}s cannot be matched "
            "and only the distributions are compared.",
        )
    own = all(not _row_numbers(audit) for audit in (one, two))
    if own or (first is None and second is None and len(one.table) == len(two.table)):
        return None, True, None
    return (
        None,
        False,
        f"Whether the {one.unit}s of the two runs are the same cannot be seen from row numbers, so "
        "only the distributions are compared; give the records ids of their own.",
    )


def _row_numbers(audit: Audit) -> bool:
    return set(audit.record_ids) == set(range(len(audit.table)))


def _pairs(one: Audit, two: Audit) -> list[ComparedRecord]:
    """Records in both, in the order of the first run's ranks; ranks are those in each whole run."""
    others = two.records
    place = {record.record_id: rank for rank, record in enumerate(others, start=1)}
    return [
        _pair(record, rank, others[place[record.record_id] - 1], place[record.record_id])
        for rank, record in enumerate(one.records, start=1)
        if record.record_id in place
    ]


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


def _only_in(one: Audit, other: Audit) -> list[RecordId]:
    """Ids that only the first of the two has, most exposed first."""
    there = set(other.record_ids)
    return [name for name in one.ranking() if name not in there]


def _ranks(pairs: Sequence[ComparedRecord]) -> dict[str, Any]:
    """How far the two rank the shared records alike, each among the shared ones only."""
    if len(pairs) < 2:
        return {}
    first, second = (
        -np.array([getattr(pair, name) for pair in pairs], dtype=np.float64)
        for name in ("first_rank", "second_rank")
    )
    top = hundredth(len(pairs))
    return {
        "rank_correlation": rank_correlation(first, second),
        "top_ten": min(TOP, len(pairs)),
        "top_ten_kept": top_kept(first, second, TOP),
        "top_hundredth": top,
        "top_hundredth_kept": top_kept(first, second, top),
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


def _warnings(
    one: Audit,
    two: Audit,
    verified: tuple[Verified, Verified],
    same: bool | None,
    aligned: bool,
) -> list[str]:
    found = []
    if one.dataset.outputs != two.dataset.outputs:
        found.append(
            f"one run has {one.dataset.outputs} outputs and the other {two.dataset.outputs}: KL "
            "sums over outputs and is not compared across them; advantages are."
        )
    for side, audit, known in zip(("first", "second"), (one, two), verified, strict=True):
        doubt = doubt_left(audit, [known])
        if doubt is not None:
            found.append(f"in the {side} run, {doubt}")
    if aligned and same is None and any(_row_numbers(side) for side in (one, two)):
        found.append("both runs are of arrays in memory; equal rows are taken for the same record.")
    return found
