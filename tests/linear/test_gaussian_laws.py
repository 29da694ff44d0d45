"""Exact and asymptotic laws of Gaussian designs against brute-force matrices and each other."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from leakscope import linear
from leakscope._numerics.keys import Key
from leakscope.errors import InputError
from leakscope.laws import MultivariateNormal, Normal
from leakscope.linear import GaussianDesign, OutputNoise, RecordNorms
from leakscope.linear.moments import draw_designs, moments
from leakscope.measures import advantage

REFERENCE = json.loads(
    Path(__file__).with_name("reference").joinpath("brute_force.json").read_text(encoding="utf-8")
)
CELLS = REFERENCE["cells"]


def design_of(cell: dict[str, Any]) -> tuple[GaussianDesign, RecordNorms]:
    design = GaussianDesign(100, cell["p"], 3000, 1.0, cell["ridge"])
    return design, RecordNorms.of(1.1 * cell["p"], 0.95 * (3000 - cell["p"]))


@cache
def exact(p: int, ridge: float) -> tuple[Any, Any]:
    design, norms = design_of({"p": p, "ridge": ridge})
    return moments(design, norms, "exact", 8_000, Key(1))


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c['p']}-{c['ridge']}-{c['who']}")
def test_exact_law_is_within_four_standard_errors_of_whole_matrices(cell: dict[str, Any]) -> None:
    side = exact(cell["p"], cell["ridge"])[cell["who"] == "nonmember"]
    assert cell["sd_stderr"] <= 0.01 * cell["sd"]
    for found, name in (
        (np.sqrt(side.prediction[0]), "sd"),
        (side.covariance[0], "covariance"),
    ):
        error = np.hypot(cell[f"{name}_stderr"], found.std(ddof=1) / np.sqrt(found.size))
        assert abs(found.mean() - cell[name]) <= 4.0 * error + 1e-9


@pytest.mark.parametrize(
    "cell", [c for c in CELLS if c["who"] == "nonmember"], ids=lambda c: f"{c['p']}-{c['ridge']}"
)
def test_exact_law_has_the_quantiles_of_whole_matrices(cell: dict[str, Any]) -> None:
    sd = np.sqrt(exact(cell["p"], cell["ridge"])[1].prediction[0])
    for level, quantile in zip((0.1, 0.5, 0.9), cell["sd_quantiles"], strict=True):
        share = float((sd < quantile).mean())
        spread = np.sqrt(level * (1.0 - level) * (1.0 / cell["trials"] + 1.0 / sd.size))
        assert abs(share - level) <= 4.0 * spread


@pytest.mark.parametrize(("n", "p", "dim"), [(8, 5, 12), (8, 8, 9), (8, 20, 20), (6, 9, 30)])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_small_designs_agree_with_simulation_in_law(n: int, p: int, dim: int, ridge: float) -> None:
    design = GaussianDesign(n, p, dim, 0.7, ridge)
    norms = RecordNorms.of(1.3 * p, 0.8 * (dim - p))
    drawn = moments(design, norms, "exact", 4000, Key(3))
    solved = moments(design, norms, "simulated", 1500, Key(4))
    for a, b in zip(drawn, solved, strict=True):
        for name in ("prediction", "covariance"):
            x, y = getattr(a, name)[0], getattr(b, name)[0]
            if np.ptp(x) == 0.0:
                np.testing.assert_allclose(y, x[0], rtol=1e-6)
            else:
                assert stats.ks_2samp(x, y).pvalue > 1e-4


def dense(rows: int, p: int, z: float, trials: int) -> NDArray[np.float64]:
    """e'A^{-1}e, ||(I - zA^{-1})e||^2, ||XA^{-1}e||^2 from matrices."""
    rng = np.random.default_rng(9)
    e = np.eye(p)[0]
    found = []
    for _ in range(trials):
        X = rng.standard_normal((rows, p))
        a = np.linalg.solve(X.T @ X + z * np.eye(p), e)
        found.append([a[0], ((e - z * a) ** 2).sum(), ((X @ a) ** 2).sum()])
    return np.array(found).T


@pytest.mark.parametrize(("rows", "p"), [(1, 1), (1, 4), (5, 2), (4, 4), (3, 9)])
def test_the_stieltjes_fraction_is_the_resolvent(rows: int, p: int) -> None:
    drawn = draw_designs(rows, p, 0.6, Key(2), 5000)
    for x, y in zip(
        (drawn.resolvent, drawn.signal, drawn.gain), dense(rows, p, 0.6, 3000), strict=True
    ):
        assert stats.ks_2samp(x, y).pvalue > 1e-4


def test_ridge_goes_to_least_squares() -> None:
    for p in (30, 150):
        norms = RecordNorms.typical(GaussianDesign(100, p, 300, 1.0))
        small, none = (
            moments(GaussianDesign(100, p, 300, 1.0, ridge), norms, "exact", 4000, Key(1))
            for ridge in (1e-9, 0.0)
        )
        for a, b in zip(small, none, strict=True):
            if np.ptp(b.prediction) == 0.0:
                np.testing.assert_allclose(a.prediction, b.prediction, rtol=1e-5)
            else:
                assert stats.ks_2samp(a.prediction[0], b.prediction[0]).pvalue > 1e-4


@pytest.mark.parametrize("ridge", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("ratio", [0.5, 4.0])
def test_asymptotic_bias_shrinks_with_size(ridge: float, ratio: float) -> None:
    gaps = []
    for n in (20, 60, 180):
        design = GaussianDesign(n, int(ratio * n), 30 * n, 1.0, ridge)
        norms = RecordNorms.typical(design)
        limit = moments(design, norms, "asymptotic", 1, Key(0))[1].prediction[0, 0]
        drawn = moments(design, norms, "exact", 16_000, Key(7))[1].prediction[0]
        # the law's shape, not its mean: for least squares the mean variance is exact at any n
        gaps.append(abs(np.log(np.median(drawn) / limit)))
    assert gaps[0] > 2.0 * gaps[1] > 4.0 * gaps[2] or max(gaps[1:]) < 0.004


def test_printed_theorem_fails_where_the_corrected_one_passes() -> None:
    checked = 0
    for cell in CELLS:
        if cell["who"] == "nonmember" or cell["ridge"] == 0.0 or cell["p"] < 150:
            continue
        design, norms = design_of(cell)
        printed, right = (
            float(linear.ridge_variances(design, norms, printed=x)[0][0]) for x in (True, False)
        )
        assert abs(right / cell["variance"] - 1.0) < 0.01
        if cell["ridge"] == 5.0:
            # least at p = D, where the member all but interpolates: 3%
            assert printed / cell["variance"] - 1.0 > 0.02
            checked += 1
        if cell["ridge"] == 1.0:
            assert printed == pytest.approx(right, rel=1e-12)
    assert checked == 5


def test_theorem_by_terms_is_the_leave_one_out_form() -> None:
    design = GaussianDesign(100, 270, 3000, 0.8, 0.37)
    norms = RecordNorms.of([200.0, 300.0], [2500.0, 2800.0])
    member, nonmember = moments(design, norms, "asymptotic", 1, Key(0))
    by_terms = linear.ridge_variances(design, norms)
    np.testing.assert_allclose(member.prediction[:, 0], by_terms[0], rtol=1e-12)
    np.testing.assert_allclose(nonmember.prediction[:, 0], by_terms[1], rtol=1e-12)


@pytest.mark.parametrize(("ratio", "ridge"), [(4.0, 0.1), (0.4, 2.0), (1.0, 0.05), (2.0, 1e-8)])
def test_stieltjes_transform(ratio: float, ridge: float) -> None:
    g, slope = linear.stieltjes(ratio, ridge)
    assert ratio * ridge * g * g + (1.0 - ratio + ridge) * g - 1.0 == pytest.approx(0.0, abs=1e-7)
    step = 1e-5 * ridge
    difference = linear.stieltjes(ratio, ridge - step)[0] - linear.stieltjes(ratio, ridge + step)[0]
    assert slope == pytest.approx(difference / (2.0 * step), rel=1e-4)


def test_quadrature_nodes_stand_for_sampled_records() -> None:
    design = GaussianDesign(100, 250, 3000, 1.0)
    nodes = RecordNorms.nodes(design)
    sampled = RecordNorms.sample(design, 4000, random_state=3)
    for norms in (nodes, sampled):
        assert norms.weight @ norms.used == pytest.approx(250.0, rel=0.01)
    values = np.asarray(advantage(linear.law_pair(design, sampled, method="asymptotic")))
    by_nodes = nodes.weight @ advantage(linear.law_pair(design, nodes, method="asymptotic"))
    assert abs(values.mean() - by_nodes) < 4.0 * values.std() / np.sqrt(values.size)


def test_generalization_error_is_prop_4_3_and_its_simulation() -> None:
    for p, ridge in ((400, 0.0), (40, 0.0), (400, 1.0), (40, 1.0)):
        design = GaussianDesign(60, p, 500, 1.0, ridge)
        closed = linear.generalization_error(design, draws=8000)
        solved = linear.generalization_error(design, method="simulated", draws=400, random_state=5)
        assert abs(closed.value - solved.value) < 4.0 * np.hypot(closed.stderr, solved.stderr)
        limit = linear.generalization_error(design, method="asymptotic").value
        assert limit == pytest.approx(closed.value, rel=0.02)
    # Prop. 4.3's second form: 1 + sigma^2 + E sigma_0^2 - 2n/D
    design = GaussianDesign(100, 400, 3000, 1.0)
    spread = moments(design, RecordNorms.typical(design), "asymptotic", 1, Key(0))[1].prediction
    value = linear.generalization_error(design).value
    assert value == pytest.approx(2.0 + float(spread[0, 0]) - 200.0 / 3000.0)
    assert np.isinf(linear.generalization_error(GaussianDesign(100, 101, 3000, 1.0)).value)


def test_noise_and_answers() -> None:
    design = GaussianDesign(100, 400, 3000, 1.0)
    plain = linear.law_pair(design, method="asymptotic")
    noisy = linear.law_pair(design, method="asymptotic", noise=OutputNoise(0.5, to="nonmembers"))
    assert isinstance(plain.nonmember, Normal)
    assert isinstance(noisy.nonmember, Normal)
    assert float(noisy.nonmember.sigma[0] ** 2 - plain.nonmember.sigma[0] ** 2) == pytest.approx(
        0.25
    )
    assert noisy.provenance.assumptions[-1].holds is False
    with pytest.raises(InputError, match="second answer"):
        OutputNoise(1.0, to="nonmembers", answers=2)


def test_label_known_pairs() -> None:
    design = GaussianDesign(100, 400, 3000, 1.0, 1.0)
    pair = linear.law_pair(design, method="asymptotic", attacker="label_known")
    assert isinstance(pair.member, MultivariateNormal)
    assert pair.provenance.attacker_knows_label is True
    exact_pair = linear.law_pair(design, attacker="label_known", labels=[0.5, 1.5], draws=300)
    assert exact_pair.batch_shape == (1, 2)
    with pytest.raises(InputError, match="advantage is 1"):
        linear.law_pair(GaussianDesign(100, 400, 3000, 1.0), attacker="label_known")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 4, 5, 1.0), "n must be 2"),
        ((10, 6, 5, 1.0), "p must be at most dim"),
        ((10, 4, 5, -1.0), "sigma"),
        ((10, 4, 5, 1.0, -0.1), "ridge"),
        ((10.5, 4, 5, 1.0), "whole number"),
    ],
)
def test_impossible_designs(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GaussianDesign(*arguments)


def test_asymptotic_law_is_refused_at_p_equal_n() -> None:
    with pytest.raises(InputError, match="no asymptotic law"):
        linear.law_pair(GaussianDesign(100, 100, 3000, 1.0), method="asymptotic")
