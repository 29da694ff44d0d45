"""Both laws of every record under the user's own model, from one fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.people import People, known_others_of_people, people_laws
from leakscope.fitted.problem import Away, FittedModel
from leakscope.fitted.refits import Moved
from leakscope.laws.distributions import (
    Discrete,
    Normal,
)
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.measures.pair_measures import advantage, tpr_at_fpr
from leakscope.settings.audit import MODEL_DEFAULTS
from leakscope.single_fit.laws import ClassLaws, ScoreMoments, score_moments
from leakscope.single_fit.leave_one_out import known_others
from leakscope.single_fit.problem import ConvexProblem, Question, group_codes, require_fraction
from leakscope.single_fit.shares import Shares

Observed = Literal["log_odds", "scores", "prediction", "residual", "label", "probabilities"]

# A record whose variance one other record carries beyond this share has a lumpy law.  It is trusted
# up to the share at which a normal is still within 20%: where one record that is in or out carries
# 40% of the variance, its advantage and its TPR at 1% FPR are, whatever the shift (docs/fitted.md).
# Several count as one with the root of their squared shares: the kurtosis is the same.  What is not
# heavy must smooth the lumps, or labels of two values leave a lattice.
LUMPY_SHARE = 0.2
TRUSTED_SHARE = 0.4
MOST_HEAVY = 0.9
# Far from halves a few that are in, or out, skew the score; at this skewness the TPR at 1% FPR is
# off by a half (Cornish and Fisher).
MOST_SKEWED = 0.25
# Where training sets of another size spread a score by another factor, its law is a mixture of
# these.
MOST_BY_SIZE = 1.5
# A spread below so many roundings of the predictions is not the score's own.
ROUNDINGS = 1e4

# A score that moves by more than this share of its deviation when all that ``fit`` learns is fitted
# again, on other records, has another law than the one with what it learned held (docs/fitted.md).
# Where the median is above the second, those that pass in so few refits do so by chance.
MOST_MOVED, MOST_IN_THE_MEDIAN = 0.4, 0.5

# A group's numbers are those of one sum of its answers; where the best test of all of them has an
# advantage larger by more than this, or a TPR at 1% FPR larger by more than this factor, they are
# not trusted.  Where the advantage hardly differs, nobody looks at the rate.  What the best test
# gets by the laws is what attacks on all answers get (docs/benchmarks/trust.md).
MOST_LOST, MOST_LOST_RATE = 0.1, 1.5
HARDLY_LOST, RATE_AT = 0.01, 0.01

# What a record is trusted by.
LED = "no other records, one or a few, carry more than 40% of its variance"
SUMMED = (
    f"the best test on all its answers gains at most {MOST_LOST:g} more, and {MOST_LOST_RATE:g} "
    "times the TPR at 1% FPR"
)
HELD = f"refits of the whole move its score by at most {MOST_MOVED:g} of its standard deviation"

# A head that was stopped early is another model than the optimum, whose shift is larger: on digits
# by 1.3 to 2 times where its answers are 0.9 sd away, by a tenth at 0.2 sd (docs/howto/heads.md).
# The distance may be at most this many sd, or this share of the record's own shift.
NEAREST, OF_SHIFT = 0.2, 0.25
SETTLED = (
    f"the released answers lie within {NEAREST:g} standard deviations of the optimum's, or within "
    "a quarter of the record's own shift"
)

# Refits that take longer than this are told of, in seconds of processor time.
NOTICEABLE = 5.0

# Beyond this gap between smoothed and plain sd laws were up to a fifth off, and are not trusted:
# at a gap of 0.12 to 0.2 (separable data, C = 1,000) one record in ten was off by 0.1.
GAP_TRUSTED = 0.1

NO_NOISE_ON_LABELS = "A label takes no normal noise; leave answer_noise at 0."

# Beyond this share of records that one other record leads, the data as a whole is warned of.
LED_WARNED = 0.01


@dataclass(frozen=True)
class Diagnostics:
    """How well the laws are known.

    Attributes
    ----------
    rounds, change, converged
        Of the cavity: how many rounds, the last one's largest relative change, and whether it is
        below the tolerance.
    smoothing_gap
        By how much the smoothed sd exceeds the plain one in the median; above 0.1 the laws lean
        on an average over a curved loss and are warned of.
    lumpy, led
        The shares of the records looked at whose variance comes to more than 20%, and to more than
        40%, from one other record or a few.  The latter are not trusted.
    unsteady, unresolved
        The shares of the records whose spread follows the size of the training set, and of those
        whose spread is rounding.  Neither are trusted.
    unseen
        The share of the records whose check was too costly; they are not trusted either.
    """

    rounds: int
    change: float
    converged: bool
    smoothing_gap: float
    lumpy: float
    led: float
    unsteady: float = 0.0
    unresolved: float = 0.0
    unseen: float = 0.0


@dataclass(frozen=True, eq=False)
class FittedLaws:
    """The two laws of every record's score, in record order; of every group's where groups leave.

    Attributes
    ----------
    member_mean, member_sd, nonmember_mean, nonmember_sd
        Of the score, over training sets with and without the record.
    question, fraction
        What the training sets are.
    observes
        What the score is.
    trusted, looked, check
        Whether a record passed the check, whether anybody looked at it, and the check in words.
    largest_share
        The largest share of one other record in each record's variance; NaN where not looked at.
    moved_by_refits
        How far each record's score moves when everything that ``fit`` learns beside the optimum is
        fitted again, in standard deviations; None where it learns nothing else.
    warnings
        Sentences for people, empty where there is nothing to say.
    diagnostics
        How well the laws are known.
    yields
        x' H^{-1} x of models with and without each record; None for several classes.
    moved
        How far each record moves the coefficients, as a Euclidean norm; known others only.
    people
        Where whole groups leave: who is whose, what each record's score counts for in its group's,
        and the laws of all rows.
    """

    member_mean: FloatArray
    member_sd: FloatArray
    nonmember_mean: FloatArray
    nonmember_sd: FloatArray
    question: Question
    fraction: float
    observes: Observed
    trusted: npt.NDArray[np.bool_]
    looked: npt.NDArray[np.bool_]
    check: str
    largest_share: FloatArray
    moved_by_refits: FloatArray | None
    warnings: tuple[str, ...]
    diagnostics: Diagnostics
    provenance: Provenance
    several: ClassLaws | None = None
    yields: tuple[FloatArray, FloatArray] | None = None
    moved: FloatArray | None = None
    people: People | None = None

    @property
    def records(self) -> int:
        """How many records, or groups, there are."""
        return len(self.member_mean)

    @property
    def shift(self) -> FloatArray:
        """How far the record's own presence moves its score on average."""
        return np.asarray(self.member_mean - self.nonmember_mean)

    @property
    def shift_in_sd(self) -> FloatArray:
        """The same in standard deviations without the record; infinite where nothing else moves it.

        Zero where nothing moves it at all.
        """
        apart = np.where(self.shift == 0.0, 0.0, np.copysign(np.inf, self.shift))
        good = self.nonmember_sd > 0.0
        return np.asarray(np.divide(self.shift, self.nonmember_sd, out=apart, where=good))

    def noised(self, sd: float) -> FittedLaws:
        """The laws of answers that carry fresh normal noise of this standard deviation."""
        if sd == 0.0:
            return self
        if self.observes in ("label", "probabilities"):
            raise InputError(
                "Noise is added to one score of a record; leave out answer noise, or observe "
                "log-odds or predictions."
            )
        if self.people is not None:
            people = self.people.noised(sd)
            mean_in, sd_in, mean_out, sd_out = people.moments()
            return replace(
                self,
                member_mean=mean_in,
                member_sd=sd_in,
                nonmember_mean=mean_out,
                nonmember_sd=sd_out,
                people=people,
            )
        return replace(
            self,
            member_sd=np.hypot(self.member_sd, sd),
            nonmember_sd=np.hypot(self.nonmember_sd, sd),
        )

    def weighed_for(self, noise: float) -> tuple[FittedLaws, FloatArray]:
        """The laws of the scores that tell most where every answer has noise of this sd.

        They are without that noise; the second is the sd that it adds to each score.
        """
        if self.people is None or noise == 0.0:
            return self, np.full(self.records, noise)
        people = self.people.weighed_for(noise)
        mean_in, sd_in, mean_out, sd_out = people.moments()
        found = replace(
            self,
            member_mean=mean_in,
            member_sd=sd_in,
            nonmember_mean=mean_out,
            nonmember_sd=sd_out,
            people=people,
        )
        return found, noise * people.lengths

    def law_pair(
        self,
        *,
        answer_noise: float = 0.0,
        posterior_variance: float = 0.0,
        coefficient_noise: float = 0.0,
    ) -> LawPair:
        """The pair of laws of every record, in record order.

        Parameters
        ----------
        answer_noise
            Standard deviation of normal noise added to every answer.  Known others leave nothing
            else that is random: without noise the two laws are two points, and there is no pair.
        posterior_variance
            The coefficients that answer are one draw from N(theta, posterior_variance H^{-1}): 1
            for a likelihood (logistic, Poisson; by Laplace), the noise variance for ridge.
        coefficient_noise
            What is observed are all coefficients, each with normal noise of this standard
            deviation; for known others.
        """
        noises = {
            "answer_noise": answer_noise,
            "posterior_variance": posterior_variance,
            "coefficient_noise": coefficient_noise,
        }
        for name, value in noises.items():
            if not value >= 0.0:
                raise InputError(f"{name} must be zero or above, but it is {value!r}.")
        if coefficient_noise > 0.0:
            return _coefficient_pair(self, coefficient_noise, answer_noise + posterior_variance)
        if self.question == "known_others" and answer_noise + posterior_variance == 0.0:
            raise InputError(
                "An attacker who knows all other records can fit the model both ways and tell with "
                "certainty, so there are no two laws to compare; pass answer_noise, "
                "posterior_variance or coefficient_noise, or ask the pool or population question."
            )
        drawn: tuple[FloatArray | float, FloatArray | float] = 0.0, 0.0
        if posterior_variance > 0.0:
            if self.yields is None or self.observes in ("label", "probabilities"):
                raise InputError(
                    "The law of a posterior draw is known for models with one output whose answer "
                    "is a number; observe log_odds, scores, prediction or residual."
                )
            drawn = posterior_variance * self.yields[0], posterior_variance * self.yields[1]
        elif self.observes == "label":
            if answer_noise > 0.0:
                raise InputError(NO_NOISE_ON_LABELS)
            return _label_pair(self)
        elif self.observes == "probabilities" and self.several is not None:
            return _vector_pair(self, answer_noise)
        if self.people is not None and answer_noise > 0.0:
            # noise on each answer: the best sum of them is another
            best, added = self.weighed_for(answer_noise)
            return LawPair(
                Normal(best.member_mean, np.hypot(best.member_sd, added)),
                Normal(best.nonmember_mean, np.hypot(best.nonmember_sd, added)),
                self.provenance,
            )
        return LawPair(
            Normal(self.member_mean, np.sqrt(self.member_sd**2 + drawn[0] + answer_noise**2)),
            Normal(self.nonmember_mean, np.sqrt(self.nonmember_sd**2 + drawn[1] + answer_noise**2)),
            self.provenance,
        )


def _coefficient_pair(laws: FittedLaws, noise: float, other: float) -> LawPair:
    """Equal normals around two points: only the distance along the line between them tells."""
    if other > 0.0:
        raise InputError("Noise goes on the coefficients or on the answers; pass one of them.")
    if laws.moved is None:
        raise InputError(
            "The law of coefficients with noise is known for models with coefficients under the "
            "question of known others; ask for known_others."
        )
    seen = replace(laws.provenance, observes="coefficients")
    return LawPair(Normal(laws.moved, noise), Normal(0.0 * laws.moved, noise), seen)


def _label_pair(laws: FittedLaws) -> LawPair:
    """Whether the own label comes out on top."""
    if laws.several is not None:
        right = laws.several.right_in, laws.several.right_out
    else:
        right = (
            special.ndtr(laws.member_mean / laws.member_sd),
            special.ndtr(laws.nonmember_mean / laws.nonmember_sd),
        )
    return LawPair(Discrete.of_label(right[0]), Discrete.of_label(right[1]), laws.provenance)


def _vector_pair(laws: FittedLaws, answer_noise: float) -> LawPair:
    """All probabilities, as the other classes' logits less the own one."""
    assert laws.several is not None
    return LawPair(*laws.several.pair(answer_noise), laws.provenance)


def laws_of(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    question: Question = MODEL_DEFAULTS.question,
    fraction: float | None = None,
    observes: Observed | None = None,
    sample_weight: npt.ArrayLike | None = None,
    groups: Sequence[Any] | None = None,
) -> FittedLaws:
    """Both laws of every record's score under the user's own model, without shadow models.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator (see `from_sklearn`), a `FittedModel` or a `ConvexProblem`.
    X, y, sample_weight
        The records that an estimator was fitted on, as it was given them.
    question
        ``"pool"``: each other record is in the training set with probability ``fraction``, as in
        LiRA.  ``"population"``: the others are fresh draws from where these records came from.
        ``"known_others"``: the attacker knows all of them, and leave-one-out says it all.
    fraction
        The training set's share of the records: one half for the pool, 1 for the population.
    observes
        ``"log_odds"`` of the own label (the default for classifiers), ``"prediction"`` (for
        regression), ``"residual"``, ``"label"`` or ``"probabilities"``.
    groups
        Who each record belongs to, such as a person: all records with the same value leave
        together, and the laws are those of the groups, in the order in which they first come.

    Returns
    -------
    FittedLaws

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from leakscope import fitted, measures
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> laws = fitted.laws_of(model, X, y)
    >>> laws.observes, laws.question, laws.fraction
    ('log_odds', 'pool', 0.5)
    >>> bool(0.01 < measures.advantage(laws.law_pair()).mean() < 0.1)
    True
    """
    described = _as_model(model, X, y, sample_weight)
    if groups is not None:
        described = described.in_groups(group_codes(groups, described.records))
    if question not in get_args(Question):
        raise InputError(
            f"question must be one of {', '.join(get_args(Question))}, but it is {question!r}."
        )
    if fraction is None:
        fraction = 0.5 if question == "pool" else 1.0
    fraction = require_fraction(fraction, whole=question != "pool")
    chosen = _observed(described, observes)
    _require_enough(described, question, fraction)
    if described.codes is not None:
        return _of_groups(described, described.codes, question, fraction, chosen)
    parts = [_laws(problem, question, fraction) for problem in described.problems]
    found = _own(described, parts)
    several = parts[0].classes
    return _finished(described, found, several, question, fraction, chosen)


def _as_model(model: Any, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> FittedModel:
    """What the caller passed as a model, described with its records."""
    if isinstance(model, (FittedModel, ConvexProblem)):
        if X is not None or y is not None or sample_weight is not None:
            raise InputError("A described model has its records already; leave out X and y.")
        return FittedModel.of(model) if isinstance(model, ConvexProblem) else model
    if X is None or y is None:
        raise InputError("Pass X and y: the records that the estimator was fitted on.")
    return from_sklearn(model, X, y, sample_weight=sample_weight)


def _observed(model: FittedModel, observes: Observed | None) -> Observed:
    squared = model.problems[0].loss == "square"
    if observes is None:
        if model.task != "classification":
            return "prediction"
        return "scores" if squared else "log_odds"
    allowed: tuple[str, ...] = ("prediction", "residual")
    if model.task == "classification":
        allowed = ("scores", "label") if squared else ("log_odds", "label", "probabilities")
        if squared and len(model.problems) > 1:
            allowed = ("scores",)
    if model.codes is not None:
        # one number for each answer
        allowed = tuple(name for name in allowed if name not in ("label", "probabilities"))
    if observes not in allowed:
        raise InputError(
            f"observes must be one of {', '.join(allowed)} for {model.name}"
            f"{' in groups' * (model.codes is not None)}, but it is {observes!r}."
        )
    return observes


def _require_enough(model: FittedModel, question: Question, fraction: float) -> None:
    problem = model.problems[0]
    if problem.X is None or question == "known_others":
        return
    free = int(np.count_nonzero(problem.penalty_at(1.0) == 0.0))
    if free >= fraction * problem.records - 1.0:
        raise InputError(
            f"{model.name} has {free} coefficients without a penalty, and a training set of "
            f"{fraction:g} of the {problem.records} records interpolates: members' residuals are "
            "zero, so an attacker who knows the label recognises members with certainty; add a "
            "penalty."
        )


def _laws(problem: ConvexProblem, question: Question, fraction: float) -> ScoreMoments:
    if question == "known_others":
        return known_others(problem)
    return score_moments(problem, fraction=fraction, fresh=question == "population")


def _own(model: FittedModel, parts: list[ScoreMoments]) -> ScoreMoments:
    """Each record's laws from the problem that scores its own label."""
    if len(parts) == 1:
        return parts[0]
    rows = np.arange(model.records)

    def pick(arrays: Iterable[FloatArray]) -> FloatArray:
        return np.asarray(np.stack(list(arrays))[model.own, rows])

    moves = [part.moved for part in parts if part.moved is not None]
    yields = [part.yields for part in parts if part.yields is not None]
    return ScoreMoments(
        mean_in=pick(part.mean_in for part in parts),
        sd_in=pick(part.sd_in for part in parts),
        mean_out=pick(part.mean_out for part in parts),
        sd_out=pick(part.sd_out for part in parts),
        rounds=max(part.rounds for part in parts),
        change=max(part.change for part in parts),
        converged=all(part.converged for part in parts),
        smoothing_gap=max(part.smoothing_gap for part in parts),
        shares=Shares(
            *(
                pick(getattr(part.shares, name) for part in parts)
                for name in ("largest", "squares", "cubes", "heavy")
            )
        ),
        by_size=pick(part.by_size for part in parts),
        yields=(pick(inside for inside, _ in yields), pick(outside for _, outside in yields)),
        moved=np.linalg.norm(moves, axis=0) if moves else None,
    )


def _of_groups(
    model: FittedModel,
    codes: npt.NDArray[np.intp],
    question: Question,
    fraction: float,
    observes: Observed,
) -> FittedLaws:
    """The laws of whole groups."""
    offset = _residual_of(model) if observes == "residual" else None
    if question == "known_others":
        found, people = known_others_of_people(model, codes, offset)
    else:
        found, people = people_laws(model, codes, question, fraction, offset)
    return _finished(model, found, None, question, fraction, observes, people)


def _residual_of(model: FittedModel) -> FloatArray:
    """What the prediction is taken from; counts are compared on the linear predictor's scale."""
    return model.problems[0].y if model.task == "regression" else np.zeros(model.records)


def _finished(
    model: FittedModel,
    found: ScoreMoments,
    several: ClassLaws | None,
    question: Question,
    fraction: float,
    observes: Observed,
    people: People | None = None,
) -> FittedLaws:
    sign: FloatArray | float = model.sign if people is None else 1.0
    offset: FloatArray | float = 0.0
    if observes == "residual" and people is None:
        sign, offset = -1.0, _residual_of(model)
    share = found.shares.largest
    seen, checks = ~np.isnan(share), judged(found, question, fraction)
    lead = np.sqrt(found.shares.squares)
    lumpy = float(np.mean(lead[seen] > LUMPY_SHARE)) if seen.any() else 0.0
    trusted, looked, check = checks.trusted, seen, LED
    if people is not None:
        if question != "known_others":
            trusted = trusted & _hardly_lost(people, _normals(found))
        check = f"{LED.replace('record', 'group')}; {SUMMED}"
    again = None
    if model.whole is not None and question != "known_others":
        again = model.whole.moved(found.sd_out, fraction, people)
        trusted = (
            trusted & (again.size <= MOST_MOVED) & (np.median(again.size) <= MOST_IN_THE_MEDIAN)
        )
        looked, check = looked & ~np.isnan(again.size), f"{check}; {HELD}"
    distance = None
    if model.away is not None:
        distance = _distance(model.away, found, people)
        trusted, check = trusted & distance.near, f"{check}; {SETTLED}"
    if not found.converged or found.smoothing_gap > GAP_TRUSTED:
        trusted = np.zeros(model.units, dtype=np.bool_)
    diagnostics = Diagnostics(
        found.rounds,
        found.change,
        found.converged,
        found.smoothing_gap,
        lumpy,
        led=float(np.mean(~checks.normal[seen])) if seen.any() else 0.0,
        unsteady=float(np.mean(~checks.steady)),
        unresolved=float(np.mean(~checks.resolved)) if question != "known_others" else 0.0,
        unseen=float(np.mean(~seen)) if question != "known_others" else 0.0,
    )
    provenance = Provenance(
        question="leave_one_out" if question == "known_others" else question,
        adjacency="removed",
        observes=observes,
        random=() if question == "known_others" else ("data",),
        attacker_knows_label=True,
        method="exact" if question == "known_others" else "asymptotic",
        source="docs/fitted.md",
        assumptions=(
            *assumptions_of(model, diagnostics, again, question, fraction),
            *(() if distance is None else (distance.assumption(),)),
        ),
    )
    return FittedLaws(
        member_mean=sign * found.mean_in + offset,
        member_sd=found.sd_in,
        nonmember_mean=sign * found.mean_out + offset,
        nonmember_sd=found.sd_out,
        question=question,
        fraction=fraction,
        observes=observes,
        trusted=np.asarray(trusted),
        looked=np.asarray(looked),
        check=check,
        largest_share=share,
        moved_by_refits=None if again is None else again.size,
        warnings=(
            *(() if distance is None else distance.warnings(model.unit)),
            *warnings_of(model, diagnostics, again, question),
        ),
        diagnostics=diagnostics,
        provenance=provenance,
        several=several,
        yields=found.yields,
        moved=found.moved,
        people=people,
    )


@dataclass(frozen=True, eq=False)
class Judged:
    """Which checks each record passes."""

    trusted: npt.NDArray[np.bool_]
    normal: npt.NDArray[np.bool_]
    steady: npt.NDArray[np.bool_]
    resolved: npt.NDArray[np.bool_]


def judged(found: ScoreMoments, question: Question, fraction: float) -> Judged:
    """What can be told of each record from its own laws."""
    numbers = np.isfinite(found.mean_in) & np.isfinite(found.mean_out) & np.isfinite(found.sd_out)
    normal = smooth(found.shares, question, fraction)
    steady = (found.by_size <= MOST_BY_SIZE) & (found.by_size >= 1.0 / MOST_BY_SIZE)
    least = ROUNDINGS * np.finfo(np.float64).eps * float(np.max(np.abs(found.mean_out)))
    resolved = found.sd_out > least
    seen = ~np.isnan(found.shares.largest)
    return Judged(numbers & seen & normal & steady & resolved, normal, steady, resolved)


@dataclass(frozen=True, eq=False)
class _Distance:
    """How far the released answers are from the optimum's, in standard deviations of a score."""

    near: npt.NDArray[np.bool_]
    in_sd: FloatArray
    away: Away

    @property
    def _words(self) -> str:
        return (
            f"its answers are {np.median(self.in_sd):.2g} standard deviations from the optimum's "
            f"in the median, {np.max(self.in_sd):.2g} at most; the gradient is "
            f"{self.away.gradient:.2g} of that at zero coefficients"
        )

    def assumption(self) -> Assumption:
        return Assumption(
            "the released fit is the optimum of its penalised loss on these records",
            holds=bool(np.median(self.in_sd) <= NEAREST),
            evidence=self._words,
        )

    def warnings(self, unit: str) -> tuple[str, ...]:
        doubted = int(np.count_nonzero(~self.near))
        if doubted <= LED_WARNED * len(self.near):
            return ()
        check = "give its weight decay" if self.away.penalty_found else "check the weight decay"
        return (
            f"The released fit is not the optimum whose laws these are: {self._words}. For "
            f"{doubted} of {len(self.near)} {unit}s that is too much beside their own shift, and "
            f"they are not trusted: train longer, {check}, or give the training as a function "
            "train(X, y, seed) to have a few models of it.",
        )


def _distance(away: Away, found: ScoreMoments, people: People | None) -> _Distance:
    moved = np.abs(away.scores if people is None else people.summed(away.scores))
    spread = np.maximum(found.sd_out, np.finfo(np.float64).tiny)
    in_sd = moved / spread
    # Some records' answers are near by chance, and move with a record as the others' do.
    usual = np.maximum(in_sd, np.median(in_sd))
    shift = np.abs(found.mean_in - found.mean_out) / spread
    # A penalty that was found makes a training that was stopped early look nearer than it is.
    allowed = 0.5 * NEAREST if away.penalty_found else np.maximum(NEAREST, OF_SHIFT * shift)
    return _Distance(np.asarray(usual <= allowed), np.asarray(in_sd), away)


def _hardly_lost(people: People, summed: LawPair) -> npt.NDArray[np.bool_]:
    """Whether the sum of a group's answers tells nearly what all of them do."""
    lost = people.joint - np.asarray(advantage(summed))
    asked = (lost > HARDLY_LOST) & (lost <= MOST_LOST)
    rates = people.joint_rates(asked, RATE_AT)
    own = np.asarray(tpr_at_fpr(summed, RATE_AT))
    return np.asarray((lost <= MOST_LOST) & (~asked | (rates <= MOST_LOST_RATE * own)))


def _normals(found: ScoreMoments) -> LawPair:
    """Of scores that vary; where they do not, nothing is known."""
    sds = [np.where(sd > 0.0, sd, np.inf) for sd in (found.sd_in, found.sd_out)]
    good = np.isfinite(sds[0]) & np.isfinite(sds[1])
    inside, outside = (np.where(good, sd, 1.0) for sd in sds)
    return LawPair(Normal(found.mean_in, inside), Normal(found.mean_out, outside))


def smooth(shares: Shares, question: Question, fraction: float) -> npt.NDArray[np.bool_]:
    """Whether the sum over the other records is near enough to a normal; False where unknown."""
    if question == "population":
        # Fresh others are not the few that are here: there is no lattice of who is in.
        return np.asarray(shares.largest <= TRUSTED_SHARE)
    even = (np.sqrt(shares.squares) <= TRUSTED_SHARE) & (shares.heavy <= MOST_HEAVY)
    skew = abs(1.0 - 2.0 * fraction) / np.sqrt(max(fraction * (1.0 - fraction), 1e-12))
    return np.asarray(even & (skew * shares.cubes <= MOST_SKEWED))


def warnings_of(
    model: FittedModel, diagnostics: Diagnostics, again: Moved | None, question: Question
) -> tuple[str, ...]:
    """Sentences for people; empty where there is nothing to say."""
    said: list[str] = []
    unit = model.unit
    if question == "known_others":
        return (
            f"An attacker who knows all other {unit}s can fit the model both ways and tell with "
            "certainty.",
        )
    if not diagnostics.converged:
        said.append(
            f"The mean model did not converge in {diagnostics.rounds} rounds (last change "
            f"{diagnostics.change:.1g}), so no {unit}'s numbers are trusted; use a larger penalty."
        )
    if diagnostics.smoothing_gap > GAP_TRUSTED:
        said.append(
            "The predictions vary so much that the loss is curved over their range (smoothed sd "
            f"{100 * diagnostics.smoothing_gap:.0f}% above plain sd), as with separable data and a "
            f"small penalty: the spread may be up to a fifth too small, and no {unit} is trusted."
        )
    if diagnostics.led > LED_WARNED:
        said.append(
            f"For {100 * diagnostics.led:.0f}% of the {unit}s one other {unit}, or a few, cause "
            "more than 40% of the variation, as with rare categories: the normal approximation is "
            "poor there, and these numbers are not trusted."
        )
    if diagnostics.unsteady > 0.0:
        said.append(
            f"For {100 * diagnostics.unsteady:.0f}% of the {unit}s the spread depends on the size "
            "of the training set, which varies: training sets are small, or have hardly more "
            "records than coefficients. These numbers are not trusted; use a larger penalty, "
            "fewer features or a fraction nearer to one half."
        )
    if diagnostics.unresolved > 0.0:
        said.append(
            f"For {100 * diagnostics.unresolved:.0f}% of the {unit}s only rounding varies, as "
            "where the features determine the labels exactly: their numbers are not trusted."
        )
    if diagnostics.unseen > 0.0:
        said.append(
            f"{100 * diagnostics.unseen:.0f}% of the {unit}s were not checked, because a check "
            "costs too much with so many coefficients, and what was not checked is not trusted; "
            "use fewer features, or let leakscope verify compare the numbers with retrained models."
        )
    return (*said, *_told_of_refits(model, again))


def _told_of_refits(model: FittedModel, again: Moved | None) -> tuple[str, ...]:
    """What the refits of the whole showed, where that is worth a sentence."""
    if again is None or model.whole is None:
        return ()
    learned = ", ".join(model.whole.learned)
    instead = "`leakscope audit --model` takes the whole"
    if model.whole.found.frozen:
        instead += " once it has no frozen part"
    if model.whole.chosen:
        instead += ", and the model with what was chosen held can be audited alone"
    if again.failure:
        return (
            f"Beside its coefficients the model learns from the records ({learned}), and how much "
            f"could not be measured: {again.failure}. No {model.unit}'s numbers are trusted; "
            f"{instead}.",
        )
    said = []
    share = float(np.mean(again.size > MOST_MOVED))
    if share > LED_WARNED:
        said.append(
            f"What the model learns beside its coefficients ({learned}) depends on the records: "
            f"{again.refits} refits of the whole move the scores of {100 * share:.0f}% of the "
            f"{model.unit}s by more than {MOST_MOVED:g} standard deviations, and "
            + (
                "their numbers are not trusted"
                if np.median(again.size) <= MOST_IN_THE_MEDIAN
                else f"no {model.unit}'s numbers are trusted"
            )
            + f"; {instead}."
        )
    if again.seconds > NOTICEABLE:
        said.append(
            f"{again.refits} refits of the whole ({learned}) took {again.seconds:.0f} s of "
            "processor time."
        )
    return tuple(said)


def assumptions_of(
    model: FittedModel,
    diagnostics: Diagnostics,
    again: Moved | None,
    question: Question,
    fraction: float,
) -> tuple[Assumption, ...]:
    """What the laws assume, with what was looked at."""
    own = model.problems[0].assumptions
    if model.whole is not None:
        own = (*own, _held(", ".join(model.whole.learned), again, model.unit))
    if question == "known_others":
        return own
    drawn = {
        "pool": f"each other {model.unit} is in the training set with probability {fraction:g}",
        "population": f"the other {model.unit}s are {fraction:g} times as many fresh draws from "
        "where these came from",
    }[question]
    found = [
        Assumption(drawn, holds=None, evidence="not checked: the question assumes it"),
        Assumption(
            "penalty and other settings are the same for every training set",
            holds=None,
            evidence=f"{model.name}, as fitted",
        ),
        Assumption(
            "the mean model has converged",
            holds=diagnostics.converged,
            evidence=f"{diagnostics.rounds} rounds, last change {diagnostics.change:.1g}",
        ),
        Assumption(
            f"the score is normal over training sets without the {model.unit}",
            holds=diagnostics.led <= LED_WARNED and diagnostics.smoothing_gap <= GAP_TRUSTED,
            evidence=f"one or a few others carry more than a fifth of the variance for "
            f"{100 * diagnostics.lumpy:.1f}% of the {model.unit}s, more than 40% for "
            f"{100 * diagnostics.led:.1f}%; "
            f"smoothed sd {100 * diagnostics.smoothing_gap:.1f}% above plain sd",
        ),
    ]
    if question == "population":
        found.append(
            Assumption(
                f"the mean score without the {model.unit} is known",
                holds=False,
                evidence=f"one sample of the population gives it to within about "
                f"{fraction**0.5:.2g} standard deviations of the score",
            )
        )
    return (*own, *found)


def _held(learned: str, again: Moved | None, unit: str) -> Assumption:
    """That what ``fit`` learns beside the optimum stays as fitted, with what refits showed."""
    holds, evidence = None, "not fitted again"
    if again is not None and again.failure:
        evidence = again.failure
    elif again is not None:
        share = float(np.mean(again.size > MOST_MOVED))
        holds = share <= LED_WARNED
        evidence = (
            f"{again.refits} refits of the whole move a score by {np.median(again.size):.2g} "
            f"standard deviations in the median, by more than {MOST_MOVED:g} for "
            f"{100 * share:.1f}% of the {unit}s"
        )
    return Assumption(
        f"what is learned beside the coefficients ({learned}) stays as fitted",
        holds=holds,
        evidence=evidence,
    )
