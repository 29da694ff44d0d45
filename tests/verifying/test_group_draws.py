"""Draws with and without a group, against the audit's closed forms and known laws."""

from __future__ import annotations

import numpy as np
import pytest

import leakscope
from leakscope import InputError, kernels, lood
from leakscope.measures import normal_kl_of_draws
from leakscope.results.columns import Table
from leakscope.verifying.audits import check_audit
from leakscope.verifying.checks import counted, threshold_for


def kl_of_normals(mean, S, mean_other, S_other):
    """The textbook formula."""
    inverse = np.linalg.inv(S_other)
    shift = mean_other - mean
    logs = np.linalg.slogdet(S_other)[1] - np.linalg.slogdet(S)[1]
    return 0.5 * (np.trace(inverse @ S) - len(mean) + logs + shift @ inverse @ shift)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("near", [0.0, 1.0])
def test_the_estimate_is_unbiased_with_the_stated_error(outputs, near):
    """Over 300 repetitions with few draws, where a plug-in estimate would be far off."""
    rng = np.random.default_rng(outputs)
    A, B = rng.normal(size=(2, 4, 4))
    S = A @ A.T + np.eye(4)
    S_other = S + near * B @ B.T
    means = near * rng.normal(size=(outputs, 4))
    exact = sum(kl_of_normals(np.zeros(4), S, mean, S_other) for mean in means)
    roots = np.linalg.cholesky(S), np.linalg.cholesky(S_other)
    found = []
    for _ in range(300):
        one = rng.normal(size=(outputs, 150, 4)) @ roots[0].T
        two = rng.normal(size=(outputs, 150, 4)) @ roots[1].T + means[:, None, :]
        found.append(normal_kl_of_draws(one, two))
    values, errors = np.array(found).T
    spread = values.std(ddof=1)
    assert abs(values.mean() - exact) < 4 * spread / np.sqrt(300)
    # Where the two laws are one, the slopes are estimates of zero, and the error is cautious.
    assert 0.8 < np.sqrt(np.mean(errors**2)) / spread < (1.25 if near else 2.5)


@pytest.fixture(params=[1, 2])
def problem(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(18, 2))
    y = rng.normal(size=18 if request.param == 1 else (18, request.param))
    groups = np.repeat([0, 1, 2, 3], [3, 5, 1, 9])
    return X, y, groups


def audited(X, y, groups):
    return leakscope.audit(X, y, model=lood.Process(kernels.rbf(1.0), 0.2), groups=groups)


def check(audit, draws=3000, wrong=1.0):
    """``wrong`` is by how much group 1's KL is off, in a subject that looks at no stored number."""
    kl = audit.kl * np.where(np.array(audit.record_ids) == 1, wrong, 1.0)
    table = Table({**audit.table.columns, "kl": kl}, audit.order)
    subject = audit.examined
    subject.laws_again = lambda: None
    return check_audit(
        audit.model_copy(update={"table": table}),
        subject,
        records=4,
        record_ids=(),
        count=draws,
        seed=5,
    ).checks


def test_right_laws_agree_and_a_wrong_one_differs(problem):
    audit = audited(*problem)
    assert counted(check(audit))["differs"] == 0
    found = check(audit, wrong=1.3)
    assert [c.law for c in found if c.verdict(threshold_for(8)) == "differs"] == ["group 1"]


def test_a_group_of_copies_is_one_record_to_the_draws(problem):
    X, y, groups = problem
    X = X.copy()
    X[1] = X[2] = X[0]
    with pytest.warns(UserWarning, match="repeat another record's features"):
        audit = audited(X, y, groups)
    assert counted(check(audit))["differs"] == 0


def test_too_few_draws_are_refused(problem):
    X, y, _ = problem
    audit = audited(X, y, [0] * 17 + [1])
    with pytest.raises(InputError, match="170 draws, not 120"):
        check(audit, draws=120)
