from __future__ import annotations

import json

import numpy as np
import pytest

from leakscope import InputError, measures
from leakscope._numerics.keys import Key
from leakscope.attacking.score_attacks import cross_fitted_scores
from leakscope.laws import LawPair, Normal, NormalMixture
from leakscope.linear import (
    FourierSeries,
    GaussianDesign,
    LatentSpace,
    OutputNoise,
    RandomRelu,
    data_model_law_pair,
    law_pair,
)
from leakscope.running.cell_store import open_cells
from leakscope.verifying import (
    ConditionalExperiment,
    SampledExperiment,
    SimulationPlan,
    data_model_experiment,
    fitted_experiment,
    gaussian_design_experiment,
    simulate,
)
from leakscope.verifying.experiments.simulation import DesignMixtures

SHIFT = LawPair(Normal(1.0, 1.0), Normal(0.0, 1.0))


def shifted(count, key):
    rng = key.generator()
    return rng.normal(1.0, 1.0, count), rng.normal(0.0, 1.0, count)


def null(count, key):
    rng = key.generator()
    return rng.normal(size=count), rng.normal(size=count)


def random_scale(count, key):
    """Conditional laws of which the mixture is known: Student's laws with 5 degrees of freedom."""
    sigma = np.sqrt(5.0 / key.generator().chisquare(5, count))
    return Normal(1.0, sigma), Normal(0.0, sigma)


def null_scale(count, key):
    rng = key.generator()
    return tuple(Normal(0.0, np.sqrt(rng.chisquare(4, count))) for _ in range(2))


def student_measures():
    """Of Student(5) at 1 and at 0: advantage, AUC and KL by quadrature of SciPy's densities."""
    from scipy import integrate, stats

    law = stats.t(5)
    advantage = 2.0 * law.cdf(0.5) - 1.0
    kl = integrate.quad(lambda x: law.pdf(x) * (law.logpdf(x) - law.logpdf(x - 1)), -200, 200)[0]
    # The likelihood ratio is not monotone in x: its order, on a fine grid.
    x = np.linspace(-60.0, 60.0, 240_001)
    one, zero = law.pdf(x - 1.0), law.pdf(x)
    order = np.argsort(one / zero)
    one, zero = one[order] / one.sum(), zero[order] / zero.sum()
    auc = float(np.sum(one * (np.cumsum(zero) - 0.5 * zero)))
    return {"advantage": advantage, "auc": auc, "kl": kl}


@pytest.mark.parametrize(
    ("measure", "error"), [("advantage", 0.004), ("auc", 0.004), ("kl", 0.015)]
)
def test_conditional_laws_of_a_known_mixture(measure, error):
    plan = SimulationPlan(error, measure, draws_per_block=10, most_draws=2000)
    found = simulate(ConditionalExperiment(random_scale, "student"), plan, seed=3)
    truth = student_measures()[measure]
    assert found.met
    assert abs(float(found.estimate.value) - truth) < 4.0 * found.standard_error
    assert bool(found.estimate.contains(truth))


@pytest.mark.parametrize("adversary", ["kernel_density", "histogram"])
@pytest.mark.parametrize("measure", ["advantage", "auc"])
def test_plain_draws_of_known_laws(adversary, measure):
    plan = SimulationPlan(0.012, measure, draws_per_block=100, adversary=adversary)
    found = simulate(SampledExperiment(shifted, "shift"), plan, seed=1)
    truth = float(getattr(measures, measure)(SHIFT))
    assert found.met
    # The adversary learns, so it is below the truth; at these sizes by less than the error.
    assert -4.0 * found.standard_error < float(found.estimate.value) - truth
    assert float(found.estimate.value) - truth < 4.0 * found.standard_error
    assert "downwards" in found.estimate.bias


def test_the_grid_agrees_with_the_measures():
    mixtures = DesignMixtures(0.2, Normal(0.0, 2.0))
    rng = np.random.default_rng(0)
    for _ in range(16):
        sizes = {"member_sigma": rng.uniform(0.5, 3.0, 5), "nonmember_sigma": rng.gamma(4, 0.3, 5)}
        means = {"member_mean": rng.normal(size=5), "nonmember_mean": rng.normal(size=5)}
        mixtures.add(sizes | means)
    pair = mixtures.pair(SHIFT.provenance)
    for name in ("advantage", "auc", "kl"):
        known = float(getattr(measures, name)(pair))
        assert mixtures.spread(name).plug_in == pytest.approx(known, abs=2e-5)
    known = float(measures.kl(pair, "member_to_nonmember"))
    assert mixtures.spread("kl_reverse").plug_in == pytest.approx(known, abs=2e-5)


def test_the_jackknife_error_is_that_of_repetitions():
    plan = SimulationPlan(1e-9, "advantage", draws_per_block=4, most_draws=64)
    runs = [
        simulate(ConditionalExperiment(random_scale, "student"), plan, seed=s) for s in range(40)
    ]
    spread = np.std([float(run.estimate.value) for run in runs], ddof=1)
    claimed = np.sqrt(np.mean([run.standard_error**2 for run in runs]))
    assert 0.6 < claimed / spread < 1.6
    truth = student_measures()["advantage"]
    assert sum(bool(run.estimate.contains(truth)) for run in runs) >= 33


def test_null_conditional_and_sampled():
    flagged = 0
    plan = SimulationPlan(0.03, "auc", draws_per_block=20, most_draws=2000)
    for seed in range(40):
        found = simulate(SampledExperiment(null, "null"), plan, seed=seed)
        flagged += not found.estimate.contains(0.5)
    # At most 2 are expected; chance alone exceeds 6 less than once in 200 times.
    assert flagged <= 6
    flagged = 0
    plan = SimulationPlan(0.02, draws_per_block=4, most_draws=256)
    for seed in range(10):
        found = simulate(ConditionalExperiment(null_scale, "null"), plan, seed=seed)
        flagged += float(found.estimate.low) > 0.0
    assert flagged <= 3


def test_coverage_with_stopping():
    """The interval for a known AUC, with the rule in force: 95% less a little."""
    plan = SimulationPlan(0.02, "auc", draws_per_block=20, most_draws=4000)
    truth = float(measures.auc(SHIFT))
    covered = sum(
        bool(simulate(SampledExperiment(shifted, "d"), plan, seed=s).estimate.contains(truth))
        for s in range(30)
    )
    assert covered >= 26


@pytest.mark.parametrize(
    "model",
    [LatentSpace(n=15, p=25, latent=3), FourierSeries(n=15, p=9), RandomRelu(n=12, p=20, dim=40)],
    ids=lambda model: type(model).__name__,
)
def test_data_models_of_linear(model):
    query = model.query(1)
    noise = OutputNoise(0.3)
    plan = SimulationPlan(0.02, draws_per_block=10, most_draws=640)
    found = simulate(data_model_experiment(model, query, noise=noise), plan, seed=2)
    known = data_model_law_pair(model, query, noise=noise, designs=400, random_state=7)
    truth = float(np.asarray(measures.advantage(known)))
    assert abs(float(found.estimate.value) - truth) < 4.0 * np.hypot(found.standard_error, 0.01)
    assert found.pair.provenance.differences(known.provenance) == []


def test_gaussian_designs_simulated_and_exact_and_sampled():
    design = GaussianDesign(n=15, p=30, dim=60, sigma=1.0)
    exact = law_pair(design, draws=3000, random_state=5)
    truth = float(measures.advantage(exact)[0])
    experiment = gaussian_design_experiment(design)
    plan = SimulationPlan(0.01, draws_per_block=10, most_draws=3200)
    found = simulate(experiment, plan, seed=2)
    assert abs(float(found.estimate.value) - truth) < 4.0 * found.standard_error + 0.004
    plain = simulate(
        gaussian_design_experiment(design, method="exact").sampled(),
        SimulationPlan(0.02, draws_per_block=200),
        seed=2,
    )
    assert abs(float(plain.estimate.value) - truth) < 4.0 * plain.standard_error
    # The conditional laws need far fewer draws for a smaller error.
    assert found.draws * 4 < plain.draws
    assert found.standard_error < plain.standard_error


def linear_data(rng):
    X = rng.normal(size=(10, 2))
    return X, X @ np.ones(2) + rng.normal(size=10), np.array([1.0, 1.0]), 2.0 + rng.normal()


def least_squares(X, y):
    beta = np.linalg.solve(X.T @ X, X.T @ y)
    return lambda rows: rows @ beta


def test_a_data_model_and_an_estimator_of_ones_own():
    """Predictions at x0 are 2 + w'e, normal given the design: the same by the other route."""
    experiment = fitted_experiment(linear_data, least_squares, name="own")
    plan = SimulationPlan(0.02, "auc", draws_per_block=40, most_draws=20_000)
    found = simulate(experiment, plan, seed=0)
    rng, sigmas = np.random.default_rng(1), ([], [])
    for _ in range(300):
        X, _, x0, _ = linear_data(rng)
        for k, rows in enumerate((np.vstack([x0, X[1:]]), X)):
            sigmas[k].append(np.sqrt(x0 @ np.linalg.solve(rows.T @ rows, x0)))
    known = LawPair(
        NormalMixture.scale(np.array(sigmas[0]), mean=2.0),
        NormalMixture.scale(np.array(sigmas[1]), mean=2.0),
    )
    truth = float(np.asarray(measures.auc(known)))
    assert abs(float(found.estimate.value) - truth) < 4.0 * found.standard_error
    with_label = fitted_experiment(
        linear_data, least_squares, name="both", observe=lambda f, x, y: [f(x[None])[0], y]
    )
    seen = with_label.arrays(5, Key(0))
    assert seen["member"].shape == (5, 2)


def test_a_run_goes_on_where_it_stopped_and_counts_nothing_twice(tmp_path):
    calls = []

    def counted(count, key):
        calls.append(key)
        if len(calls) == 21:
            raise RuntimeError("killed")
        return shifted(count, key)

    experiment = SampledExperiment(counted, "shift")
    loose = SimulationPlan(0.02, "auc", draws_per_block=20)
    settings = loose.describe(experiment)
    plain = simulate(SampledExperiment(shifted, "shift"), loose, seed=4)
    tight = SimulationPlan(0.01, "auc", draws_per_block=20)
    with (
        open_cells(tmp_path / "run", settings=settings, seed=4) as store,
        pytest.raises(RuntimeError, match="killed"),
    ):
        simulate(experiment, tight, seed=4, store=store)
    with open_cells(tmp_path / "run", settings=settings, seed=4) as store:
        assert len(store.finished()) == 20
        more = simulate(experiment, tight, seed=4, store=store)
        assert len(calls) == more.blocks + 1
        assert len(store.finished()) == more.blocks
        # A run that holds more than is asked for gives what it would have given.
        again = simulate(experiment, loose, seed=4, store=store)
        assert len(calls) == more.blocks + 1
    without_time = [{**run.to_dict(), "seconds": 0} for run in (plain, again)]
    assert without_time[0] == without_time[1]
    assert more.blocks > again.blocks
    undisturbed = simulate(SampledExperiment(shifted, "shift"), tight, seed=4)
    assert {**undisturbed.to_dict(), "seconds": 0} == {**more.to_dict(), "seconds": 0}
    with pytest.raises(InputError, match="was begun with"):
        open_cells(tmp_path / "run", settings=loose.describe(experiment) | {"x": 1}, seed=4)


def test_the_budget_ends_a_run_and_says_so():
    plan = SimulationPlan(1e-4, draws_per_block=10, most_draws=500)
    found = simulate(SampledExperiment(shifted, "shift"), plan, seed=0)
    assert not found.met
    assert (found.draws, found.blocks) == (480, 48)
    assert json.loads(json.dumps(found.to_dict()))["met"] is False
    assert "as if their number had been fixed" in found.stopping


def test_scores_survive_any_units_ties_and_two_numbers():
    rng = np.random.default_rng(0)
    member, nonmember = rng.normal(1.0, 1.0, 2000), rng.normal(size=2000)
    plain = cross_fitted_scores(member, nonmember)
    bent = cross_fitted_scores(np.exp(20.0 * member), np.exp(20.0 * nonmember))
    np.testing.assert_allclose(plain[0], bent[0], atol=1e-9)
    atoms = cross_fitted_scores(np.r_[np.ones(60), np.zeros(40)], np.r_[np.ones(30), np.zeros(70)])
    assert atoms[0][0] > 0.0 > atoms[0][-1]
    # A common factor tells nothing alone; the second number tells the first one's scale.
    scale = rng.choice([1.0, 4.0], size=(2, 3000))
    both = [
        np.column_stack([s * (rng.normal(size=3000) + shift), s])
        for s, shift in zip(scale, (1.0, 0.0), strict=True)
    ]
    inside, outside = cross_fitted_scores(both[0], both[1])
    alone = cross_fitted_scores(both[0][:, 0], both[1][:, 0])
    assert _auc(inside, outside) > _auc(*alone) + 0.01
    assert abs(_auc(inside, outside) - float(measures.auc(SHIFT))) < 0.03


def _auc(member, nonmember):
    from leakscope.laws import Empirical

    return float(measures.auc(LawPair(Empirical(member), Empirical(nonmember))).value)


def test_refusals():
    with pytest.raises(InputError, match="adversary must be"):
        cross_fitted_scores([0.0], [1.0], "oracle")
    with pytest.raises(InputError, match="return a score instead"):
        cross_fitted_scores(np.zeros((40, 2)), np.zeros((40, 2)), "histogram")
    with pytest.raises(InputError, match="draws of each kind"):
        cross_fitted_scores(np.zeros(10), np.zeros(10))
    for changes in ({"standard_error": 0.0}, {"measure": "loss"}, {"most_draws": 10}):
        with pytest.raises(InputError, match="must be"):
            SimulationPlan(**changes)
    for wrong in (lambda n, k: (np.zeros(3), np.zeros(n)), lambda n, k: (np.full(n, np.nan),) * 2):
        with pytest.raises(InputError, match="finite member draws"):
            simulate(SampledExperiment(wrong, "wrong"), seed=0)
    mixture = NormalMixture([1.0], [0.0], [1.0])
    with pytest.raises(InputError, match="must be Normal"):
        simulate(ConditionalExperiment(lambda n, k: (mixture, mixture), "wrong"), seed=0)
    with pytest.raises(InputError, match="settled"):
        ConditionalExperiment(random_scale, "x", settled=0.5)
    with pytest.raises(InputError, match="simulated or exact"):
        gaussian_design_experiment(GaussianDesign(5, 3, 9, 1.0), method="asymptotic")
