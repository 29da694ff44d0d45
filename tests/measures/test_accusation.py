"""PPV, lift and one threshold for all against counting, mpmath's arithmetic and samples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from leakscope.errors import InputError
from leakscope.laws import LawPair, MultivariateNormal, Normal
from leakscope.measures import (
    advantage,
    auc,
    lift,
    one_threshold,
    positive_predictive_value,
    tolerable_tpr,
)


def test_ppv_is_a_share_of_counted_people() -> None:
    """Of a million people 30,000 are members; the test finds 7% of them and accuses 0.4% others."""
    right, wrong = 30_000 * Fraction(7, 100), 970_000 * Fraction(4, 1000)
    counted = float(right / (right + wrong))
    assert float(positive_predictive_value(0.07, 0.004, 0.03)) == pytest.approx(counted, rel=1e-14)
    assert float(lift(0.07, 0.004, 0.03)) == pytest.approx(counted / 0.03, rel=1e-14)


def test_a_test_that_guesses_lifts_nothing() -> None:
    rates = np.array([1e-6, 0.1, 1.0])
    assert lift(rates, rates, 0.2) == pytest.approx(1.0, rel=1e-14)
    assert float(positive_predictive_value(0.0, 0.1, 0.2)) == 0.0


@pytest.mark.parametrize("prior", [1e-4, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("ppv", [0.05, 0.5, 0.95])
def test_the_tolerable_tpr_gives_that_ppv(prior: float, ppv: float) -> None:
    tpr = tolerable_tpr(0.001, prior, ppv)
    if tpr < 1.0:
        assert float(positive_predictive_value(tpr, 0.001, prior)) == pytest.approx(ppv, rel=1e-12)
    else:
        assert float(positive_predictive_value(1.0, 0.001, prior)) <= ppv


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_prior_outside_is_refused(prior: float) -> None:
    for measure in (positive_predictive_value, lift):
        with pytest.raises(InputError, match="prior must be between 0 and 1"):
            measure(0.1, 0.001, prior)
    with pytest.raises(InputError, match="prior must be between 0 and 1"):
        tolerable_tpr(0.001, prior, 0.5)


def test_rates_outside_are_refused() -> None:
    with pytest.raises(InputError, match="tpr"):
        positive_predictive_value(1.2, 0.1, 0.5)
    with pytest.raises(InputError, match="fpr"):
        positive_predictive_value(0.2, 0.0, 0.5)
    with pytest.raises(InputError, match="ppv"):
        tolerable_tpr(0.1, 0.5, 1.0)


def test_no_pair_of_laws_has_more_advantage_than_its_auc_allows() -> None:
    rng = np.random.default_rng(1)
    pair = LawPair(
        Normal(rng.normal(size=200), np.exp(rng.normal(size=200))),
        Normal(rng.normal(size=200), np.exp(rng.normal(size=200))),
    )
    room = np.clip(2.0 * np.asarray(auc(pair)) - 1.0, 0.0, 1.0) - np.asarray(advantage(pair))
    assert np.all(room > -1e-9)


def test_one_threshold_is_what_samples_show() -> None:
    rng = np.random.default_rng(2)
    records, draws = 300, 400_000
    mean, sd = 2.0 * rng.normal(size=records), np.exp(0.5 * rng.normal(size=records))
    shift = rng.exponential(size=records) * 0.7
    found = one_threshold(LawPair(Normal(mean + shift, sd), Normal(mean, sd)), fpr=(0.1, 0.01))
    row, other = rng.integers(0, records, (2, draws))
    inside = np.sort(mean[row] + shift[row] + sd[row] * rng.normal(size=draws))
    outside = np.sort(mean[other] + sd[other] * rng.normal(size=draws))
    cuts = np.linspace(-8.0, 8.0, 2000)
    tpr, fpr = (1.0 - np.searchsorted(each, cuts) / draws for each in (inside, outside))
    error = 4.0 / np.sqrt(draws)
    assert found["advantage"] == pytest.approx(float(np.max(tpr - fpr)), abs=error)
    assert found["auc"] == pytest.approx(float(-integrate.trapezoid(tpr, fpr)), abs=error)
    for level in (0.1, 0.01):
        cut = outside[int((1.0 - level) * draws)]
        assert found[f"{level:g}"] == pytest.approx(
            1.0 - np.searchsorted(inside, cut) / draws, abs=error
        )


def test_one_record_has_one_threshold() -> None:
    pair = LawPair(Normal([1.0], [1.0]), Normal([0.0], [1.0]))
    found = one_threshold(pair, fpr=(0.05,))
    assert found["advantage"] == pytest.approx(float(np.asarray(advantage(pair))[0]), abs=1e-5)
    assert found["auc"] == pytest.approx(float(np.asarray(auc(pair))[0]), abs=1e-4)


def test_thousands_of_records_are_stood_for_by_some() -> None:
    rng = np.random.default_rng(3)
    mean = rng.normal(size=40_000)
    pair = LawPair(Normal(mean + 0.5, np.ones(40_000)), Normal(mean, np.ones(40_000)))
    # Over such records the score is normal with variance 2; each record's own gap between both
    # rates has a standard deviation below 0.1, and 5,000 records stand for all.
    whole = LawPair(Normal([0.5], [2**0.5]), Normal([0.0], [2**0.5]))
    expected = float(np.asarray(advantage(whole))[0])
    assert one_threshold(pair)["advantage"] == pytest.approx(expected, abs=4 * 0.1 / 5000**0.5)


def test_other_laws_are_refused() -> None:
    law = MultivariateNormal(np.zeros((1, 2)), np.eye(2)[None])
    with pytest.raises(InputError, match="normal laws of a score"):
        one_threshold(LawPair(law, law))
