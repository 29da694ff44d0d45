"""The figures of lasso: their shared parts, and that verdicts turn when the numbers are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, lasso
from leakscope.lasso import LassoSetting, solve_lasso
from leakscope.laws import Key, SpikeAndSlab
from papers import lasso_4, lasso_5, lasso_6, reproduce
from papers.coordinate_descent import coordinate_descent
from papers.lasso_boundary import run_boundary
from papers.lasso_divergences import DIVERGENCES, Sweep, judge_both
from papers.lasso_histogram import bin_edges, counted, kolmogorov_p, law_masses
from papers.lasso_optimal_noise import monotone, optima
from papers.lasso_runs import agreement, draw, run_lasso

DATA = LassoSetting(0.5, 0.1, 0.1, 1.0, 0.0)


def test_runs_are_those_of_the_solver() -> None:
    setting = DATA.change(lam=[0.5, 1.0, 1.0], sigma_eta=[0.1, 0.0, 0.4])
    runs = run_lasso(setting, coefficients=200, datasets=2, key=Key(3))
    for number in range(2):
        data = draw(setting, 200, Key(3).child(number))
        for place in range(3):
            noise = float(setting.sigma_eta[place]) * data.noise
            coef = solve_lasso(data.X, data.y, float(setting.lam[place]), noise).coef
            error = 0.01 + np.mean((coef - data.truth) ** 2)
            assert runs.generalization_error[number, place] == pytest.approx(error, rel=1e-6)
            train = np.mean((data.y - data.X @ coef) ** 2)
            assert runs.training_error[number, place] == pytest.approx(train, rel=1e-6)
            assert runs.active_fraction[number, place] == np.count_nonzero(coef) / 200


def test_output_noise_goes_onto_the_estimate() -> None:
    setting = DATA.change(lam=1.0, sigma_eta=[0.0, 0.5], mechanism="output")
    runs = run_lasso(setting.change(lam=[1.0, 1.0]), coefficients=100, datasets=1, key=Key(1))
    data = draw(setting, 100, Key(1).child(0))
    coef = solve_lasso(data.X, data.y, 1.0).coef
    error = 0.01 + np.mean((coef + 0.5 * data.noise - data.truth) ** 2)
    assert runs.generalization_error[0, 1] == pytest.approx(error, rel=1e-7)


def test_settings_on_one_dataset_share_the_data_model() -> None:
    setting = DATA.change(rho=[0.1, 0.2], sigma_eta=0.1)
    with pytest.raises(InputError, match="share rho"):
        draw(setting, 100, Key(0))


def test_agreement_refuses_what_is_wrong() -> None:
    values = Key(0).generator().normal(1.0, 0.1, (20, 5))
    assert agreement(values, np.ones(5)).agrees
    assert not agreement(values, np.array([1.0, 1.0, 1.2, 1.0, 1.0])).agrees


def test_coordinate_descent_ends_at_the_solution() -> None:
    data = [draw(DATA, 60, Key(5).child(i)) for i in range(3)]
    designs, labels = np.array([d.X for d in data]), np.array([d.y for d in data])
    noise = 0.3 * np.array([d.noise for d in data])
    lam = np.array([0.6, 0.8, 1.0])
    found = coordinate_descent(designs, labels, lam, noise, tol=1e-9, sweeps=2000)
    for place in range(3):
        exact = solve_lasso(designs[place], labels[place], float(lam[place]), noise[place]).coef
        np.testing.assert_allclose(found.coef[place], exact, atol=1e-7)


def test_descent_converges_on_one_side_of_the_edge() -> None:
    found = run_boundary(
        DATA.change(rho=0.5), np.array([0.5]), coefficients=60, runs=4, key=Key(2),
        others=((0.1, 1.0),),
    )  # fmt: skip
    assert found.above.all()
    assert not found.below.any()
    assert (found.amp[:, 0] > 0.9 * 0.5 * found.edges).all()


def test_bins_hold_the_atom_and_almost_all_of_the_law() -> None:
    law = SpikeAndSlab(1.0, 0.8, 0.7)
    edges = bin_edges(law, 0.2)
    masses = law_masses(law, edges)
    assert masses.sum() > 0.998
    inside = int(np.searchsorted(edges, 0.0)) - 1
    assert masses[inside] > float(law.atom)
    values = law.sample(Key(4), 4000)
    shares, low, high = counted(values, edges)
    assert np.mean((low <= masses) & (masses <= high)) > 0.85
    assert shares[inside] == pytest.approx(masses[inside], abs=0.03)


def test_kolmogorov_sees_a_wrong_peak() -> None:
    law = SpikeAndSlab(0.5, 0.8, 0.7)
    values = law.sample(Key(7), 500)
    assert kolmogorov_p(law, values) > 0.01
    assert kolmogorov_p(SpikeAndSlab(0.5, 0.8, 1.2), values) < 1e-6


def test_both_divergences_are_judged() -> None:
    words = dict.fromkeys(DIVERGENCES, "1 of 1")
    first, second = judge_both(
        "it rises", "Fig. 7", {"printed": True, "component_wise": False, "joint": True}, words,
        "lasso 5",
    )  # fmt: skip
    assert (first.verdict, first.erratum) == ("does not hold", "lasso 5")
    assert (second.verdict, second.erratum) == ("holds", None)
    first, _ = judge_both(
        "it rises", "Fig. 7", {"printed": False, "component_wise": True, "joint": True}, words,
        "lasso 5",
    )  # fmt: skip
    assert first.verdict == "holds with the erratum"


def test_the_paper_s_optimum_is_nearest_to_the_origin() -> None:
    at = optima(DATA, np.array([1.0]), "objective", "printed")
    noise = np.linspace(0.05, 0.8, 2000)
    point = lasso.state_evolution(DATA.change(sigma_eta=noise))
    distance = np.hypot(point.error, lasso.onavg_kl(point, "printed"))
    assert at.sigma_eta[0] == pytest.approx(noise[distance.argmin()], abs=1e-3)
    assert monotone(np.array([1.0, 2.0, 3.0]))
    assert not monotone(np.array([1.0, 3.0, 2.0]))


def test_claims_of_fig_4_turn_with_wrong_estimates() -> None:
    point = lasso.state_evolution(LassoSetting(**lasso_4.KNOBS))
    laws = [lasso.law_over_data(point, *pair) for pair in lasso_4.PANELS]
    right = np.stack([law.sample(Key(9).child(i), 600) for i, law in enumerate(laws)], axis=1)
    agrees, deviates = lasso_4._claims(laws, right)
    assert agrees.verdict == "holds"
    assert deviates.verdict == "does not hold"
    wrong = right.copy()
    wrong[:150] = 0.0
    agrees, deviates = lasso_4._claims(laws, wrong)
    assert agrees.verdict == "does not hold"
    assert deviates.verdict == "holds"


def test_claim_5_1_needs_its_erratum() -> None:
    expected = {"printed": (1.9, 1.0), "theory": (2.2, 0.8)}
    values = Key(1).generator().normal(0.0, 0.05, (2, 20))
    corrected = lasso_5.OverNoise([], 2.2 + values[0], 0.8 + values[1])
    claim = lasso_5._fixed_data_claim(corrected, expected)
    assert (claim.verdict, claim.erratum) == ("holds with the erratum", "lasso 2")
    printed = lasso_5.OverNoise([], 1.9 + values[0], 1.0 + values[1])
    assert lasso_5._fixed_data_claim(printed, expected).verdict == "holds"
    neither = lasso_5.OverNoise([], 2.5 + values[0], 1.0 + values[1])
    assert lasso_5._fixed_data_claim(neither, expected).verdict == "does not hold"


def test_eq_60_cannot_be_told_from_few_refits() -> None:
    kl = {name: np.asarray(value) for name, value in (("printed", 0.02), ("joint", 0.032))}
    few = lasso.simulated.DatasetMean(0.03, 0.01)
    row = lasso_6.Row(Sweep(*lasso_6.SWEPT[0], DATA), 0.1, few, kl, 10)
    assert lasso_6._formula([row]).verdict == "cannot tell"
    sharp = row._replace(found=lasso.simulated.DatasetMean(0.0318, 0.0005), datasets=60)
    assert lasso_6._formula([sharp]).verdict == "holds with the erratum"


def test_theory_rows_are_the_library_s_answers() -> None:
    document = reproduce("lasso-8")
    panel = document.panels[1]
    rows = [dict(zip(panel.columns, row, strict=True)) for row in panel.rows]
    for row in rows[5:300:59]:
        if row["curve"].startswith("no") or row["source"] == "marked":
            continue
        setting = DATA.change(lam=float(row["curve"][4:]), sigma_eta=row["order"])
        point = lasso.state_evolution(setting)
        name = "printed" if row["source"] == "printed" else "component_wise"
        assert row["generalization_error"] == pytest.approx(float(point.error), rel=1e-10)
        assert row["kl"] == pytest.approx(float(lasso.onavg_kl(point, name)), rel=1e-8)


def test_the_same_key_gives_the_same_figure() -> None:
    first, second = (reproduce("lasso-5", random_state=4) for _ in range(2))
    assert first.panels == second.panels
    assert first.claims == second.claims
