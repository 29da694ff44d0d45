"""What the lood figures compute, against refits and known answers; and verdicts that can turn."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from leakscope import InputError, kernels, lood
from leakscope.laws import Key
from leakscope.verifying import Interval
from papers import (
    Order,
    find_figure,
    lood_4,
    lood_5,
    lood_6,
    lood_7,
    lood_8,
    lood_11,
    lood_12,
    lood_14,
    lood_e2,
)
from papers.binomial_share import Share, all_of, share_of, side_of
from papers.lood_2 import Runs
from papers.lood_e1 import ratios as several_queries
from papers.lood_groups import GroupRun
from papers.lood_images import load_images
from papers.lood_newcomers import Newcomers, newcomers
from papers.lood_perturbed import Scans, directions, scales, scan
from papers.lood_section_6 import _gap_grows, bound_table, on_sphere, ratios
from papers.lood_sine import sine
from papers.paired_correlations import correlation_gap


def asked(name, **given):
    """The order of a figure with the paper's parameters."""
    return Order(knobs=find_figure(name).own("quick"), **given)


def posterior(X, y, query, kernel, noise):
    """Mean and variance at one query, by the textbook's formula."""
    K = kernel(X) + noise * np.eye(len(X))
    cross = kernel(X, query[None, :])[:, 0]
    solved = np.linalg.solve(K, cross)
    return solved @ y, kernel(query[None, :])[0, 0] - cross @ solved


def test_newcomers_are_those_of_two_refits():
    rng = np.random.default_rng(0)
    X, y, S, labels = (
        rng.normal(size=(12, 3)),
        rng.normal(size=12),
        rng.normal(size=(5, 3)),
        np.ones(5),
    )
    kernel = kernels.rbf(1.5)
    found = newcomers(kernel, X, y, S, labels, Key(0), noise_variance=0.1, draws=20_000)
    for j in range(5):
        m0, v0 = posterior(X, y, S[j], kernel, 0.1)
        m1, v1 = posterior(np.vstack([X, S[j]]), np.append(y, 1.0), S[j], kernel, 0.1)
        kl = 0.5 * (np.log(v1 / v0) - 1.0 + v0 / v1 + (m0 - m1) ** 2 / v1)
        assert found.kl[j] == pytest.approx(kl, rel=1e-9)
        assert found.mean_distance[j] == pytest.approx(0.5 * (m0 - m1) ** 2, rel=1e-9)
    # 95% intervals of 20,000 draws; twice as far would be a failure, not chance.
    assert (np.abs(found.drawn - found.auc) < found.high - found.low).all()


def test_a_share_has_the_exact_interval():
    for count, total in ((0, 12), (7, 12), (12, 12), (61, 100)):
        exact = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
        assert Share(count, total).interval == pytest.approx((exact.low, exact.high))
    assert share_of([True, False]).above(0.5) is None
    assert Share(99, 100).above(0.5) is True
    assert Share(1, 100).above(0.5) is False
    assert side_of(0.1, 0.2, 0.15) is None
    assert all_of([True, None]) is None
    assert all_of([True, None, False]) is False


def test_the_gap_of_two_correlations():
    rng = np.random.default_rng(1)
    measured = rng.normal(size=60)
    good, bad = measured + 0.1 * rng.normal(size=60), measured + 3.0 * rng.normal(size=60)
    for kind, correlation in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        gap = correlation_gap(good, bad, measured, Key(0), kind=kind)
        expected = correlation(good, measured).statistic - correlation(bad, measured).statistic
        assert gap.value == pytest.approx(expected)
        assert gap.low > 0.0
        turned = correlation_gap(bad, good, measured, Key(0), kind=kind)
        assert turned.high < 0.0


def test_pictures_are_balanced_and_a_folder_without_them_is_refused(tmp_path):
    images = load_images(None, 41, Key(0))
    assert images.y.sum() == 0.0
    assert len(images.y) == 40
    assert images.X.min() >= 0.0
    assert images.X.max() <= 1.0
    assert images.told(False) is None
    assert images.told(True) is True
    assert dataclasses.replace(images, stand_in=False).told(False) is False
    with pytest.raises(InputError, match="cifar10_car_plane"):
        load_images(tmp_path, 10, Key(0))


def test_the_pictures_of_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(20, 4, 4, 3), dtype=np.uint8)
    np.savez(tmp_path / "cifar10_car_plane.npz", X=X, y=np.arange(20) % 2)
    images = load_images(tmp_path, 10, Key(0), ten_classes=True)
    assert images.shape == (4, 4, 3)
    assert images.input_shape == (4, 4, 3)
    known = {
        tuple(row.ravel() / 255.0): label - 0.5
        for row, label in zip(X, np.arange(20) % 2, strict=True)
    }
    assert all(known[tuple(row)] == label for row, label in zip(images.X, images.y, strict=True))
    assert images.strip("two", images.X[:2]).png[:4] == b"\x89PNG"
    assert len(images.notes) == 1


def test_three_figures_show_the_same_ten_points():
    """The fourth panel of lood-12 was said to be lood-11's record, and was another."""
    made = [module.make(asked("lood-7")) for module in (lood_7, lood_11, lood_12)]
    records = []
    for figure in made:
        for panel in figure.panels:
            points = panel.table[panel.table["source"] == "record"]
            records.append(points[panel.x].to_numpy())
            # marks and points come first: one colour each in all panels
            assert panel.table["curve"].unique()[2] == "training points"
    assert len(records) == 3 + 2 + 4
    assert all(np.array_equal(one, records[0]) for one in records)
    S = [figure.settings["S*"] for figure in made[:2]]
    assert S[0] == S[1] == made[2].settings["S"][-1]


def test_the_gradient_of_the_sine_is_a_slope():
    data = sine(Key(3))
    place, step = 2.5, 1e-5
    ahead, behind = (
        data.at(place, np.array([place + sign * step])).mean_distance[-1, 0] for sign in (1, -1)
    )
    gradient = float(data.self_influence(place).gradient[0])
    assert gradient == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def test_the_sine_by_two_refits():
    data, place, query = sine(Key(3)), 2.5, np.array([1.7])
    X, y = np.append(data.x, place)[:, None], np.append(data.y, np.sin(place))
    kernel = kernels.rbf(1.0)
    with_it, _ = posterior(X, y, query, kernel, 0.01)
    without, _ = posterior(data.x[:, None], data.y, query, kernel, 0.01)
    found = data.at(place, query).mean_distance[-1, 0]
    assert found == pytest.approx(0.5 * (with_it - without) ** 2, rel=1e-9)


def test_scans_pass_through_the_record():
    images = load_images(None, 40, Key(0))
    records = np.array([3, 5, 8])
    x = scales(5)
    found = scan(
        images.X, images.y, records, kernels.rbf(3.0), x, directions(3, 64, Key(1)),
        noise_variance=0.01,
    )  # fmt: skip
    assert found.kl[:, 2] == pytest.approx(found.own, rel=1e-9)
    assert (found.peaks == 0.0).all()


def test_a_scan_that_peaks_elsewhere_turns_the_verdict(monkeypatch):
    def elsewhere(X, y, records, kernel, x, R, *, noise_variance):
        kl = np.exp(-((x[None, :] - 5.0) ** 2) / 50.0) * np.ones((len(records), 1))
        return Scans(x, kl, kl[:, len(x) // 2])

    monkeypatch.setattr(lood_4, "scan", elsewhere)
    (claim,) = lood_4.make_b(asked("lood-4b")).claims
    assert claim.verdict == "does not hold"


def _found(kl, distance, auc):
    return Newcomers(kl, distance, auc, auc, auc, auc)


def test_the_better_measure_decides_the_verdict_of_figure_6():
    rng = np.random.default_rng(2)
    auc = rng.uniform(0.5, 1.0, size=60)
    noisy = rng.permutation(auc)
    images = dataclasses.replace(load_images(None, 10, Key(0)), stand_in=False)
    for kl, distance, verdict in ((auc, noisy, "holds"), (noisy, auc, "does not hold")):
        kinds = {name: _found(kl, distance, auc) for name in ("pictures", "uniform pixels")}
        claim = lood_6._stronger({"RBF": kinds}, Order(), images)
        assert claim.verdict == verdict


@pytest.mark.parametrize(
    ("below", "verdict"), [(0, "holds"), (1, "does not hold"), (5, "does not hold")]
)
def test_a_claim_about_every_record_is_judged_as_one(below, verdict, monkeypatch):
    """Fig. 5: one record that leaks less with GELU is enough, on the sphere too."""
    X = np.random.default_rng(4).normal(size=(12, 3))
    relu = np.linspace(0.6, 0.8, 12)
    gelu = relu + np.where(np.arange(12) < below, -0.01, 0.01)
    areas = iter([relu, gelu])
    monkeypatch.setattr(lood_5, "by_process", lambda K, y, noise: SimpleNamespace(auc=next(areas)))
    found = [
        SimpleNamespace(
            predicted=SimpleNamespace(auc=auc),
            problem=SimpleNamespace(X=X, y=np.ones(12)),
            scale=SimpleNamespace(depth=1),
            noise_variance=0.05,
        )
        for auc in (relu, gelu)
    ]
    claim = lood_5._process(*found)
    assert claim.verdict == verdict
    assert claim.erratum == ("lood 1" if below else None)


def test_a_gap_that_grows_for_every_record_grows_for_each():
    grows = np.array([[1.2, 0.9], [1.5, 0.8], [2.0, 0.5]])
    # Its median grows, and one record's gap does not.
    mostly = np.column_stack([np.repeat(grows[:, :1], 4, axis=1), [1.3, 1.2, 1.1]])
    depths = (2, 6, 10)
    for printed, correct, verdict in (
        (grows, grows, "holds"),
        (mostly, grows, "holds with the erratum"),
        (mostly, mostly, "does not hold"),
    ):
        assert _gap_grows(printed, correct, depths).verdict == verdict


def test_consistently_is_more_than_most():
    assert Share(13, 20).above(lood_8.CONSISTENTLY) is False
    assert Share(20, 20).above(lood_8.CONSISTENTLY) is None
    assert Share(60, 60).above(lood_8.CONSISTENTLY) is True
    assert Share(12, 12).every
    assert not Share(11, 12).every


def test_no_auc_exceeds_the_bound_from_its_kl():
    # Two normals one deviation apart: KL 1/2, AUC known.
    auc = stats.norm.cdf(1.0 / np.sqrt(2.0))
    assert auc < lood_6.largest_auc(np.array([0.5]))[0] < 1.0
    assert lood_6.largest_auc(np.array([0.0]))[0] == 0.5


def _group(recovered):
    search = lood.search_query(
        np.arange(8.0).reshape(4, 2), np.ones(4), leave_out=[0, 1, 2], queries=3,
        kernel=kernels.rbf(1.0), noise_variance=0.1, starts=2, steps=2,
    )  # fmt: skip
    found = dataclasses.replace(search, recovered=np.array(recovered, dtype=bool))
    return GroupRun((0, 1, 2), np.array([3.0, 2.0, 1.0]), {1: found, 3: found})


@pytest.mark.parametrize(
    ("often", "groups", "verdicts"),
    [
        ([[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]], 40, ("holds", "holds")),
        ([[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]], 4, ("cannot tell", "holds")),
        ([[1, 1, 0], [1, 0, 0]], 40, ("does not hold", "holds")),
        # The more exposed, the more often: the middle one counts too.
        ([[1, 0, 0], [0, 0, 0]], 40, ("holds", "cannot tell")),
        ([[1, 0, 1], [1, 0, 1]], 40, ("does not hold", "does not hold")),
        ([[0, 0, 1], [0, 0, 1]], 40, ("does not hold", "does not hold")),
    ],
)
def test_counts_of_groups_decide_the_verdict(often, groups, verdicts):
    runs = [_group(often)] * groups
    claims = lood_e2._claims(runs, lood_e2.counts(runs, Key(0)), Key(1))[1:]
    assert tuple(claim.verdict for claim in claims) == verdicts


def test_a_mean_over_groups_holds_its_share():
    found = lood_e2.over_groups(np.zeros(10), Key(0))
    assert (found.value, found.low) == (0.0, pytest.approx(0.0, abs=1e-12))
    assert 0.2 < found.high < 0.35  # Wilson's for 0 of 10 is 0.278
    assert isinstance(found, Interval)


def test_several_queries_reach_the_record_and_no_further():
    images = load_images(None, 30, Key(0))
    kernel, records = kernels.nngp(depth=1), np.array([2, 9, 12, 20])
    found = several_queries(
        images.X, images.y, records, kernel, 2, Key(1), noise_variance=0.01, steps=200
    )
    assert (found <= 1.0 + 1e-8).all()
    assert np.median(found) > 0.99


def test_ratios_and_bounds_of_section_6():
    X = np.random.default_rng(0).normal(size=(30, 6))
    y = np.sign(X[:, 0])
    sphere = on_sphere(X)
    assert np.mean(sphere**2, axis=1) == pytest.approx(1.0)
    table = bound_table(sphere, y, (1,))
    assert (table["KL bound"] >= table["largest KL"]).all()
    found, _ = ratios(sphere, y, (1,), noise=0.1)
    relu, gelu = (
        lood.all_records(kernels.nngp(1, phi)(sphere), y, noise_variance=0.1).kl
        for phi in ("relu", "gelu")
    )
    assert found[0] == pytest.approx(relu / gelu)


@pytest.mark.parametrize("module", [lood_7, lood_12])
def test_the_same_key_gives_the_same_tables(module):
    (figure,) = module.FIGURES
    once, again, other = (figure.make(asked(figure.name, key=Key(seed))) for seed in (1, 1, 2))
    for one, two in zip(once.panels, again.panels, strict=True):
        assert one.table.equals(two.table)
    assert not once.panels[0].table.equals(other.panels[0].table)


def test_the_proof_s_term_is_an_erratum_whatever_the_draw():
    claims = {claim.text: claim for claim in lood_7.make(asked("lood-7", key=Key(5))).claims}
    turned = [claim for claim in claims.values() if claim.erratum == "lood 7"]
    assert [claim.verdict for claim in turned] == ["holds with the erratum"] * 2


def test_the_published_point_is_marked(monkeypatch):
    monkeypatch.setattr(lood_11, "REDRAWN", {"quick": 1, "full": 1})
    made = lood_11.make(asked("lood-11"))
    assert any("the paper's S* = 3.899" in str(name) for name in made.panels[0].table["curve"])


def test_where_a_run_begins_is_its_start_and_the_correlation_that_of_a_refit():
    """The starts are drawn a second time for Figs. 14 to 19: LOOD there is the trace's first."""
    images = load_images(None, 24, Key(3))
    kernel, noise, rows = kernels.nngp(depth=2), 0.05, [3, 11]
    found = lood.search_each(
        images.X, images.y, records=rows, kernel=kernel, noise_variance=noise, climb="lood",
        starts=1, steps=2, box=(0.0, 1.0), random_state=Key(8),
    )  # fmt: skip
    runs = Runs(images, kernel, 2, Key(8), {"lood": found})
    correlations = lood_14.start_correlations(runs, noise)
    for one, row, correlation in zip(found, rows, correlations, strict=True):
        begin = Key(8).child(row).generator().uniform(size=(1, images.X.shape[1]))
        there = lood.distinguish(
            images.X, images.y, leave_out=[row], queries=begin, kernel=kernel, noise_variance=noise
        )
        assert one.trace[0, 0] == pytest.approx(there.kl, rel=1e-8)
        others = np.delete(images.X, row, axis=0)
        asked = np.vstack([begin, images.X[[row]]])
        cross = kernel(asked, others)
        inverse = np.linalg.inv(kernel(others) + noise * np.eye(len(others)))
        covariance = kernel(asked) - cross @ inverse @ cross.T
        expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
        assert correlation == pytest.approx(expected, rel=1e-8)


def test_a_sheet_has_each_record_above_its_query(monkeypatch):
    images = load_images(None, 10, Key(0))
    drawn = {}

    def drawing(whole, *others, **named):
        drawn["whole"] = whole
        return b""

    monkeypatch.setattr("papers.lood_images.png", drawing)
    images.sheet("five", images.X[:5], 1.0 - images.X[:5], 3)
    whole = drawn["whole"]
    assert whole.shape == (2 * (2 * 8 + 4) - 3, 3 * 9 - 1)
    np.testing.assert_array_equal(whole[20:28, 9:17], images.X[4].reshape(8, 8))
    np.testing.assert_array_equal(whole[29:37, 9:17], 1.0 - images.X[4].reshape(8, 8))
    # White where there is no sixth pair.
    assert (whole[20:, 18:] == 1.0).all()


def test_all_six_numbers_are_one_figure():
    assert {find_figure(f"lood-{part}").name for part in range(14, 20)} == {"lood-14"}
