"""``leakscope attack reconstruct``: from a network's file to candidates for training records."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import JsonPath, one_of
from leakscope.cli.output import STDOUT, emit_json, require_writable, show, table
from leakscope.cli.points_attack import points_document, points_page
from leakscope.cli.training_sets import read_training_set
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.data.models import NetworkArrays
    from leakscope.relu import Reconstruction
    from leakscope.results.reconstruction import ReconstructDocument

SUMMARY = "Reconstruct training records from a trained network."
TOLERANCE = 1e-8
EPILOG = "Example: leakscope attack reconstruct network.json --margin 1.0"


def reconstruct(
    model: Annotated[
        Path,
        typer.Argument(
            help="The network: .safetensors, .onnx, .npz or .json (arrays w, b, v), .pt or .pth.",
            show_default=False,
        ),
    ],
    margin: Annotated[
        float | None,
        typer.Option(
            help="The least y f(x) of training.  [default: the largest that fits the weights]",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            help="pieces: every linear piece; printed: Algorithm 1 as printed; moments: what "
            "the multipliers allow.",
            metavar="NAME",
        ),
    ] = "pieces",
    data: Annotated[
        Path | None,
        typer.Option(
            help="The training set, its last column a label of -1 or 1, to check the answer on.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    black_box: Annotated[
        bool, typer.Option("--black-box", help="Use the network's answers alone, not its weights.")
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(help="How near the margin, as a share of it, is on it.", metavar="NUMBER"),
    ] = TOLERANCE,
    points: Annotated[
        int | None,
        typer.Option(
            help="Of several inputs: how many records to look for.  [default: as many as the "
            "weights can determine]",
            metavar="COUNT",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of several inputs: for the random starts.", metavar="NUMBER")
    ] = 0,
    json_path: JsonPath = None,
) -> None:
    """Reconstruct training records from a trained network.

    The network must be near a KKT point of the maximum-margin problem, where training with the
    logistic or exponential loss ends.  With one input, certified candidates are training records
    if it is one; with several inputs there is no theorem.
    """
    from leakscope.data.models import read_network

    one_of(form, ("pieces", "printed", "moments"), "--form")
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"--tolerance must be between 0 and 1, but it is {tolerance:g}.")
    if black_box and margin is None:
        raise InputError("--black-box needs --margin: the weights are what tells the margin.")
    require_writable(json_path, model, data)
    begin = time.perf_counter()
    arrays = read_network(model)
    if not (arrays.v[:, None] * arrays.w).any():
        raise InputError(f"{model}: the network's answer is the same everywhere.")
    several = arrays.w.shape[1] > 1
    _require_options(several, form, black_box, tolerance, points)
    if several:
        document = points_document(arrays, margin, points, data, seed)
        _show(document, points_page, json_path)
        return
    training = None if data is None else _training_set(data)
    found = _found(arrays, margin, form, training, black_box, tolerance)
    document = _document(
        arrays,
        found,
        margin is not None,
        {"margin": margin, "form": form, "black_box": black_box, "tolerance": tolerance},
        time.perf_counter() - begin,
    )
    _show(document, _page, json_path)


def _require_options(
    several: bool, form: str, black_box: bool, tolerance: float, points: int | None
) -> None:
    """Refuse options of one input for several, and the other way round."""
    for name, given in (
        ("--form", form != "pieces"),
        ("--black-box", black_box),
        ("--tolerance", tolerance != TOLERANCE),
    ):
        if several and given:
            raise InputError(f"{name} is for networks with one input; this one has several.")
    if points is not None and not several:
        raise InputError("--points is for networks with several inputs; this one has one.")


def _show(
    document: ReconstructDocument,
    page: Callable[[ReconstructDocument], str],
    json_path: str | None,
) -> None:
    if json_path is not None:
        emit_json(document, json_path)
    if json_path != STDOUT:
        show(page(document) + "\n")


def _training_set(path: Path) -> tuple[Any, Any]:
    x, y = read_training_set(path, 1)
    return x[:, 0], y


def _found(
    arrays: NetworkArrays,
    margin: float | None,
    form: Any,
    training: tuple[Any, Any] | None,
    black_box: bool,
    tolerance: float,
) -> Reconstruction:
    from leakscope import relu

    network = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    if black_box:
        assert margin is not None
        return relu.reconstruct_from_queries(
            network, margin=margin, form=form, training=training, tolerance=tolerance
        )
    if margin is None:
        margin = relu.scan_margin(network, tolerance=tolerance).best
    return relu.reconstruct(
        network, margin=margin, form=form, training=training, tolerance=tolerance
    )


def _document(
    arrays: NetworkArrays,
    found: Reconstruction,
    margin_known: bool,
    settings: dict[str, Any],
    seconds: float,
) -> ReconstructDocument:
    from leakscope import __version__
    from leakscope.results.reconstruction import NetworkEntry, ReconstructDocument

    values = found.to_dict()
    assumptions = values.pop("assumptions")
    return ReconstructDocument(
        leakscope_version=__version__,
        settings=settings,
        provenance={
            "question": "leave_one_out",
            "method": "exact",
            "observes": "prediction" if found.queries is not None else "coefficients",
            "source": "relu Thms 3.1 to 3.4, Algorithm 1",
        },
        assumptions=assumptions,
        timing={"attack": seconds},
        warnings=list(arrays.notes),
        network=NetworkEntry(
            name=arrays.name,
            width=len(arrays.v),
            features=arrays.w.shape[1],
            notes=list(arrays.notes),
        ),
        margin_known=margin_known,
        verdict=_verdict(found, margin_known),
        **values,
    )


def _verdict(found: Reconstruction, margin_known: bool) -> str:
    total = len(found.candidates)
    certified = sum(candidate.certified for candidate in found.candidates)
    parts = []
    if not margin_known:
        parts.append(
            f"The margin {found.margin:.6g} is the largest that fits the weights best; others may."
        )
    if found.queries is not None:
        parts.append(
            f"{total} candidates from {found.queries} queries; without weights none is certified."
        )
    elif found.residual is not None:
        parts.append(
            f"{certified} of {total} candidates are certified: if the network is a KKT point with "
            f"this margin, they are training records. Its weights fit one to {found.residual:.1e}."
        )
    if found.flats:
        parts.append(
            f"{len(found.flats)} constant pieces lie on the margin; records inside them are not "
            "determined by crossings."
        )
    if found.guarantee is not None:
        parts.append(f"Proven share of records among the candidates: {found.guarantee:.2f}.")
    elif found.precision is not None and found.queries is None:
        parts.append("The network is not a KKT point of the training set given: no guarantee.")
    else:
        parts.append("No guarantee: that needs the training set, and weights, to check.")
    return " ".join(parts)


def _page(document: ReconstructDocument) -> str:
    network = document.network
    opening = (
        f"{network.name}: {network.width} neurons, margin {document.margin:.6g}, "
        f"{len(document.candidates)} candidates"
    )
    rows = [
        [f"{one.x:.10g}", f"{one.label:+d}", one.theorem, "yes" if one.certified else "no"]
        for one in document.candidates
    ]
    parts = [opening]
    if rows:
        parts.append(table(["x", "label", "theorem", "certified"], rows))
    if document.precision is not None or document.recall is not None:
        shares = [
            f"{name} {value:.3f}"
            for name, value in (("precision", document.precision), ("recall", document.recall))
            if value is not None
        ]
        parts.append(", ".join(shares) + " on the training set given")
    parts.append("\n".join(textwrap.wrap(document.verdict, width=92, break_on_hyphens=False)))
    return "\n\n".join(parts)
