"""The figures of linear: their theory is the library's, and their verdicts can turn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakscope.laws import Key
from leakscope.linear import GaussianDesign, RecordNorms, law_pair
from leakscope.measures import advantage
from leakscope.planning import linear_advantage
from papers import Order, linear_6, reproduce
from papers.linear_2 import READ, make_2a, meets_reading
from papers.linear_3 import Cell, at, increases, meets_formula
from papers.linear_5 import Curve, World, _comes_back, _rises, latent
from papers.linear_histogram import histogram_advantage
from papers.linear_records import (
    each_record,
    growing_norms,
    histogram_of_law,
    theory_advantage,
)
from papers.mean_interval import Mean, around, mean_interval


def test_records_keep_their_features_as_p_grows() -> None:
    sizes, records = [5, 50, 60], 20_000
    few, some, most = growing_norms(sizes, 80, records, Key(1))
    assert (few.used < some.used).all()
    assert (some.used < most.used).all()
    np.testing.assert_allclose(few.used + few.unused, most.used + most.unused)
    for p, norms in zip(sizes, (few, some, most), strict=True):
        error = math.sqrt(2.0 * p / records)
        assert abs(norms.used.mean() - p) < 4.0 * error
        assert abs(norms.unused.mean() - (80 - p)) < 4.0 * math.sqrt(2.0 * (80 - p) / records)


def test_intervals_cover_the_mean_in_95_percent() -> None:
    draws = Key(2).generator().exponential(size=(2_000, 40))
    inside = sum(low <= 1.0 <= high for _, _, low, high in map(mean_interval, draws))
    # the exponential is skewed, which costs Student's interval a percent or two at 40 draws
    assert 0.91 < inside / 2_000 < 0.97


def test_theory_is_the_librarys() -> None:
    design = GaussianDesign(100, 400, 3_000, 1.0, ridge=5.0)
    whole = linear_advantage(design, attacker="label_hidden", method="asymptotic").value
    assert theory_advantage(design) == pytest.approx(whole, rel=1e-12)
    # the two forms agree at lambda = 1 (docs/errata.md) and not elsewhere
    one = GaussianDesign(100, 400, 3_000, 1.0, ridge=1.0)
    assert theory_advantage(one, printed=True) == pytest.approx(theory_advantage(one), rel=1e-9)
    assert theory_advantage(design, printed=True) - theory_advantage(design) > 0.05


def test_curve_2a_is_eq_4_at_a_point() -> None:
    knobs = {"n": 1_000, "D": 10_000_000, "sigma": 1.0, "records": 100}
    table = make_2a(Order(key=Key(3), knobs=knobs)).panels[0].table
    row = table[(table["source"] == "theory") & (table["p/n"] > 9.0)].iloc[0]
    n, dim = 1_000, 10_000_000
    p = round(row["p/n"] * n)
    # Eq. (4) from the two standard deviations of Eq. (2), at the average record
    pair = law_pair(GaussianDesign(n, p, dim, 1.0), method="asymptotic")
    assert row["advantage"] == pytest.approx(float(np.asarray(advantage(pair))[0]), abs=2e-3)


def test_histogram_adversary_meets_the_law_it_is_drawn_from() -> None:
    design = GaussianDesign(100, 500, 3_000, 1.0)
    batch = law_pair(design, RecordNorms.of([500.0, 450.0], [2_500.0, 2_500.0]), draws=500)
    pairs = each_record(batch)
    assert len(pairs) == 2
    for pair in pairs:
        exact = float(np.asarray(advantage(pair)))
        drawn = histogram_of_law(pair, Key(4).generator())
        # bias of sqrt(bins/draws) at most, and two binomial errors
        assert abs(drawn - exact) < 0.012


def _near(values: dict[int, float], stderr: float) -> dict[int, Mean]:
    return {p: around(value, stderr) for p, value in values.items()}


def test_the_reading_claim_turns() -> None:
    assert meets_reading("Fig. 2(b)", READ, _near(READ, 0.002), 20).verdict == "holds"
    shifted = {p: value + (0.06 if p == 300 else 0.0) for p, value in READ.items()}
    claim = meets_reading("Fig. 2(b)", READ, _near(shifted, 0.002), 20)
    assert claim.verdict == "does not hold"
    assert "p = 300" in claim.measured


def _ridge_cells(*, printed: bool) -> dict[Cell, Mean]:
    n, dim = 100, 3_000
    return {
        (ratio, ridge): around(
            theory_advantage(GaussianDesign(n, round(ratio * n), dim, 1.0, ridge), printed=printed),
            0.0005,
        )
        for ratio in (2.0, 4.0, 10.0)
        for ridge in (0.0, 0.3, 2.0, 5.0)
    }


def test_the_ridge_claims_turn() -> None:
    right, wrong = _ridge_cells(printed=False), _ridge_cells(printed=True)
    whole = GaussianDesign(100, 3_000, 3_000, 1.0)
    assert meets_formula(right, whole, "Thm 4.1").verdict == "holds with the erratum"
    # were the laws those of the printed formula, the paper would be right
    assert meets_formula(wrong, whole, "Thm 4.1").verdict == "holds"
    assert increases(right, whole, "Sec. 4.1").verdict == "holds"
    falling = {cell: right[cell[0], 5.0 - cell[1]] for cell in right if cell[1] in (0.0, 5.0)}
    assert increases(falling, whole, "Sec. 4.1").verdict == "does not hold"
    vague = {cell: around(one.value, 0.5) for cell, one in right.items()}
    assert increases(vague, whole, "Sec. 4.1").verdict == "cannot tell"


def test_the_data_model_claims_turn() -> None:
    read = {300: 0.1, 1_000: 0.3}
    world = World({"n": 200, "d": 20}, latent, read, (), (), (20, 4), 10_000)
    generator = Key(5).generator()

    def curve(values: dict[int, float]) -> Curve:
        spread = {p: value + 0.01 * generator.standard_normal(20) for p, value in values.items()}
        return Curve({p: mean_interval(found) for p, found in spread.items()}, spread)

    near, far = curve(read), curve({300: 0.3, 1_000: 0.1})
    code = {"published": near, "text": far}
    assert _comes_back("Fig. 5", world, code, 20).verdict == "holds with the erratum"
    assert _comes_back("Fig. 5", world, {"published": far, "text": near}, 20).verdict == "holds"
    both = {"published": far, "text": far}
    assert _comes_back("Fig. 5", world, both, 20).verdict == "does not hold"
    assert _rises("Fig. 5", code, 200).verdict == "holds with the erratum"
    assert _rises("Fig. 5", both, 200).verdict == "does not hold"


def test_the_same_key_gives_the_same_figure() -> None:
    one, again, other = (reproduce("linear-2a", random_state=state) for state in (1, 1, 2))
    assert one.panels == again.panels
    assert one.claims == again.claims
    assert one.panels != other.panels


def test_more_ridge_tells_the_laws_apart_at_every_ratio_that_is_drawn():
    n, dim = 1_000, 10_000_000
    sizes = [round(ratio * n) for ratio in linear_6.RATIOS]
    records = {
        ratio: (GaussianDesign(n, p, dim, 1.0), norms)
        for ratio, p, norms in zip(
            linear_6.RATIOS, sizes, growing_norms(sizes, dim, 1, Key(8)), strict=True
        )
    }
    exact = {
        (ratio, ridge): tuple(
            around(value, 1e-6) for value in linear_6.variances(at(design, design.p, ridge), norms)
        )
        for ratio, (design, norms) in records.items()
        for ridge in linear_6.RIDGES[1:]
    }
    claim = linear_6._easier(exact, records)
    assert claim.verdict == "holds"
    assert "7 of 7 p/n" in claim.measured
    # Draws that go the other way at one of the two nearest ratios refute it.
    first, last = ((4.0, ridge) for ridge in (linear_6.RIDGES[1], linear_6.RIDGES[-1]))
    swapped = {**exact, first: exact[last], last: exact[first]}
    assert linear_6._easier(swapped, records).verdict == "does not hold"


def test_histogram_adversary() -> None:
    rng = np.random.default_rng(0)
    member, nonmember = 1.4 * rng.standard_normal(100_000), 0.7 * rng.standard_normal(100_000)
    for convention in ("text", "published"):
        found = histogram_advantage(member, nonmember, convention=convention)  # type: ignore[arg-type]
        assert found == pytest.approx(0.322675, abs=4.0 * np.sqrt(0.5 / 100_000) + 0.01)
    # by hand: members 0, 0, 1, 1 and non-members 0, 1, 1, 1 differ by a quarter in the first bin
    assert histogram_advantage([0, 0, 1, 1], [0, 1, 1, 1]) == 0.25
