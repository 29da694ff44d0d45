"""The first page in sentences, and why a record cannot be approved where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from leakscope.data.columns import listed
from leakscope.deciding.coverage import coverage_sentence
from leakscope.deciding.evidence import Evidence
from leakscope.deciding.exposure import Exposure, subgroups_of
from leakscope.results.attacks import FitReconstructAttack
from leakscope.results.audit import Audit, Subgroup
from leakscope.results.decision import AttackerEntry, CoverageRow, LevelEntry, ThresholdEntry
from leakscope.results.erasure import Erasure
from leakscope.results.measurement import CanaryMeasurement
from leakscope.results.reconciliation import ReconciledRow, was_retrained
from leakscope.results.verification import Verification
from leakscope.settings.decide import DecideSettings

NAMES = {"outsider": "an outsider", "pool": "LiRA's attacker (pool)", "insider": "an insider"}
AUDITED = "the attacker of the audit"

WEIGHTS = (
    "the weights are released, and only one answer about each record was examined; whoever holds "
    "the weights can do more, so approve it with conditions only."
)


def obstacles_of(
    evidence: Evidence,
    found: Exposure | None,
    settings: DecideSettings,
) -> list[str]:
    """Why nobody can approve on these runs; none where somebody can."""
    audit = evidence.audit
    sentences = [
        f"{one.name} has no checksum (digest), so it is not known whether its numbers were "
        "changed; give the run directory as leakscope audit wrote it."
        for one in evidence.given
        if one.sealed is False and isinstance(one.document, Audit)
    ]
    sentences += [
        f"{name} contradicts the audit ({verified.differs} of {len(verified.checks)} checks "
        "differ): its numbers are not those of your model; audit the training with more models "
        "(leakscope audit --train)."
        for name, verified in evidence.all_of(Verification)
        if verified.contradicts
    ]
    if found is None and evidence.stand_in is not None:
        sentences.append(
            "a stand-in was examined (a Gaussian process with an assumed noise), and no run "
            "measures the model that is to be released."
        )
    elif found is None:
        sentences.append("no run says how exposed single records are; audit the model.")
    if audit is not None and audit.model.stand_in:
        sentences.append(
            f"a stand-in was examined, {audit.model.name} as leakscope fitted it; audit the model "
            "that is to be released."
        )
    if audit is not None and audit.dataset.sampled_from is not None:
        sentences.append(
            f"the audit is of a sample of {audit.units} records of {audit.dataset.sampled_from}, "
            "and so of another model than the one trained on all records; audit without --sample."
        )
    if audit is not None and settings.access == "weights" and audit.model.holds_records:
        sentences.append(
            f"the weights are released, and a fitted {audit.model.type} contains training records "
            "unchanged, which anyone with the file can read; release answers only, or another "
            "model."
        )
    sentences += _whose_rows(audit or evidence.stand_in, settings)
    if found is not None and found.unknown:
        sentences.append(
            f"the numbers of {found.unknown} of {found.records} {_units(evidence)}s are not "
            f"trusted, and {_checked(evidence)}"
        )
    return sentences


def _whose_rows(audit: Audit | None, settings: DecideSettings) -> list[str]:
    """Why several rows may be one person's, unless a person says that they are not."""
    if audit is None or settings.each_row is not None:
        return []
    told, doubts = audit.dataset, list[str]()
    if told.person_columns:
        names = listed([repr(name) for name in told.person_columns])
        doubts.append(f"rows were examined one by one, and {names} may say whose they are")
    if told.copies:
        doubts.append(
            f"{told.copies} of {told.records} records are copies of another {audit.unit}'s"
        )
    return [
        f"{doubt}: if several are of one person, that person is more exposed than any single row "
        "shows; audit people (--group), or declare with --each-row that each row is a person of "
        "its own."
        for doubt in doubts
    ]


def _units(evidence: Evidence) -> str:
    return "record" if evidence.audit is None else evidence.audit.unit


def _checked(evidence: Evidence) -> str:
    """What shadow models have said of what is not trusted, and what to do."""
    audit = evidence.audit
    if audit is None:
        return "more models would tell (leakscope measure --logits)."
    tried = [
        int(found.settings.get("models") or 0)
        for _, found in evidence.all_of(Verification)
        if was_retrained(found)
    ]
    if not tried:
        return f"no shadow models have confirmed them; {_verify(audit, 200)} checks them."
    return (
        f"the {max(tried)} shadow models of verify were too few to tell; "
        f"{_verify(audit, max(400, 2 * max(tried)))} may."
    )


def _verify(audit: Audit | None, models: int) -> str:
    """How to verify this audit: from its file, or where its data are."""
    if audit is not None and audit.dataset.source is None:
        return f"leakscope.verify(audit, models={models}), given to decide beside the audit,"
    return f"leakscope verify RUN --models {models} --json RUN/verify.json"


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
    sentences = [_examined(evidence), _exposed(found)]
    sentences += [_limit(limit, found, _units(evidence)) for limit in limits]
    first = levels[0] if levels else None
    if first is not None and first.expected_found is not None and found is not None:
        words = (
            f"An attack on all {found.records} people that accuses one nonmember in a thousand "
            f"finds {_people(first.expected_found)} of them on average."
        )
        if first.ppv is not None and settings.prior is not None and first.lift is not None:
            words += (
                f" Where {100 * settings.prior:.3g}% of those asked about are members, its "
                f"accusations are right {100 * first.ppv:.3g}% of the time ({first.lift:.3g} times "
                "as often as before)."
            )
        sentences.append(words)
    sentences += _groups(subgroups_of(evidence, redact=True))
    if rows:
        differ = [row for row in rows if row.agrees == "differs"]
        agree = sum(row.agrees == "agrees" for row in rows)
        words = f"Measured beside predicted: {agree} of {len(rows)} numbers agree."
        if len(rows) == 1:
            words = "The one number that was measured "
            words += "agrees with the audit." if agree else "does not agree with the audit."
        if differ:
            words += f" {differ[0].quantity[:1].upper()}{differ[0].quantity[1:]} differs: believe "
            words += f"{differ[0].believe}, because {differ[0].why}."
        sentences.append(words)
    elif found is None or found.basis == "computed":
        sentences.append("Nothing was measured: no run of verify or measure was given.")
    sentences += _beside_membership(evidence)
    if settings.queries is not None:
        sentences.append(_questions(settings.queries, None if found is None else found.records))
    if evidence.audit is not None and evidence.audit.basis == "measured":
        sentences.append("The training was examined, not the file that is released.")
    sentences += _next_attacker(against)
    if settings.access == "weights":
        sentences.append(f"{WEIGHTS[:1].upper()}{WEIGHTS[1:]}")
    sentences.append(coverage_sentence(attacks))
    return sentences


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
        for sentence in chain(*canaries.contradictions()):
            found.append(f"Canaries: {sentence}")
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
    return [
        f"Judged against {NAMES.get(own.attacker, AUDITED)}. Against "
        f"{NAMES.get(row.attacker, AUDITED)}, who {row.who}, the largest advantage is {advantage} "
        f"and the largest TPR {tpr} at 0.1% FPR: the thresholds would {met}. An attacker who knows "
        "all other records can be certain."
    ]


def _questions(queries: int, records: int | None) -> str:
    """What a limit on the questions changes: nothing, unless it is below the number of people."""
    if records is not None and queries < records:
        return (
            f"With {queries:,} questions a recipient can ask about at most {queries:,} of the "
            f"{records:,} people; each record's own numbers stay the same."
        )
    return (
        f"The {queries:,} questions that each recipient may ask change no number here: the numbers "
        "assume one question about each record, and several questions about one record can tell "
        "more."
    )


def _groups(subgroups: Sequence[Subgroup]) -> list[str]:
    """Of each column the kinds of records that are most and least exposed, of ten or more."""
    sentences = []
    for column in dict.fromkeys(entry.column for entry in subgroups):
        own = [entry for entry in subgroups if entry.column == column]
        if len(own) > 1:
            most, least = (
                f"{entry.value} ({entry.median_advantage:.2g}, {entry.count:,} records)"
                for entry in (own[0], own[-1])
            )
            sentences.append(
                f"By {column}, the median advantage is highest for {most} and lowest for {least}."
            )
    return sentences


def _people(count: float) -> str:
    return f"{count:.2g}" if count < 99.5 else f"{count:,.0f}"


def _examined(evidence: Evidence) -> str:
    audit = evidence.audit
    if audit is not None:
        return audit.answer(ids=False)[0]
    trained = [v for _, v in evidence.all_of(Verification) if "trainer" in v.settings]
    if trained and was_retrained(trained[0]):
        name = trained[0].settings["trainer"].get("name", "a training function")
        return f"Examined: your own model, {name}, which verify trained again and again."
    if evidence.stand_in is not None:
        return "Examined: a stand-in (a Gaussian process), not the model itself."
    return f"Examined: {', '.join(given.name for given in evidence.given)}."


def _exposed(found: Exposure | None) -> str:
    if found is None:
        return "How exposed single records are is not known."
    words = f"Most exposed ({found.how}): advantage {_most(found, 'advantage')}."
    if found.largest("tpr_low") is not None:
        words += f" Largest TPR: {_most(found, 'tpr_low')} at 0.1% FPR"
        if found.largest("tpr_high") is not None:
            words += f", {_most(found, 'tpr_high')} at 1% FPR"
        words += "."
    return words


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


def _limit(limit: ThresholdEntry, found: Exposure | None, unit: str) -> str:
    words = f"Threshold: {limit.measure}, {limit.limit:.3g} at most."
    if limit.met is None:
        name = "advantage" if limit.measure == "advantage" else "tpr_low"
        reach = None if found is None else found.largest_end(name)
        why = "" if reach is None else f": intervals reach {reach:.3g}"
        return f"{words} Whether it is met is not known{why}."
    if limit.met:
        return f"{words} Met by every {unit}" + (
            "." if found is None or found.complete else f" of the {len(found.ids)} measured."
        )
    count = "" if found is None else f" of {len(found.ids)}"
    verb = "is" if limit.above == 1 else "are"
    # Where there are intervals, those are counted that lie above it as a whole.
    surely = " surely" if found is not None and found.low else ""
    return f"{words} Not met: {limit.above}{count} {unit}s {verb}{surely} above it."
