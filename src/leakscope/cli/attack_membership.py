"""``leakscope attack membership``: which queries was this model trained on?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.attack_pages import NETWORK, TrainingData
from leakscope.cli.options import JsonPath, Options, in_options, with_options
from leakscope.cli.output import emit, table, wrapped
from leakscope.settings.attack import MembershipSettings, PoolAttackSettings

if TYPE_CHECKING:
    from leakscope.results import MembershipAttack, ModelMembershipAttack

SUMMARY = "Which of these queries was a model trained on?  From its answers alone."
EPILOG = "Example: leakscope attack membership network.npz --queries queries.csv"

SHOWN = 20
# Of a fitted model, so that the answer fits one screen.
FEWER = 8


@with_options(settings=Options(MembershipSettings), pooled=Options(PoolAttackSettings))
def membership(
    *,
    model: Annotated[
        str,
        typer.Argument(
            help=f"{NETWORK}  With --pool a fitted model: .skops, or ridge, linear, "
            "logistic, poisson or kernel_ridge with its penalty.",
            show_default=False,
        ),
    ],
    queries: Annotated[
        Path,
        typer.Option(
            help="The records in question, one row each, a column for each input.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    pool: Annotated[
        Path | None,
        typer.Option(
            help="Attack a fitted model: the records that it was trained on a part of.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    pooled: PoolAttackSettings,
    settings: MembershipSettings,
    leaked: Annotated[
        Path | None,
        typer.Option(
            help="With --knowledge leaked: those points.  [default: the queries]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    data: TrainingData = None,
    json_path: JsonPath = None,
) -> None:
    """Which of these queries was a model trained on?  From its answers alone.

    With --pool a fitted model is attacked: the pool tells how the score of each query is spread
    with it in training and without, and queries are ranked by the likelihood ratio.  Without --pool
    a network is: its answers have the size of the margin at every training record and are far
    smaller elsewhere.
    """
    from leakscope.attacking import attack_membership

    with in_options(membership):
        found = attack_membership(
            model, queries, pool=pool, settings=pooled, leaked=leaked, data=data, **dict(settings)
        )
    emit(found, json_path, _page(found))


def _page(found: MembershipAttack | ModelMembershipAttack) -> str:
    return _pooled_page(found) if found.kind == "attack_membership_model" else _network_page(found)


def _network_page(document: MembershipAttack) -> str:
    network = document.network
    what = (
        f"margin {document.margin:.6g}"
        if document.margin is not None
        else f"margin above {document.threshold:.6g}"
    )
    opening = (
        f"{network.name}: {network.width} neurons, {network.features} inputs, {what} "
        f"({document.margin_from})"
    )
    rows = [
        [
            str(i),
            f"{document.answers[i]:.6g}",
            f"{(document.scores[i] or 0.0) + 0.0:.6g}",
            "yes" if document.member[i] else "no",
        ]
        for i in _order(document.scores)
    ]
    headings = ["query", "answer", "score", "member"]
    return _listed(opening, headings, rows, document.verdict)


def _pooled_page(document: ModelMembershipAttack) -> str:
    from leakscope.results.shown import certain

    opening = (
        f"{document.model.name} {document.model.origin}; {document.queries} queries, "
        f"{document.in_pool} of them in the pool of {document.pool}, of which a share of "
        f"{document.fraction:g} was trained on."
    )
    limits = [test.threshold for test in document.tests]
    rows = [
        [
            str(document.record_ids[i]),
            f"{document.answers[i]:.4g}",
            f"{document.scores[i]:+.3f}",
            certain(document.posteriors[i]),
            *("yes" if (document.scores[i] or 0.0) > limit else "no" for limit in limits),
            "yes" if document.confirmed[i] else "NO",
        ]
        for i in _order(document.scores)
    ]
    called = [f"member at {test.fpr:.1%}" for test in document.tests]
    headings = ["record_id", "answer", "score", "posterior", *called, "confirmed"]
    told = (
        "Score: the log likelihood ratio, member over nonmember; posterior: from a prior of "
        f"{document.prior:g}. A member scores above "
        f"{', '.join(f'{t.threshold:.3f} (at {t.fpr:.1%} FPR)' for t in document.tests)}."
    )
    opening = f"{wrapped(opening)}\n{wrapped(document.verdict)}"
    return _listed(opening, headings, rows, told, FEWER)


def _order(scores: list[float | None]) -> list[int]:
    return sorted(range(len(scores)), key=lambda place: -(scores[place] or 0.0))


def _listed(
    opening: str, headings: list[str], rows: list[list[str]], verdict: str, most: int = SHOWN
) -> str:
    parts = [opening, table(headings, rows[:most])]
    if len(rows) > most:
        parts.append(f"{len(rows) - most} more queries are in the --json answer.")
    return "\n\n".join([*parts, wrapped(verdict)])
