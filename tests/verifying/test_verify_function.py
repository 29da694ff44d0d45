"""``leakscope.verify`` on results in memory, on disk and of arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import leakscope
from leakscope import InputError, kernels, lood, results
from leakscope.linear import GaussianDesign
from leakscope.subjects import Asked
from leakscope.subjects.fit.subject import arrays_as_dataset

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = X[:, 0] + 0.2 * RNG.normal(size=24)


def test_a_result_of_arrays_is_verified_in_memory(tmp_path: Path) -> None:
    result = leakscope.audit(
        X, Y, model=lood.Process(kernels.rbf(), 0.1), record_ids=[f"r{i}" for i in range(24)]
    )
    found = leakscope.verify(result, records=3, seed=1)
    assert found.differs == 0
    assert found.checks[0].law.startswith("record r")
    with pytest.raises(InputError, match="no data to read"):
        leakscope.verify(result.write(tmp_path / "run"), records=3)


def test_groups_of_arrays_too() -> None:
    result = leakscope.audit(
        X, Y, model=lood.Process(kernels.rbf(), 0.1), groups=[f"g{i // 3}" for i in range(24)]
    )
    found = leakscope.verify(result, records=2, seed=1)
    assert found.differs == 0
    assert found.checks[0].law.startswith("group g")


def test_wrong_laws_differ() -> None:
    """The check has teeth: laws of another noise than the result says are found out."""
    result = leakscope.audit(X, Y, model=lood.Process(kernels.rbf(), 0.3))
    details = result.details.model_copy(update={"noise_variance": 0.1})
    forged = result.model_copy(update={"details": details})
    dataset = arrays_as_dataset(Asked(X=X, y=Y))
    assert leakscope.verify(forged, data=dataset, records=3).differs > 0


def test_the_same_from_memory_and_from_a_file(tmp_path: Path) -> None:
    plan = leakscope.plan_linear(GaussianDesign(10, 30, 50, 1.0), draws=200, random_state=0)
    file = results.write_result(plan, tmp_path / "plan.json")
    one, two = (leakscope.verify(given, draws=40) for given in (plan, file))
    assert one.checks == two.checks


def test_what_has_no_law_is_refused() -> None:
    found = leakscope.measure("normal:1,1", "normal:0,1")
    with pytest.raises(InputError, match="nothing to simulate in a result of the kind 'measure'"):
        leakscope.verify(found)


def test_a_record_can_be_named() -> None:
    result = leakscope.audit(X, Y, model=lood.Process(kernels.rbf(), 0.1))
    found = leakscope.verify(result, record_ids=[7, "3"])
    assert {check.law.split(",")[0] for check in found.checks} == {"record 7", "record 3"}
    with pytest.raises(InputError, match="no record 99"):
        leakscope.verify(result, record_ids=[99])
