"""All predictors on all truths: ``python benchmarks/exposure/score.py truths --processes 2``.

``truths`` holds what ``networks.py`` and ``trees.py`` wrote.  ``--chosen FOLDER`` names a folder
with the two truths on which the estimator was chosen (cifar_resnet.npz, location_mlp.npz).
Writes ``docs/benchmarks/exposure.md`` with its pictures, and the numbers as JSON beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import norm, rankdata

from leakscope._numerics.keys import Key
from leakscope.fitted import ensemble_loss, few_models, lira, model_effects, rmia
from leakscope.fitted.exposure_table import tabulated
from leakscope.fitted.few_models import posterior_draws
from leakscope.fitted.record_posterior import blocks, fit_population, nodes
from leakscope.fitted.record_sums import record_sums

KEPT_FOR_BUDGETS = 64
# For each budget, the first models of the choices that are scored.
BUDGETS = {1: (0, 16), 2: (0,), 4: (0, 32), 8: (0,), 16: (0,), 32: (0,), 64: (0,)}
# Beyond it only the peers are scored.
LARGEST_OF_OURS = 16
MOST_RECORDS = 2500
FPRS = (1e-2, 1e-3)
# Of each pair of trainings one was used to choose the estimator, with the two given truths.
CHOSEN = (
    "adult_mlp_long",
    "adult_forest_leaf5",
    "adult_boosting_short",
    "cifar_probe_short",
    "cifar_resnet_long",
    "digits_mlp_long",
    "fashion_cnn_short",
    "location_mlp_short",
)


@lru_cache(maxsize=1)
def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as archive:
        scores = archive["log_odds"].astype(np.float64)
        bits = archive["trained_on"]
    mask = np.unpackbits(bits, axis=1)[:, : scores.shape[1]].astype(bool)
    rows = np.random.default_rng(0).permutation(scores.shape[1])[:MOST_RECORDS]
    return scores[:, rows], mask[:, rows]


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def precision(predicted: np.ndarray, true: np.ndarray) -> float:
    count = max(1, len(true) // 100)
    top = set(np.argsort(-predicted, kind="stable")[:count])
    return len(top & set(np.argsort(-true, kind="stable")[:count])) / count


def laws(scores: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, ...]:
    """Means and standard deviations without and with each record, and how many models of each."""
    found = []
    for kept in (~mask, mask):
        count = kept.sum(0)
        mean = np.where(kept, scores, 0.0).sum(0) / count
        variance = np.where(kept, (scores - mean) ** 2, 0.0).sum(0) / (count - 1)
        # A forest's votes can agree in all models; a spread of a hundredth of the usual is zero.
        found += [mean, np.sqrt(variance + 1e-4 * variance.mean()), count]
    return tuple(found)


def distance(u: np.ndarray, s: np.ndarray, m: np.ndarray, r: np.ndarray) -> np.ndarray:
    return (m - u) / np.sqrt(0.5 * (s**2 + r**2))


def one(path: Path, budget: int, start: int) -> dict[str, Any]:
    """Everything about one truth, budget and choice of models."""
    scores, mask = load(path)
    rows = slice(start, start + budget)
    few, few_mask = scores[rows], mask[rows]
    far, far_mask = scores[KEPT_FOR_BUDGETS:], mask[KEPT_FOR_BUDGETS:]
    u, s, _, m, r, _ = laws(far, far_mask)
    true = distance(u, s, m, r)
    found: dict[str, Any] = {"truth": path.stem, "budget": budget, "start": start, "rank": {}}
    found["precision"] = {}
    half = len(far) // 4 * 2
    first = laws(far[:half], far_mask[:half])
    second = laws(far[half:], far_mask[half:])
    agreement = rank_correlation(
        distance(first[0], first[1], first[3], first[4]),
        distance(second[0], second[1], second[3], second[4]),
    )
    found["ceiling"] = float(np.sqrt(max(2 * agreement / (1 + agreement), 0.0)))

    def ranked(name: str, predicted: np.ndarray) -> None:
        found["rank"][name] = rank_correlation(predicted, true)
        found["precision"][name] = precision(predicted, true)

    if budget == 1:
        ranked("loss of one model", -few[0])
        return found
    ranked("ensemble loss", ensemble_loss(few, few_mask))
    ranked("RMIA", rmia(few, few_mask))
    for variance in ("own", "bayes", "shared"):
        if variance != "shared" and budget < 4:
            continue
        pair = lira(few, few_mask, variance=variance)
        law = distance(
            pair.nonmember.mean, pair.nonmember.sigma, pair.member.mean, pair.member.sigma
        )
        ranked(f"LiRA, {variance} variance", law)
        if variance == "own":
            threshold = pair.nonmember.mean + norm.isf(0.01) * pair.nonmember.sigma
            fpr = norm.sf((threshold - u) / s)
            found["fpr_lira"] = np.quantile(fpr, [0.1, 0.5, 0.9]).tolist()
            found["tpr_lira"] = [
                float(
                    tabulated(
                        pair.member.mean - pair.nonmember.mean,
                        pair.nonmember.sigma,
                        pair.member.sigma,
                        level,
                    ).mean()
                )
                for level in FPRS
            ]
    if budget > LARGEST_OF_OURS:
        return found
    kept: list[Any] = []

    def keeping(sums: Any) -> Any:
        kept[:] = [sums, fit_population(sums)]
        return kept[1]

    began = time.process_time()
    with mock.patch("leakscope.fitted.few_models.fit_population", keeping):
        answer = few_models(few, few_mask, fpr=FPRS)
    found["seconds"] = time.process_time() - began
    ranked("few models", answer.advantage.value)
    found["claims"] = int(answer.exposed.sum())
    if budget in (4, 16):
        _calibration(found, answer, *kept, far, far_mask)
    return found


def _calibration(
    found: dict[str, Any],
    answer: Any,
    sums: Any,
    population: Any,
    far: np.ndarray,
    far_mask: np.ndarray,
) -> None:
    """Levels against the truth's, on the levelled log-odds, the truth's own noise counted in."""
    levelled = model_effects(far, answer.effects.typical).level(far)
    u, s, n_out, m, r, n_in = laws(levelled, far_mask)
    advantage = tabulated(m - u, s, r)
    # How the two means of the truth are correlated, as they are for any complementary halves.
    correlation = record_sums(levelled, far_mask).correlation[:, None]
    rng = np.random.default_rng(0)
    inside = []
    for number, (block, at) in enumerate(blocks(sums)):
        U, S, M, R = posterior_draws(nodes(block, population), Key(0).child(number))
        a, b = n_out[at, None], n_in[at, None]
        e = rng.standard_normal(U.shape)
        c = correlation[at]
        f = c * e + np.sqrt(1 - c**2) * rng.standard_normal(U.shape)
        seen = (
            M + R / np.sqrt(b) * f - U - S / np.sqrt(a) * e,
            S * np.sqrt(rng.chisquare(a - 1, U.shape) / (a - 1)),
            R * np.sqrt(rng.chisquare(b - 1, U.shape) / (b - 1)),
        )
        low, high = np.quantile(tabulated(*seen), [0.025, 0.975], axis=1)
        inside.append((advantage[at] >= low) & (advantage[at] <= high))
    covered = np.concatenate(inside)
    count = max(1, len(covered) // 100)
    top = np.argsort(-answer.advantage.value)[:count]
    direct = (advantage >= answer.advantage.low) & (advantage <= answer.advantage.high)
    threshold = answer.pair.nonmember.mean + norm.isf(0.01) * answer.pair.nonmember.sigma
    found["cover"] = float(covered.mean())
    found["cover_top"] = float(covered[top].mean())
    found["cover_direct"] = float(direct.mean())
    found["tpr_predicted"] = [float(answer.tpr_at_fpr[level].value.mean()) for level in FPRS]
    found["tpr_observed"] = [float(tabulated(m - u, s, r, level).mean()) for level in FPRS]
    # The truth's own noise makes its TPRs read high: by as much as noise added to it once more.
    c = correlation[:, 0]
    again = np.zeros(len(FPRS))
    for _ in range(4):
        e = rng.standard_normal(len(u))
        f = c * e + np.sqrt(1 - c**2) * rng.standard_normal(len(u))
        noisier = (
            m + r / np.sqrt(n_in) * f - u - s / np.sqrt(n_out) * e,
            s * np.sqrt(rng.chisquare(n_out - 1) / (n_out - 1)),
            r * np.sqrt(rng.chisquare(n_in - 1) / (n_in - 1)),
        )
        again += [float(tabulated(*noisier, level).mean()) / 4 for level in FPRS]
    found["tpr_corrected"] = (2 * np.array(found["tpr_observed"]) - again).tolist()
    found["fpr"] = np.quantile(norm.sf((threshold - u) / s), [0.1, 0.5, 0.9]).tolist()
    found["fpr_counted"] = float(((levelled > threshold) & ~far_mask).sum() / (~far_mask).sum())


def null(path: Path, budget: int, start: int) -> dict[str, Any]:
    scores, mask = load(path)
    rows = slice(start, start + budget)
    answer = few_models(scores[rows], mask[rows])
    return {"truth": path.stem, "budget": budget, "claims": int(answer.exposed.sum())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truths", type=Path)
    parser.add_argument("--chosen", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--numbers", type=Path, default=Path("exposure.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/exposure.md"))
    parser.add_argument("--only-page", action="store_true", help="from the numbers of a past run")
    given = parser.parse_args()
    numbers: dict[str, Any] = {"runs": [], "nulls": []}
    if given.numbers.exists():
        numbers = json.loads(given.numbers.read_text())
    if not given.only_page:
        paths = sorted(given.truths.glob("*.npz"))
        given_paths = sorted(given.chosen.glob("*.npz")) if given.chosen else []
        there = {(run["truth"], run["given"]) for run in numbers["runs"]}
        # Those that judge come first; what an earlier call has scored is not scored again.
        judged = sorted(
            (path for path in paths if not path.stem.startswith("null")),
            key=lambda path: path.stem in CHOSEN,
        )
        for path in judged + given_paths:
            if (path.stem, path in given_paths) in there:
                continue
            tasks = [(path, budget, start) for budget in BUDGETS for start in BUDGETS[budget]]
            with ProcessPoolExecutor(given.processes) as pool:
                runs = list(pool.map(one, *zip(*tasks, strict=True)))
            for run in runs:
                run["given"] = path in given_paths
                run["chosen"] = run["given"] or path.stem in CHOSEN
            numbers["runs"] += runs
            given.numbers.write_text(json.dumps(numbers))
        if not numbers["nulls"]:
            tasks = [
                (path, 4, start)
                for path in paths
                if path.stem.startswith("null")
                for start in range(0, 80, 4)
            ]
            with ProcessPoolExecutor(given.processes) as pool:
                numbers["nulls"] = list(pool.map(null, *zip(*tasks, strict=True)))
            given.numbers.write_text(json.dumps(numbers))
    try:
        from page import write_page
    except ImportError:
        return
    write_page(numbers, given.page)


if __name__ == "__main__":
    main()
