"""Changes that were tried or searched, what they do and what they cost."""

from __future__ import annotations

from leakscope.deciding.evidence import Evidence
from leakscope.results import Advice, Comparison, MitigationRow


def mitigation_rows(evidence: Evidence) -> list[MitigationRow]:
    """From advice, comparisons, and what the audit itself offers."""
    rows: list[MitigationRow] = []
    for name, advice in evidence.all_of(Advice):
        for option in advice.options:
            price = f"error {_digits(option.error)}, {_digits(option.cost)} more than as audited"
            if option.accuracy is not None:
                price += f"; accuracy {_digits(option.accuracy)}"
            rows.append(
                MitigationRow(
                    change=": ".join(part for part in (option.name, option.setting_words) if part),
                    effect=f"worst {advice.target_label} {_digits(option.worst)}"
                    + ("" if option.meets else ", which does not meet the target"),
                    price=price,
                    run=name,
                )
            )
    for name, compared in evidence.all_of(Comparison):
        rows.append(
            MitigationRow(
                change="; ".join(
                    f"{entry.what}: {entry.first} to {entry.second}"
                    for entry in compared.differences[:3]
                )
                or "none",
                effect=f"largest advantage {_digits(compared.first.largest_advantage)} to "
                f"{_digits(compared.second.largest_advantage)}",
                price="not stated",
                run=name,
            )
        )
    for name, audit in evidence.audits:
        rows += [MitigationRow(**told, run=name) for told in audit.about.remedies(audit)]
    return rows


def _digits(value: float | None) -> str:
    return "not stated" if value is None else f"{value:.3g}"
