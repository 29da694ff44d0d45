"""Models that are trained with every record and without some: the user's own, or networks.

The difference of their mean answers at the record is memorisation by its definition (Feldman 2020)
with the answer in the place of correctness, and lood's ground truth of Fig. 1(c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.attacking.score_attacks import LEAST_MODELS, likelihood_ratio
from leakscope.data.datasets import RecordId, Task
from leakscope.errors import InputError
from leakscope.measures.samples import Estimate
from leakscope.results.audit import Audit
from leakscope.settings.verify import RETRAINING_DEFAULTS
from leakscope.subjects.subject import Subject, places
from leakscope.subjects.training.own_training import OwnTraining, named_training, training_of
from leakscope.verifying.checks import (
    LEAST_RECORDS,
    NumberCheck,
    Outcome,
    correlation,
    rows_to_check,
)
from leakscope.verifying.networks import (
    DenseNetwork,
    NetworkTrainer,
    TrainedAnswers,
    Trainer,
    checked_records,
    require_libraries,
)

# An AUC that is known less well than this bears nothing out.
AUC_RESOLUTION = 0.1

# Answers that differ by less are one answer, but for rounding.
SAME = 1e-12

# Standard errors to each side of a 95% interval.
HALF_WIDTH = 1.96


@dataclass(frozen=True)
class RetrainedRecord:
    """One record's answers under models with it and without it."""

    row: int  # the record
    member: FloatArray  # (models, outputs) answers at the record
    nonmember: FloatArray
    auc: Estimate  # of the likelihood-ratio attack, with its 95% interval

    @property
    def shift(self) -> FloatArray:
        """(outputs,) the mean answer with the record less that without it."""
        return np.asarray(self.member.mean(axis=0) - self.nonmember.mean(axis=0))

    @property
    def shift_stderr(self) -> FloatArray:
        """(outputs,) standard errors of the shift."""
        parts = (np.var(a, axis=0, ddof=1) / len(a) for a in (self.member, self.nonmember))
        return np.asarray(np.sqrt(sum(parts)))

    @property
    def auc_stderr(self) -> tuple[float, float]:
        """Standard errors of the AUC below its value and above it; never zero."""
        value = float(self.auc.value)
        sides = value - float(self.auc.low), float(self.auc.high) - value
        return max(sides[0] / HALF_WIDTH, 1e-6), max(sides[1] / HALF_WIDTH, 1e-6)

    @property
    def constant(self) -> bool:
        """Whether all models with the record, and all without it, answer alike."""
        return all(
            float(np.max(np.ptp(answers, axis=0))) <= SAME * (1.0 + float(np.max(np.abs(answers))))
            for answers in (self.member, self.nonmember)
        )


@dataclass(frozen=True)
class Retrained:
    """The records that were checked, and the final training losses of all models."""

    records: tuple[RetrainedRecord, ...]
    losses: FloatArray


def retrain(
    X: ArrayLike,
    y: ArrayLike,
    trainer: Trainer,
    records: Sequence[int],
    *,
    models: int = RETRAINING_DEFAULTS.models,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Retrained:
    """Train models with all records and without each of some, and compare what they say there.

    Parameters
    ----------
    X, y
        Records by features, and targets, (n,) or (n, outputs); used as they are.
    trainer
        A :class:`NetworkTrainer`, or a :class:`FunctionTrainer` around a function of one's own.
    records
        Rows to leave out, one at a time.
    models
        How many models with everything, and as many without each record.
    seed
        Of the run.
    on_progress
        Called with how many lots of models are done, and how many there are.
    """
    rows, targets, _ = checked_records(X, y, None)
    asked = [int(row) for row in records]
    if not asked or len({*asked}) != len(asked) or not all(0 <= row < len(rows) for row in asked):
        raise InputError(f"the records to check must be distinct rows of {len(rows)}.")
    if models < LEAST_MODELS:
        raise InputError(f"models must be at least {LEAST_MODELS}, but they are {models}.")
    lots = []
    for number, row in enumerate((None, *asked)):
        included = np.ones((models, len(rows)), dtype=np.bool_)
        if row is not None:
            included[:, row] = False
        key = Key(seed).child(0) if row is None else Key(seed).child(1, row)
        queries = rows[asked] if row is None else rows[[row]]
        lots.append(trainer.train(rows, targets, included, queries, key))
        if on_progress is not None:
            on_progress(number + 1, len(asked) + 1)
    everything = lots[0]
    checked = []
    for place, (row, without) in enumerate(zip(asked, lots[1:], strict=True)):
        member, nonmember = everything.answers[:, place], without.answers[:, 0]
        auc = measures.auc(likelihood_ratio(member, nonmember))
        assert isinstance(auc, Estimate)
        checked.append(RetrainedRecord(row, member, nonmember, auc))
    return Retrained(tuple(checked), np.concatenate([lot.losses for lot in lots]))


@dataclass(frozen=True)
class Retraining:
    """How :func:`verify` retrains models: with a function of the user's, or a dense network.

    Parameters
    ----------
    train
        As in ``leakscope.audit(train=...)``: ``train(X, y, seed)`` that returns a predictor, or an
        estimator; itself, or ``"module:name"``.  y holds class numbers, or numbers.
    widths
        Of the hidden layers of a dense network, instead of ``train``.
    epochs, learning_rate
        Of the network.
    models
        This many with and without each record.

    Examples
    --------
    >>> from leakscope.verifying import Retraining
    >>> Retraining(widths=(256, 256)).epochs
    100
    >>> Retraining()
    Traceback (most recent call last):
    ...
    leakscope.errors.InputError: retraining needs a training function or a network's widths, one \
of the two.
    """

    train: str | Callable[..., Any] | None = None
    widths: tuple[int, ...] | None = None
    epochs: int = RETRAINING_DEFAULTS.epochs
    learning_rate: float = RETRAINING_DEFAULTS.learning_rate
    models: int = RETRAINING_DEFAULTS.models

    def __post_init__(self) -> None:
        if (self.train is None) == (self.widths is None):
            raise InputError(
                "retraining needs a training function or a network's widths, one of the two."
            )
        if self.widths is not None:
            require_libraries()

    def trainer(self, activation: str, task: Task) -> tuple[Trainer, str]:
        """What trains, and its name in words."""
        if self.widths is not None:
            network = DenseNetwork(self.widths, activation=activation)
            words = f"a dense network of widths {', '.join(str(w) for w in self.widths)}"
            how = {"epochs": self.epochs, "learning_rate": self.learning_rate}
            return NetworkTrainer(network, **how), words  # type: ignore[arg-type]
        if isinstance(self.train, str):
            subject = named_training(self.train, task, None).subject
            return FunctionTrainer(subject, task, self.train), self.train
        trainer = FunctionTrainer(self.train, task)
        return trainer, trainer.training.name


@dataclass(frozen=True)
class FunctionTrainer:
    """The user's own training, one model after another, as a :class:`Trainer`."""

    subject: Any
    task: Task = "regression"
    name: str = ""

    @property
    def training(self) -> OwnTraining:
        """The training that a function ``train(X, y, seed)``, or an estimator, is."""
        return training_of(self.subject, self.task, None, name=self.name)

    def describe(self) -> dict[str, Any]:
        """Its name and a digest of its source."""
        return self.training.describe()

    def train(
        self,
        X: FloatArray,
        y: FloatArray,
        included: NDArray[np.bool_],
        queries: FloatArray,
        key: Key,
    ) -> TrainedAnswers:
        """Train a model for every row of ``included`` (models, n); y (n, C) is coded."""
        classes = self.training.task == "classification"
        labels = _class_numbers(y) if classes else y[:, 0] if y.shape[1] == 1 else y
        seeds = key.generator().integers(2**31, size=len(included))
        answers, losses = [], []
        for rows, seed in zip(included, seeds, strict=True):
            asked = np.concatenate([queries, X[rows]])
            output = self.training.answers(X, labels, rows, int(seed), asked)
            coded = _as_coded(output, y.shape[1], classes)
            answers.append(coded[: len(queries)])
            residual = coded[len(queries) :] - y[rows]
            losses.append(0.5 * float(np.mean(np.sum(residual**2, axis=1))))
        return TrainedAnswers(np.array(answers), np.array(losses))


def _class_numbers(y: FloatArray) -> NDArray[np.intp]:
    """0, 1, ... from targets that are coded as an audit codes classes."""
    if y.shape[1] == 1:
        return np.asarray(y[:, 0] > 0.0, dtype=np.intp)
    return np.asarray(np.argmax(y, axis=1))


def _as_coded(output: FloatArray, outputs: int, classes: bool) -> FloatArray:
    """Answers in the numbers of the coded targets: probabilities less their mean."""
    if classes:
        centred = output - 1.0 / output.shape[1]
        return np.asarray(centred[:, 1:] if outputs == 1 else centred)
    if output.shape[1] != outputs:
        raise InputError(
            f"the model answered with {output.shape[1]} numbers per record, and {outputs} are "
            "needed."
        )
    return output


def by_retraining(
    audit: Audit,
    subject: Subject,
    retraining: Retraining,
    *,
    records: int,
    record_ids: Sequence[RecordId],
    seed: int,
    on_progress: Callable[[int, int], None] | None,
) -> Outcome:
    """The AUCs of a Gaussian process beside attacks on models trained with and without records."""
    if subject.counted_in == "models" or audit.question != "leave_one_out" or audit.unit == "group":
        raise InputError(
            f"retraining checks audits of single records of a Gaussian process; an audit of "
            f"{subject.words}, or of groups, is verified without --train and --network."
        )
    features, targets, task = subject.training_set()
    place = places(audit, subject)
    exposure = np.nan_to_num(audit.kl[place], posinf=float(np.finfo(np.float64).max))
    rows = rows_to_check(subject.ids, exposure, records, record_ids, random_state=seed)
    trainer, what = retraining.trainer(subject.activation, task)
    retrained = retrain(
        features, targets, trainer, rows,
        models=retraining.models, seed=seed, on_progress=on_progress,
    )  # fmt: skip
    checks, apart = [], []
    for row, record in zip(rows, retrained.records, strict=True):
        predicted, law = float(audit.auc[place[row]]), f"record {subject.ids[row]}"
        measured = float("nan") if record.constant else float(record.auc.value)
        stderr = record.auc_stderr[predicted > measured]
        checks.append(NumberCheck(law, "AUC", predicted, measured, stderr, AUC_RESOLUTION))
        if not record.constant:
            apart.append((predicted, measured))
    warnings = []
    if len(apart) < len(rows):
        warnings.append(
            f"for {len(rows) - len(apart)} of {len(rows)} records every model of {what} gives the "
            "same answers, with the record and without it: it ignores the seed.  Use the seed, or "
            "audit the model itself (--model) and verify that."
        )
    together = None
    if len(apart) >= LEAST_RECORDS:
        together = {
            "records": len(apart),
            "pearson": vars(correlation(*zip(*apart, strict=True))),
            "spearman": vars(correlation(*zip(*apart, strict=True), ranks=True)),
        }
    how = (
        f"{retraining.models * (1 + len(rows))} models of {what}, trained with and without each of "
        f"{len(rows)} records, attacked by the likelihood ratio"
    )
    settings = {
        "records": rows,
        "models": retraining.models,
        "trainer": trainer.describe(),
        "scaling": audit.settings.get("scaling"),
    }
    return Outcome(checks, how, settings, together, tuple(warnings))
