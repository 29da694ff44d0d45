"""Which queries was this model trained on?  A network by its margin, a fitted model by its laws.

With a fitted model the attacker has a pool of records, of which the model was trained on a part
that he does not know.  He fits a model of the same kind to the whole pool, which gives both laws of
every record's score without shadow models (`leakscope.fitted`), and compares what the attacked
model answers with them.  A query that the pool does not hold joins it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakscope import __version__, fitted, measures, relu
from leakscope._numerics.arrays import FloatArray
from leakscope.attacking.network_inputs import (
    TrainingSet,
    answered,
    network_arrays,
    query_rows,
    told_of,
    training_rows,
)
from leakscope.data.datasets import Dataset, RecordId
from leakscope.data.models import ModelFile, read_model
from leakscope.data.preparation import prepare
from leakscope.data.sources import raw_features, read_dataset
from leakscope.errors import InputError
from leakscope.fitted.refits import (
    WholeFit,
    fit_again,
    fresh_copy,
    inner_model,
    score_records,
)
from leakscope.measures.population import population_threshold
from leakscope.relu.kkt import KktResidual
from leakscope.relu.margin_bounds import MarginBounds
from leakscope.relu.membership import membership_attack
from leakscope.results.attacks import (
    Applicability,
    MembershipAttack,
    MembershipTest,
    ModelMembershipAttack,
)
from leakscope.results.audit import ExaminedModel
from leakscope.results.document import AssumptionEntry
from leakscope.settings.attack import (
    MEMBERSHIP_DEFAULTS,
    POOL_ATTACK_DEFAULTS,
    MarginKnowledge,
    PoolAttackSettings,
)
from leakscope.settings.audit import ModelSettings
from leakscope.settings.setting import validated
from leakscope.subjects.fit.file_models import (
    classifies,
    is_fitted,
    labels_for,
    plain_parameters,
)
from leakscope.subjects.fit.named_models import named_fit

# How far from the margin, as a share of it, is on it.
TOLERANCE = MEMBERSHIP_DEFAULTS.tolerance

# Corollary 4.4 with the queries themselves as its points.
ONE_OF_THEM = (
    "This assumes that at least one of them was trained on, and that no other point has a larger "
    "answer (Cor. 4.4); if none was, these calls mean nothing. "
)

# At which a fitted model's queries are called members.
FPRS = (0.01, 0.001)

Records = tuple[ArrayLike, ArrayLike] | str | Path


def attack_membership(
    network: Any,
    queries: Any,
    *,
    pool: Records | None = None,
    settings: PoolAttackSettings = POOL_ATTACK_DEFAULTS,
    knowledge: MarginKnowledge | None = MEMBERSHIP_DEFAULTS.knowledge,
    margin: float | None = None,
    leaked: ArrayLike | str | Path | None = None,
    lower_bound: float | None = None,
    tolerance: float = TOLERANCE,
    data: TrainingSet | None = None,
) -> MembershipAttack | ModelMembershipAttack:
    """Which of these queries was a model trained on?  From its answers alone.

    With ``pool`` a fitted model is attacked, by the likelihood ratio of its own laws.  Without it
    a network is: training with the logistic or exponential loss ends near a KKT point of the
    maximum-margin problem.  In high dimension its answers have the size of the margin at every
    training record and are far smaller elsewhere.

    Parameters
    ----------
    network
        A :class:`leakscope.relu.TwoLayerNetwork`, or the file that holds one.  With ``pool`` a
        fitted estimator, a .skops file, or a model's name.
    queries
        The records in question, one row each, a column for each input; an array or a file.  With
        ``pool`` records and labels, as it has them.
    pool
        The records that the model was trained on a part of, records and labels or a file.
    settings
        With ``pool``: target, penalty, the share trained on, the prior.
    knowledge
        What the attacker knows: ``margin``, its value; ``leaked``, points one of which was trained
        on; ``bounded``, a lower bound of the margin.  Where left out, what the options below say;
        with none of them and no ``data``, that one of the queries was trained on.
    margin
        With ``margin``: the least y f(x) of training; that of ``data`` where left out.
    leaked
        With ``leaked``: those points; the queries where left out.
    lower_bound
        With ``bounded``: what the margin exceeds; 1/e where left out.
    tolerance
        With ``margin`` and ``leaked``: how far from the margin, as a share of it, is on it.
    data
        The training set, to check the theorem on: records and labels of -1 or 1, or a file whose
        last column is the label.

    Returns
    -------
    MembershipAttack
        A score and a call for each query, and whether the theorem covers the network.
    ModelMembershipAttack
        With ``pool``: score, posterior and calibrated thresholds.

    Raises
    ------
    InputError
        Where an option does not belong to the knowledge, or the network misclassifies ``data``.

    Examples
    --------
    >>> import leakscope
    >>> from leakscope.relu import TwoLayerNetwork
    >>> network = TwoLayerNetwork(w=[[1.0], [-1.0]], b=[0.0, 0.0], v=[1.0, -1.0])
    >>> leakscope.attack_membership(network, [[1.0], [0.1], [-0.9]], margin=1.0).member
    [True, False, True]
    """
    if pool is not None:
        of_margin = any(value is not None for value in (margin, leaked, lower_bound, data))
        if of_margin or knowledge != MEMBERSHIP_DEFAULTS.knowledge:
            raise InputError(
                "pool is for fitted models, and what is known of a margin is for networks; give "
                "one of them."
            )
        return attack_model(network, queries, pool, settings)
    if knowledge is None:
        if lower_bound is not None:
            knowledge = "bounded"
        else:
            takes_margin = leaked is None and (margin is not None or data is not None)
            knowledge = "margin" if takes_margin else "leaked"
    if knowledge not in get_args(MarginKnowledge):
        raise InputError(
            f"knowledge must be one of {', '.join(get_args(MarginKnowledge))}, but it is "
            f"{knowledge!r}."
        )
    for given, name, owner in (
        (margin, "margin", "margin"),
        (leaked, "leaked", "leaked"),
        (lower_bound, "lower_bound", "bounded"),
    ):
        if given is not None and knowledge != owner:
            raise InputError(f"{name} belongs to the knowledge {owner}, not to {knowledge}.")
    begin = time.perf_counter()
    arrays = network_arrays(network)
    attacked = relu.TwoLayerNetwork(arrays.w, arrays.b, arrays.v)
    asked = query_rows(queries, attacked.features)
    residual = bounds = None
    if data is not None:
        training = training_rows(data, attacked.features)
        residual, bounds = relu.kkt_residual(attacked, *training), relu.margin_bounds(*training)
    if knowledge == "margin":
        value, margin_from = _margin(margin, residual)
        known: Any = relu.KnownMargin(value, tolerance)
    elif knowledge == "leaked":
        points = None if leaked is None else attacked(query_rows(leaked, attacked.features))
        known = relu.LeakedPoints(points, tolerance)
        margin_from = "the largest answer of the queries" if leaked is None else "the leaked points"
    else:
        known = relu.BoundedMargin() if lower_bound is None else relu.BoundedMargin(lower_bound)
        margin_from = "Remark B.5" if lower_bound is None else "the lower bound given"
    found = membership_attack(attacked, asked, known)
    applicability = applicability_of(residual, bounds)
    values = found.to_dict()
    del values["source"]
    return MembershipAttack(
        leakscope_version=__version__,
        settings={
            "knowledge": knowledge,
            "margin": margin,
            "lower_bound": lower_bound,
            "tolerance": tolerance,
        },
        provenance=answered(found.provenance()),
        assumptions=_assumptions(applicability),
        timing={"attack": time.perf_counter() - begin},
        warnings=list(arrays.notes),
        network=told_of(arrays),
        knowledge=knowledge,
        margin_from=margin_from,
        query_bounds=None if bounds is None else bounds.query_bound(asked).tolist(),
        applicability=applicability,
        verdict=f"{int(found.member.sum())} of {found.member.size} queries are called members. "
        + (ONE_OF_THEM if knowledge == "leaked" and leaked is None else "")
        + applicability.statement,
        **values,
    )


def _margin(margin: float | None, residual: KktResidual | None) -> tuple[float, str]:
    if margin is not None:
        return margin, "given"
    if residual is None:
        raise InputError(
            "knowledge margin needs the margin, or the training set as data to take it from."
        )
    if not residual.margin > 0.0:
        raise InputError(
            "The network misclassifies a record of the training set given, so there is no margin: "
            f"its least y f(x) is {residual.margin:g}."
        )
    return residual.margin, "of the training set given"


def applicability_of(residual: KktResidual | None, bounds: MarginBounds | None) -> Applicability:
    """Whether Theorem 4.2 covers a network, from its training set where there is one."""
    if residual is None or bounds is None:
        return Applicability(
            covered=None,
            kkt_residual=None,
            bounds=None,
            statement="Whether Theorem 4.2 covers this network is not known without its training "
            "set; give it as data.",
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


def _assumptions(found: Applicability) -> list[AssumptionEntry]:
    bounds, residual = found.bounds, found.kkt_residual
    shown = "infinite" if residual is None else f"{residual:.2g}"
    proven = (
        "no training set"
        if bounds is None
        else f"{bounds['points_on_margin']} of {bounds['points']} records proven to lie on the "
        "margin"
    )
    return [
        AssumptionEntry(
            statement="the network is a KKT point of the maximum-margin problem",
            holds=None,
            evidence="no training set" if bounds is None else f"relative residual {shown}",
        ),
        AssumptionEntry(
            statement="the training records are nearly orthogonal (Assumption 4.1)",
            holds=found.covered,
            evidence=proven,
        ),
        AssumptionEntry(
            statement="queries that were not trained on come from the records' own law",
            holds=None,
            evidence="not checked",
        ),
    ]


@dataclass(frozen=True, eq=False)
class Attacked:
    """The attacked model, pool and queries as it takes them, and what it answered."""

    inner: Any
    design: FloatArray
    labels: NDArray[Any]
    asked: NDArray[np.intp]
    answers: FloatArray
    record_ids: tuple[RecordId, ...]
    examined: ExaminedModel
    pool: int
    whole: WholeFit
    around: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        whole: WholeFit,
        pool: int,
        answers: FloatArray | None,
        record_ids: tuple[RecordId, ...],
        examined: ExaminedModel,
    ) -> Attacked:
        """The pool, then the queries, without what both hold; the model's own answers if None."""
        inner, labels, design = whole.found.inner, whole.y, whole.found.design
        design = design.toarray() if hasattr(design, "toarray") else design
        design = np.asarray(design, dtype=np.float64)
        if answers is None:
            names = getattr(inner, "feature_names_in_", None)
            asked_of = (
                design[pool:] if names is None else pd.DataFrame(design[pool:], columns=names)
            )
            answers = score_records(inner, asked_of, labels[pool:])
        kept, asked = _joined(design, labels, pool)
        design, around = design[kept], tuple(type(step).__name__ for step in whole.found.steps)
        whole = whole.changed(inner, design, rows=kept)
        return cls(
            inner, design, labels[kept], asked, answers, record_ids, examined, pool, whole, around
        )

    def named(self, described: str) -> ExaminedModel:
        """Which model it is, by the name that its audit has: steps, type and penalty."""
        if self.examined.name != type(self.inner).__name__:
            return self.examined
        return self.examined.model_copy(update={"name": " → ".join([*self.around, described])})


def attack_model(
    model: Any, queries: Records, pool: Records, settings: PoolAttackSettings
) -> ModelMembershipAttack:
    """Score the queries by the likelihood ratio of the model's own laws."""
    begin = time.perf_counter()
    found = _from_files(model, queries, pool, settings)
    again = fit_again(fresh_copy(found.inner), found.inner, found.design, found.labels, None)
    whole = found.whole.changed(again, found.design)
    described = fitted.from_sklearn(again, found.design, found.labels)
    laws = fitted.laws_of(described.with_whole(whole), fraction=settings.fraction)
    pair = laws.law_pair().take(found.asked)
    scores = pair.member.log_density(found.answers) - pair.nonmember.log_density(found.answers)
    over_all = measures.population_measures(pair, fpr=FPRS)
    thresholds = [population_threshold(pair, fpr) for fpr in FPRS]
    tests = [
        MembershipTest(
            fpr=fpr,
            threshold=threshold,
            tpr=over_all.tpr_at_fpr[fpr],
            called=int(np.count_nonzero(scores > threshold)),
        )
        for fpr, threshold in zip(FPRS, thresholds, strict=True)
    ]
    provenance = laws.provenance.to_dict()
    assumptions = provenance.pop("assumptions")
    trusted = laws.trusted[found.asked]
    untrusted = int(np.count_nonzero(~trusted))
    verb = "query is" if untrusted == 1 else "queries are"
    doubt = [f"the laws of {untrusted} {verb} not trusted."] if untrusted else []
    return ModelMembershipAttack(
        leakscope_version=__version__,
        settings=settings.model_dump(),
        provenance=provenance,
        assumptions=assumptions,
        timing={"attack": time.perf_counter() - begin},
        warnings=[*laws.warnings, *doubt],
        model=found.named(described.name),
        pool=found.pool,
        queries=len(found.asked),
        in_pool=int(np.count_nonzero(found.asked < found.pool)),
        fraction=laws.fraction,
        prior=settings.prior,
        observes=laws.observes,
        record_ids=list(found.record_ids),
        answers=found.answers.tolist(),
        scores=scores.tolist(),
        posteriors=special.expit(scores + special.logit(settings.prior)).tolist(),
        trusted=trusted.tolist(),
        auc=over_all.auc,
        tests=tests,
        verdict=_verdict(tests, len(scores), over_all.auc),
    )


def _verdict(tests: list[MembershipTest], count: int, auc: float) -> str:
    told = [
        f"{test.called} at {test.fpr:.1%} FPR (of nonmembers alone {test.fpr * count:.2g} would "
        f"be; {test.tpr or 0.0:.2%} of members are found)"
        for test in tests
    ]
    return (
        f"Called members, of {count} queries: {', and '.join(told)}. The laws promise an AUC of "
        f"{auc:.3f} over these queries."
    )


def _from_files(
    model: Any, queries: Records, pool: Records, settings: PoolAttackSettings
) -> Attacked:
    """Everything as numbers: from arrays and an estimator, or from files."""
    if isinstance(queries, tuple) and isinstance(pool, tuple):
        if isinstance(model, (str, Path)):
            raise InputError(
                "arrays go with a fitted estimator; with a model's file, give files of records."
            )
        return _from_arrays(model, queries, pool)
    if isinstance(queries, tuple) or isinstance(pool, tuple):
        raise InputError("give queries and pool alike: two files, or two pairs of arrays.")
    file = read_model(model) if str(model).lower().endswith(".skops") else None
    if file is None and not isinstance(model, str):
        raise InputError("records in files go with a model's file or name.")
    chosen = validated(
        ModelSettings,
        model=str(model),
        C=settings.C,
        alpha=settings.alpha,
        fraction=settings.fraction,
    )
    task: Any = "classification" if classifies(chosen) else "regression"
    ignored = () if settings.answers is None else (settings.answers,)
    first = read_dataset(pool, target=settings.target, id_column=settings.id_column, task=task)
    second = read_dataset(
        queries, target=settings.target, id_column=settings.id_column, task=task, ignore=ignored
    )
    both = _stacked(first, second)
    if file is not None:
        records = _for_file(file, chosen, both, first, second)
    else:
        records = _for_name(chosen, both)
    whole, examined = records
    answers = None
    if settings.answers is not None:
        answers = _given(second, settings.answers, task)
        counts = type(whole.found.inner).__name__ == "PoissonRegressor"
        answers = np.log(answers) if counts else answers
    elif file is None:
        raise InputError(
            "answers: a model given by its name answers nothing; name the column of the queries "
            "that holds what the attacked model answered."
        )
    return Attacked.of(whole, len(first.record_ids), answers, second.record_ids, examined)


def _from_arrays(
    model: Any, queries: tuple[ArrayLike, ArrayLike], pool: tuple[ArrayLike, ArrayLike]
) -> Attacked:
    inner, first = inner_model(model, pool[0])
    _, second = inner_model(model, queries[0])
    labels = [np.ravel(np.asarray(part[1])) for part in (pool, queries)]
    for name, design, own in zip(("pool", "queries"), (first, second), labels, strict=True):
        if len(design) != len(own):
            raise InputError(f"{name}: {len(design)} records have {len(own)} labels.")
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"queries: they have {second.shape[1]} features, and the pool {first.shape[1]}."
        )
    whole = WholeFit.of(model, _below(pool[0], queries[0]), np.concatenate(labels))
    examined = ExaminedModel(
        type=type(model).__name__,
        name=type(inner).__name__,
        origin="as fitted by you",
        parameters=plain_parameters(inner),
    )
    return Attacked.of(whole, len(first), None, tuple(range(len(second))), examined)


def _below(first: Any, second: Any) -> Any:
    """The records of both, as they came."""
    if hasattr(first, "iloc") and hasattr(second, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    if hasattr(first, "toarray") or hasattr(second, "toarray"):
        from scipy import sparse

        return sparse.vstack([first, second]).tocsr()
    return np.vstack([np.asarray(first), np.asarray(second)])


def _joined(
    design: FloatArray, labels: NDArray[Any], pool: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of the pool with the queries that it does not hold, and where each query is."""
    place: dict[tuple[bytes, str], int] = {}
    keys = [(row.tobytes(), str(label)) for row, label in zip(design, labels.tolist(), strict=True)]
    for row in range(pool):
        place.setdefault(keys[row], row)
    kept, asked = list(range(pool)), []
    for row in range(pool, len(design)):
        if keys[row] not in place:
            place[keys[row]] = len(kept)
            kept.append(row)
        asked.append(place[keys[row]])
    return np.array(kept, dtype=np.intp), np.array(asked, dtype=np.intp)


def _stacked(pool: Dataset, queries: Dataset) -> Dataset:
    """Both as one dataset, by the names of their columns; a category that one lacks is 0 there."""
    names = [
        *pool.feature_names,
        *(n for n in queries.feature_names if n not in pool.feature_names),
    ]
    parts = []
    for dataset, where in ((pool, "pool"), (queries, "queries")):
        place = {name: column for column, name in enumerate(dataset.feature_names)}
        missing = [name for name in names if name not in place and "=" not in name]
        if missing:
            raise InputError(
                f"{where}: there is no column {missing[0]!r}, which the other file has."
            )
        parts.append(
            np.column_stack(
                [
                    dataset.features[:, place[name]]
                    if name in place
                    else np.zeros(len(dataset.features))
                    for name in names
                ]
            )
        )
    indicators = {pool.feature_names[k] for k in pool.indicators}
    indicators |= {queries.feature_names[k] for k in queries.indicators}
    return replace(
        pool,
        features=np.vstack(parts),
        target=np.concatenate([pool.target, queries.target]),
        record_ids=tuple(range(sum(map(len, parts)))),
        feature_names=tuple(names),
        indicators=tuple(k for k, name in enumerate(names) if name in indicators),
        source=None,
    )


def _for_file(
    file: ModelFile, chosen: ModelSettings, both: Dataset, pool: Dataset, queries: Dataset
) -> tuple[WholeFit, ExaminedModel]:
    labels = labels_for(file, both)
    estimator = file.estimator
    if not is_fitted(estimator):
        raise InputError(
            f"{file.path.name} holds no fitted model that can be read without running code (trees "
            "are compiled); give the fitted model's scores to leakscope measure."
        )
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    X: Any = both.features
    if names:
        X = pd.concat([raw_features(part, names) for part in (pool, queries)])
    whole = WholeFit.of(estimator, X, labels)
    inner = whole.found.inner
    examined = ExaminedModel(
        type=type(estimator).__name__,
        name=type(inner).__name__,
        origin=f"from {file.path.name}",
        parameters=plain_parameters(inner),
        file=file.path.name,
        file_sha256=file.sha256,
    )
    return whole, examined


def _for_name(chosen: ModelSettings, both: Dataset) -> tuple[WholeFit, ExaminedModel]:
    if chosen.C is None and chosen.alpha is None and chosen.model != "linear":
        raise InputError(
            f"{chosen.model} needs the penalty of the attacked model; give --C or --alpha."
        )
    fit = named_fit(both, replace(prepare(both), target=both.target), chosen)
    return WholeFit.of(fit.estimator, fit.X, fit.y), fit.examined


def _given(queries: Dataset, column: str, task: str) -> FloatArray:
    """The answers that a column holds, as the laws take them: log-odds of a probability."""
    found = raw_features(queries, [column])[column]
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"answers: the column {column!r} does not hold numbers.") from None
    bad = ~np.isfinite(values)
    if task == "classification":
        bad |= (values <= 0.0) | (values >= 1.0)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"answers: row {row} (rows count from 0) of {column!r} has {values[row]:g}, which is "
            f"no {'probability between 0 and 1' if task == 'classification' else 'finite number'}."
        )
    return np.asarray(special.logit(values)) if task == "classification" else values
