"""Files of audits, of this version and of every one before: what they hold, as an ``Audit`` has it.

This is the only place, beside the table of kinds, that looks at which kind a file is of.
"""

from __future__ import annotations

from typing import Any

from leakscope.results.audit import EXPOSED_ABOVE, Audit

# What stands in the file under another name, and what is worked out again.
RENAMED = {"answer": "sentences", "answer_without_ids": "sentences_without_ids"}
WORKED_OUT = ("verdict", "verdict_without_ids")

COMMON = {*Audit.model_fields, *RENAMED, "records", *WORKED_OUT} - {"details", "table"}


def is_audit(content: dict[str, Any]) -> bool:
    """Whether a result file holds an audit."""
    return str(content.get("kind")).split("_")[0] == "audit"


def as_audit(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file as those of an :class:`Audit`, whichever version wrote it."""
    found = dict(content)
    found.setdefault("subject", _subject(found))
    if found["subject"] in ("process", "stream"):
        _complete_process(found)
    found.setdefault("exposed_above", EXPOSED_ABOVE)
    details = {name: found.pop(name) for name in list(found) if name not in COMMON}
    for name in WORKED_OUT:
        # What is no text was never written, and is refused with what else does not belong there.
        if isinstance(found.get(name), str | None):
            found.pop(name, None)
    for name, own in RENAMED.items():
        if name in found:
            found[own] = found.pop(name)
    return {**found, "details": details}


def _subject(content: dict[str, Any]) -> str:
    """The kind of an earlier version's file, which did not name it."""
    kind = content.get("kind")
    if kind == "audit_streamed":
        return "stream"
    if kind == "audit_model":
        return "fit" if content.get("models") is None else "training"
    return "process"


def _complete_process(content: dict[str, Any]) -> None:
    """What earlier files of Gaussian processes did not say in so many words."""
    provenance = content.get("provenance")
    told = provenance if isinstance(provenance, dict) else {}
    content.setdefault("question", str(told.get("question", "leave_one_out")))
    content.setdefault("observes", str(told.get("observes", "latent")))
    verdict = content.get("verdict")
    if "answer" not in content and isinstance(verdict, str):
        content["answer"] = [verdict]
        without = content.get("verdict_without_ids")
        content["answer_without_ids"] = None if without is None else [without]
    if "model" not in content and isinstance(content.get("kernel"), dict):
        from leakscope.results.process_words import process_model

        content["model"] = process_model(content["kernel"], content.get("noise_variance"))
    quantiles = content.get("advantage_quantiles")
    if "median_advantage" not in content and isinstance(quantiles, dict):
        content["median_advantage"] = quantiles.get("0.5")
