"""What a person sees of ``leakscope attack query``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.cli.output import table, wrapped

if TYPE_CHECKING:
    from leakscope.results import QueryAttack


def page(document: QueryAttack) -> str:
    """What a person sees."""
    about = document.dataset
    who = "record" if len(document.records) == 1 else "records"
    named = ", ".join(str(name) for name in document.records)
    opening = f"{about.name}: {who} {named} of {about.records}, {about.features} features"
    values = table(
        ["", "kl", "advantage"],
        [
            ["at the best query", f"{document.kl:.4g}", f"{document.advantage:.4f}"],
            [
                f"at the {who} itself" if who == "record" else "at the records themselves",
                f"{document.kl_at_record:.4g}",
                f"{document.advantage_at_record:.4f}",
            ],
        ],
    )
    rows = [
        [
            str(j),
            str(one.nearest_record),
            f"{one.distance:.4g}",
            "-" if one.relative_distance is None else f"{one.relative_distance:.4g}",
            f"{one.cosine:.5f}",
            f"{one.prediction_kl:.4g}",
        ]
        for j, one in enumerate(document.queries)
    ]
    headings = ["query", "nearest", "distance", "/ neighbour", "cosine", "prediction_kl"]
    parts = [opening, values, table(headings, rows), wrapped(document.verdict)]
    if document.pictures:
        parts.append(f"Pictures: {', '.join(document.pictures)}")
    return "\n\n".join(parts)
