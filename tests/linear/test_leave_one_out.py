"""Leave-one-out on a real design against refitting; spectra against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

from leakscope import linear
from leakscope.errors import InputError
from leakscope.laws import Normal
from leakscope.linear.spectrum import SpectrumDesign
from leakscope.measures import advantage

SIGMA, PRIOR = 0.8, 0.02


def diabetes_features(columns: int, records: int | None = None) -> NDArray[np.float64]:
    X = load_diabetes().data[:records] * np.sqrt(442)
    rng = np.random.default_rng(1)
    lifted = np.cos(X @ rng.standard_normal((10, columns)) + rng.uniform(0, 2 * np.pi, columns))
    return np.asarray(lifted * np.sqrt(2.0))


def refit(X: NDArray[np.float64], i: int, z: float) -> tuple[float, ...]:
    """Moments at record i from two fits, one with and one without it."""
    labels = PRIOR * X @ X.T + SIGMA**2 * np.eye(len(X))
    keep = np.arange(len(X)) != i
    out = []
    for rows, index in ((X, np.arange(len(X))), (X[keep], np.flatnonzero(keep))):
        if z == 0.0:
            w = np.linalg.lstsq(rows.T, X[i], rcond=None)[0]
        elif rows.shape[0] < rows.shape[1]:
            w = np.linalg.solve(rows @ rows.T + z * np.eye(len(rows)), rows @ X[i])
        else:
            w = rows @ np.linalg.solve(rows.T @ rows + z * np.eye(rows.shape[1]), X[i])
        out += [w @ labels[np.ix_(index, index)] @ w, w @ labels[index, i]]
    return tuple(float(x) for x in out)


@pytest.mark.parametrize(
    ("columns", "ridge", "records"),
    [(700, 0.01, None), (300, 0.0, 100), (300, 1e-3, 100), (20, 0.0, 100), (20, 0.5, 100)],
)
def test_equal_to_refitting_every_record(columns: int, ridge: float, records: int | None) -> None:
    X = diabetes_features(columns, records)
    found = linear.linear_leave_one_out(X, SIGMA, PRIOR, ridge)
    rows = range(0, len(X), 1 if records else 9)
    expected = np.array([refit(X, i, len(X) * ridge) for i in rows]).T
    got = (
        found.variance_with,
        found.covariance_with,
        found.variance_without,
        found.covariance_without,
    )
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine[list(rows)], other, rtol=1e-9)


def test_laws_of_the_users_records() -> None:
    X = diabetes_features(300, 100)
    found = linear.linear_leave_one_out(X, SIGMA, PRIOR)
    assert found.interpolates
    pair = found.law_pair()
    assert pair.batch_shape == (100,)
    assert pair.provenance.question == "leave_one_out"
    with pytest.raises(InputError, match="advantage 1"):
        found.law_pair("label_known")
    ridge = linear.linear_leave_one_out(X, SIGMA, PRIOR, 0.1)
    known, hidden = (
        np.asarray(advantage(ridge.law_pair(who))) for who in ("label_known", "label_hidden")
    )
    assert np.all(known >= hidden)


def test_what_cannot_be_left_out_is_refused() -> None:
    X = np.eye(4)[:, :2]
    with pytest.raises(InputError, match="Without record"):
        linear.linear_leave_one_out(X, 1.0, 1.0)
    with pytest.raises(InputError, match="dependent"):
        linear.linear_leave_one_out(np.ones((3, 5)), 1.0, 1.0)
    with pytest.raises(InputError, match="finite"):
        linear.linear_leave_one_out([[1.0, np.nan], [0.0, 1.0]], 1.0, 1.0)
    with pytest.raises(InputError, match="zero or above"):
        linear.linear_leave_one_out(np.eye(3), -1.0, 1.0)


@pytest.mark.parametrize("ridge", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("p", [60, 250])
def test_spectrum_agrees_with_simulation(p: int, ridge: float) -> None:
    n, trials = 120, 250
    rng = np.random.default_rng(p)
    spectrum = np.linspace(0.1, 3.0, p)
    x0 = np.sqrt(spectrum) * rng.standard_normal(p)
    found = np.empty((2, trials))
    for trial in range(trials):
        X = np.sqrt(spectrum) * rng.standard_normal((n, p))
        for own in (0, 1):
            if own:
                X[0] = x0
            if ridge == 0.0:
                w = np.linalg.lstsq(X.T, x0, rcond=None)[0]
            else:
                w = np.linalg.solve(X @ X.T + n * ridge * np.eye(n), X @ x0)
            through = X.T @ w
            found[own, trial] = 0.02 * (through @ through) + w @ w
    pair = linear.spectrum_law_pair(SpectrumDesign(spectrum, n, 1.0, 0.02, ridge), x0)
    for law, drawn in zip((pair.nonmember, pair.member), found, strict=True):
        assert isinstance(law, Normal)
        error = drawn.std(ddof=1) / np.sqrt(trials)
        # the limit's own bias is of order 1/n
        assert abs(float(law.sigma[0]) ** 2 - drawn.mean()) < 4.0 * error + 0.015 * drawn.mean()


def test_flat_spectrum_is_the_gaussian_design() -> None:
    for p, ridge in ((400, 0.0), (400, 0.5), (40, 0.0), (40, 0.5)):
        flat = SpectrumDesign(np.ones(p), 100, 1.0, 1.0 / p, ridge)
        x0 = np.ones((1, p))
        design = linear.GaussianDesign(100, p, p, 1.0, ridge)
        one = linear.spectrum_law_pair(flat, x0)
        other = linear.law_pair(design, method="asymptotic")
        for a, b in ((one.member, other.member), (one.nonmember, other.nonmember)):
            assert isinstance(a, Normal)
            assert isinstance(b, Normal)
            # Thm 3.2 keeps a p - n - 1 where the limit has p - n
            np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-9 if ridge else 0.01)
