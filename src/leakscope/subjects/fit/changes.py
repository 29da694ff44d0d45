"""What can be changed of a fitted model: its penalty, its features, its records, its answers.

A change is made where the pipeline ends.  Each is found by fitting the changed model again and
computing its laws again; nothing is extrapolated from the audit.  Where the pipeline's steps learn
from the records, price, trust and shadow models are of the whole, steps included.  The price is the
model's own loss at records that it was not fitted on, with the noise on its answers averaged over:
squared error, log loss, or Poisson deviance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope import fitted
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.data.preparation import target_unit
from leakscope.errors import InputError
from leakscope.fitted.refits import (
    WholeFit,
    fit_again,
    fresh_copy,
    inner_model,
    penalty_of,
)
from leakscope.results.advice import AdviceCheck, Target
from leakscope.results.document import AssumptionEntry
from leakscope.subjects.fit.models import ModelWithRecords
from leakscope.subjects.fit.subject import Fit, laws_of_fit
from leakscope.subjects.laws import PairLaws, Rows, UnitLaws
from leakscope.subjects.pricing import (
    ASKED_ONCE,
    CONSTANT_TARGET,
    Folds,
    HeldOutScores,
    Terms,
    commonest_share,
    folds_of,
    has_log_link,
    like_these,
    loss_words,
)
from leakscope.subjects.subject import Change, Scan, Stages, Wanted
from leakscope.trust import Check

# Levels of the penalty in a decade, and how many decades above its own are tried.
PER_DECADE = 3
DECADES = 8

# The first level where a model has no penalty, as a share of its features' mean square.
FIRST_SHARE = 1e-3

# One search may take so many products in all; where it does not get far, levels are found coarsely.
MOST_WORK = 4e9
FEW = 20

# Names of features in a sentence, and numbers of features that are tried at first.
NAMED = 8
COUNTS_TRIED = 12


class AdvisedFit(Fit):
    """A fitted model as advice changes it: the innermost estimator, and what reaches it."""

    def __init__(
        self,
        audited: Fit,
        estimator: Any,
        design: FloatArray,
        labels: NDArray[Any],
        weights: FloatArray | None,
        *,
        whole: WholeFit,
        names: tuple[str, ...],
        ids: tuple[RecordId, ...],
        codes: Rows | None = None,
        features_left: tuple[str, ...] = (),
        check: Check | None = None,
    ) -> None:
        described = fitted.from_sklearn(estimator, design, labels, sample_weight=weights)
        described = described.with_whole(whole).in_groups(codes)
        super().__init__(
            ModelWithRecords(estimator, design, labels, described, audited.model),
            ids=ids,
            dataset=audited.dataset,
            settings=audited.settings,
            sample_weight=weights,
            feature_names=names,
        )
        self.audited, self.names, self.features_left = audited, names, features_left
        self.whole, self.check = whole, check
        self.loss, self.task = self.described.loss, self.described.task

    @property
    def steps(self) -> int:
        """How many models a search may audit, by the products that the laws of one take."""
        classes = len(getattr(self.estimator, "classes_", ())) if self.loss == "softmax" else 1
        work = float(len(self.y)) * float(self.X.shape[1] * max(1, classes)) ** 2
        return int(np.clip(MOST_WORK / work, 8, 200))

    def laws(self, stage: Stages) -> PairLaws:
        """Both laws of every record's score, with the count of the model as it is.

        Each change has its own laws; that an option's test is worth what they say is counted once
        it is told of (`checked`).
        """
        laws = self._laws_as_asked()
        if self.check is None:
            laws = fitted.counted(laws, self.described, self.whole)
            self.check = laws.check
            return laws_of_fit(laws)
        return laws_of_fit(laws.checked_as(self.check))

    def _laws_as_asked(self) -> fitted.FittedLaws:
        names = ("question", "fraction", "observes")
        return fitted.laws_of(self.described, **{name: self.settings[name] for name in names})

    # The same fitted again.

    def again(
        self,
        *,
        units: Rows | None = None,
        columns: Rows | None = None,
        penalty: float | None = None,
    ) -> AdvisedFit:
        """On these records or groups, on these features, with this penalty."""
        codes, ids, check = self.described.codes, self.ids, self.check
        rows = self._rows_of(units)
        if units is not None:
            ids = tuple(ids[unit] for unit in units)
            if check is not None:
                check = replace(check, stratum=check.stratum[units], agrees=check.agrees[units])
            if codes is not None:
                codes = np.searchsorted(units, codes[rows]).astype(np.intp)
        chosen = np.arange(len(self.y)) if rows is None else rows
        design = self.X[chosen] if columns is None else self.X[np.ix_(chosen, columns)]
        labels = self.y[chosen]
        weights = None if self.sample_weight is None else self.sample_weight[chosen]
        names = self.names if columns is None else tuple(self.names[k] for k in columns)
        self._require_classes(labels, "what is left")
        fresh = fresh_copy(self.estimator, penalty=penalty)
        fit_again(fresh, design, labels, weights)
        return AdvisedFit(
            self.audited,
            fresh,
            design,
            labels,
            weights,
            whole=self.whole.changed(fresh, design, rows=rows, columns=columns),
            names=names,
            ids=ids,
            codes=codes,
            features_left=() if columns is None else names,
            check=check,
        )

    def keep(self, units: Rows) -> AdvisedFit:
        """The model fitted on some of its records or groups."""
        return self.again(units=np.sort(units))

    def _rows_of(self, units: Rows | None) -> Rows | None:
        """The records of these units; None of all."""
        codes = self.described.codes
        if units is None or codes is None:
            return units
        return np.flatnonzero(np.isin(codes, units))

    def changes(self, wanted: Wanted) -> Iterator[Change]:
        """More penalty, and fewer features."""
        penalty = penalty_of(self.estimator)
        if penalty is not None:
            yield self._more_penalty(*penalty)
        size = self._importance()
        if size is not None and len(size) > 1:
            yield self._fewer_features(np.argsort(-size, kind="stable"))

    def _more_penalty(self, knob: str, own: float) -> Change:
        inverse, has_one = knob == "C", 0.0 < own < np.inf
        start = own if has_one else self._first_level(inverse=inverse)
        factor = 10.0 ** (-1.0 / PER_DECADE if inverse else 1.0 / PER_DECADE)
        steps = range(1, PER_DECADE * DECADES + 1)
        first = own if has_one else _digits(start, up=not inverse)
        levels = [first, *(_digits(start * factor**step, up=not inverse) for step in steps)]
        # Where an audit takes long, a quarter of a step is near enough.
        near = 1.0 if self.steps > FEW else 10.0 ** (0.25 / PER_DECADE)

        def between(low: float, high: float) -> float | None:
            middle = _digits(float(np.sqrt(low * high)), up=not inverse)
            done = middle in (low, high) or max(low, high) <= near * min(low, high)
            return None if done else middle

        kind = type(self.estimator).__name__
        other = type(fresh_copy(self.estimator, penalty=levels[1])).__name__

        def words(level: float) -> str:
            if other != kind:
                return f"Fit {other}({knob}={level:.4g}) instead of {kind}"
            return f"Set {knob}={level:.4g} instead of {f'{own:.4g}' if has_one else kind}"

        def told(scan: Scan) -> tuple[str, ...]:
            tried = len(scan.levels) + len(scan.refined) - has_one
            found = f"Found by fitting and auditing again at {tried} levels of {knob}."
            again = "A still larger penalty exceeds the target again."
            return (found, again) if scan.rises else (found,)

        return Change(
            name=f"penalty ({knob})",
            setting=knob,
            levels=levels,
            at=lambda level: self if has_one and level == own else self.again(penalty=level),
            words=words,
            between=between,
            beyond=PER_DECADE,
            told=told,
        )

    def _first_level(self, *, inverse: bool) -> float:
        """Where to begin with a model that has no penalty."""
        size = FIRST_SHARE * float(np.sum(self.X**2)) / self.X.shape[1]
        size = size if size > 0.0 else 1.0
        return 1.0 / size if inverse else size

    def _importance(self) -> FloatArray | None:
        """How much each column adds to a score; None without coefficients."""
        coefficients = getattr(self.estimator, "coef_", None)
        if coefficients is None:
            return None
        size = np.linalg.norm(np.atleast_2d(np.asarray(coefficients, dtype=np.float64)), axis=0)
        return np.asarray(size * self.X.std(axis=0))

    def _fewer_features(self, order: Rows) -> Change:
        """Those with the largest coefficients first."""
        total = len(order)
        counts = np.geomspace(1, total - 1, min(total - 1, self.steps, COUNTS_TRIED)).round()

        def columns(count: float) -> Rows:
            return np.sort(order[: int(count)])

        def words(count: float) -> str:
            kept = [self.names[column] for column in columns(count)]
            more = f" and {len(kept) - NAMED} more" if len(kept) > NAMED else ""
            return f"Fit on {len(kept)} ({', '.join(kept[:NAMED])}{more}) of {total} features"

        return Change(
            name="fewer features",
            setting="features",
            # All of them, as things are, are known not to do.
            levels=[float(total), *np.unique(counts)[::-1].tolist()],
            at=lambda count: self if count == total else self.again(columns=columns(count)),
            words=words,
            between=lambda low, high: float((low + high) // 2) if low - high > 1 else None,
            always=("The features with the largest coefficients on all records are kept.",),
        )

    # What it costs.

    def folds(self, wanted: Wanted) -> Folds:
        """Of whole groups, where those leave."""
        codes = self.described.codes
        labels = np.arange(len(self.ids)) if codes is None else codes
        return folds_of(labels, wanted.settings, wanted.random_state)

    def held_out(self, folds: Folds | None, kept: Rows | None = None) -> HeldOutScores:
        """The scores of every record by models fitted without its fold, and on ``kept`` only."""
        from sklearn.utils import _safe_indexing

        assert folds is not None
        kept = self._rows_of(kept)
        scores = None
        for repeat, number in enumerate(folds.number):
            for fold in range(folds.count):
                asked, others = np.flatnonzero(number == fold), number != fold
                train = np.flatnonzero(others) if kept is None else kept[others[kept]]
                self._require_classes(self.y[train], "a fold's training part")
                inner, design = self.whole.fitted_on(train)
                found = self._scores(inner, _safe_indexing(design, asked))
                if scores is None:
                    scores = np.empty((*folds.number.shape, *found.shape[1:]))
                scores[repeat, asked] = found
        assert scores is not None
        return HeldOutScores(scores, self._targets(), self.loss, self.task, folds)

    def _require_classes(self, labels: NDArray[Any], where: str) -> None:
        """Refuse records among which a class is missing: a model of them has other scores."""
        if self.task != "classification":
            return
        missing = np.setdiff1d(self.estimator.classes_, labels)
        if missing.size:
            raise InputError(
                f"{where} has no record of the class {missing[0]}; give the rarest class more "
                "records, or ask for more folds."
            )

    def _scores(self, estimator: Any, design: FloatArray) -> FloatArray:
        if self.task == "classification":
            return np.asarray(estimator.decision_function(design), dtype=np.float64)
        found = np.asarray(estimator.predict(design), dtype=np.float64).reshape(design.shape[0])
        return np.log(found) if has_log_link(self.loss) else found

    def _targets(self) -> FloatArray:
        if self.task != "classification":
            return np.asarray(self.y, dtype=np.float64)
        codes = np.searchsorted(self.estimator.classes_, self.y)
        return np.asarray(codes, dtype=np.float64)

    def terms(self, wanted: Wanted, folds: Folds | None) -> Terms:
        """The model's own loss, and what noise is added to."""
        assert folds is not None
        squared = self.loss == "square" and self.task == "regression"
        variance = float(np.var(self._targets())) if squared else None
        notes = [CONSTANT_TARGET] if variance == 0.0 else []
        if self.settings["observes"] == "label":
            notes.append("Only labels are answered, and a label takes no normal noise.")
        answered, unit = self._answered(), ""
        if self.task != "classification" and not has_log_link(self.loss):
            unit = target_unit(self.dataset.steps) or ", in units of the target,"
        return Terms(
            loss=loss_words(self.loss),
            priced=f"the model's {loss_words(self.loss)} on held-out records",
            variance=variance,
            commonest=commonest_share(self.y) if self.task == "classification" else None,
            unconfirmed="the numbers of a {unit} are not confirmed there: a few other records "
            "cause most of the variation",
            noise=f"Add fresh normal noise of standard deviation {{sd:.2g}}{unit} to {answered}",
            batches=min(
                200 if self.loss != "softmax" else 40, self.steps / wanted.settings.most_dropped
            ),
            notes=tuple(notes),
            assumptions=(
                ASKED_ONCE,
                AssumptionEntry(
                    statement="which features and records are kept stays fixed when a record "
                    "leaves",
                    holds=None,
                    evidence="each option is fitted and audited again on what it keeps",
                ),
                like_these(
                    f"{folds.count}-fold cross-validation of your model, repetitions: "
                    f"{len(folds.number)}; what to drop was chosen once, on all records"
                ),
            ),
        )

    def _answered(self) -> str:
        """What the noise is added to."""
        if self.task != "classification":
            return "every log-prediction" if has_log_link(self.loss) else "every prediction"
        return "every score" if self.loss == "square" else "every log-odds that is answered"

    def cannot_tell(self, laws: UnitLaws, target: Target) -> str:
        """Why some laws are not confirmed."""
        words = super().cannot_tell(laws, target)
        return f"{words[:-1]}, because a few other records cause most of the variation there."

    def checked(self, noise: float, wanted: Wanted) -> AdviceCheck | None:
        """The laws counted against refits of the changed recipe."""
        laws = self._laws_as_asked()
        check = fitted.counted(laws, self.described, self.whole).check
        if check is None:
            return None
        differs = "" if check.law_holds else " They DIFFER, and the option is not known to hold."
        return AdviceCheck(
            refits=check.refits, agrees=check.law_holds, sentence=f"{check.sentence}{differs}"
        )


def advised(audited: Fit) -> AdvisedFit:
    """The innermost estimator on the numbers that reach it."""
    inner, design = inner_model(audited.estimator, audited.X)
    weights, names = audited.sample_weight, audited.feature_names
    if names is None or len(names) != design.shape[1]:
        names = tuple(str(column) for column in range(design.shape[1]))
    numbers = np.asarray(design, dtype=np.float64)
    return AdvisedFit(
        audited,
        inner,
        numbers,
        np.ravel(np.asarray(audited.y)),
        None if weights is None else np.asarray(weights, dtype=np.float64),
        whole=audited.whole.changed(inner, numbers),
        names=names,
        ids=audited.ids,
        codes=audited.described.codes,
    )


def _digits(value: float, *, up: bool) -> float:
    """Two digits, towards more penalty."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 1.0)
    whole = np.ceil(value / unit - 1e-9) if up else np.floor(value / unit + 1e-9)
    return float(f"{whole * unit:.2g}")
