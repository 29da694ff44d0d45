"""Predictions against scikit-learn, leakage against the audit, refits and quadrature."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.metrics import accuracy_score, r2_score

import leakscope
from leakscope import kernels, lood, measures
from leakscope.errors import InputError
from leakscope.estimators import AuditedClassifier, AuditedRegressor, LeakageAuditor
from leakscope.estimators.gaussian_process import Classes
from leakscope.laws import LawPair, MultivariateNormal


def data(n: int = 60, d: int = 3, seed: int = 0, outputs: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(X[:, 0] + c) + 0.3 * X[:, 1] + 5.0 for c in range(outputs)])
    Y = Y + 0.1 * rng.standard_normal(Y.shape)
    return X, Y[:, 0] if outputs == 1 else Y, rng.standard_normal((25, d))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"length_scale": 1.3}, RBF(1.3)),
        ({"length_scale": 0.7, "kernel_variance": 4.0}, ConstantKernel(4.0) * RBF(0.7)),
        ({"kernel": "matern", "length_scale": 2.0, "smoothness": 2.5}, Matern(2.0, nu=2.5)),
        ({"kernel": "linear", "bias_variance": 0.25}, DotProduct(0.5)),
    ],
    ids=["rbf", "scaled rbf", "matern", "linear"],
)
def test_predictions_are_scikit_learns(
    ours: Any, theirs: Any, normalize_y: bool, outputs: int
) -> None:
    X, y, queries = data(outputs=outputs)
    mine = AuditedRegressor(**ours, noise_variance=0.05, normalize_y=normalize_y).fit(X, y)
    other = GaussianProcessRegressor(
        theirs, alpha=0.05, optimizer=None, normalize_y=normalize_y
    ).fit(X, y)
    mean, sigma = mine.predict(queries, return_std=True)
    expected, spread = other.predict(queries, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(mine.predict(queries), expected, rtol=1e-8, atol=1e-8)
    if outputs > 1 and not normalize_y:
        spread = np.tile(spread.reshape(len(queries), -1)[:, :1], (1, outputs))
    np.testing.assert_allclose(sigma, spread, rtol=1e-7, atol=1e-8)


def test_feature_route_is_taken_and_keeps_scikit_learns_answers() -> None:
    X, y, queries = data(n=300)
    mine = AuditedRegressor("linear", bias_variance=1.0, noise_variance=0.2).fit(X, y)
    assert mine.posterior_.route == "features"
    assert mine.posterior_.lower.shape == (4, 4)
    other = GaussianProcessRegressor(DotProduct(1.0), alpha=0.2, optimizer=None).fit(X, y)
    np.testing.assert_allclose(mine.predict(queries), other.predict(queries), rtol=1e-8)
    np.testing.assert_allclose(
        mine.posterior_.covariance(queries),
        other.predict(queries, return_cov=True)[1],
        atol=1e-10,
    )


def test_nystrom_is_the_process_with_the_approximate_prior() -> None:
    """Against the covariance through the inducing records, built and conditioned as matrices."""
    X, y, queries = data(n=40)
    k, s2, scale, rows = kernels.rbf(1.5), 0.1, 1.7, np.arange(3, 39, 3)
    trained = lood.posterior(
        X, y, kernel=k, noise_variance=s2, kernel_scale=scale, route="nystrom", inducing=rows
    )
    u = X[rows]
    both = np.vstack([X, queries])
    seen = scale * k(both, u) @ np.linalg.solve(k(u), k(u, both))
    M, cross = seen[:40, :40] + s2 * np.eye(40), seen[:40, 40:]
    mean, variance = trained.at(queries)
    np.testing.assert_allclose(mean, cross.T @ np.linalg.solve(M, y), rtol=1e-4, atol=1e-6)
    own = scale - np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross))
    np.testing.assert_allclose(variance, own, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.diagonal(trained.covariance(queries)), variance, rtol=1e-8)
    with pytest.raises(InputError, match="row numbers of its inducing records"):
        lood.posterior(X, y, kernel=k, noise_variance=s2, route="nystrom")


def test_nystrom_with_every_record_inducing_is_dense() -> None:
    X, y, queries = data()
    settings = {"length_scale": 1.0, "noise_variance": 0.1}
    dense = AuditedRegressor(**settings).fit(X, y)
    close = AuditedRegressor(**settings, route="nystrom", inducing=60).fit(X, y)
    assert close.posterior_.route == "nystrom"
    np.testing.assert_allclose(close.predict(queries), dense.predict(queries), rtol=1e-5)
    np.testing.assert_allclose(close.leakage_, dense.leakage_, rtol=1e-5)
    assert close.trusted_.all()


def test_kernel_scale_and_noise_that_the_data_chose_are_used_for_predictions() -> None:
    X, y, queries = data()
    mine = AuditedRegressor(
        length_scale=1.0, noise_variance="marginal_likelihood", fit_kernel_scale=True
    ).fit(X, y)
    s2, scale = mine.result_.details.noise_variance, mine.result_.details.kernel["fitted_scale"]
    other = GaussianProcessRegressor(ConstantKernel(scale) * RBF(1.0), alpha=s2, optimizer=None)
    np.testing.assert_allclose(mine.predict(queries), other.fit(X, y).predict(queries), rtol=1e-7)
    np.testing.assert_allclose(mine.predict(X), mine.result_.laws.separation.mean_with, rtol=1e-8)


@pytest.mark.parametrize("kind", [LeakageAuditor, AuditedRegressor])
@pytest.mark.parametrize("outputs", [1, 2])
def test_leakage_is_the_audits(kind: Any, outputs: int) -> None:
    X, y, _ = data(outputs=outputs)
    k = kernels.matern(nu=1.5, length_scale=1.0)
    model = kind(k, noise_variance=0.1).fit(X, y)
    result = leakscope.audit(X, y, kernel=k, noise_variance=0.1)
    np.testing.assert_allclose(model.leakage_, result.advantage, rtol=1e-12)
    np.testing.assert_allclose(model.kl_, result.kl, rtol=1e-12)
    np.testing.assert_allclose(model.auc_, result.auc, rtol=1e-12)
    assert model.ranking_ == result.ranking()


def test_auditor_has_groups_and_ranges_of_ranks() -> None:
    X, y, _ = data()
    people = np.arange(60) // 2
    found = LeakageAuditor(length_scale=1.0, sensitivity=True).fit(X, y, groups=people)
    result = leakscope.audit(X, y, kernel=kernels.rbf(1.0), groups=people)
    np.testing.assert_allclose(found.leakage_, result.advantage, rtol=1e-10)
    assert found.leakage_.shape == (30,)
    assert found.to_frame()["rank_high"].notna().all()


def total_variation(m1: float, s1: float, m0: float, s0: float) -> float:
    low, high = min(m1 - 12 * s1, m0 - 12 * s0), max(m1 + 12 * s1, m0 + 12 * s0)
    gap = lambda t: abs(stats.norm.pdf(t, m1, s1) - stats.norm.pdf(t, m0, s0))  # noqa: E731
    return 0.5 * integrate.quad(gap, low, high, limit=500, points=sorted([m0, m1]))[0]


@pytest.mark.parametrize(
    ("release", "added"), [("draw", 0.0), ("draw", 0.03), ("mean", 0.03), ("mean", 1.0)]
)
def test_leakage_of_what_is_released_against_refits(release: str, added: float) -> None:
    """scikit-learn fitted twice, with and without the record; the distance by quadrature."""
    X, y, _ = data(n=25)
    model = AuditedRegressor(
        length_scale=1.2, noise_variance=0.1, release=release, output_noise_variance=added
    ).fit(X, y)
    for i in (0, 7, int(np.argmax(model.leakage_))):
        laws = []
        for rows in (slice(None), np.arange(25) != i):
            refit = GaussianProcessRegressor(RBF(1.2), alpha=0.1, optimizer=None)
            mean, sigma = refit.fit(X[rows], y[rows]).predict(X[i : i + 1], return_std=True)
            variance = (sigma[0] ** 2 if release == "draw" else 0.0) + added
            laws.append((mean[0], np.sqrt(variance)))
        (m1, s1), (m0, s0) = laws
        assert model.leakage_[i] == pytest.approx(total_variation(m1, s1, m0, s0), abs=2e-6)
        kl = np.log(s1 / s0) + (s0**2 + (m1 - m0) ** 2) / (2 * s1**2) - 0.5
        assert model.kl_[i] == pytest.approx(kl, rel=1e-5)
    pair = model.law_pair()
    np.testing.assert_allclose(measures.advantage(pair), model.leakage_, rtol=1e-12)
    statements = " ".join(entry.statement for entry in pair.provenance.assumptions)
    assert pair.provenance.observes == ("latent" if added == 0.0 else "prediction")
    assert ("posterior mean" in statements) == (release == "mean")
    assert ("draw of" in statements) == (release == "draw")


def test_more_output_noise_never_leaks_more() -> None:
    X, y, _ = data()
    found = [
        AuditedRegressor(length_scale=1.0, output_noise_variance=added).fit(X, y).leakage_
        for added in (0.0, 1e-4, 1e-2, 1.0)
    ]
    assert all((later <= earlier + 1e-12).all() for earlier, later in itertools.pairwise(found))


@pytest.mark.parametrize("release", ["draw", "mean"])
def test_k_answers_of_one_call_are_worth_one_with_a_kth_of_the_noise(release: str) -> None:
    """The joint laws of k answers at one record, as vectors, against the leakage at v/k."""
    X, y, _ = data(n=30)
    k, added = 5, 0.1
    settings = {"length_scale": 1.0, "noise_variance": 0.05, "release": release}
    one = AuditedRegressor(**settings, output_noise_variance=added / k).fit(X, y)
    laws = one.result_.laws.separation
    ones, noise = np.ones((k, k)), added * np.eye(k)
    shared = 1.0 if release == "draw" else 0.0
    pair = LawPair(
        member=MultivariateNormal(
            laws.mean_shift[:, None] * np.ones(k),
            shared * laws.variance_with[:, None, None] * ones + noise,
        ),
        nonmember=MultivariateNormal(
            np.zeros((30, k)), shared * laws.variance_without[:, None, None] * ones + noise
        ),
        provenance=one.law_pair().provenance,
    )
    np.testing.assert_allclose(measures.advantage(pair), one.leakage_, rtol=1e-7)
    if release == "draw":
        draw = AuditedRegressor(**settings).fit(X, y)
        assert (one.leakage_ <= draw.leakage_ + 1e-12).all()


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("release", ["draw", "mean"])
def test_answers_have_the_released_law_and_the_score_is_their_mean(
    release: str, outputs: int
) -> None:
    X, y, queries = data(outputs=outputs)
    truth = data(n=25, seed=3, outputs=outputs)[1]
    model = AuditedRegressor(
        length_scale=1.0, release=release, output_noise_variance=0.2, normalize_y=True
    ).fit(X, y)
    answers = np.stack([model.answer(queries, random_state=s) for s in range(600)])
    mean, sigma = model.predict(queries, return_std=True)
    scale2 = np.var(y, axis=0)
    variance = 0.2 * scale2 + (sigma**2 if release == "draw" else 0.0 * sigma)
    error = np.sqrt(np.broadcast_to(variance, mean.shape) / 600)
    assert np.max(np.abs(answers.mean(axis=0) - mean) / error) < 4.5
    scores = [r2_score(truth, answer) for answer in answers]
    standard_error = np.std(scores) / np.sqrt(600)
    assert abs(np.mean(scores) - model.score(queries, truth)) < 4 * standard_error
    if release == "draw" and outputs == 1:
        noise = 0.2 * scale2 * np.eye(len(queries))
        law = model.posterior_.covariance(queries) * scale2 + noise
        found = np.cov(answers.T)
        spread = np.sqrt((law**2 + np.outer(np.diag(law), np.diag(law))) / 600)
        assert np.max(np.abs(found - law) / spread) < 5.0


def test_answers_are_fresh_unless_a_seed_is_given() -> None:
    X, y, queries = data()
    model = AuditedRegressor(length_scale=1.0).fit(X, y)
    assert not np.array_equal(model.answer(queries), model.answer(queries))
    again = model.answer(queries, random_state=4)
    np.testing.assert_array_equal(again, model.answer(queries, random_state=4))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("release", ["draw", "mean"])
def test_classifier_scores_what_it_releases(classes: int, release: str) -> None:
    X, y, queries = data(n=80)
    labels = np.array(["a", "b", "c", "d"])[np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))]
    labels = np.where(y > 5.0, "yes", "no") if classes == 2 else labels
    truth = labels[:25]
    model = AuditedClassifier(
        length_scale=1.0, noise_variance=0.05, release=release, output_noise_variance=0.02
    ).fit(X, labels)
    found = []
    for seed in range(800):
        answer = model.answer(queries, random_state=seed)
        codes = (answer > 0).astype(int) if classes == 2 else answer.argmax(axis=1)
        found.append(accuracy_score(truth, model.classes_[codes]))
    standard_error = np.std(found) / np.sqrt(800)
    assert abs(np.mean(found) - model.score(queries, truth)) < 4 * standard_error
    chances = model.predict_proba(queries)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(queries)).all()
    weight = np.arange(25.0)
    assert 0.0 <= model.score(queries, truth, sample_weight=weight) <= 1.0


def test_classifier_is_the_coded_regression() -> None:
    X, y, queries = data(n=80)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = AuditedClassifier(length_scale=1.0, noise_variance=0.05).fit(X, labels)
    coded = np.eye(3)[labels] - 1.0 / 3.0
    other = GaussianProcessRegressor(RBF(1.0), alpha=0.05, optimizer=None).fit(X, coded)
    expected = other.predict(queries).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(queries), expected)
    audit = leakscope.audit(X, coded, kernel=kernels.rbf(1.0), noise_variance=0.05)
    np.testing.assert_allclose(model.leakage_, audit.advantage, rtol=1e-12)
    own = LeakageAuditor(length_scale=1.0, noise_variance=0.05, task="classification")
    np.testing.assert_allclose(own.fit(X, labels).leakage_, audit.advantage, rtol=1e-12)


@pytest.mark.parametrize("classes", [3, 10])
def test_chances_of_the_largest_normal_by_quadrature(classes: int) -> None:
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((5, classes)) * np.array([0.1, 0.5, 1.0, 3.0, 20.0])[:, None]
    variance = np.array([1.0, 0.3, 2.0, 1.0, 1.0])
    found = Classes(np.arange(classes)).chances(mean, variance)
    for row, (m, v) in enumerate(zip(mean, variance, strict=True)):
        s = np.sqrt(v)
        for c in range(classes):
            others = np.delete(m, c)
            density = lambda t, c=c, others=others: (  # noqa: E731
                stats.norm.pdf(t, m[c], s) * np.prod(stats.norm.cdf((t - others) / s))  # noqa: B023
            )
            exact = integrate.quad(density, m[c] - 10 * s, m[c] + 10 * s, epsabs=1e-12, limit=200)
            assert found[row, c] == pytest.approx(exact[0], abs=1e-8)
