"""The contract of `contract.MeasureContract`, for each kind of law."""

from __future__ import annotations

import numpy as np
from contract import MeasureContract
from hypothesis import strategies as st

from leakscope.laws import MultivariateNormal, Normal, NormalMixture, SpikeAndSlab

means = st.floats(-4.0, 4.0)
sigmas = st.floats(-2.5, 2.5).map(np.exp)


class TestNormal(MeasureContract):
    examples = 100
    laws = st.builds(Normal, means, sigmas)


class TestNearlyEqualNormals(MeasureContract):
    examples = 100
    laws = st.builds(Normal, st.floats(-1e-8, 1e-8), st.floats(-1e-8, 1e-8).map(lambda x: 1.0 + x))


class TestSpikeAndSlab(MeasureContract):
    laws = st.builds(SpikeAndSlab, means, sigmas, st.floats(0.0, 3.0))


class TestNormalMixture(MeasureContract):
    examples = 12
    noise = 1e-14
    # with one component it is a normal, whose numbers have more digits than in a batch of others
    laws = st.integers(2, 3).flatmap(
        lambda k: st.builds(
            NormalMixture,
            st.lists(st.floats(0.01, 1.0), min_size=k, max_size=k),
            st.lists(means, min_size=k, max_size=k),
            st.lists(sigmas, min_size=k, max_size=k),
        )
    )


class TestScaleMixture(MeasureContract):
    examples = 12
    noise = 1e-14
    laws = st.lists(sigmas, min_size=2, max_size=5).map(NormalMixture.scale)


def _multivariate(entropy: int, d: int) -> MultivariateNormal:
    generator = np.random.default_rng(entropy)
    factor = generator.standard_normal((d, d + 2)) * np.exp(generator.uniform(-1.0, 1.0, (d, 1)))
    return MultivariateNormal(generator.uniform(-2.0, 2.0, d), factor @ factor.T)


class TestMultivariateNormal(MeasureContract):
    examples = 15
    accuracy = 1e-7
    laws = st.builds(_multivariate, st.integers(0, 10_000), st.just(3))


class TestOneDimensionalMultivariate(MeasureContract):
    examples = 15
    accuracy = 1e-7
    laws = st.builds(_multivariate, st.integers(0, 10_000), st.just(1))
