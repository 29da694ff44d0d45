"""Checks of an audit's laws against models that were trained with and without its units.

The subject says which models those are (draws of a process, shadow fits, models of a training);
here their answers are set beside what the audit's table says, without knowing whose they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from leakscope import fitted, measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.fitted.counted_models import MOST_EXCESS, opposites
from leakscope.fitted.few_models import NEAR, FewModels, few_models
from leakscope.fitted.record_population import means_and_squares
from leakscope.fitted.shadow import BLOCKS, FPR, LEAST_OF_EACH, ShadowScores
from leakscope.laws.distributions import Discrete
from leakscope.laws.pair import LawPair
from leakscope.results.audit import Audit
from leakscope.results.reconciliation import HALF_WIDTH
from leakscope.subjects.ranks import rank_correlation
from leakscope.subjects.subject import Answers, LawsNotStoredError, Subject, places
from leakscope.verifying.checks import (
    Check,
    binomial_score,
    leaning,
    mean_score,
    rows_to_check,
    spread_score,
    threshold_for,
)
from leakscope.verifying.plan_checks import Outcome
from leakscope.verifying.stored_numbers import require_computed_numbers

# A check of models that all units share agrees where its standard error is within this share of the
# score's own sd.
RESOLUTION = 0.25

# Laws of one fit are those of many records; over all records they may be off by so much.
ASYMPTOTIC = 0.05

# Mean advantages of forests and trees, counted by other models, varied as if there were up to three
# times fewer witnesses than the models' noise has directions.
SHARED = 3.0

# Of how often something happens.
OF_CHANCE = 0.1

# Mean TPRs within this share of each other are called the same, however many models there were.
TOLERANCE = 0.1


@dataclass(frozen=True, eq=False)
class Scores:
    """What an audit says of every unit's score, in the order of the data: means and spreads."""

    member_mean: FloatArray
    member_sd: FloatArray
    nonmember_mean: FloatArray
    nonmember_sd: FloatArray

    @property
    def records(self) -> int:
        """How many units there are."""
        return len(self.member_mean)

    @property
    def shift(self) -> FloatArray:
        """How far a unit's presence moves its score."""
        return self.member_mean - self.nonmember_mean

    def some(self, units: npt.NDArray[np.bool_]) -> Scores:
        """Those of some units."""
        return Scores(
            self.member_mean[units],
            self.member_sd[units],
            self.nonmember_mean[units],
            self.nonmember_sd[units],
        )


def check_audit(
    audit: Audit,
    subject: Subject,
    *,
    records: int,
    record_ids: Sequence[RecordId],
    count: int,
    seed: int,
) -> Outcome:
    """The laws of some units against answers of models with and without them."""
    place = places(audit, subject)
    require_computed_numbers(audit, subject)
    exposure = _exposure(audit, place)
    rows = rows_to_check(subject.ids, exposure, records, record_ids, random_state=seed)
    if not record_ids and subject.counted_in == "models":
        # What the audit does not know it does not say, and that is no contradiction.
        known = audit.known[place]
        rows = [row for row in rows if known[row]] or rows
    answers = subject.answers(np.asarray(rows, dtype=np.intp), count, seed)
    if answers.scores is not None:
        return _shared(audit, subject, place, rows, answers, seed, named=bool(record_ids))
    table = audit.table
    names = [f"{audit.unit} {subject.ids[row]}" for row in rows]
    if "mean_with" not in table:
        checks = _divergences(audit, place[rows], names, answers)
    else:
        checks = _moments(audit, place[rows], names, answers)
    return Outcome(checks, answers.how, dict(answers.settings))


def _exposure(audit: Audit, place: np.ndarray[Any, np.dtype[np.intp]]) -> FloatArray:
    """By which units are drawn from the whole range; what is infinite counts as the largest."""
    found = audit.table.of(audit.about.ranked_by)[place]
    finite = np.isfinite(found)
    return np.asarray(np.where(finite, found, np.max(found[finite], initial=0.0)))


def _sd(audit: Audit, side: str) -> FloatArray | None:
    """The standard deviation of an answer; None of answers that are yes or no."""
    table = audit.table
    if f"sd_{side}" in table:
        return table.of(f"sd_{side}")
    if f"variance_{side}" in table:
        return np.sqrt(table.of(f"variance_{side}"))
    return None


def _means(audit: Audit, side: str) -> FloatArray:
    """(U, C) the mean of an answer."""
    found = np.asarray(audit.table.columns[f"mean_{side}"], dtype=np.float64)
    return found.reshape(len(found), -1)


def _moments(
    audit: Audit,
    places: np.ndarray[Any, np.dtype[np.intp]],
    names: Sequence[str],
    answers: Answers,
) -> list[Check]:
    """Mean and standard deviation of both laws of some units."""
    checks: list[Check] = []
    for k, (place, name) in enumerate(zip(places.tolist(), names, strict=True)):
        for side, found in (("with", answers.inside[k]), ("without", answers.outside[k])):
            drawn = np.asarray(found).reshape(len(found), -1)
            mean, spread = _means(audit, side)[place], _sd(audit, side)
            if drawn.shape[1] != len(mean):
                raise InputError(
                    f"the result's {name} has not one mean for each of {drawn.shape[1]} outputs."
                )
            law = f"{name}, {side} it"
            if spread is None:
                checks.append(_of_chance(law, drawn[:, 0], float(mean[0])))
                continue
            sd = float(spread[place])
            if not sd > 0.0 or not np.isfinite(mean).all():
                raise InputError(
                    f"a variance of the result's {name} must be above 0 to be verified, but it is "
                    f"{sd**2:g}."
                )
            checks += _of_side(law, drawn, mean, sd)
    return checks


def _of_chance(law: str, found: FloatArray, chance: float) -> Check:
    """How often the answer is yes; where it always or never is, one more answer may differ."""
    stderr = np.hypot(found.std(ddof=1) / np.sqrt(len(found)), 1.0 / len(found))
    return Check(law, "chance", chance, float(found.mean()), float(stderr), resolution=0.1)


def _of_side(law: str, found: FloatArray, mean: FloatArray, sd: float) -> list[Check]:
    """The mean of each output, in units of the data, and the spread, pooled over outputs."""
    draws, outputs = found.shape
    # The law is normal, and its variance is known if it is right.
    error = sd / np.sqrt(draws)
    checks = [
        Check(
            law,
            "mean" if outputs == 1 else f"mean of output {c}",
            predicted=float(mean[c]),
            measured=float(found[:, c].mean()),
            stderr=float(max(error, found[:, c].std(ddof=1) / np.sqrt(draws))),
            resolution=0.25 * sd,
        )
        for c in range(outputs)
    ]
    freedom = outputs * (draws - 1)
    pooled = float(np.sqrt(np.mean(found.var(axis=0, ddof=1))))
    checks.append(
        Check(
            law,
            "standard deviation",
            predicted=sd,
            measured=pooled,
            stderr=pooled / np.sqrt(2.0 * freedom),
            resolution=0.1 * sd,
            score=spread_score(sd, pooled, freedom),
        )
    )
    return checks


def _divergences(
    audit: Audit,
    places: np.ndarray[Any, np.dtype[np.intp]],
    names: Sequence[str],
    answers: Answers,
) -> list[Check]:
    """KL(without || with) and mean distance of units whose answers are many numbers."""
    checks = []
    for k, (place, name) in enumerate(zip(places.tolist(), names, strict=True)):
        inside, outside = answers.inside[k], answers.outside[k]
        for quantity, column, (measured, stderr) in (
            ("KL", "kl", measures.normal_kl_of_draws(outside, inside)),
            ("mean distance", "mean_distance", _mean_distance(outside, inside)),
        ):
            told = float(audit.table.of(column)[place])
            checks.append(Check(name, quantity, told, measured, stderr, 0.1 * abs(told)))
    return checks


def _mean_distance(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Half the squared length of the difference of means, and its standard error."""
    outputs, draws, _ = first.shape
    S = (_covariance(first) + _covariance(second)) / draws
    delta = first.mean(axis=1) - second.mean(axis=1)
    value = 0.5 * float(np.sum(delta**2)) - 0.5 * outputs * float(np.trace(S))
    variance = float(np.einsum("ci,ij,cj->", delta, S, delta))
    variance += 0.5 * outputs * float(np.sum(S**2))
    return value, float(np.sqrt(variance))


def _covariance(found: FloatArray) -> FloatArray:
    """(g, g) pooled over outputs."""
    centred = found - found.mean(axis=1, keepdims=True)
    outputs, draws, _ = found.shape
    return np.asarray(np.einsum("cdi,cdj->ij", centred, centred) / (outputs * (draws - 1)))


def _shared(
    audit: Audit,
    subject: Subject,
    place: np.ndarray[Any, np.dtype[np.intp]],
    rows: Sequence[int],
    answers: Answers,
    seed: int,
    *,
    named: bool,
) -> Outcome:
    """Shift and spread of some units' scores, and the ranks of all, against shared models."""
    scores, trained_on = answers.scores, answers.trained_on
    assert scores is not None
    assert trained_on is not None
    values = _few_values(audit, place)
    if values is not None:
        names = [f"{audit.unit} {subject.ids[row]}" for row in rows]
        kept = np.zeros(len(place), dtype=np.bool_) if named else audit.trusted[place]
        value_checks, whole = _on_values(values, scores, trained_on, kept)
        checks = [
            check
            for row, name in zip(rows, names, strict=True)
            for check in value_checks(name, row)
        ]
        return Outcome(
            [*checks, *whole],
            answers.how,
            {**answers.settings, "records": len(rows)},
            borne_out=_borne_out(audit, subject, place, value_checks),
        )
    spreads = [_sd(audit, side) for side in ("with", "without")]
    if spreads[0] is None or spreads[1] is None:
        raise InputError("the result does not say how far the scores of its records spread.")
    told = Scores(
        _means(audit, "with")[place, 0],
        spreads[0][place],
        _means(audit, "without")[place, 0],
        spreads[1][place],
    )
    measurable = np.isfinite(told.shift) & (told.nonmember_sd >= 0.0)
    for row in rows:
        if not measurable[row]:
            name = f"{audit.unit} {subject.ids[row]}"
            raise InputError(f"the result's {name} has no mean and spread to check.")
    lawless = _lawless(audit)[place]
    few = _few(told, scores, trained_on, seed) if lawless.any() else None
    advantages = _Advantages(audit, place, few, seed)
    usual = _usual_fourth_moment(scores, trained_on)
    excess = excess_of_opposites(scores, trained_on)

    def unit_checks(name: str, row: int) -> list[Check]:
        if lawless[row]:
            return [advantages.check(name, row)]
        errors = _own_errors(audit, place[[row]])
        return _of_unit(
            name,
            float(told.shift[row]),
            (float(told.member_sd[row]), float(told.nonmember_sd[row])),
            scores[trained_on[:, row], row],
            scores[~trained_on[:, row], row],
            usual,
            (float(errors[0][0]), float(errors[1][0])),
            excess,
        )

    checks = [
        check for row in rows for check in unit_checks(f"{audit.unit} {subject.ids[row]}", row)
    ]
    borne_out = _borne_out(audit, subject, place, unit_checks)
    lean, warnings = leaning(checks), tuple[str, ...]()
    if lean is not None:
        sentence, together = lean
        warnings, checks = (sentence,), [*checks, together]
    settings = {**answers.settings, "records": len(rows)}
    if np.count_nonzero(lawless) > 0.5 * len(lawless):
        if few is None:
            return Outcome(checks, answers.how, settings, None, warnings, borne_out)
        together = advantages.together(f"all {audit.unit}s")
        checks.append(together)
        found = advantages.agreement(together, len(scores))
        how = f"{answers.how}. {_counted_words(found, audit.unit)}"
        return Outcome(checks, how, settings, found, warnings, borne_out)
    # Of laws that a few models were measured for, all err together.
    if subject.basis == "computed" and not named:
        checks += _together(told, scores, trained_on, audit.trusted[place])
    _, sd_in, _, sd_out = ShadowScores(scores, trained_on).moments()
    if not np.count_nonzero(sd_in * sd_out) > 0.5 * len(sd_in):
        alike = (
            f"the scores of most {audit.unit}s take one value only, with the {audit.unit} or "
            f"without it, so there is no summary over all {audit.unit}s, and normal laws do not "
            "describe them."
        )
        return Outcome(checks, answers.how, settings, None, (*warnings, alike), borne_out)
    summed: Any = fitted.check_against_shadows(
        told.some(~lawless),  # type: ignore[arg-type]
        ShadowScores(scores[:, ~lawless], trained_on[:, ~lawless]),
        random_state=seed,
    )
    who = f"all {audit.unit}s"
    if lawless.any():
        who = f"the {np.count_nonzero(~lawless)} {audit.unit}s whose advantage was not counted"
    checks.append(
        _over_all(who, summed.tpr_at, summed.tpr_predicted, summed.tpr_observed, summed.tpr_stderr)
    )
    lowest = "" if summed.tpr_at <= FPR else " (the lowest that so few models show)"
    how = (
        f"{answers.how}. Over {who} the predicted shift is {summed.shift_ratio:.2f} "
        f"times the observed one and the sd {summed.sd_ratio:.2f} times; the rank correlation of "
        f"the advantages is {summed.rank_correlation:.2f}, where exactly right numbers would reach "
        f"{summed.ceiling:.2f} with this many models; the mean TPR at "
        f"{_percent(summed.tpr_at)}{lowest} is {summed.tpr_predicted:.3f} predicted and "
        f"{summed.tpr_observed:.3f} counted (standard error {summed.tpr_stderr:.3f})"
    )
    return Outcome(checks, how, settings, asdict(summed), warnings, borne_out)


def _borne_out(
    audit: Audit,
    subject: Subject,
    place: npt.NDArray[np.intp],
    unit_checks: Callable[[str, int], list[Check]],
) -> tuple[RecordId, ...]:
    """The units that the audit does not know, and whose every check agrees."""
    unknown = np.flatnonzero(~audit.known[place]).tolist()
    checks = {row: unit_checks("", row) for row in unknown}
    threshold = threshold_for(sum(map(len, checks.values())))
    return tuple(
        subject.ids[row]
        for row, of_row in checks.items()
        if all(check.verdict(threshold) == "agrees" for check in of_row)
    )


def _lawless(audit: Audit) -> npt.NDArray[np.bool_]:
    """Units of which the advantage alone is known; none where the laws are not stored."""
    try:
        found: npt.NDArray[np.bool_] = audit.laws.lawless
    except LawsNotStoredError:
        return np.zeros(len(audit.table), dtype=np.bool_)
    return found


class _Advantages:
    """Advantages of an audit beside those that the shadow models show, both with intervals."""

    def __init__(
        self, audit: Audit, place: npt.NDArray[np.intp], few: FewModels | None, seed: int
    ) -> None:
        table = audit.table
        ends = [table.of(f"advantage_{end}")[place] for end in ("low", "high")]
        self.told, self.error = table.of("advantage")[place], _error(*ends)
        self.seen = self.seen_error = np.full(len(place), np.nan)
        self.witnesses, self.seed = 1.0, seed
        if few is not None:
            self.seen = few.advantage.value
            self.seen_error = _error(few.advantage.low, few.advantage.high)
            self.witnesses = min(few.draws.sums.directions / SHARED, float(len(place)))

    def check(self, law: str, row: int) -> Check:
        """Of one unit."""
        error = math.hypot(self.error[row], self.seen_error[row])
        return Check(law, "advantage", float(self.told[row]), float(self.seen[row]), error, NEAR)

    def together(self, law: str) -> Check:
        """Of the mean over all: units share the models, and are so many witnesses and no more."""
        error = math.hypot(self.error.mean(), self.seen_error.mean()) / self.witnesses**0.5
        told, seen = float(self.told.mean()), float(self.seen.mean())
        return Check(law, "mean advantage", told, seen, error, NEAR)

    def agreement(self, together: Check, models: int) -> dict[str, Any]:
        """The means and the ranks, for machines."""
        error = np.hypot(self.error, self.seen_error)
        noise = error * np.random.default_rng(self.seed).normal(size=len(self.told))
        return {
            "models": models,
            "advantage_predicted": together.predicted,
            "advantage_observed": together.measured,
            "advantage_stderr": together.stderr,
            "rank_correlation": rank_correlation(self.told, self.seen),
            "ceiling": rank_correlation(self.told, self.told + noise),
        }


def _error(low: FloatArray, high: FloatArray) -> FloatArray:
    """The standard error that an interval of 95% stands for."""
    return np.asarray((high - low) / (2.0 * HALF_WIDTH))


def _counted_words(found: dict[str, Any], unit: str) -> str:
    """Means and ranks in words, and why there is no TPR."""
    return (
        f"Over all {unit}s the mean advantage is {found['advantage_predicted']:.3f} in the audit "
        f"and {found['advantage_observed']:.3f} by these models (standard error "
        f"{found['advantage_stderr']:.2g}); the rank correlation of the advantages is "
        f"{found['rank_correlation']:.2f}, where numbers that are right up to their errors "
        f"would reach about {found['ceiling']:.2f}. TPRs, shifts and spreads are not compared: "
        "these advantages were counted, and a count does not say which law the answers have"
    )


def _few_values(audit: Audit, place: npt.NDArray[np.intp]) -> LawPair | None:
    """The laws of scores that take few values, in the order of the data; None of other laws."""
    try:
        pair: LawPair = audit.laws.pair().take(place)
    except LawsNotStoredError:
        return None
    return pair if isinstance(pair.member, Discrete) else None


def _on_values(
    pair: LawPair,
    scores: FloatArray,
    trained_on: npt.NDArray[np.bool_],
    kept: npt.NDArray[np.bool_],
) -> tuple[Callable[[str, int], list[Check]], list[Check]]:
    """How often a unit's best test says yes, with it and without it; and what all are worth.

    Scores of few values have no spread to compare: a rare value is seen or it is not.
    """
    values = [law for law in (pair.member, pair.nonmember) if isinstance(law, Discrete)]
    yes = pair.member.log_density(scores) > pair.nonmember.log_density(scores)
    densities = [
        [law.log_density(v) for law in values] for v in np.moveaxis(values[0].values, -1, 0)
    ]
    accepted = np.stack([inside > outside for inside, outside in densities], axis=-1)
    said = [
        np.minimum(np.where(accepted, law.probabilities, 0.0).sum(axis=-1), 1.0) for law in values
    ]

    def unit_checks(name: str, row: int) -> list[Check]:
        checks = []
        for quantity, mask, chance in (
            ("TPR of its test", trained_on[:, row], float(said[0][row])),
            ("FPR of its test", ~trained_on[:, row], float(said[1][row])),
        ):
            count, often = int(mask.sum()), int((yes[:, row] & mask).sum())
            if count < LEAST_OF_EACH:
                checks.append(Check(name, quantity, chance, math.nan, math.nan, OF_CHANCE))
                continue
            error = float(np.sqrt(chance * (1.0 - chance) / count))
            score = binomial_score(often, count, chance)
            checks.append(
                Check(name, quantity, chance, often / count, error, OF_CHANCE, score=score)
            )
        return checks

    counts = trained_on.sum(axis=0)
    kept = kept & (np.minimum(counts, len(scores) - counts) > LEAST_OF_EACH)
    if not kept.any():
        return unit_checks, []
    blocks = np.arange(len(scores)) % BLOCKS

    def counted(models: npt.NDArray[np.bool_]) -> float:
        shares = [
            (yes & mask)[models].sum(axis=0) / np.maximum(mask[models].sum(axis=0), 1)
            for mask in (trained_on, ~trained_on)
        ]
        return float(np.mean((shares[0] - shares[1])[kept]))

    parts = np.array([counted(blocks != block) for block in range(BLOCKS)])
    error = float(np.sqrt((BLOCKS - 1.0) / BLOCKS * np.sum((parts - parts.mean()) ** 2)))
    measured = counted(np.ones(len(scores), dtype=np.bool_))
    predicted = float(np.mean((said[0] - said[1])[kept]))
    score = mean_score(measured - predicted, error, BLOCKS - 1.0)
    law, quantity = "all trusted", "mean advantage"
    return unit_checks, [Check(law, quantity, predicted, measured, error, OF_CHANCE, score=score)]


def _over_all(law: str, level: float, predicted: float, measured: float, error: float) -> Check:
    """The mean TPR over all units, whose standard error is over blocks of models."""
    gap = measured - predicted
    beyond = math.copysign(max(abs(gap) - TOLERANCE * measured, 0.0), gap)
    quantity, score = f"mean TPR at {_percent(level)}", mean_score(beyond, error, BLOCKS - 1.0)
    return Check(law, quantity, predicted, measured, error, RESOLUTION * measured, score=score)


def _percent(level: float) -> str:
    return f"{100 * level:.2g}% FPR"


def _few(
    told: Scores, scores: FloatArray, trained_on: npt.NDArray[np.bool_], seed: int
) -> FewModels | None:
    """What the models show of every unit, with intervals; None where they do not tell."""
    # Training on a record moves its score to the side that the audit says.
    sign = np.where(told.shift < 0.0, -1.0, 1.0)
    try:
        return few_models(
            sign * scores,
            trained_on,
            level_models=False,
            random_state=seed,
            refuse_mistakes=False,
        )
    except InputError:
        return None


def _of_unit(
    law: str,
    shift: float,
    sds: tuple[float, float],
    inside: FloatArray,
    outside: FloatArray,
    usual: float,
    own: tuple[float, float],
    excess: float,
) -> list[Check]:
    """The shift of the mean, and the sd without the unit.

    Of few models the measured spread is itself uncertain, and small by chance where the difference
    seems large.  The shift differs where it does by the predicted spreads and by the measured ones
    (Welch's t) alike; the spread is compared with what the predicted one would show.  ``own`` are
    the errors of the predicted shift and log sd, where those are estimates themselves;
    ``excess`` is that of `excess_of_opposites`.
    """
    resolution = RESOLUTION * sds[1]
    least = min(len(inside), len(outside))
    if least < LEAST_OF_EACH:
        nan = float("nan")
        return [
            Check(law, "shift", shift, nan, nan, resolution),
            Check(law, "sd without", sds[1], nan, nan, resolution),
        ]
    measured = float(inside.mean() - outside.mean())
    parts = np.array([inside.var(ddof=1) / len(inside), outside.var(ddof=1) / len(outside)])
    parts *= excess
    spreads = (excess / len(inside)) ** 0.5 * sds[0], (excess / len(outside)) ** 0.5 * sds[1]
    by_law = float(np.linalg.norm([*spreads, own[0]]))
    error = float(np.hypot(np.sqrt(parts.sum()), own[0]))
    scores = [mean_score(measured - shift, by_law, np.inf)]
    if parts.any():
        freedom = error**4 / float(np.sum(parts**2 / [len(inside) - 1, len(outside) - 1]))
        scores.append(mean_score(measured - shift, error, freedom))
    spread = float(outside.std(ddof=1))
    # A law that is not normal has a fourth moment of its own, which few answers hardly show.
    fourth = max(3.0, usual, _fourth_moment(outside))
    freedom = 1.0 / (0.5 * (fourth - 1.0) / (len(outside) - 1) + 2.0 * own[1] ** 2)
    return [
        Check(
            law, "shift", shift, measured, max(error, by_law), resolution,
            score=min(scores, key=abs),
        ),
        Check(
            law, "sd without", sds[1], spread, spread / float(np.sqrt(2.0 * freedom)), resolution,
            score=spread_score(sds[1], spread, freedom),
        ),
    ]  # fmt: skip


def excess_of_opposites(scores: FloatArray, trained_on: npt.NDArray[np.bool_]) -> float:
    """By what factor the difference of both means varies more than two means of as many models do.

    Models of complementary halves err in opposite directions: seen from pair to pair, over all
    units together.  Models that are not in pairs are taken to be independent.
    """
    one, other = opposites(trained_on)
    if 2 * len(one) < max(len(scores) - 1, 2 * LEAST_OF_EACH):
        return 1.0
    apart = np.where(trained_on[one], 1.0, -1.0) * (scores[one] - scores[other])
    paired = apart.var(axis=0, ddof=1) / len(one)
    n_in, _, squares_in = means_and_squares(scores, trained_on)
    n_out, _, squares_out = means_and_squares(scores, ~trained_on)
    alone = squares_in / (n_in - 1.0) / n_in + squares_out / (n_out - 1.0) / n_out
    seen = alone > 0.0
    return (
        float(np.clip(np.mean(paired[seen] / alone[seen]), 1.0, MOST_EXCESS)) if seen.any() else 1.0
    )


def _own_errors(
    audit: Audit, rows: np.ndarray[Any, np.dtype[np.intp]]
) -> tuple[FloatArray, FloatArray]:
    """How far the predicted shift and log sd are known themselves."""
    try:
        found: tuple[FloatArray, FloatArray] = audit.laws.own_errors(rows)
    except LawsNotStoredError:
        return np.zeros(len(rows)), np.zeros(len(rows))
    return found


def _together(
    told: Scores,
    scores: FloatArray,
    trained_on: npt.NDArray[np.bool_],
    trusted: npt.NDArray[np.bool_],
) -> list[Check]:
    """Shift and sd over all trusted units, as shares of the predicted ones.

    All units share the models, so that the standard error is over models: each is left out in turn.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = told.shift / (told.member_sd**2 + told.nonmember_sd**2)
    counts = trained_on.sum(axis=0)
    used = trusted & np.isfinite(weight) & (told.nonmember_sd > 0.0)
    used &= np.minimum(counts, len(scores) - counts) > LEAST_OF_EACH
    if not np.any(weight[used] != 0.0):
        return []
    inside = trained_on[:, used]
    ratios = _Ratios(
        weight[used], told.shift[used], told.nonmember_sd[used], scores[:, used], inside
    )
    whole, each = ratios(None), np.array([ratios(model) for model in range(len(scores))])
    errors = np.sqrt((len(each) - 1.0) * np.mean((each - each.mean(axis=0)) ** 2, axis=0))
    checks = []
    for quantity, ratio, error in zip(("shift", "sd"), whole, errors, strict=True):
        beyond = math.copysign(max(abs(ratio - 1.0) - ASYMPTOTIC, 0.0), ratio - 1.0)
        score = mean_score(beyond, float(error), len(scores) - 1.0)
        checks.append(
            Check("all trusted", f"{quantity} ratio", 1.0, ratio, float(error),
                  RESOLUTION, score=score)
        )  # fmt: skip
    return checks


class _Ratios:
    """Measured over predicted: of the shift by regression, of the sd in the mean.

    Sums are made once; a model is left out by taking its own part away.
    """

    def __init__(
        self,
        weight: FloatArray,
        shift: FloatArray,
        sd: FloatArray,
        scores: FloatArray,
        inside: npt.NDArray[np.bool_],
    ) -> None:
        self.weight, self.shift, self.sd = weight, shift, sd
        self.scores, self.inside = scores, inside
        self.n_in, self.mean_in, _ = means_and_squares(scores, inside)
        self.n_out, self.mean_out, self.squares = means_and_squares(scores, ~inside)

    def __call__(self, left_out: int | None) -> tuple[float, float]:
        """Of all models, or of all but one."""
        mean_in, mean_out, squares, count = self.mean_in, self.mean_out, self.squares, self.n_out
        if left_out is not None:
            x, inside = self.scores[left_out], self.inside[left_out]
            mean_in = mean_in - inside * (x - mean_in) / (self.n_in - 1)
            apart = ~inside * (x - mean_out)
            squares = np.maximum(squares - apart**2 * count / (count - 1), 0.0)
            mean_out, count = mean_out - apart / (count - 1), count - ~inside
        shift = np.sum(self.weight * (mean_in - mean_out)) / np.sum(self.weight * self.shift)
        # The mean of a standard deviation of so many normal numbers.
        known = np.sqrt(2.0 / (count - 1)) * np.exp(gammaln(count / 2) - gammaln((count - 1) / 2))
        return float(shift), float(np.mean(np.sqrt(squares / (count - 1)) / (known * self.sd)))


def _fourth_moment(found: FloatArray) -> float:
    """In units of the squared variance, 3 for a normal law; corrected for how few there are."""
    n, centred = len(found), found - found.mean()
    square = float(np.mean(centred**2))
    if not square > 0.0:
        return 3.0
    excess = float(np.mean(centred**4)) / square**2 - 3.0
    return 3.0 + (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess + 6.0)


def _usual_fourth_moment(scores: FloatArray, trained_on: npt.NDArray[np.bool_]) -> float:
    """The mean over all units, of models without them."""
    found = [
        _fourth_moment(score[~inside])
        for score, inside in zip(scores.T, trained_on.T, strict=True)
        if np.count_nonzero(~inside) >= LEAST_OF_EACH
    ]
    return float(np.mean(found)) if found else 3.0
