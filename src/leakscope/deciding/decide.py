"""From finished runs and what a person declares to the record that is signed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from leakscope import __version__
from leakscope.auditing.gate import limits_of
from leakscope.data.files import is_folder, is_there
from leakscope.deciding.coverage import coverage, mitigation_rows
from leakscope.deciding.evidence import (
    Evidence,
    Evident,
    gathered_evidence,
    require_model_file,
)
from leakscope.deciding.exposure import (
    against_entries,
    entries_above,
    exposed_entries,
    exposure_of,
    level_entries,
    subgroups_of,
    threshold_entries,
)
from leakscope.deciding.fields import attacker_fields, context_fields, identity_fields
from leakscope.deciding.wording import WEIGHTS, obstacles_of, summary_of
from leakscope.errors import InputError
from leakscope.reporting.decision_page import decision_pages
from leakscope.results.decision import (
    DECISION_FILES,
    Decision,
    SignOff,
    require_sealed,
    sealed_record,
)
from leakscope.results.reader import read_result
from leakscope.results.reconciliation import reconciled
from leakscope.results.run_directory import versions
from leakscope.settings.decide import ATTACKERS, DecideSettings
from leakscope.settings.setting import validated


def decide(
    *runs: Evident, model: str | Path | None = None, redact: bool = False, **declared: Any
) -> Decision:
    """The sign-off record of one model: what was examined, what was found, what was declared.

    Parameters
    ----------
    runs
        Of one model and one dataset: an audit, and what verify, measure, advise, compare and
        attack said of it; results in memory, runs, or paths of run directories and result files.
        What verify and measure left inside a run directory is read with it.
    model
        The file of the model that is to be released; it is hashed, never opened as a model, and
        refused where the audit was of another file.
    redact
        Without the ids of records.
    declared
        The fields of :class:`leakscope.settings.DecideSettings`: at least one threshold
        (``threshold_advantage``, ``threshold_tpr``, ``threshold_ppv``), ``prior``, ``reason``,
        the context of the release, and the decision itself where it has been taken.

    Raises
    ------
    InputError
        Where the runs are of different data or models, no threshold is given, the model's file
        changed, or the record may not be marked as approved.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> import leakscope
    >>> X, y = load_diabetes(return_X_y=True)
    >>> audit = leakscope.audit(X, y, model=Ridge(alpha=1.0).fit(X, y))
    >>> found = leakscope.decide(audit, threshold_advantage=0.5, prior=0.01)
    >>> found.thresholds[0].met, found.stated("recipient").text, found.sign_off.decision
    (True, 'not stated', None)
    """
    start = time.perf_counter()
    settings = validated(DecideSettings, **declared)
    _require_threshold(settings)
    evidence = gathered_evidence(runs)
    file = require_model_file(evidence, model)
    found = exposure_of(evidence)
    # The result whose attacker and assumptions are those of the decision.
    main = evidence.audit or evidence.stand_in or evidence.given[0].document
    documents = [given.document for given in evidence.given]
    rows = reconciled(evidence.audit or evidence.stand_in, documents)
    _require_attacker(evidence, settings)
    obstacles = obstacles_of(evidence, found, settings)
    limits = threshold_entries(found, settings)
    attacks = coverage(evidence)
    against = against_entries(evidence, found, settings)
    identity = identity_fields(evidence, file)
    levels = [] if found is None else level_entries(found, settings)
    name = next(
        (f.text for f in identity if f.key in ("model.settings", "model.file") and f.value), None
    )
    record = Decision(
        leakscope_version=__version__,
        settings=settings.model_dump(mode="json"),
        provenance=main.provenance,
        assumptions=main.assumptions,
        timing={"decide": time.perf_counter() - start},
        warnings=[],
        model_name=name or "a model that was not named",
        summary=summary_of(evidence, found, limits, levels, rows, attacks, settings, against),
        obstacles=obstacles,
        identity=identity,
        context=context_fields(evidence, settings),
        attacker=attacker_fields(main, settings),
        exposed_basis="measured" if found is not None and found.basis == "measured" else "computed",
        exposed_how="not known" if found is None else found.how,
        records=None if evidence.audit is None else evidence.audit.units,
        exposed=[] if found is None else exposed_entries(found, settings, ids=not redact),
        above=[] if found is None else entries_above(found, settings, ids=not redact),
        against=against,
        levels=levels,
        subgroups=subgroups_of(evidence.audit, redact=redact),
        thresholds=limits,
        reason=settings.reason,
        reconciliation=rows,
        coverage=attacks,
        mitigations=mitigation_rows(evidence),
        runs=[given.entry() for given in evidence.given],
        versions=evidence.versions or versions(),
        sign_off=_sign_off(settings, obstacles, [limit.met for limit in limits]),
        redacted=redact,
    )
    return sealed_record(record)


def _require_threshold(settings: DecideSettings) -> None:
    if not limits_of(settings):
        raise InputError(
            "What is acceptable?  Give --threshold-advantage, --threshold-tpr or --threshold-ppv; "
            "docs/acceptable.md says how to find one."
        )


def _require_attacker(evidence: Evidence, settings: DecideSettings) -> None:
    """Refuse thresholds for another attacker than the one that was audited."""
    audit, name = evidence.audit, settings.attacker
    if audit is None or name is None:
        return
    question, fraction, _ = ATTACKERS[name]
    asked = audit.question, audit.fraction or ATTACKERS["pool"][1]
    if asked != (question, fraction):
        raise InputError(
            f"the thresholds are for the {name}, and the audit was against another attacker; audit "
            f"with --attacker {name}."
        )


def _sign_off(settings: DecideSettings, obstacles: list[str], met: list[bool | None]) -> SignOff:
    word = settings.decision
    if word is not None and word != "refused":
        if obstacles:
            raise InputError(f"this cannot be marked {word}: {obstacles[0]}")
        if word == "approved" and settings.access == "weights":
            raise InputError(f"this cannot be marked approved: {WEIGHTS}")
        if word == "approved" and not all(met):
            known = "met" if False in met else "known to be met"
            raise InputError(
                f"this cannot be marked approved: a threshold is not {known}; refuse it, or "
                "approve it with conditions."
            )
        if word != "approved" and settings.conditions is None:
            raise InputError("approved with conditions needs conditions (--declare FILE).")
    return SignOff(
        decision=word,
        because=settings.because,
        conditions=settings.conditions,
        approver=settings.approver,
        expires=settings.expires,
    )


def check_record(path: str | Path) -> str:
    """The hash of a record whose files are as they were written.

    The pages are made again from decision.json and compared; only the version of leakscope that
    wrote them can do that.

    Parameters
    ----------
    path
        A record's .json, .html or .md file, or the folder with all three.

    Raises
    ------
    InputError
        Where it is no record, a digit of it was changed, or a page shows another record.

    Examples
    --------
    >>> from leakscope.deciding import check_record
    >>> check_record("no-such-record.json")
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: There is no file no-such-record.json.
    """
    path = Path(path)
    folder = path if is_folder(path) else path.absolute().parent
    together = is_folder(path) or (
        path.name in DECISION_FILES and all(is_there(folder / name) for name in DECISION_FILES)
    )
    if not together:
        return _checked(path)
    hashes = {name: _checked(folder / name) for name in DECISION_FILES}
    record_hash = hashes[DECISION_FILES[0]]
    record = read_result(folder / DECISION_FILES[0])
    assert isinstance(record, Decision)
    pages = decision_pages(record) if record.leakscope_version == __version__ else {}
    for name in DECISION_FILES:
        text = (folder / name).read_text(encoding="utf-8")
        if record_hash not in text or text != pages.get(name, text):
            raise InputError(
                f"{folder / name} does not show the record of {DECISION_FILES[0]}: it was "
                "replaced, or changed and given a new hash."
            )
    return record_hash if is_folder(path) else hashes[path.name]


def _checked(path: Path) -> str:
    carried = require_sealed(path)
    if path.suffix == ".json" and not isinstance(read_result(path), Decision):
        raise InputError(f"{path} is not a record of leakscope decide.")
    return carried
