"""Two audits side by side: two models, two datasets, two kernels, before and after a defence.

Their numbers are set beside each other only where both answer the same question.  Records are
matched by their ids: where the data are the same, or where both name an id column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import same_data
from leakscope.data.files import is_folder
from leakscope.errors import InputError
from leakscope.results.audit import EXPOSED_ABOVE, Audit
from leakscope.results.comparison import (
    STEPS,
    ComparedRecord,
    Comparison,
    DifferenceEntry,
    SideEntry,
)
from leakscope.results.document import ResultDocument
from leakscope.results.reader import Run, digest_of_result, read_result, read_run, unsealed_note
from leakscope.results.reconciliation import doubt_left, unsettled
from leakscope.results.verification import Verification
from leakscope.settings.compare import COMPARE_DEFAULTS
from leakscope.subjects.ranks import TOP, hundredth, rank_correlation, top_kept

BINS = 40  # of both histograms

# How many of those that changed, appeared and vanished are named.
NAMED = 10

# What of a provenance makes a question; its method and source do not.
QUESTION = ("question", "adjacency", "observes", "random", "attacker_knows_label")

# What is assumed of the attacker, and is no property of the model.
ASSUMED = ("question", "fraction", "observes")

# What must be read alike for two digests to be of the same records.
READ_ALIKE = ("target", "id_column", "task", "group_column", "ignore", "missing")

Comparable = ResultDocument | Run | str | Path


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two runs, with what stands in its directory."""

    audit: Audit
    name: str
    versions: dict[str, str]
    verification: Verification | None

    @property
    def has_row_numbers(self) -> bool:
        """Whether the records are known by their places only."""
        return set(self.audit.record_ids) == set(range(len(self.audit.table)))


def compare(
    first: Comparable, second: Comparable, *, tolerance: float = COMPARE_DEFAULTS.tolerance
) -> Comparison:
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
    from leakscope import __version__

    start = time.perf_counter()
    if not (np.isfinite(tolerance) and tolerance >= 0.0):
        raise InputError(f"tolerance must be zero or more, but it is {tolerance}.")
    sides = _side(first, "first"), _side(second, "second")
    one, two = (side.audit for side in sides)
    _require_one_question(one, two)
    same, not_aligned = _alignment(*sides)
    pairs = [] if not_aligned else _pairs(one, two)
    if not (pairs or not_aligned):
        not_aligned = "No id is in both runs: only the distributions are compared."
    names = [set(audit.record_ids) for audit in (one, two)]
    vanished = [name for name in one.ranking() if pairs and name not in names[1]]
    appeared = [name for name in two.ranking() if pairs and name not in names[0]]
    differences = _differences(*sides)
    worse, unsure = _worse(sides, tolerance)
    entries, edges = _entries(sides)
    return Comparison(
        leakscope_version=__version__,
        settings={"first": sides[0].name, "second": sides[1].name, "tolerance": tolerance},
        provenance={name: one.provenance.get(name) for name in (*QUESTION, "method", "source")},
        assumptions=[*two.assumptions, *(a for a in one.assumptions if a not in two.assumptions)],
        timing={"compare": time.perf_counter() - start},
        warnings=[
            *unsealed_note(first, second),
            *_warnings(sides, by_rows=bool(pairs and not same)),
        ],
        unit=one.unit,
        first=entries[0],
        second=entries[1],
        advantage_edges=edges[0].tolist(),
        log10_kl_edges=edges[1].tolist(),
        differences=differences,
        same_data=same,
        not_aligned=not_aligned,
        shared=len(pairs),
        appeared=len(appeared),
        vanished=len(vanished),
        **_ranks(pairs),
        records=pairs,
        risen=_most_changed(pairs, 1.0),
        fallen=_most_changed(pairs, -1.0),
        appeared_ids=appeared[:NAMED],
        vanished_ids=vanished[:NAMED],
        tolerance=tolerance,
        worse=worse,
        unsure=unsure,
        verdict=_verdict(sides, entries, worse, unsure, _confounded(sides, differences, same)),
    )


def _side(given: Comparable, place: str) -> Side:
    versions: dict[str, str] = {}
    verification = None
    document: ResultDocument
    if isinstance(given, ResultDocument):
        document, name = given, place
    elif isinstance(given, Run) or is_folder(Path(given)):
        run = given if isinstance(given, Run) else read_run(given)
        document, versions, verification = run.document, run.versions, run.verification
        name = str(run.directory if isinstance(given, Run) else given)
        if verification is not None and verification.verified_digest != digest_of_result(run):
            verification = None
    else:
        document, name = read_result(given), str(given)
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
    return Side(document, name, versions, verification)


def _require_one_question(one: Audit, two: Audit) -> None:
    knows_others = [audit.question == "leave_one_out" for audit in (one, two)]
    if knows_others[0] != knows_others[1]:
        raise InputError(
            f"one run is of {one.about.words} and the other of {two.about.words}: the attacker "
            "knows all other records in one of them only, so they cannot be compared."
        )
    # What an attacker who does not know the others sees and knows is assumed; the verdict says so.
    differing = [
        f"{name.replace('_', ' ')}: {one.provenance.get(name)} against {two.provenance.get(name)}"
        for name in (QUESTION if knows_others[0] else ())
        if one.provenance.get(name) != two.provenance.get(name)
    ]
    if one.unit != two.unit:
        differing.append(f"what leaves: a {one.unit} against a {two.unit}")
    if differing:
        raise InputError(
            f"the two runs answer different questions ({'; '.join(differing)}), and cannot be "
            "compared."
        )


def _alignment(one: Side, two: Side) -> tuple[bool | None, str | None]:
    """Whether the data are the same (None: cannot be told), and why ids may not be matched."""
    unit = one.audit.unit
    first, second = (side.audit.dataset.source for side in (one, two))
    if first is not None and second is not None:
        alike = all(getattr(first, name) == getattr(second, name) for name in READ_ALIKE)
        if same_data(first.digest, second.digest, read_alike=alike):
            return True, None
        column = "group_column" if unit == "group" else "id_column"
        named = [getattr(source, column) for source in (first, second)]
        if named[0] == named[1] and (named[0] or unit == "group"):
            return False, None
        return False, (
            f"The data differ and have no id column in common, so {unit}s cannot be matched and "
            "only the distributions are compared."
        )
    in_memory = first is None and second is None
    as_many = len(one.audit.table) == len(two.audit.table)
    if not (one.has_row_numbers or two.has_row_numbers) or (in_memory and as_many):
        return None, None
    return None, (
        f"Whether the {unit}s of the two runs are the same cannot be seen from row numbers, so "
        "only the distributions are compared; give the records ids of their own."
    )


def _pairs(one: Audit, two: Audit) -> list[ComparedRecord]:
    """Records in both, in the order of the first run's ranks; ranks are those in each whole run."""
    there = {record.record_id: (rank, record) for rank, record in enumerate(two.records, start=1)}
    return [
        ComparedRecord(
            record_id=record.record_id,
            first_rank=rank,
            second_rank=there[record.record_id][0],
            first_kl=record.kl,
            second_kl=there[record.record_id][1].kl,
            first_advantage=record.advantage,
            second_advantage=there[record.record_id][1].advantage,
        )
        for rank, record in enumerate(one.records, start=1)
        if record.record_id in there
    ]


def _ranks(pairs: Sequence[ComparedRecord]) -> dict[str, Any]:
    """How far the two rank the shared records alike, each among the shared ones only."""
    if len(pairs) < 2:
        return {}
    first = -np.array([pair.first_rank for pair in pairs], dtype=np.float64)
    second = -np.array([pair.second_rank for pair in pairs], dtype=np.float64)
    top = hundredth(len(pairs))
    return {
        "rank_correlation": rank_correlation(first, second),
        "top_ten": min(TOP, len(pairs)),
        "top_ten_kept": top_kept(first, second, TOP),
        "top_hundredth": top,
        "top_hundredth_kept": top_kept(first, second, top),
    }


def _number(value: float | None) -> float:
    """What is null in a file was infinite."""
    return np.inf if value is None else value


def _most_changed(pairs: Sequence[ComparedRecord], sign: float) -> list[ComparedRecord]:
    """Those whose advantage moved most in the direction of ``sign``; equal ones by their KL."""

    def change(pair: ComparedRecord) -> tuple[float, float]:
        advantage = _number(pair.second_advantage) - _number(pair.first_advantage)
        kl = np.nan_to_num(_number(pair.second_kl) - _number(pair.first_kl))
        return sign * advantage, sign * float(kl)

    moved = [pair for pair in pairs if change(pair) > (0.0, 0.0)]
    return sorted(moved, key=change, reverse=True)[:NAMED]


def _entries(sides: tuple[Side, Side]) -> tuple[list[SideEntry], tuple[FloatArray, FloatArray]]:
    """Both sides summed up, with the edges of their histograms: advantage, log10 of the KL."""
    levels = [
        np.log10(side.audit.kl[np.isfinite(side.audit.kl) & (side.audit.kl > 0.0)])
        for side in sides
    ]
    kl_edges = np.histogram_bin_edges(np.concatenate(levels), BINS)
    edges = np.linspace(0.0, 1.0, BINS + 1), kl_edges
    entries = []
    for side, level in zip(sides, levels, strict=True):
        audit = side.audit
        # Where the level is assumed or an interval, a rate at the end of the scale says nothing.
        vague = audit.basis == "assumed" or "advantage_low" in audit.table
        largest = {} if vague else audit.totals.largest
        entries.append(
            SideEntry(
                run=side.name,
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
                unconfirmed=len(unsettled(audit, [side.verification])),
                advantage_counts=np.histogram(audit.advantage, bins=edges[0])[0].tolist(),
                log10_kl_counts=np.histogram(level, bins=edges[1])[0].tolist(),
            )
        )
    return entries, edges


def _differences(one: Side, two: Side) -> list[DifferenceEntry]:
    """Settings, the model as used, data and versions, where they are not the same."""
    sides = []
    for side in (one, two):
        audit, source = side.audit, side.audit.dataset.source
        sides.append(
            {
                **{f"setting {name}": value for name, value in audit.settings.items()},
                **audit.about.facts(audit),
                "dataset": audit.dataset.name,
                "records": audit.dataset.records,
                "features": audit.dataset.features,
                "outputs": audit.dataset.outputs,
                "target": audit.dataset.target_name,
                STEPS: "; ".join(audit.dataset.steps),
                "data digest": None if source is None else source.digest[:12],
                "version of leakscope": audit.leakscope_version,
                **{
                    # A side without a run directory says nothing of its versions.
                    f"version of {name}": text
                    for name, text in side.versions.items()
                    if name in one.versions and name in two.versions
                },
            }
        )
    return [
        DifferenceEntry(
            what=name, first=_text(sides[0].get(name)), second=_text(sides[1].get(name))
        )
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _share(advantage: FloatArray) -> float:
    return float(np.mean(advantage >= EXPOSED_ABOVE))


def _worse(sides: tuple[Side, Side], tolerance: float) -> tuple[list[str], list[str]]:
    """A sentence for each respect in which the second run is worse, and where that is not known.

    Where numbers have intervals it is worse only if the whole interval lies above the first's.
    """
    audits = [side.audit for side in sides]
    unit, worse, unsure = audits[1].unit, list[str](), list[str]()
    respects: list[tuple[str, str, Callable[[FloatArray], Any], str]] = [
        ("the largest advantage", "advantage", np.max, ".4f"),
        ("the median advantage", "advantage", np.median, ".4f"),
        (f"the share of {unit}s with an advantage of {EXPOSED_ABOVE:g} or more",
         "advantage", _share, ".1%"),
    ]  # fmt: skip
    if not any(a.basis == "assumed" or "advantage_low" in a.table for a in audits):
        respects.append(("the largest TPR at 0.1% FPR", "tpr_at_fpr_0_001", np.max, ".4f"))
    for words, column, summed, form in respects:
        if not all(column in audit.table for audit in audits):
            continue
        before, after = (float(summed(audit.table.of(column))) for audit in audits)
        if not after - before > tolerance:
            continue
        sentence = f"{words} rises from {before:{form}} to {after:{form}}"
        ends = [
            [float(summed(audit.table.of(f"{column}_{end}"))) for end in ("low", "high")]
            for audit in audits
            if f"{column}_low" in audit.table
        ]
        if len(ends) == 2 and ends[1][0] <= ends[0][1]:
            unsure.append(f"{sentence}, but their intervals overlap")
        else:
            worse.append(sentence)
    left = [len(unsettled(side.audit, [side.verification])) for side in sides]
    if left[1] > left[0]:
        sentence = audits[1].about.not_confirmed.format(f"{left[1]} {unit}s")
        (unsure if "advantage_low" in audits[1].table else worse).append(
            f"{sentence} ({left[0]} in the first run)"
        )
    return worse, unsure


def _confounded(
    sides: tuple[Side, Side], differences: Sequence[DifferenceEntry], same: bool | None
) -> str | None:
    """What else than the model moved the level; None where nothing did."""
    one, two = (side.audit for side in sides)
    if "assumed" in (one.basis, two.basis):
        of_model = {*one.about.facts(one), *two.about.facts(two)} - {"route"}
        if any(entry.what in of_model for entry in differences):
            return "the two runs assume different models, and that alone changes the numbers"
        return None
    asked = [name for name in ASSUMED if getattr(one, name) != getattr(two, name)]
    if asked:
        which = ", ".join(f"{n} {getattr(one, n)} and {getattr(two, n)}" for n in asked)
        return (
            f"the two runs assume different attackers ({which}), and that alone changes the numbers"
        )
    if same is False:
        return "the data differ, and each run's numbers are over its own records"
    return None


def _verdict(
    sides: tuple[Side, Side],
    entries: Sequence[SideEntry],
    worse: Sequence[str],
    unsure: Sequence[str],
    confounded: str | None,
) -> str:
    """Whether the second run is worse, what moved, and whether an improvement may be claimed."""
    (first, second), (one, two) = entries, (side.audit for side in sides)
    if worse:
        opening = f"The second run is worse: {'; '.join(worse)}."
        if confounded:
            opening += f" {confounded[0].upper()}{confounded[1:]}."
    elif unsure:
        opening = f"Cannot tell whether the second run is worse: {'; '.join(unsure)}."
    else:
        opening = "The second run is no worse."
        if confounded:
            opening = f"No improvement can be claimed: {confounded}."
        opening += (
            f" The largest advantage went from {_number(first.largest_advantage):.4f} to "
            f"{_number(second.largest_advantage):.4f}, the median from "
            f"{_number(first.median_advantage):.4f} to {_number(second.median_advantage):.4f}, and "
            f"the {one.unit}s with {EXPOSED_ABOVE:g} or more from {first.exposed} of {first.units} "
            f"to {second.exposed} of {second.units}."
        )
    if "assumed" in (one.basis, two.basis):
        examined = "Each is under its own assumed model; no trained model was examined."
    elif one.model.stand_in or two.model.stand_in:
        examined = (
            "A stand-in that leakscope fitted was examined, and not the model that you release."
        )
    else:
        examined = f"Examined were {one.model.name} and {two.model.name}."
    return f"{opening} {examined}"


def _warnings(sides: tuple[Side, Side], *, by_rows: bool) -> list[str]:
    one, two = (side.audit for side in sides)
    warnings = []
    if one.dataset.outputs != two.dataset.outputs:
        warnings.append(
            f"one run has {one.dataset.outputs} outputs and the other {two.dataset.outputs}: KL "
            "sums over outputs and is not compared across them; advantages are."
        )
    for place, side in zip(("first", "second"), sides, strict=True):
        doubt = doubt_left(side.audit, [side.verification])
        if doubt is not None:
            warnings.append(f"in the {place} run, {doubt}")
    in_memory = one.dataset.source is None or two.dataset.source is None
    if by_rows and in_memory and any(side.has_row_numbers for side in sides):
        warnings.append(
            "both runs are of arrays in memory; equal rows are taken for the same record."
        )
    return warnings
