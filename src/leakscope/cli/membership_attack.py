"""``leakscope attack membership``: which queries was this network trained on?"""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import JsonPath, one_of
from leakscope.cli.output import STDOUT, emit_json, require_writable, show, table
from leakscope.cli.training_sets import read_queries, read_training_set
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.data.models import NetworkArrays
    from leakscope.relu import KktResidual, MarginBounds, MembershipAnswer
    from leakscope.results.membership import Applicability, MembershipDocument

SUMMARY = "Which of these queries was a network trained on?  From its answers alone."
EPILOG = "Example: leakscope attack membership network.npz --queries queries.csv"

SHOWN = 20


def membership(
    model: Annotated[
        Path,
        typer.Argument(
            help="The network: .safetensors, .onnx, .npz or .json (arrays w, b, v), .pt or .pth.",
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
    knowledge: Annotated[
        str,
        typer.Option(
            help="What the attacker knows: margin (its value), leaked (points one of which was "
            "trained on) or bounded (a lower bound of the margin).",
            metavar="NAME",
        ),
    ] = "margin",
    margin: Annotated[
        float | None,
        typer.Option(
            help="Of margin: the least y f(x) of training.  [default: that of --data, else 1]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    leaked: Annotated[
        Path | None,
        typer.Option(
            help="Of leaked: those points.  [default: the queries]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    lower_bound: Annotated[
        float | None,
        typer.Option(
            help="Of bounded: what the margin exceeds.  [default: 1/e]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="Of margin and leaked: how far from the margin, as a share of it, is on it.",
            metavar="NUMBER",
        ),
    ] = 0.5,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The training set, its last column a label of -1 or 1, to check the theorem on.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_path: JsonPath = None,
) -> None:
    """Which of these queries was a network trained on?  From its answers alone.

    Training with the logistic or exponential loss ends near a KKT point of the maximum-margin
    problem.  In high dimension its answers have the size of the margin at every training record
    and are far smaller elsewhere.
    """
    from leakscope import relu
    from leakscope.data.models import read_network

    one_of(knowledge, ("margin", "leaked", "bounded"), "--knowledge")
    for given, option, owner in (
        (margin, "--margin", "margin"),
        (leaked, "--leaked", "leaked"),
        (lower_bound, "--lower-bound", "bounded"),
    ):
        if given is not None and knowledge != owner:
            raise InputError(f"{option} belongs to --knowledge {owner}, not to {knowledge}.")
    require_writable(json_path, model, queries, leaked, data)
    begin = time.perf_counter()
    arrays = read_network(model)
    network = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    asked = read_queries(queries, network.features)
    training = None if data is None else read_training_set(data, network.features)
    residual = bounds = None
    if training is not None:
        residual = relu.kkt_residual(network, *training)
        bounds = relu.margin_bounds(*training)
    if knowledge == "margin":
        value, margin_from = _margin(margin, residual)
        known: Any = relu.KnownMargin(value, tolerance)
    elif knowledge == "leaked":
        points = None if leaked is None else network(read_queries(leaked, network.features))
        known = relu.LeakedPoints(points, tolerance)
        margin_from = "the queries" if leaked is None else "--leaked"
    else:
        known = relu.BoundedMargin(relu.LEAST_MARGIN if lower_bound is None else lower_bound)
        margin_from = "Remark B.5" if lower_bound is None else "--lower-bound"
    found = relu.membership_attack(network, asked, known)
    document = _document(
        arrays,
        found,
        settings={
            "knowledge": knowledge,
            "margin": margin,
            "lower_bound": lower_bound,
            "tolerance": tolerance,
        },
        margin_from=margin_from,
        query_bounds=None if bounds is None else bounds.query_bound(asked).tolist(),
        applicability=_applicability(residual, bounds),
        seconds=time.perf_counter() - begin,
    )
    if json_path is not None:
        emit_json(document, json_path)
    if json_path != STDOUT:
        show(_page(document) + "\n")


def _margin(margin: float | None, residual: KktResidual | None) -> tuple[float, str]:
    if margin is not None:
        return margin, "--margin"
    if residual is None:
        return 1.0, "assumed to be 1"
    if not residual.margin > 0.0:
        raise InputError(
            "The network misclassifies a record of --data, so there is no margin: its least y f(x) "
            f"is {residual.margin:g}."
        )
    return residual.margin, "--data"


def _applicability(residual: KktResidual | None, bounds: MarginBounds | None) -> Applicability:
    from leakscope.results.membership import Applicability

    if residual is None or bounds is None:
        return Applicability(
            covered=None,
            kkt_residual=None,
            bounds=None,
            statement="Whether Theorem 4.2 covers this network cannot be told without its training "
            "set; give it by --data.",
        )
    proven, n = int(bounds.on_margin.sum()), len(bounds.y)
    if bounds.covered:
        statement = f"Theorem 4.2, with constants for this training set, covers all {n} records"
    else:
        statement = (
            f"Theorem 4.2 does not cover this training set: {proven} of {n} records are proven to "
            "lie on the margin"
        )
    statement += (
        f". It speaks of KKT points; this network's residual is {residual.residual:.2g}, with "
        f"{residual.kinks} pairs of a neuron and a record on a kink."
    )
    return Applicability(
        covered=bounds.covered,
        kkt_residual=residual.residual,
        bounds=bounds.to_dict(),
        statement=statement,
    )


def _document(
    arrays: NetworkArrays,
    found: MembershipAnswer,
    *,
    settings: dict[str, Any],
    margin_from: str,
    query_bounds: list[float | None] | None,
    applicability: Applicability,
    seconds: float,
) -> MembershipDocument:
    from leakscope import __version__
    from leakscope.results.document import AssumptionEntry
    from leakscope.results.membership import MembershipDocument
    from leakscope.results.reconstruction import NetworkEntry

    values = found.to_dict()
    residual = applicability.kkt_residual
    return MembershipDocument(
        leakscope_version=__version__,
        settings=settings,
        provenance={
            "question": "leave_one_out",
            "method": "exact",
            "observes": "prediction",
            "source": values.pop("source"),
        },
        assumptions=[
            AssumptionEntry(
                statement="the network is a KKT point of the maximum-margin problem",
                holds=None,
                evidence="no training set"
                if applicability.bounds is None
                else f"relative residual {'infinite' if residual is None else f'{residual:.2g}'}",
            ),
            AssumptionEntry(
                statement="the training records are nearly orthogonal (Assumption 4.1)",
                holds=applicability.covered,
                evidence="no training set"
                if applicability.bounds is None
                else f"{applicability.bounds['points_on_margin']} of "
                f"{applicability.bounds['points']} records proven to lie on the margin",
            ),
            AssumptionEntry(
                statement="queries that were not trained on come from the records' own law",
                holds=None,
                evidence="not checked",
            ),
        ],
        timing={"attack": seconds},
        warnings=list(arrays.notes),
        network=NetworkEntry(
            name=arrays.name,
            width=len(arrays.v),
            features=arrays.w.shape[1],
            notes=list(arrays.notes),
        ),
        knowledge=settings["knowledge"],
        margin_from=margin_from,
        query_bounds=query_bounds,
        applicability=applicability,
        verdict=f"{int(found.member.sum())} of {found.member.size} queries are called members. "
        + applicability.statement,
        **values,
    )


def _page(document: MembershipDocument) -> str:
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
    order = sorted(range(len(document.scores)), key=lambda i: -(document.scores[i] or 0.0))
    rows = [
        [
            str(i),
            f"{document.answers[i]:.6g}",
            f"{(document.scores[i] or 0.0) + 0.0:.6g}",
            "yes" if document.member[i] else "no",
        ]
        for i in order[:SHOWN]
    ]
    parts = [opening, table(["query", "answer", "score", "member"], rows)]
    if len(order) > SHOWN:
        parts.append(f"{len(order) - SHOWN} more queries are in the --json answer.")
    parts.append("\n".join(textwrap.wrap(document.verdict, width=92, break_on_hyphens=False)))
    return "\n\n".join(parts)
