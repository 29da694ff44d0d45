"""``leakscope attack reconstruct`` for a network with several inputs: its result and its page."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.cli.output import table
from leakscope.cli.training_sets import read_training_set

if TYPE_CHECKING:
    from leakscope.data.models import NetworkArrays
    from leakscope.relu import PointReconstruction, PointRecovery
    from leakscope.results.reconstruction import ReconstructDocument

THEOREM = "kkt residual (no theorem)"
SHOWN = 6  # coordinates of a point on the page


def points_document(
    arrays: NetworkArrays, margin: float | None, points: int | None, data: Path | None, seed: int
) -> ReconstructDocument:
    """Attack the network and put what was found into a result document."""
    from leakscope import __version__, relu
    from leakscope.results.document import AssumptionEntry
    from leakscope.results.reconstruction import (
        CandidateEntry,
        NetworkEntry,
        ReconstructDocument,
    )

    begin = time.perf_counter()
    network = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    training = None if data is None else read_training_set(data, network.features)
    recovery, residual = None, None
    if training is not None:
        residual = relu.kkt_residual(network, *training)
    found = relu.reconstruct_points(network, points=points, margin=margin, random_state=seed)
    if training is not None:
        recovery = relu.point_recovery(found.x, training[0], random_state=seed)
    values = found.to_dict()
    entries = []
    for one in values.pop("candidates"):
        del one["method"]
        entries.append(
            CandidateEntry(
                theorem=THEOREM,
                piece=None,
                certified=False,
                multiplier_low=None,
                multiplier_high=None,
                **one,
            )
        )
    return ReconstructDocument(
        leakscope_version=__version__,
        settings={"margin": margin, "points": points, "seed": seed},
        provenance={
            "question": "leave_one_out",
            "method": "simulated",
            "observes": "coefficients",
            "source": "the KKT residual over points and multipliers, after Haim et al. 2022",
        },
        assumptions=[
            AssumptionEntry(
                statement="the network is a KKT point of the maximum-margin problem",
                holds=None if residual is None else residual.residual <= 1e-6,
                evidence=f"residual {found.residual:.1e} with the best points found; no training "
                "set was given"
                if residual is None
                else f"residual {residual.residual:.1e} on the training set given",
            ),
            AssumptionEntry(
                statement="the weights determine the records",
                holds=None if found.determined else False,
                evidence=f"{found.distinct} distinct neurons: the equations are "
                f"{'as many as' if found.determined else 'fewer than'} the unknowns",
            ),
        ],
        timing={"attack": time.perf_counter() - begin},
        warnings=list(arrays.notes),
        network=NetworkEntry(
            name=arrays.name,
            width=len(arrays.v),
            features=arrays.w.shape[1],
            notes=list(arrays.notes),
        ),
        form="kkt",
        flats=[],
        queries=None,
        candidates=entries,
        precision=None if recovery is None else recovery.precision,
        recall=None if recovery is None else recovery.recall,
        baseline_recall=None if recovery is None else recovery.baseline_recall,
        verdict=_verdict(found, recovery),
        **values,
    )


def _verdict(found: PointReconstruction, recovery: PointRecovery | None) -> str:
    agreed = sum((one.agreement or 0.0) > 0.5 for one in found.candidates)
    parts = [
        f"An attack without a theorem. {found.solutions} of its starts explain the weights about "
        f"equally well, the best to a KKT residual of {found.residual:.1e}; more than half of them "
        f"agree on {agreed} of the {len(found.candidates)} candidates."
    ]
    if not found.determined:
        parts.append(
            "With so many records the network has too few distinct neurons to determine them: "
            "other points explain it exactly as well."
        )
    if recovery is not None:
        parts.append(
            f"As many random points from the records' own mean and covariance would have a recall "
            f"of {recovery.baseline_recall:.3f}."
        )
    return " ".join(parts)


def points_page(document: ReconstructDocument) -> str:
    """The candidates as a table, with the verdict."""
    network = document.network
    known = "" if document.margin_known else " (estimated)"
    opening = (
        f"{network.name}: {network.width} neurons, {document.distinct} of them distinct, "
        f"{network.features} inputs, margin {document.margin:.6g}{known}, "
        f"{len(document.candidates)} candidates"
    )
    rows = []
    for one in document.candidates:
        assert isinstance(one.x, list)
        text = ", ".join(f"{value:.4g}" for value in one.x[:SHOWN])
        rows.append(
            [
                text + (", ..." if len(one.x) > SHOWN else ""),
                f"{one.label:+d}",
                f"{one.multiplier:.3g}",
                f"{one.margin_gap:+.1%}",
                "-" if one.agreement is None else f"{one.agreement:.2f}",
            ]
        )
    parts = [opening]
    if rows:
        parts.append(table(["x", "label", "multiplier", "off the margin", "agreement"], rows))
    if document.recall is not None:
        precision = "-" if document.precision is None else f"{document.precision:.3f}"
        parts.append(
            f"precision {precision}, recall {document.recall:.3f} on the training set given, "
            "within a tenth of the distance to the\nnearest other record"
        )
    parts.append("\n".join(textwrap.wrap(document.verdict, width=92, break_on_hyphens=False)))
    return "\n\n".join(parts)
