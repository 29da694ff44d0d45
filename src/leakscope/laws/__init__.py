"""Laws of what an attacker sees, and the pair of them that every measure compares.

`Normal`, `NormalMixture`, `MultivariateNormal`, `SpikeAndSlab`, `Discrete` and
`Empirical` are batched: one object describes the laws of one record or of fifty thousand.  A
`LawPair` holds the law with the record and the law without it, and a `Provenance` that says which
question the pair answers.  What is drawn from a law is decided by a `Key`.
"""

from __future__ import annotations

from leakscope._numerics.keys import Key
from leakscope.laws.composition import compose
from leakscope.laws.distributions import (
    Discrete,
    Empirical,
    Law,
    MultivariateNormal,
    Normal,
    NormalMixture,
    ScalarLaw,
    SpikeAndSlab,
)
from leakscope.laws.pair import Assumption, LawPair, Provenance, concatenate

# isort: split


__all__ = [
    "Assumption",
    "Discrete",
    "Empirical",
    "Key",
    "Law",
    "LawPair",
    "MultivariateNormal",
    "Normal",
    "NormalMixture",
    "Provenance",
    "ScalarLaw",
    "SpikeAndSlab",
    "compose",
    "concatenate",
]
