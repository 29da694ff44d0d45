"""The records of the paper **linear**, and what its adversary makes of predictions at them.

A figure keeps its records x0 while p grows, so that a record's used features are those it had
before and some more.  Only squared norms matter (`leakscope.linear.RecordNorms`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope import linear
from leakscope.laws import Key, LawPair, Normal, NormalMixture
from leakscope.linear import Convention, GaussianDesign, RecordNorms
from leakscope.measures import ScoredAdvantage, scored_advantage
from papers.linear_histogram import histogram_advantage

# Predictions of each kind in a histogram of Figs. 2(b) and 5 (App. D).
DRAWS = 100_000


def growing_norms(sizes: Sequence[int], dim: int, records: int, key: Key) -> list[RecordNorms]:
    """The norms of the same ``records`` records for each p of ``sizes``, which rises.

    ||x_{0,p}||^2 grows by a chi-square for the features that come in; D-vectors are not drawn.

    Examples
    --------
    >>> from leakscope.laws import Key
    >>> from papers.linear_records import growing_norms
    >>> few, all_of_them = growing_norms([10, 100], 100, 3, Key(0))
    >>> bool((few.used < all_of_them.used).all()), all_of_them.unused.tolist()
    (True, [0.0, 0.0, 0.0])
    """
    generator = key.generator()
    steps = np.diff([0, *sizes, dim])
    parts = [
        generator.chisquare(step, records) if step else np.zeros(records) for step in steps.tolist()
    ]
    used = np.cumsum(parts[:-1], axis=0)
    total = used[-1] + parts[-1]
    return [
        RecordNorms.of(row, total - row if p < dim else 0.0)
        for p, row in zip(sizes, used, strict=True)
    ]


def each_record(pair: LawPair) -> list[LawPair]:
    """A batch of pairs, one per record, as a list."""
    return [pair.take(slice(j, j + 1)).reshape() for j in range(pair.batch_shape[0])]


def histogram_of_law(
    pair: LawPair,
    generator: np.random.Generator,
    *,
    convention: Convention = "published",
    draws: int = DRAWS,
) -> float:
    """The paper's adversary: predictions drawn from both laws, binned and compared."""
    drawn = []
    for law in (pair.member, pair.nonmember):
        mixture = NormalMixture.of(law) if isinstance(law, Normal) else law
        assert isinstance(mixture, NormalMixture)
        sigmas = generator.choice(mixture.sigmas, draws, p=mixture.weights)
        drawn.append(sigmas * generator.standard_normal(draws))
    return histogram_advantage(drawn[0], drawn[1], convention=convention)


def finite_n_advantage(design: GaussianDesign, draws: int, key: Key) -> ScoredAdvantage:
    """The exact law's advantage, averaged over records at four nodes of ||x_{0,p}||^2.

    The unused features' norm is taken at its mean: with D - p of them it hardly varies.
    """
    norms = RecordNorms.nodes(design, 4, 1)
    pair = linear.law_pair(design, norms, draws=draws, random_state=key)
    return scored_advantage(pair, norms.weight)


def theory_pair(design: GaussianDesign, norms: RecordNorms, *, printed: bool = False) -> LawPair:
    """Thm 3.2 (ridge 0) or Thm 4.1: corrected, or with the member's variance as printed."""
    pair = linear.law_pair(design, norms, method="asymptotic")
    if not printed or design.ridge == 0.0:
        return pair
    member, nonmember = linear.ridge_variances(design, norms, printed=True)
    return LawPair(Normal(0.0, np.sqrt(member)), Normal(0.0, np.sqrt(nonmember)), pair.provenance)


def theory_advantage(
    design: GaussianDesign, norms: RecordNorms | None = None, *, printed: bool = False
) -> float:
    """The mean advantage of `theory_pair` over the records; over all records where left out.

    Examples
    --------
    >>> from leakscope.linear import GaussianDesign
    >>> from papers.linear_records import theory_advantage
    >>> ridge = GaussianDesign(100, 400, 3000, 1.0, ridge=5.0)
    >>> round(theory_advantage(ridge), 3), round(theory_advantage(ridge, printed=True), 3)
    (0.334, 0.39)
    """
    from leakscope import measures

    records = RecordNorms.nodes(design) if norms is None else norms
    found = measures.advantage(theory_pair(design, records, printed=printed))
    return float(records.weight @ np.asarray(found))
