from __future__ import annotations

import jax
import numpy as np
import pytest
from brute_force import kl_multivariate, refit_group
from sklearn.datasets import load_sample_images

from leakscope import kernels, lood, measures
from leakscope._numerics.x64 import double_precision
from leakscope.errors import InputError
from leakscope.laws import MultivariateNormal
from leakscope.lood import query_climb
from leakscope.lood.query_climb import as_jax

KERNELS = {
    "rbf": kernels.rbf(1.5),
    "matern": kernels.matern(2.5, 2.0),
    "exponential": kernels.matern(0.5, 2.0),
    "linear": kernels.linear(bias_variance=1.0),
    "relu": kernels.nngp(depth=2, activation="relu"),
}


def problem(n=20, d=4, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return X, y if outputs is None else np.column_stack([y, *rng.normal(size=(outputs - 1, n))])


@pytest.mark.parametrize("name", ["rbf", "matern", "exponential", "linear", "relu"])
def test_kernels_in_jax_are_the_kernels(name):
    X, _ = problem()
    with double_precision():
        found = np.asarray(as_jax(KERNELS[name])(X[:5], X))
    np.testing.assert_allclose(found, KERNELS[name](X[:5], X), rtol=1e-12, atol=2e-8)


def test_a_kernel_without_jax_is_refused_by_name():
    X, y = problem()
    with pytest.raises(InputError, match="the kernel matern cannot be differentiated"):
        lood.search_query(
            X, y, leave_out=[0], kernel=kernels.matern(1.0, 1.0), noise_variance=0.1, starts=1
        )


@pytest.mark.parametrize(
    ("name", "group", "queries", "outputs"), [("relu", [3], 1, None), ("rbf", [3, 7], 3, 2)]
)
def test_objective_against_refitting(name, group, queries, outputs):
    X, y = problem(outputs=outputs)
    kernel = KERNELS[name]
    Q = np.random.default_rng(1).normal(size=(queries, 4))
    member, nonmember = refit_group(
        kernel(X), y, 0.05, kernel(X, Q), kernel(Q), group, np.longdouble
    )
    with double_precision():
        fixed = query_climb.fixed_problem(X, y, np.array(group), kernel, 0.05)
        kl = query_climb.lood(kernel, "kl", fixed, Q[None])
        distance = query_climb.lood(kernel, "mean_distance", fixed, Q[None])
    # The jitter of 1e-10 is all that separates the two.
    np.testing.assert_allclose(float(kl[0]), float(kl_multivariate(nonmember, member)), rtol=1e-6)
    shift = float(((member[0] - nonmember[0]) ** 2).sum() / 2)
    np.testing.assert_allclose(float(distance[0]), shift, rtol=1e-9)


@pytest.mark.parametrize(("channels", "group"), [(2, [3, 7]), (1, [3])])
def test_data_dependent_normalisation_against_refitting(channels, group):
    X, y = problem()
    X = 3.0 * X + 5.0
    kernel = kernels.rbf(1.5)
    Q = 3.0 * np.random.default_rng(1).normal(size=(2, 4)) + 5.0
    laws = []
    for kept in (np.arange(len(X)), np.delete(np.arange(len(X)), group)):
        pixels = X[kept].reshape(-1, channels)
        mean, deviation = (np.tile(v, 4 // channels) for v in (pixels.mean(0), pixels.std(0)))
        rows, asked = (X[kept] - mean) / deviation, (Q - mean) / deviation
        solved = np.linalg.solve(
            kernel(rows) + 0.05 * np.eye(len(rows)), np.column_stack([y[kept], kernel(rows, asked)])
        )
        cross = kernel(asked, rows)
        laws.append((cross @ solved[:, :1], kernel(asked) - cross @ solved[:, 1:]))
    with double_precision():
        both = query_climb.normalised_problem(X, y, np.array(group), kernel, 0.05, channels)
        kl = float(query_climb.lood(kernel, "kl", both, Q[None])[0])
    np.testing.assert_allclose(kl, float(kl_multivariate(laws[1], laws[0])), rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "climb"), [("rbf", "mean_distance"), ("relu", "kl"), ("matern", "correlation")]
)
def test_slopes_against_differences(name, climb):
    X, y = problem()
    kernel = KERNELS[name]
    Q = np.random.default_rng(2).normal(size=(1, 1, 4))
    with double_precision():
        fixed = query_climb.fixed_problem(X, y, np.array([3]), kernel, 0.05)
        _, _, uphill = query_climb.slope(kernel, climb, fixed, Q)
        for feature in range(4):
            step = np.zeros_like(Q)
            step[0, 0, feature] = 1e-6
            high, low = (
                float(query_climb.slope(kernel, climb, fixed, Q + sign * step)[0][0])
                for sign in (1.0, -1.0)
            )
            assert float(uphill[0, 0, feature]) == pytest.approx((high - low) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "climb"),
    [
        ("rbf", "lood"),
        ("rbf", "correlation"),
        ("exponential", "lood"),
        ("linear", "correlation"),
        ("relu", "lood"),
        ("matern", "correlation"),
    ],
)
def test_no_query_reveals_more_than_the_record(name, climb):
    """The theorem: f(x_i) is sufficient, whatever the kernel; and one start finds it."""
    X, y = problem()
    found = lood.search_query(
        X, y, leave_out=[3], kernel=KERNELS[name], noise_variance=0.05, climb=climb, starts=8
    )
    assert 0.99 < found.ratio <= 1.0 + 1e-9
    assert (found.values <= found.lood_at_record * (1.0 + 1e-9)).all()
    assert found.trace.shape == (301, 8)
    assert found.trace.max() <= found.lood_at_record * (1.0 + 1e-9)
    own = lood.all_records(KERNELS[name](X), y, noise_variance=0.05).kl[3]
    assert found.lood_at_record == pytest.approx(own, rel=1e-9)
    if name not in ("relu", "linear"):
        assert found.relative_distance[0] < 1e-2
        assert found.prediction_kl[0] < 1e-2
    # Without bias a ReLU network does not see a query's length.
    assert found.cosine[0] > 0.999 or name == "linear"


@pytest.mark.parametrize(("group", "queries"), [([3], 4), ([3, 7], 1)])
def test_no_set_of_queries_reveals_more_than_the_group(group, queries):
    X, y = problem()
    found = lood.search_query(
        X, y, leave_out=group, queries=queries, kernel=KERNELS["rbf"], noise_variance=0.05
    )
    assert found.ratio <= 1.0 + 1e-9
    assert found.recovered.shape == (8, len(group))
    assert found.recovered.any()
    assert set(found.nearest.tolist()) <= set(group)


def test_searches_of_many_records_are_those_of_each():
    X, y = problem(outputs=2)
    settings = {"kernel": KERNELS["rbf"], "noise_variance": 0.05}
    together = lood.search_each(X, y, records=[3, 7], starts=4, random_state=1, **settings)
    (alone,) = lood.search_each(X, y, records=[7], starts=4, random_state=1, **settings)
    np.testing.assert_allclose(together[1].queries, alone.queries, atol=1e-6)
    for found in together:
        own = lood.distinguish(X, y, leave_out=found.leave_out, **settings)
        there = lood.distinguish(X, y, leave_out=found.leave_out, queries=found.query, **settings)
        assert found.lood_at_record == pytest.approx(own.kl, rel=1e-9)
        assert found.lood == pytest.approx(there.kl, rel=1e-6)
        assert found.ratio <= 1.0 + 1e-9
        assert found.trace.shape == (301, 4)
    assert together[1].prediction_kl[0] < 1e-2


def test_several_queries_for_each_of_many_records():
    X, y = problem(outputs=2)
    settings = {"kernel": KERNELS["rbf"], "noise_variance": 0.05}
    both = lood.search_each(X, y, records=[3, 7], queries=2, starts=3, random_state=1, **settings)
    assert [found.leave_out for found in both] == [(3,), (7,)]
    for found in both:
        (record,) = found.leave_out
        asked = {"leave_out": [record], **settings}
        there = lood.distinguish(X, y, queries=found.query, **asked)
        own = lood.distinguish(X, y, **asked)
        assert found.query.shape == (2, X.shape[1])
        assert found.queries.shape == (3, 2, X.shape[1])
        assert found.lood == pytest.approx(there.kl, rel=1e-6)
        assert found.lood_at_record == pytest.approx(own.kl, rel=1e-9)
        assert found.nearest.tolist() == [record, record]
        # What the trained model answers at the queries and at the record, by another route.
        mean, variance = there.mean_with, np.diagonal(there.covariance_with)
        shift = np.sum((own.mean_with.reshape(1, -1) - mean.reshape(2, -1)) ** 2, axis=1)
        ratio = own.covariance_with[0, 0] / variance
        expected = 0.5 * (2 * (ratio - 1.0 - np.log(ratio)) + shift / variance)
        np.testing.assert_allclose(found.prediction_kl, expected, rtol=1e-6, atol=1e-9)
    with pytest.raises(InputError, match="queries, starts and steps"):
        lood.search_each(X, y, records=[3], queries=0, **settings)


def test_mean_distance_has_no_such_bound():
    X, y = problem()
    found = lood.search_query(
        X,
        y,
        leave_out=[3],
        objective="mean_distance",
        kernel=KERNELS["rbf"],
        noise_variance=0.05,
    )
    assert found.climb == "mean_distance"
    assert found.ratio > 1.01


def test_data_dependent_normalisation_is_the_exception():
    X, y = problem()
    found = lood.search_query(
        X,
        y,
        leave_out=[3],
        kernel=kernels.nngp(depth=1),
        noise_variance=0.05,
        normalise_channels=4,
    )
    assert found.climb == "kl"
    assert found.ratio > 1.02


def test_normalised_without_bias_the_training_mean_reveals_without_bound():
    X, y = problem()
    kernel = kernels.nngp(depth=1)
    with double_precision():
        both = query_climb.normalised_problem(X, y, np.array([3]), kernel, 0.05, 4)
        asked = np.stack([X[3], X.mean(axis=0) + 1e-3, X.mean(axis=0) + 1e-5])
        own, near, nearer = np.asarray(query_climb.lood(kernel, "kl", both, asked[:, None, :]))
    assert near > 10.0 * own
    assert nearer > 1000.0 * near


def test_starts_near_known_records_find_what_the_flat_box_hides():
    """In ten dimensions a random point of the box is far from everything under a short RBF."""
    X, y = problem(n=40, d=10)
    given = {"leave_out": [3], "kernel": kernels.rbf(1.5), "noise_variance": 0.05, "starts": 6}
    near = lood.search_query(X, y, begin="both", **given)
    far = lood.search_query(X, y, begin="box", **given)
    assert near.starts_recovered > far.starts_recovered
    assert near.ratio > 0.999


def test_queries_stay_in_the_box_and_seeds_repeat():
    X, y = problem()
    settings = {
        "leave_out": [3],
        "kernel": KERNELS["rbf"],
        "noise_variance": 0.05,
        "box": (-0.5, 0.25),
    }
    found = lood.search_query(X, y, random_state=5, **settings)
    assert found.queries.min() >= -0.5
    assert found.queries.max() <= 0.25
    again = lood.search_query(X, y, random_state=5, **settings)
    np.testing.assert_array_equal(found.queries, again.queries)
    other = lood.search_query(X, y, random_state=6, **settings)
    assert not np.array_equal(found.queries, other.queries)


def test_jax_keeps_its_configuration():
    X, y = problem()
    before = jax.config.jax_enable_x64
    found = lood.search_query(X, y, leave_out=[3], kernel=KERNELS["rbf"], noise_variance=0.05)
    assert found.query.dtype == np.float64
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"leave_out": [99]}, "leave_out names row 99"),
        ({"leave_out": list(range(20))}, "leave_out names every record"),
        ({"starts": 0}, "at least 1, but they are 1, 0 and 300"),
        ({"objective": "auc"}, "objective must be kl or mean_distance"),
        ({"climb": "up"}, "climb must be auto, lood or correlation"),
        ({"climb": "correlation", "queries": 2}, "is for one record, one query"),
        ({"box": (1.0, 0.0)}, "its least values not above its largest"),
        ({"box": (np.zeros(3), np.ones(3))}, "one for each of 4 features"),
        ({"normalise_channels": 3}, "must divide the 4 features"),
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence):
    X, y = problem()
    settings = {"leave_out": [3], "kernel": KERNELS["rbf"], "noise_variance": 0.05, **changes}
    with pytest.raises(InputError, match=sentence):
        lood.search_query(X, y, **settings)


def crops_of_photographs(count: int = 40, side: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Pictures cut from the two photographs that scikit-learn ships, a quarter of their size."""
    rng = np.random.default_rng(0)
    found, labels = [], []
    for label, photograph in enumerate(load_sample_images().images):
        height, width = (length // 4 for length in photograph.shape[:2])
        pixels = photograph[: 4 * height, : 4 * width].astype(float) / 255.0
        small = pixels.reshape(height, 4, width, 4, 3).mean(axis=(1, 3))
        for _ in range(count):
            top, left = rng.integers(0, height - side + 1), rng.integers(0, width - side + 1)
            found.append(small[top : top + side, left : left + side].ravel())
            labels.append(label - 0.5)
    order = rng.permutation(2 * count)
    return np.array(found)[order], np.array(labels)[order]


def test_images_are_recovered():
    """Climbing LOOD some starts end at colour-flipped images; climbing the correlation, none."""
    X, y = crops_of_photographs()
    shares = {"lood": [], "correlation": []}
    for climb, recovered in shares.items():
        for record in range(3):
            found = lood.search_query(
                X,
                y,
                leave_out=[record],
                kernel=kernels.rbf(),
                noise_variance=0.01,
                climb=climb,
                box=(0.0, 1.0),
                starts=6,
                steps=200,
            )
            assert found.ratio <= 1.0 + 1e-8
            recovered.append(found.starts_recovered)
    assert shares["correlation"] == [6, 6, 6]
    assert 0 < sum(shares["lood"]) < 18


def test_laws_under_data_dependent_normalisation_are_those_of_two_fits() -> None:
    """Against scikit-learn's process, fitted on records normalised by their own training set."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    from leakscope.lood.query_search import normalised_pair

    rng = np.random.default_rng(3)
    X = rng.normal(2.0, 3.0, size=(15, 4))
    y, asked, group = np.sin(X[:, 0]), rng.normal(2.0, 3.0, size=(2, 4)), [2, 7]
    pair = normalised_pair(
        X,
        y,
        leave_out=group,
        kernel=kernels.rbf(1.5),
        noise_variance=0.1,
        channels=2,
        queries=asked,
    )
    answers = []
    for kept in (np.arange(15), np.delete(np.arange(15), group)):
        pixels = X[kept].reshape(-1, 2)
        mean, deviation = np.tile(pixels.mean(0), 2), np.tile(pixels.std(0), 2)
        process = GaussianProcessRegressor(RBF(1.5), alpha=0.1, optimizer=None)
        process.fit((X[kept] - mean) / deviation, y[kept])
        answers.append(process.predict((asked - mean) / deviation, return_cov=True))
    (mean_with, with_group), (mean_without, without) = answers
    assert isinstance(pair.member, MultivariateNormal)
    assert isinstance(pair.nonmember, MultivariateNormal)
    np.testing.assert_allclose(pair.member.mean, mean_with - mean_without, atol=1e-9)
    np.testing.assert_allclose(pair.member.covariance, with_group, atol=1e-9)
    np.testing.assert_allclose(pair.nonmember.covariance, without, atol=1e-9)
    found = lood.search_query(
        X, y, leave_out=group, kernel=kernels.rbf(1.5), noise_variance=0.1, queries=2, starts=2,
        steps=5, normalise_channels=2, random_state=0,
    )  # fmt: skip
    own = normalised_pair(
        X, y, leave_out=group, kernel=kernels.rbf(1.5), noise_variance=0.1, channels=2
    )
    assert found.lood_at_record == pytest.approx(float(measures.kl(own)), rel=1e-6)
