"""Checks of an audit's laws against models that were trained with and without its units.

The subject says which models those are: draws of a process for some units, or refits that all
units share.  Here their answers are set beside what the audit's table says, without knowing whose
they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import kurtosis

from leakscope import measures
from leakscope._numerics.arrays import FloatArray
from leakscope.data.datasets import RecordId
from leakscope.errors import InputError
from leakscope.halves.estimate import NEAR, FewModels, few_models
from leakscope.laws.distributions import Normal
from leakscope.results.audit import Audit
from leakscope.results.reconciliation import HALF_WIDTH
from leakscope.subjects.laws import UnitLaws
from leakscope.subjects.ranks import rank_correlation
from leakscope.subjects.subject import (
    Answers,
    LawsNotStoredError,
    Subject,
    normal_laws,
    places,
)
from leakscope.verifying.checks import (
    NumberCheck,
    Outcome,
    mean_score,
    rows_to_check,
    spread_score,
    threshold_for,
)
from leakscope.verifying.stored_numbers import require_computed_numbers

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

# A check says something where its standard error is within a quarter of the score's own sd, or a
# tenth of a chance: half of that is the error which an audit promises not to exceed.
RESOLUTION, OF_CHANCE = 0.25, 0.1

# Mean advantages within a tenth of each other are called the same, however many models there were.
TOLERANCE = 0.1

# Of models with a unit, and of those without it; fewer have no spread to speak of.
LEAST_OF_EACH = 4

# The intervals of all units rest on the same models, of which an audit has four at least: they err
# together as if there were so many independent ones.
WITNESSES = 4.0

# Parts of the models that are left out in turn, for the standard error of a mean over all units.
BLOCKS = 10


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
    exposure = audit.table.of(audit.about.ranked_by)[place]
    finite = np.isfinite(exposure)
    exposure = np.where(finite, exposure, np.max(exposure[finite], initial=0.0))
    rows = rows_to_check(subject.ids, exposure, records, record_ids, random_state=seed)
    if not record_ids and subject.counted_in == "models":
        # What the audit does not know it does not say, and that is no contradiction.
        known = audit.known[place]
        rows = [row for row in rows if known[row]] or rows
    answers = subject.answers(np.asarray(rows, dtype=np.intp), count, seed)
    if answers.scores is not None:
        return _shared(audit, subject, place, rows, answers, seed)
    names = [f"{audit.unit} {subject.ids[row]}" for row in rows]
    of_units = _moments if "mean_with" in audit.table else _divergences
    checks = of_units(audit, place[rows], names, answers)
    return Outcome(checks, answers.how, {**answers.settings, "records": len(rows)})


def _sd(audit: Audit, side: str) -> FloatArray | None:
    """(U,) the standard deviation of an answer; None of answers that are yes or no."""
    if f"sd_{side}" in audit.table:
        return audit.table.of(f"sd_{side}")
    if f"variance_{side}" in audit.table:
        return np.sqrt(audit.table.of(f"variance_{side}"))
    return None


def _moments(
    audit: Audit, places: Rows, names: Sequence[str], answers: Answers
) -> list[NumberCheck]:
    """Mean and standard deviation of both laws of some units, by answers of their own models."""
    checks: list[NumberCheck] = []
    for side, of_side in (("with", answers.inside), ("without", answers.outside)):
        means, spread = np.asarray(audit.table.columns[f"mean_{side}"]), _sd(audit, side)
        for place, name, drawn in zip(places.tolist(), names, of_side, strict=True):
            law, mean = f"{name}, {side} it", np.atleast_1d(means[place])
            drawn = np.asarray(drawn).reshape(len(drawn), -1)
            if spread is None:
                # Where the answer always or never is yes, one more may differ.
                error = np.hypot(drawn.std(ddof=1) / len(drawn) ** 0.5, 1.0 / len(drawn))
                values = float(mean[0]), float(drawn.mean()), float(error)
                checks.append(NumberCheck(law, "chance", *values, OF_CHANCE))
                continue
            sd = float(spread[place])
            if not (sd > 0.0 and np.isfinite(mean).all() and drawn.shape[1] == len(mean)):
                raise InputError(
                    f"the result's {name} needs a mean for each of {drawn.shape[1]} outputs and a "
                    f"variance above 0 to be verified, but these are {mean.tolist()} and "
                    f"{sd**2:g}."
                )
            checks += _of_draws(law, drawn, mean, sd)
    return checks


def _of_draws(law: str, drawn: FloatArray, mean: FloatArray, sd: float) -> list[NumberCheck]:
    """The mean of each output, and the spread, pooled over outputs; ``drawn`` is (draws, C)."""
    draws, outputs = drawn.shape
    spread = drawn.std(axis=0, ddof=1)
    checks = [
        NumberCheck(
            law,
            "mean" if outputs == 1 else f"mean of output {c}",
            predicted=float(mean[c]),
            measured=float(drawn[:, c].mean()),
            stderr=float(max(sd, spread[c]) / draws**0.5),
            resolution=RESOLUTION * sd,
        )
        for c in range(outputs)
    ]
    pooled, freedom = float(np.sqrt(np.mean(spread**2))), outputs * (draws - 1)
    error, score = pooled / (2.0 * freedom) ** 0.5, spread_score(sd, pooled, freedom)
    return [*checks, NumberCheck(law, "standard deviation", sd, pooled, error, 0.1 * sd, score)]


def _divergences(
    audit: Audit, places: Rows, names: Sequence[str], answers: Answers
) -> list[NumberCheck]:
    """KL(without || with) and mean distance of units whose answers are many numbers."""
    checks = []
    for k, (place, name) in enumerate(zip(places.tolist(), names, strict=True)):
        inside, outside = answers.inside[k], answers.outside[k]
        for quantity, column, (measured, stderr) in (
            ("KL", "kl", measures.normal_kl_of_draws(outside, inside)),
            ("mean distance", "mean_distance", _mean_distance(outside, inside)),
        ):
            predicted = float(audit.table.of(column)[place])
            resolution = OF_CHANCE * abs(predicted)
            checks.append(NumberCheck(name, quantity, predicted, measured, stderr, resolution))
    return checks


def _mean_distance(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Half the squared length of the difference of means, and its standard error.

    Both are (outputs, draws, numbers); the covariance of numbers is pooled over outputs.
    """
    outputs, draws, _ = first.shape
    S = np.zeros((first.shape[2], first.shape[2]))
    for drawn in (first, second):
        centred = drawn - drawn.mean(axis=1, keepdims=True)
        S += np.einsum("cdi,cdj->ij", centred, centred) / (outputs * (draws - 1) * draws)
    delta = first.mean(axis=1) - second.mean(axis=1)
    value = 0.5 * float(np.sum(delta**2)) - 0.5 * outputs * float(np.trace(S))
    variance = float(np.einsum("ci,ij,cj->", delta, S, delta))
    return value, math.sqrt(variance + 0.5 * outputs * float(np.sum(S**2)))


def _shared(
    audit: Audit,
    subject: Subject,
    place: Rows,
    rows: Sequence[int],
    answers: Answers,
    seed: int,
) -> Outcome:
    """Some units one by one, and the mean advantage of all, against models that all units share."""
    assert answers.scores is not None
    assert answers.trained_on is not None
    counts = Counts(audit, place, answers.scores, answers.trained_on, seed)
    names = [f"{audit.unit} {subject.ids[row]}" for row in rows]
    checks = [
        check for row, name in zip(rows, names, strict=True) for check in counts.of(row, name)
    ]
    together = counts.together(f"all {audit.unit}s")
    unknown = np.flatnonzero(~audit.known[place]).tolist()
    of_unknown = {row: counts.of(row, "") for row in unknown}
    threshold = threshold_for(sum(map(len, of_unknown.values())))
    borne_out = tuple(
        subject.ids[row]
        for row, own in of_unknown.items()
        if all(check.verdict(threshold) == "agrees" for check in own)
    )
    ranks = counts.ranks(seed)
    agreement = {
        "models": len(answers.scores),
        "advantage_predicted": together.predicted,
        "advantage_observed": together.measured,
        "advantage_stderr": together.stderr,
        **ranks,
    }
    how = (
        f"{answers.how}: mean advantage said {together.predicted:.3f}, counted "
        f"{together.measured:.3f} ± {together.stderr:.3f}; rank correlation "
        f"{ranks['rank_correlation']:.2f}, where right numbers would reach about "
        f"{ranks['ceiling']:.2f} with this many models"
    )
    settings = {**answers.settings, "records": len(rows)}
    return Outcome([*checks, together], how, settings, agreement, (), borne_out)


class Counts:
    """What models that all units share show of each: by its own test where it has a law.

    Of a unit whose advantage alone is known (``lawless``) it is what `few_models` makes of them.
    """

    def __init__(
        self, audit: Audit, place: Rows, scores: FloatArray, trained_on: Mask, seed: int
    ) -> None:
        self.scores, self.inside = scores, trained_on
        self.laws = _laws(audit).some(place)
        self.lawless = self.laws.lawless
        self.confirmed = audit.confirmed[place]
        self.predicted = audit.table.of("advantage")[place]
        self.error = np.zeros(len(place))
        if "advantage_low" in audit.table:
            self.error = _error(*(audit.table.of(f"advantage_{e}")[place] for e in ("low", "high")))
        pair = self.laws.pair()
        self.member, self.nonmember = pair.member, pair.nonmember
        with np.errstate(invalid="ignore"):
            self.yes = pair.member.log_density(scores) > pair.nonmember.log_density(scores)
        self.counts = trained_on.sum(axis=0), (~trained_on).sum(axis=0)
        self.enough = np.minimum(*self.counts) >= LEAST_OF_EACH
        self.pairs = len(scores) % 2 == 0 and np.array_equal(trained_on[::2], ~trained_on[1::2])
        # A law that is not normal has a fourth moment of its own, which few answers hardly show.
        outside = np.where(trained_on, np.nan, scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            fourth = kurtosis(outside, fisher=False, bias=False, nan_policy="omit")
        self.fourth = np.maximum(3.0, np.nan_to_num(np.asarray(fourth), nan=3.0))
        self.few = self._few(audit, place, seed) if self.lawless.any() else None

    def _few(self, audit: Audit, place: Rows, seed: int) -> FewModels | None:
        """Intervals of the advantages that the models show; None where they do not tell."""
        means = [np.asarray(audit.table.columns[f"mean_{s}"])[place] for s in ("with", "without")]
        # Training on a record moves its score to the side that the audit says.
        sign = np.where(np.reshape(means[0] - means[1], len(place)) < 0.0, -1.0, 1.0)
        try:
            return few_models(
                sign * self.scores,
                self.inside,
                level_models=False,
                random_state=seed,
                refuse_mistakes=False,
            )
        except InputError:
            return None

    def of(self, row: int, name: str) -> list[NumberCheck]:
        """The checks of one unit."""
        if self.lawless[row]:
            seen, error = math.nan, math.nan
            if self.few is not None:
                ends = self.few.advantage
                seen = float(ends.value[row])
                error = float(_error(ends.low[row], ends.high[row]))
            error = math.hypot(float(self.error[row]), error)
            return [NumberCheck(name, "advantage", float(self.predicted[row]), seen, error, NEAR)]
        if isinstance(self.member, Normal) and isinstance(self.nonmember, Normal):
            return self._of_normal(row, name, self.member.take(row), self.nonmember.take(row))
        seen, error = (float(values[row]) for values in self.measured())
        if not self.enough[row]:
            seen = error = math.nan
        return [NumberCheck(name, "advantage", float(self.predicted[row]), seen, error, OF_CHANCE)]

    def _of_normal(
        self, row: int, name: str, member: Normal, nonmember: Normal
    ) -> list[NumberCheck]:
        """The shift of the mean, and the sd without the unit.

        Of few models the measured spread is small by chance where the difference seems large, so
        the larger of the predicted error and the measured one counts.
        """
        inside, outside = (self.scores[m, row] for m in (self.inside[:, row], ~self.inside[:, row]))
        shift = float(member.mean - nonmember.mean)
        sd_in, sd_out = float(member.sigma), float(nonmember.sigma)
        if not (np.isfinite(shift) and sd_out >= 0.0):
            raise InputError(f"the result's {name} has no mean and spread to check.")
        if not self.enough[row]:
            of = [("shift", shift), ("sd without", sd_out)]
            return [NumberCheck(name, q, v, math.nan, math.nan, RESOLUTION * sd_out) for q, v in of]
        own = [float(errors[0]) for errors in self.laws.own_errors(np.array([row]))]
        if self.pairs:
            # Models of complementary halves err in opposite directions.
            sign = np.where(self.inside[::2, row], 1.0, -1.0)
            apart = sign * (self.scores[::2, row] - self.scores[1::2, row])
            measured, freedom = float(apart.mean()), len(apart) - 1.0
            error = float(apart.std(ddof=1)) / len(apart) ** 0.5
        else:
            measured = float(inside.mean() - outside.mean())
            freedom = min(len(inside), len(outside)) - 1.0
            error = math.hypot(*(s.std(ddof=1) / len(s) ** 0.5 for s in (inside, outside)))
        by_law = math.hypot(sd_in / len(inside) ** 0.5, sd_out / len(outside) ** 0.5)
        error = math.hypot(max(error, by_law), own[0])
        score = mean_score(measured - shift, error, freedom)
        spread = float(outside.std(ddof=1))
        freedom = 1.0 / (
            0.5 * (max(self.fourth[row], self.fourth.mean()) - 1.0) / (len(outside) - 1)
            + 2.0 * own[1] ** 2
        )
        spread_error = spread / math.sqrt(2.0 * freedom)
        resolution = RESOLUTION * sd_out
        return [
            NumberCheck(name, "shift", shift, measured, error, resolution, score),
            NumberCheck(
                name, "sd without", sd_out, spread, spread_error, resolution,
                spread_score(sd_out, spread, freedom),
            ),
        ]  # fmt: skip

    def _counted(self, models: Mask) -> FloatArray:
        """(U,) TPR less FPR of each unit's own test, over some of the models; 0 where lawless."""
        shares = []
        for side in (self.inside, ~self.inside):
            some = side[models]
            shares.append((self.yes[models] & some).sum(axis=0) / np.maximum(some.sum(axis=0), 1))
        return np.where(self.lawless, 0.0, shares[0] - shares[1])

    def measured(self) -> tuple[FloatArray, FloatArray]:
        """(U,) the advantages that the models show, and their standard errors."""
        counted = self._counted(np.ones(len(self.scores), dtype=np.bool_))
        error = np.sqrt(sum(0.25 / np.maximum(count, 1) for count in self.counts))
        if not self.lawless.any():
            return counted, error
        if self.few is None:
            return np.where(self.lawless, np.nan, counted), error
        ends = self.few.advantage
        seen = _error(ends.low, ends.high)
        return np.where(self.lawless, ends.value, counted), np.where(self.lawless, seen, error)

    def together(self, law: str) -> NumberCheck:
        """The mean advantage; its error is over blocks of models, which all units share."""
        kept = self.enough & (self.confirmed if self.confirmed.any() else ~self.confirmed)
        if not kept.any():
            nan = math.nan
            return NumberCheck(law, "mean advantage", nan, nan, nan, OF_CHANCE)
        seen, error_seen = self.measured()
        predicted, measured = (float(np.mean(values[kept])) for values in (self.predicted, seen))
        blocks = (np.arange(len(self.scores)) // 2) % BLOCKS
        parts = np.array([np.mean(self._counted(blocks != b)[kept]) for b in range(BLOCKS)])
        error = math.sqrt((BLOCKS - 1.0) / BLOCKS * float(np.sum((parts - parts.mean()) ** 2)))
        shared = np.hypot(self.error, np.where(self.lawless, error_seen, 0.0))
        error = math.hypot(error, float(np.mean(shared[kept])) / WITNESSES**0.5)
        gap = measured - predicted
        beyond = math.copysign(max(abs(gap) - TOLERANCE * abs(measured), 0.0), gap)
        freedom = np.inf if self.lawless.all() else BLOCKS - 1.0
        score = mean_score(beyond, error, freedom)
        return NumberCheck(law, "mean advantage", predicted, measured, error, OF_CHANCE, score)

    def ranks(self, seed: int) -> dict[str, float]:
        """How alike both rank all units, and how alike right numbers would with these models."""
        seen, error = self.measured()
        noise = np.hypot(self.error, error)
        drawn = self.predicted + noise * np.random.default_rng(seed).normal(size=len(noise))
        return {
            "rank_correlation": rank_correlation(self.predicted, seen),
            "ceiling": rank_correlation(self.predicted, drawn),
        }


def _laws(audit: Audit) -> UnitLaws:
    """The laws of an audit; normal ones from its table where the file holds no others."""
    try:
        laws: UnitLaws = audit.laws
    except LawsNotStoredError:
        laws = normal_laws(audit)
    return laws


def _error(low: Any, high: Any) -> FloatArray:
    """The standard error that an interval of 95% stands for."""
    return np.asarray((high - low) / (2.0 * HALF_WIDTH))
