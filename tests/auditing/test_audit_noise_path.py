"""The noise path of an audit, against audits at each level, refits by scikit-learn and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from leakscope import InputError, data
from leakscope.data.preparation import prepare
from leakscope.settings import AuditSettings
from leakscope.subjects.process.noise_path import (
    FACTORS,
    noise_path,
    path_unavailable,
    wrong_class,
)
from tests.audits import process_audit

QUICK = {"sensitivity": False, "explain": 0}


def audit_noise_path(result, dataset, **more):
    subject = result.examined
    return noise_path(
        subject.process,
        subject.computed.laws,
        subject.ids,
        target_scale=subject.target_scale,
        **more,
    )


def noise_path_unavailable(result):
    return path_unavailable(result.examined.process, result.examined.computed.laws)


def audited(name, **given):
    dataset, chosen = data.read_example(name), AuditSettings(**QUICK, **given)
    return process_audit(dataset, chosen), dataset, chosen


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "wine"])
def test_every_level_is_an_audit(name):
    result, dataset, settings = audited(name)
    factors = (0.1, 1.0, 30.0)
    path = audit_noise_path(result, dataset, factors=factors)
    assert path.audited == 1
    for factor, level in zip(factors, path.levels, strict=True):
        alone = process_audit(
            dataset, settings.model_copy(update={"noise_variance": 0.01 * factor})
        )
        assert level.noise_variance == pytest.approx(0.01 * factor)
        assert level.largest_advantage == pytest.approx(alone.advantage.max(), rel=1e-7)
        assert level.median_advantage == pytest.approx(np.median(alone.advantage), rel=1e-7)
        assert level.exposed == np.count_nonzero(alone.advantage >= 0.1)
        assert sum(level.histogram) == path.records == len(alone.kl)
        assert [entry[0] for entry in level.top] == list(alone.ranking()[:10])
        np.testing.assert_allclose(
            [entry[1:] for entry in level.top],
            np.column_stack([alone.kl, alone.advantage])[alone.order[:10]],
            rtol=1e-6,
        )


def test_the_error_is_that_of_refits_without_each_record():
    result, dataset, settings = audited("iris")
    few = replace(
        dataset,
        features=dataset.features[::3],
        target=dataset.features[::3, 0] ** 2,
        record_ids=tuple(range(50)),
        task="regression",
    )
    result = process_audit(few, settings)
    path = audit_noise_path(result, few, factors=(1.0, 20.0))
    prepared = prepare(few)
    X, y = prepared.features, prepared.target
    for level in path.levels:
        kernel = RBF(result.details.kernel["length_scale"], "fixed")
        squares, spreads = [], []
        for i in range(len(y)):
            others = np.arange(len(y)) != i
            model = GaussianProcessRegressor(kernel, alpha=level.noise_variance, optimizer=None)
            mean, deviation = model.fit(X[others], y[others]).predict(X[[i]], return_std=True)
            squares.append((y[i] - mean[0]) ** 2)
            spreads.append(deviation[0] ** 2)
        assert level.root_mean_squared_error_of_mean == pytest.approx(np.sqrt(np.mean(squares)))
        assert level.root_mean_squared_error == pytest.approx(
            np.sqrt(np.mean(squares) + np.mean(spreads))
        )
    assert path.error_of_guessing == pytest.approx(1.0)
    assert path.target_scale == pytest.approx(np.std(few.target))


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_wrong_classes_against_draws(classes):
    rng = np.random.default_rng(classes)
    count, draws = 40, 20_000
    right = rng.integers(0, classes, count)
    variance = rng.uniform(0.05, 2.0, count)
    if classes == 2:
        targets = right - 0.5
        mean = targets + rng.normal(size=count)
        drawn = mean + np.sqrt(variance) * rng.normal(size=(draws, count))
        missed = (drawn > 0.0) != (targets > 0.0)
    else:
        targets = np.eye(classes)[right] - 1.0 / classes
        mean = targets + 0.5 * rng.normal(size=(count, classes))
        spread = np.sqrt(variance)[:, None]
        drawn = mean + spread * rng.normal(size=(draws, count, classes))
        missed = np.argmax(drawn, axis=2) != right
    chance = wrong_class(mean, variance, targets)
    error = np.sqrt(np.maximum(chance * (1.0 - chance), 1.0 / draws) / draws)
    assert (np.abs(missed.mean(axis=0) - chance) < 4.5 * error).all()


@pytest.mark.parametrize("spread", [1e-3, 1.0, 10.0])
def test_wrong_classes_against_quadrature(spread):
    mean = np.array([[0.3, 0.1, -0.2, 0.29]])
    chance = wrong_class(mean, np.array([spread**2]), np.array([[1.0, 0.0, 0.0, 0.0]]))

    def right(z):
        ahead = (mean[0, 0] - mean[0, 1:]) / spread
        return norm.pdf(z) * np.prod(norm.cdf(ahead + z))

    value, _ = quad(right, -12.0, 12.0, epsabs=1e-12, limit=400)
    assert chance[0] == pytest.approx(1.0 - value, abs=1e-8)


def test_guessing_is_the_most_frequent_class():
    result, dataset, _settings = audited("breast_cancer")
    path = audit_noise_path(result, dataset, factors=(1.0,))
    assert path.error_of_guessing == pytest.approx(212 / 569)
    assert path.levels[0].wrong_class < 0.05


def test_a_fitted_scale_and_another_kernel_are_followed():
    result, dataset, _settings = audited(
        "diabetes",
        kernel="linear",
        noise_variance="marginal_likelihood",
        fit_kernel_scale=True,
    )
    path = audit_noise_path(result, dataset, factors=(1.0,))
    assert path.levels[0].noise_variance == result.laws.separation.noise_variance
    assert path.levels[0].largest_advantage == pytest.approx(result.advantage.max(), rel=1e-6)


def test_the_levels_and_the_calls(monkeypatch):
    result, dataset, _settings = audited("wine")
    seen = []
    path = audit_noise_path(result, dataset, on_level=seen.append)
    assert seen == list(range(len(FACTORS)))
    assert path.levels[path.audited].noise_variance == 0.01
    noises = [level.noise_variance for level in path.levels]
    assert noises == sorted(noises)
    assert noises[0] == pytest.approx(1e-4)
    assert noises[-1] == pytest.approx(10.0)
    plain = path.to_dict()
    assert plain["levels"][0]["top"][0][0] == path.levels[0].top[0][0]
    monkeypatch.setattr("leakscope.subjects.process.noise_path.MOST_RECORDS", 100)
    assert "at most 100 records" in noise_path_unavailable(result)
    with pytest.raises(InputError, match="at most 100"):
        audit_noise_path(result, dataset)


def test_groups_and_approximations_have_no_slider():
    dataset = data.read_example("wine")
    chosen = AuditSettings(**QUICK)
    grouped = process_audit(replace(dataset, group=tuple(i // 2 for i in range(178))), chosen)
    assert "groups" in noise_path_unavailable(grouped)
    approximate = chosen.model_copy(update={"route": "nystrom", "inducing": 50})
    assert "approximate" in noise_path_unavailable(process_audit(dataset, approximate))
