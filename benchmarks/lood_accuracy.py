"""How right are the audit's numbers, and do its flags say so?  Against refits in long double.

Random problems: up to 300 records, with and without near-duplicates, noise variances from 1e-6 to
1, 1 and 10 outputs.  For each, some records at their own points, a group at its own points and at
a few queries, the feature-space route, and one record's influence on queries and on records.
Prints how many relative errors of the KL exceed 1e-3, how many of those were not flagged (missed),
how many flags were not needed (false), and how many fell where none may (noise 1e-3 and above, no
near-duplicate records, no two queries nearer than a tenth of the length scale).  Long double itself
cannot tell where the KL is below 1e-9 (its rounding is 1e-19 in
each covariance, and the textbook formula cancels); such pairs are counted as skipped.

Usage: python benchmarks/lood_accuracy.py [PROBLEMS [FIRST_SEED]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "lood"))

from brute_force import kl_multivariate, refit, refit_features, refit_group

from leakscope import kernels, lood

PROBLEMS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
FIRST_SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
# Three digits are promised; what a query changes is held against the record itself.
LIMIT = 1e-3
LEAST = 1e-9
NEGLIGIBLE = 1e-6


KINDS = (
    "record",
    "group, own points",
    "group, queries",
    "features",
    "influence at queries",
    "influence at records",
)


class Count:
    """Errors and flags of one kind of answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.skipped = self.checked = self.wrong = self.missed = self.false = self.forbidden = 0
        self.worst_unflagged = 0.0

    def add(self, error: float, trusted: bool, *, no_flag: bool) -> None:
        wrong = not error < LIMIT
        self.checked += 1
        self.wrong += wrong
        self.missed += wrong and trusted
        self.false += not wrong and not trusted
        self.forbidden += no_flag and not trusted
        if trusted:
            self.worst_unflagged = max(self.worst_unflagged, error)

    def row(self) -> str:
        return (
            f"| {self.name} | {self.checked} | {self.skipped} | {self.wrong} | {self.missed} | "
            f"{self.false} | {self.forbidden} | {self.worst_unflagged:.1e} |"
        )


def exact_at(
    K: np.ndarray,
    y: np.ndarray,
    noise: float,
    record: int,
    cross: np.ndarray,
    prior: np.ndarray,
) -> np.longdouble:
    """KL(without || with) of one record at one query."""
    with_, without = refit_group(K, y, noise, cross, prior, [record], np.longdouble)
    return kl_multivariate(without, with_)


def _near(queries: np.ndarray, distance: float) -> bool:
    return len(queries) > 1 and float(pdist(queries).min()) < distance


def main() -> None:
    counts = [Count(n) for n in KINDS]
    for seed in range(FIRST_SEED, FIRST_SEED + PROBLEMS):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 301))
        d = int(rng.integers(1, 7))
        X = rng.normal(size=(n, d))
        duplicates = bool(seed % 2)
        if duplicates:
            X[1] = X[0] + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=d)
            X[3] = X[2]
        outputs = 10 if seed % 4 >= 2 else 1
        y = rng.normal(size=n if outputs == 1 else (n, outputs))
        noise = float(10.0 ** rng.uniform(-6, 0))
        kernel = kernels.rbf(float(10.0 ** rng.uniform(-0.5, 0.7)))
        no_flag = noise >= 1e-3 and not duplicates
        K = kernel(X)

        records = sorted({0, 2, int(rng.integers(n)), int(rng.integers(n))})
        found = lood.all_records(K, y, noise_variance=noise)
        exact = refit(K, y, noise, np.longdouble, records).kl()
        for place, i in enumerate(records):
            error = float(abs(found.kl[i] - exact[place]) / exact[place])
            counts[0].add(error, bool(found.trusted[i]), no_flag=no_flag)

        group = sorted(rng.choice(n, size=int(rng.integers(1, 5)), replace=False).tolist())
        queries = X[rng.integers(n, size=int(rng.integers(1, 6)))]
        queries = queries + 0.3 * rng.normal(size=queries.shape)
        for count, asked in ((counts[1], None), (counts[2], queries)):
            # Repeated points make the textbook formula's covariance singular, and say nothing new.
            at = np.unique(X[group], axis=0) if asked is None else asked
            cross, prior = kernel(X, at), kernel(at)
            pair = lood.distinguish(
                X, y, leave_out=group, queries=asked, kernel=kernel, noise_variance=noise
            )
            with_, without = refit_group(K, y, noise, cross, prior, group, np.longdouble)
            allowed = no_flag and not _near(at, 0.1 * float(kernel.length_scale or 1.0))
            for value, reference in (
                (pair.kl, kl_multivariate(without, with_)),
                (pair.kl_reverse, kl_multivariate(with_, without)),
            ):
                if reference < LEAST:
                    count.skipped += 1
                    continue
                error = float(abs(value - reference) / abs(reference))
                count.add(error, pair.trusted, no_flag=allowed)

        quick = lood.audit_features(X, y, noise)
        exact = refit_features(X, y, noise, np.longdouble, records).kl()
        for place, i in enumerate(records):
            error = float(abs(quick.kl[i] - exact[place]) / exact[place])
            counts[3].add(error, bool(quick.trusted[i]), no_flag=no_flag)
        one = records[-1]
        own = float(
            exact_at(K, y, noise, one, K[:, one : one + 1], K[one : one + 1, one : one + 1])
        )
        near = [int(i) for i in np.argsort(-K[one])[:3]]
        for count, found_, columns, priors in (
            (
                counts[4],
                lood.influence(X, y, queries, kernel, noise),
                kernel(X, queries),
                kernel(queries),
            ),
            (counts[5], lood.influence(X, y, None, kernel, noise), K, K),
        ):
            for j in range(len(queries)) if count is counts[4] else near:
                reference = float(
                    exact_at(K, y, noise, one, columns[:, j : j + 1], priors[j : j + 1, j : j + 1])
                )
                size = max(reference, NEGLIGIBLE * own)
                if size < LEAST:
                    count.skipped += 1
                    continue
                count.add(
                    abs(float(found_.kl[one, j]) - reference) / size,
                    bool(found_.trusted[one, j]),
                    no_flag=no_flag,
                )
    print(f"{PROBLEMS} problems, seeds from {FIRST_SEED}; errors of the KL against long double")
    headings = "answer checked skipped above_1e-3 missed false forbidden worst_unflagged"
    print("| " + " | ".join(headings.split()) + " |")
    print("|---|---|---|---|---|---|---|---|")
    for count in counts:
        print(count.row())


if __name__ == "__main__":
    main()
