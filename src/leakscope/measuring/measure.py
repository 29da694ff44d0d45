"""What is measured of two laws, of scores of members and others, of a few models, of canaries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from leakscope import __version__, measures
from leakscope.data.arrays import read_arrays, read_scores
from leakscope.data.columns import column_name, numbers, require_present, shown
from leakscope.data.tables import read_table, table_from_frame
from leakscope.errors import InputError
from leakscope.halves.estimate import (
    COUNTED,
    FACTOR,
    NEAR,
    FewModels,
    few_models,
)
from leakscope.laws.distributions import Empirical, Law
from leakscope.laws.pair import LawPair, Provenance
from leakscope.laws.text import parse_law
from leakscope.measures import canaries as one_run
from leakscope.measures import samples
from leakscope.measures.pair_measures import Summary
from leakscope.results.document import AssumptionEntry
from leakscope.results.measurement import (
    CanaryBound,
    CanaryMeasurement,
    Measurement,
    ModelsMeasurement,
    measured_records,
)
from leakscope.settings.measure import CanarySettings, MeasureSettings
from leakscope.settings.setting import validated

Side = Law | ArrayLike | str | Path

# The arrays of a file of models' answers.
NAMES = ("log_odds", "trained_on")


def measure(
    member: Side,
    nonmember: Side,
    *,
    fpr: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> Measurement:
    """How well an attacker can tell a member from a non-member.

    Parameters
    ----------
    member, nonmember
        The law of what the attacker sees when the record was used in training, and when it was
        not: a law, its text (``"normal:0,1.4"``; :func:`leakscope.laws.parse_law` has the forms),
        an array of scores, or the path of a file of them.  A higher score means "more likely a
        member".  Two laws, or two sets of scores.
    fpr, delta
        False-positive rates at which the true-positive rate is given, and deltas at which this
        pair's epsilon is; those of :class:`leakscope.settings.MeasureSettings` where left out.
    confidence, seed
        Of the intervals, and for what is resampled, where there are scores.

    Returns
    -------
    Measurement
        Advantage, AUC, KL, TPR at the false-positive rates, this pair's epsilon, with intervals
        where there are scores.

    Raises
    ------
    InputError
        Where a text is not a law, a law is compared with scores, or there are several pairs.

    Examples
    --------
    >>> import leakscope
    >>> found = leakscope.measure("normal:0,1.4", "normal:0,0.7")
    >>> round(found.advantage, 4), round(found.tpr_at_fpr["0.001"], 4)
    (0.3227, 0.0999)
    """
    how = validated(
        MeasureSettings,
        fpr=None if fpr is None else tuple(fpr),
        delta=None if delta is None else tuple(delta),
        confidence=confidence,
        seed=seed,
    )
    start = time.perf_counter()
    pair = _pair(member, nonmember)
    summary = measures.summary(
        pair,
        fpr=how.fpr,
        delta=how.delta,
        confidence=how.confidence,
        random_state=how.seed,
    )
    found = summary.to_dict()
    provenance = found.pop("provenance")
    return Measurement(
        leakscope_version=__version__,
        settings={
            "member": _told(member),
            "nonmember": _told(nonmember),
            **how.model_dump(mode="json"),
        },
        assumptions=provenance.pop("assumptions", []),
        provenance=provenance,
        timing={"measure": time.perf_counter() - start},
        warnings=_turned(
            found["auc"], found.get("intervals", {}).get("auc", {}).get("high"), "members"
        ),
        infinite=[str(name) for name, value in _only(summary).items() if np.isposinf(value)],
        **found,
    )


def _turned(auc: float | None, high: float | None, who: str) -> list[str]:
    """A question where those who were trained on surely score lower than the others."""
    if auc is None or high is None or not high < 0.5:
        return []
    return [
        f"{who} score lower than the others (AUC {auc:.3g}): is the sign reversed?  A higher score "
        "must mean that the record is more likely a member."
    ]


def _only(summary: Summary) -> dict[str, float]:
    """The numbers of the one pair, by the names of a table's columns."""
    return {str(name): float(column.iloc[0]) for name, column in summary.to_frame().items()}


def _pair(member: Side, nonmember: Side) -> LawPair:
    sides = [_law(member, "member"), _law(nonmember, "nonmember")]
    empirical = [isinstance(side, Empirical) for side in sides]
    if any(empirical) and not all(empirical):
        raise InputError("Give two distributions or two sets of scores, not one of each.")
    if empirical[0]:
        told = Provenance(observes="scores", method="empirical", source="scores given")
    else:
        told = Provenance(method="exact", source="laws given by the user")
    pair = LawPair(member=sides[0], nonmember=sides[1], provenance=told)
    if pair.batch_shape != ():
        raise InputError(
            f"measure takes one pair of distributions, and these are {pair.batch_shape}; "
            "leakscope.measures.summary takes many."
        )
    return pair


def _law(side: Side, name: str) -> Law:
    if isinstance(side, Path):
        return Empirical(read_scores(side))
    if isinstance(side, str):
        return parse_law(side, name)
    if isinstance(side, (Law, Empirical)):
        return side
    return Empirical(np.asarray(side, dtype=np.float64))


def _told(side: Side) -> Any:
    """What a result says of a side; never the scores themselves."""
    if isinstance(side, (str, Path)):
        return str(side)
    if isinstance(side, (Law, Empirical)):
        return type(side).__name__
    return f"{np.size(np.asarray(side))} scores"


def measure_logits(
    path: str | Path,
    *,
    fpr: Sequence[float] | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> ModelsMeasurement:
    """Every record's advantage and TPR, with intervals, from the log-odds of a few models.

    Parameters
    ----------
    path
        An .npz file with ``log_odds`` and ``trained_on``, both models x records, the latter bool.
    fpr, confidence, seed
        Those of :class:`leakscope.settings.MeasureSettings` where left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from leakscope.measuring.measure import measure_logits
    >>> rng = np.random.default_rng(0)
    >>> mask = np.arange(2)[:, None] == rng.integers(0, 2, 40)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "models.npz")
    ...     np.savez(file, log_odds=rng.normal(size=(2, 40)), trained_on=mask)
    ...     len(measure_logits(file).records)
    40
    """
    how = validated(
        MeasureSettings,
        fpr=None if fpr is None else tuple(fpr),
        confidence=confidence,
        seed=seed,
    )
    start = time.perf_counter()
    found = few_models(
        *_models(path),
        fpr=how.fpr,
        confidence=how.confidence,
        random_state=how.seed,
    )
    told = found.pair.provenance.to_dict()
    tprs = {f"{level:g}": each for level, each in found.tpr_at_fpr.items()}
    records = measured_records(found, range(found.records), range(found.records))
    return ModelsMeasurement(
        leakscope_version=__version__,
        settings={"logits": str(path), **how.model_dump(mode="json")},
        assumptions=told.pop("assumptions"),
        provenance=told,
        timing={"measure": time.perf_counter() - start},
        warnings=_doubted(found),
        models=found.models,
        mean_advantage=float(found.advantage.value.mean()),
        mean_tpr_at_fpr={level: float(each.value.mean()) for level, each in tprs.items()},
        records=records,
    )


def _models(path: str | Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Answers and ``trained_on`` of a file, both models x records."""
    arrays = read_arrays(Path(path), NAMES)
    missing = [name for name in NAMES if name not in arrays]
    if missing:
        raise InputError(
            f"{path} has no array {missing[0]}: log_odds and trained_on are needed, both with one "
            "row per model and one column per record."
        )
    return np.asarray(arrays["log_odds"]), np.asarray(arrays["trained_on"])


def _doubted(found: FewModels) -> list[str]:
    """Which records' numbers are not trusted, and why."""
    if not found.noise_seen:
        return [
            f"{found.records} of {found.records} records are not trusted: with one model on each "
            "side of a record the noise between models cannot be seen; give more models."
        ]
    of = f"of {found.records} records are known by intervals only"
    repeats = found.doubt >= COUNTED
    many, wide = int(repeats.sum()), int((~repeats & ~found.trusted).sum())
    told = []
    if many:
        told.append(
            f"{many} {of}: their log-odds jump or take only a few values, as labels, votes, leaves "
            "and neighbours give; they have no normal law, so their advantage was counted."
        )
    if wide:
        told.append(
            f"{wide} {of}: its ends are further than {NEAR:g} from the advantage, or a factor of "
            f"{FACTOR:g} from the TPR at 1%; give more models."
        )
    return told


# The columns of a file of canaries.
SCORE, INCLUDED = "score", "included"
# Coins that are fair give a count this far out once in a million trainings.
UNFAIR = 1e-6
YES, NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")


def measure_canaries(
    scores: ArrayLike | Path,
    included: ArrayLike | None = None,
    *,
    delta: Sequence[float] | None = None,
    confidence: float | None = None,
    guesses: tuple[int, int] | None = None,
    claimed_epsilon: float | None = None,
    seed: int | None = None,
) -> CanaryMeasurement:
    """A lower bound on epsilon from one training with canaries.

    Canaries are records that were made or picked for this.  A fair coin of its own decided for
    each whether it was put into the training set.

    Parameters
    ----------
    scores
        One number for each canary, from any attack; higher means "more likely included".  Or the
        path of a table with the columns ``score`` and ``included``.
    included
        For each canary whether the coin put it in; left out with a path.
    delta, confidence, seed
        Those of :class:`leakscope.settings.MeasureSettings` where left out; the seed orders
        canaries with equal scores.
    guesses
        How many canaries to name as included and how many as left out, if that was fixed before
        the scores were seen.  Where left out several numbers are tried, and the confidence is
        shared among them.
    claimed_epsilon
        The epsilon that the training claims at the first delta, to stand beside what is seen.

    Returns
    -------
    CanaryMeasurement
        For each delta one bound for any mechanism and one for Gaussian mechanisms.

    Raises
    ------
    InputError
        Where a score is no number, or the coins cannot have been fair.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.measuring import measure_canaries
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> found = measure_canaries(rng.normal(size=1000) + 2.0 * included, included)
    >>> round(found.bound().epsilon, 2), round(found.bound("gaussian").epsilon, 2)
    (3.12, 4.49)
    """
    how = validated(
        MeasureSettings,
        delta=None if delta is None else tuple(delta),
        confidence=confidence,
        seed=seed,
    )
    asked = validated(CanarySettings, guesses=guesses, claimed_epsilon=claimed_epsilon)
    start = time.perf_counter()
    values, coins, told = _canaries(scores, included)
    total, put_in = len(values), int(coins.sum())
    fair = one_run.chance_of_coins(put_in, total)
    if fair < UNFAIR:
        raise InputError(
            f"{told}: {put_in} of {total} canaries were included, which happens with fair coins "
            f"with a chance of {fair:.1g}; the bound holds only where a fair coin decided for each "
            "canary."
        )
    tried = _choices(asked.guesses, total)
    right = one_run.right_guesses(values, coins, tried, np.random.default_rng(how.seed))
    level = 1.0 - how.confidence
    claim = asked.claimed_epsilon
    ends = samples.auc(values[coins], values[~coins]) if 1 < put_in < total - 1 else None
    bounds = [
        _bound(form, each, total, tried, right, level)
        for each in how.delta
        for form in one_run.FORMS
    ]
    fixed = asked.guesses is not None
    return CanaryMeasurement(
        leakscope_version=__version__,
        settings={
            "canaries": told,
            **how.model_dump(mode="json", exclude={"fpr"}),
            **asked.model_dump(mode="json"),
        },
        assumptions=_canary_assumptions(put_in, total, fair),
        provenance={
            "method": "lower bound with confidence, from one training",
            "any": "Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846), Theorem 5.2, or "
            "Mahloujifar, Melis and Chaudhuri 2024 (arXiv 2410.22235), whichever shows more",
            "gaussian": "arXiv 2410.22235, with the trade-off function of a Gaussian mechanism",
            "guesses": "fixed in advance"
            if fixed
            else f"the best of {len(tried)} numbers of guesses, each at {level:g} / {len(tried)} "
            "(Bonferroni); they depend on the number of canaries alone",
        },
        timing={"measure": time.perf_counter() - start},
        warnings=[]
        if ends is None
        else _turned(float(ends.value), float(ends.high), "included canaries"),
        canaries=total,
        included=put_in,
        choices=len(tried),
        bounds=bounds,
        claimed_epsilon=claim,
    )


def _bound(
    form: one_run.Form,
    delta: float,
    total: int,
    tried: Sequence[one_run.Choice],
    right: Sequence[int],
    level: float,
) -> CanaryBound:
    found = one_run.lower_bound(form, total, tried, right, delta=delta, level=level)
    return CanaryBound(
        form=form,
        delta=delta,
        epsilon=found.epsilon,
        mu=found.mu,
        named_included=found.choice.included,
        named_left_out=found.choice.left_out,
        right=found.right,
        largest=one_run.largest_bound(form, total, tried, delta=delta, level=level),
    )


def _choices(guesses: tuple[int, int] | None, total: int) -> tuple[one_run.Choice, ...]:
    if guesses is None:
        return one_run.choices(total)
    fixed = one_run.Choice(*guesses)
    if not 1 <= fixed.guesses <= total:
        raise InputError(
            f"guesses: {fixed.included} and {fixed.left_out} are {fixed.guesses}, but there are "
            f"{total} canaries to guess; from 1 to {total} guesses can be made.",
            option="guesses",
        )
    return (fixed,)


def _canaries(
    scores: ArrayLike | Path, included: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_], str]:
    """Scores, coins, and what to call them."""
    if isinstance(scores, Path):
        if included is not None:
            raise InputError("Give a path alone: its table says which canaries were included.")
        table, where = read_table(scores), str(scores)
        columns = list(table.columns)
        score = table[column_name(columns, SCORE, "scores", where)]
        coin = table[column_name(columns, INCLUDED, "coins", where)]
    elif included is None:
        raise InputError("Say for each canary whether it was included.")
    else:
        where = "the canaries"
        score, coin = _column(scores, SCORE), _column(included, INCLUDED)
        if len(score) != len(coin):
            raise InputError(
                f"there are {len(score)} scores, and {len(coin)} entries say whether a canary was "
                "included; each canary needs both."
            )
    remedy = "each canary needs a score, and whether it was included"
    for name, column in ((SCORE, score), (INCLUDED, coin)):
        require_present(column, name, where, remedy)
    coins = _coins(coin, where)
    if len(coins) < 2:
        raise InputError(f"{where}: there are {len(coins)} canaries; hundreds are useful.")
    return numbers(score, SCORE, where), coins, where


def _column(values: ArrayLike, name: str) -> pd.Series[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one column, but its shape is {array.shape}.")
    return table_from_frame(pd.DataFrame({name: array}))[0][name]


def _coins(column: pd.Series[Any], where: str) -> NDArray[np.bool_]:
    words = column.map(lambda value: str(value).strip().lower())
    yes = words.isin(YES).to_numpy()
    neither = ~yes & ~words.isin(NO).to_numpy()
    if neither.any():
        row = int(np.argmax(neither))
        raise InputError(
            f"{where}: column {INCLUDED!r} holds {shown(column.iloc[row])} in row {row} (rows "
            "count from 0); write true or false, or 1 or 0."
        )
    return np.asarray(yes, dtype=np.bool_)


def _canary_assumptions(put_in: int, total: int, fair: float) -> list[AssumptionEntry]:
    return [
        AssumptionEntry(
            statement="each canary was included by a fair coin of its own",
            holds=None,
            evidence=f"{put_in} of {total} were included; fair coins are as far from one half "
            f"with a chance of {fair:.2g}; a split into exact halves is not by coins",
        ),
        AssumptionEntry(
            statement="the scores were computed without a look at the coins",
            holds=None,
            evidence="a score may use only the model and what is known about every canary alike",
        ),
        AssumptionEntry(
            statement="for the Gaussian form: the mechanism's trade-off function is Gaussian",
            holds=None,
            evidence="exact for the Gaussian mechanism and its compositions; nearly so for DP-SGD "
            "with many steps",
        ),
    ]
