"""``leakscope measure``: how far apart two laws are, or the scores of members and non-members."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakscope.cli.options import JsonPath, Options, with_options
from leakscope.cli.output import emit, end_judged, table, wrapped
from leakscope.errors import InputError
from leakscope.settings.measure import CanarySettings, MeasureSettings

if TYPE_CHECKING:
    from leakscope.results import Measurement, ResultDocument

SUMMARY = "How well members and non-members can be told apart."
EPILOG = "Example: leakscope measure --member normal:0,1.4 --nonmember normal:0,0.7"

LAW_HELP = (
    "normal:MEAN,SIGMA, mixture:W*MEAN,SIGMA+W*MEAN,SIGMA, spike:LOCATION,SIGMA,THRESHOLD or "
    "mvn:MEANS/ROW;ROW (of the covariance)."
)
SCORES_HELP = (
    "one number per record in a .npy, .csv or .txt file; higher means more likely a member."
)

TERMS = "TPR: the share of members found; FPR: of non-members accused. KL in nats."


@with_options(settings=Options(MeasureSettings), canary=Options(CanarySettings))
def measure(
    *,
    member: Annotated[
        str | None,
        typer.Option(
            help=f"What the attacker sees of a member, as a distribution: {LAW_HELP}",
            metavar="DISTRIBUTION",
            show_default=False,
        ),
    ] = None,
    nonmember: Annotated[
        str | None,
        typer.Option(help="The same of a non-member.", metavar="DISTRIBUTION", show_default=False),
    ] = None,
    member_scores: Annotated[
        Path | None,
        typer.Option(help=f"Scores of members: {SCORES_HELP}", metavar="FILE", show_default=False),
    ] = None,
    nonmember_scores: Annotated[
        Path | None,
        typer.Option(help="Scores of non-members.", metavar="FILE", show_default=False),
    ] = None,
    logits: Annotated[
        Path | None,
        typer.Option(
            help="Log-odds of a few models instead: an .npz file with log_odds and trained_on "
            "(bool), both models x records.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    canaries: Annotated[
        Path | None,
        typer.Option(
            help="Canaries of one training instead: a table with the columns score (higher means "
            "more likely included) and included (true where its coin put the canary in).",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    settings: MeasureSettings,
    canary: CanarySettings,
    json_path: JsonPath = None,
) -> None:
    """How well an attacker can tell a member from a non-member.

    From two distributions of what the attacker sees, from two files of an attack's scores,
    from the log-odds of a few models, or from the scores of canaries.

    An epsilon is this pair's, not a differential-privacy guarantee.  With canaries it is a lower
    bound on the training's epsilon; status 3 where it contradicts --claimed-epsilon, 4 where it
    does so only for Gaussian mechanisms.
    """
    from leakscope.measuring import measure as measure_pair
    from leakscope.measuring import measure_canaries
    from leakscope.measuring.measure import measure_logits

    sources = (member or nonmember, member_scores or nonmember_scores, logits, canaries)
    if sum(map(bool, sources)) != 1:
        raise InputError(
            "Give one source: --member and --nonmember, --member-scores and --nonmember-scores, "
            "--logits or --canaries."
        )
    if canary.model_fields_set and canaries is None:
        raise InputError("--guesses and --claimed-epsilon belong to --canaries.")
    if canaries is not None:
        if "fpr" in settings.model_fields_set:
            raise InputError("--fpr says nothing with --canaries; leave it out.")
        given = {name: value for name, value in settings if name != "fpr"}
        seen = measure_canaries(canaries, **given, **dict(canary))
        emit(seen, json_path, _short_page(seen))
        end_judged(*seen.contradictions())
        return
    if logits is not None:
        confidence, seed = settings.confidence, settings.seed
        models = measure_logits(logits, fpr=settings.fpr, confidence=confidence, seed=seed)
        emit(models, json_path, _short_page(models))
        return
    first, second = member or member_scores, nonmember or nonmember_scores
    if first is None or second is None:
        raise InputError("Two are needed: of members and of non-members.")
    found = measure_pair(first, second, **dict(settings))
    emit(found, json_path, _page(found))


def _short_page(found: ResultDocument) -> str:
    """The answer in words, then its table."""
    short = found.in_short()
    lines = [wrapped(sentence) for sentence in (short.title, *short.sentences)]
    return "\n".join([*lines, "", table(short.headings, short.rows)])


def _page(found: Measurement) -> str:
    """A table of the numbers, with intervals where there are any."""
    short, note = found.in_short(), found.epsilon_note
    words = wrapped(f"{TERMS} {note[:1].upper()}{note[1:]}.")
    given = f"member {found.settings['member']} against nonmember {found.settings['nonmember']}"
    return "\n".join([given, "", table(short.headings, short.rows), "", words])
