"""A fitted model on files of any size: fit, penalty and laws by passes over the records.

Ridge, linear and two-class logistic regression.  What all records share is d x d
(`single_fit.blocks`).  The last pass writes every record's answers.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import __version__, fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.data.columns import column_name
from leakscope.data.datasets import Dataset
from leakscope.data.files import is_there
from leakscope.data.models import read_model
from leakscope.data.person_columns import is_person_name
from leakscope.data.preparation import TARGET_SCALED
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
from leakscope.results.run_directory import complete_run_directory, require_free
from leakscope.results.sections import Section
from leakscope.results.trust import Trust
from leakscope.running.parts import OnProgress, Part
from leakscope.settings.audit import PENALTIES, AuditSettings, ModelSettings
from leakscope.settings.data import DataSettings
from leakscope.settings.setting import validated
from leakscope.single_fit import blocks
from leakscope.single_fit.blocks import FreshQuestion, LinearFit
from leakscope.single_fit.optimum import Distance
from leakscope.single_fit.problem import ConvexProblem
from leakscope.single_fit.responses import spd_inverse
from leakscope.subjects.fit.models import TYPES, least_loss
from leakscope.subjects.laws import MEASURES, exact
from leakscope.subjects.stream.answers import (
    QUANTILES,
    AnswerTotals,
    subgroup_columns,
    totals,
    write_answers,
)
from leakscope.subjects.stream.passes import (
    BLOCK_BYTES,
    CELL_RECORDS,
    Cell,
    Passes,
    Streaming,
    passes_expected,
)
from leakscope.subjects.stream.records import ColumnCoding, listed, names_classes
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
# About so many records are asked of the refits that count the laws.
SAMPLE = 20_000
# The share of the training sets that the coefficients may take up: beyond it the audit in memory
# looks at what changes with the size of the training set.
MUCH = 0.5


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
    screen = ("advantage", "tpr_at_fpr_0_01", "tpr_at_fpr_0_001", "shift_in_sd", "confirmed")
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
        details: StreamedFitDetails = audit.details
        exposed, records = details.exposed_records, audit.dataset.records
        if threshold != audit.exposed_above:
            passing = f"The most exposed {len(audit.table)} are named."
        elif details.unconfirmed == records:
            passing = "Cannot tell how many are exposed: no record's numbers are confirmed."
        else:
            doubt = (
                f"; {details.unconfirmed:,} of all are not confirmed" if details.unconfirmed else ""
            )
            passing = (
                f"{exposed or 'None'} of {records:,} records {'has' if exposed <= 1 else 'have'} "
                f"an advantage of {threshold:g} or more{doubt}."
            )
        return (
            examined_sentence(audit, method=f"laws of one fit, by {details.passes} passes"),
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
        details = audit.details
        rows = [
            [f"{100 * float(share):g}%", f"{value:.3g}"]
            for share, value in details.advantage_quantiles.items()
        ]
        sentence = (
            f"The mean advantage is {details.mean_advantage or 0.0:.3g}. The numbers of every "
            f"record are in the Parquet files of {details.answers}/, in the run directory."
        )
        table = (("records", "advantage at most"), rows)
        return [Section("Over all records", [sentence], tables=[table])]

    @classmethod
    def doubt(cls, audit: Audit) -> tuple[str, str]:
        """A few others carry too much, or refits say otherwise."""
        return (
            "not confirmed: a few other records carry much of what varies there, or refits of the "
            "recipe say otherwise",
            "use a larger penalty",
        )


@dataclass(frozen=True, eq=False)
class _Examined:
    """The fit, where it comes from, and what is known of it."""

    fit: LinearFit
    model: ExaminedModel
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
    start = time.perf_counter()
    place, source = Path(directory), Path(source)
    settings, chosen = settings or AuditSettings(), chosen or ModelSettings()
    how = Streaming(client, cell_records, block_bytes, on_progress)
    wanted = _usable(source, chosen, validated(DataSettings, **data))
    if not (is_there(place / "run.json") and not is_there(place / "result.json")):
        require_free(place)
    groups, columns = listed(source, wanted)
    classes = wanted.task == "classification"
    question: FreshQuestion = "population" if chosen.question == "population" else "pool"
    fraction = chosen.fraction or (0.5 if question == "pool" else 1.0)
    name = "logistic" if classes else chosen.named or "ridge"
    expected = passes_expected(chosen, logistic=classes)
    passes = Passes(how.cells(groups), columns, how, expected)
    passes.require_room(len(columns.features) + 1)
    about = {
        "what": "streamed audit",
        "source": str(source.resolve()),
        "files": [list(file) for file in sorted({(group.path, *group.stamp) for group in groups})],
        "cell_records": cell_records,
        "data": wanted.model_dump(mode="json"),
        "audit": settings.model_dump(mode="json"),
        "model": chosen.model_dump(mode="json"),
    }
    # What is wrong with the data or the model's file is said before a directory is made.
    facts = passes.facts()
    standard = settings.scaling == "standard"
    passes.coding = ColumnCoding.of(facts, columns, standard=standard)
    passes.require_room(len(passes.coding.shift) + 1)
    examined = None if chosen.file is None else _of_file(passes, facts, chosen)
    passes.begin(place, about)
    examined = examined or _fitted(passes, chosen, name)
    cavity = blocks.solve_by_passes(examined.fit, fraction, passes.over, "cavity")
    _require_many(cavity, fraction, int(np.count_nonzero(examined.fit.penalty == 0.0)))
    check = _counted(examined.fit, cavity, question, passes.over)
    most = blocks.looked_at(cavity.records, len(examined.fit.theta))
    heavy = blocks.heavy_records(cavity.model, question, most, passes.over, "loads")
    laws = partial(blocks.laws_of_block, cavity, question, heavy)
    answers = place / "answers"
    answers.mkdir(mode=0o700, exist_ok=True)
    work = partial(
        _answered, laws, check, passes.coding, passes.flipped, block_bytes, answers, about
    )
    passes.run("laws", work)
    whole = totals(answers)
    problem = _in_words(examined)
    provenance = Provenance(
        question=question,
        adjacency="removed",
        observes="log_odds" if classes else "prediction",
        random=("data",),
        attacker_knows_label=True,
        method="asymptotic",
        source="docs/fitted.md",
        assumptions=(
            *assumptions_of(problem, question, fraction, cavity.rounds, cavity.converged),
            Assumption(
                "on refits of the recipe the laws' own test is worth what they say",
                holds=check.law_holds,
                evidence=check.sentence,
            ),
        ),
    )
    table = Table.of_rows(whole.most_exposed)
    trust = Trust.checked(CHECK, np.asarray(table.columns["confirmed"], dtype=np.bool_))
    audit = Audit(
        kind=StreamedFit.file_kind,
        subject=StreamedFit.name,
        leakscope_version=__version__,
        settings={**about, "question": question, "fraction": fraction},
        provenance={k: v for k, v in provenance.to_dict().items() if k != "assumptions"},
        assumptions=[
            AssumptionEntry(statement=entry.statement, holds=entry.holds, evidence=entry.evidence)
            for entry in provenance.assumptions
        ],
        timing={"audit": time.perf_counter() - start},
        warnings=[] if check.law_holds else [f"Refits contradict the laws. {check.sentence}"],
        dataset=_dataset_entry(source, wanted, passes.coding, whole),
        model=examined.model,
        question=question,
        fraction=fraction,
        observes=provenance.observes,
        median_advantage=whole.distribution.median,
        exposed=whole.distribution.exposed,
        sentences=[],
        subgroups=whole.subgroups,
        checks=list(trust.checks),
        table=Table({**table.columns, **trust_columns(trust)}, table.order),
        details=StreamedFitDetails(
            unconfirmed=whole.unconfirmed,
            exposed_records=whole.distribution.exposed,
            mean_advantage=whole.mean_advantage,
            worst=dict(whole.largest),
            advantage_quantiles={f"{q:g}": whole.distribution.quantile(q) for q in QUANTILES},
            answers=answers.name,
            passes=passes.made,
        ),
    )
    return _completed(place, audit, whole)


def _completed(place: Path, audit: Audit, whole: AnswerTotals) -> Audit:
    """The run directory of an audit whose answers are written, and its audit."""
    sentences = {
        ids: [*audit.about.answer(audit, threshold=audit.exposed_above, ids=ids), audit.attacker]
        for ids in (True, False)
    }
    audit = audit.model_copy(
        update={"sentences": sentences[True], "sentences_without_ids": sentences[False]}
    )
    complete_run_directory(
        place,
        audit,
        columns=list(audit.table.columns),
        rows=[tuple(row.values()) for row in audit.table.rows()],
        arrays=whole.distribution.histogram(),
    )
    shutil.rmtree(place / "cells", ignore_errors=True)
    # What a kill left of a cell that was then computed again.
    for left in (place / audit.details.answers).glob(".*.partial"):
        left.unlink(missing_ok=True)
    return audit


def _usable(source: Path, chosen: ModelSettings, data: DataSettings) -> DataSettings:
    """The data settings with the task, where all that is asked can be had block by block."""
    code = chosen.named not in (*STREAMED, None) or chosen.code is not None
    file = chosen.file is not None and chosen.file.suffix.lower() != ".skops"
    for given, option in (
        (data.group_column, "--group"),
        (data.missing == "impute", "--read missing=impute"),
        (chosen.secret, "--secret"),
        (chosen.answer_noise, "--set answer_noise"),
        (chosen.observes not in (None, "log_odds", "prediction"), "--set observes"),
        (code or file, f"--model {chosen.model}"),
    ):
        if given:
            raise InputError(
                f"{option} needs all records in memory: leave it out where they are streamed "
                f"({', '.join(STREAMED)} and .skops files of them are), or audit a sample."
            )
    keys = {"logistic": ("C",), "ridge": ("alpha",), "linear": (), None: ("C", "alpha")}
    for option in ("C", "alpha", "gamma", "weight_decay"):
        takes = () if chosen.file is not None else keys.get(chosen.named, ())
        if getattr(chosen, option) is not None and option not in takes:
            raise InputError(f"{option} does not belong to --model {chosen.model}; leave it out.")
    classifies = chosen.named == "logistic"
    if chosen.file is not None:
        classifies = read_model(chosen.file).classifies
    elif chosen.model is None and data.task is None and data.target is not None:
        classifies = names_classes(source, data.target)
    if chosen.named in ("ridge", "linear") and data.task == "classification":
        raise InputError(f"--model {chosen.named} predicts a quantity; take --model logistic.")
    return data.model_copy(update={"task": "classification"}) if classifies else data


def _fitted(passes: Passes, chosen: ModelSettings, name: str) -> _Examined:
    """The named model's fit on all records."""
    assert passes.coding is not None
    width = len(passes.coding.shift) + 1
    loss = "logistic" if name == "logistic" else "square"
    key = {"logistic": "C", "linear": None}.get(name, "alpha")
    free = LinearFit(loss, np.zeros(width), np.zeros(width))
    given = chosen.C if key == "C" else chosen.alpha
    if key is None:
        fit, parameters, how = blocks.fitted_by_passes(free, passes.over, "fit"), {}, "no penalty"
    elif given is not None:
        fit = blocks.fitted_by_passes(_penalised(free, key, given), passes.over, "fit")
        parameters, how = {key: float(given)}, f"{key} as given"
    else:
        fit, level = _penalty_chosen(free, name, key, passes.over)
        parameters, how = {key: level}, f"{key} by leave-one-out"
    inside = ", ".join(f"{parameter}={value:.4g}" for parameter, value in parameters.items())
    if chosen.model is None:
        how = f"a stand-in that leakscope fitted because no model was given ({how})"
    model = ExaminedModel(
        type=TYPES[name],
        name=f"{TYPES[name]}({inside})",
        origin=how,
        parameters=dict(parameters),
        stand_in=chosen.model is None,
    )
    return _Examined(fit, model)


def _penalised(fit: LinearFit, key: str, value: float) -> LinearFit:
    """The same with a penalty on all but the intercept."""
    penalty = np.full(len(fit.theta), 1.0 / value if key == "C" else value)
    penalty[-1] = 0.0
    return replace(fit, penalty=penalty)


def _penalty_chosen(
    free: LinearFit, name: str, key: str, over: blocks.Pass
) -> tuple[LinearFit, float]:
    """The penalty of the grid whose answers about left-out records have the least loss."""
    grid = PENALTIES[name] if key == "C" else PENALTIES[name][::-1]
    if key == "alpha":
        # Of the square loss one pass has every fit, and one more prices all.
        slope, _, sums = blocks.hessian_of(_penalised(free, key, 1.0), over, "fit")
        fits, inverses = [], []
        for value in grid:
            fit = _penalised(free, key, value)
            inverse = spd_inverse(sums["curved"] + np.diag(fit.penalty), "the model")
            fits.append(replace(fit, theta=-inverse @ slope))
            inverses.append(inverse)
        losses = blocks.left_out_losses(tuple(fits), np.array(inverses), over, "price")
        best = least_loss(grid, dict(zip(grid, losses.tolist(), strict=True)).__getitem__)
        return fits[grid.index(best)], best
    known: dict[float, LinearFit] = {}

    def loss(value: float) -> float:
        near = min(known, key=lambda other: abs(np.log(other / value)), default=None)
        start = _penalised(free if near is None else known[near], key, value)
        try:
            fit = blocks.fitted_by_passes(start, over, f"fit {value:.3g}")
            _, inverse, _ = blocks.hessian_of(fit, over, f"hessian {value:.3g}")
        except InputError:
            # With a penalty as small as this no fit settles.
            return np.inf
        known[value] = fit
        name = f"price {value:.3g}"
        return float(blocks.left_out_losses((fit,), inverse[None], over, name)[0])

    best = least_loss(grid, loss)
    return known[best], best


def _of_file(passes: Passes, facts: Any, chosen: ModelSettings) -> _Examined:
    """A model of a file, on features as they are or standardised, of which it is the optimum."""
    assert chosen.file is not None
    assert passes.coding is not None
    file, columns = read_model(chosen.file), passes.columns
    inner, shown = innermost(file.estimator), file.path.name
    kind, classes = type(inner).__name__, passes.coding.classes
    plain = kind in ("Ridge", "LinearRegression", "LogisticRegression")
    if inner is not file.estimator or not plain or not getattr(inner, "fit_intercept", False):
        raise InputError(
            f"{shown} holds a {type(file.estimator).__name__}, which is examined in memory only; "
            "Ridge, LinearRegression and LogisticRegression alone, with an intercept, are blocks."
        )
    if classes:
        known = [str(label) for label in np.asarray(inner.classes_).tolist()]
        if sorted(known) != list(classes):
            raise InputError(
                f"{shown} knows the classes {', '.join(known)}, and the target has "
                f"{', '.join(classes)}."
            )
        passes.flipped = known != list(classes)
    rows = np.zeros((4, len(passes.coding.shift)))
    rows[:, 0] = np.arange(4)
    labels = np.asarray(inner.classes_)[np.arange(4) % 2] if classes else np.arange(4.0)
    described = fitted.from_sklearn(inner, rows, labels, at_optimum=False)
    assert isinstance(described, FittedModel)
    problem = described.problems[0]
    if np.any(problem.sample_weights != problem.sample_weights[0]):
        raise InputError(f"{shown} weighs its classes, and is examined in memory only.")
    assert problem.penalty is not None
    assert problem.coefficients is not None
    fit = LinearFit(problem.loss, problem.penalty, problem.coefficients)
    gradients = []
    for standard in (False, True):
        passes.coding = ColumnCoding.of(facts, columns, standard=standard)
        distance = Distance(
            *blocks.distance_by_a_pass(fit, passes.over, f"optimum {int(standard)}")
        )
        gradients.append(distance)
        if distance.relative <= farthest(inner, distance, float(facts.records)):
            model = ExaminedModel(
                type=kind,
                name=problem.name,
                origin=f"as fitted by you ({shown})",
                parameters={},
                file=shown,
                file_sha256=file.sha256,
            )
            return _Examined(fit, model, (optimal(distance, holds=True),))
    raise InputError(
        f"{shown}: the coefficients are not the optimum on these records (the gradient there is "
        f"{gradients[0].gradient:.3g}, {gradients[0].relative:.2g} of the sampling noise away): it "
        "was fitted on other data or on features scaled otherwise."
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


def _answered(
    laws: Any,
    check: Check,
    coding: ColumnCoding,
    flipped: bool,
    block_bytes: int,
    answers: Path,
    about: Mapping[str, Any],
    cell: Cell,
    number: int,
) -> Part:
    """The last pass: every record's numbers, written as they come."""

    def tables() -> Iterator[dict[str, NDArray[Any]]]:
        for group in cell:
            for block in coding.blocks(group, block_bytes):
                y = 1.0 - block.y if flipped else block.y
                numbers = laws(block.X, y, int(block.rows[0]))
                columns = _columns(numbers, check, y, bool(coding.classes))
                yield {
                    "record_id": block.record_ids,
                    **columns,
                    **subgroup_columns(block.subgroups),
                }

    return Part({"records": write_answers(answers / f"{number:07d}.parquet", tables(), about)})


def _columns(laws: Any, check: Check, y: FloatArray, classes: bool) -> dict[str, NDArray[Any]]:
    """The numbers of some records as columns of a table."""
    sign = 2.0 * y - 1.0 if classes else np.ones(len(y))
    inside, outside = sign * laws.mean_in, sign * laws.mean_out
    pair = LawPair(Normal(inside, laws.sd_in), Normal(outside, laws.sd_out))
    values = {name: exact(measure(pair)) for name, measure in MEASURES.items()}
    led = hardly_led(pair, laws.shares.effective, laws.shares.heavy)
    confirmed = resolved(outside, laws.sd_out) & led & check.holds_at(values["advantage"])
    return {
        **values,
        "shift_in_sd": (inside - outside) / laws.sd_out,
        "mean_without": outside,
        "sd_without": laws.sd_out,
        "mean_with": inside,
        "sd_with": laws.sd_in,
        "largest_share": laws.shares.largest,
        "confirmed": confirmed & laws.converged,
    }


def _in_words(examined: _Examined) -> FittedModel:
    """Two records that stand for all of them where the laws are put into words."""
    width = len(examined.fit.theta)
    return FittedModel.of(
        ConvexProblem(
            y=np.array([0.0, 1.0]),
            loss=examined.fit.loss,
            X=np.ones((2, width)),
            penalty=np.ones(width),
            name=examined.model.name,
            assumptions=examined.assumptions,
        )
    )


def _dataset_entry(
    source: Path, data: DataSettings, coding: ColumnCoding, whole: AnswerTotals
) -> DatasetEntry:
    """What was audited, in a few words."""
    columns = coding.columns
    standard = bool((coding.scale != 1.0).any() or coding.target_scale != 1.0)
    steps = ["read in blocks; record_id: " + (data.id_column or "row numbers, starting at 0")]
    if columns.drop_missing:
        steps.append("records with an empty value dropped")
    if coding.categories:
        steps.append(
            f"categories taken as {sum(map(len, coding.categories.values()))} features of 0 and 1, "
            f"which are not scaled: {', '.join(coding.categories)}"
        )
    if standard:
        steps.append("numeric features standardised to mean 0 and variance 1 over all records")
    if coding.classes:
        steps.append(f"target coded by its 2 classes: {', '.join(coding.classes)}")
    elif standard:
        steps.append(
            f"{TARGET_SCALED}: minus {coding.target_shift:.6g}, divided by "
            f"{coding.target_scale:.6g}"
        )
    names = [*columns.features, columns.target, *data.ignore]
    ignored = [column_name(names, name, "column to ignore", str(source)) for name in data.ignore]
    return DatasetEntry(
        name=source.name,
        records=whole.distribution.count,
        features=len(coding.shift),
        outputs=1,
        target_name=columns.target,
        steps=steps,
        person_columns=tuple(name for name in ignored if is_person_name(name)),
    )
