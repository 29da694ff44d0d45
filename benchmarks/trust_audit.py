"""Is what is trusted right?  Settings that were chosen to break trust, against counted models.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/trust_audit.py --label after             # all of them, about twelve minutes
    python benchmarks/trust_audit.py --quick                   # every fifth, fewer models
    python benchmarks/trust_audit.py --only "LDA step, logistic, noise" "hard labels"
    python benchmarks/trust_audit.py --label after --results docs/benchmarks/trust.json
    python benchmarks/trust_audit.py --page                    # docs/benchmarks/trust.md from that

The settings are in `trust_settings.py`.  Of a fit, a training: the whole recipe (every step of a
pipeline too) is fitted again thousands of times, each time on a part of the records, and for every
record attacks are counted on the answers of models with it and without it.  Of a process and of
files: the two laws in 50 digits.  The answers of the models do not depend on leakscope and are kept
in `--cache`, so that a second run takes a minute or two; what was found is kept in `--results`, and
a run that was stopped goes on.  A label names a state of the code; `--afresh` computes it again.

What is counted.  (1) The likelihood ratio of the laws that the audit holds, where they are simple
laws.  (2) An attack that knows nothing of them: on seven eighths of the models evidence is fitted
(above, below, between the means, the ratio of two normals, of two histograms, of the frequencies of
single values; of a training also with each model's level and scale taken off), the best of these is
chosen by what one half of them says of the other, and it is counted on the last eighth, in turn.
Either is a lower bound of what the best test does, up to the noise of counting.

A trusted record is *off* where what was counted differs from what the audit says by more than 0.1
in advantage, or by more than a factor of two in TPR at 1% FPR.  *Surely*: beyond three standard
errors of the count, so that a right law is not blamed.  *Debiased*: the share of counts that lie
beyond, less the share that would if every law were right, which is simulated.  A prediction is too
low where any attack shows it, and too high only where no attack reaches it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.base import clone, is_classifier
from trust_settings import SETTINGS, Case, Setting

import leakscope
from leakscope import kernels, lood, measures
from leakscope.laws.pair import LawPair

FloatArray = NDArray[np.float64]
Answers = list[tuple[FloatArray, FloatArray]]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "trust.md"
RESULTS = ROOT / "docs" / "benchmarks" / "trust.json"
CACHE = Path(tempfile.gettempdir()) / "trust-audit"

FPR = 0.01
WRONG_ADVANTAGE, WRONG_FACTOR = 0.1, 2.0
SURELY = 3.0
QUICK_EVERY, QUICK_MODELS = 5, 600
DIGITS = 50


@dataclass(frozen=True)
class Count:
    """A number that was counted for every record, and its standard error."""

    value: FloatArray
    error: FloatArray


@dataclass(frozen=True)
class Found:
    """What is written of one setting."""

    kind: str
    breaks: str
    records: int
    trusted: int
    surely: int
    debiased: float
    too_low: int
    too_high: int
    by_advantage: int
    by_tpr: int
    right_untrusted: int
    models: int
    seconds: float
    refused: str = ""


# Counting.


def roc_at(inside: FloatArray, outside: FloatArray, place: float) -> float:
    """The share of members above the ``place``-th largest nonmember; ties are drawn by lot."""
    values, often = np.unique(-outside, return_counts=True)
    ends = np.cumsum(often)
    j = min(int(np.searchsorted(ends, place)), len(ends) - 1)
    least, above = -values[j], ends[j] - often[j]
    strictly, at = np.mean(inside > least), np.mean(inside == least)
    return float(strictly + at * min((place - above) / often[j], 1.0))


def tpr_with_error(inside: FloatArray, outside: FloatArray) -> tuple[float, float]:
    """TPR at 1% and its error: of the share, and of where the quantile lies."""
    n, m = len(inside), len(outside)
    place = max(FPR * (m + 1.0), 1.0)
    value = roc_at(inside, outside, place)
    sides = stats.beta.ppf(special.ndtr([-1.0, 1.0]), place, m + 1.0 - place) * (m + 1.0)
    low, high = (roc_at(inside, outside, max(each, 0.5)) for each in sides)
    smooth = (value * n + 1.0) / (n + 2.0)
    return value, float(np.hypot(0.5 * (high - low), np.sqrt(smooth * (1.0 - smooth) / n)))


def advantage_with_error(inside: NDArray[Any], outside: NDArray[Any]) -> tuple[float, float]:
    """Of a test that says yes or no."""
    n, m = len(inside), len(outside)
    p, q = np.mean(inside), np.mean(outside)
    smooth = [(p * n + 1.0) / (n + 2.0), (q * m + 1.0) / (m + 2.0)]
    error = np.sqrt(smooth[0] * (1 - smooth[0]) / n + smooth[1] * (1 - smooth[1]) / m)
    return float(p - q), float(error)


Evidence = Callable[[FloatArray], FloatArray]


def _normals(a: FloatArray, b: FloatArray) -> Evidence | None:
    """The log ratio of two normals, of one number or of several."""
    try:
        parts = []
        for x in (a, b):
            spread = np.atleast_2d(np.cov(x, rowvar=False))
            parts.append((x.mean(axis=0), np.linalg.inv(spread), np.linalg.slogdet(spread)[1]))
    except np.linalg.LinAlgError:
        return None
    if not all(np.isfinite(inverse).all() for _, inverse, _ in parts):
        return None

    def log(x: FloatArray, part: Any) -> FloatArray:
        centred = x - part[0]
        return np.asarray(-0.5 * (np.einsum("ni,ij,nj->n", centred, part[1], centred) + part[2]))

    return lambda x: log(x, parts[0]) - log(x, parts[1])


def _binned(a: FloatArray, b: FloatArray, edges: FloatArray) -> Evidence:
    """The log ratio of two histograms, with half a count in every bin."""
    counts = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)]
    ratio = np.log((counts[0] + 0.5) / len(a)) - np.log((counts[1] + 0.5) / len(b))
    return lambda x: np.asarray(ratio[np.searchsorted(edges, x)])


def _evidences(a: FloatArray, b: FloatArray) -> list[tuple[Evidence, float]]:
    """What can be looked at, and from where on it speaks for a member."""
    found: list[tuple[Evidence, float]] = []
    several = a.shape[1] > 1
    if several:
        whole = _normals(a, b)
        found.append(((lambda s: np.zeros(len(s))) if whole is None else whole, 0.0))
    for k in range(a.shape[1]):
        x, z = a[:, k], b[:, k]
        pooled = np.unique(np.concatenate([x, z]))
        at = [np.searchsorted(np.sort(side), pooled, side="right") / len(side) for side in (x, z)]
        apart = at[1] - at[0]
        up, down = pooled[np.argmax(apart)], pooled[np.argmin(apart)]
        found.append((lambda s, k=k: s[:, k], float(up)))
        # Of what is at most ``down``: the next larger value is beyond.
        found.append((lambda s, k=k: -s[:, k], float(np.nextafter(-down, -np.inf))))
        # Between the two means: where the best cut is hard to learn, this one is not.
        middle = 0.5 * float(x.mean() + z.mean())
        found.append((lambda s, k=k: s[:, k], middle))
        found.append((lambda s, k=k: -s[:, k], -middle))
        own = _normals(x[:, None], z[:, None]) if len(pooled) > 1 else None
        found.append(
            (lambda s, k=k, own=own: np.zeros(len(s)) if own is None else own(s[:, [k]]), 0.0)
        )
        if len(pooled) <= 40:
            edges = 0.5 * (pooled[1:] + pooled[:-1])
        else:
            edges = np.unique(np.quantile(np.concatenate([x, z]), np.linspace(0, 1, 33)[1:-1]))
        binned = _binned(x, z, edges)
        found.append((lambda s, k=k, own=binned: own(s[:, k]), 0.0))
    return found


FOLDS = 8


def attacked(inside: FloatArray, outside: FloatArray) -> tuple[float, float, float, float]:
    """Advantage and TPR of an attack that learns on some models and is counted on others.

    The advantage: in each of eight folds the attack learns on seven, chooses its evidence by what
    one half of those says of the other, and says yes or no of the eighth; all its answers are
    counted.  The TPR is ranked by one evidence: it learns on one half and is counted on the other.
    """
    told: list[list[NDArray[np.bool_]]] = [[], []]
    for fold in range(FOLDS):
        learn = [np.delete(side, np.s_[fold::FOLDS], axis=0) for side in (inside, outside)]
        evidence, start = _chosen(learn)
        for answers, side in zip(told, (inside, outside), strict=True):
            answers.append(evidence(side[fold::FOLDS]) > start)
    tried: list[tuple[float, float]] = []
    for half in (0, 1):
        learn = [side[half::2] for side in (inside, outside)]
        count = [side[1 - half :: 2] for side in (inside, outside)]
        found = _evidences(*(x[::2] for x in learn))
        seen = [[evidence(x[1::2]) for x in learn] for evidence, _ in found]
        rates = [roc_at(x, z, 2.0 * FPR * (len(z) + 1.0)) for x, z in seen]
        other, _ = found[int(np.argmax(rates))]
        tried.append(tpr_with_error(*(other(x) for x in count)))
    both = np.array(tried)
    tpr, tpr_error = both[:, 0].mean(), np.sqrt(np.sum(both[:, 1] ** 2)) / 2.0
    advantage, error = advantage_with_error(*(np.concatenate(answers) for answers in told))
    return advantage, error, float(tpr), float(tpr_error)


def _chosen(learn: list[FloatArray]) -> tuple[Evidence, float]:
    """The evidence that tells best: by halves, each judged by what was learnt on the other."""
    gains = 0.0
    for half in (0, 1):
        found = _evidences(*(x[half::2] for x in learn))
        gains = gains + np.array([
            np.mean(evidence(learn[0][1 - half :: 2]) > start)
            - np.mean(evidence(learn[1][1 - half :: 2]) > start)
            for evidence, start in found
        ])  # fmt: skip
    return _evidences(*learn)[int(np.argmax(gains))]


def count_if_right(said: FloatArray, inside: NDArray[np.bool_]) -> float:
    """The mean that the same attack would count on as many models if what is said were so."""
    rng, found = np.random.default_rng(2), []
    for advantage, own in zip(said, inside.T, strict=True):
        # Two normals of one spread and this advantage.
        apart = 2.0 * special.ndtri(0.5 + 0.5 * min(float(advantage), 0.9999))
        scores = (rng.standard_normal(len(own)) + apart * own)[:, None]
        found.append(attacked(scores[own], scores[~own])[0])
    return float(np.mean(found))


def counted(
    answers: Answers, pair: LawPair | None, own_answers: Answers
) -> tuple[list[Count], list[Count]]:
    """Advantages and TPRs of every record: of the attack, and of the laws' own test.

    ``own_answers`` are the numbers that the laws are about.
    """
    attack = np.array([attacked(inside, outside) for inside, outside in answers])
    by_advantage = [Count(attack[:, 0], attack[:, 1])]
    by_tpr = [Count(attack[:, 2], attack[:, 3])]
    if pair is not None:
        own = []
        for i, sides in enumerate(own_answers):
            member, other = pair.member.take(i), pair.nonmember.take(i)
            ratios = []
            for side in sides:
                x = side if side.shape[1] > 1 else side[:, 0]
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.asarray(member.log_density(x) - other.log_density(x)).reshape(-1)
                ratio = np.nan_to_num(ratio, nan=0.0)
                # A chance beside a density: no stranger is exactly there.
                ratios.append(np.where(x == 0.0, 1e6, ratio) if hasattr(member, "atom") else ratio)
            yes = [ratio > 0.0 for ratio in ratios]
            own.append((*advantage_with_error(*yes), *tpr_with_error(*ratios)))
        table = np.array(own)
        by_advantage.append(Count(table[:, 0], table[:, 1]))
        by_tpr.append(Count(table[:, 2], table[:, 3]))
    return by_advantage, by_tpr


# Models with and without records.


def drawn_rows(case: Case, kind: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Who is trained on: each record by chance; of a training, half of every class."""
    n = len(case.y)
    if kind == "people":
        assert case.groups is not None
        return np.asarray((rng.random(case.groups.max() + 1) < case.fraction)[case.groups])
    if kind != "training":
        return np.asarray(rng.random(n) < case.fraction)
    order = rng.permutation(n)
    if _classifies(case):
        order = order[np.argsort(case.y[order], kind="stable")]
    rows = np.zeros(n, dtype=bool)
    rows[order[int(rng.integers(2)) :: 2]] = True
    return rows


def _classifies(case: Case) -> bool:
    if hasattr(case.recipe, "fit"):
        return bool(is_classifier(case.recipe))
    return case.y.dtype.kind in "iu"


def score(model: Any, X: Any, y: NDArray[Any], observes: str) -> FloatArray:
    """(n, d) what the audit says that an attacker looks at."""
    if observes in ("prediction", "residual"):
        found = np.asarray(model.predict(X) if hasattr(model, "predict") else model(X), dtype=float)
        if type(model).__name__ in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor"):
            return np.log(found)[:, None]
        return (found if observes == "prediction" else found - y)[:, None]
    if observes == "label":
        return np.asarray(model.predict(X) == y, dtype=float)[:, None]
    classes = getattr(model, "classes_", np.unique(y))
    codes = np.searchsorted(classes, y)
    rows = np.arange(len(y))
    if observes == "scores" or (observes == "log_odds" and hasattr(model, "decision_function")):
        values = np.asarray(model.decision_function(X))
        if values.ndim == 1:
            return np.where(codes == 1, values, -values)[:, None]
        own = values[rows, codes]
        if observes == "scores":
            return own[:, None]
        values[rows, codes] = -np.inf
        return (own - special.logsumexp(values, axis=1))[:, None]
    if observes == "probabilities":
        logits = np.asarray(model.decision_function(X))
        rest = np.array([np.delete(row, k) for row, k in zip(logits, codes, strict=True)])
        return np.asarray(rest - logits[rows, codes][:, None])
    if hasattr(model, "predict_joint_log_proba"):
        # Naive Bayes is so sure that its probabilities have no digits left.
        joint = np.asarray(model.predict_joint_log_proba(X))
        own = joint[rows, codes]
        joint[rows, codes] = -np.inf
        return (own - special.logsumexp(joint, axis=1))[:, None]
    table = np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else model(X))
    own = table[rows, codes] if table.ndim == 2 else np.where(codes == 1, table, 1.0 - table)
    return (np.log(np.maximum(own, 1e-9)) - np.log(np.maximum(1.0 - own, 1e-9)))[:, None]


def shadow_answers(
    setting: Setting, case: Case, observes: str, models: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(models, n, d) scores, and who was trained on."""
    rng = np.random.default_rng(len(setting.origin) + 977)
    codes = (
        np.unique(case.y, return_inverse=True)[1]
        if _classifies(case)
        else np.zeros(len(case.y), dtype=int)
    )
    if case.population is not None:
        return _population(case, models, rng)
    rows = np.empty((models, len(case.y)), dtype=bool)
    for k in range(models):
        rows[k] = drawn_rows(case, setting.kind, rng)
        # A set that cannot be fitted, or lacks a class, is drawn again.
        while rows[k].sum() < 2 or _fewest(codes, rows[k]) < case.least:
            rows[k] = drawn_rows(case, setting.kind, rng)
    if case.fits is not None:
        parts = np.array_split(rows, max(1, models // 500))
        scores = np.concatenate([case.fits(case.X, case.y, part) for part in parts])
        _require_same(case, scores, rows, observes)
        if observes == "residual":
            scores = scores - case.y
        return scores[:, :, None], rows
    found = []
    for k in range(models):
        model = _fitted(case, rows[k], 20_000 + k)
        found.append(score(model, case.X, case.y, observes))
    return np.stack(found), rows


def _fewest(codes: NDArray[Any], rows: NDArray[np.bool_]) -> int:
    """How many records of the rarest class are trained on."""
    return int(np.bincount(codes[rows], minlength=int(codes.max()) + 1).min())


def _fitted(case: Case, rows: NDArray[np.bool_], seed: int) -> Any:
    if not hasattr(case.recipe, "fit"):
        return case.recipe(case.X[rows], case.y[rows], seed)
    model = clone(case.recipe)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model.fit(case.X[rows], case.y[rows], **_weights(case, rows))


def _weights(case: Case, rows: Any = slice(None)) -> dict[str, Any]:
    """What ``fit`` is told of the weights of these records."""
    given = case.options.get("sample_weight")
    return {} if given is None else {"sample_weight": given[rows]}


def _require_same(case: Case, scores: FloatArray, rows: NDArray[np.bool_], observes: str) -> None:
    """The quick fits are those of the recipe."""
    if not hasattr(case.recipe, "fit"):
        return
    own = clone(case.recipe)
    if "tol" in own.get_params() and "C" in own.get_params():
        own.set_params(tol=1e-10, max_iter=10_000)
    for k in (0, 1):
        own.fit(case.X[rows[k]], case.y[rows[k]], **_weights(case, rows[k]))
        asked = "prediction" if observes == "residual" else observes
        there = score(own, case.X, case.y, asked)[:, 0]
        apart = float(np.max(np.abs(there - scores[k])))
        if apart > 1e-3 * float(np.std(scores)):
            raise SystemExit(f"the quick fits of {case.recipe} are off by {apart:.2g}.")


def _population(
    case: Case, models: int, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Fresh others, of which there are n; with the record, one more (ridge, by one rank)."""
    n, alpha = len(case.y), case.recipe.alpha
    design = np.column_stack([np.ones(n), case.X])
    scores, rows = np.empty((2 * models, n, 1)), np.zeros((2 * models, n), dtype=bool)
    for k in range(models):
        X, y = case.population(n - 1, rng)  # type: ignore[misc]
        own = np.column_stack([np.ones(n - 1), X])
        inverse = np.linalg.inv(own.T @ own + np.diag([0.0] + [alpha] * case.X.shape[1]))
        out = design @ (inverse @ (own.T @ y))
        weight = np.einsum("ni,ij,nj->n", design, inverse, design)
        scores[2 * k, :, 0] = out
        scores[2 * k + 1, :, 0] = out + weight * (case.y - out) / (1.0 + weight)
        rows[2 * k + 1] = True
    return scores, rows


def cached_answers(
    setting: Setting, case: Case, observes: str, models: int, cache: Path
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The same, kept: they do not depend on leakscope."""
    name = "".join(c if c.isalnum() else "_" for c in setting.origin)
    file = cache / f"{name}.{observes}.{models}.npz"
    if file.exists():
        held = np.load(file)
        return held["scores"], held["rows"]
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        scores, rows = shadow_answers(setting, case, observes, models)
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, scores=scores, rows=rows)
    return scores, rows


def levelled(scores: FloatArray) -> FloatArray:
    """Each model's median and quartiles over the records taken to the usual ones."""
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=1)
    width = np.maximum(high - low, 1e-12)
    return np.asarray((scores - middle[:, None]) / width[:, None])


# What the audit says.


def audit_of(setting: Setting, case: Case) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if setting.kind != "training":
            model = clone(case.recipe).fit(case.X, case.y, **_weights(case))
            groups = None if case.groups is None else case.groups.tolist()
            return leakscope.audit(case.X, case.y, model=model, groups=groups, **case.options)
        return leakscope.audit(case.X, case.y, train=case.recipe, **case.options)


def seen_of(
    setting: Setting, case: Case, audit: Any, scores: FloatArray, rows: NDArray[np.bool_]
) -> tuple[list[FloatArray], list[FloatArray], NDArray[np.intp]]:
    """Of every unit: what an attack looks at, what the laws are about, and a record of it."""
    n = len(case.y)
    own = [scores[:, i] for i in range(n)]
    laws = getattr(audit.examined, "fitted_laws", None)
    if setting.kind == "people":
        assert case.groups is not None
        assert laws is not None
        people, first = np.unique(case.groups, return_index=True)
        seen = [scores[:, case.groups == person, 0] for person in people]
        summed = laws.people.summed(scores[:, :, 0])
        return seen, [summed[:, [i]] for i in range(len(people))], first
    if setting.kind == "training":
        levels = levelled(scores[:, :, 0])
        seen = [np.column_stack([scores[:, i], levels[:, i]]) for i in range(n)]
        return seen, own, np.arange(n)
    return own, own, np.arange(n)


def simple_pair(audit: Any) -> LawPair | None:
    """The laws that the audit holds, in the order of the data, where they are one pair a record."""
    laws = audit._laws
    if not hasattr(laws, "member"):
        return None
    return LawPair(laws.member, laws.nonmember)


def judged(
    told: dict[str, FloatArray],
    advantages: list[Count],
    tprs: list[Count],
    chance_of_wrong: FloatArray,
) -> dict[str, NDArray[Any]]:
    """Who is surely off, in which way, and how many more counts are beyond than by chance."""
    p, t = told["advantage"], told["tpr"]

    def any_of(counts: list[Count], limit: FloatArray, errors: float) -> NDArray[np.bool_]:
        return np.any([c.value - errors * c.error > limit for c in counts], axis=0)

    def all_of(counts: list[Count], limit: FloatArray, errors: float) -> NDArray[np.bool_]:
        return np.all([c.value + errors * c.error < limit for c in counts], axis=0)

    sure = [
        any_of(advantages, p + WRONG_ADVANTAGE, SURELY),
        all_of(advantages, p - WRONG_ADVANTAGE, SURELY),
        any_of(tprs, WRONG_FACTOR * t, SURELY),
        all_of(tprs, t / WRONG_FACTOR, SURELY),
    ]
    a, r = best(advantages), best(tprs)
    beyond = [np.abs(a - p) > WRONG_ADVANTAGE, r > WRONG_FACTOR * t, r < t / WRONG_FACTOR]
    return {
        "surely": np.any(sure, axis=0),
        "low": sure[0] | sure[2],
        "high": sure[1] | sure[3],
        "advantage": sure[0] | sure[1],
        "tpr": sure[2] | sure[3],
        # If a share q is off, q + (1 - q) chance of the counts lie beyond.
        "beyond": (np.any(beyond, axis=0) - chance_of_wrong) / (1.0 - chance_of_wrong),
    }


def best(counts: list[Count]) -> FloatArray:
    """The count of the laws' own test, or the attack's where that is better beyond two errors."""
    attack, own = counts[0], counts[-1]
    better = attack.value - own.value > 2.0 * np.hypot(attack.error, own.error)
    return np.where(better, attack.value, own.value)


def by_chance(told: dict[str, FloatArray], inside: FloatArray, outside: FloatArray) -> FloatArray:
    """How often a count lies beyond though the law is right."""
    rng = np.random.default_rng(3)
    draws, p = 400, told["advantage"]
    rates = 0.5 * (1.0 + p), 0.5 * (1.0 - p)
    error = np.sqrt(rates[0] * (1 - rates[0]) / inside + rates[1] * (1 - rates[1]) / outside)
    wrong = np.abs(error * rng.standard_normal((draws, len(p)))) > WRONG_ADVANTAGE
    place = np.maximum(FPR * (outside + 1.0), 1.0)
    levels = rng.beta(place, outside + 1.0 - place, size=(draws, len(p)))
    # Between the levels that are known the curve is a power.
    known = [np.maximum(told[name], 1e-12) for name in ("tpr_half", "tpr", "tpr_twice")]
    slopes = np.clip([np.log2(known[1] / known[0]), np.log2(known[2] / known[1])], 0.0, 1.0)
    steps = np.log(levels / FPR)
    truth = known[1] * np.exp(np.where(steps < 0.0, slopes[0], slopes[1]) * steps)
    seen = rng.binomial(inside.astype(int), np.clip(truth, 0.0, 1.0)) / inside
    wrong |= (seen > WRONG_FACTOR * told["tpr"]) | (seen < told["tpr"] / WRONG_FACTOR)
    return np.asarray(wrong.mean(axis=0))


def by_counting(setting: Setting, models: int | None, cache: Path) -> Found:
    """A fit or a training against models of its whole recipe."""
    case, start = setting.case(), time.perf_counter()
    audit = audit_of(setting, case)
    seconds = time.perf_counter() - start
    place = np.argsort([int(name) for name in audit.record_ids])
    laws = audit._laws
    told = {
        "advantage": audit.table.of("advantage")[place],
        "tpr": audit.table.of("tpr_at_fpr_0_01")[place],
        "tpr_half": laws.measured(lambda pair: np.asarray(measures.tpr_at_fpr(pair, FPR / 2))),
        "tpr_twice": laws.measured(lambda pair: np.asarray(measures.tpr_at_fpr(pair, 2 * FPR))),
    }
    trusted = audit.confirmed[place]
    count = case.shadows if models is None else min(models, case.shadows)
    scores, rows = cached_answers(setting, case, audit.observes, count, cache)
    seen, own, inside_of = seen_of(setting, case, audit, scores, rows)
    answers, own_answers = (
        [(x[rows[:, i]], x[~rows[:, i]]) for i, x in zip(inside_of, each, strict=True)]
        for each in (seen, own)
    )
    advantages, tprs = counted(answers, simple_pair(audit), own_answers)
    rows = rows[:, inside_of]
    inside = rows.sum(axis=0).astype(float)
    chance = by_chance(told, inside, len(rows) - inside)
    verdict = judged(told, advantages, tprs, chance)
    return _found(setting, trusted, verdict, len(rows), seconds)


def _found(
    setting: Setting,
    trusted: NDArray[np.bool_],
    verdict: dict[str, NDArray[Any]],
    models: int,
    seconds: float,
) -> Found:
    return Found(
        kind=setting.kind,
        breaks=setting.breaks,
        records=len(trusted),
        trusted=int(trusted.sum()),
        surely=int(np.sum(verdict["surely"] & trusted)),
        debiased=float(np.sum(verdict["beyond"][trusted])),
        too_low=int(np.sum(verdict["low"] & trusted)),
        too_high=int(np.sum(verdict["high"] & trusted)),
        by_advantage=int(np.sum(verdict["advantage"] & trusted)),
        by_tpr=int(np.sum(verdict["tpr"] & trusted)),
        right_untrusted=int(np.sum(~verdict["surely"] & ~trusted)),
        models=models,
        seconds=seconds,
    )


# In 50 digits.


def _matrix(rows: Any) -> Any:
    return mpmath.matrix([[mpmath.mpf(float(x)) for x in row] for row in rows])


def _standardised(M: Any) -> Any:
    """Columns less their mean, over their standard deviation; constant ones as they are."""
    for k in range(M.cols):
        column = [M[i, k] for i in range(M.rows)]
        middle = mpmath.fsum(column) / len(column)
        spread = mpmath.sqrt(mpmath.fsum((x - middle) ** 2 for x in column) / len(column))
        for i, x in enumerate(column):
            M[i, k] = (x - middle) / (spread if spread else 1)
    return M


def exact_pairs(case: Case, kernel: dict[str, Any], standard: bool) -> list[tuple[float, float]]:
    """Of every record: the shift in standard deviations without it, and the ratio of the sds."""
    X, y = _matrix(case.X), _matrix(case.y[:, None])
    if standard:
        X, y = _standardised(X), _standardised(y)
    noise = mpmath.mpf(float(case.options["noise_variance"]))
    if kernel["name"] == "linear":
        mean, h = _linear(X, y, kernel, noise)
    else:
        mean, h = _dense(_kernel(X, kernel), y, noise)
    found = []
    for i, (m, leverage) in enumerate(zip(mean, h, strict=True)):
        # With it: mean m, variance noise h.  Without it: (m - h y)/(1 - h), noise h/(1 - h).
        gap = leverage * (y[i] - m) / (1 - leverage)
        sd = mpmath.sqrt(noise * leverage / (1 - leverage))
        found.append((float(gap / sd), float(mpmath.sqrt(1 - leverage))))
    return found


def _linear(X: Any, y: Any, kernel: dict[str, Any], noise: Any) -> tuple[list[Any], list[Any]]:
    """Posterior means and leverages by the weights."""
    scale = mpmath.sqrt(kernel["weight_variance"] / mpmath.mpf(kernel.get("scale", 1)))
    bias = mpmath.sqrt(mpmath.mpf(kernel["bias_variance"]))
    n, p = X.rows, X.cols + 1
    D = mpmath.matrix(n, p)
    for i in range(n):
        for k in range(p - 1):
            D[i, k] = X[i, k] * scale
        D[i, p - 1] = bias
    M = mpmath.inverse(D.T * D + noise * mpmath.eye(p))
    W = D * M
    means = W * (D.T * y)
    leverages = [mpmath.fsum(W[i, k] * D[i, k] for k in range(p)) for i in range(n)]
    return [means[i] for i in range(n)], leverages


def _kernel(X: Any, kernel: dict[str, Any]) -> Any:
    n, length = X.rows, mpmath.mpf(kernel["length_scale"])
    K = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(i + 1):
            square = mpmath.fsum((X[i, k] - X[j, k]) ** 2 for k in range(X.cols))
            K[i, j] = K[j, i] = mpmath.exp(-square / (2 * length**2))
    return K


def _dense(K: Any, y: Any, noise: Any) -> tuple[list[Any], list[Any]]:
    """The same by the kernel matrix."""
    n = K.rows
    A = mpmath.inverse(K + noise * mpmath.eye(n))
    weights = A * y
    return [y[i] - noise * weights[i] for i in range(n)], [1 - noise * A[i, i] for i in range(n)]


def measured(shift: float, ratio: float) -> tuple[float, float]:
    """Advantage and TPR at 1% of N(shift, ratio) against N(0, 1), on a grid of quantiles."""
    q = special.ndtri((np.arange(40_000) + 0.5) / 40_000)
    members, others = shift + ratio * q, q

    def log_ratio(x: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (x**2 - ((x - shift) / ratio) ** 2) - np.log(ratio))

    a, b = log_ratio(members), log_ratio(others)
    return float(np.mean(a > 0) - np.mean(b > 0)), roc_at(a, b, FPR * len(b))


def exact_groups(case: Case, kernel: dict[str, Any]) -> list[tuple[float, float]]:
    """Of every group: both laws of its answers in 50 digits, and the ratio counted on draws."""
    X, y, noise = _matrix(case.X), _matrix(case.y[:, None]), case.options["noise_variance"]
    K = _kernel(X, kernel)
    A = mpmath.inverse(K + mpmath.mpf(noise) * mpmath.eye(K.rows))
    weights, rng, found = A * y, np.random.default_rng(5), []
    for group in np.unique(case.groups):
        own = np.flatnonzero(case.groups == group).tolist()
        eye = mpmath.eye(len(own))
        block = mpmath.matrix([[A[i, j] for j in own] for i in own])
        w = mpmath.matrix([weights[i] for i in own])
        inverse = mpmath.inverse(block)
        gap = inverse * w - noise * w
        inside = np.array((noise * eye - noise**2 * block).tolist(), dtype=float)
        outside = np.array((inverse - noise * eye).tolist(), dtype=float)
        shift = np.array([float(x) for x in gap])
        laws = (
            stats.multivariate_normal(shift, inside),
            stats.multivariate_normal(np.zeros(len(own)), outside),
        )
        drawn = [np.reshape(law.rvs(40_000, random_state=rng), (-1, len(own))) for law in laws]
        a, b = (laws[0].logpdf(x) - laws[1].logpdf(x) for x in drawn)
        found.append((float(np.mean(a > 0) - np.mean(b > 0)), roc_at(a, b, FPR * len(b))))
    return found


def by_digits(setting: Setting) -> Found:
    """A Gaussian process against 50 digits."""
    case, start = setting.case(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told, trusted, kernel = _process(case)
    seconds = time.perf_counter() - start
    standard = case.options.get("standardised", False)
    with mpmath.workdps(DIGITS):
        if case.groups is not None:
            truth = np.array(exact_groups(case, kernel))
        else:
            truth = np.array([measured(*pair) for pair in exact_pairs(case, kernel, standard)])
    nothing = np.zeros(len(truth))
    verdict = judged(
        told,
        [Count(truth[:, 0], nothing)],
        [Count(truth[:, 1], nothing)],
        nothing,
    )
    return _found(setting, trusted, verdict, 0, seconds)


def _process(case: Case) -> tuple[dict[str, FloatArray], NDArray[np.bool_], dict[str, Any]]:
    options = dict(case.options)
    name, scale = options.pop("kernel")
    noise_variance = options.pop("noise_variance")
    if options.pop("standardised", False):
        import pandas as pd

        frame = pd.DataFrame(case.X).rename(columns=str).assign(y=case.y)
        audit = leakscope.audit_frame(
            frame,
            target="y",
            model={"linear": "linear_kernel"}.get(name, name),
            noise_variance=noise_variance,
        )
    else:
        kernel = kernels.rbf(scale) if name == "rbf" else kernels.linear(scale)
        groups = None if case.groups is None else case.groups.tolist()
        model = lood.Process(kernel, noise_variance)
        audit = leakscope.audit(case.X, case.y, model=model, groups=groups, **options)
    place = np.argsort([int(name) for name in audit.record_ids])
    told = {
        "advantage": audit.table.of("advantage")[place],
        "tpr": audit.table.of("tpr_at_fpr_0_01")[place],
    }
    return told, audit.confirmed[place], _described(audit, case)


def _described(audit: Any, case: Case) -> dict[str, Any]:
    """The kernel in numbers, and its scale where it divides by the features."""
    told = dict(audit.details.kernel)
    if told.get("divide_by_features"):
        told["scale"] = case.X.shape[1]
    return told


def one(setting: Setting, models: int | None, cache: Path) -> Found:
    """A setting; one that is refused has nothing that is trusted."""
    try:
        if setting.kind != "process":
            return by_counting(setting, models, cache)
        return by_digits(setting)
    except leakscope.InputError as error:
        case = setting.case()
        nobody = np.zeros(len(case.y), dtype=bool)
        empty = dict.fromkeys(
            ("surely", "low", "high", "advantage", "tpr", "beyond"), nobody.astype(bool)
        )
        found = asdict(_found(setting, nobody, empty, 0, 0.0))
        return Found(**{**found, "right_untrusted": 0, "refused": str(error)[:160]})


# The page.


def page(results: dict[str, Any]) -> str:
    """Every label beside the others."""
    labels = list(results)
    made = "; ".join(
        f"**{name}** is `{told['commit']}`, {told['machine']}, {told['minutes']:.0f} minutes of "
        f"one core"
        for name, told in results.items()
    )
    lines = [INTRODUCTION.format(made=made)]
    head = "| setting | breaks | records | models |"
    rule = "|---|---|---|---|"
    for name in labels:
        head += f" {name}: trusted | surely off | debiased |"
        rule += "---|---|---|"
    kinds = {
        "fit": "Fitted models",
        "paired": "Paired fits, and exact classifiers",
        "people": "People",
        "training": "Trainings",
        "process": "Gaussian processes",
    }
    held_out = {setting.name for setting in SETTINGS if setting.held_out}
    for kind, words in kinds.items():
        lines += [f"## {words}", "", head, rule]
        own = [s.name for s in SETTINGS if s.kind == kind]
        for name in own:
            rows = [results[label]["settings"].get(name) for label in labels]
            some = next((row for row in rows if row is not None), None)
            if some is not None:
                counts = f"{some['records']} | {some['models'] or '50 digits'}"
                shown = f"{name} (held out)" if name in held_out else name
                lines.append(f"| {shown} | {some['breaks']} | {counts} |" + _cells(rows))
        kept = [name for name in own if name in held_out]
        if kept:
            totals = [_total(results[label], kept) for label in labels]
            lines.append("| **held out** | | | |" + _cells(totals))
        totals = [_total(results[label], own) for label in labels]
        lines += ["| **all** | | | |" + _cells(totals), ""]
    lines += ["## All", "", head, rule]
    totals = [_total(results[label], [s.name for s in SETTINGS]) for label in labels]
    lines += ["| **all** | | | |" + _cells(totals), ""]
    lines += [REMARKS]
    for label in labels:
        refused = [
            f"{name} ({told['refused'].rstrip('.')})"
            for name, told in results[label]["settings"].items()
            if told["refused"]
        ]
        if refused:
            lines += [f"Refused by {label}, so that nothing is trusted: {'; '.join(refused)}.", ""]
    return "\n".join(lines)


def _cells(rows: list[Any]) -> str:
    found = ""
    for row in rows:
        if row is None:
            found += " – | – | – |"
        elif row["refused"]:
            found += " refused | – | – |"
        else:
            trusted = max(row["trusted"], 1)
            found += f" {row['trusted']} ({100 * row['trusted'] / row['records']:.0f}%) |"
            found += f" {row['surely']} ({100 * row['surely'] / trusted:.1f}%) |"
            found += f" {100 * max(row['debiased'], 0.0) / trusted:.1f}% |"
    return found


def _total(told: dict[str, Any], names: list[str]) -> dict[str, Any] | None:
    rows = [told["settings"][name] for name in names if name in told["settings"]]
    if not rows:
        return None
    fields = ("records", "trusted", "surely", "debiased", "right_untrusted")
    return {**{f: sum(row[f] for row in rows) for f in fields}, "refused": ""}


INTRODUCTION = """\
# Is what is trusted right?

Settings that were chosen to break trust, each against models of the whole recipe that were
fitted and counted, or against 50 digits. Made by

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python benchmarks/trust_audit.py --label NAME --results docs/benchmarks/trust.json
    python benchmarks/trust_audit.py --page

{made}, without the models that an earlier run had kept. What is counted, and how, is told at the
top of `benchmarks/trust_audit.py`.

- **trusted**: records that the audit trusts, of those there are.
- **surely off**: trusted records whose counted advantage differs by more than 0.1 from what the
  audit says, or whose counted TPR at 1% FPR differs by more than a factor of two, beyond three
  standard errors of the count.
- **debiased**: the share of the trusted whose count lies beyond these limits, less the share that
  would if every law were right. It also sees what no single count is sure of, and has noise of its
  own.
- **models**: how many were fitted for the truth.
- **held out**: not looked at, record by record, when the rules of trust were chosen. Twelve of them
  were made after all rules stood, to break what the others might have missed: one label in 200,
  Cauchy features, every record three times, columns that are nearly the same, heavy weights, a
  penalty at a knot of the path; they have no *before*.

Of a training a number is the mean of a posterior from a few models, here 8 where nothing is said.
"""


REMARKS = """\
**one rule** is the rule of `leakscope/trust.py`
([its four conditions](../fitted.md#when-a-number-is-confirmed)) on the settings of fits and people
that were counted again so far; the two columns beside it are conditions that are gone, and so are
the families of paired fits, which models of halves answer now. On 45 settings of fits, with the
laws of one fit alone, the rule confirmed 5,068 records with none off, where the conditions before
trusted 4,803; with 6 effective others for 7 it was 5,217 with two off, both of separable data
(C = 1,000). What it refuses altogether goes to models of halves: an LDA step, a scaler of Cauchy
features, least squares with 46 features on 100 records.

A person's number is that of the best sum of their answers. What the laws say of the best test of
all answers is what attacks on all of them reach (1.03 times on ridge with unlike rows, where it is
twice the sum's rate), so that a person is not confirmed where it has 0.05 more advantage or 1.5
times the TPR at 1%.

Of trainings one record of 330 is surely off, by 8 models of a logistic regression of categories of
three. With 8 models hardly a record is confirmed: its interval reaches further than 0.1, and what
is not confirmed is known by its interval. Votes, leaves, neighbours and labels are counted and
never confirmed, because a count shows no TPR. The debiased share says that more than this one are
off by a little more than 0.1 or a factor of two, above all of the smallest networks and of records
that are there twice; no single count is sure of it.
"""


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT
    )
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--label", default="now")
    parser.add_argument("--only", nargs="*", help="names of settings, or what their names contain")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--afresh", action="store_true", help="compute a label's settings again")
    parser.add_argument("--page", action="store_true", help="write the page from the results only")
    parser.add_argument("--results", type=Path, help="a JSON file; of --page, the one in docs")
    parser.add_argument("--cache", type=Path, default=CACHE)
    given = parser.parse_args()
    # What scikit-learn says of thousands of small fits.
    warnings.filterwarnings("ignore")
    if given.page:
        PAGE.write_text(page(json.loads((given.results or RESULTS).read_text())))
        return
    given.cache.mkdir(parents=True, exist_ok=True)
    results = given.results or given.cache / "results.json"
    held = json.loads(results.read_text()) if results.exists() else {}
    own = held.setdefault(
        given.label, {"commit": commit(), "machine": _machine(), "minutes": 0.0, "settings": {}}
    )
    chosen = [s for s in SETTINGS if not given.only or any(t in s.name for t in given.only)]
    chosen = chosen[::QUICK_EVERY] if given.quick else chosen
    for setting in chosen:
        if setting.name in own["settings"] and not given.afresh:
            continue
        start = time.process_time()
        found = one(setting, QUICK_MODELS if given.quick else None, given.cache)
        took = time.process_time() - start
        own["settings"][setting.name] = asdict(found)
        own["minutes"] += took / 60.0
        results.write_text(json.dumps(held, indent=1))
        print(
            f"{setting.name:42s} {found.kind:9s} trusted {found.trusted:4d} of {found.records:4d}, "
            f"off {found.surely:4d} ({found.too_low} low, {found.too_high} high; "
            f"{found.by_advantage} adv, {found.by_tpr} tpr), debiased {found.debiased:6.1f}, "
            f"right but untrusted {found.right_untrusted:4d}, {took:5.1f} s {found.refused[:60]}",
            flush=True,
        )
    total = _total(own, [s.name for s in chosen])
    if total is None:
        raise SystemExit("no setting has such a name.")
    share = total["surely"] / max(total["trusted"], 1)
    beyond = max(total["debiased"], 0.0) / max(total["trusted"], 1)
    print(
        f"{total['trusted']} of {total['records']} records trusted; surely off {share:.2%}, "
        f"debiased {beyond:.2%}"
    )
    sys.exit(0 if share <= 0.01 else 1)


def _machine() -> str:
    return f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
