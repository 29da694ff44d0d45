"""``leakscope measure``: how far apart two laws are, or the scores of members and non-members."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.derived_options import Options, with_options
from leakscope.cli.options import JsonPath
from leakscope.cli.output import STDOUT, emit_json, require_writable, show, table
from leakscope.errors import InputError
from leakscope.settings import MeasureSettings

if TYPE_CHECKING:
    from leakscope.laws import LawPair
    from leakscope.measures import Summary
    from leakscope.results import MeasureDocument

SUMMARY = "How far apart two laws, or two sets of scores, are."
EPILOG = "Example: leakscope measure --member normal:0,1.4 --nonmember normal:0,0.7"

LAW_HELP = (
    "normal:MEAN,SIGMA, mixture:W*MEAN,SIGMA+W*MEAN,SIGMA, spike:LOCATION,SIGMA,THRESHOLD or "
    "mvn:MEANS/ROW;ROW (of the covariance)."
)
SCORES_HELP = (
    "one number per record in a .npy, .csv or .txt file; higher means more likely a member."
)


@with_options(settings=Options(MeasureSettings))
def measure(
    *,
    member: Annotated[
        str | None,
        typer.Option(
            help=f"The law when the record was used in training: {LAW_HELP}",
            metavar="LAW",
            show_default=False,
        ),
    ] = None,
    nonmember: Annotated[
        str | None,
        typer.Option(
            help="The law when it was not, in the same form.", metavar="LAW", show_default=False
        ),
    ] = None,
    member_scores: Annotated[
        Path | None,
        typer.Option(help=f"Scores of members: {SCORES_HELP}", metavar="FILE", show_default=False),
    ] = None,
    nonmember_scores: Annotated[
        Path | None,
        typer.Option(help="Scores of non-members.", metavar="FILE", show_default=False),
    ] = None,
    settings: MeasureSettings,
    json_path: JsonPath = None,
) -> None:
    """How well an attacker can tell a member from a non-member: two laws, or two files of scores.

    An epsilon is this pair's, not a differential-privacy guarantee.
    """
    require_writable(json_path, member_scores, nonmember_scores)
    pair = _pair(member, nonmember, member_scores, nonmember_scores)
    given: dict[str, Any] = {
        "member": member or str(member_scores),
        "nonmember": nonmember or str(nonmember_scores),
        **settings.model_dump(mode="json"),
    }
    start = time.perf_counter()
    from leakscope import measures

    summary = measures.summary(
        pair,
        fpr=settings.fpr,
        delta=settings.delta,
        confidence=settings.confidence,
        random_state=settings.seed,
    )
    document = _document(summary.to_dict(), given, time.perf_counter() - start)
    if json_path is not None:
        emit_json(document, json_path)
    if json_path != STDOUT:
        show(_page(summary, given, settings.confidence) + "\n")


def _pair(
    member: str | None,
    nonmember: str | None,
    member_scores: Path | None,
    nonmember_scores: Path | None,
) -> LawPair:
    laws, scores = (member, nonmember), (member_scores, nonmember_scores)
    if any(scores) and any(laws):
        raise InputError("Give two laws or two files of scores, not both.")
    from leakscope.laws import Empirical, LawPair, Provenance

    if member is not None and nonmember is not None:
        from leakscope.cli.law_text import parse_law

        return LawPair(
            member=parse_law(member, "--member"),
            nonmember=parse_law(nonmember, "--nonmember"),
            provenance=Provenance(method="exact", source="laws given by the user"),
        )
    if member_scores is not None and nonmember_scores is not None:
        from leakscope.data import read_scores

        return LawPair(
            member=Empirical(read_scores(member_scores)),
            nonmember=Empirical(read_scores(nonmember_scores)),
            provenance=Provenance(observes="scores", method="empirical", source="scores given"),
        )
    raise InputError(
        "Two laws are needed, --member and --nonmember, or two files, --member-scores and "
        "--nonmember-scores."
    )


def _document(content: dict[str, Any], given: dict[str, Any], seconds: float) -> MeasureDocument:
    from leakscope import __version__
    from leakscope.results import MeasureDocument

    content = dict(content)
    provenance = dict(content.pop("provenance"))
    assumptions = provenance.pop("assumptions", [])
    return MeasureDocument(
        leakscope_version=__version__,
        settings=given,
        provenance=provenance,
        assumptions=assumptions,
        timing={"measure": seconds},
        warnings=[],
        **content,
    )


def _page(summary: Summary, given: dict[str, Any], confidence: float) -> str:
    """A table of the numbers, with intervals where there are any."""
    import textwrap

    entries: list[tuple[str, str, Any]] = [
        ("advantage", "advantage (best TPR - FPR)", summary.advantage),
        ("auc", "AUC", summary.auc),
        ("kl", "KL(nonmember || member)", summary.kl),
        ("kl_reverse", "KL(member || nonmember)", summary.kl_reverse),
    ]
    entries += [
        (f"tpr_at_fpr_{level:g}", f"TPR at FPR {level:g}", value)
        for level, value in summary.tpr_at_fpr.items()
    ]
    entries += [
        (f"epsilon_at_delta_{level:g}", f"epsilon at delta {level:g}", value)
        for level, value in summary.epsilon_at_delta.items()
    ]
    headings, rows = ["measure", "value"], [[label, _number(v)] for _, label, v in entries]
    if summary.estimates:
        headings.append(f"{confidence:.0%} interval")
        for row, (name, _, _) in zip(rows, entries, strict=True):
            found = summary.estimates.get(name)
            row.append("" if found is None else f"[{_number(found.low)}, {_number(found.high)}]")
    note = str(summary.to_dict()["epsilon_note"])
    return "\n".join(
        [
            f"member {given['member']} against nonmember {given['nonmember']}",
            "",
            table(headings, rows),
            "",
            *textwrap.wrap(f"{note[:1].upper()}{note[1:]}.", width=92, break_on_hyphens=False),
        ]
    )


def _number(value: Any) -> str:
    number = float(value)
    if math.isnan(number):
        return "unknown"
    return "infinite" if math.isinf(number) else f"{number:.6g}"
