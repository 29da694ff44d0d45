"""A fitted model on files of any size: fit, penalty and laws by passes over the records.

Ridge, linear and two-class logistic regression.  What all records share is d x d
(`single_fit.blocks`); each pass is cut into cells that are kept, so that a run that was stopped
goes on, here or on a cluster.  The last pass writes every record's answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__, fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import Dataset
from leakscope.data.models import read_model
from leakscope.errors import InputError
from leakscope.fitted.fitted_laws import assumptions_of
from leakscope.fitted.from_sklearn import farthest, optimal
from leakscope.fitted.problem import FittedModel
from leakscope.fitted.refits import innermost
from leakscope.laws.distributions import Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.results.audit import Audit, Details, ExaminedModel, Totals
from leakscope.results.columns import Table, trust_columns
from leakscope.results.document import AssumptionEntry, DatasetEntry, Number
from leakscope.results.sections import Section
from leakscope.results.trust import Trust
from leakscope.running.parts import OnProgress, Part
from leakscope.settings.audit import PENALTIES, AuditSettings, ModelSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.setting import validated
from leakscope.single_fit import blocks
from leakscope.single_fit.blocks import FreshQuestion, LinearFit, Sums
from leakscope.single_fit.optimum import Distance
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import spd_inverse
from leakscope.subjects.fit.named_models import TYPES, least_loss
from leakscope.subjects.laws import MEASURES as MEASURED
from leakscope.subjects.laws import exact
from leakscope.subjects.stream.answers import AnswersFile
from leakscope.subjects.stream.coding import ColumnCoding
from leakscope.subjects.stream.parts import columns_of
from leakscope.subjects.stream.passes import (
    ANSWERS,
    BLOCK_BYTES,
    CELL_RECORDS,
    Cut,
    Passes,
    Streaming,
    completed,
    opened_passes,
    tree,
)
from leakscope.subjects.stream.totals import ALL, QUANTILES, Told, dataset_entry
from leakscope.subjects.subject import Asked, Stages, Subject, Wanted
from leakscope.subjects.words import (
    examined_sentence,
    most_exposed_sentence,
    shifted_score_sentence,
)
from leakscope.trust import Check, check_laws, hardly_led, refits_needed, resolved

# What a record is confirmed by.
CHECK = "refits of the recipe agree with its law"
STREAMED = ("ridge", "linear", "logistic")
TOO_MANY = (
    "the records of this audit were streamed and are not held in memory; audit a sample for that"
)
# About how many passes a run takes, by model: with a penalty as given, and with one to be chosen.
EXPECTED = {"ridge": (18, 19), "linear": (18, 18), "logistic": (24, 38)}
# About so many records are asked of the refits that count the laws.
SAMPLE = 20_000
# The share of the training sets that the coefficients may take up.
MUCH = 0.5

NAMED = (
    "record_id", "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "shift_in_sd",
    "mean_without", "sd_without", "mean_with", "sd_with", "largest_share", "confirmed",
)  # fmt: skip


class StreamedFitDetails(Details):
    """What is known of all records together; every record is in the files of ``answers``."""

    unconfirmed: int
    exposed_records: int
    mean_advantage: Number
    worst: dict[str, Number]
    advantage_quantiles: dict[str, float]
    answers: str
    passes: int

    def totals(self, dataset: DatasetEntry) -> Totals:
        """Over all records."""
        return Totals(
            units=dataset.records,
            unconfirmed=self.unconfirmed,
            exposed=self.exposed_records,
            median_advantage=self.advantage_quantiles.get("0.5"),
            largest=self.worst,
        )


class StreamedFit(Subject):
    """A streamed audit of a fitted model, with the answers about every record in its directory."""

    name = "fit_stream"
    file_kind = "audit_streamed"
    words = "a fitted model on streamed records"
    screen = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "shift_in_sd", "confirmed",
    )  # fmt: skip
    page = (
        "advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "auc", "kl", "shift_in_sd", "confirmed",
    )  # fmt: skip
    Details = StreamedFitDetails

    def __init__(self, audit: Audit) -> None:
        self.audit, self.ids = audit, audit.record_ids
        self.dataset, self.settings = audit.dataset, audit.settings

    @classmethod
    def takes(cls, asked: Asked) -> bool:
        """Never of what is in memory; files are streamed by :func:`audit_streamed`."""
        return False

    @classmethod
    def of(cls, asked: Asked, stage: Stages) -> StreamedFit:
        """There is none in memory."""
        raise InputError(f"{TOO_MANY}.")

    @classmethod
    def opened(cls, audit: Audit, data: str | Path | Dataset | None = None) -> StreamedFit:
        """The audit; its records are not held."""
        return cls(audit)

    @property
    def model(self) -> ExaminedModel:
        """The model, in words."""
        return self.audit.model

    def laws(self, stage: Stages) -> Any:
        """They lie in the files, and not in memory."""
        raise InputError(f"{TOO_MANY}.")

    def for_advice(self, wanted: Wanted) -> StreamedFit:
        """What would help is found on a sample."""
        raise InputError(f"{TOO_MANY}.")

    @classmethod
    def answer(cls, audit: Audit, *, threshold: float, ids: bool) -> tuple[str, ...]:
        """Which model, how exposed the most exposed are, and how many pass."""
        told: StreamedFitDetails = audit.details
        exposed = told.exposed_records
        if threshold != audit.exposed_above:
            passing = f"The most exposed {len(audit.table)} are named."
        elif told.unconfirmed == audit.dataset.records:
            passing = "Cannot tell how many are exposed: no record's numbers are confirmed."
        else:
            doubt = f"; {told.unconfirmed:,} of all are not confirmed" if told.unconfirmed else ""
            passing = (
                f"{exposed or 'None'} of {audit.dataset.records:,} records "
                f"{'has' if exposed <= 1 else 'have'} an advantage of {threshold:g} or more{doubt}."
            )
        return (
            examined_sentence(audit, method=f"laws of one fit, by {told.passes} passes"),
            most_exposed_sentence(audit, ids=ids),
            passing,
        )

    @classmethod
    def attacker(cls, audit: Audit) -> str:
        """What the attacker sees and knows."""
        return shifted_score_sentence(audit)

    @classmethod
    def notes(cls, audit: Audit) -> list[str]:
        """Where the answers about every record are."""
        return [f"Every record: the Parquet files in {audit.details.answers}/."]

    @classmethod
    def sections(cls, audit: Audit) -> list[Section]:
        """How the advantages are distributed."""
        told = audit.details
        rows = [
            [f"{100 * float(share):g}%", f"{value:.3g}"]
            for share, value in told.advantage_quantiles.items()
        ]
        return [
            Section(
                "Over all records",
                [
                    f"The mean advantage is {told.mean_advantage or 0.0:.3g}. The numbers of every "
                    f"record are in the Parquet files of {told.answers}/, in the run directory."
                ],
                tables=[(("records", "advantage at most"), rows)],
            )
        ]

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """A few others carry too much, or nobody looked."""
        return (
            "not confirmed: a few other records carry much of what varies there, or nobody looked",
            "use a larger penalty",
        )


@dataclass(frozen=True, eq=False)
class _Examined:
    """The fit, where it comes from, and what is known of it."""

    fit: LinearFit
    model: ExaminedModel
    coding: ColumnCoding
    # Whether the second class in the order of texts is the model's first.
    flipped: bool = False
    assumptions: tuple[Assumption, ...] = ()


def audit_streamed(
    source: str | Path,
    *,
    directory: str | Path,
    settings: AuditSettings | None = None,
    chosen: ModelSettings | None = None,
    client: Any = None,
    cell_records: int = CELL_RECORDS,
    block_bytes: int = BLOCK_BYTES,
    on_progress: OnProgress | None = None,
    **data: Any,
) -> Audit:
    """Audit a fitted model on Parquet files of any size, in bounded memory.

    A ridge, linear or two-class logistic regression.  The numbers of
    :func:`leakscope.audit_frame` with the same settings, without ever holding the records.  A run
    that was stopped goes on in its directory when it is asked for again.

    Parameters
    ----------
    source
        A .parquet file, or a folder of them, taken by name.
    directory
        The run directory: new, or that of a run of the same question that was stopped.
    settings
        Of the audit.
    chosen
        ``model`` is ridge, linear, logistic, a .skops file of one of them, or
        left out for a stand-in; with C or alpha, or as leave-one-out chooses them.
    client
        A ``distributed.Client``, whose workers see the files and the run directory under the same
        paths; without one everything is computed here.
    cell_records, block_bytes
        Records of a cell, about, and bytes of features worked on at once.
    on_progress
        Called after every cell of a pass.
    data
        The settings of :class:`leakscope.settings.DataSettings`: target, id_column, task, ignore,
        by and missing (error or drop).

    Raises
    ------
    InputError
        Where something cannot be read, used or written; what was computed stays, and the run goes
        on from there when it is asked for again.

    """
    return _streamed(
        source,
        Path(directory),
        settings or AuditSettings(),
        chosen or ModelSettings(),
        validated(DataSettings, **data),
        Streaming(client, cell_records, block_bytes, on_progress),
    )


def _streamed(
    source: str | Path,
    place: Path,
    settings: AuditSettings,
    chosen: ModelSettings,
    wanted: DataSettings,
    how: Streaming,
) -> Audit:
    start = time.perf_counter()
    wanted = _usable(source, chosen, wanted)
    classes = wanted.task == "classification"
    question = chosen.question
    fraction = chosen.fraction or (0.5 if question == "pool" else 1.0)
    name = "logistic" if classes else chosen.named or "ridge"
    given = chosen.C is not None or chosen.alpha is not None or chosen.file is not None
    asked = {"audit": settings.model_dump(mode="json"), "model": chosen.model_dump(mode="json")}
    with opened_passes(source, place, wanted, asked, how, EXPECTED[name][not given]) as passes:
        found = _examined(passes, wanted, settings, chosen, name)
        over = partial(_over, passes, found.flipped)
        cavity = blocks.solve_by_passes(found.fit, fraction, over, "cavity")
        _require_many(cavity, fraction, int(np.count_nonzero(found.fit.penalty == 0.0)))
        most = blocks.looked_at(cavity.records, len(found.fit.theta))
        check = _counted(found.fit, cavity, question, over)
        heavy = blocks.heavy_records(cavity.model, question, most, over, "loads")
        laws = partial(blocks.laws_of_block, cavity, question, heavy)
        work = partial(
            _answers, laws, check, found.flipped, how.block_bytes,
            str(passes.answers), passes.asked,
        )  # fmt: skip
        cells = passes.run("laws", work)
        told = Told.of(cells)
        made, target = passes.made, passes.parts[0].target[0]
        by = passes.parts[0].by
    in_words = _in_words(found, name)
    provenance = Provenance(
        question=question,
        adjacency="removed",
        observes="log_odds" if classes else "prediction",
        random=("data",),
        attacker_knows_label=True,
        method="asymptotic",
        source="docs/fitted.md",
        assumptions=(
            *assumptions_of(in_words, question, fraction, cavity.rounds, cavity.converged),
            Assumption(
                "on refits of the recipe the laws' own test is worth what they say",
                holds=check.law_holds,
                evidence=check.sentence,
            ),
        ),
    )
    table = Table.of_rows(told.largest)
    trust = Trust.checked(CHECK, np.asarray(table.columns["confirmed"], dtype=np.bool_))
    spread = told.spreads[ALL]
    audit = Audit(
        kind=StreamedFit.file_kind,
        subject=StreamedFit.name,
        leakscope_version=__version__,
        settings={**passes.asked, "question": question, "fraction": fraction},
        provenance={k: v for k, v in provenance.to_dict().items() if k != "assumptions"},
        assumptions=[
            AssumptionEntry(statement=entry.statement, holds=entry.holds, evidence=entry.evidence)
            for entry in provenance.assumptions
        ],
        timing={"audit": time.perf_counter() - start},
        warnings=[] if check.law_holds else [f"Refits contradict the laws. {check.sentence}"],
        dataset=dataset_entry(Path(source), wanted, found.coding, told, target),
        model=found.model,
        question=question,
        fraction=fraction,
        observes=provenance.observes,
        median_advantage=spread.median(),
        exposed=spread.exposed,
        sentences=[],
        subgroups=told.subgroups(by),
        checks=list(trust.checks),
        table=Table({**table.columns, **trust_columns(trust)}, table.order),
        details=StreamedFitDetails(
            unconfirmed=told.unconfirmed,
            exposed_records=spread.exposed,
            mean_advantage=told.advantage / told.records,
            worst=dict(told.worst),
            advantage_quantiles={f"{share:g}": told.quantile(share) for share in QUANTILES},
            answers=ANSWERS,
            passes=made,
        ),
    )
    return completed(place, audit, told)


def _usable(source: str | Path, chosen: ModelSettings, data: DataSettings) -> DataSettings:
    """The data settings with the task, where all that is asked can be had block by block."""
    if data.target is None:
        raise InputError("which column is the target?  Name it with --target.")
    code = chosen.named not in (*STREAMED, None) or chosen.code is not None
    file = chosen.file is not None and chosen.file.suffix.lower() != ".skops"
    for given, option in (
        (data.group_column, "--group"),
        (data.missing == "impute", "--read missing=impute"),
        (chosen.secret, "--secret"),
        (chosen.answer_noise, "--set answer_noise"),
        (
            chosen.observes not in (None, "log_odds", "prediction"),
            "--set observes",
        ),
        (code or file, f"--model {chosen.model}"),
    ):
        if given:
            raise InputError(
                f"{option} needs all records in memory: leave it out where they are streamed "
                f"({', '.join(STREAMED)} and .skops files of them are), or audit a sample."
            )
    classifies = chosen.named == "logistic"
    own = {"logistic": ("C",), "ridge": ("alpha",), "linear": (), None: ("C", "alpha")}
    for option in ("C", "alpha", "gamma", "weight_decay"):
        takes = () if chosen.file is not None else own.get(chosen.named, ())
        if getattr(chosen, option) is not None and option not in takes:
            raise InputError(f"--{option} does not belong to --model {chosen.model}; leave it out.")
    if chosen.file is not None:
        classifies = read_model(chosen.file).classifies
    elif chosen.model is None and data.task is None:
        classifies = _names_classes(Path(source), data.target)
    if chosen.named in ("ridge", "linear") and data.task == "classification":
        raise InputError(f"--model {chosen.named} predicts a quantity; take --model logistic.")
    return data.model_copy(update={"task": "classification"}) if classifies else data


def _names_classes(source: Path, target: str) -> bool:
    """Whether the target is text, or yes and no, by the files' own types."""
    from leakscope.subjects.stream.parts import file_pieces, record_files

    files = record_files(source) if source.is_dir() else [source]
    schema = file_pieces(files[0])[0]
    if target not in columns_of(source):
        return False
    kind = str(schema.field(target).type)
    return any(word in kind for word in ("string", "bool", "dictionary"))


def _blocks(
    cut: Cut, flipped: bool, block_bytes: int
) -> Iterator[tuple[FloatArray, FloatArray, Any]]:
    """Rows with a column of ones, labels as the loss wants them, and the block itself."""
    for part in cut:
        assert part.coding is not None
        classes = bool(part.coding.classes)
        for block in part.blocks(block_bytes):
            X = np.empty((len(block.features), block.features.shape[1] + 1))
            X[:, :-1], X[:, -1] = block.features, 1.0
            y = block.outputs[:, 0] + (0.5 if classes else 0.0)
            yield X, 1.0 - y if flipped else y, block


def _summed(work: blocks.Work, flipped: bool, block_bytes: int, cut: Cut, _: int) -> Part:
    found = (work(X, y, block.first_row) for X, y, block in _blocks(cut, flipped, block_bytes))
    total = tree(found, blocks.added)
    # A cell whose records were all dropped has no sums.
    return Part({}, {name: np.asarray(value) for name, value in (total or {}).items()})


def _over(passes: Passes, flipped: bool, name: str, work: blocks.Work) -> Sums:
    """One pass, as the theory asks for it."""
    cells = passes.run(name, partial(_summed, work, flipped, passes.how.block_bytes))
    total: Sums = tree((cell.arrays for cell in cells if cell.arrays), blocks.added)
    return total


def _examined(
    passes: Passes,
    wanted: DataSettings,
    settings: AuditSettings,
    chosen: ModelSettings,
    name: str,
) -> _Examined:
    """The fit on all records: as named, or as a file has it."""
    classes, drop = wanted.task == "classification", wanted.missing == "drop"
    facts = passes.facts(classes, drop)
    standard = settings.scaling == "standard"
    if chosen.file is not None:
        return _of_file(passes, facts, chosen, classes, drop)
    coding = passes.coded(facts, standard, classes, drop)
    _require_two(coding)
    over = partial(_over, passes, False)
    width = len(coding.shift) + 1
    loss = "logistic" if name == "logistic" else "square"
    key = {"logistic": "C", "linear": None}.get(name, "alpha")
    free = LinearFit(loss, np.zeros(width), np.zeros(width))
    given = chosen.C if key == "C" else chosen.alpha
    if key is None:
        fit, parameters, how = blocks.fitted_by_passes(free, over, "fit"), {}, "no penalty"
    elif given is not None:
        fit = blocks.fitted_by_passes(_with(free, key, given), over, "fit")
        parameters, how = {key: float(given)}, f"{key} as given"
    else:
        fit, level = _chosen(free, name, key, over)
        parameters, how = {key: level}, f"{key} by leave-one-out"
    inside = ", ".join(f"{one}={value:.4g}" for one, value in parameters.items())
    origin = how
    if chosen.model is None:
        origin = f"a stand-in that leakscope fitted because no model was given ({how})"
    model = ExaminedModel(
        type=TYPES[name],
        name=f"{TYPES[name]}({inside})",
        origin=origin,
        parameters=dict(parameters),
        stand_in=chosen.model is None,
    )
    return _Examined(fit, model, coding)


def _with(fit: LinearFit, key: str, value: float) -> LinearFit:
    """The same with a penalty on all but the intercept."""
    penalty = np.full(len(fit.theta), 1.0 / value if key == "C" else value)
    penalty[-1] = 0.0
    return replace(fit, penalty=penalty)


def _chosen(free: LinearFit, name: str, key: str, over: blocks.Pass) -> tuple[LinearFit, float]:
    """The penalty of the grid whose answers about left-out records have the least loss."""
    grid = PENALTIES[name] if key == "C" else PENALTIES[name][::-1]
    if key == "alpha":
        # Of the square loss one pass has every fit, and one more prices all.
        start = _with(free, key, 1.0)
        slope, _, sums = blocks.hessian_of(start, over, "fit")
        fits, inverses = [], []
        for value in grid:
            fit = _with(free, key, value)
            inverse = spd_inverse(sums["curved"] + np.diag(fit.penalty), "the model")
            fits.append(replace(fit, theta=-inverse @ slope))
            inverses.append(inverse)
        losses = blocks.left_out_losses(tuple(fits), np.array(inverses), over, "price")
        best = least_loss(grid, dict(zip(grid, losses.tolist(), strict=True)).__getitem__)
        return fits[grid.index(best)], best
    known: dict[float, LinearFit] = {}

    def loss(value: float) -> float:
        near = min(known, key=lambda other: abs(np.log(other / value)), default=None)
        start = _with(free if near is None else known[near], key, value)
        label = f"{value:.3g}"
        try:
            fit = blocks.fitted_by_passes(start, over, f"fit {label}")
            _, inverse, _ = blocks.hessian_of(fit, over, f"hessian {label}")
        except InputError:
            # With a penalty as small as this no fit settles.
            return np.inf
        known[value] = fit
        return float(blocks.left_out_losses((fit,), inverse[None], over, f"price {label}")[0])

    best = least_loss(grid, loss)
    return known[best], best


def _of_file(
    passes: Passes, facts: Any, chosen: ModelSettings, classes: bool, drop: bool
) -> _Examined:
    """A model of a file, on features as they are or standardised, of which it is the optimum."""
    assert chosen.file is not None
    file = read_model(chosen.file)
    estimator, shown = file.estimator, file.path.name
    inner = innermost(estimator)
    kind = type(inner).__name__
    if inner is not estimator or kind not in ("Ridge", "LinearRegression", "LogisticRegression"):
        raise InputError(
            f"{shown} holds a {type(estimator).__name__}, which is examined in memory only; Ridge, "
            "LinearRegression and LogisticRegression alone are blocks."
        )
    first: InputError | None = None
    for standard in (False, True):
        coding = passes.coded(facts, standard, classes, drop)
        _require_two(coding)
        rows = np.zeros((4, len(coding.shift)))
        rows[:, 0] = np.arange(4)
        labels = np.asarray(inner.classes_)[np.arange(4) % 2] if classes else np.arange(4.0)
        described = fitted.from_sklearn(inner, rows, labels, at_optimum=False)
        assert isinstance(described, FittedModel)
        problem = described.problems[0]
        if classes and len(inner.classes_) != 2:
            raise InputError(f"{shown} has more than two classes, and is examined in memory only.")
        if np.any(problem.sample_weights != problem.sample_weights[0]):
            raise InputError(f"{shown} weighs its classes, and is examined in memory only.")
        assert problem.penalty is not None
        assert problem.coefficients is not None
        theta, penalty = problem.coefficients, problem.penalty
        if not getattr(inner, "fit_intercept", False):
            raise InputError(f"{shown} has no intercept, and is examined in memory only.")
        flipped = False
        if classes:
            known = [str(label) for label in np.asarray(inner.classes_).tolist()]
            if sorted(known) != list(coding.classes):
                raise InputError(
                    f"{shown} knows the classes {', '.join(known)}, and the target has "
                    f"{', '.join(coding.classes)}."
                )
            flipped = known != list(coding.classes)
        fit = LinearFit(problem.loss, penalty, theta)
        over = partial(_over, passes, flipped)
        away = blocks.distance_by_a_pass(fit, over, f"optimum {int(standard)}")
        distance = Distance(*away)
        if distance.relative <= farthest(inner, distance, float(facts.records)):
            model = ExaminedModel(
                type=kind,
                name=problem.name,
                origin=f"as fitted by you ({shown})",
                parameters={},
                file=shown,
                file_sha256=file.sha256,
            )
            return _Examined(fit, model, coding, flipped, (optimal(distance, holds=True),))
        first = first or InputError(
            f"{shown}: the coefficients are not the optimum on these records (the gradient there "
            f"is {distance.gradient:.3g}, {distance.relative:.2g} of the sampling noise away): it "
            "was fitted on other data or on features scaled otherwise."
        )
    assert first is not None
    raise first


def _require_two(coding: ColumnCoding) -> None:
    if len(coding.classes) > 2:
        raise InputError(
            f"the target has {len(coding.classes)} classes, and two are streamed: more are "
            "examined in memory; audit a sample."
        )


def _require_many(cavity: blocks.SharedCavity, fraction: float, free: int) -> None:
    """Refuse what only the audit in memory looks at: coefficients that take up much of the data."""
    inside = fraction * cavity.records
    if cavity.taken > MUCH * inside or free >= inside:
        raise InputError(
            f"{cavity.records} records are few beside their coefficients, and are examined in "
            "memory; leave out --cluster."
        )


def _counted(
    fit: LinearFit, cavity: blocks.SharedCavity, question: FreshQuestion, over: blocks.Pass
) -> Check:
    """The laws of a sample of the records, counted against refits on parts of all of them.

    Laws of fresh others are confirmed where those of the pool at one half are.
    """
    pool = cavity
    if question == "population":
        pool = blocks.solve_by_passes(fit, 0.5, over, "pool")
    fraction = pool.model.fraction
    each = max(1, cavity.records // SAMPLE)
    refits = refits_needed(cavity.records // each, fraction)
    asked = blocks.refits_by_passes(fit, fraction, refits, over, "refits", each=each)
    nobody = blocks.Heavy.nobody(len(fit.theta))
    found = blocks.laws_of_block(pool, "pool", nobody, asked.rows, asked.y, 0)
    many = np.full(len(asked.y), np.inf)
    return check_laws(found.pair(), asked.scores, asked.inside, effective=many, heavy=0.0 * asked.y)


def _answers(
    laws: Any,
    check: Check,
    flipped: bool,
    block_bytes: int,
    answers: str,
    settings: dict[str, Any],
    cut: Cut,
    number: int,
) -> Part:
    """The last pass: every record's numbers, written as they come."""
    told = Told(named=NAMED)
    with AnswersFile(Path(answers, f"{number:07d}.parquet"), settings) as writer:
        for X, y, block in _blocks(cut, flipped, block_bytes):
            classes = bool(cut[0].coding and cut[0].coding.classes)
            columns = _columns(laws(X, y, block.first_row), check, y, classes)
            columns = {"record_id": block.record_ids, **columns}
            told.note(columns, block.labels)
            writer.write(columns)
    return told.found()


def _columns(found: Any, check: Check, y: FloatArray, classes: bool) -> dict[str, NDArray[Any]]:
    sign = 2.0 * y - 1.0 if classes else np.ones(len(y))
    inside, outside = sign * found.mean_in, sign * found.mean_out
    pair = LawPair(Normal(inside, found.sd_in), Normal(outside, found.sd_out))
    values = {name: exact(measure(pair)) for name, measure in MEASURED.items()}
    led = hardly_led(pair, found.shares.effective, found.shares.heavy)
    confirmed = resolved(outside, found.sd_out) & led & check.holds_at(values["advantage"])
    return {
        **values,
        "shift_in_sd": (inside - outside) / found.sd_out,
        "mean_without": outside,
        "sd_without": found.sd_out,
        "mean_with": inside,
        "sd_with": found.sd_in,
        "largest_share": found.shares.largest,
        "confirmed": confirmed & found.converged,
    }


def _in_words(found: _Examined, name: str) -> FittedModel:
    """Two records that stand for all of them where the laws are put into words."""
    width = len(found.fit.theta)
    problem = ConvexProblem(
        y=np.array([0.0, 1.0]),
        loss=found.fit.loss,
        X=np.ones((2, width)),
        penalty=np.ones(width),
        name=found.model.name,
        assumptions=found.assumptions,
    )
    return FittedModel.of(problem)
