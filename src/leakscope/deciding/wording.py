"""The first page in sentences, and why a record cannot be approved where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from leakscope.data.columns import listed
from leakscope.deciding.coverage import coverage_sentence
from leakscope.deciding.evidence import Evidence
from leakscope.deciding.exposure import Exposure, subgroups_of
from leakscope.results.attacks import FitReconstructAttack
from leakscope.results.audit import FPRS, Audit, Subgroup
from leakscope.results.decision import AttackerEntry, CoverageRow, LevelEntry, ThresholdEntry
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement
from leakscope.results.reconciliation import ReconciledRow
from leakscope.results.verification import Verification
from leakscope.settings.decide import DecideSettings

NAMES = {"outsider": "an outsider", "pool": "LiRA's attacker (pool)", "insider": "an insider"}

WEIGHTS = (
    "the weights are released, and only one answer about each record was examined; whoever holds "
    "the weights can do more, so approve it with conditions only."
)


def obstacles_of(evidence: Evidence, found: Exposure | None, settings: DecideSettings) -> list[str]:
    """Why nobody can approve on these runs; none where somebody can."""
    sentences = [
        f"{result.name} has no checksum (digest), so it is not known whether its numbers were "
        "changed; give the run directory as leakscope audit wrote it."
        for result in evidence.given
        if result.sealed is False and isinstance(result.document, Audit)
    ]
    sentences += [
        f"{name} contradicts the audit ({verified.differs} of {len(verified.checks)} checks "
        "differ): its numbers are not those of your model; audit the training with more models "
        "(leakscope audit --train)."
        for name, verified in evidence.all_of(Verification)
        if verified.contradicts
    ]
    audit = evidence.audit
    if audit is None or found is None:
        sentences.append(
            "no run says how exposed single records are; audit the model."
            if evidence.stand_in is None
            else "a stand-in was examined (a Gaussian process with an assumed noise), and not the "
            "model that is to be released."
        )
        return [*sentences, *_whose_rows(evidence.stand_in, settings)]
    if audit.model.stand_in:
        sentences.append(
            f"a stand-in was examined, {audit.model.name} as leakscope fitted it; audit the model "
            "that is to be released."
        )
    if audit.dataset.sampled_from is not None:
        sentences.append(
            f"the audit is of a sample of {audit.units} records of {audit.dataset.sampled_from}, "
            "and so of another model than the one trained on all records; audit without --sample."
        )
    if settings.access == "weights" and audit.model.holds_records:
        sentences.append(
            f"the weights are released, and a fitted {audit.model.type} contains training records "
            "unchanged, which anyone with the file can read; release answers only, or another "
            "model."
        )
    sentences += _whose_rows(audit, settings)
    if found.unknown:
        in_memory = audit.dataset.source is None
        command = "leakscope.verify(audit, models=...)" if in_memory else (
            "leakscope verify RUN --models ... --json RUN/verify.json"
        )  # fmt: skip
        tried = [v.settings.get("models", 0) for _, v in evidence.all_of(Verification)]
        more = f"{max(tried)} refits did not confirm them, and more" if tried else "200 refits"
        sentences.append(
            f"the numbers of {found.unknown} of {audit.units} {audit.unit}s are not confirmed; "
            f"{more} may tell ({command})."
        )
    return sentences


def _whose_rows(audit: Audit | None, settings: DecideSettings) -> list[str]:
    """Why several rows may be one person's, unless a person says that they are not."""
    if audit is None or settings.each_row is not None:
        return []
    dataset, doubts = audit.dataset, list[str]()
    if dataset.person_columns:
        names = listed([repr(name) for name in dataset.person_columns])
        doubts.append(f"rows were examined one by one, and {names} may say whose they are")
    if dataset.copies:
        doubts.append(
            f"{dataset.copies} of {dataset.records} records are copies of another {audit.unit}'s"
        )
    return [
        f"{doubt}: if several are of one person, that person is more exposed than any single row "
        "shows; audit people (--group), or declare with --each-row that each row is a person of "
        "its own."
        for doubt in doubts
    ]


def summary_of(
    evidence: Evidence,
    found: Exposure | None,
    limits: Sequence[ThresholdEntry],
    levels: Sequence[LevelEntry],
    rows: Sequence[ReconciledRow],
    attacks: Sequence[CoverageRow],
    settings: DecideSettings,
    against: Sequence[AttackerEntry],
) -> list[str]:
    """What was examined, how exposed people are, whether the thresholds hold, what was not run."""
    audit = evidence.audit
    if audit is None or found is None:
        what = "a stand-in (a Gaussian process)" if evidence.stand_in else "no single records"
        sentences = [f"Examined: {what}. How exposed single records are is not known."]
    else:
        sentences = [audit.answer(ids=False)[0], _exposed(found)]
    sentences += [_limit(limit, found, audit) for limit in limits]
    if levels and levels[0].expected_found is not None and audit is not None:
        sentences.append(_everybody(levels[0], audit.units, settings.prior))
    sentences += _groups(subgroups_of(audit, redact=True))
    sentences.append(_measured(rows))
    sentences += _beside_membership(evidence)
    if settings.queries is not None:
        sentences.append(
            f"The {settings.queries:,} questions that each recipient may ask change no number "
            "here: the numbers assume one question about each record, and several can tell more."
        )
    if audit is not None and audit.basis == "measured":
        sentences.append("The training was examined, not the file that is released.")
    sentences += _next_attacker(against)
    if settings.access == "weights":
        sentences.append(f"{WEIGHTS[:1].upper()}{WEIGHTS[1:]}")
    return [*sentences, coverage_sentence(attacks)]


def _exposed(found: Exposure) -> str:
    words = f"Most exposed ({found.how}): advantage {_most(found, 'advantage')}."
    rates = [
        f"{_most(found, name)} at {100 * fpr:g}% FPR"
        for fpr, name in sorted(FPRS.items())
        if found.largest(name) is not None
    ]
    return f"{words} Largest TPR: {', '.join(rates)}." if rates else words


def _most(found: Exposure, name: str) -> str:
    """The largest value, and how far the intervals reach."""
    value, end = found.largest(name), found.largest_end(name)
    text = "not known" if value is None else _shown(name, value)
    reach = text if end is None else _shown(name, end)
    return text if reach == text else f"{text} (intervals up to {reach})"


def _shown(name: str, value: float) -> str:
    """Two digits, of a TPR in per cent; what would round to 1 is not certainty."""
    scale, unit = (1, "") if name == "advantage" else (100, "%")
    return f">{0.99 * scale:g}{unit}" if value >= 0.995 else f"{scale * value:.2g}{unit}"


def _limit(limit: ThresholdEntry, found: Exposure | None, audit: Audit | None) -> str:
    words = f"Threshold: {limit.measure}, {limit.limit:.3g} at most."
    if limit.met is None or found is None or audit is None:
        return f"{words} Whether it is met is not known."
    if limit.met:
        return f"{words} Met by every {audit.unit}."
    verb = "is" if limit.above == 1 else "are"
    # Where there are intervals, those are counted that lie above it as a whole.
    surely = " surely" if found.has_intervals else ""
    count = f"{limit.above} of {audit.units} {audit.unit}s {verb}"
    return f"{words} Not met: {count}{surely} above it."


def _everybody(level: LevelEntry, people: int, prior: float | None) -> str:
    count = level.expected_found or 0.0
    words = (
        f"An attack on all {people} people that accuses one nonmember in a thousand finds "
        f"{f'{count:.2g}' if count < 99.5 else f'{count:,.0f}'} of them on average."
    )
    if level.ppv is not None and prior is not None and level.lift is not None:
        words += (
            f" Where {100 * prior:.3g}% of those asked about are members, its accusations are "
            f"right {100 * level.ppv:.3g}% of the time ({level.lift:.3g} times as often as before)."
        )
    return words


def _measured(rows: Sequence[ReconciledRow]) -> str:
    """How many measured numbers agree with the audit, and the first that does not."""
    if not rows:
        return "Nothing was measured: no run of verify or measure was given."
    agree = sum(row.agrees == "agrees" for row in rows)
    words = f"Measured beside predicted: {agree} of {len(rows)} numbers agree."
    differ = next((row for row in rows if row.agrees == "differs"), None)
    if differ is not None:
        words += f" Not so {differ.quantity}: believe {differ.believe}, because {differ.why}."
    return words


def _beside_membership(evidence: Evidence) -> list[str]:
    """What was found beside membership that whoever signs must not miss in a table."""
    found = [
        f"Reconstruction: {attack.verdict}"
        for _, attack in evidence.all_of(FitReconstructAttack)
        if attack.determined == "record" or attack.found
    ]
    found += [
        f"Erasure: {erasure.verdict}"
        for _, erasure in evidence.all_of(Erasure)
        if erasure.met is not True
    ]
    for _, canaries in evidence.all_of(CanaryMeasurement):
        found += [f"Canaries: {sentence}" for sentence in chain(*canaries.contradictions())]
    return found


def _next_attacker(against: Sequence[AttackerEntry]) -> list[str]:
    """What the thresholds would be against the attacker who knows more than the one judged."""
    judged = next((place for place, row in enumerate(against) if row.judged), None)
    if judged is None or judged + 1 >= len(against):
        return []
    row, own = against[judged + 1], against[judged]
    met = {True: "be met", False: "not be met", None: "not be known to be met"}[row.within]
    advantage = _shown("advantage", row.largest_advantage or 0.0)
    tpr = _shown("tpr", row.largest_tpr_at_fpr_0_001 or 0.0)
    who = [NAMES.get(entry.attacker, "the attacker of the audit") for entry in (own, row)]
    return [
        f"Judged against {who[0]}. Against {who[1]}, who {row.who}, the largest advantage is "
        f"{advantage} and the largest TPR {tpr} at 0.1% FPR: the thresholds would {met}. An "
        "attacker who knows all other records can be certain."
    ]


def _groups(subgroups: Sequence[Subgroup]) -> list[str]:
    """Of each column the kinds of records that are most and least exposed, of ten or more."""
    sentences = []
    for column in dict.fromkeys(entry.column for entry in subgroups):
        own = [entry for entry in subgroups if entry.column == column]
        most, least = (
            f"{entry.value} ({entry.median_advantage:.2g}, {entry.count:,} records)"
            for entry in (own[0], own[-1])
        )
        if len(own) > 1:
            sentences.append(
                f"By {column}, the median advantage is highest for {most} and lowest for {least}."
            )
    return sentences
