"""The joint law of a record's scores under several fits, against refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from leakscope import InputError, fitted, measures
from leakscope.fitted.joint import JointLaws, Release, joint_laws

RNG = np.random.default_rng(4)
N, KEPT, MODELS = 70, 50, 3000
X = RNG.normal(size=(N, 5))
Y = X[:, 0] + RNG.normal(size=N)
EVERYBODY, BEFORE = np.ones(N, dtype=bool), np.arange(N) < KEPT


def ridge_scores(alphas: tuple[float, float], coins: np.ndarray) -> np.ndarray:
    """(models, 2, n) predictions of refits on drawn halves, by the normal equations."""
    found = np.empty((len(coins), 2, N))
    design = np.column_stack([X, np.ones(N)])
    for place, (alpha, inside) in enumerate(zip(alphas, (BEFORE, EVERYBODY), strict=True)):
        penalty = np.diag([alpha] * 5 + [0.0])
        weights = (coins & inside).astype(float)
        gram = np.einsum("mn,na,nb->mab", weights, design, design) + penalty
        right = np.einsum("mn,na,n->ma", weights, design, Y)
        found[:, place] = np.linalg.solve(gram, right[:, :, None])[:, :, 0] @ design.T
    return found


def correlations(covariances: np.ndarray) -> np.ndarray:
    sd = np.sqrt(np.einsum("nkk->nk", covariances))
    return covariances[:, 0, 1] / (sd[:, 0] * sd[:, 1])


@pytest.fixture(scope="module")
def ridge() -> tuple[JointLaws, np.ndarray, np.ndarray]:
    alphas = (3.0, 8.0)
    laws = joint_laws(
        [
            Release(Ridge(alpha=alpha).fit(X[inside], Y[inside]), X, Y, inside)
            for alpha, inside in zip(alphas, (BEFORE, EVERYBODY), strict=True)
        ]
    )
    coins = np.random.default_rng(5).random((MODELS, N)) < 0.5
    return laws, ridge_scores(alphas, coins), coins


def test_correlations_are_those_of_refits(
    ridge: tuple[JointLaws, np.ndarray, np.ndarray],
) -> None:
    laws, scores, coins = ridge
    for inside, covariances in ((True, laws.member_covariance), (False, laws.nonmember_covariance)):
        seen = np.array(
            [np.corrcoef(scores[coins[:, i] == inside, :, i].T)[0, 1] for i in range(N)]
        )
        # Fisher's transform has the standard error of one over the root of the models.
        off = (np.arctanh(seen) - np.arctanh(correlations(covariances))) * np.sqrt(MODELS / 2)
        assert abs(np.mean(seen - correlations(covariances))) < 0.01
        assert np.sqrt(np.mean(off**2)) < 1.6  # 1 were the laws exact; they are to a per cent


def test_who_joined_between_two_releases_is_told_by_their_difference(
    ridge: tuple[JointLaws, np.ndarray, np.ndarray],
) -> None:
    """The likelihood ratio of the laws, carried out against refits, reaches what they promise."""
    laws, scores, coins = ridge
    together = np.asarray(measures.advantage(laws.law_pair()))
    alone = np.asarray(
        measures.advantage(fitted.laws_of(Ridge(alpha=8.0).fit(X, Y), X, Y).law_pair())
    )
    assert np.all(together[KEPT:] > 1.15 * alone[KEPT:])
    reached = []
    for i in range(N):
        z = scores[:, :, i]
        ratio = sum(
            sign
            * (
                -0.5 * np.einsum("mk,kl,ml->m", z - mean[i], np.linalg.inv(cov[i]), z - mean[i])
                - 0.5 * np.linalg.slogdet(cov[i])[1]
            )
            for sign, mean, cov in (
                (1.0, laws.member_mean, laws.member_covariance),
                (-1.0, laws.nonmember_mean, laws.nonmember_covariance),
            )
        )
        reached.append(np.mean(ratio[coins[:, i]] > 0) - np.mean(ratio[~coins[:, i]] > 0))
    error = 1.0 / np.sqrt(MODELS * N) + 0.02 * float(np.mean(together))
    assert abs(np.mean(reached) - np.mean(together)) < 4 * error


def test_each_release_alone_has_its_own_laws() -> None:
    labels = (Y > 0).astype(int)
    releases = [
        Release(
            LogisticRegression(C=0.5, tol=1e-10).fit(X[inside], labels[inside]), X, labels, inside
        )
        for inside in (BEFORE, EVERYBODY)
    ]
    for fraction in (0.5, 0.7):
        laws = joint_laws(releases, fraction=fraction)
        for place, release in enumerate(releases):
            inside = release.trained_on
            own = fitted.laws_of(release.estimator, X[inside], labels[inside], fraction=fraction)
            mean, sd = laws.member_mean[:, place], np.sqrt(laws.member_covariance[:, place, place])
            # The rounds end at 3e-4 of a standard deviation; every score has noise of 0.1%.
            assert mean[inside] == pytest.approx(own.member_mean, abs=5e-4)
            assert sd[inside] == pytest.approx(own.member_sd, rel=2e-3)
            # Whom a release was not trained on it tells nothing about by itself.
            assert mean[~inside] == pytest.approx(laws.nonmember_mean[~inside, place], abs=1e-9)


def test_the_same_model_twice_tells_no_more() -> None:
    release = Release(Ridge(alpha=3.0).fit(X, Y), X, Y, EVERYBODY)
    laws = joint_laws([release, release])
    alone = measures.advantage(fitted.laws_of(release.estimator, X, Y).law_pair())
    assert measures.advantage(laws.law_pair()) == pytest.approx(np.asarray(alone), abs=2e-3)
    assert laws.trusted.mean() > 0.9


def test_two_releases_that_differ_by_one_person_give_that_one_away() -> None:
    without = np.arange(N) != 7
    releases = [
        Release(Ridge(alpha=3.0).fit(X[some], Y[some]), X, Y, some) for some in (without, EVERYBODY)
    ]
    laws = joint_laws(releases)
    told = np.asarray(measures.advantage(laws.law_pair()))
    assert told[7] > 0.9
    assert not laws.trusted[7]  # nothing else varies between the two: it is told for certain
    assert np.median(told) < 0.4


def test_fresh_others(ridge: tuple[JointLaws, np.ndarray, np.ndarray]) -> None:
    """With fresh others training sets vary more than halves of these: the laws are wider apart."""
    releases = [
        Release(Ridge(alpha=3.0).fit(X[inside], Y[inside]), X, Y, inside)
        for inside in (BEFORE, EVERYBODY)
    ]
    laws = joint_laws(releases, question="population")
    own = fitted.laws_of(releases[1].estimator, X, Y, question="population")
    assert np.sqrt(laws.nonmember_covariance[:, 1, 1]) == pytest.approx(own.nonmember_sd, rel=1e-3)
    assert np.all(np.abs(correlations(laws.nonmember_covariance)) < 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trained_on": BEFORE[:5]}, "true or false for each"),
        ({"trained_on": ~BEFORE}, "not the optimum"),
    ],
)
def test_what_does_not_fit(change: dict[str, Any], words: str) -> None:
    told = {"estimator": Ridge(alpha=3.0).fit(X[BEFORE], Y[BEFORE]), "X": X, "y": Y}
    good = Release(**told, trained_on=BEFORE)
    with pytest.raises(InputError, match=words):
        joint_laws([good, Release(**{**told, "trained_on": BEFORE, **change})])


def test_several_classes_and_known_others_are_refused() -> None:
    three = np.digitize(Y, [-0.5, 0.5])
    many = Release(LogisticRegression(tol=1e-8).fit(X, three), X, three, EVERYBODY)
    one = Release(Ridge().fit(X, Y), X, Y, EVERYBODY)
    with pytest.raises(InputError, match="one output"):
        joint_laws([many, many])
    with pytest.raises(InputError, match="is certain after one deterministic fit"):
        joint_laws([one, one], question="known_others")
    with pytest.raises(InputError, match="Several"):
        joint_laws([one])
