"""The figures of relu: verdicts that turn, and the theorem of adjacent intervals by brute force."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from leakscope import relu
from leakscope.laws import Key
from papers.relu_1 import (
    _about_eighty,
    _fewer_above,
    _more_on_margin,
    _nearly_all,
    _one_dimension,
    _trend,
)
from papers.relu_algorithm_1 import (
    FORMS,
    Case,
    _a_quarter,
    _always_active,
    _exhaustive,
    _theorem_3_2,
    training_set,
)
from papers.relu_margin import MarginRow


def row(features: int, train: float, above: float, error: float = 0.01) -> MarginRow:
    return MarginRow(features, 8, 8, train, train, above, 0.0, 0.0, error, error, error, 0.01, 0.02)


GROWING = [row(5, 0.4, 0.6), row(20, 0.9, 0.19), row(100, 1.0, 0.001, 0.0005)]


def test_trends_turn() -> None:
    assert _more_on_margin(GROWING).verdict == "holds"
    assert _fewer_above(GROWING).verdict == "holds"
    assert _more_on_margin(GROWING[::-1]).verdict == "does not hold"
    assert _fewer_above([GROWING[1], GROWING[0], GROWING[2]]).verdict == "does not hold"
    assert _trend([(0.0, 0.3), (0.5, 0.4)])[0] == pytest.approx(1.0)


def test_shares_of_section_5_turn() -> None:
    assert _nearly_all(GROWING[2]).verdict == "holds"
    assert _nearly_all(row(100, 1.0, 0.1)).verdict == "does not hold"
    assert _nearly_all(row(100, 1.0, 0.02)).verdict == "cannot tell"
    assert _about_eighty(GROWING[1]).verdict == "holds"
    assert _about_eighty(row(20, 0.9, 0.5)).verdict == "does not hold"
    nobody = dataclasses.replace(row(1, 0.0, 0.0), fitted=0)
    assert _one_dimension(nobody, 20).verdict == "does not hold"


def _cases(count: int) -> list[Case]:
    found = []
    for i in range(count):
        best = relu.max_margin_network(*training_set("normal", Key(6, (i,)).generator()))
        found.append(
            Case("normal", best, {form: relu.reconstruct(best, form=form) for form in FORMS})
        )
    return found


def test_algorithm_1s_claims_turn() -> None:
    cases = _cases(12)
    assert _exhaustive(cases).verdict == "holds with the erratum"
    full = [case for case in cases if case.found["printed"].candidates]
    assert _exhaustive(full).verdict == "holds"
    assert _theorem_3_2(full).verdict == "holds"
    # records moved away: the intervals hold none of them
    moved = [
        case._replace(best=dataclasses.replace(case.best, x=case.best.x + 100.0)) for case in full
    ]
    assert _theorem_3_2(moved).verdict == "does not hold"
    covered = [case for case in full if _always_active(case)]
    poor = [
        case._replace(found={"printed": dataclasses.replace(case.found["printed"], precision=0.1)})
        for case in covered
    ]
    assert _a_quarter(poor).verdict == ("does not hold" if covered else "cannot tell")


def test_always_active_is_what_it_says() -> None:
    for case in _cases(6):
        active = [
            all(w * x + b > 0.0 for x in case.best.x)
            for w, b in zip(case.best.network.w[:, 0], case.best.network.b, strict=True)
        ]
        assert _always_active(case) == any(active)


def test_training_sets_are_of_their_kind() -> None:
    sizes = set()
    for i in range(200):
        x, y = training_set("uniform", Key(7, (i,)).generator())
        assert np.abs(x).max() <= 10.0
        assert set(y.tolist()) <= {-1.0, 1.0}
        sizes.add(x.size)
    assert sizes == set(range(3, 16))
