"""Leave-one-out retraining: models with every record, and models without one, in a resumable run.

The models trained on everything serve all records; only the models without a record are its own.
They come in rounds of cells.  After each round the records whose attack is known well enough, to
within ``auc_half_width`` of its AUC, drop out; the rest get more models.

The difference of their mean answers at the record is memorisation by its definition (Feldman 2020)
with the answer in the place of correctness, and lood's ground truth of Fig. 1(c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.attacking.score_attacks import LEAST_MODELS, likelihood_ratio
from leakscope.errors import InputError
from leakscope.measures.samples import Estimate
from leakscope.running.cell_store import CellStore
from leakscope.running.cells import Cell, Found, OnProgress, Progress, run_cells
from leakscope.settings.verify import RETRAINING_DEFAULTS
from leakscope.verifying.network_training import Trainer, checked_records


@dataclass(frozen=True)
class RetrainingPlan:
    """Which records are checked, and with how many models.

    Parameters
    ----------
    records
        Rows to leave out, one at a time.
    models
        At most this many models with everything, and as many without each record.
    models_per_cell
        How many make a cell, the part of a run that is done whole or not at all.
    auc_half_width
        A record whose attack's AUC is known to within this, at 95%, gets no more models; None
        trains all of them.
    """

    records: tuple[int, ...]
    models: int = RETRAINING_DEFAULTS.models
    models_per_cell: int = 8
    auc_half_width: float | None = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", tuple(int(row) for row in self.records))
        if not self.records or len(set(self.records)) != len(self.records):
            raise InputError("the records to check must be distinct rows, at least one.")
        if self.models_per_cell < 1 or self.models < max(LEAST_MODELS, self.models_per_cell):
            raise InputError(
                f"models must be at least {LEAST_MODELS} and at least models_per_cell, but they "
                f"are {self.models} and {self.models_per_cell}."
            )

    @property
    def rounds(self) -> int:
        """How many rounds of cells there are at most."""
        return -(-self.models // self.models_per_cell)

    def describe(self) -> dict[str, Any]:
        """What a run is resumed by; how many models there are at most may be raised later."""
        return {"records": list(self.records), "models_per_cell": self.models_per_cell}


@dataclass(frozen=True)
class RetrainedRecord:
    """One record's answers under models with it and without it."""

    row: int  # the record
    member: FloatArray  # (models, outputs) answers at the record
    nonmember: FloatArray
    target: FloatArray  # (outputs,) its target
    auc: Estimate  # of the likelihood-ratio attack, with its 95% interval
    # Half the squared distance of the two mean answers, freed from the noise of the means, and its
    # standard error.
    mean_distance: float
    mean_distance_stderr: float


@dataclass(frozen=True)
class Retrained:
    """What retraining found."""

    records: tuple[RetrainedRecord, ...]  # one entry a record that was checked
    # (models, z, outputs) answers of the models with everything at the population.
    population_member: FloatArray
    # How many models were trained, and how many would have been without stopping early.
    models_trained: int
    models_planned: int
    seconds: float  # of training, added up over cells
    losses: FloatArray = field(repr=False)  # final training losses of all models

    def to_frame(self) -> Any:
        """A pandas frame, one row per record."""
        import pandas as pd

        return pd.DataFrame(
            {
                "row": [r.row for r in self.records],
                "models_with": [len(r.member) for r in self.records],
                "models_without": [len(r.nonmember) for r in self.records],
                "auc": [float(r.auc.value) for r in self.records],
                "auc_low": [float(r.auc.low) for r in self.records],
                "auc_high": [float(r.auc.high) for r in self.records],
                "mean_distance": [r.mean_distance for r in self.records],
                "mean_distance_stderr": [r.mean_distance_stderr for r in self.records],
            }
        )


def retrain(
    X: ArrayLike,
    y: ArrayLike,
    trainer: Trainer,
    plan: RetrainingPlan,
    store: CellStore,
    *,
    seed: int,
    population: ArrayLike | None = None,
    client: Any = None,
    on_progress: OnProgress | None = None,
) -> Retrained:
    """Train models with and without each of the plan's records, and compare what they say there.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, outputs); used as they are.
    trainer
        A :class:`NetworkTrainer`, or a :class:`FunctionTrainer` around one's own function.
    plan
        Which records, how many models.
    store
        Of :func:`leakscope.running.cell_store.open_cells`; finished cells are not trained again.
    seed
        Of the run.
    population
        Further records at which all models answer, for attacks that compare with a population.
    client
        A Dask client, or None for this process.
    on_progress
        Called after every cell; the total shrinks as records drop out.
    """
    rows, targets, asked = checked_records(X, y, population)
    outside = [row for row in plan.records if not 0 <= row < len(rows)]
    if outside:
        raise InputError(f"there is no record in row {outside[0]}; there are {len(rows)}.")
    queries = np.vstack([rows[list(plan.records)], asked])
    compute = partial(_trained_cell, rows, targets, trainer, queries)
    everything: list[Any] = []
    own: dict[int, list[Any]] = {row: [] for row in plan.records}
    open_rows, done_before, planned_cells = list(plan.records), 0, 0
    for number in range(plan.rounds):
        count = min(plan.models_per_cell, plan.models - number * plan.models_per_cell)
        cells = [_cell(row, number, count) for row in (None, *open_rows)]
        planned_cells = done_before + len(cells) * (plan.rounds - number)
        report = _shifted(on_progress, done_before, planned_cells)
        done = run_cells(store, cells, compute, seed=seed, client=client, on_progress=report)
        done_before += len(cells)
        everything.append(done[0])
        for row, cell in zip(open_rows, done[1:], strict=True):
            own[row].append(cell)
        open_rows = [
            row
            for row in open_rows
            if not _known(_record(plan, row, everything, own[row], targets), plan.auc_half_width)
        ]
        if not open_rows:
            break
    trained = [*everything, *(cell for cells in own.values() for cell in cells)]
    losses = np.concatenate([cell.arrays["losses"] for cell in trained])
    answers = np.concatenate([cell.arrays["answers"] for cell in everything])
    return Retrained(
        records=tuple(_record(plan, row, everything, own[row], targets) for row in plan.records),
        population_member=answers[:, len(plan.records) :],
        models_trained=len(losses),
        models_planned=plan.models * (1 + len(plan.records)),
        seconds=float(sum(cell.seconds for cell in trained)),
        losses=losses,
    )


def _cell(row: int | None, number: int, models: int) -> Cell:
    who = "everything" if row is None else f"without={row}"
    # The number of models is in the name: a last, shorter round is not taken for a whole one
    # when the plan is extended.
    name = f"{who}/round={number}/models={models}"
    return Cell(name, {"without": row, "round": number, "models": models})


def _trained_cell(
    rows: FloatArray,
    targets: FloatArray,
    trainer: Trainer,
    queries: FloatArray,
    parameters: Mapping[str, Any],
    key: Key,
) -> Found:
    included = np.ones((parameters["models"], len(rows)), dtype=bool)
    if parameters["without"] is not None:
        included[:, parameters["without"]] = False
    trained = trainer.train(rows, targets, included, queries, key)
    return Found(
        {"models": int(parameters["models"]), "mean_loss": float(trained.losses.mean())},
        {"answers": trained.answers, "losses": trained.losses},
    )


def _record(
    plan: RetrainingPlan,
    row: int,
    everything: Sequence[Any],
    own: Sequence[Any],
    targets: FloatArray,
) -> RetrainedRecord:
    place = plan.records.index(row)
    member = np.concatenate([cell.arrays["answers"][:, place] for cell in everything])
    nonmember = np.concatenate([cell.arrays["answers"][:, place] for cell in own])
    found = measures.auc(likelihood_ratio(member, nonmember))
    assert isinstance(found, Estimate)
    spread = sum(np.var(answers, axis=0, ddof=1) / len(answers) for answers in (member, nonmember))
    shift = member.mean(axis=0) - nonmember.mean(axis=0)
    return RetrainedRecord(
        row=row,
        member=member,
        nonmember=nonmember,
        target=targets[row],
        auc=found,
        mean_distance=0.5 * float(np.sum(shift**2 - spread)),
        mean_distance_stderr=float(np.sqrt(np.sum(shift**2 * spread + 0.5 * spread**2))),
    )


def _known(record: RetrainedRecord, half_width: float | None) -> bool:
    if half_width is None:
        return False
    return bool(0.5 * (record.auc.high - record.auc.low) <= half_width)


def _shifted(on_progress: OnProgress | None, before: int, total: int) -> OnProgress | None:
    """Progress of the whole run from the progress of one round."""
    if on_progress is None:
        return None

    def report(progress: Progress) -> None:
        left = progress.seconds_left
        remaining = progress.total - progress.done
        if left is not None:
            left *= (total - before - progress.done) / remaining if remaining else 0.0
        on_progress(Progress(before + progress.done, total, left))

    return report


@dataclass(frozen=True)
class PredictionDifference:
    """Mean answers with the record less those without it."""

    rows: NDArray[np.intp]  # (records,) which were checked
    shift: FloatArray  # (records, outputs) the differences and their standard errors
    stderr: FloatArray


def prediction_difference(retrained: Retrained) -> PredictionDifference:
    """The difference of mean answers at each record that was retrained without.

    Parameters
    ----------
    retrained
        Of :func:`retrain`.
    """
    shifts, errors = [], []
    for record in retrained.records:
        member, nonmember = record.member, record.nonmember
        shifts.append(member.mean(axis=0) - nonmember.mean(axis=0))
        parts = (np.var(a, axis=0, ddof=1) / len(a) for a in (member, nonmember))
        errors.append(np.sqrt(sum(parts)))
    return PredictionDifference(
        rows=np.array([record.row for record in retrained.records]),
        shift=np.array(shifts),
        stderr=np.array(errors),
    )
