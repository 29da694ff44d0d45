"""Laws of what an attacker sees, and the pair of them that every measure compares.

`Normal`, `NormalMixture`, `MultivariateNormal`, `SpikeAndSlab`, `Bernoulli` and `Empirical` are
batched: one object describes the laws of one record or of fifty thousand.  A `LawPair` holds the
law with the record and the law without it, and a `Provenance` that says which question the pair
answers.  What is drawn from a law is decided by a `Key`.
"""

from __future__ import annotations

from leakscope._numerics.keys import Key
from leakscope.laws.bernoulli import Bernoulli
from leakscope.laws.empirical import Empirical
from leakscope.laws.law import Law, ScalarLaw
from leakscope.laws.multivariate_normal import MultivariateNormal
from leakscope.laws.normal import Normal
from leakscope.laws.normal_mixture import NormalMixture
from leakscope.laws.pair import LawPair, concatenate
from leakscope.laws.provenance import Assumption, Method, Observes, Provenance
from leakscope.laws.spike_and_slab import SpikeAndSlab
from leakscope.laws.text import parse_law

__all__ = [
    "Assumption",
    "Bernoulli",
    "Empirical",
    "Key",
    "Law",
    "LawPair",
    "Method",
    "MultivariateNormal",
    "Normal",
    "NormalMixture",
    "Observes",
    "Provenance",
    "ScalarLaw",
    "SpikeAndSlab",
    "concatenate",
    "parse_law",
]
