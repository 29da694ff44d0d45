"""In which respects two audits differ: settings, kernel as used, data, versions."""

from __future__ import annotations

from typing import Any

from leakscope.results import STEPS, AuditDocument, DifferenceEntry, ModelAuditDocument


def run_differences(
    one: AuditDocument | ModelAuditDocument,
    two: AuditDocument | ModelAuditDocument,
    one_versions: dict[str, str],
    two_versions: dict[str, str],
) -> list[DifferenceEntry]:
    """Settings, kernel as used, data and versions, where they are not the same.

    Parameters
    ----------
    one, two
        The audits.
    one_versions, two_versions
        Of what can change a number, by package; empty where they are not known.
    """
    told = []
    for document, versions in ((one, one_versions), (two, two_versions)):
        source = document.dataset.source
        told.append(
            {
                **{f"setting {name}": value for name, value in document.settings.items()},
                **_audited(document),
                "dataset": document.dataset.name,
                "records": document.dataset.records,
                "features": document.dataset.features,
                "outputs": document.dataset.outputs,
                "target": document.dataset.target_name,
                STEPS: "; ".join(document.dataset.steps),
                "data digest": None if source is None else source.digest[:12],
                "version of leakscope": document.leakscope_version,
                **{f"version of {name}": text for name, text in versions.items()},
            }
        )
    # One that has no run directory says nothing of its versions; that is no difference.
    names = [name for name in dict.fromkeys([*told[0], *told[1]]) if _known(name, told)]
    return [
        DifferenceEntry(what=name, first=_text(told[0].get(name)), second=_text(told[1].get(name)))
        for name in names
        if told[0].get(name) != told[1].get(name)
    ]


def _audited(document: AuditDocument | ModelAuditDocument) -> dict[str, Any]:
    """The kernel as used, or the model and what was asked of it."""
    if isinstance(document, AuditDocument):
        return {
            **{f"kernel {name}": value for name, value in document.kernel.items()},
            "noise_variance as used": document.noise_variance,
            "route": document.route,
        }
    digest = document.model.file_sha256
    return {
        "model": document.model.name,
        "model from": document.model.origin,
        "model file": None if digest is None else digest[:12],
        "question as used": document.question,
        "fraction as used": document.fraction,
        "observes as used": document.observes,
    }


def _known(name: str, told: list[dict[str, Any]]) -> bool:
    return not name.startswith("version of") or all(name in side for side in told)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
