"""Both laws of every record's score under the user's own model, from one fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from leakscope._numerics.arrays import FloatArray
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.fitted.from_sklearn import from_sklearn
from leakscope.fitted.people import People, known_others_of_people, people_laws
from leakscope.fitted.problem import Away, FittedModel, NoLawsError
from leakscope.fitted.refits import Observed, Refitting, refits_of
from leakscope.laws.distributions import Discrete, Normal
from leakscope.laws.pair import Assumption, LawPair, Provenance
from leakscope.measures.pair_measures import advantage, tpr_at_fpr
from leakscope.settings.audit import MODEL_DEFAULTS
from leakscope.single_fit.laws import ClassLaws, ScoreMoments, score_moments
from leakscope.single_fit.leave_one_out import known_others
from leakscope.single_fit.problem import ConvexProblem, Question, group_codes, require_fraction
from leakscope.single_fit.shares import Shares
from leakscope.trust import (
    MOST_GAINED,
    MOST_GAINED_RATE,
    RATE_AT,
    Check,
    check_laws,
    hardly_led,
    refits_needed,
    resolved,
)

# A head that was stopped early is another model than the optimum, whose shift is larger: on digits
# by 1.3 to 2 times where its answers are 0.9 sd away, by a tenth at 0.2 sd (docs/howto/heads.md).
# The distance may be at most this many sd, or this share of the record's own shift.
NEAREST, OF_SHIFT = 0.2, 0.25
# What holds for fewer units than this share is no sentence for the whole; a gain below the second
# changes no rate.
HARDLY_ANY, HARDLY_GAINED = 0.05, 0.01
# Of the parts of a check's refits.
SEED = 20262

# Of 100 records and 46 coefficients 6 of 79 confirmed ones were off by more than twice in TPR.
MUCH = 0.5
NO_NOISE_ON_LABELS = "A label takes no normal noise; leave answer_noise at 0."


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
    shares
        How unequally the others share in each score's variance.
    rounds, converged
        Of the cavity.
    check
        What refits of the recipe say of the laws; None where they were not counted.
    doubt
        Why they were not, where it was tried.
    near
        (U,) whether the released answers are near enough to the optimum's; None where they need not
        be looked at.
    several
        Of records with several classes.
    yields
        x' H^{-1} x of models with and without each record; None for several classes.
    moved
        How far each record moves the coefficients, as a Euclidean norm; known others only.
    people
        Where whole groups leave: who is whose, what each record's score counts for in its group's,
        and the laws of all rows.
    unit
        What leaves.
    """

    member_mean: FloatArray
    member_sd: FloatArray
    nonmember_mean: FloatArray
    nonmember_sd: FloatArray
    question: Question
    fraction: float
    observes: Observed
    shares: Shares
    rounds: int
    converged: bool
    provenance: Provenance
    check: Check | None = None
    doubt: str = ""
    near: npt.NDArray[np.bool_] | None = None
    several: ClassLaws | None = None
    yields: tuple[FloatArray, FloatArray] | None = None
    moved: FloatArray | None = None
    people: People | None = None
    unit: Literal["record", "group"] = "record"

    @property
    def records(self) -> int:
        """How many records, or groups, there are."""
        return len(self.member_mean)

    @property
    def confirmed(self) -> npt.NDArray[np.bool_]:
        """(U,) whether refits confirm each unit's numbers."""
        if self.check is None:
            return np.zeros(self.records, dtype=np.bool_)
        return self.check.confirmed

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

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for people, empty where there is nothing to say."""
        unit, found = self.unit, self.check
        if self.question == "known_others":
            return (
                f"An attacker who knows all other {unit}s can fit the model both ways and tell "
                "with certainty.",
            )
        if self.doubt:
            return (f"No {unit}'s numbers are confirmed: {self.doubt}.",)
        if found is None:
            return ()
        if self.near is not None and np.mean(~self.near) > HARDLY_ANY:
            return (
                "The released fit is not the optimum whose laws these are: for "
                f"{np.count_nonzero(~self.near)} of {len(self.near)} {unit}s its answers are too "
                "far away beside their own shift, and their numbers are not confirmed. Train "
                "longer, check the weight decay, or give the training as a function "
                "train(X, y, seed) to have a few models of it.",
            )
        if not found.law_holds:
            failed = sum(not stratum.holds for stratum in found.strata)
            return (
                f"Refits contradict the laws of one fit in {failed} of {len(found.strata)} parts "
                f"of the {unit}s, so no {unit}'s numbers are confirmed; models of halves "
                "(leakscope audit --model) take the whole recipe.",
            )
        why = [found.reason(place) for place in np.flatnonzero(~found.confirmed).tolist()]
        kinds = {text.partition(" (")[0].partition(" of ")[0] for text in why}
        return tuple(
            f"For {100 * share:.0f}% of the {unit}s {kind}: their numbers are not confirmed."
            for kind in sorted(kinds)
            if (share := sum(text.startswith(kind) for text in why) / self.records) > HARDLY_ANY
        )

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
            return self._of_people(self.people.noised(sd))
        return replace(
            self,
            member_sd=np.hypot(self.member_sd, sd),
            nonmember_sd=np.hypot(self.nonmember_sd, sd),
        )

    def _of_people(self, people: People) -> FittedLaws:
        """The laws of groups whose rows have these laws and weights."""
        mean_in, sd_in, mean_out, sd_out = people.moments()
        return replace(
            self,
            member_mean=mean_in,
            member_sd=sd_in,
            nonmember_mean=mean_out,
            nonmember_sd=sd_out,
            people=people,
        )

    def weighed_for(self, noise: float) -> tuple[FittedLaws, FloatArray]:
        """The laws of the scores that tell most where every answer has noise of this sd.

        They are without that noise; the second is the sd that it adds to each score.
        """
        if self.people is None or noise == 0.0:
            return self, np.full(self.records, noise)
        people = self.people.weighed_for(noise)
        return self._of_people(people), noise * people.lengths

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
            return LawPair(*self.several.pair(answer_noise), self.provenance)
        # noise on each answer of a group: the best sum of them is another
        best, added = self.weighed_for(answer_noise)
        return LawPair(
            Normal(best.member_mean, np.sqrt(best.member_sd**2 + drawn[0] + added**2)),
            Normal(best.nonmember_mean, np.sqrt(best.nonmember_sd**2 + drawn[1] + added**2)),
            self.provenance,
        )

    def checked_as(self, check: Check) -> FittedLaws:
        """With a count of the same model's refits; which others carry the laws is their own."""
        pair = self.law_pair()
        led = hardly_led(pair, self.shares.effective, self.shares.heavy)
        if self.people is not None:
            led &= _sum_tells_most(self.people, pair)
        agrees = check.agrees if self.near is None else check.agrees & self.near
        found = replace(
            check,
            resolved=resolved(self.nonmember_mean, self.nonmember_sd) & self.converged,
            hardly_led=led,
            agrees=agrees,
        )
        assumption = Assumption(
            "on refits of the recipe the laws' own test is worth what they say",
            holds=found.law_holds,
            evidence=found.sentence,
        )
        assumptions = (*self.provenance.assumptions, assumption)
        provenance = replace(self.provenance, assumptions=assumptions)
        return replace(self, check=found, provenance=provenance)


def _sum_tells_most(people: People, summed: LawPair) -> npt.NDArray[np.bool_]:
    """Whether the best test of all answers about a group gains little on the sum that is seen."""
    gained = people.joint - np.asarray(advantage(summed))
    asked = (gained > HARDLY_GAINED) & (gained <= MOST_GAINED)
    rates, own = people.joint_rates(asked, RATE_AT), np.asarray(tpr_at_fpr(summed, RATE_AT))
    return np.asarray((gained <= MOST_GAINED) & (~asked | (rates <= MOST_GAINED_RATE * own)))


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

    They are not counted against refits; :func:`counted` does that.

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
    people = None
    if described.codes is not None:
        offset = _residual_of(described) if chosen == "residual" else None
        if question == "known_others":
            found, people = known_others_of_people(described, described.codes, offset)
        else:
            found, people = people_laws(described, described.codes, question, fraction, offset)
    else:
        parts = [
            known_others(problem)
            if question == "known_others"
            else score_moments(problem, fraction=fraction, fresh=question == "population")
            for problem in described.problems
        ]
        found = _own(described, parts)
    sign: FloatArray | float = described.sign if people is None else 1.0
    shift: FloatArray | float = 0.0
    if chosen == "residual" and people is None:
        sign, shift = -1.0, _residual_of(described)
    away = described.away
    near = None if away is None else _near(away, found, people)
    provenance = Provenance(
        question="leave_one_out" if question == "known_others" else question,
        adjacency="removed",
        observes=chosen,
        random=() if question == "known_others" else ("data",),
        attacker_knows_label=True,
        method="exact" if question == "known_others" else "asymptotic",
        source="docs/fitted.md",
        assumptions=(
            *assumptions_of(described, question, fraction, found.rounds, found.converged),
            *(() if away is None or near is None else (_settled(away, near),)),
        ),
    )
    return FittedLaws(
        member_mean=sign * found.mean_in + shift,
        member_sd=found.sd_in,
        nonmember_mean=sign * found.mean_out + shift,
        nonmember_sd=found.sd_out,
        question=question,
        fraction=fraction,
        observes=chosen,
        shares=found.shares,
        rounds=found.rounds,
        converged=found.converged,
        provenance=provenance,
        near=near,
        several=found.classes,
        yields=found.yields,
        moved=found.moved,
        people=people,
        unit=described.unit,
    )


def counted(laws: FittedLaws, model: FittedModel, recipe: Refitting) -> FittedLaws:
    """The same laws with their check: the recipe is fitted again on random parts of the records.

    Laws of fresh others are confirmed where those of the pool at one half are.  Known others leave
    nothing to count.
    """
    if laws.question == "known_others":
        return laws
    law = laws
    if laws.question == "population":
        law = laws_of(model, question="pool", fraction=0.5, observes=laws.observes)
    people = law.people
    units = None if people is None else people.codes
    try:
        scores, inside = refits_of(
            recipe,
            refits_needed(laws.records, law.fraction),
            law.fraction,
            Key(SEED),
            observes=laws.observes,
            units=units,
        )
    except InputError as error:
        return replace(laws, doubt=f"the recipe could not be fitted again ({error})".rstrip("."))
    if people is not None:
        scores = people.summed(scores)
    check = check_laws(
        law.law_pair(),
        scores,
        inside,
        effective=laws.shares.effective,
        heavy=laws.shares.heavy,
    )
    return laws.checked_as(check)


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
    if free > MUCH * fraction * problem.records:
        raise NoLawsError(
            f"{free} coefficients without a penalty are more than half of a training set of "
            f"{fraction:g} of the {problem.records} records, whose size then moves every law"
        )


def _own(model: FittedModel, parts: list[ScoreMoments]) -> ScoreMoments:
    """Each record's laws from the problem that scores its own label."""
    if len(parts) == 1:
        return parts[0]
    rows = np.arange(model.records)

    def pick(arrays: Iterable[FloatArray]) -> FloatArray:
        return np.asarray(np.stack(list(arrays))[model.own, rows])

    moves = [part.moved for part in parts if part.moved is not None]
    yields = [part.yields for part in parts if part.yields is not None]
    names = ("largest", "squares", "heavy")
    return ScoreMoments(
        mean_in=pick(part.mean_in for part in parts),
        sd_in=pick(part.sd_in for part in parts),
        mean_out=pick(part.mean_out for part in parts),
        sd_out=pick(part.sd_out for part in parts),
        rounds=max(part.rounds for part in parts),
        change=max(part.change for part in parts),
        converged=all(part.converged for part in parts),
        shares=Shares(*(pick(getattr(part.shares, name) for part in parts) for name in names)),
        yields=(pick(inside for inside, _ in yields), pick(outside for _, outside in yields)),
        moved=np.linalg.norm(moves, axis=0) if moves else None,
    )


def _residual_of(model: FittedModel) -> FloatArray:
    """What the prediction is taken from; counts are compared on the linear predictor's scale."""
    return model.problems[0].y if model.task == "regression" else np.zeros(model.records)


def _near(away: Away, found: ScoreMoments, people: People | None) -> npt.NDArray[np.bool_]:
    """(U,) whether a released head's answers are those of the optimum."""
    moved = np.abs(away.scores if people is None else people.summed(away.scores))
    spread = np.maximum(found.sd_out, np.finfo(np.float64).tiny)
    # Some records' answers are near by chance, and move with a record as the others' do.
    usual = np.maximum(moved / spread, np.median(moved / spread))
    # A penalty that was found makes a training that was stopped early look nearer than it is.
    allowed = np.maximum(NEAREST, OF_SHIFT * np.abs(found.shift) / spread)
    return np.asarray(usual <= (0.5 * NEAREST if away.penalty_found else allowed))


def _settled(away: Away, near: npt.NDArray[np.bool_]) -> Assumption:
    return Assumption(
        "the released fit is the optimum of its penalised loss on these records",
        holds=bool(near.mean() > 0.5),
        evidence=f"its answers are near the optimum's for {100 * near.mean():.0f}% of them, within "
        f"{NEAREST:g} standard deviations or a quarter of the shift; the gradient is "
        f"{away.gradient:.2g} of that at zero coefficients",
    )


def assumptions_of(
    model: FittedModel, question: Question, fraction: float, rounds: int, converged: bool
) -> tuple[Assumption, ...]:
    """What the laws assume, before they are counted."""
    own = model.problems[0].assumptions
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
        Assumption("the mean model has converged", converged, f"{rounds} rounds"),
    ]
    if model.whole is not None:
        learned = ", ".join(model.whole.learned)
        words = f"what is learned beside the coefficients ({learned}) stays as fitted"
        found.append(Assumption(words, holds=None, evidence="refits of the whole are counted"))
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
