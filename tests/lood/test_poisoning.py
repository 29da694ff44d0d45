"""The point whose adding changes most what a record leaks, against refits with the point added."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope import InputError, kernels, lood

NOISE = 0.1


@pytest.fixture(params=[1, 3])
def problem(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(15, 2))
    y = rng.normal(size=15 if request.param == 1 else (15, request.param))
    return X, y, kernels.rbf(1.0)


def refitted(X, y, record, point, label, kernel):
    """The record's KL in an audit of all records and the point."""
    with_point = (
        np.vstack([X, point]),
        np.concatenate([y, np.atleast_1d(label).reshape(1, *y.shape[1:])]),
    )
    found = lood.all_records(kernel(with_point[0]), with_point[1], noise_variance=NOISE)
    return found.kl[record], found


@pytest.mark.parametrize("kernel", [kernels.rbf(1.0), kernels.nngp(2, bias_variance=0.1)])
def test_every_added_point_is_that_of_a_refit(problem, kernel):
    X, y, _ = problem
    rng = np.random.default_rng(9)
    points = np.vstack([rng.normal(size=(6, 2)), X[[4]]])
    labels = rng.normal(size=(7, *y.shape[1:]))
    found = lood.leakage_with_point(
        X, y, record=4, points=points, labels=labels, kernel=kernel, noise_variance=NOISE
    )
    alone = lood.all_records(kernel(X), y, noise_variance=NOISE)
    assert found.kl_before == pytest.approx(alone.kl[4], rel=1e-9)
    for j in range(7):
        kl, whole = refitted(X, y, 4, points[j], labels[j], kernel)
        assert found.kl[j] == pytest.approx(kl, rel=1e-8)
        assert found.excess[j] == pytest.approx(whole.excess[4], rel=1e-8)
        np.testing.assert_allclose(found.residual[j], whole.residual[4], rtol=1e-8)
    # A point takes variance away, whatever its label.
    assert (found.excess <= alone.excess[4]).all()


@pytest.mark.parametrize("aim", ["raise", "lower"])
def test_the_search_finds_what_a_grid_does(aim):
    rng = np.random.default_rng(2)
    X, y, kernel = rng.normal(size=(30, 1)), rng.normal(size=30), kernels.rbf(0.5)
    box = (-2.0, 2.0)
    for record in (0, 7, 11):
        found = lood.poisoning_point(
            X, y, record=record, kernel=kernel, noise_variance=NOISE, aim=aim, box=box,
            starts=12, random_state=0,
        )  # fmt: skip
        at, label = np.meshgrid(np.linspace(*box, 401), np.linspace(y.min(), y.max(), 81))
        grid = lood.leakage_with_point(
            X, y, record=record, points=at.reshape(-1, 1), labels=label.ravel(), kernel=kernel,
            noise_variance=NOISE,
        ).kl  # fmt: skip
        if aim == "raise":
            assert found.kl >= grid.max() * (1 - 1e-9)
            assert found.kl == pytest.approx(grid.max(), rel=1e-3)
            # The most revealing label is an end of the range.
            assert found.label[0] in (y.min(), y.max())
        else:
            assert found.kl <= grid.min() * (1 + 1e-9)
            assert found.kl == pytest.approx(grid.min(), rel=0.02)
        kl, _ = refitted(X, y, record, found.point, found.label, kernel)
        assert found.kl == pytest.approx(kl, rel=1e-8)
        assert len(found.values) == 12


def test_of_classes_the_label_is_a_class():
    rng = np.random.default_rng(4)
    X, classes = rng.normal(size=(20, 2)), rng.integers(0, 3, size=20)
    y = np.eye(3)[classes] - 1 / 3
    found = lood.poisoning_point(
        X, y, record=2, kernel=kernels.rbf(1.0), noise_variance=NOISE, starts=4, random_state=0
    )
    assert found.kl > found.kl_before
    assert np.isclose(found.label.max(), 2 / 3)
    assert found.label.argmax() != classes[2]
    only = lood.poisoning_point(
        X, y, record=2, kernel=kernels.rbf(1.0), noise_variance=NOISE, starts=2, random_state=0,
        labels=y[[2]],
    )  # fmt: skip
    np.testing.assert_array_equal(only.label, y[2])
    assert only.kl <= found.kl


def test_refusals(problem):
    X, y, kernel = problem
    of = {"record": 1, "kernel": kernel, "noise_variance": NOISE}
    with pytest.raises(InputError, match="aim must be raise or lower"):
        lood.poisoning_point(X, y, aim="hide", **of)
    with pytest.raises(InputError, match="points must be rows of 2 features"):
        lood.leakage_with_point(X, y, points=[[1.0]], labels=np.zeros(1), **of)
    with pytest.raises(InputError, match="outputs"):
        lood.leakage_with_point(X, y, points=X[:1], labels=np.zeros((1, 2)), **of)
    with pytest.raises(InputError, match="labels must be finite"):
        lood.poisoning_point(X, y, labels=np.full((1, y[0].size), np.nan), **of)
    with pytest.raises(InputError, match="starts and steps"):
        lood.poisoning_point(X, y, starts=0, **of)
