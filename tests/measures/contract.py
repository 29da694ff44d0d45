"""What every kind of law must satisfy, whatever the numbers: the suite that each kind inherits.

A subclass gives ``laws``, a strategy for one law, and ``near``, a strategy that moves a law a
little; everything else follows.  The inequalities hold for any two laws, so they can fail only if
a measure is wrong.
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope import measures
from leakscope.laws import Law, LawPair

EXAMPLES = 40
SLACK = 1e-9


class MeasureContract:
    """Inherited by one test class for each kind of law."""

    laws: st.SearchStrategy[Law]
    examples: int = EXAMPLES
    roc_points: int = 33
    accuracy: float = 1e-8
    noise: float = 0.0  # what rounding alone makes of laws that are equal in disguise

    def check(self, body) -> None:
        """Run ``body(pair)`` on pairs that Hypothesis draws."""

        @settings(max_examples=self.examples, deadline=None, derandomize=True, database=None)
        @given(member=self.laws, nonmember=self.laws)
        def run(member: Law, nonmember: Law) -> None:
            body(LawPair(member, nonmember))

        run()

    def test_equal_laws_give_exact_zeros(self) -> None:
        @settings(max_examples=self.examples, deadline=None, derandomize=True, database=None)
        @given(law=self.laws)
        def run(law: Law) -> None:
            pair = LawPair(law, law)
            assert measures.advantage(pair) == 0.0
            assert measures.overlap(pair) == 1.0
            assert measures.kl(pair) == 0.0
            assert measures.renyi(pair, 2.0) == 0.0
            assert measures.auc(pair) == 0.5
            assert measures.epsilon_at_delta(pair, 1e-5) == 0.0
            assert measures.delta_at_epsilon(pair, 0.0) == 0.0
            fpr = [0.0, 1e-9, 0.3, 1.0]
            np.testing.assert_allclose(measures.tpr_at_fpr(pair, fpr), fpr, rtol=1e-13)

        run()

    def test_advantage_is_symmetric_and_complements_overlap(self) -> None:
        def body(pair: LawPair) -> None:
            there, back = measures.advantage(pair), measures.advantage(pair.swapped())
            np.testing.assert_allclose(there, back, rtol=self.accuracy, atol=self.noise)
            np.testing.assert_allclose(there + measures.overlap(pair), 1.0, rtol=self.accuracy)

        self.check(body)

    def test_advantage_is_the_hockey_stick_at_zero(self) -> None:
        def body(pair: LawPair) -> None:
            for direction in ("member_to_nonmember", "nonmember_to_member"):
                np.testing.assert_allclose(
                    measures.delta_at_epsilon(pair, 0.0, direction),
                    measures.advantage(pair),
                    rtol=self.accuracy,
                    atol=self.noise,
                )

        self.check(body)

    def test_pinsker_and_bretagnolle_huber(self) -> None:
        def body(pair: LawPair) -> None:
            adv, overlap = float(measures.advantage(pair)), float(measures.overlap(pair))
            for direction in ("nonmember_to_member", "member_to_nonmember"):
                kl = float(measures.kl(pair, direction))
                assert adv <= np.sqrt(kl / 2.0) * (1.0 + SLACK) + self.noise
                # Bretagnolle and Huber: TV <= sqrt(1 - exp(-KL)), and overlap >= exp(-KL)/2
                assert adv <= np.sqrt(-np.expm1(-kl)) * (1.0 + SLACK) + self.noise
                assert overlap >= 0.5 * np.exp(-kl) * (1.0 - SLACK)

        self.check(body)

    def test_renyi_grows_with_its_order_and_passes_through_kl(self) -> None:
        def body(pair: LawPair) -> None:
            orders = (0.5, 1.0 - 1e-6, 1.0, 1.0 + 1e-6, 2.0)
            values = [float(measures.renyi(pair, a)) for a in orders]
            for lower, upper in itertools.pairwise(values):
                assert lower <= upper * (1.0 + 1e-7) + self.noise
            assert values[2] == measures.kl(pair)

        self.check(body)

    def test_roc_is_concave_and_agrees_with_auc_and_advantage(self) -> None:
        def body(pair: LawPair) -> None:
            angle = np.linspace(0.0, np.pi, self.roc_points)
            fpr = 0.5 * (1.0 - np.cos(angle))
            tpr = np.asarray(measures.tpr_at_fpr(pair, fpr))
            assert tpr[0] >= 0.0
            assert tpr[-1] == 1.0
            assert np.all(tpr >= fpr * (1.0 - SLACK))
            slope = np.diff(tpr) / np.diff(fpr)
            assert np.all(np.diff(slope) <= 1e-7 * np.maximum(1.0, np.abs(slope[:-1])))
            adv, auc = float(measures.advantage(pair)), float(measures.auc(pair))
            assert np.max(tpr - fpr) <= adv * (1.0 + SLACK) + 1e-14
            # a concave curve lies above its chords and below 1; its area is known to a bracket
            chords = np.sum(0.5 * (tpr[1:] + tpr[:-1]) * np.diff(fpr))
            steps = np.sum(tpr[1:] * np.diff(fpr))
            assert chords - 1e-10 <= auc <= steps + 1e-10
            assert 0.5 * (1.0 + adv) - 1e-10 <= auc <= 1.0 - 0.5 * (1.0 - adv) ** 2 + 1e-10

        self.check(body)

    def test_trade_off_is_convex_and_its_own_inverse_when_swapped(self) -> None:
        def body(pair: LawPair) -> None:
            fpr = np.array([1e-9, 1e-6, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.97])
            fnr = np.asarray(measures.trade_off(pair, fpr))
            tpr = np.asarray(measures.tpr_at_fpr(pair, fpr))
            np.testing.assert_allclose(fnr + tpr, 1.0, rtol=1e-9)
            slope = -np.diff(tpr) / np.diff(fpr)  # 1 - FNR would round where the FPR is tiny
            assert np.all(np.diff(slope) >= -1e-7 * np.maximum(1.0, np.abs(slope[1:])))
            inner = (fnr > 1e-12) & (fnr < 1.0 - 1e-6)
            if inner.any():
                again = np.asarray(measures.trade_off(pair.swapped(), fnr[inner]))
                np.testing.assert_allclose(again, fpr[inner], rtol=1e-5, atol=1e-12)

        self.check(body)

    def test_epsilon_and_delta_are_inverse(self) -> None:
        def body(pair: LawPair) -> None:
            for direction in ("member_to_nonmember", "nonmember_to_member"):
                adv = float(measures.advantage(pair))
                delta = np.array([1e-9, 1e-5, 0.3]) * adv
                if adv <= self.noise:
                    continue
                epsilon = np.asarray(measures.epsilon_at_delta(pair, delta, direction))
                finite = np.isfinite(epsilon)
                assert np.all(np.diff(epsilon[finite]) <= 0.0)
                back = np.asarray(measures.delta_at_epsilon(pair, epsilon[finite], direction))
                # the slope of delta(epsilon) is at most 1: a rounded epsilon moves it by as much
                rounding = 4e-15 * epsilon[finite]
                assert np.all(np.abs(back - delta[finite]) <= 1e-7 * delta[finite] + rounding)

        self.check(body)

    def test_batch_equals_one_by_one(self) -> None:
        @settings(max_examples=5, deadline=None, derandomize=True, database=None)
        @given(found=st.lists(st.tuples(self.laws, self.laws), min_size=2, max_size=4))
        def run(found: list[tuple[Law, Law]]) -> None:
            from leakscope.laws import concatenate

            pairs = [LawPair(a, b).reshape(1) for a, b in found]
            try:
                batch = concatenate(pairs)
            except ValueError:
                return  # vectors of different length
            whole = measures.summary(batch).to_frame()
            for row, pair in enumerate(pairs):
                alone = measures.summary(pair).to_frame()
                for name in whole.columns:
                    np.testing.assert_allclose(
                        whole[name].iloc[row], alone[name].iloc[0], rtol=1e-9, err_msg=name
                    )

        run()
